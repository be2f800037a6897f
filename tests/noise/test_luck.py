"""What tests draw follows from their names."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from support import luck
from tacit.noise import SeededSource, default_source
from tacit.noise.source import _Stream

NAME = "tests/noise/test_luck.py::test_a_test_draws_what_belongs_to_its_name"


@pytest.fixture(scope="module")
def drawn() -> int:
    return int(default_source().words(1)[0])


def test_a_test_draws_what_belongs_to_its_name(drawn: int) -> None:
    key = hashlib.sha256(b"tacit test\0" + NAME.encode()).digest()
    assert np.array_equal(default_source().words(4), _Stream(key, bytes(16)).take(4))
    assert drawn not in default_source().words(64)


def test_names_have_words_of_their_own() -> None:
    found = []
    for name in ("a", "a", "b"):
        luck.settle(name)
        found.append(default_source().words(8))
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
    assert default_source().publishable
    assert not SeededSource(seed=1).publishable
