"""What is asked of every learner in the table: purity, refusals, averages, resuming, symmetries.

All of it is exact or to rounding, on seeded reports: no false alarms.
"""

import importlib
import math
import pickle
import pkgutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.shared_table import LEARNERS

from untold import learners
from untold.core import Learner
from untold.errors import DataError, ParameterError
from untold.learners.average import LAST, LINEAR, UNIFORM, Average
from untold.learners.base import PureLearner, State
from untold.learners.coordinatewise import Coordinatewise
from untold.learners.potential import AdaptivePotential
from untold.learners.priors import ChernovVovk, Conjugate, Improper, Uniform

ALL = sorted(LEARNERS)
IN_A_BALL = {"lazy-descent", "bandit-descent", "mirror-descent", "mirror-descent-p"}
SCALE_FREE = {"mirror-descent", "mirror-descent-p", "descent-adagrad-norm", "distance-over-gradients"}


def dim(name):
    return 1 if name == "adaptive-potential" else 5


@pytest.fixture(params=ALL)
def name(request):
    return request.param


@pytest.fixture
def learner(name):
    return LEARNERS[name](None, dim(name))


def reports(name, rounds=40, seed=30):
    g = np.random.default_rng(seed).normal(0.3, 1.0, (rounds, dim(name)))
    g[3] = 0.0
    g[::5, 0] = 0.0
    return g


def run(learner, g, state=None):
    """Return the last state and the points played."""
    state, played = learner.start(g.shape[1]) if state is None else state, []
    for row in g:
        played.append(learner.point(state))
        state = learner.step(state, row)
    return state, np.array(played)


def bits(state):
    return tuple(np.asarray(entry).tobytes() for entry in state)


def test_every_learner_is_in_the_table():
    for module in pkgutil.iter_modules(learners.__path__, "untold.learners."):
        importlib.import_module(module.name)

    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    kinds = {
        k.__name__ for k in below(PureLearner) if not k.__abstractmethods__ and k.__module__[:6] == "untold"
    }
    table = {type(LEARNERS[n](None, dim(n))).__name__ for n in ALL}
    assert kinds == table


def test_protocol(name, learner):
    assert all(hasattr(learner, part) for part in dir(Learner) if not part.startswith("_"))
    state = learner.start(dim(name))
    assert isinstance(state, State)
    assert hash(learner) == hash(LEARNERS[name](None, dim(name)))
    assert learner == pickle.loads(pickle.dumps(learner))  # noqa: S301


def test_step_is_pure(name, learner):
    """Old states cannot be written to here, and are what they were; a report may be reused for another."""
    state = learner.start(dim(name))
    for g in reports(name):
        before = bits(state)
        for entry in state:
            if isinstance(entry, np.ndarray):
                entry.flags.writeable = False
        report = g.copy()
        new = learner.step(state, report)
        assert bits(state) == before
        assert bits(learner.step(state, g)) == (after := bits(new))
        report[:] = 7.0
        assert bits(new) == after
        assert new.t == state.t + 1
        state = new


def test_what_is_no_report_changes_nothing(name, learner):
    state, d = run(learner, reports(name))[0], dim(name)
    before = bits(state)
    bad = [
        np.zeros(d + 1),
        np.zeros((1, 1, d)),
        np.zeros(0),
        ["a"] * d,
        [math.nan] * d,
        [math.inf] * d,
        [-math.inf] * d,
    ]
    bad.append(np.where(np.arange(d) == d - 1, math.nan, 1.0))
    said = set()
    for report in bad:
        with pytest.raises(DataError) as caught:
            learner.step(state, report)
        said.add(str(caught.value))
    assert said == {f"a report to {type(learner).__name__} must be {d} finite numbers."}
    assert bits(state) == before
    assert learner.step(state, np.ones(d)).t == state.t + 1


def test_integers_and_other_strides_are_reports(name, learner):
    state = learner.start(dim(name))
    g = np.arange(2 * dim(name), dtype=np.float64)[::2] + 1
    same = {bits(learner.step(state, r)) for r in (g, g.tolist(), g.astype(np.int8), g.astype(np.float32))}
    assert len(same) == 1


