"""Mutual information: noise for a promise in bits, not in ε.

    report = round(q + σN),   C = (d/2)·ln(1 + L²/(dσ²)) nats  solved for σ,   ‖q‖₂ ≤ L.

I(f; report) ≤ C whatever the law of f. Ruochi Zhang and Parv Venkatasubramaniam (2018), "Mutual-information-
private online gradient descent algorithm", Theorem 1. Proof: ``proofs/mutualinformation.md``.
"""

import math
from dataclasses import dataclass

import numpy as np

from untold.core import Ints, Relation, Unit
from untold.errors import ParameterError, positive
from untold.private import noise
from untold.private.guarantees import Claim, InformationBound
from untold.private.randomizers.base import RELEASED, GridRandomizer, noise_scale

__all__ = ["MutualInformation"]


@dataclass(frozen=True)
class MutualInformation(GridRandomizer):
    """Normal noise that lets at most so many nats (or bits) about the input through.

    Guarantee: I(input; report) ≤ nats, for every law of the input; an average, not a worst case: no ε.

    >>> r = MutualInformation(bits=1.0)
    >>> round(r.nats, 4), round(r.noise_energy(1), 4)
    (0.6931, 0.3333)
    """

    nats: float | None = None
    bits: float | None = None

    def __post_init__(self) -> None:
        for name in ("nats", "bits"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name), of="MutualInformation")
        nats, bits = self.nats, self.bits
        if nats is None and bits is not None:
            nats = bits * math.log(2.0)
        if nats is None or (bits is not None and not math.isclose(bits * math.log(2.0), nats)):
            hint = "write MutualInformation(bits=1.0), or nats=0.7."
            raise ParameterError("MutualInformation must be given one of `nats` and `bits`.", hint=hint)
        object.__setattr__(self, "nats", float(nats))
        object.__setattr__(self, "bits", nats / math.log(2.0))
        self._scale(1)

    def _scale(self, dim: int) -> float:
        """σ in grid steps: K/√(d·(e^{2C/d} − 1)), rounded up."""
        nats = float(self.nats or 0.0)
        exponent = min(2.0 * nats / dim, 700.0)
        scale = self.clip.steps / math.sqrt(dim * math.expm1(exponent)) * (1.0 + 2.0**-40)
        return noise_scale("nats", nats, scale, of="MutualInformation")

    @property
    def symmetric(self) -> bool:
        """True."""
        return True

    def _claim(self) -> Claim:
        return InformationBound(
            float(self.nats or 0.0), relation=Relation.REPLACE_ONE, unit=Unit.REPORT, released=RELEASED,
            citation="Zhang & Venkatasubramaniam (2018), Theorem 1",
        )  # fmt: skip

    def added_noise(self, rows: int, dim: int, source: noise.Source = None) -> Ints:
        """The noise alone."""
        if not rows * dim:
            return np.zeros((rows, dim), dtype=np.int64)
        return noise.gaussian(rows * dim, self._scale(dim), source or self.source).reshape(rows, dim)

    def _randomise(self, q: Ints) -> Ints:
        return q + self.added_noise(*q.shape)

    def _energy(self, dim: int, norm: float) -> float:  # noqa: ARG002 (the same for every norm)
        return dim * (self._scale(dim) * self.grid) ** 2

    def _tails(self, dim: int) -> tuple[float, float]:
        return (self._scale(dim) * self.grid) ** 2, 0.0
