"""The magnitude integral J(x, y, a) = ∫₋ₐᵃ β e^{βx − β²y} dβ against mpmath, at seeded points.

No test here can raise a false alarm. The reference is the printed closed form, with erfc where erf would
cancel, at a precision that is doubled until two evaluations agree; on 200 points it is itself checked
against the defining integral.
"""

import math

import mpmath as mp
import numpy as np
import pytest

from untold.learners.magnitude import (
    LARGEST,
    _edge,
    _times,
    bet,
    bets,
    erfcx,
    log_magnitude,
    magnitude,
    unscaled,
)
from untold.learners.priors import Conjugate

HUGE = 1.7976931348623157e308
HOSTILE = [0.0, -0.0, 5e-324, 1e-310, 1e-160, 1e-8, 1.0, 1e8, 1e160, 1e300, 1e308, HUGE, math.inf]


def closed_form(x, y, a):
    """J for x > 0 by its closed form at the current precision."""
    x, y, a = mp.mpf(x), mp.mpf(y), mp.mpf(a)
    X, Y = a * x, a * a * y
    s = mp.sqrt(Y)
    h = X / (2 * s)
    z, Z = s - h, s + h
    erfs = mp.erfc(-z) - mp.erfc(Z) if z < 0 else mp.erf(z) + mp.erf(Z)
    return a * a * (mp.sqrt(mp.pi) * h * mp.exp(h * h) * erfs - 2 * mp.exp(-Y) * mp.sinh(X)) / (2 * Y)


def log_j(x, y, a):
    """Return ln J for x > 0, to some 25 digits."""
    prec, last = 200, None
    while prec < 6401:
        with mp.workprec(prec):
            value = closed_form(x, y, a)
            log = mp.log(value) if value > 0 else None
            if log is not None and last is not None and abs(log - last) < mp.mpf(10) ** -25:
                return log
            last, prec = log, 2 * prec
    raise AssertionError((x, y, a))


def log_j_by_quadrature(x, y, a):
    """Return ln ∫₀ᵃ 2β·sinh(βx)·e^{−β²y} dβ, cut where the integrand rises and falls."""
    with mp.workdps(30):
        x, y, a = mp.mpf(x), mp.mpf(y), mp.mpf(a)
        peak = min(a, x / (2 * y))
        width = 1 / max(mp.sqrt(2 * y), x - 2 * y * peak, 1 / a)
        cuts = [peak + k * width for k in (-60, -30, -15, -8, -4, -2, -1, 0, 1, 2, 4, 8, 15, 30, 60)]
        cuts = [mp.mpf(0), *(c for c in cuts if 0 < c < a), a]
        top = peak * x - peak * peak * y

        def integrand(b):
            return b * mp.exp(b * x - b * b * y - top) * -mp.expm1(-2 * b * x)

        return top + mp.log(mp.quad(integrand, cuts))


def box(n, rng):
    x, y, a = rng.uniform(-8, 6, n), rng.uniform(-12, 12, n), rng.uniform(-6, 0, n)
    return np.stack([10.0**x * rng.choice([-1, 1], n), 10.0**y, 10.0**a], axis=1)


def learners(n, rng):
    y = 10.0 ** rng.uniform(-2, 8, n)
    return np.stack([2 * np.sqrt(y) * rng.uniform(0.01, 5, n), y, np.full(n, 0.2)], axis=1)


def boundaries(rng):
    """Return points a hair on either side of every change of form."""
    hairs = (-1e-3, -1e-9, -1e-14, 0.0, 1e-14, 1e-9, 1e-3)
    for hair in hairs:
        for scale in 10.0 ** rng.uniform(-3, 0, 12):  # a; X and Y are what counts
            for Y in 10.0 ** rng.uniform(-0.5, 5, 3):
                for z in (6.5, 0.0, 1e-8, -1e-8):
                    X = 2 * math.sqrt(Y) * (math.sqrt(Y) - z * (1 + hair) - (hair if z == 0 else 0))
                    yield X, Y, scale
                yield 32 * Y * (1 + hair), Y, scale
            for X in 10.0 ** rng.uniform(-6, 2, 3):
                yield X, 0.25 * (1 + hair), scale
            for Y in 10.0 ** rng.uniform(-9, 1, 3):
                yield 2 * Y + 32 * (1 + hair), Y, scale  # D = X − 2Y = 32


