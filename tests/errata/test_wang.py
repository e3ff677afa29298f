"""Wang (2021), lecture 12: the printed formulas of docs/errata.md fail, the corrected ones hold.

Nothing here imports the library, so the page stands on its own. Unless a test says otherwise it is exact
(closed form, quadrature or enumeration) and cannot raise a false alarm.
"""

import math
from itertools import product

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import ndtr


def test_wang_steps_descend():
    up, down = 1.0, 1.0
    for _ in range(100):  # ∇f(x) = x, no noise
        up, down = up + 0.1 * up, down - 0.1 * down
    assert up > 1e4
    assert down < 1e-4


def test_wang_variance_lost_its_square():
    d, sigma = 20, 3.0
    norm = stats.chi(d, scale=sigma)
    assert norm.moment(2) == pytest.approx(d * sigma**2)
    assert norm.mean() < d * sigma**2 / 10


def test_wang_lemma_12_1_smoothness_is_n_beta():
    n, beta, sigma, rounds = 10, 2.0, 1.0, 200  # ℓᵢ(x) = ½βx², so f(x) = ½nβx² and d = 1

    def mean_square_gradient(eta, start=1.0):
        square, total = start**2, 0.0
        for _ in range(rounds):
            total += (n * beta) ** 2 * square / rounds
            square = (1 - eta * n * beta) ** 2 * square + eta**2 * sigma**2
        return total

    def bound(eta, smooth):
        return n * beta / (rounds * eta) + eta * smooth * sigma**2

    assert mean_square_gradient(0.9 / beta) > 1e6 * bound(0.9 / beta, n * beta)  # η < 1/β is not enough
    eta = 1 / (n * beta)
    assert mean_square_gradient(eta) <= bound(eta, n * beta)
    assert (
        mean_square_gradient(eta, start=0.0) > 5 * eta * beta * sigma**2
    )  # β alone, as in the proof: too small
    assert mean_square_gradient(eta, start=0.0) <= eta * n * beta * sigma**2
    # The telescoped sum with f(x_T) for f(x_{T+1}) fails at T = 1 without noise: 0 > −(η/2)·f'(1)².
    assert n * beta / 2 - n * beta / 2 > -eta / 2 * (n * beta) ** 2
    assert n * beta / 2 * (1 - eta * n * beta) ** 2 - n * beta / 2 <= -eta / 2 * (n * beta) ** 2


def test_wang_substitutions_for_sigma():
    n, d, lipschitz, beta, gap, distance, lam, rho, rounds = 50, 7, 1.3, 0.4, 2.0, 3.0, 0.6, 0.05, 1e4
    variance = rounds * lipschitz**2 / (2 * rho)
    ours = {
        "nonconvex": (
            2 * math.sqrt(2 * n * beta * d * variance * gap / rounds),
            2 * math.sqrt(n * beta * d * gap / rho),
        ),
        "smooth": (2 * distance * math.sqrt(d * variance / rounds), distance * math.sqrt(2 * d / rho)),
        "lipschitz": (distance * math.sqrt(d * variance / rounds), distance * math.sqrt(d / (2 * rho))),
        "strongly": (d * variance / (lam * rounds), d * lipschitz / (2 * lam * rho)),
    }
    for before, after in ours.values():
        assert before == pytest.approx(after * lipschitz)
    printed = {
        "nonconvex": math.sqrt(n * beta * d * gap / (2 * rho)),
        "smooth": 2 * distance * math.sqrt(d / rho),
        "lipschitz": distance * math.sqrt(d / rho),
        "strongly": d * lipschitz / (lam * rho),
    }
    factors = [printed[k] * lipschitz / ours[k][0] for k in ours]
    assert factors == pytest.approx([1 / math.sqrt(8), math.sqrt(2), math.sqrt(2), 2])


def test_wang_convex_lipschitz_lost_two_halves():
    distance, slope, rounds = 2.0, 3.0, 400

    def least(c):
        def bound(t):
            return c * (distance**2 / (rounds * math.exp(t)) + math.exp(t) * slope**2)

        return optimize.minimize_scalar(bound, (-8, 0)).fun

    claim = distance * slope / math.sqrt(rounds)  # the next line of the notes
    assert least(1) == pytest.approx(2 * claim)
    assert least(0.5) == pytest.approx(claim)
    for eta in (0.3, 1, 3) * np.array(distance / (slope * math.sqrt(rounds))):  # f(x) = slope·|x|
        x, total = distance, 0.0
        for _ in range(rounds):
            total += slope * abs(x) / rounds
            x -= eta * slope * math.copysign(1, x)
        assert total <= (distance**2 / (rounds * eta) + eta * slope**2) / 2
    smooth, sigma = 5.0, 2.0  # section 12.2.2: f(x) = ½·smooth·x² with noise, d = 1
    for eta in np.array([0.01, 0.1, 1.0]) / smooth:
        square, total = distance**2, 0.0
        for _ in range(rounds):
            total += smooth / 2 * square / rounds
            square = (1 - eta * smooth) ** 2 * square + eta**2 * sigma**2
        assert total <= (distance**2 / (rounds * eta) + eta * sigma**2) / 2


