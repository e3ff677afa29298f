"""A crowd: who randomises how. One randomiser for all, an ε for each, a randomiser for each, or none.

Noise is drawn in chunks for the compiled loop. Chunk c covers rounds c·R … (c+1)·R − 1 of the learner,
whatever run they fall into, and a seeded crowd draws it from a branch of its seed: a seeded run may be
cut anywhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from untold.core import Floats, Ints, Randomizer
from untold.errors import between, positive, refuse
from untold.kernels.crowd import ADDED, OPEN, PRIVUNIT_G, Noise, shorten
from untold.private import noise
from untold.private.claim import Claim
from untold.private.classic import Pure
from untold.private.randomizers.base import GridRandomizer
from untold.private.randomizers.privunitg import PrivUnitG, privunit_g_law
from untold.private.sampling import directional
from untold.private.sampling.additive import normals

__all__ = ["Added", "Asked", "Chunk", "Crowd", "Drawn", "Each", "Given", "Open", "crowd_of", "noise_of"]

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
    shorten(g, bound)
    return g


def _steps(report: Ints, grid: float) -> Floats:
    return np.multiply(report, grid, dtype=np.float64)


@dataclass(frozen=True)
class Open:
    """Nobody randomises: for comparison. Reports are subgradients, shortened to the bound."""

    bound: float
    kind = OPEN
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
        return _steps(self.one.clip.quantise(v[np.newaxis])[0] + self.added[r], self.one.grid)


@dataclass(frozen=True)
class Drawn:
    """PrivUnitG for all, or at an ε for each; inf is a row that reports openly, on the same grid."""

    one: PrivUnitG
    epsilons: Floats | None = None
    kind = PRIVUNIT_G

    @property
    def bound(self) -> float:
        """The randomiser's."""
        return self.one.bound

    @property
    def guarantee(self) -> Claim | None:
        """The randomiser's; with an ε for each, the least anybody has."""
        if self.epsilons is None:
            return self.one.guarantee
        if not self.epsilons.size or self.epsilons.max() == np.inf:
            return None
        common = self.one.guarantee.common()
        return Pure(float(self.epsilons.max()), **common)

    def randomizers(self, rows: int) -> list[Randomizer]:  # noqa: ARG002 (they differ in ε alone)
        """The one."""
        return [self.one]

    def size(self, dim: int) -> int:
        """Rows in a chunk."""
        return noise.draws_at_once(dim)

    def chunk(self, c: int, rows: range, dim: int) -> "_DrawnChunk":
        """Draws its words."""
        source = noise.branched(self.one.source, c)
        draws = noise.privunit_g_draws(len(rows), dim, source)
        levels = np.full(len(rows), self.one.epsilon)
        if self.epsilons is not None:
            held = [r for r, i in enumerate(rows) if 0 <= i < self.epsilons.size]
            levels[held] = self.epsilons[[rows[r] for r in held]]
        return _DrawnChunk(self.one, draws, levels, source)


@dataclass(frozen=True)
class _DrawnChunk:
    one: PrivUnitG
    draws: noise.Draws
    levels: Floats
    source: noise.Source

    def _law(self, level: float) -> tuple[int, float, float]:
        if level == np.inf:
            return 0, 0.0, 0.0
        law = privunit_g_law(level)
        return law.chance, law.Q, law.inverse

    def fields(self) -> dict[str, Any]:
        z1, z2, error = (np.empty(self.draws.radial.shape) for _ in range(3))
        normals(self.draws.radial.ravel(), self.draws.angular.ravel(), z1.ravel(), z2.ravel(), error.ravel())
        different, which = np.unique(self.levels, return_inverse=True)
        laws = [self._law(level) for level in different.tolist()]
        chance, Q, inverse = (np.array(column)[which] for column in zip(*laws, strict=True))
        return {
            "z1": z1, "z2": z2, "error": error, "coins": self.draws.coins, "tails": self.draws.tails,
            "chance": chance.astype(np.int64), "Q": Q, "inverse": inverse,
        }  # fmt: skip

    def report(self, r: int, v: Floats) -> Floats:
        q: Ints = self.one.clip.quantise(v[np.newaxis])
        chance, Q, inverse = self._law(float(self.levels[r]))
        K = self.one.clip.steps
        if not chance:
            return _steps(q[0], self.one.grid)
        out = np.empty_like(q)
        words = self.draws.radial[r], self.draws.angular[r], self.draws.coins[r : r + 1]
        if directional.privunit_g(*words, self.draws.tails[r : r + 1], q, K, chance, Q, inverse, out):
            own = noise.branched(self.source, r)
            self.draws.decide(r, q[0], out[0], K, chance, Q, inverse, own)
        return _steps(out[0], self.one.grid)


@dataclass(frozen=True)
class Asked:
    """Whoever comes is asked for a randomiser: any at all, for any row; None reports openly."""

    each: Each
    bound: float
    one: Randomizer | None = None
    kind = None

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

    >>> crowd_of(PrivUnitG(epsilon=1.0), 10, 1.0).kind == PRIVUNIT_G
    True
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
    if hasattr(given, "encode"):
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
    one = getattr(crowd, "one", None)
    grid, K = (one.grid, one.clip.steps) if one else (1.0, 0)
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
