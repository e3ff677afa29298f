"""No pair of neighbours spends more than is claimed, on any transcript: every method with Gaussian noise.

Random transcripts at fixed seeds; the inequality is a theorem, so there are no false alarms.
"""

import math

import numpy as np
import pytest
from tests.erm.transcripts import spent

from untold.convex.losses import Hinge, Huber, Logistic, Multinomial, Quantile
from untold.core import Relation
from untold.erm import whitened
from untold.erm.base import curated
from untold.erm.gradient import noisy_gradient_descent
from untold.erm.newton import double_noise_newton
from untold.erm.whitened import whitened_descent
from untold.private.gaussian_profile import gdp_mu

ADD, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE


def base(n=60, d=3, seed=0, norm=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(1, 0.05, d)
    X *= norm / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return X, np.where(rng.random(n) < 0.5, 1.0, -1.0)


def extremes(X, y, d, norm, labels):
    """Rows that reach furthest, and rows that are nothing: each to be put first, or taken away."""
    axes = [sign * norm * 1.001 * np.eye(d)[j] for j in range(d) for sign in (1, -1)]
    odd = [np.full(d, np.nan), np.full(d, np.inf), np.zeros(d), np.full(d, 1e308), X[1]]
    return [(row, label) for row in (*axes, *odd) for label in labels]


def pairs(d, norm, labels, relation, seed):
    X, y = base(d=d, norm=norm, seed=seed)
    rng = np.random.default_rng(seed)
    candidates = extremes(X, y, d, norm, labels)
    for _ in range(6):
        (a, la), (b, lb) = (candidates[k] for k in rng.integers(len(candidates), size=2))
        one = np.vstack([X, a]), np.append(y, la)
        yield one, ((X, y) if relation is ADD else (np.vstack([X, b]), np.append(y, lb)))
    for label, other in ((labels[0], labels[-1]), (labels[-1], labels[0])):
        one = np.vstack([X, norm * np.eye(d)[0]]), np.append(y, label)
        two = np.vstack([X, -norm * np.eye(d)[0] if relation is REPLACE else X[0]]), np.append(y, other)
        yield one, ((X, y) if relation is ADD else two)


def largest(monkeypatch, method, loss, relation, *, norm=1.0, d=3, labels=(1.0, -1.0, 0.5), **settings):
    """The largest share of μ² that any of those pairs spent."""
    mu, found = gdp_mu(2.0, 1e-4), 0.0
    for seed in range(3):
        for one, other in pairs(d, norm, labels, relation, seed):

            def fit(rows):
                return method(
                    curated(*rows, norm), loss, epsilon=2.0, delta=1e-4, relation=relation, **settings
                )  # fmt: skip

            for way in ((one, other), (other, one)):
                found = max(found, spent(monkeypatch, fit, *way, seed=seed) / mu**2)
    return found


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("norm", [1.0, 0.3])
@pytest.mark.parametrize("loss", [Logistic(), Hinge(), Huber(delta=0.3), Multinomial(classes=3)], ids=str)
def test_noisy_descent(monkeypatch, loss, relation, norm):
    labels = (0.0, 2.0, 7.0) if isinstance(loss, Multinomial) else (30.0, -30.0, 1.0, -1.0)
    share = largest(monkeypatch, noisy_gradient_descent, loss, relation, norm=norm, labels=labels, steps=4)
    assert share <= 1 + 1e-9
    assert share > 0.1


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("norm", [1.0, 0.3])
@pytest.mark.parametrize(
    "loss", [Logistic(), Hinge(), Huber(delta=0.3), Quantile(), Multinomial(classes=3)], ids=str
)
def test_whitened_descent(monkeypatch, loss, relation, norm):
    """On so few rows nothing is seen; on the same rows a thousandfold nearly everything is."""
    monkeypatch.setattr(whitened, "STEPS", 16)
    labels = (0.0, 2.0, 7.0) if isinstance(loss, Multinomial) else (30.0, -30.0, 1.0, -1.0)
    share = largest(monkeypatch, whitened_descent, loss, relation, norm=norm, labels=labels)
    assert share <= 1 + 1e-9
    assert share > 0.1


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("wide", [False, True])
def test_whitened_descent_that_sees(monkeypatch, relation, wide):
    """10,000 rows: looks see directions, stretch them, and look again; with columns by themselves, too."""
    monkeypatch.setattr(whitened, "STEPS", 8)
    if wide:
        monkeypatch.setattr(whitened, "WIDEST", 2)
    X, y = base(n=10_000, d=4)
    mu = gdp_mu(8.0, 1e-4)

    def fit(rows):
        return whitened_descent(curated(*rows), Logistic(), epsilon=8.0, delta=1e-4, relation=relation)

    seen = []
    for j, sign in ((0, 1.0), (3, 1.0), (3, -1.0)):
        row = sign * np.eye(4)[j]
        one = np.vstack([X, row]), np.append(y, 1.0)
        other = (X, y) if relation is ADD else (np.vstack([X, -row]), np.append(y, 1.0))
        seen.append(spent(monkeypatch, fit, one, other) / mu**2)
    assert max(seen) <= 1 + 1e-9
    assert max(seen) > 0.1
    report = fit((X, y)).report
    assert report["directions seen"] >= 3
    assert report["share unseen"] < 1


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("curvature", ["bound", "hessian"])
@pytest.mark.parametrize("norm", [1.0, 0.3])
def test_double_noise_newton(monkeypatch, relation, curvature, norm):
    share = largest(
        monkeypatch, double_noise_newton, Logistic(), relation, norm=norm, steps=3, curvature=curvature
    )
    assert share <= 1 + 1e-9
    assert share > 0.1


def test_a_method_that_adds_too_little_is_caught(monkeypatch):
    """The harness bites: noise for a bound that rows exceed."""
    X, y = base()

    def fit(rows):
        return noisy_gradient_descent(curated(*rows), Logistic(), epsilon=2.0, delta=1e-4, steps=4)

    from untold.erm import sums

    real = sums.GradientSums.steps.func
    monkeypatch.setattr(sums.GradientSums, "steps", property(lambda self: real(self) / 2.5))
    row = np.vstack([X, np.eye(3)[0]]), np.append(y, 1.0)
    found = max(spent(monkeypatch, fit, row, (X, y), seed=s) for s in range(5))
    assert found > gdp_mu(2.0, 1e-4) ** 2
    assert math.isfinite(found)
