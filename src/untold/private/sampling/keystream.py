"""Random words: the AES-256 counter-mode keystream of a key drawn from the operating system.

A `Keystream` is unpredictable to anyone without its key (that AES is a pseudo-random permutation is the
one computational assumption under every guarantee), is never seeded, and is thrown away and drawn
anew after every fork, in every thread, and after each GiB. `SeededKeystream` is for simulation; whoever uses
it must say so in the guarantee.
"""

import hashlib
import os
import threading
from typing import cast

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

__all__ = ["Keystream", "SeededKeystream", "Words", "system_keystream"]

Words = NDArray[np.uint64]

CHUNK = 1 << 15  # words: 256 KiB, the size at which OpenSSL's counter mode is fastest
LIFETIME = 1 << 27  # words under one key: 1 GiB
BLOCK = 2  # words of an AES block, which `update_into` wants as room to spare
_ZEROS = bytes(8 * CHUNK)


class Keystream:
    """Words from a fresh key of the operating system's entropy.

    >>> stream = Keystream()
    >>> stream.words(3).dtype, bool((stream.words(3) == stream.words(3)).all())
    (dtype('uint64'), False)
    """

    private = True

    def __init__(self) -> None:
        self._rekey()

    def branch(self, index: int) -> "Keystream":  # noqa: ARG002 (unpredictable words need no numbers)
        """The keystream for one part of a run: itself, for its words come once and never again."""
        return self

    def _entropy(self) -> bytes:
        return os.urandom(48)

    def _rekey(self) -> None:
        entropy = self._entropy()
        self._cipher: CipherContext = Cipher(AES256(entropy[:32]), CTR(entropy[32:])).encryptor()
        self._made = 0
        self._owner = os.getpid()
        self._pool = np.empty(0, dtype=np.uint64)
        self._next = 0

    def words(self, count: int) -> Words:
        """`count` words that nobody else gets; what stays behind of them is wiped."""
        if self._owner != os.getpid():
            self._rekey()
        if self._made + count > LIFETIME:
            self._rekey()
        if 2 * count >= CHUNK:
            return self._generate(count)
        if self._next + count > self._pool.size:
            self._pool = self._generate(CHUNK)
            self._next = 0
        part = self._pool[self._next : self._next + count]
        taken = part.copy()
        part[:] = 0
        self._next += count
        return taken

    def _generate(self, count: int) -> Words:
        self._made += count
        out = np.empty(count + BLOCK, dtype=np.uint64)
        room = out.view(np.uint8).data
        for start in range(0, 8 * count, len(_ZEROS)):
            length = min(len(_ZEROS), 8 * count - start)
            zeros = _ZEROS if length == len(_ZEROS) else memoryview(_ZEROS)[:length]
            self._cipher.update_into(zeros, room[start:])
        return out[:count]


class SeededKeystream(Keystream):
    """The same words again for the same seed: for simulation and tests, never for release.

    One sequence, however it is asked for; a pickled copy goes on where the original stood.

    >>> bool((SeededKeystream(7).words(5)[3:] == SeededKeystream(7, position=3).words(2)).all())
    True
    """

    private = False

    def __init__(self, seed: int | str, position: int = 0) -> None:
        self.seed = seed
        super().__init__()
        while self._made < position:
            self._generate(min(CHUNK, position - self._made))

    def _entropy(self) -> bytes:
        return hashlib.sha512(f"untold simulation {self.seed}".encode()).digest()[:48]

    def words(self, count: int) -> Words:
        """The next `count` words."""
        return self._generate(count)

    def branch(self, index: int) -> "SeededKeystream":
        """Another sequence, known by its number: the noise of one part of a simulation."""
        return SeededKeystream(f"{self.seed}/{index}")

    def __reduce__(self) -> tuple[type["SeededKeystream"], tuple[int | str, int]]:
        return SeededKeystream, (self.seed, self._made)


_local = threading.local()


def system_keystream() -> Keystream:
    """This thread's own keystream.

    >>> system_keystream() is system_keystream()
    True
    """
    if not hasattr(_local, "stream"):
        _local.stream = Keystream()
    return cast("Keystream", _local.stream)
