"""The adaptive potential: betting on one dimension whatever the noise, which nobody has to know.

    wₜ₊₁ = ∫ v e^{vL − v²V} dP(v),   L = −Σ g̃ₛ,   V = Σ g̃ₛ²,   |v| ≤ C = 1/(5G)

Dirk van der Hoeven (2019), "User-specified local differential privacy in unconstrained adaptive online
learning", Algorithm 1. It holds for any mixture of symmetric noises, each round's of its own size:
only |E g̃| ≤ G is used.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from untold.core import Floats, Randomizer
from untold.errors import positive, refuse
from untold.learners.base import PureLearner, require_bets
from untold.learners.priors import Conjugate, Prior, conjugate_bound

__all__ = ["AdaptivePotential", "PotentialState"]


class PotentialState(NamedTuple):
    """L and V are all there is to know."""

    t: int
    w: Floats
    mean: Floats
    L: float
    V: float


@dataclass(frozen=True, kw_only=True)
class AdaptivePotential(PureLearner[PotentialState]):
    """One dimension, no learning rate, no noise level: bets spread by `prior` over |v| ≤ 1/(5·bound).

    Regret: at most sup_L |u|·L − F(L, Σg̃²), in expectation; of order |u|·√(Σg̃²·ln(1 + |u|Σg̃²)) + 1.

    >>> import numpy as np
    >>> learner = AdaptivePotential()
    >>> state = learner.start(1)
    >>> for _ in range(200):
    ...     state = learner.step(state, np.array([-1.0]))
    >>> bool(learner.point(state)[0] > 100)  # it has won all the time
    True
    """

    prior: Prior = field(default_factory=Conjugate)
    bound: float = 1.0

    def __post_init__(self) -> None:
        positive("bound", self.bound, of="AdaptivePotential")
        self.prior.bet(0.0, 0.0, self.largest_bet)

    @property
    def largest_bet(self) -> float:
        """The largest bet, 1/(5G)."""
        return 1.0 / (5.0 * self.bound)

    def _start(self, zeros: Floats) -> PotentialState:
        if zeros.size != 1:
            hint = "Reduction takes it to any dimension."
            raise refuse("dim", zeros.size, of="AdaptivePotential", allowed="1", hint=hint)
        return PotentialState(0, zeros, zeros, 0.0, 0.0)

    def _update(self, state: PotentialState, g: Floats) -> PotentialState:
        s = float(g[0])
        L, V = state.L - s, state.V + s * s
        return state._replace(w=np.array([self.prior.bet(L, V, self.largest_bet)]), L=L, V=V)

    def accept(self, randomizer: Randomizer, dim: int) -> None:  # noqa: ARG002 (always 1)
        """Needs |E g̃| ≤ bound, and noise on which bets are safe."""
        require_bets(self, randomizer, self.bound, randomizer.bound)

    def regret(self, state: PotentialState, norm: float) -> float:
        """In expectation."""
        return conjugate_bound(self.prior, state.V, self.largest_bet, norm)