@pytest.mark.parametrize("d", [0, -1, 1.5, None, True])
def test_bad_dimension(learner, d):
    with pytest.raises(ParameterError, match=r"^`dim` of \w+ must be a whole number >= 1\. Got "):
        learner.start(d)


def test_a_bettor_on_one_dimension_wants_one():
    with pytest.raises(ParameterError, match=r"^`dim` of AdaptivePotential must be 1\. Got 2\.\nhint: "):
        AdaptivePotential().start(2)


def test_before_the_first_report(name, learner):
    state = learner.start(dim(name))
    np.testing.assert_array_equal(learner.answer(state), np.zeros(dim(name)))
    np.testing.assert_array_equal(learner.point(state), np.zeros(dim(name)))
    assert learner.regret(state, 0.0) >= 0


@pytest.mark.parametrize("average", [UNIFORM, LINEAR, Average(3.0), LAST], ids=["0", "1", "3", "last"])
def test_the_answer_is_the_average_of_what_was_played(name, learner, average):
    learner, g = replace(learner, average=average), reports(name)
    for rounds in (1, 2, 17, 40):
        state, played = run(learner, g[:rounds])
        t = np.arange(1.0, rounds + 1)
        weights = np.ones(rounds)
        for k in range(int(average.decay) if average != LAST else 0):
            weights *= t + k
        if average == LAST:
            weights = (t == rounds).astype(float)
        direct = weights @ played / weights.sum()
        np.testing.assert_allclose(
            learner.answer(state), direct, rtol=1e-12, atol=1e-14 * np.abs(played).max()
        )


def test_fractional_decay_is_between():
    t = np.arange(1.0, 101)
    means = []
    for decay in (1.0, 1.5, 2.0):
        mean = np.zeros(1)
        for v in t:
            mean = Average(decay).fold(mean, np.array([v]), int(v))
        means.append(mean[0])
    assert means[0] < means[1] < means[2]


def test_a_state_that_travelled_goes_on_to_the_bit(name, learner):
    g = reports(name)
    whole, _ = run(learner, g)
    half, _ = run(learner, g[:20])
    for resumed in (pickle.loads(pickle.dumps(half)), half._replace(**half._asdict())):  # noqa: S301
        assert bits(run(learner, g[20:], resumed)[0]) == bits(whole)
    copied = half._replace(w=half.w.copy(), mean=half.mean.copy())
    assert bits(run(learner, g[20:], copied)[0]) == bits(whole)


def test_flipping_reports_flips_points_exactly(name, learner):
    g = reports(name)
    one, other = run(learner, g), run(learner, -g)
    np.testing.assert_array_equal(one[1], -other[1])
    np.testing.assert_array_equal(learner.answer(one[0]), -learner.answer(other[0]))


def test_permuting_coordinates_permutes_points(name, learner):
    g, order = reports(name), np.random.default_rng(31).permutation(dim(name))
    one, other = run(learner, g)[1][:, order], run(learner, np.ascontiguousarray(g[:, order]))[1]
    if name == "coordinatewise":
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12 * np.abs(one).max())


@pytest.mark.parametrize("name", sorted(SCALE_FREE))
@pytest.mark.parametrize("factor", [2.0**-60, 0.25, 2.0**70])
def test_scale_free_learners_do_not_see_the_scale(name, factor):
    learner, g = LEARNERS[name](None, dim(name)), reports(name)
    rough = {"mirror-descent-p": 1e-12}.get(name, 0.0)  # powers of p round
    np.testing.assert_allclose(run(learner, factor * g)[1], run(learner, g)[1], rtol=rough, atol=rough)


