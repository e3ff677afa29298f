"""What a curator computes: the exact sum of its rows' clipped subgradients, in whole grid steps.

    q(w) = Σᵢ quantise(clip(∂ℓ(w; xᵢ, yᵢ))),   ‖quantise(clip(·))‖ ≤ K in integers

so q moves by at most K when a row comes or goes and by 2K when one is replaced (``proofs/clipping.md``), and
is the same whatever the order and the chunks of the rows. Nothing is random here; noise comes after the sum.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untold.convex.clipping import L2Clip
from untold.convex.lanes import LANES
from untold.convex.rows import known_labels
from untold.core import Floats, Ints, Loss
from untold.erm.base import CHUNK, Curated
from untold.kernels.crowd import Dense, Sparse
from untold.kernels.loop import Room
from untold.kernels.slopes import slope_of
from untold.kernels.sums import add_gradients

__all__ = ["GradientSums"]

Chosen = NDArray[np.int64] | None


@dataclass(frozen=True)
class GradientSums:
    """q(w) over all rows, or over those at `chosen` places.

    >>> from untold.convex.losses import Hinge
    >>> from untold.erm.base import curated
    >>> data = curated([[0.5, 0.0], [0.0, 0.25]], [1.0, -1.0])
    >>> sums = GradientSums(data, Hinge(), L2Clip(1.0))
    >>> (sums(np.zeros(2)) * sums.clip.grid).tolist()
    [-0.5, 0.25]
    """

    data: Curated
    loss: Loss
    clip: L2Clip

    def __call__(self, w: Floats, chosen: Chosen = None) -> Ints:
        total = np.zeros(w.size, dtype=np.int64)
        count = self.data.count if chosen is None else chosen.size
        for start in range(0, count, CHUNK):
            part = slice(start, start + CHUNK) if chosen is None else chosen[start : start + CHUNK]
            self._add(w, self.data.X[part], self.data.y[part], total)
        return total

    @cached_property
    def _room(self) -> Room:
        return Room.of(self.data.dim)

    def _add(self, w: Floats, X: Any, y: Floats, total: Ints) -> None:
        slope = slope_of(self.loss)
        if slope is None:
            total += self._careful(w, X, y)
            return
        rows, i = _compiled(X, y), 0
        while (
            i := add_gradients(rows, i, slope, w, self.clip.grid, self.clip.steps, self._room, total)
        ) < y.size:
            total += self._careful(w, X[i : i + 1], y[i : i + 1])
            i += 1

    def _careful(self, w: Floats, X: Any, y: Floats) -> Ints:
        """The sum by the readable path; rows that cannot be read add nothing."""
        rows = np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        readable = known_labels(self.loss, y) & np.isfinite(rows).all(axis=1)
        gradients = self.loss.subgradient(w, rows[readable], y[readable])
        total: Ints = self.clip.quantise(gradients).sum(axis=0)
        return total


def _compiled(X: Any, y: Floats) -> Dense | Sparse:
    labels = np.ascontiguousarray(y)[np.newaxis]
    if not hasattr(X, "tocsr"):
        return Dense(np.ascontiguousarray(X), labels)
    values = np.ascontiguousarray(X.data, dtype=np.float64)
    places, ends = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return Sparse(values, places, ends, labels, np.empty(LANES), X.shape[1])
