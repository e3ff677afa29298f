"""Events whose privacy loss has a known distribution: noise on a sum, and the worst (ε, δ) mechanism.

`Noise` adds Gaussian or Laplace noise to a sum in which one record weighs at most 1 (L2 for Gaussian, L1
for Laplace): `scale` is σ or b over that bound, the "noise multiplier". Whether a neighbour adds a record
(the sum moves by 1) or replaces one (by 2) is the claim's relation, so `scale` never changes meaning.
`Response` stands for any (ε, δ)-private mechanism: none is worse than the four-outcome response with the
same ε and δ (Kairouz, Oh & Viswanath 2015, Theorem 3.3).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from untold.core import Relation
from untold.errors import AssumptionError, between, one_of, positive, refuse, whole
from untold.private.amounts import at_least_zero, number, shown, written

__all__ = [
    "Event",
    "Noise",
    "Response",
    "amplified",
    "exact_mu",
    "read_event",
    "rough_largest",
    "rough_variance",
    "weight",
]


@dataclass(frozen=True)
class Noise:
    """Noise on a sum in which one record weighs at most 1, over a Poisson sample taken at `rate`.

    >>> Noise("gaussian", 2.0, rate=0.01, times=1000).to_json()
    {'law': 'gaussian', 'scale': 2.0, 'rate': 0.01, 'times': 1000}
    """

    law: str
    scale: float
    rate: float = 1.0
    times: int = 1
    stand_in: bool = False  # for a mechanism that is only known to be no worse, and may be no sum at all

    def __post_init__(self) -> None:
        one_of("law", self.law, ("gaussian", "laplace"), of="Noise")
        object.__setattr__(self, "scale", positive("scale", self.scale, of="Noise"))
        object.__setattr__(self, "rate", between("rate", self.rate, 0, 1, of="Noise", ends="(]"))
        object.__setattr__(self, "times", whole("times", self.times, of="Noise"))

    def __str__(self) -> str:
        sampled = f" at rate {self.rate:g}" if self.rate < 1 else ""
        return f"{self.times} × {self.law} {self.scale:g}{sampled}"

    def loss(self, weight: float) -> float:
        """The largest loss of one step without sampling; inf for Gaussian noise."""
        return weight / self.scale if self.law == "laplace" else math.inf

    def group(self, size: int) -> Self:
        """The event for `size` records; refused where sampling makes it another event."""
        if self.rate < 1:
            raise AssumptionError(
                "the group privacy of a sampled mechanism has no closed form here.",
                hint="convert the claim to RDP or to Approximate first.",
            )
        return replace(self, scale=self.scale / size)

    def to_json(self) -> dict[str, object]:
        """The event as a plain dict."""
        stands = {"stand_in": True} if self.stand_in else {}
        return {"law": self.law, "scale": self.scale, "rate": self.rate, "times": self.times, **stands}


@dataclass(frozen=True)
class Response:
    """Any mechanism that is (epsilon, delta)-private, at its worst.

    >>> Response(1.0).delta
    0.0
    """

    epsilon: float
    delta: float = 0.0
    times: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", at_least_zero("epsilon", self.epsilon, of="Response"))
        object.__setattr__(self, "delta", between("delta", self.delta, 0, 1, of="Response"))
        object.__setattr__(self, "times", whole("times", self.times, of="Response"))

    def __str__(self) -> str:
        slack = f", δ = {shown(self.delta)}" if self.delta else ""
        return f"{self.times} × (ε = {shown(self.epsilon)}{slack})"

    def group(self, size: int) -> Self:
        """The event for `size` records at once."""
        steps = (math.exp(k * self.epsilon) if k * self.epsilon < 700 else math.inf for k in range(size))
        grown = sum(steps) if self.delta else 0.0
        return replace(self, epsilon=self.epsilon * size, delta=min(1.0, self.delta * grown))

    def to_json(self) -> dict[str, object]:
        """The event as a plain dict."""
        return {"epsilon": written(self.epsilon), "delta": self.delta, "times": self.times}


Event = Noise | Response


def amplified(epsilon: float, rate: float) -> float:
    """ln(1 + rate·(e^epsilon − 1)), without overflow.

    >>> round(amplified(1.0, 0.01), 6), round(amplified(1000.0, 0.5), 6)
    (0.017037, 999.306853)
    """
    if epsilon < 50:
        return math.log1p(rate * math.expm1(epsilon))
    if rate == 1:
        return epsilon
    kept, taken = math.log1p(-rate), math.log(rate) + epsilon  # of ln((1 − rate) + rate·e^epsilon)
    return max(kept, taken) + math.log1p(math.exp(-abs(kept - taken)))


def weight(relation: Relation) -> float:
    """How far a sum moves between neighbours when one record weighs at most 1."""
    return 2.0 if relation == Relation.REPLACE_ONE else 1.0


def exact_mu(events: Iterable[Event], relation: Relation) -> float:
    """μ of the Gaussian steps that are not sampled, taken together."""
    plain = [e for e in events if isinstance(e, Noise) and e.law == "gaussian" and e.rate == 1]
    return weight(relation) * math.sqrt(math.fsum(e.times / e.scale**2 for e in plain))


def rough_variance(event: Event, relation: Relation) -> float:
    """A rough variance of the loss of all steps of one event: it only chooses a grid."""
    if isinstance(event, Response):
        return event.times * event.epsilon**2
    shift = weight(relation) / event.scale
    if event.rate == 1:
        return event.times * shift**2
    moment = math.expm1(min(1 / event.scale**2, 700.0)) * weight(relation) ** 2
    return event.times * min(shift**2, event.rate**2 * moment)


def rough_largest(event: Event, relation: Relation) -> float:
    """A rough bound on the loss of one step."""
    if isinstance(event, Response):
        return event.epsilon
    shift = weight(relation) / event.scale
    return min(shift, event.loss(weight(relation))) if event.law == "laplace" else shift * (10 + shift / 2)


def read_event(data: dict[str, Any]) -> Event:
    """The event its `to_json` wrote."""
    words: dict[str, Any] = {
        word: entry if word in {"law", "times", "stand_in"} else number(entry) for word, entry in data.items()
    }
    if data.keys() - {"stand_in"} == {"law", "scale", "rate", "times"} and data.get("stand_in", True) is True:
        return Noise(**words)
    if data.keys() == {"epsilon", "delta", "times"}:
        return Response(**words)
    raise refuse("events", sorted(data), of="PLD", allowed="noise or responses")