@pytest.mark.parametrize("name", [n for n in ALL if hasattr(LEARNERS[n](None, 1), "bound")])
def test_bettors_bet_the_inverse_in_other_units(name):
    """Reports and bound k times as large: points are 1/k, for bets are in units of 1/G.

    The purse of the house learner is in units of G as well: there nothing changes.
    """
    learner, g = LEARNERS[name](None, dim(name)), reports(name)
    k, twice = 4.0, {"bound": 4.0}
    if name == "coordinatewise":
        twice["b"] = k * k
    if name.startswith("banco"):
        twice.update(variance=k * k * learner.variance, tail=k * learner.tail)
    if isinstance(getattr(learner, "prior", None), Conjugate):
        twice["prior"] = Conjugate(b=k * k)
    if isinstance(getattr(learner, "prior", None), ChernovVovk):
        pytest.skip("ln v knows the unit of v")
    if name == "bettor-told":
        twice["variance"] = k * k * learner.variance
    shrunk = 1.0 if name.startswith("bettor") else k
    scaled = run(replace(learner, **twice), k * g)[1] * shrunk
    np.testing.assert_allclose(scaled, run(learner, g)[1], rtol=1e-12)


def test_regret_grows_with_the_competitor(name, learner):
    norms = np.concatenate([[0.0], 10.0 ** np.linspace(-12, 0.3, 30), [2.0] * (name in IN_A_BALL)])
    for rounds in (1, 3, 40):
        state, _ = run(learner, reports(name)[:rounds])
        bounds = [learner.regret(state, float(u)) for u in norms]
        assert bounds[0] >= 0
        assert all(b >= a - 1e-9 for a, b in pairwise(bounds))  # inf where no bound is known
    if name in IN_A_BALL:
        with pytest.raises(
            ParameterError, match=r"^`norm` of \w+\.regret must be at most the radius 2\. Got"
        ):
            learner.regret(state, 2.1)
    elif "descent" not in name:
        assert learner.regret(state, 1e6) > 1e6


def test_regret_of_coordinates_is_their_sum():
    learner = Coordinatewise()
    state, _ = run(learner, reports("coordinatewise"))
    sizes = np.array([0.0, 0.1, -1.0, 3.0, 0.5])
    one = AdaptivePotential()
    parts = [
        one.regret(one.start(1)._replace(V=float(V)), abs(u)) for V, u in zip(state.V, sizes, strict=True)
    ]
    assert learner.regret(state, sizes) == pytest.approx(sum(parts), rel=1e-12)


@pytest.mark.parametrize("norm", [-1.0, math.nan, math.inf, 1e200])
@pytest.mark.parametrize("prior", [Conjugate(), Uniform(), ChernovVovk(), Improper()])
def test_no_bound_for_impossible_competitors(prior, norm):
    """These searched for ever, or asked for the logarithm of a negative number."""
    learner = AdaptivePotential(prior=prior)
    with pytest.raises(ParameterError, match=r"^`norm` of regret must be a number in \[0, 1e\+150\)\. Got "):
        learner.regret(learner.start(1), norm)


@pytest.mark.parametrize("size", [1e100, 1e150, 1e160, 1e200, 1.7e308])
@pytest.mark.parametrize("name", [n for n in ALL if n != "coordinatewise"])
def test_enormous_reports_never_give_nan(name, size):
    learner = LEARNERS[name](None, dim(name))
    state = learner.start(dim(name))
    with np.errstate(over="ignore"):
        for sign in (1.0, -1.0, 1e-3, 0.0):
            state = learner.step(state, np.full(dim(name), sign * size))
            assert np.isfinite(learner.point(state)).all()
            assert np.isfinite(learner.answer(state)).all()
        assert not math.isnan(learner.regret(state, 1.0))


@pytest.mark.parametrize("size", [1e150, 1e160, 1e200, 1.7e308])
@pytest.mark.parametrize("prior", [Conjugate(), Uniform(), ChernovVovk(), Improper()])
def test_enormous_reports_never_give_nan_with_any_prior(prior, size):
    """Where V overflows, nothing is bet and nothing is promised."""
    learner = AdaptivePotential(prior=prior)
    state = learner.start(1)
    for g in (size, -size, 1.0, -size):
        state = learner.step(state, np.array([g]))
        assert np.isfinite(learner.point(state)).all()
    if math.isinf(state.V):
        assert learner.point(state)[0] == 0
        assert learner.regret(state, 1.0) == math.inf
