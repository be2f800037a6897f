"""One question has one text, however it is spelled; and what an earlier form has on record stays free."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import tacit
from tacit.cli import main
from tacit.curator import planning
from tacit.curator import request as requests
from tacit.curator.certificate import SigningKey
from tacit.curator.charging import price
from tacit.curator.choice import read_choice
from tacit.curator.planning import make_plan
from tacit.curator.request import request_text
from tacit.curator.verifying import verify_release
from tacit.errors import LedgerError

SCHEMA = {
    "age": tacit.integer(0, 120),
    "x": tacit.number(0, 10, spacing=0.25),
    "d": tacit.date("2020-01-01", "2020-12-31"),
    "s": tacit.category(["a", "b"]),
    "n": tacit.category([1, 2]),
    "u": tacit.category(),
}


def text(*asks: Any, total: Any = None, given: Any = None, schema: Any = SCHEMA) -> str:
    asks = tuple(a if isinstance(a, tacit.Query) else tacit.query(a, epsilon=1) for a in asks)
    return request_text(
        asks, schema=tacit.Schema(schema), unit=tacit.rows(), total=total, given=given, reading={}
    )


def where(*spelled: str) -> list[Any]:
    return [tacit.count(where=one) for one in spelled]


def prices(**words: list[Any]) -> list[Any]:
    (name, values), more = next(iter(words.items())), list(words.items())[1:]
    rest = {n: v[0] for n, v in more}
    return [tacit.query(tacit.count(), **{name: value}, **rest) for value in values]


def given(word: str, *values: Any, **rest: Any) -> list[Any]:
    return [tacit.query(tacit.count(), epsilon=1, given={word: value, **rest}) for value in values]


HALF = [0.5, Fraction(1, 2), np.float64(0.5)]
SAME: dict[str, list[Any]] = {
    "a whole number": where("age > 5", "age > 5.0", "age>5", " age  >\t5 ", "age > +5", "age > 5e0", "5 < age",
                            "(age > 5)", "( (age > 5) )", "age > 05"),
    "a fraction": where("x < 0.5", "x < .5", "x < 0.50", "x < 5e-1", "0.5 > x"),
    "a long number": where("x < 9007199254740993", "x < 9007199254740992.0"),
    "several": where("age in (1, 2) and not s = 'a'", 'age IN (1,2.0) AND NOT (s == "a")'),
    "brackets": where("age > 1 or x > 2 and age < 9", "age > 1 or (x > 2.0 and (age < 9))"),
    "between": where("age between 1 and 3", "age between 1.0 and 3e0"),
    "no": where("not age = 3", "not age == 3.00"),
    "minus nothing": where("x > 0", "x > -0.0", "x > -0"),
    "a day": where("d >= '2020-02-01'", "d >= '20200201'", "d >= '2020-W05-6'"),
    "share": [tacit.proportion("x > 1", by="s"), tacit.proportion("x>1.0", by=["s"])],
    "groups": [tacit.count(by="s"), tacit.count(by=["s"]), tacit.count(by=("s",))],
    "edges": [
        tacit.count(by=tacit.bins("x", edges))
        for edges in ([0, 0.5, 10], [0.0, Fraction(1, 2), 10.0], np.array([0, 0.5, 10]), (0, 0.5, np.float64(10)))
    ],
    "edges of a tenth": [
        tacit.count(by=tacit.bins("x", edges)) for edges in ([0, 0.1, 1], [0, Fraction(1, 10), 1])
    ],
    "edges that are days": [
        tacit.count(by=tacit.bins("d", edges))
        for edges in (
            ["2020-01-01", "2020-07-01"],
            [datetime.date(2020, 1, 1), datetime.date(2020, 7, 1)],
            [datetime.datetime(2020, 1, 1, 12), "20200701"],
        )
    ],
    "number of bins": [tacit.count(by=tacit.bins("x", n)) for n in (4, np.int64(4))],
    "quantiles": [tacit.quantiles("x", at=[v]) for v in HALF] + [tacit.quantiles("x", at=(0.5,))],
    "ranges": [
        tacit.ranges("x", [0, 5, 10], at=[(0, 5)]),
        tacit.ranges("x", (0.0, 5.0, 10.0), at=((0.0, 5.0),)),
    ],
    "ranges of a tenth": [
        tacit.ranges("x", edges, at=[(0, edges[1])]) for edges in ([0, 0.1, 1], [0.0, Fraction(1, 10), Fraction(1)])
    ],
    "ranges of a tenth, all of them": [tacit.ranges("x", edges) for edges in ([0, 0.1, 1], [0, Fraction(1, 10), 1])],
    "ends of ranges": [tacit.ranges("x", [0, 2.5, 10], at=[pair]) for pair in ((0, 2.5), (0.0, "2.5"))],
    "ranges of days": [
        tacit.ranges("d", edges, at=at)
        for edges, at in (
            (["2020-01-01", "2020-07-01"], [("2020-01-01", "2020-07-01")]),
            ([datetime.date(2020, 1, 1), datetime.date(2020, 7, 1)], [("2020-01-01", datetime.date(2020, 7, 1))]),
            (["20200101", "2020-07-01"], [["20200101", "2020-07-01"]]),
        )
    ],
    "number of bins of ranges": [tacit.ranges("x", n) for n in (4, np.int64(4))],
    "gamma of a kernel": [tacit.classifier("s", ["x"], size=100, gamma=g) for g in (2, 2.0, Fraction(2))],
    "bandwidth": [tacit.density(["x"], size=100, bandwidth=b) for b in (1, 1.0, Fraction(1))],
    "epsilon": prices(epsilon=[0.5, Fraction(1, 2), Decimal("0.5"), np.float64(0.5), Decimal("0.50")]),
    "whole epsilon": prices(epsilon=[1, 1.0, Decimal(1), Fraction(1), np.int64(1)]),
    "delta": prices(delta=[1e-6, Fraction(1, 10**6), Decimal("0.000001")], epsilon=[1]),
    "accuracy": prices(within=[50, 50.0, Decimal("5e1")]),
    "interval": [tacit.query(tacit.count(), epsilon=1, interval=v) for v in (0.9, Fraction(9, 10), Decimal("0.9"))],
    "target": [tacit.query(tacit.count(), epsilon=1, target=v) for v in (2, 2.0, Fraction(2))],
    "probability": given("probability", 0.5, "1/2", "0.5", Fraction(1, 2), Decimal("0.5"), [0.5], ("1/2",),
                         unknown_rows=900),
    "probabilities": given("probability", [0.1, 0.9], ("1/10", Fraction(9, 10)), unknown_rows=900),
    "rate": given("rate", 0.1, "1/10", Fraction(1, 10), Decimal("0.10"), sampling="binomial"),
    "law": given("rows", "uniform(0, 1)", "uniform(0,1)", "Uniform( 0.0 , 1e0 )", unknown_rows=900),
    "law with a grid": given(
        "rows", "uniform(0, 1, grid=1/4)", "uniform(0, 1, grid = 0.25)", unknown_rows=900
    ),
    "law with ends": given(
        "rows", "normal(0, 1, clamp=(-2, 2))", "normal(0.0,1, clamp = (-2.0,4/2))", unknown_rows=900
    ),
    "table of a law": given(
        "rows", "table(0: 1/2, 5: 1/2)", "table(0: 0.5, 5: 0.5)", "Table( 5.0:.5,0 : 1/2 )", "table(5: 2/4, 0: 5e-1)",
        "table(0: 1/4, 5: 1/2, 0.0: 1/4)",
        unknown_rows=900,
    ),
    "table with a grid": given(
        "rows", "table(0: 1/2, 5: 1/2, grid=1/2)", "table(grid = 0.5, 5: .5, 0: .5)", unknown_rows=900
    ),
    "size_epsilon": given("size_epsilon", 1, 1.0, sampling="fixed", n=50),
    "gamma": given("random_data", 0.05, Fraction(1, 20), Decimal("0.05"), rows=10),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_one_question_in_several_spellings(name: str) -> None:
    assert len({text(one) for one in SAME[name]}) == 1


DIFFERENT: dict[str, list[Any]] = {
    "numbers": where("age > 5", "age >= 5", "age > 5.5", "age > 6", "x > 5", "age < 5", "age = 5", "age != 5"),
    "long whole numbers": where("age < 9007199254740993", "age < 9007199254740992"),
    "near numbers": where("x < 0.1", "x < 0.1000000000000000055511151231257828", "x < 0.10000000000000002")[1:],
    "brackets that say something": where("(age > 1 or x > 2) and age < 9", "age > 1 or x > 2 and age < 9"),
    "no algebra": where("not age > 5", "age <= 5", "age > 5 and true", "age > 5 or age > 5"),
    "order": where("age > 1 and x > 2", "x > 2 and age > 1"),
    "text and number": [tacit.count(where="s = 'a'"), tacit.count(where="n = 1"), tacit.count(where="u = '1'")],
    "days": where("d >= '2020-02-01'", "d >= '2020-02-02'", "d > '2020-02-01'"),
    "edges": [tacit.count(by=tacit.bins("x", e)) for e in ([0, 1], [0, 2], [0, 1, 2], [0.25, 1], 2)],
    "quantiles": [tacit.quantiles("x", at=[v]) for v in (0.1, Fraction(1, 10), 0.2, Fraction(1, 3))],
    "bandwidth": [tacit.density(["x"], size=100, bandwidth=b) for b in (1, 0.5, None)],
    "price": [*prices(epsilon=[1, 2, 0.1, Fraction(1, 3)]), *prices(epsilon=[1], delta=[1e-6]), *prices(rho=[1])],
    "probability": given("probability", 0.5, 0.25, [0.5, 0.6], unknown_rows=900),
    "law": given("rows", "uniform(0, 1)", "uniform(0, 2)", "triangle(0, 1, 2)", unknown_rows=900),
    "table of a law": given(
        "rows", "table(0: 1/2, 5: 1/2)", "table(0: 1/3, 5: 2/3)", "table(0: 2/3, 5: 1/3)", "table(0: 1/2, 6: 1/2)",
        "table(0: 1/2, 5: 1/2, grid=1)", "table(0: 1/2, 5: 1/2, grid=1/2)", "table(0: 1/2, 2: 1/4, 5: 1/4)",
        unknown_rows=900,
    ),
    "ranges": [
        *(tacit.ranges("x", e) for e in ([0, 0.1, 1], [0, 0.10000000000000002, 1], [0, 1], 2)),
        *(tacit.ranges("x", [0, 1, 2], at=at) for at in ([(0, 1)], [(0, 2)], [(1, 2)], [(0, 1), (1, 2)])),
    ],
    "rate": given("rate", 0.1, 0.2, sampling="binomial"),
    "groups": [tacit.count(by=["s", "n"]), tacit.count(by=["n", "s"]), tacit.count(by="s"), tacit.count()],
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENT)
def test_questions_that_are_different(name: str) -> None:
    assert len({text(one) for one in DIFFERENT[name]}) == len(DIFFERENT[name])


def test_the_declared_bounds_have_one_spelling() -> None:
    spelled = [(0, 8), (0.0, 8.0), (Fraction(0), Fraction(8)), (np.float64(0), 8), (-0.0, 8)]
    texts = {text(tacit.count(), schema={"x": tacit.number(low, high)}) for low, high in spelled}
    assert len(texts) == 1
    # A word is not a number.
    words = [{"x": tacit.number(-0.0, 8), "s": tacit.category([w])} for w in ("-0.0", "0.0", "0")]
    assert len({text(tacit.count(), schema=w) for w in words}) == 3
    filled = [{"x": tacit.number(0, 8, missing=m)} for m in (1, 1.0, None, 2)]
    assert len({text(tacit.count(), schema=f) for f in filled}) == 3
    made = [
        {"x": tacit.derived(e, tacit.number(0, 8)), "y": tacit.number(0, 1)}
        for e in ("y*2", "y * 2.0", "y*3")
    ]
    assert len({text(tacit.count(), schema=m) for m in made}) == 2


@pytest.mark.parametrize("words", [{"epsilon": 1, "delta": 1e-6}, {"within": 50, "delta": 1e-6}, {"rho": 1}])
def test_a_single_release_at_its_own_price_or_the_plans(words: dict[str, Any]) -> None:
    count = tacit.count(by="s")
    assert text(tacit.query(count, **words)) == text(tacit.query(count), total=price(**words))
    # Of two, one with a price of its own is not the same as two that share.
    pair = [text(tacit.query(count, **words), tacit.query(tacit.count()), total=price(**words)),
            text(tacit.query(count), tacit.query(tacit.count()), total=price(**words))]  # fmt: skip
    assert pair[0] != pair[1]


@pytest.mark.parametrize("statistic", [tacit.count(by="s"), tacit.mean("x", by="s"), tacit.variance("x"),
                                       tacit.count(by="u"), tacit.quantiles("x", at=[0.5])])  # fmt: skip
def test_both_have_one_choice_and_one_charge(statistic: Any) -> None:
    """What is one question must get one answer: the same noise for the same charge, whichever was asked first."""
    about: Any = {"schema": tacit.Schema(SCHEMA), "unit": tacit.rows(),
                  "budget": tacit.Approximate(epsilon=9.0, delta=1e-3)}  # fmt: skip
    own = make_plan([tacit.query(statistic, epsilon=1, delta=1e-6)], **about)
    whole = make_plan([tacit.query(statistic)], total=price(epsilon=1, delta=1e-6), **about)
    assert own.digest == whole.digest
    assert own.charged == whole.charged
    assert own.releases[0].assignment == whole.releases[0].assignment


# --- free in the other spelling ---------------------------------------------------------------------------------
@pytest.fixture
def rows(tmp_path: Path) -> Path:
    table = pa.table({"age": list(range(100)), "x": [i / 10 for i in range(100)], "s": ["a", "b"] * 50})
    pa.csv.write_csv(table, tmp_path / "rows.csv")
    return tmp_path / "rows.csv"


OWN = {name: SCHEMA[name] for name in ("age", "x", "s")}


def curator(rows: Path, **more: Any) -> tacit.Curator:
    return tacit.Curator(
        rows, protect=tacit.rows(), schema=OWN, budget=tacit.Approximate(epsilon=100.0, delta=1e-3),
        ledger=rows.with_suffix(".ledger"), **more,
    )  # fmt: skip


def test_another_spelling_is_answered_from_the_record(rows: Path) -> None:
    with curator(rows) as one:
        first = one.release(tacit.count(where="age > 5"), epsilon=1)
        second = one.release(tacit.query(tacit.count(where="(5.0 < age)", by=[]), epsilon=Fraction(1)))
        assert (first.replayed, second.replayed) == (False, True)
        assert first.value == second.value
        own = one.release(tacit.query(tacit.mean("x"), epsilon=1, delta=1e-6))
        whole = one.release([tacit.mean("x")], epsilon=1.0, delta=Fraction(1, 10**6))[0]
        assert whole.replayed
        assert whole.value == own.value
        assert not one.release(tacit.count(where="age > 6"), epsilon=1).replayed
        assert len(one.ledger.charges()) == 3


PLAN = """
[data]
path = "rows.csv"
[protect]
unit = "rows"
[schema]
age = {{ kind = "integer", low = 0, high = 120 }}
x = {{ kind = "number", low = 0, high = 10, spacing = 0.25 }}
s = {{ kind = "category", keys = ["a", "b"] }}
[budget]
epsilon = 100.0
delta = 0.001
[ledger]
path = "rows.ledger"
[[release]]
kind = "count"
name = "n"
where = "{where}"
epsilon = {epsilon}
"""


def test_what_format_4_first_wrote_is_free(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Edges of ranges stood as they were typed: the same spelling is still known."""
    typed, other = (
        tacit.query(tacit.ranges("x", edges), epsilon=1)
        for edges in ([0, Fraction(1, 2), Fraction(11, 10)], [0, 0.5, 1.1])
    )

    def digest(*asks: Any, **words: Any) -> str:
        return requests.earlier_digests(*asks, **words)[0]

    with monkeypatch.context() as before:
        before.setattr(planning, "request_digest", digest)
        before.setattr(planning, "earlier_digests", lambda *_, **__: ())
        with curator(rows) as one:
            old = one.release(typed)
    with curator(rows) as one:
        now = one.release(typed)
        assert now.replayed
        # The other spelling was never asked. It is charged once, and has one text from now on.
        assert not one.release(other).replayed
        assert len(one.ledger.charges()) == 2
    assert np.array_equal(old.estimate.value, now.estimate.value)


