"""Guarantees known by their privacy loss distribution: noisy sums, possibly of a Poisson sample.

The events are in `untold.private.noisy_sums`. The distributions, their composition by FFT and all
pessimistic rounding are dp-accounting's (Doroshenko et al. 2022), imported when a number is first asked
for. What is decided here is the grid (`_interval`) and where its sums are no longer trusted (`FLOOR`).
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from untold.core import Floats, Relation
from untold.errors import AssumptionError, refuse, whole
from untold.private.claim import Claim
from untold.private.gaussian_profile import gdp_epsilon, log_delta
from untold.private.noisy_sums import (
    Event,
    Noise,
    Response,
    amplified,
    exact_mu,
    read_event,
    rough_largest,
    rough_variance,
    weight,
)
from untold.private.renyi import ORDERS, curve_delta, curve_epsilon, pure_curve

__all__ = ["PLD", "loss_distribution"]

FLOOR = 1e-10
"""Below this δ the rounding of the FFT may matter; Rényi bounds are used instead."""
LARGEST_LOSS = 500.0
"""Of one step of Laplace noise; a larger one is accounted by its sum and its Rényi curve."""
POINTS = 1e6
"""At most this many grid points in a distribution: about 100 MB at the peak."""


def _interval(events: tuple[Event, ...], relation: Relation) -> float:
    """The grid: 1e-4 where ε ≤ 1, 1e-3 where ε ≥ 4, finer for tiny ε, never more than `POINTS`.

    A grid of width h adds at most h²/4 to the variance of each step; h = 0.1·μ/√T keeps that under
    0.25 % of the total.
    """
    mu = math.sqrt(math.fsum(rough_variance(e, relation) for e in events))
    epsilon = gdp_epsilon(min(mu, 100.0), 1e-6)
    usual = 1e-4 * min(10.0, max(1.0, epsilon) ** (math.log(10) / math.log(4)))
    steps = sum(e.times for e in events)
    span = 2 * (mu * mu / 2 + 10 * mu + max(rough_largest(e, relation) for e in events))
    return float(max(min(usual, 0.1 * mu / math.sqrt(steps)), span / POINTS))


@lru_cache(maxsize=16)
def loss_distribution(events: tuple[Event, ...], relation: Relation, interval: float) -> Any:
    """dp-accounting's distribution of the composed loss, every rounding pessimistic."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = pld.identity(interval)
    mu = exact_mu(events, relation)
    if mu:
        total = total.compose(pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=interval))
    for event in events:
        if isinstance(event, Response) or event.law == "laplace" or event.rate < 1:
            total = total.compose(_one_step(event, relation, interval).self_compose(event.times))
    return total


def _one_step(event: Event, relation: Relation, interval: float) -> Any:
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    if isinstance(event, Response):
        # At ε = 0 exactly dp-accounting writes both outcomes into one cell, and half the mass is lost.
        epsilon = max(event.epsilon, interval / 1000)
        parameters = common.DifferentialPrivacyParameters(epsilon, event.delta)
        return pld.from_privacy_parameters(parameters, interval)
    if event.law == "gaussian":
        neighbours = (
            NeighboringRelation.REPLACE_ONE
            if relation == Relation.REPLACE_ONE
            else NeighboringRelation.ADD_OR_REMOVE_ONE
        )
        return pld.from_gaussian_mechanism(
            event.scale,
            value_discretization_interval=interval,
            sampling_prob=event.rate,
            neighboring_relation=neighbours,
        )
    # Without sampling, a replaced record is a sum that moves by 2; PLD refuses it sampled.
    return pld.from_laplace_mechanism(
        event.scale,
        sensitivity=weight(relation),
        value_discretization_interval=interval,
        sampling_prob=event.rate,
    )


@lru_cache(maxsize=64)
def sampled_curve(scale: float, rate: float, orders: tuple[float, ...]) -> Floats:
    """Rényi curve of one Poisson-sampled Gaussian step, add-or-remove (Mironov, Talwar & Zhang 2019)."""
    from dp_accounting import dp_event, rdp

    step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(scale))
    return np.asarray(rdp.RdpAccountant(orders).compose(step).rdp, dtype=np.float64)


def _curve(event: Event, relation: Relation, orders: Floats) -> Floats:
    """A Rényi curve of all steps of one event; sampling is ignored where it has no curve, which is safe."""
    if isinstance(event, Response):
        one = pure_curve(event.epsilon, orders) if event.delta == 0 else np.full(len(orders), np.inf)
    elif event.law == "laplace":
        largest = event.loss(weight(relation))
        if event.rate < 1:
            largest = amplified(largest, event.rate)
        one = pure_curve(largest, orders)
    elif event.rate == 1 or relation == Relation.REPLACE_ONE:
        one = orders * (weight(relation) / event.scale) ** 2 / 2
    else:
        one = np.full(len(orders), np.inf)
        inner = (orders > 1) & np.isfinite(orders)
        one[inner] = sampled_curve(event.scale, event.rate, tuple(orders[inner].tolist()))
    return event.times * one


