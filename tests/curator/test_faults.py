"""Bad input: one sentence that says what and what to do, nothing spent, nothing half-written, no private value in it.

Every table here holds markers (`plans.MARKS`) that no text may contain.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.curator import files
from tacit.errors import BadData, BudgetExceeded, LedgerCorrupt, LedgerError, LedgerLocked, TacitError
from tacit.ledger import Ledger

from .plans import COUNT, MARKS, MEAN, NUMBER, WHOLE, WORD, Runner, table, write

PEOPLE = 'unit = "people"\ncolumn = "person_id"\nat_most = 4'


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


def nothing_happened(folder: Path, before: set[str]) -> None:
    """No file is new but an empty ledger, and no ledger holds a charge."""
    after = {str(p.relative_to(folder)) for p in folder.rglob("*")}
    assert {p for p in after - before if not p.startswith("survey.ledger")} == set()
    if (folder / "survey.ledger").exists():
        assert Ledger.open(folder / "survey.ledger").charges() == ()


def shot(run: Runner, plan: Path, code: int, *words: str) -> None:
    """The plan is refused with this code, and says these words."""
    folder = plan.parent
    before = {str(p.relative_to(folder)) for p in folder.rglob("*")}
    assert run("release", plan, "--out", folder / "new" / "out") == code
    said = run.one_sentence()
    for word in words:
        assert word in said
    nothing_happened(folder, before)


# --- what can be seen without the data -------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"releases": COUNT.replace('"state"', '"town"')}, 2, ["town", "state"]),
        ({"releases": MEAN.replace('"income"', '"state"')}, 2, ["state", "number"]),
        ({"releases": COUNT.replace('"state"', '"income"')}, 2, ["income"]),
        ({"bounds": ""}, 2, ["income", "bounds"]),
        ({"bounds": "low = 250000\nhigh = 0"}, 2, ["income"]),
        ({"bounds": "low = 0\nhigh = nan"}, 2, ["income"]),
        ({"bounds": "low = 0\nhigh = inf"}, 2, ["income"]),
        ({"budget": "epsilon = 0.3"}, 1, ["spent", "0.3"]),
        ({"budget": "epsilon = -1.0"}, 2, ["epsilon"]),
        ({"budget": ""}, 2, ["price"]),
        ({"releases": COUNT.replace('"state"', '["state", "age", { column = "income", bins = 400 }]')}, 2, ["groups"]),
        ({"releases": COUNT.replace('by = "state"', 'by = "state"\nwhere = "age ><"')}, 2, ["age"]),
        ({"releases": ""}, 2, ["release"]),
        ({"protect": PEOPLE.replace("4", "0")}, 2, ["at_most"]),
        ({"protect": 'unit = "people"\nat_most = 4'}, 2, ["column"]),
        ({"releases": COUNT.replace("0.25", '"much"')}, 2, ["epsilon"]),
        ({"releases": COUNT + 'name = "../../etc/passwd"'}, 2, ["name"]),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_meant(
    tmp_path: Path, run: Runner, changes: Any, code: int, words: list[str]
) -> None:
    shot(run, write(tmp_path, **changes), code, *words)


def test_a_plan_that_declares_no_column(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path)
    before, _, rest = plan.read_text().partition("[schema.state]")
    plan.write_text(before + "[schema]\n[budget]" + rest.partition("[budget]")[2])
    shot(run, plan, 2, "the schema is empty", "[schema.age]")
    for command in (["plan", plan], ["twin", plan, "--out", tmp_path / "twin.parquet"]):
        assert run(*command) == 2
        assert "the schema is empty" in run.one_sentence()


@pytest.mark.parametrize(
    "content", [b"", b"[data", b"\xff\xfe", b"x = 1", b"release = 3", b"[data]\npath = 3"]
)
def test_a_plan_that_is_none(tmp_path: Path, run: Runner, content: bytes) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_bytes(content)
    assert run("plan", plan) == 2
    run.one_sentence()
    shot(run, plan, 2)
    assert run("plan", tmp_path / "absent.toml") == 2
    assert run("plan", tmp_path) == 2


# --- tables ------------------------------------------------------------------------------------------------
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
    broken_csv, open_quote, no_utf8, no_header, no_parquet, cut_parquet, other_types, no_column, absent, a_folder,
    other_ending,
]  # fmt: skip


@pytest.mark.parametrize("make", FILES, ids=lambda f: f.__name__)
def test_a_table_that_cannot_be_read(tmp_path: Path, run: Runner, make: Callable[[Path], str]) -> None:
    name = make(tmp_path)
    for protect in ('unit = "rows"', PEOPLE):
        words = ["income"] if make is other_types else [name]
        shot(run, write(tmp_path, data=name, protect=protect), 2, *words)
        assert not (tmp_path / "survey.ledger").exists()


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
    assert code == 2
    run.one_sentence()
    assert not (tmp_path / "out").exists()


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


# --- the ledger ----------------------------------------------------------------------------------------------
@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Another process that is writing."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("begin exclusive")
    try:
        yield
    finally:
        connection.execute("rollback")
        connection.close()


def test_a_locked_ledger(tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = write(tmp_path)
    with files.read_plan(plan).curator() as curator:
        assert float(curator.spent.epsilon) == 0
    monkeypatch.setattr(files, "Curator", partial(tacit.Curator, wait_seconds=0.2))
    with held(tmp_path / "survey.ledger"):
        assert run("release", plan, "--out", tmp_path / "out") == 2
        assert "ledger" in run.one_sentence()
        with files.read_plan(plan).curator() as curator, pytest.raises(LedgerLocked):
            curator.release(tacit.count(), epsilon=0.1)
    assert not (tmp_path / "out").exists()
    assert Ledger.open(tmp_path / "survey.ledger").charges() == ()


def test_a_corrupt_ledger(tmp_path: Path, run: Runner) -> None:
    plan, ledger = write(tmp_path), tmp_path / "survey.ledger"
    ledger.write_bytes(b"SQLite format 3\x00" + b"\x00" * 4000)
    assert run("release", plan, "--out", tmp_path / "out") == 2
    run.one_sentence()
    ledger.write_bytes(b"no database at all, " * 300)
    assert run("release", plan, "--out", tmp_path / "out") == 2
    run.one_sentence()
    assert not (tmp_path / "out").exists()
    ledger.unlink()
    assert run("release", plan, "--out", tmp_path / "first") == 0
    connection = sqlite3.connect(ledger)
    tables = [r[0] for r in connection.execute("select name from sqlite_master where type = 'table'")]
    entries = next(t for t in tables if "entr" in t)
    connection.execute(f"delete from {entries} where rowid = (select min(rowid) from {entries})")
    connection.commit()
    connection.close()
    assert run("release", plan, "--out", tmp_path / "second", "--key", "anew") == 2
    run.one_sentence()
    assert not (tmp_path / "second").exists()
    with files.read_plan(plan).curator() as curator, pytest.raises(LedgerCorrupt):
        curator.release(tacit.count(), epsilon=0.1)


def test_another_budget_than_the_ledgers(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path)
    assert run("release", plan, "--out", tmp_path / "out") == 0
    write(tmp_path, budget="epsilon = 50.0")
    assert run("release", plan, "--out", tmp_path / "more") == 2
    assert "budget" in run.one_sentence()
    assert not (tmp_path / "more").exists()


def test_a_ledger_that_cannot_be_made(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path)
    (tmp_path / "file").write_text("")
    plan.write_text(plan.read_text().replace("survey.ledger", "file/survey.ledger"))
    shot(run, plan, 2, "ledger")


def test_over_budget_says_what_is_left(tmp_path: Path) -> None:
    plan = write(tmp_path)
    with files.read_plan(plan).curator() as curator:
        curator.release(tacit.count(), epsilon=0.9)
        with pytest.raises(BudgetExceeded, match=r"spent epsilon = 0\.9") as caught:
            curator.release(tacit.count(by="state"), epsilon=0.2)
        assert not [m for m in MARKS if m in str(caught.value)]
        assert float(curator.spent.epsilon) == 0.9


# --- where it is written ---------------------------------------------------------------------------------------
def test_a_folder_that_is_there_already(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    assert run("release", plan, "--out", tmp_path / "out") == 2
    assert "--out" in run.one_sentence()
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["mine.txt"]
    assert run("release", plan, "--out", plan) == 2
    run.one_sentence()
    assert not (tmp_path / "survey.ledger").exists()


def test_a_place_that_cannot_be_written(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path)
    (tmp_path / "file").write_text("")
    places = [tmp_path / "file" / "out", Path("/proc/tacit/out")]
    if os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o500)
        places.append(tmp_path / "locked" / "out")
    for place in places:
        assert run("release", plan, "--out", place) == 2
        assert "--out" in run.one_sentence()
    assert not (tmp_path / "survey.ledger").exists()


def limited(arguments: list[str], bytes_at_most: int) -> subprocess.CompletedProcess[str]:
    """The command in a process whose files may not grow past this: what a full disk looks like to it."""
    code = "import sys; from tacit.cli import main; sys.exit(main(sys.argv[1:]))"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_at_most, bytes_at_most))

    return subprocess.run(
        [sys.executable, "-c", code, *arguments], preexec_fn=limit, capture_output=True, text=True, check=False
    )  # fmt: skip


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True
    )
    if made.returncode:
        pytest.skip(
            "mounting a small disk needs a privileged user; the limit on file sizes is tested instead"
        )
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def told_once(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("tacit: ")
    assert done.stderr.count("\n") == 1
    assert not [m for m in MARKS if m in done.stderr]


def test_a_full_disk_for_the_ledger(tmp_path: Path) -> None:
    plan = write(tmp_path)
    done = limited(["release", str(plan), "--out", str(tmp_path / "out")], 5_000)
    told_once(done)
    assert not (tmp_path / "out").exists()


def test_a_full_disk_for_the_files(tmp_path: Path, run: Runner) -> None:
    """There is no room for the files: found before anything is paid."""
    plan = write(tmp_path)
    with small_disk(tmp_path / "small", "400k") as disk:
        assert run("release", plan, "--out", disk / "out") == 2
        assert "--out" in run.one_sentence()
        assert list(disk.iterdir()) == []
    assert not (tmp_path / "survey.ledger").exists()
    done = limited(["release", str(plan), "--out", str(tmp_path / "out")], 300_000)
    told_once(done)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "survey.ledger").exists()


def test_a_small_disk_for_the_ledger(tmp_path: Path, run: Runner) -> None:
    with small_disk(tmp_path / "small", "48k") as disk:
        plan = write(tmp_path)
        plan.write_text(plan.read_text().replace("survey.ledger", str(disk / "survey.ledger")))
        assert run("release", plan, "--out", tmp_path / "out") == 2
        assert "ledger" in run.one_sentence()
        assert not (tmp_path / "out").exists()


def test_a_disk_that_fills_up_while_the_files_are_written(
    tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers are on record: nothing is half-written, and another run is free."""
    plan = write(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pq, "write_table", full)
        assert run("release", plan, "--out", tmp_path / "out") == 2
    assert "free" in run.one_sentence()
    assert not (tmp_path / "out").exists()
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".tacit")]
    assert run("release", plan, "--out", tmp_path / "out", "--json") == 0
    said = json.loads(run.out)
    assert said["replayed"] is True
    assert said["spent"]["epsilon"] == 0.5


