"""Every loss, one row of `CASES` each, against calculus, references and the promise of equal bits.

A new loss is one row: the loss, its formula in mpmath (None where w is not a line), and the y's and w for
which w is known to be the minimum of an intercept-only fit.
"""

import math
from itertools import pairwise, product
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import huber as scipy_huber
from sklearn.metrics import hinge_loss, log_loss, mean_absolute_error, mean_pinball_loss, mean_squared_error

from untold.convex import losses
from untold.convex.losses import (
    LOSSES,
    Absolute,
    GeometricMedian,
    Hinge,
    Huber,
    HuberisedHinge,
    Logistic,
    Mean,
    Multinomial,
    Quantile,
    Squared,
)
from untold.convex.rows import ByRow, Linear
from untold.errors import DataError, ParameterError


class Case(NamedTuple):
    loss: ByRow
    formula: Any
    y: list[float]
    minimum: list[float] | float


def chapelle(h):
    return lambda z, y: 0 if y * z > 1 + h else 1 - y * z if y * z < 1 - h else (1 + h - y * z) ** 2 / (4 * h)


def huber(d):
    return lambda z, y: (z - y) ** 2 / 2 if abs(z - y) <= d else d * abs(z - y) - mp.mpf(d) ** 2 / 2


def pinball(tau):
    return lambda z, y: tau * (y - z) if y >= z else (1 - mp.mpf(tau)) * (z - y)


SIGNS, REALS = [1, 1, 1, -1], [-1.0, 0.0, 0.5, 2.0, 6.0]

CASES = [
    Case(Squared(), lambda z, y: (z - y) ** 2 / 2, REALS, 1.5),
    Case(Logistic(), lambda z, y: mp.log1p(mp.exp(-y * z)), SIGNS, math.log(3)),
    Case(Multinomial(classes=3), None, [0, 1, 1, 2, 2, 2], [0.0, math.log(2), math.log(3)]),
    Case(Multinomial(classes=2), None, [0, 0, 0, 1], [math.log(3), 0.0]),
    Case(Hinge(), lambda z, y: max(0, 1 - y * z), SIGNS, 1.0),
    Case(HuberisedHinge(), chapelle(0.5), SIGNS, 1.5 - 1 / 3),
    Case(HuberisedHinge(width=2.0), chapelle(2.0), SIGNS, 3 - 4 / 3),
    Case(Huber(), huber(1.0), REALS, 0.75),
    Case(Huber(delta=100.0), huber(100.0), REALS, 1.5),
    Case(Absolute(), lambda z, y: abs(z - y), REALS, 0.5),
    Case(Quantile(), pinball(0.5), REALS, 0.5),
    Case(Quantile(level=0.9), pinball(0.9), REALS, 6.0),
    Case(GeometricMedian(), None, [], 0.5),
    Case(Mean(), None, [], 1.5),
]

every_loss = pytest.mark.parametrize("loss", [case.loss for case in CASES], ids=repr)
every_linear = pytest.mark.parametrize(
    "loss", [c.loss for c in CASES if isinstance(c.loss, Linear)], ids=repr
)
with_a_formula = [case for case in CASES if case.formula]

# halves: margins of halves are exact, so kinks are hit
HALVES = np.arange(-6, 7) / 2


def shape(loss: ByRow, d: int) -> tuple[int, ...]:
    return (loss.classes, d) if isinstance(loss, Multinomial) else (d,)


def draw_labels(loss: ByRow, rng, n: int):
    classes = loss.classes if isinstance(loss, Multinomial) else 1
    choices = {"signs": [-1.0, 1.0], "reals": HALVES, "classes": np.arange(classes), "none": [0.0]}
    return rng.choice(np.asarray(choices[loss.labels], dtype=float), size=n)


def problem(loss: ByRow, n: int, d: int, seed: int, grid: bool = False):
    rng = np.random.default_rng(seed)
    draw = (lambda size: rng.choice(HALVES, size=size)) if grid else rng.standard_normal
    return draw(shape(loss, d)), draw((n, d)), draw_labels(loss, rng, n)


