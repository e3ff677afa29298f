"""Every set, one row of `SETS` each, against what defines a projection, references, and equal bits.

A new set is one row: the set, and points of it for a given dimension, drawn with no help from `project`.
Corners come first, as it is there that a point of a set is furthest.
"""

import math
import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from untold.convex import domains
from untold.convex.domains import Box, Everywhere, L1Ball, L2Ball, LInfBall, Simplex
from untold.errors import DataError, ParameterError

D = 4
RNG = np.random.default_rng(11)
SIGNS = np.array(list(product([-1.0, 1.0], repeat=D)))
AXES = np.vstack([np.eye(D), -np.eye(D)])
SHARES = RNG.dirichlet(np.full(D, 0.4), size=60)
INSIDE = RNG.uniform(-1.0, 1.0, size=(60, D))
DIRECTIONS = INSIDE / np.linalg.norm(INSIDE, axis=1, keepdims=True)
LOW, HIGH = np.array([-5.0, 0.0, 2.0, -3.0]), np.array([1.0, 0.5, 2.0, 7.0])

SETS = [
    (Everywhere(), 10.0 * INSIDE),
    (L2Ball(1.0), np.vstack([AXES, DIRECTIONS * (1 - 1e-15), 0.3 * DIRECTIONS])),
    (L2Ball(7.3), 7.3 * np.vstack([AXES, DIRECTIONS * (1 - 1e-15)])),
    (L1Ball(1.0), np.vstack([AXES, SHARES * np.sign(INSIDE)])),
    (L1Ball(0.35), 0.35 * np.vstack([AXES, SHARES * np.sign(INSIDE)])),
    (LInfBall(2.5), 2.5 * np.vstack([SIGNS, INSIDE])),
    (Box(-1, 2), 0.5 + 1.5 * np.vstack([SIGNS, INSIDE])),
    (Box(LOW, HIGH), (LOW + HIGH) / 2 + (HIGH - LOW) / 2 * np.vstack([SIGNS, INSIDE])),
    (Simplex(), np.vstack([np.eye(D), SHARES])),
    (Simplex(total=40.0), 40.0 * np.vstack([np.eye(D), SHARES])),
]
BALLS = [L2Ball, L1Ball, LInfBall, Simplex]

every_set = pytest.mark.parametrize(
    ("domain", "points"), [pytest.param(*row, id=repr(row[0]).split("],")[0]) for row in SETS]
)
FAR = [0.0, 5e-324, 1e-310, 1e-160, 1e-16, 0.5, 1.0, 1.0 + 2**-52, 3.0, 1e17, 1e160, 1.7976931348623157e308]
entry = st.one_of(
    st.tuples(st.sampled_from(FAR), st.sampled_from([-1.0, 1.0])).map(math.prod),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-5, 5),
)
four = st.lists(entry, min_size=D, max_size=D).map(np.array)
few = st.lists(st.floats(-20, 20), min_size=D, max_size=D).map(np.array)


def size(v) -> float:
    return max(1.0, float(np.abs(v).max()))


def test_every_set_is_tested():
    assert {type(domain).__name__ for domain, _ in SETS} == set(domains.__all__)


# What defines a projection


@every_set
@settings(max_examples=60, deadline=None)
@given(w=few)
def test_no_point_of_the_set_lies_on_the_side_of_w(domain, points, w):
    p = domain.project(w)
    assert ((points - p) @ (w - p)).max() <= 1e-13 * size(w) * size(points)


@every_set
@settings(max_examples=150, deadline=None)
@given(w=four)
def test_a_projection_is_inside_and_stays_where_it_is(domain, points, w):
    p = domain.project(w)
    assert p.dtype == np.float64
    assert p.shape == w.shape
    assert np.isfinite(p).all()
    assert domain.contains(p, tolerance=0.0)
    assert domain.project(p).tobytes() == p.tobytes()


@pytest.mark.parametrize("make", BALLS, ids=lambda make: make.__name__)
@settings(max_examples=150, deadline=None)
@given(w=st.lists(entry, min_size=1, max_size=9).map(np.array), radius=st.floats(1e-290, 1.7e308))
def test_so_it_is_for_every_radius_and_dimension(make, w, radius):
    domain = make(radius)
    p = domain.project(w)
    assert np.isfinite(p).all()
    assert domain.contains(p, tolerance=0.0)
    assert domain.project(p).tobytes() == p.tobytes()


@pytest.mark.parametrize("make", [L2Ball, L1Ball, LInfBall], ids=lambda make: make.__name__)
@settings(max_examples=100, deadline=None)
@given(w=four, ulps=st.integers(1, 40))
def test_and_for_balls_of_subnormal_radius(make, w, ulps):
    domain = make(ulps * 5e-324)
    p = domain.project(w)
    assert domain.contains(p, tolerance=0.0)
    assert domain.project(p).tobytes() == p.tobytes()


