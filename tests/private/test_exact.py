"""The fast kernels against their slow twins in ball arithmetic, on the same random words: no mismatch.

100,000 draws and more in all, at ordinary scales and at scales so large that a wrong bound would show; and
a mutant whose error bound is shrunk by 2¹⁴ is caught, so the comparison is alive.
"""

import importlib.util
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from untold.private import noise
from untold.private.randomizers.privunit import cap_law
from untold.private.randomizers.privunitg import biased_coin, privunit_g_law
from untold.private.sampling import additive, exact
from untold.private.sampling.elementary import UNDECIDED
from untold.private.sampling.latitude import latitude_table

K = 1 << 20


def decided(fast, slow):
    """Compares what the kernel decided; returns (how many, mismatches)."""
    fast, slow = np.asarray(fast), np.asarray(slow)
    sure = fast != UNDECIDED
    return int(sure.sum()), int((fast[sure] != slow[sure]).sum())


class Recorder:
    """A source that hands out seeded words and keeps them, so that the twin reads the same."""

    private = False

    def __init__(self, seed):
        self.stream, self.taken = noise.seeded(seed), []

    def words(self, count):
        words = self.stream.words(count)
        self.taken.append(words)
        return words


def gaussian_mismatches(kernel, scale, pairs, seed=1):
    words = noise.seeded(seed).words(2 * pairs)
    out = np.empty(2 * pairs, dtype=np.int64)
    kernel(words[:pairs], words[pairs:], scale, out)
    more = noise.seeded(99).words
    slow = [exact.gaussian(int(r), int(a), scale, lambda: int(more(1)[0])) for r, a in words.reshape(2, -1).T]
    return decided(out.reshape(2, -1).T, slow)


@pytest.mark.parametrize(("scale", "pairs"), [(2.0**20, 15000), (2.0**36, 10000), (2.0**40, 10000)])
def test_gaussian(scale, pairs):
    count, wrong = gaussian_mismatches(additive.gaussian, scale, pairs)
    assert wrong == 0
    assert count > 1.9 * pairs