def test_every_loss_is_listed_and_tested():
    kinds = {type(loss) for loss in LOSSES}
    assert kinds == {getattr(losses, name) for name in losses.__all__ if name != "LOSSES"}
    assert kinds == {type(case.loss) for case in CASES}


# Calculus


@every_loss
def test_the_gradient_is_that_of_finite_differences(loss):
    w, X, y = problem(loss, n=20, d=4, seed=1)
    gradient, h = loss.subgradient(w, X, y), 1e-6
    for index in np.ndindex(w.shape):
        step = np.zeros(w.shape)
        step[index] = h
        slope = (loss.value(w + step, X, y) - loss.value(w - step, X, y)) / (2 * h)
        np.testing.assert_allclose(gradient[(slice(None), *index)], slope, rtol=2e-6, atol=2e-8)


@pytest.mark.parametrize("case", with_a_formula, ids=lambda case: repr(case.loss))
def test_linear_losses_agree_with_mpmath(case):
    labels = [-1.0, 1.0] if case.loss.labels == "signs" else [-2.0, 0.25]
    for z, y in product([-1e6, -800.0, -40.3, -1.7, -1e-9, 0.3, 0.9, 12.6, 750.0, 1e6], labels):
        with mp.workdps(400):
            value = float(case.formula(mp.mpf(z), mp.mpf(y)))
            slope = float(mp.diff(lambda t, y=y: case.formula(t, mp.mpf(y)), mp.mpf(z), h=mp.mpf(10) ** -60))
        # a residual near 0 is a rounded difference: half an ulp of 1 is its due
        assert float(case.loss.value([z], [1.0], y)) == pytest.approx(
            value, rel=2e-15, abs=2e-16 * (value > 1e-9)
        )
        assert case.loss.subgradient([z], [1.0], y)[0] == pytest.approx(slope, rel=1e-15, abs=3e-16)


@pytest.mark.parametrize(
    "z", [[0.3, -1.2, 2.0], [900.0, -900.0, 899.0], [0.0, 0.0, 0.0], [-40.0, 5.0, -45.0]]
)
@pytest.mark.parametrize("k", [0, 1, 2])
def test_multinomial_agrees_with_mpmath(z, k):
    loss, w = Multinomial(classes=3), np.array(z)[:, None]
    with mp.workdps(1000):
        total = mp.fsum(mp.exp(t) for t in z)
        value = float(mp.log(total) - z[k])
        residual = [float(mp.exp(t) / total - (j == k)) for j, t in enumerate(z)]
    assert float(loss.value(w, [1.0], k)) == pytest.approx(value, rel=2e-15)
    np.testing.assert_allclose(loss.subgradient(w, [1.0], k)[:, 0], residual, rtol=2e-15, atol=3e-16)


@pytest.mark.parametrize("seed", range(5))
def test_losses_of_points_agree_with_mpmath(seed):
    w, X, _ = problem(Mean(), n=6, d=5, seed=seed)
    for x in X * 10.0**seed:
        with mp.workdps(50):
            squared = mp.fsum((mp.mpf(a) - mp.mpf(b)) ** 2 for a, b in zip(w, x, strict=True))
            unit = [float((mp.mpf(a) - mp.mpf(b)) / mp.sqrt(squared)) for a, b in zip(w, x, strict=True)]
        assert float(Mean().value(w, x)) == pytest.approx(float(squared), rel=1e-15)
        assert float(GeometricMedian().value(w, x)) == pytest.approx(float(mp.sqrt(squared)), rel=1e-15)
        np.testing.assert_allclose(GeometricMedian().subgradient(w, x), unit, rtol=1e-15)
        np.testing.assert_array_equal(Mean().subgradient(w, x), 2 * (w - x))


@every_loss
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), grid=st.booleans())
def test_the_subgradient_lies_below_and_the_loss_is_convex(loss, seed, grid):
    w, X, y = problem(loss, n=8, d=3, seed=seed, grid=grid)
    v = problem(loss, n=8, d=3, seed=seed + 1, grid=grid)[0]
    X[0] = w if loss.labels == "none" else X[0]
    at_w, at_v, middle = (loss.value(point, X, y) for point in (w, v, (w + v) / 2))
    slack = 1e-14 * (1 + np.abs(at_w) + np.abs(at_v))
    tangent = at_w + (loss.subgradient(w, X, y) * (v - w)).reshape(len(X), -1).sum(axis=1)
    assert (at_v >= tangent - slack).all()
    assert (middle <= (at_w + at_v) / 2 + slack).all()
    assert (at_w >= 0).all()


