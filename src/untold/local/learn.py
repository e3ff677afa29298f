"""`learn`: rows in, a model out; every row sends one report, and the learner sees nothing else.

    for each row:  w = learner.point(state)
                   g = subgradient of the loss at w, of this row
                   state = learner.step(state, randomizer(g))

That is the loop below in `_readable`; where learner, loss and randomiser have compiled forms,
`_compiled` is the same loop at their speed, with the same bits for the same noise.
"""

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from untold.core import Floats, Loss
from untold.errors import DataError, refuse
from untold.kernels.coordinatewise import CoordinatewiseArrays
from untold.kernels.crowd import OPEN, Dense, Sparse
from untold.kernels.loop import Room, absorb_reports, pass_open_sparse, pass_rows, take
from untold.kernels.slopes import Slope, slope_of
from untold.kernels.twins import Twin, twin_of
from untold.learners.base import PureLearner
from untold.local.crowd import Crowd, Given, crowd_of, noise_of
from untold.local.rows import Rows, checked_rows, row_subgradient
from untold.private.claim import Claim

__all__ = ["Learnt", "absorb", "learn", "learn_many"]

NOT_KEPT = np.empty((0, 0, 0))
FORGET = 1 << 25  # bytes of a memory-mapped file that are read before they are given back


@dataclass(frozen=True)
class Learnt:
    """What came of it: the answer, the state to go on from, and what every row was guaranteed.

    ``guarantee`` is of one report; None where nothing is promised, or each provider has their own.
    """

    learner: PureLearner[Any]
    state: Any
    guarantee: Claim | None

    @property
    def weights(self) -> Floats:
        """The learner's answer."""
        return self.learner.answer(self.state)

    def regret(self, norm: float) -> float:
        """The learner's bound on its regret against every model of that norm."""
        return self.learner.regret(self.state, norm)


def learn(
    X: object, y: object, *, loss: Loss, randomizer: Given, learner: PureLearner[Any], state: Any = None,
    bound: float = 1.0, seed: int | None = None,
) -> Learnt:  # fmt: skip
    """One pass over rows: each sends one report on a learner's current point.

    `randomizer` is one for all, or one ε a row (PrivUnitG; inf reports openly), or a callable from the
    row's number to a randomiser or None, or None: nobody randomises. `bound` clips where no randomiser
    says. With a `state` the run goes on from there; with a `seed` it is a simulation, and its
    guarantee says so.

    Edge cases:
        A row that cannot be read (see `untold.local.rows`) reports as if its subgradient were 0.
        No rows give the point the run started from. More rows than a learner planned for are its own affair.

    >>> import numpy as np
    >>> from untold import PrivUnitG
    >>> from untold.convex.losses import Logistic
    >>> from untold.learners.reduction import Reduction
    >>> X = np.random.default_rng(1).normal(size=(20_000, 2)) / 4
    >>> run = learn(X, np.sign(X[:, 0]), loss=Logistic(), randomizer=PrivUnitG(4.0), learner=Reduction())
    >>> bool(run.weights[0] > 1), run.guarantee.epsilon(0.0)
    (True, 4.0)
    """
    states = None if state is None else [state]
    return learn_many(
        X, y, loss=loss, randomizers=[randomizer], learner=learner, states=states, bound=bound, seed=seed
    )[0]


def learn_many(
    X: object, y: object, *, loss: Loss, randomizers: Sequence[Given], learner: PureLearner[Any],
    states: Sequence[Any] | None = None, bound: float = 1.0, seed: int | None = None,
) -> list[Learnt]:  # fmt: skip
    """As many models as randomizers, in one pass over the rows: one against the rest, or a sweep of ε.

    `y` is one label a row for all, or a row of labels for each model. A seed is branched by the
    model's number.
    """
    models = len(randomizers)
    if not models:
        raise refuse("randomizers", randomizers, of="learn_many", allowed="one a model, at least one")
    dim = None if states is None else states[0].w.size
    rows = checked_rows(X, y, models, dim)
    count, dim = rows.y.shape[1], _width(rows, X)
    crowds = [
        crowd_of(given, count, bound, None if seed is None else seed + m)
        for m, given in enumerate(randomizers)
    ]
    for crowd in crowds:
        for one in crowd.randomizers(count):
            learner.accept(one, dim)
    if states is None:
        states = [learner.start(dim)] * models
    if len(states) != models or len({state.t for state in states}) > 1:
        raise DataError("`states` of learn_many must be one a model, all of one round.")
    run = _Run(learner, loss, rows, crowds, states)
    return [
        Learnt(learner, state, crowd.guarantee) for state, crowd in zip(run.finished(), crowds, strict=True)
    ]


