"""Duchi, Jordan and Wainwright's randomiser of a ball: a random point of a sphere, on the right half of it.

    report = round(B·u),   u uniform on the half sphere of ±q with probability p = e^ε/(e^ε + 1),
    the sign + with probability (1 + ‖q‖/K)/2,   B = K/((2p − 1)·E|u₁|),   E|u₁| = Γ(d/2)/(√π·Γ((d+1)/2)).

John Duchi, Michael Jordan and Martin Wainwright (2014), "Privacy aware learning"; it is PrivUnit with
γ = 0, and in one dimension it is randomised response. Proof: ``proofs/privunit.md``.
"""

import functools
import math
from dataclasses import dataclass

from untold.core import Ints, Relation, Unit
from untold.errors import positive
from untold.private import noise
from untold.private.guarantees import Claim, Pure
from untold.private.randomizers.base import RELEASED, GridRandomizer, noise_scale
from untold.private.randomizers.privunitg import LARGEST_EPSILON, biased_coin

__all__ = ["Duchi", "half_sphere"]


@functools.lru_cache(maxsize=1024)
def half_sphere(epsilon: float, dim: int) -> tuple[int, float]:
    """The coin, heads with chance·2⁻⁵³, and B/K.

    >>> chance, stretch = half_sphere(1.0, 1)
    >>> round(stretch, 4)  # coth(½)
    2.164
    """
    chance = biased_coin(min(epsilon, LARGEST_EPSILON), 0.5)
    mean = math.exp(math.lgamma(dim / 2) - math.lgamma((dim + 1) / 2)) / math.sqrt(math.pi)
    return chance, 2.0**52 / ((chance - 2**52) * mean)


@dataclass(frozen=True)
class Duchi(GridRandomizer):
    """A point of a sphere, more often on the side of g than not: pure ε-LDP, of bounded reports.

    Guarantee: pure ε, replace-one, per report, for every input; proof in ``proofs/privunit.md``.

    >>> r = Duchi(epsilon=1.0)
    >>> round(r.noise_energy(10), 2), round(r.noise_energy(10, norm=0.0), 2)
    (68.97, 69.97)
    """

    epsilon: float

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon, of="Duchi")
        noise_scale("epsilon", self.epsilon, self.clip.steps * 3 / min(self.epsilon, 1.0), of="Duchi")

    @property
    def symmetric(self) -> bool:
        """False."""
        return False

    def _claim(self) -> Claim:
        return Pure(
            self.epsilon, relation=Relation.REPLACE_ONE, unit=Unit.REPORT, released=RELEASED,
            citation="Duchi, Jordan & Wainwright (2014)",
        )  # fmt: skip

    def _randomise(self, q: Ints) -> Ints:
        K = self.clip.steps
        chance, stretch = half_sphere(self.epsilon, max(1, q.shape[1]))
        return noise.duchi(q, K, chance, K * stretch, self.source)

    def _radius(self, dim: int) -> float:
        return self.clip.steps * self.grid * half_sphere(self.epsilon, dim)[1]

    def _energy(self, dim: int, norm: float) -> float:
        return self._radius(dim) ** 2 - norm**2

    def _tails(self, dim: int) -> tuple[float, float]:
        return self._radius(dim) ** 2, 0.0  # Hoeffding: ⟨report, a⟩ lies in [−radius, radius]
