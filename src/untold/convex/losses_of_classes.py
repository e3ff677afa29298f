"""Losses of classes: one weight vector a class, w of shape (K, d), and labels 0, 1, …, K − 1.

Letters: ``w`` a point, ``X`` rows x, ``y`` labels, ``z`` the K margins of a row, ``p`` their softmax,
``R`` a bound on ‖x‖₂.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from untold.convex.rows import ByRow, Labels, margins
from untold.convex.softmax import softmax_residuals
from untold.core import Floats
from untold.errors import positive, whole

__all__ = ["Multinomial"]


@dataclass(frozen=True)
class Multinomial(ByRow):
    """The negative log-likelihood of one of K = `classes` classes under softmax; w has shape (K, d).

    ::

        ℓ(w) = ln Σₖ e^{zₖ} − z_y        zₖ = ⟨x, wₖ⟩        ∂ℓ/∂wₖ = (pₖ − 1[k = y])·x        p = softmax(z)

    Lipschitz √2·R in the Frobenius norm: ‖p − e_y‖₂² = Σ_{k≠y} pₖ² + (1 − p_y)² ≤ 2(1 − p_y)², as the other
    pₖ add up to 1 − p_y. Smoothness R²/2: the Hessian is (diag p − ppᵀ) ⊗ xxᵀ, and by Gershgorin the first
    factor has norm ≤ max pₖ(1 − pₖ) + pₖ Σ_{j≠k} pⱼ = 2pₖ(1 − pₖ) ≤ ½. Böhning (1992), Multinomial logistic
    regression algorithm.

    Edge case:
        A label that is no class counts as z_y = 0: still convex, within the same constants.

    >>> Multinomial(classes=3).subgradient([[0.0], [0.0], [0.0]], X=[3.0], y=0).round(3).tolist()
    [[-2.0], [1.0], [1.0]]
    """

    classes: int

    labels: ClassVar[Labels] = "classes"

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", whole("classes", self.classes, of="Multinomial", least=2))

    @property
    def _stack(self) -> tuple[int, ...]:
        return (self.classes,)

    def lipschitz(self, row_norm: float) -> float:
        """√2·R."""
        return math.sqrt(2.0) * positive("row_norm", row_norm, of="Multinomial", infinite=True)

    def smoothness(self, row_norm: float) -> float:
        """R²/2."""
        R = positive("row_norm", row_norm, of="Multinomial", infinite=True)
        return 0.5 * R * R

    def _values(self, w: Floats, X: Floats, y: Floats) -> Floats:
        z = self.margins(w, X)
        own = (z * self._one_hot(y)).sum(axis=-1, keepdims=True)
        values: Floats = np.logaddexp.reduce(z - own, axis=-1)
        return values

    def _subgradients(self, w: Floats, X: Floats, y: Floats) -> Floats:
        residual = self.residual(self.margins(w, X), y)
        return residual[:, :, np.newaxis] * X[:, np.newaxis, :]

    def residual(self, z: Floats, y: Floats) -> Floats:
        """p − e_y of each row of margins, (n, K)."""
        residual = np.empty(z.shape)
        softmax_residuals(z, y, residual)
        return residual

    def margins(self, w: Floats, X: Floats) -> Floats:
        """The K margins of each row, (n, K)."""
        return np.ascontiguousarray(np.stack([margins(wk, X) for wk in w], axis=-1))

    def _one_hot(self, y: Floats) -> Floats:
        own: Floats = (y[:, np.newaxis] == np.arange(self.classes)).astype(np.float64)
        return own
