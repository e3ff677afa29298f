"""PrivUnit: a random point of a sphere, more often near the input than not.

    report = round(B·u),   u uniform on {⟨u, ±q/‖q‖⟩ ≥ γ} with probability p, else on the rest of the sphere,
    the sign + with probability (1 + ‖q‖/K)/2,   B = K/m,   m = E⟨u, q/‖q‖⟩.

γ is the fixed point γ = m(γ), p = e^ε·q₁/(1 + (e^ε − 1)·q₁) with q₁ the share of the sphere beyond γ.
Abhishek Bhowmick, John Duchi, Julien Freudiger, Gaurav Kapoor and Ryan Rogers (2018), "Protection against
reconstruction and its applications in private federated learning". Proof: ``proofs/privunit.md``.
"""

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from untold.core import Ints, Relation, Unit
from untold.errors import positive
from untold.private import noise
from untold.private.guarantees import Claim, Pure
from untold.private.randomizers.base import RELEASED, GridRandomizer, noise_scale
from untold.private.randomizers.duchi import half_sphere
from untold.private.randomizers.privunitg import LARGEST_EPSILON, biased_coin
from untold.private.sampling.latitude import EDGE_STEP, latitude_table

__all__ = ["CapLaw", "PrivUnit", "cap_law"]


class CapLaw(NamedTuple):
    """v with γ = sin πv, on the lattice of the histogram; the coin, heads with chance·2⁻⁵³; and 1/m."""

    v: float
    chance: int
    stretch: float


@functools.lru_cache(maxsize=256)
def cap_law(epsilon: float, dim: int) -> CapLaw:
    """The constants of ε in R^dim, dim ≥ 2.

    >>> law = cap_law(1.0, 10)
    >>> round(law.stretch**2 - 1, 2)
    59.73
    """
    from scipy.optimize import brentq
    from scipy.special import betainc

    epsilon = min(epsilon, LARGEST_EPSILON)
    a = (dim - 1) / 2
    log_area = math.lgamma(a) - math.lgamma(dim / 2) - math.log(math.pi) / 2  # ln ∫ cos^{d−2}(πv) dv

    def mean(v: float, share: float) -> float:
        """m at γ = sin πv, with p so that the two densities are e^ε apart."""
        cap = math.exp((dim - 1) * math.log(math.cos(math.pi * v)) - log_area) / ((dim - 1) * math.pi)
        return cap / (1 / math.expm1(epsilon) + share)

    def excess(v: float) -> float:
        gamma = math.sin(math.pi * v)
        return gamma - mean(v, float(betainc(a, a, (1 - gamma) / 2)))

    v = round(brentq(excess, 0.0, 0.5 - 1e-9) / EDGE_STEP) * EDGE_STEP
    share = _cap_share(v, dim)
    chance = biased_coin(epsilon, share)
    q = float(share)
    p = chance / 2.0**53
    cap = mean(v, q) * (1 / math.expm1(epsilon) + q)
    return CapLaw(v, chance, 1 / (cap * (p - q) / (q * (1 - q))))


def _cap_share(v: float, dim: int) -> Any:
    """The share of the sphere with ⟨u, x⟩ ≥ sin πv, as a ball."""
    from flint import arb, ctx

    with ctx.workprec(256):
        z = (1 - (arb(v) * arb.pi()).sin()) / 2
        a = arb(dim - 1) / 2
        return z.beta_lower(a, a, regularized=True)


@dataclass(frozen=True)
class PrivUnit(GridRandomizer):
    """A point of a sphere, more often within a cap around g: pure ε-LDP, of bounded reports.

    Guarantee: pure ε, replace-one, per report, for every input; proof in ``proofs/privunit.md``.

    >>> r = PrivUnit(epsilon=1.0)
    >>> round(r.noise_energy(100), 1)
    629.3
    """

    epsilon: float

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon, of="PrivUnit")
        noise_scale("epsilon", self.epsilon, self.clip.steps * 3 / min(self.epsilon, 1.0), of="PrivUnit")

    @property
    def symmetric(self) -> bool:
        """False."""
        return False

    def _claim(self) -> Claim:
        return Pure(
            self.epsilon, relation=Relation.REPLACE_ONE, unit=Unit.REPORT, released=RELEASED,
            citation="Bhowmick et al. (2018)",
        )  # fmt: skip

    def _randomise(self, q: Ints) -> Ints:
        K, dim = self.clip.steps, q.shape[1]
        if dim <= 1:  # there is no latitude on the two points of S⁰
            chance, stretch = half_sphere(self.epsilon, 1)
            return noise.duchi(q, K, chance, K * stretch, self.source)
        law = cap_law(self.epsilon, dim)
        table = latitude_table(dim, law.v)
        return noise.privunit(q, K, law.chance, K * law.stretch, table, self.source)

    def _radius(self, dim: int) -> float:
        stretch = half_sphere(self.epsilon, 1)[1] if dim == 1 else cap_law(self.epsilon, dim).stretch
        return self.clip.steps * self.grid * stretch

    def _energy(self, dim: int, norm: float) -> float:
        return self._radius(dim) ** 2 - norm**2

    def _tails(self, dim: int) -> tuple[float, float]:
        return self._radius(dim) ** 2, 0.0  # Hoeffding: ⟨report, a⟩ lies in [−radius, radius]
