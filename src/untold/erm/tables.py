"""The two summary tables of Yu-Xiang Wang's lecture 12, section 12.2.5, beside what can be claimed.

As corrected in ``docs/errata.md``: for the sum f, with σ²/T = L²/(2ρ) and ρ = ε²/(4·ln(1/δ))::

    f                      utility                      computation: T            calls of a row's gradient
    convex-lipschitz       √d·L·D·√ln(1/δ)/ε            n²ρ/d                     n³ρ/d
    convex-smooth                                       nβ√ρ·D/(√d·L)             n²β√ρ·D/(√d·L)
    strongly-convex        d·L²·ln(1/δ)/(λε²)           n²ρ/d                     n³ρ/d
    nonconvex-smooth       √(nβd·L²·Δ·ln(1/δ))/ε

The utility holds up to a constant, which the sections give: √2, 4 and 4. Nothing is claimed from ρ: a plan
stands beside each row, accounted exactly. L is 2L under replace-one, for it stands for noise.
"""

import math
from typing import NamedTuple

from untold.erm.plan import Terms, planned
from untold.erm.regimes import Problem, Regime, limit
from untold.private.noisy_sums import weight

__all__ = ["Computation", "Utility", "computation_table", "utility_table"]


class Utility(NamedTuple):
    """A row: the table's formula for the sum and per row, with its constant, and the bound of a plan."""

    regime: Regime
    formula: str
    total: float
    per_row: float
    figure: float
    planned: float


class Computation(NamedTuple):
    """A row: the table's T and gradients of a row, and the plan's."""

    regime: Regime
    formula: str
    steps: float
    calls: float
    planned: int


def utility_table(p: Problem, terms: Terms) -> tuple[Utility, ...]:
    """S4's first table.

    >>> p = Problem(n=1000, d=10, lipschitz=1.0, smoothness=0.25, strength=100.0, distance=2.0, gap=50.0)
    >>> for row in utility_table(p, Terms(epsilon=1.0)):
    ...     print(f"{row.regime}: {row.formula} = {row.total:.3g}; {row.figure:.3g}; {row.planned:.3g}")
    convex-lipschitz: √d·L·D·√ln(1/δ)/ε = 23.5; 33.2; 29.4
    strongly-convex: d·L²·ln(1/δ)/(λε²) = 1.38; 5.53; 3.93
    nonconvex-smooth: √(nβd·L²·Δ·ln(1/δ))/ε = 1.31e+03; 5.26e+03; 4.55e+03
    """
    L, log, epsilon = weight(terms.relation) * p.lipschitz, math.log(1 / terms.delta), terms.epsilon
    V = p.d * L**2 / (2 * terms.rho)
    for regime in (Regime.CONVEX_LIPSCHITZ, Regime.STRONGLY_CONVEX, Regime.NONCONVEX_SMOOTH):
        p.known_for(regime)
    table = {
        Regime.CONVEX_LIPSCHITZ: ("√d·L·D·√ln(1/δ)/ε", math.sqrt(p.d * log) * L * p.distance / epsilon),
        Regime.STRONGLY_CONVEX: ("d·L²·ln(1/δ)/(λε²)", p.d * L**2 * log / (p.strength * epsilon**2)),
        Regime.NONCONVEX_SMOOTH: (
            "√(nβd·L²·Δ·ln(1/δ))/ε", math.sqrt(p.n * p.smoothness * p.d * p.gap * log) * L / epsilon,
        ),
    }  # fmt: skip
    return tuple(
        Utility(
            regime,
            text,
            total,
            total / regime.rows(p.n),
            limit(regime, p, V),
            planned(p, regime, terms).bound,
        )
        for regime, (text, total) in table.items()
    )


def computation_table(p: Problem, terms: Terms) -> tuple[Computation, ...]:
    """S4's second table.

    >>> p = Problem(n=1000, d=10, lipschitz=1.0, smoothness=0.25, strength=100.0, distance=2.0)
    >>> for row in computation_table(p, Terms(epsilon=1.0)):
    ...     print(f"{row.regime}: {row.formula} = {row.steps:.4g}, {row.calls:.4g} calls; {row.planned}")
    convex-lipschitz: n²ρ/d = 1810, 1.81e+06 calls; 26681
    convex-smooth: nβ√ρ·D/(√d·L) = 21.27, 2.127e+04 calls; 25
    strongly-convex: n²ρ/d = 1810, 1.81e+06 calls; 56018
    """
    noisy = weight(terms.relation)
    lipschitz = ("n²ρ/d", p.n**2 * terms.rho / (noisy**2 * p.d))
    scale = math.sqrt(p.d) * noisy * p.lipschitz
    table = {
        Regime.CONVEX_LIPSCHITZ: lipschitz,
        Regime.CONVEX_SMOOTH: (
            "nβ√ρ·D/(√d·L)", p.n * p.smoothness * math.sqrt(terms.rho) * p.distance / scale,
        ),
        Regime.STRONGLY_CONVEX: lipschitz,
    }  # fmt: skip
    return tuple(
        Computation(regime, formula, steps, p.n * steps, planned(p, regime, terms).steps)
        for regime, (formula, steps) in table.items()
    )
