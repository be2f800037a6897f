"""The truth is shown of tables that were made up, and of no other: whatever the caller says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.errors import InvalidParameter
from tacit.report.building import report_of
from tacit.sources.facts import is_made_up
from tacit.sources.synthetic import survey, twin, write_survey, write_table

SCHEMA = {"age": tacit.integer(0, 109)}


def released(data: Any) -> Any:
    curator = tacit.Curator(data, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=1.0))
    with curator:
        plan = curator.preview([tacit.count()], epsilon=0.5)
        return plan, curator.release(plan), curator.budget


def page(data: Any) -> str:
    plan, releases, budget = released(data)
    return report_of(plan, releases, budget=budget, title="t", truth={"count": [3.0]})


def test_the_truth_of_a_real_table_is_never_shown(tmp_path: Path) -> None:
    table = pa.table({"age": [1, 2, 3]})
    pq.write_table(table, tmp_path / "real.parquet")
    table.to_pandas().to_csv(tmp_path / "real.csv", index=False)
    for data in (table, table.to_pandas(), tmp_path / "real.parquet", tmp_path / "real.csv"):
        with pytest.raises(InvalidParameter, match="made up"):
            page(data)
        plan, releases, budget = released(data)
        assert releases[0].certificate["data"]["made_up"] is False
        assert "ynthetic" not in report_of(plan, releases, budget=budget, title="t").split("</style>")[1]


def test_the_truth_of_what_was_made_up_is_shown(tmp_path: Path) -> None:
    write_survey(tmp_path / "survey.parquet", people=50)
    made = twin(tacit.Schema(SCHEMA), rows=20)
    write_table(made, tmp_path / "twin.parquet")
    write_table(made, tmp_path / "twin.csv")
    for data in (survey(people=50), *(tmp_path / n for n in ("survey.parquet", "twin.parquet", "twin.csv"))):
        assert is_made_up(data)
        assert "Synthetic" in page(data)


def test_the_mark_is_read_from_metadata_of_whole_files_only(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    for data in (tmp_path / "x.parquet", tmp_path / "absent", tmp_path, "a\0b", pd.DataFrame(), None, 5):
        assert is_made_up(data) is False
    other = pa.table({"a": [1]}).replace_schema_metadata({b"tacit": b"something else"})
    assert is_made_up(other) is False


def test_numbers_for_tests_are_not_to_be_published_and_views_are_believed() -> None:
    from tacit.noise.source import SeededSource
    from tacit.report.building import FOR_A_TEST

    for source, said in ((SeededSource(seed=1), True), (None, False)):
        curator = tacit.Curator(
            pa.table({"age": [1, 2, 3]}), protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=1.0),
            source=source,
        )  # fmt: skip
        with curator:
            plan = curator.preview([tacit.count()], epsilon=0.5)
            shown = report_of(plan, curator.release(plan), budget=curator.budget, title="t")
        assert ("must not be published" in shown) is said
        assert shown.count(FOR_A_TEST) == said
        assert ("AES" in shown) is not said


def test_the_condition_of_a_guarantee_is_shown() -> None:
    plan, releases, budget = released(pa.table({"age": [1, 2, 3]}))
    shown = report_of(plan, releases, budget=budget, title="t")
    assert f"It holds {releases[0].certificate['condition']}." in shown
