"""The magnitude integral, which every learner that bets on one dimension evaluates; never NaN.

    J(x, y, a) = ∫₋ₐᵃ β e^{βx − β²y} dβ = a²·∫₋₁¹ u e^{Xu − Yu²} du,    X = a|x|, Y = a²y  (odd in x)

As printed (a difference of error functions times an exponential) it is NaN after some hundred rounds.
Here it is c·e^M with c computed without cancellation, in one of three forms. With s = √Y, h = X/2s the
place of the peak, in units of its width, and z = s − h its distance from the end of the interval:

* z ≥ 6.5, the peak lies inside: c = √π·h/Y, M = h²; what lies beyond the ends is below 1e-16 of it.
* else with erfcx(t) = e^{t²}erfc(t), exact: the printed form, divided by the largest of its exponentials.
* Y < ¼ or X > 32Y, where those terms cancel: from the end u = 1, by an asymptotic series or a
quadrature rule.

Accuracy: relative error ≤ 1e-13 + 1e-15·M. The logarithm is finite wherever X ≥ 1e-150 and Y ≤ 1e100, and
nothing is NaN for a in [1e-100, 1e100].
"""

import math

import numpy as np

from untold.compiled import bitwise
from untold.core import Floats

__all__ = ["LARGEST", "bet", "bets", "erfcx", "log_magnitude", "magnitude", "unscaled"]

LARGEST = 1e150
"""No bet is larger: its square is still a float."""
ROOT_PI = math.sqrt(math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(28)
HALF_RULE = tuple((float(u), float(w)) for u, w in zip(_NODES, _WEIGHTS, strict=True) if u > 0)

# (1 + 2t)·erfcx(t) as a polynomial in q = (t − 3.5)/(t + 3.5): powers q²² … q⁰, and q²³ … q¹
EVEN = (
    6.040390099342991e-11, 6.651894382376532e-10, -8.611571571113718e-09, -4.309237398316666e-08,
    2.3273309537791425e-06, -4.2781739959539994e-05, 0.0005643842668705102, -0.004215019879774186,
    -0.04882332583088402, -0.11508959816003075, -0.010555596332221669, 1.2423492448711544,
)  # fmt: skip
ODD = (
    -1.1656687889203665e-09, 1.3624442778701048e-08, -9.64004253144383e-08, 6.014823849950426e-07,
    -3.814012584490695e-06, 2.4260300984917994e-05, -0.00012151212091980101, -0.0003022679534333239,
    0.019099330953271165, 0.08798315382403678, 0.09751909515328706, -0.1400091801376197,
)  # fmt: skip


@bitwise
def erfcx(t: float) -> float:
    """e^{t²}·erfc(t) for t ≥ 0.

    >>> round(erfcx(1.0), 12)
    0.427583576156
    """
    q = (t - 3.5) / (t + 3.5)
    r = q * q
    even, odd = EVEN[0], ODD[0]
    for k in range(1, len(EVEN)):
        even = even * r + EVEN[k]
        odd = odd * r + ODD[k]
    return (even + q * odd) / (1.0 + 2.0 * t)


@bitwise
def _edge(X: float, Y: float) -> float:
    """∫₋₁¹ u e^{Xu − Yu²} du / e^{X−Y}, for Y < ¼ or X > 32Y."""
    D = X - 2.0 * Y
    c = 0.0
    if D >= 32.0:
        r = Y / D / D
        term = 1.0 / D
        for k in range(10):
            c += term * (1.0 - (2 * k + 1) / D)
            term = -term * (2 * (2 * k + 1)) * r
        return c
    for u, weight in HALF_RULE:
        c -= weight * u * math.exp((u - 1.0) * (X - Y * (1.0 + u))) * math.expm1(-2.0 * X * u)
    return c


@bitwise
def unscaled(X: float, Y: float) -> tuple[float, float]:
    """(M, c) with ∫₋₁¹ u e^{Xu − Yu²} du = c·e^M; (0, 0) where it is nothing, or Y > 1e300.

    >>> M, c = unscaled(0.4, 0.2)
    >>> round(c * math.exp(M), 12)
    0.24056156493
    """
    if not Y <= 1e300 or not X > 0.0:
        return 0.0, 0.0
    X = min(X, 1e150)
    if Y < 0.25 or X > 32.0 * Y:
        return X - Y, _edge(X, Y)
    s = math.sqrt(Y)
    h = X / (2.0 * s)
    z = s - h
    if z >= 6.5:
        return h * h, ROOT_PI * h / Y
    rise = -math.expm1(-2.0 * X)
    far = (1.0 - rise) * erfcx(s + h)
    if z <= 0.0:
        return X - Y, (ROOT_PI * h * (erfcx(-z) - far) - rise) / (2.0 * Y)
    e = math.exp(-z * z)
    return h * h, (ROOT_PI * h * (2.0 - e * (erfcx(z) + far)) - e * rise) / (2.0 * Y)


@bitwise
def _times(M: float, factor: float) -> float:
    """factor·e^M without overflow on the way."""
    half = math.exp(min(0.5 * M, 700.0))
    return half * factor * half


@bitwise
def magnitude(x: float, y: float, a: float) -> float:
    """J(x, y, a); ±inf where it is beyond floats.

    >>> round(magnitude(3.0, 10.0, 0.2), 12), magnitude(1e6, 1.0, 1.0)
    (0.013095971459, inf)
    """
    M, c = unscaled(a * abs(x), a * a * y)
    return math.copysign(_times(M, c * a * a), x)


@bitwise
def log_magnitude(x: float, y: float, a: float) -> tuple[float, float]:
    """(sign, ln|J|), (0, −inf) where J is 0.

    >>> sign, log = log_magnitude(-1e6, 1.0, 1.0)
    >>> sign, round(log, 3)
    (-1.0, 999985.184)
    """
    M, c = unscaled(a * abs(x), a * a * y)
    if c <= 0.0:
        return 0.0, -math.inf
    return math.copysign(1.0, x), M + math.log(c) + 2.0 * math.log(a)


@bitwise
def bet(x: float, y: float, a: float, scale: float) -> float:
    """scale·J(x, y, a), at most LARGEST in size."""
    M, c = unscaled(a * abs(x), a * a * y)
    return math.copysign(min(_times(M, c * a * a * scale), LARGEST), x)


@bitwise
def bets(x: Floats, y: Floats, a: float, scale: float, out: Floats) -> None:
    """`bet` of each coordinate."""
    for j in range(out.size):
        out[j] = bet(x[j], y[j], a, scale)
