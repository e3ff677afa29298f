"""Sampling against the exact law of small mechanisms, enumerated sample by sample, and dp-accounting."""

import math
from collections.abc import Callable, Iterator
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from dp_accounting import NeighboringRelation, dp_event, pld, rdp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, ndtr

from untold.core import Relation, Unit
from untold.errors import AssumptionError, ParameterError
from untold.private.amplify import not_a_guarantee_sampled_rho, poisson_sample, random_subset
from untold.private.conversions import convert, replace_one
from untold.private.guarantees import (
    GDP,
    PLD,
    RDP,
    ZCDP,
    Approximate,
    Claim,
    InformationBound,
    Noise,
    Pure,
    from_json,
)
from untold.private.noisy_sums import Response, amplified
from untold.private.renyi import ORDERS

JOIN = {"relation": Relation.ADD_OR_REMOVE_ONE, "unit": Unit.ROW}
SWAP = {"relation": Relation.REPLACE_ONE, "unit": Unit.ROW}
POISSON = "records were sampled independently and the sample is secret"
SUBSET = "each batch was a uniformly random subset and is secret"

Rows = tuple[int, ...]
Law = np.ndarray
Mechanism = Callable[[Rows], Law]


# ---------------------------------------------------------------- small mechanisms, exactly


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    return float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())


def poisson_law(mechanism: Mechanism, rows: Rows, rate: float) -> Law:
    """The output's law when each record is taken with probability `rate`: all 2ⁿ samples."""
    law = np.zeros_like(mechanism(()))
    for taken in product((False, True), repeat=len(rows)):
        sample = tuple(row for row, take in zip(rows, taken, strict=True) if take)
        law += rate ** len(sample) * (1 - rate) ** (len(rows) - len(sample)) * mechanism(sample)
    return law


def subset_law(mechanism: Mechanism, rows: Rows, size: int) -> Law:
    """The output's law when `size` records are taken, all choices equally likely."""
    return np.mean([mechanism(sample) for sample in combinations(rows, size)], axis=0)


def multisets(size: int) -> list[Rows]:
    return list(combinations_with_replacement((0, 1, 2), size))


def swaps(size: int) -> Iterator[tuple[Rows, Rows]]:
    """Pairs of data sets of one size that differ in one record."""
    for rest in multisets(size - 1):
        for one, two in product((0, 1, 2), repeat=2):
            if one != two:
                yield (*rest, one), (*rest, two)


def joins(most: int) -> Iterator[tuple[Rows, Rows]]:
    """Pairs of data sets of at most `most` records, one of which has one record more; both directions."""
    for size in range(most):
        for rest, extra in product(multisets(size), (0, 1, 2)):
            yield rest, (*rest, extra)
            yield (*rest, extra), rest


def leaky(epsilon: float, delta: float) -> Mechanism:
    """Whether a 2 is in the sample, by the worst (ε, δ)-private response."""
    odds = math.exp(epsilon) / (1 + math.exp(epsilon))
    yes = np.array([delta, (1 - delta) * odds, (1 - delta) * (1 - odds), 0.0])
    return lambda rows: yes if 2 in rows else yes[::-1]


def tabulated(seed: int, spread: float) -> Mechanism:
    """Any law whatever for each content of the sample."""
    rng = np.random.default_rng(seed)
    weights = {rows: np.exp(spread * rng.uniform(-1, 1, 4)) for n in range(5) for rows in multisets(n)}
    laws = {rows: weight / weight.sum() for rows, weight in weights.items()}
    return lambda rows: laws[tuple(sorted(rows))]


def stated(mechanism: Mechanism, pairs: list[tuple[Rows, Rows]], epsilon: float, common: dict) -> Approximate:
    """The mechanism's exact δ at ε over all neighbours, as a claim."""
    delta = max(hockey_stick(mechanism(one), mechanism(two), epsilon) for one, two in pairs)
    return Approximate(epsilon, min(1.0, delta), **common)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 2.0), st.floats(0.0, 2.0), st.floats(0.01, 1.0))