def test_a_shrunken_error_bound_is_caught(tmp_path):
    source = Path(additive.__file__).read_text()
    assert "NORMAL_SLOPE = 2.0**-47" in source
    assert "WIDTH = 2.0**-51" in source
    mutant = source.replace("NORMAL_SLOPE = 2.0**-47", "NORMAL_SLOPE = 2.0**-61")
    mutant = mutant.replace("\nWIDTH = 2.0**-51", "\nWIDTH = 2.0**-65")
    path = tmp_path / "mutant_additive.py"
    path.write_text(mutant)
    spec = importlib.util.spec_from_file_location("mutant_additive", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _, wrong = gaussian_mismatches(module.gaussian, 2.0**45, 20000)
    assert wrong > 30


@pytest.mark.parametrize(("scale", "count"), [(2.0**20, 10000), (2.0**40, 15000)])
def test_laplace(scale, count):
    words = noise.seeded(2).words(count)
    out = np.empty(count, dtype=np.int64)
    additive.laplace(words, np.full(count, scale), out)
    slow = [exact.laplace(int(w), scale, lambda: 0) for w in words]
    sure, wrong = decided(out, slow)
    assert wrong == 0
    assert sure > 0.98 * count


def reports_mismatches(draw, twin, widths, rows):
    """Draws rows with noise.py, then every one of them again with the twin from the very same words."""
    source = Recorder(3)
    fast = draw(source)
    words = source.taken[0]
    ends = np.cumsum([0, *(rows * w for w in widths)])
    blocks = [words[a:b].reshape(rows, -1) for a, b in pairwise(ends)]
    slow = [twin([b[i].tolist() for b in blocks], i) for i in range(rows)]
    return int((fast != np.array(slow)).sum()), fast.size


def never():
    raise AssertionError("the twin asked for more bits than the draw had")


@pytest.mark.parametrize(("dim", "rows"), [(1, 1500), (2, 1000), (7, 400), (100, 60), (1000, 3)])
@pytest.mark.parametrize("scale", [2.0**21, 2.0**33])
def test_norm_laplace(dim, rows, scale):
    pairs, odd = (dim + 1) // 2, 0 if dim % 2 else 2
    more = noise.seeded(5).words
    wrong, _ = reports_mismatches(
        lambda source: noise.norm_laplace(rows, dim, scale, source),
        lambda own, _: exact.norm_laplace(*own, scale, range(dim), lambda: int(more(1)[0])),
        (pairs, odd, pairs, pairs),
        rows,
    )
    assert wrong <= (0 if scale < 2**30 else 2)  # a draw that needs more bits may get others here


def inputs(rows, dim):
    rng = np.random.default_rng(dim)
    v = rng.standard_normal((rows, dim))
    v *= (K - 1) * rng.random((rows, 1)) ** 0.3 / np.linalg.norm(v, axis=1, keepdims=True)
    q = v.astype(np.int64)
    q[0] = 0
    q[1] = 0
    q[1, -1] = -K
    return q


SIZES = [(1, 1500), (2, 1000), (3, 600), (7, 300), (100, 50), (1000, 3)]


@pytest.mark.parametrize(("dim", "rows"), SIZES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_privunit_g(dim, rows, epsilon):
    law, q, pairs = privunit_g_law(epsilon), inputs(rows, dim), dim // 2 + 1
    constants = (K, law.chance, law.Q, law.inverse)
    more = noise.seeded(6).words
    wrong, _ = reports_mismatches(
        lambda source: noise.privunit_g(q, *constants, source),
        lambda own, i: exact.privunit_g(
            own[0], own[1], own[2][0], own[3][0], q[i].tolist(), range(dim), *constants,
            lambda: int(more(1)[0]),
        ),
        (pairs, pairs, 1, 1),
        rows,
    )  # fmt: skip
    assert wrong == 0


@pytest.mark.parametrize(("dim", "rows"), SIZES)
def test_duchi(dim, rows):
    q, pairs, chance = inputs(rows, dim), (dim + 1) // 2, biased_coin(1.0, 0.5)
    constants = (K, chance, 2.0**23)
    more = noise.seeded(7).words
    wrong, _ = reports_mismatches(
        lambda source: noise.duchi(q, *constants, source),
        lambda own, i: exact.duchi(
            own[0], own[1], own[2][0], own[3][0], q[i].tolist(), range(dim), *constants,
            lambda: int(more(1)[0]),
        ),
        (pairs, pairs, 1, 1),
        rows,
    )  # fmt: skip
    assert wrong == 0


@pytest.mark.parametrize(("dim", "rows"), SIZES[1:])
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_privunit(dim, rows, epsilon):
    law, q, pairs = cap_law(epsilon, dim), inputs(rows, dim), (dim + 1) // 2
    constants = (K, law.chance, K * law.stretch, latitude_table(dim, law.v))
    more = noise.seeded(8).words
    wrong, _ = reports_mismatches(
        lambda source: noise.privunit(q, *constants, source),
        lambda own, i: exact.privunit(
            own[0], own[1], own[2][0], own[3][0], own[4], q[i].tolist(), range(dim), *constants,
            lambda: int(more(1)[0]),
        ),
        (pairs, pairs, 1, 1, 12),
        rows,
    )  # fmt: skip
    assert wrong == 0


def test_undecided_draws_are_decided_by_more_bits():
    """At a scale where most roundings need refinement, the released integers still have the right law."""
    words = noise.seeded(4).words(4000)
    out = np.empty(4000, dtype=np.int64)
    left = additive.laplace(words, np.full(4000, 2.0**49), out)
    assert left > 500
    drawn = noise.laplace(np.full(4000, 2.0**49), noise.seeded(4))
    assert (drawn != UNDECIDED).all()
    sure = out != UNDECIDED
    np.testing.assert_allclose(drawn[sure], out[sure], rtol=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize("scale", [2.0**20, 2.0**30, 2.0**40])
def test_a_million_draws_match_their_twins(scale):
    count, wrong = gaussian_mismatches(additive.gaussian, scale, 500_000, seed=17)
    assert wrong == 0
    assert count > 950_000
