"""What every randomiser promises, one table: totality, one message form, shapes, pickles, guarantees."""

import copy
import inspect
import math
import pickle
import time

import numpy as np
import pytest
from scipy import special, stats
from tests.shared_table import RANDOMIZERS

from untold import core
from untold.errors import DataError, ParameterError
from untold.private import noise
from untold.private.randomizers.base import GridRandomizer, least_scale
from untold.private.randomizers.duchi import Duchi
from untold.private.randomizers.gaussian import Gaussian
from untold.private.randomizers.locallaplace import LocalLaplace
from untold.private.randomizers.mutualinformation import MutualInformation
from untold.private.randomizers.normlaplace import NormLaplace
from untold.private.randomizers.privunit import PrivUnit, cap_law
from untold.private.randomizers.privunitg import PrivUnitG, biased_coin, privunit_g_law

BAD = [0, -1, -0.5, math.nan, math.inf, -math.inf, None, "1", True, [1.0]]
ALL = sorted(RANDOMIZERS)


@pytest.fixture(params=ALL)
def make(request):
    return RANDOMIZERS[request.param]


@pytest.mark.parametrize("epsilon", BAD)
@pytest.mark.parametrize("kind", [NormLaplace, Gaussian, PrivUnitG, PrivUnit, Duchi])
def test_bad_epsilon(kind, epsilon):
    with pytest.raises(ParameterError, match=rf"^`epsilon` of {kind.__name__} must be .*\. Got "):
        kind(epsilon)


@pytest.mark.parametrize("bound", [0, -1.0, math.nan, math.inf, None, "1"])
@pytest.mark.parametrize("kind", [NormLaplace, Gaussian, PrivUnitG, PrivUnit, Duchi])
def test_bad_bound(kind, bound):
    with pytest.raises(ParameterError, match=r"^`bound` of \w+ must be .*\. Got "):
        kind(1.0, bound=bound)


@pytest.mark.parametrize("delta", [0, 1, -1e-6, 2, math.nan, None, "x"])
def test_bad_delta(delta):
    with pytest.raises(ParameterError, match=r"^`delta` of Gaussian must be a number in \(0, 1\)\. Got "):
        Gaussian(1.0, delta=delta)


BAD_TAU = [[-1.0], [1.0, math.nan], [], 3.0, None, "12", [[1.0]], [0.0, 0.0], [1e-9], [None], ["1"]]


@pytest.mark.parametrize("tau", BAD_TAU)
def test_bad_tau(tau):
    with pytest.raises(ParameterError, match=r"^`tau` of LocalLaplace must be .*\. Got "):
        LocalLaplace(tau)


BAD_INFORMATION = [{}, {"nats": 1, "bits": 1}, {"nats": 0}, {"bits": -1}, {"nats": 1, "bits": 0}]


@pytest.mark.parametrize("given", BAD_INFORMATION)
def test_bad_information(given):
    with pytest.raises(ParameterError, match=r"MutualInformation must be "):
        MutualInformation(**given)


@pytest.mark.parametrize("kind", [NormLaplace, PrivUnitG, PrivUnit, Duchi])
def test_an_epsilon_too_small_for_the_integers_is_refused_with_a_hint(kind):
    with pytest.raises(ParameterError, match=r"must be larger\. Got 1e-14\.\nhint: "):
        kind(1e-14)


def test_too_much_gaussian_noise_is_refused_too():
    with pytest.raises(ParameterError, match=r"^`epsilon` of Gaussian must be larger\. Got 1e-09\.\nhint: "):
        Gaussian(1e-9, delta=1e-9)


@pytest.mark.parametrize("dim", [0, -1, 1.5, None])
def test_bad_dimension(make, dim):
    with pytest.raises(ParameterError, match=r"^`dim` of \w+\.\w+ must be a whole number >= 1\. Got "):
        make(1.0, 3).noise_energy(dim)
    with pytest.raises(ParameterError, match=r"^`dim` of \w+\.\w+ must be a whole number >= 1\. Got "):
        make(1.0, 3).subexponential(dim)


