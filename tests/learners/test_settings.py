"""What learners refuse: bad settings in one form of words, and randomisers that would void their bounds."""

import math
import re
from functools import partial

import numpy as np
import pytest
from tests.shared_table import LEARNERS, RANDOMIZERS

from untold.errors import AssumptionError, DataError, ParameterError
from untold.learners.average import LAST, Average
from untold.learners.banco import Banco
from untold.learners.bandit import BanditDescent, one_point_gradient
from untold.learners.coordinatewise import Coordinatewise
from untold.learners.descent import Descent
from untold.learners.dog import DistanceOverGradients
from untold.learners.information import LazyDescent
from untold.learners.mirror import MirrorDescent
from untold.learners.potential import AdaptivePotential
from untold.learners.priors import ChernovVovk, Conjugate
from untold.learners.reduction import Reduction
from untold.learners.rules import AdaGradNorm, Constant, InverseRoot, StronglyConvex
from untold.private.randomizers.gaussian import Gaussian
from untold.private.randomizers.locallaplace import LocalLaplace
from untold.private.randomizers.normlaplace import NormLaplace
from untold.private.randomizers.privunitg import PrivUnitG

bad_setting = partial(pytest.raises, ParameterError)
bad_pair = partial(pytest.raises, AssumptionError)

LAZY = {"radius": 1.0, "horizon": 10, "energy": 1.0}
BANDIT = {**LAZY, "delta": 0.1, "largest": 1.0, "lipschitz": 1.0}
PLAN = {"radius": 1.0, "horizon": 10, "largest": 1.0, "lipschitz": 1.0, "noise": 1.0}
SMOOTH = {"beta": 1.0, "distance": 1.0, "variance": 1.0, "horizon": 10}
NOISE = {"variance": 1.0, "tail": 1.0}


def form(what, given):
    return rf"^`{what}` of \w+ must be a .*number.*\. Got {re.escape(repr(given))}\."


POSITIVE = [
    *((kind, "bound", {}) for kind in (AdaptivePotential, Reduction, Coordinatewise)),
    (Banco, "bound", NOISE), (Coordinatewise, "b", {}), (Conjugate, "b", {}), (MirrorDescent, "radius", {}),
    *((LazyDescent, what, LAZY) for what in ("radius", "energy")),
    *((BanditDescent, what, BANDIT) for what in ("largest", "lipschitz", "delta")),
    (DistanceOverGradients, "first", {}), (Constant, "eta", {}), (InverseRoot, "scale", {}),
    (StronglyConvex, "strength", {}), (AdaGradNorm, "scale", {}),
    *((Constant.convex_smooth, what, SMOOTH) for what in ("beta", "distance", "variance")),
    *((Constant.nonconvex_smooth, what, {"gap": 1.0, **{k: v for k, v in SMOOTH.items() if k != "distance"}})
      for what in ("beta", "gap", "variance")),
    (Constant.convex_lipschitz, "distance", {"lipschitz": 1.0, "variance": 0.0, "horizon": 10}),
]  # fmt: skip
NAMES = [f"{getattr(kind, '__qualname__', kind)}-{what}" for kind, what, _ in POSITIVE]


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, None, "1", True])
@pytest.mark.parametrize(("kind", "what", "others"), POSITIVE, ids=NAMES)
def test_what_must_be_positive(kind, what, others, bad):
    with pytest.raises(ParameterError, match=form(what, bad)):
        kind(**{**others, what: bad})


OTHERS = {Banco: NOISE, LazyDescent: LAZY, BanditDescent: BANDIT, AdaGradNorm: {"scale": 1.0}}
RANGES = [
    *((kind, "p", bad) for kind in (Reduction, MirrorDescent) for bad in (1.0, 2.1, math.nan, 0, "2")),
    *((Banco, "p", bad) for bad in (1.0, 2.1, math.nan)),
    *((Banco, what, bad) for what in NOISE for bad in (-1e-9, math.inf, math.nan)),
    *((LazyDescent, "horizon", bad) for bad in (0, 1.5, math.inf, None)),
    *((BanditDescent, "delta", bad) for bad in (1.0, 2.0)),
    *((AdaGradNorm, "start", bad) for bad in (-1.0, math.inf, math.nan)),
    *((Average, "decay", bad) for bad in (-1.0, math.nan, None)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "what", "bad"), RANGES)