# --- certificates --------------------------------------------------------------------------------------------------
def test_a_certificate_that_is_none(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path)
    assert run("release", plan, "--out", tmp_path / "out") == 0
    good = json.loads((tmp_path / "out/certificates/mean-income.json").read_text())
    path = tmp_path / "certificate.json"
    bad = [
        "", "{", "[]", "3", '{"format": "tacit certificate 1"}',
        json.dumps(good | {"format": "tacit certificate 99"}),
        json.dumps(good | {"guarantee": {"bound": "none"}}),
        json.dumps(good | {"guarantee": 7}),
        json.dumps(good | {"theorems": ["no such theorem"]}),
        json.dumps(good | {"theorems": 7}),
        json.dumps(good | {"mechanism": 7}),
        json.dumps(good | {"intervals": []}),
    ]  # fmt: skip
    for text in bad:
        path.write_text(text)
        for more in ([], ["--json"]):
            assert run("explain", path, *more) == 2, text[:80]
            run.one_sentence()
    assert run("explain", tmp_path / "absent.json") == 2
    run.one_sentence()
    path.write_bytes(b"\xff\xfe\x00")
    assert run("explain", path) == 2
    run.one_sentence()


@pytest.mark.parametrize(
    ("data", "error"),
    [(3, TacitError), ({"a": 1}, TacitError), ("nowhere.parquet", BadData), (None, TacitError)],
)
def test_data_that_are_no_table(data: Any, error: type[Exception], tmp_path: Path) -> None:
    curator = tacit.Curator(
        data, protect=tacit.rows(), schema={"x": tacit.number(0, 1)}, budget=tacit.Pure(epsilon=1.0),
        ledger=tmp_path / "l.ledger",
    )  # fmt: skip
    with pytest.raises(error):
        curator.release(tacit.count(), epsilon=0.1)
    assert float(curator.spent.epsilon) == 0


def test_a_folder_for_a_ledger(tmp_path: Path) -> None:
    curator = tacit.Curator(
        table(), protect=tacit.rows(), schema={"age": tacit.integer(0, 99)}, budget=tacit.Pure(epsilon=1.0),
        ledger=tmp_path,
    )  # fmt: skip
    with pytest.raises(LedgerError):
        curator.release(tacit.count(), epsilon=0.1)
