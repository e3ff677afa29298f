"""Every claim against the exact profile of a mechanism, its algebra, its JSON and its words."""

import copy
import json
import math
import pickle
import subprocess
import sys
from itertools import pairwise

import dp_accounting
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from untold.core import Relation, Unit
from untold.errors import AssumptionError, DataError, ParameterError
from untold.private import renyi
from untold.private.accountant import Accountant
from untold.private.conversions import approximate, convert, information_nats, replace_one
from untold.private.gaussian_profile import gdp_epsilon, log_delta
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
    Response,
    from_json,
    gaussian_sigma,
    gdp_mu,
)
from untold.private.loss_distributions import loss_distribution

LOCAL = {"relation": Relation.REPLACE_ONE, "unit": Unit.REPORT}
ROWS = {"relation": Relation.ADD_OR_REMOVE_ONE, "unit": Unit.ROW}


# ---------------------------------------------------------------- the exact profiles of three mechanisms


def response_delta(epsilon0: float, epsilon: float) -> float:
    """δ(ε) of binary randomised response, summed over its two outcomes."""
    p = math.exp(epsilon0) / (1 + math.exp(epsilon0))
    return sum(max(0.0, a - math.exp(epsilon) * b) for a, b in ((p, 1 - p), (1 - p, p)))


def laplace_delta(epsilon0: float, epsilon: float) -> float:
    """δ(ε) of Laplace noise of scale 1/ε₀ on answers 0 and 1, by quadrature."""

    def surplus(x: float) -> float:
        first, second = (math.exp(-epsilon0 * abs(x - mean)) * epsilon0 / 2 for mean in (0.0, 1.0))
        return max(0.0, first - math.exp(epsilon) * second)

    turn = (epsilon0 - epsilon) / (2 * epsilon0)
    return sum(quad(surplus, a, b)[0] for a, b in ((-np.inf, 0.0), (0.0, max(0.0, turn))))


def gaussian_log_delta(epsilon: float, mu: float) -> mpmath.mpf:
    """ln δ(ε) of N(0,1) against N(μ,1), to 400 digits."""
    with mpmath.workdps(400):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)

        def tail(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.erfc(x / mpmath.sqrt(2)) / 2

        return mpmath.log(tail(e / m - m / 2) - mpmath.exp(e) * tail(e / m + m / 2))


EPSILONS = (0.0, 0.05, 0.3, 1.0, 2.5, 6.0)


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 4.0])
def test_whatever_pure_converts_to_holds_for_randomised_response_and_laplace(epsilon0: float) -> None:
    pure = Pure(epsilon0, **LOCAL)
    claims = [pure, *(convert(pure, kind) for kind in (Approximate, ZCDP, GDP, RDP, PLD))]
    for claim in claims:
        assert claim is not None
        for epsilon in EPSILONS:
            stated = claim.delta(epsilon)
            assert stated >= response_delta(epsilon0, epsilon) - 1e-14
            assert stated >= laplace_delta(epsilon0, epsilon) - 1e-10
    for epsilon in EPSILONS:
        assert pure.delta(epsilon) == pytest.approx(response_delta(epsilon0, epsilon), abs=1e-15)
        assert convert(pure, PLD).delta(epsilon) == pytest.approx(
            response_delta(epsilon0, epsilon), rel=2e-3, abs=1e-9
        )


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_whatever_gdp_converts_to_holds_for_gaussian_noise(mu: float) -> None:
    gdp = GDP(mu, **LOCAL)
    for kind in (GDP, ZCDP, RDP, PLD):
        claim = convert(gdp, kind)
        for epsilon in EPSILONS:
            exact = float(mpmath.exp(gaussian_log_delta(epsilon, mu)))
            assert claim.delta(epsilon) >= exact * (1 - 1e-12)
            if kind in {GDP, PLD}:
                assert claim.delta(epsilon) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_laplace_noise_by_its_loss_distribution(scale: float) -> None:
    claim = PLD(Noise("laplace", scale), **ROWS)
    for epsilon in (0.0, 0.2, 0.4, 1.5):
        exact = laplace_delta(1 / scale, epsilon)
        assert claim.delta(epsilon) >= exact - 1e-12
        assert claim.delta(epsilon) == pytest.approx(exact, rel=1e-3, abs=1e-9)
    assert claim.epsilon(0.0) == pytest.approx(1 / scale)
    assert replace_one(claim).epsilon(0.0) == pytest.approx(2 / scale)
    assert replace_one(claim).delta(0.1) == pytest.approx(laplace_delta(2 / scale, 0.1), rel=1e-3)


