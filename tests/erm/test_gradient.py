"""Sums of clipped gradients, batches and noisy gradient descent. Fixed seeds: no false alarms."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from untold.convex.domains import L2Ball
from untold.convex.losses import Hinge, Logistic, Squared
from untold.core import Relation, Unit
from untold.erm.base import curated
from untold.erm.batches import FullBatch, PoissonBatch, SubsetBatch
from untold.erm.gradient import noisy_gradient_descent
from untold.errors import AssumptionError, DataError, ParameterError
from untold.learners.average import LAST
from untold.learners.descent import Descent
from untold.learners.rules import Constant
from untold.private import choices, noise
from untold.private.accountant import Accountant
from untold.private.guarantees import GDP, PLD, Noise

ADD, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE


def rows(n=300, d=7, seed=0, hostile=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / 2
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    if hostile:
        X[3, 0], X[5, -1], X[7], X[9] = np.nan, np.inf, 1e308, 1e-320
        y[15], y[17] = np.nan, 0.5
    return X, y


# Batches


def test_coins_have_their_chance():
    for chance in (0.02, 0.5, 0.999):
        heads = int(choices.coins(400_000, chance, noise.seeded(1)).sum())
        assert stats.binomtest(heads, 400_000, chance).pvalue > 1e-6
    assert not choices.coins(1000, 0.0).any()
    two = choices.coins(200_000, 0.3, noise.seeded(2)).reshape(-1, 2)
    both = int(two.all(axis=1).sum())  # each row by itself: pairs are independent
    assert stats.binomtest(both, 100_000, 0.09).pvalue > 1e-6


def test_every_subset_is_as_likely():
    source, seen = noise.seeded(3), {}
    for _ in range(30_000):
        chosen = tuple(choices.subset(5, 2, source).tolist())
        seen[chosen] = seen.get(chosen, 0) + 1
    assert len(seen) == 10
    assert stats.chisquare(list(seen.values())).pvalue > 1e-6
    assert choices.subset(5, 0).size == 0
    assert choices.subset(0, 0).size == 0


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_a_batch_is_accounted_as_it_is_drawn(relation):
    people = {"relation": relation, "unit": Unit.ROW}
    full, poisson = FullBatch(), PoissonBatch(0.05)
    for sigma in (3.0, 20.0):
        step = GDP(full.claim(sigma, 1, 100, relation).mu, **people)
        assert full.claim(sigma, 25, 100, relation).epsilon(1e-6) == pytest.approx(
            Accountant().spend(step, times=25).epsilon(1e-6), rel=1e-9
        )
        sampled = PLD((Noise("gaussian", sigma, rate=0.05, times=25),), **people)
        spent = poisson.claim(sigma, 25, 100, relation).epsilon(1e-6)
        assert spent == sampled.epsilon(1e-6)
        assert spent < full.claim(sigma, 25, 100, relation).epsilon(1e-6)


@pytest.mark.parametrize(
    ("batch", "relation"),
    [
        (FullBatch(), ADD), (FullBatch(), REPLACE), (PoissonBatch(0.05), ADD), (PoissonBatch(0.05), REPLACE),
        (SubsetBatch(50), REPLACE),
    ],
)  # fmt: skip
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_calibrated_noise_is_enough_and_hardly_more(batch, relation, epsilon):
    sigma = batch.sigma(epsilon, 1e-6, 40, 1000, relation)
    reached = batch.claim(sigma, 40, 1000, relation).epsilon(1e-6)
    assert 0.99 * epsilon < reached <= epsilon * (1 + 1e-9)
    assert batch.claim(0.99 * sigma, 40, 1000, relation).epsilon(1e-6) > epsilon


def test_subsets_go_with_replacement_only():
    with pytest.raises(AssumptionError, match="replace-one"):
        SubsetBatch(5).sigma(1.0, 1e-6, 10, 100, ADD)
    assert SubsetBatch(5).expected(3) == 3.0


@pytest.mark.parametrize(
    "make", [lambda: PoissonBatch(0.0), lambda: PoissonBatch(1.5), lambda: SubsetBatch(0)]
)
def test_bad_batches(make):
    with pytest.raises(ParameterError, match="must be"):
        make()


# Descent


def test_without_noise_it_is_gradient_descent():
    X, y = rows(n=500, d=5, hostile=False)
    X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    fit = noisy_gradient_descent(
        curated(X, y), Logistic(), epsilon=math.inf, steps=4000, regularisation=5.0,
        learner=Descent(rule=Constant(4.0), average=LAST),
    )  # fmt: skip
    best = LogisticRegression(C=1 / 5.0, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y).coef_[0]
    np.testing.assert_allclose(fit.weights, best, atol=1e-6)
    assert fit.guarantee.epsilon(0.5) == math.inf


@pytest.mark.parametrize("batch", [FullBatch(), PoissonBatch(0.1), SubsetBatch(100)])
def test_the_noise_is_what_was_calibrated(batch):
    """Rows of zeros: after a step of rate 1 the weights are the noise alone, over the batch's size."""
    n, d = 1000, 4000
    data = curated(np.zeros((n, d)), np.ones(n))
    learner = Descent(rule=Constant(1.0), average=LAST)
    fit = noisy_gradient_descent(
        data, Logistic(), epsilon=1.0, steps=2, batch=batch, learner=learner, relation=REPLACE, seed=1
    )
    scale = fit.report["noise multiplier"] * fit.report["clip"] / batch.expected(n)
    assert stats.kstest(fit.weights / scale, stats.norm.cdf).pvalue > 1e-6
    assert fit.guarantee.epsilon(1e-6) == math.inf  # seeded
    unseeded = noisy_gradient_descent(
        data, Logistic(), epsilon=1.0, steps=2, batch=batch, learner=learner, relation=REPLACE
    )
    assert 0.99 < unseeded.guarantee.epsilon(1e-6) <= 1.0 + 1e-9
    assert not np.array_equal(fit.weights, unseeded.weights)