@every_set
def test_points_of_the_set_are_kept(domain, points):
    for v in points:
        assert domain.contains(v)
        assert np.abs(domain.project(v) - v).max() <= 1e-14 * size(v)


@every_set
@settings(max_examples=60, deadline=None)
@given(w=few, v=few)
def test_no_two_points_are_pushed_apart(domain, points, w, v):
    apart = np.linalg.norm(domain.project(w) - domain.project(v))
    assert apart <= np.linalg.norm(w - v) + 1e-13 * size(w) * size(points)


# References


def solver(constraints):
    return lambda w: (
        minimize(
            lambda v: ((v - w) ** 2).sum(),
            np.full(D, 0.1),
            jac=lambda v: 2 * (v - w),
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 300},
            **constraints,
        ).x
    )


@pytest.mark.parametrize(
    ("domain", "constraints"),
    [
        (L2Ball(1.0), {"constraints": {"type": "ineq", "fun": lambda v: 1 - v @ v}}),
        (L1Ball(1.0), {"constraints": {"type": "ineq", "fun": lambda v: 1 - SIGNS @ v}}),
        (LInfBall(1.0), {"bounds": [(-1, 1)] * D}),
        (Box(-1, 2), {"bounds": [(-1, 2)] * D}),
        (Simplex(), {"bounds": [(0, 1)] * D, "constraints": {"type": "eq", "fun": lambda v: v.sum() - 1}}),
    ],
    ids=["l2", "l1", "linf", "box", "simplex"],
)
def test_it_is_what_a_solver_finds(domain, constraints):
    solve = solver(constraints)
    for w in 2.0 * INSIDE[:8]:
        np.testing.assert_allclose(domain.project(w), solve(w), atol=2e-6)


def exact_simplex(w, total):
    """In fractions: the one support whose threshold leaves it positive and all else not."""
    exact = sorted((Fraction(x) for x in w), reverse=True)
    for k in range(len(exact), 0, -1):
        threshold = (sum(exact[:k]) - Fraction(total)) / k
        if exact[k - 1] > threshold:
            return [float(max(Fraction(x) - threshold, 0)) for x in w]
    raise AssertionError


@settings(max_examples=200, deadline=None)
@given(w=st.lists(entry, min_size=1, max_size=8), total=st.floats(1e-300, 1e308))
def test_the_simplex_and_the_l1_ball_agree_with_exact_fractions(w, total):
    expected = np.array(exact_simplex(w, total))
    np.testing.assert_allclose(Simplex(total).project(w), expected, rtol=0, atol=1e-15 * total)
    sizes = np.abs(w)
    if sum(map(Fraction, sizes)) > Fraction(total) * (1 + Fraction(1, 10**12)):
        expected = np.copysign(exact_simplex(sizes, total), w)
        np.testing.assert_allclose(L1Ball(total).project(w), expected, rtol=0, atol=2e-15 * total)


def test_a_long_point_keeps_its_digits():
    w = np.random.default_rng(2).standard_normal(200_000)
    p = Simplex(total=1e4).project(w)
    kept = p > 0
    assert p.sum() == pytest.approx(1e4, rel=1e-14)
    np.testing.assert_allclose((w - p)[kept], (w - p)[kept][0], atol=1e-12)
    assert (w[~kept] <= (w - p)[kept][0] + 1e-12).all()
    assert Simplex(total=1e4).project(p).tobytes() == p.tobytes()


@pytest.mark.parametrize(("low", "m"), [(0.999, 100_000), (0.99, 100_000), (1 - 1e-9, 30_000), (0.1, 9)])
def test_small_shares_beside_a_large_one_keep_their_digits(low, m):
    w = np.array([0.0, *[-low] * m, -1.0, -5.0])
    for total in (1.0, 1e-200):
        p = Simplex(total).project(w * total) / total
        gap = (1 - Fraction(low)) / (m + 1)
        assert p[0] == pytest.approx(float(Fraction(low) + gap), rel=1e-15)
        assert p[1] == pytest.approx(float(gap), abs=2e-16)
        assert not p[-2:].any()
        assert Simplex(total).contains(p * total, tolerance=0.0)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), spread=st.sampled_from([1e-17, 1e-15, 1e-13, 1e-9, 1e-5, 1.0]))
def test_entries_that_touch_the_threshold_do_no_harm(seed, spread):
    w = np.random.default_rng(seed).uniform(-1, 1, 5000) * spread - 0.999
    w[0] = 0.001
    p = Simplex().project(w)
    assert Simplex().contains(p, tolerance=0.0)
    assert Simplex().project(p).tobytes() == p.tobytes()
    assert p[0] == pytest.approx(1.0, abs=1e-9 + spread)


