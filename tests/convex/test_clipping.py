"""Clipping is total, exact in integers, and agrees with an independent twin in rational arithmetic."""

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from untold.convex import clipping
from untold.convex.clipping import L2Clip, LInfClip, as_rows
from untold.core import Relation
from untold.errors import DataError, ParameterError

BOUNDS = [1.0, 0.3, 2.0**-40, 7e30, 1e-9, math.pi]


def hostile(rng, count, dim):
    """Rows of every kind of trouble, mixed within rows and pure."""
    magnitudes = 10.0 ** rng.uniform(-320, 308, (count, dim))
    rows = magnitudes * rng.choice([-1.0, 1.0], (count, dim))
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e308, -1e308, 1.797e308, 1.0])
    rows = np.where(rng.random((count, dim)) < 0.2, rng.choice(special, (count, dim)), rows)
    ordinary = rng.standard_normal((count, dim)) * 10.0 ** rng.integers(-3, 4, (count, 1))
    return np.where(rng.random((count, 1)) < 0.5, rows, ordinary)


@pytest.mark.parametrize("dim", [1, 2, 5, 30])
@pytest.mark.parametrize("bound", BOUNDS)
def test_the_norm_is_never_above_the_bound_in_exact_arithmetic(bound, dim):
    """24 settings × 1,000 hostile rows, and as many on the sphere itself to the last bit."""
    rng = np.random.default_rng(dim)
    on_sphere = rng.standard_normal((1000, dim))
    on_sphere *= bound / np.linalg.norm(on_sphere, axis=1, keepdims=True)
    clip = L2Clip(bound)
    limit = Fraction(bound) / Fraction(clip.grid)
    for row in clip.quantise(np.concatenate([hostile(rng, 1000, dim), on_sphere])).tolist():
        assert sum(x * x for x in row) <= clip.steps**2 <= limit * limit


@pytest.mark.parametrize("bound", BOUNDS)
def test_every_entry_is_within_the_bound(bound):
    clip = LInfClip(bound)
    q = clip.quantise(hostile(np.random.default_rng(0), 3000, 6))
    assert np.abs(q).max() <= clip.steps
    assert Fraction(clip.steps) * Fraction(clip.grid) <= Fraction(bound)


@pytest.mark.parametrize(("q", "K"), [([3, -4, 0], 4), ([10**6] * 9, 5), ([0, 0], 1), ([5, 12], 13)])
def test_the_guard_makes_the_bound_true_whatever_the_floats_did(q, K):
    shrunk = np.array(q)
    clipping._shrink.py_func(shrunk, K)
    assert (shrunk**2).sum() <= K * K
    assert ((shrunk == q).all()) == (sum(x * x for x in q) <= K * K)
    assert (shrunk * np.array(q) >= 0).all()


def test_the_kernel_ends_with_the_guard():
    source = inspect.getsource(clipping.clip_l2.py_func)
    assert source.rstrip().endswith("_shrink(q, K)")


