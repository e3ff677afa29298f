"""Second moments, preconditioned descent, what `learn_privately` chooses. Fixed seeds: no false alarms."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.linear_model import LogisticRegression

from untold.convex.clipping import L2Clip
from untold.convex.losses import Absolute, GeometricMedian, Hinge, Huber, HuberisedHinge, Logistic, Squared
from untold.core import Relation
from untold.erm.auto import choose, learn_privately
from untold.erm.base import curated
from untold.erm.gradient import noisy_gradient_descent
from untold.erm.moments import BESIDE, ON, RESOLUTION, exact_moment, kept_bits, noisy_moment
from untold.erm.preconditioned import preconditioned_descent
from untold.errors import AssumptionError, ParameterError
from untold.private import noise
from untold.private.gaussian_profile import gdp_mu
from untold.private.noisy_sums import weight

ADD, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE


def rows(n=400, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d) / 2
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-X @ np.arange(1, d + 1))), 1.0, -1.0)


# The second moment


@pytest.mark.parametrize("bits", [4, 9, 15])
def test_the_moment_is_exact_in_integers_whatever_the_order(bits, monkeypatch):
    X, y = rows()
    data = curated(X, y)
    total = exact_moment(data, bits)
    q = [[int(x / data.clip.grid / 2 ** (RESOLUTION - bits)) for x in row] for row in data.rows()[0].tolist()]
    wanted = [[sum(row[j] * row[k] for row in q) for k in range(5)] for j in range(5)]
    assert total.tolist() == wanted
    order = np.random.default_rng(1).permutation(len(y))
    monkeypatch.setattr("untold.erm.moments.MOST_ROWS", 7)
    assert (exact_moment(curated(X[order], y[order]), bits) == total).all()


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True) | st.floats(-1, 1), min_size=1, max_size=6),
    st.sampled_from([0.3, 1.0, 7.0]),
    st.integers(4, 15),
)
def test_one_row_weighs_at_most_what_the_noise_is_scaled_to(row, norm, bits):
    """25·Σqⱼ⁴ + 49·Σqⱼ²qₖ² ≤ (5K²)², as an inequality between rational numbers."""
    data = curated([row], [0.0], norm)
    moment = exact_moment(data, bits).tolist()
    d = len(row)
    released = [moment[j][k] * (ON if j == k else BESIDE) for j in range(d) for k in range(j, d)]
    K = Fraction(data.clip.steps) * Fraction(2) ** (bits - RESOLUTION)
    assert sum(entry * entry for entry in released) <= (5 * K * K) ** 2


def test_the_noise_of_a_moment():
    d = 60
    moment = noisy_moment(curated(np.zeros((3, d)), np.zeros(3)), 2.0, noise.seeded(1))
    on, beside = np.diag(moment.matrix), moment.matrix[np.triu_indices(d, 1)]
    assert np.array_equal(moment.matrix, moment.matrix.T)
    assert moment.noise == pytest.approx(2.0)
    assert stats.kstest(on / moment.noise, stats.norm.cdf).pvalue > 1e-6
    assert stats.kstest(beside / (moment.noise * ON / BESIDE), stats.norm.cdf).pvalue > 1e-6


def test_more_noise_leaves_fewer_bits():
    bits = [kept_bits(sigma) for sigma in (0.0, 1.0, 100.0, 1e4, 1e6)]
    assert bits == sorted(bits, reverse=True)
    assert bits[0] == 15
    with pytest.raises(ParameterError, match="`sigma` of noisy_moment must be smaller"):
        kept_bits(1e12)


def test_the_moment_of_many_rows_without_noise():
    X, y = rows(n=40_000)
    moment = noisy_moment(curated(X, y), 0.0)
    np.testing.assert_allclose(moment.matrix, X.T @ X, rtol=2e-3, atol=2e-3 * len(y) / 5)
    assert moment.noise == 0.0


# Descent


def test_without_noise_it_is_a_newton_like_method():
    X, y = rows(n=2000)
    fit = preconditioned_descent(curated(X, y), Logistic(), epsilon=math.inf, steps=400, tail=0.0)
    best = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12).fit(X, y).coef_[0]
    np.testing.assert_allclose(fit.weights, best, atol=2e-4)  # the grid of the sum is 2⁻²⁰ of a row
    assert fit.guarantee.epsilon(0.5) == math.inf


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_what_is_spent_is_what_is_claimed(relation):
    """μ² = (w/σ_M)² + T·(w/σ)², w the weight of one row: no more than (ε, δ) allows, and hardly less."""
    fit = preconditioned_descent(curated(*rows()), Logistic(), epsilon=1.0, delta=1e-5, relation=relation)
    w = 2.0 if relation is REPLACE else 1.0
    report = fit.report
    spent = (w / report["noise multiplier of the moment"]) ** 2
    spent += report["steps"] * (w / report["noise multiplier"]) ** 2
    assert math.sqrt(spent) <= fit.guarantee.mu <= gdp_mu(1.0, 1e-5)
    assert math.sqrt(spent) > 0.999999 * gdp_mu(1.0, 1e-5)
    assert fit.guarantee.relation is relation


@pytest.mark.parametrize("loss", [Logistic(), HuberisedHinge(), Huber()])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_it_comes_close_to_the_best_without_being_tuned(loss, relation):
    X, y = rows(n=30_000)
    data = curated(X, y)
    values = [
        loss.value(learn_privately(data, loss, epsilon=e, relation=relation, seed=1).weights, X, y).mean()
        for e in (math.inf, 1.0, 0.1)
    ]
    zero = loss.value(np.zeros(5), X, y).mean()
    assert values[1] < values[0] + 0.05 * (zero - values[0])
    assert values[2] < zero


@pytest.mark.parametrize("loss", [Hinge(), Absolute(), GeometricMedian()])
def test_losses_without_curvature_go_another_way(loss):
    X, y = rows(n=5000)
    fit = learn_privately(curated(X, y), loss, epsilon=2.0, seed=1)
    assert "share" not in fit.report
    assert loss.value(fit.weights, X, y).mean() <= loss.value(np.zeros(5), X, y).mean() * 1.01
    with pytest.raises(AssumptionError, match="must be linear, Lipschitz and smooth"):
        preconditioned_descent(curated(X, y), loss, epsilon=1.0)


@pytest.mark.parametrize("spoil", ["nan", "inf", "huge", "label", "duplicate"])
def test_one_row_changes_nothing_but_the_numbers(spoil, recwarn):
    X, y = rows()
    before = learn_privately(curated(X, y), Logistic(), epsilon=1.0, seed=1)
    X, y = X.copy(), y.copy()
    X[0] = {"nan": np.nan, "inf": np.inf, "huge": 1e308, "label": X[0], "duplicate": X[1]}[spoil]
    y[0] = {"label": 7.0}.get(spoil, y[0])
    after = learn_privately(curated(X, y), Logistic(), epsilon=1.0, seed=1)
    assert after.report == before.report
    assert after.guarantee == before.guarantee
    assert after.weights.shape == before.weights.shape
    assert np.isfinite(after.weights).all()
    assert not len(recwarn)


def test_a_seed_is_not_private():
    data = curated(*rows())
    one, two = (learn_privately(data, Logistic(), epsilon=1.0, seed=3) for _ in range(2))
    assert np.array_equal(one.weights, two.weights)
    assert one.guarantee.epsilon(1e-6) == math.inf
    free = [learn_privately(data, Logistic(), epsilon=1.0).weights for _ in range(2)]
    assert not np.array_equal(*free)


@given(
    st.integers(1, 10**8), st.integers(1, 2000), st.floats(1e-3, 30), st.sampled_from([1.0, 2.0]),
    st.floats(1e-3, 1e3),
)  # fmt: skip
def test_a_choice_is_sane_and_does_not_know_the_unit_of_the_rows(n, d, mu, w, unit):
    one = choose(n=n, d=d, lipschitz=1.0, curvature=0.25, row_norm=1.0, mu=mu, weight_of_one=w)
    assert 20 <= one.steps <= 160
    assert 0.05 <= one.share <= 0.15
    assert 0.3 <= one.caution <= 3
    scaled = choose(n=n, d=d, lipschitz=unit, curvature=0.25, row_norm=unit, mu=mu, weight_of_one=w)
    assert abs(scaled.steps - one.steps) <= 1
    more = choose(n=2 * n, d=d, lipschitz=1.0, curvature=0.25, row_norm=1.0, mu=mu, weight_of_one=w)
    assert more.steps >= one.steps
    assert more.caution <= one.caution


@pytest.mark.parametrize("method", [learn_privately, preconditioned_descent, noisy_gradient_descent])
def test_a_relation_may_be_a_word_and_costs_the_same(method):
    fits = [
        method(curated(*rows()), Logistic(), epsilon=1.0, relation=r, seed=1)
        for r in (REPLACE, "replace-one")
    ]
    assert fits[0].report == fits[1].report
    assert fits[0].guarantee == fits[1].guarantee
    once = method(curated(*rows()), Logistic(), epsilon=1.0, relation=ADD, seed=1)
    steps = [fit.report["steps"] for fit in (fits[0], once)]
    sigmas = [fit.report["noise multiplier"] for fit in (fits[0], once)]
    if steps[0] == steps[1]:
        assert sigmas[0] == pytest.approx(2 * sigmas[1], rel=0.2)
    with pytest.raises(ParameterError, match="`relation` of"):
        method(curated(*rows()), Logistic(), epsilon=1.0, relation="replace")


def test_a_word_is_a_relation_wherever_one_is_asked_for():
    assert weight("replace-one") == 2.0
    assert L2Clip(1.0).sensitivity("replace-one") == 2 * L2Clip(1.0).steps


BAD = [
    ({"epsilon": 0.0}, "`epsilon`"), ({"delta": 0.0}, "`delta`"), ({"steps": 0}, "`steps`"),
    ({"share": 1.0}, "`share`"), ({"caution": 0.0}, "`caution`"), ({"tail": 2.0}, "`tail`"),
    ({"seed": 1.5}, "`seed`"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "message"), BAD)
def test_bad_settings(changed, message):
    with pytest.raises(ParameterError, match=f"{message} of preconditioned_descent must be"):
        preconditioned_descent(curated(*rows()), Logistic(), **{"epsilon": 1.0, **changed})
    if set(changed) <= {"epsilon", "delta"}:
        with pytest.raises(ParameterError, match=f"{message} of learn_privately must be"):
            learn_privately(curated(*rows()), Logistic(), **{"epsilon": 1.0, **changed})


def test_squares_want_a_clip():
    with pytest.raises(AssumptionError, match="must be Lipschitz"):
        learn_privately(curated(*rows()), Squared(), epsilon=1.0)
