"""Everything untold raises on purpose, one tree and one form of words.

::

    UntoldError
    ├── ParameterError      a setting outside what is allowed          (also a ValueError)
    ├── DataError           data of the wrong shape or kind            (also a ValueError)
    ├── AssumptionError     a combination that would void a guarantee  (also a ValueError)
    ├── BudgetError         the privacy budget
    │   ├── BudgetExhausted     a debit larger than what is left
    │   └── LedgerError         a ledger that cannot be read or written
    └── MissingExtra        an optional dependency is not installed    (also an ImportError)

    PublicAssumption        a warning: something was taken to be public (a UserWarning)

Every message says what, whose, what is allowed and what was given; a second line may start with
``hint:``. What was *given* is shown for settings, which are public. It is never shown for data: of a
private vector only its shape may be spoken of, so no exception tells anything about its values.

>>> positive("epsilon", -1, of="PrivUnitG")
Traceback (most recent call last):
untold.errors.ParameterError: `epsilon` of PrivUnitG must be a finite number > 0. Got -1.
"""

import math
from collections.abc import Collection
from numbers import Real
from typing import TypeVar

__all__ = [
    "AssumptionError",
    "BudgetError",
    "BudgetExhausted",
    "DataError",
    "LedgerError",
    "MissingExtra",
    "ParameterError",
    "PublicAssumption",
    "UntoldError",
    "between",
    "one_of",
    "positive",
    "refuse",
    "whole",
]

T = TypeVar("T")


class UntoldError(Exception):
    """The root: ``except UntoldError`` catches all that untold raises on purpose.

    >>> issubclass(ParameterError, UntoldError) and issubclass(ParameterError, ValueError)
    True
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.hint = hint
        super().__init__(f"{message}\nhint: {hint}" if hint else message)


class ParameterError(UntoldError, ValueError):
    """A setting outside what is allowed.

    >>> try:
    ...     one_of("trust", "everybody", {"curator", "nobody"}, of="LogisticRegression")
    ... except ParameterError as error:
    ...     print(error)
    `trust` of LogisticRegression must be one of 'curator', 'nobody'. Got 'everybody'.
    """


class DataError(UntoldError, ValueError):
    """Data of the wrong shape or kind. Says nothing about its values.

    >>> raise DataError("`g` of PrivUnitG must be a vector or a matrix of rows. Got 3 dimensions.")
    Traceback (most recent call last):
    untold.errors.DataError: `g` of PrivUnitG must be a vector or a matrix of rows. Got 3 dimensions.
    """


class AssumptionError(UntoldError, ValueError):
    """Two things, each allowed, whose combination would void a guarantee.

    >>> raise AssumptionError("composition", hint="compose guarantees of one neighbouring relation.")
    Traceback (most recent call last):
    untold.errors.AssumptionError: composition
    hint: compose guarantees of one neighbouring relation.
    """


class BudgetError(UntoldError):
    """Anything about a privacy budget.

    >>> issubclass(BudgetExhausted, BudgetError)
    True
    """


class BudgetExhausted(BudgetError):
    """A debit larger than what is left; nothing was debited and nothing may be released.

    >>> raise BudgetExhausted("debit of the ledger must be at most 0.5. Got 1.0.")
    Traceback (most recent call last):
    untold.errors.BudgetExhausted: debit of the ledger must be at most 0.5. Got 1.0.
    """


class LedgerError(BudgetError):
    """A ledger that cannot be read or written: it is refused, never guessed at.

    >>> issubclass(LedgerError, UntoldError)
    True
    """


class MissingExtra(UntoldError, ImportError):
    """An optional dependency is not installed; the hint is the command that installs it.

    >>> raise MissingExtra("the Ray engine needs ray.", hint="pip install 'untold[ray]'")
    Traceback (most recent call last):
    untold.errors.MissingExtra: the Ray engine needs ray.
    hint: pip install 'untold[ray]'
    """


class PublicAssumption(UserWarning):
    """Warns that something read off the data was taken to be public knowledge.

    >>> issubclass(PublicAssumption, Warning)
    True
    """


def refuse(what: str, given: object, *, of: str, allowed: str, hint: str = "") -> ParameterError:
    """The one form of words for a bad setting; the caller raises it.

    >>> print(refuse("tau", "x", of="LocalLaplace", allowed="one number per coordinate", hint="a list."))
    `tau` of LocalLaplace must be one number per coordinate. Got 'x'.
    hint: a list.
    """
    message = f"`{what}` of {of} must be {allowed}. Got {given!r}."
    return ParameterError(message, hint=hint)


def _number(value: object) -> float:
    """NaN unless value is one real number; a bool is an answer, not an amount."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def positive(what: str, value: object, *, of: str, infinite: bool = False, hint: str = "") -> float:
    """A number > 0, finite unless `infinite` allows otherwise.

    >>> positive("bound", 2, of="Clip")
    2.0
    """
    number = _number(value)
    if number > 0 and (infinite or number < math.inf):
        return number
    kind = "a number > 0" if infinite else "a finite number > 0"
    raise refuse(what, value, of=of, allowed=kind, hint=hint)


def between(
    what: str, value: object, low: float, high: float, *, of: str, ends: str = "[]", hint: str = ""
) -> float:
    """A number between low and high; `ends` says which of the two belong: "[]", "(]", "[)", "()".

    >>> between("delta", 0, 0, 1, of="Gaussian", ends="()")
    Traceback (most recent call last):
    untold.errors.ParameterError: `delta` of Gaussian must be a number in (0, 1). Got 0.
    """
    number = _number(value)
    above = number >= low if ends[0] == "[" else number > low
    below = number <= high if ends[1] == "]" else number < high
    if above and below:
        return number
    allowed = f"a number in {ends[0]}{low:g}, {high:g}{ends[1]}"
    raise refuse(what, value, of=of, allowed=allowed, hint=hint)


def whole(what: str, value: object, *, of: str, least: int = 1, hint: str = "") -> int:
    """A whole number, at least `least`.

    >>> whole("times", 2.5, of="compose")
    Traceback (most recent call last):
    untold.errors.ParameterError: `times` of compose must be a whole number >= 1. Got 2.5.
    """
    number = _number(value)
    if number.is_integer() and number >= least:
        return int(number)
    raise refuse(what, value, of=of, allowed=f"a whole number >= {least}", hint=hint)


def one_of(what: str, value: T, allowed: Collection[T], *, of: str, hint: str = "") -> T:
    """One of a few values.

    >>> one_of("ends", "last", ["first", "last"], of="average")
    'last'
    """
    if value in allowed:
        return value
    names = ", ".join(sorted(repr(name) for name in allowed))
    raise refuse(what, value, of=of, allowed=f"one of {names}", hint=hint)
