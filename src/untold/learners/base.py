"""What every learner shares: counting, averaging, and refusing what is not a report.

Letters: t reports have been taken, w is the point to play next, ``mean`` the average of w₁ … wₜ, g̃ a report,
u a competitor, d the dimension, G the bound reports are clipped to, T the rounds planned. The regret
is that of the linear losses the learner saw, R(u) = Σₛ⟨g̃ₛ, wₛ − u⟩, or its expectation over the
noise: each learner says which. For convex losses and unbiased reports E[Σ ℓₛ(wₛ) − ℓₛ(u)] ≤ E R(u).

A learner is a frozen dataclass of settings and holds no data; everything that changes is in its state, a
NamedTuple of numbers and arrays.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NoReturn, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from untold.convex.clipping import LInfClip
from untold.core import Floats, Randomizer
from untold.errors import AssumptionError, DataError, whole
from untold.learners.average import UNIFORM, Average

__all__ = ["PureLearner", "State", "longest", "refuse_pair", "require_bets"]


@runtime_checkable
class State(Protocol):
    """What the states of all learners have; each has more."""

    @property
    def t(self) -> int: ...
    @property
    def w(self) -> Floats: ...
    @property
    def mean(self) -> Floats: ...
    @property
    def _replace(self) -> Callable[..., Self]: ...


S = TypeVar("S", bound=State)


@dataclass(frozen=True, kw_only=True)
class PureLearner(ABC, Generic[S]):
    """Settings of a learner; `average` says how the points played become the answer."""

    average: Average = UNIFORM

    def start(self, dim: int) -> S:
        """The state before the first report."""
        return self._start(np.zeros(whole("dim", dim, of=type(self).__name__)))

    def point(self, state: S) -> Floats:
        """What to play next."""
        return state.w

    def answer(self, state: S) -> Floats:
        """What was learnt: the average of the points played, or the first point before any was."""
        return state.mean if state.t else state.w

    def step(self, state: S, noisy: Floats) -> S:
        """The state after one more report, or after each row of a matrix of them.

        What is not finite numbers of the right width changes nothing.
        """
        reports = self.reports(state, noisy)
        if not np.isfinite(reports).all():
            raise self._no_report(state)
        for g in np.atleast_2d(reports):
            state = self._take(state, g)
        return state

    def reports(self, state: S, noisy: object) -> Floats:
        """What is to be taken, as floats of the right shape; whether they are finite is not looked at."""
        try:
            reports = np.ascontiguousarray(noisy, dtype=np.float64)
        except (TypeError, ValueError):
            raise self._no_report(state) from None
        if reports.ndim not in {1, 2} or reports.shape[-1:] != state.w.shape:
            raise self._no_report(state)
        return reports

    def _no_report(self, state: S) -> DataError:
        return DataError(f"a report to {type(self).__name__} must be {state.w.size} finite numbers.")

    def _take(self, state: S, g: Floats) -> S:
        t = state.t + 1
        return self._update(state._replace(t=t, mean=self.average.fold(state.mean, state.w, t)), g)

    @abstractmethod
    def _start(self, zeros: Floats) -> S: ...

    @abstractmethod
    def _update(self, state: S, g: Floats) -> S:
        """The learner's own part of `step`: t and mean already count this report."""

    @abstractmethod
    def accept(self, randomizer: Randomizer, dim: int) -> None:
        """Refuses a randomiser whose reports would void the bound `regret` gives."""

    @abstractmethod
    def regret(self, state: S, norm: float) -> float:
        """The bound on R(u) for every u of that norm, from what was observed."""


def refuse_pair(learner: object, randomizer: Randomizer, why: str, hint: str = "") -> NoReturn:
    """Raises: this learner's bound does not hold with this randomiser."""
    names = f"`randomizer` of {type(learner).__name__} must not be {type(randomizer).__name__}"
    raise AssumptionError(f"{names}: {why}.", hint=hint)


def longest(randomizer: Randomizer, dim: int) -> float:
    """The largest ‖E g̃‖₂: the bound, or √d of it where each coordinate is clipped by itself."""
    by_coordinate = isinstance(getattr(randomizer, "clip", None), LInfClip)
    return randomizer.bound * math.sqrt(dim) if by_coordinate else randomizer.bound


def require_bets(learner: object, randomizer: Randomizer, G: float, length: float) -> None:
    """Refuses reports on which bets up to 1/(5G) are not known to be safe; `length` bounds ‖E g̃‖."""
    if length > G:
        refuse_pair(
            learner, randomizer, f"it clips to {length:g}, above the learner's bound {G:g}",
            hint=f"give the learner bound={length:g}.",
        )  # fmt: skip
    if randomizer.betting == "unknown":
        refuse_pair(learner, randomizer, "its noise is not symmetric, and the bets rest on that")
