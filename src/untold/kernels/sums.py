"""Σ ρᵢ⊗qᵢ over rows, in whole numbers: the same in any order, in any chunks, on any threads.

    ρ = trunc(ω·r/unit), shortened to ‖ρ‖·‖q‖ ≤ M      r = φ′(⟨q, w⟩, y), or K of them; ω weighs the row

q is the clipped row in steps (`quantised`). Products and the sums of 2¹⁰ rows are whole numbers below 2⁵³,
which floats add exactly; then they go into two limbs. A row whose label the loss does not know has r = 0.
"""

import math
from typing import Any, NamedTuple, Self

import numpy as np

from untold.compiled import bitwise, loop
from untold.convex.losses import Multinomial
from untold.convex.softmax import softmax_residual
from untold.core import Floats, Ints, Loss
from untold.kernels.quantised import add_multiple, margin, prefetched, quantised, truncated
from untold.kernels.slopes import Slope, slope, slope_of

__all__ = [
    "SOFTMAX", "Task", "Workspace", "add_bends", "add_matrix", "add_rows", "read_row", "residual_of", "whole",
]  # fmt: skip

SOFTMAX = 100
AT_ONCE = 8  # rows whose products are added in one go
AHEAD = 16  # rows for whose memory is asked beforehand
FLUSH = 1 << 10
DROPPED, LOW = 20, (1 << 20) - 1
SAFE = 1 - 2.0**-40  # more than the roundings of a sum of up to 2¹² squares, a product and a root


class Task(NamedTuple):
    """The loss, the clip of rows (grid, K), the unit of ρ (a power of 2), M, half a window, the most of r."""

    loss: Slope
    grid: float
    K: int
    unit: float
    most: float
    window: float
    steepest: float


class Workspace(NamedTuple):
    """Where rows are worked on, and what has been summed: `totals` not yet in the limbs, and curvatures."""

    v: Floats  # (8, d)
    q: Ints
    out: Floats  # ⟨v, w⟩ and Σv²
    z: Floats
    r: Floats
    rho: Floats
    totals: Floats  # (K, d)
    high: Ints
    low: Ints
    bends: Ints  # Σ trunc(2²⁰·ω·curvature/`unit`), one number

    @classmethod
    def of(cls, outputs: int, dim: int) -> Self:
        """For that many outputs and columns."""
        shape = outputs, dim
        return cls(
            np.zeros((AT_ONCE, dim)), np.zeros(dim, np.int64), np.zeros(2), np.zeros(outputs),
            np.zeros(outputs), np.zeros(max(outputs, AT_ONCE)), np.zeros(shape), np.zeros(shape, np.int64),
            np.zeros(shape, np.int64), np.zeros(1, np.int64),
        )  # fmt: skip


def residual_of(loss: Loss) -> Slope | None:
    """The compiled form of a loss of one or of many outputs.

    >>> residual_of(Multinomial(classes=3))
    Slope(code=100, parameter=3.0)
    """
    return Slope(SOFTMAX, float(loss.classes)) if type(loss) is Multinomial else slope_of(loss)


@bitwise
def _shortened(r: Floats, steepest: float) -> None:
    length = 0.0
    for k in range(r.size):
        length += r[k] * r[k]
    if length > steepest * steepest:
        for k in range(r.size):
            r[k] = r[k] * (steepest / math.sqrt(length))


@bitwise
def _residuals(loss: Slope, z: Floats, y: float, r: Floats) -> bool:
    """r, and whether there is any; none where a margin or the label cannot be read."""
    if loss.code != SOFTMAX:
        r[0] = slope(loss, z[0], y)
        return r[0] != 0.0
    readable = 0.0 <= y < loss.parameter and y == truncated(y)
    for k in range(z.size):
        readable = readable and math.isfinite(z[k])
    if readable:
        softmax_residual(z, y, r)
    return readable


@bitwise
def whole(task: Task, weight: float, r: Floats, s: float, rho: Floats) -> None:
    """ρ of r, for a row with Σq² = s."""
    length, largest = 0.0, 0.0
    for k in range(r.size):
        rho[k] = truncated(weight * r[k] / task.unit)
        length += rho[k] * rho[k]
        largest = max(largest, abs(r[k]))
    if not length * s <= task.most * task.most * SAFE:
        length = 0.0
        for k in range(r.size):
            length += (r[k] / largest) * (r[k] / largest)
        shorter = task.most / math.sqrt(length * s) * SAFE if s > 0.0 else 0.0
        for k in range(r.size):
            rho[k] = truncated(r[k] / largest * shorter)


