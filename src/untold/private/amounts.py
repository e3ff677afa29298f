"""Amounts of privacy loss: read, added in the decimals they are written as, and never printed too small."""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from untold.errors import between

__all__ = ["at_least_zero", "exact", "multiple", "nudged", "number", "shown", "total", "written"]


def exact(amount: float) -> Fraction:
    """The decimal a finite float is written as: 0.1 is a tenth, so three of them are 0.3.

    It differs from the float by at most half a unit in the last place, which no privacy loss can notice.

    >>> float(3 * exact(0.1))
    0.3
    """
    return Fraction(repr(amount))


def total(*amounts: float) -> float:
    """A sum, exact in the decimals the amounts are written as, then rounded once.

    >>> total(0.1, 0.2), total(1.0, math.inf)
    (0.3, inf)
    """
    finite = all(math.isfinite(amount) for amount in amounts)
    return float(sum(map(exact, amounts), Fraction(0))) if finite else math.inf


def multiple(amount: float, count: int) -> float:
    """`count` times an amount, rounded like `total`.

    >>> multiple(0.1, 3)
    0.3
    """
    return float(count * exact(amount)) if math.isfinite(amount) else amount


def shown(amount: float) -> str:
    """An amount to six digits, never rounded towards a better guarantee.

    >>> shown(1.0), shown(0.10000001), shown(1e-6), shown(math.inf)
    ('1', '0.100001', '1e-06', 'inf')
    """
    if not math.isfinite(amount):
        return str(amount)
    up = Context(prec=6, rounding=ROUND_CEILING).create_decimal(Decimal(repr(amount)))
    return f"{float(up):.6g}"


def written(amount: float) -> float | str:
    """A number for JSON, which has no word for infinity.

    >>> written(0.5), written(math.inf)
    (0.5, 'inf')
    """
    return "inf" if amount == math.inf else amount


def number(value: object) -> float:
    """The inverse of `written`; NaN and whatever is not a number are refused.

    >>> number("inf"), number(2)
    (inf, 2.0)
    """
    return between("amount", math.inf if value == "inf" else value, -math.inf, math.inf, of="a guarantee")


def at_least_zero(what: str, value: object, *, of: str) -> float:
    """An amount of privacy loss: a number ≥ 0, where inf says "no guarantee".

    >>> at_least_zero("rho", 0, of="ZCDP")
    0.0
    """
    return between(what, value, 0.0, math.inf, of=of)


def nudged(start: float, step: float, holds: Callable[[float], bool]) -> float:
    """`start`, moved by steps that double until `holds`: a root of a solver, put on the safe side.

    >>> nudged(1.0, 2.0**-50, lambda x: x * x > 1.0) > 1.0
    True
    """
    while not holds(start):
        start += step
        step *= 2
    return start
