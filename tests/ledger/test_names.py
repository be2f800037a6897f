"""Names that are read as somebody else's: no share, role or approval goes to a lookalike; old names stay somebody's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tacit.curator.certificate import SigningKey
from tacit.errors import InvalidParameter, NotAllowed, TacitError, visible
from tacit.guarantees import Guarantee, Pure, rows
from tacit.ledger import Ledger, Request, Ticket, looked
from tacit.ledger import approvals as desk
from tacit.ledger.approvals import Approvals
from tacit.ledger.looks import record_plan
from tacit.ledger.register import Register, admitted, alike, scripts, skeleton

INVISIBLE = [
    "\u034f",
    "\u3164",
    "\u115f",
    "\u1160",
    "\ufe0f",
    "\u2800",
    "\u200b",
    "\u200d",
    "\u180b",
    "\U000e0101",
]
LOOKALIKES = [
    *(f"bob{c}" for c in INVISIBLE),
    *(f"b{c}ob" for c in INVISIBLE),
    "bob\u0307",
    "bob.",
    "b\u043eb",
    "b\u03bfb",
    "Bob",
    "BOB",
    "b0b",
    "bo b",
    "b\u00f6b",
    "b\u00f8b",
    "\uff42\uff4f\uff42",
    "\u0412\u041e\u0412",
    "-bob-",
    "b\u0585b",
    "\u0185o\u0185",
    "b\ua74bb",
]
STRANGE = [
    "\ua4d0\ua4f3\ua4d0",  # Lisu
    "\u13f4\u13be\u13f4",  # Cherokee
    "\u2c83\u2c9f\u2c83",  # Coptic
    "b\u25cbb",  # a circle
    "\U0001f171ob",  # a B in a box
]
KEY = SigningKey(Ed25519PrivateKey.generate())


def promise(epsilon: float) -> Guarantee:
    return Guarantee(bound=Pure(epsilon=epsilon), unit=rows())


def ask(analyst: str, key: str = "k", **more: Any) -> Request:
    given = {"plan_digest": key, "event": {"kind": "laplace", "noise_scale": 1.0, "times": 1}}
    return Request(key=key, analyst=analyst, charge=promise(0.25), **(given | more))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "a.ledger", budget=promise(4.0), shares={"bob": Pure(epsilon=0.25)})


def unchecked(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Names as version 0.1.0 took them: compared by case, width and blanks alone."""
    monkeypatch.setattr(Approvals, "_admit", lambda self, parameter, name: None)
    monkeypatch.setattr(desk, "alike", lambda one, other: one == other)
    return monkeypatch


@pytest.mark.parametrize("name", [*LOOKALIKES, *STRANGE], ids=ascii)
def test_a_lookalike_has_no_budget_of_its_own(ledger: Ledger, name: str) -> None:
    ticket = ledger.reserve(ask("bob"))
    assert isinstance(ticket, Ticket)
    before = ledger.anchor
    ways: list[Any] = [
        lambda: ledger.reserve(ask(name, "k2")),
        lambda: ledger.request(ask(name, "k2")),
        lambda: ledger.share(name, Pure(epsilon=3.0)),
        lambda: ledger.enrol(name, "approver", key=KEY.public.text),
        lambda: ledger.enrol("eve", "analyst", by=name),
        lambda: looked(ledger, analyst=name),
        lambda: record_plan(ledger, "ab" * 32, analyst=name),
        lambda: ledger.note("all is well", by=name),
    ]
    for way in ways:
        with pytest.raises((InvalidParameter, NotAllowed)):
            way()
    assert ledger.anchor == before
    assert ledger.spent() == Pure(epsilon=0.25)


@pytest.mark.parametrize("name", [*LOOKALIKES, *STRANGE], ids=ascii)
def test_a_new_ledger_has_no_two_shares_that_are_read_alike(tmp_path: Path, name: str) -> None:
    shares = {"bob": Pure(epsilon=1.0), name: Pure(epsilon=1.0)}
    with pytest.raises(TacitError):
        Ledger.create(tmp_path / "a.ledger", budget=promise(4.0), shares=shares)
    assert not (tmp_path / "a.ledger").exists()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ann\u3164", "shows nothing"),
        ("\u2800", "shows nothing"),
        ("e\u0301va", "NFKC"),
        ("\uff45va", "NFKC"),
        ("\u0430nna", "one script"),
        ("\u03b1nna", "one script"),
        ("anna  b", "single blanks"),
        (" anna", "single blanks"),
        ("anna ", "single blanks"),
        ("...", "letter or a digit"),
        ("!|!", "letter or a digit"),
    ],
    ids=ascii,
)
def test_what_a_new_name_may_not_be(name: str, told: str) -> None:
    with pytest.raises(InvalidParameter, match=told) as problem:
        admitted("analyst", name, ["bob"])
    assert "\u3164" not in str(problem.value)
    assert admitted("analyst", name, ["bob", name]) == name