def test_the_l2_ball_only_rescales():
    for w in ([3e-320, 4e-320], [3.0, 4.0], [3e307, 4e307]):
        np.testing.assert_allclose(L2Ball(1e-322).project(w), [6e-323, 8e-323], atol=5e-324)
        np.testing.assert_allclose(L2Ball(1e-30).project(w)[1], min(w[1], 8e-31), rtol=1e-15)


# Shapes, symmetries, types


@every_set
def test_the_shape_and_the_memory_of_a_point_do_not_matter(domain, points):
    for w in 3.0 * INSIDE[:20]:
        p = domain.project(w)
        assert domain.project(np.repeat(w, 2)[::2]).tobytes() == p.tobytes()
        assert domain.project(w.tolist()).tobytes() == p.tobytes()
        if not (isinstance(domain, Box) and isinstance(domain.low, tuple)):
            for square in (w.reshape(2, 2), np.asfortranarray(w.reshape(2, 2))):
                assert domain.project(square).shape == (2, 2)
                assert domain.project(square).ravel().tobytes() == p.tobytes()
                assert domain.contains(square, 0.0) == domain.contains(w, 0.0)
    assert domain.project(np.array([1, 0, 2, 0])).dtype == np.float64


@pytest.mark.parametrize(
    "domain", [Everywhere(), L2Ball(2), L1Ball(2), LInfBall(2), Box(-1, 2), Simplex()], ids=repr
)
def test_a_number_alone_is_a_point(domain):
    p = domain.project(5.0)
    assert isinstance(p, np.ndarray)
    assert p.shape == ()
    assert p == {Everywhere: 5.0, Simplex: 1.0}.get(type(domain), 2.0)


@every_set
def test_the_answer_is_a_new_array(domain, points):
    for w in (points[0].copy(), np.array([9.0, -8.0, 7.0, 6.0])):
        before = w.copy()
        w.flags.writeable = False
        p = domain.project(w)
        p[...] = 77.0
        np.testing.assert_array_equal(w, before)


@pytest.mark.parametrize("make", BALLS, ids=lambda make: make.__name__)
def test_permuting_and_doubling_go_through(make):
    for w in 3.0 * INSIDE[:20]:
        p = make(1.0).project(w)
        order = np.array([2, 0, 3, 1])
        np.testing.assert_allclose(make(1.0).project(w[order]), p[order], rtol=1e-15, atol=1e-16)
        np.testing.assert_array_equal(make(2.0**40).project(w * 2.0**40), p * 2.0**40)
        if make is not Simplex:
            np.testing.assert_array_equal(make(1.0).project(-w), -p)


