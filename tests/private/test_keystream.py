"""The randomness: unpredictable, never seeded, never repeated, not even after a fork."""

import hashlib
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

import untold.private
from untold.private.randomizers.privunitg import PrivUnitG
from untold.private.sampling import keystream
from untold.private.sampling.keystream import CHUNK, Keystream, SeededKeystream, system_keystream


def test_words_are_the_aes_256_counter_keystream():
    entropy = hashlib.sha512(b"untold simulation 5").digest()
    cipher = Cipher(AES256(entropy[:32]), CTR(entropy[32:48])).encryptor()
    expected = np.frombuffer(cipher.update(bytes(8 * 70_000)), dtype="<u8")
    stream = SeededKeystream(5)
    got = np.concatenate([stream.words(n) for n in (1, 2, 3, 33_000, 0, 36_994)])
    np.testing.assert_array_equal(got, expected)


def test_seeding_everything_else_changes_nothing():
    seen = []
    for _ in range(3):
        random.seed(1)
        np.random.seed(1)
        seen.append(Keystream().words(4).tobytes())
    assert len(set(seen)) == 3


def test_hash_seed_and_process_do_not_repeat():
    program = "from untold.private import noise; print(noise.gaussian(3, 1e9).tolist())"
    env = {**os.environ, "PYTHONHASHSEED": "0"}
    outputs = {subprocess.check_output([sys.executable, "-c", program], env=env) for _ in range(2)}
    assert len(outputs) == 2


def _first_word(queue):
    queue.put(int(system_keystream().words(1)[0]))


def test_forked_children_do_not_share_noise():
    parent = int(system_keystream().words(1)[0])
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    children = [context.Process(target=_first_word, args=(queue,)) for _ in range(50)]
    for child in children:
        child.start()
    words = {queue.get() for _ in children} | {parent, int(system_keystream().words(1)[0])}
    for child in children:
        child.join()
    assert len(words) == 52


def test_threads_have_their_own():
    words = []

    def draw():
        words.append(system_keystream().words(1)[0])

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(words)) == 8


def test_used_words_are_wiped():
    stream = Keystream()
    words = stream.words(100)
    assert words.all()
    assert not stream._pool[:100].any()
    assert stream._pool[100:200].all()


def test_a_new_key_after_each_gib(monkeypatch):
    monkeypatch.setattr(keystream, "LIFETIME", 4 * CHUNK)
    keys = []
    monkeypatch.setattr(Keystream, "_entropy", lambda self: keys.append(1) or os.urandom(48))
    stream = Keystream()
    for _ in range(10):
        stream.words(CHUNK)
    assert len(keys) == 3


@pytest.mark.parametrize("count", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7])
def test_any_number_of_words(count):
    words = Keystream().words(count)
    assert words.shape == (count,)
    assert len(np.unique(words)) == count


def test_a_seeded_copy_goes_on_where_it_stood():
    stream = SeededKeystream(3)
    stream.words(CHUNK + 5)
    copy = pickle.loads(pickle.dumps(stream))  # noqa: S301
    np.testing.assert_array_equal(copy.words(9), stream.words(9))


def test_no_other_source_of_randomness_is_imported():
    """No noise comes from the random modules of Python or NumPy."""
    folder = Path(untold.private.__file__).parent
    sources = [folder / "noise.py", *folder.glob("sampling/*.py"), *folder.glob("randomizers/*.py")]
    assert len(sources) > 12
    for path in sources:
        text = path.read_text()
        for name in ("np.random", "import random", "from random import", "numpy.random", "secrets"):
            assert name not in text, path
    drawing = [p.name for p in folder.rglob("*.py") if "system_keystream(" in p.read_text()]
    assert sorted(drawing) == ["keystream.py", "noise.py"]


def test_a_weak_generator_would_be_cloned():
    """Why not a Mersenne Twister: 624 outputs of it tell all that follow."""
    victim = random.Random(os.urandom(8))

    def invert_left(y, shift, mask):
        x = y
        for _ in range(32):
            x = y ^ ((x << shift) & mask)
        return x & 0xFFFFFFFF

    def invert_right(y, shift):
        x = y
        for _ in range(32):
            x = y ^ (x >> shift)
        return x

    state = []
    for _ in range(624):
        y = invert_right(victim.getrandbits(32), 18)
        y = invert_left(y, 15, 0xEFC60000)
        y = invert_left(y, 7, 0x9D2C5680)
        state.append(invert_right(y, 11))
    clone = random.Random()
    clone.setstate((3, (*state, 624), None))
    assert [clone.gauss(0, 1) for _ in range(100)] == [victim.gauss(0, 1) for _ in range(100)]


def test_seeded_randomisers_repeat_and_say_so():
    r = PrivUnitG(1.0)
    a, b = r.seeded(7), r.seeded(7)
    assert (a.encode([0.1, 0.2]) == b.encode([0.1, 0.2])).all()
    assert "seeded: not private" in str(a.guarantee)
    assert a.guarantee.epsilon(0.0) == float("inf")
    assert r.guarantee.epsilon(0.0) == 1.0
