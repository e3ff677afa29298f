"""The privacy profile of the Gaussian mechanism, its inverses, and the calibration of its noise.

With μ = sensitivity/σ, a = ε/μ − μ/2 and b = ε/μ + μ/2 (Balle & Wang 2018, Theorem 8; Dong, Roth & Su
2022, Corollary 1)::

    δ(ε) = Φ(−a) − e^ε Φ(−b) = φ(a)·(R(a) − R(b)),        R(x) = Φ(−x)/φ(x)

The second form, by φ(a) = e^ε φ(b), neither overflows nor underflows; where μ is small and R(a) − R(b)
would cancel, it is the integral over [a, b] of −R'(x) = 1 − x·R(x). Everything is done for ln δ, so δ
may be 1e-300. Every inverse is rounded to the side on which the claim holds.
"""

import math
from functools import cache

import numpy as np

from untold.core import Floats
from untold.errors import between, positive
from untold.private.amounts import nudged

__all__ = ["gaussian_sigma", "gdp_epsilon", "gdp_mu", "log_delta"]

ROUNDING = 2e-13
"""ln δ is computed to this times 1 + |ln δ|; targets are lowered by it."""


@cache
def _nodes() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(20)


def _mills(x: float) -> float:
    """R(x) for x ≥ 0, without underflow."""
    from scipy.special import erfcx

    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def _mills_drop(a: float, mu: float) -> float:
    """R(a) − R(a + μ), positive; for a ≥ 0, or a ≥ −½ and μ < 1."""
    from scipy.special import erfcx

    if mu >= 1:
        return mu / a / (a + mu) if a > 1e4 else _mills(a) - _mills(a + mu)
    nodes, weights = _nodes()  # Gauss–Legendre: the integrand is smooth and positive
    x = a + mu / 2 * (1 + nodes)
    y = 1 / np.maximum(x, 50) ** 2
    far = y * (1 - y * (3 - y * (15 - y * (105 - y * 945))))
    near = 1 - x * math.sqrt(math.pi / 2) * erfcx(np.minimum(x, 50) / math.sqrt(2))
    return float(weights @ np.where(x > 50, far, near)) * mu / 2


def log_delta(epsilon: float, mu: float) -> float:
    """ln δ(ε) of μ-Gaussian differential privacy.

    >>> round(math.exp(log_delta(1.0, 1.0)), 6)
    0.126937
    """
    if mu == 0 or epsilon > 1e100 * mu:
        return -math.inf
    if math.isinf(mu):
        return 0.0
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    log_density = -a * a / 2 - math.log(2 * math.pi) / 2
    if a < 0 and mu >= 1:
        return math.log(math.erfc(a / math.sqrt(2)) / 2 - math.exp(log_density) * _mills(b))
    return log_density + math.log(_mills_drop(a, mu))


def _target(delta: float) -> float:
    return math.log(delta) - ROUNDING * (1 - math.log(delta))


def gdp_mu(epsilon: float, delta: float) -> float:
    """The largest μ, rounded down, whose Gaussian differential privacy implies (ε, δ).

    >>> round(gdp_mu(1.0, 1e-6), 6)
    0.236704
    """
    from scipy.optimize import brentq

    epsilon = between("epsilon", epsilon, 0, math.inf, of="gdp_mu", ends="[)")
    delta = between("delta", delta, 0, 1, of="gdp_mu", ends="()")
    target, tail = _target(delta), math.sqrt(-2 * math.log(delta))
    # Both are below the root: δ ≤ exp(−a²/2), and δ ≤ δ(0) ≤ μ/√(2π).
    low = 0.999 * max(
        2 * epsilon / (tail + math.sqrt(tail * tail + 2 * epsilon)), math.sqrt(2 * math.pi) * delta
    )
    high = 2 * low
    while log_delta(epsilon, high) < target:
        low, high = high, 2 * high
    mu = float(brentq(lambda m: log_delta(epsilon, m) - target, low, high, xtol=low * 1e-15, rtol=1e-15))
    return nudged(mu, -1e-15 * mu, lambda m: log_delta(epsilon, m) <= target)


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The smallest standard deviation, rounded up, that makes Gaussian noise (ε, δ)-private.

    `sensitivity` is the largest L2 distance between two neighbours' exact answers: 2·bound where
    one vector of norm ≤ bound is replaced, bound where it is added or removed.

    Balle & Wang (2018), Algorithm 1, solved in log space.

    >>> round(gaussian_sigma(1.0, 1e-6), 5)
    4.22468
    """
    sensitivity = positive("sensitivity", sensitivity, of="gaussian_sigma")
    return math.nextafter(sensitivity / gdp_mu(epsilon, delta), math.inf)


def gdp_epsilon(mu: float, delta: float) -> float:
    """The smallest ε, rounded up, at which μ-Gaussian differential privacy is (ε, δ).

    >>> round(gdp_epsilon(1.0, 1e-6), 5)
    4.88655
    """
    from scipy.optimize import brentq

    if delta == 0:
        return 0.0 if mu == 0 else math.inf
    if delta == 1 or mu == 0:
        return 0.0
    if math.isinf(mu):
        return math.inf
    target = _target(delta)
    if log_delta(0.0, mu) <= target:
        return 0.0
    high = mu * mu / 2 + mu * math.sqrt(-2 * target)
    epsilon = float(brentq(lambda e: log_delta(e, mu) - target, 0.0, high, xtol=high * 1e-15, rtol=1e-15))
    return nudged(epsilon, 1e-15 * high, lambda e: log_delta(e, mu) <= target)
