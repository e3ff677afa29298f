"""Shuffled reports against the exact law of the clone pair and of real shuffled mechanisms, enumerated."""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from untold.core import Relation, Unit
from untold.errors import AssumptionError, ParameterError
from untold.private import shuffling
from untold.private.guarantees import GDP, PLD, Approximate, Noise, Pure
from untold.private.shuffling import clone_delta, clone_epsilon, closed_form_epsilon, shuffled

REPORT = {"relation": Relation.REPLACE_ONE, "unit": Unit.REPORT}
INPUTS = ("any", "two")


def clones(odds: Fraction, inputs: str) -> Fraction:
    """p, with odds = e^ε₀."""
    return 1 / odds if inputs == "any" else 2 / (odds + 1)


def clone_pair(odds: Fraction, n: int, p: Fraction) -> tuple[dict, dict]:
    """The laws P and Q of the two counts, by all values of A, B and C."""
    laws: tuple[dict, dict] = defaultdict(Fraction), defaultdict(Fraction)
    for c in range(n):
        for a in range(c + 1):
            many = math.comb(n - 1, c) * p**c * (1 - p) ** (n - 1 - c) * Fraction(math.comb(c, a), 2**c)
            for b, chance in ((1, odds / (1 + odds)), (0, 1 / (1 + odds))):
                laws[0][a + b, c - a + 1 - b] += many * chance
                laws[1][a + 1 - b, c - a + b] += many * chance
    return laws


def surplus(p: dict, q: dict, ratio: Fraction) -> Fraction:
    """δ(ε) with ratio = e^ε."""
    return sum((max(Fraction(0), p[y] - ratio * q.get(y, 0)) for y in p), Fraction(0))


# ---------------------------------------------------------------- the clone pair


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("odds", [Fraction(5, 4), Fraction(3), Fraction(40)], ids=str)
def test_the_interval_holds_the_exact_pair(odds: Fraction, n: int, inputs: str) -> None:
    p, q = clone_pair(odds, n, clones(odds, inputs))
    assert sum(p.values()) == sum(q.values()) == 1
    for share in (0.0, 0.1, 0.5, 0.9, 0.999):
        ratio = Fraction(math.exp(share * math.log(odds)))
        exact = surplus(p, q, ratio)
        assert exact == surplus(q, p, ratio)  # no direction is worse
        low, high = clone_delta(math.log(ratio), math.log(odds), n, inputs)
        assert low <= exact <= high
        assert high <= low * (1 + 3e-8)


def pair_delta(epsilon: float, level: float, n: int, p: mpmath.mpf) -> mpmath.mpf:
    """δ(ε) of the clone pair by all values of C and of the first count."""
    odds, ratio = mpmath.exp(level), mpmath.exp(epsilon)
    total = mpmath.mpf(0)
    for c in range(n):
        chance = mpmath.mpf(math.comb(n - 1, c)) * p**c * (1 - p) ** (n - 1 - c)
        coins = [0, *(mpmath.mpf(math.comb(c, j)) for j in range(c + 1)), 0]
        gain = mpmath.mpf(0)
        for before, here in pairwise(coins):
            gain += max(0, odds * before + here - ratio * (before + odds * here))
        total += chance * gain / mpmath.mpf(2) ** c / (1 + odds)
    return total


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize(
    ("level", "n", "shares"), [(0.5, 60, (0.3, 0.95)), (2.0, 200, (0.0, 0.4)), (5.0, 200, (0.2, 0.8))]
)
def test_the_interval_holds_the_pair_of_two_hundred(
    level: float, n: int, shares: tuple[float, ...], inputs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mpmath.workdps(80):
        p = mpmath.exp(-level) if inputs == "any" else 2 / (mpmath.exp(level) + 1)
        exact = {share * level: pair_delta(share * level, level, n, p) for share in shares}
    fine = {epsilon: clone_delta(epsilon, level, n, inputs) for epsilon in exact}
    for epsilon, delta in exact.items():
        low, high = fine[epsilon]
        assert low <= delta <= high <= low * (1 + 3e-8)
    for grid in (2, 12, 50):  # runs of many c's: a wider interval, but a true one
        monkeypatch.setattr(shuffling, "GRID", grid)
        shuffling._runs.cache_clear()
        for epsilon, delta in exact.items():
            low, high = clone_delta(epsilon, level, n, inputs)
            assert low <= delta <= high
            assert high > fine[epsilon].upper or grid > 2
    shuffling._runs.cache_clear()


@pytest.mark.parametrize(("n", "p"), [(1, 0.3), (2, 0.3), (2000, 0.001), (10**4, 0.4), (10**9, 1e-3)])
def test_the_runs_cover_every_number_of_clones_once(n: int, p: float) -> None:
    first, last, mass = shuffling._runs(n, p)
    assert (first[0], last[-1]) == (0, n - 1)
    assert np.all(first[1:] == last[:-1] + 1)
    assert np.all(last >= first)
    assert np.all(mass >= 0)
    assert math.fsum(mass) == pytest.approx(1.0, rel=1e-11)
    mean, spread = (n - 1) * p, math.sqrt((n - 1) * p * (1 - p))
    inner = (first > max(0.0, mean - 19 * spread)) & (last < min(n - 1.0, mean + 19 * spread))
    assert np.all((last - first)[inner] <= max(0.0, 0.03 * spread + 1))


@pytest.mark.parametrize(("n", "p"), [(2, 0.3), (400, 0.01), (300, 0.4)])
def test_the_chance_of_every_run(n: int, p: float) -> None:
    """Both tails to their last digits, also where they are tiny."""
    exact = Fraction(p)
    for first, last, mass in zip(*shuffling._runs(n, p), strict=True):
        counts = range(int(first), int(last) + 1)
        chances = (math.comb(n - 1, c) * exact**c * (1 - exact) ** (n - 1 - c) for c in counts)
        assert mass == pytest.approx(float(sum(chances)), rel=1e-9, abs=1e-250)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 30.0), st.floats(0.0, 0.999), st.integers(0, 2000))
