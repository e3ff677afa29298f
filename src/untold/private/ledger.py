"""A budget on disk: a debit is durable before anything is released, and survives whatever happens next.

One ledger is one data set or one person: every entry has the same relation and unit. A debit is written
and forced to the disk, and only when the commit has returned may the release happen. A crash in between
wastes budget; none overspends it.

The next cost may depend on earlier answers, so what fits is decided by a *filter*, fixed for the life of
the file (`untold.private.filters`): with ``delta = 0`` the sum of ε, exact in the decimals that were
written (0.1 fits three times into 0.3, and 1.0 not four times into 3.0); with ``delta > 0`` the sum of
Rényi divergences of one order.

What cannot be known from a file: that it is an older copy, put back after every process that saw the newer
one has gone. A process, a `Ledger`, a copy of one and a `Receipt` remember the last entry they saw, and
refuse a file that lacks it, or another file under its name. Nothing here resists somebody who may write
to the file and means to cheat. Keep it on a local disk: locks are unreliable on network file systems.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from untold.core import Guarantee
from untold.errors import AssumptionError, BudgetExhausted, LedgerError, between, positive, refuse
from untold.private import book
from untold.private.amounts import exact
from untold.private.claim import Claim
from untold.private.conversions import shared
from untold.private.filters import Filter, RenyiFilter, SumFilter
from untold.private.guarantees import from_json

__all__ = ["Ledger", "Receipt"]

SEEN: dict[Path, tuple[str, int, str]] = {}
"""What this process last saw in each file: incarnation, number of entries, last digest."""


@dataclass(frozen=True)
class Receipt:
    """Proof of one debit: whoever holds it can tell whether a ledger still knows of it."""

    number: int
    at: str
    purpose: str
    guarantee: Claim
    digest: str


class Ledger:
    """A durable budget of privacy, in one file.

    Guarantee: everything released after a debit is, together, (budget, delta)-differentially private for
    the unit and relation of its entries, however the debits were chosen.

    Args:
        path: The file. It is created if there is none; its directory must exist.
        budget: ε of everything together. Needed for a new file; must agree with an old one.
        delta: 0 for pure ε (the default of a new file), else δ of everything together.

    Edge cases:
        Copying, pickling, forking, threads, another process: the same file, never a second budget.
        A file that is damaged, truncated, of another version or older than one already seen: LedgerError.

    >>> import tempfile
    >>> from untold.core import Relation, Unit
    >>> from untold.private.guarantees import Pure
    >>> query = Pure(1.0, relation=Relation.REPLACE_ONE, unit=Unit.PERSON)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(f"{folder}/alice.ledger", budget=2.0)
    ...     with ledger.spending(query, purpose="a mean"):
    ...         pass  # the release
    ...     print(ledger.spent(), ledger.left(), len(ledger.entries()))
    1.0 1.0 1
    """

    def __init__(self, path: str | Path, budget: float | None = None, delta: float | None = None) -> None:
        try:
            self.path = Path(path).resolve()
        except (TypeError, ValueError, RuntimeError) as error:
            raise refuse("path", path, of="Ledger", allowed="the path of a file") from error
        if budget is not None:
            budget = positive("budget", budget, of="Ledger")
        if delta is not None:
            delta = between("delta", delta, 0, 1, of="Ledger", ends="[)")
        self._seen: tuple[str, int, str] | None = None
        if not book.exists(self.path):
            self._create(budget, delta or 0.0)
        terms, _ = self._read()
        self._agree("budget", budget, terms.budget)
        self._agree("delta", delta, terms.delta)
        self.budget, self.delta = float(terms.budget), float(terms.delta)

    def _create(self, budget: float | None, delta: float) -> None:
        if self.path in SEEN:
            raise LedgerError(f"the ledger {str(self.path)!r} has been deleted.", hint=book.RESTORE)
        if budget is None:
            raise refuse("budget", budget, of="Ledger", allowed="given for a new file")
        book.create(self.path, repr(budget), repr(delta))

    def _agree(self, what: str, given: float | None, kept: str) -> None:
        if given is not None and repr(given) != kept:
            raise LedgerError(
                f"`{what}` of the ledger {str(self.path)!r} must be {kept}, as in its file. Got {given!r}.",
                hint="a budget is fixed for the life of a ledger; leave it out to open an existing one.",
            )

    @property
    def rule(self) -> Filter:
        """What is summed, and its limit."""
        return RenyiFilter(self.budget, self.delta) if self.delta > 0 else SumFilter(self.budget)

    def debit(self, guarantee: Guarantee, purpose: str = "") -> Receipt:
        """Take a cost from the budget; when this returns, it is on the disk and the release may happen.

        Raises BudgetExhausted, with nothing written, if it does not fit.
        """
        claim = self._admissible(guarantee, purpose)
        rule = self.rule
        cost = rule.cost(claim)
        with book.opened(self.path, writing=True) as file:
            terms, entries = self._checked(book.read(file, self.path))
            if entries:
                shared(from_json(json.loads(entries[-1].guarantee)), claim)
            left = rule.limit - sum((Fraction(entry.cost) for entry in entries), Fraction(0))
            if cost > left:
                raise BudgetExhausted(
                    f"`guarantee` of Ledger must cost at most {float(left):g}. Got {float(cost):g}.",
                    hint=""
                    if self.delta == 0
                    else f"amounts are Rényi divergences of order {rule_order(rule):g}.",
                )
            before = entries[-1].digest if entries else book.sealed("", *terms)
            text = json.dumps(claim.to_json())
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            entry = book.append(file, before, (len(entries) + 1, now, purpose, text, str(cost)))
        self._remember(terms.incarnation, entry.number, entry.digest)
        return Receipt(entry.number, now, purpose, claim, entry.digest)

    @contextmanager
    def spending(self, guarantee: Guarantee, purpose: str = "") -> Iterator[Receipt]:
        """Debit first, then run the body, which releases. What was debited stays debited if it fails."""
        yield self.debit(guarantee, purpose)

    def _admissible(self, guarantee: Guarantee, purpose: object) -> Claim:
        if not isinstance(purpose, str) or purpose != purpose.encode(errors="replace").decode():
            raise refuse("purpose", purpose, of="Ledger", allowed="text")
        if not isinstance(guarantee, Claim):
            raise refuse("guarantee", type(guarantee).__name__, of="Ledger", allowed="a guarantee of untold")
        if guarantee.seeded:
            raise AssumptionError(
                "a seeded run is not private: it can be debited to no ledger.",
                hint="leave random_state out for a release; a simulation needs no ledger.",
            )
        return guarantee

    def spent(self) -> float:
        """What is gone, on the scale of the budget: exactly Σε, or the used share of a Rényi budget.

        With delta > 0 this is a share, not an ε: only the whole budget is promised.
        """
        rule = self.rule
        used = sum((Fraction(entry.cost) for entry in self._read()[1]), Fraction(0))
        return float(used * exact(self.budget) / rule.limit)

    def left(self) -> float:
        """The budget less what is spent."""
        rule = self.rule
        used = sum((Fraction(entry.cost) for entry in self._read()[1]), Fraction(0))
        return float((1 - used / rule.limit) * exact(self.budget))

    def entries(self) -> tuple[Receipt, ...]:
        """Every debit, oldest first."""
        return tuple(
            Receipt(
                entry.number, entry.at, entry.purpose, from_json(json.loads(entry.guarantee)), entry.digest
            )
            for entry in self._read()[1]
        )

    def holds(self, receipt: Receipt) -> bool:
        """Whether this file knows of a debit; False betrays an older copy put back, or another ledger."""
        return any(entry.digest == receipt.digest for entry in self._read()[1])

    def guarantee(self) -> Claim:
        """What all releases together guarantee, now and when the budget is used up."""
        entries = self.entries()
        if not entries:
            raise AssumptionError("an empty ledger has no guarantee: nothing has been spent.")
        claim = entries[0].guarantee
        for entry in entries[1:]:
            claim = claim._but(**shared(claim, entry.guarantee))
        return self.rule.whole(claim)

    def _read(self) -> tuple[book.Terms, list[book.Entry]]:
        with book.opened(self.path, writing=False) as file:
            return self._checked(book.read(file, self.path))

    def _checked(self, found: tuple[book.Terms, list[book.Entry]]) -> tuple[book.Terms, list[book.Entry]]:
        """What was read, unless something newer has already been seen under this name."""
        terms, entries = found
        for seen in (self._seen, SEEN.get(self.path)):
            if seen is None:
                continue
            incarnation, number, digest = seen
            if terms.incarnation != incarnation:
                raise LedgerError(
                    f"another ledger has taken the place of {str(self.path)!r}.", hint=book.RESTORE
                )
            if len(entries) < number or (number and entries[number - 1].digest != digest):
                raise LedgerError(
                    f"the ledger {str(self.path)!r} is an older copy: it lacks entry {number}.",
                    hint=book.RESTORE,
                )
        self._remember(terms.incarnation, len(entries), entries[-1].digest if entries else "")
        return terms, entries

    def _remember(self, incarnation: str, number: int, digest: str) -> None:
        if number >= SEEN.get(self.path, ("", 0, ""))[1]:
            SEEN[self.path] = (incarnation, number, digest)
        self._seen = SEEN[self.path]

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, budget={self.budget!r}, delta={self.delta!r})"


def rule_order(rule: Filter) -> float:
    """The order of a Rényi filter, for a message."""
    return rule.order if isinstance(rule, RenyiFilter) else 1.0
