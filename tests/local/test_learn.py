"""`learn`: compiled against readable, one against many, cut against straight; and what hostile rows do."""

import math

import numpy as np
import pytest
import scipy.sparse
from tests.shared_table import LEARNERS

from untold.convex.losses import LOSSES, GeometricMedian, Hinge, Huber, Logistic, Multinomial, Squared
from untold.errors import AssumptionError, DataError, ParameterError
from untold.kernels.rows import checked_rows
from untold.kernels.slopes import slope_of
from untold.kernels.twins import twin_of
from untold.learners.average import LAST, LINEAR, Average
from untold.learners.banco import Banco
from untold.learners.bettor import Bettor
from untold.learners.coordinatewise import Coordinatewise
from untold.learners.descent import Descent
from untold.learners.reduction import Reduction
from untold.learners.rules import AdaGradNorm, Constant, InverseRoot, StronglyConvex
from untold.local.crowd import crowd_of
from untold.local.learn import absorb, learn, learn_many
from untold.local.passes import Pass
from untold.private import noise
from untold.private.randomizers.duchi import Duchi
from untold.private.randomizers.gaussian import Gaussian
from untold.private.randomizers.normlaplace import NormLaplace
from untold.private.randomizers.privunitg import PrivUnitG

COMPILED = {
    "bettor": Bettor(horizon=500),  # of which there are more
    "banco": Banco(variance=1.0, tail=0.0),
    "reduction": Reduction(average=LINEAR),
    "coordinatewise": Coordinatewise(average=Average(3.0)),
    "coordinatewise-last": Coordinatewise(average=LAST),
    "descent": Descent(rule=Constant(0.1), average=Average(2.5)),
    "descent-root": Descent(rule=InverseRoot(0.3), average=LAST),
    "descent-strongly": Descent(rule=StronglyConvex(0.5)),
    "descent-weighted": Descent(rule=StronglyConvex(0.5, weighted=True)),
    "descent-adagrad": Descent(rule=AdaGradNorm(0.3)),
}
CROWDS = {
    "open": None,
    "privunit-g": PrivUnitG(2.0),
    "gaussian": Gaussian(2.0),
    "norm-laplace": NormLaplace(8.0, bound=0.5),
}


def same(a, b):
    """Bit for bit: NaN would not be equal to itself, and does not occur."""
    assert type(a) is type(b)
    for name, one, two in zip(a._fields, a, b, strict=True):
        assert np.array_equal(one, two), name


def rows(n, d, seed=0, hostile=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / math.sqrt(d)
    y = np.sign(X @ rng.normal(size=d) + 0.1 * rng.normal(size=n))
    if hostile:
        X[3, 0], X[5, -1], X[7], X[9] = np.nan, np.inf, 1e308, 1e-320
        X[11], X[13] = -1e200, 0.0
        y[15], y[17], y[19] = np.nan, 0.5, np.inf
    return X, y


def both(X, y, loss, randomizers, learner, states=None, bound=1.0, seed=5):
    """The same run, compiled and readable."""
    checked = checked_rows(X, y, len(randomizers))
    n, d = checked.count, checked.dim
    crowds = [crowd_of(r, n, bound, seed + m) for m, r in enumerate(randomizers)]
    states = states or [learner.start(d)] * len(randomizers)
    run = Pass(learner, loss, checked, crowds, states)
    return run.compiled(twin_of(learner), slope_of(loss)), run.readable()


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("dim", [1, 17])
def test_the_compiled_loop_has_the_bits_of_the_readable_one(name, crowd, dim):
    X, y = rows(700, dim, hostile=True)
    for fast, slow in zip(*both(X, y, Logistic(), [CROWDS[crowd]], COMPILED[name]), strict=True):
        same(fast, slow)
        assert np.isfinite(fast.w).all()
        assert fast.t == 700


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if slope_of(loss)], ids=str)
@pytest.mark.parametrize("kind", ["float64", "float32", "csr"])
def test_every_loss_and_every_kind_of_rows(loss, kind):
    X, y = rows(400, 6, seed=1, hostile=True)
    if loss.labels == "reals":
        y = y * 1.7
    if kind == "float32":
        with np.errstate(over="ignore"):
            X = X.astype(np.float32)
    if kind == "csr":
        X = scipy.sparse.csr_array(np.where(np.random.default_rng(2).random(X.shape) < 0.5, X, 0.0))
    for learner in (COMPILED["reduction"], COMPILED["coordinatewise"]):
        for crowd in (None, PrivUnitG(4.0)):
            for fast, slow in zip(*both(X, y, loss, [crowd], learner), strict=True):
                same(fast, slow)
                if kind == "csr":  # a sparse row has the bits of the full one
                    same(fast, both(X.toarray(), y, loss, [crowd], learner)[0][0])