# ---------------------------------------------------------------- Gaussian calibration

CORNERS = [(e, d) for e in (0.0, 1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0) for d in (1e-300, 1e-30, 1e-6, 0.01, 0.5)]


@pytest.mark.parametrize(("epsilon", "delta"), CORNERS)
def test_the_calibrated_sigma_is_enough_and_nearly_the_smallest(epsilon: float, delta: float) -> None:
    sigma = gaussian_sigma(epsilon, delta)
    with mpmath.workdps(400):
        target = mpmath.log(mpmath.mpf(delta))
        assert gaussian_log_delta(epsilon, 1 / mpmath.mpf(sigma)) <= target
        assert gaussian_log_delta(epsilon, 1 / (mpmath.mpf(sigma) * (1 - mpmath.mpf(10) ** -9))) > target
    assert gaussian_sigma(epsilon, delta, sensitivity=2.0) == pytest.approx(2 * sigma, rel=1e-15)
    assert gdp_epsilon(gdp_mu(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-9, abs=1e-9)
    if epsilon >= 1e-3 and delta >= 1e-30:  # below, dp-accounting loses digits, to the wrong side
        assert sigma == pytest.approx(dp_accounting.get_sigma_gaussian(epsilon, delta), rel=1e-9)


@pytest.mark.parametrize("mu", [1e-8, 1e-4, 0.3, 0.999, 1.0, 1.5, 5.0, 14.0, 50.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 1e-2, 1.0, 10.0, 100.0])
def test_the_gaussian_profile_in_log_space(epsilon: float, mu: float) -> None:
    if epsilon / mu - mu / 2 > 30:  # below 1e-195, where mpmath's own difference has no digits left
        assert log_delta(epsilon, mu) < -440
        return
    assert log_delta(epsilon, mu) == pytest.approx(
        float(gaussian_log_delta(epsilon, mu)), rel=1e-14, abs=1e-14
    )


def test_the_gaussian_profile_far_out() -> None:
    assert log_delta(1e200, 1e-200) == -math.inf
    assert log_delta(1e6, 1.0) == pytest.approx(-((1e6 - 0.5) ** 2) / 2, rel=1e-9)
    assert [log_delta(1.0, mu) for mu in (0.0, math.inf)] == [-math.inf, 0.0]
    assert [gdp_epsilon(1.0, d) for d in (0.0, 1.0)] == [math.inf, 0.0]
    assert [gdp_epsilon(m, 0.5) for m in (0.0, 1.0, math.inf)] == [0.0, 0.0, math.inf]


# ---------------------------------------------------------------- Rényi


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0, 800.0])
def test_the_renyi_curve_of_pure_privacy_is_randomised_response(epsilon: float) -> None:
    orders = np.array([1.0, 1.001, 1.5, 2.0, 7.0, 100.0, np.inf])
    curve = renyi.pure_curve(epsilon, orders)
    with mpmath.workdps(1000):
        p = mpmath.exp(epsilon) / (1 + mpmath.exp(epsilon))
        q = 1 - p
        for order, value in zip(orders[1:-1], curve[1:-1], strict=True):
            a = mpmath.mpf(float(order))
            exact = mpmath.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)
            assert value == pytest.approx(float(exact), rel=1e-9)
        assert curve[0] == pytest.approx(float((p - q) * mpmath.log(p / q)), rel=1e-12)
    assert curve[-1] == epsilon
    assert all(a <= b * (1 + 1e-12) for a, b in pairwise(curve))
    rho = convert(Pure(epsilon, **LOCAL), ZCDP).rho
    assert np.all(curve[:-1] <= orders[:-1] * rho * (1 + 1e-12))
    assert rho == pytest.approx(curve[0])  # attained at order 1: no smaller ρ is possible
    assert rho <= epsilon**2 / 2


