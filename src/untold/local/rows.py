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

import numpy as np

from untold.convex.rows import known_labels
from untold.core import Floats, Loss
from untold.kernels.rows import Rows

__all__ = ["row_subgradient"]


def row_subgradient(loss: Loss, w: Floats, rows: Rows, i: int, m: int) -> Floats:
    """The subgradient of row i with its label for model m, at w; 0 where the row cannot be read.

    >>> from untold.convex.losses import Logistic
    >>> from untold.kernels.rows import checked_rows
    >>> row_subgradient(Logistic(), np.zeros(2), checked_rows([[1.0, 2.0]], [1.0], 1), 0, 0).tolist()
    [-0.5, -1.0]
    """
    x, y = rows.row(i), rows.label(i, m)
    if not np.isfinite(x).all() or not known_labels(loss, np.array(y)):
        return np.zeros(w.size)
    return loss.subgradient(w, x, np.array(y))