def test_what_has_a_range(kind, what, bad):
    others = {Banco: NOISE, LazyDescent: LAZY, BanditDescent: BANDIT, AdaGradNorm: {"scale": 1.0}}.get(
        kind, {}
    )
    with pytest.raises(ParameterError, match=form(what, bad)):
        kind(**{**others, what: bad})


def test_settings_that_belong_together():
    with pytest.raises(
        ParameterError, match=r"^`bound` of ChernovVovk must be above 1/5\. Got 0\.2\.\nhint: "
    ):
        AdaptivePotential(prior=ChernovVovk(), bound=0.2)
    with pytest.raises(
        ParameterError, match=r"^`bound` of ChernovVovk must be above 1/5\. Got 0\.1\.\nhint: "
    ):
        Reduction(prior=ChernovVovk(), bound=0.1)
    for decay in (0.5, 17.0, 1e300):
        with pytest.raises(ParameterError, match=r"^`average` of Coordinatewise must be of a whole decay up"):
            Coordinatewise(average=Average(decay))
    Coordinatewise(average=LAST)
    with pytest.raises(
        ParameterError, match=r"^`constants` of Banco must be one of 'paper', 'tight'\. Got 'x'"
    ):
        Banco.told(NormLaplace(1.0), 2, constants="x")
    with bad_setting(match=r"^`horizon` of BanditDescent must be a whole number"):
        BanditDescent.planned(2, **{**PLAN, "horizon": 0})


def test_a_direction_is_a_unit_vector():
    learner = BanditDescent(**BANDIT)
    state = learner.start(2)
    for e in ([1.0, 1.0], [1.0], [math.nan, 0.0], [0.0, 0.0]):
        with pytest.raises(DataError, match=r"^`e` of BanditDescent\.played must be a unit vector\.$"):
            learner.played(state, np.array(e))
    with bad_setting(match=r"^`delta` of one_point_gradient must be"):
        one_point_gradient(1.0, np.array([1.0]), 0.0)


def test_sparse_reports_are_checked():
    learner = Coordinatewise()
    state = learner.start(3)
    bad = [
        ([0, 0], [1.0, 1.0]), ([3], [1.0]), ([-1], [1.0]), ([0, 1], [1.0]), ([0], [math.nan]),
        ([0], [math.inf]), ([[0]], [[1.0]]), ([0.0], [1.0]), ([True, False], [1.0, 2.0]),
        ([True, False, True], [1.0, 2.0, 3.0]), (["0"], [1.0]),
    ]  # fmt: skip
    for index, values in bad:
        with pytest.raises(DataError, match=r"^a sparse report to Coordinatewise must be finite .* 0 … 2\.$"):
            learner.step_sparse(state, index, values)
    assert learner.step_sparse(state, [], []).t == 1  # a report of zeros
    assert learner.step_sparse(state, np.array([2], dtype=np.uint8), [1.0]).L.tolist() == [0.0, 0.0, -1.0]


# Which randomisers

BETTING = {"adaptive-potential", "reduction", "reduction-p", "reduction-chernov-vovk", "coordinatewise"}


@pytest.mark.parametrize("kind", sorted(RANDOMIZERS))
@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_accept(name, kind):
    """Told of a randomiser, a learner takes it, unless it bets and the noise is not known to be safe."""
    dim = 1 if name == "adaptive-potential" else 4
    randomizer = RANDOMIZERS[kind](1.0, dim)
    learner = LEARNERS[name](randomizer, dim)
    if name in BETTING and kind in {"privunit", "duchi"}:
        with pytest.raises(AssumptionError, match=r"^`randomizer` of \w+ must not be \w+: its noise is not"):
            learner.accept(randomizer, dim)
    elif name == "bettor-told" and kind in {"norm-laplace", "local-laplace"}:
        with pytest.raises(
            AssumptionError, match=r"^`randomizer` of Bettor must not be \w+: its noise is not"
        ):
            learner.accept(randomizer, dim)
    elif name == "bandit-descent":
        with pytest.raises(
            AssumptionError, match=r"^`randomizer` of BanditDescent must not be \w+: it clips to 1"
        ):
            LEARNERS[name](None, dim).accept(randomizer, dim)
    else:
        learner.accept(randomizer, dim)


