"""Zhang and Venkitasubramaniam (2018): the printed formulas of docs/errata.md fail, the corrected ones hold.

Nothing here imports the library, so the page stands on its own. Unless a test says otherwise it is exact
(closed form, quadrature or enumeration) and cannot raise a false alarm.
"""

import math

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.integrate import quad


def test_zhang_regret_bounds_are_expectations():
    bound, lipschitz, sigma, rounds = 1.0, 1.0, 0.3, 2  # d = 1, fₜ(w) = Lw on [−B, B]
    claim = bound * math.sqrt((lipschitz**2 + sigma**2) * rounds)
    eta = bound**2 / claim

    def regret(noise):  # w₁ = 0, w₂ = clip(−η(L + noise)), competitor −B
        return lipschitz * (2 * bound + max(-bound, min(bound, -eta * (lipschitz + noise))))

    critical = optimize.brentq(lambda v: regret(v) - claim, -2, 2)
    assert stats.norm.cdf(critical, scale=sigma) > 0.15  # one run in six breaks the printed bound
    assert quad(lambda v: regret(v) * stats.norm.pdf(v, scale=sigma), -3, 3)[0] <= claim


def test_zhang_theorem_4_divides_by_delta():
    def bound(rounds, by_delta):  # B = L = F = d = σ = 1
        eta, delta = rounds**-0.75, rounds**-0.25
        value = 1 / (delta if by_delta else eta)
        return 1 / (2 * eta) + eta / 2 * rounds * ((value + 1) ** 2 + 1) + 3 * rounds * delta

    def slope(kind):
        return math.log10(bound(1e30, kind) / bound(1e28, kind)) / 2

    assert slope(False) == pytest.approx(1.75, abs=0.01)  # printed F/η: worse than linear
    assert slope(True) == pytest.approx(0.75, abs=0.01)


def test_zhang_bandit_bound_wants_the_absolute_loss():
    size, delta, sigma = 1.0, 0.5, 1.0  # f ∈ {0, −1}, both constant: L = 0, max f = 0, d = 1
    centre = size / delta

    def zero(z):
        return stats.norm.pdf(z, scale=sigma)

    def one(z):
        return (stats.norm.pdf(z, centre, sigma) + stats.norm.pdf(z, -centre, sigma)) / 2

    def information(z):
        mix = (zero(z) + one(z)) / 2
        return (zero(z) * math.log(zero(z) / mix) + one(z) * math.log(one(z) / mix)) / 2

    leaked = quad(information, -12, 12)[0]

    def capacity(top):
        return math.log1p((top / delta) ** 2 / sigma**2) / 2

    assert leaked > 0.1 > capacity(0.0) == 0
    assert leaked < capacity(size)


def test_zhang_bandit_point_must_stay_in_the_set():
    """Two hundred runs; the bound lies over 50 standard errors above the mean regret: no false alarm."""
    radius, delta, sigma, rounds, d, runs = 1.0, 0.3, 0.5, 60, 2, 200
    centre = np.array([0.9, 0.0])  # f(w) = ‖w − centre‖ on the unit ball: L = 1, F = 1.9, best value 0

    def play(shrink):
        rng = np.random.default_rng(1)
        inner, top = radius * (1 - shrink * delta / radius), 1.9
        second = (d * (top / delta + (1 - shrink))) ** 2 + d * sigma**2
        eta, escaped, regret = radius / math.sqrt(second * rounds), 0, np.zeros(runs)
        theta = np.zeros((runs, d))
        for _ in range(rounds):
            w = eta * theta
            w *= np.minimum(1, inner / np.maximum(np.linalg.norm(w, axis=1), 1e-300))[:, None]
            e = rng.standard_normal((runs, d))
            e /= np.linalg.norm(e, axis=1, keepdims=True)
            point = w + delta * e
            escaped += (np.linalg.norm(point, axis=1) > radius + 1e-12).sum()
            loss = np.linalg.norm(point - centre, axis=1)
            regret += loss
            theta -= d / delta * loss[:, None] * e + sigma * rng.standard_normal((runs, d))
        claim = inner**2 / (2 * eta) + eta / 2 * rounds * second + (3 + shrink) * rounds * delta
        return escaped, regret, claim

    assert play(0)[0] > 0
    escaped, regret, claim = play(1)
    assert escaped == 0
    assert regret.mean() + 50 * regret.std() / math.sqrt(runs) < claim
