"""What every set shares: the frame of a projection, and the one onto the simplex, which two sets need.

::

    P(w) = argmin { ‖v − w‖₂ : v ∈ C }

A point of the set is its own projection, and a projection is a point of the set as computed, rounding
included, so P(P(w)) = P(w) to the bit. Nothing overflows on the way: inf counts as the largest float, and
only NaN gives NaN.

Letters: ``w`` a point, ``v`` a point of the set C, ``d`` the number of entries. A point may have any shape:
norms and sums run over all its entries.
"""

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from untold.convex.rows import saturate
from untold.core import Floats
from untold.errors import whole

__all__ = ["SUMMING", "ClosedSet", "norm", "onto_simplex"]

# bounds the relative error of NumPy's pairwise sum of terms of one sign, for any length there is
SUMMING = 64 * float(np.finfo(np.float64).eps)


class ClosedSet(ABC):
    """A subclass says what it holds, which of its points is nearest to one outside, and how far it reaches.

    ``tolerance`` is relative to the bound it loosens.

    >>> from untold.convex.domains import L2Ball
    >>> L2Ball(1.0).project([[3.0, 0.0], [0.0, 4.0]]).round(3).tolist()
    [[0.6, 0.0], [0.0, 0.8]]
    >>> L2Ball(1.0).contains([0.6, 0.9]), L2Ball(1.0).reach(dim=2), L2Ball(1.0).diameter(dim=2)
    (False, 1.0, 2.0)
    """

    @abstractmethod
    def _holds(self, w: Floats, tolerance: float) -> bool: ...
    @abstractmethod
    def _nearest(self, w: Floats) -> Floats: ...
    @abstractmethod
    def _furthest(self, dim: int) -> float: ...

    @np.errstate(all="ignore")
    def project(self, w: ArrayLike) -> Floats:
        """The point of the set nearest to w, in a new array."""
        point = saturate(np.array(w, dtype=np.float64, order="C"))
        return point if self._holds(point, 0.0) else np.asarray(self._nearest(point))

    @np.errstate(all="ignore")
    def contains(self, w: ArrayLike, tolerance: float = 1e-9) -> bool:
        """Whether w is in the set; never so where an entry is inf or NaN."""
        point = np.asarray(w, dtype=np.float64)
        return bool(np.isfinite(point).all()) and self._holds(point, tolerance)

    def reach(self, dim: int) -> float:
        """The largest ‖v‖₂ over the set, for points of `dim` entries."""
        return self._furthest(whole("dim", dim, of=type(self).__name__))

    def diameter(self, dim: int) -> float:
        """The largest ‖v − v′‖₂ over the set, for points of `dim` entries."""
        return 2.0 * self.reach(dim)


def norm(w: Floats) -> float:
    """‖w‖₂ over all entries, of a point `scaled` already.

    >>> norm(np.array([[0.3], [0.4]]))
    0.5
    """
    return math.sqrt((w**2).sum())


@np.errstate(all="ignore")
def onto_simplex(w: Floats, total: float) -> Floats:
    """The nearest point with entries ≥ 0 that add up to `total`, in O(d ln d).

    ::

        P(w)ⱼ = max(wⱼ − τ, 0)        τ = (Σ_{i≤k} w₍ᵢ₎ − total)/k,  k the most entries that exceed their τ

    with w₍₁₎ ≥ w₍₂₎ ≥ …. Duchi, Shalev-Shwartz, Singer and Chandra (2008), Efficient projections onto the
    ℓ1-ball for learning in high dimensions, figure 1.

    >>> onto_simplex(np.array([3.0, 2.0, 0.0]), total=2.0).tolist()
    [1.5, 0.5, 0.0]
    """
    # P(w − c) = P(w), and an entry `total` or more below the largest gets nothing: so shares lie in [−1, 0]
    shares = np.clip((w - w.max()) / total, -1.0, 0.0)
    falling = np.sort(shares, axis=None)[::-1]
    thresholds = (np.cumsum(falling) - 1.0) / np.arange(1, falling.size + 1)
    support = np.count_nonzero(falling > thresholds)
    kept = np.maximum(shares - thresholds[support - 1], 0.0)
    # the threshold's rounding counts once for each entry kept: it is taken out again, from all of them alike
    while abs(excess := kept.sum() - 1.0) > SUMMING / 2:
        kept = np.maximum(kept - excess / np.count_nonzero(kept) * (kept > 0.0), 0.0)
    projection: Floats = kept * total
    return projection
