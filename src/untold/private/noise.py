"""The only place noise is drawn.

Every function takes integers on a grid, or their shape, and returns integers: what the ideal real-valued
mechanism would release, rounded to the nearest integer. Not an approximation of it: a draw whose rounding
is not certain in floating point is decided in ball arithmetic on further random bits, so the law of the
output is exactly that of the rounded continuous mechanism, and every guarantee of the continuous mechanism
holds, rounding being post-processing. Statement and proof: ``proofs/noise.md``.

The random words come from the operating system's entropy through AES-256 (`Keystream`). A
`SeededKeystream` may be passed instead for a simulation, and the guarantee must then say so.
"""

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from untold.core import Floats, Ints
from untold.private.sampling import additive, directional, exact
from untold.private.sampling.elementary import UNDECIDED
from untold.private.sampling.keystream import Keystream, SeededKeystream, Words, system_keystream
from untold.private.sampling.latitude import TRIAL_WORDS, LatitudeTable

__all__ = [
    "MAX_SCALE", "Draws", "Source", "branched", "draws_at_once", "duchi", "gaussian", "laplace",
    "norm_laplace", "privunit", "privunit_g", "privunit_g_draws", "seeded", "words",
]  # fmt: skip

MAX_SCALE = 2.0**40  # in grid steps: beyond it floats decide too few roundings, and integers overflow
CHUNK = 1 << 15  # words a kernel is given at a time: 256 KiB, which stays in the cache

Source = Keystream | None
Own = list[list[int]]  # the words of one row, block by block
Compute = Callable[[list[Words], slice, Ints], int]
Decide = Callable[[Own, int, list[int]], list[int]]


def seeded(seed: int) -> SeededKeystream:
    """The keystream of a simulation: the same noise again, and no privacy.

    >>> bool((gaussian(4, 1e3, seeded(1)) == gaussian(4, 1e3, seeded(1))).all())
    True
    """
    return SeededKeystream(seed)


def _more(source: Keystream) -> exact.More:
    return lambda: int(source.words(1)[0])


def words(count: int, source: Source = None) -> Words:
    """Uniform words, for choices (`untold.private.choices`).

    >>> words(3).dtype
    dtype('uint64')
    """
    return (source or system_keystream()).words(count)


def gaussian(count: int, scale: float, source: Source = None) -> Ints:
    """`count` independent round(scale·N).

    Guarantee: with scale = σ/grid, the Gaussian mechanism of standard deviation σ on grid multiples.

    >>> gaussian(3, 2.0**20).dtype, gaussian(0, 1.0).size
    (dtype('int64'), 0)
    """
    source = source or system_keystream()
    out = np.empty(count, dtype=np.int64)
    for start in range(0, count, CHUNK):
        pairs = (min(CHUNK, count - start) + 1) // 2
        words = source.words(2 * pairs)
        radial, angular = words[:pairs], words[pairs:]
        part = np.empty(2 * pairs, dtype=np.int64)
        if additive.gaussian(radial, angular, scale, part):
            for i in np.unique(np.flatnonzero(part == UNDECIDED) % pairs):
                part[i::pairs] = exact.gaussian(radial[i], angular[i], scale, _more(source))
        out[start : start + CHUNK] = part[: count - start]
    return out


def laplace(scales: Floats, source: Source = None) -> Ints:
    """Independent round(±scale·E), E exponential, one for each of the scales, in their shape.

    Guarantee: with scale = b/grid, the Laplace mechanism of scale b on grid multiples.

    >>> laplace(np.array([[0.0, 5.0]])).shape
    (1, 2)
    """
    source = source or system_keystream()
    flat = np.ascontiguousarray(scales, dtype=np.float64).ravel()
    out = np.empty(flat.size, dtype=np.int64)
    for start in range(0, flat.size, CHUNK):
        part = flat[start : start + CHUNK]
        words = source.words(part.size)
        noise = out[start : start + CHUNK]
        if additive.laplace(words, part, noise):
            for i in np.flatnonzero(noise == UNDECIDED):
                noise[i] = exact.laplace(words[i], float(part[i]), _more(source))
    return out.reshape(np.shape(scales))