FIRST_4 = {
    "edges": (tacit.ranges("x", [0, Fraction(1, 10), 1], at=[(0, Fraction(1, 10))]), None,
              "6f0dc2acf5f6d9400220cf39595f5a8a3ab528c21818efe94cdb84e71c81fe12"),
    "table": (tacit.sum("x"), {"rows": "table(5: .5, 0: 1/2)", "unknown_rows": 60},
              "6326c6e0cbb09da8b62415b8275d475ca37477811315d3415773b31b4ace5781"),
}  # fmt: skip
"""What the first texts of format 4 were called, by the program that wrote them."""


@pytest.mark.parametrize("name", FIRST_4)
def test_the_first_texts_of_format_4_are_frozen(name: str) -> None:
    statistic, assumed, digest = FIRST_4[name]
    words: Any = {
        "schema": tacit.Schema(SCHEMA),
        "unit": tacit.rows(),
        "total": None,
        "given": None,
        "reading": {},
    }
    asked = tacit.query(statistic, epsilon=1, given=assumed)
    assert requests.earlier_digests([asked], **words)[0] == digest
    # Where nothing was typed in another way there is one text of this format.
    assert len(requests.earlier_digests([tacit.query(tacit.count(), epsilon=1)], **words)) == 1


def asked_in_format_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """The curator as it was: format 3 is the digest, and nothing is earlier but 0.1.0."""

    def digest(*asks: Any, **words: Any) -> str:
        return requests.earlier_digests(*asks, **words)[-1]

    monkeypatch.setattr(planning, "request_digest", digest)
    monkeypatch.setattr(planning, "earlier_digests", lambda *_, **__: ())


