"""The price of tuning against the exact law of the best of K runs of small discrete mechanisms."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from untold.core import Relation, Unit
from untold.errors import AssumptionError, ParameterError
from untold.private.conversions import convert
from untold.private.guarantees import GDP, RDP, ZCDP, Approximate, InformationBound, Pure
from untold.private.selection import expected_runs, stopping, tuning_price

ROWS = {"relation": Relation.REPLACE_ONE, "unit": Unit.ROW}
SHAPES = (-0.5, 0.0, 0.5, 1.0, 3.0)
ORDERS = (1.5, 2.0, 4.0, 8.0, 32.0)
Law = np.ndarray


def chances(shape: float, gamma: float, most: int) -> Law:
    """Pr[K = 1 … most] of the truncated negative binomial, from Definition 1."""
    k = np.arange(1, most + 1)
    if shape == 0:
        return (1 - gamma) ** k / k / math.log(1 / gamma)
    rising = np.cumprod((k - 1 + shape) / k)
    return (1 - gamma) ** k * rising / (gamma**-shape - 1)


def best_of(law: Law, shape: float, runs: float) -> Law:
    """The law of the best of K runs; outcomes are sorted by score, the best last.

    Pr[best ≤ y] = E F(y)^K, in closed form. For Poisson K there may be no run: one more outcome.
    """
    below = np.cumsum(law)
    below[-1] = 1.0
    if shape == math.inf:
        none = math.exp(-runs)
        return np.append(none, np.diff(np.exp(runs * (below - 1)), prepend=none))
    gamma = stopping(shape, runs)
    rest = np.log1p((gamma - 1) * below)
    if shape == 0:
        reached = rest / math.log(gamma)
    else:
        reached = np.expm1(-shape * rest) / math.expm1(-shape * math.log(gamma))
    return np.diff(reached, prepend=0.0)


def divergence(p: Law, q: Law, order: float) -> float:
    """The larger of D_α(p‖q) and D_α(q‖p), at least 0."""
    both = [logsumexp(order * np.log(a) + (1 - order) * np.log(b)) for a, b in ((p, q), (q, p))]
    return max(0.0, *both) / (order - 1)


def level_of(p: Law, q: Law) -> float:
    return float(np.max(np.abs(np.log(p / q))))


def worst(epsilon: float) -> tuple[Law, Law]:
    """Outcomes low, middling, top: under q the middling one is likelier and the top one rarer, by e^ε."""
    p = np.array([0.0, 1e-5, 2e-2])
    q = p * np.exp([0.0, epsilon, -epsilon])
    p[0], q[0] = 1 - p.sum(), 1 - q.sum()
    return p, q


# ---------------------------------------------------------------- the number of runs


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("gamma", [0.02, 0.3, 0.9])
def test_the_mean_number_of_runs(shape: float, gamma: float) -> None:
    law = chances(shape, gamma, 5000)
    assert law.sum() == pytest.approx(1.0, rel=1e-9)
    mean = float(law @ np.arange(1, 5001))
    assert expected_runs(shape, gamma) == pytest.approx(mean, rel=1e-9)
    assert stopping(shape, mean) == pytest.approx(gamma, rel=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
def test_one_run_and_nearly_one(shape: float) -> None:
    assert stopping(shape, 1.0) == 1.0
    assert expected_runs(shape, 1.0) == 1.0
    for more in (1e-13, 1e-9, 1e-3, 1.0, 1e6):
        gamma = stopping(shape, 1 + more)
        assert 0 < gamma < 1
        assert expected_runs(shape, gamma) - 1 == pytest.approx(more, rel=1e-7, abs=1e-15)


@pytest.mark.parametrize("shape", [-0.9, -0.5, 0.0, 1e-9, 0.7, 1.0, 2.5, 40.0])
@pytest.mark.parametrize("fall", [1e-6, 0.1, 1.0, 5.0, 15.0])
def test_the_bracket_of_the_stopping_parameter(shape: float, fall: float) -> None:
    """1 + (1+η)·fall/2 ≤ E[K] ≤ e^(max(1, 1+η)·fall), fall = ln(1/γ)."""
    mean = expected_runs(shape, math.exp(-fall))
    assert 1 + (1 + shape) * fall / 2 <= mean * (1 + 1e-12)
    assert mean <= math.exp(max(1.0, 1 + shape) * fall) * (1 + 1e-12)
    assert stopping(shape, mean) == pytest.approx(math.exp(-fall), rel=1e-8)


# ---------------------------------------------------------------- pure guarantees


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_the_pure_price_holds_and_is_nearly_reached(shape: float, epsilon: float) -> None:
    p, q = worst(epsilon)
    assert level_of(p, q) == pytest.approx(epsilon)
    for runs in (1.0 + 1e-6, 1.2, 3.0, 50.0, 3000.0):
        paid = tuning_price(Pure(epsilon, **ROWS), runs, law=shape).epsilon(0.0)
        assert level_of(best_of(p, shape, runs), best_of(q, shape, runs)) <= paid * (1 + 1e-6)
        many = stopping(shape, runs) < 1 / (1 + math.exp(epsilon))
        assert paid == pytest.approx((2 + shape) * epsilon) if many else paid < (2 + shape) * epsilon
    if shape > 0:
        many = expected_runs(shape, 1e-7)
        reached = level_of(best_of(p, shape, many), best_of(q, shape, many))
        assert reached >= 0.97 * tuning_price(Pure(epsilon, **ROWS), many, law=shape).epsilon(0.0)


@pytest.mark.parametrize("law", ["geometric", "logarithmic", -0.5])
@pytest.mark.parametrize("base", [Pure(0.7, **ROWS), ZCDP(0.1, **ROWS), GDP(0.2, **ROWS)], ids=str)
def test_one_run_costs_what_one_run_costs(base: Pure | ZCDP | GDP, law: str | float) -> None:
    one = convert(base, RDP)
    paid = tuning_price(base, 1.0, law)
    if isinstance(base, Pure):
        assert paid == base.assuming(paid.assumptions[0])
    else:
        assert paid.curve == tuple(pair for pair in one.curve if pair[0] > 1)


weights = st.lists(st.floats(0.01, 1.0), min_size=3, max_size=6)
tilts = st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6)


@settings(max_examples=80, deadline=None)
@given(weights, tilts, st.sampled_from(SHAPES), st.floats(1.001, 500.0))
def test_no_pure_mechanism_costs_more(
    weight: list[float], tilt: list[float], shape: float, runs: float
) -> None:
    p = np.array(weight) / sum(weight)
    q = p * np.exp(tilt[: len(p)])
    q /= q.sum()
    paid = tuning_price(Pure(level_of(p, q), **ROWS), runs=runs, law=shape).epsilon(0.0)
    assert level_of(best_of(p, shape, runs), best_of(q, shape, runs)) <= paid + 1e-7


@settings(max_examples=80, deadline=None)
@given(weights, tilts, st.sampled_from((*SHAPES, math.inf)), st.floats(1.001, 500.0))
def test_no_renyi_mechanism_costs_more(
    weight: list[float], tilt: list[float], shape: float, runs: float
) -> None:
    p = np.array(weight) / sum(weight)
    q = p * np.exp(tilt[: len(p)])
    q /= q.sum()
    base = RDP(ORDERS, tuple(np.maximum.accumulate([divergence(p, q, a) for a in ORDERS])), **ROWS)
    paid = tuning_price(base, runs, "poisson" if shape == math.inf else shape)
    one, two = best_of(p, shape, runs), best_of(q, shape, runs)
    for order, price in paid.curve:
        assert divergence(one, two, order) <= price + 1e-7


def test_the_renyi_price_of_a_sharp_example() -> None:
    """About a tenth of what is charged is spare here, so a lost term would show."""
    p, q = worst(1.0)
    orders = (2.0, 8.0, 64.0, 512.0)
    base = RDP(orders, tuple(np.maximum.accumulate([divergence(p, q, a) for a in orders])), **ROWS)
    paid = tuning_price(base, expected_runs(1.0, 1e-5), "geometric")
    one, two = (best_of(law, 1.0, expected_runs(1.0, 1e-5)) for law in (p, q))
    last = divergence(one, two, 512.0)
    assert 0.85 * paid.at(512.0) < last <= paid.at(512.0)


# ---------------------------------------------------------------- formulas, properties


@pytest.mark.parametrize("law", ["geometric", "logarithmic", 0.5])
@pytest.mark.parametrize("runs", [1.1, 30.0, 1e5])
def test_theorem_2_for_gaussian_noise(law: str | float, runs: float) -> None:
    shape = {"geometric": 1.0, "logarithmic": 0.0}.get(law, law)
    rho, gamma = 0.02, stopping(shape, runs)
    paid = tuning_price(ZCDP(rho, **ROWS), runs, law)
    hats = np.array([1.0, *(a for a, _ in paid.curve)])
    fixed = (1 + shape) * np.min((1 - 1 / hats) * rho * hats + math.log(1 / gamma) / hats)
    for order, price in paid.curve:
        assert price == pytest.approx(order * rho + fixed + math.log(runs) / (order - 1), rel=1e-9)
    assert paid.at(2.0) == min(price for order, price in paid.curve if order >= 2)


def test_theorem_6_for_gaussian_noise() -> None:
    base, runs = GDP(0.1, **ROWS), 30.0
    for order, price in tuning_price(base, runs, "poisson").curve:
        slack = base.delta(math.log(1 + 1 / (order - 1)))
        expected = order * 0.1**2 / 2 + runs * slack + math.log(runs) / (order - 1)
        assert price == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("runs", [1.0, 2.0, 10.0])
def test_the_poisson_price_of_a_pure_guarantee_at_order_inf(runs: float) -> None:
    """At λ = ∞ every δ̂ is a total variation; an exact pair is below, and K = 0 is one of the outcomes."""
    p, q = worst(0.3)
    price = tuning_price(Pure(0.3, **ROWS), runs, "poisson").at(math.inf)
    assert price == pytest.approx(0.3 + runs * math.tanh(0.15))
    assert level_of(best_of(p, math.inf, runs), best_of(q, math.inf, runs)) <= price
    response = np.array([1.0, math.exp(0.3)]) / (1 + math.exp(0.3))
    one, two = (best_of(law, math.inf, runs) for law in (response, response[::-1]))
    assert level_of(one, two) <= price
    assert level_of(one, two) > 0.3


@pytest.mark.parametrize("law", ["geometric", "logarithmic", "poisson"])
def test_more_runs_never_cost_less(law: str) -> None:
    prices = [tuning_price(GDP(0.1, **ROWS), runs, law).epsilon(1e-6) for runs in (1, 2, 10, 100, 1e4)]
    assert all(a <= b for a, b in pairwise(prices))
    assert prices[0] >= GDP(0.1, **ROWS).epsilon(1e-6)


def test_what_a_tuned_guarantee_says() -> None:
    base = Pure(0.5, **ROWS, released="a model", assumptions=("rows of norm ≤ 1",))
    paid = tuning_price(base, 20)
    assert paid.released == "a model"
    assert paid.assumptions == (
        "rows of norm ≤ 1",
        "the number of runs was drawn from a geometric law of mean 20, and the best alone is seen",
    )
    assert "negative binomial (η = 0.5) law of mean 2.5" in tuning_price(base, 2.5, 0.5).assumptions[1]
    for law in ("geometric", "poisson"):
        assert tuning_price(base.seed_stamped(), 20, law).epsilon(1e-6) == math.inf


def test_orders_without_a_bound_are_passed_over() -> None:
    paid = tuning_price(RDP((1.0, 2.0, 4.0), (0.5, 1.0, math.inf), **ROWS), 10)
    assert (paid.at(2.0) < math.inf, paid.at(4.0)) == (True, math.inf)
    nothing = tuning_price(RDP((1.0, 2.0), (math.inf, math.inf), **ROWS), 10)
    assert nothing.epsilon(1e-6) == math.inf


BAD = {
    "`runs` of tuning_price must be a number in [1, inf). Got 0.5.": lambda p: tuning_price(p, 0.5),
    "`runs` of tuning_price must be a number in [1, inf). Got inf.": lambda p: tuning_price(p, math.inf),
    "`law` of tuning_price must be a number in (-1, inf]. Got -1.": lambda p: tuning_price(p, 2, -1),
    "`law` of tuning_price must be one of 'geometric', 'logarithmic', 'poisson'. Got 'best'.": lambda p: (
        tuning_price(p, 2, "best")
    ),
    "`orders` of tuning_price must be above 1 somewhere. Got (1.0,).": lambda p: tuning_price(
        RDP((1.0,), (0.5,), **ROWS), 2, "poisson"
    ),
    "`runs` of stopping must be a mean that shape -1 can reach in floats. Got 6.05.": lambda p: tuning_price(
        ZCDP(0.1, **ROWS), 6.05, -1 + 1e-12
    ),
    "`runs` of stopping must be a mean that shape -1 can reach in floats. Got 3.0.": lambda p: tuning_price(
        ZCDP(0.1, **ROWS), 3, -1 + 1e-12
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_arguments(message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        BAD[message](Pure(1.0, **ROWS))
    assert str(caught.value) == message


@pytest.mark.parametrize("base", [Approximate(1.0, 1e-6, **ROWS), InformationBound(0.1, **ROWS)], ids=str)
def test_a_single_epsilon_and_delta_cannot_be_tuned(base: Approximate | InformationBound) -> None:
    with pytest.raises(AssumptionError, match="needs a Rényi curve or a pure guarantee"):
        tuning_price(base, 5)


@pytest.mark.parametrize("law", ["geometric", "poisson"])
def test_a_curve_of_order_1_alone_cannot_be_tuned(law: str) -> None:
    with pytest.raises(ParameterError, match="`orders` of tuning_price"):
        tuning_price(RDP((1.0,), (0.5,), **ROWS), 2, law)
