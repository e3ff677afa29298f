"""Clipping: the one place a sensitivity comes from.

A clip carries a bound G and a public grid, both independent of ε, and turns *any* input into integers q,
counted in grid steps, with ‖q‖ ≤ K = ⌊G/grid⌋ in exact integer arithmetic::

    q = trunc(v · min(1, G/‖v‖) / grid),    and while Σq² > K²: every qⱼ one step towards zero.

It is total: whatever is in the vector, there is an answer, and never an exception that depends on it.

====================  ======================================================================
input                 answer
====================  ======================================================================
zero                  zero
NaN, or no number     counts as 0
±∞                    the limit: infinite entries share the bound evenly, finite ones are 0
1e308, subnormals     no overflow and no underflow on the way (scaled by the largest entry)
integers, booleans    the number they are
empty vector          the empty vector
====================  ======================================================================

Only a shape is refused: it must be a vector or a matrix of rows.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from untold.compiled import inlined, kernel
from untold.convex.lanes import LANES, square, square_at
from untold.core import Floats, Ints, Relation
from untold.errors import DataError, between, positive

__all__ = ["L2Clip", "LInfClip", "as_rows", "clip_l2"]

TINY, HUGE = 1e-250, 1e250
RESOLUTION = 20  # the grid is 2⁻²⁰ of the bound's power of two: 2²⁰ ≤ K < 2²¹


def _real(entry: object) -> float:
    try:
        return float(entry)  # type: ignore[arg-type]
    except OverflowError:
        return math.copysign(math.inf, 1 if entry > 0 else -1)  # type: ignore[operator]
    except (TypeError, ValueError):
        return math.nan


def as_rows(g: object, *, of: str) -> tuple[Floats, bool]:
    """Any vector or matrix as float64 rows, and whether it was one vector.

    >>> as_rows([1, None, 10**400], of="Clip")
    (array([[ 1., nan, inf]]), True)
    """
    try:
        array = np.asarray(g)
    except OverflowError:
        array = np.asarray(g, dtype=object)
    except ValueError:
        raise DataError(f"`g` of {of} must have rows of one width. Got rows of several.") from None
    if array.ndim not in (1, 2):
        shape = f"{array.ndim} dimensions"
        raise DataError(f"`g` of {of} must be a vector or a matrix of rows. Got {shape}.")
    if array.dtype.kind not in "fiub":
        array = np.vectorize(_real, otypes=[np.float64])(array) if array.size else np.zeros(array.shape)
    with np.errstate(over="ignore"):
        floats = np.ascontiguousarray(array, dtype=np.float64)
    return np.atleast_2d(floats), array.ndim == 1


@inlined
def _square(q: Ints) -> np.int64:
    s = np.int64(0)
    for j in range(q.size):
        s += q[j] * q[j]
    return s


@inlined
def _length(v: Floats) -> tuple[float, float, float]:
    """The largest |entry| m, ‖v/m‖₂, and how many entries are infinite; NaN counts as 0."""
    m = 0.0
    infinite = 0.0
    for j in range(v.size):
        size = abs(v[j])
        m = max(m, size)  # false for NaN
        infinite += 1.0 if size == math.inf else 0.0
    s = 0.0
    if 0.0 < m < math.inf:
        for j in range(v.size):
            x = v[j] / m
            s += x * x if x == x else 0.0  # noqa: PLR0124 (NaN)
    return m, math.sqrt(s), infinite


@inlined
def _shrink(q: Ints, K: int) -> None:
    """Makes Σq² ≤ K² true whatever the floats before it did; what the proof rests on, seldom needed."""
    while _square(q) > K * K:
        for j in range(q.size):
            q[j] -= np.sign(q[j])


@inlined
def _quantise_any(v: Floats, grid: float, K: int, q: Ints) -> None:
    """The clipped v in grid steps, whatever is in it."""
    m, length, infinite = _length(v)
    for j in range(v.size):
        x = v[j]
        if infinite > 0.0:
            x = math.copysign(K / math.sqrt(infinite), x) if abs(x) == math.inf else 0.0
        elif m * length <= K * grid:
            x = x / grid
        else:
            x = x / m * (K / length)
        q[j] = np.int64(x) if x == x else 0  # noqa: PLR0124 (NaN)


@inlined
def clip_l2(v: Floats, s: float, grid: float, K: int, q: Ints) -> None:
    """One row of `L2Clip.quantise`, s = ‖v‖². Only what overflows, underflows or is NaN wants care."""
    if TINY < s < HUGE:
        length = math.sqrt(s)
        scale = 1.0 / grid if length <= K * grid else K / length
        for j in range(v.size):
            q[j] = np.int64(v[j] * scale)
    else:
        _quantise_any(v, grid, K, q)
    _shrink(q, K)


@kernel
def _clip_l2(rows: Floats, grid: float, K: int, out: Ints) -> None:
    for i in range(rows.shape[0]):
        clip_l2(rows[i], square(rows[i]), grid, K, out[i])


@inlined
def _fits(v: Floats, grid: float, K: int, q: Ints) -> bool:
    """q ← trunc(v/grid), and whether Σq² ≤ K²; where not, q may be anything."""
    for j in range(v.size):
        if not abs(v[j]) <= K * grid:  # or not a number
            return False
    for j in range(v.size):
        q[j] = np.int64(v[j] / grid)
    return bool(_square(q) <= K * K)


@kernel
def _fit_l2(rows: Floats, grid: float, K: int, out: Ints) -> None:
    for i in range(rows.shape[0]):
        if not _fits(rows[i], grid, K, out[i]):
            clip_l2(rows[i], square(rows[i]), grid, K, out[i])


@kernel
def _fit_entries(values: Floats, places: Ints, ends: Ints, grid: float, K: int, out: Ints) -> None:
    lanes = np.empty(LANES)
    for i in range(ends.size - 1):
        row = slice(ends[i], ends[i + 1])
        if not _fits(values[row], grid, K, out[row]):
            clip_l2(values[row], square_at(values[row], places[row], lanes), grid, K, out[row])


@kernel
def _clip_linf(rows: Floats, grid: float, K: int, out: Ints) -> None:
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            x = max(-np.float64(K), min(np.float64(K), rows[i, j] / grid))
            out[i, j] = np.int64(x) if rows[i, j] == rows[i, j] else 0


@dataclass(frozen=True)
class _Clip:
    bound: float

    def __post_init__(self) -> None:
        positive("bound", self.bound, of=type(self).__name__)
        between("bound", self.bound, 1e-100, 1e100, of=type(self).__name__, hint="rescale the data.")

    @property
    def grid(self) -> float:
        """The step of the lattice: a power of two, a public function of the bound alone."""
        return math.ldexp(1.0, math.frexp(self.bound)[1] - 1 - RESOLUTION)

    @property
    def steps(self) -> int:
        """K = ⌊bound/grid⌋: the bound in grid steps."""
        return math.floor(self.bound / self.grid)

    def sensitivity(self, relation: Relation) -> int:
        """How far, in grid steps and in this norm, a sum of clipped rows moves between neighbours."""
        return self.steps * (2 if relation == Relation.REPLACE_ONE else 1)


@dataclass(frozen=True)
class L2Clip(_Clip):
    """Clips rows to ‖v‖₂ ≤ bound.

    Guarantee: Σq² ≤ steps² in integers, for every input whatever.

    >>> clip = L2Clip(1.0)
    >>> clip.quantise(np.array([[3.0, 4.0], [0.0, float("nan")]])) * clip.grid
    array([[0.59999943, 0.79999924],
           [0.        , 0.        ]])
    >>> clip.sensitivity(Relation.REPLACE_ONE) == 2 * clip.steps == 2 * 2**20
    True
    """

    norm: ClassVar[str] = "l2"

    def quantise(self, rows: Floats) -> Ints:
        """The clipped rows, in grid steps."""
        out = np.empty(rows.shape, dtype=np.int64)
        _clip_l2(rows, self.grid, self.steps, out)
        return out

    def fit(self, rows: Floats) -> Ints:
        """Rows in grid steps, as they are where they fit: trunc(v/grid) if Σq² ≤ K², else as `quantise`.

        >>> L2Clip(1.0).fit(np.array([[1.0], [1.0 + 2.0**-52]])).ravel().tolist() == [2**20, 2**20]
        True
        """
        out = np.empty(rows.shape, dtype=np.int64)
        _fit_l2(rows, self.grid, self.steps, out)
        return out

    def fit_entries(self, values: Floats, places: Ints, ends: Ints) -> Ints:
        """The same of sparse rows: row i has the entries from ends[i] to ends[i + 1], at rising places."""
        out = np.empty(values.shape, dtype=np.int64)
        _fit_entries(values, places, ends, self.grid, self.steps, out)
        return out


@dataclass(frozen=True)
class LInfClip(_Clip):
    """Clips every entry to |vⱼ| ≤ bound.

    Guarantee: |qⱼ| ≤ steps in integers, for every input whatever.

    >>> LInfClip(2.0).quantise(np.array([[3.0, float("-inf")]])) * LInfClip(2.0).grid
    array([[ 2., -2.]])
    """

    norm: ClassVar[str] = "linf"

    def quantise(self, rows: Floats) -> Ints:
        """The clipped rows, in grid steps."""
        out = np.empty(rows.shape, dtype=np.int64)
        _clip_linf(rows, self.grid, self.steps, out)
        return out
