"""van der Hoeven (2019): the printed formulas of docs/errata.md fail, the corrected ones hold.

Nothing here imports the library, so the page stands on its own. Unless a test says otherwise it is exact
(closed form, quadrature or enumeration) and cannot raise a false alarm.
"""

import math
from itertools import product

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.integrate import quad
from scipy.special import ndtr

NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)


def conjugate_point(total, curvature, b, cap):
    """Return E v·exp(v·total − v²·(curvature − b)) for v ∝ exp(−bv²) on [−cap, cap], by quadrature."""
    v = cap * NODES
    weight = WEIGHTS * np.exp(v * total - v**2 * curvature)
    return (v * weight).sum() / (WEIGHTS * np.exp(-b * v**2)).sum()


def log_potential(total, curvature, b, cap):
    """Return ln E exp(v·total − v²·(curvature − b)) and the logarithm of its derivative in `total` ≥ 0."""
    peak = min(total / (2 * curvature), cap)
    slope = total - 2 * curvature * peak
    spread = min(1 / math.sqrt(2 * curvature), 1 / slope if slope > 0 else math.inf)
    low, high = max(0.0, peak - 40 * spread), min(cap, peak + 40 * spread)
    v = (low + high) / 2 + (high - low) / 2 * NODES
    exponent = v * total - v**2 * curvature
    weight = WEIGHTS * np.exp(exponent - exponent.max()) * (high - low) / 2
    base = exponent.max() - math.log(math.sqrt(math.pi / b) * math.erf(cap * math.sqrt(b)))
    even, odd = (weight * (1 + np.exp(-2 * v * total))).sum(), (weight * v * -np.expm1(-2 * v * total)).sum()
    return base + math.log(even), base + math.log(odd)


def conjugate(u, curvature, b, cap):
    """Return sup over L of uL − E exp(vL − v²·(curvature − b))."""

    def gap(t):
        return log_potential(math.exp(t), curvature, b, cap)[1] - math.log(u)

    high = 1.0
    while gap(high) < 0:
        high += 1
    low = -20.0
    total = math.exp(optimize.brentq(gap, low, high)) if gap(low) < 0 else 0.0
    return u * total - math.exp(log_potential(max(total, 1e-9), curvature, b, cap)[0])


def hoeven_max(u, curvature, b, inner, bound=1.0):
    """Return Theorem 1's |u|·max{…} with `inner`·G√π/√b in the first logarithm; the rest as printed."""
    first = 11 * bound * (math.log(11 * bound * u) - 1 + math.log(inner * bound * math.sqrt(math.pi / b)))
    log = math.log1p(16 * u**2 * curvature**1.5 * math.sqrt(math.pi / b))
    return u * max(first, math.sqrt(8 * curvature * log))


def test_hoeven_equation_7():
    for total, curvature, b, cap in [(3, 10, 1, 0.2), (20, 50, 2, 0.2), (-4, 7, 5, 0.4), (15, 15, 15, 0.1)]:
        root = 2 * math.sqrt(curvature)
        up, down = (total + 2 * cap * curvature) / root, (total - 2 * cap * curvature) / root
        erfs = math.sqrt(b) * total * math.exp(up**2) * (math.erf(up) - math.erf(down))
        rest = root * math.expm1(2 * cap * total)
        below = math.erf(cap * math.sqrt(b)) * math.exp(cap * (total + cap * curvature)) * 4 * curvature**1.5
        truth = conjugate_point(total, curvature, b, cap)
        assert (erfs - math.sqrt(b / math.pi) * rest) / below == pytest.approx(truth, rel=1e-9)
        assert (-erfs + rest) / below != pytest.approx(truth, rel=0.1)  # as printed
        assert (-erfs + math.sqrt(b / math.pi) * rest) / below == pytest.approx(-truth, rel=1e-9)