def test_losses_without_a_compiled_form_are_learnt_row_by_row():
    X, y = rows(50, 3)
    assert {type(loss).__name__ for loss in LOSSES if not slope_of(loss)} == {
        "Multinomial", "GeometricMedian", "Mean",
    }  # fmt: skip
    assert learn(X, y, loss=Huber(), randomizer=Duchi(1.0), learner=Descent(rule=Constant(0.1))).state.t == 50


@pytest.mark.parametrize("name", [name for name in COMPILED if "banco" not in name])
def test_many_models_in_one_pass_are_as_many_passes(name):
    X, y = rows(900, 5)
    Y = np.stack([y, -y, np.roll(y, 1)])
    randomizers = [PrivUnitG(1.0), PrivUnitG(8.0), np.where(np.arange(900) % 3, 2.0, np.inf)]
    together = learn_many(X, Y, loss=Hinge(), randomizers=randomizers, learner=COMPILED[name], seed=3)
    for m, one in enumerate(together):
        alone = learn(X, Y[m], loss=Hinge(), randomizer=randomizers[m], learner=COMPILED[name], seed=3 + m)
        same(one.state, alone.state)


@pytest.mark.parametrize("cut", [1, 314, 315, 700, 1999])
@pytest.mark.parametrize("crowd", CROWDS)
def test_a_run_that_is_cut_and_resumed_is_the_straight_run(cut, crowd):
    X, y = rows(2000, 100)
    settings = {"loss": Logistic(), "randomizer": CROWDS[crowd], "seed": 1}
    settings["learner"] = COMPILED["reduction"]
    straight = learn(X, y, **settings)
    first = learn(X[:cut], y[:cut], **settings)
    same(learn(X[cut:], y[cut:], state=first.state, **settings).state, straight.state)


def test_a_run_that_does_not_use_the_seed_is_another_run_every_time():
    X, y = rows(300, 4)
    settings = {"loss": Logistic(), "randomizer": PrivUnitG(1.0), "learner": COMPILED["reduction"]}
    assert not np.array_equal(learn(X, y, **settings).weights, learn(X, y, **settings).weights)
    assert learn(X, y, **settings).guarantee.epsilon(0.0) == 1.0
    assert learn(X, y, seed=1, **settings).guarantee.epsilon(0.0) == math.inf  # a simulation promises nothing


def test_the_reports_are_those_of_the_randomizer():
    """Of rows that do not move the point: the mean and the energy of its reports."""
    n, d = 60_000, 10
    X = np.full((n, d), 1 / math.sqrt(d))
    still = Descent(rule=Constant(1e-300))
    checked, kept = checked_rows(X, np.ones(n), 1), np.empty((1, n, d))
    run = Pass(still, Logistic(), checked, [crowd_of(PrivUnitG(1.0), n, 1.0)], [still.start(d)])
    run.compiled(twin_of(still), slope_of(Logistic()), kept)
    g, r = -X[0] / 2, PrivUnitG(1.0)
    spread = math.sqrt(r.noise_energy(d) / d / n)
    assert np.abs(kept[0].mean(axis=0) - g).max() < 5 * spread  # 10 coordinates: 6e-6 a run
    assert ((kept[0] - g) ** 2).sum() / n == pytest.approx(r.noise_energy(d), rel=0.02)
    assert (kept[0] / r.grid % 1 == 0).all()


