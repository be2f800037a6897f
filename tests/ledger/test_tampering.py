"""Every change of what was written is found, by `verify` and before the next charge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.ledgers import ask, promise, tamper
from tacit.errors import BudgetExceeded, InvalidParameter, LedgerCorrupt
from tacit.exact.canonical import canonical, sha256
from tacit.guarantees import Pure
from tacit.ledger import Ledger, Ticket, overview, verify_ledger
from tacit.ledger.entries import read_entry
from tacit.ledger.export import screen


@pytest.fixture
def written(place: str) -> Ledger:
    """Seven entries: three requests with answers, and a share."""
    ledger = Ledger.create(place, budget=promise(1.0))
    for key in "abc":
        ledger.run(ask(key, 0.25), lambda key=key: {"answer to": key})
    ledger.share("bob", Pure(epsilon=0.5))
    assert ledger.verify().ok
    return ledger


FORGED = canonical({"forged": True})
CHANGES = {
    "edited": (
        ["UPDATE tacit_entries SET content = replace(content, '0.25', '0.05') WHERE sequence = 3"],
        "3 was edited",
    ),
    "edited with its digest": (
        [f"UPDATE tacit_entries SET content = '{FORGED}', digest = '{sha256(FORGED)}' WHERE sequence = 3"],
        "entry 3 cannot be read",
    ),
    "deleted": (["DELETE FROM tacit_entries WHERE sequence = 3"], "missing from the chain: 3"),
    "several deleted": (
        ["DELETE FROM tacit_entries WHERE sequence IN (3, 4)"],
        "missing from the chain: 3 to 4",
    ),
    "deleted and closed up": (
        [
            "DELETE FROM tacit_entries WHERE sequence = 7",
            "DELETE FROM tacit_entries WHERE sequence = 1",
            *(f"UPDATE tacit_entries SET sequence = {n} WHERE sequence = {n + 1}" for n in range(1, 6)),
        ],
        "entry 1 was moved",
    ),
    "reordered": (
        [
            "UPDATE tacit_entries SET sequence = 99 WHERE sequence = 2",
            "UPDATE tacit_entries SET sequence = 2 WHERE sequence = 3",
            "UPDATE tacit_entries SET sequence = 3 WHERE sequence = 99",
        ],
        "entry 2 was moved: it was written as entry 3",
    ),
    "end cut off": (["DELETE FROM tacit_entries WHERE sequence > 5"], "the end was cut off"),
    "end cut off, head moved back": (
        [
            "DELETE FROM tacit_answers WHERE sequence > 5",
            "DELETE FROM tacit_entries WHERE sequence > 5",
            "UPDATE tacit_ledger SET sequence = 5, digest = (SELECT digest FROM tacit_entries WHERE sequence = 5)",
        ],
        "the head was not written by tacit",
    ),
    "all deleted": (["DELETE FROM tacit_entries"], "the end was cut off: 7 more"),
    "budget raised": (
        ["UPDATE tacit_ledger SET header = replace(header, '\"epsilon\":1.0', '\"epsilon\":9.0')"],
        "entry 1 does not follow",
    ),
    "another secret": (["UPDATE tacit_ledger SET secret = substr(secret, 2)"], "the header was changed"),
    "another digest at the head": (
        [f"UPDATE tacit_ledger SET digest = '{sha256('x')}'"],
        "entry 7 is not the one that the head names",
    ),
    "another answer": (
        [
            "UPDATE tacit_answers SET body = (SELECT body FROM tacit_answers WHERE sequence = 2) WHERE sequence = 4"
        ],
        "entry 4 has an answer that was changed",
    ),
    "answer deleted": (["DELETE FROM tacit_answers WHERE sequence = 4"], "entry 4 has lost its answer"),
    "answer added": (
        ["INSERT INTO tacit_answers SELECT 99, body FROM tacit_answers WHERE sequence = 2"],
        "entry 99 has an answer beside it",
    ),
    "header deleted": (["DELETE FROM tacit_ledger"], "the header is missing"),
}
# What lies before the end cannot change what is left, which the end states: `verify` finds it, opening does not look.
BEFORE_THE_END = {
    "edited", "edited with its digest", "deleted", "several deleted", "reordered",
    "another answer", "answer deleted", "answer added",
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found(written: Ledger, place: str, change: str) -> None:
    statements, said = CHANGES[change]
    tamper(written, *statements)
    found = verify_ledger(place)
    assert not found.ok
    assert said in str(found)
    assert not written.verify().ok
    if change not in BEFORE_THE_END:
        with pytest.raises(LedgerCorrupt):
            Ledger.open(place).reserve(ask("d", 0.25))
        return
    assert Ledger.open(place).remaining() == Pure(epsilon=0.25)
    with pytest.raises(BudgetExceeded):
        Ledger.open(place).reserve(ask("d", 0.5))
    if not change.startswith(("another answer", "answer")):
        for look in (Ledger.charges, Ledger.entries, overview, last_charges):
            with pytest.raises(LedgerCorrupt, match=said.removeprefix("entry ")):
                look(Ledger.open(place))


def last_charges(ledger: Ledger) -> object:
    """What `tacit ledger show` prints: each link is checked, and no sum is added up anew."""
    return screen(ledger, most=1)


def test_an_answer_that_was_changed_is_not_given_out(written: Ledger) -> None:
    tamper(written, *CHANGES["another answer"][0])
    with pytest.raises(LedgerCorrupt, match="answer of entry 4"):
        written.reserve(ask("b", 0.25))
    assert isinstance(written.reserve(ask("d", 0.25)), Ticket)


def test_a_forged_end_is_found(written: Ledger, place: str) -> None:
    last = written.entries()[-1]
    content = canonical({**last.body, "sequence": 8, "previous": last.digest})
    tamper(written, f"INSERT INTO tacit_entries VALUES (8, '{sha256(content)}', '{content}')")
    assert "the end was added to: 1 more" in str(verify_ledger(place))


def test_a_consistent_forgery_with_the_secret_is_found_by_an_anchor_only(written: Ledger, place: str) -> None:
    """The limit that the docs state: who holds the ledger holds the secret."""
    from tacit.ledger.entries import Entry
    from tacit.ledger.log import AnalystShare, State, head_mac, share_body

    anchor, start = written.anchor, sha256(written._header)
    granted = AnalystShare.of(Pure(epsilon=1), written.budget)
    state = State.start(written.budget, {}).shared("eve", granted)
    share = Entry.new(
        sequence=1,
        previous=start,
        time="now",
        kind="share",
        analyst="eve",
        **share_body(granted, written.budget),
        **state.to_dict(),
    )
    keyed = head_mac(written._secret, start, 1, share.digest)
    tamper(
        written,
        "DELETE FROM tacit_answers",
        "DELETE FROM tacit_entries",
        "DELETE FROM tacit_index",
        f"INSERT INTO tacit_entries VALUES (1, '{share.digest}', '{share.content}')",
        f"UPDATE tacit_ledger SET sequence = 1, digest = '{share.digest}', mac = '{keyed}', state = '{state.text}'",
    )
    assert verify_ledger(place).ok
    assert "another history" in str(verify_ledger(place, [anchor]))


def test_anchors_hold_as_the_ledger_grows(written: Ledger, place: str) -> None:
    early = written.anchor
    written.reserve(ask("d", 0.125))
    assert verify_ledger(place, [early, written.anchor]).ok
    number, digest = early.split(":")
    assert not verify_ledger(place, [f"{number}:{digest[::-1]}"]).ok
    assert not verify_ledger(place, [f"99:{digest}"]).ok
    for nonsense in ("", "7", f"7;{digest}", "x:y", f"-1:{digest}"):
        with pytest.raises(InvalidParameter):
            verify_ledger(place, [nonsense])


def test_any_flipped_byte_is_found_or_changes_nothing_that_is_read(tmp_path: Path) -> None:
    """Bytes of an SQLite file at regular places: what is read back is what was written, or an error."""
    path = tmp_path / "a"
    ledger = Ledger.create(path, budget=promise(1.0))
    for key in "ab":
        ledger.run(ask(key, 0.25), lambda key=key: {"answer to": key})
    original, entries = path.read_bytes(), [e.content for e in ledger.entries()]
    inside = [original.index(content.encode()) + len(content) // 2 for content in entries]
    for place in [*inside, *range(0, len(original), 331)]:
        damaged = bytearray(original)
        damaged[place] ^= 0x15
        path.write_bytes(bytes(damaged))
        try:
            sound = verify_ledger(path).ok
        except ValueError:
            sound = False
        if sound:
            assert [e.content for e in Ledger.open(path).entries()] == entries
        assert not (sound and place in inside)
    path.write_bytes(original)
    assert verify_ledger(path).ok


def test_an_entry_is_its_text(written: Ledger) -> None:
    for entry in written.entries():
        assert sha256(entry.content) == entry.digest
        assert json.loads(entry.content) == entry.body


def test_an_entry_in_another_spelling_cannot_be_read(tmp_path: Path) -> None:
    """One content has one text: another one with a digest of its own is no entry, nor is what is no JSON."""
    with Ledger.create(tmp_path / "a.ledger", budget=promise(1.0)) as ledger:
        said = ledger.note("a sentence", by="custodian")
    text, deep = said.content, "[" * 100_000 + "]" * 100_000
    assert read_entry(sequence=said.sequence, digest=sha256(text), content=text)[0] == said
    turned = json.dumps(dict(reversed(list(json.loads(text).items()))), separators=(",", ":"))
    others = [
        text.replace(":", ": ", 1),
        turned,
        *(text.replace('"a sentence"', odd) for odd in ("NaN", deep)),
    ]
    for other in others:
        assert other != text
        assert read_entry(sequence=said.sequence, digest=sha256(other), content=other) == (
            None,
            "cannot be read",
        )
