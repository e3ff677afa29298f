"""Output, objective and approximate minima perturbation against exact densities and exact gradients.

Fixed seeds and quadrature: no false alarms, but for one Kolmogorov–Smirnov test at a fixed seed.
"""

import math
import warnings
from itertools import product

import mpmath
import numpy as np
import pytest
import scipy.sparse
from scipy import stats
from sklearn.linear_model import LogisticRegression

from untold.convex.losses import (
    Absolute,
    GeometricMedian,
    Hinge,
    Huber,
    HuberisedHinge,
    Logistic,
    Mean,
    Multinomial,
    Quantile,
    Squared,
)
from untold.core import Relation, Unit
from untold.erm import solver
from untold.erm.approximate import FAR, SHARE, approximate_minima
from untold.erm.base import Asked, Curated, curated
from untold.erm.objective import Tilt, objective_perturbation, tilted
from untold.erm.output import output_perturbation
from untold.erm.release import noisy
from untold.erm.solver import Problem, descended, minimise, tolerance
from untold.errors import AssumptionError, DataError, ParameterError
from untold.private import noise
from untold.private.gaussian_profile import log_delta
from untold.private.guarantees import GDP, Approximate, Pure, from_json

ADD, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE
LOSSES = [Logistic(), HuberisedHinge(), HuberisedHinge(width=0.05), Huber(delta=0.5)]
METHODS = [output_perturbation, objective_perturbation, approximate_minima]


def asked(epsilon=1.0, delta=0.0, ridge=1.0, relation=REPLACE, seed=None):
    return Asked.checked("test", epsilon, delta, relation, seed, ridge=ridge, pure=True)


def hidden(n=200, d=3, seed=0, kind="random"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + (0 if kind == "separable" else 1) * rng.normal(size=n) > 0, 1.0, -1.0)
    if kind == "duplicated":
        X[:] = X[0]
    return X * (1e-9 if kind == "tiny" else 1.0), y


# The exact law of the minimiser


def second(loss, z, y):
    """φ″, written again by hand."""
    if isinstance(loss, Logistic):
        return 0.25 / np.cosh(np.clip(z / 2, -300, 300)) ** 2
    if isinstance(loss, HuberisedHinge):
        return np.where(np.abs(1 - y * z) < loss.width, loss.curvature, 0.0)
    return np.where(np.abs(z - y) < loss.delta, 1.0, 0.0)


def log_density(rows, w, loss, ridge, law):
    """ln f(w) = ln ν(−∇G(w)) + ln det ∇²G(w) at each of the points w; `ridge` may differ by coordinate."""
    ridges = np.broadcast_to(np.asarray(ridge, dtype=float), w.shape[1:])
    b = -ridges * w
    hessian = np.tile(np.diag(ridges), (len(w), 1, 1))
    for x, y in rows:
        z = w @ x
        b = b - loss.slope(z, np.full(z.shape, y))[:, None] * x
        hessian = hessian + second(loss, z, y)[:, None, None] * np.outer(x, x)
    return law(np.linalg.norm(b, axis=1), w.shape[1]) + np.linalg.slogdet(hessian)[1]


def laplace_law(scale):
    return lambda r, d: -r / scale


def gaussian_law(scale):
    return lambda r, d: -0.5 * (r / scale) ** 2 - d * (math.log(scale) + 0.5 * math.log(2 * math.pi))


def labels(loss):
    return (1.0, -1.0) if loss.labels == "signs" else (1e3, -1e3, 0.0, 1.0)


def extremes(loss, R, d, intercept=False):
    """Rows of the largest norm in several directions, and the row that counts as nothing."""
    if d == 1:
        points = [np.array([R]), np.array([-R]), np.array([0.3 * R])]
    elif intercept:
        points = [np.array([x, 1.0]) * R / math.hypot(x, 1) for x in (-2.0, 0.0, 1.0)]
    else:
        angles = (0.0, 0.4, math.pi - 0.05, math.pi)
        points = [np.array([math.cos(a), math.sin(a)]) * R for a in angles]
    return [(p, y) for p in points for y in labels(loss)] + [(np.zeros(d), 1.0)]


