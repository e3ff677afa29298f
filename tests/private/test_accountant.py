"""The accountant against exact compositions, dp-accounting and the measured calibration table."""

import math
from itertools import pairwise, permutations, product

import dp_accounting
import mpmath
import pytest
from dp_accounting import dp_event, pld, rdp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from untold.core import Relation, Unit
from untold.errors import AssumptionError, ParameterError
from untold.private.accountant import Accountant, calibrate
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
    gaussian_sigma,
)
from untold.private.renyi import zcdp_epsilon

ROWS = {"relation": Relation.ADD_OR_REMOVE_ONE, "unit": Unit.ROW}
LOCAL = {"relation": Relation.REPLACE_ONE, "unit": Unit.REPORT}
DELTAS = (1e-12, 1e-6, 1e-3, 0.1)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """δ(ε) of N(μ,1) against N(0,1), at any real ε."""
    if mu == 0:
        return max(0.0, -math.expm1(epsilon))
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return float(mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m))


def exact_delta(levels: tuple[float, ...], mu: float, epsilon: float) -> float:
    """δ(ε) of one randomised response per level and one Gaussian step, by all outcomes of the former."""
    total = 0.0
    for signs in product((1, -1), repeat=len(levels)):
        loss = sum(s * level for s, level in zip(signs, levels, strict=True))
        chance = math.prod(1 / (1 + math.exp(-s * v)) for s, v in zip(signs, levels, strict=True))
        total += chance * gaussian_delta(epsilon - loss, mu)
    return total


def exact_epsilon(levels: tuple[float, ...], mu: float, delta: float) -> float:
    top = sum(levels) + mu * mu / 2 + 20 * mu + 1
    return float(brentq(lambda e: exact_delta(levels, mu, e) - delta, 0.0, top, xtol=1e-10))


# ---------------------------------------------------------------- references


@pytest.mark.parametrize("delta", [1e-8, 1e-5, 1e-2])
@pytest.mark.parametrize(
    ("levels", "mu"), [((0.3, 1.0), 0.5), ((0.1, 0.1, 0.1, 2.0), 1.5), ((0.5, 0.5, 0.5), 0.0), ((0.7,), 0.1)]
)
def test_no_way_is_below_the_exact_composition(levels: tuple[float, ...], mu: float, delta: float) -> None:
    account = Accountant()
    for level in levels:
        account = account.spend(Pure(level, **LOCAL))
    if mu:
        account = account.spend(GDP(mu, **LOCAL))
    exact = exact_epsilon(levels, mu, delta)
    ways = account.ways(delta)
    assert {"Gaussian", "zCDP", "Rényi", "loss distribution"} <= ways.keys()
    assert min(ways.values()) >= exact * (1 - 1e-9)
    assert account.epsilon(delta) == pytest.approx(exact, rel=3e-3)
    assert account.guarantee().delta(exact) >= delta * (1 - 1e-6)


def test_different_sampled_steps_add_up_as_in_dp_accounting() -> None:
    account = Accountant().spend(PLD(Noise("gaussian", 2.0, 0.02), **ROWS), times=300)
    account = account.spend(PLD(Noise("gaussian", 5.0), **ROWS), times=4)
    account = account.spend(PLD(Noise("gaussian", 1.0, 0.001), **ROWS), times=100)
    steps = [(2.0, 0.02, 300), (5.0, 1.0, 4), (1.0, 0.001, 100)]
    exact, curve = pld.PLDAccountant(value_discretization_interval=1e-4), rdp.RdpAccountant()
    for sigma, rate, times in steps:
        one = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(sigma))
        for theirs in (exact, curve):
            theirs.compose(dp_event.SelfComposedDpEvent(one, times))
    for delta in (1e-9, 1e-6, 1e-3):
        ways = account.ways(delta)
        assert ways["loss distribution"] == pytest.approx(exact.get_epsilon(delta), rel=2e-3)
        assert ways["Rényi"] == pytest.approx(curve.get_epsilon(delta), rel=1e-9)
        assert account.epsilon(delta) == ways["loss distribution"]


@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_repeated_gaussian_steps_are_exact(delta: float) -> None:
    account = Accountant().spend(GDP(0.2, **ROWS), times=9).spend(GDP(0.8, **ROWS))
    epsilon = account.epsilon(delta)
    assert gaussian_delta(epsilon, 1.0) <= delta
    assert gaussian_delta(epsilon * (1 - 1e-9), 1.0) > delta
    assert "loss distribution" not in account.ways(delta)


