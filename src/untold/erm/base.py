"""What every method shares: the rows a curator holds, what was asked for, and what a fit releases.

A row may be anything: it is clipped to the public norm bound R in exact integers (`L2Clip`), NaN counts as 0,
and a label the loss does not know makes the row count as nothing. So neither shape nor time nor exception
tells of a row. Letters: n rows of length d, ‖x‖ ≤ R, losses ℓ that are L-Lipschitz and β-smooth per row, λ a
regularisation.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from untold.convex.clipping import L2Clip
from untold.core import Floats, Ints, Relation, Unit
from untold.errors import DataError, between, one_of, positive, whole
from untold.kernels.rows import Dense, Reader, Rows, Sparse, checked_rows
from untold.private import noise
from untold.private.claim import Claim, Common
from untold.private.gaussian_profile import gdp_mu
from untold.private.noisy_sums import weight

__all__ = ["UP", "Asked", "Curated", "Fit", "Quantised", "curated", "streamed"]

CHUNK = 1 << 14  # rows that are looked at together
UP = 1 + 2.0**-40
"""Covers the roundings of a formula of public numbers."""

Shards = Callable[[], Iterator[tuple[Any, object]]]
Progress = Callable[[int, int], None]


class Fit(NamedTuple):
    """What is released: weights, what that guarantees, and public facts about how it was done."""

    weights: Floats
    guarantee: Claim
    report: dict[str, float | str]


class Quantised(NamedTuple):
    """Clipped rows in steps of the clip's grid, whole numbers in floats: a matrix, or SciPy's CSR."""

    q: Any
    y: Floats


@dataclass(frozen=True)
class Curated:
    """Rows and labels in the curator's hands; ``row_norm`` R is public, and so is n under replace-one.

    ``shards`` gives them anew for each pass, a part at a time; no more than a part is held by any method that
    does not need a solver.
    """

    shards: Callable[[], Iterator[Rows]]
    count: int
    dim: int
    row_norm: float = 1.0
    progress: Progress | None = None

    @cached_property
    def clip(self) -> L2Clip:
        """What bounds a row."""
        return L2Clip(self.row_norm)

    def parts(self, size: int = CHUNK) -> Iterator[tuple[Dense | Sparse, slice]]:
        """Rows in order, a few at a time, and their places: a pass."""
        done = 0
        for rows in self.shards():
            reader = Reader(rows)
            for start in range(0, rows.count, size):
                stop = min(start + size, rows.count)
                yield rows.part(start, stop), slice(done + start, done + stop)
                reader.forget(stop)
                self._told(done + stop)
            done += rows.count

    def chosen(self, places: Ints) -> Iterator[tuple[Dense | Sparse, Ints, Ints]]:
        """Shards whole, which of their rows are at the chosen places (rising), and those places."""
        done = 0
        for rows in self.shards():
            first, last = np.searchsorted(places, [done, done + rows.count])
            own = places[first:last]
            if own.size:
                yield rows.whole, own - done, own
            done += rows.count
            self._told(done)

    def _told(self, done: int) -> None:
        if self.progress:
            self.progress(done, self.count)

    def quantised(self, size: int = CHUNK) -> Iterator[Quantised]:
        """A pass over the clipped rows, in steps of the clip: ‖q‖ ≤ K exactly."""
        for part, _ in self.parts(size):
            if isinstance(part, Dense):
                rows = np.ascontiguousarray(part.X, dtype=np.float64)
                yield Quantised(self.clip.fit(rows).astype(np.float64), part.y[0])
            else:
                yield Quantised(_quantised_csr(self.clip, part), part.y[0])

    def rows(self) -> tuple[Floats, Floats]:
        """All clipped rows at once, for methods that need a solver."""
        X, y = np.empty((self.count, self.dim)), np.empty(self.count)
        done = 0
        for q, labels in self.quantised():
            stop = done + labels.size
            X[done:stop] = np.multiply(q if isinstance(q, np.ndarray) else q.toarray(), self.clip.grid)
            y[done:stop], done = labels, stop
        return X, y


def _quantised_csr(clip: L2Clip, part: Sparse) -> Any:
    rows = part.csr()
    rows.data = clip.fit_entries(rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64))
    return rows.astype(np.float64)


def _checked(X: Any, y: object, dim: int | None, of: str) -> Rows:
    rows = checked_rows(X, y, 1, dim, of=of)
    if rows.y.dtype == np.bool_:
        raise DataError(f"`y` of {of} must be numbers. Got booleans.", hint="np.where(y, 1, -1).")
    return rows


def curated(X: Any, y: object, row_norm: float = 1.0, *, progress: Progress | None = None) -> Curated:
    """Rows in memory or mapped from a file, dense or CSR, and labels; refused where shapes do not fit.

    `progress` is called with the rows read and the rows in all, anew in each pass.

    >>> curated([[3.0, 4.0]], [1.0]).rows()[0].round(6).tolist()
    [[0.599999, 0.799999]]
    """
    positive("row_norm", row_norm, of="curated")
    rows = _checked(X, y, None, "curated")
    return Curated(lambda: iter((rows,)), rows.count, rows.dim, row_norm, progress)


def streamed(
    shards: Sequence[tuple[Any, object]] | Shards,
    row_norm: float = 1.0,
    *,
    progress: Progress | None = None,
) -> Curated:
    """Rows that come in shards (X, y), each as `curated` takes it; they are counted once.

    `shards` is a sequence, or a function that begins anew for each pass. A pass holds one at a time.

    >>> data = streamed([([[1.0, 0.0]], [1.0]), ([[0.0, 1.0], [1.0, 0.0]], [1.0, -1.0])])
    >>> data.count, data.dim
    (3, 2)
    """
    positive("row_norm", row_norm, of="streamed")
    if iter(shards) is shards if hasattr(shards, "__iter__") else not callable(shards):
        hint = "give a list of shards, or a function that returns a new iterator for each pass."
        raise DataError("`shards` of streamed must be readable more than once.", hint=hint)

    def begun(dim: int | None) -> Iterator[Rows]:
        for shard in shards() if callable(shards) else shards:
            try:
                X, y = shard
            except (TypeError, ValueError):
                raise DataError("`shards` of streamed must be pairs of rows and labels.") from None
            yield _checked(X, y, dim, "streamed")

    count, dim = 0, None
    for rows in begun(None):
        count, dim = count + rows.count, rows.dim if dim is None else dim
        if rows.dim != dim:
            raise DataError(f"`shards` of streamed must have {dim} columns each. Got {rows.dim}.")
    if dim is None:
        raise DataError("`shards` of streamed must be at least one. Got none.")
    return Curated(lambda: begun(dim), count, dim, row_norm, progress)


@dataclass(frozen=True)
class Asked:
    """The settings all methods share, checked; ``ridge`` is λ."""

    of: str
    epsilon: float
    delta: float
    relation: Relation
    source: noise.Source
    ridge: float = 0.0

    @classmethod
    def checked(
        cls, of: str, epsilon: float, delta: float, relation: Relation, seed: int | None,
        *, ridge: float = 0.0, pure: bool = False, least: float = 0.0,
    ) -> "Asked":  # fmt: skip
        """The settings, or ParameterError; δ = 0 is allowed where `pure`, else δ > `least`."""
        hint = "" if pure else "Gaussian noise has no δ = 0."
        return cls(
            of,
            positive("epsilon", epsilon, of=of, infinite=True),
            between("delta", delta, least, 1.0, of=of, ends="[)" if pure else "()", hint=hint),
            Relation(one_of("relation", relation, list(Relation), of=of)),
            None if seed is None else noise.seeded(whole("seed", seed, of=of, least=0)),
            ridge,
        )

    @cached_property
    def mu(self) -> float:
        """The largest μ that is (ε, δ)-private."""
        return gdp_mu(self.epsilon, self.delta) if self.epsilon < math.inf else math.inf

    def reach(self, size: float) -> float:
        """How far a sum of vectors of at most that norm moves between neighbours."""
        return weight(self.relation) * size * UP

    def common(self, citation: str = "", released: str = "weights") -> Common:
        """What the guarantees of all methods say."""
        return Common(relation=self.relation, unit=Unit.ROW, released=released, citation=citation)

    def stamped(self, claim: Claim) -> Claim:
        """The claim, marked where the noise came from a seed."""
        return claim if self.source is None else claim.seed_stamped()
