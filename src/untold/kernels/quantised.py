"""Clipped rows inside a loop: quantised as they are read, margins on the way, memory asked for ahead.

    q = trunc(x/grid),    z = ⟨q, w⟩ in the fixed order of `lanes`,    s = Σq²

A row with s > K² (too long, or not of numbers) is clipped by `clip_l2`, so that q is what `L2Clip.fit` makes
of it. Where s ≤ K² floats hold q and s exactly. Without being asked a few rows ahead, memory came at a third
of its speed.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from untold.compiled import bitwise
from untold.convex.clipping import clip_l2
from untold.convex.lanes import DOUBLES, LANES, halved, inner, inner_at, spread, square, square_at, tail
from untold.core import Floats, Ints
from untold.kernels.rows import Dense, Sparse

__all__ = ["add_multiple", "margin", "prefetched", "quantised", "truncated"]

FLAGS = {"forceinline": True, "error_model": "numpy", "_nrt": False}
LINE = 64  # bytes of memory that come together
ZEROS = ir.Constant(DOUBLES, [0.0] * LANES)


@intrinsic
def _truncated(_: Any, x: Any) -> Any:
    """trunc(x), as the processor does it."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.DoubleType(), [ir.DoubleType()])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.trunc.f64"), args)

    return types.float64(x), codegen


@bitwise
def truncated(x: float) -> float:
    """x without its fraction.

    >>> truncated(-2.7)
    -2.0
    """
    return _truncated(x)


@intrinsic
def _prefetched(_: Any, x: Any) -> Any:
    """Asks for the memory of x."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        reading, soon, data = (ir.Constant(word, k) for k in (0, 3, 1))
        size = array.nitems
        step = ir.Constant(size.type, LINE // (signature.args[0].dtype.bitwidth // 8))
        with cgutils.for_range_slice(builder, ir.Constant(size.type, 0), size, step) as (j, _count):
            builder.call(ask, [builder.bitcast(builder.gep(array.data, [j]), byte), reading, soon, data])
        return context.get_dummy_value()

    return types.void(x), codegen


def _functions(builder: Any) -> tuple[Any, Any]:
    names = [("llvm.trunc.v16f64", 1), ("llvm.fma.v16f64", 3)]
    kinds = [(name, ir.FunctionType(DOUBLES, [DOUBLES] * many)) for name, many in names]
    trunc, fma = (cgutils.get_or_insert_function(builder.module, kind, name) for name, kind in kinds)
    return trunc, fma


@intrinsic
def _read(_: Any, factor: Any, x: Any, w: Any, v: Any, out: Any) -> Any:
    """v ← trunc(factor·x), out ← (⟨v, w⟩ in lanes, Σv²); x of either width."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds, values = signature.args[1:], args[1:]
        xs, ws, vs, outs = (
            context.make_array(k)(context, builder, a) for k, a in zip(kinds, values, strict=True)
        )
        narrow = kinds[0].dtype == types.float32
        source = ir.VectorType(ir.FloatType(), LANES) if narrow else DOUBLES
        trunc, fma = _functions(builder)
        factors = spread(builder, args[0])
        margins, squares = (cgutils.alloca_once_value(builder, ZEROS) for _ in range(2))

        def block(j: Any, load_x: Any, load: Any, store: Any) -> None:
            at = [builder.gep(a.data, [j]) for a in (xs, ws, vs)]
            entries = load_x(builder.bitcast(at[0], source.as_pointer()))
            entries = builder.fpext(entries, DOUBLES) if narrow else entries
            q = builder.call(trunc, [builder.fmul(factors, entries)])
            store(q, builder.bitcast(at[2], DOUBLES.as_pointer()))
            product = builder.fmul(q, load(builder.bitcast(at[1], DOUBLES.as_pointer())))
            builder.store(builder.fadd(builder.load(margins), product), margins)
            builder.store(builder.call(fma, [q, q, builder.load(squares)]), squares)

        size = xs.nitems
        whole = builder.and_(size, ir.Constant(size.type, -LANES))
        with cgutils.for_range_slice(
            builder, ir.Constant(size.type, 0), whole, ir.Constant(size.type, LANES)
        ) as (j, _count):
            block(
                j,
                lambda place: builder.load(place, align=4 if narrow else 8),
                lambda place: builder.load(place, align=8),
                lambda vector, place: builder.store(vector, place, align=8),
            )
        with builder.if_then(builder.icmp_unsigned("!=", whole, size)):
            left = builder.sub(size, whole)
            block(whole, tail(builder, left, source.element)[0], *tail(builder, left))
        for k, lanes in enumerate((margins, squares)):
            place = builder.gep(outs.data, [ir.Constant(size.type, k)])
            builder.store(halved(builder, builder.load(lanes)), place)
        return context.get_dummy_value()

    return types.void(factor, x, w, v, out), codegen


