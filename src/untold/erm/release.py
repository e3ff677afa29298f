"""What the three perturbation methods share: what was asked, and noise on a minimiser that is nearly exact.

    released = grid·(⌊w̃/grid⌉ + Z),      sensitivity of ⌊w̃/grid⌉ ≤ reach/grid + √d

`reach` bounds the L2 distance of w̃ between neighbours. The grid is a power of two and depends on it alone.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from untold.convex.rows import Linear
from untold.core import Floats, Loss, Relation, Unit
from untold.erm.solver import UP
from untold.errors import AssumptionError, between, one_of, positive, whole
from untold.private import noise
from untold.private.claim import Claim, Common
from untold.private.guarantees import gaussian_sigma
from untold.private.noisy_sums import weight
from untold.private.randomizers.base import least_scale, noise_scale

__all__ = ["Asked", "Noisy", "linear_loss", "noisy", "power_below"]

MOST = 2.0**62
FINENESS = 20  # bits of the reach


@dataclass(frozen=True)
class Asked:
    """Settings, checked."""

    of: str
    epsilon: float
    delta: float
    ridge: float
    relation: Relation
    source: noise.Source

    @classmethod
    def checked(
        cls, of: str, epsilon: float, delta: float, regularisation: float, relation: Relation,
        seed: int | None, deltas: tuple[float, str] = (0.0, "[)"),
    ) -> "Asked":  # fmt: skip
        """The settings, or ParameterError."""
        return cls(
            of,
            positive("epsilon", epsilon, of=of, infinite=True),
            between("delta", delta, deltas[0], 1.0, of=of, ends=deltas[1]),
            positive("regularisation", regularisation, of=of),
            Relation(one_of("relation", relation, list(Relation), of=of)),
            None if seed is None else noise.seeded(whole("seed", seed, of=of, least=0)),
        )

    def reach(self, size: float) -> float:
        """How far a sum of vectors of at most that norm moves between neighbours."""
        return weight(self.relation) * size * UP

    def common(self, citation: str) -> Common:
        """What the guarantees of all three say."""
        return Common(relation=self.relation, unit=Unit.ROW, released="weights", citation=citation)

    def stamped(self, claim: Claim) -> Claim:
        """The claim, marked where the noise came from a seed."""
        return claim if self.source is None else claim.seed_stamped()


def linear_loss(loss: Loss, *, of: str) -> Linear:
    """The loss, refused where the theorems of perturbation say nothing about it.

    >>> from untold.convex.losses import Logistic
    >>> linear_loss(Logistic(), of="output_perturbation")
    Logistic()
    """
    got = f"Got {type(loss).__name__}."
    if not isinstance(loss, Linear):
        raise AssumptionError(f"`loss` of {of} must be linear, φ(⟨x, w⟩, y). {got}")
    if not math.isfinite(loss.steepest):
        raise AssumptionError(f"`loss` of {of} must be Lipschitz. {got}", hint="Huber() is.")
    if not math.isfinite(loss.curvature):
        hint = "HuberisedHinge() rounds the hinge, Huber() the absolute value."
        raise AssumptionError(f"`loss` of {of} must be smooth. {got}", hint=hint)
    return loss


class Noisy(NamedTuple):
    """Weights with noise, and its public facts: of the noise the scale, μ is 0 where it is not Gaussian."""

    weights: Floats
    scale: float
    grid: float
    mu: float


def power_below(x: float, bits: int) -> float:
    """2^(⌊log₂ x⌋ − bits).

    >>> power_below(5.0, 3)
    0.5
    """
    return math.ldexp(1.0, math.frexp(x)[1] - 1 - bits)


def noisy(w: Floats, reach: float, epsilon: float, delta: float, asked: Asked) -> Noisy:
    """w on its grid, with noise that hides a move of `reach`: norm-Laplace at δ = 0, else Gaussian."""
    grid = power_below(reach, FINENESS)
    # clipped to what an integer holds: it takes nobody further from a neighbour
    q = np.clip(np.rint(w / grid), -MOST, MOST).astype(np.int64)
    sensitivity = (reach / grid + math.sqrt(w.size)) * UP
    if delta == 0:
        scale = noise_scale("epsilon", epsilon, least_scale(sensitivity, epsilon), of=asked.of)
        z, mu = noise.norm_laplace(1, w.size, scale, asked.source)[0], 0.0
    else:
        scale = gaussian_sigma(epsilon, delta, sensitivity=sensitivity)
        noise_scale("epsilon", epsilon, scale, of=asked.of)
        z, mu = noise.gaussian(w.size, scale, asked.source), sensitivity / scale
    return Noisy(np.multiply(q + z, grid, dtype=np.float64), scale * grid, grid, mu)