def test_hoeven_theorem_1_fails_and_its_replacement_holds():
    # Fails: no noise at all, g̃ₜ = −0.01 (within G = 1), conjugate prior b = 1.0572, competitor u = 0.35733.
    b, u, step, rounds, cap = 1.0572, 0.35733, 0.01, 1355, 0.2
    regret = 0.0
    for t in range(rounds):
        w = conjugate_point(step * t, b + step**2 * t, b, cap)
        regret += (w - u) * -step
    curvature = b + step**2 * rounds
    assert regret > 0.6 + 1 + hoeven_max(u, curvature, b, math.sqrt(5) / 4)
    assert regret <= 1 + hoeven_max(u, curvature, b, 5 / 4)
    # Holds: Φ* ≤ |u|·max{first with 16.6, √(2B·ln(1 + 8u²B²/b))} wherever we look.
    grid = product(np.logspace(-4, 5, 10), [0.0, *np.logspace(-3, 8, 12)], np.logspace(-6, 6, 13))
    for b, extra, u in grid:
        curvature = b + extra
        truth = conjugate(u, curvature, b, cap)
        first = 11 * (math.log(11 * u) - 1 + math.log(16.6 * math.sqrt(math.pi / b)))
        second = math.sqrt(2 * curvature * math.log1p(8 * u**2 * curvature**2 / b))
        assert truth <= u * max(first, second)
        assert truth <= hoeven_max(u, curvature, b, 5 / 4) + 1e-3  # 5 for √5: seen to hold up to 0.0007
    assert conjugate(2.8e-9, 1.28e11, 800.0, cap) > hoeven_max(2.8e-9, 1.28e11, 800.0, 5 / 4) + 6e-4


def test_hoeven_potential_needs_its_parentheses():
    v, size = 0.2, 10.0  # g̃ = ±size with probability ½: zero mean, symmetric
    meant = sum(math.exp(-v * g - (v * g) ** 2) for g in (size, -size)) / 2
    misread = sum(math.exp(-(v * g - (v * g) ** 2)) for g in (size, -size)) / 2
    assert meant <= 1  # Lemma 4: at most 1 − v·E g̃ = 1
    assert misread > 100


def test_hoeven_mean_bound_needs_absolute_values():
    def inequality(s):
        return math.exp(s - s * s) <= 1 + s

    assert all(inequality(s) for s in np.linspace(-0.2, 0.2, 401))
    assert not inequality(-1.0)  # v = −0.2, G = 1, g̃ = −5 (E g̃ ≤ G holds!): s = −v·g̃ = −1
    means, noise = np.linspace(-0.2, 0.2, 81)[:, None], np.linspace(0, 30, 3001)[None, :]
    up, down = means + noise, means - noise  # every symmetric law is a mixture of such pairs
    assert ((np.exp(up - up**2) + np.exp(down - down**2)) / 2 <= 1 + means + 1e-15).all()


def test_hoeven_rates_drop_the_initial_wealth():
    b, cap = 1.0, 0.2
    first = conjugate_point(0.0, b, b, cap)
    second = conjugate_point(1.0, b + 1, b, cap)  # after g̃₁ = −1
    regret = first * -1 + second * 1  # then g̃₂ = +1, competitor u = 0
    assert first == pytest.approx(0, abs=1e-15)
    assert 0 < regret <= 1  # (1), (2) and (8) say 0; Theorem 1 says 1


def test_hoeven_lemma_2_wants_the_expected_conjugate():
    # g₁ = −1, ξ₁ = ±1, w₁ = 0. F = 0 at 0 and ∞ elsewhere if g̃₁ = 0; F(x) = kx²/2 if g̃₁ = −2. E c = k.
    u, k = 3.0, 1.5
    assert (0 + k / 2 * 2**2) / 2 - k == 0  # the lemma's hypothesis: −E w₁g₁ = 0 ≥ E[F − c]
    conjugates = [0.0, u**2 / (2 * k)]
    regret = (0 - u) * -1
    assert regret > k + min(conjugates)  # as printed, on half of the outcomes
    assert regret <= k + sum(conjugates) / 2


