"""Bounded rows beside a ledger: only if a custodian asked, the same rows as without, and gone when they should be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
import tacit.statistics as ask
from tacit.errors import InvalidParameter, NotAllowed
from tacit.guarantees import people
from tacit.ledger import Ledger, keep_rows, remove_rows
from tacit.ledger.ledger import mark_of, rows_folder
from tacit.sources import Schema, bounding, category, facts, integer, kept, number, open_table
from tacit.sources.kept import KeptRows

KEY = b"an ordinary secret of the tests."
SCHEMA = Schema({"kind": category(["a", "b", "it's"]), "age": integer(0, 99), "pay": number(0, 100)})
UNIT = people("who", at_most=3)
BUDGET = tacit.Pure(epsilon=100)


def rows(first: int = 0, count: int = 4_000) -> pa.Table:
    held = range(first, first + count)
    return pa.table(
        {
            "who": [i * 7 % 500 for i in held],
            "kind": [["a", "b", "it's", "other", None][i * 3 % 5] for i in held],
            "age": [i * 11 % 120 for i in held],
            "pay": [i * 13 % 997 / 9 for i in held],
        }
    )


def old(path: Path, table: pa.Table) -> Path:
    """A file that was written a while ago: by its own times, as a file system's clock cannot be set back."""
    pq.write_table(table, path)
    return path


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a test are young: their states are settled here without a wait."""
    monkeypatch.setattr(facts, "SETTLED", 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return old(tmp_path / "visits.parquet", rows())


def folder(tmp_path: Path) -> Path:
    place = tmp_path / "rows"
    place.mkdir(mode=0o700, exist_ok=True)
    return place


def files(place: Path) -> list[Path]:
    return sorted(p for p in place.iterdir() if p.name != "lock" and p.suffix != ".json")


def answer(
    path: Any, place: Path | None, *, unit: Any = UNIT, schema: Schema = SCHEMA, reading: Any = None
) -> Any:
    """Exact numbers, and whether rows were bounded for them."""
    bounded: list[int] = []
    plain = bounding._sorted_in_duckdb

    def counted(*given: Any) -> str:
        bounded.append(1)
        return plain(*given)

    asked = [
        ask.count(by="kind"),
        ask.sum("pay", by="kind"),
        ask.count(of="people"),
        ask.sum("age", where="pay > 50"),
    ]
    with open_table(path, schema=schema, unit=unit) as table, pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounding, "_sorted_in_duckdb", counted)
        table.keep = None if place is None else KeptRows(folder=place, mark="v", reading=reading)
        found = ask.read(table, [s.on(schema, unit) for s in asked], key=KEY)
    return [{k: v.tolist() for k, v in one.items()} for one in found], bool(bounded)


def test_rows_are_bounded_once_and_are_the_same(path: Path, tmp_path: Path) -> None:
    place = folder(tmp_path)
    plain = answer(path, None)
    assert plain[1]
    assert answer(path, place) == plain
    assert answer(path, place) == (plain[0], False)
    assert len(files(place)) == 1
    assert all(p.stat().st_mode & 0o077 == 0 for p in place.iterdir())


@pytest.mark.parametrize("wide", [False, True])
def test_rows_of_every_width_are_kept(tmp_path: Path, wide: bool) -> None:
    """Wide rows are sorted another way, whose result is put together from two parts."""
    schema = SCHEMA if wide else Schema({"kind": SCHEMA["kind"]})
    path = old(tmp_path / "visits.parquet", rows())
    place, unit = folder(tmp_path), people("who", at_most=2)
    with open_table(path, schema=schema, unit=unit) as table:
        question = ask.count(by="kind").on(schema, unit)
        plain = ask.read(table, [question], key=KEY)[0]["count"].tolist()
    for _ in range(2):
        with open_table(path, schema=schema, unit=unit) as table:
            table.keep = KeptRows(folder=place, mark="v")
            assert ask.read(table, [question], key=KEY)[0]["count"].tolist() == plain
    assert len(files(place)) == 1


def test_every_other_state_or_declaration_is_bounded_anew(path: Path, tmp_path: Path) -> None:
    place = folder(tmp_path)
    first = answer(path, place)
    assert not answer(path, place)[1]
    for other in (
        {"unit": people("who", at_most=2)},
        {"unit": people("who", at_most=3, neighbours="replace-one")},
        {"schema": Schema({**dict(SCHEMA), "pay": number(0, 50)})},
        {"reading": {"decimal": ","}},
    ):
        told = answer(path, place, **other)  # type: ignore[arg-type]
        assert told[1], other
        assert told == answer(path, None, **{k: v for k, v in other.items() if k != "reading"}), other  # type: ignore[arg-type]
    stat = path.stat()
    held = rows(1)
    old(path, held)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    again = answer(path, place)
    assert again[1], "the same times and another content"
    assert again != first
    assert len(files(place)) == 1, "what was kept of the file before it changed is gone"


def test_rows_of_a_file_that_is_gone_are_removed(path: Path, tmp_path: Path) -> None:
    place = folder(tmp_path)
    answer(path, place)
    path.unlink()
    other = old(tmp_path / "next.parquet", rows(9))
    answer(other, place)
    assert len(files(place)) == 1
    assert json.loads(next(place.glob("*.json")).read_text())[0]["path"] == str(other)


def test_a_young_file_is_not_kept(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the step of a file system's clock a change may leave all times as they were."""
    monkeypatch.setattr(facts, "SETTLED", 3_600 * 10**9)
    place = folder(tmp_path)
    assert answer(path, place)[1]
    assert files(place) == []


