"""Goodness of fit, as for the noise itself; and signatures that many holders check, checked once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from scipy.special import gammaincc

from tacit.parties import session as messages


@functools.lru_cache(maxsize=5000)
def _held(key: bytes, signature: bytes, signed: bytes) -> None:
    """Returns where the signature holds; where it does not, nothing is kept."""
    Ed25519PublicKey.from_public_bytes(key).verify(signature, signed)


class _Once:
    """A public key. Two hundred holders in one process would check each signature two hundred times."""

    def __init__(self, key: bytes) -> None:
        self.key = key

    @classmethod
    def from_public_bytes(cls, key: bytes) -> _Once:
        return cls(key)

    def verify(self, signature: bytes, signed: bytes) -> None:
        _held(self.key, signature, signed)


@pytest.fixture(scope="session", autouse=True)
def signatures_are_checked_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "Ed25519PublicKey", _Once)
        yield


@pytest.fixture
def p_of() -> Callable[[np.ndarray, np.ndarray], float]:
    """The p-value of Pearson's statistic over cells with at least 10 expected."""

    def check(observed: np.ndarray, expected: np.ndarray) -> float:
        big = expected >= 10
        o, e = observed[big].astype(float), expected[big]
        return float(gammaincc((o.size - 1) / 2, ((o - e) ** 2 / e).sum() / 2))

    return check