def points():
    rng = np.random.default_rng(20)
    edges = np.array([(X / a, Y / a / a, a) for X, Y, a in boundaries(rng) if X > 0])
    return np.concatenate([box(2200, rng), learners(800, rng), edges])


def test_magnitude_of_thousands_of_points():
    """Also the logarithm, the bet, and their signs. Worst seen: 0.4 of what is allowed."""
    states = points()
    assert len(states) >= 4000
    worst, overflows, forms = 0.0, 0, np.zeros(3, dtype=int)
    for x, y, a in states.tolist():
        exact = log_j(abs(x), y, a)
        X, Y = a * abs(x), a * a * y
        M = max(X - Y, x * x / (4 * y)) if X < 2 * Y else X - Y
        allowed = 1e-13 + 1e-15 * M
        assert allowed <= 1e-10 or M > 9e4
        forms[0 if Y < 0.25 or X > 32 * Y else 1 if math.sqrt(Y) - X / (2 * math.sqrt(Y)) >= 6.5 else 2] += 1

        sign, log = log_magnitude(x, y, a)
        assert sign == math.copysign(1.0, x)
        error = float(abs(mp.mpf(log) - exact))
        value = magnitude(x, y, a)
        assert math.copysign(1.0, value) == sign
        if exact < 709:
            ratio = mp.mpf(abs(value)) / mp.exp(exact) - 1
            worst = max(worst, float(abs(ratio)) / allowed)
            scaled = abs(bet(x, y, a, 0.5 / a))
            assert scaled == LARGEST or scaled == pytest.approx(abs(value) * 0.5 / a, rel=1e-15)
        elif exact > 710:
            overflows += 1
            assert abs(value) == math.inf
            assert abs(bet(x, y, a, 0.5 / a)) == LARGEST
        # a logarithm is a number of its own: it is rounded too
        worst = max(worst, error / (allowed + 4e-16 * abs(log)))
    assert worst <= 1
    assert overflows > 50
    assert forms.min() > 500


def test_reference_is_the_integral():
    """What the reference is: 200 points by mpmath's quadrature, equal to 1e-14."""
    rng = np.random.default_rng(21)
    states = np.concatenate([box(100, rng), learners(60, rng), points()[rng.integers(3000, 4000, 40)]])
    for x, y, a in states.tolist():
        assert abs(log_j(abs(x), y, a) - log_j_by_quadrature(abs(x), y, a)) < 1e-14


def test_erfcx():
    t = np.concatenate([np.linspace(0, 30, 3000), 10.0 ** np.linspace(-18, 9, 1000), [0.0, 5e-324, 3.5]])
    with mp.workdps(40):
        for v in map(float, t):
            series = (1 - mp.mpf(v) ** -2 / 2) / (v * mp.sqrt(mp.pi)) if v > 1e8 else 0
            exact = series or mp.exp(mp.mpf(v) ** 2) * mp.erfc(v)
            assert abs(mp.mpf(erfcx(v)) / exact - 1) < 2e-15
    assert erfcx(1e300) == pytest.approx(1e-300 / math.sqrt(math.pi))


def test_nothing_hostile_gives_nan():
    """For every a a randomiser's bound can lead to."""
    values = [*HOSTILE, *np.random.default_rng(22).uniform(-320, 308, 40).tolist()]
    values = HOSTILE + [10.0**v for v in values[len(HOSTILE) :]]
    for x in values:
        for y in values:
            for a in (1e-100, 1e-6, 0.2, 1.0, 1e6, 1e100):
                for signed in (x, -x):
                    value, played = magnitude(signed, y, a), bet(signed, y, a, 0.5 / a)
                    assert not math.isnan(value)
                    assert abs(played) <= LARGEST
                    assert np.signbit([value, played]).tolist() == [np.signbit(signed)] * 2
                    assert not any(map(math.isnan, log_magnitude(signed, y, a)))
                    if a * x >= 1e-150 and a * a * y <= 1e100:
                        assert math.isfinite(log_magnitude(signed, y, a)[1])
                M, c = unscaled(a * x, a * a * y)
                assert c >= 0
                assert math.isfinite(M)


