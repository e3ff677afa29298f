"""The sets weights may live in: closed, convex, and projected onto exactly.

`radius` is the size of a set in the norm it is drawn in, whatever the dimension; in L2, `reach` says how long
its points are and `diameter` how far apart. What projections promise is written in `projections`.

Letters: ``w`` a point, ``v`` a point of the set C, ``P(w)`` the nearest v in L2, ``r`` a radius, ``d`` the
number of entries.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from untold.convex.projections import SUMMING, ClosedSet, norm, onto_simplex
from untold.convex.rows import scaled
from untold.core import Floats
from untold.errors import DataError, between, positive, refuse, whole

__all__ = ["Box", "Everywhere", "L1Ball", "L2Ball", "LInfBall", "Simplex"]

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Everywhere(ClosedSet):
    """No constraint: all of R^d.

    Edge case:
        A point with an infinite entry is not in it.

    >>> Everywhere().project([1.0, -2.0]).tolist(), Everywhere().radius
    ([1.0, -2.0], inf)
    """

    @property
    def radius(self) -> float:
        """Unbounded."""
        return math.inf

    def _holds(self, w: Floats, tolerance: float) -> bool:  # noqa: ARG002 - no bound to loosen
        return bool(np.isfinite(w).all())

    def _nearest(self, w: Floats) -> Floats:
        return w

    def _furthest(self, dim: int) -> float:  # noqa: ARG002 - the same in all
        return math.inf


@dataclass(frozen=True)
class _Ball(ClosedSet):
    """{ v : ‖v‖ ≤ r } in some norm."""

    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive("radius", self.radius, of=type(self).__name__))

    def _furthest(self, dim: int) -> float:  # noqa: ARG002 - the same in all
        return self.radius

    def _pull_in(self, v: Floats) -> Floats:
        """Shrinks a point that rounding left outside, by as little as brings it inside."""
        for shrinkage in 1.0 - EPS * 2.0 ** np.arange(53):
            if self._holds(v, 0.0):
                break
            v = v * shrinkage
        return v


@dataclass(frozen=True)
class L2Ball(_Ball):
    """A Euclidean ball around the origin.

    ::

        C = { v : ‖v‖₂ ≤ r }        P(w) = w·min(1, r/‖w‖₂)

    Edge case:
        The origin is its own projection, however small r.

    >>> L2Ball(radius=1.0).project([3.0, -4.0]).round(3).tolist()
    [0.6, -0.8]
    """

    def _holds(self, w: Floats, tolerance: float) -> bool:
        direction, exponent = scaled(w.ravel())
        return bool(norm(direction) <= np.ldexp(self.radius * (1.0 + tolerance), -exponent))

    def _nearest(self, w: Floats) -> Floats:
        direction, _ = scaled(w.ravel())
        return self._pull_in((direction / norm(direction) * self.radius).reshape(w.shape))


@dataclass(frozen=True)
class L1Ball(_Ball):
    """A cross-polytope around the origin.

    ::

        C = { v : Σ|vⱼ| ≤ r }        P(w)ⱼ = sign(wⱼ)·max(|wⱼ| − τ, 0)        Σ|P(w)ⱼ| = r

    τ is 0 inside; outside, |P(w)| is the projection of |w| onto the simplex of total r.

    Edge case:
        Ties get equal shares; entries at or below τ become 0.

    >>> L1Ball(radius=1.0).project([1.0, -0.5, 0.1]).round(3).tolist()
    [0.75, -0.25, 0.0]
    """

    def _holds(self, w: Floats, tolerance: float) -> bool:
        return bool(np.abs(w).sum() <= self.radius * (1.0 + tolerance))

    def _nearest(self, w: Floats) -> Floats:
        # + 0.0 turns −0.0 into 0.0
        return self._pull_in(np.copysign(onto_simplex(np.abs(w), self.radius), w) + 0.0)


@dataclass(frozen=True)
class LInfBall(_Ball):
    """A cube around the origin; in L2 it reaches r√d.

    ::

        C = { v : max|vⱼ| ≤ r }        P(w)ⱼ = wⱼ clipped to [−r, r]

    Edge case:
        `radius` is in its own norm: `reach` says how long its points are.

    >>> LInfBall(radius=1.0).project([0.5, -7.0]).tolist(), LInfBall(radius=1.0).reach(dim=4)
    ([0.5, -1.0], 2.0)
    """

    def _holds(self, w: Floats, tolerance: float) -> bool:
        return bool((np.abs(w) <= self.radius * (1.0 + tolerance)).all())

    def _nearest(self, w: Floats) -> Floats:
        return np.clip(w, -self.radius, self.radius)

    def _furthest(self, dim: int) -> float:
        return self.radius * math.sqrt(dim)


@dataclass(frozen=True)
class Box(ClosedSet):
    """A bound below and above each entry: numbers, or arrays over the last axes of a point; kept as tuples.

    ::

        C = { v : lowⱼ ≤ vⱼ ≤ highⱼ }        P(w)ⱼ = wⱼ clipped to [lowⱼ, highⱼ]

    Edge case:
        −inf below or inf above leave an entry free on that side; equal bounds pin it.

    >>> Box(low=0.0, high=[1.0, 2.0]).project([-3.0, 5.0]).tolist()
    [0.0, 2.0]
    """

    low: ArrayLike
    high: ArrayLike

    def __post_init__(self) -> None:
        low, high = _bounds("low", self.low, "[)"), _bounds("high", self.high, "(]")
        try:
            crossed = bool((low > high).any())
        except ValueError:
            raise refuse("high", self.high, of="Box", allowed="of a shape that fits `low`") from None
        if crossed:
            raise refuse("low", self.low, of="Box", allowed="at most `high` in every entry")
        object.__setattr__(self, "low", _tuples(low.tolist()))
        object.__setattr__(self, "high", _tuples(high.tolist()))

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        low, high = np.broadcast_arrays(self.low, self.high)
        return low, high

    @property
    def radius(self) -> float:
        """The largest entry of any point, in size."""
        return float(max(np.abs(end).max() for end in self._ends))

    def diameter(self, dim: int) -> float:
        """‖high − low‖₂."""
        low, high = self._ends
        # halves, because high − low may overflow
        return 2.0 * self._length(0.5 * high - 0.5 * low, whole("dim", dim, of="Box"))

    def _holds(self, w: Floats, tolerance: float) -> bool:
        low, high = self._ends
        if w.shape[w.ndim - low.ndim :] != low.shape:
            raise DataError(f"`w` of Box must be of shape (…, {str(low.shape)[1:]}. Got shape {w.shape}.")
        # not low − tolerance·|low|: 0·inf would be NaN
        least = np.minimum(low * (1.0 - tolerance), low * (1.0 + tolerance))
        most = np.maximum(high * (1.0 - tolerance), high * (1.0 + tolerance))
        return bool(((w >= least) & (w <= most)).all())

    def _nearest(self, w: Floats) -> Floats:
        return np.clip(w, *self._ends)

    def _furthest(self, dim: int) -> float:
        low, high = self._ends
        return self._length(np.maximum(np.abs(low), np.abs(high)), dim)

    def _length(self, sides: Floats, dim: int) -> float:
        """The L2 norm of a vector repeated until it has `dim` entries."""
        if dim % sides.size:
            raise refuse("dim", dim, of="Box", allowed=f"a multiple of {sides.size}")
        return math.hypot(*sides.flat) * math.sqrt(dim / sides.size)


@dataclass(frozen=True)
class Simplex(ClosedSet):
    """Shares of a total: entries ≥ 0 that add up to s = `total`.

    ::

        C = { v : vⱼ ≥ 0, Σvⱼ = s }        P(w)ⱼ = max(wⱼ − τ, 0), τ such that they add up to s

    Edge case:
        A sum counts as s where it differs by rounding alone. A point of no entries has no projection.

    >>> Simplex(total=1.0).project([0.5, 1.0, -2.0]).tolist()
    [0.25, 0.75, 0.0]
    """

    total: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", positive("total", self.total, of="Simplex"))

    @property
    def radius(self) -> float:
        """The total: the L1 norm of all its points, and the L2 norm of its corners."""
        return self.total

    def diameter(self, dim: int) -> float:
        """The distance of two corners."""
        return self.total * math.sqrt(2.0) if whole("dim", dim, of="Simplex") > 1 else 0.0

    def _holds(self, w: Floats, tolerance: float) -> bool:
        shares = w / self.total
        apart = abs(shares.sum() - 1.0)
        return bool((shares >= -tolerance).all() and apart <= max(tolerance, SUMMING))

    def _nearest(self, w: Floats) -> Floats:
        if w.size == 0:
            raise DataError(f"`w` of Simplex must have at least one entry. Got shape {w.shape}.")
        return onto_simplex(w, self.total)

    def _furthest(self, dim: int) -> float:  # noqa: ARG002 - the same in all
        return self.total


def _bounds(what: str, given: ArrayLike, ends: str) -> Floats:
    entries = np.asarray(given, dtype=object)
    if entries.size == 0:
        raise refuse(what, given, of="Box", allowed="a number or an array of numbers")
    bounds = [between(what, entry, -math.inf, math.inf, of="Box", ends=ends) for entry in entries.flat]
    return np.array(bounds, dtype=np.float64).reshape(entries.shape)


def _tuples(entries: object) -> object:
    return tuple(map(_tuples, entries)) if isinstance(entries, list) else entries