@pytest.mark.parametrize(
    "name",
    [
        "anna", "Éva Müller", "Иван Петров", "Ιωάννα", "田中さん", "田中カズ", "佐々木", "スーザン", "김철수",
        "ann-marie o'neill",
        "team 1.1", "राम", "ann@example.org", "x_1", "محمد", "ann (2)",
    ],
)  # fmt: skip
def test_ordinary_names_are_admitted(name: str) -> None:
    assert admitted("analyst", name, ["bob", "team 11", "रमा", "eve"]) == name


ONE_CLASS = ["l", "1", "I", "i", "!", "|", "¡", "L"]


@pytest.mark.parametrize("letter", ONE_CLASS)
def test_signs_and_digits_that_are_drawn_like_letters(letter: str) -> None:
    """a!ice beside alice; b0b beside bob. Digits that differ are two names."""
    for other in ONE_CLASS:
        name = f"a{letter}ice"
        if name != f"a{other}ice":
            with pytest.raises(InvalidParameter, match="not be read as"):
                admitted("analyst", name, [f"a{other}ice"])
    assert admitted("analyst", "a!ice", ["a!ice", "alice"]) == "a!ice"
    assert all(alike(one, other) for one in ("b0b", "bob", "BOB") for other in ("b0b", "bOb"))
    # A sign may be overlooked, too.
    assert all(alike("alice", other) for other in ("alice!", "!alice", "alice|", "al|ice", "al!ce"))


@pytest.mark.parametrize(
    ("name", "plain"),
    [("bɨll", "bill"), ("mĸ", "mk"), ("ƒred", "fred"), ("aliȼe", "alice"), ("ⱥnna", "anna"), ("aðam", "adam"),
     ("ɋuinn", "quinn"), ("zoɇ", "zoe"), ("user٥", "user5"), ("b৭", "b7")],
)  # fmt: skip
def test_strokes_hooks_and_digits_of_other_scripts(name: str, plain: str) -> None:
    assert alike(name, plain)
    with pytest.raises(InvalidParameter):
        admitted("analyst", name, [plain])
    # Known names go by their exact characters, and letters that differ are two names.
    assert admitted("analyst", name, [name, plain]) == name
    assert not alike("user٥", "user6")
    assert admitted("analyst", "Łukasz", ["Jan"]) == "Łukasz"


def test_digits_that_differ_are_two_names() -> None:
    known = ["anna1", "site 10", "b7", "m2", "user|2"]
    for name in (
        "anna2",
        "anna3",
        "anna7",
        "site 20",
        "site 11",
        "b8",
        "m3",
        "user|3",
        "anna",
        "annab",
        "hanna1",
    ):
        assert admitted("analyst", name, known) == name


def test_skeletons() -> None:
    assert all(alike(name, "bob") for name in LOOKALIKES)
    for one, other in (
        ("team 1.1", "team 11"),
        ("anna", "anne"),
        ("राम", "रमा"),
        ("さとう", "さどう"),
        ("bob", "rob"),
    ):
        assert not alike(one, other)
    for one, other in (("Ivan", "lvan"), ("modern", "modem"), ("user1", "userl"), ("а", "a")):
        assert alike(one, other)
    assert skeleton("\u3164") == ""
    assert scripts("田中さん") == {"CJK", "HIRAGANA"}
    assert scripts("bоb") == {"LATIN", "CYRILLIC"}


@pytest.mark.parametrize("odd", ["bob\u034f", "b\u043eb", "\u3164"], ids=ascii)
def test_a_name_that_an_older_version_wrote_goes_by_its_exact_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    """Enrolled, with a share, or only charged: it opens, charges and verifies; its lookalikes are refused."""
    place = tmp_path / "old.ledger"
    with monkeypatch.context() as patch:
        unchecked(patch)
        old = Ledger.create(place, budget=promise(4.0))
        old.share("bob", Pure(epsilon=1.0))
        old.enrol("bob", "analyst")
        old.enrol(odd, "analyst")
        old.share(odd, Pure(epsilon=0.5))
        old.commit(old.reserve(ask(odd)), 1)
        old.close()
    ledger = Ledger.open(place)
    assert ledger.verify().ok
    ledger.commit(ledger.reserve(ask(odd, "k2")), 2)
    with pytest.raises(TacitError, match="share"):
        ledger.reserve(ask(odd, "k3"))
    ledger.commit(ledger.reserve(ask("bob", "k4")), 3)
    assert ledger.verify().ok
    with pytest.raises((InvalidParameter, NotAllowed)):
        ledger.reserve(ask(odd + "\ufe0f", "k5"))
    with pytest.raises(InvalidParameter):
        ledger.enrol(odd + "\ufe0f", "analyst")


def test_a_name_that_was_only_charged_before_does_not_escape_a_later_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        unchecked(patch)
        ledger = Ledger.create(tmp_path / "old.ledger", budget=promise(4.0))
        ledger.reserve(ask("bob\u034f"))
    assert isinstance(ledger.reserve(ask("bob\u034f", "k2")), Ticket)
    ledger.share("carl", Pure(epsilon=0.25))
    with pytest.raises(InvalidParameter, match="not be read as"):
        ledger.share("bob", Pure(epsilon=0.25))
    with pytest.raises(NotAllowed, match="looks the same"):
        ledger.reserve(ask("cаrl", "k3"))


