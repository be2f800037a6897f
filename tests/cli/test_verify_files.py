"""What a reader opens is what was certified: every file of a release changed, with all digests made anew.

Whoever changes a file can write its digest into the manifest, and the manifest's own. So each change below leaves every
digest right, and `tacit verify` must see it nevertheless.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.cli import main
from tacit.curator.certificate import content_digest, json_text
from tacit.exact.canonical import sha256
from tacit.report.verifying import made_again

PLAN = """
[data]
path = "t.parquet"
[protect]
unit = "rows"
[schema.state]
kind = "category"
keys = ["CA", "NY", "=1", "St. Paul"]
[schema.town]
kind = "category"
[schema.day]
kind = "date"
low = "2020-01-01"
high = "2020-12-31"
[schema.age]
kind = "integer"
low = 0
high = 99
[budget]
epsilon = 9.0
delta = 1e-6
[ledger]
path = "t.ledger"
[report]
title = "Towns"
exports = ["xlsx", "sdmx"]
[[release]]
kind = "count"
name = "by state"
by = "state"
epsilon = 1.0
[[release]]
kind = "mean"
column = "day"
by = "state"
epsilon = 1.0
[[release]]
kind = "count"
name = "towns"
by = "town"
epsilon = 1.0
delta = 1e-7
[[release]]
kind = "margins"
columns = ["state", "age"]
order = 1
consistent = true
epsilon = 1.0
"""
Change = Callable[[Path], None]
STATES = "values/by-state.parquet"
SDMX = "sdmx/by-state.csv"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import datetime

    folder = tmp_path_factory.mktemp("made")
    size = 800
    days = [datetime.date(2020, 1 + i % 12, 1 + i % 28) for i in range(size)]
    states = [("CA", "NY", "=1", "St. Paul")[i % 4] for i in range(size)]
    towns = [("Ulm", "東京", "Wien")[i % 3] for i in range(size)]
    table = {"state": states, "town": towns, "day": days, "age": [i % 90 for i in range(size)]}
    pq.write_table(pa.table(table), folder / "t.parquet")
    (folder / "plan.toml").write_text(PLAN)
    assert main(["key", "make", str(folder / "key")]) == 0
    sign = ["--sign", str(folder / "key")]
    assert main(["release", str(folder / "plan.toml"), "--out", str(folder / "out")]) == 0
    assert main(["release", str(folder / "plan.toml"), "--out", str(folder / "signed"), *sign]) == 0
    return folder


def redo(folder: Path) -> None:
    """All digests of the files, and that of the manifest, as they are now."""
    path = folder / "manifest.json"
    listed = json.loads(path.read_text())
    listed["files"] = {name: sha256((folder / name).read_bytes()) for name in listed["files"]}
    listed["digest"] = content_digest(listed)
    path.write_text(json_text(listed) + "\n")


def verify(capsys: pytest.CaptureFixture[str], folder: Path, *more: object) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["verify", str(folder), *map(str, more), "--json"])
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    return code, {f["what"]: f["holds"] for f in json.loads(told.out)["findings"]}


def whole(name: str) -> str:
    return f"{name} is what is written of the certified values"


def test_what_was_written_is_made_again(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, key in (("out", ()), ("signed", ("--key", made / "key.pub"))):
        for more in ((), ("--ledger", made / "t.ledger")):
            code, found = verify(capsys, made / name, *more, *key)
            assert code == 0, [w for w, h in found.items() if h is False]
            for file in (
                STATES,
                "values/towns.parquet",
                SDMX,
                "tables.xlsx",
                "values/towns.csv-metadata.json",
            ):
                assert found[whole(file)] is True
            assert found[whole("report.html")] is True
            assert found["manifest.json says what the files were written from"] is (True if more else None)
            assert found.get("labels and titles are those of the custodian") is None


# --- Parquet -----------------------------------------------------------------------------------------------
def parquet(change: Callable[[pa.Table], pa.Table], **options: Any) -> Change:
    def made_so(folder: Path) -> None:
        table = change(pq.read_table(folder / STATES, partitioning=None))
        pq.write_table(table, folder / STATES, **{"compression": "none", **options})

    return made_so


def exchanged(table: pa.Table) -> pa.Table:
    """pandas takes the names of its columns from the footer, and not from the schema."""
    swap = {"value": "high", "high": "value"}
    columns = [
        {
            "name": swap.get(n, n),
            "field_name": n,
            "pandas_type": "int64",
            "numpy_type": "int64",
            "metadata": None,
        }
        if n in ("value", "low", "high")
        else {"name": n, "field_name": n, "pandas_type": "unicode", "numpy_type": "object", "metadata": None}
        for n in table.column_names
    ]
    said = {"index_columns": [], "column_indexes": [], "columns": columns, "pandas_version": "2.0.0"}
    return table.replace_schema_metadata({"pandas": json.dumps(said)})


def test_pandas_takes_names_from_the_footer(made: Path, tmp_path: Path) -> None:
    """The attack is one: the same file has another column of values for pandas."""
    shutil.copytree(made / "out", tmp_path / "out")
    before = pd.read_parquet(tmp_path / "out" / STATES)
    parquet(exchanged)(tmp_path / "out")
    after = pd.read_parquet(tmp_path / "out" / STATES)
    assert after["value"].tolist() == before["high"].tolist() != before["value"].tolist()
    assert pq.read_table(tmp_path / "out" / STATES)["value"].to_pylist() == before["value"].tolist()


def texts(table: pa.Table) -> pa.Table:
    at = table.schema.get_field_index("value")
    return table.set_column(at, "value", table["value"].cast(pa.string()))


PARQUET: dict[str, Change] = {
    "names for pandas": parquet(exchanged),
    "another word in the footer": parquet(lambda t: t.replace_schema_metadata({"note": "all values are 7"})),
    "numbers as texts": parquet(texts),
    "keys as a dictionary": parquet(lambda t: t.set_column(0, "state", t["state"].dictionary_encode())),
    "another order of columns": parquet(lambda t: t.select(["state", "high", "low", "value", "quality"])),
    "an index of pages": parquet(lambda t: t, write_page_index=True),
    "several groups of rows": parquet(lambda t: t, row_group_size=2),
}


@pytest.mark.parametrize("older", [False, True], ids=["this pyarrow", "says to be another pyarrow"])
@pytest.mark.parametrize("change", PARQUET)
def test_a_changed_parquet_file(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, older: bool
) -> None:
    place = tmp_path / "out"
    shutil.copytree(made / "out", place)
    PARQUET[change](place)
    if older:
        said_to_be(place, "pyarrow")
    redo(place)
    code, found = verify(capsys, place)
    assert code == 1
    assert found[whole(STATES)] is False


def said_to_be(folder: Path, library: str) -> None:
    listed = json.loads((folder / "manifest.json").read_text())
    listed["written"]["libraries"][library] = "1.0"
    (folder / "manifest.json").write_text(json.dumps(listed))


def test_a_parquet_file_of_another_version_of_its_writer(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other bytes of the same table: accepted if another version is named, and only then."""
    place = tmp_path / "out"
    shutil.copytree(made / "out", place)
    parquet(lambda t: t, compression="snappy", version="2.4", data_page_size=64)(place)
    redo(place)
    assert verify(capsys, place)[1][whole(STATES)] is False
    said_to_be(place, "pyarrow")
    redo(place)
    code, found = verify(capsys, place)
    assert (code, found[whole(STATES)]) == (0, True)


