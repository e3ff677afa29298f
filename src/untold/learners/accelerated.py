"""Nesterov's accelerated gradient descent, projected: for gradients that are nearly exact.

    xₜ₊₁ = Π_C(wₜ − η g̃ₜ),    wₜ₊₁ = xₜ₊₁ + bₜ·(xₜ₊₁ − xₜ)
    bₜ = (kₜ − 1)/kₜ₊₁,  k₁ = 1,  kₜ₊₁ = (1 + √(1 + 4kₜ²))/2;    b = (√κ − 1)/(√κ + 1) if λ > 0, κ = 1/(ηλ)

Yurii Nesterov (1983), "A method of solving a convex programming problem with convergence rate O(1/k²)"; Amir
Beck and Marc Teboulle (2009) with the projection; Nesterov (2004), Lectures, (2.2.11) for λ-strongly convex
sums. Steps η = 1/β on exact gradients end within 2‖u‖²/(η(T + 1)²) of the minimum. Errors add up with the
steps (Devolder, Glineur and Nesterov 2014): through much noise plain descent, which averages, is better.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from untold.convex.domains import Everywhere
from untold.core import Domain, Floats, Randomizer
from untold.errors import between, positive
from untold.learners.average import LAST, Average
from untold.learners.base import PureLearner

__all__ = ["AcceleratedDescent", "AcceleratedState"]


class AcceleratedState(NamedTuple):
    """x, the last point that a step led to, and tₖ."""

    t: int
    w: Floats
    mean: Floats
    x: Floats
    k: float


@dataclass(frozen=True, kw_only=True)
class AcceleratedDescent(PureLearner[AcceleratedState]):
    """Steps of length `eta` with momentum; `strength` is λ, 0 where the sum is only convex.

    Regret: no bound is known, for it plays where momentum carries it; what it ends at is bounded above.

    >>> import numpy as np
    >>> learner, state = AcceleratedDescent(eta=0.1), None
    >>> state = learner.start(2)
    >>> for _ in range(100):
    ...     state = learner.step(state, learner.point(state) * [10.0, 0.1] - [0.0, 1.0])
    >>> bool(abs(learner.answer(state) - [0.0, 10.0]).max() < 0.5)  # plain steps are 3.7 away
    True
    """

    average: Average = LAST
    eta: float
    strength: float = 0.0
    domain: Domain = field(default_factory=Everywhere)

    def __post_init__(self) -> None:
        positive("eta", self.eta, of="AcceleratedDescent")
        between("strength", self.strength, 0.0, 1 / self.eta, of="AcceleratedDescent")

    def _start(self, zeros: Floats) -> AcceleratedState:
        w = self.domain.project(zeros)
        return AcceleratedState(0, w, w, w, 1.0)

    def _update(self, state: AcceleratedState, g: Floats) -> AcceleratedState:
        x = self.domain.project(state.w - self.eta * g)
        following = (1 + math.sqrt(1 + 4 * state.k**2)) / 2
        momentum = (state.k - 1) / following
        if self.strength > 0:
            root = math.sqrt(1 / (self.eta * self.strength))
            momentum = (root - 1) / (root + 1)
        return state._replace(w=x + momentum * (x - state.x), x=x, k=following)

    def accept(self, randomizer: Randomizer, dim: int) -> None:
        """Takes every randomiser: there is no bound to void."""

    def regret(self, state: AcceleratedState, norm: float) -> float:  # noqa: ARG002 (none is known)
        """No bound is known."""
        return math.inf
