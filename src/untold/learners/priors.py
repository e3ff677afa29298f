"""How a bettor spreads its wealth over bets v ∈ [−C, C], and what that gives.

    F(L, V) = ∫ (e^{vL − v²V} − 1) dP(v),        bet(L, V) = ∂F/∂L = ∫ v e^{vL − v²V} dP(v)

with L = −Σg̃ and V = Σg̃²: van der Hoeven (2019), equations (4) and (5). E F never exceeds what was won, so
the regret against u is at most sup_L |u|·L − F(L).

================ ==================================== =====================================================
prior            density on [−C, C]                   bet
================ ==================================== =====================================================
`Conjugate`      e^{−bv²}/Z, Z = √(π/b)·erf(C√b)      J(L, b + V, C)/Z
`Uniform`        1/2C                                 J(L, V, C)/2C
`ChernovVovk`    1/(Z|v|ln²|v|), Z = 2/ln(1/C)        a quadrature; needs C < 1, that is G > 1/5
`Improper`       1/|v|, not normalised                a quadrature
================ ==================================== =====================================================

Equation (7) is wrong as printed (`docs/errata.md`); J is `magnitude`. Quadratures are relative to 1e-10.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from untold.core import Floats
from untold.errors import between, positive, refuse
from untold.learners.magnitude import LARGEST, bet, magnitude

__all__ = ["ChernovVovk", "Conjugate", "Improper", "Prior", "Uniform", "conjugate_bound"]


class Prior(Protocol):
    """A way of spreading bets over [−C, C]."""

    def bet(self, L: float, V: float, C: float) -> float: ...
    def potential(self, L: float, V: float, C: float) -> float: ...


def _whole_integral(L: float, V: float, C: float) -> float:
    """∫₋C^C e^{vL − v²V} dv for L > 0, by parts: L·∫ = 2V·J + 2e^{−C²V}sinh(CL)."""
    ends = math.exp(min(C * L - C * C * V, 700.0)) * -math.expm1(-2 * C * L)
    return (2 * V * magnitude(L, V, C) + ends) / L


@dataclass(frozen=True)
class Conjugate:
    """∝ e^{−bv²}: closed form, and every term of the bound but the first scales with |u|.

    >>> round(Conjugate(b=1.0).bet(3.0, 9.0, 0.2), 6)
    0.033177
    """

    b: float = 1.0

    def __post_init__(self) -> None:
        positive("b", self.b, of="Conjugate")

    def scale(self, C: float) -> float:
        """1/Z."""
        root = math.sqrt(self.b)
        return root / (math.sqrt(math.pi) * math.erf(C * root))

    def bet(self, L: float, V: float, C: float) -> float:
        """J(L, b + V, C)/Z."""
        return bet(L, self.b + V, C, self.scale(C))

    def potential(self, L: float, V: float, C: float) -> float:
        """F(L, V), L > 0."""
        return self.scale(C) * _whole_integral(L, self.b + V, C) - 1.0


@dataclass(frozen=True)
class Uniform:
    """1/2C on [−C, C].

    >>> round(Uniform().bet(3.0, 10.0, 0.2), 6)
    0.03274
    """

    def bet(self, L: float, V: float, C: float) -> float:
        """J(L, V, C)/2C."""
        return bet(L, V, C, 0.5 / C)

    def potential(self, L: float, V: float, C: float) -> float:
        """F(L, V), L > 0."""
        return _whole_integral(L, V, C) / (2 * C) - 1.0


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_AWAY = np.geomspace(0.25, 64.0, 17)


def _panels(L: float, V: float, C: float) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights on [0, C], dense where e^{vL − v²V} lives and towards 0."""
    peak = min(C, L / (2 * V)) if V > 0 else C
    width = 1 / max(math.sqrt(2 * V), L - 2 * V * peak, 1 / C)
    cuts = np.concatenate([C * 0.5 ** np.arange(48), peak + width * _AWAY, peak - width * _AWAY])
    cuts = np.unique(np.concatenate([[0.0, C, peak], cuts[(cuts > 0) & (cuts < C)]]))
    middle, half = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts) / 2
    nodes = middle[:, None] + half[:, None] * _NODES
    return nodes.ravel(), (half[:, None] * _WEIGHTS).ravel()