def test_the_gdp_of_pure_privacy_touches_its_profile() -> None:
    pure = Pure(1.0, **LOCAL)
    mu = convert(pure, GDP).mu
    assert GDP(mu, **LOCAL).delta(0.0) == pytest.approx(pure.delta(0.0), rel=1e-12)
    assert GDP(0.999 * mu, **LOCAL).delta(0.0) < pure.delta(0.0)
    assert convert(Pure(800.0, **LOCAL), GDP).mu == math.inf


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 5.0, 100.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.1, 0.9])
def test_the_conversion_of_zcdp_is_the_best_over_all_orders(rho: float, delta: float) -> None:
    orders = 1 + np.logspace(-6, 9, 30_001)
    best = renyi.curve_epsilon(orders, rho * orders, delta)
    epsilon = renyi.zcdp_epsilon(rho, delta)
    assert epsilon <= best * (1 + 1e-12)
    assert epsilon == pytest.approx(best, rel=1e-5, abs=1e-9)
    assert epsilon >= gdp_epsilon(math.sqrt(2 * rho), delta) * (1 - 1e-12)
    if epsilon > 0:
        assert renyi.zcdp_delta(rho, epsilon) == pytest.approx(delta, rel=1e-7)


def test_curves_convert_as_in_dp_accounting() -> None:
    from dp_accounting.rdp import rdp_privacy_accountant as theirs

    orders = np.array(renyi.ORDERS)
    assert list(renyi.ORDERS) == theirs.DEFAULT_RDP_ORDERS
    for rho in (0.001, 0.3, 4.0):
        for delta in (1e-12, 1e-6, 0.3):
            assert renyi.curve_epsilon(orders, orders * rho, delta) == pytest.approx(
                theirs.compute_epsilon(orders, orders * rho, delta)[0], rel=1e-12
            )
        for epsilon in (0.1, 2.0, 20.0):
            assert renyi.curve_delta(orders, orders * rho, epsilon) == pytest.approx(
                theirs.compute_delta(orders, orders * rho, epsilon)[0], rel=1e-12
            )


def test_a_curve_with_order_inf_is_also_pure() -> None:
    curve = convert(Pure(0.7, **LOCAL), RDP)
    assert curve.epsilon(0.0) == 0.7
    assert curve.delta(0.7) == 0.0
    assert curve.at(5000.0) == 0.7
    assert RDP((2.0,), (0.3,), **LOCAL).at(3.0) == math.inf
    assert RDP((2.0,), (0.3,), **LOCAL).delta(math.inf) == 0.0
    assert RDP((2.0,), (math.inf,), **LOCAL).delta(math.inf) == 1.0
    assert RDP((2.0,), (0.0,), **LOCAL).epsilon(0.0) == 0.0


# ---------------------------------------------------------------- edges and shape, for every kind

EXAMPLES = {
    "pure": Pure(1.0, **LOCAL),
    "approximate": Approximate(1.0, 1e-6, **LOCAL),
    "zcdp": ZCDP(0.5, **LOCAL),
    "gdp": GDP(1.0, **LOCAL),
    "rdp": RDP((1.0, 2.0, 32.0, math.inf), (0.1, 0.2, 3.0, 5.0), **LOCAL),
    "pld": PLD((Noise("gaussian", 3.0, 0.1, 20), Response(0.1, 1e-9, 2)), **ROWS),
    "information": InformationBound(0.2, **LOCAL),
}


@pytest.mark.parametrize("claim", EXAMPLES.values(), ids=EXAMPLES)
def test_every_claim_is_monotone_and_right_at_the_edges(claim: Claim) -> None:
    deltas = [0.0, 1e-300, 1e-12, 1e-6, 1e-3, 0.3, 0.99, 1.0]
    epsilons = [claim.epsilon(delta) for delta in deltas]
    assert all(a >= b for a, b in pairwise(epsilons))
    assert epsilons[-1] == 0.0
    profile = [claim.delta(epsilon) for epsilon in (0.0, 0.01, 0.5, 1.0, 4.0, 50.0)]
    assert all(0 <= b <= a <= 1 for a, b in pairwise(profile))
    assert claim.delta(math.inf) <= profile[-1]
    seeded = claim.seed_stamped()
    assert seeded.epsilon(0.5) == math.inf
    assert seeded.delta(3.0) == 1.0
    assert str(seeded).startswith("seeded: not private")
    if claim.kind != "information":
        assert claim.compose(seeded).seeded
        assert replace_one(claim).relation is Relation.REPLACE_ONE