# --- exports, metadata, the page ---------------------------------------------------------------------------
def lines(name: str, change: Callable[[list[list[str]]], Any]) -> Change:
    def made_so(folder: Path) -> None:
        rows = list(csv.reader(io.StringIO((folder / name).read_text())))
        change(rows)
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        (folder / name).write_text(out.getvalue())

    return made_so


def second(rows: list[list[str]]) -> None:
    rows[0].append("OBS_VALUE")
    for row in rows[1:]:
        row.append("7")


def swapped(rows: list[list[str]]) -> None:
    rows[1][3:5], rows[2][3:5] = rows[2][3:5], rows[1][3:5]


def cell(column: str, text: str) -> Callable[[list[list[str]]], None]:
    def made_so(rows: list[list[str]]) -> None:
        rows[1][rows[0].index(column)] = text

    return made_so


def book(change: Callable[[Any], Any]) -> Change:
    def made_so(folder: Path) -> None:
        found = openpyxl.load_workbook(folder / "tables.xlsx")
        change(found)
        found.save(folder / "tables.xlsx")

    return made_so


def put(sheet: int, place: str, value: Any) -> Callable[[Any], None]:
    def made_so(found: Any) -> None:
        found.worksheets[sheet][place] = value

    return made_so


def formatted(found: Any) -> None:
    found.worksheets[1]["B2"].number_format = '"999"'


