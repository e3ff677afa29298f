"""The Gaussian mechanism of the local model, calibrated exactly.

    report = round(q + σN),   σ the smallest with δ(ε) ≤ δ at L2 sensitivity 2K.

Borja Balle and Yu-Xiang Wang (2018), "Improving the Gaussian mechanism for differential privacy: analytical
calibration and optimal denoising", Theorem 8. Proof: ``proofs/gaussian.md``.
"""

from dataclasses import dataclass
from functools import cached_property

from untold.core import Ints, Relation, Unit
from untold.errors import between, positive
from untold.private import noise
from untold.private.guarantees import GDP, Claim, gaussian_sigma
from untold.private.randomizers.base import RELEASED, GridRandomizer, noise_scale

__all__ = ["Gaussian"]


@dataclass(frozen=True)
class Gaussian(GridRandomizer):
    """Normal noise: (ε, δ)-LDP, symmetric; the guarantee is the whole μ-GDP curve through (ε, δ).

    Guarantee: μ-GDP, replace-one, per report, hence (ε, δ); proof in ``proofs/gaussian.md``.

    >>> r = Gaussian(epsilon=1.0, delta=1e-6)
    >>> round(r.noise_energy(10), 1), r.guarantee.epsilon(1e-6) <= 1.0
    (713.9, True)
    """

    epsilon: float
    delta: float = 1e-6

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon, of="Gaussian")
        between("delta", self.delta, 0.0, 1.0, of="Gaussian", ends="()")
        noise_scale("epsilon", self.epsilon, self._scale, of="Gaussian")

    @cached_property
    def _scale(self) -> float:
        sensitivity = self.clip.sensitivity(Relation.REPLACE_ONE)
        return gaussian_sigma(self.epsilon, self.delta, sensitivity=sensitivity)

    @property
    def symmetric(self) -> bool:
        """True."""
        return True

    def _claim(self) -> Claim:
        mu = self.clip.sensitivity(Relation.REPLACE_ONE) / self._scale
        return GDP(
            mu, relation=Relation.REPLACE_ONE, unit=Unit.REPORT, released=RELEASED,
            citation="Balle & Wang (2018), Theorem 8",
        )  # fmt: skip

    def added_noise(self, rows: int, dim: int, source: noise.Source = None) -> Ints:
        """The noise alone."""
        return noise.gaussian(rows * dim, self._scale, source or self.source).reshape(rows, dim)

    def _randomise(self, q: Ints) -> Ints:
        return q + self.added_noise(*q.shape)

    def _energy(self, dim: int, norm: float) -> float:  # noqa: ARG002 (the same for every norm)
        return dim * (self._scale * self.grid) ** 2

    def _tails(self, dim: int) -> tuple[float, float]:  # noqa: ARG002 (the same in every direction)
        return (self._scale * self.grid) ** 2, 0.0
