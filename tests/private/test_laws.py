"""Every sampler against its exact law.

Each Kolmogorov–Smirnov or χ² test has false-alarm probability α = 1e−6 by design, and the seeds are fixed:
a failure is a defect, not bad luck. Unbiasedness and energy are measured on every randomiser, dimension and
level of privacy of the table below.
"""

import math

import numpy as np
import pytest
from scipy import special, stats
from tests.shared_table import RANDOMIZERS

from untold.private import noise
from untold.private.randomizers.duchi import Duchi
from untold.private.randomizers.normlaplace import NormLaplace
from untold.private.randomizers.privunit import PrivUnit, cap_law
from untold.private.randomizers.privunitg import PrivUnitG, privunit_g_law

ALPHA = 1e-6
S = 2.0**20  # a scale at which the rounding to integers is far below what a test of this size can see


def ks(sample, cdf):
    assert stats.kstest(sample, cdf).pvalue > ALPHA


def test_keystream_words_are_uniform_bits():
    words = noise.seeded(1).words(200_000)
    for shift in (0, 12, 32, 52):
        counts = np.bincount(((words >> np.uint64(shift)) & np.uint64(255)).astype(int), minlength=256)
        assert stats.chisquare(counts).pvalue > ALPHA


def test_gaussian_law():
    x = noise.gaussian(300_001, S, noise.seeded(2)) / S
    ks(x, stats.norm.cdf)
    half = x.size // 2
    ks(x[:half] * x[half : 2 * half], product_of_normals)  # the two normals of a pair are independent


def product_of_normals(y):
    grid = np.linspace(-30, 30, 60001)
    density = special.k0(np.abs(np.where(grid == 0, 1e-9, grid))) / math.pi
    cdf = np.cumsum(density) * (grid[1] - grid[0])
    return np.interp(y, grid, cdf / cdf[-1])


def test_gaussian_at_a_small_scale_is_the_rounded_normal():
    x = noise.gaussian(300_000, 1.5, noise.seeded(3))
    k = np.arange(-6, 7)
    law = np.diff(stats.norm.cdf(np.concatenate([[-np.inf], k[:-1] + 0.5, [np.inf]]) / 1.5))
    counts = [np.sum(np.clip(x, -6, 6) == j) for j in k]
    assert stats.chisquare(counts, law * x.size).pvalue > ALPHA


def test_laplace_law():
    ks(noise.laplace(np.full(300_000, S), noise.seeded(4)) / S, stats.laplace.cdf)


def test_laplace_scales_are_per_coordinate():
    x = noise.laplace(np.tile([0.0, S, 10 * S], (50_000, 1)), noise.seeded(5)) / S
    assert (x[:, 0] == 0).all()
    ks(x[:, 1], stats.laplace.cdf)
    ks(x[:, 2] / 10, stats.laplace.cdf)


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 101, 1000])
def test_norm_laplace_law(dim):
    rows = 200_000 // dim + 400
    z = noise.norm_laplace(rows, dim, S, noise.seeded(6)) / S
    norm = np.linalg.norm(z, axis=1)
    ks(norm, stats.gamma(dim).cdf)
    if dim > 1:
        ks((1 + z[:, 0] / norm) / 2, stats.beta((dim - 1) / 2, (dim - 1) / 2).cdf)
        ks((1 + z[:, -1] / norm) / 2, stats.beta((dim - 1) / 2, (dim - 1) / 2).cdf)


def truncated_mixture(law):
    p = law.chance / 2**53

    def cdf(t):
        below = (1 - p) * np.minimum(stats.norm.cdf(t) / (1 - law.Q), 1)
        return below + p * np.maximum(1 - stats.norm.sf(t) / law.Q, 0)

    return cdf


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 100.0])
@pytest.mark.parametrize("dim", [1, 2, 50])
def test_privunit_g_law_along_and_across_the_input(dim, epsilon):
    rows, K = 60_000, 2**20
    law = privunit_g_law(epsilon)
    q = np.zeros((rows, dim), dtype=np.int64)
    q[:, 0] = K
    y = noise.privunit_g(q, K, law.chance, law.Q, law.inverse, noise.seeded(7)) / (K * law.inverse)
    ks(y[:, 0], truncated_mixture(law))
    for j in range(1, min(dim, 3)):
        ks(y[:, j], stats.norm.cdf)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("dim", [2, 3, 10, 1000])
def test_privunit_law_along_the_input(dim, epsilon):
    rows, K = 200_000 // dim + 3000, 2**20
    law, r = cap_law(epsilon, dim), PrivUnit(epsilon)
    x = np.full((rows, dim), 1 / math.sqrt(dim))
    y = r.seeded(8)(x)
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    a, p = (dim - 1) / 2, law.chance / 2**53
    gamma, base = math.sin(math.pi * law.v), stats.beta(a, a)
    share = base.sf((1 + gamma) / 2)

    def cdf(w):
        z = (1 + w) / 2
        low = (1 - p) * np.minimum(base.cdf(z) / (1 - share), 1)
        return low + p * np.maximum(1 - base.sf(z) / share, 0)

    unit = x[0] * K // 1 / np.linalg.norm(x[0] * K // 1)
    w = np.clip(y @ unit, -1, 1)
    assert stats.kstest(w, cdf).pvalue > ALPHA
    across = (y[:, 0] - y[:, 1]) / math.sqrt(2)  # along a direction orthogonal to the input
    if dim == 2:
        assert stats.binomtest(int((across > 0).sum()), rows).pvalue > ALPHA
        return
    ks((1 + across / np.sqrt(1 - w**2)) / 2, stats.beta((dim - 2) / 2, (dim - 2) / 2).cdf)