def test_an_approver_who_is_read_as_the_asker_does_not_approve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were enrolled by an older version; neither a new approval nor an old one of the lookalike counts."""
    with monkeypatch.context() as patch:
        unchecked(patch)
        ledger = Ledger.create(tmp_path / "old.ledger", budget=promise(4.0))
        ledger.enrol("ann", "analyst")
        ledger.enrol("ann\u3164", "approver", key=KEY.public.text)
        ledger.demand(True)
        number, _ = ledger.request(ask("ann"))
        ledger.approve(number, by="ann\u3164", key=KEY)
        second, _ = ledger.request(ask("ann", "k2"))
    with pytest.raises(NotAllowed, match="confused with the asker's"):
        ledger.reserve(ask("ann"))
    with pytest.raises(NotAllowed, match="who asked"):
        ledger.approve(second, by="ann\u3164", key=KEY)
    other = SigningKey(Ed25519PrivateKey.generate())
    ledger.enrol("eve", "approver", key=other.public.text)
    ledger.approve(number, by="eve", key=other)
    ticket = ledger.reserve(ask("ann"))
    assert isinstance(ticket, Ticket)
    assert ledger.verify().ok


# --- approvals and open requests -----------------------------------------------------------------------------
def test_a_revoked_approval_of_an_older_ledger_stays_as_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chain of an older version, where an approval came back with its role and was used, still verifies."""
    place = tmp_path / "old.ledger"
    ledger = Ledger.create(place, budget=promise(4.0))
    ledger.enrol("ann", "analyst")
    ledger.enrol("eve", "approver", key=KEY.public.text)
    ledger.demand(True)
    with monkeypatch.context() as patch:
        patch.setattr(Register, "approvals_end", lambda self, person: False)
        number, _ = ledger.request(ask("ann"))
        ledger.approve(number, by="eve", key=KEY)
        ledger.enrol("eve", "analyst", key=KEY.public.text)
        ledger.enrol("eve", "approver", key=KEY.public.text)
        assert isinstance(ledger.reserve(ask("ann")), Ticket)
        number, _ = ledger.request(ask("ann", "k2"))
        ledger.approve(number, by="eve", key=KEY)
        ledger.enrol("eve", "analyst", key=KEY.public.text)
        ledger.close()
    ledger = Ledger.open(place)
    assert ledger.verify().ok
    # Taken away by an older version, given back by this one: it does not come back.
    ledger.enrol("eve", "approver", key=KEY.public.text)
    with pytest.raises(NotAllowed, match="waits for an approver"):
        ledger.reserve(ask("ann", "k2"))
    assert ledger.verify().ok


def test_requests_have_a_limit_and_cost_a_charge_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "MOST_OPEN", 5)
    monkeypatch.setattr(desk, "MOST_OPEN_OF_ONE", 3)
    numbers = [ledger.request(ask("ann", f"a{i}"))[0] for i in range(3)]
    assert ledger.request(ask("ann", "a0"))[0] == numbers[0]
    with pytest.raises(NotAllowed, match="3 of their requests are open"):
        ledger.request(ask("ann", "a3"))
    for i in range(2):
        ledger.request(ask("eve", f"e{i}"))
    with pytest.raises(NotAllowed, match="5 requests are open"):
        ledger.request(ask("carl", "c0"))
    made: list[int] = []
    words = Register._to_dict
    monkeypatch.setattr(Register, "_to_dict", lambda self: (made.append(1), words(self))[1])
    for i in range(4):
        ledger.commit(ledger.reserve(ask("carl", f"k{i}")), i)
    assert not made
    ledger.close_request(numbers[0], by="ann")
    assert ledger.request(ask("carl", "c0"))
    assert ledger.verify().ok


# --- what shows nothing --------------------------------------------------------------------------------------
@pytest.mark.parametrize("c", [c for c in INVISIBLE if c != "\u200d"], ids=ascii)
def test_what_shows_nothing_is_spelled_out_and_is_no_text(ledger: Ledger, tmp_path: Path, c: str) -> None:
    assert visible(f"a{c}b") == f"a\\u{{{ord(c):x}}}b"
    assert visible("é 東 ❤") == "é 東 ❤"
    with pytest.raises(InvalidParameter):
        ledger.note(c)
    with pytest.raises(InvalidParameter):
        ledger.note(f" {c} ")
    with pytest.raises(InvalidParameter):
        Ledger.create(tmp_path / "b.ledger", budget=promise(1.0), table=c)
    with pytest.raises((InvalidParameter, NotAllowed)):
        ledger.reserve(ask(c))


def test_a_note_with_a_picture_is_a_note(ledger: Ledger) -> None:
    assert ledger.note("done \u2764\ufe0f").body["note"] == "done \u2764\ufe0f"
