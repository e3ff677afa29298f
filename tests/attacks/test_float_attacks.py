"""Attacks on the last bits of noise: alive on NumPy's noise, and blind against every randomiser here.

Precision attack (Haney et al. 2022, "Precision-based attacks and interval refining"): it knows nothing of
the sampler and asks only whether an output carries bits finer than the input allows. Support attack
(Mironov 2012, "On significance of the least significant bits for differential privacy"): it asks which
inputs could have led to an output at all.
"""

import math

import numpy as np
import pytest
from tests.shared_table import RANDOMIZERS

SAMPLES = 200_000
DIMS = [1, 2, 5, 16, 64]


def fine(y, bits):
    """Whether each output has bits below 2^−bits."""
    return y * 2.0**bits % 1 != 0


def reachable(y, x, s, near=3):
    """Whether numpy's Generator.laplace(loc=x, scale=s) can return y: its uniform is a multiple of 2⁻⁵³."""
    n = (y - x) / s
    t = math.exp(-abs(n))
    k0 = round(t * 2**52) if n < 0 else round(2**53 - t * 2**52)
    width = min(64, near + int(2 * abs(y) * 2**-53 / s * t * 2**52))
    for k in range(k0 - width, k0 + width + 1):
        u = k * 2.0**-53
        if 0 < u < 1 and y == (x - s * math.log(2.0 - u - u) if u >= 0.5 else x + s * math.log(u + u)):
            return True
    return False


def test_the_precision_attack_is_alive():
    rng = np.random.default_rng(0)
    for noise in (rng.laplace, rng.normal):
        zero, one = noise(0.0, 1.0, SAMPLES), 1.0 + noise(0.0, 1.0, SAMPLES)
        assert fine(zero, 53).mean() > 0.2
        assert not fine(one, 53).any()
    single = rng.standard_normal(SAMPLES, dtype=np.float32)
    assert fine(single, 24).mean() > 0.2
    assert not fine(np.float32(1.0) + single, 24).any()


def test_the_support_attack_is_alive():
    rng = np.random.default_rng(1)
    outputs = rng.laplace(0.0, 1.0, 4000)
    own = [reachable(y, 0.0, 1.0) for y in outputs]
    other = [reachable(y, 1.0, 1.0) for y in outputs]
    assert all(own)
    assert np.mean(other) < 0.5  # most outputs rule the other input out: no privacy at all


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", RANDOMIZERS)
def test_nothing_finer_than_the_grid_is_released(name, dim, dtype):
    """Both inputs, 2×10⁵ samples a side: every value is a grid multiple, none exclusive by its bits."""
    r = RANDOMIZERS[name](1.0, dim)
    rows = -(-SAMPLES // dim)
    for g in (np.zeros(dim), np.ones(dim) / math.sqrt(dim), np.full(dim, 2.0**-30), np.full(dim, 1 / 3)):
        released = r(np.tile(g.astype(dtype), (rows, 1)))
        assert released.size >= SAMPLES
        assert not (released / r.grid % 1).any()
        assert not fine(released, 20).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", RANDOMIZERS)
def test_no_output_is_exclusive_to_one_input(name, dim, dtype):
    """The support attack on the lattice: the residues that outputs take are those of every input.

    For the additive randomisers, and for PrivUnitG, each integer has positive probability under each input.
    On a sphere the released lattice points are those near it, whatever the input. So the attack looks for
    structure instead: outputs modulo small numbers must be equally likely from both inputs.
    """
    r = RANDOMIZERS[name](1.0, dim)
    rows = -(-SAMPLES // dim)
    a = r.encode(np.zeros((rows, dim), dtype)).ravel()
    b = r.encode(np.tile(np.eye(1, dim, dtype=dtype)[0] * r.bound, (rows, 1))).ravel()
    if name in {"duchi", "privunit"} and dim == 1:
        assert set(np.unique(a)) == set(np.unique(b))  # two points, and both inputs reach both
        return
    for modulus in (2, 3, 8, 16):
        table = [np.bincount(side % modulus, minlength=modulus) for side in (a, b)]
        exclusive = sum(int((x > 0) != (y > 0)) for x, y in zip(*table, strict=True))
        assert exclusive == 0
        spread = np.abs(table[0] / a.size - table[1] / b.size).max()
        assert spread < 6 * math.sqrt(2 / modulus / a.size)


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_the_lattice_and_the_width_do_not_depend_on_epsilon(name):
    reports = [RANDOMIZERS[name](epsilon, 3) for epsilon in (0.1, 1.0, 10.0)]
    assert len({r.grid for r in reports}) == 1
    assert {r.encode([0.1, 0.2, 0.3]).dtype for r in reports} == {np.dtype(np.int64)}
