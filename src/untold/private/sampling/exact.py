"""The same draws without rounding error: ball arithmetic on as many random bits as a decision needs.

Every function here is the slow, readable twin of a kernel: it takes the same random words, reads them as
the first 52 bits of infinitely long uniforms, and returns what the *ideal real* numbers round to. Where a
ball (arb, through python-flint) straddles a decision, 64 fresh bits are appended to every uniform of the
draw and it is evaluated again. Kernels leave to it what they cannot decide; tests compare all it decides.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeVar

from flint import arb, ctx, fmpz

from untold.private.sampling.latitude import LatitudeTable

__all__ = ["More", "duchi", "gaussian", "laplace", "norm_laplace", "privunit", "privunit_g"]

More = Callable[[], int]  # one fresh 64-bit word
Row = Sequence[int]
T = TypeVar("T")

START = 128  # bits of precision beyond those of the uniforms


class Undecided(ArithmeticError):
    """A ball straddles a decision: more bits are needed."""


class Uniform:
    """A number of (0, 1) of which so far the leading bits are known: those of a word above its low twelve."""

    def __init__(self, word: int) -> None:
        self.k = int(word) >> 12
        self.bits = 52
        self.sign = 1 - 2 * (int(word) & 1)  # the lowest bit is a fair sign of its own

    def extend(self, more: More) -> None:
        self.k = (self.k << 64) | int(more())
        self.bits += 64

    def ball(self) -> arb:
        """[k, k+1)·2^−bits."""
        exponent = -self.bits - 1
        return arb((2 * self.k + 1, exponent), (1, exponent))

    def minus_log(self) -> arb:
        if self.k == 0:
            raise Undecided
        return -self.ball().log()


def _decide(evaluate: Callable[[], T], uniforms: Sequence[Uniform], more: More) -> T:
    while True:
        with ctx.workprec(START + max(u.bits for u in uniforms)):
            try:
                return evaluate()
            except Undecided:
                pass
        for u in uniforms:
            u.extend(more)


def _nearest(y: arb) -> int:
    whole: fmpz | None = (y + arb(0.5)).floor().unique_fmpz()
    if whole is None:
        raise Undecided
    return int(whole)


def _positive(y: arb) -> bool:
    if y > 0:
        return True
    if y < 0:
        return False
    raise Undecided


def _pair(radial: Uniform, angular: Uniform) -> tuple[arb, arb]:
    """√(−ln U)·(cos φ ∓ sin φ), φ uniform on (−π/4, π/4), with fair signs: two normals."""
    r = radial.minus_log().sqrt()
    phi = (2 * angular.ball() - 1) * arb.pi() / 4
    c, s = phi.cos(), phi.sin()
    return radial.sign * r * (c - s), angular.sign * r * (c + s)


def _normal(radial: Sequence[Uniform], angular: Sequence[Uniform], j: int) -> arb:
    """Coordinate j of N: first the first halves of all pairs, then the second halves."""
    second, pair = divmod(j, len(radial))
    return _pair(radial[pair], angular[pair])[second]


def _normals(radial: Sequence[Uniform], angular: Sequence[Uniform], count: int) -> list[arb]:
    pairs = [_pair(r, a) for r, a in zip(radial, angular, strict=True)]
    return ([first for first, _ in pairs] + [second for _, second in pairs])[:count]


def _uniforms(words: Row) -> list[Uniform]:
    return [Uniform(word) for word in words]


def gaussian(radial: int, angular: int, scale: float, more: More) -> tuple[int, int]:
    """round(scale·N) for the two normals of a pair of words.

    >>> gaussian(1 << 63, 1 << 62, 2.0**20, more=lambda: 0)
    (1140625, 472462)
    """
    r, a = Uniform(radial), Uniform(angular)

    def rounded() -> tuple[int, int]:
        z1, z2 = _pair(r, a)
        return _nearest(arb(scale) * z1), _nearest(arb(scale) * z2)

    return _decide(rounded, [r, a], more)


def laplace(word: int, scale: float, more: More) -> int:
    """round(±scale·E), E exponential.

    >>> laplace((1 << 63) + 1, 1000.0, more=lambda: 0)  # U just above one half, the sign bit set
    -693
    """
    if scale == 0.0:
        return 0
    u = Uniform(word)
    return _decide(lambda: _nearest(arb(scale) * u.sign * u.minus_log()), [u], more)


def norm_laplace(
    radii: Row, odd: Row, radial: Row, angular: Row, scale: float, wanted: Row, more: More
) -> list[int]:
    """round(scale·‖M‖·N), N ∈ Rᵈ, M ∈ Rᵈ⁺¹ normal, ‖M‖² = 2·Σ exponentials (+ N² where d + 1 is odd)."""
    exponentials, extra = _uniforms(radii), _uniforms(odd)
    r, a = _uniforms(radial), _uniforms(angular)

    def rounded() -> list[int]:
        product = prod((u.ball() for u in exponentials), start=arb(1))
        if not product > 0:
            raise Undecided
        square = -2 * product.log()
        if extra:
            square += _pair(extra[0], extra[1])[0] ** 2
        stretch = arb(scale) * square.sqrt()
        return [_nearest(stretch * _normal(r, a, j)) for j in wanted]

    return _decide(rounded, [*exponentials, *extra, *r, *a], more)


def _truncated_normal(high: bool, tail: Uniform, Q: float) -> arb:
    """t with P[N > t] = Q·V (high) or P[N < t] = (1 − Q)·V."""
    p = (arb(Q) if high else 1 - arb(Q)) * tail.ball()
    t = arb(2).sqrt() * (2 * p).erfcinv()
    if not t.is_finite():
        raise Undecided
    return t if high else -t


def privunit_g(
    radial: Row, angular: Row, coin: int, tail: int, q: Row, wanted: Row,
    K: int, chance: int, Q: float, inverse: float, more: More,
) -> list[int]:  # fmt: skip
    """round(inverse·(K·N + (t − ⟨N, x⟩)·q)), x = (q/K, √(1 − ‖q/K‖²))."""
    r, a, v = _uniforms(radial), _uniforms(angular), Uniform(tail)
    high = (int(coin) >> 11) < chance
    rest = K * K - sum(int(x) * int(x) for x in q)

    def rounded() -> list[int]:
        N = _normals(r, a, len(q) + 1)
        inner = sum((z * int(x) for z, x in zip(N, q, strict=False)), arb(rest).sqrt() * N[-1])
        pull = _truncated_normal(high, v, Q) - inner / K
        return [_nearest(arb(inverse) * (K * N[j] + pull * int(q[j]))) for j in wanted]

    return _decide(rounded, [*r, *a, v], more)


def _direction(sign: Uniform, q: Row, K: int) -> int:
    """±1 with mean ‖q‖/K."""
    norm = arb(sum(int(x) * int(x) for x in q)).sqrt()
    return 1 if _positive((1 + norm / K) / 2 - sign.ball()) else -1


def duchi(
    radial: Row, angular: Row, coin: int, sign: int, q: Row, wanted: Row,
    K: int, chance: int, size: float, more: More,
) -> list[int]:  # fmt: skip
    """round(±size·N/‖N‖), on the side of ±q that the coin says."""
    r, a, s = _uniforms(radial), _uniforms(angular), Uniform(sign)
    heads = (int(coin) >> 11) < chance

    def rounded() -> list[int]:
        N = _normals(r, a, len(q))
        pole = q if any(q) else [1]
        above = _positive(sum((z * int(x) for z, x in zip(N, pole, strict=False)), arb(0)))
        turn = _direction(s, q, K) * (1 if above == heads else -1)
        norm = sum((z * z for z in N), arb(0)).sqrt()
        return [_nearest(turn * arb(size) * N[j] / norm) for j in wanted]

    return _decide(rounded, [*r, *a, s], more)


class _Latitude:
    """v of ``latitude.py``: its trials, and further ones from fresh words until one is accepted."""

    def __init__(self, words: Row, high: bool, dim: int, table: LatitudeTable, more: More) -> None:
        side = 0 if high else 1
        self.edges = [arb(float(edge)) for edge in table.edges[side]]
        self.cumulative = [int(c) for c in table.cumulative[side]]
        self.M, self.dim, self.more = arb(table.M[side]), dim, more
        self.trials = [
            (int(words[i]) >> 12, Uniform(words[i + 1]), Uniform(words[i + 2]))
            for i in range(0, len(words), 3)
        ]

    def uniforms(self) -> list[Uniform]:
        return [u for _, position, acceptance in self.trials for u in (position, acceptance)]

    def angle(self) -> arb:
        """πv of the first trial accepted."""
        for pick, position, acceptance in self.trials:
            k = sum(c <= pick for c in self.cumulative)
            weight = self.cumulative[k] - (self.cumulative[k - 1] if k else 0)
            width = self.edges[k + 1] - self.edges[k]
            angle = (self.edges[k] + width * position.ball()) * arb.pi()
            f = angle.cos() ** (self.dim - 2)
            if _positive(f * width / (self.M * weight) - acceptance.ball()):
                return angle
        self.trials.append((self.more() >> 12, Uniform(self.more()), Uniform(self.more())))
        raise Undecided


def privunit(
    radial: Row, angular: Row, coin: int, sign: int, trials: Row, q: Row, wanted: Row,
    K: int, chance: int, size: float, table: LatitudeTable, more: More,
) -> list[int]:  # fmt: skip
    """round(size·(sin πv·x + cos πv·o/‖o‖)), x = ±q/‖q‖, o the part of N orthogonal to q."""
    r, a, s = _uniforms(radial), _uniforms(angular), Uniform(sign)
    heads = (int(coin) >> 11) < chance
    latitude = _Latitude(trials, heads, len(q), table, more)
    pole = [int(x) for x in q] if any(q) else [1] + [0] * (len(q) - 1)
    square = sum(x * x for x in pole)

    def rounded() -> list[int]:
        N = _normals(r, a, len(q))
        inner = sum((z * x for z, x in zip(N, pole, strict=True)), arb(0))
        o = [z - inner * x / square for z, x in zip(N, pole, strict=True)]
        norm = sum((z * z for z in o), arb(0)).sqrt()
        angle, turn = latitude.angle(), _direction(s, q, K)
        along, across = turn * angle.sin() / arb(square).sqrt(), angle.cos() / norm
        return [_nearest(arb(size) * (along * pole[j] + across * o[j])) for j in wanted]

    while True:
        uniforms = [*r, *a, s, *latitude.uniforms()]
        try:
            with ctx.workprec(START + max(u.bits for u in uniforms)):
                return rounded()
        except Undecided:
            for u in uniforms:
                u.extend(more)