HOSTILE = [
    [math.nan] * 3, [math.inf, -math.inf, 0], [1e308] * 3, [5e-324, 0, -5e-324], [None, "x", 2],
    [10**400, 1, 1], [0, 0, 0], [True, False, True], np.array([1, 2, 3], dtype=np.int8),
    np.array([1e30] * 3, dtype=np.float32),
]  # fmt: skip


@pytest.mark.parametrize("g", HOSTILE, ids=range(len(HOSTILE)))
def test_every_vector_has_a_report(make, g):
    r = make(1.0, 3)
    report = r(g)
    assert report.shape == (3,)
    assert np.isfinite(report).all()
    assert not (report / r.grid % 1).any()


@pytest.mark.parametrize("shape", [(), (2, 2, 2)])
def test_wrong_shapes_are_refused_by_shape_alone(make, shape):
    messages = set()
    for value in (0.0, 1.0, math.nan, math.inf):
        with pytest.raises(DataError) as caught:
            make(1.0, 3)(np.full(shape, value))
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_shapes(make):
    r = make(1.0, 3)
    assert r(np.zeros((0, 3))).shape == (0, 3)
    assert r(np.zeros((5, 3))).shape == r.encode(np.zeros((5, 3))).shape == (5, 3)
    assert r.encode([0.0, 0.0, 0.0]).dtype == np.int64


@pytest.mark.parametrize("name", [n for n in ALL if n != "local-laplace"])
def test_an_empty_vector_has_an_empty_report(name):
    assert RANDOMIZERS[name](1.0, 3)([]).shape == (0,)


def test_local_laplace_wants_its_own_width():
    with pytest.raises(DataError, match="must have 3 coordinates"):
        LocalLaplace([1.0] * 3)(np.zeros(4))


def test_batch_equals_rows_in_law(make):
    """A matrix is randomised row by row: rows of one call are uncorrelated and alike in law."""
    r = make(1.0, 2).seeded(1)
    y = r(np.tile([0.6, 0.0], (40_000, 1)))
    first, second = y[::2, 0], y[1::2, 0]
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / math.sqrt(first.size)
    singles = np.array([r([0.6, 0.0])[0] for _ in range(3000)])
    assert stats.ks_2samp(singles, first).pvalue > 1e-6


def test_many_chunks_are_all_filled(make):
    y = make(1.0, 3).encode(np.zeros((30_000, 3)))
    assert len(np.unique(y, axis=0)) > 29_000 or isinstance(make(1.0, 3), Duchi)


def test_values_travel(make):
    r = make(1.0, 3)
    assert pickle.loads(pickle.dumps(r)) == copy.deepcopy(r) == r  # noqa: S301
    assert hash(r) == hash(make(1.0, 3))
    assert r.seeded(3) == r  # noise is not part of what a randomiser is
    assert "source" not in repr(r)


def test_the_protocol(make):
    r = make(1.0, 3)
    assert isinstance(r.symmetric, bool)
    for name in ("bound", "grid", "guarantee", "symmetric", "encode", "noise_energy", "subexponential"):
        assert hasattr(r, name)
        assert name in dir(core.Randomizer)
    assert r.guarantee.relation is core.Relation.REPLACE_ONE
    assert r.guarantee.unit is core.Unit.REPORT
    assert "\n" not in str(r.guarantee)


def test_bound_scales_everything(make):
    """Metamorphic: in units of the bound nothing changes when the bound is a power of two."""
    one = make(1.0, 3)
    names = set(inspect.signature(type(one)).parameters) - {"bound", "bits", "source"}
    eight = type(one)(**{name: getattr(one, name) for name in names}, bound=8.0)
    assert eight.grid == 8 * one.grid
    assert eight.noise_energy(3) == pytest.approx(64 * one.noise_energy(3), rel=1e-12)
    g = np.array([0.5, -0.25, 0.1])
    np.testing.assert_array_equal(one.seeded(4).encode(g), eight.seeded(4).encode(8 * g))


