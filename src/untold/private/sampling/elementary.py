"""Elementary functions whose error is proven: the floor the exact noise stands on.

Each is a Taylor series in straight-line code (so a loop over it runs eight numbers at a time), with its
error bound stated in units of u = 2⁻⁵³ and proven in ``proofs/noise.md``. The bounds are checked again with
ball arithmetic in ``tests/private/test_elementary.py``. No libm, no tables, no branches.

A *uniform* is never a float: it is the interval [k, k+1)·2⁻⁵² picked by the upper 52 bits k of a random
word, whose `midpoint` is a float exactly. Further bits can always be appended to it (see ``exact.py``).
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from untold.compiled import inlined

__all__ = ["HALF_WIDTH", "UNDECIDED", "cos_sin", "flip", "midpoint", "minus_log", "settled"]

HALF_WIDTH = 2.0**-53  # of the interval a uniform stands for
LN2 = math.log(2.0)
QUARTER_PI = math.pi / 4
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD  # the bit pattern of √½
ROUNDER = 1.5 * 2.0**52  # adding and subtracting it rounds to an integer
LARGEST = 2.0**50  # beyond it `settled` does not decide
UNDECIDED = np.int64(-(2**63))  # stands where an integer is not certain yet


@intrinsic
def _bits_of(_typing: Any, _x: Any) -> Any:
    def reinterpret(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), reinterpret


@intrinsic
def _float_of(_typing: Any, _i: Any) -> Any:
    def reinterpret(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), reinterpret


@inlined
def midpoint(word: np.uint64) -> float:
    """The middle (2k+1)·2⁻⁵³ of the interval [k, k+1)·2⁻⁵²; exact."""
    k = np.int64(word >> np.uint64(12))
    return np.float64(2 * k + 1) * HALF_WIDTH


@inlined
def flip(x: float, word: np.uint64) -> float:
    """x, or −x when the lowest bit of the word (no part of its uniform) is set; exact."""
    return _float_of(_bits_of(x) ^ (np.int64(word & np.uint64(1)) << 63))


@inlined
def artanh_series(z: float) -> float:
    """artanh(r)/r for z = r² ≤ 0.0295, to the term r²²/23."""
    s = 1 / 23
    s = s * z + 1 / 21
    s = s * z + 1 / 19
    s = s * z + 1 / 17
    s = s * z + 1 / 15
    s = s * z + 1 / 13
    s = s * z + 1 / 11
    s = s * z + 1 / 9
    s = s * z + 1 / 7
    s = s * z + 1 / 5
    s = s * z + 1 / 3
    return s * z + 1.0


@inlined
def cos_series(z: float) -> float:
    """cos φ for z = φ² ≤ (π/4)², to the term φ¹⁶/16!."""
    s = 1 / 20922789888000.0
    s = s * z - 1 / 87178291200.0
    s = s * z + 1 / 479001600.0
    s = s * z - 1 / 3628800.0
    s = s * z + 1 / 40320.0
    s = s * z - 1 / 720.0
    s = s * z + 1 / 24.0
    s = s * z - 0.5
    return s * z + 1.0


@inlined
def sin_series(z: float) -> float:
    """sin(φ)/φ for z = φ² ≤ (π/4)², to the term φ¹⁶/17!."""
    s = 1 / 355687428096000.0
    s = s * z - 1 / 1307674368000.0
    s = s * z + 1 / 6227020800.0
    s = s * z - 1 / 39916800.0
    s = s * z + 1 / 362880.0
    s = s * z - 1 / 5040.0
    s = s * z + 1 / 120.0
    s = s * z - 1 / 6.0
    return s * z + 1.0


@inlined
def minus_log(m: float) -> float:
    """−ln m for 0 < m < 1 (normal floats); relative error ≤ 16u.

    m = 2ᵏf with f ∈ [√½, √2), and ln f = 2·artanh r with r = (f−1)/(f+1), |r| ≤ 0.1716.
    """
    bits = _bits_of(m)
    k = (bits - SQRT_HALF_BITS) >> 52
    f = _float_of(bits - (k << 52))
    r = (f - 1.0) / (f + 1.0)
    return -(np.float64(k) * LN2 + 2.0 * r * artanh_series(r * r))


@inlined
def cos_sin(x: float) -> tuple[float, float]:
    """cos(πx/4) and sin(πx/4) for |x| ≤ 1; absolute error ≤ 4u each."""
    phi = QUARTER_PI * x
    z = phi * phi
    return cos_series(z), sin_series(z) * phi


@inlined
def settled(y: float, error: float) -> np.int64:
    """The integer nearest to a real within `error` of y, or UNDECIDED where there could be two."""
    nearest = (y + ROUNDER) - ROUNDER
    certain = (0.5 - abs(y - nearest) > error) and abs(y) < LARGEST
    return np.int64(nearest) if certain else UNDECIDED
