"""PrivUnitG, the default: the least noise known for a vector under pure local privacy, in closed form.

With x the input on the unit sphere of R^{d+1} (padded by √(1 − ‖g/G‖²)) and N ~ N(0, I_{d+1}), replace the
component of N along x by t and scale::

    report = round(κ·(K·N + (t − ⟨N, x⟩)·q)),
    t ~ N(0,1) | t > γ  with probability p,  else  t ~ N(0,1) | t ≤ γ.

γ solves γ·(1/(e^ε − 1) + Q(γ)) = φ(γ), p = e^ε·Q/(1 + (e^ε − 1)·Q), Q = Q(γ), κ = 1/E t = 1/γ. Then the
mean is g and the noise is isotropic, Cov = I·G²/γ², whatever g is.

Hilal Asi, Vitaly Feldman and Kunal Talwar (2022), "Optimal algorithms for mean estimation under local
differential privacy"; the closed form and its optimality within the family: ``proofs/privunitg.md``.
"""

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

from untold.core import Ints, Relation, Unit
from untold.errors import positive
from untold.private import noise
from untold.private.guarantees import Claim, Pure
from untold.private.randomizers.base import RELEASED, GridRandomizer, noise_scale

__all__ = ["PrivUnitG", "PrivUnitGLaw", "biased_coin", "privunit_g_law"]

LARGEST_EPSILON = 64.0  # above it the mechanism of 64 is used, which is more private than asked


class PrivUnitGLaw(NamedTuple):
    """γ; the coin, heads with chance·2⁻⁵³; Q, the mass beyond γ, a float taken as exact; and κ."""

    gamma: float
    chance: int
    Q: float
    inverse: float


def biased_coin(epsilon: float, mass: object) -> int:
    """The largest P with (P/mass)/((2⁵³ − P)/(1 − mass)) ≤ e^ε, certified in ball arithmetic.

    `mass` is the probability of the favoured side without privacy, a float or a ball.

    >>> biased_coin(math.log(3.0), 0.5) / 2**53
    0.75
    """
    from flint import arb, ctx

    with ctx.workprec(160):
        q, e = arb(mass), arb(epsilon).exp()
        p = e * q / (1 + (e - 1) * q) * 2**53
        P = min(int(float(p)) + 4, 2**53 - 1)
        while not P * (1 - q) <= e * (2**53 - P) * q:
            P -= 1
    return P


@functools.lru_cache(maxsize=1024)
def privunit_g_law(epsilon: float) -> PrivUnitGLaw:
    """The constants of ε.

    >>> law = privunit_g_law(1.0)
    >>> round(law.gamma, 4), round(law.inverse**2, 3)
    (0.3975, 6.33)
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    epsilon = min(epsilon, LARGEST_EPSILON)

    def phi(t: float) -> float:
        return math.exp(-t * t / 2) / math.sqrt(2 * math.pi)

    def slope(g: float) -> float:
        return g * (1 / math.expm1(epsilon) + float(ndtr(-g))) - phi(g)

    gamma = float(brentq(slope, 0.0, 12.0, xtol=1e-15, rtol=1e-15))
    Q = float(ndtr(-gamma))
    chance = biased_coin(epsilon, Q)
    mean = phi(gamma) * (chance - 2.0**53 * Q) / (2.0**53 * Q * (1 - Q))  # p/Q − (1−p)/(1−Q)
    return PrivUnitGLaw(gamma, chance, Q, 1 / mean)


@dataclass(frozen=True)
class PrivUnitG(GridRandomizer):
    """The default randomiser: pure ε-LDP, unbiased, isotropic noise of energy d·G²/γ².

    Guarantee: pure ε, replace-one, per report, for every input; proof in ``proofs/privunitg.md``.

    >>> r = PrivUnitG(epsilon=1.0, bound=1.0)
    >>> round(r.noise_energy(100), 1)
    633.0
    >>> r([0.6, 0.8]).shape, r.encode([[0.6, 0.8]] * 3).dtype
    ((2,), dtype('int64'))
    """

    epsilon: float

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon, of="PrivUnitG")
        noise_scale("epsilon", self.epsilon, self.clip.steps / min(self.epsilon / 3, 1.0), of="PrivUnitG")

    @property
    def law(self) -> PrivUnitGLaw:
        """The constants of this ε."""
        return privunit_g_law(self.epsilon)

    @property
    def symmetric(self) -> bool:
        """False: the component along g is a two-sided truncated normal."""
        return False

    @property
    def betting(self) -> str:
        """Not symmetric, yet the inequality was seen to hold at 17 ε's and every angle (`docs/errata.md`)."""
        return "checked numerically"

    def _claim(self) -> Claim:
        return Pure(
            self.epsilon, relation=Relation.REPLACE_ONE, unit=Unit.REPORT, released=RELEASED,
            citation="Asi, Feldman & Talwar (2022)",
        )  # fmt: skip

    def _randomise(self, q: Ints) -> Ints:
        law = self.law
        return noise.privunit_g(q, self.clip.steps, law.chance, law.Q, law.inverse, self.source)

    def _energy(self, dim: int, norm: float) -> float:  # noqa: ARG002 (the same for every norm)
        return dim * (self.clip.steps * self.grid * self.law.inverse) ** 2

    def _tails(self, dim: int) -> tuple[float, float]:  # noqa: ARG002 (the same in every dimension)
        return self._energy(1, 0.0) * _proxy(self.law), 0.0


@functools.lru_cache(maxsize=1024)
def _proxy(law: PrivUnitGLaw) -> float:
    """sup over β of 2·ln E exp(β(t − E t))/β², at least 1: checked numerically, on a grid of β."""
    import numpy as np
    from scipy.special import log_ndtr

    beta = np.concatenate([-np.geomspace(40, 1e-3, 2000), np.geomspace(1e-3, 40, 2000)])
    p = law.chance / 2**53
    high = math.log(p / law.Q) + log_ndtr(beta - law.gamma)
    low = math.log((1 - p) / (1 - law.Q)) + log_ndtr(law.gamma - beta)
    cumulant = beta**2 / 2 + np.logaddexp(high, low) - beta / law.inverse
    return max(1.0, 1.0001 * float((2 * cumulant / beta**2).max()))
