"""Each bettor against its paper's formulas, written naively: mpmath where they cancel. No false alarms."""

import math
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad

from untold.learners.average import LAST, LINEAR, UNIFORM, Average
from untold.learners.banco import Banco
from untold.learners.coordinatewise import Coordinatewise
from untold.learners.potential import AdaptivePotential
from untold.learners.priors import ChernovVovk, Conjugate, Improper, Uniform
from untold.learners.reduction import Reduction
from untold.private.randomizers.normlaplace import NormLaplace

PRIORS = {  # name → (prior, density at v > 0 given C)
    "conjugate": (
        Conjugate(b=2.0),
        lambda v, C: math.exp(-2 * v * v) / (math.sqrt(math.pi / 2) * math.erf(C * math.sqrt(2))),
    ),
    "uniform": (Uniform(), lambda v, C: 0.5 / C),
    "chernov-vovk": (ChernovVovk(), lambda v, C: math.log(1 / C) / (2 * v * math.log(v) ** 2)),
    "improper": (Improper(), lambda v, C: 1 / v),
}
every_prior = pytest.mark.parametrize("name", sorted(PRIORS))


def close(one, other, tolerance):
    """Equal up to that share of the longest row."""
    one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max(axis=-1).min())


def naive_norm(v, p):
    return mp.fsum(abs(e) ** p for e in v) ** (mp.mpf(1) / p)


def naive_link(v, p):
    """∇½‖v‖ₚ², as a sum of partial derivatives."""
    size = naive_norm(v, p)
    return [mp.sign(e) * abs(e) ** (p - 1) * size ** (2 - p) if size else mp.mpf(0) for e in v]


def naive_direction(q, g, S, p):
    """One step of scale-free mirror descent in the unit ball, with 1/p + 1/dual = 1."""
    p, dual = mp.mpf(p), mp.mpf(p) / (mp.mpf(p) - 1)
    eta = mp.sqrt(p - 1) / mp.sqrt(S)
    theta = [a - eta * b for a, b in zip(naive_link(q, p), g, strict=True)]
    half = naive_link(theta, dual)
    size = naive_norm(half, p)
    return [e / max(size, 1) for e in half]


def printed(x, y, a):
    """The poster's closed form of (1/2a)·∫ β e^{βx − β²y} dβ."""
    root = 2 * mp.sqrt(y)
    erfs = mp.erf((2 * a * y + x) / root) + mp.erf((2 * a * y - x) / root)
    first = mp.sqrt(mp.pi) * x * mp.exp(((2 * a * y + x) / root) ** 2) * erfs
    return mp.exp(-a * (a * y + x)) * (first + root * (1 - mp.exp(2 * a * x))) / (8 * a * y ** mp.mpf(1.5))


def naive_banco(reports, variance, b, G, p):
    """Algorithm 1 with its signs restored, at 60 digits."""
    with mp.workdps(60):
        a = min(mp.mpf("0.6838") / G, 1 / mp.mpf(b) if b else mp.inf)
        q, x, S, w, dual = (
            [mp.mpf(0)] * reports.shape[1],
            mp.mpf(0),
            mp.mpf(0),
            [],
            mp.mpf(p) / (mp.mpf(p) - 1),
        )
        for t, row in enumerate(reports, start=1):
            g = [mp.mpf(float(e)) for e in row]
            x -= mp.fdot(g, q)
            S += naive_norm(g, dual) ** 2
            q = naive_direction(q, g, S, p)
            m = printed(x, t * (mp.mpf(variance) / 2 + mp.mpf(G) ** 2), a)
            w.append([m * e for e in q])
        return np.array(w, dtype=float)