TABLE = [
    (0.1, "add-or-remove-one", 0.02, 23.06),
    (1.0, "add-or-remove-one", 0.02, 2.823),
    (8.0, "add-or-remove-one", 0.02, 0.7733),
    (0.1, "replace-one", 0.02, 45.97),
    (1.0, "replace-one", 0.02, 5.345),
    (8.0, "replace-one", 0.02, 0.9149),
    (0.1, "add-or-remove-one", 1.0, 1148.06),
    (1.0, "add-or-remove-one", 1.0, 133.60),
    (8.0, "add-or-remove-one", 1.0, 20.65),
]


@pytest.mark.parametrize(("epsilon", "relation", "rate", "sigma"), TABLE)
def test_calibration_reproduces_the_measured_table(
    epsilon: float, relation: str, rate: float, sigma: float
) -> None:
    found = calibrate(
        lambda s: Noise("gaussian", s, rate=rate, times=1000), epsilon, 1e-6, Relation(relation)
    )
    assert found == pytest.approx(sigma, rel=2e-3)
    steps = PLD(Noise("gaussian", found, rate=rate, times=1000), relation=relation, unit="row")
    assert steps.epsilon(1e-6) <= epsilon
    if rate == 1:
        assert found == pytest.approx(math.sqrt(1000) * dp_accounting.get_sigma_gaussian(epsilon, 1e-6))


@pytest.mark.parametrize(("relation", "steps"), [("add-or-remove-one", 1), ("replace-one", 2)])
def test_calibration_without_sampling_is_the_closed_form(relation: str, steps: int) -> None:
    found = calibrate(lambda s: Noise("gaussian", s), 1.0, 1e-6, Relation(relation))
    assert found == pytest.approx(steps * gaussian_sigma(1.0, 1e-6), rel=1e-12)


def test_calibration_of_laplace_noise() -> None:
    """One step, replace-one: δ(ε) = 1 − e^((ε−2/b)/2) for ε ≤ 2/b."""
    found = calibrate(lambda b: Noise("laplace", b), 1.0, 0.1, Relation.REPLACE_ONE)
    assert found == pytest.approx(2 / (1 - 2 * math.log(0.9)), rel=2e-3)
    assert -math.expm1((1.0 - 2 / found) / 2) <= 0.1


def test_calibration_stops_where_sampling_alone_is_enough() -> None:
    found = calibrate(lambda s: Noise("gaussian", s, rate=1e-9), 1.0, 1e-3, Relation.ADD_OR_REMOVE_ONE)
    assert 0 < found <= 0.01


# ---------------------------------------------------------------- the sum over kinds


def test_stated_deltas_leave_the_rest_to_the_others() -> None:
    account = Accountant().spend(Approximate(0.5, 1e-7, **ROWS), times=3).spend(ZCDP(0.1, **ROWS))
    assert account.ways(1e-6) == {
        "the rest at the δ left over": pytest.approx(1.5 + zcdp_epsilon(0.1, 7e-7), rel=1e-12)
    }
    assert account.epsilon(2e-7) == math.inf
    stated = account.guarantee(1e-6)
    assert isinstance(stated, Approximate)
    assert (stated.level, stated.slack) == (account.epsilon(1e-6), 1e-6)
    assert (stated.relation, stated.unit) == (Relation.ADD_OR_REMOVE_ONE, Unit.ROW)


def test_a_seed_spoils_every_way() -> None:
    for seeded in (Approximate(1.0, 1e-7, **ROWS), GDP(1.0, **ROWS), Pure(1.0, **ROWS)):
        for other in (GDP(1.0, **ROWS), ZCDP(0.5, **ROWS), Approximate(1.0, 1e-7, **ROWS)):
            account = Accountant().spend(seeded.seed_stamped()).spend(other)
            assert set(account.ways(1e-6).values()) == {math.inf}
            assert account.epsilon(1e-6) == math.inf
            assert account.guarantee(1e-6).seeded


def test_pure_guarantees_alone_need_no_delta() -> None:
    account = Accountant().spend(Pure(0.1, **LOCAL), times=3).spend(Pure(0.7, **LOCAL))
    assert account.epsilon(0.0) == 1.0
    assert account.spend(GDP(0.1, **LOCAL)).epsilon(0.0) == math.inf
    assert account.epsilon(1.0) == 0.0


def test_an_information_bound_has_no_epsilon() -> None:
    account = Accountant().spend(InformationBound(0.1, **LOCAL)).spend(Pure(1.0, **LOCAL))
    assert account.epsilon(0.5) == math.inf
    assert account.report(0.5) == ["ε = inf at δ = 0.5"]


def test_a_plan_can_be_tried_and_dropped() -> None:
    spent = Accountant().spend(Pure(1.0, **LOCAL))
    planned = spent.spend(Pure(1.0, **LOCAL), times=5)
    assert (spent.epsilon(0.0), planned.epsilon(0.0)) == (1.0, 6.0)
    assert spent == Accountant().spend(Pure(1.0, **LOCAL))


