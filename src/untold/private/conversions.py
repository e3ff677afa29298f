"""From one kind of guarantee to another, from one relation to the other, and sums of different kinds.

======================== ====================== ==========================================================
from → to                bound                  source
======================== ====================== ==========================================================
Pure → ZCDP              ρ = ε·tanh(ε/2) ≤ ε²/2 proved in ``proofs/accounting.md`` §2; exact at order 1
Pure → RDP               randomised response    exact (ibid.)
Pure → GDP               μ = 2Φ⁻¹(e^ε/(1+e^ε))  the smallest possible (ibid.)
GDP → ZCDP, RDP          ρ = μ²/2               exact: Bun & Steinke (2016), Proposition 1.6
ZCDP → RDP               v(α) = αρ              definition
Pure, Approximate → PLD  the worst mechanism    Kairouz, Oh & Viswanath (2015), Theorem 3.3
GDP → PLD                one Gaussian step      definition
any of them → (ε, δ)     `Claim.epsilon`
======================== ====================== ==========================================================
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from untold.core import Relation, Unit
from untold.errors import AssumptionError
from untold.private.claim import Claim, Common, same_people
from untold.private.classic import Approximate, Pure
from untold.private.concentrated import GDP, RDP, ZCDP
from untold.private.guarantees import InformationBound
from untold.private.loss_distributions import PLD
from untold.private.noisy_sums import Noise, Response, weight
from untold.private.renyi import ORDERS, pure_curve

__all__ = ["approximate", "convert", "information_nats", "replace_one", "together"]

K = TypeVar("K", bound=Claim)


def _pure_mu(epsilon: float) -> float:
    from scipy.special import ndtri

    # Φ⁻¹(e^ε/(1+e^ε)) from the lower tail, where nothing is lost to rounding; inf when it underflows.
    return -2 * float(ndtri(1 / (1 + math.exp(epsilon)))) if epsilon < 700 else math.inf


def _pure_rdp(claim: Pure) -> RDP:
    orders = (1.0, *ORDERS, math.inf)
    values = pure_curve(claim.level, np.array(orders))
    return RDP(orders, tuple(values.tolist()), **claim.common())


def _linear_rdp(rho: float, common: Common) -> RDP:
    orders = (1.0, *ORDERS)
    return RDP(orders, tuple(order * rho for order in orders), **common)


def _gaussian_pld(claim: GDP) -> PLD | None:
    if claim.mu in {0.0, math.inf}:
        return None
    event = Noise("gaussian", weight(claim.relation) / claim.mu, stand_in=True)
    return PLD((event,), **claim.common())


def _pld_rdp(claim: PLD) -> RDP | None:
    values = claim.curve(ORDERS)
    kept = [(order, value) for order, value in zip(ORDERS, values.tolist(), strict=True) if value < math.inf]
    level, slack = claim.pure
    if level < math.inf and slack == 0:
        kept.append((math.inf, level))
    return RDP(tuple(o for o, _ in kept), tuple(v for _, v in kept), **claim.common()) if kept else None


def _pld_pure(claim: PLD) -> Pure | None:
    level, slack = claim.pure
    return Pure(level, **claim.common()) if level < math.inf and slack == 0 else None


def _pld_zcdp(claim: PLD) -> ZCDP | None:
    """Without sampling each event has its ρ; with it the ρ of ignoring the sample is of no use."""
    rho = 0.0
    for event in claim.events:
        if isinstance(event, Response):
            if event.delta:
                return None
            rho += event.times * event.epsilon * math.tanh(event.epsilon / 2)
        elif event.rate < 1:
            return None
        elif event.law == "laplace":
            loss = event.loss(weight(claim.relation))
            rho += event.times * loss * math.tanh(loss / 2)
        else:
            rho += event.times * (weight(claim.relation) / event.scale) ** 2 / 2
    return ZCDP(rho, **claim.common())


def _pld_gdp(claim: PLD) -> GDP | None:
    plain = all(isinstance(e, Noise) and e.law == "gaussian" and e.rate == 1 for e in claim.events)
    return GDP(claim.mu, **claim.common()) if plain else None


WAYS: dict[tuple[type[Claim], type[Claim]], Callable[[Any], Claim | None]] = {
    (Pure, Approximate): lambda c: Approximate(c.level, 0.0, **c.common()),
    (Pure, ZCDP): lambda c: ZCDP(c.level * math.tanh(c.level / 2), **c.common()),
    (Pure, GDP): lambda c: GDP(_pure_mu(c.level), **c.common()),
    (Pure, RDP): _pure_rdp,
    (Pure, PLD): lambda c: PLD((Response(c.level),), **c.common()),
    (Approximate, Pure): lambda c: Pure(c.level, **c.common()) if c.slack == 0 else None,
    (Approximate, PLD): lambda c: PLD((Response(c.level, c.slack),), **c.common()),
    (GDP, ZCDP): lambda c: ZCDP(c.mu**2 / 2, **c.common()),
    (GDP, RDP): lambda c: _linear_rdp(c.mu**2 / 2, c.common()),
    (GDP, PLD): _gaussian_pld,
    (ZCDP, RDP): lambda c: _linear_rdp(c.rho, c.common()),
    (PLD, Pure): _pld_pure,
    (PLD, GDP): _pld_gdp,
    (PLD, ZCDP): _pld_zcdp,
    (PLD, RDP): _pld_rdp,
}


def convert(claim: Claim, kind: type[K]) -> K | None:
    """The same mechanism's guarantee of another kind, or None where no finite one is known.

    >>> from untold.core import Unit
    >>> one = Pure(1.0, relation=Relation.REPLACE_ONE, unit=Unit.ROW)
    >>> round(convert(one, ZCDP).rho, 4), convert(one, InformationBound) is None
    (0.4621, True)
    """
    if isinstance(claim, kind):
        return claim
    way = WAYS.get((type(claim), kind))
    return cast("K | None", way(claim)) if way else None


def approximate(claim: Claim, delta: float) -> Approximate:
    """The (ε, δ) guarantee at one δ, for whoever asks for no more; the claim itself says more.

    >>> from untold.core import Unit
    >>> approximate(ZCDP(0.5, relation=Relation.REPLACE_ONE, unit=Unit.ROW), 1e-6).level.__round__(4)
    5.2215
    """
    return Approximate(claim._but(seeded=False).epsilon(delta), delta, **claim.common())


def replace_one(claim: Claim) -> Claim:
    """The replace-one guarantee that add-or-remove-one implies: a replacement is a removal and an addition.

    Twice ε or μ, four times ρ. Noise on a sum keeps its events: their sum now moves by 2, not 1.

    >>> from untold.core import Unit
    >>> replace_one(ZCDP(0.5, relation=Relation.ADD_OR_REMOVE_ONE, unit=Unit.ROW)).rho
    2.0
    """
    if claim.relation == Relation.REPLACE_ONE:
        return claim
    if isinstance(claim, PLD):
        if any(isinstance(e, Noise) and e.stand_in and e.rate < 1 for e in claim.events):
            raise AssumptionError("a sampled mechanism known by its μ alone has no replace-one guarantee.")
        events = tuple(e.group(2) if isinstance(e, Response) else e for e in claim.events)
        return claim._but(relation=Relation.REPLACE_ONE, events=events)
    return claim.group(2)._but(relation=Relation.REPLACE_ONE)


def information_nats(claim: Claim) -> float:
    """A bound on the mutual information between one whole report's input and the report, for any prior.

    The information is at most the largest KL divergence between two inputs' reports; that is a Rényi
    divergence of order 1. Only for local claims (replace-one, per report): elsewhere the output also
    depends on other people.
    """
    if isinstance(claim, InformationBound):
        return claim.nats
    if claim.relation != Relation.REPLACE_ONE or claim.unit is not Unit.REPORT:
        raise AssumptionError("an information bound composes only with replace-one guarantees per report.")
    curve = convert(claim, RDP)
    if curve is None:
        raise AssumptionError(f"no information bound follows from {type(claim).__name__}.")
    return min(curve.values)


def _union(one: str, two: str) -> str:
    return one if two in ("", one) else two if not one else f"{one}; {two}"


def shared(one: Claim, two: Claim) -> Common:
    """What both say about themselves, put together: assumptions add up, a seed spoils both."""
    same_people(one, two)
    return Common(
        relation=one.relation,
        unit=one.unit,
        assumptions=tuple(dict.fromkeys((*one.assumptions, *two.assumptions))),
        released=_union(one.released, two.released),
        citation=_union(one.citation, two.citation),
        seeded=one.seeded or two.seeded,
    )


def _plain(claim: Claim) -> Claim:
    """(ε, 0) is pure."""
    return (
        Pure(claim.level, **claim.common()) if isinstance(claim, Approximate) and not claim.slack else claim
    )


def together(one: Claim, two: Claim) -> Claim:
    """The composition of two guarantees in the tightest kind both can be turned into.

    Loss distributions lose nothing, zCDP little, Rényi curves their orders. Where one side is (ε, δ) and
    the other has no loss distribution, that side is read at the same δ and the result holds at twice it.

    >>> from untold.core import Unit
    >>> people = {"relation": Relation.REPLACE_ONE, "unit": Unit.ROW}
    >>> print(together(Pure(1.0, **people), ZCDP(0.5, **people)))
    ρ = 0.962118: zero-concentrated differential privacy, replace-one, per row
    """
    common = shared(one, two)
    if isinstance(one, InformationBound) or isinstance(two, InformationBound):
        return InformationBound(information_nats(one) + information_nats(two), **common)
    one, two = _plain(one), _plain(two)
    kinds: list[type[Claim]] = [Approximate, PLD, ZCDP, RDP]
    if type(one) is type(two):
        kinds.insert(0, type(one))
    for kind in kinds:
        left, right = convert(one, kind), convert(two, kind)
        if left is not None and right is not None:
            return left._but(**left._plus(right), **common)
    stated, other = (one, two) if isinstance(one, Approximate) else (two, one)
    if not isinstance(stated, Approximate):
        raise AssumptionError(
            f"no kind of guarantee holds both {type(one).__name__} and {type(two).__name__} here.",
        )
    delta = stated.slack
    return Approximate(stated.level + other._epsilon(delta), min(1.0, 2 * delta), **common)