@bitwise
def _flushed(space: Workspace) -> None:
    """The totals go into the limbs."""
    for k in range(space.totals.shape[0]):
        for j in range(space.totals.shape[1]):
            whole = np.int64(space.totals[k, j])
            low = space.low[k, j] + (whole & LOW)
            space.high[k, j] += (whole >> DROPPED) + (low >> DROPPED)
            space.low[k, j] = low & LOW
            space.totals[k, j] = 0.0


@bitwise
def read_row(rows: Any, i: int, task: Task, W: Floats, v: Floats, space: Workspace) -> int:
    """v, its margins and Σv²; how many entries v has."""
    size = quantised(rows, i, task.grid, task.K, W[0], v, space.q, space.out)
    space.z[0] = space.out[0] * task.grid
    for k in range(1, W.shape[0]):
        space.z[k] = margin(rows, i, W[k], v) * task.grid
    return size


@loop
def add_rows(rows: Any, order: Ints, task: Task, W: Floats, weights: Floats, space: Workspace) -> None:
    """Adds the rows of that order, all if it is empty; W is (K, d), `weights` one of each or none."""
    for k in range(order.size or rows.y.shape[1]):
        i, v = order[k] if order.size else k, space.v[0]
        read_row(rows, i, task, W, v, space)
        if _residuals(task.loss, space.z, rows.y[0, i], space.r):
            _shortened(space.r, task.steepest)
            whole(task, weights[k] if weights.size else 1.0, space.r, space.out[1], space.rho)
            for o in range(W.shape[0]):
                add_multiple(rows, i, space.rho[o], v, space.totals[o])
        if k % FLUSH == FLUSH - 1:
            _flushed(space)
    _flushed(space)


@loop
def add_matrix(rows: Any, order: Ints, task: Task, W: Floats, weights: Floats, space: Workspace) -> None:
    """`add_rows` for the rows of a matrix and one output, eight at once: so latencies overlap."""
    count, chosen = order.size or rows.y.shape[1], order.size > 0
    w, total, rho = W[0], space.totals[0], space.rho
    per_unit, limit = 1.0 / task.unit, task.most * task.most * SAFE
    v0, v1, v2, v3 = space.v[0], space.v[1], space.v[2], space.v[3]
    v4, v5, v6, v7 = space.v[4], space.v[5], space.v[6], space.v[7]
    for start in range(0, count, AT_ONCE):
        for r in range(AT_ONCE):
            k = start + r
            rho[r] = 0.0
            if k < count:
                i = order[k] if chosen else k
                if k + AHEAD < count:
                    prefetched(rows, order[k + AHEAD] if chosen else k + AHEAD)
                quantised(rows, i, task.grid, task.K, w, space.v[r], space.q, space.out)
                s = slope(task.loss, space.out[0] * task.grid, rows.y[0, i])
                steps = truncated((weights[k] * s if weights.size else s) * per_unit)
                if not steps * steps * space.out[1] <= limit:
                    space.r[0] = s
                    whole(task, 1.0, space.r, space.out[1], rho[r : r + 1])
                else:
                    rho[r] = steps
        a, b, c, d, e, f, g, h = rho[0], rho[1], rho[2], rho[3], rho[4], rho[5], rho[6], rho[7]
        for j in range(total.size):
            total[j] += ((a * v0[j] + b * v1[j]) + (c * v2[j] + d * v3[j])) + (
                (e * v4[j] + f * v5[j]) + (g * v6[j] + h * v7[j])
            )
        if start % FLUSH == FLUSH - AT_ONCE:
            _flushed(space)
    _flushed(space)


@bitwise
def _bend(task: Task, z: Floats, y: float, r: Floats) -> float:
    """The curvature of a row, a mean over outputs: of softmax (1 − Σp²)/K, else over a window of margins."""
    if task.loss.code != SOFTMAX:
        h = task.window
        return (slope(task.loss, z[0] + h, y) - slope(task.loss, z[0] - h, y)) / (2.0 * h)
    squares, own = 0.0, np.int64(y)
    for k in range(r.size):
        p = r[k] + (1.0 if k == own else 0.0)
        squares += p * p
    return max(0.0, 1.0 - squares) / r.size


@loop
def add_bends(rows: Any, task: Task, W: Floats, weights: Floats, space: Workspace) -> None:
    """Adds trunc(2²⁰·ω·curvature/unit) of every row, at most 2²⁰ each."""
    for i in range(rows.y.shape[1]):
        read_row(rows, i, task, W, space.v[0], space)
        y = rows.y[0, i]
        if task.loss.code != SOFTMAX or _residuals(task.loss, space.z, y, space.r):
            bend = _bend(task, space.z, y, space.r) * (weights[i] if weights.size else 1.0)
            space.bends[0] += np.int64(min(1.0, max(0.0, bend / task.unit)) * (1 << DROPPED))
