"""The total of several guarantees about the same people, by the cheapest way of adding them up.

The accountant knows no mechanism: it converts claims to one kind, composes them there, reads ε at the
wanted δ, and takes the smallest answer. Every way is an upper bound, so their minimum is one.

The *costs* must be fixed before the first release, though each mechanism may be chosen knowing what the
earlier ones gave. Where the next cost itself depends on earlier answers, taking a minimum over ways is no
longer sound (Rogers, Roth, Ullman & Vadhan 2016): that is the work of `untold.private.ledger`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Self

from untold.core import Guarantee, Relation, Unit
from untold.errors import AssumptionError, between, positive, refuse, whole
from untold.private.amounts import shown
from untold.private.claim import Claim
from untold.private.classic import Approximate, Pure
from untold.private.concentrated import GDP, RDP, ZCDP
from untold.private.conversions import convert, shared, together
from untold.private.gaussian_profile import gdp_mu
from untold.private.loss_distributions import PLD
from untold.private.noisy_sums import Event, rough_variance

__all__ = ["Accountant", "calibrate"]

LEAST = 0.01
"""Where `calibrate` stops: a sample so rarely taken that δ pays for it needs next to no noise."""

WAYS: dict[str, type[Claim]] = {
    "sum of ε": Pure,
    "Gaussian": GDP,
    "zCDP": ZCDP,
    "Rényi": RDP,
    "loss distribution": PLD,
    "sum of ε and δ": Approximate,
}


@dataclass(frozen=True)
class Accountant:
    """What has been spent on one group of people; immutable, so a plan can be tried and dropped.

    Guarantee: ``epsilon(δ)`` is an upper bound for all releases together, under adaptive composition with
    costs fixed in advance.

    >>> from untold.private.guarantees import Pure
    >>> query = Pure(0.1, relation=Relation.REPLACE_ONE, unit=Unit.ROW)
    >>> spent = Accountant().spend(query, times=100)
    >>> for line in spent.report(1e-6):
    ...     print(line)
    ε = 4.77457 at δ = 1e-06 by loss distribution
      sum of ε: 10
      Gaussian: 6.33012
      zCDP: 5.21908
      Rényi: 5.07316
      loss distribution: 4.77457
    """

    parts: tuple[tuple[Claim, int], ...] = field(default=())

    def spend(self, cost: Guarantee, times: int = 1) -> Self:
        """One more release of this cost, or several; refused where relation or unit differ."""
        times = whole("times", times, of="Accountant")
        if not isinstance(cost, Claim):
            raise refuse("cost", type(cost).__name__, of="Accountant", allowed="a guarantee of untold")
        if self.parts:
            shared(self.parts[0][0], cost)
        counts = dict(self.parts)
        counts[cost] = counts.get(cost, 0) + times
        return replace(self, parts=tuple(counts.items()))

    def ways(self, delta: float) -> dict[str, float]:
        """ε at δ by every way that applies, smallest or not."""
        delta = between("delta", delta, 0, 1, of="Accountant")
        found = {way: total.epsilon(delta) for way, total in self._totals(delta).items()}
        split = self._split(delta)
        return found | ({"the rest at the δ left over": split} if split is not None else {})

    def _totals(self, delta: float) -> dict[str, Claim]:
        totals: dict[str, Claim] = {}
        for way, kind in WAYS.items():
            needless = kind is PLD and (delta == 0 or self._gaussian)
            total = None if needless else self._total(kind)
            if total is not None:
                totals[way] = total
        if "sum of ε" in totals:
            totals.pop("sum of ε and δ", None)
        return totals

    def _total(self, kind: type[Claim]) -> Claim | None:
        parts = [(convert(claim, kind), count) for claim, count in self.parts]
        known = [claim.times(count) for claim, count in parts if claim is not None]
        return reduce(Claim.compose, known) if known and len(known) == len(parts) else None

    @property
    def _gaussian(self) -> bool:
        """Whether the Gaussian way is exact."""
        return all(isinstance(claim, GDP) for claim, _ in self.parts)

    def _split(self, delta: float) -> float | None:
        """(ε, δ) claims at their own δ, everything else at what is left of δ."""
        stated = [(c, n) for c, n in self.parts if isinstance(c, Approximate)]
        others = tuple((c, n) for c, n in self.parts if not isinstance(c, Approximate))
        left = delta - math.fsum(c.slack * n for c, n in stated)
        if not stated or not others or left < 0:
            return None
        at_their_own = math.fsum(c.epsilon(c.slack) * n for c, n in stated)  # inf where one is seeded
        return at_their_own + Accountant(others).epsilon(left)

    def epsilon(self, delta: float) -> float:
        """The smallest ε over all ways; 0 before anything is spent, inf where no way gives a bound."""
        return min(self.ways(delta).values(), default=math.inf) if self.parts else 0.0

    def guarantee(self, delta: float | None = None) -> Claim:
        """Everything spent as one guarantee: the tightest kind, or the one that wins at `delta`."""
        if not self.parts:
            raise AssumptionError("an empty account has no guarantee: nothing has been spent.")
        if delta is None:
            return reduce(together, (claim.times(count) for claim, count in self.parts))
        totals = self._totals(between("delta", delta, 0, 1, of="Accountant"))
        best = min(totals.values(), key=lambda claim: claim.epsilon(delta), default=None)
        epsilon = self.epsilon(delta)
        if best is not None and best.epsilon(delta) <= epsilon:
            return best
        everybody = reduce(lambda one, two: one._but(**shared(one, two)), (claim for claim, _ in self.parts))
        return Approximate(epsilon, delta, **everybody.common())

    def report(self, delta: float) -> list[str]:
        """The answer, the way that won, and what the other ways gave."""
        ways = self.ways(delta)
        if not ways:
            return [f"ε = {shown(self.epsilon(delta))} at δ = {delta:g}"]
        best = min(ways, key=lambda way: ways[way])
        first = f"ε = {shown(ways[best])} at δ = {delta:g} by {best}"
        return [first, *(f"  {way}: {shown(epsilon)}" for way, epsilon in ways.items())]


def calibrate(
    event_of_sigma: Callable[[float], Event], epsilon: float, delta: float, relation: Relation
) -> float:
    """The smallest noise multiplier, to 0.1 %, with which the event is (ε, δ)-private.

    The search starts from what the same noise would need without sampling, which is always enough, and
    from a rough variance: it never tries noise so small that the distribution outgrows the memory.

    >>> from untold.private.guarantees import Noise
    >>> steps = lambda sigma: Noise("gaussian", sigma, rate=0.02, times=1000)
    >>> round(calibrate(steps, 1.0, 1e-6, Relation.ADD_OR_REMOVE_ONE), 2)
    2.82
    """
    from scipy.optimize import brentq

    epsilon = positive("epsilon", epsilon, of="calibrate")
    wanted = gdp_mu(epsilon, between("delta", delta, 0, 1, of="calibrate", ends="()"))

    def claim(sigma: float) -> PLD:
        return PLD((event_of_sigma(sigma),), relation=relation, unit=Unit.ROW)

    def excess(log_sigma: float) -> float:
        return claim(math.exp(log_sigma)).epsilon(delta) - epsilon

    def rough(log_sigma: float) -> float:
        event = event_of_sigma(math.exp(log_sigma))
        return math.log(max(1e-300, rough_variance(event, relation))) / 2 - math.log(wanted)

    enough = claim(1.0).mu / wanted
    if convert(claim(1.0), GDP):
        return math.nextafter(enough, math.inf)
    guess = float(brentq(rough, -50.0, 50.0, xtol=1e-3))
    low, high = guess - 0.05, min(guess + 0.05, math.log(enough))
    while excess(high) > 0:
        low, high = high, high + 0.2
    while excess(low) <= 0:
        if low < math.log(LEAST):
            return math.exp(low)
        low, high = low - 0.2, low
    found = float(brentq(excess, low, high, xtol=2e-4))
    while excess(found) > 0:
        found += 2e-4
    return math.exp(found)
