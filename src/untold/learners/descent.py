"""Projected stochastic subgradient descent, with every step rule and average of the two lectures.

    wₜ₊₁ = Π_C(wₜ − ηₜ g̃ₜ)

Gautam Kamath's Algorithms 1 and 2, Yu-Xiang Wang's (12.1) with its sign corrected (`docs/errata.md`).
Rules are in `rules`, averages in `average`, sets in `untold.convex.domains`. It needs what our own
learner does not: a rate.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from untold.convex.domains import Everywhere
from untold.convex.lanes import square
from untold.core import Domain, Floats, Randomizer
from untold.learners.base import PureLearner
from untold.learners.rules import Constant, Rule, StronglyConvex

__all__ = ["Descent", "DescentState"]


class DescentState(NamedTuple):
    """S = Σ‖g̃‖², E = Σ η‖g̃‖², and the last η."""

    t: int
    w: Floats
    mean: Floats
    S: float
    E: float
    eta: float


@dataclass(frozen=True, kw_only=True)
class Descent(PureLearner[DescentState]):
    """Steps of the rule's length against each report, projected onto the domain.

    Regret, surely: ‖u‖²/2η + ½Ση‖g̃‖² at a constant rate; D²/2η_T + ½Ση‖g̃‖² on a set of diameter D at
    a falling one; ½Ση‖g̃‖² for λ-strongly convex losses at 1/(λt). inf where no bound is known.

    >>> import numpy as np
    >>> learner = Descent(rule=Constant(0.5))
    >>> learner.point(learner.step(learner.start(2), np.array([1.0, -2.0])))
    array([-0.5,  1. ])
    """

    rule: Rule
    domain: Domain = field(default_factory=Everywhere)

    def _start(self, zeros: Floats) -> DescentState:
        w = self.domain.project(zeros)
        return DescentState(0, w, w, 0.0, 0.0, 0.0)

    def _update(self, state: DescentState, g: Floats) -> DescentState:
        energy = square(g)
        S = state.S + energy
        eta = self.rule.rate(state.t, S)
        w = self.domain.project(state.w - eta * g)
        return state._replace(w=w, S=S, E=state.E + eta * energy, eta=eta)

    def accept(self, randomizer: Randomizer, dim: int) -> None:
        """Takes every randomiser: unbiased reports are all it needs."""

    def regret(self, state: DescentState, norm: float) -> float:
        """Surely, for every u of the domain with ‖u‖ ≤ norm."""
        if isinstance(self.rule, StronglyConvex):
            return math.inf if self.rule.weighted else 0.5 * state.E
        if isinstance(self.rule, Constant) and self.domain == Everywhere():
            distance = norm
        else:
            distance = self.domain.diameter(state.w.size)
        return distance**2 / (2 * state.eta) + 0.5 * state.E if state.eta else 0.0
