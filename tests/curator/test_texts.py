"""Texts of people in what is published: no formula, no escape sequence, no mark of direction, no markup."""

from __future__ import annotations

import csv
import html
import io
import json
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.curator.cells import csv_text, original, safe_text
from tacit.curator.request import check_names
from tacit.errors import InvalidParameter, visible
from tacit.report.building import report_of

from .plans import Runner

HOSTILE = [
    '=HYPERLINK("https://evil.example","x")', "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "'=1", "''", "\uff1d1",
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "a\nb", "a\r\nb", "\u202egnp.exe", "\u2066x\u2069", "\x9b31m", "a\u2028b",
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a&amp;b", "\\u{1b}", "\\u{5c}u{1b}", "\ufeffbom",
    "| a | b |", "`code`", "a,b;c", '"quoted"',
]  # fmt: skip


def unseen(text: str, *, but: str = "") -> list[str]:
    return [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") and c not in but]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Unknown keys that are all hostile, each of many people, so that all are released."""
    folder = tmp_path_factory.mktemp("texts")
    table = pa.table({"town": [t for t in HOSTILE for _ in range(400)]})
    pq.write_table(table, folder / "t.parquet")
    curator = tacit.Curator(
        folder / "t.parquet",
        protect=tacit.rows(),
        schema={"town": tacit.category()},
        budget=tacit.Approximate(epsilon=2.0, delta=1e-6),
        ledger=folder / "t.ledger",
    )
    with curator:
        plan = curator.preview([tacit.count(by="town")], epsilon=1.0, delta=1e-7)
        yield plan, curator.release(plan), curator.budget


def test_all_hostile_keys_were_released(released: Any) -> None:
    """Else the tests below would look at nothing: 400 rows each stand far above any threshold at this price."""
    assert set(released[1][0].columns["town"]) == set(HOSTILE)


def test_no_cell_of_a_csv_file_is_a_formula(released: Any) -> None:
    text = released[1][0].to_csv()
    assert not unseen(text, but="\n")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(HOSTILE) == len(text.splitlines()) - 1
    for row in rows:
        assert row["town"].lstrip()[0] not in "=+-@\uff1d\t\r"
    assert {original(row["town"]) for row in rows} == set(HOSTILE), "and it can be turned back"


def test_parquet_keeps_the_texts_as_they_are(released: Any) -> None:
    assert set(released[1][0].to_arrow()["town"].to_pylist()) == set(HOSTILE)


def test_terminal_and_notebook_show_no_control_and_no_markup(released: Any) -> None:
    plan, releases, _ = released
    (release,) = releases
    for text in (str(release), repr(releases), str(plan)):
        assert not unseen(text, but="\n")
        # a heading, the names, at most twenty cells and what follows them: no key makes a line of its own
        assert len(text.splitlines()) <= 30
    shown = release._repr_html_()
    assert not unseen(shown)
    assert "<script" not in shown
    assert "<img" not in shown
    inside = [c.split("</td>")[0] for c in shown.split("<td>")[1:]]
    assert not [c for c in inside if "<" in c or ">" in c]
    keys = set(map(visible, HOSTILE))
    assert {html.unescape(c) for c in inside[::4]} <= keys, "escaped once, and only once"
    assert "&lt;script&gt;" in shown or "alert" not in shown


def test_names_of_columns_are_escaped_in_notebooks_too() -> None:
    name = "<b>\x1b[1m"
    asked = tacit.count(by=name)
    curator = tacit.Curator(
        pa.table({name: ["<i>", "b"]}), protect=tacit.rows(), schema={name: tacit.category(["<i>", "b"])},
        budget=tacit.Pure(epsilon=1.0),
    )  # fmt: skip
    with curator:
        plan, release = curator.preview(asked, epsilon=0.5), curator.release(asked, epsilon=0.5)
        for shown in (plan._repr_html_(), release._repr_html_()):
            assert "<b>" not in shown
            assert "<i>" not in shown
            assert not unseen(shown)
        assert "&lt;b&gt;" in release._repr_html_()
        assert not unseen(release.to_json(), but="\n")
        assert json.loads(release.to_json()) == release.certificate


def test_the_report_shows_no_control_and_no_markup(released: Any) -> None:
    plan, releases, budget = released
    page = report_of(plan, releases, budget=budget, title="<script>\u202e")
    assert not unseen(page, but="\n")
    assert "<script" not in page
    assert "<img" not in page
    assert "onerror=alert(1)>" not in page


@given(st.text())
def test_every_text_comes_back_from_a_cell(text: str) -> None:
    cell = safe_text(text)
    assert original(cell) == text
    assert not unseen(cell, but="\u200c\u200d")
    assert cell.lstrip()[:1] not in set("=+-@\uff1d\uff0b\uff0d\uff20")
    read = next(csv.reader(io.StringIO(csv_text({"a": [text, "b"], "b": [1, 2]}).partition("\n")[2])))
    assert read[0] == cell


@given(st.text(), st.text())
def test_two_texts_never_look_the_same(one: str, other: str) -> None:
    assert (visible(one) == visible(other)) == (one == other)


def test_numbers_stay_numbers() -> None:
    assert csv_text({"key": [-1, 2], "value": [-1.5, float("nan")]}) == "key,value\n-1,-1.5\n2,nan\n"


def test_an_error_steers_no_terminal(run: Runner, tmp_path: Path) -> None:
    for name in ("a\x1b[31m.toml", "a\u202e.toml", "a\nb.toml"):
        assert run("plan", tmp_path / name) == 2
        assert not unseen(run.one_sentence(), but="\n")


# --- names of files ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "names",
    [
        ("a b", "a-b"), ("A", "a"), ("Straße", "STRASSE"), ("caf\u00e9", "cafe\u0301"), ("x", "x."),
        ("CON",), ("nul.x",), ("com1",), ("LPT9.txt",), ("..",), (".",), ("",), (".hidden",), ("a/b",), ("a\\b",),
        ("a:b",), ("a\nb",), ("\ufb01", "fi"),
    ],
)  # fmt: skip
def test_names_that_are_no_files_or_one_file_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidParameter, match="name"):
        check_names(names)
    check_names(["a", "b", "console", "a.b", "com", "com12"])