@dataclass(frozen=True, repr=False)
class PLD(Claim):
    """A composition of events, accounted by its privacy loss distribution.

    Guarantee: the smallest of the bounds known for the events: exact where all are plain Gaussian,
    else dp-accounting's pessimistic distribution (δ ≥ 1e-10), the Rényi curve, the sum of ε.

    >>> from untold.core import Unit
    >>> steps = Noise("gaussian", 2.85, rate=0.02, times=1000)
    >>> claim = PLD(steps, relation=Relation.ADD_OR_REMOVE_ONE, unit=Unit.ROW)
    >>> round(claim.epsilon(1e-6), 3)
    0.988
    """

    events: tuple[Event, ...]

    kind: ClassVar[str] = "pld"
    name: ClassVar[str] = "differential privacy by its loss distribution"
    amounts: ClassVar[dict[str, str]] = {"events": "events"}

    def __post_init__(self) -> None:
        super().__post_init__()
        given: object = self.events
        events = (given,) if isinstance(given, (Noise, Response)) else tuple(self.events)
        merged: dict[Event, int] = {}
        for event in events:
            one = replace(event, times=1)
            merged[one] = merged.get(one, 0) + event.times
        whole("number of events", len(merged), of="PLD")
        ordered = sorted((replace(e, times=n) for e, n in merged.items()), key=repr)
        object.__setattr__(self, "events", tuple(ordered))
        for event in ordered:
            sampled = isinstance(event, Noise) and event.law == "laplace" and event.rate < 1
            if sampled and self.relation == Relation.REPLACE_ONE:
                raise AssumptionError(
                    "`relation` of PLD must be 'add-or-remove-one' for sampled Laplace noise. "
                    f"Got {self.relation.value!r}.",
                )

    @property
    def pure(self) -> tuple[float, float]:
        """Σε and Σδ over all steps; ε is inf where one is Gaussian."""
        level, slack = 0.0, 0.0
        for e in self.events:
            loss = e.epsilon if isinstance(e, Response) else e.loss(weight(self.relation))
            level += e.times * loss
            slack += e.times * e.delta if isinstance(e, Response) else 0.0
        return level, slack

    def curve(self, orders: tuple[float, ...] = ORDERS) -> Floats:
        """The Rényi divergences at `orders`; inf where none is known."""
        at = np.array(orders)
        return np.asarray(np.sum([_curve(e, self.relation, at) for e in self.events], axis=0))

    @property
    def mu(self) -> float:
        """μ without any sampling; inf unless every event is Gaussian."""
        if any(isinstance(e, Response) or e.law == "laplace" for e in self.events):
            return math.inf
        return exact_mu((replace(e, rate=1.0) for e in self.events if isinstance(e, Noise)), self.relation)

    @property
    def _exact(self) -> bool:
        return all(isinstance(e, Noise) and e.law == "gaussian" and e.rate == 1 for e in self.events)

    def _loss(self) -> Any:
        return loss_distribution(self.events, self.relation, _interval(self.events, self.relation))

    def _epsilon(self, delta: float) -> float:
        bounds = [gdp_epsilon(self.mu, delta)]
        if self._exact or delta == 1:
            return bounds[0]
        level, slack = self.pure
        bounds.append(level if delta >= slack else math.inf)
        bounds.append(curve_epsilon(np.array(ORDERS), self.curve(), delta))
        if delta >= FLOOR and self._has_distribution:
            bounds.append(float(self._loss().get_epsilon_for_delta(delta)))
        return min(bounds)

    def _delta(self, epsilon: float) -> float:
        exact = math.exp(log_delta(epsilon, self.mu))
        if self._exact:
            return exact
        level, slack = self.pure
        bounds = [exact, min(1.0, slack) if epsilon >= level else 1.0]
        bounds.append(curve_delta(np.array(ORDERS), self.curve(), epsilon))
        if math.isfinite(epsilon) and self._has_distribution:
            bounds.append(max(FLOOR, float(self._loss().get_delta_for_epsilon(epsilon))))
        return min(bounds)

    @property
    def _has_distribution(self) -> bool:
        """dp-accounting takes e to the power of a Laplace loss, which has to stay a float."""
        spread = max(rough_variance(e, self.relation) for e in self.events)
        laplace = [e for e in self.events if isinstance(e, Noise) and e.law == "laplace"]
        largest = max((e.loss(weight(self.relation)) for e in laplace), default=0.0)
        return 0 < spread < math.inf and largest < LARGEST_LOSS

    def _plus(self, other: Self) -> dict[str, object]:
        return {"events": self.events + other.events}

    def _times(self, count: int) -> dict[str, object]:
        return {"events": tuple(replace(e, times=e.times * count) for e in self.events)}

    def _group(self, size: int) -> dict[str, object]:
        return {"events": tuple(e.group(size) for e in self.events)}

    def _formula(self) -> str:
        return " + ".join(str(e) for e in self.events)

    def _written(self, word: str) -> object:
        return [event.to_json() for event in getattr(self, word)]

    @classmethod
    def _read(cls, word: str, value: object) -> object:
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise refuse(word, value, of="PLD", allowed="a list of objects")
        return tuple(read_event(entry) for entry in value)