def absorb(learner: PureLearner[Any], state: Any, reports: object) -> Any:
    """`learner.step` for each row of a matrix of reports, compiled: the server's work.

    One that is not finite numbers raises DataError and nothing has happened.
    """
    matrix = np.ascontiguousarray(reports, dtype=np.float64)
    found = twin_of(learner)
    if matrix.ndim != 2 or matrix.shape[1] != state.w.size:
        raise DataError(f"reports to {type(learner).__name__} must be rows of {state.w.size} finite numbers.")
    if found is None:
        for g in matrix:
            state = learner.step(state, g)
        return state
    arrays = found.pack(learner, [state])
    if absorb_reports(matrix, arrays) < len(matrix):
        raise DataError(f"a report to {type(learner).__name__} must be {state.w.size} finite numbers.")
    return found.unpack(arrays, 0)


def _width(rows: Rows, X: Any) -> int:
    return rows.X.shape[1] if isinstance(rows, Dense) else int(X.shape[1])


@dataclass
class _Run:
    learner: PureLearner[Any]
    loss: Loss
    rows: Rows
    crowds: Sequence[Crowd]
    states: Sequence[Any]

    def finished(self) -> list[Any]:
        found, slope = twin_of(self.learner), slope_of(self.loss)
        kinds = {(crowd.kind, crowd.bound) for crowd in self.crowds}
        if found is None or slope is None or None in {kind for kind, _ in kinds} or len(kinds) > 1:
            return self._readable()
        return self._compiled(found, slope)

    @property
    def _start(self) -> int:
        return int(self.states[0].t)

    def _chunks(self, crowd: Crowd) -> list[tuple[int, range]]:
        """Chunk numbers and their rows; of a chunk begun in an earlier run the first rows are negative."""
        t, n, dim = self._start, self.rows.y.shape[1], self.states[0].w.size
        size = crowd.size(dim)
        return [(c, range(c * size - t, (c + 1) * size - t)) for c in range(t // size, -(-(t + n) // size))]

    def _readable(self) -> list[Any]:
        n = self.rows.y.shape[1]
        states = list(self.states)
        for m, crowd in enumerate(self.crowds):
            for c, span in self._chunks(crowd):
                chunk = crowd.chunk(c, span, states[m].w.size)
                for r, i in enumerate(span):
                    if 0 <= i < n:
                        v = row_subgradient(self.loss, self.learner.point(states[m]), self.rows, i, m)
                        states[m] = self.learner.step(states[m], chunk.report(r, v))
        return states

    def _compiled(self, found: Twin, slope: Slope, kept: Floats = NOT_KEPT) -> list[Any]:
        arrays = found.pack(self.learner, self.states)
        models, n = self.rows.y.shape
        crowd, dim = self.crowds[0], self.states[0].w.size
        rows = self.rows
        cheap = crowd.kind == OPEN and found.arrays is CoordinatewiseArrays
        room = Room.of(dim)
        reader = _Reader(self.rows)
        for c, span in self._chunks(crowd):
            chunks = [one.chunk(c, span, dim) for one in self.crowds]
            noise = noise_of(chunks, crowd)
            k, stop = models * max(0, -span.start), models * (min(span.stop, n) - span.start)
            while True:
                if cheap and isinstance(rows, Sparse):
                    k = pass_open_sparse(rows, span.start, k, stop, slope, crowd.bound, arrays, room)
                else:
                    k = pass_rows(rows, noise, span.start, k, stop, slope, arrays, kept, room)
                if k == stop:
                    break
                r, m = divmod(k, models)
                v = row_subgradient(self.loss, arrays.w[m].copy(), self.rows, span[r], m)
                g = chunks[m].report(r, v)
                if kept.size:
                    kept[m, span[r]] = g
                take(arrays, m, g)
                k += 1
            reader.forget(min(span.stop, n))
        return [found.unpack(arrays, m) for m in range(models)]


class _Reader:
    """Gives back the pages of a memory-mapped matrix that have been read."""

    def __init__(self, rows: Rows) -> None:
        X = rows.X if isinstance(rows, Dense) else None
        base = X
        while isinstance(base, np.ndarray):
            base = base.base
        self._map = base if isinstance(base, mmap.mmap) else None
        self._X, self._row, self._done = X, 0 if X is None else X.strides[0], 0

    def forget(self, row: int) -> None:
        """Everything before that row has been read."""
        if self._map is None or self._X is None or (row - self._done) * self._row < FORGET:
            return
        base = np.frombuffer(self._map, dtype=np.uint8).ctypes.data
        start = self._X.ctypes.data - base + self._done * self._row
        start -= start % mmap.PAGESIZE
        length = self._X.ctypes.data - base + row * self._row - start
        self._map.madvise(mmap.MADV_DONTNEED, start, length - length % mmap.PAGESIZE)
        self._done = row
