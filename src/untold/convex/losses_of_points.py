"""Losses of points: how far w lies from each row, with no labels.

::

    GeometricMedian   ‖w − x‖₂        Mean   ‖w − x‖₂²

Their sums over rows are least at the geometric median and at the mean. Both constants are free of
the rows' norm. Letters: ``w`` a point, ``X`` rows x.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from untold.convex.rows import ByRow, Labels, saturate, scaled
from untold.core import Floats

__all__ = ["GeometricMedian", "Mean"]


@dataclass(frozen=True)
class GeometricMedian(ByRow):
    """The distance from a row; `y` is ignored and may be left out.

    ::

        ℓ(w) = ‖w − x‖₂        ∂ℓ ∋ (w − x)/‖w − x‖₂

    Lipschitz 1, not smooth.

    Edge case:
        At w = x the subgradient is 0. It has norm 1 however small the difference is.

    >>> GeometricMedian().value([3.0, 4.0], X=[[0, 0], [3, 4]]).tolist()
    [5.0, 0.0]
    >>> GeometricMedian().subgradient([3.0, 4.0], X=[[0, 0], [3, 4]]).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """

    labels: ClassVar[Labels] = "none"

    def lipschitz(self, row_norm: float) -> float:  # noqa: ARG002 - holds for every row
        """1."""
        return 1.0

    def smoothness(self, row_norm: float) -> float:  # noqa: ARG002 - holds for every row
        """inf: the subgradient turns around at w = x."""
        return math.inf

    def _values(self, w: Floats, X: Floats, y: Floats) -> Floats:  # noqa: ARG002 - no labels
        difference, exponents = scaled(saturate(w - X))
        values: Floats = np.ldexp(np.sqrt((difference**2).sum(axis=-1)), exponents)
        return values

    def _subgradients(self, w: Floats, X: Floats, y: Floats) -> Floats:  # noqa: ARG002 - no labels
        difference, _ = scaled(saturate(w - X))
        norms = np.sqrt((difference**2).sum(axis=-1, keepdims=True))
        return difference / np.where(norms > 0.0, norms, 1.0)


@dataclass(frozen=True)
class Mean(ByRow):
    """The squared distance from a row; `y` is ignored and may be left out.

    ::

        ℓ(w) = ‖w − x‖₂²        ∇ℓ = 2(w − x)

    Lipschitz inf, smoothness 2.

    Edge case:
        From ‖w − x‖₂ ≈ 1.3e154 on the value is the largest float.

    >>> Mean().value([3.0, 4.0], X=[[0, 0], [3, 4]]).tolist()
    [25.0, 0.0]
    """

    labels: ClassVar[Labels] = "none"

    def lipschitz(self, row_norm: float) -> float:  # noqa: ARG002 - holds for every row
        """Inf: w may lie anywhere."""
        return math.inf

    def smoothness(self, row_norm: float) -> float:  # noqa: ARG002 - holds for every row
        """2."""
        return 2.0

    def _values(self, w: Floats, X: Floats, y: Floats) -> Floats:  # noqa: ARG002 - no labels
        values: Floats = ((w - X) ** 2).sum(axis=-1)
        return values

    def _subgradients(self, w: Floats, X: Floats, y: Floats) -> Floats:  # noqa: ARG002 - no labels
        return 2.0 * (w - X)
