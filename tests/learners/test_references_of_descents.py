"""Each descent against a naive loop, and mirror steps against what defines them. No false alarms."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from untold.convex.domains import Box, Everywhere, L2Ball, LInfBall
from untold.learners.bandit import BanditDescent, one_point_gradient
from untold.learners.descent import Descent
from untold.learners.dog import DistanceOverGradients
from untold.learners.information import LazyDescent
from untold.learners.mirror import MirrorDescent, p_norm
from untold.learners.rules import AdaGradNorm, Constant, InverseRoot, StronglyConvex

RNG = np.random.default_rng(50)
SCALES = [1e-6, 1e-3, 1.0, 1e3, 1e6]


def play(learner, g):
    state, points = learner.start(g.shape[1]), []
    for row in g:
        state = learner.step(state, row)
        points.append(learner.point(state))
    return state, np.array(points)


def random_reports(scale, rounds=60, d=4):
    rng = np.random.default_rng(int(1e6 + math.log10(scale)))
    sizes = 10.0 ** rng.uniform(-2, 1, (rounds, 1))  # a few rounds are far noisier than the rest
    g = scale * (rng.normal(size=(rounds, d)) * sizes + 0.3 * rng.normal(size=d))
    g[7] = 0.0
    return g


def close(points, exact):
    np.testing.assert_allclose(points, exact, rtol=1e-11, atol=1e-12 * np.abs(exact).max())


def into_ball(w, radius):
    return w / max(1.0, np.linalg.norm(w) / radius)


DOMAINS = {
    "everywhere": (Everywhere(), lambda w: w),
    "l2": (L2Ball(0.7), lambda w: into_ball(w, 0.7)),
    "linf": (LInfBall(0.3), lambda w: np.maximum(np.minimum(w, 0.3), -0.3)),
    "box": (Box(0.1, 0.5), lambda w: np.maximum(np.minimum(w, 0.5), 0.1)),
}
RULES = {
    "constant": (Constant(0.05), lambda t, S: 0.05),
    "inverse-root": (InverseRoot(0.3), lambda t, S: 0.3 * t**-0.5),
    "strongly-convex": (StronglyConvex(2.0), lambda t, S: 1 / (2 * t)),
    "weighted": (StronglyConvex(2.0, weighted=True), lambda t, S: 1 / (t + 1)),
    "adagrad-norm": (AdaGradNorm(0.4), lambda t, S: 0.4 / math.sqrt(S)),
    "adagrad-norm-started": (AdaGradNorm(0.4, start=3.0), lambda t, S: 0.4 / math.sqrt(3 + S)),
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("domain", sorted(DOMAINS))
@pytest.mark.parametrize("rule", sorted(RULES))
def test_descent(rule, domain, scale):
    """120 runs of 60 rounds: 7200 states."""
    (rule, eta), (domain, project) = RULES[rule], DOMAINS[domain]
    g = random_reports(scale)
    state, points = play(Descent(rule=rule, domain=domain), g)
    w, S, E, exact = project(np.zeros(4)), 0.0, 0.0, []
    np.testing.assert_array_equal(Descent(rule=rule, domain=domain).start(4).w, w)
    for t, row in enumerate(g, start=1):
        S += row @ row
        E += eta(t, S) * (row @ row)
        w = project(w - eta(t, S) * row)
        exact.append(w)
    close(points, exact)
    assert (state.S, state.E, state.eta) == pytest.approx((S, E, eta(60, S)), rel=1e-12)


def test_rules_are_those_of_the_lectures():
    convex = Constant.convex_smooth(beta=4.0, distance=3.0, variance=2.0, horizon=50)
    assert convex.eta == min(1 / 4, 3 / math.sqrt(2 * 50))
    assert Constant.convex_smooth(beta=40.0, distance=3.0, variance=2.0, horizon=50).eta == 1 / 40
    lipschitz = Constant.convex_lipschitz(lipschitz=3.0, distance=2.0, variance=7.0, horizon=100)
    assert lipschitz.eta == 2 / math.sqrt((9 + 7) * 100)
    nonconvex = Constant.nonconvex_smooth(beta=4.0, gap=3.0, variance=2.0, horizon=500)
    assert nonconvex.eta == pytest.approx(math.sqrt(2 * 3 / (4 * 2 * 500)))
    assert Constant.nonconvex_smooth(beta=4.0, gap=3e9, variance=2.0, horizon=500).eta == 1 / 4
    # they minimise the bounds they come from, S4 §12.2
    etas = np.geomspace(1e-4, 1, 4001)
    for bound, eta in [
        (lambda x: 3**2 / (2 * 50 * x) + x * 2 / 2, convex.eta),
        (lambda x: 2**2 / (2 * 100 * x) + x * 16 / 2, lipschitz.eta),
        (lambda x: 3 / (500 * x) + 4 * x * 2 / 2, nonconvex.eta),
    ]:
        best = etas[np.argmin(bound(etas))]
        assert eta == pytest.approx(min(best, 0.25), rel=2e-3)


@pytest.mark.parametrize("first", [1e-6, 0.1, 10.0])
@pytest.mark.parametrize("scale", SCALES)
def test_distance_over_gradients(scale, first):
    g = random_reports(scale)
    w, exact, played = np.zeros(4), [], []
    for t, row in enumerate(g, start=1):
        played.append(w)
        furthest = max(first, *(np.linalg.norm(v) for v in played))
        w = w - furthest / math.sqrt((g[:t] ** 2).sum()) * row
        exact.append(w)
    close(play(DistanceOverGradients(first=first), g)[1], exact)


@pytest.mark.parametrize("scale", SCALES)
def test_lazy_descent(scale):
    g = random_reports(scale, rounds=300)
    learner = LazyDescent(radius=3.0, horizon=300, energy=5 * scale**2)
    eta = 3.0 / math.sqrt(5 * scale**2 * 300)
    exact = [into_ball(-eta * g[: t + 1].sum(axis=0), 3.0) for t in range(300)]
    points = play(learner, g)[1]
    close(points, exact)
    assert np.linalg.norm(points, axis=1).max() <= 3.0 * (1 + 1e-15)


# Mirror descent


def gradient(w, p):
    """∇½‖w‖ₚ² by its partial derivatives."""
    size = np.sum(np.abs(w) ** p) ** (1 / p)
    return np.sign(w) * np.abs(w) ** (p - 1) * size ** (2 - p) if size else w


@pytest.mark.parametrize("radius", [0.5, 2.0])
@pytest.mark.parametrize("p", [1.05, 1.2, 1.5, 1.9, 2.0])
def test_mirror_steps_satisfy_their_optimality_conditions(p, radius):
    """wₜ₊₁ minimises η⟨g̃, w⟩ + D(w, wₜ) in the ball: (1 + μ)·∇ψ(wₜ₊₁) = ∇ψ(wₜ) − ηg̃, μ ≥ 0, and 0 inside.

    3000 states.
    """
    inside = 0
    for scale in SCALES:
        g = random_reports(scale)
        learner, q = MirrorDescent(p=p, radius=radius), p / (p - 1)
        state, S = learner.start(4), 0.0
        for row in g:
            S += np.sum((np.abs(row) / scale) ** q) ** (2 / q) * scale**2
            theta = gradient(state.w, p) - radius * math.sqrt((p - 1) / S) * row
            state = learner.step(state, row)
            size = np.sum(np.abs(state.w) ** p) ** (1 / p)
            new = gradient(state.w, p)
            ratio = (theta @ new) / (new @ new)
            np.testing.assert_allclose(theta, ratio * new, rtol=0, atol=1e-9 * np.abs(theta).max())
            assert size <= radius * (1 + 1e-12)
            assert ratio >= 1 - 1e-9
            if size < radius * (1 - 1e-9):
                assert ratio == pytest.approx(1, rel=1e-9)
                inside += 1
        assert math.isclose(state.S, S, rel_tol=1e-10)
    assert inside > 50


@pytest.mark.parametrize("scale", [1e-100, 1e-6, 1e6, 1e100])
@pytest.mark.parametrize("p", [1.01, 1.001])
def test_near_p_1_no_power_overflows(p, scale):
    """‖g̃‖_q with q = 1001: a 1001st power of a report is 0 or ∞, and the learner stood still."""
    g = random_reports(1.0)
    np.testing.assert_allclose(
        play(MirrorDescent(p=p), scale * g)[1], play(MirrorDescent(p=p), g)[1], rtol=1e-9, atol=1e-12
    )
    assert p_norm(scale * np.array([3.0, -4.0, 0.0]), p / (p - 1)) == pytest.approx(4 * scale)
    assert p_norm(np.zeros(3), 101.0) == 0


@pytest.mark.parametrize("p", [1.2, 1.5, 2.0])
def test_mirror_steps_are_what_a_solver_finds(p):
    """Twenty steps against SLSQP, which is good to 1e-5 or so."""
    learner = MirrorDescent(p=p)
    state, S = learner.start(3), 0.0
    for row in random_reports(1.0, rounds=20, d=3):
        S += p_norm(row, p / (p - 1)) ** 2
        eta, old = math.sqrt((p - 1) / S), state.w
        linear = eta * row - gradient(old, p)

        def cost(w):
            return linear @ w + p_norm(w, p) ** 2 / 2  # noqa: B023

        ball = {"type": "ineq", "fun": lambda w: 1 - p_norm(w, p) ** 2}
        state = learner.step(state, row)
        found = minimize(cost, old + 0.01, constraints=[ball], method="SLSQP", options={"ftol": 1e-14})
        assert cost(state.w) <= cost(found.x) + 1e-9
        np.testing.assert_allclose(state.w, found.x, atol=1e-3)


# One point and no gradient


def test_bandit_descent():
    for scale in SCALES:
        learner = BanditDescent(
            radius=3.0, horizon=300, energy=scale**2, delta=0.25, largest=1.0, lipschitz=1.0
        )
        g = random_reports(scale, rounds=300)
        eta = 3.0 / math.sqrt(scale**2 * 300)
        exact = [into_ball(-eta * g[: t + 1].sum(axis=0), 2.75) for t in range(300)]
        close(play(learner, g)[1], exact)


def test_what_bandits_play_stays_in_the_ball():
    learner = BanditDescent.planned(3, radius=0.7, horizon=400, largest=1.0, lipschitz=2.0, noise=9.0)
    assert learner.delta == pytest.approx(math.sqrt(0.7 * 3 / (6 * 20)))
    state, furthest = learner.start(3), 0.0
    for row in 100 * RNG.normal(0.3, 1, (400, 3)):
        for e in (state.w / max(np.linalg.norm(state.w), 1e-9), RNG.normal(size=3)):
            if e.any():
                point = learner.played(state, e / np.linalg.norm(e))
                furthest = max(furthest, np.linalg.norm(point))
        state = learner.step(state, row)
    assert 0.7 * (1 - 1e-12) < furthest <= 0.7 * (1 + 1e-12)


def test_the_planned_delta_is_best():
    plan = {"radius": 2.0, "horizon": 5000, "largest": 3.0, "lipschitz": 0.5}

    def claim(delta):
        return 2.0 * 4 * 3.0 / delta * math.sqrt(5000) + 3 * 5000 * 0.5 * delta

    learner = BanditDescent.planned(4, noise=0.0, **plan)
    deltas = np.linspace(0.01, 1.0, 10_000)
    assert learner.delta == pytest.approx(deltas[np.argmin(claim(deltas))], abs=2e-4)
    assert learner.energy == pytest.approx((4 * 3.0 / learner.delta) ** 2)
    short = BanditDescent.planned(4, noise=7.0, **{**plan, "horizon": 1})
    assert short.delta == 1.0  # never more than half the radius
    assert short.energy == pytest.approx(4 * 4 * 9 + 7)


def test_one_point_gradients_are_those_of_a_smoothed_cost():
    """Averaged over the circle by quadrature, against finite differences of the average over the disc."""
    w, delta = np.array([0.3, -0.2]), 0.4
    nodes, weights = np.polynomial.legendre.leggauss(40)
    r, dr = (nodes + 1) / 2, weights / 2
    angle = 2 * math.pi * np.arange(400) / 400
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def cost(v):
        return np.log1p(np.exp(2 * v[..., 0] - v[..., 1])) + 0.3 * v[..., 1] ** 2

    def smoothed(v):
        return sum(2 * a * da * cost(v + delta * a * circle).mean() for a, da in zip(r, dr, strict=True))

    step = 1e-4 * np.eye(2)
    exact = [(smoothed(w + h) - smoothed(w - h)) / 2e-4 for h in step]
    estimates = [one_point_gradient(float(cost(w + delta * e)), e, delta) for e in circle]
    np.testing.assert_allclose(np.mean(estimates, axis=0), exact, rtol=1e-6)