@pytest.mark.parametrize("name", sorted(BETTING | {"banco", "banco-p"}))
def test_a_larger_bound_is_refused(name):
    dim = 1 if name == "adaptive-potential" else 4
    learner = LEARNERS[name](Gaussian(1.0, delta=1e-5), dim)
    learner.accept(Gaussian(1.0, delta=1e-5, bound=0.5), dim)
    with bad_pair(match=r"^`randomizer` of \w+ must not be Gaussian: "):
        learner.accept(Gaussian(1.0, delta=1e-5, bound=1.001), dim)


def test_banco_refuses_more_noise_than_it_was_told_of():
    learner = Banco.told(PrivUnitG(1.0), 4)
    learner.accept(PrivUnitG(1.1), 4)
    for randomizer in (PrivUnitG(0.9), NormLaplace(1.0)):
        with pytest.raises(
            AssumptionError, match=r"its noise exceeds bound 1, variance .*\nhint: use Banco\.told"
        ):
            learner.accept(randomizer, 4)
    with bad_pair(match="its noise exceeds"):
        Banco(variance=1e9, tail=3.9).accept(NormLaplace(1.0), 4)  # b = 4 there


def test_banco_as_printed():
    learner = Banco.told(NormLaplace(0.5, bound=2.0), 3, constants="paper")
    assert (learner.variance, learner.tail) == (18 * 9 * 4 / 0.25, 16.0)
    assert learner.a == 1 / 16
    assert Banco(variance=0.0, tail=0.0, bound=2.0).a == pytest.approx(0.3419)
    with bad_pair(match="its noise exceeds"):  # ε(0) = ∞ would be no noise at all
        Banco.told(Gaussian(1.0, delta=1e-5), 3, constants="paper")


def test_lazy_descent_refuses_more_energy():
    learner = LazyDescent.told(Gaussian(1.0, delta=1e-5), 3, radius=1.0, horizon=10)
    learner.accept(Gaussian(1.0, delta=1e-4), 3)
    with bad_pair(match=r"must not be Gaussian: E‖report‖² may be .* planned for\.$"):
        learner.accept(Gaussian(0.9, delta=1e-5), 3)
    with bad_pair(match="planned for"):
        learner.accept(Gaussian(1.0, delta=1e-5), 4)


def test_bandit_descent_refuses_what_would_clip():
    noise = Gaussian(1.0, delta=1e-5, bound=40.0)
    learner = BanditDescent(radius=1.0, horizon=10, energy=1e12, delta=0.1, largest=1.0, lipschitz=1.0)
    learner.accept(noise, 4)  # dF/δ = 40
    with bad_pair(match="it clips to 40, below dF/δ = 50"):
        learner.accept(noise, 5)


def test_a_clip_of_each_coordinate_is_longer_in_l2():
    """A report of LocalLaplace has mean of length up to √d·bound; bounds that rest on ‖E g̃‖ must know."""
    d = 100
    public = LocalLaplace([math.inf] * d)  # no noise at all
    assert Banco.told(public, d).bound == 10.0
    assert LazyDescent.told(public, d, radius=1.0, horizon=9).energy == pytest.approx(100.0)
    Reduction(bound=10.0).accept(public, d)
    Coordinatewise().accept(public, d)
    rounds = [np.full(d, -0.1)] * 30 + [np.ones(d)]
    for learner, kept in [
        (Reduction(), False), (Banco(variance=0.0, tail=0.0), False),
        (Reduction(bound=10.0), True), (Banco.told(public, d), True), (Coordinatewise(), True),
    ]:  # fmt: skip
        state, regret = learner.start(d), 0.0
        for g in rounds:
            regret += public(g) @ learner.point(state)
            state = learner.step(state, public(g))
        assert (regret <= learner.regret(state, 0.0)) == kept
        if not kept:
            assert regret > 5 * learner.regret(state, 0.0)
            with bad_pair(match=r"must not be LocalLaplace: "):
                learner.accept(public, d)


@pytest.mark.parametrize("learner", [MirrorDescent(), Descent(rule=Constant(1.0)), DistanceOverGradients()])
@pytest.mark.parametrize("kind", sorted(RANDOMIZERS))
def test_some_learners_take_every_noise(learner, kind):
    learner.accept(RANDOMIZERS[kind](1.0, 4), 4)
