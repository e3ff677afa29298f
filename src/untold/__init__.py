"""Private convex learning that asks for ε and nothing else.

The public list is ``__init__.pyi``; each name is loaded when it is first asked for, so that ``import
untold`` is instant.

>>> import untold
>>> r = untold.PrivUnitG(epsilon=1.0)
>>> r([0.6, 0.8]).shape
(2,)
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
