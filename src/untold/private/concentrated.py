"""Guarantees that bound the privacy loss as a whole: zCDP, Gaussian and Rényi differential privacy.

All three compose without loss and turn into (ε, δ) only when a number is asked for.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from untold.errors import AssumptionError, between, refuse
from untold.private.amounts import at_least_zero, number, shown, written
from untold.private.claim import Claim
from untold.private.gaussian_profile import gdp_epsilon, log_delta
from untold.private.renyi import curve_delta, curve_epsilon, zcdp_delta, zcdp_epsilon

__all__ = ["GDP", "RDP", "ZCDP"]


@dataclass(frozen=True, repr=False)
class ZCDP(Claim):
    """ρ-zero-concentrated differential privacy (Bun & Steinke 2016, Definition 1.1).

    Guarantee: ``epsilon`` and ``delta`` are the best any Rényi order gives.

    >>> from untold.core import Relation, Unit
    >>> round(ZCDP(0.5, relation=Relation.REPLACE_ONE, unit=Unit.ROW).epsilon(1e-6), 4)
    5.2215
    """

    rho: float

    kind: ClassVar[str] = "zcdp"
    name: ClassVar[str] = "zero-concentrated differential privacy"
    amounts: ClassVar[dict[str, str]] = {"rho": "rho"}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rho", at_least_zero("rho", self.rho, of="ZCDP"))

    def _epsilon(self, delta: float) -> float:
        return zcdp_epsilon(self.rho, delta)

    def _delta(self, epsilon: float) -> float:
        return zcdp_delta(self.rho, epsilon)

    def _plus(self, other: Self) -> dict[str, object]:
        return {"rho": self.rho + other.rho}

    def _times(self, count: int) -> dict[str, object]:
        return {"rho": self.rho * count}

    def _group(self, size: int) -> dict[str, object]:
        return {"rho": self.rho * size * size}

    def _formula(self) -> str:
        return f"ρ = {shown(self.rho)}"


@dataclass(frozen=True, repr=False)
class GDP(Claim):
    """μ-Gaussian differential privacy (Dong, Roth & Su 2022, Definition 3); μ = sensitivity/σ.

    Guarantee: exact, to rounding, at every δ from 1e-300 up.

    >>> from untold.core import Relation, Unit
    >>> round(GDP(1.0, relation=Relation.REPLACE_ONE, unit=Unit.ROW).epsilon(1e-6), 4)
    4.8866
    """

    mu: float

    kind: ClassVar[str] = "gdp"
    name: ClassVar[str] = "Gaussian differential privacy"
    amounts: ClassVar[dict[str, str]] = {"mu": "mu"}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mu", at_least_zero("mu", self.mu, of="GDP"))

    def _epsilon(self, delta: float) -> float:
        return gdp_epsilon(self.mu, delta)

    def _delta(self, epsilon: float) -> float:
        return math.exp(log_delta(epsilon, self.mu))

    def _plus(self, other: Self) -> dict[str, object]:
        return {"mu": math.hypot(self.mu, other.mu)}

    def _times(self, count: int) -> dict[str, object]:
        return {"mu": self.mu * math.sqrt(count)}

    def _group(self, size: int) -> dict[str, object]:
        return {"mu": self.mu * size}

    def _formula(self) -> str:
        return f"μ = {shown(self.mu)}"


@dataclass(frozen=True, repr=False)
class RDP(Claim):
    """Rényi differential privacy at a list of orders ≥ 1; order inf is pure ε (Mironov 2017).

    Guarantee: ``epsilon`` and ``delta`` are the best of its orders. Between two orders the value at the
    larger is used, for Rényi divergences grow with their order.

    >>> from untold.core import Relation, Unit
    >>> RDP((2, 32), (0.1, 1.6), relation=Relation.REPLACE_ONE, unit=Unit.ROW).at(10)
    1.6
    """

    orders: tuple[float, ...]
    values: tuple[float, ...]

    kind: ClassVar[str] = "rdp"
    name: ClassVar[str] = "Rényi differential privacy"
    amounts: ClassVar[dict[str, str]] = {"orders": "orders", "values": "values"}

    def __post_init__(self) -> None:
        super().__post_init__()
        orders = tuple(between("orders", order, 1, math.inf, of="RDP") for order in self.orders)
        values = tuple(at_least_zero("values", v, of="RDP") for v in self.values)
        if not orders or sorted(set(orders)) != list(orders) or len(values) != len(orders):
            raise refuse(
                "orders", self.orders, of="RDP", allowed=f"increasing and as many as the {len(values)} values"
            )
        object.__setattr__(self, "orders", orders)
        object.__setattr__(self, "values", values)

    def at(self, order: float) -> float:
        """The divergence at any order; inf beyond the last."""
        return min((v for a, v in zip(self.orders, self.values, strict=True) if a >= order), default=math.inf)

    def _epsilon(self, delta: float) -> float:
        return curve_epsilon(np.array(self.orders), np.array(self.values), delta)

    def _delta(self, epsilon: float) -> float:
        return curve_delta(np.array(self.orders), np.array(self.values), epsilon)

    def _plus(self, other: Self) -> dict[str, object]:
        orders = sorted({*self.orders, *other.orders})
        values = tuple(self.at(a) + other.at(a) for a in orders)
        return {"orders": tuple(orders), "values": values}

    def _times(self, count: int) -> dict[str, object]:
        return {"values": tuple(count * v for v in self.values)}

    def _group(self, size: int) -> dict[str, object]:
        doublings = (size - 1).bit_length()  # Mironov (2017), Proposition 2, needs a power of two
        kept = [(a / 2**doublings, v * 3**doublings) for a, v in self.curve if a >= 2 ** (doublings + 1)]
        if doublings and not kept:
            raise AssumptionError("the group privacy of RDP needs an order of at least twice the group.")
        return dict(zip(("orders", "values"), zip(*kept, strict=True), strict=True)) if doublings else {}

    @property
    def curve(self) -> tuple[tuple[float, float], ...]:
        """Pairs of order and value."""
        return tuple(zip(self.orders, self.values, strict=True))

    def _formula(self) -> str:
        best = min(self.curve, key=lambda pair: pair[1] / pair[0])
        return f"D at order {best[0]:g} ≤ {shown(best[1])} ({len(self.orders)} orders)"

    def _written(self, word: str) -> object:
        return [written(number) for number in getattr(self, word)]

    @classmethod
    def _read(cls, word: str, value: object) -> object:
        if not isinstance(value, (list, tuple)):
            raise refuse(word, value, of="RDP", allowed="a list")
        return tuple(number(entry) for entry in value)
