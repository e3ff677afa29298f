"""The shared table: one row per algorithm, and every shared test runs on every row."""

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
