"""What may be learnt from: rows in a matrix or in CSR, one label each, and what a row alone does.

Shapes are checked before anything is learnt; contents never, for whatever a check did would tell of one row:

===========================================  =====================================================
a row with                                   reports
===========================================  =====================================================
a NaN or an infinite entry                   as if its subgradient were 0
a label the loss does not know               as if its subgradient were 0
no rows at all                               nothing: the answer is the point one started from
===========================================  =====================================================
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from untold.core import Floats, Loss
from untold.errors import DataError
from untold.kernels.crowd import Dense, Sparse

__all__ = ["Rows", "checked_rows", "row_of", "row_subgradient"]

Rows = Dense | Sparse


def _labels(y: object, count: int, models: int) -> Floats:
    try:
        labels = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("`y` of learn must be numbers.") from None
    if labels.shape not in ((count,), (models, count)):
        raise DataError(f"`y` of learn must be one label a row, {count} of them. Got shape {labels.shape}.")
    return np.broadcast_to(labels, (models, count))


def checked_rows(X: Any, y: object, models: int, dim: int | None = None) -> Rows:
    """Rows and labels for that many models; refused where shapes do not fit.

    >>> checked_rows([[1.0, 2.0]], [1.0], 1).X.shape
    (1, 2)
    """
    sparse = hasattr(X, "tocsr")
    try:
        matrix: Any = X.tocsr() if sparse else np.asarray(X)
        if not sparse and matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError("`X` of learn must be a matrix of numbers.") from None
    if matrix.ndim != 2 or matrix.shape[1] == 0 or dim not in (None, matrix.shape[1]):
        wanted = f"{dim} columns" if dim else "columns"
        raise DataError(f"`X` of learn must be a matrix of rows with {wanted}. Got shape {matrix.shape}.")
    labels = _labels(y, matrix.shape[0], models)
    if not sparse:
        return Dense(np.ascontiguousarray(matrix), labels)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    values = np.ascontiguousarray(matrix.data, dtype=np.float64)
    return Sparse(values, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64), labels)


def row_of(rows: Rows, i: int) -> tuple[Floats, Sequence[int] | slice]:
    """The entries of row i and where they stand."""
    if isinstance(rows, Dense):
        return rows.X[i].astype(np.float64), slice(None)
    part = slice(rows.ends[i], rows.ends[i + 1])
    return rows.values[part], rows.places[part]


def _readable(loss: Loss, y: float) -> bool:
    labels = getattr(loss, "labels", "reals")
    return abs(y) == 1.0 if labels == "signs" else bool(np.isfinite(y))


def row_subgradient(loss: Loss, w: Floats, rows: Rows, i: int, m: int) -> Floats:
    """The subgradient of row i with its label for model m, at w; 0 where the row cannot be read.

    >>> from untold.convex.losses import Logistic
    >>> row_subgradient(Logistic(), np.zeros(2), checked_rows([[1.0, 2.0]], [1.0], 1), 0, 0).tolist()
    [-0.5, -1.0]
    """
    x, places = row_of(rows, i)
    y = rows.y[m, i]
    g = np.zeros(w.size)
    if np.isfinite(x).all() and _readable(loss, float(y)):
        g[places] = loss.subgradient(np.ascontiguousarray(w[places]), x, y)
    return g
