"""What every loss shares: rows are computed alone or in a batch with the same bits, and never overflow.

A provider computes one row, a curator many; both must arrive at the same subgradient, or a guarantee
proved for one would be tested on the other. So each row is summed by itself, along its own contiguous
entries, in the fixed order of `lanes`. (A BLAS matrix product does not promise that.)

Finite input gives finite output: what would overflow saturates at the largest float, and no warning is
raised, since a warning about one row would tell of that row. Labels are never checked, for the same reason.

Letters: ``w`` a point, ``X`` a matrix of n rows of length d, ``y`` their labels, ``z`` margins ⟨x, w⟩.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untold.compiled import bitwise
from untold.convex.lanes import inner
from untold.core import Floats, Loss
from untold.errors import DataError, positive

__all__ = ["ByRow", "Labels", "Linear", "known_labels", "margins", "saturate", "scaled"]

Labels = Literal["signs", "reals", "classes", "none"]

LARGEST = float(np.finfo(np.float64).max)


class ByRow(ABC):
    """A loss written for a batch, and served for one row too, from the same lines of code.

    ``labels`` says what ``y`` holds: "signs" (−1 or +1), "reals", "classes" (0, 1, …) or "none".

    Edge cases:
        No rows at all give an empty answer; one row (1-d ``X``, scalar ``y``) a value of shape ().
        A shape that does not fit raises DataError, which speaks of shapes and never of values.

    >>> from untold.convex.losses import Squared
    >>> Squared().value([1.0, 1.0], X=[[1, 2], [3, 4]], y=[3, 6]).tolist()
    [0.0, 0.5]
    >>> Squared().subgradient([1.0, 1.0], X=[3, 4], y=6).tolist()
    [3.0, 4.0]
    """

    labels: ClassVar[Labels]

    @abstractmethod
    def lipschitz(self, row_norm: float) -> float: ...
    @abstractmethod
    def smoothness(self, row_norm: float) -> float: ...
    @abstractmethod
    def _values(self, w: Floats, X: Floats, y: Floats) -> Floats: ...
    @abstractmethod
    def _subgradients(self, w: Floats, X: Floats, y: Floats) -> Floats: ...

    @property
    def _stack(self) -> tuple[int, ...]:
        """Shape of a point without its last axis: () where w is one vector."""
        return ()

    @np.errstate(all="ignore")
    def value(self, w: ArrayLike, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """The loss of each row: shape (n,), or () for a single row."""
        point, rows, labels = self._checked(w, X, y)
        values = self._values(point, np.atleast_2d(rows), np.atleast_1d(labels))
        return saturate(values).reshape(labels.shape)

    @np.errstate(all="ignore")
    def subgradient(self, w: ArrayLike, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """A subgradient in w of each row: shape (n, *w.shape), or w.shape for a single row."""
        point, rows, labels = self._checked(w, X, y)
        subgradients = self._subgradients(point, np.atleast_2d(rows), np.atleast_1d(labels))
        return saturate(subgradients).reshape(labels.shape + point.shape)

    def _checked(self, w: ArrayLike, X: ArrayLike, y: ArrayLike | None) -> tuple[Floats, Floats, Floats]:
        point, rows = self._floats("w", w), self._floats("X", X)
        if point.ndim != len(self._stack) + 1 or point.shape[:-1] != self._stack:
            axes = "".join(f"{size}, " for size in self._stack)
            raise self._misfit("w", f"of shape ({axes}d)", point)
        if rows.ndim not in {1, 2} or rows.shape[-1] != point.shape[-1]:
            raise self._misfit("X", f"one row of length {point.shape[-1]} or a matrix of such rows", rows)
        if self.labels == "none":
            return point, rows, np.zeros(rows.shape[:-1])
        labels = self._floats("y", y)
        if labels.shape != rows.shape[:-1]:
            raise self._misfit("y", f"one label a row, of shape {rows.shape[:-1]}", labels)
        return point, rows, labels

    def _floats(self, what: str, given: ArrayLike | None) -> Floats:
        try:
            # None alone would be read as NaN, and a forgotten y pass for a label
            return np.asarray("" if given is None else given, dtype=np.float64, order="C")
        except (TypeError, ValueError, OverflowError):
            # from None: NumPy's own message would quote the entry it could not read
            raise DataError(f"`{what}` of {type(self).__name__} must be an array of numbers.") from None

    def _misfit(self, what: str, allowed: str, given: Floats) -> DataError:
        return DataError(f"`{what}` of {type(self).__name__} must be {allowed}. Got shape {given.shape}.")


class Linear(ByRow):
    """φ(⟨x, w⟩, y): a subclass gives φ, φ′ and their two bounds, and is a whole loss.

    Edge case:
        A row of zeros has subgradient zero whatever its slope.

    >>> from untold.convex.losses import Huber
    >>> huber = Huber(delta=2.0)
    >>> huber.steepest, huber.lipschitz(row_norm=3.0), huber.smoothness(row_norm=3.0)
    (2.0, 6.0, 9.0)
    """

    @abstractmethod
    def pointwise(self, z: Floats, y: Floats) -> Floats:
        """φ(z, y)."""

    @abstractmethod
    def slope(self, z: Floats, y: Floats) -> Floats:
        """φ′(z, y), the derivative in z; at a kink the subgradient of least magnitude."""

    @property
    @abstractmethod
    def steepest(self) -> float:
        """The supremum of abs(φ′)."""

    @property
    @abstractmethod
    def curvature(self) -> float:
        """The Lipschitz constant of φ′: the supremum of φ″."""

    def lipschitz(self, row_norm: float) -> float:
        """Bounds ‖subgradient‖₂ given ‖x‖₂ ≤ row_norm."""
        return self.steepest * positive("row_norm", row_norm, of=type(self).__name__, infinite=True)

    def smoothness(self, row_norm: float) -> float:
        """Bounds the change of the gradient per unit change of w given ‖x‖₂ ≤ row_norm."""
        R = positive("row_norm", row_norm, of=type(self).__name__, infinite=True)
        # not curvature·(R·R): inf·0 would be NaN where R² underflows
        return self.curvature * R * R

    def _values(self, w: Floats, X: Floats, y: Floats) -> Floats:
        return self.pointwise(margins(w, X), y)

    def _subgradients(self, w: Floats, X: Floats, y: Floats) -> Floats:
        # saturated first: inf·0 would be NaN
        slope = saturate(self.slope(margins(w, X), y))
        return slope[:, np.newaxis] * X


@bitwise
def _inner_rows(X: Floats, w: Floats, z: Floats) -> None:
    for i in range(z.size):
        z[i] = inner(X[i], w)


@np.errstate(all="ignore")
def margins(w: Floats, X: Floats) -> Floats:
    """⟨x, w⟩ for each row of X (C-contiguous); a sum that overflows on its way is taken again, scaled.

    >>> margins(np.array([1e200, 1.0]), np.array([[1.0, 2.0], [1e200, 3.0]])).tolist()
    [1e+200, 1.7976931348623157e+308]
    """
    z = np.empty(X.shape[0])
    _inner_rows(X, w, z)
    lost = ~np.isfinite(z)
    if lost.any():
        (rows, exponents), (point, exponent) = scaled(X[lost]), scaled(w)
        z[lost] = saturate(np.ldexp((rows * point).sum(axis=-1), exponents + exponent))
    return z


def saturate(values: Floats) -> Floats:
    """±inf becomes the largest float, all else stays; the same array where nothing has to change.

    >>> saturate(np.array([1.0, -np.inf])).tolist()
    [1.0, -1.7976931348623157e+308]
    """
    return values if np.isfinite(values).all() else np.clip(values, -LARGEST, LARGEST)


def scaled(rows: Floats) -> tuple[Floats, np.ndarray[tuple[int, ...], np.dtype[np.int32]]]:
    """Each row times 2⁻ᵉ, its largest entry then in [½, 1), and its e: squares cannot overflow any more.

    >>> rows, exponents = scaled(np.array([[3e200, 4e200]]))
    >>> rows.round(2).tolist(), np.ldexp(rows, exponents).tolist()
    ([[0.49, 0.65]], [[3e+200, 4e+200]])
    """
    exponents = np.frexp(np.abs(rows).max(axis=-1, initial=0.0))[1]
    return np.ldexp(rows, -exponents[..., np.newaxis]), exponents


def known_labels(loss: Loss, y: Floats) -> NDArray[np.bool_]:
    """Which labels are the loss's own: ±1 where it wants signs, all where it wants none, else finite numbers.

    >>> from untold.convex.losses import Hinge
    >>> known_labels(Hinge(), np.array([1.0, 0.0, np.nan])).tolist()
    [True, False, False]
    """
    labels = getattr(loss, "labels", "reals")
    if labels == "none":
        return np.ones(np.shape(y), dtype=bool)
    return np.asarray(np.abs(y) == 1.0 if labels == "signs" else np.isfinite(y))
