"""Noise on a vector that neighbours move by no more than a known reach, and what it takes of a budget.

    released = grid·(⌊w̃/grid⌉ + Z),      sensitivity of ⌊w̃/grid⌉ ≤ reach/grid + √d

`reach` bounds the L2 distance of w̃ between neighbours. The grid is a power of two and depends on it alone.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from untold.convex.rows import Linear
from untold.core import Floats, Loss, Relation
from untold.erm.base import UP, Asked, Curated
from untold.erm.sums import below
from untold.errors import AssumptionError
from untold.private import noise
from untold.private.gaussian_profile import gdp_mu
from untold.private.randomizers.base import least_scale, noise_scale

__all__ = ["Noisy", "Spending", "counted", "hidden", "linear_loss", "noisy"]

MOST = 2.0**62
FINENESS = 20  # bits of the reach
COUNT = 0.005  # of μ²


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


def hidden(v: Floats, reach: float, mu: float, asked: Asked) -> Noisy:
    """v on its grid, as a μ-GDP release of a vector that neighbours move by at most `reach`.

    >>> from untold.core import Relation
    >>> asked = Asked.checked("this", 1.0, 1e-6, Relation.REPLACE_ONE, 0)
    >>> hidden(np.zeros(3), 1.0, 1e3, asked).weights.shape
    (3,)
    """
    grid = below(reach, FINENESS)
    # clipped to what an integer holds: it takes nobody further from a neighbour
    q = np.clip(np.rint(v / grid), -MOST, MOST).astype(np.int64)
    sensitivity = (reach / grid + math.sqrt(v.size)) * UP
    scale = noise_scale("epsilon", asked.epsilon, sensitivity / mu * UP, of=asked.of)
    z = noise.gaussian(v.size, scale, asked.source).reshape(v.shape)
    return Noisy(np.multiply(q + z, grid, dtype=np.float64), scale * grid, grid, sensitivity / scale)


def noisy(w: Floats, reach: float, epsilon: float, delta: float, asked: Asked) -> Noisy:
    """w on its grid, with noise that hides a move of `reach`: norm-Laplace at δ = 0, else Gaussian."""
    if delta > 0:
        return hidden(w, reach, gdp_mu(epsilon, delta), asked)
    grid = below(reach, FINENESS)
    q = np.clip(np.rint(w / grid), -MOST, MOST).astype(np.int64)
    sensitivity = (reach / grid + math.sqrt(w.size)) * UP
    scale = noise_scale("epsilon", epsilon, least_scale(sensitivity, epsilon), of=asked.of)
    z = noise.norm_laplace(1, w.size, scale, asked.source)[0]
    return Noisy(np.multiply(q + z, grid, dtype=np.float64), scale * grid, grid, 0.0)


@dataclass(frozen=True)
class Spending:
    """What is left of μ², and each release's part of it."""

    asked: Asked
    left: float = 1.0

    def mu(self, share: float) -> float:
        """The μ of a release that takes this share; less than its due by more than rounding."""
        return self.asked.mu * math.sqrt(share) * (1 - 1e-12)

    def after(self, share: float) -> "Spending":
        """With that share gone."""
        return Spending(self.asked, self.left - share)


def counted(data: Curated, spending: Spending) -> tuple[float, Spending]:
    """n: as it is where a row is replaced, through noise, for `COUNT` of μ², where one comes or goes."""
    asked = spending.asked
    if asked.relation == Relation.REPLACE_ONE or asked.mu == math.inf:
        return float(max(1, data.count)), spending
    noisy = hidden(np.array([float(data.count)]), 1.0, spending.mu(COUNT), asked).weights[0]
    return max(1.0, float(noisy)), spending.after(COUNT)