@pytest.mark.parametrize("claim", EXAMPLES.values(), ids=EXAMPLES)
def test_every_claim_survives_the_journey(claim: Claim) -> None:
    claim = claim.assuming("rows are of norm ≤ 1").seed_stamped()
    assert from_json(json.loads(json.dumps(claim.to_json()))) == claim
    assert pickle.loads(pickle.dumps(claim)) == claim  # noqa: S301
    assert copy.deepcopy(claim) == claim
    assert hash(copy.copy(claim)) == hash(claim)
    assert eval(repr(claim), {**globals(), "inf": math.inf}) == claim  # noqa: S307
    with pytest.raises(AttributeError):
        claim.seeded = False


@pytest.mark.parametrize("claim", EXAMPLES.values(), ids=EXAMPLES)
def test_k_times_is_k_compositions(claim: Claim) -> None:
    thrice = claim.times(3)
    assert type(thrice) is type(claim)
    composed = claim.compose(claim).compose(claim)
    assert type(composed) is type(claim)
    for delta in (0.0, 1e-5, 0.2):
        assert composed.epsilon(delta) == pytest.approx(thrice.epsilon(delta), rel=1e-9)
        assert thrice.epsilon(delta) >= claim.epsilon(delta)


@pytest.mark.parametrize(
    ("claim", "four"),
    [
        (Pure(0.5, **ROWS), Pure(2.0, **ROWS)),
        (ZCDP(0.5, **ROWS), ZCDP(8.0, **ROWS)),
        (GDP(0.5, **ROWS), GDP(2.0, **ROWS)),
        (RDP((4.0, 8.0, 16.0), (1.0, 2.0, 4.0), **ROWS), RDP((2.0, 4.0), (18.0, 36.0), **ROWS)),
        (PLD(Noise("gaussian", 2.0), **ROWS), PLD(Noise("gaussian", 0.5), **ROWS)),
        (PLD(Response(0.5), **ROWS), PLD(Response(2.0), **ROWS)),
    ],
)
def test_group_privacy(claim: Claim, four: Claim) -> None:
    assert claim.group(4) == four
    assert claim.group(4, unit=Unit.PERSON).unit is Unit.PERSON
    assert claim.group(1) == claim
    if claim.kind == "rdp":
        assert claim.group(3) == four  # the next power of two


def test_group_privacy_of_approximate_is_the_chain_of_its_steps() -> None:
    claim = Approximate(0.5, 1e-6, **ROWS).group(3)
    assert claim.level == 1.5
    assert claim.slack == pytest.approx(1e-6 * (1 + math.exp(0.5) + math.exp(1.0)))
    exact = 2 * 1e-6 + (math.exp(0.5) - 1) * 1e-6
    assert replace_one(Approximate(0.5, 1e-6, **ROWS)).slack == pytest.approx(exact)


def test_what_groups_cannot_be() -> None:
    for claim in (EXAMPLES["information"], EXAMPLES["pld"], RDP((2.0,), (1.0,), **ROWS)):
        with pytest.raises(AssumptionError):
            claim.group(2)


def test_a_replacement_costs_what_it_costs_a_gaussian_sum() -> None:
    """Adding a row moves the sum by 1, replacing one by 2: μ, ρ and the loss distribution agree on it."""
    once = [GDP(0.5, **ROWS), ZCDP(0.125, **ROWS), PLD(Noise("gaussian", 2.0), **ROWS)]
    assert replace_one(once[0]).mu == 1.0
    assert replace_one(once[1]).rho == 0.5
    assert replace_one(once[2]).mu == 1.0
    assert replace_one(Pure(0.5, **ROWS)).level == 1.0
    assert replace_one(PLD(Response(0.5), **ROWS)).pure == (1.0, 0.0)
    assert replace_one(RDP((2.0, 8.0), (1.0, 4.0), **ROWS)) == RDP(
        (4.0,), (12.0,), **(ROWS | {"relation": "replace-one"})
    )