def test_one_more_coin_never_helps_to_tell(level: float, share: float, c: int) -> None:
    """Down to 1e-250: SciPy's tails are 0 below 1e-253 for some c."""
    more = shuffling._clone_deltas(share * level, level, np.arange(c, c + 20.0))
    assert np.all((np.diff(more) <= 1e-9 * more[:-1]) | (more[1:] < 1e-250))


@pytest.mark.parametrize("level", [1.0, 4.0])
@pytest.mark.parametrize("c", [1_000, 10**6])
@pytest.mark.parametrize("far", [1.0, 4.0, 8.0, 20.0])
def test_the_rounding_that_is_allowed_for_is_enough(level: float, c: int, far: float) -> None:
    """δ_c down to 1e-90, by the same sum over the tail in 60 digits."""
    odds = math.exp(level)
    epsilon = min(0.9 * level, 2 * math.tanh(level / 2) * far / math.sqrt(c))
    found = float(shuffling._clone_deltas(epsilon, level, np.array([float(c)]))[0])
    with mpmath.workdps(60):
        odds, ratio = mpmath.exp(level), mpmath.exp(epsilon)
        j = int(mpmath.floor((c + 1) * (ratio * odds - 1) / ((odds - 1) * (1 + ratio)))) + 1
        assert 0 < j <= c
        here = mpmath.binomial(c, j - 1) / mpmath.mpf(2) ** c
        total = mpmath.mpf(0)
        while j <= c and here > mpmath.mpf(10) ** -40 * total:
            after = here * (c - j + 1) / j
            total += ((odds - ratio) * here - (ratio * odds - 1) * after) / (1 + odds)
            here, j = after, j + 1
        assert abs(found / total - 1) < shuffling.ROUNDING / 10


# ---------------------------------------------------------------- ε at a wanted δ


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("delta", [1e-300, 1e-9, 1e-3, 0.3])
@pytest.mark.parametrize(("level", "n"), [(0.1, 5), (1.0, 1), (1.0, 10_000), (4.0, 100_000), (20.0, 1000)])
def test_epsilon_undoes_delta(level: float, n: int, delta: float, inputs: str) -> None:
    low, high = clone_epsilon(level, n, delta, inputs)
    assert 0 <= low <= high <= level
    assert clone_delta(high, level, n, inputs).upper <= delta * (1 + 1e-14)
    if high > 1e-9:
        assert clone_delta(high * (1 - 1e-8), level, n, inputs).upper > delta
    assert low == 0 or clone_delta(low, level, n, inputs).lower >= delta * (1 - 1e-14)
    assert clone_delta(low * (1 + 1e-8) + 1e-12, level, n, inputs).lower < delta