def test_wang_step_counts():
    n, d, lipschitz, distance, lam, beta, rho = 1000, 20, 1.5, 4.0, 0.01, 0.3, 0.02

    def equal(excess):
        return optimize.brentq(lambda t: math.log(excess(math.exp(t))), -40, 60)

    private = distance * math.sqrt(d / rho) * lipschitz
    convex = math.exp(equal(lambda t: distance * n * lipschitz / math.sqrt(t) / private))
    smooth = math.exp(equal(lambda t: n * beta * distance**2 / t / private))
    strongly = math.exp(equal(lambda t: n**2 * lipschitz**2 / (lam * t) / (d * lipschitz**2 / (lam * rho))))
    assert convex == pytest.approx(n**2 * rho / d)  # the table prints n²ρ/‖x₁ − x*‖_d
    assert smooth == pytest.approx(
        n * beta * distance * math.sqrt(rho) / (lipschitz * math.sqrt(d))
    )  # … twice that
    assert strongly == pytest.approx(n**2 * rho / d)  # the text prints n²ρ/λ
    assert strongly < n**2 * rho / lam / 1000


def test_wang_strongly_convex_needs_a_bounded_set():
    n, lam, lipschitz = 30, 0.5, 1.0
    radius = lipschitz / lam  # ℓᵢ(θ) = ½λθ² is L-Lipschitz on this ball and nowhere beyond

    def slope(theta):
        return lam * abs(theta)

    assert slope(radius) <= lipschitz < slope(1.01 * radius)
    assert n * slope(radius) > lipschitz  # and f = Σℓᵢ is nL-Lipschitz there, not L-Lipschitz
    assert n * slope(radius) <= n * lipschitz
    eta, sigma = 1 / (n * lam), 60.0  # the first step from 0, t = 1
    assert 2 * ndtr(-radius / (eta * sigma)) > 0.6  # leaves the ball more often than not, unless projected


@pytest.mark.parametrize("factor", [1, 2])
def test_wang_weighted_average_constant_is_two(factor):
    lam, noise, slope = 0.5, 1.0, 1.0
    for rounds in (1, 2, 10, 300):
        t = np.arange(1, rounds + 1)
        weights, eta = 2 * t / (rounds * (rounds + 1)), factor / (lam * (t + 1))
        # f = ½λx² with Gaussian noise: the average is linear in the start and in every ξ, so E f is exact.
        start, mean, coefficients = slope / lam, 0.0, np.zeros(rounds)
        influence, position = np.zeros(rounds), start
        for i in range(rounds):
            mean, coefficients = mean + weights[i] * position, coefficients + weights[i] * influence
            position, influence = (1 - lam * eta[i]) * position, (1 - lam * eta[i]) * influence
            influence[i] = -eta[i]
        excess = lam / 2 * (mean**2 + noise**2 * (coefficients**2).sum())
        assert excess <= 2 * (slope**2 + noise**2) / (lam * (rounds + 1))
        # f = ½λx² + |x| on [−1, 1], no noise, subgradients up to λ + 1.
        x, mean = 1.0, 0.0
        for i in range(rounds):
            mean += weights[i] * x
            x = max(-1.0, min(1.0, x - eta[i] * (lam * x + math.copysign(1, x))))
        assert lam / 2 * mean**2 + abs(mean) <= 2 * (lam + 1) ** 2 / (lam * (rounds + 1))


def test_wang_rho_is_epsilon_squared_over_the_logarithm():
    epsilon, delta = 1.0, 1e-6
    log = math.log(1 / delta)

    def spent(rho):
        return rho + 2 * math.sqrt(rho * log)

    rho = optimize.brentq(lambda r: spent(r) - epsilon, 0, 10)
    assert rho == pytest.approx(epsilon**2 / (4 * log), rel=0.05)
    assert spent(epsilon**2 * log) > 40 * epsilon  # as printed in 12.3.2


