"""Which rows are looked at: chosen by words of the same keystream as noise, never shown.

Amplification by sampling rests on these being what they say, so none is an approximation.
"""

import math

import numpy as np
from numpy.typing import NDArray

from untold.core import Ints
from untold.private import noise

__all__ = ["coins", "subset", "uniform"]


def coins(count: int, chance: float, source: noise.Source = None) -> NDArray[np.bool_]:
    """Independent coins that show heads with the largest multiple of 2⁻⁵³ that is at most `chance`.

    Sixteen bits decide nearly all of them; where they are those of the chance itself, 37 more do.

    >>> coins(3, 1.0).tolist()
    [True, True, True]
    """
    first, rest = divmod(math.floor(chance * 2.0**53), 1 << 37)
    bits = noise.words(-(-count // 4), source).view(np.uint16)[:count]
    heads = bits < first
    tied = np.flatnonzero(bits == first)
    if tied.size:
        heads[tied] = (noise.words(tied.size, source) >> np.uint64(27)) < np.uint64(rest)
    return np.asarray(heads)


def subset(count: int, size: int, source: noise.Source = None) -> Ints:
    """The places of a uniformly random set of `size` out of `count`, in rising order.

    Those with the smallest words; drawn anew where two at the edge are equal, so that no set is favoured.

    >>> subset(5, 5).tolist()
    [0, 1, 2, 3, 4]
    """
    while True:
        words = noise.words(count, source)
        order = np.argsort(words, kind="stable")
        if size in {0, count} or words[order[size - 1]] != words[order[size]]:
            return np.sort(order[:size])


def uniform(count: int, below: int, source: noise.Source = None) -> Ints:
    """Independent whole numbers in [0, below), each as likely: words beyond a multiple of it are drawn anew.

    >>> uniform(3, 1).tolist()
    [0, 0, 0]
    """
    most = np.uint64((1 << 64) // below * below - 1)
    words = noise.words(count, source)
    while (beyond := words > most).any():
        words[beyond] = noise.words(int(beyond.sum()), source)
    return (words % np.uint64(below)).astype(np.int64)