def test_a_poisson_sample_never_costs_more(seed: int, spread: float, epsilon: float, rate: float) -> None:
    mechanism = tabulated(seed, spread)
    claim = poisson_sample(stated(mechanism, list(joins(3)), epsilon, JOIN), rate)
    for one, two in joins(3):
        laws = [poisson_law(mechanism, rows, rate) for rows in (one, two)]
        assert hockey_stick(*laws, claim.level) <= claim.slack + 1e-12


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 2.0), st.floats(0.0, 2.0), st.integers(1, 4))
def test_a_random_subset_never_costs_more(seed: int, spread: float, epsilon: float, size: int) -> None:
    mechanism = tabulated(seed, spread)
    claim = random_subset(stated(mechanism, list(swaps(size)), epsilon, SWAP), size, 4)
    for one, two in swaps(4):
        laws = [subset_law(mechanism, rows, size) for rows in (one, two)]
        assert hockey_stick(*laws, claim.level) <= claim.slack + 1e-12


@pytest.mark.parametrize("delta", [0.0, 0.1])
@pytest.mark.parametrize("rate", [0.05, 0.5, 1.0])
def test_the_price_of_a_poisson_sample_is_reached(delta: float, rate: float) -> None:
    mechanism = leaky(1.3, delta)
    claim = poisson_sample(Approximate(1.3, delta, **JOIN), rate)
    one, two = (poisson_law(mechanism, rows, rate) for rows in ((0, 1, 2), (0, 1)))
    assert hockey_stick(one, two, claim.level) == pytest.approx(claim.slack, rel=1e-12, abs=1e-15)
    assert hockey_stick(one, two, 0.999 * claim.level) > claim.slack * (1 + 1e-6) + 1e-6
    assert max(hockey_stick(two, one, claim.level), 0.0) <= claim.slack + 1e-15


@pytest.mark.parametrize("delta", [0.0, 0.1])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_the_price_of_a_random_subset_is_reached(delta: float, size: int) -> None:
    mechanism = leaky(1.3, delta)
    claim = random_subset(Approximate(1.3, delta, **SWAP), size, 5)
    one, two = (subset_law(mechanism, rows, size) for rows in ((0, 1, 0, 1, 2), (0, 1, 0, 1, 0)))
    assert hockey_stick(one, two, claim.level) == pytest.approx(claim.slack, rel=1e-12, abs=1e-15)
    assert hockey_stick(one, two, 0.999 * claim.level) > claim.slack * (1 + 1e-6) + 1e-6


def test_why_a_poisson_sample_is_refused_under_replacement() -> None:
    """A mechanism may show the sample's size for nothing there; then it shows who was sampled."""
    level, rate = 1.0, 0.1
    odds = math.exp(level) / (1 + math.exp(level))

    def sized(rows: Rows) -> Law:
        answer = np.array([odds, 1 - odds] if 2 in rows else [1 - odds, odds])
        return np.concatenate([answer * (len(rows) == size) for size in range(3)])

    for one, two in swaps(2):
        assert hockey_stick(sized(one), sized(two), level) <= 1e-15
    one, two = (poisson_law(sized, rows, rate) for rows in ((2,), (0,)))
    assert hockey_stick(one, two, amplified(level, rate)) > 0.01
    with pytest.raises(AssumptionError):
        poisson_sample(Pure(level, **SWAP), rate)


# ---------------------------------------------------------------- noise on a sum


def sampled_gaussian_delta(epsilon: float, sigma: float, rate: float) -> float:
    """δ(ε) of N(0, σ²) against (1−γ)N(0, σ²) + γN(1, σ²), the worse direction, in closed form."""
    turn = sigma**2 * math.log1p(math.expm1(epsilon) / rate) + 0.5  # where the densities are e^ε apart
    tails = [ndtr((mean - turn) / sigma) for mean in (0.0, 1.0)]
    added = rate * tails[1] + (1 - rate) * tails[0] - math.exp(epsilon) * tails[0]
    if math.exp(-epsilon) <= 1 - rate:
        return float(added)
    turn = sigma**2 * math.log1p(math.expm1(-epsilon) / rate) + 0.5
    below = [ndtr((turn - mean) / sigma) for mean in (0.0, 1.0)]
    removed = below[0] - math.exp(epsilon) * (rate * below[1] + (1 - rate) * below[0])
    return float(max(added, removed))


