"""Steps on one row at a time, n² of them: the compiled twin of `untold.erm.single`."""

import math
from typing import Any

import numpy as np

from untold.compiled import loop
from untold.core import Floats, Ints
from untold.kernels.quantised import add_multiple
from untold.kernels.slopes import slope
from untold.kernels.sums import DROPPED, Task, Workspace, read_row, whole

__all__ = ["walk"]


@loop
def walk(
    rows: Any, task: Task, chosen: Ints, noise: Ints, first: int, unit: float, scale: float, radius: float,
    w: Floats, space: Workspace,
) -> None:  # fmt: skip
    """w ← Π(w − scale/√t·unit·(⌊ρq/2²⁰⌋ + noise)) for t from `first` on, Π onto the ball of that radius."""
    W, v, total = w.reshape((1, w.size)), space.v[0], space.totals[0]
    for s in range(chosen.size):
        i = chosen[s]
        read_row(rows, i, task, W, v, space)
        space.r[0] = slope(task.loss, space.z[0], rows.y[0, i])
        total[:] = 0.0
        if space.r[0] != 0.0:
            whole(task, 1.0, space.r, space.out[1], space.rho[:1])
            add_multiple(rows, i, space.rho[0], v, total)
        eta, size = scale / math.sqrt(float(first + s)) * unit, 0.0
        for j in range(w.size):
            w[j] -= eta * float((np.int64(total[j]) >> DROPPED) + noise[s, j])
            size += w[j] * w[j]
        if size > radius * radius:
            for j in range(w.size):
                w[j] *= radius / math.sqrt(size)
