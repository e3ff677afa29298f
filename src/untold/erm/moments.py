"""The second moment Σxxᵀ of a curator's rows, released once: exact in integers, noise on its upper triangle.

Rows are whole numbers q with ‖q‖ ≤ K after dropping low bits. What is released is 5·Σqⱼ² on the diagonal and
7·Σqⱼqₖ beside it, so that one row weighs at most 5K² in L2, exactly::

    Σⱼ 25qⱼ⁴ + Σ_{j<k} 49qⱼ²qₖ² ≤ 25·(Σⱼ qⱼ²)² = (5‖q‖²)²        since 49 ≤ 2·25

(7/5 stands for √2, with which the triangle has the Frobenius norm of the matrix.) The products are summed in
floats, a chunk at a time: every partial sum is a whole number below 2⁵³, so nothing is rounded and no order
matters.
"""

import math
from typing import NamedTuple

import numpy as np

from untold.core import Floats, Ints
from untold.erm.base import Curated
from untold.errors import refuse
from untold.private import noise

__all__ = ["Moment", "exact_moment", "noisy_moment"]

ON, BESIDE = 5, 7
FINEST = 15  # bits of a row's entries that are kept: 2¹⁴ rows of 2³⁰ stay below 2⁵³
RESOLUTION = 20  # bits of a clipped row (`L2Clip`)
MOST_ROWS = 1 << 14


class Moment(NamedTuple):
    """Σxxᵀ with noise: symmetric, E the identity of noise; ``noise`` is the deviation of a diagonal entry."""

    matrix: Floats
    noise: float


def kept_bits(sigma: float) -> int:
    """How many bits of an entry leave room for noise of that multiplier; public."""
    bits = min(FINEST, math.floor((math.log2(noise.MAX_SCALE) - math.log2(ON * max(sigma, 1.0))) / 2) - 1)
    if bits < 4:
        raise refuse("sigma", sigma, of="noisy_moment", allowed="smaller", hint="so much noise hides all.")
    return bits


def exact_moment(data: Curated, bits: int) -> Ints:
    """Σqqᵀ with q the rows' top bits.

    >>> from untold.erm.base import curated
    >>> exact_moment(curated([[0.5, 0.0], [0.0, 0.25]], [0, 0]), 4).tolist()
    [[64, 0], [0, 16]]
    """
    total = np.zeros((data.dim, data.dim), dtype=np.int64)
    step = 2.0 ** (RESOLUTION - bits)
    for X, _ in data.chunks(MOST_ROWS):
        q = np.trunc(X / (data.clip.grid * step))
        total += (q.T @ q).astype(np.int64)
    return total


def noisy_moment(data: Curated, sigma: float, source: noise.Source = None) -> Moment:
    """Σxxᵀ with Gaussian noise of `sigma` times the weight of one row, in the rows' own units.

    >>> from untold.erm.base import curated
    >>> noisy_moment(curated(np.eye(3), np.zeros(3)), 0.0).matrix.round(3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    bits, d = kept_bits(sigma), data.dim
    unit = data.clip.grid * 2.0 ** (RESOLUTION - bits)
    K = data.clip.steps * 2.0 ** (bits - RESOLUTION)  # ‖q‖ ≤ K, and dropping bits only shortens
    upper = np.triu_indices(d)
    factors = np.where(upper[0] == upper[1], ON, BESIDE)
    released = exact_moment(data, bits)[upper] * factors
    if sigma > 0:
        released = released + noise.gaussian(released.size, sigma * ON * K * K, source)
    matrix = np.zeros((d, d))
    matrix[upper] = released / factors * (unit * unit)
    matrix = matrix + np.triu(matrix, 1).T
    return Moment(matrix, sigma * (K * unit) ** 2)
