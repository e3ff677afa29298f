"""The slope of the logistic loss, one number at a time, for loops that must agree to the last bit."""

import math

from untold.compiled import bitwise
from untold.core import Floats

__all__ = ["logistic_slope", "logistic_slopes"]


@bitwise
def logistic_slope(z: float, y: float) -> float:
    """−y/(1 + e^{yz}) for y = ±1: e^{+|z|} never enters, so it is exact at both ends.

    >>> logistic_slope(0.0, 1.0), logistic_slope(1e4, -1.0)
    (-0.5, 1.0)
    """
    e = math.exp(-abs(z))
    return -y * ((1.0 if y * z < 0.0 else e) / (1.0 + e))


@bitwise
def logistic_slopes(z: Floats, y: Floats, out: Floats) -> None:
    """`logistic_slope` of each."""
    for i in range(out.size):
        out[i] = logistic_slope(z[i], y[i])
