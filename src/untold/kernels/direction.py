"""One step of scale-free mirror descent on the Euclidean unit ball: the twin of `learners.mirror.turned`."""

import math

from untold.compiled import bitwise
from untold.convex.lanes import moved
from untold.core import Floats

__all__ = ["turn"]


@bitwise
def turn(z: Floats, g: Floats, S: float) -> None:
    """z ← z − g/√S, projected; S already counts g."""
    if not S > 0.0:
        return
    size = math.sqrt(moved(1.0 / math.sqrt(S), g, z))
    if size > 1.0:
        for j in range(z.size):
            z[j] = z[j] * (1.0 / size)
