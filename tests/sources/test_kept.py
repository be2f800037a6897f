"""What is kept of a table: nothing that outlives the data it was made from, nothing that two threads break."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
import tacit.statistics as ask
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, engines, facts, integer, open_table, tables

KEY = b"0123456789abcdef-secret"
SCHEMA = Schema({"g": category(["a", "b"]), "x": integer(0, 9)})
UNIT = people("id", at_most=2)
UNITS = pytest.mark.parametrize("unit", [rows(), UNIT, people("id", at_most=2, groups=1)], ids=str)


def data(n, offset=0):
    return {"id": [i + offset for i in range(n)], "g": ["a", "b"] * (n // 2), "x": [1] * n}


def count(table, by=None):
    asked = ask.count(by=by) if table.person is None or by else ask.count(of="people")
    return [int(x) for x in np.ravel(ask.read(table, [asked.on(SCHEMA, table.unit)], key=KEY)[0]["count"])]


@UNITS
def test_a_file_that_was_replaced_is_read_anew_even_with_its_old_size_and_times(tmp_path, unit):
    path, other = tmp_path / "t.parquet", tmp_path / "u.parquet"
    options = {"compression": "none", "use_dictionary": False}
    pq.write_table(pa.table({**data(10), "g": ["a"] * 10}), path, **options)
    pq.write_table(pa.table({**data(10), "g": ["b"] * 10}), other, **options)
    assert path.stat().st_size == other.stat().st_size
    with open_table(path, schema=SCHEMA, unit=unit) as table:
        assert count(table, "g") == [10, 0]
        digest, before = table.digest(KEY), path.stat()
        os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
        os.replace(other, path)
        assert count(table, "g") == [0, 10]
        assert table.digest(KEY) != digest
        # In place: the same file, the same size and time, other bytes.
        content = path.read_bytes().replace(b"\x01\x00\x00\x00b", b"\x01\x00\x00\x00a")
        path.write_bytes(content)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert count(table, "g") == [10, 0]


@pytest.mark.parametrize("young", [False, True])
def test_a_file_in_one_state_is_digested_once_unless_it_is_young(tmp_path, monkeypatch, young):
    """Within the step of a file system's clock a change may leave all times as they were."""
    monkeypatch.setattr(facts, "SETTLED", 3_600 * 10**9 if young else 0)
    plain, times = tables.of_files, []
    monkeypatch.setattr(tables, "of_files", lambda *given: times.append(1) or plain(*given))
    pq.write_table(pa.table(data(10)), tmp_path / "t.parquet")
    with open_table(tmp_path / "t.parquet", schema=SCHEMA, unit=UNIT) as table:
        first, before = table.digest(KEY), (tmp_path / "t.parquet").stat()
        assert table.digest(KEY) == first
        assert len(times) == (2 if young else 1)
        pq.write_table(pa.table({**data(10), "g": ["a"] * 10}), tmp_path / "t.parquet")
        os.utime(tmp_path / "t.parquet", ns=(before.st_atime_ns, before.st_mtime_ns))
        assert table.digest(KEY) != first, "its times were set back"


@UNITS
def test_an_engine_table_that_was_changed_in_place_is_read_anew(unit):
    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE TABLE t AS SELECT range AS id, 'a' AS g, 1 AS x FROM range(10)")
    with open_table(connection.table("t"), schema=SCHEMA, unit=unit) as table:
        assert count(table) == [10]
        digest = table.digest(KEY)
        connection.raw_sql("DELETE FROM t WHERE id < 4")
        assert count(table) == [6]
        assert table.digest(KEY) != digest
        connection.raw_sql("UPDATE t SET g = 'b'")
        assert count(table, "g") == [0, 6]
        left = connection.raw_sql("SELECT table_name FROM duckdb_tables()").fetchall()
        assert left == [("t",)], "nothing of ours stays in somebody else's engine"


@UNITS
@pytest.mark.parametrize("kind", ["pandas", "numpy", "polars", "arrow"])
def test_a_frame_that_was_changed_in_place_is_what_it_was(unit, kind):
    numbers = np.ones(10, dtype=np.int64)
    columns = {**data(10), "g": ["a"] * 10, "x": numbers}
    if kind == "arrow":
        frame = pa.table(
            {**columns, "x": pa.Array.from_buffers(pa.int64(), 10, [None, pa.py_buffer(numbers)])}
        )
    elif kind == "polars":
        frame = pl.DataFrame(columns)
    else:
        frame = pd.DataFrame(columns, copy=False)
    with open_table(frame, schema=SCHEMA, unit=unit) as table:
        asked = [ask.sum("x").on(SCHEMA, unit)]
        before = int(next(iter(ask.read(table, asked, key=KEY)[0].values())))
        digest = table.digest(KEY)
        numbers[:] = 7
        if kind == "pandas":
            frame.loc[:, "x"] = 5
            frame.loc[:, "id"] = 1
        assert int(next(iter(ask.read(table, asked, key=KEY)[0].values()))) == before == 10
        assert table.digest(KEY) == digest


