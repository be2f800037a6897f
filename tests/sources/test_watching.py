"""Watching long work: rows read, passes and releases done, to the caller's own function and to nobody else."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.errors import InvalidParameter
from tacit.report.progress import waited
from tacit.sources import query
from tacit.sources.error_boundary import Step, counted, polled, tell

ROWS = 4321
SCHEMA = {"state": tacit.category(["a", "b"]), "age": tacit.integer(0, 99)}


@pytest.fixture(params=["csv", "parquet"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    table = pa.table(
        {"state": ["a", "b", "b"] * (ROWS // 3) + ["a"], "age": [i % 90 for i in range(ROWS // 3 * 3 + 1)]}
    )
    place = tmp_path / f"t.{request.param}"
    if request.param == "parquet":
        pq.write_table(table, place)
    else:
        lines = [f"{s},{a}" for s, a in zip(*table.to_pydict().values(), strict=True)]
        place.write_text("\n".join(["state,age", *lines, ""]))
    return place


def curator(path: Path, **more: Any) -> tacit.Curator:
    return tacit.Curator(
        path, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=9.0), ledger=path.with_suffix(".ledger"),
        **more,
    )  # fmt: skip


ASKED = [tacit.count(by="state"), tacit.mean("age", by="state"), tacit.count()]


def test_rows_passes_and_releases_are_told(path: Path) -> None:
    steps: list[Step] = []
    with curator(path) as survey, tacit.watch(steps.append):
        survey.release(ASKED, epsilon=1)
    told = {s.what: s for s in steps}
    assert told["releases done"] == Step(what="releases done", done=3, of=3)
    assert "passes over the rows" in told
    if path.suffix == ".csv":
        assert told["rows read"].done == ROWS
    steps.clear()
    with curator(path) as survey:
        survey.release(tacit.count(), epsilon=0.5)
    assert not steps, "whoever watched is not told any more"


def test_a_watcher_that_fails_spoils_nothing(path: Path) -> None:
    asked = 0

    def fails(_: Step) -> None:
        nonlocal asked
        asked += 1
        raise ValueError("a watcher's own trouble")

    with curator(path) as survey, tacit.watch(fails):
        found = survey.release(ASKED, epsilon=1)
    assert len(found) == 3
    assert asked == 1


def test_a_watcher_may_stop_the_work_and_what_was_charged_stays(path: Path) -> None:
    def stops(step: Step) -> None:
        raise KeyboardInterrupt

    with curator(path) as survey:
        with pytest.raises(KeyboardInterrupt), tacit.watch(stops):
            survey.release(ASKED, epsilon=1)
        assert survey.spent == tacit.Pure(epsilon=1.0)
        assert [e.kind for e in survey.ledger.entries()] == ["reserve", "failed"]
        # The same question is asked anew, and pays anew: rows may have been read.
        assert survey.release(ASKED, epsilon=1)
        assert survey.spent == tacit.Pure(epsilon=2.0)


def test_progress_writes_no_number_of_rows_anywhere(path: Path, tmp_path: Path) -> None:
    with curator(path) as survey, tacit.watch(lambda step: None):
        survey.release([tacit.mean("age", by="state")], epsilon=1)
    for made in tmp_path.iterdir():
        if made.suffix.startswith(".ledger"):
            assert str(ROWS).encode() not in made.read_bytes()


@pytest.mark.parametrize("watcher", [None, 3, "print"])
def test_what_is_no_function_cannot_watch(watcher: Any) -> None:
    with pytest.raises(InvalidParameter, match="watcher"), tacit.watch(watcher):
        pass


def test_batches_fetched_by_another_thread_are_told() -> None:
    import threading

    seen: list[Step] = []
    with tacit.watch(seen.append):
        batches = counted([pa.record_batch({"x": [1, 2]}), pa.record_batch({"x": [3]})])
        thread = threading.Thread(target=lambda: list(batches))
        thread.start()
        thread.join()
        tell("more", 1)
    assert [s.done for s in seen] == [2, 3, 1]


def test_an_engine_at_work_is_looked_at_and_its_faults_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import threading

    monkeypatch.setattr("tacit.sources.error_boundary.EVERY", 0.001)
    seen, enough = [], threading.Event()
    shares = iter([-1.0, 12.0])

    def progress() -> float:
        return next(shares)  # then StopIteration, as an engine that is closed would raise

    with tacit.watch(lambda step: (seen.append(step), enough.set())), polled(progress, "percent"):
        assert enough.wait(10)
    assert seen == [Step(what="percent", done=12, of=100)]


# --- one pass ------------------------------------------------------------------------------------------
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many queries each release runs."""
    ran: list[int] = []
    real = query._one_pass

    def counting(table: Any, relation: Any, requests: list[Any]) -> Any:
        ran.append(len(requests))
        return real(table, relation, requests)

    monkeypatch.setattr(query, "_one_pass", counting)
    return ran


def test_questions_of_one_grouping_are_read_in_one_pass(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = passes(monkeypatch)
    same = [
        tacit.count(by="state"),
        tacit.mean("age", by="state"),
        tacit.sum("age", by="state"),
        tacit.variance("age", by="state"),
    ]
    with curator(path) as survey:
        survey.release(same, epsilon=1)
    assert len(ran) == 1
    assert ran[0] >= 4


# --- the command line ----------------------------------------------------------------------------------
class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_whoever_waits_at_a_terminal_is_told_so_and_output_stands_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import time

    error, out = Terminal(), Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr("tacit.report.progress.AFTER", 0.01)
    monkeypatch.setattr(sys, "stderr", error)
    monkeypatch.setattr(sys, "stdout", out)
    with waited():
        until = time.monotonic() + 10
        while "working" not in error.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
        print("the answer")
        assert error.getvalue().endswith("\r\x1b[K"), "taken away before the first word"
    assert sys.stdout is out
    assert out.getvalue() == "the answer\n"
    assert error.getvalue().count("working") >= 1


def test_nobody_else_is_told_anything(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tacit.report.progress.AFTER", 0.0)
    with waited():
        print("x")
    told = capfd.readouterr()
    assert (told.out, told.err) == ("x\n", "")
