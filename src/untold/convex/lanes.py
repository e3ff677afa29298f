"""Sums in one fixed order, so that a provider, a server and a compiled loop get the same bits.

Entry j goes to lane j mod 16; a lane adds up its entries in their order; the lanes are added in halves::

    l ← l₀…₇ + l₈…₁₅,    l ← l₀…₃ + l₄…₇,    l ← l₀,₁ + l₂,₃,    s = l₀ + l₁

Two registers of eight lanes keep a processor's adders busy, so the fixed order costs nothing; where registers
are narrower, the same sums are taken in more steps. Products are rounded before they are added: nothing is
fused here, nor in any kernel of a learner, because which operations a compiler fuses depends on what stands
around them.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from untold.compiled import bitwise
from untold.core import Floats, Ints

__all__ = ["LANES", "inner", "inner_at", "inner_by_lanes", "square", "square_at"]

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


def _halved(builder: ir.IRBuilder, lanes: ir.Value) -> ir.Value:
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


@intrinsic
def _inner(_: Any, a: Any, b: Any) -> Any:
    """LLVM's own vectors: a loop that a compiler vectorised by itself would choose its own order."""
    if {a.layout, b.layout} != {"C"}:
        raise TypingError("vectors must be contiguous")

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        A, B = (context.make_array(t)(context, builder, v) for t, v in zip(signature.args, args, strict=True))
        size = A.nitems
        whole = builder.and_(size, ir.Constant(size.type, -LANES))
        zeros = ir.Constant(DOUBLES, [0.0] * LANES)
        lanes = cgutils.alloca_once_value(builder, zeros)
        tails = [cgutils.alloca_once_value(builder, zeros) for _ in range(2)]

        def add(*pointers: ir.Value) -> None:
            x, y = (builder.load(builder.bitcast(p, DOUBLES.as_pointer()), align=8) for p in pointers)
            builder.store(builder.fadd(builder.load(lanes), builder.fmul(x, y)), lanes)

        step = ir.Constant(size.type, LANES)
        with cgutils.for_range_slice(builder, ir.Constant(size.type, 0), whole, step) as (j, _count):
            add(builder.gep(A.data, [j]), builder.gep(B.data, [j]))
        for tail in tails:
            builder.store(zeros, tail)
        with cgutils.for_range_slice(builder, whole, size, ir.Constant(size.type, 1)) as (j, _count):
            for source, tail in zip((A.data, B.data), tails, strict=True):
                entry = builder.bitcast(tail, ir.DoubleType().as_pointer())
                place = builder.gep(entry, [builder.sub(j, whole)])
                builder.store(builder.load(builder.gep(source, [j])), place)
        with builder.if_then(builder.icmp_unsigned("!=", whole, size)):
            add(*tails)
        return _halved(builder, builder.load(lanes))

    return types.float64(a, b), codegen


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