@pytest.mark.parametrize(("sigma", "rate"), [(0.5, 0.02), (1.0, 0.3), (3.0, 0.9)])
def test_one_sampled_gaussian_step(sigma: float, rate: float) -> None:
    claim = poisson_sample(PLD(Noise("gaussian", sigma), **JOIN), rate)
    for epsilon in (0.0, 0.05, 0.3, 1.0):
        exact = sampled_gaussian_delta(epsilon, sigma, rate)
        assert claim.delta(epsilon) >= exact * (1 - 1e-9)
        assert claim.delta(epsilon) == pytest.approx(exact, rel=3e-3, abs=1e-9)


@pytest.mark.parametrize(("common", "relation"), [(JOIN, "ADD_OR_REMOVE_ONE"), (SWAP, "REPLACE_ONE")])
@pytest.mark.parametrize("sigma", [2.85, 1.0])
def test_sampled_noise_is_accounted_as_in_dp_accounting(common: dict, relation: str, sigma: float) -> None:
    claim = poisson_sample(PLD(Noise("gaussian", sigma), **common), 0.02)
    assert claim == PLD(Noise("gaussian", sigma, rate=0.02), **common, assumptions=(POISSON,))
    theirs = pld.PLDAccountant(NeighboringRelation[relation], value_discretization_interval=1e-3)
    step = dp_event.PoissonSampledDpEvent(0.02, dp_event.GaussianDpEvent(sigma))
    theirs.compose(dp_event.SelfComposedDpEvent(step, 1000))
    assert claim.times(1000).epsilon(1e-6) == pytest.approx(theirs.get_epsilon(1e-6), rel=2e-3)


def test_a_gaussian_guarantee_is_sampled_as_noise_on_a_sum() -> None:
    sampled = poisson_sample(GDP(0.5, **JOIN), 0.02)
    noise = poisson_sample(PLD(Noise("gaussian", 2.0), **JOIN), 0.02)
    assert sampled.epsilon(1e-6) == noise.epsilon(1e-6)
    for mu in (0.0, math.inf):
        assert poisson_sample(GDP(mu, **JOIN), 0.02) == GDP(mu, **JOIN)


def test_sampled_laplace_noise() -> None:
    """One step: everything below the turn is e^ε₀ apart, so δ(ε) has a closed form for ε > ln(1+γ(e^½−1))."""
    claim = poisson_sample(PLD(Noise("laplace", 2.0), **JOIN), 0.1)
    assert claim == PLD(Noise("laplace", 2.0, rate=0.1), **JOIN, assumptions=(POISSON,))
    inner = 0.02
    exact = 0.1 * -math.expm1((inner - 0.5) / 2)
    outer = amplified(inner, 0.1)
    assert exact * (1 - 1e-9) <= claim.delta(outer) <= exact * 1.005
    assert claim.delta(amplified(0.5, 0.1) * 1.01) <= 2e-10


TABLE = [(2.85, 2.2521), (1.0, 8.6416)]  # noise over the distance of two neighbours; 1000 steps at 1/50


@pytest.mark.parametrize(("sigma", "epsilon"), TABLE)
def test_random_subsets_reproduce_the_measured_table(sigma: float, epsilon: float) -> None:
    """There σ is over two neighbours' distance; here `scale` is over one record's weight, half of that."""
    claim = random_subset(PLD(Noise("gaussian", 2 * sigma), **SWAP), 1000, 50_000)
    assert round(claim.times(1000).epsilon(1e-6), 4) == epsilon
    step = dp_event.SampledWithoutReplacementDpEvent(50_000, 1000, dp_event.GaussianDpEvent(sigma))
    theirs = rdp.RdpAccountant(ORDERS, NeighboringRelation.REPLACE_ONE).compose(step, 1000)
    assert claim.times(1000).epsilon(1e-6) == pytest.approx(theirs.get_epsilon(1e-6), rel=1e-12)
    assert claim.assumptions == (SUBSET,)


