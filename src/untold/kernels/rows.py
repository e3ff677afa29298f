"""Rows as compiled loops take them: a matrix (float64 or float32) or CSR, in memory or mapped from a file.

Nothing large is ever copied: a loop is given parts. Shapes are checked before anything is learnt; contents
never, for whatever a check did would tell of one row.
"""

import mmap
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from untold.convex.lanes import LANES
from untold.core import Floats, Ints
from untold.errors import DataError

__all__ = ["Dense", "Reader", "Rows", "Sparse", "checked_rows"]


class Dense(NamedTuple):
    """Rows of a C-contiguous matrix, and labels, (M, n)."""

    X: Any
    y: Floats


class Sparse(NamedTuple):
    """Rows in CSR form, places rising, and labels, (M, n); room for the lanes of a sum."""

    values: Any
    places: Any
    ends: Any
    y: Floats
    lanes: Floats
    dim: int

    def csr(self) -> Any:
        """The same for SciPy."""
        from scipy.sparse import csr_array

        first, last = int(self.ends[0]), int(self.ends[-1])
        entries = np.array(self.values[first:last]), np.array(self.places[first:last])
        return csr_array((*entries, self.ends - first), (self.ends.size - 1, self.dim))


@dataclass(frozen=True)
class Rows:
    """Rows and labels, whole; the compiled loop is given parts, so that nothing large is ever copied."""

    X: NDArray[Any]  # the matrix; of CSR rows the values, float64
    y: NDArray[Any]  # (n,), or a row for each model
    models: int
    dim: int
    places: Ints | None = None
    ends: Ints | None = None

    @property
    def count(self) -> int:
        """How many."""
        return int(self.y.shape[-1])

    def part(self, start: int, stop: int) -> Dense | Sparse:
        """Rows start … stop − 1, for the compiled loop."""
        y = self._labels(slice(start, stop))
        if self.places is None or self.ends is None:
            return Dense(_for_reading(self.X[start:stop]), y)
        ends = _for_reading(self.ends[start : stop + 1])
        return Sparse(_for_reading(self.X), _for_reading(self.places), ends, y, np.empty(LANES), self.dim)

    @cached_property
    def whole(self) -> Dense | Sparse:
        """All rows, for a loop that is told which to look at."""
        return self.part(0, self.count)

    def _labels(self, places: Any) -> Floats:
        """Of each model a row, for reading."""
        labels = np.atleast_2d(np.asarray(self.y[..., places], dtype=np.float64))
        if len(labels) == self.models:
            return _for_reading(labels)
        return np.broadcast_to(labels, (self.models, labels.shape[1]))

    def row(self, i: int) -> Floats:
        """Row i in full."""
        if self.places is None or self.ends is None:
            return np.asarray(self.X[i], dtype=np.float64)
        part = slice(self.ends[i], self.ends[i + 1])
        x = np.zeros(self.dim)
        x[self.places[part]] = self.X[part]
        return x

    def label(self, i: int, m: int) -> float:
        """The label of row i for model m."""
        return float(self.y[i] if self.y.ndim == 1 else self.y[m, i])


def _for_reading(array: NDArray[Any]) -> NDArray[Any]:
    """A view that says so: files mapped for reading and other arrays are then of one type to a compiler."""
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return view


def _numbers(what: str, given: object, allowed: tuple[type, ...], of: str) -> NDArray[Any]:
    try:
        array = np.asarray(given)
        return array if array.dtype in allowed else array.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"`{what}` of {of} must be an array of numbers.") from None


def checked_rows(X: Any, y: object, models: int, dim: int | None = None, *, of: str = "learn") -> Rows:
    """Rows and labels for that many models; refused where shapes do not fit.

    >>> checked_rows([[1.0, 2.0]], [1.0], 1).dim
    2
    """
    sparse = hasattr(X, "tocsr")
    matrix: Any = X.tocsr() if sparse else _numbers("X", X, (np.float32, np.float64), of)
    if matrix.ndim != 2 or matrix.shape[1] == 0 or dim not in (None, matrix.shape[1]):
        wanted = f"{dim} columns" if dim else "columns"
        raise DataError(f"`X` of {of} must be a matrix of rows with {wanted}. Got shape {matrix.shape}.")
    count, width = matrix.shape
    labels = np.zeros(count, np.int8) if y is None else y
    labels = _numbers("y", labels, (np.float32, np.float64, np.int8, np.int64, np.bool_), of)
    if labels.shape not in ((count,), (models, count)):
        raise DataError(f"`y` of {of} must be one label a row, {count} of them. Got shape {labels.shape}.")
    if not sparse:
        return Rows(np.ascontiguousarray(matrix), labels, models, width)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    values = np.ascontiguousarray(matrix.data, dtype=np.float64)
    return Rows(
        values, labels, models, width, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    )


class Reader:
    """Gives back the pages of a memory-mapped matrix that have been read."""

    EVERY = 1 << 24  # bytes

    def __init__(self, rows: Rows) -> None:
        base: Any = rows.X
        while isinstance(base, np.ndarray):
            base = base.base
        self._map = base if isinstance(base, mmap.mmap) and rows.places is None else None
        self._X, self._done = rows.X, 0

    def forget(self, row: int) -> None:
        """Everything before that row has been read."""
        width = self._X.strides[0]
        if self._map is None or (row - self._done) * width < self.EVERY:
            return
        place = self._X.ctypes.data - np.frombuffer(self._map, dtype=np.uint8).ctypes.data
        start = (place + self._done * width) // mmap.PAGESIZE * mmap.PAGESIZE
        stop = (place + row * width) // mmap.PAGESIZE * mmap.PAGESIZE
        self._map.madvise(mmap.MADV_DONTNEED, start, stop - start)
        self._done = row
