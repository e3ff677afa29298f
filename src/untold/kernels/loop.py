"""The loops themselves: rows to reports to states, and reports to states.

What floats cannot decide (a report in a million; a row that overflows or is not a number) stops the loop. The
caller makes that report by the readable path, takes it, and the loop goes on behind it.
"""

import math
from typing import Any, NamedTuple, Self

import numpy as np

from untold.compiled import loop
from untold.convex.lanes import inner_at, square_at
from untold.core import Floats, Ints
from untold.kernels.coordinatewise import advance_sparse
from untold.kernels.crowd import Noise, report, shorten, subgradient
from untold.kernels.rows import Sparse
from untold.kernels.slopes import Slope, slope
from untold.kernels.twins import advance

__all__ = ["Room", "absorb_reports", "pass_open_sparse", "pass_rows", "take"]


class Room(NamedTuple):
    """Where one row is worked on."""

    v: Floats
    q: Ints
    out: Ints

    @classmethod
    def of(cls, dim: int) -> Self:
        """For that many coordinates."""
        return cls(np.empty(dim), np.empty(dim, np.int64), np.empty(dim, np.int64))


@loop
def pass_rows(
    rows: Any, noise: Noise, first: int, start: int, stop: int, loss: Slope, model: Any, kept: Floats,
    room: Room,
) -> int:  # fmt: skip
    """Takes reports start … stop of a chunk, where report k is that of row first + k//M for model k%M.

    `noise` is for the chunk, from its row `first`. Returns the report that wants care, or `stop`.
    Where `kept` has room, reports are kept in it.
    """
    models = model.w.shape[0]
    v, q, out = room
    i, m = start // models, start % models - 1
    for k in range(start, stop):
        m += 1
        if m == models:  # a division for every report would be felt
            i, m = i + 1, 0
        s = subgradient(rows, first + i, m, loss, model.w[m], v)
        if not report(noise, i, m, v, s, q, out):
            return k
        if kept.size > 0:
            for j in range(v.size):
                kept[m, first + i, j] = v[j]
        advance(model, m, v)
    return stop


@loop
def pass_open_sparse(
    rows: Sparse, first: int, start: int, stop: int, loss: Slope, bound: float, model: Any, room: Room
) -> int:
    """`pass_rows` for reports that are not private of sparse rows, at the cost of their entries alone."""
    models = model.w.shape[0]
    for k in range(start, stop):
        i, m = k // models, k % models
        row = first + i
        part = slice(rows.ends[row], rows.ends[row + 1])
        values, places = rows.values[part], rows.places[part]
        v = room.v[: values.size]
        z = inner_at(values, places, model.w[m], rows.lanes)
        s = slope(loss, z, rows.y[m, row])
        for j in range(v.size):
            v[j] = s * values[j]
        size = square_at(v, places, rows.lanes)
        if not math.isfinite(z + size):
            return k
        shorten(v, size, bound)
        advance_sparse(model, m, places, v)
    return stop


@loop
def take(model: Any, m: int, g: Floats) -> None:
    """One report of one model."""
    advance(model, m, g)


@loop
def absorb_reports(reports: Floats, model: Any) -> None:
    """Takes each report of the one model, in order."""
    for i in range(reports.shape[0]):
        advance(model, 0, reports[i])
