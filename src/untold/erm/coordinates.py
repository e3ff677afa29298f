"""Coordinates in which a curator's rows are round, found by looking at their second moment through noise.

    M = Σuuᵀ/n + noise,   u = Ax in the present coordinates,   A ← (M₊ + floor·I)^{−½}·A,   floor ≥ R
    R = s√(2d), s the noise of a diagonal entry;   seen: eigenvalues v > R, once ℓ = (v + √(v² − R²))/2

R is where the eigenvalues of noise alone end, and ℓ what an eigenvalue v was before noise moved it (Péché
2006, "The largest eigenvalue of small rank perturbations of Hermitian random matrices"). What is not seen
shares what is left of the trace. It may be looked at again, at rows of that subspace alone, which are short
there: the noise is less by as much. Where d² is too much, columns are scaled by themselves.

A is kept to 22 bits, so that it carries exact sums of rows exactly into the new coordinates (`carried`).
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from untold.convex.clipping import L2Clip
from untold.core import Floats, Relation
from untold.erm.base import UP, Curated
from untold.erm.exact import DROPPED, Exact
from untold.erm.moments import diagonal, noisy_diagonal, noisy_moment, second_moment
from untold.erm.sums import below
from untold.private import noise

__all__ = ["Coordinates", "carried", "first_look", "lengths", "look_at_columns", "second_look"]

BITS = 22
LOW = (1 << DROPPED) - 1
ROOM = 1.5  # rows of the subspace are clipped at this many times their root mean square
LEAST_FLOOR = 1 / 3  # of a second look: no direction is stretched further, lest a few long rows decide
ROWS = 1 << 14


class Coordinates(NamedTuple):
    """u = Ax, the seen directions first; A is a vector where columns are scaled by themselves.

    `seen` of them carry Σ E uⱼ² = `share`; what the others carry is `left`, by what was released.
    """

    A: Floats
    seen: int
    share: float
    left: float

    @property
    def dim(self) -> int:
        """d."""
        return len(self.A)

    def of(self, rows: Any) -> Any:
        """New coordinates of rows; sparse ones stay sparse where columns are scaled."""
        if self.A.ndim > 1:
            return np.asarray(rows @ self.A.T)
        scaled: Any = rows.multiply(self.A).tocsr() if hasattr(rows, "multiply") else rows * self.A
        return scaled

    def back(self, w: Floats) -> Floats:
        """The point in the old coordinates: ⟨w, Ax⟩ = ⟨Aᵀw, x⟩."""
        return w * self.A if self.A.ndim == 1 else w @ self.A


def rounded(A: Floats) -> Floats:
    """A to 22 bits of its largest entry.

    >>> rounded(np.array([[1.0, 2.0**-30]])).tolist()
    [[1.0, 0.0]]
    """
    step = below(max(float(np.abs(A).max(initial=0.0)), 1e-200), BITS - 1)
    return np.asarray(np.rint(A / step) * step)


def _opened(E: Floats, R: float, floor: float) -> tuple[Floats, int, float, float]:
    """(M₊ + floor·I)^{−½} in the eigenbasis, seen first; how many, their share and what is left."""
    v, V = np.linalg.eigh(E)
    order = np.argsort(-v)
    v, V = v[order], V[:, order]
    seen = int((v > R).sum())
    ell = (v[:seen] + np.sqrt(v[:seen] ** 2 - R * R)) / 2
    stretch = 1 / np.sqrt(np.maximum(v, 0.0) + floor)
    rest = max(float(np.trace(E)) - float(ell.sum()), 0.0)
    left = rest * float((stretch[seen:] ** 2).mean()) if seen < v.size else 0.0
    return (V * stretch).T, seen, float((ell * stretch[:seen] ** 2).sum()), left


def first_look(data: Curated, n: float, mu: float, relation: Relation, source: noise.Source) -> Coordinates:
    """Round coordinates from a μ-GDP look at Σxxᵀ.

    >>> from untold.erm.base import curated
    >>> rows = np.diag([1.0, 0.5]).repeat(500, axis=0)
    >>> found = first_look(curated(rows, np.zeros(1000)), 1000.0, math.inf, Relation.REPLACE_ONE, None)
    >>> found.seen, round(found.share, 3)
    (2, 2.0)
    """
    moment = noisy_moment(
        second_moment(lambda size: (q for q, _ in data.quantised(size)), data.dim),
        data.clip.steps, mu, relation, source,
    )  # fmt: skip
    unit = 2.0**DROPPED * data.clip.grid**2 / n
    R = moment.noise * unit * math.sqrt(2 * data.dim)
    A, seen, share, left = _opened(moment.matrix * unit, R, max(R, 1e-12 * data.row_norm**2))
    return Coordinates(rounded(A), seen, share, left)


def radius_ahead(here: Coordinates, n: float, mu: float, relation: Relation) -> float:
    """R of a second look, beside what it would look at, from public numbers: how well it would see."""
    unseen = here.dim - here.seen
    rows = math.sqrt(2.0) if relation == Relation.REPLACE_ONE else 1.0
    return rows * ROOM**2 * here.left / (mu * n) * math.sqrt(2 * unseen)


def second_look(
    data: Curated, here: Coordinates, n: float, mu: float, relation: Relation, source: noise.Source
) -> Coordinates:
    """The same for what the first look did not see, with μ of its own."""
    B = here.A[here.seen :]
    clip = L2Clip(ROOM * math.sqrt(here.left))

    def blocks(size: int) -> Iterator[Floats]:
        for q, _ in data.quantised(size):
            yield clip.fit(np.ascontiguousarray(q @ B.T) * data.clip.grid).astype(np.float64)

    moment = noisy_moment(second_moment(blocks, len(B)), clip.steps, mu, relation, source)
    unit = 2.0**DROPPED * clip.grid**2 / n
    R = moment.noise * unit * math.sqrt(2 * len(B))
    opened, seen, share, left = _opened(moment.matrix * unit, R, max(3 * R, LEAST_FLOOR))
    A = np.concatenate([here.A[: here.seen], opened @ B])
    return Coordinates(rounded(A), here.seen + seen, here.share + share, left)


def look_at_columns(
    data: Curated, n: float, mu: float, relation: Relation, source: noise.Source
) -> Coordinates:
    """Columns scaled by themselves, from a μ-GDP look at Σxⱼ²; nothing is sorted, `seen` counts.

    >>> from untold.erm.base import curated
    >>> rows = np.diag([1.0, 0.5]).repeat(500, axis=0)
    >>> found = look_at_columns(curated(rows, np.zeros(1000)), 1000.0, math.inf, Relation.REPLACE_ONE, None)
    >>> found.A.round(3).tolist()
    [1.414, 2.828]
    """
    moment = noisy_diagonal(
        diagonal(lambda size: (q for q, _ in data.quantised(size)), data.dim),
        data.clip.steps, mu, relation, source,
    )  # fmt: skip
    unit = 2.0**DROPPED * data.clip.grid**2 / n
    R = moment.noise * unit * math.sqrt(2 * math.log(max(3, data.dim)))
    h, floor = moment.matrix * unit, max(2 * R, 1e-12 * data.row_norm**2)
    stretch = 1 / np.sqrt(np.maximum(h, 0.0) + floor)
    seen, energy = h > R, h * stretch**2
    left = max(0.0, float(h[~seen].sum())) * float((stretch[~seen] ** 2).mean()) if (~seen).any() else 0.0
    return Coordinates(rounded(stretch), int(seen.sum()), float(energy[seen].sum()), left)


def lengths(data: Curated, here: Coordinates) -> Floats:
    """Upper bounds of ‖Ax‖ for every row: floats' own, and more than they may err by."""
    error = (data.dim + 8) * 2.0**-52 * float(np.linalg.norm(here.A)) * data.row_norm
    found, done = np.empty(data.count), 0
    for q, _ in data.quantised(ROWS):
        u = here.of(q)
        square = (u.multiply(u) if hasattr(u, "multiply") else u * u).sum(axis=1)
        found[done : (done := done + u.shape[0])] = np.sqrt(np.asarray(square).ravel()) * data.clip.grid
    return (found + error) * (UP + data.dim * 2.0**-52)


def carried(here: Coordinates, S: Exact) -> Floats:
    """A·S for the rows of S, (K, d), within 2⁻⁵¹ of what n rows can add up to.

    Entries of A are whole numbers below 2²² of a step, and limbs are below 2²⁰, so every product of a limb is
    exact, and so is a sum of d ≤ 2¹¹ of them; only putting the limbs together rounds.

    >>> here = Coordinates(np.array([[0.5, 0.0], [1.0, 1.0]]), 2, 1.0, 0.0)
    >>> carried(here, Exact(np.array([[2**20, 0]]), np.array([[2, 3]]))).tolist() == [[2**39 + 1, 2**40 + 5]]
    True
    """
    total = np.zeros(S.high.shape)
    for limb in (S.high >> 2 * DROPPED, S.high >> DROPPED & LOW, S.high & LOW, S.low):
        total = total * 2.0**DROPPED + here.of(limb.astype(np.float64))
    return total