@every_linear
def test_at_a_kink_the_slope_is_the_least_there_is(loss):
    y = np.array([-1.0, 1.0]) if loss.labels == "signs" else HALVES
    z, y = np.meshgrid(HALVES, y)
    left, right = loss.slope(z - 1e-12, y), loss.slope(z + 1e-12, y)
    assert (left <= right).all()
    np.testing.assert_allclose(loss.slope(z, y), np.clip(0.0, left, right), atol=1e-10)


def test_at_its_row_the_geometric_median_stands_still():
    row = np.array([0.1, -1e300, 5e-324])
    assert GeometricMedian().value(row, row) == 0
    assert not GeometricMedian().subgradient(row, row).any()


# Constants: they hold, and nothing smaller would


def line(loss: ByRow, radius: float, at):
    """A row of norm `radius`, and the points whose margin (or distance) is t, for each t in `at`."""
    x = radius * np.array([0.6, -0.8])
    if isinstance(loss, Multinomial):  # the first two classes differ by t, the others are out of the race
        away = np.full(loss.classes - 2, -60.0)
        return x, [np.outer([t / 2, -t / 2, *away], x / radius**2) for t in at]
    direction = x / radius if loss.labels == "none" else x / radius**2
    return x, [t * direction + (x if loss.labels == "none" else 0) for t in at]


@every_loss
@pytest.mark.parametrize("radius", [0.25, 3.0])
def test_the_lipschitz_constant_holds_and_is_attained(loss, radius):
    x, points = line(loss, radius, [-1e3, -1.0, 0.0, 1.0, 1e3])
    y = 1.0
    norms = [np.linalg.norm(loss.subgradient(w, x, y)) for w in points]
    bound = loss.lipschitz(radius)
    assert max(norms) <= bound * (1 + 1e-15)
    assert max(norms) >= (0.999 * bound if bound < math.inf else 200 * radius)


@every_loss
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_the_constants_hold_at_random(loss, seed, scale):
    w, X, y = problem(loss, n=8, d=3, seed=seed)
    w, radius = w * scale, float(np.linalg.norm(X, axis=1).max())
    v = w + problem(loss, n=1, d=3, seed=seed + 1)[0]
    g, change = loss.subgradient(w, X, y), loss.subgradient(w, X, y) - loss.subgradient(v, X, y)
    axes = tuple(range(1, g.ndim))
    assert (np.sqrt((g**2).sum(axis=axes)) <= loss.lipschitz(radius) * (1 + 1e-12)).all()
    most = loss.smoothness(radius) * np.linalg.norm(v - w)
    assert (np.sqrt((change**2).sum(axis=axes)) <= most * (1 + 1e-12) + 1e-12 * scale).all()


@every_loss
@pytest.mark.parametrize("radius", [0.25, 3.0])
def test_the_smoothness_constant_holds_and_is_attained(loss, radius):
    x, points = line(loss, radius, np.linspace(-4.0, 4.0, 6401))
    g = [loss.subgradient(w, x, 1.0) for w in points]
    ratios = [
        np.linalg.norm(a - b) / np.linalg.norm(w - v)
        for (a, b), (w, v) in zip(pairwise(g), pairwise(points), strict=True)
    ]
    bound = loss.smoothness(radius)
    assert max(ratios) <= bound * (1 + 1e-9)
    assert max(ratios) >= (0.999 * bound if bound < math.inf else 300 * min(radius, 1.0) ** 2)


def test_constants_of_extreme_rows_are_never_nan():
    for loss, radius in product(LOSSES, [5e-324, 1e-200, 1e200, math.inf]):
        assert loss.lipschitz(radius) >= 0
        assert loss.smoothness(radius) >= 0


