"""Convex losses ℓ(w; x, y): value, one fixed subgradient, and the constants that bound its size and change.

A linear loss is φ(z, y) at the margin z = ⟨x, w⟩, so everything follows from φ on the line::

    ∂ℓ ∋ φ′(z, y)·x        lipschitz(R) = sup|φ′|·R        smoothness(R) = sup φ″·R²        for ‖x‖₂ ≤ R

At a kink φ′ is the slope of least magnitude. Constants are inf where there is no bound. Every loss is named
here; the two kinds that are not linear are written in `losses_of_classes` (w is a matrix) and
`losses_of_points` (there are no labels).

Letters: ``w`` a point, ``X`` rows x, ``y`` labels, ``z`` margins, ``R`` a bound on ‖x‖₂.
Shalev-Shwartz and Ben-David (2014), Understanding Machine Learning, chapters 12 and 14, for the calculus.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from untold.convex.logistic import logistic_slopes
from untold.convex.losses_of_classes import Multinomial
from untold.convex.losses_of_points import GeometricMedian, Mean
from untold.convex.rows import ByRow, Labels, Linear
from untold.core import Floats
from untold.errors import between, positive

__all__ = [
    "LOSSES",
    "Absolute",
    "GeometricMedian",
    "Hinge",
    "Huber",
    "HuberisedHinge",
    "Logistic",
    "Mean",
    "Multinomial",
    "Quantile",
    "Squared",
]


@dataclass(frozen=True)
class Squared(Linear):
    """Least squares, with the half that makes its curvature 1.

    ::

        φ(z, y) = ½(z − y)²        φ′ = z − y        φ″ = 1

    Lipschitz inf, smoothness R². Twice this is the (⟨x, w⟩ − y)² of textbooks.

    Edge case:
        From abs(z − y) ≈ 1.9e154 on the value is the largest float.

    >>> Squared().subgradient([2.0, 0.0], X=[1.0, 3.0], y=5.0).tolist()
    [-3.0, -9.0]
    """

    labels: ClassVar[Labels] = "reals"
    steepest: ClassVar[float] = math.inf
    curvature: ClassVar[float] = 1.0

    def pointwise(self, z: Floats, y: Floats) -> Floats:
        return 0.5 * (z - y) ** 2

    def slope(self, z: Floats, y: Floats) -> Floats:
        return z - y


@dataclass(frozen=True)
class Logistic(Linear):
    """The negative log-likelihood of a sign under P(y = 1) = 1/(1 + e^{−z}).

    ::

        φ(z, y) = ln(1 + e^{−yz})        φ′ = −y/(1 + e^{yz})        φ″ = σ(z)σ(−z) ≤ ¼

    Lipschitz R, smoothness R²/4; y is −1 or +1.

    Edge case:
        Exact to the last digits at both ends: −yz far below zero, a vanishing e^{−yz} far above.

    >>> Logistic().value([0.0], X=[[1.0], [1.0]], y=[1, -1])
    array([0.69314718, 0.69314718])
    """

    labels: ClassVar[Labels] = "signs"
    steepest: ClassVar[float] = 1.0
    curvature: ClassVar[float] = 0.25

    def pointwise(self, z: Floats, y: Floats) -> Floats:
        values: Floats = np.logaddexp(0.0, -y * z)
        return values

    def slope(self, z: Floats, y: Floats) -> Floats:
        z, y = np.broadcast_arrays(z, y)
        slopes = np.empty(z.shape)
        logistic_slopes(z.astype(np.float64).ravel(), y.astype(np.float64).ravel(), slopes.ravel())
        return slopes


@dataclass(frozen=True)
class Hinge(Linear):
    """The loss of the support vector machine.

    ::

        φ(z, y) = max(0, 1 − yz)        φ′ = −y if yz < 1 else 0

    Lipschitz R, not smooth; y is −1 or +1.

    Edge case:
        At the kink yz = 1 the slope is 0.

    >>> Hinge().subgradient([1.0], X=[[0.5], [1.0]], y=[1, 1]).tolist()
    [[-0.5], [0.0]]
    """

    labels: ClassVar[Labels] = "signs"
    steepest: ClassVar[float] = 1.0
    curvature: ClassVar[float] = math.inf

    def pointwise(self, z: Floats, y: Floats) -> Floats:
        return np.maximum(0.0, 1.0 - y * z)

    def slope(self, z: Floats, y: Floats) -> Floats:
        return np.where(y * z < 1.0, -y, 0.0)


@dataclass(frozen=True)
class HuberisedHinge(Linear):
    """The hinge with its kink rounded by a parabola over yz ∈ [1 − h, 1 + h], h = `width`.

    ::

        φ(z, y) = 0 if yz > 1 + h,   (1 + h − yz)²/(4h) between,   1 − yz if yz < 1 − h
        φ′ = −y·s        s = (1 + h − yz)/(2h) clipped to [0, 1]        φ″ ≤ 1/(2h)

    Lipschitz R, smoothness R²/(2h); y is −1 or +1. It exceeds the hinge by at most h/4, at yz = 1.
    Chapelle (2007), Training a support vector machine in the primal.

    Edge case:
        As h → 0 it becomes the hinge, with slope −½y at the kink.

    >>> HuberisedHinge(width=0.5).value([1.0], X=[[0.0], [1.0], [2.0]], y=[1, 1, 1]).tolist()
    [1.0, 0.125, 0.0]
    """

    width: float = 0.5

    labels: ClassVar[Labels] = "signs"
    steepest: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", positive("width", self.width, of="HuberisedHinge"))

    @property
    def curvature(self) -> float:
        """1/(2h)."""
        return 0.5 / self.width

    def _steepness(self, m: Floats) -> Floats:
        return np.clip(0.5 + 0.5 * ((1.0 - m) / self.width), 0.0, 1.0)

    def pointwise(self, z: Floats, y: Floats) -> Floats:
        m = y * z
        return self.width * self._steepness(m) ** 2 + np.maximum(0.0, (1.0 - m) - self.width)

    def slope(self, z: Floats, y: Floats) -> Floats:
        return -y * self._steepness(y * z)


@dataclass(frozen=True)
class Huber(Linear):
    """Squared near zero and absolute far away, joined at residual δ = `delta`.

    ::

        φ(z, y) = ½r² if |r| ≤ δ else δ|r| − ½δ²        r = z − y        φ′ = r clipped to [−δ, δ]

    Lipschitz δR, smoothness R². Huber (1964), Robust estimation of a location parameter.

    Edge case:
        At abs(r) = δ both pieces agree in value and in slope.

    >>> Huber(delta=1.0).value([1.0], X=[[0.5], [3.0]], y=[0, 0]).tolist()
    [0.125, 2.5]
    """

    delta: float = 1.0

    labels: ClassVar[Labels] = "reals"
    curvature: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", positive("delta", self.delta, of="Huber"))

    @property
    def steepest(self) -> float:
        """δ."""
        return self.delta

    def pointwise(self, z: Floats, y: Floats) -> Floats:
        near = np.minimum(np.abs(z - y), self.delta)
        return 0.5 * near**2 + self.delta * (np.abs(z - y) - near)

    def slope(self, z: Floats, y: Floats) -> Floats:
        return np.clip(z - y, -self.delta, self.delta)


@dataclass(frozen=True)
class Quantile(Linear):
    """The pinball loss, least at the τ-quantile of y, τ = `level`.

    ::

        φ(z, y) = τ(y − z) if y ≥ z else (1 − τ)(z − y)        φ′ = −τ if y > z, 1 − τ if y < z

    Lipschitz max(τ, 1 − τ)·R, not smooth. Koenker and Bassett (1978), Regression quantiles.

    Edge case:
        At the kink z = y the slope is 0.

    >>> Quantile(level=0.9).value([1.0], X=[[0.0], [2.0]], y=[1, 1]).round(3).tolist()
    [0.9, 0.1]
    """

    level: float = 0.5

    labels: ClassVar[Labels] = "reals"
    curvature: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", between("level", self.level, 0, 1, of="Quantile", ends="()"))

    @property
    def steepest(self) -> float:
        """max(τ, 1 − τ)."""
        return max(self.level, 1.0 - self.level)

    def pointwise(self, z: Floats, y: Floats) -> Floats:
        return np.maximum(self.level * (y - z), (1.0 - self.level) * (z - y))

    def slope(self, z: Floats, y: Floats) -> Floats:
        return (1.0 - self.level) * (z > y) - self.level * (z < y)


@dataclass(frozen=True)
class Absolute(Linear):
    """Least absolute deviations; twice `Quantile` at level ½.

    ::

        φ(z, y) = |z − y|        φ′ = sign(z − y)

    Lipschitz R, not smooth.

    Edge case:
        At the kink z = y the slope is 0.

    >>> Absolute().subgradient([1.0], X=[[2.0], [3.0]], y=[2, 5]).tolist()
    [[0.0], [-3.0]]
    """

    labels: ClassVar[Labels] = "reals"
    steepest: ClassVar[float] = 1.0
    curvature: ClassVar[float] = math.inf

    def pointwise(self, z: Floats, y: Floats) -> Floats:
        return np.abs(z - y)

    def slope(self, z: Floats, y: Floats) -> Floats:
        return np.sign(z - y)


LOSSES: Final[tuple[ByRow, ...]] = (
    Squared(),
    Logistic(),
    Multinomial(classes=3),
    Hinge(),
    HuberisedHinge(),
    Huber(),
    Absolute(),
    Quantile(),
    GeometricMedian(),
    Mean(),
)