def test_nan_is_not_a_bet():
    assert unscaled(math.nan, 1.0) == unscaled(1.0, math.nan) == (0.0, 0.0)
    assert bet(math.nan, 1.0, 0.2, 1.0) == 0 == bet(1.0, math.nan, 0.2, 1.0)
    assert log_magnitude(0.0, 1.0, 0.2) == (0.0, -math.inf)


def test_odd_to_the_bit():
    for x, y, a in points()[::7].tolist():
        assert magnitude(-x, y, a) == -magnitude(x, y, a)
        assert bet(-x, y, a, 3.0) == -bet(x, y, a, 3.0)


def test_rising_in_x():
    """ln J rises by ln(x'/x) or more: 1e-9 shows through errors of 1e-13, at changes of form too."""
    for x, y, a in points().tolist():
        if a * abs(x) * (1 + a * abs(x) / (1 + a * a * y)) < 1e4:
            logs = [log_magnitude(abs(x) * k, y, a)[1] for k in (1 - 1e-9, 1.0, 1 + 1e-9)]
            assert logs[0] < logs[1] < logs[2]


def test_bets_are_bet_of_each():
    x, y, _ = learners(500, np.random.default_rng(23)).T.copy()
    out = np.empty(500)
    bets(x, y, 0.2, 2.5, out)
    np.testing.assert_array_equal(out, [bet(u, v, 0.2, 2.5) for u, v in zip(x, y, strict=True)])


@pytest.mark.parametrize(("L", "B", "b", "C"), [(3, 10, 1, 0.2), (20, 50, 2, 0.2), (-4, 7, 5, 0.4)])
def test_equation_7_corrected(L, B, b, C):
    """docs/errata.md, van der Hoeven: the corrected closed form of the conjugate prior."""
    root = 2 * math.sqrt(B)
    up, down = (L + 2 * C * B) / root, (L - 2 * C * B) / root
    erfs = math.sqrt(b) * L * math.exp(up**2) * (math.erf(up) - math.erf(down))
    below = math.erf(C * math.sqrt(b)) * math.exp(C * (L + C * B)) * 4 * B**1.5
    printed = (erfs - math.sqrt(b / math.pi) * root * math.expm1(2 * C * L)) / below
    assert Conjugate(b=b).bet(L, B - b, C) == pytest.approx(printed, rel=1e-9)


def test_compiled_code_has_the_bits_of_its_python():
    """Every function of the module, so that a learner's points do not depend on where it runs."""
    hostile = [(x, y, 0.2) for x in (*HOSTILE, math.nan) for y in (*HOSTILE, math.nan)]
    for x, y, a in [*points()[::5].tolist(), *hostile]:
        X, Y = a * abs(x), a * a * y
        calls = [
            (magnitude, (x, y, a)),
            (log_magnitude, (x, y, a)),
            (bet, (x, y, a, 2.5)),
            (unscaled, (X, Y)),
        ]
        calls += [(_edge, (X, Y))] * (X < 1e150 and (Y < 0.25 or X > 32 * Y)) + [(erfcx, (X,))] * (X < 1e300)
        for compiled, args in calls:
            np.testing.assert_array_equal(compiled(*args), compiled.py_func(*args))
        M, c = unscaled(X, Y)
        assert _times(M, c) == _times.py_func(M, c)
    out = np.empty(800)
    x, y, _ = learners(800, np.random.default_rng(24)).T.copy()
    bets.py_func(x, y, 0.2, 2.5, out)
    np.testing.assert_array_equal(out, [bet(u, v, 0.2, 2.5) for u, v in zip(x, y, strict=True)])