@pytest.mark.parametrize(("sigma", "rate"), [(2.0, 0.1), (4.0, 0.5), (1.0, 0.5)])
def test_the_curve_of_a_random_subset_holds_and_needs_both_doublings(sigma: float, rate: float) -> None:
    """Every other record 0, one record +1 or −1: a sum that moves by 2 if the record is in the subset."""
    x = np.linspace(-40 * sigma - 200, 40 * sigma + 200, 400_001)  # a sum is the integral here

    def log_density(mean: float) -> np.ndarray:
        """Over the normal density around 0."""
        return np.logaddexp(math.log(1 - rate), math.log(rate) + (mean * x - 0.5) / sigma**2)

    base = -0.5 * (x / sigma) ** 2 + math.log((x[1] - x[0]) / sigma / math.sqrt(2 * math.pi))
    up, down = log_density(1.0), log_density(-1.0)

    def exact(order: float) -> float:
        return float(logsumexp(base + order * up - (order - 1) * down)) / (order - 1)

    claim = random_subset(PLD(Noise("gaussian", sigma), **SWAP), round(1000 * rate), 1000)
    careless = random_subset(PLD(Noise("gaussian", 2 * sigma), **SWAP), round(1000 * rate), 1000)
    truth = {order: exact(order) for order in (2.0, 3.0, 8.0, 32.0, 64.0)}
    assert all(claim.at(order) >= value for order, value in truth.items())
    assert any(careless.at(order) < value for order, value in truth.items())


def test_a_subset_that_is_everybody() -> None:
    claim = random_subset(PLD(Noise("gaussian", 5.0), **SWAP), 10, 10)
    assert claim.values == pytest.approx([order * (2 / 5.0) ** 2 / 2 for order in ORDERS], rel=1e-12)
    assert isinstance(claim, RDP)


# ---------------------------------------------------------------- the formula

rates = st.floats(1e-6, 1.0)
levels = st.floats(0.0, 200.0)


@settings(deadline=None)
@given(levels, rates)
def test_the_formula(level: float, rate: float) -> None:
    found = amplified(level, rate)
    assert 0 <= found <= level * (1 + 1e-12)
    assert found >= level + math.log(rate) - 1e-12
    assert math.expm1(found) == pytest.approx(rate * math.expm1(level), rel=1e-9)
    assert amplified(level, 1.0) == pytest.approx(level, rel=1e-12)
    assert amplified(found, 0.5) == pytest.approx(amplified(level, rate * 0.5), rel=1e-9, abs=1e-300)


def test_the_formula_beyond_the_range_of_floats() -> None:
    for rate in (1e-12, 0.3, 1.0):
        below, above = (amplified(50 + step, rate) for step in (-1e-9, 1e-9))
        assert below == pytest.approx(above, rel=1e-9)
        assert amplified(5000.0, rate) == pytest.approx(5000 + math.log(rate))
    assert amplified(60.0, 1e-40) == pytest.approx(math.log1p(1e-40 * math.exp(60)), abs=1e-13)
    assert amplified(math.inf, 0.1) == math.inf
    assert amplified(0.0, 0.1) == 0.0


@settings(deadline=None)
@given(levels, levels, rates, rates, st.floats(0.0, 1.0))
def test_less_data_never_costs_more(one: float, two: float, few: float, many: float, slack: float) -> None:
    (one, two), (few, many) = sorted((one, two)), sorted((few, many))
    for sampled in (poisson_sample(Approximate(one, slack, **JOIN), few),):
        assert sampled.level <= poisson_sample(Approximate(two, slack, **JOIN), few).level * (1 + 1e-12)
        assert sampled.level <= poisson_sample(Approximate(one, slack, **JOIN), many).level * (1 + 1e-12)
        assert sampled.level <= one * (1 + 1e-12)
        assert sampled.slack == few * slack
    pure = poisson_sample(Pure(one, **JOIN), few)
    assert (pure.level, pure.kind) == (sampled.level, "pure")


@settings(deadline=None)
@given(levels, st.integers(1, 50), st.integers(0, 50), st.floats(0.0, 1.0))
def test_both_samplers_share_one_formula(level: float, size: int, others: int, slack: float) -> None:
    for kind in (lambda **c: Pure(level, **c), lambda **c: Approximate(level, slack, **c)):
        subset = random_subset(kind(**SWAP), size, size + others)
        poisson = poisson_sample(kind(**JOIN), size / (size + others))
        assert subset == poisson._but(relation=Relation.REPLACE_ONE, assumptions=(SUBSET,))
        if not others:
            assert subset.level == pytest.approx(level, rel=1e-12)


SAMPLED: dict[str, Callable[[Claim], Claim]] = {
    POISSON: lambda claim: poisson_sample(claim, 0.5),
    SUBSET: lambda claim: random_subset(claim, 1, 2),
}


