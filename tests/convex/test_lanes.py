"""Sums in the fixed order: compiled against the reader's version, at every length around a block."""

import math

import numpy as np
import pytest
from numba.core.errors import TypingError

from untold.convex.lanes import LANES, inner, inner_at, inner_by_lanes, moved, scaled, square, square_at

SIZES = [0, 1, 2, 15, 16, 17, 31, 32, 33, 47, 100, 1000, 1001]


def vectors(size):
    rng = np.random.default_rng(size)
    return (rng.normal(size=size) * 10.0 ** rng.integers(-8, 8, size) for _ in range(2))


@pytest.mark.parametrize("size", SIZES)
def test_a_sum_has_the_bits_of_its_readable_twin(size):
    a, b = vectors(size)
    assert inner(a, b) == inner_by_lanes(a, b)
    assert square(a) == inner_by_lanes(a, a)
    assert inner(a, b) == pytest.approx(math.fsum(a * b), rel=1e-9, abs=1e-9 * np.abs(a * b).sum())


@pytest.mark.parametrize("size", SIZES)
def test_what_is_done_on_the_way_has_the_bits_of_numpy(size):
    a, b = vectors(size)
    room = np.full(size + 40, 7.0)
    assert scaled(-0.3, a, room[20 : 20 + size]) == inner_by_lanes(-0.3 * a, -0.3 * a)
    assert np.array_equal(room[20 : 20 + size], -0.3 * a)
    room[20 : 20 + size] = b
    wanted = b - 1.7 * a
    assert moved(1.7, a, room[20 : 20 + size]) == inner_by_lanes(wanted, wanted)
    assert np.array_equal(room[20 : 20 + size], wanted)
    assert (room[:20] == 7).all()  # and nothing beside it was touched
    assert (room[20 + size :] == 7).all()


@pytest.mark.parametrize("size", SIZES)
def test_sparse_sums_have_the_bits_of_full_ones(size):
    a, b = vectors(size)
    a[np.random.default_rng(1).random(size) < 0.6] = 0.0
    places = np.flatnonzero(a)
    assert inner_at(a[places], places, b, np.empty(LANES)) == inner(a, b)
    assert square_at(a[places], places, np.empty(LANES)) == square(a)


def test_what_is_not_contiguous_is_refused():
    with pytest.raises(TypingError, match="contiguous"):
        inner(np.ones(6)[::2], np.ones(3))


def test_nothing_is_lost_of_what_is_not_finite():
    for bad in (math.nan, math.inf):
        a = np.ones(20)
        a[17] = bad
        assert not math.isfinite(inner(a, np.ones(20)))
        assert not math.isfinite(scaled(1.0, a, np.empty(20)))
        assert not math.isfinite(moved(1.0, a, np.ones(20)))
