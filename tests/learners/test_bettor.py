"""The house learner against its defining integral and its bounds. Fixed seeds: no false alarms."""

import math

import mpmath as mp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from untold.convex.losses import Logistic
from untold.learners.average import UNIFORM
from untold.learners.bettor import PURSE, Bettor, spread
from untold.local.learn import absorb, learn
from untold.private.randomizers.privunitg import PrivUnitG


def shortened(reports, G):
    """At most G long, or twice the root of the mean square of those before."""
    kept = []
    for g in reports:
        before = math.sqrt(np.mean([k @ k for k in kept])) if kept else 0.0
        kept.append(g * min(1.0, max(G, 2 * before) / math.sqrt(g @ g)))
    return np.array(kept)


def test_the_bettors_point_is_the_mean_of_its_bets():
    """A·E v·exp(⟨v, θ⟩ − (tν + 2G²)‖v‖²/2), v normal: the product of one-dimensional integrals, in mpmath."""
    rng = np.random.default_rng(3)
    for d in (1, 2, 5, 30):
        for _ in range(250):
            T = int(rng.integers(5, 200))
            learner = Bettor(horizon=T, bound=float(10 ** rng.uniform(-2, 2)))
            reports = learner.bound * rng.normal(size=(int(rng.integers(2, T + 1)), d))
            state = absorb(learner, learner.start(d), reports)
            reports = shortened(reports, learner.bound)
            theta, t = -reports.sum(axis=0), len(reports)
            nu = mp.mpf(float((reports[:-1] ** 2).sum())) / ((t - 1) * d)
            B0 = nu * T * (mp.sqrt(d) / mp.mpf("0.8") - 1)
            s = t * nu + 2 * learner.bound**2
            A = mp.mpf(PURSE) * mp.sqrt(learner.bound * T * mp.sqrt(nu * T))
            each = [mp.sqrt(B0 / (B0 + s)) * mp.exp(mp.mpf(x) ** 2 / (2 * (B0 + s))) for x in theta]
            wanted = [float(A * mp.fprod(each) * mp.mpf(x) / (B0 + s)) for x in theta]
            np.testing.assert_allclose(state.w, wanted, rtol=1e-9)


def test_one_dimension_by_quadrature():
    learner = Bettor(horizon=40)
    reports = np.random.default_rng(1).normal(size=(30, 1)) - 0.3
    state = absorb(learner, learner.start(1), reports)
    reports = shortened(reports, 1.0)
    nu, theta = float((reports[:-1] ** 2).mean()), -float(reports.sum())
    B0, A = nu * 40 * spread(1.0), PURSE * math.sqrt(40 * math.sqrt(nu * 40))

    def integrand(v):
        return v * mp.exp(v * theta - (30 * nu + 2) * v * v / 2) * mp.npdf(v, 0, 1 / mp.sqrt(B0))

    assert state.w[0] == pytest.approx(float(A * mp.quad(integrand, [-3, -1, 0, 1, 3])), rel=1e-9)


LOSSES = {
    "linear": lambda w, rng, d: np.full_like(w, 1 / math.sqrt(d)),
    "absolute": lambda w, rng, d: np.sign(w - 0.5) / math.sqrt(d),
    "turning": lambda w, rng, d: np.where(rng.random(len(w)) < 0.5, -1.0, 1.0)[:, None] * np.eye(d)[0],
}


def play(learner, runs, rounds, d, loss, noise, seed):
    """Σ⟨g, w⟩, −Σg̃ and the last state's bound, of as many runs side by side."""
    rng = np.random.default_rng(seed)
    states = [learner.start(d) for _ in range(runs)]
    lost, against = np.zeros(runs), np.zeros((runs, d))
    for _ in range(rounds):
        w = np.stack([state.w for state in states])
        g = LOSSES[loss](w, rng, d)
        reports = noise(g, rng)
        lost += (g * w).sum(axis=1)
        against -= g
        states = [learner.step(state, report) for state, report in zip(states, reports, strict=True)]
    return lost, against, states


def check(learner, played, norms, d):
    """Mean regret below mean bound, for u = ‖u‖·(1, …, 1)/√d: a fixed one; 5 standard errors."""
    lost, against, states = played
    for norm in norms:
        u = np.full(d, norm / math.sqrt(d))
        regret = lost + against @ u
        bound = np.mean([learner.regret(state, norm) for state in states])
        assert regret.mean() - 5 * regret.std() / math.sqrt(len(regret)) <= bound, norm


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("d", [1, 7])
def test_the_bettor_told_of_the_noise_keeps_its_bound(loss, d):
    learner = Bettor(horizon=200, variance=1.5**2 + 2.0, average=UNIFORM)
    played = play(learner, 200, 200, d, loss, lambda g, rng: g + 1.5 * rng.normal(size=g.shape), 5)
    check(learner, played, [0.0, 0.1, 1.0, 10.0], d)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_bettor_that_measures_keeps_its_bound_on_noise(loss):
    d, randomizer = 7, PrivUnitG(1.0).seeded(4)
    learner = Bettor(horizon=200, average=UNIFORM)
    check(learner, play(learner, 200, 200, d, loss, lambda g, _: randomizer(g), 6), [0.0, 0.1, 1.0, 10.0], d)


def test_a_measured_variance_can_be_deceived():
    reports = np.concatenate([np.full(90, -0.05), np.full(10, 1.0)])[:, None]
    deceived, told = Bettor(horizon=100), Bettor(horizon=100, variance=2.0)
    for learner, survives in ((deceived, False), (told, True)):
        state, lost = learner.start(1), 0.0
        for g in reports:
            lost += float(g[0] * state.w[0])
            state = learner.step(state, g)
        assert (lost <= learner.regret(state, 0.0)) == survives


def test_the_horizon_doubles_when_it_is_passed():
    learner, reports = Bettor(horizon=10), np.random.default_rng(0).normal(size=(41, 3))
    horizons = [absorb(learner, learner.start(3), reports[:k]).horizon for k in (10, 11, 20, 21, 41)]
    assert horizons == [10, 20, 20, 40, 80]


def test_what_it_is_told():
    told = Bettor.told(PrivUnitG(1.0), 10, horizon=100)
    assert told.variance == PrivUnitG(1.0).subexponential(10)[0] + 2.0
    assert math.isfinite(told.regret(told.start(10), 5.0))
    assert Bettor(horizon=5).regret(Bettor(horizon=5).start(2), 3.0) == 0.0  # nothing seen, nothing lost


@pytest.mark.parametrize("place", ["first", "last", "anywhere"])
def test_a_few_loud_providers_do_not_drown_the_others(place):
    """⌈ln T⌉ at ε = 0.1 among T without noise: at most 1.2 times the excess risk of nobody being loud."""
    rng = np.random.default_rng(11)
    n, d = 20_000, 20
    X = rng.normal(size=(n, d)) / math.sqrt(d)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    u = 4 * rng.normal(size=d)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-X @ u)), 1.0, -1.0)
    loud = math.ceil(math.log(n))
    where = {"first": np.arange(loud), "last": n - 1 - np.arange(loud), "anywhere": rng.permutation(n)[:loud]}
    loss, best = Logistic(), LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10).fit(X, y).coef_[0]

    def excess(epsilons, seed):
        run = learn(X, y, loss=loss, randomizer=epsilons, seed=seed)
        return float((loss.value(run.weights, X, y) - loss.value(best, X, y)).mean())

    some = np.full(n, np.inf)
    some[where[place]] = 0.1
    quiet = excess(np.full(n, np.inf), 0)
    assert np.mean([excess(some, seed) for seed in range(5)]) < 1.2 * quiet
