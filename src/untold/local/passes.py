"""One pass of several models over the rows, by one of two ways that end in the same bits.

    for each row:  w = learner.point(state)
                   v = subgradient of the loss at w, of this row
                   state = learner.step(state, report of v)

That is `Pass.readable`; `Pass.compiled` is the same loop at full speed, where learner, loss and randomiser
have compiled forms. It stops at a report that floats cannot decide, and lets the readable path make that one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from untold.core import Floats, Loss
from untold.kernels.coordinatewise import CoordinatewiseArrays
from untold.kernels.crowd import OPEN
from untold.kernels.loop import Room, pass_open_sparse, pass_rows, take
from untold.kernels.rows import Reader, Rows, Sparse
from untold.kernels.slopes import Slope, slope_of
from untold.kernels.twins import Twin, twin_of
from untold.learners.base import PureLearner
from untold.local.crowd import Chunk, Crowd, noise_of
from untold.local.rows import row_subgradient

__all__ = ["Pass"]

NOT_KEPT = np.empty((0, 0, 0))


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
        t, n, dim = self._start, self.rows.count, self.states[0].w.size
        size = crowd.size(dim)
        return [(c, range(c * size - t, (c + 1) * size - t)) for c in range(t // size, -(-(t + n) // size))]

    def readable(self) -> list[Any]:
        """The states afterwards, row by row."""
        n = self.rows.count
        states = list(self.states)
        for m, crowd in enumerate(self.crowds):
            for c, span in self._chunks(crowd):
                chunk = crowd.chunk(c, span, states[m].w.size)
                for r, i in enumerate(span):
                    if 0 <= i < n:
                        g = self._report(self.learner.point(states[m]), chunk, span, r, m)
                        states[m] = self.learner.step(states[m], g)
        return states

    def compiled(self, found: Twin, slope: Slope, kept: Floats = NOT_KEPT) -> list[Any]:
        """The states afterwards, at full speed; reports are kept where there is room, (M, n, d)."""
        arrays = found.pack(self.learner, self.states)
        crowd, reader, room = self.crowds[0], Reader(self.rows), Room.of(self.rows.dim)
        models = self.rows.models
        for c, span in self._chunks(crowd):
            chunks = [one.chunk(c, span, self.rows.dim) for one in self.crowds]
            noise = noise_of(chunks, crowd)
            start, stop = max(0, span.start), min(span.stop, self.rows.count)
            part, first = self.rows.part(start, stop), span.start - start
            k, end = models * -first, models * (stop - span.start)
            room_for_reports = kept[:, start:stop]
            while True:
                if crowd.kind == OPEN and found.arrays is CoordinatewiseArrays and isinstance(part, Sparse):
                    k = pass_open_sparse(part, first, k, end, slope, crowd.bound, arrays, room)
                else:
                    k = pass_rows(part, noise, first, k, end, slope, arrays, room_for_reports, room)
                if k == end:
                    break
                r, m = divmod(k, models)
                g = self._report(arrays.w[m].copy(), chunks[m], span, r, m)
                if kept.size:
                    kept[m, span[r]] = g
                take(arrays, m, g)
                k += 1
            reader.forget(stop)
        return [found.unpack(arrays, m) for m in range(models)]

    def _report(self, w: Floats, chunk: Chunk, span: range, r: int, m: int) -> Floats:
        """By the readable path."""
        return chunk.report(r, row_subgradient(self.loss, w, self.rows, span[r], m))