def keys_of_book(found: Any) -> None:
    sheet = found.worksheets[1]
    sheet["A2"].value, sheet["A3"].value = sheet["A3"].value, sheet["A2"].value


def hidden(found: Any) -> None:
    found.worksheets[1].row_dimensions[2].hidden = True


def part(name: str, old: bytes, new: bytes) -> Change:
    """One part of the workbook, all others byte by byte as they were."""

    def made_so(folder: Path) -> None:
        path = folder / "tables.xlsx"
        with zipfile.ZipFile(path) as source:
            held = [(info, source.read(info)) for info in source.infolist()]
        with zipfile.ZipFile(path, "w") as target:
            for info, body in held:
                if info.filename == name:
                    assert old in body
                    body = body.replace(old, new)
                target.writestr(info, body)

    return made_so


def text(name: str, old: str, new: str) -> Change:
    def made_so(folder: Path) -> None:
        held = (folder / name).read_text()
        assert old in held
        (folder / name).write_text(held.replace(old, new, 1))

    return made_so


def twice(folder: Path) -> None:
    """A second part of a name that is there: some programs take the first, others the last."""
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(folder / "tables.xlsx", "a") as target:
        target.writestr("xl/worksheets/sheet2.xml", "<x/>")


def before(folder: Path) -> None:
    path = folder / "tables.xlsx"
    path.write_bytes(b"PK" + path.read_bytes())