def test_what_a_killed_writer_left_is_removed(path: Path, tmp_path: Path) -> None:
    place = folder(tmp_path)
    (place / "v-0.part").write_bytes(b"half of it")
    (place / "v-0.part.wal").write_bytes(b"and its journal")
    answer(path, place)
    assert [p.suffix for p in files(place)] == [""]


@pytest.mark.parametrize("part", ["half", "head", "middle", "all"])
def test_a_damaged_file_is_not_believed(path: Path, tmp_path: Path, part: str) -> None:
    place = folder(tmp_path)
    plain = answer(path, place)
    held = files(place)[0]
    body = bytearray(held.read_bytes())
    if part == "half":
        del body[len(body) // 2 :]
    else:
        spans = {"head": (0, 64), "middle": (len(body) // 4, 3 * len(body) // 4), "all": (0, len(body))}
        first, last = spans[part]
        body[first:last] = bytes(b ^ 255 for b in body[first:last])
    held.write_bytes(body)
    assert answer(path, place) == plain, "bounded anew, with the same rows"
    assert answer(path, place)[0] == plain[0]


def test_a_disk_that_is_full_keeps_nothing_and_stops_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder(tmp_path)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(kept, "_write", full)
        assert answer(path, place) == answer(path, None)
    assert files(place) == []


@pytest.mark.parametrize("problem", ["no lock", "folder gone"])
def test_what_cannot_be_kept_stops_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    place, looked = folder(tmp_path), kept._found

    def gone(*given: Any) -> Any:
        found = looked(*given)
        shutil.rmtree(place, ignore_errors=True)
        return found

    if problem == "no lock":
        (place / "lock").mkdir()
    else:
        monkeypatch.setattr(kept, "_found", gone)
    assert answer(path, place) == answer(path, None)


def test_a_damaged_file_that_cannot_be_removed_stops_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder(tmp_path)
    plain = answer(path, place)
    held = files(place)[0]
    body = bytearray(held.read_bytes())
    body[len(body) // 4 : 3 * len(body) // 4] = bytes(len(body) // 2)
    held.write_bytes(body)

    def stays(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", stays)
        assert answer(path, place)[0] == plain[0]


def test_rows_behind_a_view_are_not_kept(path: Path, tmp_path: Path) -> None:
    """A view of a database may read other files, whose state nobody looks at."""
    base, place = tmp_path / "visits.duckdb", folder(tmp_path)
    with duckdb.connect(str(base)) as connection:
        connection.execute(f"CREATE VIEW visits AS FROM read_parquet('{path}')")
        connection.execute(f"CREATE TABLE held AS FROM read_parquet('{path}')")
    for view in ("visits", "held"):
        data = tacit.files(base, view=view)
        assert answer(data, place) == answer(data, None)
        assert files(place) == []
    old(path, rows(1, 400))
    again = tacit.files(base, view="visits")
    assert answer(again, place) == answer(again, None)


def test_rows_of_a_relative_path_are_found_from_anywhere(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, other = folder(tmp_path), old(tmp_path / "other.parquet", rows(5))
    monkeypatch.chdir(tmp_path)
    assert answer(path.name, place)[1]
    monkeypatch.chdir("/")
    answer(other, place)
    assert len(files(place)) == 2, "whoever keeps other rows from elsewhere leaves these"
    assert not answer(path, place)[1]


def test_a_file_without_its_description_is_removed(path: Path, tmp_path: Path) -> None:
    """Nobody could tell any more when its data change."""
    place = folder(tmp_path)
    answer(path, place)
    next(place.glob("*.json")).unlink()
    answer(old(tmp_path / "next.parquet", rows(9)), place)
    assert len(files(place)) == 1


# --- who asks, and who may -----------------------------------------------------------------------------


def survey(path: Path, version: str = "2026-01", **more: Any) -> tacit.Curator:
    more = {"ledger": path.with_suffix(".ledger"), **more}
    return tacit.Curator(path, protect=UNIT, schema=SCHEMA, budget=BUDGET, version=version, **more)


def test_nothing_is_kept_unless_it_is_asked_for(path: Path) -> None:
    with survey(path) as curator:
        curator.release(tacit.count(by="kind"), epsilon=0.1)
        assert rows_folder(curator.ledger) is None
    assert not Path(f"{path.with_suffix('.ledger')}-rows").exists()


def test_a_version_is_removed_alone_and_then_all(path: Path, tmp_path: Path) -> None:
    other = old(tmp_path / "next.parquet", rows(5))
    with survey(path) as curator:
        place = keep_rows(curator.ledger)
        assert place.stat().st_mode & 0o777 == 0o700
        assert keep_rows(curator.ledger) == place, "asking twice is asking once"
        curator.release(tacit.count(by="kind"), epsilon=0.1)
    with survey(other, "2026-02", ledger=path.with_suffix(".ledger")) as curator:
        curator.release(tacit.count(by="kind"), epsilon=0.1)
    with Ledger.open(path.with_suffix(".ledger")) as ledger:
        assert len(files(place)) == 2
        assert remove_rows(ledger, version="2026-01") == 1
        assert [p.name.split("-")[0] for p in files(place)] == [mark_of(ledger, "2026-02")]
        assert remove_rows(ledger, version="2026-01") == 0
        assert remove_rows(ledger) == 1
        assert rows_folder(ledger) is None
        assert not place.exists()
        assert ledger.verify().ok
        assert next(e.body["note"] for e in ledger.entries() if e.kind == "note").startswith(
            "bounded rows are kept"
        )
    with survey(path) as curator:
        curator.release(tacit.count(by="kind"), epsilon=0.2)
    assert not place.exists()


def leftovers(place: Path) -> list[str]:
    return sorted(p.name for p in place.iterdir() if p.name != "lock") if place.exists() else []


@pytest.mark.parametrize("version", ["2026-01", None])
def test_what_a_killed_writer_left_is_removed_with_the_version(path: Path, version: str | None) -> None:
    with survey(path) as curator:
        place = keep_rows(curator.ledger)
        curator.release(tacit.count(by="kind"), epsilon=0.1)
        held = files(place)[0]
        shutil.copy(held, f"{held}.part")
        Path(f"{held}.part.wal").write_bytes(b"rows in a journal")
        next(place.glob("*.json")).unlink()
        assert remove_rows(curator.ledger, version=version) == 1
    assert leftovers(place) == []


def test_rows_are_removed_from_a_folder_that_others_may_enter_by_now(path: Path) -> None:
    with survey(path) as curator:
        place = keep_rows(curator.ledger)
        curator.release(tacit.count(by="kind"), epsilon=0.1)
        place.chmod(0o755)
        assert remove_rows(curator.ledger) == 1
    assert not place.exists()


@pytest.mark.parametrize("version", ["2026-01", None])
def test_what_cannot_be_removed_is_said(path: Path, version: str | None) -> None:
    with survey(path) as curator:
        place = keep_rows(curator.ledger)
        curator.release(tacit.count(by="kind"), epsilon=0.1)
        held = files(place)[0]
        held.unlink()
        held.mkdir()
        with pytest.raises(InvalidParameter, match="all that was kept can be removed"):
            remove_rows(curator.ledger, version=version)
        held.rmdir()
        away = place.rename(path.parent / "away")
        place.symlink_to(away)
        with pytest.raises(InvalidParameter, match="all that was kept can be removed"):
            remove_rows(curator.ledger, version=version)
        assert away.exists(), "nothing behind a link is touched"
        noted = [e.body["note"] for e in curator.ledger.entries() if e.kind == "note"]
        assert not any("removed" in one for one in noted)


def test_a_ledger_has_one_folder_by_all_its_names(path: Path) -> None:
    with survey(path) as curator:
        place = keep_rows(curator.ledger)
        curator.release(tacit.count(by="kind"), epsilon=0.1)
    link = path.parent / "by another name.ledger"
    link.symlink_to(path.with_suffix(".ledger"))
    with Ledger.open(link) as ledger:
        assert rows_folder(ledger) == place
        assert remove_rows(ledger) == 1
    assert not place.exists()


@pytest.mark.parametrize("moment", ["bounding", "writing", "naming"])
@pytest.mark.parametrize("version", ["2026-01", None])
def test_rows_that_are_removed_do_not_come_back(
    path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, version: str | None
) -> None:
    """A release that bounds rows while they are removed keeps nothing."""
    room, name = {
        "bounding": (bounding, "_sorted_in_duckdb"), "writing": (kept, "_text"), "naming": (kept, "_wanted")
    }[moment]  # fmt: skip
    plain, ledgers, times = getattr(room, name), [], [0]

    def meanwhile(*given: Any) -> Any:
        found = plain(*given)
        times[0] += 1
        if times[0] == (2 if moment == "naming" else 1):  # the first look at the lock is that of taking it
            remove_rows(ledgers[0], version=version)
        return found

    with survey(path) as curator:
        place = keep_rows(curator.ledger)
        ledgers.append(curator.ledger)
        with monkeypatch.context() as patch:
            patch.setattr(room, name, meanwhile)
            assert curator.release(tacit.count(by="kind"), epsilon=0.1).table.shape == (3, 4)
        assert times[0] > 0
        assert leftovers(place) == []


def test_only_a_custodian_asks_and_removes(path: Path) -> None:
    with Ledger.create(
        path.with_suffix(".ledger"), budget=tacit.Guarantee(bound=BUDGET, unit=UNIT)
    ) as ledger:
        ledger.enrol("ada", ["custodian"])
        for call in (keep_rows, remove_rows):
            with pytest.raises(NotAllowed):
                call(ledger, by="bob")
        assert keep_rows(ledger, by="ada").is_dir()
        assert remove_rows(ledger, by="ada") == 0


def test_a_folder_that_others_may_enter_is_not_used(path: Path) -> None:
    with survey(path) as curator:
        place = Path(f"{path.with_suffix('.ledger')}-rows")
        place.mkdir(mode=0o755)
        curator.release(tacit.count(by="kind"), epsilon=0.1)
        assert list(place.iterdir()) == []
        with pytest.raises(InvalidParameter, match="owner alone"):
            keep_rows(curator.ledger)
    shutil.rmtree(place)
    (away := path.parent / "away").mkdir(mode=0o700)
    place.symlink_to(away)
    with Ledger.open(path.with_suffix(".ledger")) as ledger:
        assert rows_folder(ledger) is None


WORKER = """
import sys, tacit
from tacit.sources import facts
facts.SETTLED = 0
with tacit.Curator(sys.argv[1], protect=tacit.people("who", at_most=3), budget=tacit.Pure(epsilon=100),
                   schema={"kind": tacit.category(["a", "b", "it's"])}, ledger=sys.argv[2], version=sys.argv[3]) as c:
    print(c.release(tacit.count(by="kind"), epsilon=0.1, key=sys.argv[4]).table["value"].tolist())
"""


def test_analysts_at_the_same_time_wait_for_one_and_find_its_rows(path: Path) -> None:
    where = path.with_suffix(".ledger")
    with Ledger.create(where, budget=tacit.Guarantee(bound=BUDGET, unit=UNIT)) as ledger:
        place = keep_rows(ledger)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path), str(where), "v", str(i)], stdout=subprocess.PIPE
        )
        for i in range(3)
    ]
    for one in started:
        assert len(json.loads(one.communicate(timeout=120)[0])) == 3
    assert [one.returncode for one in started] == [0, 0, 0]
    assert len(files(place)) == 1
