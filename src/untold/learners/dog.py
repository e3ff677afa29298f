"""Distance over gradients, a rival that has no rate either but guesses its first step.

    wₜ₊₁ = wₜ − ηₜ g̃ₜ,   ηₜ = r̄ₜ/√(Σ‖g̃ₛ‖²),   r̄ₜ = max(r, max_{s≤t} ‖wₛ‖)

Maor Ivgi, Oliver Hinder and Yair Carmon (2023), "DoG is SGD's best friend". They take r = 1e-6 and
average with decay 8. Where reports are mostly noise, r too small learns nothing and r too large diverges.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from untold.convex.lanes import square
from untold.core import Floats, Randomizer
from untold.errors import positive
from untold.learners.average import Average
from untold.learners.base import PureLearner

__all__ = ["DistanceOverGradients", "DogState"]

EIGHTH = Average(8.0)


class DogState(NamedTuple):
    """r̄ and S = Σ‖g̃‖²."""

    t: int
    w: Floats
    mean: Floats
    r: float
    S: float


@dataclass(frozen=True, kw_only=True)
class DistanceOverGradients(PureLearner[DogState]):
    """DoG from the origin, with first movement `first`.

    Regret: Σ (r̄ₛ/r̄_T)⟨g̃ₛ, wₛ − u⟩ ≤ (2‖u‖ + 3r̄_T)·√(Σ‖g̃‖²), surely (their Lemma 1); the rounds count by r̄ₛ.

    >>> import numpy as np
    >>> learner = DistanceOverGradients(first=0.1)
    >>> learner.point(learner.step(learner.start(2), np.array([0.0, 4.0])))
    array([ 0. , -0.1])
    """

    average: Average = EIGHTH
    first: float = 1e-6

    def __post_init__(self) -> None:
        positive("first", self.first, of="DistanceOverGradients")

    def _start(self, zeros: Floats) -> DogState:
        return DogState(0, zeros, zeros, self.first, 0.0)

    def _update(self, state: DogState, g: Floats) -> DogState:
        S = state.S + square(g)
        eta = state.r / math.sqrt(S) if S > 0 else 0.0
        w = state.w - eta * g
        return state._replace(w=w, r=max(state.r, math.sqrt(square(w))), S=S)

    def accept(self, randomizer: Randomizer, dim: int) -> None:
        """Takes every randomiser; its own guarantee wants bounded noise and a smaller rate."""

    def regret(self, state: DogState, norm: float) -> float:
        """Surely, weighted as said above."""
        return (2 * norm + 3 * state.r) * math.sqrt(state.S)
