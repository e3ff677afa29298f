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

from typing import Any

import numpy as np

from untold.convex.lanes import LANES
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
    places, ends = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return Sparse(values, places, ends, labels, np.empty(LANES), matrix.shape[1])


def row_of(rows: Rows, i: int, dim: int) -> Floats:
    """Row i in full."""
    if isinstance(rows, Dense):
        return np.asarray(rows.X[i], dtype=np.float64)
    part = slice(rows.ends[i], rows.ends[i + 1])
    x = np.zeros(dim)
    x[rows.places[part]] = rows.values[part]
    return x


def _readable(loss: Loss, y: float) -> bool:
    labels = getattr(loss, "labels", "reals")
    return abs(y) == 1.0 if labels == "signs" else bool(np.isfinite(y))


def row_subgradient(loss: Loss, w: Floats, rows: Rows, i: int, m: int) -> Floats:
    """The subgradient of row i with its label for model m, at w; 0 where the row cannot be read.

    >>> from untold.convex.losses import Logistic
    >>> row_subgradient(Logistic(), np.zeros(2), checked_rows([[1.0, 2.0]], [1.0], 1), 0, 0).tolist()
    [-0.5, -1.0]
    """
    x, y = row_of(rows, i, w.size), rows.y[m, i]
    if not np.isfinite(x).all() or not _readable(loss, float(y)):
        return np.zeros(w.size)
    return loss.subgradient(w, x, y)
