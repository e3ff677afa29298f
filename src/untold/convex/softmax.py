"""The residual of the multinomial loss, p − e_y, for loops that must agree to the last bit."""

import math

from untold.compiled import bitwise
from untold.core import Floats

__all__ = ["softmax_residual", "softmax_residuals"]


@bitwise
def softmax_residual(z: Floats, y: float, r: Floats) -> None:
    """r ← softmax(z) − e_y; softmax(z) where y is no class, and not a number where a margin is not.

    >>> import numpy as np
    >>> r = np.empty(2)
    >>> softmax_residual(np.zeros(2), 1.0, r), r.tolist()
    (None, [0.5, -0.5])
    """
    largest = z[0]
    for k in range(1, z.size):
        largest = max(largest, z[k])
    total = 0.0
    for k in range(z.size):
        r[k] = math.exp(z[k] - largest)
        total += r[k]
    for k in range(z.size):
        r[k] = r[k] / total - (1.0 if y == k else 0.0)


@bitwise
def softmax_residuals(z: Floats, y: Floats, r: Floats) -> None:
    """`softmax_residual` of each row."""
    for i in range(y.size):
        softmax_residual(z[i], y[i], r[i])