# Fits and references


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.loss))
def test_an_intercept_alone_is_fitted_where_theory_says(case):
    rows = np.ones((len(case.y), 1)) if case.y else np.array(REALS)[:, None]
    w = np.asarray(case.minimum, dtype=float).reshape(shape(case.loss, 1))
    least = case.loss.value(w, rows, case.y).sum()
    for index, step in product(np.ndindex(w.shape), [-2.0, -0.1, -1e-3, 1e-3, 0.1, 2.0]):
        moved = w.copy()
        moved[index] += step
        assert case.loss.value(moved, rows, case.y).sum() >= least - 1e-14
    if case.loss.smoothness(1.0) < math.inf:
        np.testing.assert_allclose(case.loss.subgradient(w, rows, case.y).sum(axis=0), 0, atol=1e-14)


def test_values_agree_with_scikit_learn_and_scipy():
    rng = np.random.default_rng(5)
    w, X = rng.standard_normal(4), rng.standard_normal((50, 4))
    z, signs, reals = X @ w, rng.choice([-1.0, 1.0], 50), rng.standard_normal(50)
    table = [
        (Logistic(), signs, log_loss(signs, 1 / (1 + np.exp(-z)))),
        (Hinge(), signs, hinge_loss(signs, z)),
        (Squared(), reals, mean_squared_error(reals, z) / 2),
        (Absolute(), reals, mean_absolute_error(reals, z)),
        (Quantile(level=0.3), reals, mean_pinball_loss(reals, z, alpha=0.3)),
        (Huber(delta=0.7), reals, scipy_huber(0.7, z - reals).mean()),
    ]
    for loss, y, reference in table:
        assert loss.value(w, X, y).mean() == pytest.approx(reference, rel=1e-13), loss


def test_multinomial_agrees_with_scikit_learn_and_with_logistic():
    rng = np.random.default_rng(6)
    w, X, y = rng.standard_normal((3, 4)), rng.standard_normal((50, 4)), rng.integers(0, 3, 50)
    p = np.exp(X @ w.T)
    p /= p.sum(axis=1, keepdims=True)
    value = Multinomial(classes=3).value(w, X, y)
    assert value.mean() == pytest.approx(log_loss(y, p), rel=1e-13)
    two, sign = y % 2, np.where(y % 2, 1.0, -1.0)
    np.testing.assert_allclose(
        Multinomial(classes=2).value(w[:2], X, two), Logistic().value(w[1] - w[0], X, sign), rtol=1e-12
    )


def test_the_huberised_hinge_exceeds_the_hinge_by_at_most_a_quarter_of_its_width():
    z = np.linspace(-3, 4, 701)[:, None]
    for h in (1e-3, 0.5, 2.0):
        gap = HuberisedHinge(width=h).value([1.0], z, np.ones(701)) - Hinge().value([1.0], z, np.ones(701))
        assert gap.min() >= -1e-15
        assert gap.max() == pytest.approx(h / 4)


def test_a_label_that_is_no_class_is_a_class_of_margin_zero():
    loss, w, x = Multinomial(classes=3), np.array([[1.0], [2.0], [3.0]]), [1.0]
    for y in (-1, 3, 0.5, math.nan):
        assert loss.value(w, x, y) == pytest.approx(math.log(sum(map(math.exp, [1, 2, 3]))))
        assert loss.subgradient(w, x, y).sum() == pytest.approx(1.0)


# Rows alone and rows together


def strided(X):
    spread = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan)
    spread[::2, ::3] = X
    return spread[::2, ::3]


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": strided,
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "foreign": lambda X: X.astype(X.dtype.newbyteorder()),
    "unaligned": lambda X: (
        np.frombuffer(b"." + X.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(X.shape)
    ),
}


def bits(loss, w, X, y):
    return loss.value(w, X, y).tobytes(), loss.subgradient(w, X, y).tobytes()


@every_loss
@pytest.mark.parametrize("grid", [False, True], ids=["random", "kinks"])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 1), (1, 9), (33, 3), (9, 17), (5, 130), (4, 1031)])
def test_a_row_alone_has_the_bits_it_has_in_any_batch(loss, n, d, grid):
    w, X, y = problem(loss, n, d, seed=n * d, grid=grid)
    rows = [bits(loss, w, X[i], y[i]) for i in range(n)]
    together = tuple(b"".join(part) for part in zip(*rows, strict=True))
    for layout in LAYOUTS.values():
        batch = layout(X)
        assert bits(loss, w, batch, y) == together
        assert [bits(loss, w, batch[i], y[i]) for i in range(n)] == rows
    assert bits(loss, strided(np.atleast_2d(w)).reshape(w.shape), X, y) == together


