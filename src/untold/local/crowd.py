"""A crowd: who randomises how. One randomiser for all, an ε for each, a randomiser for each, or none.

Noise is drawn in chunks for the compiled loop. Chunk c covers rounds c·R … (c+1)·R − 1 of the learner,
whatever run they fall into, and a seeded crowd draws it from a branch of its seed: a seeded run may be
cut anywhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from untold.convex.lanes import square
from untold.core import Floats, Ints, Randomizer
from untold.errors import between, positive, refuse
from untold.kernels.crowd import ADDED, OPEN, Noise, shorten
from untold.local.drawn import Drawn, in_floats
from untold.private import noise
from untold.private.claim import Claim
from untold.private.randomizers.base import GridRandomizer
from untold.private.randomizers.privunitg import PrivUnitG

__all__ = ["Added", "Asked", "Chunk", "Crowd", "Each", "Given", "Open", "crowd_of", "noise_of"]

Each = Callable[[int], Randomizer | None]
Given = Randomizer | Sequence[float] | Floats | Each | None
OPEN_CHUNK = 4096
NO_FLOATS, NO_INTS, NO_WORDS = np.empty((1, 0, 0)), np.empty((1, 0, 0), np.int64), np.empty((1, 0), np.uint64)
NO_LAW = np.empty((1, 0)), np.empty((1, 0), np.int64)


class Chunk(Protocol):
    """The noise of some rows: for the compiled loop, and row by row."""

    def fields(self) -> dict[str, Any]: ...
    def report(self, r: int, v: Floats) -> Floats: ...


class Crowd(Protocol):
    """One model's providers."""

    @property
    def kind(self) -> int | None: ...
    @property
    def bound(self) -> float: ...
    @property
    def lattice(self) -> tuple[float, int]: ...
    @property
    def guarantee(self) -> Claim | None: ...
    def randomizers(self, rows: int) -> list[Randomizer]: ...
    def size(self, dim: int) -> int: ...
    def chunk(self, c: int, rows: range, dim: int) -> Chunk: ...


def shortened(v: Floats, bound: float) -> Floats:
    """v·min(1, bound/‖v‖).

    >>> shortened(np.array([3.0, 4.0]), 1.0)
    array([0.6, 0.8])
    """
    g = v.copy()
    shorten(g, square(g), bound)
    return g


