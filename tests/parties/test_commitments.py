"""Commitments bind and hide, and certificates name them."""

from __future__ import annotations

import hashlib

import pytest

from tacit.errors import InvalidParameter
from tacit.parties import Opening, commit_to


def test_a_commitment_binds_and_hides() -> None:
    first, second = (commit_to(digest="ab" * 32, version="2026") for _ in range(2))
    assert first.opens(first.commitment)
    assert not first.opens(second.commitment)
    assert first.commitment != second.commitment
    for changed in ({"digest": "ac" * 32}, {"version": "2027"}, {"secret": bytes(32)}):
        said = {"digest": first.digest, "version": first.version, "secret": first.secret} | changed
        assert not Opening(**said).opens(first.commitment)  # type: ignore[arg-type]
    assert first.secret.hex() not in repr(first)


def test_by_hand_and_no_two_meanings() -> None:
    known = Opening(digest="a", version="bc", secret=bytes(32))
    parts = b"".join(len(p).to_bytes(8, "little") + p for p in (bytes(32), b"a", b"bc"))
    assert known.commitment == hashlib.sha256(b"table\0" + parts).hexdigest()
    assert known.commitment != Opening(digest="ab", version="c", secret=bytes(32)).commitment


@pytest.mark.parametrize("bad", [{"digest": ""}, {"secret": b"short"}, {"digest": 5}])
def test_bad_openings(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        Opening(**{"digest": "a", "version": "b", "secret": bytes(32)} | bad)  # type: ignore[arg-type]