@every_loss
def test_rows_permuted_or_repeated_permute_or_repeat_the_answers(loss):
    w, X, y = problem(loss, n=12, d=5, seed=3)
    order = np.random.default_rng(4).integers(0, 12, size=40)
    assert bits(loss, w, X[order], y[order]) == tuple(
        part[order].tobytes() for part in (loss.value(w, X, y), loss.subgradient(w, X, y))
    )


@every_loss
def test_shapes_and_types(loss):
    w, X, y = problem(loss, n=6, d=4, seed=8, grid=True)
    for rows, labels, leading in ((X, y, (6,)), (X[0], y[0], ()), (X[:0], y[:0], (0,))):
        value, subgradient = loss.value(w, rows, labels), loss.subgradient(w, rows, labels)
        assert value.shape == leading
        assert subgradient.shape == leading + w.shape
        assert value.dtype == subgradient.dtype == np.float64
    whole = [(2 * part).astype(int) for part in (w, X)]
    for kind in (np.float32, np.int8, object, bool):
        cast = [part.astype(kind) for part in whole]
        assert bits(loss, *cast, y) == bits(loss, *[part.astype(float) for part in cast], y)
    assert bits(loss, whole[0].tolist(), whole[1].tolist(), y.tolist()) == bits(loss, *whole, y)


@every_loss
def test_nothing_given_is_written_to(loss):
    w, X, y = problem(loss, n=3, d=2, seed=9)
    for part in (w, X, y):
        part.flags.writeable = False
    kept = [part.copy() for part in (w, X, y)]
    for answer in (loss.value(w, X, y), loss.subgradient(w, X, y)):
        answer[...] = 7.0
    for part, before in zip((w, X, y), kept, strict=True):
        np.testing.assert_array_equal(part, before)


def test_losses_of_points_need_no_labels():
    for loss in (GeometricMedian(), Mean()):
        assert bits(loss, [1.0, 2.0], [[0.0, 0.0]], None) == bits(loss, [1.0, 2.0], [[0.0, 0.0]], "anything")


# Extremes

FAR = [0.0, 5e-324, 1e-308, 1e-160, 0.5, 1.0, 1e150, 1e300, 1.7976931348623157e308]


@every_loss
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_finite_input_gives_finite_output(loss, data):
    entry = st.tuples(st.sampled_from(FAR), st.sampled_from([-1.0, 1.0])).map(math.prod)
    size = math.prod(shape(loss, 3))
    w = np.array(data.draw(st.lists(entry, min_size=size, max_size=size))).reshape(shape(loss, 3))
    x = np.array(data.draw(st.lists(entry, min_size=3, max_size=3)))
    y = data.draw(entry) if loss.labels == "reals" else 1.0
    value, g = loss.value(w, x, y), loss.subgradient(w, x, y)
    assert np.isfinite(value)
    assert value >= 0
    assert np.isfinite(g).all()
    assert bits(loss, w, np.stack([x, x]), [y, y]) == (2 * value.tobytes(), 2 * g.tobytes())


@every_linear
def test_far_margins_meet_their_asymptote(loss):
    for z in (1e300, -1e300):
        assert loss.subgradient([z], [1.0], 1.0)[0] == pytest.approx(
            math.copysign(min(loss.steepest, 1e300), z) if loss.labels == "reals" else -(z < 0), rel=0.9
        )


def test_a_margin_that_overflows_on_its_way_is_still_right():
    assert Absolute().value([1e308, 1e308, -1.5e308], [1.0, 1.0, 1.0], 0.0) == pytest.approx(5e307)
    assert Squared().subgradient([1.7e308, 0.0], [1.0, 0.0], -1e308)[1] == 0.0
    assert Hinge().value([1e200, -1e200], [1e200, 1e200], 1.0) == 1.0
    assert Logistic().value([1e200, 1e200], [-1e200, -1.0], 1.0) == np.finfo(float).max
    assert GeometricMedian().value([3e-320, 4e-320], [0.0, 0.0]) == pytest.approx(5e-320, rel=1e-3)
    np.testing.assert_allclose(GeometricMedian().subgradient([3e300, 4e300], [0.0, 0.0]), [0.6, 0.8])


