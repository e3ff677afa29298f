"""The error bounds of the compiled arithmetic, proven again by machine.

`Tracked` runs the very source of a kernel (numba keeps it as `py_func`) on pairs of a ball that holds every
value it can take and a bound on its rounding error, over pieces that cover the whole domain: each operation
adds what IEEE arithmetic may lose, u = 2⁻⁵³ of the result. That covers fused operations too.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_series, ctx

from untold.compiled import kernel
from untold.private.sampling import additive, elementary, latitude, tail

U = arb(2) ** -53


class Tracked:
    """A ball holding the exact value, and a bound on |computed − exact|."""

    def __init__(self, ball, error=0):
        self.ball, self.error = arb(ball), arb(error).abs_upper()

    def _rounded(self, ball, error):
        return Tracked(ball, error + U * (abs(ball).abs_upper() + error))

    def _other(self, x):
        return x if isinstance(x, Tracked) else Tracked(arb(x))

    def __add__(self, x):
        x = self._other(x)
        return self._rounded(self.ball + x.ball, self.error + x.error)

    def __sub__(self, x):
        return self + Tracked(-self._other(x).ball, self._other(x).error)

    def __rsub__(self, x):
        return self._other(x) - self

    def __mul__(self, x):
        x = self._other(x)
        lost = self.error * abs(x.ball).abs_upper() + x.error * (abs(self.ball).abs_upper() + self.error)
        return self._rounded(self.ball * x.ball, lost)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, x):
        x = self._other(x)
        least = abs(x.ball).abs_lower() - x.error
        assert least > 0
        quotient = self.ball / x.ball
        lost = (self.error + abs(quotient).abs_upper() * x.error) / least
        return self._rounded(quotient, lost)


def pieces(low, high, count):
    for k in range(count):
        a = arb(low) + (arb(high) - low) * k / count
        b = arb(low) + (arb(high) - low) * (k + 1) / count
        yield a.union(b)


@pytest.fixture(autouse=True)
def precise():
    with ctx.workprec(240):
        yield


def coefficient_slack(length, terms, z):
    """How far the series with float coefficients, cut off, can be from the true one: Σ|c̃ − c|zʲ."""
    slack = arb(0)
    for j in range(60):
        used = arb(float(terms(j))) if j < length else arb(0)
        slack += abs(used - arb(terms(j).numerator) / terms(j).denominator) * z**j
    return slack.abs_upper()


SERIES = {
    "artanh": (elementary.artanh_series, lambda j: Fraction(1, 2 * j + 1), 12, "0.02945"),
    "cos": (elementary.cos_series, lambda j: Fraction((-1) ** j, math.factorial(2 * j)), 9, "0.6169"),
    "sin": (elementary.sin_series, lambda j: Fraction((-1) ** j, math.factorial(2 * j + 1)), 9, "0.6169"),
}


def series_error(name):
    """sup |computed − true| of a series over its domain, its argument off by a relative 3u."""
    function, terms, length, top = SERIES[name]
    top = arb(top)
    worst = arb(0)
    for z in pieces(0, top, 200):
        computed = function.py_func(Tracked(z, 3 * U * z))
        worst = worst.max(computed.error)
    return (worst + coefficient_slack(length, terms, top)).abs_upper()


def test_series_are_within_three_units():
    assert series_error("artanh") < 1.2 * U
    assert series_error("cos") < 2.5 * U
    assert series_error("sin") < 1.5 * U


def test_minus_log_is_within_16_units_relative():
    """Over every binade k and f ∈ [√½, √2): (error of k·ln2 + 2r·series) / |value| ≤ 16u."""
    series = series_error("artanh")
    root = arb(2).sqrt()
    for f in pieces(1 / root, root, 400):
        r = (f - 1) / (f + 1)
        relative = (2 * U + series + U) * (1 + 8 * U)  # of 2r·series: r is two roundings, the product one
        log_f = f.log()
        for k in range(-60, 1):
            if k == 0 and not (f < 1):
                continue  # m < 1
            exact = abs(k * arb(2).log() + log_f)
            smaller = abs(log_f).abs_upper()
            lost = -k * arb(2).log() * 2 * U + smaller * relative
            if k == 0:
                assert relative + U < 16 * U  # the sum is exact, and the bound relative to the value itself
            else:
                assert (lost + U * exact.abs_upper() + U * lost) / exact.abs_lower() < 16 * U
        assert abs(r).abs_upper() < arb("0.1717")


def test_cos_sin_are_within_4_units():
    """φ = fl(π/4·x) is off by ≤ 2u relative, z = φ² by 3u more; |cos'| and |sin'| ≤ 1."""
    off = 2 * U * arb.pi() / 4
    assert off + series_error("cos") < 4 * U
    assert off + series_error("sin") * arb.pi() / 4 + U < 4 * U


def test_a_normal_pair_is_within_its_stated_error():
    """The budget of proofs/noise.md, §3, in units of u·r: 8√2 + √2 + 13 + 2√2 ≤ 64 − 8."""
    trig = 2 * 4 + 2  # cos ∓ sin, and its rounding
    angle = math.sqrt(2) * math.pi / 4 * 2  # half a step of the angle is 2⁻⁵³ of x, and x is doubled
    budget = (8 + 1 + 1) * math.sqrt(2) + trig + angle + 1
    assert budget < 64 - 4 * math.sqrt(2)  # what scaling and adding cost later
    assert additive.NORMAL_SLOPE == 64 * 2.0**-53
    assert 1.5 * math.sqrt(2) * 2.0**-53 < additive.WIDTH
    assert additive.LOG_WIDTH > 1.5 * 2.0**-53
    assert additive.LOG_SLOPE / 1.5 > 16 * 2.0**-53


@kernel
def _evaluate(words, m, log, x, c, s):
    for i in range(words.size):
        m[i] = elementary.midpoint(words[i])
        log[i] = elementary.minus_log(m[i])
        x[i] = 2.0 * m[i] - 1.0
        c[i], s[i] = elementary.cos_sin(x[i])


def test_the_compiled_functions_keep_the_bounds():
    """The compiled code itself, on random words and on the edges of every binade."""
    words = np.random.default_rng(1).integers(0, 2**64, 3000, dtype=np.uint64)
    edges = [(1 << b) + o for b in range(13, 64) for o in (-(1 << 12), 0, 1 << 12)]
    words = np.concatenate([words, np.array([*edges, 0, 2**64 - 1], dtype=np.uint64)])
    m, log, x, c, s = (np.empty(words.size) for _ in range(5))
    _evaluate(words, m, log, x, c, s)
    for i in range(words.size):
        assert Fraction(float(m[i])) == Fraction(2 * (int(words[i]) >> 12) + 1, 2**53)
        exact = -arb(float(m[i])).log()
        assert abs(arb(float(log[i])) / exact - 1) < 16 * U
        phi = arb.pi() / 4 * arb(float(x[i]))
        assert abs(arb(float(c[i])) - phi.cos()) < 4 * U
        assert abs(arb(float(s[i])) - phi.sin()) < 4 * U


def taylor_bound(function, low, high, count, order=26):
    """sup |function| over [low, high] by Taylor models: series at the middle, remainder over the piece."""
    worst = arb(0)
    for piece in pieces(low, high, count):
        middle, radius = arb(piece.mid()), arb(piece.rad())
        near = function(arb_series([middle, 1], prec=order))
        wide = function(arb_series([piece, 1], prec=order + 1))
        bound = sum((abs(near[k]) * radius**k for k in range(order)), abs(wide[order]) * radius**order)
        worst = worst.max(bound.abs_upper())
    return worst


def upper(t):
    return (t / arb(2).sqrt()).erfc() / 2


def test_quantile_rationals_are_close_everywhere():
    """AS 241 against Φ̄ over its whole domain, then divided by the density: an error in t."""

    def central(q):
        return upper(tail.central_ratio.py_func(q)) - arb(0.5) + q

    def tail_of(ratio, shift):
        return lambda r: upper(ratio.py_func(r - shift)) * (r * r).exp() - 1

    least_density = (-(arb("1.45") ** 2) / 2).exp() / (2 * arb.pi()).sqrt()
    assert taylor_bound(central, 0, 0.425, 14) / least_density < arb(2) ** -45
    near = taylor_bound(tail_of(tail.tail_ratio, arb(1.6)), 1.6, 5.0, 160)
    far = taylor_bound(tail_of(tail.far_tail_ratio, arb(5)), 5.0, 12.0, 300)
    hazard = arb("1.8")  # φ/Φ̄ ≥ t ≥ 1.43 and more: at p = 0.075 it is 1.887
    assert near / hazard < arb(2) ** -45
    assert far / hazard < arb(2) ** -45


def test_quantile_rationals_lose_little_in_floats():
    def r_of(piece):
        return Tracked(piece, piece * 10 * U)  # r = √(−ln p): half of 16u, and a rounding

    for q in pieces(0, 0.425, 60):
        assert tail.central_ratio.py_func(Tracked(q, U)).error < arb(2) ** -45
    for r in pieces(1.6, 5.0, 100):
        assert tail.tail_ratio.py_func(r_of(r) - arb(1.6)).error < arb(2) ** -42
    for r in pieces(5.0, 12.0, 100):
        assert tail.far_tail_ratio.py_func(r_of(r) - arb(5)).error < arb(2) ** -42
    assert tail.QUANTILE_ERROR == 2.0**-41  # the sum of the two


def test_trig_error_of_a_latitude():
    """cos 2φ = c² − s² and sin 2φ = 2cs, and v known to half a step of its bin, widths ≤ 1."""
    doubled = 4 * 4 + 4
    position = math.pi * 2  # (edge + width·V) is off by ≤ 2⁻⁵³ and two roundings
    assert (doubled + position + math.pi * 3) * 2.0**-53 < latitude.TRIG_ERROR