@pytest.mark.parametrize("constants", ["tight", "paper"])
@pytest.mark.parametrize("p", [2.0, 1.5])
def test_banco(p, constants):
    """24 runs of 45 rounds with d = 3, bounds from 1e-3 to 1e3 and drifts of every size: 1080 states."""
    rng = np.random.default_rng(40)
    for _ in range(6):
        G, epsilon = 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-0.5, 1.5)
        learner = Banco.told(NormLaplace(epsilon, bound=G), 3, constants=constants, p=p)
        factor = 18 * 9 if constants == "paper" else 16 * math.log(4 / 3) * 4
        assert learner.variance == pytest.approx(factor * (G / epsilon) ** 2, rel=1e-5)  # the grid rounds G
        g = G * (rng.normal(0, 1, (45, 3)) / epsilon + 10.0 ** rng.uniform(-1, 0.5) * rng.normal(size=3))
        state, points = learner.start(3), []
        for row in g:
            state = learner.step(state, row)
            points.append(learner.point(state))
        exact = naive_banco(g, learner.variance, learner.tail, G, p)
        assert np.abs(exact).max() > 0
        close(points, exact, 1e-9)


def states(rng, n, C):
    """(L, V) with every size of peak, and no integral beyond e^300."""
    found = []
    while len(found) < n:
        V = 10.0 ** rng.uniform(-4, 8) / C**2 * (rng.random() < 0.95)
        L = 10.0 ** rng.uniform(-6, 3) / C if rng.random() < 0.5 else 2 * math.sqrt(V) * rng.uniform(0.01, 5)
        if L > 0 and min(C * L, L * L / (4 * V) if V else math.inf) < 300:
            found.append((L, V))
    return found


def integrate(f, L, V, C):
    """∫ f(v) dv over (0, C], in s = ln v, where every prior is smooth; zero below C·e⁻⁴⁵ to 1e-19."""
    peak = min(C, L / (2 * V)) if V else C
    width = 1 / max(math.sqrt(2 * V), L - 2 * V * peak, 1 / C)
    marks = [peak + k * width for k in (-30, -10, -3, -1, 0, 1, 3, 10, 30)] + [width / 8, C / 2]
    cuts = sorted({math.log(C) - 45, math.log(C), *(math.log(v) for v in marks if C * 1e-18 < v < C)})
    return math.fsum(
        quad(lambda s: f(math.exp(s)) * math.exp(s), low, high, epsabs=0, epsrel=1e-11, limit=200)[0]
        for low, high in pairwise(cuts)
    )


def reference(name, L, V, C):
    """E[v e^{vL − v²V}] and F = E[e^{vL − v²V} − 1], by adaptive quadrature; and F's positive part."""
    density = PRIORS[name][1]

    def bet(v):
        return v * density(v, C) * math.exp(v * L - v * v * V) * -math.expm1(-2 * v * L)

    def up(v):
        return density(v, C) * math.exp(v * L - v * v * V) * math.expm1(-v * L) ** 2

    def down(v):
        return density(v, C) * 2 * -math.expm1(-v * v * V)

    return integrate(bet, L, V, C), integrate(up, L, V, C), integrate(down, L, V, C) if V else 0.0


@every_prior
def test_potential_and_its_derivative(name):
    """300 states of every prior; F = up − down cancels, so its error is measured in up + down and 1."""
    rng, (prior, _) = np.random.default_rng(41), PRIORS[name]
    for C in (0.2, 0.003, 0.9) if name == "chernov-vovk" else (0.2, 2e-7, 2e5):
        if name == "conjugate" and C > 1:
            continue  # its density is e^{−2·10¹⁰·…} there: the reference cannot see it
        for L, V in states(rng, 100 if name != "conjugate" else 150, C):
            bet, up, down = reference(name, L, V, C)
            assert prior.bet(L, V, C) == pytest.approx(bet, rel=1e-9)
            assert prior.bet(-L, V, C) == -prior.bet(L, V, C)
            allowed = 1e-9 * (up + down) + 1e-14
            assert prior.potential(L, V, C) == pytest.approx(up - down, rel=0, abs=allowed)