@pytest.mark.parametrize("line", SAMPLED)
def test_what_a_sampled_guarantee_says(line: str) -> None:
    common = JOIN if line == POISSON else SWAP
    said = {"assumptions": ("rows of norm ≤ 1",), "released": "a model", "citation": "a paper"}
    for claim in (
        Pure(1.0, **common, **said),
        Approximate(1.0, 1e-3, **common, **said),
        PLD(Noise("gaussian", 2.0), **common, **said),
    ):
        sampled = SAMPLED[line](claim)
        assert sampled.assumptions == ("rows of norm ≤ 1", line)
        assert (sampled.released, sampled.citation, sampled.unit) == ("a model", "a paper", Unit.ROW)
        assert sampled.relation is claim.relation
        assert SAMPLED[line](claim.seed_stamped()).epsilon(1e-6) == math.inf
        assert sampled.epsilon(1e-3) < claim.epsilon(1e-3)


# ---------------------------------------------------------------- a figure that is no guarantee


def test_the_figure_of_the_lecture_is_below_the_truth() -> None:
    """γ²L²T/(2σ²) at order 2 against T·ln(1 + γ²(e^(L²/σ²) − 1)), which is exact."""
    figure = not_a_guarantee_sampled_rho(rate=0.01, lipschitz=2.0, sigma=1.0, steps=100)
    assert figure == pytest.approx(100 * (0.01 * 2.0) ** 2 / 2, rel=1e-15)
    exact = 100 * math.log1p(0.01**2 * math.expm1(4.0))
    assert exact > 5 * (2 * figure)
    accounted = poisson_sample(PLD(Noise("gaussian", 0.5), **JOIN), 0.01).times(100)
    assert accounted.curve((2.0,))[0] == pytest.approx(exact, rel=1e-9)
    assert accounted.epsilon(1e-5) > 5 * ZCDP(figure, **JOIN).epsilon(1e-5)
    assert isinstance(figure, float)  # a bare number: there is nothing to compose or to debit
    assert not_a_guarantee_sampled_rho(0.0, 1.0, 1.0, 1) == 0.0


# ---------------------------------------------------------------- refusals

