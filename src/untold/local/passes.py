"""One pass of several models over the rows, by one of two ways that end in the same bits.

    for each row:  w = learner.point(state)
                   v = subgradient of the loss at w, of this row
                   state = learner.step(state, report of v)

That is `Pass.readable`; `Pass.compiled` is the same loop at full speed, where learner, loss and randomiser
have compiled forms. It stops at a report that floats cannot decide, and lets the readable path make that one.
"""

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from untold.core import Floats, Loss
from untold.kernels.coordinatewise import CoordinatewiseArrays
from untold.kernels.crowd import OPEN, Dense, Sparse
from untold.kernels.loop import Room, pass_open_sparse, pass_rows, take
from untold.kernels.slopes import Slope, slope_of
from untold.kernels.twins import Twin, twin_of
from untold.learners.base import PureLearner
from untold.local.crowd import Crowd, noise_of
from untold.local.rows import Rows, row_subgradient

__all__ = ["Pass"]

NOT_KEPT = np.empty((0, 0, 0))
FORGET = 1 << 25  # bytes of a memory-mapped file that are read before they are given back


@dataclass
class Pass:
    """M models, their crowds and their states; all of one round."""

    learner: PureLearner[Any]
    loss: Loss
    rows: Rows
    crowds: Sequence[Crowd]
    states: Sequence[Any]

    def finished(self) -> list[Any]:
        """The states afterwards, by the faster way there is."""
        found, slope = twin_of(self.learner), slope_of(self.loss)
        kinds = {(crowd.kind, crowd.bound) for crowd in self.crowds}
        if found is None or slope is None or None in {kind for kind, _ in kinds} or len(kinds) > 1:
            return self.readable()
        return self.compiled(found, slope)

    @property
    def _start(self) -> int:
        return int(self.states[0].t)

    def _chunks(self, crowd: Crowd) -> list[tuple[int, range]]:
        """Chunk numbers and their rows; of a chunk begun in an earlier run the first rows are negative."""
        t, n, dim = self._start, self.rows.y.shape[1], self.states[0].w.size
        size = crowd.size(dim)
        return [(c, range(c * size - t, (c + 1) * size - t)) for c in range(t // size, -(-(t + n) // size))]

    def readable(self) -> list[Any]:
        """The states afterwards, row by row."""
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

    def compiled(self, found: Twin, slope: Slope, kept: Floats = NOT_KEPT) -> list[Any]:
        """The states afterwards, at full speed; reports are kept where there is room, (M, n, d)."""
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
