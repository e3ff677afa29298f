"""What is known of a sum f = Σℓᵢ before any data, and how far descent with noise then gets in T steps.

n rows, ℓᵢ L-Lipschitz and β-smooth, f λ-strongly convex, D ≥ ‖x₁ − x*‖, Δ ≥ f(x₁) − f*, E‖g̃ₜ − ∇f(xₜ)‖² ≤ v::

    regime             bound                                      rate                              v = VT → ∞
    nonconvex-smooth   (1/T)ΣE‖∇f(xₜ)‖² ≤ 2Δ/(Tη) + ηnβv          η = min{1/(nβ), √(2Δ/(nβvT))}     2√(2nβΔV)
    convex-smooth      E f(x̄) − f* ≤ D²/(2Tη) + ηv/2              η = min{1/(nβ), D/√(vT)}          D√V
    convex-lipschitz   E f(x̄) − f* ≤ D²/(2Tη) + η(n²L² + v)/2     η = D/√((n²L² + v)T)              D√V
    strongly-convex    E f(x̄) − f* ≤ 2(n²L² + v)/(λ(T + 1))       ηₜ = 2/(λ(t + 1)), weights ∝ t    2V/λ

x̄ averages x₁ … x_T. From Yu-Xiang Wang's lecture 12, section 12.2, corrected as in ``docs/errata.md``; the
second has halves by f(x) − f* ≤ ⟨∇f(x), x − x*⟩ − ‖∇f(x)‖²/(2nβ). The last wants a bounded set.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from untold.errors import between, one_of, positive, whole
from untold.learners.rules import Constant, Rule, StronglyConvex

__all__ = ["Problem", "Regime", "bound", "limit", "rule"]


class Regime(StrEnum):
    """What f is; the last is Lipschitz too.

    >>> Regime("convex-smooth").name
    'CONVEX_SMOOTH'
    """

    NONCONVEX_SMOOTH = "nonconvex-smooth"
    CONVEX_SMOOTH = "convex-smooth"
    CONVEX_LIPSCHITZ = "convex-lipschitz"
    STRONGLY_CONVEX = "strongly-convex"

    def rows(self, n: int) -> float:
        """By what the sum's bound is divided for the mean's: n, and n² where it bounds a squared gradient."""
        return float(n) ** 2 if self is Regime.NONCONVEX_SMOOTH else float(n)


NEEDS = {
    Regime.NONCONVEX_SMOOTH: ("smoothness", "gap"),
    Regime.CONVEX_SMOOTH: ("smoothness", "distance"),
    Regime.CONVEX_LIPSCHITZ: ("distance",),
    Regime.STRONGLY_CONVEX: ("strength",),
}


@dataclass(frozen=True, kw_only=True)
class Problem:
    """n, d, L, β, λ, D, Δ in this order; 0 where unknown.

    >>> Problem(n=10, d=2, lipschitz=1.0, gap=5.0).with_rows(20).gap
    10.0
    """

    n: int
    d: int
    lipschitz: float
    smoothness: float = 0.0
    strength: float = 0.0
    distance: float = 0.0
    gap: float = 0.0

    def __post_init__(self) -> None:
        whole("n", self.n, of="Problem")
        whole("d", self.d, of="Problem")
        positive("lipschitz", self.lipschitz, of="Problem")
        for name in ("smoothness", "strength", "distance", "gap"):
            between(name, getattr(self, name), 0.0, math.inf, of="Problem", ends="[)")

    def with_rows(self, n: int) -> "Problem":
        """The same for n rows like these: λ and Δ grow with the sum."""
        return replace(self, n=n, strength=self.strength * n / self.n, gap=self.gap * n / self.n)

    def known_for(self, regime: Regime) -> Regime:
        """The regime, refused where the problem lacks what its bound is made of."""
        regime = Regime(one_of("regime", regime, list(Regime), of="Problem"))
        for name in NEEDS[regime]:
            positive(name, getattr(self, name), of="Problem", hint=f"the {regime} bound is made of it.")
        return regime


def rule(regime: Regime, p: Problem, T: int, v: float) -> Rule:
    """η, the best for the bound.

    >>> rule(Regime.CONVEX_SMOOTH, Problem(n=1, d=1, lipschitz=1.0, smoothness=1.0, distance=2.0), 100, 4.0)
    Constant(eta=0.1)
    """
    beta = p.n * p.smoothness
    if regime is Regime.STRONGLY_CONVEX:
        return StronglyConvex(p.strength, weighted=True)
    if regime is Regime.CONVEX_LIPSCHITZ:
        G = p.n * p.lipschitz
        return Constant.convex_lipschitz(lipschitz=G, distance=p.distance, variance=v, horizon=T)
    if v == 0:
        return Constant(1 / beta)
    if regime is Regime.CONVEX_SMOOTH:
        return Constant.convex_smooth(beta=beta, distance=p.distance, variance=v, horizon=T)
    return Constant.nonconvex_smooth(beta=beta, gap=p.gap, variance=v, horizon=T)


def bound(regime: Regime, p: Problem, T: int, v: float, eta: float | None = None) -> float:
    """The table's bound, at the rule's rate unless another constant is given.

    >>> bound(Regime.STRONGLY_CONVEX, Problem(n=3, d=1, lipschitz=1.0, strength=0.5), 9, 1.0)
    4.0
    """
    eta = rule(regime, p, T, v).rate(1, 0.0) if eta is None else eta
    second = (p.n * p.lipschitz) ** 2 + v
    if regime is Regime.STRONGLY_CONVEX:
        return 2 * second / (p.strength * (T + 1))
    if regime is Regime.NONCONVEX_SMOOTH:
        return 2 * p.gap / (T * eta) + eta * p.n * p.smoothness * v
    return p.distance**2 / (2 * T * eta) + eta / 2 * (v if regime is Regime.CONVEX_SMOOTH else second)


def limit(regime: Regime, p: Problem, V: float) -> float:
    """The last column: what is left of the bound where v = VT and T → ∞.

    >>> limit(Regime.CONVEX_LIPSCHITZ, Problem(n=3, d=1, lipschitz=1.0, distance=2.0), 4.0)
    4.0
    """
    if regime is Regime.STRONGLY_CONVEX:
        return 2 * V / p.strength
    if regime is Regime.NONCONVEX_SMOOTH:
        return 2 * math.sqrt(2 * p.n * p.smoothness * p.gap * V)
    return p.distance * math.sqrt(V)
