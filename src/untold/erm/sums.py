"""What a curator computes: the exact sum of its rows' clipped subgradients, in whole steps.

    Σᵢ ρᵢ⊗qᵢ,   q = clip(x) in steps of a grid,   ρ = trunc(ω·φ′(⟨q, w⟩, y)/unit),   ‖ρ‖·‖q‖ ≤ M

A subgradient of a linear loss is a slope times its row, of the multinomial loss a residual times it, and so
are its whole steps: the norm of the product is the product of the norms, exactly, and no gradient of a single
row is ever written down. The sum moves by at most M when a row comes or goes and by 2M when one is replaced
(``proofs/centraldescent.md``), and is the same whatever the order and the chunks of the rows. Losses of
points are not of this form: their subgradients are quantised as vectors. Nothing is random here.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from untold.convex.clipping import L2Clip
from untold.convex.losses_of_classes import Multinomial
from untold.convex.rows import Linear
from untold.core import Floats, Ints, Loss
from untold.erm import readable
from untold.erm.base import CHUNK, Curated
from untold.erm.exact import DROPPED, Exact
from untold.kernels.rows import Dense, Sparse
from untold.kernels.sums import Task, Workspace, add_bends, add_matrix, add_rows, residual_of

__all__ = ["GradientSums", "below"]

NONE = np.empty(0)
ALL = np.empty(0, np.int64)
WINDOW = 0.5  # half of the margins over which a curvature is taken


def below(x: float, bits: int) -> float:
    """2^(⌊log₂ x⌋ − bits).

    >>> below(5.0, 3)
    0.5
    """
    return math.ldexp(1.0, math.frexp(x)[1] - 1 - bits)


@dataclass(frozen=True)
class GradientSums:
    """The sum over all rows or over chosen ones, of subgradients clipped to norm `bound`.

    ω are `weights` in [0, 1], one a row; residuals of classes are shortened to `steepest` beforehand.

    >>> from untold.convex.losses import Hinge
    >>> from untold.erm.base import curated
    >>> data = curated([[0.5, 0.0], [0.0, 0.25]], [1.0, -1.0])
    >>> sums = GradientSums(data, Hinge(), bound=1.0)
    >>> (sums(np.zeros(2)) * sums.grid).tolist()
    [-0.5, 0.25]
    """

    data: Curated
    loss: Loss
    bound: float
    weights: Floats | None = None
    steepest: float = math.inf

    @property
    def outputs(self) -> int:
        """K, of how many vectors a point is made."""
        return self.loss.classes if isinstance(self.loss, Multinomial) else 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a point."""
        many = isinstance(self.loss, Multinomial)
        return (self.outputs, self.data.dim) if many else (self.data.dim,)

    @property
    def factored(self) -> bool:
        """Whether a subgradient is ρ⊗q."""
        return isinstance(self.loss, Linear | Multinomial)

    @cached_property
    def unit(self) -> float:
        """The step of ρ: a power of two, ‖ρ‖ ≤ 2²¹ for rows of norm R."""
        return below(self.bound / self.data.row_norm, DROPPED)

    @cached_property
    def most(self) -> float:
        """M, in steps of ρ times steps of q."""
        return float(math.floor(self.bound / (self.unit * self.data.clip.grid)))

    @cached_property
    def points(self) -> L2Clip:
        """What clips a subgradient that is not factored."""
        return L2Clip(self.bound)

    @cached_property
    def grid(self) -> float:
        """One step of the sum that is released."""
        return self.unit * self.data.clip.grid * 2.0**DROPPED if self.factored else self.points.grid

    @cached_property
    def steps(self) -> float:
        """How far one row moves that sum, in its steps: M/2²⁰, and what the floors add."""
        size = math.prod(self.shape)
        return self.most / 2.0**DROPPED + math.sqrt(size) if self.factored else float(self.points.steps)

    def __call__(self, w: Floats, chosen: Ints | None = None) -> Ints:
        """⌊Σρ⊗q/2²⁰⌋."""
        return self.exact(w, chosen).floor() if self.factored else readable.sum_of_points(self, w, chosen)

    def exact(self, w: Floats, chosen: Ints | None = None) -> Exact:
        """Σρ⊗q."""
        if residual_of(self.loss) is None:
            return readable.exact_sum(self, w, chosen)
        space, task, W = self.begun(w, self.unit)
        for part, order, places in self._read(chosen):
            weights = NONE if self.weights is None else self.weights[places]
            add = add_matrix if self.outputs == 1 and isinstance(part, Dense) else add_rows
            add(part, order, task, W, weights, space)
        return Exact(space.high.reshape(w.shape), space.low.reshape(w.shape))

    def _read(self, chosen: Ints | None) -> Iterator[tuple[Dense | Sparse, Ints, Any]]:
        """Rows, which of them, and their places."""
        if chosen is not None:
            return self.data.chosen(chosen)
        return ((part, ALL, places) for part, places in self.data.parts(CHUNK))

    def bends(self, w: Floats, largest: float) -> int:
        """Σ trunc(2²⁰·ω·curvature/largest), at most 2²⁰ a row: how curved the sum is."""
        if residual_of(self.loss) is None:
            return readable.bends(self, w, largest, WINDOW)
        space, task, W = self.begun(w, largest)
        for part, places in self.data.parts(CHUNK):
            weights = NONE if self.weights is None else self.weights[places]
            add_bends(part, task, W, weights, space)
        return int(space.bends[0])

    def begun(self, w: Floats, unit: float) -> tuple[Workspace, Task, Floats]:
        """What a compiled pass works with, ρ in that unit."""
        clip, loss = self.data.clip, residual_of(self.loss)
        W = np.ascontiguousarray(w.reshape(self.outputs, self.data.dim), dtype=np.float64)
        task = Task(loss, clip.grid, clip.steps, unit, self.most, WINDOW, self.steepest)  # type: ignore[arg-type]
        return Workspace.of(self.outputs, self.data.dim), task, W