def test_pure_ratio_of_the_coins_never_passes_epsilon():
    """(p/Q)/((1−p)/(1−Q)) ≤ e^ε with mpmath at 60 digits, and within a part in 10¹² of it."""
    import mpmath

    with mpmath.workdps(60):
        for epsilon in np.geomspace(1e-4, 60, 60):
            for law in (privunit_g_law(float(epsilon)),):
                P, Q = mpmath.mpf(law.chance), mpmath.mpf(law.Q)
                ratio = mpmath.log(P / Q) - mpmath.log((2**53 - P) / (1 - Q))
                assert ratio <= epsilon
                assert ratio > epsilon * (1 - 1e-9) - 1e-11 * math.exp(min(epsilon, 30))
            P = mpmath.mpf(biased_coin(float(epsilon), 0.5))
            assert mpmath.log(P / (2**53 - P)) <= epsilon


def test_cap_share_is_the_mass_beyond_the_latitude():
    for dim in (2, 3, 10, 1000):
        law = cap_law(2.0, dim)
        a = (dim - 1) / 2
        share = special.betainc(a, a, (1 - math.sin(math.pi * law.v)) / 2)
        p = law.chance / 2**53
        assert math.log(p / share) - math.log((1 - p) / (1 - share)) == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0, 3.3, 1e-4])
def test_scales_are_rounded_up(epsilon):
    from fractions import Fraction

    assert Fraction(least_scale(2.0**21, epsilon)) * Fraction(epsilon) >= 2**21


def test_guarantees():
    assert NormLaplace(0.7).guarantee.epsilon(0.0) == 0.7
    assert Gaussian(1.0, delta=1e-6).guarantee.epsilon(1e-6) <= 1.0
    assert Gaussian(1.0, delta=1e-6).guarantee.epsilon(1e-6) == pytest.approx(1.0, rel=1e-9)
    assert MutualInformation(bits=2.0).guarantee.epsilon(1e-6) == math.inf
    assert LocalLaplace([0.5, math.inf]).guarantee.epsilon(0.0) == 0.5
    assert "coordinates [1] are public" in str(LocalLaplace([0.5, math.inf]).guarantee)


def test_mutual_information_scale_solves_its_equation():
    r = MutualInformation(nats=0.3, bound=2.0)
    for dim in (1, 7, 100):
        sigma2 = r.noise_energy(dim) / dim
        assert dim / 2 * math.log1p(4.0 / (dim * sigma2)) == pytest.approx(0.3, rel=1e-9)
        assert dim / 2 * math.log1p(4.0 / (dim * sigma2)) <= 0.3


def test_the_time_of_a_report_says_nothing_about_its_noise(make):
    """|Spearman ρ| between a report's time and the size of its noise, 20,000 reports, below 0.02.

    Under independence |ρ| passes 0.02 in 0.5 % of runs of this size; one of three runs has to be below it.
    """
    r, g = make(1.0, 5), np.array([0.5, 0.5, 0.1, 0.0, 0.2])
    r(g)
    correlations = []
    for _ in range(3):
        times, sizes = np.empty(20_000), np.empty(20_000)
        for i in range(20_000):
            start = time.perf_counter_ns()
            report = r.encode(g)
            times[i] = time.perf_counter_ns() - start
            sizes[i] = np.abs(report).sum()
        correlations.append(abs(stats.spearmanr(times, sizes).statistic))
        if correlations[-1] < 0.02:
            return
    raise AssertionError(correlations)


def test_noise_is_drawn_where_it_should(monkeypatch, make):
    """Every randomiser draws through private/noise.py: with it silenced, none can report."""
    for name in ("gaussian", "laplace", "norm_laplace", "privunit_g", "privunit", "duchi"):
        monkeypatch.delattr(noise, name)
    with pytest.raises(AttributeError):
        make(1.0, 3)([0.0, 0.0, 0.0])


def test_every_randomiser_is_in_the_table():
    kinds = {type(RANDOMIZERS[name](1.0, 3)) for name in ALL}
    assert kinds == set(GridRandomizer.__subclasses__())