def test_a_box_of_vectors_holds_matrices_row_by_row():
    box, w = Box(LOW, HIGH), 9.0 * INSIDE[:3]
    np.testing.assert_array_equal(box.project(w), np.clip(w, LOW, HIGH))
    matrix = Box(np.zeros((2, 2)), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(matrix.project(np.full((2, 2), 9.0)), [[1, 2], [3, 4]])


def test_no_entries_at_all():
    for domain in (Everywhere(), L2Ball(1), L1Ball(1), LInfBall(1), Box(0, 1)):
        assert domain.project([]).shape == (0,)
        assert domain.contains([])
    assert not Simplex().contains([])


# Sizes


@every_set
def test_reach_and_diameter_hold_and_are_attained(domain, points):
    lengths = np.linalg.norm(points, axis=1)
    gaps = np.linalg.norm(points[:, None] - points, axis=2)
    if isinstance(domain, Everywhere):
        assert domain.radius == domain.reach(D) == domain.diameter(D) == math.inf
        return
    assert domain.reach(D) == pytest.approx(lengths.max(), rel=1e-14)
    assert domain.diameter(D) == pytest.approx(gaps.max(), rel=1e-14)
    assert domain.radius <= domain.reach(D) <= domain.radius * math.sqrt(D) * (1 + 1e-15)


def test_the_radius_is_in_the_sets_own_norm():
    assert [make(3).radius for make in BALLS] == [3.0] * 4
    assert Box(-1, [0.5, 7]).radius == 7.0
    assert Box(0, math.inf).radius == Box(0, math.inf).reach(2) == Box(0, math.inf).diameter(2) == math.inf
    assert Simplex().diameter(1) == 0.0
    assert Box(LOW, HIGH).reach(8) == pytest.approx(math.sqrt(2) * Box(LOW, HIGH).reach(4))
    assert Box(-1.7e308, 1e308).diameter(1) == math.inf


# Membership


@every_set
def test_points_outside_are_outside_by_more_than_the_tolerance(domain, points):
    if isinstance(domain, Everywhere):
        return
    corner = points[np.linalg.norm(points, axis=1).argmax()]
    assert not domain.contains(corner * (1 + 1e-8))
    assert domain.contains(corner * (1 + 1e-10))
    assert domain.contains(corner * (1 + 1e-8), tolerance=1e-7)
    assert not domain.contains(corner * (1 + 1e-10), tolerance=0.0)


@every_set
def test_infinite_and_missing_entries(domain, points):
    far = np.array([math.inf, -math.inf, 0.0, 2.0])
    assert not domain.contains(far)
    assert domain.contains(domain.project(far), tolerance=0.0)
    missing = np.array([math.nan, 5.0, 0.0, 2.0])
    assert not domain.contains(missing)
    assert np.isnan(domain.project(missing)).any()


def test_an_open_side_of_a_box():
    orthant = Box(0, math.inf)
    assert orthant.project([-1.0, 1e308]).tolist() == [0.0, 1e308]
    assert orthant.contains([0.0, 1e308], tolerance=0.0)
    assert not orthant.contains([math.inf])
    assert Box(-math.inf, math.inf).project([-5.0]).tolist() == [-5.0]
    assert Box(-math.inf, math.inf).contains([-5.0], tolerance=0.0)


# Values, and what is refused


def test_sets_are_values():
    for make in (lambda: Box(LOW, HIGH), lambda: Box(-1, 2), lambda: L2Ball(2), Simplex, Everywhere):
        domain = make()
        domain.project(np.array([1.0, 5.0, 2.0, 9.0]))
        assert domain == make() == pickle.loads(pickle.dumps(domain))  # noqa: S301 - our own bytes
        assert hash(domain) == hash(make())
    assert len({L2Ball(2), L2Ball(2.0), L1Ball(2), LInfBall(2), Simplex(2), Box(0, 2), Box(0, [2.0])}) == 6
    assert repr(Box(np.array([0, 1]), 2)) == "Box(low=(0.0, 1.0), high=2.0)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: L2Ball(0), "`radius` of L2Ball must be a finite number > 0. Got 0."),
        (lambda: L2Ball(math.inf), "`radius` of L2Ball must be"),
        (lambda: L2Ball(10**400), "`radius` of L2Ball must be"),
        (lambda: L1Ball(-1), "`radius` of L1Ball must be a finite number > 0. Got -1."),
        (lambda: L1Ball([1.0]), "`radius` of L1Ball must be"),
        (lambda: LInfBall(math.nan), "`radius` of LInfBall must be"),
        (lambda: LInfBall(True), "`radius` of LInfBall must be"),
        (lambda: Simplex(total=0), "`total` of Simplex must be a finite number > 0. Got 0."),
        (lambda: Simplex(total=None), "`total` of Simplex must be"),
        (lambda: Box(1, 0), "`low` of Box must be at most `high` in every entry. Got 1."),
        (lambda: Box([0, 2], 1), "`low` of Box must be at most `high`"),
        (lambda: Box(math.nan, 1), "`low` of Box must be a number in [-inf, inf). Got nan."),
        (lambda: Box(math.inf, math.inf), "`low` of Box must be"),
        (lambda: Box(0, -math.inf), "`high` of Box must be a number in (-inf, inf]. Got -inf."),
        (lambda: Box("a", 1), "`low` of Box must be"),
        (lambda: Box(0, []), "`high` of Box must be a number or an array of numbers. Got []."),
        (lambda: Box(0, [[1, 2], [3]]), "`high` of Box must be"),
        (lambda: Box([0, 0], [1, 1, 1]), "`high` of Box must be of a shape that fits `low`. Got [1, 1, 1]."),
        (lambda: Box([0, 0], 1).reach(3), "`dim` of Box must be a multiple of 2. Got 3."),
        (lambda: Box([0, 0], 1).diameter(0), "`dim` of Box must be"),
        (lambda: Simplex().diameter(1.5), "`dim` of Simplex must be a whole number >= 1. Got 1.5."),
        (lambda: Everywhere().reach(0), "`dim` of Everywhere must be"),
        (lambda: L2Ball(1).diameter(-2), "`dim` of L2Ball must be"),
    ],
)
def test_bad_settings_are_refused_in_one_form_of_words(make, message):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("w", [[1.0], [1.0, 2.0, 3.0], 1.0, [[1.0], [2.0]]])
def test_a_point_that_does_not_fit_its_box_is_refused(w):
    for method in (Box([0, 0], 1).project, Box([0, 0], 1).contains):
        with pytest.raises(DataError, match=r"^`w` of Box must be of shape \(…, 2,\)\. Got shape"):
            method(w)


def test_the_simplex_has_no_point_without_entries():
    with pytest.raises(DataError, match=r"^`w` of Simplex must have at least one entry"):
        Simplex().project([])
