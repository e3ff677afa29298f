"""Noise that is added: Gaussian, Laplace and norm-Laplace, rounded to integers, eight lanes at a time.

Letters: m the midpoint of a uniform, L = −ln m, r = √L, h = 2⁻⁵³ its half-width, e an error bound. Every
kernel writes integers, or UNDECIDED where the proven error bound does not exclude that the ideal real
number rounds to another integer, and returns how many those are; ``exact.py`` then decides them from the
same random bits and more. Bounds: ``proofs/noise.md``.
"""

import math

import numpy as np

from untold.compiled import inlined, kernel, summing
from untold.core import Floats, Ints
from untold.private.sampling.elementary import (
    UNDECIDED,
    cos_sin,
    flip,
    midpoint,
    minus_log,
    settled,
)
from untold.private.sampling.keystream import Words

__all__ = ["depth", "exponential", "gaussian", "laplace", "norm_laplace", "normal_pair", "normals"]

NORMAL_SLOPE = 2.0**-47  # a normal pair is known to within NORMAL_SLOPE·r + WIDTH/(m·r)
WIDTH = 2.0**-51
LOG_SLOPE = 2.0**-48  # −ln U is known to within LOG_SLOPE·L + LOG_WIDTH/m
LOG_WIDTH = 2.0**-52
SMALLEST = 2.0**-53  # midpoint of the first interval, whose logarithm has no bound
BLOCK = 64  # terms summed at a time
U = 2.0**-53  # half a unit in the last place of 1


@inlined
def normal_pair(radial: np.uint64, angular: np.uint64) -> tuple[float, float, float]:
    """Two independent normals from two words, and one error bound for both.

    Box–Muller on the eighth of a turn: with φ uniform on (−π/4, π/4) and fair signs,
    √(−ln U)·(cos φ ∓ sin φ) are two independent N(0, 1).
    """
    m = midpoint(radial)
    r = math.sqrt(minus_log(m))
    c, s = cos_sin(2.0 * midpoint(angular) - 1.0)
    error = NORMAL_SLOPE * r + WIDTH / (m * r)
    error = math.inf if m <= SMALLEST else error
    return flip(r * (c - s), radial), flip(r * (c + s), angular), error


@kernel
def normals(radial: Words, angular: Words, z1: Floats, z2: Floats, error: Floats) -> None:
    """Fills z1 and z2 with normals."""
    for i in range(radial.size):
        z1[i], z2[i], error[i] = normal_pair(radial[i], angular[i])


@kernel
def gaussian(radial: Words, angular: Words, scale: float, out: Ints) -> int:
    """out[i] and out[n+i] = round(scale·N) for the i-th pair; returns how many are undecided."""
    n = radial.size
    undecided = 0
    for i in range(n):
        z1, z2, e = normal_pair(radial[i], angular[i])
        first, second = settled(scale * z1, scale * e), settled(scale * z2, scale * e)
        out[i] = first
        out[n + i] = second
        undecided += (first == UNDECIDED) + (second == UNDECIDED)
    return undecided


@inlined
def exponential(word: np.uint64) -> tuple[float, float]:
    """−ln U and its error."""
    m = midpoint(word)
    L = minus_log(m)
    return L, math.inf if m <= SMALLEST else LOG_SLOPE * L + LOG_WIDTH / m


@kernel
def laplace(words: Words, scales: Floats, out: Ints) -> int:
    """out[i] = round(±scales[i]·E) with E exponential; returns how many are undecided."""
    undecided = 0
    for i in range(words.size):
        L, error = exponential(words[i])
        nearest = settled(flip(scales[i] * L, words[i]), scales[i] * error)
        out[i] = nearest
        undecided += nearest == UNDECIDED
    return undecided


@kernel
def _exponentials(words: Words, L: Floats, error: Floats) -> None:
    for i in range(words.size):
        L[i], error[i] = exponential(words[i])


@summing
def _total(x: Floats) -> float:
    s = 0.0
    for i in range(x.size):
        s += x[i]
    return s


@inlined
def total(x: Floats) -> float:
    """Σ x by blocks: of n non-negative terms, the relative error is at most depth(n)·u."""
    s = 0.0
    for start in range(0, x.size, BLOCK):
        s += _total(x[start : start + BLOCK])
    return s


@inlined
def depth(count: int) -> int:
    """How many roundings a term of a sum by blocks can meet."""
    return BLOCK + 1 + count // BLOCK


@inlined
def _settle_scaled(z: Floats, e: Floats, stretch: float, slack: float, out: Ints) -> int:
    """out = round(stretch·z), stretch known to within slack; returns how many are undecided."""
    undecided = 0
    for j in range(out.size):
        nearest = settled(stretch * z[j], abs(stretch) * e[j] + slack * abs(z[j]))
        out[j] = nearest
        undecided += nearest == UNDECIDED
    return undecided


@kernel
def norm_laplace(radii: Words, odd: Words, radial: Words, angular: Words, scale: float, out: Ints) -> int:
    """Rows of round(scale·‖M‖·N), whose density is ∝ exp(−‖z‖/scale), N ∈ Rᵈ and M ∈ Rᵈ⁺¹ normal.

    ‖M‖² = 2·ΣL over ⌊(d+1)/2⌋ exponentials L, and one N² more where d + 1 is odd (words in `odd`).
    """
    rows, d = out.shape
    n, k = radial.size // rows, radii.size // rows
    z1, z2, e = np.empty(rows * n), np.empty(rows * n), np.empty(rows * n)
    normals(radial, angular, z1, z2, e)
    L, eL = np.empty(rows * k), np.empty(rows * k)
    _exponentials(radii, L, eL)
    undecided = 0
    for i in range(rows):
        square = 2.0 * total(L[i * k : (i + 1) * k])
        error = 2.0 * total(eL[i * k : (i + 1) * k]) + depth(k) * U * square
        if odd.size > 0:
            z, _, ez = normal_pair(odd[2 * i], odd[2 * i + 1])
            square += z * z
            error += ez * (2.0 * abs(z) + ez)
        norm = math.sqrt(square)
        stretch = scale * norm
        slack = scale * (error / norm + 8.0 * U * norm)
        first, second = slice(i * n, (i + 1) * n), slice(i * n, i * n + d - n)
        undecided += _settle_scaled(z1[first], e[first], stretch, slack, out[i, :n])
        undecided += _settle_scaled(z2[second], e[second], stretch, slack, out[i, n:])
    return undecided
