"""Descent from values alone: providers say what a point costs them, not which way is down.

    play wₜ + δeₜ,   z = (d/δ)·f(wₜ + δeₜ)·eₜ,   g̃ = z + noise,   then `LazyDescent` on the ball of
    radius B − δ

e uniform on the unit sphere, public, drawn by whoever asks. E z is the gradient of f averaged over a ball of
radius δ (Flaxman, Kalai and McMahan 2005). Ruochi Zhang and Parv Venkitasubramaniam (2018), Algorithm 2; two
repairs of theirs (`docs/errata.md`): F/δ where Theorem 4 prints F/η, and w stays so far inside that the point
played is in S. η ~ T^{−3/4}, δ ~ T^{−1/4} give O(T^{3/4}).
"""

import math
from dataclasses import dataclass
from typing import Self

from untold.convex.lanes import square
from untold.core import Floats, Randomizer
from untold.errors import DataError, between, positive, refuse, whole
from untold.learners.base import refuse_pair
from untold.learners.information import LazyDescent, LazyState

__all__ = ["BanditDescent", "one_point_gradient"]


def one_point_gradient(value: float, e: Floats, delta: float) -> Floats:
    """(d/δ)·value·e, which a provider computes from what the point played cost it.

    >>> import numpy as np
    >>> one_point_gradient(0.5, np.array([0.0, 1.0]), 0.1)
    array([ 0., 10.])
    """
    return (e.size / positive("delta", delta, of="one_point_gradient") * value) * e


@dataclass(frozen=True, kw_only=True)
class BanditDescent(LazyDescent):
    """`LazyDescent` that plays around its point: costs at most `largest` in size, `lipschitz`-Lipschitz.

    Regret: at most B²/2η + (η/2)·Σ‖g̃‖² + 3TLδ in expectation, against every u with ‖u‖ ≤ radius.

    >>> import numpy as np
    >>> learner = BanditDescent.planned(2, radius=1.0, horizon=10_000, largest=1.0, lipschitz=1.0, noise=1.0)
    >>> learner.played(learner.start(2), np.array([1.0, 0.0])) / learner.delta
    array([1., 0.])
    """

    delta: float
    largest: float
    lipschitz: float

    def __post_init__(self) -> None:
        super().__post_init__()
        between("delta", self.delta, 0.0, self.radius, of="BanditDescent", ends="()")
        positive("largest", self.largest, of="BanditDescent")
        positive("lipschitz", self.lipschitz, of="BanditDescent")

    @classmethod
    def planned(
        cls, dim: int, *, radius: float, horizon: int, largest: float, lipschitz: float, noise: float
    ) -> Self:
        """δ minimises B·√((d²F²/δ² + noise)·T) + 3TLδ up to the noise: δ² = BdF/(3L√T), at most B²/4."""
        T = whole("horizon", horizon, of="BanditDescent")
        delta = min(radius / 2, math.sqrt(radius * dim * largest / (3 * lipschitz * math.sqrt(T))))
        energy = (dim * largest / delta) ** 2 + noise
        return cls(radius=radius, horizon=T, energy=energy, delta=delta, largest=largest, lipschitz=lipschitz)

    @property
    def inside(self) -> float:
        """The radius w keeps, B − δ."""
        return self.radius - self.delta

    def played(self, state: LazyState, e: Floats) -> Floats:
        """w + δe, for a unit vector e drawn uniformly by whoever asks."""
        if e.shape != state.w.shape or not abs(square(e) - 1.0) < 1e-9:
            raise DataError("`e` of BanditDescent.played must be a unit vector.")
        return state.w + self.delta * e

    def _update(self, state: LazyState, g: Floats) -> LazyState:
        moved = super()._update(state, g)
        size = math.sqrt(square(moved.w))
        return moved._replace(w=moved.w if size <= self.inside else moved.w * (self.inside / size))

    def accept(self, randomizer: Randomizer, dim: int) -> None:
        """Needs a bound that no one-point gradient exceeds, for a clipped one would be biased."""
        largest = dim * self.largest / self.delta
        if randomizer.bound < largest:
            refuse_pair(self, randomizer, f"it clips to {randomizer.bound:g}, below dF/δ = {largest:g}")
        super().accept(randomizer, dim)

    def regret(self, state: LazyState, norm: float) -> float:
        """In expectation, for ‖u‖ = norm ≤ radius."""
        if norm > self.radius:
            raise refuse(
                "norm", norm, of="BanditDescent.regret", allowed=f"at most the radius {self.radius:g}"
            )
        return super().regret(state, norm) + 3 * state.t * self.lipschitz * self.delta