@pytest.mark.parametrize(("one", "other"), [("a b", "a-b"), ("A", "a"), ("aux", "b"), ("a", "a.")])
def test_names_of_one_file_are_refused_before_the_charge(
    tmp_path: Path, run: Runner, one: str, other: str
) -> None:
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "t.parquet")
    releases = "".join(f'[[release]]\nkind = "count"\nepsilon = 0.1\nname = "{n}"\n' for n in (one, other))
    (tmp_path / "plan.toml").write_text(
        '[data]\npath = "t.parquet"\n[protect]\nunit = "rows"\n[schema.x]\nkind = "integer"\nlow = 0\nhigh = 9\n'
        "[budget]\nepsilon = 1.0\n[ledger]\npath = 't.ledger'\n" + releases
    )
    assert run("release", tmp_path / "plan.toml", "--out", tmp_path / "out") == 2
    assert "name" in run.one_sentence()
    assert not (tmp_path / "t.ledger").exists(), "nothing was charged"
    assert not (tmp_path / "out").exists()


def test_names_that_are_made_differ_on_every_file_system() -> None:
    schema = tacit.Schema(
        {"St ate": tacit.flag(), "st-ate": tacit.flag(), "st/ate": tacit.flag(), "ST_ate": tacit.flag()}
    )
    from tacit.curator.planning import make_plan
    from tacit.curator.request import query

    asks = [query(tacit.count(by=c), epsilon=0.1) for c in ("St ate", "st-ate", "st/ate", "ST_ate", "st-ate")]
    plan = make_plan(asks, schema=schema, unit=tacit.rows(), budget=tacit.Pure(epsilon=1.0))
    assert len({r.name.casefold() for r in plan.releases}) == 5
    check_names(r.name for r in plan.releases)


def test_what_rounds_to_a_thousand_is_written_as_one() -> None:
    from tacit.curator.text import digits

    assert [digits(x) for x in (999.4, 999.6, -999.9, 1000.0)] == ["999", "1,000", "-1,000", "1,000"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ((1.4034863, 1.3952705, 1.4116958), ("1.4035", "1.3952", "1.4117")),
        ((-1.4034863, -1.4116958, -1.3952705), ("-1.4035", "-1.4117", "-1.3952")),
        ((138.93, 138.23652, 139.632959), ("138.93", "138.23", "139.64")),
        ((1234567, 1234000, 1235134), ("1,234,567", "1,234,000", "1,235,134")),
        ((0.5, 0.0, float("inf")), ("0.5", "0", "∞")),
        ((None, None, None), ("–", "–", "–")),
    ],
)
def test_a_value_is_told_from_its_interval_on_a_terminal(
    given: tuple[Any, Any, Any], shown: tuple[str, str, str]
) -> None:
    """With the digits of the page, ends rounded outwards; whole numbers and what is no number as they are."""
    from tacit.curator.text import _with_ends

    assert _with_ends(*given) == shown