@every_prior
def test_reference_by_mpmath(name):
    """The quadrature above, itself against mpmath's at 25 digits."""
    rng, density, C = np.random.default_rng(42), PRIORS[name][1], mp.mpf("0.2")
    with mp.workdps(25):
        b, mass = mp.sqrt(mp.pi / 2) * mp.erf(C * mp.sqrt(2)), 2 / mp.log(1 / C)
        density = {
            "conjugate": lambda v: mp.exp(-2 * v * v) / b, "uniform": lambda v: 1 / (2 * C),
            "chernov-vovk": lambda v: 1 / (mass * v * mp.log(v) ** 2), "improper": lambda v: 1 / v,
        }[name]  # fmt: skip
        for L, V in states(rng, 6, 0.2):
            peak = min(C, mp.mpf(L) / (2 * V)) if V else C
            marks = [peak + k / mp.sqrt(2 * V + 25) for k in (-8, -3, 0, 3, 8)]
            cuts = [mp.log(C) - 50, *sorted(mp.log(m) for m in marks if 0 < m < C), mp.log(C)]

            def integrand(s):
                v = mp.exp(s)
                return v * v * density(v) * 2 * mp.sinh(v * L) * mp.exp(-v * v * V)  # noqa: B023

            exact = mp.quad(integrand, cuts)
            assert reference(name, L, V, 0.2)[0] == pytest.approx(float(exact), rel=1e-10)


@every_prior
def test_adaptive_potential_and_reduction(name):
    """Algorithm 1 on one dimension, and Algorithm 2 around it: 2·60 states of every prior."""
    rng, (prior, _) = np.random.default_rng(43), PRIORS[name]
    for p, G in ((2.0, 1.0), (1.5, 0.5)):
        one, many, C = AdaptivePotential(prior=prior, bound=G), Reduction(prior=prior, bound=G, p=p), 0.2 / G
        g = G * rng.normal(rng.uniform(0, 1, 3), 10.0 ** rng.uniform(-1, 1, (30, 1)), (30, 3))
        x, state = one.start(1), many.start(3)
        L, V, sums, z, S = 0.0, 0.0, [0.0, 0.0], np.zeros(3), 0.0
        for row in g:
            x, state = one.step(x, row[:1]), many.step(state, row)
            sums = [sums[0] - row[0], sums[1] + row[0] ** 2]
            bet = math.copysign(reference(name, abs(sums[0]), sums[1], C)[0], sums[0])
            assert one.point(x)[0] == pytest.approx(bet, rel=1e-9)
            L, V = L - z @ row, V + (z @ row) ** 2
            S += float(np.sum(np.abs(row) ** (p / (p - 1)))) ** (2 - 2 / p)
            z = np.array([float(e) for e in naive_direction(z.tolist(), row.tolist(), S, p)])
            bet = math.copysign(reference(name, abs(L), V, C)[0], L) if L else 0.0
            close(many.point(state), bet * z, 1e-9)


@pytest.mark.parametrize("average", [UNIFORM, LINEAR, Average(3.0), LAST], ids=["0", "1", "3", "last"])
def test_coordinates_are_copies(average):
    """Dense and sparse steps and d copies of Algorithm 1: the same bits; the lazy average is the average."""
    rng, d = np.random.default_rng(44), 7
    learner, copy = (
        Coordinatewise(b=3.0, bound=2.0, average=average),
        AdaptivePotential(prior=Conjugate(b=3.0), bound=2.0, average=average),
    )
    dense = sparse = learner.start(d)
    copies = [copy.start(1) for _ in range(d)]
    for _ in range(200):
        g = rng.normal(0.5, 3, d) * (rng.random(d) < 0.2) * (np.arange(d) > 0)
        index = rng.permutation(np.flatnonzero(g))
        if index.size:
            index = np.append(index, 0)  # an explicit zero is no news
        dense, sparse = learner.step(dense, g), learner.step_sparse(sparse, index, g[index])
        copies = [copy.step(s, g[j : j + 1]) for j, s in enumerate(copies)]
        for one, other in zip(dense, sparse, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(dense.w, [s.w[0] for s in copies])
        direct = np.array([copy.answer(s)[0] for s in copies])
        np.testing.assert_allclose(learner.answer(dense), direct, rtol=1e-11, atol=1e-15)
    assert dense.since[0] == 0 == dense.w[0]