# ---------------------------------------------------------------- loss distributions (research table)


@pytest.mark.parametrize(
    ("relation", "interval", "sigma", "epsilon"),
    [
        ("add-or-remove-one", 1e-4, 2.85, 0.98842),
        ("add-or-remove-one", 1e-3, 2.85, 0.98998),
        ("add-or-remove-one", 1e-4, 1.0, 4.4452),
        ("add-or-remove-one", 1e-3, 1.0, 4.4457),
        ("replace-one", 1e-4, 2.85, 1.9787),
        ("replace-one", 1e-4, 1.0, 6.9513),
    ],
)
def test_loss_distributions_reproduce_the_measured_table(
    relation: str, interval: float, sigma: float, epsilon: float
) -> None:
    claim = PLD(Noise("gaussian", sigma, 0.02, 1000), relation=relation, unit="row")
    digits = len(str(epsilon).split(".")[1])
    found = loss_distribution(claim.events, claim.relation, interval).get_epsilon_for_delta(1e-6)
    assert round(found, digits) == epsilon
    assert claim.epsilon(1e-6) == pytest.approx(epsilon, rel=2e-3)


@pytest.mark.parametrize(("sigma", "epsilon"), [(2.85, 1.0692), (1.0, 4.8728)])
def test_renyi_curves_reproduce_the_measured_table(sigma: float, epsilon: float) -> None:
    claim = convert(PLD(Noise("gaussian", sigma, 0.02, 1000), **ROWS), RDP)
    assert round(claim.epsilon(1e-6), 4) == epsilon


def test_plain_gaussian_events_are_exact_and_need_no_grid() -> None:
    claim = PLD((Noise("gaussian", 3.0, times=9), Noise("gaussian", 1.0)), **ROWS)
    assert claim.epsilon(1e-200) == GDP(math.sqrt(2.0), **ROWS).epsilon(1e-200)
    assert convert(claim, GDP).mu == pytest.approx(math.sqrt(2))
    assert convert(claim, ZCDP).rho == pytest.approx(1.0)


def test_below_the_floor_a_renyi_bound_answers() -> None:
    claim = PLD(Noise("gaussian", 2.0, 0.05, 100), **ROWS)
    assert claim.epsilon(1e-30) == convert(claim, RDP).epsilon(1e-30)
    assert claim.delta(50.0) <= 1e-10


def test_an_event_that_reveals_nothing_costs_nothing() -> None:
    silent, noise = Response(0.0), Noise("gaussian", 2.0, 0.1, 10)
    assert PLD(silent, **ROWS).epsilon(1e-6) == 0.0
    assert PLD(silent, **ROWS).delta(0.0) == 0.0
    with_it, without = (PLD(events, **ROWS).epsilon(1e-6) for events in ((noise, silent), (noise,)))
    assert without <= with_it <= without + 2e-4
    assert PLD((noise, Response(0.0, 1e-3)), **ROWS).epsilon(1e-4) == math.inf


def test_an_event_that_reveals_everything() -> None:
    claim = PLD((Response(math.inf), Noise("laplace", 1.0)), **ROWS)
    assert claim.epsilon(1e-6) == math.inf
    assert claim.delta(3.0) == 1.0


def test_sampling_that_has_no_curve_is_ignored_which_is_safe() -> None:
    claim = PLD(Noise("gaussian", 4.0, 0.1, 10), **LOCAL)
    assert convert(claim, RDP).at(2.0) == pytest.approx(10 * 2 * (2 / 4.0) ** 2 / 2)
    assert convert(claim, ZCDP) is None
    sampled = convert(PLD(Noise("laplace", 1.0, 0.1, 10), **ROWS), RDP)
    assert sampled.at(math.inf) == math.inf or sampled.at(math.inf) <= 10.0
    assert sampled.epsilon(1e-6) < convert(PLD(Noise("laplace", 1.0, 1.0, 10), **ROWS), RDP).epsilon(1e-6)


# ---------------------------------------------------------------- composition