@pytest.mark.parametrize("dim", [1, 2, 10])
def test_duchi_chooses_the_half_sphere_with_the_right_odds(dim):
    epsilon, rows = 1.0, 100_000
    x = np.zeros((rows, dim))
    x[:, -1] = 1.0
    y = Duchi(epsilon).seeded(9)(x)
    heads = int((y[:, -1] > 0).sum())
    assert stats.binomtest(heads, rows, special.expit(epsilon)).pvalue > ALPHA
    if dim > 1:
        radius = np.linalg.norm(y[0])
        z = (1 + np.abs(y[:, -1]) / radius) / 2
        half = stats.beta((dim - 1) / 2, (dim - 1) / 2)
        ks(z, lambda t: 2 * half.cdf(t) - 1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("dim", [1, 10, 100, 1000])
@pytest.mark.parametrize("name", RANDOMIZERS)
def test_unbiased_with_the_stated_energy(name, dim, epsilon):
    """The mean within 4 standard errors along the input, across it and in norm; E‖ξ‖² within 1 %.

    Three tests at 4 standard errors in 84 settings would give a false alarm in 1.6 % of reseedings; the seed
    is fixed. On the two points of S⁰ at ε = 8 the energy sits in one report of 3,000, hence the 60 million.
    """
    r = RANDOMIZERS[name](epsilon, dim)
    rows = {1: 400_000, 10: 100_000, 100: 20_000, 1000: 2_000}[dim]
    if name in {"duchi", "privunit"} and dim == 1 and epsilon == 8:
        rows = 60_000_000
    g = np.ones(dim) / math.sqrt(dim)
    h = np.where(np.arange(dim) % 2, -1, 1) / math.sqrt(dim)
    total, energy, spread = np.zeros(dim), 0.0, np.zeros(2)
    step, stream = max(1, 2_000_000 // dim), r.seeded(11)
    for start in range(0, rows, step):
        xi = stream(np.tile(g, (min(step, rows - start), 1))) - g
        total += xi.sum(axis=0)
        energy += (xi**2).sum()
        spread += ((xi @ np.stack([g, h], axis=1)) ** 2).sum(axis=0)
    mean, energy, error = total / rows, energy / rows, np.sqrt(spread) / rows
    truncation = r.grid * math.sqrt(dim)
    assert abs(energy / r.noise_energy(dim) - 1) < 0.01
    assert abs(mean @ g) <= 4 * error[0] + truncation
    assert abs(mean @ h) <= 4 * error[1] + truncation
    if dim > 1:
        assert rows * (mean**2).sum() / energy <= 1 + 4 * math.sqrt(2 / dim)


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_short_and_zero_inputs_are_unbiased_too(name):
    dim, rows = 5, 200_000
    r = RANDOMIZERS[name](1.0, dim).seeded(12)
    for g in (np.zeros(dim), np.array([0.3, 0.0, -0.2, 0.0, 0.1])):
        xi = r(np.tile(g, (rows, 1))) - g
        assert (np.abs(xi.mean(axis=0)) < 4.5 * xi.std(axis=0) / math.sqrt(rows) + r.grid).all()
        stated = r.noise_energy(dim, norm=float(np.linalg.norm(g)))
        assert abs((xi**2).sum(axis=1).mean() / stated - 1) < 0.012


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_subexponential_pair_bounds_the_measured_moments(name):
    """E exp(β⟨ξ, a⟩) ≤ exp(β²σ²/2) along, across and slantwise, for β up to 1/b."""
    dim, rows = 4, 200_000
    r = RANDOMIZERS[name](2.0, dim).seeded(13)
    g = np.array([1.0, 0.0, 0.0, 0.0])
    xi = r(np.tile(g, (rows, 1))) - g
    variance, b = r.subexponential(dim)
    for a in (g, [0, 1, 0, 0], np.ones(4) / 2):
        s = xi @ a
        assert s.var() <= 1.02 * variance
        for beta in np.array([-1, -0.5, 0.5, 1]) * (1 / b if b else 1.5 / math.sqrt(variance)):
            moments = np.exp(beta * s)
            sem = moments.std() / math.sqrt(rows)
            assert moments.mean() - 4.5 * sem <= math.exp(beta**2 * variance / 2)


@pytest.mark.parametrize("dim", [10, 100, 1000])
def test_the_table_of_energies(dim):
    """Published closed forms, at unit norm: Asi et al., Bhowmick et al., Duchi et al., Balle–Wang."""
    table = {
        10: {1: (440, 68.97, 59.73, 63.3), 8: (6.875, 13.96, 0.842, 1.329)},
        100: {1: (4.04e4, 730.9, 629.3, 633), 8: (631.2, 155.5, 12.73, 13.29)},
        1000: {1: (4.004e6, 7351, 6326, 6330), 8: (6.256e4, 1571, 132.3, 132.9)},
    }
    for epsilon, row in table[dim].items():
        ours = [r(epsilon).noise_energy(dim) for r in (NormLaplace, Duchi, PrivUnit, PrivUnitG)]
        np.testing.assert_allclose(ours, row, rtol=6e-4)