@bitwise
def _clipped(grid: float, K: int, w: Floats, v: Floats, q: Ints, s: float, out: Floats) -> None:
    """v ← the clipped v, s = ‖v‖², and out anew."""
    clip_l2(v, s, grid, K, q)
    for j in range(v.size):
        v[j] = q[j]
    out[0], out[1] = inner(v, w), square(v)


def prefetched(rows: Any, i: int) -> None:
    """Asks for row i of a matrix; of CSR rows nothing."""
    raise NotImplementedError


def quantised(rows: Any, i: int, grid: float, K: int, w: Floats, v: Floats, q: Ints, out: Floats) -> int:
    """v ← the clipped row i in steps (of CSR its entries), out ← (⟨v, w⟩, Σv²); how many entries v has."""
    raise NotImplementedError


def margin(rows: Any, i: int, w: Floats, v: Floats) -> float:
    """⟨v, w⟩ for a row that was made by `quantised`."""
    raise NotImplementedError


def add_multiple(rows: Any, i: int, factor: float, v: Floats, total: Floats) -> None:
    """total += factor·v, likewise."""
    raise NotImplementedError


@bitwise
def _quantised_dense(
    rows: Dense, i: int, grid: float, K: int, w: Floats, v: Floats, q: Ints, out: Floats
) -> int:
    _read(1.0 / grid, rows.X[i], w, v, out)
    if not out[1] <= float(K) * float(K):
        for j in range(v.size):
            v[j] = rows.X[i, j]
        _clipped(grid, K, w, v, q, square(v), out)
    return v.size


@bitwise
def _quantised_sparse(
    rows: Sparse, i: int, grid: float, K: int, w: Floats, v: Floats, q: Ints, out: Floats
) -> int:
    start, stop = rows.ends[i], rows.ends[i + 1]
    places, size, s = rows.places[start:stop], stop - start, 0.0
    own = v[:size]
    for k in range(size):
        own[k] = truncated(rows.values[start + k] / grid)
        s += own[k] * own[k]
    if not s <= float(K) * float(K):
        for k in range(size):
            own[k] = rows.values[start + k]
        clip_l2(own, square_at(own, places, rows.lanes), grid, K, q[:size])
        s = 0.0
        for k in range(size):
            own[k] = q[k]
            s += own[k] * own[k]
    out[0], out[1] = inner_at(own, places, w, rows.lanes), s
    return size


def _by_kind(rows: Any, dense: Any, sparse: Any) -> Any:
    """The implementation for this kind of rows, or None."""
    return {Dense: dense, Sparse: sparse}.get(getattr(rows, "instance_class", type(None)))


@overload(prefetched, strict=False, jit_options=FLAGS)
def _prefetch(rows: Any, i: int) -> Any:  # noqa: ARG001 (numba asks by name)
    def dense(rows: Any, i: int) -> Any:
        _prefetched(rows.X[i])

    def sparse(rows: Any, i: int) -> Any:  # noqa: ARG001
        return None

    return _by_kind(rows, dense, sparse)


@overload(quantised, strict=False, jit_options=FLAGS)
def _quantised(rows: Any, i: int, grid: float, K: int, w: Any, v: Any, q: Any, out: Any) -> Any:  # noqa: ARG001
    def dense(rows: Any, i: int, grid: float, K: int, w: Any, v: Any, q: Any, out: Any) -> Any:
        return _quantised_dense(rows, i, grid, K, w, v, q, out)

    def sparse(rows: Any, i: int, grid: float, K: int, w: Any, v: Any, q: Any, out: Any) -> Any:
        return _quantised_sparse(rows, i, grid, K, w, v, q, out)

    return _by_kind(rows, dense, sparse)


@overload(margin, strict=False, jit_options=FLAGS)
def _margin(rows: Any, i: int, w: Any, v: Any) -> Any:  # noqa: ARG001
    def dense(rows: Any, i: int, w: Any, v: Any) -> Any:  # noqa: ARG001
        return inner(v, w)

    def sparse(rows: Any, i: int, w: Any, v: Any) -> Any:
        start, stop = rows.ends[i], rows.ends[i + 1]
        return inner_at(v[: stop - start], rows.places[start:stop], w, rows.lanes)

    return _by_kind(rows, dense, sparse)


@overload(add_multiple, strict=False, jit_options=FLAGS)
def _add(rows: Any, i: int, factor: float, v: Any, total: Any) -> Any:  # noqa: ARG001
    def dense(rows: Any, i: int, factor: float, v: Any, total: Any) -> Any:  # noqa: ARG001
        for j in range(v.size):
            total[j] += factor * v[j]

    def sparse(rows: Any, i: int, factor: float, v: Any, total: Any) -> Any:
        start, stop = rows.ends[i], rows.ends[i + 1]
        for k in range(stop - start):
            total[rows.places[start + k]] += factor * v[k]

    return _by_kind(rows, dense, sparse)
