"""The only randomness of tacit: uniform 64-bit words from a cipher stream keyed by the operating system.

Every draw is a deterministic function of these words. So a proof about a sampler assumes uniform words, and the only
assumption left is that AES-256 in counter mode cannot be distinguished from uniform.
A seeded source is another type whose `publishable` is False: its draws stay in tests.
"""

from __future__ import annotations

import hashlib
import os
import threading
from abc import ABC, abstractmethod
from functools import cache
from typing import NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Words

__all__ = ["CryptographicSource", "KeyedSource", "SeededSource", "Source", "default_source"]

REKEY_BYTES = 1 << 30
BUFFER_BYTES = 1 << 15
_ZEROS = bytes(BUFFER_BYTES)


class _ForkEpoch:
    """Counts forks in this process's ancestry since import; a stream from another epoch is never used."""

    count = 0

    @classmethod
    def advance(cls) -> None:
        cls.count += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ForkEpoch.advance)


class Source(ABC):
    """Independent uniform 64-bit words; `publishable` says whether their draws may be published."""

    __slots__ = ()

    @property
    @abstractmethod
    def publishable(self) -> bool:
        """True only where no one can predict or repeat the words."""

    @abstractmethod
    def words(self, count: int) -> Words:
        """Return `count` fresh words; no word is ever returned twice."""


class _Stream:
    """One AES-256 key in counter mode, with a small buffer; used by one thread of one process."""

    __slots__ = ("_buffer", "_encryptor", "_position", "epoch", "pid", "produced")

    def __init__(self, key: bytes, nonce: bytes) -> None:
        self._encryptor: CipherContext = Cipher(algorithms.AES(key), modes.CTR(nonce)).encryptor()
        self._buffer: Words = np.empty(0, dtype=np.uint64)
        self._position = 0
        self.produced = 0
        self.pid = os.getpid()
        self.epoch = _ForkEpoch.count

    def take(self, count: int) -> Words:
        start = self._position
        held = self._buffer.size - start
        if count <= held:
            # The place moves before the words are read, and words given out are wiped: a signal handler
            # that draws noise here cannot see them again, nor can a later memory image.
            self._position = start + count
            out: Words = self._buffer[start : start + count].copy()
            self._buffer[start : start + count] = 0
            return out
        if count * 8 >= BUFFER_BYTES:
            return self._produce(count)
        first = self.take(held)
        self._buffer = self._produce(BUFFER_BYTES // 8)
        self._position = 0
        return np.concatenate([first, self.take(count - held)])

    def _produce(self, count: int) -> Words:
        size = count * 8
        plain = _ZEROS[:size] if size <= BUFFER_BYTES else bytes(size)
        self.produced += size
        return np.frombuffer(bytearray(self._encryptor.update(plain)), dtype=np.uint64)


def _checked(count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
        raise InvalidParameter(parameter="count", value=count, must="be an integer that is at least 0")
    return int(count)


class CryptographicSource(Source):
    """AES-256 in counter mode, keyed from `os.urandom`.

    Guarantee: each thread has its own key. A child process never continues its parent's stream (a fork hook and
    a check of the process id both force a new key). A key gives at most 2^30 bytes, far below the 2^64 blocks
    at which counter mode shows itself. Copies and pickles carry no key. Assumption: the operating system's
    generator, and AES-256 as a pseudorandom permutation.
    """

    __slots__ = ("_local",)

    def __init__(self) -> None:
        self._local = threading.local()

    @property
    def publishable(self) -> bool:
        return True

    def words(self, count: int) -> Words:
        count = _checked(count)
        limit = REKEY_BYTES // 8
        if count <= limit:
            return self._stream().take(count)
        parts = [self._stream().take(min(limit, count - start)) for start in range(0, count, limit)]
        return np.concatenate(parts)

    def _stream(self) -> _Stream:
        stream: _Stream | None = getattr(self._local, "stream", None)
        stale = (
            stream is None
            or stream.epoch != _ForkEpoch.count
            or stream.pid != os.getpid()
            or stream.produced >= REKEY_BYTES
        )
        if stream is None or stale:
            stream = _Stream(os.urandom(32), os.urandom(16))
            self._local.stream = stream
        return stream

    def __reduce__(self) -> tuple[type[CryptographicSource], tuple[()]]:
        return (CryptographicSource, ())

    def __repr__(self) -> str:
        return "CryptographicSource()"


class SeededSource(Source):
    """The same cipher under a key that is a hash of the seed: repeatable, hence for tests only."""

    __slots__ = ("_lock", "_stream", "seed")

    def __init__(self, *, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or int(seed).bit_length() > 4096:
            raise InvalidParameter(parameter="seed", value=seed, must="be an integer of at most 4096 bits")
        self.seed = seed = int(seed)
        self._lock = threading.Lock()
        key = hashlib.sha256(b"tacit seeded source\0" + str(seed).encode()).digest()
        self._stream = _Stream(key, bytes(16))

    @property
    def publishable(self) -> bool:
        return False

    def words(self, count: int) -> Words:
        count = _checked(count)
        with self._lock:
            return self._stream.take(count)

    def __repr__(self) -> str:
        return f"SeededSource(seed={self.seed})"


class KeyedSource(Source):
    """The same cipher under a kept secret key: anybody with the key can draw the same words again.

    For noise that is fixed once and needed again later, such as the noise of a running total's steps.
    The key must be derived for one use, and must stay on the custodian's machine.
    """

    __slots__ = ("_lock", "_stream")

    def __init__(self, *, key: bytes) -> None:
        if not isinstance(key, bytes) or len(key) != 32:
            raise InvalidParameter(parameter="key", value="a key", must="be 32 secret bytes")
        self._lock = threading.Lock()
        self._stream = _Stream(key, bytes(16))

    @property
    def publishable(self) -> bool:
        return True

    def words(self, count: int) -> Words:
        count = _checked(count)
        with self._lock:
            return self._stream.take(count)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a keyed source is not copied or pickled: its key would be there twice")

    def __repr__(self) -> str:
        return "KeyedSource()"


@cache
def default_source() -> CryptographicSource:
    """The process-wide cryptographic source."""
    return CryptographicSource()
