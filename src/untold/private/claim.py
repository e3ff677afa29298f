"""What every guarantee shares: whom it protects, what it assumes, how it composes, prints and travels.

A claim is a value. It says how two neighbouring inputs may differ (`relation`), whom that protects
(`unit`), what leaves the boundary (`released`), what has to hold besides the proof (`assumptions`) and
whose theorem it is (`citation`). It answers δ(ε) and ε(δ), and it never mixes silently: claims about
different relations or units do not compose, and a seeded one is no longer private.
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Required, Self, TypedDict

from untold.core import Relation, Unit
from untold.errors import AssumptionError, between, one_of, refuse, whole
from untold.private.amounts import at_least_zero, number, written

__all__ = ["VERSION", "Claim", "Common", "same_people"]

VERSION = 1
"""Of the JSON form; a reader refuses any other."""


class Common(TypedDict, total=False):
    """The keyword arguments of every kind of guarantee."""

    relation: Required[Relation]
    unit: Required[Unit]
    assumptions: tuple[str, ...]
    released: str
    citation: str
    seeded: bool


@dataclass(frozen=True, kw_only=True, repr=False)
class Claim(ABC):
    """The base of all guarantees; see `untold.private.guarantees` for the kinds.

    Guarantee: none by itself. ``epsilon`` and ``delta`` are upper bounds, exact up to rounding where the
    kind says so, and infinite (one) for a seeded claim: whoever holds the seed can undo the noise.
    """

    relation: Relation
    unit: Unit
    assumptions: tuple[str, ...] = ()
    released: str = ""
    citation: str = ""
    seeded: bool = False

    kind: ClassVar[str] = ""
    name: ClassVar[str] = ""
    amounts: ClassVar[Mapping[str, str]] = {}
    """Constructor argument → attribute holding it; the JSON form uses the same words."""

    def __post_init__(self) -> None:
        kind = type(self).__name__
        relation = Relation(one_of("relation", self.relation, list(Relation), of=kind))
        object.__setattr__(self, "relation", relation)
        object.__setattr__(self, "unit", Unit(one_of("unit", self.unit, list(Unit), of=kind)))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        one_of("seeded", self.seeded, (False, True), of=kind)
        for line in (*self.assumptions, self.released, self.citation):
            if not isinstance(line, str):
                raise refuse("assumptions", line, of=kind, allowed="text")

    @abstractmethod
    def _epsilon(self, delta: float) -> float: ...

    @abstractmethod
    def _delta(self, epsilon: float) -> float: ...

    @abstractmethod
    def _plus(self, other: Self) -> dict[str, object]: ...

    @abstractmethod
    def _times(self, count: int) -> dict[str, object]: ...

    @abstractmethod
    def _group(self, size: int) -> dict[str, object]: ...

    @abstractmethod
    def _formula(self) -> str: ...

    def epsilon(self, delta: float) -> float:
        """The smallest known ε at which the claim is (ε, δ)-differential privacy; inf if there is none."""
        delta = between("delta", delta, 0.0, 1.0, of=type(self).__name__)
        return math.inf if self.seeded else self._epsilon(delta)

    def delta(self, epsilon: float) -> float:
        """The smallest known δ at which the claim is (ε, δ)-differential privacy."""
        epsilon = at_least_zero("epsilon", epsilon, of=type(self).__name__)
        return 1.0 if self.seeded else self._delta(epsilon)

    def compose(self, other: "Claim") -> "Claim":
        """Both, about the same people; the second mechanism may be chosen knowing the first's output.

        Two of a kind stay that kind; others meet in the tightest kind both can be turned into.
        """
        from untold.private.conversions import together

        return together(self, other)

    def times(self, count: int) -> Self:
        """The same cost, `count` times over, about the same people."""
        return self._but(**self._times(whole("count", count, of="times")))

    def group(self, size: int, *, unit: Unit | None = None) -> Self:
        """The claim for `size` units at once: a household, or one person who owns `size` rows."""
        changed = self._group(whole("size", size, of="group"))
        return self._but(**changed, unit=self.unit if unit is None else unit)

    def seed_stamped(self) -> Self:
        """The same claim for a run whose noise came from a seed: a simulation, not private."""
        return self._but(seeded=True)

    def assuming(self, *lines: str) -> Self:
        """The same claim, with more that has to hold."""
        return self._but(assumptions=(*self.assumptions, *(a for a in lines if a not in self.assumptions)))

    def common(self) -> Common:
        """The shared part, to build another claim about the same people."""
        return Common(
            relation=self.relation,
            unit=self.unit,
            assumptions=self.assumptions,
            released=self.released,
            citation=self.citation,
            seeded=self.seeded,
        )

    def to_json(self) -> dict[str, object]:
        """A plain dict for `json`; `untold.private.guarantees.from_json` reads it back unchanged."""
        amounts = {word: self._written(word) for word in self.amounts}
        shared: dict[str, object] = {**self.common(), "assumptions": list(self.assumptions)}
        shared |= {"relation": self.relation.value, "unit": self.unit.value}
        return {"version": VERSION, "kind": self.kind, **amounts, **shared}

    def _written(self, word: str) -> object:
        value = getattr(self, self.amounts[word])
        return written(value) if isinstance(value, float) else value

    @classmethod
    def _read(cls, word: str, value: object) -> object:  # noqa: ARG003 -- kinds of several shapes need it
        """The inverse of `_written`."""
        return number(value)

    def _but(self, **changes: object) -> Self:
        """A copy with some fields changed, checked like a new one."""
        other = copy.copy(self)
        for field, value in changes.items():
            object.__setattr__(other, field, value)
        other.__post_init__()
        return other

    def __str__(self) -> str:
        line = f"{self._formula()}: {self.name}, {self.relation}, per {self.unit}"
        if self.released:
            line += f"; releases {self.released}"
        if self.assumptions:
            line += f"; assumes {' and '.join(self.assumptions)}"
        return f"seeded: not private (unseeded it would be {line})" if self.seeded else line

    def __repr__(self) -> str:
        amounts = [f"{word}={getattr(self, field)!r}" for word, field in self.amounts.items()]
        said = {**self.common(), "relation": self.relation.value, "unit": self.unit.value}
        shared = [f"{word}={value!r}" for word, value in said.items() if value]
        return f"{type(self).__name__}({', '.join(amounts + shared)})"


def same_people(*claims: Claim) -> None:
    """Refuse claims whose neighbours or units differ: their sum would mean nothing."""
    first = claims[0]
    for other in claims[1:]:
        for what, one, two in (
            ("relation", first.relation, other.relation),
            ("unit", first.unit, other.unit),
        ):
            if one != two:
                raise AssumptionError(
                    f"`{what}` of composed guarantees must be the same. Got {one.value!r} and {two.value!r}.",
                    hint="conversions.replace_one and Claim.group restate a claim, at its price.",
                )