def test_wang_utility_table_mixes_sum_and_mean():
    def rows(n, epsilon, d=8, lipschitz=1.2, beta=0.7, distance=2.0, lam=5.0, gap=3.0, delta=1e-6):
        log = math.log(1 / delta)
        ratio = 4 * log * lipschitz**2 / (2 * epsilon**2)  # σ²/T with ρ = ε²/(4·ln(1/δ))
        total = (  # the summed objective, T → ∞
            distance * math.sqrt(d * ratio),
            2 * d * ratio / lam,
            2 * math.sqrt(2 * n * beta * d * ratio * gap),
        )
        mean = (total[0] / n, total[1] / n, total[2] / n**2)  # losses scale by 1/n, squared gradients by 1/n²
        root = math.sqrt(d * log) * lipschitz
        printed = (
            root * distance / (n * epsilon),
            d * lipschitz**2 * log / (n * lam * epsilon**2),
            math.sqrt(n * beta * d * lipschitz**2 * gap * log),
        )
        return np.array([total, mean]) / np.array(printed)

    few, many, private = rows(10, 1.0), rows(1000, 1.0), rows(10, 0.1)
    assert many[1, :2] == pytest.approx(few[1, :2])  # rows 1 and 2 follow the mean objective …
    assert private[1, :2] == pytest.approx(few[1, :2])
    assert many[0, 0] == pytest.approx(100 * few[0, 0])  # … not the sum the notes analyse;
    assert many[0, 2] == pytest.approx(few[0, 2])  # row 3 follows the sum,
    assert private[0, 2] == pytest.approx(10 * few[0, 2])  # and has lost its ε


def test_wang_subsampling_relations():
    epsilon, gamma = 0.8, 0.1

    def density(z, centre):
        return math.exp(-epsilon * abs(z - centre))

    def amplified(e):
        return math.log1p(gamma * math.expm1(e))

    far = 60.0  # Laplace noise for an add/remove sensitivity of 1; rows are ±1; the batch sum is released
    poisson = (1 - gamma) * density(far, 0) + gamma * density(far, 1)
    assert math.log(poisson / density(far, 0)) == pytest.approx(amplified(epsilon))  # add/remove with Poisson
    subset = (1 - gamma) * density(far, -5) + gamma * density(far, -3)  # one of the rows −1 replaced by +1
    replaced = math.log(subset / density(far, -5))
    assert replaced == pytest.approx(
        amplified(2 * epsilon)
    )  # the base ε must be the replace-one one, here 2ε
    assert replaced > amplified(epsilon) + 0.1
    gamma, epsilon = 0.01, 10.0
    assert amplified(epsilon) > 50 * gamma * epsilon  # O(γε) only while ε = O(1)
    assert amplified(1.0) < 1.72 * gamma


def test_wang_noisysgd_figure_is_not_a_guarantee():
    from dp_accounting.pld import privacy_loss_distribution

    gamma, sigma, delta = 0.01, 0.5, 1e-5  # L = 1

    def spent(rho):
        return rho + 2 * math.sqrt(rho * math.log(1 / delta))

    def figure(rounds):
        return spent(gamma**2 * rounds / (2 * sigma**2))

    # One step, exactly: δ(ε) of (1 − γ)·N(0, σ²) + γ·N(1, σ²) against N(0, σ²).
    epsilon = figure(1)
    cut = sigma**2 * math.log((math.exp(epsilon) - 1 + gamma) / gamma) + 0.5
    upper = (1 - gamma) * ndtr(-cut / sigma) + gamma * ndtr((1 - cut) / sigma)
    assert upper - math.exp(epsilon) * ndtr(-cut / sigma) > 100 * delta
    # A hundred steps: even an optimistic (certified lower) estimate is six times the figure.
    law = privacy_loss_distribution.from_gaussian_mechanism(
        sigma,
        pessimistic_estimate=False,
        value_discretization_interval=1e-3,
        sampling_prob=gamma,
        use_connect_dots=False,
    )
    assert law.self_compose(100).get_epsilon_for_delta(delta) > 6 * figure(100)


def test_wang_noisysgd_utility():
    gradients, gamma = np.array([1.0, -1.0, 0.5, 0.25]), 0.3
    moments = np.zeros(2)
    for batch in product([0, 1], repeat=4):
        chance = math.prod(gamma if i else 1 - gamma for i in batch)
        estimate = gradients @ np.array(batch) / gamma
        moments += chance * np.array([estimate, estimate**2])
    variance = moments[1] - moments[0] ** 2
    assert moments[0] == pytest.approx(gradients.sum())
    assert variance == pytest.approx((1 - gamma) / gamma * (gradients**2).sum())  # exact
    assert variance < 0.5 * len(gradients) / gamma  # printed with "=": an upper bound
    n, d, rho, distance = 1000, 5, 0.02, 2.0  # L = 1, σ² = γ²T/(2ρ)
    for rounds, close in [(10, False), (1e9, True)]:
        second = distance * (math.sqrt(d / (2 * rho)) + math.sqrt(n / (gamma * rounds)))
        assert (second == pytest.approx(distance * math.sqrt(d / (2 * rho)), rel=1e-3)) == close
        assert second != pytest.approx(distance * math.sqrt(d / rho), rel=0.1)  # printed