@every_loss
def test_nan_is_passed_on_in_silence(loss):
    w, X, y = problem(loss, n=2, d=3, seed=0)
    X[0, 1] = math.nan
    assert np.isnan(loss.value(w, X, y)).tolist() == [True, False]
    assert np.isfinite(loss.subgradient(w, X, y)[1]).all()


# What is refused


@pytest.mark.parametrize(
    ("make", "start"),
    [
        (lambda: HuberisedHinge(width=0), "`width` of HuberisedHinge must be a finite number > 0. Got 0."),
        (lambda: HuberisedHinge(width=math.inf), "`width` of HuberisedHinge must be"),
        (lambda: Huber(delta=-1), "`delta` of Huber must be a finite number > 0. Got -1."),
        (lambda: Huber(delta="1"), "`delta` of Huber must be"),
        (lambda: Quantile(level=1), "`level` of Quantile must be a number in (0, 1). Got 1."),
        (lambda: Quantile(level=math.nan), "`level` of Quantile must be"),
        (lambda: Multinomial(classes=1), "`classes` of Multinomial must be a whole number >= 2. Got 1."),
        (lambda: Multinomial(classes=2.5), "`classes` of Multinomial must be"),
        (lambda: Hinge().lipschitz(0), "`row_norm` of Hinge must be a number > 0. Got 0."),
        (lambda: Hinge().smoothness(-1), "`row_norm` of Hinge must be"),
        (lambda: Multinomial(classes=2).lipschitz(math.nan), "`row_norm` of Multinomial must be"),
        (lambda: Multinomial(classes=2).smoothness(True), "`row_norm` of Multinomial must be"),
    ],
)
def test_bad_settings_are_refused_in_one_form_of_words(make, start):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value).startswith(start)


@pytest.mark.parametrize(
    ("loss", "w", "X", "y", "message"),
    [
        (Hinge(), [[1.0]], [[1.0]], [1.0], "`w` of Hinge must be of shape (d). Got shape (1, 1)."),
        (Hinge(), [1.0, 2.0], [[1.0]], [1.0], "`X` of Hinge must be one row of length 2 or a matrix"),
        (Hinge(), [1.0], [[[1.0]]], [1.0], "`X` of Hinge must be"),
        (Hinge(), [1.0], 1.0, 1.0, "`X` of Hinge must be"),
        (Hinge(), [1.0], [[1.0]], 1.0, "`y` of Hinge must be one label a row, of shape (1,). Got shape ()."),
        (Hinge(), [1.0], [[1.0], [2.0]], [1.0], "`y` of Hinge must be"),
        (Hinge(), [1.0], [1.0], [1.0], "`y` of Hinge must be"),
        (Hinge(), [1.0], [1.0], None, "`y` of Hinge must be an array of numbers."),
        (Hinge(), [1.0], [["secret"]], [1.0], "`X` of Hinge must be an array of numbers."),
        (Hinge(), [1.0], [[1.0], [1.0, 2.0]], [1.0], "`X` of Hinge must be an array of numbers."),
        (Hinge(), [1.0], [[10**400]], [1.0], "`X` of Hinge must be an array of numbers."),
        (Mean(), 1.0, [1.0], None, "`w` of Mean must be of shape (d). Got shape ()."),
        (
            Multinomial(classes=3),
            [1.0],
            [1.0],
            0,
            "`w` of Multinomial must be of shape (3, d). Got shape (1,).",
        ),
        (Multinomial(classes=3), [[1.0], [2.0]], [1.0], 0, "`w` of Multinomial must be"),
    ],
)
def test_data_of_the_wrong_shape_is_refused_without_a_word_on_its_values(loss, w, X, y, message):
    for method in (loss.value, loss.subgradient):
        with pytest.raises(DataError) as caught:
            method(w, X, y)
        assert str(caught.value).startswith(message)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None
