"""Sums of whole numbers that no order, chunk or thread can change: high·2²⁰ + low, 0 ≤ low < 2²⁰.

Products of two clipped entries are below 2⁴², so floats add 2¹¹ rows of them without rounding: every partial
sum is a whole number below 2⁵³. Blocks are then added as integers.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np

from untold.core import Floats, Ints

__all__ = ["BLOCK", "DROPPED", "Exact", "products"]

BLOCK = 1 << 11
DROPPED = 20
LOW = (1 << DROPPED) - 1


class Exact(NamedTuple):
    """high·2²⁰ + low.

    >>> Exact.zero((1,)).plus(np.array([2.0**21 + 3])).floor(5).tolist()
    [10]
    """

    high: Ints
    low: Ints

    @classmethod
    def zero(cls, shape: tuple[int, ...]) -> Self:
        """Nothing yet."""
        return cls(np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64))

    def plus(self, block: Floats) -> "Exact":
        """With a block of whole numbers below 2⁵³ added."""
        whole = block.astype(np.int64)
        low = self.low + (whole & LOW)
        return Exact(self.high + (whole >> DROPPED) + (low >> DROPPED), low & LOW)

    def floor(self, factor: Any = 1) -> Ints:
        """⌊factor·sum/2²⁰⌋ for small whole factors."""
        floors: Ints = factor * self.high + (factor * self.low >> DROPPED)
        return floors

    @property
    def floats(self) -> Floats:
        """The sum, rounded once."""
        floats: Floats = np.add(self.high * 2.0**DROPPED, self.low, dtype=np.float64)
        return floats


def products(blocks: Iterable[tuple[Any, Floats]], shape: tuple[int, ...]) -> Exact:
    """ΣAᵀB over blocks of at most `BLOCK` rows, A a matrix or CSR, of whole numbers below 2²¹.

    >>> A, B = np.array([[1.0, 2.0]]), np.array([[3.0]])
    >>> products([(A, B), (A, B)], (2, 1)).low.tolist()
    [[6], [12]]
    """
    total = Exact.zero(shape)
    for A, B in blocks:
        block = A.T @ B
        total = total.plus(np.asarray(block.toarray() if hasattr(block, "toarray") else block))
    return total