@pytest.mark.parametrize("key", [None, "k"])
def test_what_format_3_recorded_is_free_and_verifies(
    rows: Path, key: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Asked in the same spelling: by its digest of then, also under a key, from a plan and for a renamed file."""
    plan, more = rows.with_name("plan.toml"), ["--key", key] if key else []
    plan.write_text(PLAN.format(where="age > 5.0", epsilon=1.0))
    with monkeypatch.context() as before:
        asked_in_format_3(before)
        assert main(["release", str(plan), "--out", str(rows.with_name("old")), *more]) == 0
    assert main(["release", str(plan), "--out", str(rows.with_name("new")), *more]) == 0
    with tacit.Ledger.open(rows.with_suffix(".ledger")) as ledger:
        (charge,) = ledger.charges()
    for folder in ("old", "new"):
        found = verify_release(rows.with_name(folder), ledger=str(rows.with_suffix(".ledger")))
        assert not [str(f) for f in found.findings if f.holds is False]
    with curator(rows) as one:
        asked = tacit.query(tacit.count(where="age > 5.0"), name="n", epsilon=1)
        assert one.release(asked, key=key).replayed
        assert one.preview(asked).digest != charge.plan_digest
    if key is None:
        other = rows.with_name("other.csv")
        other.write_bytes(rows.read_bytes())
        with (
            tacit.Curator(other, protect=tacit.rows(), schema=OWN, ledger=rows.with_suffix(".ledger"),
                          budget=tacit.Approximate(epsilon=100.0, delta=1e-3)) as one,
            pytest.raises(LedgerError, match="never declared for it"),
        ):  # fmt: skip
            one.release(asked)
    # Another question under the key is still another one.
    plan.write_text(PLAN.format(where="age > 6", epsilon=1.0))
    assert main(["release", str(plan), "--out", str(rows.with_name("third")), *more]) == (2 if key else 0)
    capsys.readouterr()


def test_a_release_in_another_spelling_verifies(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is answered from the record of the first one, says what its own plan says, and nothing is wrong with it."""
    for number, spelled in enumerate(
        ({"where": "5.0 < age", "epsilon": "1"}, {"where": "age > 5", "epsilon": "1.0"})
    ):
        plan = rows.with_name(f"{number}.toml")
        plan.write_text(PLAN.format(**spelled))
        assert main(["release", str(plan), "--out", str(rows.with_name(f"out{number}"))]) == 0
        assert ("answered from the record" in capsys.readouterr().out) == bool(number)
        found = verify_release(rows.with_name(f"out{number}"), ledger=str(rows.with_suffix(".ledger")))
        assert not [str(f) for f in found.findings if f.holds is False]


def test_an_approval_of_format_3_can_be_used(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, key = (
        tacit.query(tacit.count(where="age > 5.0"), epsilon=1),
        SigningKey(Ed25519PrivateKey.generate()),
    )
    with tacit.Ledger.create(
        rows.with_suffix(".ledger"),
        budget=tacit.Guarantee(bound=tacit.Approximate(epsilon=100.0, delta=1e-3), unit=tacit.rows()),
    ) as ledger:
        ledger.enrol("ann", "analyst")
        ledger.enrol("ben", "approver", key=key.public.text)
        ledger.demand(True)
        with monkeypatch.context() as before:
            asked_in_format_3(before)
            with curator(rows, analyst="ann") as one:
                number = one.request(one.preview(asked))
        ledger.approve(number, by="ben", key=key)
        with curator(rows, analyst="ann") as one:
            assert not one.release(asked).replayed
            assert one.release(tacit.query(tacit.count(where="5 < age"), epsilon=1)).replayed
        assert ledger.verify().ok


def test_a_charge_without_a_choice_is_believed_only_where_it_has_no_files_either(rows: Path) -> None:
    """0.1.0 stored neither. Of a later charge the choice is read, and one that was taken away is not made again."""
    with curator(rows) as one:
        plan = one.preview(tacit.query(tacit.count(by="s"), epsilon=1))
        one.release(plan)
        (charge,) = one.ledger.charges()
    first = replace(charge, choice=None, files=None)
    assert read_choice(plan, first).releases[0].assignment == plan.releases[0].assignment
    with pytest.raises(LedgerError, match="a choice that this version cannot read"):
        read_choice(plan, replace(charge, choice=None))
    assert charge.choice is not None
    other = {**charge.choice, "format": 99}
    with pytest.raises(LedgerError, match="a choice that this version cannot read"):
        read_choice(plan, replace(charge, choice=other, files=None))
