"""What is asked, and what is not: the digest of a request, the declared set of files, who asks, and where it lies."""

from __future__ import annotations

import datetime
import json
import shutil
import typing
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import tacit
from support.ledgers import tamper
from support.spark import needs_spark
from tacit.cli import main
from tacit.curator import choice
from tacit.curator.charging import price
from tacit.curator.choice import choice_of, read_choice
from tacit.curator.request import declared_files, given_of, request_text
from tacit.curator.verifying import verify_release
from tacit.errors import InvalidParameter, LedgerError
from tacit.mechanisms import StableHistogram
from tacit.sources.opening.files import join
from tacit.sources.opening.joining import digest_of_rows

SCHEMA = {"x": tacit.integer(0, 10_000), "s": tacit.category(["a", "b"])}
UNIT = tacit.rows()


def write(path: Path, rows: int) -> Path:
    table = pa.table({"x": list(range(rows)), "s": ["a", "b"] * (rows // 2)})
    (pa.csv.write_csv if path.suffix == ".csv" else pa.parquet.write_table)(table, path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, rows in (("jan.csv", 1000), ("feb.csv", 50)):
        write(tmp_path / name, rows)
    return tmp_path


def curator(data: Any, ledger: Path, **more: Any) -> tacit.Curator:
    return tacit.Curator(
        data, protect=UNIT, schema=SCHEMA, budget=tacit.Pure(epsilon=1000.0), ledger=ledger, **more
    )


def count(data: Any, ledger: Path, **more: Any) -> tuple[float, bool]:
    """The number of rows, nearly without noise, and whether it comes from the record."""
    with curator(data, ledger, **more) as one:
        found = one.release(tacit.count(), epsilon=20)
    return float(found.value), found.replayed


# --- the canonical form -----------------------------------------------------------------------------------------
def text_of(*asks: Any, total: Any = None, **changes: Any) -> str:
    given = {"schema": tacit.Schema(SCHEMA), "unit": UNIT, "given": None, "reading": {}} | changes
    return request_text(asks, total=total, **given)


def test_the_form_is_written_down() -> None:
    """Format 4, letter by letter: who changes it makes every old question a new one."""
    asked = tacit.query(tacit.mean("x", by="s"), epsilon=0.1, interval=0.9)
    assert json.loads(text_of(asked)) == {
        "format": 4,
        "releases": [
            {
                "confidence": "9/10",
                "price": {"epsilon": "1/10"},
                "statistic": {"by": ["s"], "column": "x", "kind": "mean", "where": None},
            }
        ],
        "schema": {
            "s": {"type": "category", "missing": None, "values": ["a", "b"]},
            "x": {"high": 10000, "type": "integer", "low": 0, "missing": None, "outside": "clamp"},
        },
        "unit": {"kind": "rows", "neighbours": "add-or-remove"},
    }
    assert text_of(tacit.query(tacit.count(), epsilon=0.5)) == text_of(
        tacit.query(tacit.count(), epsilon=Fraction(1, 2), interval=0.95, weight=1)
    )


COUNT = tacit.count(by="s")
OTHERS: dict[str, Any] = {
    "statistic": lambda: text_of(tacit.query(tacit.count(), epsilon=1)),
    "price": lambda: text_of(tacit.query(COUNT, epsilon=2)),
    "accuracy": lambda: text_of(tacit.query(COUNT, within=3)),
    "name": lambda: text_of(tacit.query(COUNT, epsilon=1, name="n")),
    "interval": lambda: text_of(tacit.query(COUNT, epsilon=1, interval=0.9)),
    "consistent": lambda: text_of(tacit.query(COUNT, epsilon=1, consistent=True)),
    "total": lambda: text_of(tacit.query(COUNT), total=price(epsilon=1, delta=1e-6)),
    "given": lambda: text_of(tacit.query(COUNT, epsilon=1, given={"random_data": 0.1, "rows": 10})),
    "reading": lambda: text_of(tacit.query(COUNT, epsilon=1), reading={"separator": ";"}),
    "unit": lambda: text_of(tacit.query(COUNT, epsilon=1), unit=tacit.rows(neighbours="replace-one")),
    "schema": lambda: text_of(tacit.query(COUNT, epsilon=1), schema=tacit.Schema({"s": SCHEMA["s"]})),
}


def test_all_that_is_asked_is_in_it() -> None:
    found = {name: other() for name, other in OTHERS.items()} | {"": text_of(tacit.query(COUNT, epsilon=1))}
    assert len(set(found.values())) == len(found)


def test_one_release_for_the_price_of_the_whole_plan_is_one_at_its_own() -> None:
    assert text_of(tacit.query(COUNT), total=price(rho=1)) == text_of(tacit.query(COUNT, rho=1))


def test_what_nobody_needs_to_say_may_be_said() -> None:
    plain, random = text_of(tacit.query(COUNT, epsilon=1)), given_of({"random_data": 0.1, "rows": 10})
    assert text_of(tacit.query(COUNT, epsilon=1), given=given_of("always")) == plain
    assert text_of(tacit.query(COUNT, epsilon=1, given="always")) == plain
    assert text_of(tacit.query(COUNT, weight=2), total=price(epsilon=1)) == plain
    assert text_of(tacit.query(COUNT, epsilon=1), reading={"decimal": ".", "dates": "year-first"}) == plain
    # They are said where they change something.
    both = (tacit.query(COUNT, epsilon=1), tacit.query(tacit.count(), epsilon=1, given="always"))
    assert text_of(*both, given=random) != text_of(*(replace(a, given=None) for a in both), given=random)
    several = [(tacit.query(COUNT, weight=w), tacit.query(tacit.count())) for w in (1, 2)]
    assert len({text_of(*asks, total=price(epsilon=1)) for asks in several}) == 2


def test_lists_whose_order_says_nothing() -> None:
    def read(*missing: str, table: str = "a.csv, b.csv") -> str:
        joins = [{"table": table, "on": ["s"], "public": True, "reading": {"missing": list(missing)}}]
        return text_of(tacit.query(COUNT, epsilon=1), reading={"missing": list(missing), "joins": joins})

    assert read("NA", "-") == read("-", "NA") == read("-", "NA", table="b.csv, a.csv")
    assert len({read("NA", "-"), read("NA"), read("NA", "-", table="a.csv")}) == 3


def test_small_cells_that_nobody_spoke_of_are_not_the_same_as_none() -> None:
    said = [{"random_data": 0.1, "rows": 10}, {"random_data": 0.1, "rows": 10, "small_cells": False}]
    first, second = (text_of(tacit.query(COUNT, epsilon=1, given=one)) for one in said)
    assert first != second


# --- the declared set of files ----------------------------------------------------------------------------------
def test_another_set_of_files_is_another_question(folder: Path) -> None:
    ledger = folder / "months.ledger"
    jan, feb = folder / "jan.csv", folder / "feb.csv"
    assert count(tacit.files([jan, feb]), ledger) == (1050, False)
    assert count(jan, ledger) == (1000, False)
    assert count(feb, ledger) == (50, False)
    # The same set in another order, asked by somebody else, is the same question.
    assert count(tacit.files([feb, jan]), ledger, analyst="eve") == (1050, True)
    assert count(str(jan), ledger, analyst="eve") == (1000, True)
    assert len(tacit.Ledger.open(ledger).charges()) == 3


def test_a_pattern_and_a_file_that_it_matches(folder: Path) -> None:
    ledger = folder / "months.ledger"
    assert count(tacit.files(folder / "*.csv", pattern=True), ledger) == (1050, False)
    assert count(folder / "jan.csv", ledger) == (1000, False)
    assert count(tacit.files(folder / "*.csv", pattern=True), ledger) == (1050, True)


def test_a_renamed_file_without_a_new_version_is_refused(tmp_path: Path) -> None:
    ledger = tmp_path / "x.ledger"
    assert count(write(tmp_path / "x.parquet", 78), ledger) == (78, False)
    write(tmp_path / "x.csv", 5000)
    with pytest.raises(LedgerError, match="never declared for it") as refused:
        count(tmp_path / "x.csv", ledger)
    assert "x.parquet" in str(refused.value)
    assert "version" in str(refused.value)
    assert len(tacit.Ledger.open(ledger).charges()) == 1
    assert count(tmp_path / "x.csv", ledger, version="2") == (5000, False)
    # Another question about it is none of the old ones.
    with curator(tmp_path / "x.csv", ledger) as one:
        assert not one.release(tacit.count(where="x < 100"), epsilon=20).replayed


def test_a_table_in_memory_is_not_a_file(tmp_path: Path) -> None:
    ledger = tmp_path / "x.ledger"
    table = pa.table({"x": [1, 2], "s": ["a", "b"]})
    assert count(table, ledger) == (2, False)
    assert count(table, ledger) == (2, True)
    with pytest.raises(LedgerError, match="a table in memory"):
        count(write(tmp_path / "x.csv", 10), ledger)


def test_files_of_one_name_in_two_folders(tmp_path: Path) -> None:
    for year, rows in (("2024", 10), ("2025", 30)):
        (tmp_path / year).mkdir()
        write(tmp_path / year / "survey.csv", rows)
    ledger = tmp_path / "survey.ledger"
    assert count(tmp_path / "2024" / "survey.csv", ledger, version="2024") == (10, False)
    with pytest.raises(LedgerError, match="2024/survey"):
        count(tmp_path / "2025" / "survey.csv", ledger, version="2024")
    assert count(tmp_path / "2025" / "survey.csv", ledger, version="2025") == (30, False)


def test_a_moved_folder_asks_the_same_question(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder / "home"
    home.mkdir()
    for name in ("jan.csv", "feb.csv"):
        shutil.move(folder / name, home / name)
    both = tacit.files([home / "jan.csv", home / "feb.csv"])
    assert count(both, home / "months.ledger") == (1050, False)
    shutil.move(home, folder / "archive")
    away = folder / "archive"
    assert count(tacit.files([away / "feb.csv", away / "jan.csv"]), away / "months.ledger") == (1050, True)
    monkeypatch.chdir(away)
    assert count(tacit.files(["jan.csv", "./feb.csv"]), Path("months.ledger")) == (1050, True)
    (folder / "way").symlink_to(away)
    way = folder / "way"
    assert count(tacit.files([way / "feb.csv", way / "jan.csv"]), away / "months.ledger") == (1050, True)


def test_another_public_table_is_another_question(folder: Path) -> None:
    ledger = folder / "jan.ledger"
    for name in ("north", "south"):
        (folder / name).mkdir()
        (folder / name / "regions.csv").write_text(f"s,r\na,{name}\nb,{name}\n")
    schema = {**SCHEMA, "r": tacit.category(["north", "south"])}

    def north(other: str) -> tuple[float, bool]:
        data = join(folder / "jan.csv", folder / other, on="s", public=True)
        with tacit.Curator(
            data, protect=UNIT, schema=schema, budget=tacit.Pure(epsilon=1000.0), ledger=ledger
        ) as one:
            found = one.release(tacit.count(where="r = 'north'"), epsilon=20)
        return float(found.value), found.replayed

    assert north("north/regions.csv") == (1000, False)
    assert north("south/regions.csv") == (0, False)
    assert north("north/regions.csv") == (1000, True)


def test_the_key_belongs_to_one_plan_whatever_the_files(folder: Path) -> None:
    ledger = folder / "months.ledger"
    both = tacit.files([folder / "jan.csv", folder / "feb.csv"])
    with curator(both, ledger) as one:
        one.release(tacit.count(), epsilon=1, key="k")
    with curator(folder / "jan.csv", ledger) as one, pytest.raises(InvalidParameter, match="one plan"):
        one.release(tacit.count(by="s"), epsilon=1, key="k")


PLAN = """
[data]
path = "jan.csv"
[protect]
unit = "rows"
[schema.x]
kind = "integer"
low = 0
high = 10000
[schema.s]
kind = "category"
keys = ["a", "b"]
[budget]
epsilon = 1000.0
analyst = "{analyst}"
[ledger]
path = "jan.ledger"
[[release]]
kind = "count"
epsilon = 20
"""


def test_plans_and_programs_ask_the_same_and_certificates_name_the_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert count(folder / "jan.csv", folder / "jan.ledger") == (1000, False)
    for analyst in ("ann", "eve"):
        (folder / f"{analyst}.toml").write_text(PLAN.format(analyst=analyst))
        assert main(["release", str(folder / f"{analyst}.toml"), "--out", str(folder / analyst)]) == 0
        found = verify_release(folder / analyst, ledger=str(folder / "jan.ledger"))
        assert not [str(f) for f in found.findings if f.holds is False]
        said = json.loads((folder / analyst / "certificates" / "count.json").read_text())
        assert said["data"]["files"] == {"protected": [["jan.csv"]]}
        assert said["data"]["asked_by"] == "curator"
    assert len(tacit.Ledger.open(folder / "jan.ledger").charges()) == 1
    # A published plan that names another file is not the one that was charged.
    plan = folder / "ann" / "plan.toml"
    plan.write_text(plan.read_text().replace("jan.csv", "feb.csv"))
    found = verify_release(folder / "ann", ledger=str(folder / "jan.ledger"))
    assert any(
        "and files of the charge" in f.what and "files" in f.why for f in found.findings if f.holds is False
    )
    capsys.readouterr()


def test_the_index_of_files_is_verified(folder: Path) -> None:
    ledger = folder / "jan.ledger"
    count(folder / "jan.csv", ledger)
    with tacit.Ledger.open(ledger) as one:
        assert one.verify().ok
        tamper(one, "DELETE FROM tacit_index WHERE name LIKE 'file %'")
        assert any("files that the index does not name" in p.what for p in one.verify().problems)


# --- the stored choice ------------------------------------------------------------------------------------------
def test_a_choice_is_read_through_a_closed_table_and_checked(folder: Path) -> None:
    with curator(folder / "jan.csv", folder / "jan.ledger") as one:
        plan = one.preview(tacit.count(by="s"), epsilon=0.5)
        one.release(tacit.count(by="s"), epsilon=0.5)
        (charge,) = one.ledger.charges()
    assert charge.choice == json.loads(json.dumps(choice_of(plan)))
    assert read_choice(plan, charge).releases[0].assignment == plan.releases[0].assignment
    text = json.dumps(charge.choice)
    assert '"noise_scale": {"fraction": "2"}' in text
    earlier = text.replace('"assignment":', '"treatment":').replace('"Assignment"', '"Treatment"')
    assert earlier.count("reatment") == 2
    again = read_choice(plan, replace(charge, choice=json.loads(earlier)))
    assert again.releases[0].assignment == plan.releases[0].assignment
    for wrong in (
        text.replace('"Laplace"', '"os.system"'),
        text.replace('"fraction": "2"', '"fraction": "1"'),
        text.replace('"format": 1', '"format": 9'),
        text.replace('"l1_steps": "1"', '"l1_steps": "2"'),
    ):
        assert wrong != text
        with pytest.raises(LedgerError, match="cannot read"):
            read_choice(plan, replace(charge, choice=json.loads(wrong)))


@pytest.mark.parametrize(
    "protect", [tacit.rows(), tacit.people("id", at_most=3, groups=2)], ids=["rows", "people"]
)
def test_a_sparse_histogram_with_a_fixed_threshold_is_stored_and_replayed(folder: Path, protect: Any) -> None:
    """A domain so large that noise on the occupied cells alone hides least: what a unit can occupy is stored, too."""
    schema = {"x": tacit.integer(0, 10**12)}
    asked = tacit.sparse_histogram(["x"])
    (folder / "sparse.csv").write_text("id,x\n" + "".join(f"{i},{i % 3}\n" for i in range(300)))

    def opened() -> Any:
        return tacit.Curator(
            folder / "sparse.csv", protect=protect, schema=schema, ledger=folder / "sparse.ledger",
            budget=tacit.Approximate(epsilon=2.0, delta=1e-4),
        )  # fmt: skip

    with opened() as one:
        plan = one.preview(asked, epsilon=1.0, delta=1e-6)
        assert isinstance(plan.releases[0].assignment.mechanism, StableHistogram)
        first = one.release(asked, epsilon=1.0, delta=1e-6)
        (charge,) = one.ledger.charges()
        assert one.ledger.verify().ok
    assert read_choice(plan, charge).releases[0].assignment == plan.releases[0].assignment
    with opened() as one:
        again = one.release(asked, epsilon=1.0, delta=1e-6)
        assert again.replayed
        assert again.to_csv() == first.to_csv()


@pytest.mark.parametrize("columns", [1, 5])
def test_a_plan_with_a_huge_sparse_histogram_is_released_and_verified(
    folder: Path, capsys: pytest.CaptureFixture[str], columns: int
) -> None:
    """A trillion cells, or their fifth power: no disk has room for all of them, and hardly one is written."""
    names = ["x", "y", "z", "u", "v"][:columns]
    (folder / "jan.csv").write_text(",".join(names) + "\n" + (",".join("7" * columns) + "\n") * 200)
    schema = "".join(f'[schema.{n}]\nkind = "integer"\nlow = 0\nhigh = 1_000_000_000_000\n' for n in names)
    (folder / "plan.toml").write_text(
        '[data]\npath = "jan.csv"\n[protect]\nunit = "rows"\n'
        + schema
        + '[budget]\nepsilon = 2.0\ndelta = 1e-4\n[ledger]\npath = "jan.ledger"\n'
        '[[release]]\nname = "x"\nkind = "sparse_histogram"\ncolumns = '
        + json.dumps(names)
        + "\nepsilon = 1.0\ndelta = 1e-6\n"
    )
    assert main(["release", str(folder / "plan.toml"), "--out", str(folder / "out")]) == 0
    found = verify_release(folder / "out", ledger=str(folder / "jan.ledger"))
    assert not [str(f) for f in found.findings if f.holds is False]
    assert '"KeysOfAUnit"' in (folder / "out" / "certificates" / "x.json").read_text()
    capsys.readouterr()


NEVER_CHOSEN = {"HullGauge", "Mahalanobis", "SampledBody"}
"""Sensitivities and bodies of mechanisms that are called by hand; the curator makes none of them."""


def test_whatever_a_stored_class_can_hold_can_be_stored() -> None:
    """Every data class that a field of a stored class names is in the table, or is the base of one that is."""
    stored = [choice._class(name) for name in choice.KNOWN]
    missing = set()
    for kind in stored:
        hints = typing.get_type_hints(kind)
        for held in (c for field in choice._names(kind) for c in _classes(hints[field])):
            if is_dataclass(held) and not any(issubclass(c, held) for c in stored):
                missing.add(held.__name__)
    assert missing == NEVER_CHOSEN


def _classes(hint: Any) -> Iterator[type]:
    for one in typing.get_args(hint) or [hint]:
        if typing.get_args(one):
            yield from _classes(one)
        elif isinstance(one, type):
            yield one


# --- public tables in memory ------------------------------------------------------------------------------------
REGIONS = {name: {"s": ["a", "b"], "r": [name, name]} for name in ("north", "south")}
FRAMES: dict[str, Any] = {
    "arrow": pa.table,
    "pandas": lambda made: pa.table(made).to_pandas(),
    "polars": lambda made: pytest.importorskip("polars").DataFrame(made),
}


def in_the_north(folder: Path, regions: Any, *, ask: Any = None, **more: Any) -> tuple[float, bool]:
    """The number of rows in the north, and whether it comes from the record."""
    schema = {**SCHEMA, "r": tacit.category(["north", "south"])}
    data = join(folder / "jan.csv", regions, on="s", public=True)
    with tacit.Curator(
        data, protect=UNIT, schema=schema, budget=tacit.Pure(epsilon=1000.0), ledger=folder / "jan.ledger", **more
    ) as one:  # fmt: skip
        found = one.release(ask or tacit.count(where="r = 'north'"), epsilon=20)
        # What an approval or a look at the price would be about is the same question.
        assert one.fit(one.preview(ask or tacit.count(where="r = 'north'"), epsilon=20)).recorded
    return float(found.value), found.replayed


@needs_spark
def test_another_public_table_in_memory_is_another_question_to_spark(folder: Path) -> None:
    assert in_the_north(folder, pa.table(REGIONS["north"])) == (1000, False)
    assert in_the_north(folder, pa.table(REGIONS["south"]), engine="spark") == (0, False)
    assert in_the_north(folder, pa.table(REGIONS["north"]), engine="spark") == (1000, True)


@pytest.mark.parametrize("kind", FRAMES)
def test_another_public_table_in_memory_is_another_question(folder: Path, kind: str) -> None:
    north, south = (FRAMES[kind](REGIONS[name]) for name in ("north", "south"))
    assert in_the_north(folder, north) == (1000, False)
    assert in_the_north(folder, south) == (0, False)
    assert in_the_north(folder, north) == (1000, True)
    assert in_the_north(folder, south) == (0, True)
    # Rows and columns in another order, and more columns that are not read, make no other table of it.
    turned = FRAMES[kind]({"note": [1, 2], "r": ["north", "north"], "s": ["b", "a"]})
    assert in_the_north(folder, turned) == (1000, True)
    # One that has another row, or lacks one, is not.
    more = FRAMES[kind]({"s": ["a", "b", "c"], "r": ["north", "north", "north"]})
    assert in_the_north(folder, more) == (1000, False)
    assert in_the_north(folder, FRAMES[kind]({"s": ["a"], "r": ["north"]})) == (500, False)


def test_one_public_table_in_whichever_library(folder: Path) -> None:
    found = [in_the_north(folder, make(REGIONS["north"])) for make in FRAMES.values()]
    assert found == [(1000, False), (1000, True), (1000, True)]


LONG = 1 << 60


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ([1, 2], [1.0, 2.0], True),
        ([1, 2], [Decimal("1.00"), Decimal("2.00")], True),
        ([0.5], [Decimal("0.50")], True),
        # A double above 2^53 is no key, and a whole number is.
        ([LONG], [float(LONG)], False),
        ([LONG], [Decimal(LONG)], False),
        # A decimal that is not whole is no word, and its text is.
        ([Decimal("0.1")], ["0.1"], False),
        ([datetime.date(2020, 1, 1)], ["2020-01-01"], False),
        ([1], ["1"], False),
        ([1], [True], False),
        ([None], ["None"], False),
    ],
)
def test_what_is_not_read_alike_has_two_digests(one: list[Any], other: list[Any], alike: bool) -> None:
    digests = {digest_of_rows(["v"], pa.table({"v": values})) for values in (one, other)}
    assert len(digests) == (1 if alike else 2)


def test_a_long_number_is_not_answered_for_a_double(folder: Path) -> None:
    """The double above 2^53 is no key of the category: nobody is in it, and the record of the number is not its."""
    schema = {**SCHEMA, "r": tacit.category([str(LONG)])}
    found = []
    for value in (LONG, float(LONG)):
        data = join(folder / "jan.csv", pa.table({"s": ["a", "b"], "r": [value] * 2}), on="s", public=True)
        with tacit.Curator(
            data, protect=UNIT, schema=schema, budget=tacit.Pure(epsilon=1000.0), ledger=folder / "jan.ledger"
        ) as one:
            answer = one.release(tacit.count(where=f"r = '{LONG}'"), epsilon=20)
        found.append((float(answer.value), answer.replayed))
    assert found == [(1000, False), (0, False)]


def test_a_public_table_that_changes_in_memory(folder: Path) -> None:
    """What is on record is about the copy that was joined, whatever becomes of the frame."""
    schema = {**SCHEMA, "r": tacit.category(["north", "south"])}
    frame, budget = FRAMES["pandas"](REGIONS["north"]), tacit.Pure(epsilon=1000.0)
    data = join(folder / "jan.csv", frame, on="s", public=True)
    with tacit.Curator(data, protect=UNIT, schema=schema, budget=budget, ledger=folder / "jan.ledger") as one:
        assert one.release(tacit.count(where="r = 'north'"), epsilon=20).value == 1000
        frame["r"] = "south"
        assert one.release(tacit.count(where="r = 'north'", by="s"), epsilon=20).table["value"].sum() == 1000
        assert one.release(tacit.count(where="r = 'north'"), epsilon=20).replayed
    assert in_the_north(folder, frame) == (0, False)


def test_a_record_that_names_no_public_table_is_not_believed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its content was part of the question a public table in memory was null: then nobody knows which it was."""
    from tacit.curator import curator as curating

    def nameless(data: Any, base: Path | None, public: Any = ()) -> dict[str, Any]:
        return declared_files(data, base, ("",))

    with monkeypatch.context() as before:
        before.setattr(curating, "declared_files", nameless)
        assert in_the_north(folder, pa.table(REGIONS["north"])) == (1000, False)
    with pytest.raises(LedgerError, match="may have been answered about another public table"):
        in_the_north(folder, pa.table(REGIONS["south"]))
    with tacit.Ledger.open(folder / "jan.ledger") as ledger:
        assert len(ledger.charges()) == 1
