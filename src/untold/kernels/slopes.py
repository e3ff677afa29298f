"""φ′(z, y) of the linear losses, one number at a time: the twins of `untold.convex.losses`, with their bits.

A loss is a number and a parameter here, so that one compiled loop serves all. A label that is not one of the
loss's own (±1, or a finite number), and a margin that is not a number, have slope 0: a row that cannot
be read says nothing, and nothing else happens, for whatever did would tell of that row.
"""

from typing import NamedTuple

from untold.compiled import bitwise
from untold.convex.logistic import logistic_slope
from untold.convex.losses import (
    Absolute,
    Hinge,
    Huber,
    HuberisedHinge,
    Logistic,
    Quantile,
    Squared,
)
from untold.core import Loss

__all__ = ["Slope", "slope", "slope_of"]

SQUARED, LOGISTIC, HINGE, HUBERISED_HINGE, HUBER, QUANTILE, ABSOLUTE = range(7)
LARGEST = 1.7976931348623157e308


class Slope(NamedTuple):
    """Which loss, and its parameter."""

    code: int
    parameter: float


def slope_of(loss: Loss) -> Slope | None:
    """The compiled form of a loss, or None where it has none.

    >>> slope_of(Huber(delta=2.0))
    Slope(code=4, parameter=2.0)
    """
    if isinstance(loss, HuberisedHinge):
        return Slope(HUBERISED_HINGE, loss.width)
    if isinstance(loss, Huber):
        return Slope(HUBER, loss.delta)
    if isinstance(loss, Quantile):
        return Slope(QUANTILE, loss.level)
    plain: dict[type, int] = {Squared: SQUARED, Logistic: LOGISTIC, Hinge: HINGE, Absolute: ABSOLUTE}
    code = plain.get(type(loss))
    return None if code is None else Slope(code, 0.0)


@bitwise
def _of_signs(code: int, parameter: float, z: float, y: float) -> float:
    if code == LOGISTIC:
        return logistic_slope(z, y)
    if code == HINGE:
        return -y if y * z < 1.0 else 0.0
    return -y * min(1.0, max(0.0, 0.5 + 0.5 * ((1.0 - y * z) / parameter)))


@bitwise
def _of_reals(code: int, parameter: float, z: float, y: float) -> float:
    r = z - y
    if code == SQUARED:
        return min(LARGEST, max(-LARGEST, r))
    if code == HUBER:
        return min(parameter, max(-parameter, r))
    if code == QUANTILE:
        return 1.0 - parameter if r > 0.0 else (-parameter if r < 0.0 else 0.0)
    return 1.0 if r > 0.0 else (-1.0 if r < 0.0 else 0.0)


@bitwise
def slope(loss: Slope, z: float, y: float) -> float:
    """φ′(z, y); 0 where z or y cannot be read.

    >>> slope(Slope(LOGISTIC, 0.0), 0.0, 1.0), slope(Slope(LOGISTIC, 0.0), 0.0, 3.0)
    (-0.5, 0.0)
    """
    if not abs(z) <= LARGEST:
        return 0.0
    if LOGISTIC <= loss.code <= HUBERISED_HINGE:
        return _of_signs(loss.code, loss.parameter, z, y) if abs(y) == 1.0 else 0.0
    return _of_reals(loss.code, loss.parameter, z, y) if abs(y) <= LARGEST else 0.0