def mesh(d, widest, count):
    """Points of a grid that is fine near 0 and goes far, and the volume of each."""
    t = np.linspace(-1, 1, count)
    axis, step = widest * t**3, widest * 3 * t**2 * (t[1] - t[0])
    points = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    volumes = np.stack(np.meshgrid(*[step] * d, indexing="ij"), axis=-1).reshape(-1, d).prod(axis=1)
    return points, volumes


def neighbours(densities, relation):
    """Ordered pairs of log densities: any two extremes, or any and the one without the row."""
    pairs = product(range(len(densities)), repeat=2)
    keep = [(i, j) for i, j in pairs if relation is REPLACE or len(densities) - 1 in (i, j)]
    return [(densities[i], densities[j]) for i, j in keep]


def largest_ratio(loss, R, d, relation, ridge, scale, base=(), intercept=False):
    points, _ = mesh(d, 40 * max(scale, loss.lipschitz(R)) / np.min(ridge), 801 if d == 1 else 61)
    law = laplace_law(scale)
    extreme = extremes(loss, R, d, intercept)
    found = [log_density([*base, row], points, loss, ridge, law) for row in extreme]
    return max(float((p - q).max()) for p, q in neighbours(found, relation))


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("R", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_pure_objective_perturbation_has_the_density_it_claims(loss, R, relation):
    for d, share, intercept in [(1, 0.3, False), (1, 5.0, False), (2, 1.0, False), (2, 1.0, True)]:
        for epsilon in (0.2, 2.0):
            ridge = share * loss.smoothness(R)
            tilt = tilted(loss, R, epsilon, 0.0, asked(ridge=ridge, relation=relation))
            base = [(np.full(d, R / math.sqrt(d)), labels(loss)[0])] * (2 if intercept else 0)
            ratio = largest_ratio(loss, R, d, relation, tilt.ridge, tilt.scale, base, intercept)
            assert ratio <= epsilon * (1 + 1e-9)


def test_the_pure_bound_is_nearly_attained():
    for relation in (ADD, REPLACE):  # Huber's slopes reach their bound, its curvature 1 at another point
        loss, R = Huber(delta=0.5), 10.0
        tilt = tilted(loss, R, 1.0, 0.0, asked(ridge=1e4, relation=relation))
        assert largest_ratio(loss, R, 1, relation, tilt.ridge, tilt.scale) > 0.98
        less = Tilt(0.97 * tilt.scale, tilt.ridge, gaussian=False)
        assert largest_ratio(loss, R, 1, relation, less.ridge, less.scale) > 1.0
    tilt = tilted(Logistic(), 10.0, 1.0, 0.0, asked(ridge=1e-6, relation=ADD))  # all of κ = ε/2 is used
    assert largest_ratio(Logistic(), 10.0, 1, ADD, tilt.ridge, tilt.scale) > 0.55


def test_the_formulas_of_diffprivlib_fail():
    loss, epsilon, R, ridge = Logistic(), 1.0, 10.0, 8.0
    spent = 2 * math.log(1 + 0.25 * R / ridge)  # R, where it must be R²
    assert largest_ratio(loss, R, 1, REPLACE, ridge, 2 * R / (epsilon - spent)) > 1.2 * epsilon
    spent = math.log(1 + 0.25 * R * R / ridge)
    assert spent > epsilon / 2  # so the ridge is raised:
    tilt = tilted(loss, R, epsilon, 0.0, asked(ridge=ridge))
    assert tilt.ridge > ridge
    # An intercept that is not regularised: with ε and λ as they should be, and R = 1
    R, ridge = 1.0, 1.0
    tilt = tilted(loss, R, epsilon, 0.0, asked(ridge=ridge))
    base = [(np.array([x, 1.0]) / math.sqrt(2), y) for x in (-1.0, 1.0) for y in (1.0, -1.0)]
    points = np.stack(np.meshgrid(np.linspace(-3, 3, 31), np.linspace(-40, 40, 81)), axis=-1).reshape(-1, 2)
    for free, allowed in [(0.0, False), (tilt.ridge, True)]:
        ridges, law = np.array([tilt.ridge, free]), laplace_law(tilt.scale)
        rows = extremes(loss, R, 2, intercept=True)
        found = [log_density([*base, row], points, loss, ridges, law) for row in rows]
        ratio = max(float((p - q).max()) for p, q in neighbours(found, REPLACE))
        assert ratio <= epsilon if allowed else ratio > 1.5 * epsilon


def hockey_stick(loss, R, d, relation, tilt, epsilon, intercept=False):
    reach = (8 * tilt.scale + 3 * loss.lipschitz(R)) / tilt.ridge
    points, volumes = mesh(d, reach, 2001 if d == 1 else 81)
    rows, law = extremes(loss, R, d, intercept), gaussian_law(tilt.scale)
    found = [np.exp(log_density([row], points, loss, tilt.ridge, law)) for row in rows]
    for density in found:
        assert density @ volumes == pytest.approx(1.0, abs=0.04)
    pairs = neighbours(found, relation)
    return max(float(np.maximum(p - math.exp(epsilon) * q, 0.0) @ volumes) for p, q in pairs)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("R", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_gaussian_objective_perturbation_has_the_profile_it_claims(loss, R, relation):
    for epsilon, delta in [(0.5, 0.05), (2.0, 1e-3)]:
        for d, share, intercept in [(1, 0.3, False), (1, 20.0, False), (2, 2.0, R < 1)]:
            ridge = share * loss.smoothness(R)
            tilt = tilted(loss, R, epsilon, delta, asked(delta=delta, ridge=ridge, relation=relation))
            assert tilt.gaussian
            assert hockey_stick(loss, R, d, relation, tilt, epsilon, intercept) <= delta


def test_the_gaussian_bound_is_within_a_factor_of_its_cause():
    loss, R, epsilon, delta = Huber(delta=0.5), 1.0, 1.0, 1e-2
    for relation in (ADD, REPLACE):
        tilt = tilted(loss, R, epsilon, delta, asked(delta=delta, ridge=1e3, relation=relation))
        assert 0.45 * delta < hockey_stick(loss, R, 1, relation, tilt, epsilon) <= delta
        less = Tilt(0.8 * tilt.scale, tilt.ridge, gaussian=True)
        assert hockey_stick(loss, R, 1, relation, less, epsilon) > delta


def test_two_rows_are_never_worse_than_one_and_its_opposite():
    """Σ over the four corners: d(t) + d(T − t) ≤ d(T), T = μ², wherever `tilted` lets μ be."""
    for epsilon, delta in product((1e-3, 0.1, 1.0, 5.0, 50.0), (1e-12, 1e-6, 1e-3, 0.3, 0.9)):
        tilt = tilted(Logistic(), 1.0, epsilon, delta, asked(delta=delta, ridge=1e9))
        mu, left = 2.0 / tilt.scale, epsilon - math.log1p(0.25 / 1e9)
        assert left / mu - mu / 2 >= 0.7 - 1e-9

        def at(t, left=left, mu=mu):
            return math.exp(log_delta(left, mu * math.sqrt(t)))

        whole = at(1.0)
        assert 2 * whole <= delta
        assert all(at(t) + at(1 - t) <= whole * (1 + 1e-9) for t in np.linspace(0.001, 0.5, 60))
    mills = mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(0.7 / mpmath.sqrt(2)) * mpmath.exp(0.7**2 / 2)
    assert 0.7 * mills >= 0.5
    add = tilted(Logistic(), 1.0, 1e-3, 0.3, asked(delta=0.3, ridge=1e9, relation=ADD))
    assert add.scale < tilted(Logistic(), 1.0, 1e-3, 0.3, asked(delta=0.3, ridge=1e9)).scale / 2


def test_what_is_released_has_that_density():
    X, y = hidden(40, 1)
    data = curated(X, y)
    rows = list(zip(*data.rows(), strict=True))
    for delta, law in [(0.0, laplace_law), (1e-3, gaussian_law)]:
        fits = [
            objective_perturbation(data, Logistic(), epsilon=1.0, delta=delta, regularisation=4.0, seed=s)
            for s in range(400)
        ]
        scale, ridge = fits[0].report["noise scale"], fits[0].report["regularisation"]
        points = np.linspace(-20, 20, 20_001)[:, None] * scale / ridge
        density = np.exp(log_density(rows, points, Logistic(), ridge, law(scale)))
        cumulated, where = np.cumsum(density) / density.sum(), points[:, 0]
        sample = [fit.weights[0] for fit in fits]
        assert stats.kstest(sample, lambda t, x=where, p=cumulated: np.interp(t, x, p)).pvalue > 0.01


@pytest.mark.parametrize("ridge", [9.0, 0.5])  # the second is raised
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_tilt_is_the_noise_of_the_noise_module(delta, ridge):
    X, y = hidden()
    data = curated(X, y, 3.0)
    fit = objective_perturbation(data, Logistic(), epsilon=1.0, delta=delta, regularisation=ridge, seed=5)
    tilt = tilted(Logistic(), 3.0, 1.0, delta, asked(ridge=ridge))
    assert (tilt.ridge > ridge) is (ridge < 1)
    steps, source = tilt.scale / tilt.grid, noise.seeded(5)
    b = noise.gaussian(3, steps, source) if delta else noise.norm_laplace(1, 3, steps, source)[0]
    rows, signs = data.rows()
    gradient = Logistic().subgradient(fit.weights, rows, signs).sum(0) + tilt.ridge * fit.weights
    assert np.linalg.norm(gradient + b * tilt.grid) < 1e-5
    assert 2**36 <= steps < 2**37 < noise.MAX_SCALE


def test_a_tilt_is_far_as_seldom_as_promised():
    for d in (1, 2, 30, 1000):
        assert stats.chi.logsf(Tilt(1.0, 1.0, gaussian=True).most(d), d) < -128 * math.log(2)
        assert stats.gamma.logsf(Tilt(1.0, 1.0, gaussian=False).most(d), d) < -128 * math.log(2)


# The minimiser: sensitivity, and a gradient that is surely small


def minimum(rows, loss, R, ridge):
    X, y = np.array([x for x, _ in rows]), np.array([y for _, y in rows])
    data = curated(X, y, R * (1 + 1e-6))
    return minimise(Problem.of(data, loss, ridge), tolerance(data, loss, ridge, REPLACE))


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_output_perturbation_hides_every_move_of_the_minimiser(loss, relation):
    widest = 0.0
    for R, d, share in product((0.1, 1.0, 10.0), (1, 2), (0.01, 1.0, 100.0)):
        ridge = share * loss.smoothness(R)
        data = curated(np.zeros((3, d)), np.zeros(3), R)
        fit = output_perturbation(data, loss, epsilon=1.0, regularisation=ridge, relation=relation)
        reach = fit.report["sensitivity"]
        L = loss.lipschitz(R)
        gamma = tolerance(data, loss, ridge, relation)
        factor = 2 if relation is REPLACE else 1
        assert reach == pytest.approx((factor * L + 2 * gamma) / ridge, rel=1e-9)
        assert reach >= (factor * L + 2 * gamma) / ridge
        rows = extremes(loss, R, d)
        base = [rows[0], rows[-2]]
        found = [minimum([*base, row], loss, R, ridge) for row in rows]
        moves = [np.linalg.norm(a - b) for a, b in neighbours(found, relation)]
        assert max(moves) <= reach
        widest = max(widest, max(moves) / reach)
    assert widest > (0.9 if isinstance(loss, Huber) else 0.2)


@pytest.mark.parametrize(("d", "delta"), [(1, 0.0), (4, 0.0), (1, 1e-6), (4, 1e-6)])
def test_output_noise_is_exact_integers_on_the_grid(d, delta):
    data = curated(*hidden(100, d), 2.0)
    settings = {"epsilon": 0.7, "delta": delta, "regularisation": 3.0}
    fit = output_perturbation(data, Logistic(), **settings, seed=3)
    clean = output_perturbation(data, Logistic(), epsilon=math.inf, regularisation=3.0).weights
    grid, reach, scale = (fit.report[key] for key in ("grid", "sensitivity", "noise scale"))
    assert math.frexp(grid)[0] == 0.5
    steps, source = scale / grid, noise.seeded(3)
    z = noise.gaussian(d, steps, source) if delta else noise.norm_laplace(1, d, steps, source)[0]
    q = fit.weights / grid - z
    assert (q == np.rint(q)).all()
    assert np.abs(q * grid - clean).max() <= grid * 0.501
    hidden_move = reach / grid + math.sqrt(d)  # of the quantised minimiser, in steps
    if delta:
        assert fit.guarantee.mu >= hidden_move / steps
        assert 0.69 < fit.guarantee._but(seeded=False).epsilon(delta) <= 0.7
    else:
        assert hidden_move / steps <= 0.7
        assert hidden_move / steps > 0.69


def test_quantising_is_paid_for():
    for w in (np.array([0.4, -0.5, 1e30, -1e30, 7.3]), np.zeros(5)):
        out = noisy(w, 1.0, 1.0, 0.0, asked(seed=1))
        assert np.isfinite(out.weights).all()
        assert out.scale >= 1.0 + math.sqrt(5) * out.grid


EXACT = {
    Logistic: lambda loss, z, y: -y / (1 + mpmath.exp(y * z)),
    HuberisedHinge: lambda loss, z, y: (
        -y * min(mpmath.mpf(1), max(mpmath.mpf(0), (1 + mpmath.mpf(loss.width) - y * z) / (2 * loss.width)))
    ),
    Huber: lambda loss, z, y: min(mpmath.mpf(loss.delta), max(-mpmath.mpf(loss.delta), z - y)),
}


def exact_gradient(problem, w):
    weights, slope = [mpmath.mpf(float(v)) for v in w], EXACT[type(problem.loss)]
    total = [problem.ridge * v + mpmath.mpf(float(b)) for v, b in zip(weights, problem.b, strict=True)]
    for x, y in zip(problem.X[: problem.count], problem.y, strict=False):
        row = [mpmath.mpf(float(v)) for v in x]
        s = slope(problem.loss, mpmath.fdot(row, weights), mpmath.mpf(float(y)))
        total = [t + s * v for t, v in zip(total, row, strict=True)]
    return total


@pytest.mark.parametrize("kind", ["random", "separable", "duplicated", "tiny"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_exact_gradient_is_as_small_as_promised(loss, kind):
    X, y = hidden(100, 3, kind=kind)
    y = y * 10.0 ** np.arange(100) if isinstance(loss, Huber) else y
    with mpmath.workdps(400 if isinstance(loss, Huber) else 60):
        for R, share, size in [(1.0, 1e-6, 0.0), (10.0, 1e-3, 50.0), (0.1, 1.0, 1e3)]:
            data, ridge = curated(X, y, R), share * 100
            b = size * np.array([0.6, 0.0, -0.8])
            problem = Problem.of(data, loss, ridge, b)
            gamma = tolerance(data, loss, ridge, REPLACE, size)
            w = minimise(problem, gamma)
            assert mpmath.norm(exact_gradient(problem, w)) <= gamma
            w = w + np.array([1.0, -2.0, 0.1]) * np.linalg.norm(w)
            exact, computed = exact_gradient(problem, w), problem.gradient(w, problem.margins(w))
            off = mpmath.norm([a - float(c) for a, c in zip(exact, computed, strict=True)])
            assert off <= problem.allowance(w)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_slopes_are_as_accurate_as_the_allowance_takes_them_to_be(loss):
    rng = np.random.default_rng(2)
    z = np.concatenate(
        [rng.normal(size=300) * 10.0 ** rng.integers(-8, 4, 300), 1 + rng.normal(size=100) / 9]
    )
    y = rng.choice([-1.0, 1.0], z.size)
    with mpmath.workdps(40):
        exact = [
            EXACT[type(loss)](loss, mpmath.mpf(float(a)), mpmath.mpf(float(c)))
            for a, c in zip(z, y, strict=True)
        ]
        errors = [abs(e - float(s)) for e, s in zip(exact, loss.slope(z, y), strict=True)]
    assert max(errors) <= 16 * 2.0**-53 * loss.steepest


def test_margins_keep_what_a_plain_product_loses():
    rng = np.random.default_rng(0)
    X = np.tile([[0.5, -0.5]], (64, 1)) + rng.integers(-5, 5, (64, 2)) * 2.0**-20
    problem = Problem.of(curated(X, np.ones(64)), Logistic(), 1.0)
    w = np.array([1e9 / 3, 1e9 / 3 + 1e-6])
    with mpmath.workdps(60):
        exact = [
            mpmath.fdot([mpmath.mpf(float(v)) for v in x], [mpmath.mpf(float(v)) for v in w])
            for x in problem.X
        ]
        off = max(abs(e - float(z)) for e, z in zip(exact, problem.margins(w), strict=True))
    assert off <= 2.0**-53 * max(abs(float(e)) for e in exact) + 2.0**-80 * 1e9


def test_where_newton_fails_gradient_steps_surely_arrive(monkeypatch):
    X, y = hidden(64, 2)
    data, ridge = curated(X, y), 1.0
    gamma = tolerance(data, Logistic(), ridge, REPLACE)
    problem = Problem.of(data, Logistic(), ridge)
    wanted = minimise(problem, gamma)
    for broken in (lambda self, z, g: g, lambda self, z, g: np.full(2, np.nan)):
        with monkeypatch.context() as patch:
            patch.setattr(Problem, "newton", broken)
            patch.setattr(solver, "NEWTON_STEPS", 5)
            assert np.linalg.norm(minimise(problem, gamma) - wanted) <= 2 * gamma / ridge
    assert np.linalg.norm(descended(problem, gamma) - wanted) <= 2 * gamma / ridge


def test_a_useless_hessian_gives_the_gradient_and_a_warning_is_not_heard(monkeypatch):
    class Warns(Logistic):
        def slope(self, z, y):
            np.log(np.zeros(1))
            return super().slope(z, y)

    def singular(hessian, g):
        raise np.linalg.LinAlgError

    problem, g = Problem.of(curated(*hidden(64, 2)), Warns(), 1.0), np.array([3.0, 4.0])
    assert np.isfinite(minimise(problem, 1e-5)).all()
    problem = Problem.of(curated(*hidden(64, 2)), Logistic(), 1.0)
    for solve in (singular, lambda hessian, g: -g, lambda hessian, g: g * np.nan):
        monkeypatch.setattr(np.linalg, "solve", solve)
        assert (problem.newton(np.zeros(64), g) == -g).all()


@pytest.mark.parametrize("share", [1e-6, 1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("kind", ["random", "separable", "duplicated", "tiny"])
def test_newton_arrives_without_help(monkeypatch, kind, share):
    monkeypatch.setattr(solver, "descended", None)
    X, y = hidden(1000, 10, kind=kind)
    for loss, R in product(LOSSES, (0.1, 1.0, 10.0)):
        data = curated(X, y, R)
        minimise(Problem.of(data, loss, share * 1000), tolerance(data, loss, share * 1000, REPLACE))


def test_the_tolerance_is_public():
    few, many = (Curated(lambda: iter(()), n, 2) for n in (3, 10**6))
    for loss in LOSSES:
        assert tolerance(few, loss, 0.1, ADD) == tolerance(many, loss, 0.1, ADD)
        assert tolerance(few, loss, 0.1, ADD) > 2 * tolerance(many, loss, 0.1, REPLACE)
        assert tolerance(few, loss, 0.1, REPLACE) < 1e-6 * loss.lipschitz(1.0)
    too_many = Curated(lambda: iter(()), 2**24 + 1, 1)
    with pytest.raises(DataError, match="at most"):
        output_perturbation(too_many, Logistic(), epsilon=1.0, regularisation=1.0)
    with pytest.raises(ParameterError, match="regularisation"):
        output_perturbation(few, Logistic(), epsilon=1.0, regularisation=1e-300)


# Approximate minima


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3)])
def test_the_parts_of_approximate_minima_add_up(epsilon, delta, relation):
    loss, R, d = Logistic(), 3.0, 5
    data = curated(*hidden(300, d), R)
    settings = {"epsilon": epsilon, "delta": delta, "regularisation": 20.0, "relation": relation}
    fit = approximate_minima(data, loss, **settings)
    ridge, scale, sigma, gamma, reach, grid = (
        fit.report[key]
        for key in (
            "regularisation",
            "noise scale",
            "noise scale of the output",
            "tolerance",
            "sensitivity",
            "grid",
        )
    )
    kappa = math.log1p(0.25 * R * R / ridge)
    mu = (2 if relation is REPLACE else 1) * R / scale
    tilt = Tilt(scale, ridge, gaussian=True)
    first = 2 * math.exp(log_delta((1 - SHARE) * epsilon - kappa, mu))
    assert reach >= 2 * (gamma + math.sqrt(d) * tilt.grid / 2) / ridge
    second_mu = (reach + math.sqrt(d) * grid) / sigma
    last = math.exp(log_delta(SHARE * epsilon, second_mu))
    assert 0.9 * delta < first + last + FAR <= delta
    assert gamma >= tolerance(data, loss, ridge, relation, tilt.most(d) + 2 * R * (relation is REPLACE))
    assert sigma < 0.02 * scale / ridge  # what inexactness costs
    assert fit.guarantee == Approximate(
        epsilon, delta, relation=relation, unit=Unit.ROW, released="weights",
        citation=fit.guarantee.citation,
    )  # fmt: skip


def test_approximate_minima_releases_the_minimiser_with_its_own_noise():
    data = curated(*hidden(300, 4))
    fit = approximate_minima(data, Logistic(), epsilon=1.0, delta=1e-6, regularisation=0.1, seed=9)
    source = noise.seeded(9)
    ridge, scale, grid = (fit.report[key] for key in ("regularisation", "noise scale", "grid"))
    tilt = Tilt(scale, ridge, gaussian=True)
    b = tilt.draw(4, source)
    z = noise.gaussian(4, fit.report["noise scale of the output"] / grid, source)
    clean = fit.weights - z * grid
    problem = Problem.of(data, Logistic(), ridge, b)
    assert np.linalg.norm(problem.gradient(clean, problem.margins(clean))) < 1e-4
    assert np.abs(clean / grid - np.rint(clean / grid)).max() == 0


# What all of them promise


@pytest.mark.parametrize("method", METHODS)
def test_without_privacy_it_is_the_estimator_of_scikit_learn(method):
    X, y = hidden(400, 5)
    for ridge, R in [(1.0, 10.0), (50.0, 1.0)]:
        wide = np.hstack([X, np.ones((400, 1))])
        data = curated(wide, y, R)
        rows, _ = data.rows()
        theirs = LogisticRegression(C=1 / ridge, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(rows, y)
        fit = method(data, Logistic(), epsilon=math.inf, regularisation=ridge)
        assert np.abs(fit.weights - theirs.coef_[0]).max() < 1e-6
        assert fit.guarantee.epsilon(0.0) == math.inf
        sparse = method(
            curated(scipy.sparse.csr_array(wide), y, R), Logistic(), epsilon=math.inf, regularisation=ridge
        )
        assert (sparse.weights == fit.weights).all()
        nearly = method(data, Logistic(), epsilon=1e6, delta=1e-3, regularisation=ridge)
        assert np.abs(nearly.weights - fit.weights).max() < 0.1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_guarantees_and_seeds(method, delta):
    if method is approximate_minima and delta == 0:
        delta = 1e-5
    data = curated(*hidden())
    settings = {"epsilon": 1.0, "delta": delta, "regularisation": 2.0}
    for relation in (ADD, REPLACE):
        fit = method(data, Logistic(), **settings, relation=relation)
        claim = fit.guarantee
        assert (claim.relation, claim.unit, claim.released, claim.seeded) == (
            relation,
            Unit.ROW,
            "weights",
            False,
        )
        assert 0.99 < claim.epsilon(delta) <= 1.0
        assert claim.citation
        assert from_json(claim.to_json()) == claim
        assert bool(claim.assumptions) is (method is objective_perturbation)
    kind = {
        output_perturbation: GDP if delta else Pure,
        objective_perturbation: Approximate if delta else Pure,
    }
    assert type(claim) is kind.get(method, Approximate)
    one, two, other = (method(data, Logistic(), **settings, seed=s) for s in (7, 7, 8))
    assert (one.weights == two.weights).all()
    assert (one.weights != other.weights).all()
    assert one.guarantee.seeded
    assert one.guarantee.epsilon(0.5) == math.inf
    fresh = [method(data, Logistic(), **settings).weights for _ in range(2)]
    assert (fresh[0] != fresh[1]).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", [Logistic(), Huber()], ids=str)
def test_no_row_changes_shape_keys_or_report_or_warns(method, loss):
    X, y = hidden(100, 3)
    hostile = [
        ([np.nan] * 3, 1.0), ([np.inf, -np.inf, 0], -1.0), ([1e308] * 3, 1.0), ([1e-320] * 3, 1.0),
        ([0, 0, 0], 1.0), (X[1], y[1]), (X[0], np.nan), (X[0], np.inf), (X[0], 0.5),
        (X[0], 1e308), (X[0], -1e308),
    ]  # fmt: skip
    for relation in (ADD, REPLACE):
        reports = []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for row, label in hostile:
                A, c = X.copy(), y.copy()
                A[0], c[0] = row, label
                settings = {"epsilon": 1.0, "delta": 1e-6, "regularisation": 1.0, "relation": relation}
                fit = method(curated(A, c), loss, **settings, seed=1)
                assert fit.weights.shape == (3,)
                assert np.isfinite(fit.weights).all()
                reports.append((fit.report, fit.guarantee))
            if relation is ADD:
                for rows in (slice(1, None), slice(0, 0)):
                    fit = method(curated(X[rows], y[rows]), loss, **settings, seed=1)
                    reports.append((fit.report, fit.guarantee))
        assert all(report == reports[0] for report in reports)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(0, 1), (0, 3), (65, 1)])
def test_any_shape(method, shape):
    for R, ridge in [(1.0, 1.0), (1e-100, 1e-200), (1e100, 1e200), (1e9, 1e-3)]:
        data = curated(np.ones(shape), np.ones(shape[0]), R)
        fit = method(data, Logistic(), epsilon=1.0, delta=1e-6, regularisation=ridge)
        assert fit.weights.shape == shape[1:]
        assert np.isfinite(fit.weights).all()


def test_a_label_the_loss_does_not_know_counts_as_nothing():
    X, y = hidden(50, 2)
    asked_for = {"epsilon": math.inf, "regularisation": 1.0}
    strange = output_perturbation(curated(X, np.r_[y[:-1], 0.5]), Logistic(), **asked_for).weights
    without = output_perturbation(curated(X[:-1], y[:-1]), Logistic(), **asked_for).weights
    assert np.abs(strange - without).max() < 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_losses_without_a_theorem_are_refused(method):
    data = curated(*hidden(10, 2))
    for loss, word in [
        (Squared(), "Lipschitz"), (Hinge(), "smooth"), (Absolute(), "smooth"), (Quantile(), "smooth"),
        (GeometricMedian(), "linear"), (Mean(), "linear"), (Multinomial(classes=3), "linear"),
    ]:  # fmt: skip
        with pytest.raises(AssumptionError, match=word):
            method(data, loss, epsilon=1.0, delta=1e-6, regularisation=1.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0}, {"epsilon": -1}, {"epsilon": math.nan}, {"epsilon": "1"}, {"delta": 1.0},
        {"delta": -0.1}, {"regularisation": 0}, {"regularisation": math.inf}, {"relation": "zero-out"},
        {"seed": -1}, {"seed": 0.5},
    ],
    ids=str,
)  # fmt: skip
def test_bad_settings(method, wrong):
    settings = {"epsilon": 1.0, "delta": 1e-6, "regularisation": 1.0} | wrong
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        method(curated(*hidden(10, 2)), Logistic(), **settings)


def test_more_bad_settings():
    data = curated(*hidden(10, 2))
    with pytest.raises(ParameterError, match="delta"):
        approximate_minima(data, Logistic(), epsilon=1.0, delta=0.0, regularisation=1.0)
    with pytest.raises(ParameterError, match="epsilon"):
        output_perturbation(data, Logistic(), epsilon=1e-9, regularisation=1.0)
    assert tilted(Logistic(), 1.0, 1e5, 0.0, asked()).scale > 0
