"""Kamath (2020), lecture 13: the printed formulas of docs/errata.md fail, the corrected ones hold.

Nothing here imports the library, so the page stands on its own. Unless a test says otherwise it is exact
(closed form, quadrature or enumeration) and cannot raise a false alarm.
"""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr


def test_kamath_lemma_1_sensitivity():
    rng = np.random.default_rng(0)
    lipschitz, lam = 1.0, 0.7
    for n in (1, 10, 1000):
        rows = rng.standard_normal((n, 3))
        rows *= lipschitz / np.linalg.norm(rows, axis=1, keepdims=True)
        other = rows.copy()
        other[0] *= -1  # ℓ(θ, x) = ⟨θ, x⟩ and N = ½‖θ‖²: the minimiser is −Σx/λ
        move = np.linalg.norm(rows.sum(0) - other.sum(0)) / lam
        assert move == pytest.approx(2 * lipschitz / lam)  # attained whatever n is
        assert np.linalg.norm(rows[0]) / lam == pytest.approx(lipschitz / lam)  # add or remove
    assert 2 * n / lam == pytest.approx(n * move)  # printed: n times too much noise


def test_kamath_step_lost_the_n_of_the_sum():
    n, lipschitz, width, rounds = 2000, 1.0, 1.0, 5000
    steep = n * lipschitz

    def last_gap(scale):  # F(θ) = nL|θ| on [−½, ½], η(t) = ‖C‖/(scale·√t)
        theta = width / 2
        for t in range(1, rounds + 1):
            theta -= width / (scale * math.sqrt(t)) * steep * math.copysign(1, theta)
            theta = max(-width / 2, min(width / 2, theta))
        return steep * abs(theta)

    bound = 2 * width * steep * (2 + math.log(rounds)) / math.sqrt(rounds)  # Shamir and Zhang, c = ‖C‖/G
    assert last_gap(lipschitz) > 1.5 * bound
    assert last_gap(n * lipschitz) <= bound


def test_kamath_objective_perturbation_needs_smooth_losses():
    lam, sd, x, other = 1.0, 1.0, 0.3, 0.4

    def minimiser(b, point):  # of |θ − x| + ½λθ² + bθ
        low, high = (-b - 1) / lam, (-b + 1) / lam
        return min(max(point, low), high)

    stuck = ndtr((1 - lam * x) / sd) - ndtr((-1 - lam * x) / sd)
    noise = np.linspace(-4, 4, 4001)
    hits = [minimiser(b, x) == x for b in noise]
    assert np.average(hits, weights=stats.norm.pdf(noise)) == pytest.approx(stuck, abs=1e-3)
    assert stuck > 0.6  # P(θ̂ = x) for the row x …
    assert not any(minimiser(b, other) == x for b in noise)  # … and 0 for its neighbour: δ ≥ 0.6 at every ε
    # A smooth loss (logistic, |ℓ'| ≤ 1, 0 ≤ ℓ'' ≤ β = ¼, n = 1, two labels): the density ratio is bounded.
    epsilon, beta, theta = 1.0, 0.25, np.linspace(-20, 20, 4001)
    slope, curve = (lambda y: -y / (1 + np.exp(y * theta))), 1 / (2 + 2 * np.cosh(theta))
    density = [np.exp(-epsilon / 2 * np.abs(slope(y) + lam * theta)) * (curve + lam) for y in (1, -1)]
    assert np.abs(np.log(density[0] / density[1])).max() <= epsilon + math.log1p(beta / lam)


def test_kamath_algorithm_3_privacy_argument():
    from dp_accounting import dp_event, privacy_accountant
    from dp_accounting.rdp import rdp_privacy_accountant

    delta = 1e-5
    row, other = np.array([1.0, 0.0]), np.array([-1.0, 0.0])
    for n, epsilon in [(100, 1.0), (1000, 1.0), (100, 5.0)]:
        assert np.linalg.norm(n * row - n * other) == 2 * n  # replace-one sensitivity 2nL, not nL
        assert n**2 * delta / 2 > delta  # the per-step failures alone exceed δ
        step = epsilon / (n * math.sqrt(math.log(1 / delta)))
        composed = math.sqrt(2 * n**2 * math.log(1 / delta)) * step + n**2 * step * math.expm1(step)
        assert composed > 1.4 * epsilon  # advanced composition of the printed step: √2·ε and more
        sigma = math.sqrt(32 * math.log(n / delta) * math.log(1 / delta)) / epsilon  # in units of nL
        relation = privacy_accountant.NeighboringRelation.REPLACE_ONE
        accountant = rdp_privacy_accountant.RdpAccountant(neighboring_relation=relation)
        event = dp_event.SampledWithoutReplacementDpEvent(n, 1, dp_event.GaussianDpEvent(sigma / 2))
        accountant.compose(event, n**2)
        assert accountant.get_epsilon(delta) < epsilon / 3  # the printed σ is nevertheless ample


def test_kamath_utility_drops_the_non_private_term():
    n, d, delta = 100, 10, 1e-5
    ratios = []
    for epsilon in (1.0, 1e2, 1e4):
        sigma = math.sqrt(32 * math.log(n / delta) * math.log(1 / delta)) * n / epsilon
        exact = math.sqrt(n**2 + d * sigma**2) / math.sqrt(n**2)  # L = ‖C‖ = 1
        private = math.sqrt(d * math.log(1 / delta)) / epsilon
        ratios.append((exact / private, exact / (1 + private)))
    assert ratios[2][0] > 40 * ratios[0][0]
    assert max(r[1] for r in ratios) <= math.sqrt(32 * math.log(n / delta))  # within Õ(1)


def test_kamath_losses_lost_their_minus_signs():
    x, theta, y = np.array([2.0]), np.array([1.0]), 1.0
    assert max(0.0, 1 - y * (x @ theta)) == 0  # right side, margin 2: no loss
    assert max(0.0, 1 * y * (x @ theta)) == 2  # as printed, the loss grows with the margin
    assert (x @ theta - 2.0) ** 2 == 0  # a perfect fit
    assert ((x @ theta) * 2.0) ** 2 == 16
