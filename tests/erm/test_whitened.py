"""Coordinates that looks make round, how far descent goes in them, and what comes of it. Fixed seeds."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from untold.convex.losses import (
    Absolute,
    GeometricMedian,
    Hinge,
    Huber,
    HuberisedHinge,
    Logistic,
    Multinomial,
    Quantile,
    Squared,
)
from untold.core import Relation
from untold.erm import coordinates, whitened
from untold.erm.base import Asked, curated, streamed
from untold.erm.coordinates import Coordinates, carried, first_look, lengths, look_at_columns, second_look
from untold.erm.exact import Exact
from untold.erm.moments import diagonal, noisy_diagonal
from untold.erm.pace import Pace, tail_variance
from untold.erm.release import Spending, counted
from untold.erm.whitened import whitened_descent
from untold.errors import AssumptionError, ParameterError
from untold.private.gaussian_profile import gdp_mu

ADD, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE


def rows(n=2000, d=5, seed=0, spread=0.02):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(1, spread, d) / 2
    X = X @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    u = np.linalg.lstsq(X, X @ rng.normal(size=d) * 8)[0]
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-X @ u)), 1.0, -1.0)


def excess(loss, w, X, y):
    """How much of what can be learnt was not, in parts."""
    best = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y).coef_[0]
    least, zero = loss.value(best, X, y).mean(), loss.value(np.zeros(best.size), X, y).mean()
    return (loss.value(w, X, y).mean() - least) / (zero - least)


# Coordinates


def test_without_noise_rows_become_round():
    data = curated(*rows(spread=1e-3))
    here = first_look(data, 2000.0, math.inf, ADD, None)
    u = here.of(data.rows()[0])
    np.testing.assert_allclose(u.T @ u / 2000, np.eye(5), atol=1e-3)
    assert here.seen == 5
    assert here.share == pytest.approx(5.0, rel=1e-3)
    assert here.left == 0.0


@pytest.mark.parametrize("d", [10, 100])
def test_eigenvalues_are_seen_through_noise(d):
    """Those well above the noise are found to a few per cent, noise alone is seen as next to nothing."""
    rng = np.random.default_rng(d)
    true = np.where(np.arange(d) < 3, [10.0, 4.0, 2.5] + [0.0] * (d - 3), 0.0)
    s = 1 / math.sqrt(2 * d)
    found, false = [], 0
    for _ in range(40):
        Z = rng.normal(size=(d, d)) * s
        noise = np.triu(Z, 1) * 5 / 7 + np.triu(Z, 1).T * 5 / 7 + np.diag(np.diag(Z))
        A, seen, share, left = coordinates._opened(np.diag(true) + noise, 1.0, 1.0)
        false += max(0, seen - 3)
        assert seen >= 3
        assert A.shape == (d, d)
        found.append(share)
        assert left >= 0
    assert false <= 20
    stretched = [v / (v + 0.25 / v + 1) for v in (10.0, 4.0, 2.5)]  # ℓ/(v + floor), v = ℓ + R²/4ℓ
    assert np.mean(found) == pytest.approx(sum(stretched), rel=0.1)


def test_a_second_look_sees_what_the_first_did_not():
    data = curated(*rows(n=20_000, d=6, spread=1e-2))
    mu = 1.0
    first = first_look(data, 20_000.0, mu, ADD, None)
    ahead = coordinates.radius_ahead(first, 20_000.0, mu, ADD)
    second = second_look(data, first, 20_000.0, mu, ADD, None)
    assert ahead < 0.2
    assert second.seen > first.seen
    u = second.of(data.rows()[0])
    energy = (u * u).mean(axis=0)
    assert energy[: second.seen].min() > 0.2
    assert energy.max() < 3
    assert energy.sum() == pytest.approx(second.share + second.left, rel=0.3)
    np.testing.assert_allclose(second.A[: first.seen], first.A[: first.seen], atol=1e-6 * abs(second.A).max())


def test_columns_are_scaled_by_themselves():
    X, y = rows(d=4)
    dense, sparse = (
        look_at_columns(curated(M, y), 2000.0, math.inf, ADD, None) for M in (X, scipy.sparse.csr_array(X))
    )
    assert (dense.A == sparse.A).all()
    np.testing.assert_allclose(((X * dense.A) ** 2).mean(axis=0), 1.0, rtol=1e-4)
    noisy = look_at_columns(curated(X * 1e-3, y, 1e-3), 2000.0, 0.01, ADD, None)
    assert noisy.seen <= 2
    assert noisy.A.std() < 0.5 * noisy.A.mean()


def test_one_row_moves_a_diagonal_by_at_most_its_bound():
    K = 2**20
    for relation, factor in ((ADD, 1.0), (REPLACE, math.sqrt(2))):
        S = diagonal(lambda size: iter([np.zeros((1, 2))]), 2)
        scale = noisy_diagonal(S, K, 1.0, relation, None).noise
        one, two = (diagonal(lambda size, row=row: iter([row]), 2).floor() for row in (
            np.array([[K, 0.0]]), np.array([[0.0, K]])))  # fmt: skip
        moved = np.linalg.norm(one - (two if relation is REPLACE else 0))
        assert scale - 2 <= moved <= scale
        assert scale == pytest.approx(factor * K, rel=1e-5)


def test_sums_are_carried_exactly():
    rng = np.random.default_rng(0)
    A = coordinates.rounded(rng.normal(size=(7, 7)) * np.geomspace(1, 1e4, 7)[:, None])
    here = Coordinates(A, 7, 7.0, 0.0)
    high, low = rng.integers(-(2**55), 2**55, size=(2, 7)), rng.integers(0, 2**20, size=(2, 7))
    found = carried(here, Exact(high, low))
    for k in range(2):
        for j in range(7):
            exact = sum(
                Fraction(float(A[j, i])) * (int(high[k, i]) * 2**20 + int(low[k, i])) for i in range(7)
            )
            size = sum(abs(Fraction(float(A[j, i])) * int(high[k, i]) * 2**20) for i in range(7))
            assert (
                abs(Fraction(float(found[k, j])) - exact) <= abs(exact) * Fraction(2) ** -51 + size * 2**-60
            )


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_lengths_are_upper_bounds(columns, sparse):
    X, y = rows(n=50, d=6)
    X[3], X[4] = np.nan, 1e308
    data = curated(scipy.sparse.csr_array(X) if sparse else X, y)
    look = look_at_columns if columns else first_look
    here = look(data, 50.0, 5.0, ADD, None)
    found = lengths(data, here)
    q = data.rows()[0]
    A = np.diag(here.A) if columns else here.A
    for length, row in zip(found, q, strict=True):
        exact = sum(
            sum(Fraction(float(a)) * Fraction(float(x)) for a, x in zip(line, row, strict=True)) ** 2
            for line in A
        )
        assert Fraction(float(length)) ** 2 >= exact
        assert float(length) ** 2 <= float(exact) * (1 + 1e-9) + 1e-20


# The way


@pytest.mark.parametrize(("k", "S"), [(1e-4, 50.0), (0.01, 100.0), (0.1, 200.0), (0.3, 30.0)])
def test_the_variance_of_a_mean_over_the_last_half(k, S):
    """Against 4,000 simulated paths: 5 deviations of such a variance."""
    rng, T, count = np.random.default_rng(1), 2000, 4000
    eta, w, total = S / T, np.zeros(count), np.zeros(count)
    for t in range(T):
        w = w - eta * (k * w + math.sqrt(T) * rng.normal(size=count))
        if t >= T // 2:
            total += w / (T - T // 2)
    assert total.var() == pytest.approx(tail_variance(k, S), rel=5 * math.sqrt(2 / count) + 0.01)


@given(
    st.floats(1e-4, 0.25), st.floats(1e-9, 10), st.floats(0, 2000), st.floats(1e-3, 1e3), st.integers(8, 512)
)
def test_a_way_is_sane_and_does_not_know_the_unit_of_slopes(c, s, unseen, unit, steps):
    pace = Pace(steps, 1.0, 0.25, unseen)
    S = pace.reach(c, s)
    assert 0 < S <= steps * pace.longest(c)
    assert pace.reach(c, 2 * s) <= S
    assert Pace(steps, 1.0, 0.25, 2 * unseen + 1).reach(c, s) <= S
    # margins and slopes in other units: S has that of margins², over that of the loss
    other = Pace(steps, unit, 0.25 * unit * unit, unseen)
    assert other.reach(c * unit * unit, s * unit) == pytest.approx(S / unit**2, rel=1e-9)


# What is spent


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_what_is_claimed_is_what_was_asked_for(relation):
    fit = whitened_descent(curated(*rows()), Logistic(), epsilon=1.0, delta=1e-5, relation=relation)
    assert fit.guarantee.mu == gdp_mu(1.0, 1e-5)
    assert fit.guarantee.relation is relation
    assert fit.guarantee.assumptions == ()
    assert 0.999 < fit.guarantee.epsilon(1e-5) <= 1.0
    seeded = whitened_descent(curated(*rows()), Logistic(), epsilon=1.0, seed=1, relation=relation)
    assert seeded.guarantee.epsilon(1e-6) == math.inf


def test_the_number_of_rows_is_bought_where_it_is_private():
    data = curated(*rows())
    asked = [Asked.checked("test", 1.0, 1e-6, relation, 1) for relation in (ADD, REPLACE)]
    n, spending = counted(data, Spending(asked[0]))
    assert n != 2000.0
    assert abs(n - 2000) < 6 / (asked[0].mu * math.sqrt(0.005))
    assert spending.left < 1
    assert counted(data, Spending(asked[1])) == (2000.0, Spending(asked[1]))


# What is learnt


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_it_learns_where_columns_are_of_different_sizes(relation):
    """Ten columns of sizes 1 to 0.01, all of which matter: no plain descent gets there."""
    X, y = rows(n=50_000, d=10, spread=0.01)
    reached = [
        excess(
            Logistic(),
            whitened_descent(curated(X, y), Logistic(), epsilon=e, relation=relation, seed=1)[0],
            X,
            y,
        )
        for e in (0.5, 2.0, 8.0)
    ]
    assert reached[0] < 0.2
    assert reached[1] < 0.03
    assert reached[2] < 0.015


@pytest.mark.parametrize(
    "loss", [Logistic(), HuberisedHinge(), Hinge(), Huber(delta=0.5), Absolute(), Quantile(0.7)], ids=str
)
def test_every_linear_loss_is_learnt(loss):
    X, y = rows(n=30_000, d=6)
    data = curated(X, y)
    values = [
        loss.value(whitened_descent(data, loss, epsilon=e, seed=1).weights, X, y).mean()
        for e in (0.2, 2.0, 20.0)
    ]
    zero = loss.value(np.zeros(6), X, y).mean()
    assert values[0] < zero
    assert values[2] <= values[1] * 1.001 < values[0] * 1.002
    assert values[2] < 0.97 * zero


def test_classes_and_signs_agree():
    """Two classes of softmax are logistic regression, at half the weights each."""
    X, y = rows(n=30_000, d=4, spread=0.5)
    signs = whitened_descent(curated(X, y), Logistic(), epsilon=8.0, seed=1).weights
    classes = whitened_descent(curated(X, (y + 1) / 2), Multinomial(classes=2), epsilon=8.0, seed=1).weights
    assert classes.shape == (2, 4)
    apart = classes[1] - classes[0]
    assert np.linalg.norm(apart - signs) < 0.1 * np.linalg.norm(signs)
    assert excess(Logistic(), apart, X, y) < 0.01


def test_rows_may_be_sparse_streamed_or_wide(monkeypatch):
    X, y = rows(n=3000, d=8)
    X[np.random.default_rng(0).random(X.shape) < 0.6] = 0.0
    given = {"epsilon": 4.0, "seed": 3}
    dense = whitened_descent(curated(X, y), Logistic(), **given)
    others = [
        curated(scipy.sparse.csr_array(X), y),
        streamed([(X[:1000], y[:1000]), (scipy.sparse.csr_array(X[1000:]), y[1000:])]),
    ]
    for data in others:
        fit = whitened_descent(data, Logistic(), **given)
        np.testing.assert_allclose(fit.weights, dense.weights, rtol=1e-9, atol=1e-9)
        assert fit.report.keys() == dense.report.keys()
    monkeypatch.setattr(whitened, "WIDEST", 4)
    wide = [whitened_descent(curated(M, y), Logistic(), **given) for M in (X, scipy.sparse.csr_array(X))]
    np.testing.assert_allclose(wide[0].weights, wide[1].weights, rtol=1e-9)
    value = [Logistic().value(f.weights, X, y).mean() for f in (dense, wide[0])]
    assert max(value) < 0.98 * math.log(2)


@pytest.mark.parametrize("loss", [Logistic(), Multinomial(classes=3), Huber()], ids=str)
@pytest.mark.parametrize("spoil", ["nan", "inf", "huge", "label", "nan label", "duplicate"])
def test_one_row_changes_nothing_but_the_numbers(spoil, loss, recwarn):
    X, y = rows(n=500)
    y = y if not isinstance(loss, Multinomial) else (y + 1) / 2
    before = whitened_descent(curated(X, y), loss, epsilon=1.0, seed=1)
    X, y = X.copy(), y.copy()
    X[0] = {"nan": np.nan, "inf": np.inf, "huge": 1e308, "duplicate": X[1]}.get(spoil, X[0])
    y[0] = {"label": 7.0, "nan label": np.nan}.get(spoil, y[0])
    after = whitened_descent(curated(X, y), loss, epsilon=1.0, seed=1)
    assert after.report.keys() == before.report.keys()
    assert after.report["steps"] == before.report["steps"]
    assert after.guarantee == before.guarantee
    assert after.weights.shape == before.weights.shape
    assert np.isfinite(after.weights).all()
    assert not len(recwarn)


@pytest.mark.parametrize(("n", "d"), [(0, 1), (0, 3), (1, 1), (5, 40), (3, 2)])
def test_few_rows_are_no_error(n, d):
    for epsilon in (0.05, 1.0, 50.0):
        X = np.full((n, d), 0.5)
        fit = whitened_descent(curated(X, np.ones(n)), Logistic(), epsilon=epsilon)
        assert fit.weights.shape == (d,)
        assert np.isfinite(fit.weights).all()


@pytest.mark.parametrize("loss", [Squared(), GeometricMedian()], ids=str)
def test_other_losses_are_refused(loss):
    with pytest.raises(AssumptionError, match="`loss` of whitened_descent must be linear and Lipschitz"):
        whitened_descent(curated(*rows()), loss, epsilon=1.0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"epsilon": 0.0}, "`epsilon`"), ({"delta": 0.0}, "`delta`"), ({"seed": 1.5}, "`seed`"),
     ({"relation": "replace"}, "`relation`"), ({"epsilon": 1e-9}, "`epsilon`")],
)  # fmt: skip
def test_bad_settings(changed, message):
    with pytest.raises(ParameterError, match=f"{message} of whitened_descent must be"):
        whitened_descent(curated(*rows()), Logistic(), **{"epsilon": 1.0, **changed})
