"""The shared table: one row per algorithm, and every shared test runs on every row."""

from untold.convex.domains import L2Ball
from untold.learners.accelerated import AcceleratedDescent
from untold.learners.average import LINEAR
from untold.learners.banco import Banco
from untold.learners.bandit import BanditDescent
from untold.learners.base import longest
from untold.learners.bettor import Bettor
from untold.learners.coordinatewise import Coordinatewise
from untold.learners.descent import Descent
from untold.learners.dog import DistanceOverGradients
from untold.learners.information import LazyDescent
from untold.learners.mirror import MirrorDescent
from untold.learners.potential import AdaptivePotential
from untold.learners.priors import ChernovVovk, Uniform
from untold.learners.reduction import Reduction
from untold.learners.rules import AdaGradNorm, Constant, InverseRoot, StronglyConvex
from untold.private.randomizers.duchi import Duchi
from untold.private.randomizers.gaussian import Gaussian
from untold.private.randomizers.locallaplace import LocalLaplace
from untold.private.randomizers.mutualinformation import MutualInformation
from untold.private.randomizers.normlaplace import NormLaplace
from untold.private.randomizers.privunit import PrivUnit
from untold.private.randomizers.privunitg import PrivUnitG

RANDOMIZERS = {  # name → (ε, dimension) → randomiser of bound 1
    "norm-laplace": lambda epsilon, dim: NormLaplace(epsilon),
    "local-laplace": lambda epsilon, dim: LocalLaplace.even(epsilon, dim),
    "gaussian": lambda epsilon, dim: Gaussian(epsilon, delta=1e-5),
    "mutual-information": lambda epsilon, dim: MutualInformation(nats=epsilon),
    "privunit-g": lambda epsilon, dim: PrivUnitG(epsilon),
    "privunit": lambda epsilon, dim: PrivUnit(epsilon),
    "duchi": lambda epsilon, dim: Duchi(epsilon),
}


def _bound(randomizer, dim):
    return longest(randomizer, dim) if randomizer else 1.0


def _banco(randomizer, dim, **settings):
    if randomizer:
        return Banco.told(randomizer, dim, **settings)
    return Banco(variance=1.0, tail=0.5, **settings)


def _lazy(randomizer, dim):
    if randomizer:
        return LazyDescent.told(randomizer, dim, radius=2.0, horizon=100)
    return LazyDescent(radius=2.0, horizon=100, energy=2.0)


def _bandit(randomizer, dim):
    noise = randomizer.noise_energy(dim) if randomizer else 1.0
    return BanditDescent.planned(dim, radius=2.0, horizon=100, largest=0.1, lipschitz=1.0, noise=noise)


LEARNERS = {  # name → (randomiser or None, dimension) → learner for reports of mean at most 1, or its bound
    "accelerated-descent": lambda r, dim: AcceleratedDescent(eta=0.1),
    "accelerated-descent-strongly": lambda r, dim: AcceleratedDescent(
        eta=0.3, strength=0.5, domain=L2Ball(2.0)
    ),
    "banco": _banco,
    "banco-p": lambda r, dim: _banco(r, dim, p=1.5),
    "adaptive-potential": lambda r, dim: AdaptivePotential(bound=_bound(r, dim)),  # one dimension only
    "reduction": lambda r, dim: Reduction(bound=_bound(r, dim)),
    "reduction-p": lambda r, dim: Reduction(prior=Uniform(), p=1.5, bound=_bound(r, dim)),
    "reduction-chernov-vovk": lambda r, dim: Reduction(prior=ChernovVovk(), bound=_bound(r, dim)),
    "coordinatewise": lambda r, dim: Coordinatewise(bound=r.bound if r else 1.0),
    "bettor": lambda r, dim: Bettor(horizon=50, bound=_bound(r, dim)),
    "bettor-told": lambda r, dim: Bettor(horizon=500, bound=_bound(r, dim), variance=1e4),
    "mirror-descent": lambda r, dim: MirrorDescent(radius=2.0),
    "mirror-descent-p": lambda r, dim: MirrorDescent(p=1.2, radius=2.0),
    "lazy-descent": _lazy,
    "bandit-descent": _bandit,
    "descent": lambda r, dim: Descent(rule=Constant(0.1)),
    "descent-inverse-root": lambda r, dim: Descent(rule=InverseRoot(0.3), domain=L2Ball(2.0)),
    "descent-strongly-convex": lambda r, dim: Descent(
        rule=StronglyConvex(0.5), domain=L2Ball(2.0), average=LINEAR
    ),
    "descent-adagrad-norm": lambda r, dim: Descent(rule=AdaGradNorm(0.3), domain=L2Ball(2.0)),
    "distance-over-gradients": lambda r, dim: DistanceOverGradients(first=0.01),
}
