"""The second moment Σqqᵀ of clipped rows, exact in integers, and how it is released.

Rows are whole numbers q with ‖q‖ ≤ K. What is released of S = Σqqᵀ is ⌊5·Sⱼⱼ/2²⁰⌋ and ⌊7·Sⱼₖ/2²⁰⌋ (j < k), a
vector that moves, where a row comes or goes and where one is replaced, by at most ::

    5K²/2²⁰ + √(d(d + 1)/2),       √2·5K²/2²⁰ + √(d(d + 1)/2)

in L2, for 49 ≤ 2·25: 7/5 stands for √2, with which the triangle has the Frobenius norm of the matrix. Of the
diagonal alone, one Sⱼⱼ a column, the same without the factor 5, and with d for d(d + 1)/2.
Proof: ``proofs/adassp.md``.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from untold.core import Floats, Relation
from untold.erm.exact import BLOCK, DROPPED, Exact, products
from untold.private import noise

__all__ = ["BESIDE", "ON", "Moment", "diagonal", "noisy_diagonal", "noisy_moment", "second_moment"]

ON, BESIDE = 5, 7

Blocks = Callable[[int], Iterator[Any]]
"""Gives rows of whole numbers, so many at a time."""


class Moment(NamedTuple):
    """S with noise, in units of 2²⁰ steps²; ``noise`` is the deviation of an entry on the diagonal."""

    matrix: Floats
    noise: float


def second_moment(blocks: Blocks, dim: int) -> Exact:
    """Σqqᵀ.

    >>> rows = np.array([[1.0, 2.0], [3.0, 0.0]])
    >>> second_moment(lambda size: iter([rows]), 2).low.tolist()
    [[10, 2], [2, 4]]
    """
    return products(((q, q) for q in blocks(BLOCK)), (dim, dim))


def diagonal(blocks: Blocks, dim: int) -> Exact:
    """Σqⱼ² for each column.

    >>> diagonal(lambda size: iter([np.array([[1.0, 2.0], [3.0, 0.0]])]), 2).low.tolist()
    [10, 4]
    """
    total = Exact.zero((dim,))
    for q in blocks(BLOCK):
        total = total.plus(np.asarray((q * q).sum(axis=0)).ravel())
    return total


def moved(K: float, dim: int, relation: Relation) -> float:
    """How far a neighbour moves the released triangle.

    >>> moved(2**20, 1, Relation.ADD_OR_REMOVE_ONE) - 5 * 2**20
    1.0
    """
    rows = math.sqrt(2.0) if relation == Relation.REPLACE_ONE else 1.0
    return rows * ON * K * K / 2.0**DROPPED + math.sqrt(dim * (dim + 1) / 2)


def triangle(S: Exact) -> tuple[tuple[Any, ...], Any, Any]:
    """The upper triangle: places, factors, and what is to be released."""
    upper = np.triu_indices(len(S.high))
    factors = np.where(upper[0] == upper[1], ON, BESIDE)
    return upper, factors, Exact(S.high[upper], S.low[upper]).floor(factors)


def released(S: Exact, scale: float, source: noise.Source) -> Floats:
    """The matrix with Gaussian noise of that scale on its released triangle."""
    upper, factors, floors = triangle(S)
    entries = (floors + noise.gaussian(floors.size, scale, source)) / factors
    matrix = np.zeros(S.high.shape)
    matrix[upper] = entries
    matrix.T[upper] = entries
    return matrix


def noisy_moment(S: Exact, K: float, mu: float, relation: Relation, source: noise.Source = None) -> Moment:
    """The moment as a μ-GDP release; K bounds a row.

    >>> S = second_moment(lambda size: iter([np.full((1, 1), 2.0**20)]), 1)
    >>> noisy_moment(S, 2**20, math.inf, Relation.REPLACE_ONE).matrix / 2**20
    array([[1.]])
    """
    if mu == math.inf:
        return Moment(S.floats / 2.0**DROPPED, 0.0)
    scale = moved(K, len(S.high), relation) / mu
    return Moment(released(S, scale, source), scale / ON)


def noisy_diagonal(S: Exact, K: float, mu: float, relation: Relation, source: noise.Source = None) -> Moment:
    """The diagonal alone, likewise: Σⱼqⱼ⁴ ≤ ‖q‖⁴.

    >>> S = diagonal(lambda size: iter([np.full((1, 1), 2.0**20)]), 1)
    >>> noisy_diagonal(S, 2**20, math.inf, Relation.REPLACE_ONE).matrix / 2**20
    array([1.])
    """
    if mu == math.inf:
        return Moment(S.floats / 2.0**DROPPED, 0.0)
    rows = math.sqrt(2.0) if relation == Relation.REPLACE_ONE else 1.0
    scale = (rows * K * K / 2.0**DROPPED + math.sqrt(S.high.size)) / mu
    return Moment((S.floor() + noise.gaussian(S.high.size, scale, source)).astype(np.float64), scale)
