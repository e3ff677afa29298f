"""Sums in one fixed order, so that a provider, a server and a compiled loop get the same bits.

Entry j goes to lane j mod 16; a lane adds up its entries in their order; the lanes are added in halves::

    l ← l₀…₇ + l₈…₁₅,    l ← l₀…₃ + l₄…₇,    l ← l₀,₁ + l₂,₃,    s = l₀ + l₁

Two registers of eight lanes keep a processor's adders busy, so the fixed order costs nothing; where registers
are narrower, the same sums are taken in more steps. Products are rounded before they are added: nothing is
fused here, nor in any kernel of a learner, because which operations a compiler fuses depends on what stands
around them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from untold.compiled import bitwise
from untold.core import Floats, Ints

__all__ = [
    "LANES", "halved", "inner", "inner_at", "inner_by_lanes", "moved", "scaled", "spread", "square",
    "square_at", "tail",
]  # fmt: skip

Step = Callable[..., tuple[ir.Value, ir.Value | None]]

LANES = 16
DOUBLES = ir.VectorType(ir.DoubleType(), LANES)


def inner_by_lanes(a: Floats, b: Floats) -> float:
    """⟨a, b⟩ as a reader would write it: the slow twin of `inner`.

    >>> inner_by_lanes(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    products = np.zeros(-(-a.size // LANES) * LANES)
    products[: a.size] = a * b
    lanes = np.zeros(LANES)
    for block in products.reshape(-1, LANES):
        lanes = lanes + block
    while lanes.size > 1:
        lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
    return float(lanes[0])


def halved(builder: ir.IRBuilder, lanes: ir.Value) -> ir.Value:
    """The lanes, added in halves until one is left."""
    width = LANES // 2
    while width:
        low, high = (
            ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(start, start + width)))
            for start in (0, width)
        )
        nothing = ir.Constant(lanes.type, ir.Undefined)
        lanes = builder.fadd(
            builder.shuffle_vector(lanes, nothing, low), builder.shuffle_vector(lanes, nothing, high)
        )
        width //= 2
    return builder.extract_element(lanes, ir.Constant(ir.IntType(32), 0))


def spread(builder: ir.IRBuilder, number: ir.Value) -> ir.Value:
    """The number in every lane."""
    nothing = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(
        first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    )


def tail(
    builder: ir.IRBuilder, left: ir.Value, kind: ir.Type = DOUBLES.element
) -> tuple[Callable[..., ir.Value], Callable[..., None]]:
    """How the last entries, fewer than there are lanes, are loaded and stored: what is beyond them is 0."""
    vector = ir.VectorType(kind, LANES)
    numbers = ir.Constant(ir.VectorType(left.type, LANES), list(range(LANES)))
    mask = builder.icmp_unsigned("<", numbers, spread(builder, left))
    pointer, word = vector.as_pointer(), ir.IntType(32)
    kinds = {
        "load": ir.FunctionType(vector, [pointer, word, mask.type, vector]),
        "store": ir.FunctionType(ir.VoidType(), [vector, pointer, word, mask.type]),
    }
    bits = 64 if kind == DOUBLES.element else 32
    load, store = (
        cgutils.get_or_insert_function(builder.module, own, f"llvm.masked.{name}.v{LANES}f{bits}.p0")
        for name, own in kinds.items()
    )
    wide, zeros = ir.Constant(word, bits // 8), ir.Constant(vector, [0.0] * LANES)
    return (
        lambda place: builder.call(load, [place, wide, mask, zeros]),
        lambda entries, place: builder.call(store, [entries, place, wide, mask]),
    )


def _sum(context: Any, builder: ir.IRBuilder, kinds: Any, values: Any, step: Step) -> ir.Value:
    """The sum of what `step` makes of the arrays' blocks; it may change the last array on its way.

    LLVM's own vectors: a loop that a compiler vectorised by itself would choose its own order.
    """
    arrays = [context.make_array(t)(context, builder, v) for t, v in zip(kinds, values, strict=True)]
    size = arrays[0].nitems
    whole = builder.and_(size, ir.Constant(size.type, -LANES))
    lanes = cgutils.alloca_once_value(builder, ir.Constant(DOUBLES, [0.0] * LANES))

    def block(j: ir.Value, load: Callable[..., ir.Value], store: Callable[..., None]) -> None:
        places = [builder.bitcast(builder.gep(a.data, [j]), DOUBLES.as_pointer()) for a in arrays]
        addend, changed = step(builder, *(load(place) for place in places))
        if changed is not None:
            store(changed, places[-1])
        builder.store(builder.fadd(builder.load(lanes), addend), lanes)

    def load(place: ir.Value) -> ir.Value:
        return builder.load(place, align=8)

    def store(vector: ir.Value, place: ir.Value) -> None:
        builder.store(vector, place, align=8)

    step_size = ir.Constant(size.type, LANES)
    with cgutils.for_range_slice(builder, ir.Constant(size.type, 0), whole, step_size) as (j, _count):
        block(j, load, store)
    with builder.if_then(builder.icmp_unsigned("!=", whole, size)):
        block(whole, *tail(builder, builder.sub(size, whole)))
    return halved(builder, builder.load(lanes))


def _contiguous(*arrays: Any) -> None:
    if {array.layout for array in arrays} != {"C"}:
        raise TypingError("vectors must be contiguous")


@intrinsic
def _inner(_: Any, a: Any, b: Any) -> Any:
    """Σ aⱼbⱼ."""
    _contiguous(a, b)

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return _sum(context, builder, signature.args, args, lambda ir_, x, y: (ir_.fmul(x, y), None))

    return types.float64(a, b), codegen


def _changing(x: Any, v: Any, new: Callable[..., ir.Value]) -> Any:
    """Of (factor, x, v): v ← what `new` makes of factor·x and v, and Σ vⱼ²."""
    _contiguous(x, v)

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        factor = spread(builder, args[0])

        def step(ir_: ir.IRBuilder, entries: ir.Value, old: ir.Value) -> tuple[ir.Value, ir.Value]:
            vector = new(ir_, ir_.fmul(factor, entries), old)
            return ir_.fmul(vector, vector), vector

        return _sum(context, builder, signature.args[1:], args[1:], step)

    return types.float64(types.float64, x, v), codegen


@intrinsic
def _scaled(_: Any, s: Any, x: Any, v: Any) -> Any:  # noqa: ARG001 (a number)
    """v ← s·x."""
    return _changing(x, v, lambda _ir, product, _old: product)


@intrinsic
def _moved(_: Any, k: Any, g: Any, z: Any) -> Any:  # noqa: ARG001 (a number)
    """z ← z − k·g."""
    return _changing(g, z, lambda ir_, product, old: ir_.fsub(old, product))


@bitwise
def inner(a: Floats, b: Floats) -> float:
    """⟨a, b⟩ of two contiguous vectors of one length, in the fixed order.

    >>> inner(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return _inner(a, b)


@bitwise
def square(a: Floats) -> float:
    """‖a‖² in the fixed order.

    >>> square(np.array([3.0, 4.0]))
    25.0
    """
    return _inner(a, a)


@bitwise
def scaled(s: float, x: Floats, v: Floats) -> float:
    """v ← s·x, finite s; and ‖v‖² in the fixed order, in one go.

    >>> v = np.empty(2)
    >>> scaled(2.0, np.array([3.0, 4.0]), v), v.tolist()
    (100.0, [6.0, 8.0])
    """
    return _scaled(s, x, v)


@bitwise
def moved(k: float, g: Floats, z: Floats) -> float:
    """z ← z − k·g, finite k; and ‖z‖² in the fixed order, in one go.

    >>> z = np.array([1.0, 1.0])
    >>> moved(2.0, np.array([0.0, 1.0]), z), z.tolist()
    (2.0, [1.0, -1.0])
    """
    return _moved(k, g, z)


@bitwise
def _added(lanes: Floats) -> float:
    width = LANES // 2
    while width:
        for k in range(width):
            lanes[k] = lanes[k] + lanes[k + width]
        width //= 2
    return lanes[0]


@bitwise
def inner_at(values: Floats, places: Ints, b: Floats, lanes: Floats) -> float:
    """⟨a, b⟩ for a that is 0 but for `values` at `places` (rising): the bits of `inner`, at their cost alone.

    `lanes` is room for as many numbers as there are lanes.

    >>> inner_at(np.array([2.0]), np.array([1]), np.array([3.0, 4.0]), np.empty(LANES))
    8.0
    """
    for k in range(LANES):
        lanes[k] = 0.0
    for k in range(values.size):
        lane = places[k] % LANES
        lanes[lane] = lanes[lane] + values[k] * b[places[k]]
    return _added(lanes)


@bitwise
def square_at(values: Floats, places: Ints, lanes: Floats) -> float:
    """‖a‖² likewise: the bits of `square`.

    >>> square_at(np.array([3.0]), np.array([100]), np.empty(LANES))
    9.0
    """
    for k in range(LANES):
        lanes[k] = 0.0
    for k in range(values.size):
        lane = places[k] % LANES
        lanes[lane] = lanes[lane] + values[k] * values[k]
    return _added(lanes)
