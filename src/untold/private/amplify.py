"""Privacy amplification by sampling: using a random part of the data costs less than using all of it.

A mechanism that is (ε, δ)-private on the sample is (ε′, γδ)-private on the data (Balle, Barthe & Gaboardi
2018, Theorems 8 and 9; S1 Lemma 3, S4 Lemma 12.2)::

    ε′ = ln(1 + γ(e^ε − 1))

Which sampler goes with which relation is part of the theorem, not a detail: each record on its own with
probability γ (Poisson) amplifies add-or-remove-one, a subset of fixed size (γ = size/population) amplifies
replace-one. Noise on a sum, sampled, is accounted by its loss distribution or its Rényi curve instead.
"""

from dataclasses import replace

import numpy as np

from untold.core import Relation
from untold.errors import AssumptionError, between, positive, refuse, whole
from untold.private.claim import Claim
from untold.private.classic import Approximate, Pure
from untold.private.concentrated import GDP, RDP
from untold.private.conversions import convert
from untold.private.loss_distributions import PLD
from untold.private.noisy_sums import Noise, amplified, weight
from untold.private.renyi import ORDERS

__all__ = ["not_a_guarantee_sampled_rho", "poisson_sample", "random_subset"]


def _with_probability(claim: Claim, rate: float, assumption: str) -> Claim | None:
    """The closed form, for claims of ε or of ε and δ."""
    if isinstance(claim, Pure):
        claim = Pure(amplified(claim.level, rate), **claim.common())
    elif isinstance(claim, Approximate):
        claim = Approximate(amplified(claim.level, rate), rate * claim.slack, **claim.common())
    else:
        return None
    return claim.assuming(assumption)


def _require(claim: Claim, relation: Relation, sampler: str) -> None:
    if claim.relation != relation:
        raise AssumptionError(
            f"`relation` of {sampler} must be {relation.value!r}. Got {claim.relation.value!r}.",
            hint="Poisson sampling goes with add-or-remove-one, subsets of fixed size with replace-one.",
        )


def _one_step(claim: PLD, sampler: str) -> Noise:
    event = claim.events[0]
    if len(claim.events) > 1 or event.times > 1 or not isinstance(event, Noise) or event.rate < 1:
        raise refuse(
            "claim",
            str(claim),
            of=sampler,
            allowed="one step of noise on a sum",
            hint="sample each step, then compose.",
        )
    if event.stand_in and claim.relation == Relation.REPLACE_ONE:
        raise AssumptionError(
            f"`claim` of {sampler} must not be replace-one Gaussian privacy of an unknown mechanism.",
            hint="it says nothing of a record's absence; give the noise itself, Noise('gaussian', …).",
        )
    return event


def poisson_sample(claim: Claim, rate: float) -> Claim:
    """The claim for a mechanism that sees each record with probability `rate`, independently.

    Add-or-remove-one only; Gaussian noise on a sum also under replace-one. The sample must stay secret,
    its size included, and it must really be drawn so: a shuffled pass over the data is not.

    >>> from untold.core import Unit
    >>> query = Pure(1.0, relation=Relation.ADD_OR_REMOVE_ONE, unit=Unit.ROW)
    >>> round(poisson_sample(query, 0.01).epsilon(0.0), 6)
    0.017037
    """
    rate = between("rate", rate, 0, 1, of="poisson_sample", ends="(]")
    assumption = "records were sampled independently and the sample is secret"
    if isinstance(claim, PLD):
        step = _one_step(claim, "poisson_sample")
        return PLD((replace(step, rate=rate),), **claim.common()).assuming(assumption)
    _require(claim, Relation.ADD_OR_REMOVE_ONE, "poisson_sample")
    if isinstance(claim, GDP):
        gaussian = convert(claim, PLD)
        return claim if gaussian is None else poisson_sample(gaussian, rate)
    sampled = _with_probability(claim, rate, assumption)
    if sampled is None:
        raise refuse(
            "claim", type(claim).__name__, of="poisson_sample", allowed="Pure, Approximate, GDP or PLD"
        )
    return sampled


def random_subset(claim: Claim, size: int, population: int) -> Claim:
    """The claim for a mechanism that sees a uniformly random subset of fixed size; replace-one only.

    Gaussian noise on a sum becomes a Rényi curve (Wang, Balle & Kasiviswanathan 2019, Theorem 27): by
    replacement the sum moves by 2, so the noise counts half. (dp-accounting leaves that to its caller.)

    >>> from untold.core import Unit
    >>> query = Pure(1.0, relation=Relation.REPLACE_ONE, unit=Unit.ROW)
    >>> round(random_subset(query, 10, 1000).epsilon(0.0), 6)
    0.017037
    """
    size = whole("size", size, of="random_subset")
    population = whole("population", population, of="random_subset", least=size)
    _require(claim, Relation.REPLACE_ONE, "random_subset")
    assumption = "each batch was a uniformly random subset and is secret"
    if isinstance(claim, PLD):
        step = _one_step(claim, "random_subset")
        if step.law != "gaussian":
            raise refuse("law", step.law, of="random_subset", allowed="gaussian for a loss distribution")
        values = _subset_curve(step.scale / weight(claim.relation), size, population)
        return RDP(ORDERS, values, **claim.common()).assuming(assumption)
    sampled = _with_probability(claim, size / population, assumption)
    if sampled is None:
        raise refuse("claim", type(claim).__name__, of="random_subset", allowed="Pure, Approximate or PLD")
    return sampled


def _subset_curve(scale: float, size: int, population: int) -> tuple[float, ...]:
    """dp-accounting's curve; `scale` is σ over the distance of two replace-one neighbours."""
    from dp_accounting import NeighboringRelation, dp_event, rdp

    step = dp_event.SampledWithoutReplacementDpEvent(population, size, dp_event.GaussianDpEvent(scale))
    accountant = rdp.RdpAccountant(ORDERS, NeighboringRelation.REPLACE_ONE).compose(step)
    return tuple(np.maximum(0.0, accountant.rdp).tolist())


def not_a_guarantee_sampled_rho(rate: float, lipschitz: float, sigma: float, steps: int) -> float:
    """S4's figure γ²L²T/(2σ²) for the ρ of sampled NoisySGD: an approximation, NOT a guarantee.

    It leaves out the higher orders at which a sampled Gaussian is worse than a Gaussian of μ = γL/σ. Print
    it beside the accounted ε to compare with the paper; never claim it.

    >>> round(not_a_guarantee_sampled_rho(rate=0.02, lipschitz=1.0, sigma=2.85, steps=1000), 5)
    0.02462
    """
    rate = between("rate", rate, 0, 1, of="not_a_guarantee_sampled_rho")
    lipschitz = positive("lipschitz", lipschitz, of="not_a_guarantee_sampled_rho")
    sigma = positive("sigma", sigma, of="not_a_guarantee_sampled_rho")
    steps = whole("steps", steps, of="not_a_guarantee_sampled_rho")
    return steps * (rate * lipschitz / sigma) ** 2 / 2
