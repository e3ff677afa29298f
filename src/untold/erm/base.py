"""What every method shares: the rows a curator holds, within a public bound, and what a fit releases.

A row may be anything: it is clipped to the public norm bound R in exact integers (`L2Clip`), NaN counts as 0,
and a label the loss does not know makes the row count as nothing. So neither shape nor time nor exception
tells of a row. Letters: n rows of length d, ‖x‖ ≤ R, losses ℓ that are L-Lipschitz and β-smooth per row, λ a
regularisation.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from untold.convex.clipping import L2Clip
from untold.core import Floats
from untold.errors import DataError, positive
from untold.private.claim import Claim

__all__ = ["Curated", "Fit", "curated"]

CHUNK = 1 << 14  # rows that are looked at together


class Fit(NamedTuple):
    """What is released: weights, what that guarantees, and public facts about how it was done."""

    weights: Floats
    guarantee: Claim
    report: dict[str, float | str]


@dataclass(frozen=True)
class Curated:
    """Rows and labels in the curator's hands; ``row_norm`` R is public, and so is n under replace-one."""

    X: Any  # a matrix, or SciPy's CSR
    y: Floats
    row_norm: float = 1.0

    @property
    def count(self) -> int:
        """n."""
        return int(self.X.shape[0])

    @property
    def dim(self) -> int:
        """d."""
        return int(self.X.shape[1])

    @cached_property
    def clip(self) -> L2Clip:
        """What bounds a row."""
        return L2Clip(self.row_norm)

    def chunks(self, size: int = CHUNK) -> Iterator[tuple[Floats, Floats]]:
        """Clipped rows with their labels, in order; ‖x‖ ≤ R exactly, multiples of the clip's grid."""
        for start in range(0, self.count, size):
            part = self.X[start : start + size]
            rows = np.ascontiguousarray(
                part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64
            )
            clipped = np.multiply(self.clip.quantise(rows), self.clip.grid, dtype=np.float64)
            yield clipped, self.y[start : start + size]

    def rows(self) -> tuple[Floats, Floats]:
        """All clipped rows at once, for methods that need a solver."""
        parts = list(self.chunks())
        if not parts:
            return np.empty((0, self.dim)), np.empty(0)
        return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def curated(X: Any, y: object, row_norm: float = 1.0) -> Curated:
    """Rows and labels, refused where shapes do not fit.

    >>> curated([[3.0, 4.0]], [1.0]).rows()[0].round(6).tolist()
    [[0.599999, 0.799999]]
    """
    positive("row_norm", row_norm, of="curated")
    try:
        matrix = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
        labels = np.asarray(y, dtype=np.float64)
        if not hasattr(X, "tocsr") and matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError("`X` and `y` of curated must be arrays of numbers.") from None
    if matrix.ndim != 2 or labels.shape != matrix.shape[:1]:
        shapes = f"{matrix.shape} and {labels.shape}"
        raise DataError(f"`X` and `y` of curated must be rows and one label each. Got shapes {shapes}.")
    return Curated(matrix, labels, row_norm)
