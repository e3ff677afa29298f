"""Norm-Laplace: noise of density ∝ exp(−(ε/2G)·‖z‖₂), the mechanism of BANCO and of adaptive learning.

    report = round(q + Z),   Z = s·‖M‖·N,   N ∈ Rᵈ and M ∈ Rᵈ⁺¹ standard normal,   s = 2K/ε.

Its one-dimensional law is exact: E exp(β⟨Z, a⟩) = (1 − (βs)²)^{−(d+1)/2} for every unit a (`docs/errata.md`
has what was printed). Kwang-Sung Jun and Francesco Orabona (2019), "Parameter-free locally private SGD";
Dirk van der Hoeven (2019), "User-specified local differential privacy". Proof: ``proofs/normlaplace.md``.
"""

import math
from dataclasses import dataclass

from untold.core import Ints, Relation, Unit
from untold.errors import positive
from untold.private import noise
from untold.private.guarantees import Claim, Pure
from untold.private.randomizers.base import RELEASED, GridRandomizer, least_scale, noise_scale

__all__ = ["NormLaplace"]


@dataclass(frozen=True)
class NormLaplace(GridRandomizer):
    """Noise whose density falls with its Euclidean norm: pure ε-LDP, symmetric, and large at large d.

    Guarantee: pure ε, replace-one, per report, for every input; proof in ``proofs/normlaplace.md``.

    >>> r = NormLaplace(epsilon=1.0)
    >>> r.noise_energy(100)
    40400.0
    >>> bool((r([0.3, 0.4]) / r.grid % 1 == 0).all())
    True
    """

    epsilon: float

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon, of="NormLaplace")
        noise_scale("epsilon", self.epsilon, self._scale, of="NormLaplace")

    @property
    def _scale(self) -> float:
        return least_scale(2.0 * self.clip.steps, self.epsilon)

    @property
    def symmetric(self) -> bool:
        """True."""
        return True

    def _claim(self) -> Claim:
        return Pure(
            self.epsilon, relation=Relation.REPLACE_ONE, unit=Unit.REPORT, released=RELEASED,
            citation="Jun & Orabona (2019); Duchi, Jordan & Wainwright (2014)",
        )  # fmt: skip

    def added_noise(self, rows: int, dim: int, source: noise.Source = None) -> Ints:
        """The noise alone."""
        return noise.norm_laplace(rows, dim, self._scale, source or self.source)

    def _randomise(self, q: Ints) -> Ints:
        return q + self.added_noise(*q.shape)

    def _energy(self, dim: int, norm: float) -> float:  # noqa: ARG002 (the same for every norm)
        return dim * (dim + 1) * (self._scale * self.grid) ** 2

    def _tails(self, dim: int) -> tuple[float, float]:
        # −ln(1 − x²) ≤ x²·(−ln ¾)/¼ for x² ≤ ¼, x = βs
        s = self._scale * self.grid
        return (dim + 1) * s**2 * 4 * math.log(4 / 3), 2 * s
