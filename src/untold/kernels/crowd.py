"""From a row to its report, inside a loop: margin, subgradient, clip, quantise, exact noise.

Everything here has a readable twin: margins in `untold.convex.rows` (a sparse row has those of the full one),
slopes in `untold.convex.losses`, the clip in `untold.convex.clipping`, PrivUnitG in `untold.private.noise`.
Rows are a matrix (float64 or float32) or CSR.

A row whose margin or subgradient is not finite wants care: the loop leaves it to the readable path.
"""

import math
from typing import Any, NamedTuple

from numba import types
from numba.extending import overload

from untold.compiled import bitwise
from untold.convex.clipping import clip_l2
from untold.convex.lanes import inner, inner_at, scaled, square
from untold.core import Floats, Ints
from untold.kernels.rows import Dense, Sparse
from untold.kernels.slopes import Slope, slope
from untold.private.sampling.directional import privunit_g_row
from untold.private.sampling.keystream import Words

__all__ = ["Noise", "report", "shorten", "subgradient"]

OPEN, ADDED, PRIVUNIT_G = range(3)
FLAGS = {"forceinline": True, "error_model": "numpy", "_nrt": False}


class Noise(NamedTuple):
    """What makes reports of M·R clipped rows; which fields count is said by `kind`.

    OPEN: nothing, reports are not private. ADDED: `added` integers. PRIVUNIT_G: normals z1 and z2, known to
    within `error`, the words of coins and tails, and the law of each row (chance 0: that row is open).
    """

    kind: int
    bound: float
    grid: float
    K: int
    added: Ints
    z1: Floats
    z2: Floats
    error: Floats
    coins: Words
    tails: Words
    chance: Ints
    Q: Floats
    inverse: Floats


def subgradient(rows: Any, i: int, m: int, loss: Slope, w: Floats, v: Floats) -> float:
    """v ← the subgradient of row i at w; returns ‖v‖². Compiled for both kinds of rows.

    Where the margin is not finite, ‖v‖² is not either: the row wants care.
    """
    raise NotImplementedError


@bitwise
def _dense(rows: Dense, i: int, m: int, loss: Slope, w: Floats, v: Floats) -> float:
    z = inner(rows.X[i], w)
    return scaled(slope(loss, z, rows.y[m, i]), rows.X[i], v) if math.isfinite(z) else math.nan


@bitwise
def _narrow(rows: Dense, i: int, m: int, loss: Slope, w: Floats, v: Floats) -> float:
    x = rows.X[i]
    for j in range(v.size):
        v[j] = x[j]
    z = inner(v, w)
    return scaled(slope(loss, z, rows.y[m, i]), v, v) if math.isfinite(z) else math.nan


@bitwise
def _sparse(rows: Sparse, i: int, m: int, loss: Slope, w: Floats, v: Floats) -> float:
    start, stop = rows.ends[i], rows.ends[i + 1]
    values, places = rows.values[start:stop], rows.places[start:stop]
    z = inner_at(values, places, w, rows.lanes)
    if not math.isfinite(z):
        return math.nan
    s = slope(loss, z, rows.y[m, i])
    v[:] = 0.0
    for k in range(values.size):
        v[places[k]] = s * values[k]
    return square(v)


@overload(subgradient, strict=False, jit_options=FLAGS)
def _choose(rows: Any, i: int, m: int, loss: Slope, w: Floats, v: Floats) -> Any:  # noqa: ARG001
    kind = getattr(rows, "instance_class", None)
    if kind is Sparse:
        return lambda rows, i, m, loss, w, v: _sparse(rows, i, m, loss, w, v)  # noqa: PLW0108
    if kind is Dense:
        if rows[0].dtype == types.float64:
            return lambda rows, i, m, loss, w, v: _dense(rows, i, m, loss, w, v)  # noqa: PLW0108
        return lambda rows, i, m, loss, w, v: _narrow(rows, i, m, loss, w, v)  # noqa: PLW0108
    return None


@bitwise
def shorten(v: Floats, s: float, bound: float) -> None:
    """v ← v·min(1, bound/‖v‖), s = ‖v‖², for reports that are not private."""
    size = math.sqrt(s)
    if size > bound:
        for j in range(v.size):
            v[j] = v[j] * (bound / size)


@bitwise
def report(noise: Noise, i: int, m: int, v: Floats, s: float, q: Ints, out: Ints) -> bool:
    """v ← its report, for row i of model m, s = ‖v‖²; False where s is not finite or floats cannot decide."""
    if not math.isfinite(s):
        return False
    if noise.kind == OPEN:
        shorten(v, s, noise.bound)
        return True
    clip_l2(v, s, noise.grid, noise.K, q)
    undecided = 0
    if noise.kind == ADDED:
        for j in range(q.size):
            out[j] = q[j] + noise.added[m, i, j]
    elif noise.chance[m, i] == 0:
        for j in range(q.size):
            out[j] = q[j]
    else:
        undecided = privunit_g_row(
            noise.z1[m, i], noise.z2[m, i], noise.error[m, i], noise.coins[m, i], noise.tails[m, i],
            q, noise.K, noise.chance[m, i], noise.Q[m, i], noise.inverse[m, i], out,
        )  # fmt: skip
    for j in range(q.size):
        v[j] = out[j] * noise.grid
    return undecided == 0
