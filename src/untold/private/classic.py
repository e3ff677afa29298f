"""Differential privacy as first defined: by ε, or by ε and δ.

Both keep the whole profile δ(ε) of the worst mechanism they allow (Kairouz, Oh & Viswanath 2015, Theorem
3.3): with probability δ everything is revealed, else randomised response with odds e^ε.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Self, Unpack

from untold.errors import between
from untold.private.amounts import at_least_zero, multiple, shown, total
from untold.private.claim import Claim, Common
from untold.private.noisy_sums import Response
from untold.private.renyi import pure_delta, pure_epsilon

__all__ = ["Approximate", "Pure"]


@dataclass(frozen=True, init=False, repr=False)
class Pure(Claim):
    """ε-differential privacy (Dwork, McSherry, Nissim & Smith 2006, Definition 1).

    Guarantee: exact. ``epsilon(0)`` is ε itself; at δ > 0 the profile of randomised response is used,
    which no ε-DP mechanism exceeds, so ``epsilon(δ)`` is slightly below ε.

    >>> from untold.core import Relation, Unit
    >>> Pure(epsilon=0.5, relation=Relation.REPLACE_ONE, unit=Unit.ROW).epsilon(0.0)
    0.5
    """

    level: float

    kind: ClassVar[str] = "pure"
    name: ClassVar[str] = "pure differential privacy"
    amounts: ClassVar[dict[str, str]] = {"epsilon": "level"}

    def __init__(self, epsilon: float, **common: Unpack[Common]) -> None:
        object.__setattr__(self, "level", at_least_zero("epsilon", epsilon, of="Pure"))
        super().__init__(**common)

    def _epsilon(self, delta: float) -> float:
        return self.level if delta == 0 else pure_epsilon(self.level, delta)

    def _delta(self, epsilon: float) -> float:
        return pure_delta(self.level, epsilon)

    def _plus(self, other: Self) -> dict[str, object]:
        return {"level": total(self.level, other.level)}

    def _times(self, count: int) -> dict[str, object]:
        return {"level": multiple(self.level, count)}

    def _group(self, size: int) -> dict[str, object]:
        return {"level": multiple(self.level, size)}

    def _formula(self) -> str:
        return f"ε = {shown(self.level)}, δ = 0"


@dataclass(frozen=True, init=False, repr=False)
class Approximate(Claim):
    """(ε, δ)-differential privacy (Dwork, Kenthapadi et al. 2006).

    Guarantee: exact at its own δ; elsewhere the profile of the worst (ε, δ)-private mechanism (Kairouz, Oh
    & Viswanath 2015). Below its own δ nothing is claimed and ε is inf.

    >>> from untold.core import Relation, Unit
    >>> claim = Approximate(1.0, 1e-6, relation=Relation.REPLACE_ONE, unit=Unit.ROW)
    >>> claim.epsilon(1e-6), claim.epsilon(1e-7)
    (1.0, inf)
    """

    level: float
    slack: float

    kind: ClassVar[str] = "approximate"
    name: ClassVar[str] = "approximate differential privacy"
    amounts: ClassVar[dict[str, str]] = {"epsilon": "level", "delta": "slack"}

    def __init__(self, epsilon: float, delta: float, **common: Unpack[Common]) -> None:
        object.__setattr__(self, "level", at_least_zero("epsilon", epsilon, of="Approximate"))
        object.__setattr__(self, "slack", between("delta", delta, 0, 1, of="Approximate"))
        super().__init__(**common)

    def _epsilon(self, delta: float) -> float:
        if delta == 1:
            return 0.0
        if delta <= self.slack:
            return self.level if delta == self.slack else math.inf
        return pure_epsilon(self.level, (delta - self.slack) / (1 - self.slack))

    def _delta(self, epsilon: float) -> float:
        return self.slack + (1 - self.slack) * pure_delta(self.level, epsilon)

    def _plus(self, other: Self) -> dict[str, object]:
        return {"level": total(self.level, other.level), "slack": min(1.0, total(self.slack, other.slack))}

    def _times(self, count: int) -> dict[str, object]:
        return {"level": multiple(self.level, count), "slack": min(1.0, multiple(self.slack, count))}

    def _group(self, size: int) -> dict[str, object]:
        event = Response(self.level, self.slack).group(size)
        return {"level": event.epsilon, "slack": event.delta}

    def _formula(self) -> str:
        return f"ε = {shown(self.level)}, δ = {shown(self.slack)}"
