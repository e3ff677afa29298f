"""The vocabulary: what a loss, a domain, a randomiser, a learner, a guarantee and an accountant are.

Imports nothing of ours. Letters, here and everywhere: ``w`` a point, ``X`` a matrix of rows, ``y`` their
labels, ``g`` a subgradient, ``n`` rows, ``d`` dimension, ``T`` rounds, ``G`` a bound on the norm of g.

Data goes one way::

    row → Loss.subgradient → clip → quantise → Randomizer ‖ trust boundary ‖ → Learner.step → model
"""

from enum import StrEnum
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Accountant",
    "Domain",
    "Floats",
    "Guarantee",
    "Ints",
    "Learner",
    "Loss",
    "Randomizer",
    "Relation",
    "Unit",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Relation(StrEnum):
    """When two inputs are neighbours; part of every guarantee.

    >>> Relation.REPLACE_ONE.value
    'replace-one'
    """

    ADD_OR_REMOVE_ONE = "add-or-remove-one"
    REPLACE_ONE = "replace-one"


class Unit(StrEnum):
    """What one neighbour differs in: whom the guarantee protects.

    >>> Unit.REPORT.value
    'report'
    """

    ROW = "row"
    REPORT = "report"
    PERSON = "person"


class Guarantee(Protocol):
    """What may be claimed: a value that composes, converts and is written down."""

    @property
    def relation(self) -> Relation: ...
    @property
    def unit(self) -> Unit: ...
    def epsilon(self, delta: float) -> float: ...
    def to_json(self) -> dict[str, object]: ...


class Loss(Protocol):
    """A convex loss, for many rows at once; a single row (1-d ``X``) is the batch of one.

    ``value`` has shape (n,), ``subgradient`` (n, *w.shape); of a single row, () and w.shape.
    ``lipschitz`` and ``smoothness`` bound the
    norm of a row's subgradient and of its change, given ‖x‖₂ ≤ row_norm; inf where there is no bound.
    """

    def value(self, w: Floats, X: Floats, y: Floats) -> Floats: ...
    def subgradient(self, w: Floats, X: Floats, y: Floats) -> Floats: ...
    def lipschitz(self, row_norm: float) -> float: ...
    def smoothness(self, row_norm: float) -> float: ...


class Domain(Protocol):
    """A closed convex set; ``project`` returns the nearest point in L2.

    ``radius`` is in the set's own norm; ``reach`` and ``diameter`` are the largest L2 norm and distance.
    """

    def project(self, w: Floats) -> Floats: ...
    def contains(self, w: Floats, tolerance: float = 1e-9) -> bool: ...
    @property
    def radius(self) -> float: ...
    def reach(self, dim: int) -> float: ...
    def diameter(self, dim: int) -> float: ...


class Randomizer(Protocol):
    """Turns one person's vector into a report that may leave their hands.

    It clips to ``bound`` itself, so its guarantee holds for every input whatever. ``betting`` says how well
    it is known that E exp(s − s²) ≤ 1 + E s for s = v⟨report, a⟩ whenever |E s| ≤ 1/5, which learners
    that bet on reports rest on: "proved", "checked numerically" or "unknown".
    """

    @property
    def bound(self) -> float: ...
    @property
    def grid(self) -> float: ...
    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def symmetric(self) -> bool: ...
    @property
    def betting(self) -> str: ...
    def __call__(self, g: object) -> Floats: ...
    def encode(self, g: object) -> Ints: ...
    def noise_energy(self, dim: int) -> float: ...
    def subexponential(self, dim: int) -> tuple[float, float]: ...


S = TypeVar("S")


class Learner(Protocol[S]):
    """A pure function of its state: whatever it does is post-processing of reports.

    ``point`` is what to play next, ``answer`` what was learnt; ``accept`` refuses a randomiser whose reports
    would void the bound that ``regret`` gives, for a competitor of that norm.
    """

    def start(self, dim: int) -> S: ...
    def point(self, state: S) -> Floats: ...
    def step(self, state: S, noisy: Floats) -> S: ...
    def answer(self, state: S) -> Floats: ...
    def accept(self, randomizer: Randomizer, dim: int) -> None: ...
    def regret(self, state: S, norm: float) -> float: ...


class Accountant(Protocol):
    """Adds up guarantees about the same people."""

    def spend(self, cost: Guarantee, times: int = 1) -> Self: ...
    def epsilon(self, delta: float) -> float: ...
