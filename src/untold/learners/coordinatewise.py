"""Betting on each coordinate by itself: sparse reports touch only their own.

    wⱼ = ∫ v e^{vLⱼ − v²Vⱼ} dP(v),   Lⱼ = −Σ g̃ⱼ,   Vⱼ = Σ g̃ⱼ²,   P ∝ e^{−bv²} on |v| ≤ 1/(5G)

Dirk van der Hoeven (2019), Algorithm 3: a copy of Algorithm 1 per coordinate (`docs/errata.md`). A
coordinate whose entry is 0 learns nothing in that round, and its average is brought up to date when it
is next touched or asked for: w did not change, so from round s to round t

    w̄ₜ = w + (w̄ₛ − w)·ρ,   ρ = Πₖ₌₀ᵖ (s + k)/(t + k)
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from untold.core import Floats, Ints, Randomizer
from untold.errors import DataError, positive, refuse
from untold.learners.average import LAST
from untold.learners.base import PureLearner, require_bets
from untold.learners.magnitude import bets
from untold.learners.priors import Conjugate, conjugate_bound

__all__ = ["Coordinatewise", "CoordinatewiseState"]


class CoordinatewiseState(NamedTuple):
    """`mean` of coordinate j is as of round `since`ⱼ."""

    t: int
    w: Floats
    mean: Floats
    L: Floats
    V: Floats
    since: Floats


@dataclass(frozen=True, kw_only=True)
class Coordinatewise(PureLearner[CoordinatewiseState]):
    """A bettor per coordinate, with bets spread ∝ e^{−bv²}.

    Regret: the sum over coordinates of the adaptive potential's, in expectation.

    >>> learner = Coordinatewise()
    >>> state = learner.start(3)
    >>> for _ in range(100):
    ...     state = learner.step_sparse(state, np.array([1]), np.array([-1.0]))
    >>> learner.point(state)[[0, 2]].tolist(), bool(learner.point(state)[1] > 10)
    ([0.0, 0.0], True)
    """

    b: float = 1.0
    bound: float = 1.0

    def __post_init__(self) -> None:
        positive("b", self.b, of="Coordinatewise")
        positive("bound", self.bound, of="Coordinatewise")
        if self.average != LAST and not (float(self.average.decay).is_integer() and self.average.decay <= 16):
            raise refuse(
                "average", self.average, of="Coordinatewise", allowed="of a whole decay up to 16, or the last"
            )

    @property
    def largest_bet(self) -> float:
        """The largest bet, 1/(5G)."""
        return 1.0 / (5.0 * self.bound)

    @property
    def scale(self) -> float:
        """1/Z of the prior."""
        return Conjugate(self.b).scale(self.largest_bet)

    def _start(self, zeros: Floats) -> CoordinatewiseState:
        return CoordinatewiseState(0, zeros, zeros, zeros, zeros, zeros)

    def _kept(self, since: Floats, t: int) -> Floats:
        """ρ: the share in the average of t rounds of what was averaged up to `since`."""
        if self.average == LAST:
            return np.where(since == t, 1.0, 0.0)
        rho = np.ones_like(since)
        for k in range(int(self.average.decay) + 1):
            rho *= (since + k) / (t + k)
        return rho

    def answer(self, state: CoordinatewiseState) -> Floats:
        """The average of the points played, all coordinates brought up to date."""
        if not state.t:
            return state.w
        return state.w + (state.mean - state.w) * self._kept(state.since, state.t)

    def _update(self, state: CoordinatewiseState, g: Floats) -> CoordinatewiseState:
        touched = np.flatnonzero(g)
        return self._touch(state, touched, g[touched])

    def _take(self, state: CoordinatewiseState, g: Floats) -> CoordinatewiseState:
        return self._update(state._replace(t=state.t + 1), g)

    def step_sparse(self, state: CoordinatewiseState, index: Ints, values: Floats) -> CoordinatewiseState:
        """`step` for a report that is 0 but for `values` at `index`, each named once."""
        index, values = np.asarray(index), np.asarray(values, dtype=np.float64)
        whole = index.dtype.kind in "iu" or not index.size
        valid = whole and index.ndim == 1 and index.shape == values.shape
        valid = valid and np.unique(index).size == index.size
        if not valid or not np.isfinite(values).all() or ((index < 0) | (index >= state.w.size)).any():
            raise DataError(
                f"a sparse report to Coordinatewise must be finite numbers at places 0 … {state.w.size - 1}."
            )
        kept = values != 0
        return self._touch(state._replace(t=state.t + 1), index[kept].astype(np.int64), values[kept])

    def _touch(self, state: CoordinatewiseState, j: Ints, g: Floats) -> CoordinatewiseState:
        w, mean, L, V, since = (a.copy() for a in (state.w, state.mean, state.L, state.V, state.since))
        mean[j] = w[j] + (mean[j] - w[j]) * self._kept(since[j], state.t)
        since[j] = state.t
        L[j] -= g
        V[j] += g * g
        moved = np.empty_like(g)
        bets(L[j], self.b + V[j], self.largest_bet, self.scale, moved)
        w[j] = moved
        return CoordinatewiseState(state.t, w, mean, L, V, since)

    def accept(self, randomizer: Randomizer, dim: int) -> None:  # noqa: ARG002 (in every dimension the same)
        """Needs |E g̃ⱼ| ≤ bound, and noise on which bets are safe."""
        require_bets(self, randomizer, self.bound, randomizer.bound)

    def regret(self, state: CoordinatewiseState, norm: float | Floats) -> float:
        """In expectation: for a competitor with |uⱼ| ≤ norm in each coordinate, or with those sizes."""
        sizes = np.broadcast_to(np.abs(norm), state.V.shape)
        prior = Conjugate(self.b)
        return sum(
            conjugate_bound(prior, float(V), self.largest_bet, float(u))
            for V, u in zip(state.V, sizes, strict=True)
        )