@dataclass(frozen=True)
class Open:
    """Nobody randomises: for comparison. Reports are subgradients, shortened to the bound."""

    bound: float
    kind = OPEN
    lattice = (1.0, 0)
    guarantee = None

    def randomizers(self, rows: int) -> list[Randomizer]:  # noqa: ARG002 (none)
        """None."""
        return []

    def size(self, dim: int) -> int:  # noqa: ARG002 (nothing is drawn)
        """Rows in a chunk."""
        return OPEN_CHUNK

    def chunk(self, c: int, rows: range, dim: int) -> "Open":  # noqa: ARG002 (all are the same)
        """Itself."""
        return self

    def fields(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def report(self, r: int, v: Floats) -> Floats:  # noqa: ARG002 (all are the same)
        """The shortened vector."""
        return shortened(v, self.bound)


@dataclass(frozen=True)
class Added:
    """One randomiser for all, whose noise is drawn beforehand and added."""

    one: GridRandomizer
    kind = ADDED

    @property
    def bound(self) -> float:
        """The randomiser's."""
        return self.one.bound

    @cached_property
    def lattice(self) -> tuple[float, int]:
        """The grid, and K."""
        return self.one.grid, self.one.clip.steps

    @property
    def guarantee(self) -> Claim:
        """The randomiser's."""
        return self.one.guarantee

    def randomizers(self, rows: int) -> list[Randomizer]:  # noqa: ARG002 (one for all)
        """The one."""
        return [self.one]

    def size(self, dim: int) -> int:
        """Rows in a chunk."""
        return noise.draws_at_once(dim)

    def chunk(self, c: int, rows: range, dim: int) -> "_AddedChunk":
        """Draws its noise."""
        added = self.one.added_noise(len(rows), dim, noise.branched(self.one.source, c))
        assert added is not None  # noqa: S101 (what this crowd is for)
        return _AddedChunk(self.one, added)


@dataclass(frozen=True)
class _AddedChunk:
    one: GridRandomizer
    added: Ints

    def fields(self) -> dict[str, Any]:
        return {"added": self.added}

    def report(self, r: int, v: Floats) -> Floats:
        return in_floats(self.one.clip.quantise(v[np.newaxis])[0] + self.added[r], self.one.grid)


@dataclass(frozen=True)
class Asked:
    """Whoever comes is asked for a randomiser: any at all, for any row; None reports openly."""

    each: Each
    bound: float
    one: Randomizer | None = None
    kind = None
    lattice = (1.0, 0)

    @property
    def guarantee(self) -> Claim | None:
        """The one randomiser's, where there is one; otherwise each provider has their own."""
        return getattr(self.one, "guarantee", None)

    def randomizers(self, rows: int) -> list[Randomizer]:
        """All that will be asked."""
        asked = [self.one] if self.one else [self.each(i) for i in range(rows)]
        return [r for r in asked if r is not None]

    def size(self, dim: int) -> int:  # noqa: ARG002 (nothing is drawn beforehand)
        """Rows in a chunk."""
        return OPEN_CHUNK

    def chunk(self, c: int, rows: range, dim: int) -> "_AskedChunk":  # noqa: ARG002 (nothing is drawn beforehand)
        """Knows which rows it is about."""
        return _AskedChunk(self, rows)


@dataclass(frozen=True)
class _AskedChunk:
    crowd: Asked
    rows: range

    def fields(self) -> dict[str, Any]:
        return {}

    def report(self, r: int, v: Floats) -> Floats:
        randomizer = self.crowd.each(self.rows[r])
        return shortened(v, self.crowd.bound) if randomizer is None else randomizer(v)


def crowd_of(given: Given, rows: int, bound: float, seed: int | None = None) -> Crowd:
    """The crowd a caller means by `randomizer`; with a seed, a simulation of it.

    >>> type(crowd_of(PrivUnitG(epsilon=1.0), 10, 1.0)).__name__
    'Drawn'
    """
    bound = positive("bound", bound, of="learn")
    if given is None:
        return Open(bound)
    if isinstance(given, GridRandomizer) and seed is not None:
        given = given.seeded(seed)
    if isinstance(given, PrivUnitG):
        return Drawn(given)
    if isinstance(given, GridRandomizer) and given.added_noise(0, 1) is not None:
        return Added(given)
    if hasattr(given, "noise_energy"):
        randomizer: Any = given
        return Asked(lambda _: randomizer, randomizer.bound, randomizer)
    if callable(given):
        return Asked(given, bound)
    try:
        epsilons = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        epsilons = np.empty(0)
    if epsilons.shape != (rows,):
        raise refuse(
            "randomizer", given, of="learn", allowed=f"a randomizer, {rows} values of ε, or a callable"
        )
    for epsilon in np.unique(epsilons).tolist():
        between("randomizer", epsilon, 0.0, np.inf, of="learn", ends="(]")
    one = PrivUnitG(1.0, bound=bound)
    return Drawn(one if seed is None else one.seeded(seed), epsilons)


def noise_of(chunks: Sequence[Chunk], crowd: Crowd) -> Noise:
    """The chunks of all models, as the compiled loop wants them."""
    grid, K = crowd.lattice
    fields = [chunk.fields() for chunk in chunks]
    one_model = len(fields) == 1  # needs no copy
    stacked = {
        k: v[np.newaxis] if one_model else np.stack([f[k] for f in fields]) for k, v in fields[0].items()
    }
    empty: dict[str, Any] = {
        "added": NO_INTS, "z1": NO_FLOATS, "z2": NO_FLOATS, "error": NO_FLOATS, "coins": NO_WORDS,
        "tails": NO_WORDS, "chance": NO_LAW[1], "Q": NO_LAW[0], "inverse": NO_LAW[0],
    }  # fmt: skip
    assert crowd.kind is not None  # noqa: S101 (the loop is for crowds it knows)
    return Noise(crowd.kind, crowd.bound, grid, K, **{**empty, **stacked})