def test_hoeven_lemma_3_needs_a_start_at_zero():
    play, gradient = 0.0, 1.0  # a learner that never moves, and the constant potentials Fₜ ≡ start

    def hypothesis(start):
        return start - play * gradient >= start

    def conclusion(start):
        return -play * gradient >= start

    assert hypothesis(1.0)
    assert not conclusion(1.0)
    assert hypothesis(0.0)
    assert conclusion(0.0)


def test_hoeven_algorithm_3_bounds_the_mean_and_copies_the_learner():
    tau, bound = 1.0, 1.0  # |g̃ⱼ| ≤ G cannot be asked of a report: Laplace noise of scale 2G/τ around ±G
    assert stats.laplace.sf(bound, bound, 2 * bound / tau) == pytest.approx(0.5)
    reports = np.array([-1.0, 1.0])
    copies, single = np.zeros(2), 0.0
    for _ in range(20):
        copies -= reports
        single -= reports.sum()
    points = [conjugate_point(total, 1 + 20, 1, 0.2) for total in copies]
    assert points[0] > 0.1
    assert points[1] == pytest.approx(-points[0])
    assert conjugate_point(single, 1 + 40, 1, 0.2) == pytest.approx(0)  # one shared copy learns nothing


def test_hoeven_noise_energy_has_no_spare_four():
    for d, epsilon in [(1, 0.5), (10, 1.0), (100, 8.0)]:
        energy = stats.gamma(d, scale=2 / epsilon).moment(2)
        assert energy == pytest.approx(4 * (d * d + d) / epsilon**2)
        assert energy + 4 == pytest.approx(4 + 4 * (d * d + d) / epsilon**2)  # printed: true, and 4 too large


def privunitg_lemma_4(v, cosine, epsilon):
    """Return E exp(s − s²) for s = v⟨g̃, a⟩, g̃ a PrivUnitG report (G = 1), ⟨g, a⟩ = cosine; gamma too."""

    def density(t):
        return math.exp(-t * t / 2) / math.sqrt(2 * math.pi)

    gamma = optimize.brentq(lambda g: g * (1 / math.expm1(epsilon) + ndtr(-g)) - density(g), 1e-12, 60)
    tail = ndtr(-gamma)
    p = math.exp(epsilon) * tail / (1 + math.expm1(epsilon) * tail)
    k = v / gamma
    tilt = 1 / (1 + 2 * k * k)
    mean, sd = cosine * k * tilt, np.sqrt(1 - cosine**2 + cosine**2 * tilt)
    split = p * ndtr((mean - gamma) / sd) / tail + (1 - p) * ndtr((gamma - mean) / sd) / ndtr(gamma)
    return np.sqrt(tilt) * np.exp(k * k * tilt / 2) * split, gamma, p


def test_hoeven_lemma_4_for_privunitg():
    cosine, v = np.linspace(-1, 1, 201)[None, :], np.linspace(1e-3, 0.5, 100)[:, None]
    for epsilon in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 2.5, 3, 4, 6, 8, 12, 16, 20):
        assert (privunitg_lemma_4(v, cosine, epsilon)[0] <= 1 + v * cosine + 1e-14).all()
    assert privunitg_lemma_4(0.6, -1.0, 2.0)[0] > 1 - 0.6  # not for every v
    value, gamma, p = privunitg_lemma_4(0.2, -0.7, 1.0)  # the closed form against quadrature

    def given(t):  # s is normal given the component t along g
        mean, var = 0.2 / gamma * -0.7 * t, (0.2 / gamma) ** 2 * (1 - 0.49)
        return (
            math.exp((mean - mean**2 + var / 2) / (1 + 2 * var)) / math.sqrt(1 + 2 * var) * stats.norm.pdf(t)
        )

    parts = quad(given, gamma, 12)[0] / ndtr(-gamma), quad(given, -12, gamma)[0] / ndtr(gamma)
    assert value == pytest.approx(p * parts[0] + (1 - p) * parts[1], rel=1e-9)