def slow_clip(row, clip):
    """The definition, in rational arithmetic (the square root to 200 bits)."""
    row = [0.0 if math.isnan(x) else x for x in row]
    infinite = [abs(x) == math.inf for x in row]
    if any(infinite):
        row = [math.copysign(1.0, x) if far else 0.0 for x, far in zip(row, infinite, strict=True)]
    exact = [Fraction(x) / Fraction(clip.grid) for x in row]
    square = sum(x * x for x in exact)
    if any(infinite) or square > clip.steps**2:
        root = Fraction(math.isqrt(int(square * 4**300)), 2**300)
        exact = [x * clip.steps / root for x in exact]
    return [math.trunc(x) for x in exact]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.floats(allow_subnormal=True), min_size=1, max_size=6),
    st.sampled_from(BOUNDS),
)
def test_the_kernel_is_the_definition_to_one_step(row, bound):
    """Rounding may cost a grid step towards zero or leave one; within the bound nothing is lost."""
    clip = L2Clip(bound)
    fast = clip.quantise(np.array([row]))[0].tolist()
    slow = slow_clip(row, clip)
    assert all(abs(a - b) <= 1 for a, b in zip(fast, slow, strict=True))
    if all(math.isfinite(x) for x in row) and sum(Fraction(x) ** 2 for x in row) < Fraction(bound) ** 2 / 2:
        assert fast == slow


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ([0.0, 0.0], [0.0, 0.0]),
        ([math.nan, 0.5], [0.0, 0.5]),
        ([math.inf, 1e308], [1.0, 0.0]),
        ([math.inf, -math.inf], [0.70710659, -0.70710659]),
        ([5e-324, 0.0], [0.0, 0.0]),
        ([1e308, 0.0], [1.0, 0.0]),
        ([3, 4], [0.59999943, 0.79999924]),
        ([True, False], [1.0, 0.0]),
        ([], []),
        (["", None], [0.0, 0.0]),
        ([10**400, -(10**400)], [0.70710659, -0.70710659]),
        (np.array([3, 4], dtype=np.int8), [0.59999943, 0.79999924]),
        (np.array([0.5, 0.25], dtype=np.float16), [0.5, 0.25]),
        (np.array([1e4000, 0], dtype=np.longdouble), [1.0, 0.0]),
        (np.array([1 + 5j, 0.5j]), [0.0, 0.0]),
    ],
)
def test_edge_cases(row, answer):
    clip = L2Clip(1.0)
    rows, single = as_rows(row, of="test")
    assert single
    np.testing.assert_allclose(clip.quantise(rows)[0] * clip.grid, answer, atol=1e-6)


@pytest.mark.parametrize("bad", [5.0, np.zeros((2, 2, 2)), [[1.0], [1.0, 2.0]], "text", None, {"a": 1}])
def test_only_a_shape_is_refused(bad):
    with pytest.raises(DataError, match=r"^`g` of Clip must"):
        as_rows(bad, of="Clip")


def test_sums_do_not_depend_on_order_or_chunks():
    """A row in or out moves the sum by exactly itself; float32 sums would not (16777218 + 1 moves by 2)."""
    assert np.float32(16777218) + np.float32(1) - np.float32(16777218) == 2
    rng = np.random.default_rng(3)
    q = L2Clip(1.0).quantise(rng.standard_normal((1000, 7)))
    whole = q.sum(axis=0)
    shuffled = rng.permutation(q)
    assert (sum(part.sum(axis=0) for part in np.array_split(shuffled, 13)) == whole).all()
    assert (np.delete(q, 17, axis=0).sum(axis=0) + q[17] == whole).all()


def test_sensitivity_follows_the_relation():
    clip = L2Clip(0.3)
    assert clip.sensitivity(Relation.ADD_OR_REMOVE_ONE) == clip.steps
    assert clip.sensitivity(Relation.REPLACE_ONE) == 2 * clip.steps
    assert 2**20 <= clip.steps < 2**21


@pytest.mark.parametrize("clip", [L2Clip, LInfClip])
@pytest.mark.parametrize("bound", [0, -1.0, math.nan, math.inf, "1", None, True, 1e-300])
def test_bad_bounds(clip, bound):
    with pytest.raises(ParameterError, match=rf"^`bound` of {clip.__name__} must be .* Got "):
        clip(bound)


@given(st.integers(1, 5), st.integers(0, 4))
def test_rows_are_clipped_one_by_one(dim, others):
    """Permuting, duplicating or dropping other rows changes nothing."""
    rng = np.random.default_rng(dim * 10 + others)
    rows = hostile(rng, others + 1, dim)
    clip = L2Clip(2.0)
    together = clip.quantise(rows)
    for i in range(others + 1):
        np.testing.assert_array_equal(clip.quantise(rows[i : i + 1])[0], together[i])
