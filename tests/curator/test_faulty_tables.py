"""Tables that cannot be read, or are odd: one sentence, nothing spent, no private value in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.errors import BadData, ReadFailed, TacitError

from .faults import PEOPLE, shot
from .plans import NUMBER, WHOLE, WORD, Runner, table, write


def csv_lines() -> list[str]:
    data = table().to_pydict()
    return [
        "person_id,state,income,age",
        *(",".join(map(str, row)) for row in zip(*data.values(), strict=True)),
    ]


def broken_csv(folder: Path) -> str:
    lines = csv_lines()
    lines[7] = f"p,{WORD},1,2,3,{NUMBER}"
    (folder / "broken.csv").write_text("\n".join(lines))
    return "broken.csv"


def open_quote(folder: Path) -> str:
    lines = csv_lines()
    lines[9] = f'"{WORD},CA,1,2'
    (folder / "quote.csv").write_text("\n".join(lines))
    return "quote.csv"


def no_utf8(folder: Path) -> str:
    (folder / "latin.csv").write_bytes("\n".join(csv_lines()).encode() + b"\n\xff\xfe,CA,1,2\n")
    return "latin.csv"


def no_header(folder: Path) -> str:
    (folder / "empty.csv").write_bytes(b"")
    return "empty.csv"


def no_parquet(folder: Path) -> str:
    (folder / "not.parquet").write_text("\n".join(csv_lines()))
    return "not.parquet"


def cut_parquet(folder: Path) -> str:
    pq.write_table(table(), folder / "whole.parquet")
    data = (folder / "whole.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(data[: len(data) // 2])
    return "cut.parquet"


def other_types(folder: Path) -> str:
    data = table().set_column(2, "income", pa.array([[NUMBER]] * 300))
    pq.write_table(data, folder / "lists.parquet")
    return "lists.parquet"


def no_column(folder: Path) -> str:
    pq.write_table(table().drop_columns(["income"]), folder / "less.parquet")
    return "less.parquet"


def absent(folder: Path) -> str:
    return "absent.parquet"


def a_folder(folder: Path) -> str:
    (folder / "folder.parquet").mkdir()
    return "folder.parquet"


def other_ending(folder: Path) -> str:
    (folder / "table.xlsx").write_text("x")
    return "table.xlsx"


FILES: list[Callable[[Path], str]] = [
    no_header, no_parquet, cut_parquet, other_types, no_column, absent, a_folder,
    other_ending,
]  # fmt: skip


@pytest.mark.parametrize("make", FILES, ids=lambda f: f.__name__)
def test_a_table_that_cannot_be_read(tmp_path: Path, run: Runner, make: Callable[[Path], str]) -> None:
    name = make(tmp_path)
    for protect in ('unit = "rows"', PEOPLE):
        words = ["income"] if make is other_types else [name]
        shot(run, write(tmp_path, data=name, protect=protect), 2, *words)
        assert not (tmp_path / "survey.ledger").exists()


@pytest.mark.parametrize("make", [broken_csv, open_quote, no_utf8], ids=lambda f: f.__name__)
def test_a_line_that_cannot_be_read_is_missing_and_stops_nothing(
    tmp_path: Path, run: Runner, make: Callable[[Path], str]
) -> None:
    name = make(tmp_path)
    for i, protect in enumerate(('unit = "rows"', PEOPLE)):
        for old in tmp_path.glob("*.ledger*"):
            old.unlink()
        assert run("release", write(tmp_path, data=name, protect=protect), "--out", tmp_path / f"out{i}") == 0


def test_a_file_whose_pages_are_damaged(tmp_path: Path, run: Runner) -> None:
    """Only reading finds it, so that the charge stands; the sentence still tells nothing."""
    random = np.random.default_rng(1)
    rows = pa.concat_tables([table()] * 50)
    rows = rows.set_column(2, "income", pa.array(random.lognormal(10, 1, len(rows))))
    pq.write_table(rows, tmp_path / "survey.parquet", compression="zstd", use_dictionary=False)
    data = bytearray((tmp_path / "survey.parquet").read_bytes())
    for i in range(200, len(data) - 4000, 50):
        data[i] ^= 0x5A
    (tmp_path / "survey.parquet").write_bytes(bytes(data))
    plan = write(tmp_path)
    code = run("release", plan, "--out", tmp_path / "out")
    assert code == 3
    run.one_sentence()
    assert not (tmp_path / "out").exists()


def test_a_number_that_is_no_key_is_shown_by_nobody(tmp_path: Path, run: Runner) -> None:
    """One whole number beyond what a float holds, in a column of declared whole numbers: no key, and no error."""
    large = 2**60 + 1
    pq.write_table(pa.table({"x": pa.array([1, 2, 3] * 20 + [large], pa.int64())}), tmp_path / "t.parquet")
    (tmp_path / "plan.toml").write_text(
        '[data]\npath = "t.parquet"\n[protect]\nunit = "rows"\n[schema.x]\nkind = "category"\nkeys = [1, 2, 3]\n'
        '[budget]\nepsilon = 1.0\n[[release]]\nkind = "count"\nby = "x"\nepsilon = 0.5\n'
    )
    assert run("release", tmp_path / "plan.toml", "--out", tmp_path / "out") == 0
    for text in (run.out, run.err, *(p.read_text() for p in (tmp_path / "out").rglob("*.json"))):
        assert str(large) not in text


def test_a_view_that_fails_for_one_row_is_one_sentence_after_the_charge() -> None:
    """Whatever the row says; and that views fail for none stands in the certificate."""
    import ibis

    said = set()
    for odd in ("7", WORD, "9" * 30):
        connection = ibis.duckdb.connect()
        connection.raw_sql(f"CREATE TABLE t AS SELECT unnest(['1', '2', '{odd}']) AS s")
        connection.raw_sql("CREATE VIEW v AS SELECT CAST(s AS INTEGER) AS x FROM t")
        curator = tacit.Curator(
            connection.table("v"),
            protect=tacit.rows(),
            schema={"x": tacit.integer(0, 9)},
            budget=tacit.Pure(epsilon=1.0),
        )
        with curator:
            if odd == "7":
                release = curator.release(tacit.count(by="x"), epsilon=0.25)
                assert "fails for none" in release.certificate["data"]["conditions"][0]
            else:
                with pytest.raises(ReadFailed) as caught:
                    curator.release(tacit.count(by="x"), epsilon=0.25)
                said.add(str(caught.value))
                assert caught.value.__context__ is None
            assert float(curator.spent.epsilon) == 0.25
    assert len(said) == 1


def release_all(data: Any, schema: Any = None, **how: Any) -> Any:
    schema = schema or {
        "state": tacit.category(["CA", "NY", "TX"]), "income": tacit.number(0, 250_000), "age": tacit.integer(0, 99),
    }  # fmt: skip
    asks = [
        tacit.count(by="state"), tacit.sum("income", by="state"), tacit.mean("income"), tacit.variance("income"),
        tacit.proportion("age > 40"), tacit.ratio("income", "age", by="state"), tacit.histogram("age", 5),
        tacit.margins(["state", tacit.bins("age", 4)], order=1),
    ]  # fmt: skip
    how = {"protect": tacit.rows()} | how
    with tacit.Curator(data, schema=schema, budget=tacit.Pure(epsilon=8.0), **how) as curator:
        return curator.release(asks, epsilon=8.0)


@pytest.mark.parametrize("protect", [tacit.rows(), tacit.people("person_id", at_most=3)])
@pytest.mark.parametrize("kept", ["no row", "all missing"])
def test_a_table_without_values_is_released_like_any_other(kept: str, protect: Any) -> None:
    """Whether a table is empty is private: there is noise, and no error."""
    data = table()
    if kept == "no row":
        data = data.slice(0, 0)
    else:
        nothing = {n: pa.nulls(300, data.schema.field(n).type) for n in ("state", "income", "age")}
        data = pa.table({"person_id": data["person_id"], **nothing})
    found = release_all(data, protect=protect)
    for one in found:
        values = np.ravel(one.estimate.value)
        assert not np.isinf(values).any()
        assert (np.ravel(one.estimate.low) <= np.ravel(one.estimate.high)).all()
    assert found[0].columns["state"] == ["CA", "NY", "TX"]
    mean = found["mean-income"]
    assert 0 <= mean.interval[0] <= mean.value <= mean.interval[1] <= 250_000


def test_numbers_of_any_size_are_clamped() -> None:
    """Infinities, numbers that are none, and the largest integers count as declared, without an error."""
    data = table().to_pydict()
    data["income"][:6] = [float("inf"), float("-inf"), float("nan"), 1e308, -1e308, 5e-324]
    data["age"][:4] = [2**63 - 1, -(2**63), 0, WHOLE]
    found = release_all(pa.table(data))
    for one in found:
        assert np.isfinite(np.ravel(one.estimate.value)).all()


def test_sums_beyond_64_bits_are_exact() -> None:
    """10,000 rows of 2^51: the sum is above 2^63, and comes out within its noise; so do squares far beyond 2^64."""
    top = 2**51
    data = pa.table({"x": pa.array([top] * 10_000), "y": pa.array([2**30, 0] * 5_000)})
    schema = {"x": tacit.integer(0, top), "y": tacit.integer(0, 2**30)}
    with tacit.Curator(data, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=200)) as curator:
        total = curator.release(tacit.sum("x"), epsilon=50.0)
        mean = curator.release(tacit.mean("x"), epsilon=50.0)
        spread = curator.release(tacit.standard_deviation("y"), epsilon=50.0)
    assert abs(total.value - 10_000 * top) < top
    assert abs(mean.value - top) < top / 1000
    assert abs(spread.value / 2**29 - 1) < 0.01
    with pytest.raises(TacitError, match="bounds"):
        tacit.integer(0, 2**63)


@pytest.mark.parametrize(
    ("data", "error"),
    [(3, TacitError), ({"a": 1}, TacitError), ("nowhere.parquet", BadData), (None, TacitError)],
)
def test_data_that_are_no_table(
    data: Any, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    curator = tacit.Curator(
        data, protect=tacit.rows(), schema={"x": tacit.number(0, 1)}, budget=tacit.Pure(epsilon=1.0),
        ledger=tmp_path / "l.ledger",
    )  # fmt: skip
    with pytest.raises(error):
        curator.release(tacit.count(), epsilon=0.1)
    assert float(curator.spent.epsilon) == 0