def _half_line(weight: Callable[[Floats], Floats], L: float, V: float, C: float) -> float:
    """∫₀^C weight(v)·2·sinh(v|L|)·e^{−v²V} dv with the sign of L, at most LARGEST in size; 0 at V > 1e300."""
    if not V <= 1e300:
        return 0.0
    size = min(abs(L), 1e150)
    v, dv = _panels(size, V, C)
    exponent = v * size - v * v * V
    top = float(exponent.max())
    total = float(np.sum(dv * weight(v) * -np.expm1(-2 * v * size) * np.exp(exponent - top)))
    return math.copysign(min(total * math.exp(min(top, 700.0)), LARGEST), L)


def _half_line_potential(weight: Callable[[Floats], Floats], L: float, V: float, C: float) -> float:
    """∫₀^C weight(v)·(2·cosh(vL)·e^{−v²V} − 2)/v dv."""
    v, dv = _panels(L, V, C)
    up, down = np.expm1(np.minimum(v * L - v * v * V, 700.0)), np.expm1(-v * L - v * v * V)
    return float(np.sum(dv * weight(v) * (up + down) / v))


@dataclass(frozen=True)
class ChernovVovk:
    """∝ 1/(|v|ln²|v|): more wealth near 0, where bets of long games are. Chernov and Vovk (2010).

    >>> round(ChernovVovk().bet(3.0, 10.0, 0.2), 6)
    0.020036
    """

    @staticmethod
    def _weight(C: float) -> Callable[[Floats], Floats]:
        if C >= 1:
            raise refuse("bound", 0.2 / C, of="ChernovVovk", allowed="above 1/5", hint="rescale the data.")
        mass = 2 / -math.log(C)
        return lambda v: 1 / (mass * np.log(v) ** 2)

    def bet(self, L: float, V: float, C: float) -> float:
        """∫ v e^{vL − v²V} dP."""
        return _half_line(self._weight(C), L, V, C)

    def potential(self, L: float, V: float, C: float) -> float:
        """F(L, V), L > 0."""
        return _half_line_potential(self._weight(C), L, V, C)


@dataclass(frozen=True)
class Improper:
    """1/|v|: the best constants; its wealth at the start is not bounded, but F is (van der Hoeven, App. C).

    >>> round(Improper().bet(3.0, 10.0, 0.2), 6)
    0.101706
    """

    def bet(self, L: float, V: float, C: float) -> float:
        """∫ sgn(v) e^{vL − v²V} dv."""
        return _half_line(np.ones_like, L, V, C)

    def potential(self, L: float, V: float, C: float) -> float:
        """F(L, V), L > 0."""
        return _half_line_potential(np.ones_like, L, V, C)


def conjugate_bound(prior: Prior, V: float, C: float, norm: float) -> float:
    """sup_L norm·L − F(L, V): at the L where bet(L, V) = norm, for F is convex and even.

    >>> conjugate_bound(Conjugate(), 0.0, 0.2, 0.0)  # nothing is lost against u = 0 before the start
    0.0
    """
    from scipy.optimize import brentq

    between("norm", norm, 0.0, LARGEST, of="regret", ends="[)")
    if not V <= 1e300:
        return math.inf
    high = 1.0
    while prior.bet(high, V, C) < norm:
        high *= 2.0
    low = 1e-9 * min(1.0, 1.0 / C)
    if prior.bet(low, V, C) >= norm:
        return max(0.0, norm * low - prior.potential(low, V, C))
    log_norm = math.log(norm)
    L = float(brentq(lambda x: math.log(prior.bet(x, V, C)) - log_norm, low, high, xtol=1e-12, rtol=1e-12))
    return norm * L - prior.potential(L, V, C)