ONE = PLD(Noise("gaussian", 2.0), **JOIN)
BAD = {
    "`rate` of poisson_sample must be a number in (0, 1]. Got 0.": lambda: poisson_sample(ONE, 0),
    "`rate` of poisson_sample must be a number in (0, 1]. Got 1.5.": lambda: poisson_sample(ONE, 1.5),
    "`claim` of poisson_sample must be Pure, Approximate, GDP or PLD. Got 'ZCDP'.": lambda: poisson_sample(
        ZCDP(0.5, **JOIN), 0.5
    ),
    "`claim` of poisson_sample must be Pure, Approximate, GDP or PLD. Got 'RDP'.": lambda: poisson_sample(
        RDP((2.0,), (0.5,), **JOIN), 0.5
    ),
    "`claim` of random_subset must be Pure, Approximate or PLD. Got 'GDP'.": lambda: random_subset(
        GDP(0.5, **SWAP), 1, 2
    ),
    "`claim` of random_subset must be Pure, Approximate or PLD. Got 'InformationBound'.": lambda: (
        random_subset(InformationBound(0.5, **SWAP), 1, 2)
    ),
    "`law` of random_subset must be gaussian for a loss distribution. Got 'laplace'.": lambda: random_subset(
        PLD(Noise("laplace", 2.0), **SWAP), 1, 2
    ),
    "`size` of random_subset must be a whole number >= 1. Got 0.": lambda: random_subset(
        Pure(1.0, **SWAP), 0, 2
    ),
    "`population` of random_subset must be a whole number >= 3. Got 2.": lambda: random_subset(
        Pure(1.0, **SWAP), 3, 2
    ),
    "`rate` of not_a_guarantee_sampled_rho must be a number in [0, 1]. Got 2.": lambda: (
        not_a_guarantee_sampled_rho(2, 1.0, 1.0, 1)
    ),
    "`lipschitz` of not_a_guarantee_sampled_rho must be a finite number > 0. Got 0.": lambda: (
        not_a_guarantee_sampled_rho(0.1, 0, 1.0, 1)
    ),
    "`sigma` of not_a_guarantee_sampled_rho must be a finite number > 0. Got -1.": lambda: (
        not_a_guarantee_sampled_rho(0.1, 1.0, -1, 1)
    ),
    "`steps` of not_a_guarantee_sampled_rho must be a whole number >= 1. Got 0.5.": lambda: (
        not_a_guarantee_sampled_rho(0.1, 1.0, 1.0, 0.5)
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_arguments(message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        BAD[message]()
    assert str(caught.value) == message


TOO_MUCH = {
    "two steps": Noise("gaussian", 2.0, times=2),
    "two events": (Noise("gaussian", 2.0), Noise("gaussian", 3.0)),
    "a sampled step": Noise("gaussian", 2.0, rate=0.5),
    "no noise at all": Response(1.0),
}


@pytest.mark.parametrize("events", TOO_MUCH.values(), ids=TOO_MUCH)
@pytest.mark.parametrize("sampler", ["poisson_sample", "random_subset"])
def test_only_one_step_is_sampled_at_a_time(sampler: str, events: tuple[Noise, ...]) -> None:
    line, common = (POISSON, JOIN) if sampler == "poisson_sample" else (SUBSET, SWAP)
    claim = PLD(events, **common)
    with pytest.raises(ParameterError) as caught:
        SAMPLED[line](claim)
    assert str(caught.value) == (
        f"`claim` of {sampler} must be one step of noise on a sum. Got {str(claim)!r}.\n"
        "hint: sample each step, then compose."
    )


PAIRS = "hint: Poisson sampling goes with add-or-remove-one, subsets of fixed size with replace-one."


@pytest.mark.parametrize("make", [lambda **c: Pure(1.0, **c), lambda **c: Approximate(1.0, 1e-3, **c)])
def test_a_sampler_goes_with_one_relation(make: Callable[..., Claim]) -> None:
    with pytest.raises(AssumptionError) as caught:
        poisson_sample(make(**SWAP), 0.5)
    said = "`relation` of poisson_sample must be 'add-or-remove-one'. Got 'replace-one'."
    assert str(caught.value) == f"{said}\n{PAIRS}"
    with pytest.raises(AssumptionError) as caught:
        random_subset(make(**JOIN), 1, 2)
    said = "`relation` of random_subset must be 'replace-one'. Got 'add-or-remove-one'."
    assert str(caught.value) == f"{said}\n{PAIRS}"


def test_noise_on_a_sum_goes_with_its_relation_too() -> None:
    with pytest.raises(AssumptionError, match="`relation` of random_subset"):
        random_subset(ONE, 1, 2)
    with pytest.raises(AssumptionError, match="`relation` of poisson_sample"):
        poisson_sample(GDP(0.5, **SWAP), 0.5)
    with pytest.raises(AssumptionError, match="sampled Laplace"):
        poisson_sample(PLD(Noise("laplace", 2.0), **SWAP), 0.5)


# -- what once claimed too little ------------------------------------------------------------------


def test_a_huge_sampled_laplace_loss_is_not_cut_off():
    claim = PLD((Noise("laplace", 1e-3, rate=0.5),), relation=Relation.ADD_OR_REMOVE_ONE, unit=Unit.ROW)
    assert 1000 + math.log(0.5) < claim.epsilon(1e-12) < 1000
    assert claim.epsilon(1e-6) > 998  # and no overflow where dp-accounting has one


def test_a_mechanism_known_by_mu_alone_is_not_a_sum():
    known = GDP(0.5, relation=Relation.REPLACE_ONE, unit=Unit.ROW)
    for claim in (known, convert(known, PLD)):
        with pytest.raises(AssumptionError):
            poisson_sample(claim, 0.01)
    with pytest.raises(AssumptionError):
        random_subset(convert(known, PLD), 10, 1000)
    sampled = poisson_sample(GDP(0.5, relation=Relation.ADD_OR_REMOVE_ONE, unit=Unit.ROW), 0.01)
    with pytest.raises(AssumptionError):
        replace_one(sampled)
    assert from_json(sampled.to_json()) == sampled


def test_a_group_of_a_huge_response_has_no_delta_left():
    assert Response(800.0, 1e-310).group(2).delta == 1.0
