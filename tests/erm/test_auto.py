"""What `learn_privately` chooses, Newton's steps, and the lecture's descent on single rows. Fixed seeds."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from untold.convex.domains import Box, Everywhere, L2Ball
from untold.convex.losses import GeometricMedian, Hinge, Huber, Logistic, Multinomial, Squared
from untold.core import Relation
from untold.erm.approximate import approximate_minima, untuned
from untold.erm.auto import learn_privately
from untold.erm.base import curated
from untold.erm.gradient import noisy_gradient_descent
from untold.erm.newton import double_noise_newton
from untold.erm.open import minimiser
from untold.erm.single import one_row_descent
from untold.erm.whitened import whitened_descent
from untold.errors import AssumptionError, DataError, ParameterError
from untold.learners.accelerated import AcceleratedDescent
from untold.learners.average import LAST
from untold.learners.descent import Descent
from untold.learners.rules import Constant
from untold.private.guarantees import GDP, Approximate, Pure

ADD, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE


def rows(n=400, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d) / 2
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-X @ np.arange(1, d + 1))), 1.0, -1.0)


# learn_privately


def test_it_chooses_by_the_loss():
    X, y = rows(n=5000)
    data = curated(X, y)
    given = {"epsilon": 2.0, "seed": 1}
    same = [
        (Logistic(), {}, lambda: whitened_descent(data, Logistic(), **given)),
        (Hinge(), {}, lambda: whitened_descent(data, Hinge(), **given)),
        (Squared(), {"labels": (-1.0, 1.0)}, lambda: whitened_descent(data, Huber(delta=0.6), **given)),
        (GeometricMedian(), {}, lambda: noisy_gradient_descent(data, GeometricMedian(), **given)),
    ]
    for loss, more, expected in same:
        assert (learn_privately(data, loss, **given, **more).weights == expected().weights).all()


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_pure_privacy_is_had_for_delta_zero(relation):
    X, y = rows(n=50_000)
    fit = learn_privately(curated(X, y), Logistic(), epsilon=4.0, delta=0.0, relation=relation, seed=2)
    unseeded = learn_privately(curated(X, y), Logistic(), epsilon=4.0, delta=0.0, relation=relation).guarantee
    assert isinstance(unseeded, Pure)
    assert unseeded.epsilon(0.0) == 4.0
    assert Logistic().value(fit.weights, X, y).mean() < 0.99 * math.log(2)
    with pytest.raises(AssumptionError, match="must be linear"):
        learn_privately(curated(X, y), Multinomial(classes=2), epsilon=1.0, delta=0.0)


def test_without_privacy_it_is_the_minimiser():
    X, y = rows(n=2000)
    best = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y).coef_[0]
    for method in (learn_privately, double_noise_newton):
        fit = method(curated(X, y), Logistic(), epsilon=math.inf)
        np.testing.assert_allclose(fit.weights, best, atol=1e-6)
        assert fit.guarantee.epsilon(0.5) == math.inf
    labels = X @ np.ones(5) + y
    line = LinearRegression(fit_intercept=False).fit(X, labels)
    fit = learn_privately(curated(X, labels), Squared(), epsilon=math.inf)
    np.testing.assert_allclose(fit.weights, line.coef_, atol=1e-6)
    three = np.argmax(X[:, :3] * 4 + np.random.default_rng(1).gumbel(size=(2000, 3)), axis=1)
    theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, three)
    np.testing.assert_allclose(
        minimiser(curated(X, three), Multinomial(classes=3), 1.0), theirs.coef_, atol=1e-5
    )
    hinge = learn_privately(curated(X, y), Hinge(), epsilon=math.inf)
    assert Hinge().value(hinge.weights, X, y).mean() < 0.95


@pytest.mark.parametrize("learner", ["descent", "accelerated"])
@pytest.mark.parametrize("loss", [Logistic(), Multinomial(classes=2)], ids=str)
def test_descent_without_noise_ends_where_scikit_learn_does(loss, learner):
    """ε = ∞ of the same code, λ = 1, to 1e-6; two classes are signs at half the weights."""
    X, y = rows(n=300, d=3)
    two = isinstance(loss, Multinomial)
    ridge = 2.0 if two else 1.0
    best = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-14, max_iter=10_000).fit(X, y).coef_[0]
    beta = loss.smoothness(1.0) + ridge / 300
    learners = {
        "accelerated": (AcceleratedDescent(eta=1 / beta, strength=ridge / 300), 400),
        "descent": (Descent(rule=Constant(1 / beta), average=LAST), 4000),
    }
    chosen, steps = learners[learner]
    data = curated(X, (y + 1) / 2 if two else y)
    fit = noisy_gradient_descent(
        data, loss, epsilon=math.inf, steps=steps, learner=chosen, regularisation=ridge
    )
    found = fit.weights[1] - fit.weights[0] if two else fit.weights
    np.testing.assert_allclose(found, best, atol=1e-6)


@pytest.mark.parametrize(
    "method", [learn_privately, noisy_gradient_descent, double_noise_newton, whitened_descent]
)
def test_a_relation_may_be_a_word_and_costs_the_same(method):
    fits = [
        method(curated(*rows()), Logistic(), epsilon=1.0, relation=r, seed=1)
        for r in (REPLACE, "replace-one")
    ]
    assert fits[0].report == fits[1].report
    assert fits[0].guarantee == fits[1].guarantee
    with pytest.raises(ParameterError, match="`relation` of"):
        method(curated(*rows()), Logistic(), epsilon=1.0, relation="replace")


def test_a_seed_is_not_private():
    data = curated(*rows())
    one, two = (learn_privately(data, Logistic(), epsilon=1.0, seed=3) for _ in range(2))
    assert np.array_equal(one.weights, two.weights)
    assert one.guarantee.epsilon(1e-6) == math.inf
    free = [learn_privately(data, Logistic(), epsilon=1.0).weights for _ in range(2)]
    assert not np.array_equal(*free)


@pytest.mark.parametrize("labels", [(1.0, 0.0), (0.0, math.inf), "ab", 3, (1.0,)])
def test_a_range_of_labels_is_two_numbers(labels):
    with pytest.raises(ParameterError, match="`labels` of learn_privately must be two numbers"):
        learn_privately(curated(*rows()), Squared(), epsilon=1.0, labels=labels)


def test_squares_want_the_range_of_labels():
    with pytest.raises(AssumptionError, match="must be Lipschitz"):
        learn_privately(curated(*rows()), Squared(), epsilon=1.0)
    for changed, name in (({"epsilon": 0.0}, "epsilon"), ({"delta": -1.0}, "delta"), ({"seed": -1}, "seed")):
        with pytest.raises(ParameterError, match=f"`{name}` of learn_privately"):
            learn_privately(curated(*rows()), Logistic(), **{"epsilon": 1.0, **changed})


def test_regression_is_learnt():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=(20_000, 4)), np.ones(20_000)]) / math.sqrt(5)
    y = X @ [3.0, -1.0, 0.5, 0.0, 1.0] + 0.1 * rng.normal(size=20_000)
    for epsilon, least in ((0.1, 0.8), (1.0, 0.9), (8.0, 0.92)):
        fit = learn_privately(curated(X, y), Squared(), epsilon=epsilon, labels=(-1.0, 3.0), seed=1)
        assert 1 - ((X @ fit.weights - y) ** 2).mean() / y.var() > least


# Approximate minima with nothing to tune


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0, 100.0, 1e4])
def test_a_regularisation_that_nobody_chose_leaves_most_of_epsilon(epsilon):
    ridge = untuned(0.25, min(epsilon, 1e3))
    left = 0.99 * epsilon - math.log1p(0.25 / ridge)
    assert 0.85 * epsilon < left < epsilon
    fit = approximate_minima(curated(*rows()), Logistic(), epsilon=epsilon, seed=1)
    assert fit.report["regularisation"] == pytest.approx(ridge, rel=1e-6)
    assert isinstance(
        approximate_minima(curated(*rows()), Logistic(), epsilon=epsilon).guarantee, Approximate
    )
    nothing = approximate_minima(curated(*rows()), Logistic(), epsilon=math.inf)
    assert nothing.guarantee.epsilon(0.5) == math.inf


# Newton


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_newton_learns(relation):
    X, y = rows(n=30_000)
    best = minimiser(curated(X, y), Logistic())
    least, zero = Logistic().value(best, X, y).mean(), math.log(2)
    fit = double_noise_newton(curated(X, y), Logistic(), epsilon=4.0, relation=relation, seed=1)
    assert Logistic().value(fit.weights, X, y).mean() < least + 0.1 * (zero - least)
    assert fit.guarantee.epsilon(1e-6) == math.inf
    bold = double_noise_newton(curated(X, y), Logistic(), epsilon=4.0, curvature="hessian", seed=1)
    assert Logistic().value(bold.weights, X, y).mean() < least + 0.1 * (zero - least)
    free = double_noise_newton(curated(X, y), Logistic(), epsilon=4.0, relation=relation).guarantee
    assert isinstance(free, GDP)
    assert 3.999 < free.epsilon(1e-6) <= 4.0


def test_newton_says_what_it_wants():
    data = curated(*rows())
    for loss, word in ((Hinge(), "smooth"), (Squared(), "Lipschitz"), (Multinomial(classes=2), "linear")):
        with pytest.raises(AssumptionError, match=word):
            double_noise_newton(data, loss, epsilon=1.0)
    for changed in ({"steps": 0}, {"curvature": "none"}, {"epsilon": 0}, {"delta": 0.0}):
        with pytest.raises(ParameterError, match=f"`{next(iter(changed))}` of double_noise_newton"):
            double_noise_newton(data, Logistic(), **{"epsilon": 1.0, **changed})


# One row at a time


def test_the_compiled_walk_is_the_readable_one(monkeypatch):
    X, y = rows(n=40, d=3)
    X[3], y[4], X[5] = np.nan, 0.5, 1e308
    fits = []
    for readable in (False, True):
        if readable:
            monkeypatch.setattr("untold.erm.single.residual_of", lambda loss: None)
        fits.append(one_row_descent(curated(X, y, 0.9), Logistic(), epsilon=20.0, domain=L2Ball(3.0), seed=1))
    np.testing.assert_allclose(fits[0].weights, fits[1].weights, rtol=1e-12)
    assert fits[0].report == fits[1].report


def test_its_noise_is_as_printed_and_its_privacy_better():
    for n, epsilon, delta in ((50, 0.5, 1e-3), (200, 1.0, 1e-6), (100, 5.0, 1e-5)):
        fit = one_row_descent(
            curated(*rows(n=n)), Logistic(), epsilon=epsilon, delta=delta, domain=L2Ball(1.0)
        )
        squared = 32 * n**2 * math.log(n / delta) * math.log(1 / delta) / epsilon**2
        assert fit.report["noise multiplier"] * n == pytest.approx(math.sqrt(squared))
        assert fit.report["steps"] == n * n
        assert (
            fit.guarantee.epsilon(delta) == fit.report["epsilon"] < epsilon == fit.report["printed epsilon"]
        )


def test_it_learns_within_its_set():
    X, y = rows(n=600, d=2)
    fit = one_row_descent(curated(X, y), Logistic(), epsilon=400.0, delta=1e-3, domain=L2Ball(4.0), seed=1)
    assert np.linalg.norm(fit.weights) <= 4 * (1 + 1e-12)
    assert Logistic().value(fit.weights, X, y).mean() < 0.67
    boxed = one_row_descent(
        curated(*rows(n=30, d=2)), Logistic(), epsilon=1.0, domain=Box(low=[0.0, 0.0], high=[1.0, 2.0])
    )
    assert (boxed.weights >= 0).all()


def test_one_row_descent_says_what_it_wants():
    data = curated(*rows(n=20))
    with pytest.raises(AssumptionError, match="bounded"):
        one_row_descent(data, Logistic(), epsilon=1.0, domain=Everywhere())
    with pytest.raises(AssumptionError, match="Lipschitz"):
        one_row_descent(data, Squared(), epsilon=1.0, domain=L2Ball(1.0))
    with pytest.raises(ParameterError, match="`epsilon`"):
        one_row_descent(data, Logistic(), epsilon=math.inf, domain=L2Ball(1.0))
    with pytest.raises(DataError, match="2¹⁴ rows"):
        one_row_descent(
            curated(np.zeros((2**14 + 1, 1)), np.ones(2**14 + 1)), Logistic(), epsilon=1.0, domain=L2Ball(1)
        )
