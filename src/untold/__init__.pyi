from .errors import UntoldError as UntoldError
from .private.accountant import Accountant as Accountant
from .private.ledger import Ledger as Ledger
from .private.randomizers.duchi import Duchi as Duchi
from .private.randomizers.gaussian import Gaussian as Gaussian
from .private.randomizers.locallaplace import LocalLaplace as LocalLaplace
from .private.randomizers.mutualinformation import MutualInformation as MutualInformation
from .private.randomizers.normlaplace import NormLaplace as NormLaplace
from .private.randomizers.privunit import PrivUnit as PrivUnit
from .private.randomizers.privunitg import PrivUnitG as PrivUnitG

__version__: str
