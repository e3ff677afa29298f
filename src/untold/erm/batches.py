"""Batches: how rows are chosen for a step, and what that costs, in one object, so that the two cannot differ.

====================== ============================== ===================================================
batch                  relation                       accounted as
====================== ============================== ===================================================
`FullBatch`            either                         T Gaussian steps: exact, μ = √T·(sensitivity/σ)
`PoissonBatch(rate)`   either                         the loss distribution of T sampled Gaussian steps
`SubsetBatch(size)`    replace-one                    Rényi: Wang, Balle and Kasiviswanathan (2019)
====================== ============================== ===================================================

σ is the noise multiplier: the standard deviation of the noise over the bound of one row. The sample is drawn
from the secure keystream and never shown.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from untold.core import Relation, Unit
from untold.errors import AssumptionError, between, whole
from untold.private import choices, noise
from untold.private.accountant import calibrate
from untold.private.amplify import poisson_sample, random_subset
from untold.private.claim import Claim
from untold.private.concentrated import GDP
from untold.private.gaussian_profile import gdp_mu
from untold.private.loss_distributions import PLD
from untold.private.noisy_sums import Noise, weight

__all__ = ["Batch", "FullBatch", "PoissonBatch", "SubsetBatch"]

Places = NDArray[np.int64]


class Batch(Protocol):
    """Draws rows, and knows what drawing them so is worth."""

    def draw(self, count: int, source: noise.Source) -> Places | None: ...
    def expected(self, count: int) -> float: ...
    def claim(self, sigma: float, steps: int, count: int, relation: Relation) -> Claim: ...
    def sigma(self, epsilon: float, delta: float, steps: int, count: int, relation: Relation) -> float: ...


@dataclass(frozen=True)
class FullBatch:
    """Every row, every time.

    >>> batch = FullBatch()
    >>> sigma = batch.sigma(1.0, 1e-6, steps=100, count=50, relation=Relation.ADD_OR_REMOVE_ONE)
    >>> round(sigma, 4), round(batch.claim(sigma, 100, 50, Relation.ADD_OR_REMOVE_ONE).epsilon(1e-6), 6)
    (42.2468, 1.0)
    """

    def draw(self, count: int, source: noise.Source) -> None:
        """None: all rows."""

    def expected(self, count: int) -> float:
        """How many rows a step sees."""
        return float(count)

    def claim(self, sigma: float, steps: int, count: int, relation: Relation) -> Claim:  # noqa: ARG002
        """What that many steps guarantee."""
        mu = weight(relation) * math.sqrt(steps) / sigma
        return GDP(math.nextafter(mu, math.inf), relation=relation, unit=Unit.ROW)

    def sigma(self, epsilon: float, delta: float, steps: int, count: int, relation: Relation) -> float:  # noqa: ARG002
        """The least σ, rounded up, that makes them (ε, δ)-private."""
        return weight(relation) * math.sqrt(steps) / gdp_mu(epsilon, delta) * (1 + 1e-15)


@lru_cache(maxsize=64)
def _poisson_sigma(rate: float, epsilon: float, delta: float, steps: int, relation: Relation) -> float:
    return calibrate(lambda s: Noise("gaussian", s, rate=rate, times=steps), epsilon, delta, relation)


@dataclass(frozen=True)
class PoissonBatch:
    """Each row by itself with probability `rate`.

    >>> batch = PoissonBatch(0.02)
    >>> round(batch.sigma(1.0, 1e-6, steps=1000, count=50, relation=Relation.ADD_OR_REMOVE_ONE), 1)
    2.8
    """

    rate: float

    def __post_init__(self) -> None:
        between("rate", self.rate, 2.0**-50, 1.0, of="PoissonBatch")

    def draw(self, count: int, source: noise.Source) -> Places:
        """The places of the rows that were chosen."""
        return np.flatnonzero(choices.coins(count, self.rate, source))

    def expected(self, count: int) -> float:
        """How many rows a step sees on average."""
        return self.rate * count

    def claim(self, sigma: float, steps: int, count: int, relation: Relation) -> Claim:  # noqa: ARG002
        """What that many steps guarantee."""
        step = PLD((Noise("gaussian", sigma),), relation=relation, unit=Unit.ROW)
        return poisson_sample(step, self.rate).times(steps)

    def sigma(self, epsilon: float, delta: float, steps: int, count: int, relation: Relation) -> float:  # noqa: ARG002
        """The least σ, to 0.1 %, that makes them (ε, δ)-private."""
        return _poisson_sigma(self.rate, epsilon, delta, steps, relation)


@dataclass(frozen=True)
class SubsetBatch:
    """A uniformly random set of `size` rows.

    >>> batch = SubsetBatch(10)
    >>> batch.draw(50, None).size
    10
    """

    size: int

    def __post_init__(self) -> None:
        whole("size", self.size, of="SubsetBatch")

    def draw(self, count: int, source: noise.Source) -> Places:
        """The places of the rows that were chosen."""
        return choices.subset(count, min(self.size, count), source)

    def expected(self, count: int) -> float:
        """How many rows a step sees."""
        return float(min(self.size, count))

    def claim(self, sigma: float, steps: int, count: int, relation: Relation) -> Claim:
        """What that many steps guarantee; replace-one, so that `count` is public."""
        if relation != Relation.REPLACE_ONE:
            raise AssumptionError(
                f"`relation` of SubsetBatch must be 'replace-one'. Got {relation.value!r}.",
                hint="PoissonBatch goes with add-or-remove-one.",
            )
        step = PLD((Noise("gaussian", sigma),), relation=relation, unit=Unit.ROW)
        return random_subset(step, min(self.size, count), count).times(steps)

    def sigma(self, epsilon: float, delta: float, steps: int, count: int, relation: Relation) -> float:
        """The least σ, to 0.1 %, that makes them (ε, δ)-private."""
        from scipy.optimize import brentq

        def excess(log_sigma: float) -> float:
            return self.claim(math.exp(log_sigma), steps, count, relation).epsilon(delta) - epsilon

        high = math.log(FullBatch().sigma(epsilon, delta, steps, count, relation)) + 1.0
        low = high - 1.0
        while excess(low) <= 0 and low > math.log(0.05):
            low -= 1.0
        if excess(low) <= 0:
            return math.exp(low)
        found = float(brentq(excess, low, high, xtol=2e-4))
        while excess(found) > 0:
            found += 2e-4
        return math.exp(found)
