"""From one dimension to any: bet on how far, descend in which direction.

    wₜ = vₜ·zₜ,   v from the adaptive potential on ⟨zₜ, g̃ₜ⟩,   z from scale-free mirror descent in the
    unit ball

Dirk van der Hoeven (2019), Algorithm 2, after Cutkosky and Orabona (2018), "Black-box reductions for
parameter-free online learning in Banach spaces". R(u) ≤ R_v(‖u‖) + ‖u‖·R_z(u/‖u‖).
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from untold.convex.lanes import inner, square
from untold.core import Floats, Randomizer
from untold.errors import between, positive
from untold.learners.base import PureLearner, longest, require_bets
from untold.learners.mirror import p_norm, turned
from untold.learners.priors import Conjugate, Prior, conjugate_bound

__all__ = ["Reduction", "ReductionState"]


class ReductionState(NamedTuple):
    """v and z, L = −Σ⟨z, g̃⟩, V = Σ⟨z, g̃⟩², S = Σ‖g̃‖²_q."""

    t: int
    w: Floats
    mean: Floats
    v: float
    z: Floats
    L: float
    V: float
    S: float


@dataclass(frozen=True, kw_only=True)
class Reduction(PureLearner[ReductionState]):
    """The adaptive potential in every direction of R^d, in any p-norm with p ∈ (1, 2].

    Regret: the potential's against ‖u‖ₚ, and 3‖u‖ₚ·√(Σ‖g̃‖²_q)/√(p−1) for the direction; in expectation.

    >>> import numpy as np
    >>> learner = Reduction()
    >>> state = learner.start(2)
    >>> for _ in range(100):
    ...     state = learner.step(state, np.array([0.0, -1.0]))
    >>> learner.point(state).round(2).tolist()[0], bool(learner.point(state)[1] > 10)
    (0.0, True)
    """

    prior: Prior = field(default_factory=Conjugate)
    bound: float = 1.0
    p: float = 2.0

    def __post_init__(self) -> None:
        positive("bound", self.bound, of="Reduction")
        between("p", self.p, 1.0, 2.0, of="Reduction", ends="(]")
        self.prior.bet(0.0, 0.0, self.largest_bet)

    @property
    def largest_bet(self) -> float:
        """The largest bet, 1/(5G)."""
        return 1.0 / (5.0 * self.bound)

    def _start(self, zeros: Floats) -> ReductionState:
        return ReductionState(0, zeros, zeros, 0.0, zeros, 0.0, 0.0, 0.0)

    def _update(self, state: ReductionState, g: Floats) -> ReductionState:
        s = inner(state.z, g)
        L, V = state.L - s, state.V + s * s
        size = math.sqrt(square(g)) if self.p == 2 else p_norm(g, self.p / (self.p - 1))
        S = state.S + (square(g) if self.p == 2 else size * size)
        z = turned(state.z, g, S, self.p)
        v = self.prior.bet(L, V, self.largest_bet)
        return state._replace(w=v * z, v=v, z=z, L=L, V=V, S=S)

    def accept(self, randomizer: Randomizer, dim: int) -> None:
        """Needs ‖E g̃‖ ≤ bound, and noise on which bets are safe."""
        require_bets(self, randomizer, self.bound, longest(randomizer, dim))

    def regret(self, state: ReductionState, norm: float) -> float:
        """In expectation, for ‖u‖ₚ = norm."""
        betting = conjugate_bound(self.prior, state.V, self.largest_bet, norm)
        return betting + 3.0 * norm * math.sqrt(state.S / (self.p - 1.0))