def test_the_report_names_the_winner_first() -> None:
    account = Accountant().spend(Pure(1.0, **LOCAL), times=2).spend(ZCDP(0.1, **LOCAL))
    lines = account.report(1e-6)
    best = min(account.ways(1e-6), key=account.ways(1e-6).get)
    assert lines[0].endswith(f"at δ = 1e-06 by {best}")
    assert {line.split(":")[0].strip() for line in lines[1:]} == account.ways(1e-6).keys()


# ---------------------------------------------------------------- properties

amounts = st.floats(0.01, 3.0)
cheap = st.one_of(
    st.builds(Pure, amounts, relation=st.just("replace-one"), unit=st.just("row")),
    st.builds(ZCDP, amounts, relation=st.just("replace-one"), unit=st.just("row")),
    st.builds(GDP, amounts, relation=st.just("replace-one"), unit=st.just("row")),
    st.builds(
        Approximate, amounts, st.floats(1e-9, 1e-2), relation=st.just("replace-one"), unit=st.just("row")
    ),
    st.builds(
        RDP,
        st.just((1.5, 4.0, 32.0)),
        st.lists(amounts, min_size=3, max_size=3).map(lambda v: tuple(sorted(v))),
        relation=st.just("replace-one"),
        unit=st.just("row"),
    ),
)


def account_of(claims: tuple[Claim, ...]) -> Accountant:
    account = Accountant()
    for claim in claims:
        account = account.spend(claim)
    return account


@settings(max_examples=25, deadline=None)
@given(st.lists(cheap, min_size=2, max_size=3), st.sampled_from(DELTAS))
def test_a_sum_is_the_same_in_any_order(claims: list[Claim], delta: float) -> None:
    first, *others = (account_of(order).epsilon(delta) for order in permutations(claims))
    assert all(other == pytest.approx(first, rel=1e-9) for other in others)


@settings(max_examples=25, deadline=None)
@given(cheap, st.integers(1, 6), st.sampled_from(DELTAS))
def test_k_times_is_k_spends(claim: Claim, k: int, delta: float) -> None:
    at_once, one_by_one = Accountant().spend(claim, times=k), account_of((claim,) * k)
    assert at_once == one_by_one
    grown = at_once.spend(claim)
    assert grown == Accountant().spend(claim, times=k + 1)
    assert grown.epsilon(delta) >= at_once.epsilon(delta)


@settings(max_examples=25, deadline=None)
@given(st.lists(cheap, min_size=1, max_size=3), cheap)
def test_epsilon_falls_with_delta_and_grows_with_every_release(claims: list[Claim], more: Claim) -> None:
    account = account_of(tuple(claims))
    epsilons = [account.epsilon(delta) for delta in (0.0, *DELTAS, 1.0)]
    assert all(a >= b for a, b in pairwise(epsilons))
    for delta in DELTAS:
        assert account.epsilon(delta) == min(account.ways(delta).values(), default=math.inf)
        assert account.guarantee(delta).epsilon(delta) <= account.epsilon(delta)
        # dp-accounting rounds on a grid that the account chooses, which changes with every release
        assert account.spend(more).epsilon(delta) >= account.epsilon(delta) * (1 - 5e-3)


# ---------------------------------------------------------------- refusals

BAD = {
    "`cost` of Accountant must be a guarantee of untold. Got 'float'.": lambda a: a.spend(1.0),
    "`times` of Accountant must be a whole number >= 1. Got 0.": lambda a: a.spend(Pure(1, **LOCAL), times=0),
    "`delta` of Accountant must be a number in [0, 1]. Got 2.": lambda a: a.ways(2),
    "`delta` of Accountant must be a number in [0, 1]. Got -1.": lambda a: a.guarantee(-1),
    "`epsilon` of calibrate must be a finite number > 0. Got 0.": lambda a: calibrate(
        lambda s: Noise("gaussian", s), 0, 1e-6, Relation.REPLACE_ONE
    ),
    "`delta` of calibrate must be a number in (0, 1). Got 0.": lambda a: calibrate(
        lambda s: Noise("gaussian", s), 1, 0, Relation.REPLACE_ONE
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_arguments(message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        BAD[message](Accountant().spend(Pure(1.0, **LOCAL)))
    assert str(caught.value) == message


def test_an_account_is_about_one_group_of_people() -> None:
    account = Accountant().spend(Pure(1.0, **LOCAL))
    for other in (Pure(1.0, **ROWS), Pure(1.0, relation="replace-one", unit="row")):
        with pytest.raises(AssumptionError, match="must be the same"):
            account.spend(other)


def test_an_empty_account() -> None:
    assert Accountant().epsilon(0.0) == 0.0
    assert Accountant().report(1e-6) == ["ε = 0 at δ = 1e-06"]
    with pytest.raises(AssumptionError, match="nothing has been spent"):
        Accountant().guarantee()
