"""Rules that say whether one more release still fits a budget, whatever made somebody ask for it.

When the next cost may depend on earlier answers, only some sums may be trusted:

* Σε ≤ budget gives ε = budget (Rogers, Roth, Ullman & Vadhan 2016, Theorem 3.1).
* Σ D_α ≤ B at one order α fixed in advance gives D_α ≤ B in all (Feldman & Zrnic 2021, Theorem 4.3), hence
  (budget, δ) where B = budget − (ln(1/δ) + (α−1)ln(α−1) − α·ln α)/(α−1). α is the order with the largest
  B/α: the one with room for the most Gaussian noise.

Choosing the better of two rules, or the best order, after the fact is *not* such a sum. Proofs are in
``proofs/accounting.md`` §6.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np

from untold.errors import AssumptionError
from untold.private.amounts import exact
from untold.private.claim import Claim
from untold.private.classic import Approximate, Pure
from untold.private.concentrated import RDP, ZCDP
from untold.private.conversions import convert
from untold.private.loss_distributions import PLD
from untold.private.renyi import pure_curve

__all__ = ["Filter", "RenyiFilter", "SumFilter"]


class Filter(Protocol):
    """A limit, and what a guarantee takes from it."""

    @property
    def limit(self) -> Fraction: ...
    def cost(self, claim: Claim) -> Fraction: ...
    def whole(self, claim: Claim) -> Claim: ...


@dataclass(frozen=True)
class SumFilter:
    """Σε ≤ budget.

    >>> SumFilter(3.0).limit
    Fraction(3, 1)
    """

    budget: float

    @property
    def limit(self) -> Fraction:
        """The budget."""
        return exact(self.budget)

    def cost(self, claim: Claim) -> Fraction:
        """Its ε; infinite ones take more than there is."""
        pure = convert(claim, Pure)
        if pure is None:
            raise AssumptionError(
                f"a ledger with delta = 0 takes pure guarantees only. Got {type(claim).__name__}.",
                hint="give the ledger a delta > 0 when it is created.",
            )
        return exact(pure.level) if math.isfinite(pure.level) else 2 * self.limit + 1

    def whole(self, claim: Claim) -> Claim:
        """What everything admitted adds up to, said about the people of `claim`."""
        return Pure(self.budget, **claim.common())


@dataclass(frozen=True)
class RenyiFilter:
    """Σ D_α ≤ B at the order α best for (budget, delta).

    >>> rule = RenyiFilter(1.0, 1e-6)
    >>> rule.order, round(float(rule.limit), 4)
    (22.0, 0.5358)
    """

    budget: float
    delta: float

    @property
    def order(self) -> float:
        """α; whole above 4, where sampled curves are exact and quick."""
        return self._best[0]

    @property
    def limit(self) -> Fraction:
        """B, rounded down."""
        return exact(self._best[1] * (1 - 1e-12))

    @cached_property
    def _best(self) -> tuple[float, float]:
        orders = np.unique([*(1 + np.logspace(-3, 0.5, 300)), *np.round(np.logspace(0.6, 7, 3000))])
        price = -math.log(self.delta) + (orders - 1) * np.log(orders - 1) - orders * np.log(orders)
        room = self.budget - price / (orders - 1)
        best = int(np.argmax(room / orders))
        return float(orders[best]), float(room[best])

    def cost(self, claim: Claim) -> Fraction:
        """Its Rényi divergence of order α."""
        value = self._divergence(claim)
        return exact(value) if math.isfinite(value) else 2 * self.limit + 1

    def _divergence(self, claim: Claim) -> float:
        pure, zcdp = convert(claim, Pure), convert(claim, ZCDP)
        if pure is not None:
            return float(pure_curve(pure.level, np.array([self.order]))[0])
        if zcdp is not None:
            return self.order * zcdp.rho
        if isinstance(claim, PLD):
            return float(claim.curve((self.order,))[0])
        if isinstance(claim, RDP):
            return claim.at(self.order)
        raise AssumptionError(
            f"a ledger with delta > 0 takes guarantees with a Rényi curve. Got {type(claim).__name__}.",
            hint="debit the mechanism's own zCDP, Gaussian, Rényi or pure guarantee instead of its (ε, δ).",
        )

    def whole(self, claim: Claim) -> Claim:
        """What everything admitted adds up to, said about the people of `claim`."""
        return Approximate(self.budget, self.delta, **claim.common())
