"""Rényi divergences in closed form, and what a bound on them says about (ε, δ).

D_α(P‖Q) ≤ v at one order α > 1 gives, for every ε (Canonne, Kamath & Steinke 2020, Proposition 12; the
same bound as Balle et al. 2020, Theorem 21)::

    δ = exp((α−1)(v−ε)) · (1−1/α)^(α−1) / α

and at any order ≥ 1 it gives δ = √(1−e^−v) even at ε = 0 (Bretagnolle & Huber 1979). A curve is the
minimum over its orders. For zCDP, v = αρ for all α, the best order solves one monotone equation:
ln(1/δ) = (α−1)²ρ + ln α, and then ε = (2α−1)ρ + ln(1−1/α); `proofs/accounting.md` derives both.
"""

import math

import numpy as np

from untold.core import Floats

__all__ = [
    "ORDERS",
    "curve_delta",
    "curve_epsilon",
    "log_cosh",
    "pure_curve",
    "pure_delta",
    "pure_epsilon",
    "zcdp_delta",
    "zcdp_epsilon",
]

ORDERS = (*(1 + k / 10 for k in range(1, 100)), *map(float, range(11, 64)), 128.0, 256.0, 512.0, 1024.0)
"""Where curves are kept unless said otherwise; the orders dp-accounting uses."""


def log_cosh(x: Floats) -> Floats:
    """ln cosh x for x ≥ 0, without overflow and without cancellation near 0."""
    small = np.log1p(2 * np.sinh(np.minimum(x, 1) / 2) ** 2)
    return np.where(x < 1, small, x + np.log1p(np.exp(-2 * x)) - math.log(2))


def pure_curve(epsilon: float, orders: Floats) -> Floats:
    """The largest Rényi divergence of any ε-DP mechanism: that of binary randomised response.

    D_α = (ln cosh((2α−1)ε/2) − ln cosh(ε/2))/(α−1); ε·tanh(ε/2) at α = 1 and ε at α = ∞.

    >>> pure_curve(1.0, np.array([1.0, 2.0, np.inf])).round(4).tolist()
    [0.4621, 0.7353, 1.0]
    """
    half = epsilon / 2
    if math.isinf(epsilon):
        return np.full(len(orders), np.inf)
    inner = (orders > 1) & np.isfinite(orders)
    alpha = np.where(inner, orders, 2.0)
    curve = (log_cosh((2 * alpha - 1) * half) - log_cosh(np.array(half))) / (alpha - 1)
    return np.where(inner, curve, np.where(orders == 1, epsilon * math.tanh(half), epsilon))


def pure_delta(level: float, epsilon: float) -> float:
    """δ(ε) of `level`-DP: (e^level − e^ε)/(1 + e^level), that of binary randomised response."""
    if epsilon >= level:
        return 0.0
    return -math.expm1(epsilon - level) / (1 + math.exp(-level))


def pure_epsilon(level: float, delta: float) -> float:
    """The inverse of `pure_delta` in ε, at least 0."""
    spared = delta * (1 + math.exp(-level))
    return max(0.0, level + math.log1p(-spared)) if spared < 1 else 0.0


def _total_variation(values: Floats) -> float:
    return math.sqrt(-math.expm1(-float(np.min(values))))


def curve_epsilon(orders: Floats, values: Floats, delta: float) -> float:
    """The smallest ε a Rényi curve gives at δ.

    >>> curve_epsilon(np.array([2.0, 10.0]), np.array([0.1, 0.5]), 1e-6).__round__(4)
    1.6739
    """
    if bool(np.any(values == 0)) or delta == 1:
        return 0.0
    limit = float(np.min(values[np.isinf(orders)], initial=math.inf))
    if delta == 0:
        return limit
    if _total_variation(values) <= delta:
        return 0.0
    inner = (orders > 1) & np.isfinite(orders)
    alpha, value = orders[inner], values[inner]
    epsilon = value + np.log1p(-1 / alpha) - (math.log(delta) + np.log(alpha)) / (alpha - 1)
    best = float(np.min(epsilon, initial=math.inf))
    return max(0.0, min(best, pure_epsilon(limit, delta)))


def curve_delta(orders: Floats, values: Floats, epsilon: float) -> float:
    """The smallest δ a Rényi curve gives at ε."""
    if bool(np.any(values == 0)):
        return 0.0
    limit = float(np.min(values[np.isinf(orders)], initial=math.inf))
    best = min(_total_variation(values), pure_delta(limit, epsilon) if limit < math.inf else 1.0)
    inner = (orders > 1) & np.isfinite(orders) & np.isfinite(values)
    if math.isinf(epsilon):
        return 0.0 if bool(np.any(inner)) else best
    alpha, value = orders[inner], values[inner]
    log_delta = (alpha - 1) * (value - epsilon + np.log1p(-1 / alpha)) - np.log(alpha)
    return min(best, math.exp(min(0.0, float(np.min(log_delta, initial=math.inf)))))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The smallest ε that ρ-zCDP gives at δ through any Rényi order.

    >>> round(zcdp_epsilon(0.5, 1e-6), 4)
    5.2215
    """
    from scipy.optimize import brentq

    if rho == 0 or delta == 1:
        return 0.0
    if delta == 0 or math.isinf(rho):
        return math.inf
    if delta >= _zcdp_total_variation(rho):
        return 0.0
    log_inverse = -math.log(delta)
    high = min(math.sqrt(log_inverse / rho), math.expm1(min(log_inverse, 700.0)))
    b = float(
        brentq(lambda b: b * b * rho + math.log1p(b) - log_inverse, 0.0, 1.001 * high, xtol=high * 1e-15)
    )
    # Any order gives a true bound, so the root need not be exact.
    return max(0.0, (1 + b) * rho + (log_inverse + b * math.log(b) - (1 + b) * math.log1p(b)) / b)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The smallest δ that ρ-zCDP gives at ε through any Rényi order."""
    from scipy.optimize import brentq

    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return 1.0
    if math.isinf(epsilon):
        return 0.0

    def slope(log_b: float) -> float:
        b = math.exp(log_b)
        return (1 + 2 * b) * rho + log_b - math.log1p(b) - epsilon

    low, high = min(0.0, epsilon - 3 * rho - 1), math.log(max(1.0, (epsilon + 1) / (2 * rho)))
    b = math.exp(brentq(slope, low, high, xtol=1e-15)) if low > -700 else 0.0
    log_delta = b * ((1 + b) * rho - epsilon + math.log(b) - math.log1p(b)) - math.log1p(b) if b > 0 else 0.0
    return min(_zcdp_total_variation(rho), math.exp(min(0.0, log_delta)))


def _zcdp_total_variation(rho: float) -> float:
    """δ(0) ≤ min(√(1−e^−ρ), √(ρ/2)): Bretagnolle & Huber, Pinsker; ρ bounds the KL divergence."""
    return min(math.sqrt(-math.expm1(-rho)), math.sqrt(rho / 2))