def _rowwise(
    shape: tuple[int, int], widths: tuple[int, ...], source: Keystream, compute: Compute, decide: Decide
) -> Ints:
    """Computes chunks of rows, each row with `widths` words in as many blocks, and decides what is left."""
    rows, dim = shape
    out = np.empty(shape, dtype=np.int64)
    step = max(1, CHUNK // sum(widths)) if dim else max(1, rows)
    for start in range(0, rows if dim else 0, step):
        part = slice(start, min(start + step, rows))
        count = part.stop - part.start
        ends = [count * end for end in (0, *accumulate(widths))]
        words = source.words(ends[-1])
        blocks = [words[a:b] for a, b in pairwise(ends)]
        if compute(blocks, part, out[part]):
            for i in np.flatnonzero((out[part] == UNDECIDED).any(axis=1)):
                own = [b[i * w : (i + 1) * w].tolist() for b, w in zip(blocks, widths, strict=True)]
                wanted = np.flatnonzero(out[start + i] == UNDECIDED).tolist()
                out[start + i, wanted] = decide(own, start + int(i), wanted)
    return out


def norm_laplace(rows: int, dim: int, scale: float, source: Source = None) -> Ints:
    """Independent rows of round(Z), Z ∈ R^dim of density ∝ exp(−‖z‖₂/scale).

    Guarantee: with scale = 2·bound/(ε·grid), ε-LDP of a vector of norm ≤ bound on the grid.

    >>> norm_laplace(2, 3, 1e6).shape
    (2, 3)
    """
    stream = source or system_keystream()

    def compute(blocks: list[Words], _: slice, out: Ints) -> int:
        radii, odd, radial, angular = blocks
        return additive.norm_laplace(radii, odd, radial, angular, scale, out)

    def decide(own: Own, _: int, wanted: list[int]) -> list[int]:
        radii, odd, radial, angular = own
        return exact.norm_laplace(radii, odd, radial, angular, scale, wanted, _more(stream))

    pairs, odd = (dim + 1) // 2, 0 if dim % 2 else 2
    return _rowwise((rows, dim), (pairs, odd, pairs, pairs), stream, compute, decide)


def privunit_g(q: Ints, K: int, chance: int, Q: float, inverse: float, source: Source = None) -> Ints:
    """PrivUnitG reports of the integer rows q, ‖q‖₂ ≤ K, in the same grid steps.

    Each is round(inverse·(K·N + (t − ⟨N, x⟩)·q)) with x = (q/K, √(1 − ‖q/K‖²)) and t a normal from beyond
    its upper Q-quantile with probability chance·2⁻⁵³, else from below it.

    >>> privunit_g(np.zeros((2, 3), dtype=np.int64), 1 << 20, 1 << 52, 0.5, 2.5).shape
    (2, 3)
    """
    stream = source or system_keystream()

    def compute(blocks: list[Words], part: slice, out: Ints) -> int:
        radial, angular, coins, tails = blocks
        return directional.privunit_g(radial, angular, coins, tails, q[part], K, chance, Q, inverse, out)

    def decide(own: Own, i: int, wanted: list[int]) -> list[int]:
        radial, angular, (coin,), (tail,) = own
        row = q[i].tolist()
        return exact.privunit_g(
            radial, angular, coin, tail, row, wanted, K, chance, Q, inverse, _more(stream)
        )

    return _rowwise(q.shape, _privunit_g_widths(q.shape[1]), stream, compute, decide)


def _privunit_g_widths(dim: int) -> tuple[int, ...]:
    pairs = dim // 2 + 1
    return pairs, pairs, 1, 1


class Draws(NamedTuple):
    """The random words of PrivUnitG reports whose inputs are not known yet: one row each, one use each."""

    radial: Words
    angular: Words
    coins: Words
    tails: Words

    def decide(
        self, i: int, q: Ints, report: Ints, K: int, chance: int, Q: float, inverse: float, source: Source
    ) -> None:
        """Decides in place what `directional.privunit_g_row` left UNDECIDED of row i's report of q."""
        radial, angular = self.radial[i].tolist(), self.angular[i].tolist()
        coin, tail = int(self.coins[i]), int(self.tails[i])
        wanted = np.flatnonzero(report == UNDECIDED).tolist()
        more = _more(source or system_keystream())
        report[wanted] = exact.privunit_g(
            radial, angular, coin, tail, q.tolist(), wanted, K, chance, Q, inverse, more
        )


def draws_at_once(dim: int) -> int:
    """How many rows of `privunit_g_draws` fill the cache.

    >>> draws_at_once(100)
    315
    """
    return max(1, CHUNK // sum(_privunit_g_widths(dim)))


def privunit_g_draws(rows: int, dim: int, source: Source = None) -> Draws:
    """Words for that many reports of a loop that learns each input from the report before it.

    >>> privunit_g_draws(4, 10).radial.shape
    (4, 6)
    """
    widths = _privunit_g_widths(dim)
    words = (source or system_keystream()).words(rows * sum(widths))
    ends = [rows * end for end in (0, *accumulate(widths))]
    radial, angular, coins, tails = (words[a:b] for a, b in pairwise(ends))
    return Draws(radial.reshape(rows, -1), angular.reshape(rows, -1), coins, tails)


def branched(source: Source, index: int) -> Source:
    """The source of one part of a run: the same for the same seed and index, wherever the run began.

    >>> bool((gaussian(3, 1e3, branched(seeded(1), 5)) == gaussian(3, 1e3, branched(seeded(1), 5))).all())
    True
    """
    return source.branch(index) if source else None


def duchi(q: Ints, K: int, chance: int, size: float, source: Source = None) -> Ints:
    """Uniform points of the sphere of radius `size`, on the side of ±q with probability chance·2⁻⁵³.

    The sign of ±q is + with probability (1 + ‖q‖/K)/2, so that its mean is q/K.

    >>> duchi(np.zeros((2, 3), dtype=np.int64), 1 << 20, 1 << 52, 2.0**21).shape
    (2, 3)
    """
    stream = source or system_keystream()

    def compute(blocks: list[Words], part: slice, out: Ints) -> int:
        radial, angular, coins, signs = blocks
        return directional.duchi(radial, angular, coins, signs, q[part], K, chance, size, out)

    def decide(own: Own, i: int, wanted: list[int]) -> list[int]:
        radial, angular, (coin,), (sign,) = own
        return exact.duchi(radial, angular, coin, sign, q[i].tolist(), wanted, K, chance, size, _more(stream))

    pairs = (q.shape[1] + 1) // 2
    return _rowwise(q.shape, (pairs, pairs, 1, 1), stream, compute, decide)


def privunit(q: Ints, K: int, chance: int, size: float, table: LatitudeTable, source: Source = None) -> Ints:
    """Points of the sphere of radius `size`, beyond a latitude around ±q with probability chance·2⁻⁵³.

    >>> from untold.private.sampling.latitude import latitude_table
    >>> table = latitude_table(3, 0.1)
    >>> privunit(np.zeros((2, 3), dtype=np.int64), 1 << 20, 1 << 52, 2.0**21, table).shape
    (2, 3)
    """
    stream = source or system_keystream()

    def compute(blocks: list[Words], part: slice, out: Ints) -> int:
        radial, angular, coins, signs, trials = blocks
        return directional.privunit(
            radial, angular, coins, signs, trials, q[part], K, chance, size, table, out
        )

    def decide(own: Own, i: int, wanted: list[int]) -> list[int]:
        radial, angular, (coin,), (sign,), trials = own
        row = q[i].tolist()
        return exact.privunit(
            radial, angular, coin, sign, trials, row, wanted, K, chance, size, table, _more(stream)
        )

    pairs = (q.shape[1] + 1) // 2
    return _rowwise(q.shape, (pairs, pairs, 1, 1, TRIAL_WORDS), stream, compute, decide)
