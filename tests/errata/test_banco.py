"""Jun and Orabona (2019), BANCO: the printed formulas of docs/errata.md fail, the corrected ones hold.

Nothing here imports the library, so the page stands on its own. Unless a test says otherwise it is exact
(closed form, quadrature or enumeration) and cannot raise a false alarm.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import gammaln

NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)


def banco_integral(x, y, a, sign=-1):
    """Return (1/2a)·∫ β·exp(βx + sign·β²y) dβ over [−a, a], by quadrature."""
    return mp.quad(lambda b: b * mp.exp(b * x + sign * b * b * y), mp.linspace(-a, a, 9)) / (2 * a)


def norm_laplace_mgf(beta, d, scale):
    """Return E exp(β⟨ξ, a⟩) for ξ of density ∝ exp(−‖z‖/scale): Gamma radius times uniform direction."""

    def radius(r):
        return r ** (d - 1) * mp.exp(-r / scale) / (mp.gamma(d) * mp.mpf(scale) ** d)

    return mp.quad(
        lambda r: radius(r) * mp.hyp0f1(mp.mpf(d) / 2, (beta * r) ** 2 / 4), [0, 10, 40, 200, mp.inf]
    )


def test_banco_magnitude_lost_its_minus_sign():
    for x, y, a in [(3, 10, 0.25), (-7, 50, 0.6838), (40, 200, 0.25), (0.5, 2, 0.1)]:
        x, y, a = map(mp.mpf, (x, y, a))  # noqa: PLW2901
        plus, minus = (2 * a * y + x) / (2 * mp.sqrt(y)), (2 * a * y - x) / (2 * mp.sqrt(y))
        bracket = mp.sqrt(mp.pi) * x * mp.exp(plus**2) * (mp.erf(plus) + mp.erf(minus))
        closed = (
            mp.exp(-a * (a * y + x)) * (bracket + 2 * mp.sqrt(y) * (1 - mp.exp(2 * a * x))) / (8 * a * y**1.5)
        )
        assert float(closed) == pytest.approx(float(banco_integral(x, y, a)), rel=1e-10)
        assert float(closed) != pytest.approx(float(banco_integral(x, y, a, sign=+1)), rel=0.02)


def test_banco_direction_lost_its_plus_sign():
    rounds, target = 400, np.array([0.6, 0.8])

    def regret(sign):
        q, squares, total = np.zeros(2), 0.0, 0.0
        for _ in range(rounds):
            total += target @ (target - q)  # the report is the constant negative subgradient `target`
            squares += target @ target
            q = q + sign * target / math.sqrt(squares)
            q = q / max(1.0, np.linalg.norm(q))
        return total

    assert regret(+1) <= 3 * math.sqrt(rounds)
    assert regret(-1) > 1.9 * rounds


def test_banco_magnitude_wants_the_one_dimensional_proxy():
    epsilon, d = 1.0, 1
    beta = epsilon / 4
    moment = norm_laplace_mgf(beta, d, 2 / epsilon)
    total_variance = 4 * (d * d + d) / epsilon**2  # what (A2) calls σ², and Algorithm 1 prints
    proxy = 16 * math.log(4 / 3) * (d + 1) / epsilon**2  # 4.603·(d + 1)/ε²
    assert moment > 1.03 * math.exp(beta**2 * total_variance / 2)
    assert moment <= (1 + 1e-12) * math.exp(beta**2 * proxy / 2)


def test_norm_laplace_scale_b_is_inverted():
    epsilon, d = 1.0, 1
    beta = 0.6  # allowed by |β| ≤ 1/b when b = ε/4, since 1/b = 4
    tails = [
        quad(lambda z: math.exp(beta * z - abs(z) * epsilon / 2) * epsilon / 4, -50, r)[0]
        for r in (100, 200, 300)
    ]
    assert tails[0] > 1e3
    assert tails[1] > 1e3 * tails[0]
    assert tails[2] > 1e3 * tails[1]  # E exp(βξ) = ∞: no proxy exists there
    beta = epsilon / 4  # the end of the range when b = 4/ε
    assert norm_laplace_mgf(beta, d, 2 / epsilon) <= math.exp(beta**2 * 18 * d**2 / epsilon**2 / 2)


@pytest.mark.parametrize("d", [1, 2, 10, 50])
def test_norm_laplace_exact_one_dimensional_law(d):
    epsilon, bound = 1.5, 2.0
    scale, proxy = 2 * bound / epsilon, 16 * math.log(4 / 3) * (d + 1) * (bound / epsilon) ** 2
    for share in (0.1, 0.3, 0.5):  # β in units of ε/2G; the range |β| ≤ ε/4G ends at 0.5
        beta = share / scale
        law = (1 - share**2) ** (-(d + 1) / 2)
        assert float(norm_laplace_mgf(beta, d, scale)) == pytest.approx(law, rel=1e-9)
        assert law <= (1 + 1e-12) * math.exp(beta**2 * proxy / 2)
    assert law > math.exp(beta**2 * 0.999 * proxy / 2)  # the constant 16·ln(4/3) cannot be lowered
    assert (
        18 * d**2 * (bound / epsilon) ** 2 > 1.9 * d * proxy
    )  # the printed one: true, about 4d times too large


def test_norm_laplace_density_needs_the_bound():
    epsilon, bound = 0.7, 3.0
    far = np.array([50.0, 0.0])
    g, other = np.array([bound, 0.0]), np.array([-bound, 0.0])
    gap = np.linalg.norm(far - other) - np.linalg.norm(far - g)
    assert epsilon / 2 * gap == pytest.approx(epsilon * bound)  # printed: εG-private, not ε-private
    assert epsilon / (2 * bound) * gap == pytest.approx(epsilon)


def test_banco_magnitude_regret_is_mislabelled():
    def direction_regret(rounds):  # at u = 0, against the sign that hurts
        q, total = 0.0, 0.0
        for t in range(1, rounds + 1):
            g = -1.0 if q > 0 else 1.0
            total -= g * q
            q = max(-1.0, min(1.0, q + g / math.sqrt(t)))
        return total

    def magnitude_regret(rounds, a=0.6838):
        beta, x, total = a * NODES, 0.0, 0.0
        for t in range(1, rounds + 1):
            m = 0.0 if t == 1 else WEIGHTS @ (beta * np.exp(beta * x - beta**2 * (t - 1))) / 2
            s = -1.0 if m > 0 else 1.0
            total -= s * m
            x += s
        return total

    assert direction_regret(4000) > 1.8 * direction_regret(1000) > 20  # ∝ √T: no O(1) bound at u = 0
    assert magnitude_regret(4000) <= 1  # the printed right-hand side at u = 0 belongs to this one


def test_banco_rates_omit_the_noise_of_the_data():
    def floor(rounds):
        """Return the least worst-case excess of any learner on |w − x|, x = ±1, with exact reports."""
        delta, k = 1 / math.sqrt(rounds), np.arange(rounds + 1)
        up, down = (stats.binom.pmf(k, rounds, (1 + s * delta) / 2) for s in (1, -1))
        return delta * (1 - np.abs(up - down).sum() / 2) / 2

    def rate(rounds, epsilon, own):  # d = G = ‖w*‖ = 1
        log = math.sqrt(math.log1p(rounds * (own + 1 / epsilon**2)))
        return (own + 1 / epsilon) / math.sqrt(rounds) * log + 1 / rounds

    sizes = [10**2, 10**4, 10**6]
    printed = [floor(t) / rate(t, epsilon=t, own=0) for t in sizes]
    mended = [floor(t) / rate(t, epsilon=t, own=1) for t in sizes]
    assert printed[1] > 5 * printed[0]
    assert printed[2] > 5 * printed[1]  # no constant saves it
    assert max(mended) < 1


def test_banco_untuned_rate_drops_a_one():
    d, epsilon, rounds = 5, 0.5, 1000
    eta = epsilon / d / math.sqrt(rounds)
    for norm in (0.01, 1.0, 10.0):
        bound = norm**2 / (eta * rounds) + d**2 * eta / epsilon**2
        assert bound == pytest.approx(d / epsilon * (norm**2 + 1) / math.sqrt(rounds))
    # w* = 0 with R(w) = |w|, d = 1, two rounds: w₂ = −ηξ₁, so the excess is ηE|ξ|/2 > 0, where print says 0.
    eta = epsilon / math.sqrt(2)
    excess = eta * (2 / epsilon) / 2
    assert 0 < excess <= (0 + 1) / epsilon / math.sqrt(2)


def test_banco_fixed_step_bound_is_for_the_average():
    def last_value(rounds):  # Harvey, Liaw, Plan and Randhawa 2019, with a fixed step 1/√T
        j = np.arange(1, rounds)
        a, b = 1 / (8 * (rounds - j + 1)), 0.5
        return (a * (b - a * (rounds - 1 - j))).sum() / math.sqrt(rounds)

    rounds = 60  # the closed form against the method itself
    a = 1 / (8 * (rounds - np.arange(1, rounds + 1) + 1))
    slopes = np.tril(np.tile(a, (rounds, 1)), -1) - 0.5 * np.eye(rounds)
    assert np.linalg.norm(slopes, axis=1).max() <= 1
    x, mean = np.zeros(rounds), np.zeros(rounds)
    for t in range(rounds):
        values = slopes @ x
        assert values[t] == pytest.approx(values.max(), abs=1e-12)
        mean, last = mean + x / rounds, values.max()
        x = x - slopes[t] / math.sqrt(rounds)
    assert last == pytest.approx(last_value(rounds))
    # f* = min over the unit ball; the average obeys ‖w*‖²/(2ηT) + η/2 = 1/√T above it, the last is ∝ ln T.
    assert (slopes @ mean).max() <= 1 / math.sqrt(rounds)
    ratio = [last_value(t) * math.sqrt(t) for t in (10**2, 10**4, 10**6)]
    assert ratio[2] - ratio[1] == pytest.approx(ratio[1] - ratio[0], rel=0.02)
    assert ratio[1] - ratio[0] > 0.2


def test_banco_rate_is_improvable_at_the_same_epsilon():
    def hemisphere_mean(d):  # E u₁ for u uniform on the half sphere u₁ > 0
        def weight(t):
            return (1 - t * t) ** ((d - 3) / 2)

        return quad(lambda t: t * weight(t), 0, 1)[0] / quad(weight, 0, 1)[0]

    epsilon, gains = 1.0, []
    for d in (10, 100, 1000):
        radius = math.exp(gammaln((d + 1) / 2) - gammaln(d / 2)) * math.sqrt(math.pi) / math.tanh(epsilon / 2)
        p = math.exp(epsilon) / (1 + math.exp(epsilon))  # the side of g with probability p: ε-LDP at sight
        assert radius * (2 * p - 1) * hemisphere_mean(d) == pytest.approx(1)  # unbiased
        gains.append(4 * d * (d + 1) / epsilon**2 / (radius**2 - 1))
    assert gains[0] > 6
    assert gains[1] > 50
    assert gains[2] > 500
