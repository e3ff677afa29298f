"""Sums of clipped subgradients in whole grid steps: the same in any order, in any chunks, on any threads."""

import math
from typing import Any

from untold.compiled import loop
from untold.convex.clipping import clip_l2
from untold.core import Floats, Ints
from untold.kernels.crowd import subgradient
from untold.kernels.loop import Room
from untold.kernels.slopes import Slope

__all__ = ["add_gradients"]


@loop
def add_gradients(
    rows: Any, start: int, loss: Slope, w: Floats, grid: float, K: int, room: Room, total: Ints
) -> int:
    """total += the clipped subgradient of each row from `start` on, in grid steps.

    Returns the row whose subgradient floats cannot hold, which has not been added, or how many there are.
    """
    v, q, _ = room
    for i in range(start, rows.y.shape[1]):
        s = subgradient(rows, i, 0, loss, w, v)
        if not math.isfinite(s):
            return i
        clip_l2(v, s, grid, K, q)
        for j in range(q.size):
            total[j] += q[j]
    return rows.y.shape[1]