def test_rows_that_were_bounded_serve_as_long_as_a_file_stays(tmp_path, monkeypatch):
    from tacit.sources import bounding

    calls = []
    original = bounding._first_rows_in_duckdb
    monkeypatch.setattr(bounding, "_first_rows_in_duckdb", lambda *a: calls.append(1) or original(*a))
    pq.write_table(pa.table(data(10)), tmp_path / "t.parquet")
    with open_table(tmp_path / "t.parquet", schema=SCHEMA, unit=UNIT) as table:
        for by in ("g", None, "g"):
            count(table, by)
        assert len(calls) == 1


@pytest.mark.parametrize("kind", ["parquet", "csv", "frame", "ibis"])
def test_fifty_threads(tmp_path, kind):
    made = pa.table(data(1000))
    if kind == "parquet":
        pq.write_table(made, tmp_path / "t.parquet")
        source = tmp_path / "t.parquet"
    elif kind == "csv":
        made.to_pandas().to_csv(tmp_path / "t.csv", index=False)
        source = tmp_path / "t.csv"
    elif kind == "ibis":
        connection = ibis.duckdb.connect()
        connection.con.register("t", made)
        source = connection.table("t")
    else:
        source = made
    found, start = [], threading.Barrier(50)

    def work(i, tables):
        start.wait(60)
        try:
            found.append((i % 2, count(tables[i % len(tables)], "g" if i % 2 else None)))
        except BaseException as error:
            found.append((i, error))

    # Two tables over one connection, where the connection is somebody else's.
    with (
        open_table(source, schema=SCHEMA, unit=UNIT) as one,
        open_table(source, schema=SCHEMA, unit=rows()) as two,
    ):
        threads = [
            threading.Thread(target=work, args=(i, (one, one, two, two)), daemon=True) for i in range(50)
        ]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 100
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
    assert len(found) == 50
    assert all(got == ([500, 500] if odd else [1000]) for odd, got in found), found


SPILL = """
    import sys, pathlib
    sys.path.insert(0, {src!r})
    from tacit.sources import engines
    folder = engines.new_folder()
    (folder / "spill").write_bytes(b"rows" * 1000)
    print(folder.parent, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("signal", ["TERM", "KILL", "INT", "end"])
def test_what_was_spilled_goes_with_the_process_however_it_ends(tmp_path, signal):
    code = textwrap.dedent(SPILL.format(src=str(Path(engines.__file__).parents[2])))
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)}, text=True,
    )  # fmt: skip
    with child:
        folder = Path(child.stdout.readline().strip())
        assert folder.is_dir()
        assert folder.parent == tmp_path
        if signal == "end":
            child.stdin.close()
        else:
            subprocess.run(["kill", f"-{signal}", str(child.pid)], check=True)
        child.wait(30)
    until = time.monotonic() + 30
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not folder.exists()


BOUND = """
    import sys
    sys.path.insert(0, {src!r})
    import tacit.statistics as ask
    from tacit.guarantees import people
    from tacit.sources import Schema, integer, open_table
    schema, unit = Schema({{"x": integer(0, 9)}}), people("id", at_most=2)
    table = open_table({path!r}, schema=schema, unit=unit)
    ask.read(table, [ask.count().on(schema, unit)], key=b"0123456789abcdef-secret")
    print("bounded", flush=True)
    sys.stdin.read()
"""


def test_people_who_were_bounded_leave_nothing_when_the_process_is_told_to_end(tmp_path):
    """Whatever the table itself put into the folder for temporary files, wherever it is."""
    pq.write_table(pa.table(data(1000)), tmp_path / "t.parquet")
    (tmp_path / "tmp").mkdir()
    code = BOUND.format(src=str(Path(tacit.__file__).parents[1]), path=str(tmp_path / "t.parquet"))
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
    )  # fmt: skip
    with child:
        assert child.stdout.readline() == "bounded\n"
        assert list((tmp_path / "tmp").iterdir()), "there is something to leave behind"
        child.terminate()
        child.wait(30)
    until = time.monotonic() + 30
    while list((tmp_path / "tmp").iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_what_nobody_holds_any_more_is_swept_and_what_somebody_holds_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(engines.tempfile, "gettempdir", lambda: str(tmp_path))
    for name in ("dead", "alive"):
        (tmp_path / f"{engines.PREFIX}{name}").mkdir()
        (tmp_path / f"{engines.PREFIX}{name}" / engines.LOCK).touch()
    (tmp_path / f"{engines.PREFIX}young").mkdir()
    held = engines._locked(tmp_path / f"{engines.PREFIX}alive" / engines.LOCK)
    engines.sweep()
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{engines.PREFIX}alive", f"{engines.PREFIX}young"]
    os.close(held)


def test_tables_leave_no_folder(tmp_path):
    with open_table(pa.table(data(10)), schema=SCHEMA, unit=UNIT) as table:
        folder = Path(
            table.relation.get_backend().con.execute("SELECT current_setting('temp_directory')").fetchone()[0]
        )
        assert folder.is_dir()
        assert folder.parent.name.startswith(engines.PREFIX)
        assert folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()
