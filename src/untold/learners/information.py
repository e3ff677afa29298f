"""Online gradient descent on reports private in mutual information: lazy projections of a sum.

    θₜ₊₁ = θₜ − g̃ₜ,   wₜ₊₁ = Π_S(η·θₜ₊₁),   η = B/√(E·T),   E ≥ E‖g̃‖² (L² + dσ² for Gaussian noise)

S the ball of radius B. Ruochi Zhang and Parv Venkitasubramaniam (2018), "Mutual-information-private online
gradient descent algorithm", Algorithm 1 and Theorem 2 (in expectation: `docs/errata.md`).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

from untold.convex.lanes import square
from untold.core import Floats, Randomizer
from untold.errors import positive, refuse, whole
from untold.learners.base import PureLearner, longest, refuse_pair

__all__ = ["LazyDescent", "LazyState"]


class LazyState(NamedTuple):
    """θ = −Σg̃, S = Σ‖g̃‖²."""

    t: int
    w: Floats
    mean: Floats
    theta: Floats
    S: float


@dataclass(frozen=True, kw_only=True)
class LazyDescent(PureLearner[LazyState]):
    """Descent in the ball of that radius, for a horizon and an energy E‖g̃‖² fixed beforehand.

    Regret: at most B²/2η + (η/2)·Σ‖g̃‖² surely, so B·√(E·T) in expectation; any noise of that energy.

    >>> import numpy as np
    >>> from untold import MutualInformation
    >>> learner = LazyDescent.told(MutualInformation(nats=1.0), dim=2, radius=1.0, horizon=100)
    >>> state = learner.step(learner.start(2), np.array([0.0, -1.0]))
    >>> bool(0 < learner.point(state)[1] < 1)
    True
    """

    radius: float
    horizon: int
    energy: float

    def __post_init__(self) -> None:
        positive("radius", self.radius, of="LazyDescent")
        whole("horizon", self.horizon, of="LazyDescent")
        positive("energy", self.energy, of="LazyDescent")

    @classmethod
    def told(cls, randomizer: Randomizer, dim: int, *, radius: float, horizon: int) -> Self:
        """With E = L² + E‖ξ‖² of a randomiser."""
        energy = longest(randomizer, dim) ** 2 + randomizer.noise_energy(dim)
        return cls(radius=radius, horizon=horizon, energy=energy)

    @property
    def eta(self) -> float:
        """B/√(E·T)."""
        return self.radius / math.sqrt(self.energy * self.horizon)

    def _start(self, zeros: Floats) -> LazyState:
        return LazyState(0, zeros, zeros, zeros, 0.0)

    def _update(self, state: LazyState, g: Floats) -> LazyState:
        theta = state.theta - g
        size = self.eta * math.sqrt(square(theta))
        w = theta * (self.eta if size <= self.radius else self.eta * (self.radius / size))
        return state._replace(w=w, theta=theta, S=state.S + square(g))

    def accept(self, randomizer: Randomizer, dim: int) -> None:
        """Needs no more than the energy it was told of."""
        energy = longest(randomizer, dim) ** 2 + randomizer.noise_energy(dim)
        if energy > self.energy * (1 + 1e-12):
            refuse_pair(
                self, randomizer, f"E‖report‖² may be {energy:g}, above the {self.energy:g} planned for"
            )

    def regret(self, state: LazyState, norm: float) -> float:
        """Surely, for ‖u‖ = norm ≤ radius."""
        if norm > self.radius:
            raise refuse("norm", norm, of="LazyDescent.regret", allowed=f"at most the radius {self.radius:g}")
        return self.radius**2 / (2 * self.eta) + self.eta / 2 * state.S