def test_different_kinds_meet_in_the_tightest_common_one() -> None:
    pure, zcdp, gdp = Pure(1.0, **LOCAL), ZCDP(0.5, **LOCAL), GDP(1.0, **LOCAL)
    curve, stated = RDP((2.0, 8.0), (0.1, 0.4), **LOCAL), Approximate(1.0, 1e-7, **LOCAL)
    kinds = {
        (pure, zcdp): ZCDP,
        (gdp, zcdp): ZCDP,
        (pure, gdp): PLD,
        (stated, gdp): PLD,
        (pure, stated): Approximate,
        (pure, curve): RDP,
        (zcdp, curve): RDP,
        (stated, zcdp): Approximate,
        (InformationBound(0.1, **LOCAL), pure): InformationBound,
        (Approximate(1.0, 0.0, **LOCAL), pure): Pure,
        (Approximate(1.0, 0.0, **LOCAL), zcdp): ZCDP,
    }
    for (one, two), kind in kinds.items():
        assert type(one.compose(two)) is kind
        for delta in (1e-5, 0.1):
            assert one.compose(two).epsilon(delta) == pytest.approx(two.compose(one).epsilon(delta), rel=1e-9)
            assert one.compose(two).epsilon(delta) >= max(one.epsilon(delta), two.epsilon(delta)) - 1e-9
    assert stated.compose(zcdp).slack == 2e-7
    assert InformationBound(0.1, **LOCAL).compose(pure).nats == pytest.approx(0.1 + math.tanh(0.5))


def test_what_does_not_compose() -> None:
    pure = Pure(1.0, **LOCAL)
    for other in (
        Pure(1.0, relation="replace-one", unit="row"),
        Pure(1.0, relation="add-or-remove-one", unit="report"),
    ):
        with pytest.raises(AssumptionError, match="must be the same"):
            pure.compose(other)
    with pytest.raises(AssumptionError, match="information"):
        InformationBound(0.1, **ROWS).compose(Pure(1.0, **ROWS))
    with pytest.raises(AssumptionError, match="information"):
        information_nats(Approximate(1.0, 1e-6, **LOCAL))


def test_composition_unites_what_is_said() -> None:
    one = Pure(1.0, **LOCAL, assumptions=("a", "b"), released="x", citation="c")
    two = Pure(1.0, **LOCAL, assumptions=("b", "d"), released="y", citation="c")
    both = one.compose(two)
    assert (both.assumptions, both.released, both.citation) == (("a", "b", "d"), "x; y", "c")
    assert approximate(one.seed_stamped(), 0.1).seeded


people = {"relation": st.just("replace-one"), "unit": st.just("row")}
amounts = st.floats(0.0, 5.0, allow_subnormal=False)
curves = st.lists(amounts, min_size=3, max_size=3).map(lambda values: tuple(sorted(values)))
kinds = [
    st.builds(Pure, amounts, **people),
    st.builds(ZCDP, amounts, **people),
    st.builds(GDP, amounts, **people),
    st.builds(Approximate, amounts, st.floats(0, 0.1), **people),
    st.builds(RDP, st.just((1.5, 4.0, 32.0)), curves, **people),
]
claims = st.one_of(kinds)
triples = st.one_of([st.tuples(kind, kind, kind) for kind in kinds])


@settings(max_examples=60, deadline=None)
@given(triples, st.sampled_from([0.0, 1e-9, 1e-3, 0.5]))
def test_composition_is_a_sum(three: tuple[Claim, Claim, Claim], delta: float) -> None:
    a, b, c = three
    total = a.compose(b).compose(c)
    for other in (a.compose(b.compose(c)), c.compose(a).compose(b)):
        assert other.epsilon(delta) == pytest.approx(total.epsilon(delta), rel=1e-9, abs=1e-9)
    assert total.epsilon(delta) >= a.compose(b).epsilon(delta) - 1e-9
    assert Accountant().spend(a).spend(b).spend(c).epsilon(delta) <= total.epsilon(delta) + 1e-9


@settings(max_examples=60, deadline=None)
@given(claims, st.floats(0, 20))
def test_epsilon_undoes_delta(claim: Claim, epsilon: float) -> None:
    delta = claim.delta(epsilon)
    assert from_json(json.loads(json.dumps(claim.to_json()))) == claim
    if delta < 1:
        assert claim.epsilon(delta) <= epsilon * (1 + 1e-6) + 1e-6 or delta < 1e-290
        assert claim.delta(claim.epsilon(delta)) <= delta * (1 + 1e-6) + 1e-300


