"""A table has one ledger, whatever the plan is called and however the path is written; a twin has its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import tacit
from support.ledgers import child_environment, new_schema, postgres_server
from tacit.cli import main
from tacit.curator.ledgers import BESIDE, Home
from tacit.curator.plan_files import read_plan
from tacit.errors import BadData, InvalidParameter, LedgerError
from tacit.ledger import Ledger
from tacit.sources.facts import is_twin

SCHEMA = {"age": tacit.integer(0, 99)}
PLAN = """
[data]
path = "{path}"
{data}
[protect]
unit = "rows"
[schema.age]
kind = "integer"
low = 0
high = 99
[budget]
epsilon = 1.0
[[release]]
kind = "count"
epsilon = {price}
{rest}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table of ages."""
    pq.write_table(pa.table({"age": list(range(50))}), tmp_path / "visits.parquet")
    return tmp_path


def written(
    folder: Path,
    name: str,
    price: float = 0.5,
    *,
    path: str = "visits.parquet",
    data: str = "",
    rest: str = "",
) -> Path:
    plan = folder / name
    plan.parent.mkdir(exist_ok=True)
    plan.write_text(PLAN.format(path=path, data=data, rest=rest, price=price))
    return plan


def release(plan: Path, out: str) -> int:
    return main(["release", str(plan), "--out", str(plan.parent / out)])


def curator(data: Any, **more: Any) -> tacit.Curator:
    given = {"protect": tacit.rows(), "schema": SCHEMA, "budget": tacit.Pure(epsilon=1.0)} | more
    return tacit.Curator(data, **given)


def spent(place: Path) -> float:
    with Ledger.open(place) as ledger:
        return float(ledger.spent().epsilon)  # type: ignore[attr-defined]


def test_a_copied_or_second_plan_spends_from_the_same_budget(folder: Path) -> None:
    first = written(folder, "plan.toml", 0.6)
    assert release(first, "a") == 0
    shutil.copyfile(first, folder / "copy.toml")
    assert release(folder / "copy.toml", "b") == 0, "the same question is free"
    assert release(written(folder, "second.toml", 0.5), "c") == 1
    assert release(written(folder, "third.toml", 0.4), "d") == 0
    assert spent(folder / "visits.ledger") == 1.0
    assert [p.name for p in folder.glob("*.ledger")] == ["visits.ledger"]


def test_however_the_path_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert release(written(folder, "plan.toml", 0.25), "a") == 0
    (folder / "other").mkdir()
    os.symlink(folder / "visits.parquet", folder / "other" / "link.parquet")
    os.symlink(folder, folder / "way")
    assert release(written(folder, "other/linked.toml", 0.125, path="link.parquet"), "b") == 0
    whole = str(folder / "way" / "visits.parquet")
    assert release(written(folder, "other/whole.toml", 0.0625, path=whole), "c") == 0
    monkeypatch.chdir(folder)
    curator("visits.parquet").release(tacit.count(), epsilon=0.03125)
    curator(Path("other/../visits.parquet")).release(tacit.count(), epsilon=0.015625)
    assert spent(folder / "visits.ledger") == 0.25 + 0.125 + 0.0625 + 0.03125 + 0.015625
    assert len(list(folder.rglob("*.ledger"))) == 1


def test_a_second_ledger_is_refused_unless_said(folder: Path) -> None:
    assert release(written(folder, "plan.toml"), "a") == 0
    named = '[ledger]\npath = "second.ledger"\n'
    plan = written(folder, "second.toml", 0.25, rest=named)
    assert release(plan, "b") == 2
    with pytest.raises(LedgerError, match="of this table already"):
        curator(folder / "visits.parquet", ledger=folder / "second.ledger").release(
            tacit.count(), epsilon=0.1
        )
    assert not (folder / "second.ledger").exists()
    elsewhere = Ledger.create(
        folder / "third.ledger", budget=tacit.Guarantee(bound=tacit.Pure(epsilon=1.0), unit=tacit.rows())
    )
    with pytest.raises(LedgerError, match="of this table already"):
        curator(folder / "visits.parquet", ledger=elsewhere).release(tacit.count(), epsilon=0.1)
    assert elsewhere.charges() == ()
    assert release(written(folder, "second.toml", 0.25, rest=f"{named}another = true\n"), "b") == 0
    assert spent(folder / "second.ledger") == 0.25
    assert release(written(folder, "again.toml", 0.125, rest=named), "c") == 0, "it was said once"
    with pytest.raises(LedgerError, match="name the intended one"):
        curator(folder / "visits.parquet").release(tacit.count(), epsilon=0.1)
    with pytest.raises(InvalidParameter, match="True or False"):
        curator(folder / "visits.parquet", another_ledger="no")


def test_a_ledger_elsewhere_is_remembered_beside_the_data(folder: Path) -> None:
    away = folder / "away"
    away.mkdir()
    curator(folder / "visits.parquet", ledger=away / "l").release(tacit.count(), epsilon=0.25)
    note = folder / "visits.ledger-at"
    assert note.read_text().endswith(f"  {away / 'l'}\n")
    assert release(written(folder, "plan.toml", 0.5), "a") == 0
    curator(folder / "visits.parquet").release(tacit.count(), epsilon=0.125)
    assert spent(away / "l") == 0.875
    with pytest.raises(LedgerError, match="of this table already"):
        curator(folder / "visits.parquet", ledger=away / "m").release(tacit.count(), epsilon=0.1)
    (away / "l").unlink()
    with pytest.raises(LedgerError):
        curator(folder / "visits.parquet", ledger=away / "m").release(tacit.count(), epsilon=0.1)


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with postgres_server() as url:
        yield url


def test_a_note_has_no_password(folder: Path, postgres: str) -> None:
    place = new_schema(postgres.replace("postgres:@", "postgres:hunter2@"))
    survey = curator(folder / "visits.parquet", ledger=place)
    survey.release(tacit.count(), epsilon=0.25)
    assert "hunter2" not in repr(survey)
    note = (folder / "visits.ledger-at").read_text()
    assert "hunter2" not in note
    assert "postgresql://" in note
    curator(folder / "visits.parquet", ledger=place).release(tacit.count(), epsilon=0.5)
    for other in (None, new_schema(postgres)):
        with pytest.raises(LedgerError) as caught:
            curator(folder / "visits.parquet", ledger=other).release(tacit.count(), epsilon=0.1)
        assert "hunter2" not in str(caught.value)


def test_the_declared_table_is_what_shares_a_budget(folder: Path) -> None:
    table = 'table = "survey"'
    assert release(written(folder, "a.toml", 0.5, data=table), "a") == 0
    assert (folder / "survey.ledger").exists()
    shutil.copyfile(folder / "visits.parquet", folder / "december.parquet")
    assert release(written(folder, "b.toml", 0.25, path="december.parquet", data=table), "b") == 0
    assert release(written(folder, "c.toml", 0.125), "c") == 0, (
        "without its name the table has the same ledger"
    )
    assert spent(folder / "survey.ledger") == 0.875
    assert [p.name for p in folder.glob("*.ledger")] == ["survey.ledger"]
    assert release(written(folder, "d.toml", 0.0625, data='table = "census"'), "d") == 2


def test_a_table_that_got_its_name_later_keeps_its_ledger(folder: Path) -> None:
    assert release(written(folder, "a.toml", 0.5), "a") == 0
    assert release(written(folder, "b.toml", 0.25, data='table = "survey"'), "b") == 0
    assert spent(folder / "visits.ledger") == 0.75
    assert len(list(folder.glob("*.ledger"))) == 1


def test_plans_say_where_their_ledger_is(folder: Path) -> None:
    assert read_plan(written(folder, "a.toml")).place == str(folder / "visits.ledger")
    assert read_plan(written(folder, "a.toml", data='table = "survey"')).place == str(
        folder / "survey.ledger"
    )
    found = read_plan(written(folder, "a.toml", data='table = "survey"\nversion = "2026-11"'))
    assert (found.table, found.version) == ("survey", "2026-11")
    for bad in ("version = 2026", "version = 2026-11-01", "table = 1", 'table = ""'):
        with pytest.raises(InvalidParameter):
            read_plan(written(folder, "a.toml", data=bad))


def test_a_frame_has_a_budget_for_the_session(folder: Path) -> None:
    rows = pa.table({"age": [1, 2, 3]})
    survey = curator(rows)
    survey.release(tacit.count(), epsilon=0.5)
    assert float(survey.remaining.epsilon) == 0.5  # type: ignore[attr-defined]
    survey.close()
    lonely = curator(folder / "visits.parquet")
    lonely.release(tacit.count(), epsilon=0.5)
    assert not list(folder.glob("*.ledger*"))


def test_a_pattern_and_its_files_share_a_budget(folder: Path) -> None:
    months = folder / "months"
    months.mkdir()
    for name in ("jan.parquet", "feb.parquet"):
        shutil.copyfile(folder / "visits.parquet", months / name)
    both = "months/*.parquet"
    assert release(written(folder, "a.toml", 0.5, path=both, data="pattern = true"), "a") == 0
    assert spent(months / "months.ledger") == 0.5
    assert release(written(folder, "b.toml", 0.25, path="months/jan.parquet"), "b") == 0
    assert (
        release(written(folder, "c.toml", 0.125, path="months/f*.parquet", data="pattern = true"), "c") == 0
    )
    assert spent(months / "months.ledger") == 0.875
    assert len(list(folder.rglob("*.ledger"))) == 1


def test_a_path_with_odd_letters_is_one_file(folder: Path) -> None:
    shutil.copyfile(folder / "visits.parquet", folder / "a[1].parquet")
    shutil.copyfile(folder / "visits.parquet", folder / "a1.parquet")
    for name, price in (("a[1].parquet", 0.5), ("a1.parquet", 0.75)):
        assert release(written(folder, "a.toml", price, path=name), f"out-{price}") == 0
    assert (spent(folder / "a_1_.ledger"), spent(folder / "a1.ledger")) == (0.5, 0.75)


# --- twins -------------------------------------------------------------------------------------------------
@pytest.fixture(params=["twin.parquet", "twin.csv"])
def twin(folder: Path, request: pytest.FixtureRequest) -> Path:
    plan = written(folder, "plan.toml")
    assert main(["twin", str(plan), "--rows", "40", "--out", str(folder / request.param)]) == 0
    return folder / str(request.param)


def test_a_twin_cannot_charge_the_real_ledger(
    folder: Path, twin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert release(written(folder, "plan.toml", 0.25), "a") == 0
    for name in ("visits.ledger", str(folder / "visits.ledger")):
        rest = f'[ledger]\npath = "{name}"\n'
        assert release(written(folder, "rehearsal.toml", 0.5, path=twin.name, rest=rest), "b") == 2
        assert "twin" in capsys.readouterr().err
    assert spent(folder / "visits.ledger") == 0.25
    renamed = folder / f"renamed{twin.suffix}"
    shutil.copyfile(twin, renamed)
    with pytest.raises(LedgerError, match="rows are those of a twin"):
        curator(renamed, ledger=folder / "visits.ledger").release(tacit.count(), epsilon=0.5)
    assert spent(folder / "visits.ledger") == 0.25


def test_a_rehearsal_has_a_ledger_of_its_own(folder: Path, twin: Path) -> None:
    named = 'table = "survey"'
    assert release(written(folder, "rehearsal.toml", 0.5, path=twin.name, data=named), "a") == 0
    assert release(written(folder, "plan.toml", 0.5, data=named), "b") == 0
    assert spent(folder / "twin.ledger") == spent(folder / "survey.ledger") == 0.5
    with Ledger.open(folder / "twin.ledger") as rehearsal:
        assert rehearsal.rehearsal
    with pytest.raises(LedgerError, match="that of a rehearsal"):
        curator(folder / "visits.parquet", ledger=folder / "twin.ledger", another_ledger=True).release(
            tacit.count(), epsilon=0.25
        )


def test_a_twin_is_known_in_whatever_form(folder: Path, twin: Path) -> None:
    read = pyarrow.csv.read_csv(twin) if twin.suffix == ".csv" else pq.read_table(twin)
    assert is_twin(twin)
    assert is_twin(str(folder / "tw*n.*"))
    for form in (read, read.to_pandas()):
        assert is_twin(form)
    pq.write_table(read, folder / "again.parquet")
    assert is_twin(folder / "again.parquet")
    assert not is_twin(folder / "visits.parquet")
    assert not is_twin(folder / "absent.parquet")
    (folder / "broken.parquet").write_bytes(b"PAR1")
    assert not is_twin(folder / "broken.parquet")
    assert not is_twin(17)


@pytest.mark.parametrize("named", [True, False])
def test_two_who_make_the_first_ledger_at_once_make_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """Each makes its own, under another name, after both have seen that there is none: one budget, not two."""
    remember = Home.remember

    def slowly(self: Home, ledger: Ledger) -> None:
        time.sleep(0.3)
        remember(self, ledger)

    monkeypatch.setattr(Home, "remember", slowly)

    def pay(name: str) -> str:
        place = {"ledger": folder / f"{name}.ledger"} if named else {"ledger": BESIDE, "table": name}
        curator = tacit.Curator(
            folder / "visits.parquet", protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=1.0), **place
        )  # fmt: skip
        try:
            with curator:
                curator.release(tacit.count(), epsilon=1.0)
        except (LedgerError, InvalidParameter):
            return "refused"
        return "paid"

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(pay, ["one", "two", "three"])) == ["paid", "refused", "refused"]


SESSION = """
    import sys
    import pyarrow as pa, tacit
    survey = tacit.Curator(pa.table({"x": [1, 2]}), protect=tacit.rows(), schema={"x": tacit.integer(0, 3)},
                           budget=tacit.Pure(epsilon=1))
    survey.ledger
    print("up", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("signal", ["TERM", "KILL"])
def test_the_ledger_of_a_session_goes_with_a_process_that_is_killed(tmp_path: Path, signal: str) -> None:
    """It has a secret, and lay in the folder for temporary files for ever."""
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SESSION)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**child_environment(), "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        assert list(tmp_path.rglob("session.ledger"))
        subprocess.run(["kill", f"-{signal}", str(child.pid)], check=True)
        child.wait(30)
    until = time.monotonic() + 30
    while list(tmp_path.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []


def test_the_ledger_of_any_of_several_files_is_theirs(folder: Path) -> None:
    assert release(written(folder, "plan.toml", 0.25), "a") == 0
    shutil.copyfile(folder / "visits.parquet", folder / "april.parquet")
    both = tacit.files([folder / "april.parquet", folder / "visits.parquet"])
    with curator(both, ledger=BESIDE, version="2") as one:
        one.release(tacit.count(), epsilon=0.125)
    assert spent(folder / "visits.ledger") == 0.375
    assert [p.name for p in folder.glob("*.ledger")] == ["visits.ledger"]


# --- hard links -------------------------------------------------------------------------------------------------
def test_another_name_of_the_file_has_its_ledger(folder: Path) -> None:
    """The same inode under another name: one budget, whichever name is asked by first."""
    assert release(written(folder, "plan.toml", 0.25), "a") == 0
    os.link(folder / "visits.parquet", folder / "copy.parquet")
    assert release(written(folder, "second.toml", 0.125, path="copy.parquet"), "b") == 0
    with pytest.raises(LedgerError, match="of this table already"):
        curator(folder / "copy.parquet", ledger=folder / "mine.ledger").release(tacit.count(), epsilon=0.1)
    curator(folder / "copy.parquet").release(tacit.count(), epsilon=0.0625)
    assert spent(folder / "visits.ledger") == 0.4375
    assert [p.name for p in folder.glob("*.ledger")] == ["visits.ledger"]
    # It is remembered under each name: one of them may go.
    (folder / "visits.parquet").unlink()
    curator(folder / "copy.parquet").release(tacit.count(), epsilon=0.03125)
    assert spent(folder / "visits.ledger") == 0.46875


def test_two_names_in_one_folder_with_a_new_ledger(folder: Path) -> None:
    os.link(folder / "visits.parquet", folder / "copy.parquet")
    assert release(written(folder, "second.toml", 0.125, path="copy.parquet"), "b") == 0
    assert release(written(folder, "plan.toml", 0.25), "a") == 0
    assert spent(folder / "copy.ledger") == 0.375
    assert [p.name for p in folder.glob("*.ledger")] == ["copy.ledger"]


def test_a_name_in_another_folder_gets_no_new_ledger_unless_said(folder: Path) -> None:
    assert release(written(folder, "plan.toml", 0.25), "a") == 0
    away = folder / "away"
    away.mkdir()
    os.link(folder / "visits.parquet", away / "linked.parquet")
    assert release(written(away, "plan.toml", 0.125, path="linked.parquet"), "b") == 2
    with pytest.raises(LedgerError, match="names in other folders"):
        curator(away / "linked.parquet", ledger=away / "l.ledger").release(tacit.count(), epsilon=0.1)
    pattern = tacit.files(away / "*.parquet", pattern=True)
    with pytest.raises(LedgerError, match="names in other folders"):
        curator(pattern, ledger=away / "l.ledger").release(tacit.count(), epsilon=0.1)
    assert not list(away.glob("*.ledger"))
    # The first name goes on as before, and the ledger that lies beside it may be named.
    curator(folder / "visits.parquet").release(tacit.count(), epsilon=0.0625)
    curator(away / "linked.parquet", ledger=folder / "visits.ledger", version="2").release(
        tacit.count(), epsilon=0.03125
    )
    assert spent(folder / "visits.ledger") == 0.34375
    # From then on it is known.
    curator(away / "linked.parquet", version="2").release(tacit.mean("age"), epsilon=0.015625)
    assert spent(folder / "visits.ledger") == 0.359375
    with pytest.raises(LedgerError, match="of this table already"):
        curator(away / "linked.parquet", ledger=away / "l.ledger").release(tacit.count(), epsilon=0.1)


def test_a_second_ledger_for_a_linked_file_can_be_asked_for(folder: Path) -> None:
    away = folder / "away"
    away.mkdir()
    os.link(folder / "visits.parquet", away / "linked.parquet")
    more = {"ledger": away / "l.ledger", "another_ledger": True}
    curator(away / "linked.parquet", **more).release(tacit.count(), epsilon=0.125)
    assert spent(away / "l.ledger") == 0.125


@pytest.mark.parametrize("how", ["path", "ledger", "declared"])
def test_an_existing_ledger_of_another_table_is_not_believed_for_a_linked_file(
    folder: Path, how: str
) -> None:
    """A ledger that has nothing to do with the file would be its second budget, as a new one would."""
    assert release(written(folder, "plan.toml", 0.25), "a") == 0
    away = folder / "away"
    away.mkdir()
    pq.write_table(pa.table({"age": [1, 2, 3]}), away / "other.parquet")
    table = "other" if how == "declared" else ""
    with curator(away / "other.parquet", ledger=away / "other.ledger", table=table) as one:
        one.release(tacit.count(), epsilon=0.125)
    os.link(folder / "visits.parquet", away / "linked.parquet")
    other = Ledger.open(away / "other.ledger") if how == "ledger" else away / "other.ledger"
    with pytest.raises(LedgerError, match=r"nothing says that it is the ledger of 'linked\.parquet'"):
        curator(away / "linked.parquet", ledger=other, table=table).release(tacit.mean("age"), epsilon=0.1)
    assert spent(away / "other.ledger") == 0.125
    assert not (away / "linked.ledger-at").exists()
    # Several files: each of them has its say.
    both = tacit.files([away / "other.parquet", away / "linked.parquet"])
    with pytest.raises(LedgerError, match="nothing says"):
        curator(both, ledger=other, table=table).release(tacit.mean("age"), epsilon=0.1)
    # It can be asked for, and is known from then on.
    more = {"ledger": other, "table": table}
    with curator(away / "linked.parquet", another_ledger=True, version="2", **more) as asked:
        asked.release(tacit.count(), epsilon=0.0625)
    with curator(away / "linked.parquet", version="2", **more) as known:
        known.release(tacit.mean("age"), epsilon=0.03125)
    assert spent(away / "other.ledger") == 0.21875


def test_a_ledger_that_another_name_of_the_file_remembers_is_believed(folder: Path) -> None:
    """The ledger lies in a third folder: where its file has a name beside it, or a note of it, that is enough."""
    (folder / "ledgers").mkdir()
    (folder / "away").mkdir()
    place = folder / "ledgers" / "main.ledger"
    with curator(folder / "visits.parquet", ledger=place) as first:
        first.release(tacit.count(), epsilon=0.25)
    os.link(folder / "visits.parquet", folder / "away" / "linked.parquet")
    with pytest.raises(LedgerError, match="nothing says"):
        curator(folder / "away" / "linked.parquet", ledger=place).release(tacit.count(), epsilon=0.125)
    os.link(folder / "visits.parquet", folder / "ledgers" / "main.parquet")
    with curator(folder / "away" / "linked.parquet", ledger=place, version="2") as second:
        second.release(tacit.count(), epsilon=0.125)
    assert spent(place) == 0.375


def test_a_link_of_a_protected_table_is_not_public(folder: Path) -> None:
    assert release(written(folder, "plan.toml", 0.25), "a") == 0
    os.link(folder / "visits.parquet", folder / "towns.parquet")
    shutil.copyfile(folder / "visits.parquet", folder / "other.parquet")
    with pytest.raises(BadData, match="has a ledger"):
        curator(tacit.join(folder / "other.parquet", folder / "towns.parquet", on="person_id", public=True))


def test_a_hard_link_put_in_the_place_of_the_file_has_its_own_ledger(tmp_path: Path) -> None:
    """Between two releases of one curator the file becomes another name of one that has a ledger already."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def opened(name: str) -> tacit.Curator:
        return tacit.Curator(
            tmp_path / f"{name}.parquet",
            protect=tacit.rows(),
            schema={"x": tacit.integer(0, 9)},
            budget=tacit.Pure(epsilon=1.0),
            ledger=tmp_path / f"{name}.ledger",
        )

    for name, value in (("a", 1), ("b", 2)):
        pq.write_table(pa.table({"x": [value] * 50}), tmp_path / f"{name}.parquet")
        with opened(name) as curator:
            curator.release(tacit.count(), epsilon=0.25)
    with opened("a") as curator:
        curator.release(tacit.sum("x"), epsilon=0.25)
        (tmp_path / "link").hardlink_to(tmp_path / "b.parquet")
        (tmp_path / "link").replace(tmp_path / "a.parquet")
        with pytest.raises(LedgerError, match=r"b\.ledger is that of this table already"):
            curator.release(tacit.count(where="x = 2"), epsilon=0.25)
        assert len(curator.ledger.charges()) == 2
