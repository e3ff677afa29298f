"""The sums of `untold.erm.sums` as a reader would write them: for losses of one's own, and for tests."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from untold.convex.losses_of_classes import Multinomial
from untold.convex.rows import Linear, known_labels, margins
from untold.core import Floats, Ints, Loss
from untold.erm.base import CHUNK
from untold.erm.exact import BLOCK, Exact
from untold.kernels.rows import Dense

if TYPE_CHECKING:
    from untold.erm.sums import GradientSums

__all__ = ["bends", "exact_sum", "open_rows", "open_sum", "sum_of_points"]

SAFE = 1 - 2.0**-40


@np.errstate(all="ignore")
def exact_sum(sums: "GradientSums", w: Floats, chosen: Ints | None = None) -> Exact:
    """Σρ⊗q."""
    total, done = Exact.zero(w.shape), 0
    for q, y in sums.data.quantised(BLOCK):
        rows = q if isinstance(q, np.ndarray) else q.toarray()
        places = np.arange(done, done := done + y.size)
        kept = np.ones(y.size, bool) if chosen is None else np.isin(places, chosen)
        weights = 1.0 if sums.weights is None else sums.weights[places, np.newaxis]
        r = residuals(sums, w, rows * sums.data.clip.grid, y)
        rho = whole(np.trunc(weights * r / sums.unit), r, rows, sums.most) * kept[:, np.newaxis]
        total = total.plus((rho.T @ rows).reshape(w.shape))
    return total


@np.errstate(all="ignore")
def residuals(sums: "GradientSums", w: Floats, X: Floats, y: Floats) -> Floats:
    """r of each row, (n, K); 0 where it, or the label, cannot be read."""
    if isinstance(sums.loss, Multinomial):
        known = (y >= 0) & (y < sums.outputs) & (y == np.trunc(y))
        r = sums.loss.residual(sums.loss.margins(w, X), np.where(known, y, 0.0))
        length = np.sqrt(_in_order(r * r))
        r = np.where(length > sums.steepest, r * (sums.steepest / np.maximum(length, 1e-300)), r)
    else:
        assert isinstance(sums.loss, Linear)  # noqa: S101 (`factored` says so)
        known = known_labels(sums.loss, y)
        r = sums.loss.slope(margins(w, X), y)[:, np.newaxis]
    return np.where(known[:, np.newaxis] & np.isfinite(r).all(axis=1, keepdims=True), r, 0.0)


def _in_order(r: Floats) -> Floats:
    """Sums of rows, taken from left to right."""
    return np.cumsum(r, axis=1)[:, -1:]


@np.errstate(all="ignore")
def whole(rho: Floats, r: Floats, q: Floats, most: float) -> Floats:
    """ρ, shortened to ‖ρ‖·‖q‖ ≤ M where it has to be.

    >>> whole(np.array([[8.0]]), np.array([[8.0]]), np.array([[3.0, 4.0]]), 10.0)
    array([[1.]])
    """
    s = (q * q).sum(axis=1, keepdims=True)
    direction = r / np.abs(r).max(axis=1, keepdims=True)
    length = _in_order(direction * direction)
    shorter = np.where(s > 0.0, most / np.sqrt(length * s) * SAFE, 0.0)
    within = (rho * rho).sum(axis=1, keepdims=True) * s <= most * most * SAFE
    return np.where(within, rho, np.trunc(direction * shorter))


@np.errstate(all="ignore")
def bends(sums: "GradientSums", w: Floats, largest: float, window: float) -> int:
    """Σ trunc(2²⁰·ω·curvature/largest)."""
    total, done = 0, 0
    for q, y in sums.data.quantised(BLOCK):
        X = (q if isinstance(q, np.ndarray) else q.toarray()) * sums.data.clip.grid
        places = np.arange(done, done := done + y.size)
        weights = 1.0 if sums.weights is None else sums.weights[places]
        share = np.clip(curvatures(sums, w, X, y, window) * weights / largest, 0.0, 1.0)
        total += int(np.trunc(share * 2.0**20).sum())
    return total


@np.errstate(all="ignore")
def curvatures(sums: "GradientSums", w: Floats, X: Floats, y: Floats, window: float) -> Floats:
    """Of each row: of softmax (1 − Σp²)/K, else the mean over a window; 0 where nothing can be read."""
    if isinstance(sums.loss, Multinomial):
        known = (y >= 0) & (y < sums.outputs) & (y == np.trunc(y))
        p = sums.loss.residual(sums.loss.margins(w, X), np.full(y.size, -1.0))
        curved = np.maximum(0.0, 1.0 - (p * p).sum(axis=1)) / sums.outputs
    else:
        assert isinstance(sums.loss, Linear)  # noqa: S101
        known, z = known_labels(sums.loss, y), margins(w, X)
        curved = (sums.loss.slope(z + window, y) - sums.loss.slope(z - window, y)) / (2.0 * window)
    return np.where(known, curved, 0.0)


@np.errstate(all="ignore")
def sum_of_points(sums: "GradientSums", w: Floats, chosen: Ints | None = None) -> Ints:
    """Σ of subgradients, each quantised as a vector."""
    total, done = np.zeros(w.shape, dtype=np.int64), 0
    for q, y in sums.data.quantised(CHUNK):
        places = np.arange(done, done := done + y.size)
        kept = known_labels(sums.loss, y)
        if chosen is not None:
            kept = kept & np.isin(places, chosen)
        rows = (q if isinstance(q, np.ndarray) else q.toarray())[kept] * sums.data.clip.grid
        total += sums.points.quantise(sums.loss.subgradient(w, rows, y[kept])).sum(axis=0)
    return total


def open_rows(sums: "GradientSums", chosen: Ints | None = None) -> Iterator[tuple[Any, Floats]]:
    """Rows as they are, unclipped, and labels; those that cannot be read are left out."""
    parts: Iterator[tuple[Any, Any]] = ((part, slice(None)) for part, _ in sums.data.parts(CHUNK))
    if chosen is not None:
        parts = ((part, order) for part, order, _ in sums.data.chosen(chosen))
    for part, order in parts:
        X = part.X[order].astype(np.float64) if isinstance(part, Dense) else part.csr()[order]
        finite = np.isfinite(X).all(axis=1) if isinstance(part, Dense) else np.isfinite(X.sum(axis=1))
        y = part.y[0][order]
        kept = finite & known_labels(sums.loss, y)
        yield X[kept], y[kept]


@np.errstate(all="ignore")
def open_sum(sums: "GradientSums", w: Floats, chosen: Ints | None = None) -> Floats:
    """The sum of subgradients in floats, of rows as they are, clipped to `bound`: for ε = ∞."""
    total = np.zeros(w.shape)
    for X, y in open_rows(sums, chosen):
        if not sums.factored:
            g = sums.loss.subgradient(w, X if isinstance(X, np.ndarray) else X.toarray(), y)
            size = np.linalg.norm(g, axis=1, keepdims=True)
            total += (g * np.minimum(1.0, sums.bound / np.maximum(size, 1e-300))).sum(axis=0)
            continue
        z = np.asarray(X @ np.atleast_2d(w).T)
        r = sums.loss.residual(z, y) if isinstance(sums.loss, Multinomial) else _slopes(sums.loss, z, y)
        squares = X.multiply(X) if hasattr(X, "multiply") else X * X
        size = np.sqrt(np.asarray(squares.sum(axis=1)).ravel() * (r * r).sum(axis=1))
        r = r * np.minimum(1.0, sums.bound / np.maximum(size, 1e-300))[:, np.newaxis]
        total += np.asarray(X.T @ r).T.reshape(w.shape)
    return total


def _slopes(loss: Loss, z: Floats, y: Floats) -> Floats:
    assert isinstance(loss, Linear)  # noqa: S101 (`factored` says so)
    return loss.slope(z[:, 0], y)[:, np.newaxis]