@pytest.mark.parametrize("dim", [1, 2, 16, 33])
@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "adaptive-potential"])
def test_absorb_is_step_by_step(name, dim):
    learner = LEARNERS[name](None, dim)
    reports = (
        np.random.default_rng(dim).normal(size=(300, dim)) * 10.0 ** np.arange(-3, 3).repeat(50)[:, None]
    )
    state = learner.start(dim)
    for g in reports:
        state = learner.step(state, g)
    same(absorb(learner, learner.start(dim), reports), state)
    half = absorb(learner, learner.start(dim), reports[:150])
    before = [np.copy(entry) for entry in half]
    spoilt = [
        np.where(np.arange(150)[:, None] == 77, bad, reports[150:]) for bad in (np.nan, np.inf, -np.inf)
    ]
    for bad in (*spoilt, reports[:, :-1], reports[np.newaxis]):
        with pytest.raises(DataError, match="finite numbers"):
            absorb(learner, half, bad)
    same(learner.step(half, reports[150:]), state)  # a batch is the loop
    same(absorb(learner, half, reports[:0]), half)
    assert all(np.array_equal(one, two) for one, two in zip(before, half, strict=True))
    same(absorb(learner, half, reports[150:]), state)


def test_every_provider_may_differ():
    X, y = rows(2000, 8)
    asked = []

    def ask(i):
        asked.append(i)
        return None if i % 2 else (Gaussian(1.0), NormLaplace(2.0))[i // 2 % 2]

    run = learn(X, y, loss=Logistic(), randomizer=ask, learner=Descent(rule=Constant(0.05)))
    assert set(asked) == set(range(2000))
    assert run.guarantee is None
    assert run.state.t == 2000
    levels = np.where(np.arange(2000) % 2, 0.5, 3.0)
    run = learn(X, y, loss=Logistic(), randomizer=levels, learner=Descent(rule=Constant(0.05)))
    assert run.guarantee.epsilon(0.0) == 3.0
    levels[7] = np.inf
    assert learn(X, y, loss=Logistic(), randomizer=levels, learner=Reduction()).guarantee is None


def test_the_noise_follows_each_rows_epsilon():
    n, d = 40_000, 6
    levels = np.where(np.arange(n) % 2, 0.5, 8.0)
    levels[::7] = np.inf
    still = Descent(rule=Constant(1e-300))
    checked, kept = checked_rows(np.zeros((n, d)), np.ones(n), 1), np.empty((1, n, d))
    run = Pass(still, Logistic(), checked, [crowd_of(levels, n, 1.0)], [still.start(d)])
    run.compiled(twin_of(still), slope_of(Logistic()), kept)
    energy = (kept[0] ** 2).sum(axis=1)
    assert (energy[::7] == 0).all()
    for level in (0.5, 8.0):
        assert energy[levels == level].mean() == pytest.approx(PrivUnitG(level).noise_energy(d), rel=0.05)


def test_a_loss_without_labels():
    X = np.random.default_rng(0).normal(loc=(1.0, -2.0), size=(4000, 2))
    run = learn(X, None, loss=GeometricMedian(), randomizer=PrivUnitG(4.0))
    np.testing.assert_allclose(run.weights, [1.0, -2.0], atol=0.4)


def test_rows_that_cannot_be_read_report_nothing():
    X, y = rows(40, 4)
    X[:, 2] = np.nan
    run = learn(X, y, loss=Logistic(), randomizer=None, learner=Descent(rule=Constant(0.1)))
    assert (run.weights == 0).all()
    X, y = rows(40, 4)
    assert (
        learn(X, y * 2, loss=Logistic(), randomizer=None, learner=Descent(rule=Constant(0.1))).weights == 0
    ).all()


def test_an_empty_stream_gives_the_point_it_started_from():
    learner = COMPILED["reduction"]
    run = learn(np.empty((0, 3)), [], loss=Logistic(), randomizer=PrivUnitG(1.0), learner=learner)
    assert run.weights.tolist() == [0, 0, 0]
    assert run.state.t == 0
    assert run.regret(1.0) >= 0


BAD = [
    ({"X": np.ones(3)}, DataError, "matrix of rows"),
    ({"y": np.array([True, False, True]), "loss": Logistic()}, DataError, "Got booleans"),
    ({"loss": Multinomial(classes=3)}, AssumptionError, "must not be Multinomial"),
    ({"X": [["a"]], "y": [1]}, DataError, "`X` of learn must be an array"),
    ({"X": np.ones((3, 0))}, DataError, "matrix of rows"),
    ({"y": [1, 1]}, DataError, "one label a row, 3"),
    ({"y": ["a", "b", "c"]}, DataError, "`y` of learn must be an array"),
    ({"randomizer": [1.0, 2.0]}, ParameterError, "3 values of ε"),
    ({"randomizer": [1.0, 2.0, -1.0]}, ParameterError, "randomizer"),
    ({"randomizer": [1.0, 2.0, np.nan]}, ParameterError, "randomizer"),
    ({"randomizer": "strong"}, ParameterError, "randomizer"),
    ({"bound": 0.0, "randomizer": None}, ParameterError, "bound"),
    ({"randomizer": Duchi(1.0), "learner": Reduction()}, AssumptionError, "Reduction must not be Duchi"),
    ({"randomizer": lambda i: Duchi(1.0), "learner": Reduction()}, AssumptionError, "must not be Duchi"),
    ({"state": Reduction().start(5), "learner": Reduction()}, DataError, "5 columns"),
]


@pytest.mark.parametrize(("changed", "error", "message"), BAD, ids=[message for _, _, message in BAD])
def test_what_does_not_fit_is_refused_before_anything_is_learnt(changed, error, message):
    usual = {
        "X": np.ones((3, 2)), "y": np.ones(3), "loss": Squared(), "randomizer": PrivUnitG(1.0),
        "learner": Descent(rule=Constant(0.1)),
    }  # fmt: skip
    with pytest.raises(error, match=message):
        learn(**{**usual, **changed})


def test_many_models_want_one_round():
    learner, (X, y) = Reduction(), rows(10, 2)
    later = learn(X, y, loss=Logistic(), randomizer=None, learner=learner).state
    settings = {"loss": Logistic(), "learner": learner}
    with pytest.raises(DataError, match="one round"):
        learn_many(X, y, randomizers=[None, None], states=[learner.start(2), later], **settings)
    with pytest.raises(ParameterError, match="at least one"):
        learn_many(X, y, randomizers=[], **settings)


def test_a_memory_mapped_file_is_given_back_as_it_is_read(tmp_path):
    X, y = rows(400_000, 30)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    settings = {"loss": Logistic(), "randomizer": None, "learner": COMPILED["reduction"]}
    same(
        learn(mapped[1000:], y[1000:], **settings).state,
        learn(X.astype(np.float32)[1000:], y[1000:], **settings).state,
    )


def test_a_report_that_floats_cannot_decide_is_decided_and_the_loop_goes_on(monkeypatch):
    """Words of zeros have no logarithm in floats: those rows go to ball arithmetic, in both ways alike."""
    draw, decided = noise.privunit_g_draws, []

    def draws(rows, dim, source):
        drawn = draw(rows, dim, source)
        drawn.radial[5, 0] = drawn.radial[6, 0] = drawn.tails[9] = 0
        return drawn

    def decide(self, i, *rest):
        decided.append(i)
        kept(self, i, *rest)

    kept = noise.Draws.decide
    monkeypatch.setattr(noise, "privunit_g_draws", draws)
    monkeypatch.setattr(noise.Draws, "decide", decide)
    X, y = rows(40, 12)
    (fast,), (slow,) = both(X, y, Logistic(), [PrivUnitG(1.0)], COMPILED["descent"])
    same(fast, slow)
    assert fast.t == 40
    assert np.abs(fast.w).max() < 100  # what is left undecided would be beyond 10¹²
    assert {5, 6, 9} <= set(decided)


@pytest.mark.parametrize("crowd", [PrivUnitG(1.0), Gaussian(1.0), NormLaplace(1.0)])
def test_no_noise_is_used_twice_in_a_seeded_run(crowd):
    n, d = 3000, 40
    still = Descent(rule=Constant(1e-300))
    checked, kept = checked_rows(np.zeros((n, d)), np.ones(n), 1), np.empty((1, n, d))
    run = Pass(still, Logistic(), checked, [crowd_of(crowd, n, 1.0, seed=1)], [still.start(d)])
    run.compiled(twin_of(still), slope_of(Logistic()), kept)
    assert len(np.unique(kept[0], axis=0)) == n
