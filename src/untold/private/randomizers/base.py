"""What every randomiser shares: clip, quantise, randomise, and speak of it in grid steps or in floats.

A randomiser turns one person's vector g (or a matrix of rows, one person each) into a report::

    q = clip(g) in integers, ‖q‖ ≤ K        sensitivity, exact
    encode(g) = round(mechanism(q))         integers: what may cross the trust boundary
    r(g) = encode(g)·grid                   the same as floats, exact multiples of the grid

The grid is a public function of the bound alone, so neither lattice nor width tells the level of privacy.
Any input whatever has an answer (see `untold.convex.clipping`): only a wrong shape is refused.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Self

import numpy as np

from untold.convex.clipping import L2Clip, LInfClip, as_rows
from untold.core import Floats, Ints
from untold.errors import refuse, whole
from untold.private import noise
from untold.private.claim import Claim

__all__ = ["GridRandomizer", "least_scale", "noise_scale"]

RELEASED = "int64 grid indices of one noisy vector"


def least_scale(numerator: float, epsilon: float) -> float:
    """The smallest float that is at least numerator/ε.

    >>> least_scale(2.0, 1.0)
    2.0
    """
    scale = numerator / epsilon
    while Fraction(scale) * Fraction(epsilon) < Fraction(numerator):
        scale = math.nextafter(scale, math.inf)
    return scale


def noise_scale(what: str, given: object, scale: float, *, of: str) -> float:
    """The scale, refused where noise would not fit the integers of a report."""
    if scale <= noise.MAX_SCALE:
        return scale
    hint = "so much noise does not fit the 64-bit integers of a report."
    raise refuse(what, given, of=of, allowed="larger", hint=hint)


@dataclass(frozen=True, kw_only=True)
class GridRandomizer(ABC):
    """A randomiser of vectors of norm ≤ bound, on the public grid of that bound."""

    bound: float = 1.0
    source: noise.Source = field(default=None, repr=False, compare=False)

    @property
    def clip(self) -> L2Clip | LInfClip:
        """What bounds the sensitivity."""
        return L2Clip(self.bound)

    @property
    def grid(self) -> float:
        """Every released coordinate is a whole multiple of it."""
        return self.clip.grid

    @property
    def guarantee(self) -> Claim:
        """What one report guarantees to the person it is about."""
        claim = self._claim()
        return claim.seed_stamped() if self.source is not None and not self.source.private else claim

    def encode(self, g: object) -> Ints:
        """The report of a vector, or of each row of a matrix, in grid steps."""
        rows, single = as_rows(g, of=type(self).__name__)
        reports = self._randomise(self.clip.quantise(rows))
        return reports[0] if single else reports

    def __call__(self, g: object) -> Floats:
        return np.multiply(self.encode(g), self.grid, dtype=np.float64)

    def seeded(self, seed: int) -> Self:
        """The same randomiser with repeatable noise: for simulation; its guarantee says "not private"."""
        whole("seed", seed, of=type(self).__name__, least=0)
        return replace(self, source=noise.seeded(seed))

    def noise_energy(self, dim: int, norm: float | None = None) -> float:
        """E‖report − g‖² for an input of that norm (‖g‖ = bound if none is named)."""
        whole("dim", dim, of=f"{type(self).__name__}.noise_energy")
        return self._energy(dim, self.bound if norm is None else norm)

    def subexponential(self, dim: int) -> tuple[float, float]:
        """(σ², b) with E exp(β⟨report − g, a⟩) ≤ exp(β²σ²/2) for every unit vector a and |β| ≤ 1/b."""
        whole("dim", dim, of=f"{type(self).__name__}.subexponential")
        return self._tails(dim)

    @property
    @abstractmethod
    def symmetric(self) -> bool:
        """Whether report − g has the law of g − report."""

    @property
    def betting(self) -> str:
        """How well it is known that E exp(s − s²) ≤ 1 + E s, s = v⟨report, a⟩, v so that always |E s| ≤ 1/5.

        For symmetric noise it is Lemma 4 of van der Hoeven (2019).
        """
        return "proved" if self.symmetric else "unknown"

    def added_noise(self, rows: int, dim: int, source: noise.Source = None) -> Ints | None:  # noqa: ARG002
        """Noise for that many reports, where a report is just q + noise; None where it is not."""
        return None

    @abstractmethod
    def _claim(self) -> Claim: ...
    @abstractmethod
    def _randomise(self, q: Ints) -> Ints: ...
    @abstractmethod
    def _energy(self, dim: int, norm: float) -> float: ...
    @abstractmethod
    def _tails(self, dim: int) -> tuple[float, float]: ...