def test_nothing_to_hide_when_any_delta_is_enough() -> None:
    assert clone_epsilon(1.0, 10**6, 0.5) == (0.0, 0.0)
    assert clone_delta(1.0, 1.0, 10) == clone_delta(math.inf, 1.0, 10) == (0.0, 0.0)
    low, high = clone_epsilon(1.0, 1, 1e-6)  # alone there is nobody to be taken for
    assert low <= math.log(math.e * (1 - 1e-6) - 1e-6) <= high


def test_the_measured_interval() -> None:
    """Measured with a coarse grid and both ends: [0.16754, 0.17515]; one end taken twice gave 0.17253."""
    low, high = clone_epsilon(4.0, 100_000, 1e-6)
    assert 0.16754 < low < high < 0.17253
    assert high < low * (1 + 1e-6)


@pytest.mark.parametrize("level", [0.1, 1.0, 3.0, 6.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-4])
def test_the_closed_form_is_above(level: float, delta: float) -> None:
    for n in (10**3, 10**5, 10**7):
        formula = closed_form_epsilon(level, n, delta)
        assert clone_epsilon(level, n, delta).upper <= formula <= level
        if level > math.log(n / (16 * math.log(2 / delta))):
            assert formula == level
        else:
            odds = math.exp(level)
            terms = 8 * math.sqrt(odds * math.log(4 / delta)) / math.sqrt(n) + 8 * odds / n
            expected = math.log(1 + (odds - 1) / (odds + 1) * terms)
            assert formula == pytest.approx(min(level, expected), rel=1e-12)
    assert closed_form_epsilon(level, 10**9, delta) < level / 10