def test_decimal_sums() -> None:
    assert Pure(0.1, **LOCAL).times(3).level == 0.3
    assert Pure(0.1, **LOCAL).compose(Pure(0.2, **LOCAL)).level == 0.3
    assert Pure(math.inf, **LOCAL).times(2).level == math.inf


# ---------------------------------------------------------------- words and refusals


def test_every_kind_prints_one_honest_line() -> None:
    lines = {
        "pure": "ε = 1, δ = 0: pure differential privacy, replace-one, per report",
        "approximate": "ε = 1, δ = 1e-06: approximate differential privacy, replace-one, per report",
        "zcdp": "ρ = 0.5: zero-concentrated differential privacy, replace-one, per report",
        "gdp": "μ = 1: Gaussian differential privacy, replace-one, per report",
        "rdp": "D at order inf ≤ 5 (4 orders): Rényi differential privacy, replace-one, per report",
        "pld": "20 × gaussian 3 at rate 0.1 + 2 × (ε = 0.1, δ = 1e-09): differential privacy by its loss "
        "distribution, add-or-remove-one, per row",
        "information": "I ≤ 0.2 nats: bounded mutual information, which implies no ε, replace-one, "
        "per report",
    }
    assert {kind: str(claim) for kind, claim in EXAMPLES.items()} == lines
    told = Pure(0.123456789, **LOCAL, released="a count", assumptions=("one row each", "a secret sample"))
    assert str(told) == (
        "ε = 0.123457, δ = 0: pure differential privacy, replace-one, per report; releases a count; "
        "assumes one row each and a secret sample"
    )
    assert str(Pure(1.0000001, **LOCAL)).startswith("ε = 1.00001")  # never rounded down


