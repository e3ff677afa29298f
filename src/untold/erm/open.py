"""The minimiser itself, of rows as they are: what the methods that ask for no steps do at ε = ∞.

    argmin Σℓ(w; xᵢ, yᵢ) + (λ/2)‖w‖²

By L-BFGS to the last digits that it finds, and Newton's steps behind it where d² numbers fit. Not private.
"""

import math

import numpy as np

from untold.convex.rows import Linear
from untold.core import Floats, Loss
from untold.erm.base import Curated
from untold.erm.readable import open_rows, open_sum
from untold.erm.sums import GradientSums

__all__ = ["minimiser"]

WIDEST = 2000
POLISHING = 50


def _value(sums: GradientSums, w: Floats) -> float:
    total = 0.0
    for X, y in open_rows(sums):
        rows = X if isinstance(X, np.ndarray) else X.toarray()
        total += float(sums.loss.value(w, rows, y).sum())
    return total


def _hessian(sums: GradientSums, w: Floats, ridge: float) -> Floats:
    """Σφ″xxᵀ + λI, φ″ by differences of φ′."""
    loss, H = sums.loss, ridge * np.eye(w.size)
    assert isinstance(loss, Linear)  # noqa: S101 (`minimiser` asks for no other)
    for X, y in open_rows(sums):
        z = np.asarray(X @ w)
        h = 2.0**-17 * (1 + np.abs(z))
        curved = np.maximum(0.0, (loss.slope(z + h, y) - loss.slope(z - h, y)) / (2 * h))
        rows = X if isinstance(X, np.ndarray) else X.toarray()
        H += rows.T @ (rows * curved[:, np.newaxis])
    return H


def minimiser(data: Curated, loss: Loss, ridge: float = 0.0) -> Floats:
    """w, within rounding where the minimum is one point; of separable rows a point far out.

    >>> from untold.convex.losses import Logistic
    >>> from untold.erm.base import curated
    >>> minimiser(curated(np.ones((4, 1)), [1, 1, 1, -1.0]), Logistic()).round(6).tolist()
    [1.098612]
    """
    from scipy.optimize import minimize

    sums = GradientSums(data, loss, math.inf)
    n = max(1, data.count)

    def objective(flat: Floats) -> tuple[float, Floats]:
        w = flat.reshape(sums.shape)
        value = _value(sums, w) + ridge / 2 * float(flat @ flat)
        return value / n, (open_sum(sums, w).ravel() + ridge * flat) / n

    options = {"maxiter": 2000, "maxfun": 4000, "ftol": 0.0, "gtol": 1e-10, "maxcor": 20}
    flat = minimize(
        objective, np.zeros(math.prod(sums.shape)), jac=True, method="L-BFGS-B", options=options
    ).x
    if isinstance(loss, Linear) and math.isfinite(loss.curvature) and data.dim <= WIDEST:
        flat = _polished(sums, flat, ridge)
    return np.asarray(flat.reshape(sums.shape))


def _polished(sums: GradientSums, w: Floats, ridge: float) -> Floats:
    """Newton's steps while the gradient shrinks."""
    g = open_sum(sums, w) + ridge * w
    for _ in range(POLISHING):
        step = np.linalg.lstsq(_hessian(sums, w, ridge), g)[0]
        ahead = w - step
        g_ahead = open_sum(sums, ahead) + ridge * ahead
        if not np.linalg.norm(g_ahead) < np.linalg.norm(g):
            break
        w, g = ahead, g_ahead
    return w
