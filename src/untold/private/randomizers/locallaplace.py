"""Local Laplace: every coordinate its own level τⱼ of privacy.

    reportⱼ = round(qⱼ ± sⱼ·E),   E exponential,   sⱼ = 2K/τⱼ,   |qⱼ| ≤ K;   Σ τⱼ = ε.

τⱼ = ∞ leaves coordinate j as it is (it is public); τⱼ = 0 says nothing about it: 0 is reported.
Dirk van der Hoeven (2019), "User-specified local differential privacy in unconstrained adaptive online
learning", Lemma 1. Proof: ``proofs/locallaplace.md``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from untold.convex.clipping import LInfClip
from untold.core import Floats, Ints, Relation, Unit
from untold.errors import DataError, between, positive, refuse, whole
from untold.private import noise
from untold.private.guarantees import Claim, Pure
from untold.private.randomizers.base import RELEASED, GridRandomizer, least_scale, noise_scale

__all__ = ["LocalLaplace"]


@dataclass(frozen=True)
class LocalLaplace(GridRandomizer):
    """Laplace noise, coordinate by coordinate: pure (Σ τⱼ)-LDP, and τⱼ-LDP of coordinate j alone.

    Guarantee: pure Στ over the finite τ, replace-one, per report; coordinates with τ = ∞ are public.

    >>> r = LocalLaplace([0.5, 0.5, float("inf"), 0.0])
    >>> r([0.0, 0.0, 0.25, 0.9])[2:]
    array([0.25, 0.  ])
    >>> r.guarantee.epsilon(0.0)
    1.0
    """

    tau: Sequence[float]

    def __post_init__(self) -> None:
        if np.asarray(self.tau).dtype.kind not in "fiu" or np.ndim(self.tau) != 1 or not len(self.tau):
            raise refuse("tau", self.tau, of="LocalLaplace", allowed="one number >= 0 per coordinate")
        levels = [between("tau", t, 0.0, math.inf, of="LocalLaplace") for t in np.asarray(self.tau).tolist()]
        object.__setattr__(self, "tau", tuple(levels))
        if not any(0.0 < t < math.inf for t in levels) and math.inf not in levels:
            raise refuse("tau", self.tau, of="LocalLaplace", allowed="above 0 for some coordinate")
        for t, s in zip(levels, self._scales.tolist(), strict=True):
            noise_scale("tau", t, s, of="LocalLaplace")

    @classmethod
    def even(cls, epsilon: float, dim: int, bound: float = 1.0) -> Self:
        """ε shared evenly by dim coordinates.

        >>> LocalLaplace.even(1.0, 4).tau
        (0.25, 0.25, 0.25, 0.25)
        """
        owner = "LocalLaplace.even"
        share = positive("epsilon", epsilon, of=owner) / whole("dim", dim, of=owner)
        return cls([share] * dim, bound=bound)

    @property
    def clip(self) -> LInfClip:
        """Each coordinate is clipped by itself."""
        return LInfClip(self.bound)

    @property
    def symmetric(self) -> bool:
        """True, about g in every coordinate with τⱼ > 0."""
        return True

    @property
    def _scales(self) -> Floats:
        K = 2.0 * self.clip.steps
        return np.array([least_scale(K, t) if 0.0 < t < math.inf else 0.0 for t in self.tau])

    def coordinate(self, j: int) -> Claim:
        """What coordinate j alone is guaranteed.

        >>> LocalLaplace([0.5, 1.0]).coordinate(1).epsilon(0.0)
        1.0
        """
        return self._pure(self.tau[j])

    def _pure(self, epsilon: float, assumptions: tuple[str, ...] = ()) -> Claim:
        return Pure(
            epsilon, relation=Relation.REPLACE_ONE, unit=Unit.REPORT, released=RELEASED,
            citation="van der Hoeven (2019), Lemma 1", assumptions=assumptions,
        )  # fmt: skip

    def _claim(self) -> Claim:
        public = [j for j, t in enumerate(self.tau) if t == math.inf]
        assumptions = (f"coordinates {public} are public",) if public else ()
        return self._pure(math.fsum(t for t in self.tau if t < math.inf), assumptions)

    def _randomise(self, q: Ints) -> Ints:
        if q.shape[1] != len(self.tau):
            width = f"{len(self.tau)} coordinates, one for each tau. Got {q.shape[1]}."
            raise DataError(f"`g` of LocalLaplace must have {width}")
        scales = np.broadcast_to(self._scales, q.shape)
        return np.where(np.array(self.tau) > 0.0, q + noise.laplace(scales, self.source), 0)

    def _width(self, dim: int) -> Floats:
        if dim != len(self.tau):
            raise refuse("dim", dim, of="LocalLaplace", allowed=f"{len(self.tau)}, one for each tau")
        return self._scales * self.grid

    def _energy(self, dim: int, norm: float) -> float:  # noqa: ARG002 (the same for every norm)
        silent = sum(t == 0.0 for t in self.tau)
        return float(2.0 * (self._width(dim) ** 2).sum()) + silent * self.bound**2

    def _tails(self, dim: int) -> tuple[float, float]:
        s = float(self._width(dim).max())
        return 2 * s**2 * 4 * math.log(4 / 3), 2 * s
