"""The page of a plan that was carried out: its links lead somewhere, its numbers are those of the files."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tacit.cli import main
from tacit.sources.schema import schema_to_tables
from tacit.sources.synthetic import survey_schema, write_survey

RELEASES = """
[[release]]
name = "people by region"
kind = "count"
of = "people"
by = "region"

[[release]]
name = "mean nights"
kind = "mean"
column = "nights"
by = "sex"

[[release]]
name = "ages"
kind = "histogram"
column = "age"
bins = [0, 18, 40, 65, 110]

[[release]]
name = "all visits"
kind = "count"
"""


def words(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("released")
    write_survey(folder / "survey.parquet", people=1500)
    lines = [
        "[data]",
        'path = "survey.parquet"',
        "[protect]",
        'unit = "people"',
        'column = "person_id"',
        "at_most = 6",
    ]
    lines += ["[budget]", "epsilon = 4", "[spend]", "epsilon = 2", "[ledger]", 'path = "survey.ledger"']
    for name, table in schema_to_tables(survey_schema()).items():
        lines += [f"[schema.{name}]", *(f"{word} = {words(value)}" for word, value in table.items())]
    (folder / "plan.toml").write_text("\n".join(lines) + RELEASES, encoding="utf-8")
    assert main(["release", str(folder / "plan.toml"), "--out", str(folder / "out")]) == 0
    return folder / "out"


def test_every_link_leads_to_a_file_or_a_place_on_the_page(out: Path) -> None:
    text = (out / "report.html").read_text(encoding="utf-8")
    hrefs = set(re.findall(r'href="([^"]*)"', text))
    files = {unquote(h) for h in hrefs if not h.startswith("#")}
    assert len(files) >= 8
    for name in files:
        assert (out / name).is_file(), name
    assert all(f'id="{h[1:]}"' in text for h in hrefs if h.startswith("#"))


def test_every_certificate_named_as_a_source_is_there(out: Path) -> None:
    text = (out / "report.html").read_text(encoding="utf-8")
    sources = set(re.findall(r'data-certificate="([^"]*)"', text)) - {"the ledger"}
    assert len(sources) == 4
    for name in sources:
        assert json.loads((out / name).read_text(encoding="utf-8"))["theorems"]


def test_no_truth_is_shown_and_nothing_is_fetched(out: Path) -> None:
    text = (out / "report.html").read_text(encoding="utf-8")
    body = re.sub(r"<style>.*?</style>", "", text, flags=re.S)
    assert 'class="truth' not in body
    assert "//" not in re.sub(r"\s", "", text)


def test_shown_values_are_those_of_the_file_of_values(out: Path) -> None:
    text = (out / "report.html").read_text(encoding="utf-8")
    with (out / "values" / "people-by-region.csv").open(encoding="utf-8", newline="") as held:
        rows = list(csv.DictReader(held))
    assert len(rows) == 14
    article = text[text.index('id="release-people-by-region"') :].partition("</article>")[0]
    for row in rows:
        found = re.search(
            rf'<th scope="row">{row["region"]}</th><td class="n num">([^<]*)</td><td class="n num">([^<]*)</td>'
            rf'<td class="n num">([^<]*)</td>',
            article,
        )
        assert found is not None, row
        value, low, high = (float(w.replace(",", "").replace("−", "-")) for w in found.groups())
        assert abs(value - float(row["value"])) <= 0.005 * abs(float(row["value"])) + 0.5
        assert low <= float(row["low"]) <= float(row["high"]) <= high


def test_every_release_took_its_share_of_the_bar(out: Path) -> None:
    text = (out / "report.html").read_text(encoding="utf-8")
    section = text[text.index('id="budget-bar-title"') :].partition("</svg>")[0]
    widths = [float(w) for w in re.findall(r'width="([\d.]+)%" height="30" class="spent', section)]
    assert len(widths) == 4
    assert sum(widths) == pytest.approx(50, abs=0.01), "2 of 4 is half"