@settings(max_examples=40, deadline=None)
@given(
    st.floats(0.01, 12.0),
    st.integers(1, 3000),
    st.sampled_from([1e-12, 1e-6, 1e-2]),
    st.sampled_from(INPUTS),
)
def test_more_people_more_noise_and_more_delta_never_cost_more(
    level: float, n: int, delta: float, inputs: str
) -> None:
    here = clone_epsilon(level, n, delta, inputs)
    for more in (
        clone_epsilon(level, n + n // 3 + 1, delta, inputs),
        clone_epsilon(level, n, 2 * delta, inputs),
        clone_epsilon(0.9 * level, n, delta, inputs),
        clone_epsilon(level, n, delta, "two"),
    ):
        assert more.lower <= here.upper
        assert more.upper <= here.upper * (1 + 1e-7)
    profile = [clone_delta(share * level, level, n, inputs) for share in (0.0, 0.2, 0.7, 0.99, 1.0)]
    assert all(two.upper <= one.upper for one, two in pairwise(profile))
    assert all(low <= high for low, high in profile)


# ---------------------------------------------------------------- real mechanisms, shuffled

Law = np.ndarray


def shuffled_law(people: list[Law]) -> dict[tuple[int, ...], float]:
    """The law of the histogram of everybody's reports."""
    law = {(0,) * len(people[0]): 1.0}
    for chances in people:
        grown: dict[tuple[int, ...], float] = defaultdict(float)
        for counts, mass in law.items():
            for y, chance in enumerate(chances):
                grown[(*counts[:y], counts[y] + 1, *counts[y + 1 :])] += mass * chance
        law = grown
    return law


def exact_delta(randomiser: Law, others: tuple[int, ...], epsilon: float) -> float:
    """The worse direction of x₀ against x₁ beside these other people; row x is the law of R(x)."""
    around = [randomiser[x] for x in others]
    laws = [shuffled_law([*around, randomiser[x]]) for x in (0, 1)]
    return max(math.fsum(max(0.0, p[y] - math.exp(epsilon) * q[y]) for y in p) for p, q in (laws, laws[::-1]))


def response(level: float, k: int) -> Law:
    """k-ary randomised response."""
    weights = np.ones((k, k)) + math.expm1(level) * np.eye(k)
    return weights / weights.sum(axis=1, keepdims=True)


def aloof(level: float) -> Law:
    """The third input looks as little like the first two as ε₀ allows."""
    odds = math.exp(level)
    likely = (1 - 1 / odds) / (odds + 1 - 2 / odds) * odds
    rare = likely / odds
    return np.array(
        [[likely, rare, 1 - likely - rare], [rare, likely, 1 - likely - rare], [rare, rare, 1 - 2 * rare]]
    )


@pytest.mark.parametrize("level", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("k", [2, 3])
def test_shuffled_randomised_response_never_costs_more(level: float, k: int) -> None:
    for n in (1, 2, 5):
        for others in combinations_with_replacement(range(k), n - 1):
            for share in (0.0, 0.25, 0.6, 0.9):
                exact = exact_delta(response(level, k), others, share * level)
                assert exact <= clone_delta(share * level, level, n).upper
                if max(others, default=0) < 2:
                    assert exact <= clone_delta(share * level, level, n, "two").upper


@pytest.mark.parametrize("n", [50, 200])
def test_shuffled_bits_of_many_people(n: int) -> None:
    """Two inputs, two outputs: Bin + Bin, for every number of people who hold a 1."""
    level = 1.5
    odds = math.exp(level) / (1 + math.exp(level))
    for ones in range(0, n, n // 5):
        law = np.ones(1)
        for person in range(n - 1):
            law = np.convolve(law, [1 - odds, odds] if person < ones else [odds, 1 - odds])
        one, two = (np.convolve(law, v) for v in ([1 - odds, odds], [odds, 1 - odds]))
        for epsilon in (0.0, 0.1, 0.4):
            exact = max(
                float(np.maximum(0, p - math.exp(epsilon) * q).sum()) for p, q in ((one, two), (two, one))
            )
            stated = clone_delta(epsilon, level, n, "two")
            assert exact <= stated.upper
            assert stated.upper < clone_delta(epsilon, level, n).lower
            assert epsilon > 0 or exact > 0.6 * stated.lower


@pytest.mark.parametrize("level", [1.0, 3.0, 6.0])
def test_one_mechanism_comes_close(level: float) -> None:
    """At ε₀ = 6 within a fiftieth, at 1 within a third: a bound that lost a factor would be seen."""
    randomiser = aloof(level)
    ratios = randomiser.max(axis=0) / randomiser.min(axis=0)
    assert ratios.max() == pytest.approx(math.exp(level))
    assert np.all(randomiser >= 0)
    for n in (2, 5, 10):
        stated = clone_delta(0.1 * level, level, n)
        exact = exact_delta(randomiser, (2,) * (n - 1), 0.1 * level)
        assert {1.0: 0.66, 3.0: 0.8, 6.0: 0.98}[level] * stated.lower < exact <= stated.upper


tables = st.lists(st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4), min_size=3, max_size=3)


@settings(max_examples=80, deadline=None)
@given(tables, st.floats(0.1, 2.0), st.integers(1, 4), st.floats(0.0, 1.0))
def test_no_local_randomiser_costs_more(table: list[list[float]], scale: float, n: int, share: float) -> None:
    randomiser = np.exp(scale * np.array(table))
    randomiser /= randomiser.sum(axis=1, keepdims=True)
    level = float(np.log(randomiser.max(axis=0) / randomiser.min(axis=0)).max())
    assume(level > 1e-3)
    epsilon = share * level
    stated = {inputs: clone_delta(epsilon, level, n, inputs).upper + 1e-14 for inputs in INPUTS}
    for others in combinations_with_replacement(range(3), n - 1):
        exact = exact_delta(randomiser, others, epsilon)
        assert exact <= stated["any"]
        assert 2 in others or exact <= stated["two"]


@settings(max_examples=80, deadline=None)
@given(tables, st.floats(0.1, 2.0))
def test_the_clone_decomposition(table: list[list[float]], scale: float) -> None:
    """R(x) ≥ (p/2)(R(x₀) + R(x₁)) everywhere, which is all that is asked of p."""
    randomiser = np.exp(scale * np.array(table))
    randomiser /= randomiser.sum(axis=1, keepdims=True)
    level = float(np.log(randomiser.max(axis=0) / randomiser.min(axis=0)).max())
    half = (randomiser[0] + randomiser[1]) / 2
    assert np.all(randomiser >= shuffling._clone_probability(level, "any") * half - 1e-12)
    assert np.all(randomiser[:2] >= shuffling._clone_probability(level, "two") * half - 1e-12)


def test_a_third_input_needs_the_smaller_clone_probability() -> None:
    """An output that x₀ and x₁ like equally and a third person shuns: there p = e^−ε₀ exactly."""
    level = 1.0
    odds = math.exp(level)
    common, other = np.array([odds, 1.0]) / (1 + odds), np.array([1.0, odds]) / (1 + odds)
    worst = float(np.min(other / common))  # R(x₂) over the half of R(x₀) + R(x₁)
    assert shuffling._clone_probability(level, "any") == pytest.approx(worst, rel=1e-12)
    assert shuffling._clone_probability(level, "two") > worst * 1.4
    both = response(level, 2).sum(axis=0) / 2
    assert shuffling._clone_probability(level, "two") == pytest.approx(
        float(np.min(response(level, 2) / both))
    )


# ---------------------------------------------------------------- the claim


@pytest.mark.parametrize("inputs", INPUTS)
def test_what_a_shuffled_guarantee_says(inputs: str) -> None:
    report = Pure(1.0, **REPORT, released="one bit", assumptions=("a fair coin",))
    claim = shuffled(report, 1000, 1e-6, inputs)
    assert claim == Approximate(
        clone_epsilon(1.0, 1000, 1e-6, inputs).upper,
        1e-6,
        **REPORT,
        released="one bit",
        citation="Feldman, McMillan & Talwar (2021), Theorem 3.2",
        assumptions=(
            "a fair coin",
            "a trusted shuffler hides who sent which report",
            "all 1000 people use this very randomiser and 999 of them do so honestly",
            *(("everybody's input is one of the same two values",) if inputs == "two" else ()),
        ),
    )
    assert 0 < claim.epsilon(1e-6) < 0.5
    assert shuffled(report.seed_stamped(), 1000, 1e-6, inputs).epsilon(1e-6) == math.inf


def test_whatever_is_pure_is_shuffled() -> None:
    plain = shuffled(Pure(1.0, **REPORT), 1000, 1e-6)
    assert shuffled(Approximate(1.0, 0.0, **REPORT), 1000, 1e-6) == plain
    laplace = PLD(Noise("laplace", 2.0), **REPORT)  # a report moves by 2: ε₀ = 1
    assert shuffled(laplace, 1000, 1e-6).level == plain.level


LOST = {
    "a δ of its own": Approximate(1.0, 1e-9, **REPORT),
    "Gaussian": GDP(0.5, **REPORT),
    "added or removed": Pure(1.0, relation=Relation.ADD_OR_REMOVE_ONE, unit=Unit.REPORT),
    "per row": Pure(1.0, relation=Relation.REPLACE_ONE, unit=Unit.ROW),
}


@pytest.mark.parametrize("claim", LOST.values(), ids=LOST)
def test_what_is_not_shuffled(claim: Approximate | GDP | Pure) -> None:
    with pytest.raises(AssumptionError) as caught:
        shuffled(claim, 1000, 1e-6)
    assert str(caught.value) == (
        "shuffling amplifies pure replace-one guarantees per report only.\n"
        "hint: a local randomiser with δ > 0 needs another theorem."
    )


ONE = Pure(1.0, **REPORT)
BAD = {
    "`level` of shuffled must be a finite number > 0. Got 0.0.": lambda: shuffled(Pure(0, **REPORT), 9, 0.1),
    "`level` of shuffled must be a finite number > 0. Got inf.": lambda: shuffled(
        Pure(math.inf, **REPORT), 9, 0.1
    ),
    "`level` of shuffling must be a number in (0, 50]. Got 60.0.": lambda: shuffled(
        Pure(60, **REPORT), 9, 0.1
    ),
    "`n` of shuffling must be a whole number >= 1. Got 0.": lambda: shuffled(ONE, 0, 0.1),
    "`n` of shuffling must be a whole number >= 1. Got 2.5.": lambda: clone_delta(0.1, 1.0, 2.5),
    "`inputs` of shuffling must be one of 'any', 'two'. Got 'three'.": lambda: shuffled(ONE, 9, 0.1, "three"),
    "`delta` of clone_epsilon must be a number in (0, 1). Got 0.": lambda: shuffled(ONE, 9, 0),
    "`delta` of clone_epsilon must be a number in (0, 1). Got 1.": lambda: clone_epsilon(1.0, 9, 1),
    "`delta` of closed_form_epsilon must be a number in (0, 1). Got 0.": lambda: closed_form_epsilon(
        1.0, 9, 0
    ),
    "`level` of shuffling must be a number in (0, 50]. Got -1.": lambda: closed_form_epsilon(-1, 9, 0.1),
    "`epsilon` of clone_delta must be a number in [0, inf]. Got -0.1.": lambda: clone_delta(-0.1, 1.0, 9),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_arguments(message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        BAD[message]()
    assert str(caught.value) == message
