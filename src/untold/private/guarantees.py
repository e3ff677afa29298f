"""What may be claimed: one frozen value per kind of guarantee, and how it is read back from JSON.

=================== ============================================ ==========================
kind                says                                         composes by
=================== ============================================ ==========================
`Pure`              P(S) ≤ e^ε Q(S)                              Σε
`Approximate`       P(S) ≤ e^ε Q(S) + δ                          Σε, Σδ
`ZCDP`              D_α(P‖Q) ≤ αρ for all α > 1                  Σρ
`GDP`               no harder to test than N(0,1) against N(μ,1) √Σμ²
`RDP`               D_α(P‖Q) ≤ v(α) at given orders              Σv, order by order
`PLD`               the loss of these noisy sums                 listing them all
`InformationBound`  I(input; output) ≤ nats, for every prior     Σ nats
=================== ============================================ ==========================

P and Q are the outputs on neighbours. Sources: Dwork et al. (2006); Bun & Steinke (2016); Dong, Roth &
Su (2022); Mironov (2017); proofs in ``proofs/accounting.md``. Ways from one kind to another are in
`untold.private.conversions`; adding them up and choosing the best way is `untold.private.accountant`.

>>> from untold.core import Relation, Unit
>>> one = Pure(1.0, relation=Relation.REPLACE_ONE, unit=Unit.REPORT, released="one noisy vector")
>>> print(one)
ε = 1, δ = 0: pure differential privacy, replace-one, per report; releases one noisy vector
>>> one.times(3).epsilon(0.0)
3.0
>>> from_json(one.to_json()) == one
True
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from untold.errors import AssumptionError, DataError, UntoldError
from untold.private.amounts import at_least_zero, shown
from untold.private.claim import VERSION, Claim
from untold.private.classic import Approximate, Pure
from untold.private.concentrated import GDP, RDP, ZCDP
from untold.private.gaussian_profile import gaussian_sigma, gdp_mu
from untold.private.loss_distributions import PLD
from untold.private.noisy_sums import Noise, Response

__all__ = [
    "GDP",
    "PLD",
    "RDP",
    "ZCDP",
    "Approximate",
    "Claim",
    "InformationBound",
    "Noise",
    "Pure",
    "Response",
    "from_json",
    "gaussian_sigma",
    "gdp_mu",
]


@dataclass(frozen=True, repr=False)
class InformationBound(Claim):
    """At most `nats` of mutual information between one input and what is released, for every prior.

    Guarantee: none in terms of ε: a rare input may be revealed with certainty, so ``epsilon(δ)`` is inf.

    >>> from untold.core import Relation, Unit
    >>> InformationBound(0.1, relation=Relation.REPLACE_ONE, unit=Unit.REPORT).epsilon(0.01)
    inf
    """

    nats: float

    kind: ClassVar[str] = "information"
    name: ClassVar[str] = "bounded mutual information, which implies no ε"
    amounts: ClassVar[dict[str, str]] = {"nats": "nats"}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "nats", at_least_zero("nats", self.nats, of="InformationBound"))

    def _epsilon(self, delta: float) -> float:
        return 0.0 if delta == 1 or self.nats == 0 else math.inf

    def _delta(self, epsilon: float) -> float:  # noqa: ARG002 -- the same at every ε
        return 0.0 if self.nats == 0 else 1.0

    def _plus(self, other: Self) -> dict[str, object]:
        return {"nats": self.nats + other.nats}

    def _times(self, count: int) -> dict[str, object]:
        return {"nats": self.nats * count}

    def _group(self, size: int) -> dict[str, object]:
        raise AssumptionError(f"an information bound says nothing about a group. Got {size}.")

    def _formula(self) -> str:
        return f"I ≤ {shown(self.nats)} nats"


KINDS: dict[str, type[Claim]] = {
    kind.kind: kind for kind in (Pure, Approximate, ZCDP, GDP, RDP, PLD, InformationBound)
}
"""Every kind that may be read; nothing is ever imported by a name found in a file."""

SHARED = {"relation", "unit", "assumptions", "released", "citation", "seeded"}


def from_json(data: object) -> Claim:
    """The guarantee `Claim.to_json` wrote; anything else is refused with `DataError`.

    >>> from untold.core import Relation, Unit
    >>> claim = GDP(0.5, relation=Relation.ADD_OR_REMOVE_ONE, unit=Unit.ROW)
    >>> from_json(claim.to_json()) == claim
    True
    """
    if not isinstance(data, dict) or not all(isinstance(word, str) for word in data):
        raise DataError("`guarantee` of from_json must be an object with text keys.")
    fields: dict[str, Any] = dict(data)
    version, name = fields.pop("version", None), fields.pop("kind", None)
    if version != VERSION or isinstance(version, bool):
        raise DataError(
            f"`version` of a guarantee must be {VERSION}.", hint="read it with the untold that wrote it."
        )
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise DataError(f"`kind` of a guarantee must be one of {', '.join(sorted(KINDS))}.")
    if fields.keys() != SHARED | kind.amounts.keys():
        wanted = ", ".join(sorted(SHARED | kind.amounts.keys()))
        raise DataError(f"the fields of a {name} guarantee must be {wanted}, and no others.")
    if not isinstance(fields["assumptions"], list):
        raise DataError("`assumptions` of a guarantee must be a list.")
    try:
        amounts: dict[str, Any] = {word: kind._read(word, fields.pop(word)) for word in kind.amounts}
        return kind(**amounts, **fields)
    except (UntoldError, TypeError) as error:
        raise DataError(f"a {name} guarantee could not be read: {error}") from error