BAD = [
    (lambda: Pure(-1, **LOCAL), "`epsilon` of Pure must be a number in [0, inf]. Got -1."),
    (lambda: Pure(math.nan, **LOCAL), "`epsilon` of Pure must be a number in [0, inf]. Got nan."),
    (lambda: Pure(True, **LOCAL), "`epsilon` of Pure must be a number in [0, inf]. Got True."),
    (lambda: Approximate(1, 2, **LOCAL), "`delta` of Approximate must be a number in [0, 1]. Got 2."),
    (lambda: ZCDP("1", **LOCAL), "`rho` of ZCDP must be a number in [0, inf]. Got '1'."),
    (lambda: GDP(-0.5, **LOCAL), "`mu` of GDP must be a number in [0, inf]. Got -0.5."),
    (lambda: RDP((0.5,), (1,), **LOCAL), "`orders` of RDP must be a number in [1, inf]. Got 0.5."),
    (
        lambda: RDP((2, 2), (1, 1), **LOCAL),
        "`orders` of RDP must be increasing and as many as the 2 values. Got (2, 2).",
    ),
    (lambda: RDP((), (), **LOCAL), "`orders` of RDP must be increasing and as many as the 0 values. Got ()."),
    (lambda: RDP((2,), (-1,), **LOCAL), "`values` of RDP must be a number in [0, inf]. Got -1."),
    (lambda: PLD((), **LOCAL), "`number of events` of PLD must be a whole number >= 1. Got 0."),
    (lambda: Noise("cauchy", 1), "`law` of Noise must be one of 'gaussian', 'laplace'. Got 'cauchy'."),
    (lambda: Noise("laplace", 0), "`scale` of Noise must be a finite number > 0. Got 0."),
    (lambda: Noise("laplace", 1, rate=0), "`rate` of Noise must be a number in (0, 1]. Got 0."),
    (lambda: Response(1, times=0), "`times` of Response must be a whole number >= 1. Got 0."),
    (
        lambda: InformationBound(-1, **LOCAL),
        "`nats` of InformationBound must be a number in [0, inf]. Got -1.",
    ),
    (lambda: Pure(1, relation="any", unit="row"), "`relation` of Pure must be one of"),
    (lambda: Pure(1, relation="replace-one", unit="family"), "`unit` of Pure must be one of"),
    (lambda: Pure(1, **LOCAL, seeded="yes"), "`seeded` of Pure must be one of False, True. Got 'yes'."),
    (lambda: Pure(1, **LOCAL, assumptions=(1,)), "`assumptions` of Pure must be text. Got 1."),
    (lambda: Pure(1, **LOCAL).epsilon(-0.1), "`delta` of Pure must be a number in [0, 1]. Got -0.1."),
    (lambda: Pure(1, **LOCAL).delta(-1), "`epsilon` of Pure must be a number in [0, inf]. Got -1."),
    (lambda: Pure(1, **LOCAL).times(1.5), "`count` of times must be a whole number >= 1. Got 1.5."),
    (lambda: Pure(1, **LOCAL).group(0), "`size` of group must be a whole number >= 1. Got 0."),
    (lambda: gaussian_sigma(1, 0), "`delta` of gdp_mu must be a number in (0, 1). Got 0."),
    (lambda: gaussian_sigma(-1, 0.1), "`epsilon` of gdp_mu must be a number in [0, inf). Got -1."),
    (
        lambda: gaussian_sigma(1, 0.1, sensitivity=0),
        "`sensitivity` of gaussian_sigma must be a finite number > 0.",
    ),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_arguments(make: object, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_sampled_laplace_noise_has_no_replace_one_distribution() -> None:
    with pytest.raises(AssumptionError, match="sampled Laplace"):
        PLD(Noise("laplace", 1.0, rate=0.1), **LOCAL)


GOOD = EXAMPLES["pure"].to_json()
SPOILED = {
    "not an object": [],
    "keys that are no text": {1: 2},
    "no version": {k: v for k, v in GOOD.items() if k != "version"},
    "another version": GOOD | {"version": 2},
    "a true version": GOOD | {"version": True},
    "another kind": GOOD | {"kind": "os.system"},
    "a kind that is no text": GOOD | {"kind": ["pure"]},
    "a field too many": GOOD | {"extra": 1},
    "a field too few": {k: v for k, v in GOOD.items() if k != "seeded"},
    "NaN": GOOD | {"epsilon": math.nan},
    "a negative amount": GOOD | {"epsilon": -1.0},
    "text for an amount": GOOD | {"epsilon": "1"},
    "a true amount": GOOD | {"epsilon": True},
    "null": GOOD | {"epsilon": None},
    "another relation": GOOD | {"relation": "replace-two"},
    "a list for a relation": GOOD | {"relation": ["replace-one"]},
    "text for assumptions": GOOD | {"assumptions": "none"},
    "numbers for assumptions": GOOD | {"assumptions": [1]},
    "a number for seeded": GOOD | {"seeded": 2},
    "a number for released": GOOD | {"released": 3},
    "curves that are no lists": EXAMPLES["rdp"].to_json() | {"orders": 2.0},
    "curves of two lengths": EXAMPLES["rdp"].to_json() | {"orders": [2.0]},
    "events that are no list": EXAMPLES["pld"].to_json() | {"events": {}},
    "events of no kind": EXAMPLES["pld"].to_json() | {"events": [{"law": "gaussian"}]},
    "an event with a NaN": EXAMPLES["pld"].to_json()
    | {"events": [{"law": "gaussian", "scale": math.nan, "rate": 1.0, "times": 1}]},
}


@pytest.mark.parametrize("data", SPOILED.values(), ids=SPOILED)
def test_whatever_is_not_a_guarantee_is_refused(data: object) -> None:
    with pytest.raises(DataError):
        from_json(data)


def test_guarantees_cost_next_to_nothing_to_import() -> None:
    program = (
        "import sys, untold.private.guarantees as g\n"
        "assert not {m.split('.')[0] for m in sys.modules} & {'scipy', 'dp_accounting', 'absl', 'attr'}\n"
        "c = g.PLD(g.Noise('gaussian', 2.0, 0.1, 10), relation='replace-one', unit='row')\n"
        "str(c), g.from_json(c.to_json())\n"
        "g.Pure(1.0, relation='replace-one', unit='row').times(2).epsilon(0.0)\n"
        "assert 'dp_accounting' not in sys.modules and 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