OTHERS: dict[str, tuple[str, Change]] = {
    "a second column of values": (SDMX, lines(SDMX, second)),
    "exchanged keys": (SDMX, lines(SDMX, swapped)),
    "another level": (SDMX, lines(SDMX, cell("CONF_LEVEL", "0.5"))),
    "another status": (SDMX, lines(SDMX, cell("OBS_STATUS", "M"))),
    "another flow": (SDMX, lines(SDMX, cell("STRUCTURE_ID", "OTHER:X(1.0)"))),
    "exchanged keys in a sheet": ("tables.xlsx", book(keys_of_book)),
    "a number format": ("tables.xlsx", book(formatted)),
    "a hidden row": ("tables.xlsx", book(hidden)),
    "another heading": ("tables.xlsx", book(put(1, "B1", "high"))),
    "a cell beside the table": ("tables.xlsx", book(put(1, "H2", "the true value is 7"))),
    "a sentence of the cover": ("tables.xlsx", book(put(0, "B4", "2019-01-01"))),
    "a format in a part": ("tables.xlsx", part("xl/styles.xml", b'numFmtId="3"', b'numFmtId="9"')),
    "a part twice": ("tables.xlsx", twice),
    "bytes before the archive": ("tables.xlsx", before),
    "metadata that exchange columns": (
        "values/by-state.csv-metadata.json",
        text("values/by-state.csv-metadata.json", "lower end", "upper end"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", OTHERS)
def test_a_changed_export(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    place = tmp_path / "out"
    shutil.copytree(made / "out", place)
    name, forge = OTHERS[change]
    before = (place / name).read_bytes()
    forge(place)
    assert (place / name).read_bytes() != before
    redo(place)
    code, found = verify(capsys, place)
    assert code == 1
    assert found[whole(name)] is False
    # A signed folder: the manifest is another one than was signed.
    shutil.rmtree(place)
    shutil.copytree(made / "signed", place)
    forge(place)
    redo(place)
    assert verify(capsys, place, "--key", made / "key.pub")[1]["manifest.json is signed by the key"] is False


SENTENCES = ("a sentence of the cover", "a format in a part", "a part twice", "bytes before the archive",
             "metadata that exchange columns")  # fmt: skip


@pytest.mark.parametrize("change", [name for name in OTHERS if name not in SENTENCES])
def test_a_changed_export_that_is_said_to_be_of_another_version(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    """Who wrote a file is what its forger says: keys, codes and numbers are compared nevertheless."""
    place = tmp_path / "out"
    shutil.copytree(made / "out", place)
    name, forge = OTHERS[change]
    forge(place)
    said_to_be(place, "tacit")
    redo(place)
    for more in ((), ("--ledger", made / "t.ledger")):
        code, found = verify(capsys, place, *more)
        assert (code, found[whole(name)]) == (1, False)


def test_other_words_of_another_version_are_no_alarm(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "out"
    shutil.copytree(made / "out", place)
    book(put(0, "B4", "in other words"))(place)
    page = (place / "report.html").read_text()
    (place / "report.html").write_text(page.replace("The budget", "Budget"))
    said_to_be(place, "tacit")
    redo(place)
    code, found = verify(capsys, place)
    assert (code, found[whole("tables.xlsx")], found[whole("report.html")]) == (0, None, None)


def test_a_number_on_the_page(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import re

    place = tmp_path / "out"
    shutil.copytree(made / "out", place)
    page = (place / "report.html").read_text()
    changed = re.sub(r'(<td class="n num">)\d+(</td>)', r"\g<1>777\g<2>", page, count=1)
    assert changed != page
    (place / "report.html").write_text(changed)
    redo(place)
    code, found = verify(capsys, place, "--ledger", made / "t.ledger")
    assert (code, found[whole("report.html")]) == (1, False)


def test_a_workbook_of_another_version_of_its_writer(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another layout is neither true nor false; another cell is false."""
    place = tmp_path / "out"
    shutil.copytree(made / "out", place)
    book(lambda found: None)(place)
    said_to_be(place, "openpyxl")
    redo(place)
    code, found = verify(capsys, place)
    assert (code, found[whole("tables.xlsx")]) == (0, None)
    for forge in (formatted, keys_of_book, hidden, put(1, "H2", 7), put(0, "B3", "2019-01-01")):
        book(forge)(place)
        redo(place)
        assert verify(capsys, place)[1][whole("tables.xlsx")] is False
        shutil.copy(made / "out" / "tables.xlsx", place / "tables.xlsx")


def test_another_way_of_packing_is_the_same_workbook(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "out"
    shutil.copytree(made / "out", place)
    with zipfile.ZipFile(place / "tables.xlsx") as source:
        held = [(info, source.read(info)) for info in source.infolist()]
    with zipfile.ZipFile(place / "tables.xlsx", "w") as target:
        for info, body in held:
            target.writestr(info, body, compresslevel=1)
    assert (place / "tables.xlsx").read_bytes() != (made / "out" / "tables.xlsx").read_bytes()
    redo(place)
    code, found = verify(capsys, place)
    assert (code, found[whole("tables.xlsx")]) == (0, True)


def test_an_archive_is_read_from_its_first_byte_to_its_last(made: Path) -> None:
    from tacit.report.verifying import _packed_alike

    body = (made / "out" / "tables.xlsx").read_bytes()
    assert _packed_alike(body, body)
    for odd in (body + b"x", b"x" + body, body[:-1], body[:40] + b"\x00" + body[41:], b""):
        assert not _packed_alike(odd, body)
    directory = body.rindex(b"xl/worksheets/sheet2.xml")
    renamed = body[:directory] + b"xl/worksheets/sheet3.xml" + body[directory + 24 :]
    assert not _packed_alike(renamed, body), "a directory that names another part"


# --- the manifest, certificates ----------------------------------------------------------------------------
def edit(name: str, change: Callable[[dict[str, Any]], Any]) -> Change:
    def made_so(folder: Path) -> None:
        said = json.loads((folder / name).read_text())
        change(said)
        said["digest"] = content_digest(said)
        (folder / name).write_text(json_text(said) + "\n")

    return made_so


def more_files(folder: Path) -> None:
    (folder / "values" / "by-state.txt").write_text("CA 7\n")
    edit("manifest.json", lambda m: m["files"].update({"values/by-state.txt": ""}))(folder)


def test_what_else_stands_in_a_folder(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = "certificates/by-state.json"
    changes: dict[str, Change] = {
        "the folder has the files that are written, and no others": more_files,
        f"{one} has the parts of a certificate": edit(one, lambda c: c.update(note="CA has 7")),
        f"{one} has exactly the text of its content": text(one, '"confidence": 0.95', '"confidence": 0.950'),
        "manifest.json says what the files were written from": edit(
            "manifest.json", lambda m: m.pop("written")
        ),
        "values/by-state.csv is a table of this release": text("values/by-state.csv", "good", "better"),
    }
    for what, change in changes.items():
        place = tmp_path / "out"
        shutil.copytree(made / "out", place)
        change(place)
        if what.startswith("values/"):
            digest = sha256((place / "values/by-state.csv").read_bytes())
            edit(one, lambda c, d=digest: c["values"].update(sha256=d))(place)  # type: ignore[misc]
        redo(place)
        code, found = verify(capsys, place)
        assert (code, found[what]) == (1, False), what
        shutil.rmtree(place)


def anew(place: Path) -> None:
    """All files written again from what certificates, values and manifest say now: the work of a careful forger."""
    from tacit.curator.plan_files import read_plan
    from tacit.report import verifying
    from tacit.report.folder import Written, release_files

    written = Written.read(json.loads((place / "manifest.json").read_text())["written"])
    file = read_plan(place / "plan.toml")
    plan = file.plan()
    said = {p.stem: json.loads(p.read_text()) for p in (place / "certificates").iterdir()}
    releases = [
        verifying._certified(place, plan, r, said[r.name.replace(" ", "-")], written) for r in plan.releases
    ]
    for name, body in release_files(file, plan, releases, budget=file.limit, written=written).items():
        (place / name).write_bytes(body)
    redo(place)


def test_what_had_been_spent_is_what_the_ledger_says(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page that rests on another sum is made again by it: the ledger knows the sum."""
    place = tmp_path / "out"
    shutil.copytree(made / "out", place)

    def less(m: dict[str, Any]) -> None:
        m["written"]["spent"]["bound"]["epsilon"] = 0.001

    edit("manifest.json", less)(place)
    anew(place)
    code, found = verify(capsys, place, "--ledger", made / "t.ledger")
    assert found[whole("report.html")] is True, "the page follows from what is said"
    assert (code, found["manifest.json says what the files were written from"]) == (1, False)


def test_an_answer_from_the_record_has_the_page_of_the_first(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody can tell later which of two folders was written first: no file says so, and a word of it is refused."""
    again = tmp_path / "again"
    assert main(["release", str(made / "plan.toml"), "--out", str(again)]) == 0
    assert "answered from the record" in capsys.readouterr().out
    for said in (True, False):
        place = tmp_path / "out"
        shutil.copytree(again, place)
        edit("manifest.json", lambda m, s=said: m["written"].update(replayed=s))(place)  # type: ignore[misc]
        redo(place)
        code, found = verify(capsys, place, "--ledger", made / "t.ledger")
        assert (code, found["manifest.json says what the files were written from"]) == (1, False)
        shutil.rmtree(place)
    assert (again / "report.html").read_bytes() == (made / "out" / "report.html").read_bytes()
    code, found = verify(capsys, again, "--ledger", made / "t.ledger")
    assert (code, found["manifest.json says what the files were written from"]) == (0, True)


def test_the_page_names_no_key_that_did_not_sign(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "out"
    shutil.copytree(made / "out", place)
    edit("manifest.json", lambda m: m["written"].update(signed_by="0123456789abcdef"))(place)
    anew(place)
    assert "signed by the key with the fingerprint 0123456789abcdef" in (place / "report.html").read_text()
    code, found = verify(capsys, place)
    assert (code, found["report.html names the key of the signature"]) == (1, False)


def test_the_page_replaces_nothing_of_which_the_ledger_does_not_know(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "out"
    shutil.copytree(made / "out", place)
    edit("manifest.json", lambda m: m["written"].update(replaces=["the census of charge 1"]))(place)
    anew(place)
    assert "the census of charge 1" in (place / "report.html").read_text()
    code, found = verify(capsys, place, "--ledger", made / "t.ledger")
    assert (code, found["manifest.json says what the files were written from"]) == (1, False)


def test_a_forger_who_writes_everything_anew_meets_the_ledger_and_the_signature(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without ledger and key nobody can tell, and the answer says what was not checked."""
    place = tmp_path / "out"
    shutil.copytree(made / "signed", place)
    name, one = "values/by-state.csv", "certificates/by-state.json"

    def shifted(rows: list[list[str]]) -> None:
        for column in map(rows[0].index, ("value", "low", "high")):
            rows[1][column] = str(int(rows[1][column]) + 1)

    lines(name, shifted)(place)
    digest = sha256((place / name).read_bytes())
    edit(one, lambda c: c["values"].update(sha256=digest))(place)
    anew(place)
    code, found = verify(capsys, place)
    assert (code, found[f"{one} is signed by the key"]) == (0, None)
    assert verify(capsys, place, "--ledger", made / "t.ledger")[0] == 1
    assert verify(capsys, place, "--key", made / "key.pub")[1][f"{one} is signed by the key"] is False


@pytest.mark.parametrize("first", [False, True], ids=["this form", "the first form"])
def test_files_that_are_gone_or_damaged(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], first: bool
) -> None:
    """An answer for each, and no traceback."""
    held = made / "out"
    if first:
        held = golden(tmp_path)
    for path in sorted(p for p in held.rglob("*") if p.is_file()):
        name = path.relative_to(held).as_posix()
        for damage in (None, b"", b"{}", path.read_bytes()[: path.stat().st_size // 2]):
            place = tmp_path / "damaged"
            shutil.copytree(held, place)
            if damage is None:
                (place / name).unlink()
            else:
                (place / name).write_bytes(damage)
            found = [f for f in made_again(place) if f.holds is False]
            assert (
                found
                or name in ("manifest.json", "plan.toml")
                or name.startswith("certificates/")
                or (first and name == "report.html")
            ), (name, damage)
            shutil.rmtree(place)
    for odd in (None, 5, "x", [], {}, {"form": 2}, {"form": 99}):
        place = tmp_path / "damaged"
        shutil.copytree(made / "out", place)
        edit("manifest.json", lambda m, o=odd: m.update(written=o))(place)  # type: ignore[misc]
        assert verify(capsys, place)[0] == 1
        shutil.rmtree(place)


# --- folders of the first form -----------------------------------------------------------------------------
def golden(folder: Path) -> Path:
    """A folder that 0.1.0 wrote, with a workbook and SDMX-CSV."""
    with tarfile.open(Path(__file__).parents[1] / "golden" / "0.1.0" / "exports.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder / "out"


def test_exports_of_the_first_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = golden(tmp_path)
    listed = json.loads((first / "manifest.json").read_text())
    assert "written" not in listed
    sdmx = next(n for n in listed["files"] if n.startswith("sdmx/"))
    held = next(n for n in listed["files"] if n.endswith(".parquet"))
    code, found = verify(capsys, first)
    assert code == 0
    assert (found[whole(sdmx)], found[whole(held)]) == (True, True)
    assert (found[whole("tables.xlsx")], found[whole("report.html")]) == (None, None)
    for name, forge in (
        (sdmx, lines(sdmx, swapped)),
        (sdmx, lines(sdmx, second)),
        ("tables.xlsx", book(keys_of_book)),
        ("tables.xlsx", book(formatted)),
        (held, lambda f: pq.write_table(exchanged(pq.read_table(f / held, partitioning=None)), f / held)),
    ):
        place = tmp_path / "changed"
        shutil.copytree(first, place)
        forge(place)
        redo(place)
        code, found = verify(capsys, place)
        assert (code, found[whole(name)]) == (1, False), name
        shutil.rmtree(place)