@pytest.mark.parametrize("loss", [Logistic(), Hinge()])
@pytest.mark.parametrize("batch", [FullBatch(), PoissonBatch(0.1)])
def test_it_learns_without_being_tuned(loss, batch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4)) / 4
    y = np.where(rng.random(20_000) < 1 / (1 + np.exp(-X @ [8, -4, 0, 0])), 1.0, -1.0)
    data = curated(X, y)
    fit = noisy_gradient_descent(data, loss, epsilon=1.0, batch=batch, seed=2)
    zero, reached = (loss.value(w, X, y).mean() for w in (np.zeros(4), fit.weights))
    assert reached < 0.9 * zero


def test_a_set_is_kept_to():
    data = curated(*rows(hostile=False))
    learner = Descent(rule=Constant(5.0), domain=L2Ball(0.25), average=LAST)
    fit = noisy_gradient_descent(data, Logistic(), epsilon=0.1, steps=5, learner=learner)
    assert np.linalg.norm(fit.weights) <= 0.25 * (1 + 1e-12)


@pytest.mark.parametrize("spoil", ["nan", "inf", "huge", "label", "duplicate"])
def test_one_row_changes_nothing_but_the_numbers(spoil, recwarn):
    X, y = rows(hostile=False)
    before = noisy_gradient_descent(curated(X, y), Logistic(), epsilon=1.0, steps=3, seed=1)
    X, y = X.copy(), y.copy()
    X[0] = {"nan": np.nan, "inf": np.inf, "huge": 1e308, "label": X[0], "duplicate": X[1]}[spoil]
    y[0] = {"label": 7.0}.get(spoil, y[0])
    after = noisy_gradient_descent(curated(X, y), Logistic(), epsilon=1.0, steps=3, seed=1)
    assert after.report == before.report
    assert after.guarantee == before.guarantee
    assert after.weights.shape == before.weights.shape
    assert not len(recwarn)
    moved = 2 * before.report["clip"] / len(y) * 4.0 * 3
    assert np.linalg.norm(after.weights - before.weights) <= moved  # with the same noise


def test_no_rows_at_all():
    fit = noisy_gradient_descent(curated(np.empty((0, 3)), []), Logistic(), epsilon=1.0, steps=3)
    assert fit.weights.shape == (3,)


BAD = [
    ({"epsilon": 0.0}, ParameterError, "`epsilon` of noisy_gradient_descent must be"),
    ({"delta": 0.0}, ParameterError, "`delta` of noisy_gradient_descent must be"),
    ({"steps": 0}, ParameterError, "`steps`"),
    ({"regularisation": -1.0}, ParameterError, "`regularisation`"),
    ({"clip": -1.0}, ParameterError, "`clip`"),
    ({"seed": -1}, ParameterError, "`seed`"),
    ({"batch": SubsetBatch(10)}, AssumptionError, "replace-one"),
]


@pytest.mark.parametrize(("changed", "error", "message"), BAD, ids=[message for *_, message in BAD])
def test_bad_settings(changed, error, message):
    with pytest.raises(error, match=message):
        noisy_gradient_descent(curated(*rows()), Logistic(), **{"epsilon": 1.0, **changed})


def test_a_loss_without_a_lipschitz_constant_wants_a_clip():
    with pytest.raises(AssumptionError, match="must be Lipschitz"):
        noisy_gradient_descent(curated(*rows()), Squared(), epsilon=1.0)
    assert noisy_gradient_descent(curated(*rows()), Squared(), epsilon=1.0, clip=1.0).weights.shape == (7,)


@pytest.mark.parametrize(
    ("X", "y"), [([1.0], [1.0]), ([[1.0]], [1.0, 2.0]), ([["a"]], [1.0]), ([[1.0]], ["a"])]
)
def test_what_does_not_fit_is_refused(X, y):
    with pytest.raises(DataError, match=r"`[Xy]` of curated"):
        curated(X, y)
