"""A crowd of PrivUnitG, at one ε or at one each: its words are drawn before its inputs are known."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from untold.core import Floats, Ints, Randomizer
from untold.kernels.crowd import PRIVUNIT_G
from untold.private import noise
from untold.private.claim import Claim
from untold.private.classic import Pure
from untold.private.randomizers.privunitg import PrivUnitG, privunit_g_law
from untold.private.sampling import directional
from untold.private.sampling.additive import normals

__all__ = ["Drawn", "in_floats"]


def in_floats(report: Ints, grid: float) -> Floats:
    """Grid steps as floats.

    >>> in_floats(np.array([3]), 0.5)
    array([1.5])
    """
    return np.multiply(report, grid, dtype=np.float64)


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
            first, last = max(0, rows.start), min(rows.stop, self.epsilons.size)
            levels[first - rows.start : last - rows.start] = self.epsilons[first:last]
        return _DrawnChunk(self.one, draws, levels, source)

    @cached_property
    def lattice(self) -> tuple[float, int]:
        """The grid, and K."""
        return self.one.grid, self.one.clip.steps


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
        which = np.zeros(self.levels.size, dtype=np.int64)
        different = self.levels[:1]
        if (self.levels != different).any():
            different, which = np.unique(self.levels, return_inverse=True)
        laws = [self._law(level) for level in different.tolist()]
        chance, Q, inverse = (np.array(column)[which] for column in zip(*laws, strict=True))
        return {
            "z1": z1, "z2": z2, "error": error, "coins": self.draws.coins, "tails": self.draws.tails,
            "chance": chance, "Q": Q, "inverse": inverse,
        }  # fmt: skip

    def report(self, r: int, v: Floats) -> Floats:
        q: Ints = self.one.clip.quantise(v[np.newaxis])
        chance, Q, inverse = self._law(float(self.levels[r]))
        K = self.one.clip.steps
        if not chance:
            return in_floats(q[0], self.one.grid)
        out = np.empty_like(q)
        words = self.draws.radial[r], self.draws.angular[r], self.draws.coins[r : r + 1]
        if directional.privunit_g(*words, self.draws.tails[r : r + 1], q, K, chance, Q, inverse, out):
            own = noise.branched(self.source, r)
            self.draws.decide(r, q[0], out[0], K, chance, Q, inverse, own)
        return in_floats(out[0], self.one.grid)
