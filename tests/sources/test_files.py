"""Files: a path is a name, what is not plain is asked for by name, what is cut off is found before a row is read."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit.statistics as ask
from tacit.errors import BadData, InvalidParameter, ReadFailed, UnknownColumn
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, integer, number, open_table
from tacit.sources.opening.files import files

KEY = b"0123456789abcdef-secret"
PRIVATE = "Zebulon"
SCHEMA = Schema({"x": integer(0, 9)})


def total(data, schema=SCHEMA, statistic=None, unit=None):
    unit, statistic = unit or rows(), statistic or ask.sum("x")
    with open_table(data, schema=schema, unit=unit) as table:
        return int(
            np.ravel(next(iter(ask.read(table, [statistic.on(Schema(schema), unit)], key=KEY)[0].values())))[
                0
            ]
        )


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        header = ('"' + name.replace('"', '""') + '"' if '"' in name else name for name in columns)
        lines = [",".join(header), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        path.write_text("\n".join(lines) + "\n")
    else:
        pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_path_is_the_name_of_one_file(tmp_path, ending):
    names = ["a[1]", "a1", "b*", "bx", "c?", "cx", "{d,e}", "d", "o'clock", "'; --", 'f"g', "h;"]
    for value, name in enumerate(names, start=1):
        write(tmp_path / f"{name}.{ending}", x=[value])
    for value, name in enumerate(names, start=1):
        assert total(tmp_path / f"{name}.{ending}", Schema({"x": integer(0, 99)})) == value
    with pytest.raises(BadData, match="pattern=True"):
        open_table(tmp_path / f"?1.{ending}", schema=SCHEMA, unit=rows())


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_columns_name_is_only_a_name(tmp_path, ending):
    """Quotes, and what would end a statement."""
    for name in ('a "b" c', '"', "x; drop table y", "it's"):
        path = write(tmp_path / f"named.{ending}", **{name: [1, 2, 4], "other": [8, 8, 8]})
        schema = Schema({name: integer(0, 9)})
        with open_table(path, schema=schema, unit=rows()) as table:
            (read,) = ask.read(table, [ask.sum(name).on(schema, rows())])
        assert int(read["sum"]) == 7


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_pattern_is_asked_for_by_name(tmp_path, ending):
    for value in (1, 2, 4):
        write(tmp_path / f"a{value}.{ending}", x=[value])
    assert total(files(tmp_path / f"a*.{ending}", pattern=True)) == 7
    assert total(files(tmp_path / f"a[12].{ending}", pattern=True)) == 3
    with pytest.raises(BadData, match="is not there"):
        total(files(tmp_path / f"b*.{ending}", pattern=True))


def test_the_mark_follows_from_the_ending_of_the_file_alone(tmp_path):
    assert total(write(tmp_path / "a.tsv" / "b.tsv.old.csv", x=[1, 2], y=[3, 4])) == 3


def test_folders_tell_nothing_unless_asked_by_name(tmp_path):
    """A folder called person_id=3 would make one person of all."""
    unit, schema = people("person_id", at_most=1), Schema({"x": integer(0, 9)})
    path = write(tmp_path / "person_id=3" / "t.parquet", person_id=["a", "b", "c"], x=[1, 1, 1])
    assert total(path, schema, ask.count(of="people"), unit) == 3
    # Numbers too, which a reader would take the folder's name for without a change of type.
    numbered = write(tmp_path / "person_id=3" / "n.parquet", person_id=[1, 2, 3], x=[1, 1, 1])
    assert total(numbered, schema, ask.count(of="people"), unit) == 3
    assert (
        total(
            files(tmp_path / "person_id=*" / "t.parquet", pattern=True), schema, ask.count(of="people"), unit
        )
        == 3
    )
    with pytest.raises(BadData, match="in its files and in their path"):
        total(files(path, partitions=["person_id"]), schema, ask.count(of="people"), unit)
    write(tmp_path / "state=CA" / "t.parquet", x=[1, 2])
    write(tmp_path / "state=N%20Y" / "t.parquet", x=[4])
    write(tmp_path / "state=__HIVE_DEFAULT_PARTITION__" / "t.parquet", x=[5])
    both = files(tmp_path / "state=*" / "t.parquet", pattern=True, partitions=["state"])
    schema = Schema({"state": category(["N Y", "CA"]), "x": integer(0, 9)})
    assert total(both, schema, ask.sum("x", by="state")) == 4
    assert total(both, schema, ask.count(by="state")) == 1
    assert total(both, schema, ask.sum("x")) == 12
    with pytest.raises(BadData, match="no folder called year="):
        total(files(tmp_path / "state=*" / "t.parquet", pattern=True, partitions=["year"]), schema)


def test_files_of_different_columns_are_refused_from_their_footers(tmp_path):
    write(tmp_path / "a1.parquet", x=[1])
    write(tmp_path / "a2.parquet", y=[1])
    with pytest.raises(UnknownColumn):
        open_table(files(tmp_path / "a*.parquet", pattern=True), schema=SCHEMA, unit=rows())
    write(tmp_path / "c1.csv", x=[1], y=[2])
    write(tmp_path / "c2.csv", y=[1], x=[2])
    with pytest.raises(BadData, match="headers differ"):
        open_table(files(tmp_path / "c*.csv", pattern=True), schema=SCHEMA, unit=rows())


@pytest.mark.parametrize(
    "wrong", [{"pattern": "no"}, {"multiline": 1}, {"partitions": "x"}, {"partitions": [3]}]
)
def test_wishes_of_another_type_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        files("a.csv", **wrong)
    with pytest.raises(InvalidParameter):
        files("a.csv", partitions=["x"])
    with pytest.raises(InvalidParameter):
        files("a.parquet", multiline=True)


def test_a_file_that_is_cut_off_is_found_from_its_metadata(tmp_path):
    """Also where the footer is whole and points behind what is left."""
    path = write(tmp_path / "t.parquet", x=list(np.random.default_rng(1).integers(0, 9, 50_000)))
    whole = path.read_bytes()
    for left in (0, 3, 4, 12, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:left])
        with pytest.raises(BadData, match="not a readable Parquet file"):
            open_table(path, schema=SCHEMA, unit=rows())
    length = int.from_bytes(whole[-8:-4], "little")
    path.write_bytes(whole[:1000] + whole[-8 - length :])
    with pytest.raises(BadData, match="not a readable Parquet file"):
        open_table(path, schema=SCHEMA, unit=rows())


def test_damaged_pages_say_the_fixed_sentence_when_they_are_read(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"x": np.random.default_rng(1).integers(0, 9, 50_000)})
    pq.write_table(table, path, use_dictionary=False, compression="zstd")
    data = bytearray(path.read_bytes())
    for i in range(100, len(data) - 4000, 40):
        data[i] ^= 0x5A
    path.write_bytes(bytes(data))
    with open_table(path, schema=SCHEMA, unit=rows()) as opened, pytest.raises(ReadFailed) as caught:
        ask.read(opened, [ask.sum("x").on(SCHEMA, rows())])
    assert caught.value.__context__ is None


BAD = [
    b"1",
    b"1,2,3",
    b'"' + PRIVATE.encode(),
    b"\xff,1",
    b'1,"2',
    b"x" * (3 << 20) + b",1",
    b'1,2"',
    b"\0\0\0",
]


@pytest.mark.parametrize("line", BAD, ids=lambda b: repr(b[:9]))
@pytest.mark.parametrize("packed", [False, True])
def test_a_broken_line_is_one_record_without_values(tmp_path, line, packed):
    lines = [b"name,x", *[b"Ann,1"] * 400, line, *[b"Bob,2"] * 300]
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    content = b"\r\n".join(lines) + b"\r\n"
    path.write_bytes(gzip.compress(content) if packed else content)
    schema = Schema({"name": category(["Ann", "Bob"]), "x": integer(0, 9)})
    with open_table(path, schema=schema, unit=rows()) as table:
        asked = [ask.count(), ask.count(by="name"), ask.sum("x", where="not name is missing")]
        read = ask.read(table, [s.on(schema, rows()) for s in asked])
    assert [np.ravel(next(iter(r.values()))).tolist() for r in read] == [[701], [400, 300], [1000]]
    assert total(path, {"x": integer(0, 9)}, ask.count(of="people"), people("name", at_most=2000)) <= 3


def test_a_packed_file_that_is_cut_off_is_one_fixed_sentence(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"x\n" + os.urandom(20000).hex().encode() + b"\n1\n" * 20)[:-500])
    with open_table(path, schema=SCHEMA, unit=rows()) as table:
        for _ in range(2):
            with pytest.raises(ReadFailed):
                ask.read(table, [ask.count().on(SCHEMA, rows())])
    path.write_bytes(b"x\n1\n")
    with pytest.raises(BadData):
        open_table(path, schema=SCHEMA, unit=rows())


def test_a_csv_without_a_header_shows_nobody(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"{PRIVATE},3\nAnn,4\n")
    with pytest.raises(UnknownColumn) as caught:
        open_table(path, schema={"Zebulom": category()}, unit=rows())
    assert PRIVATE not in str(caught.value)


def test_opening_reads_no_row(tmp_path, monkeypatch):
    """Whatever stands behind the header and the footer could stop nobody: it is not looked at."""
    from tacit.sources.opening import frames, parquet
    from tacit.sources.opening import textfiles as lines

    for module, name in ((lines, "_blocks"), (parquet, "_batches"), (frames, "_copied")):
        monkeypatch.setattr(module, name, lambda *_: pytest.fail("rows were read"))
    for data in (
        write(tmp_path / "t.csv", x=[1]),
        write(tmp_path / "t.parquet", x=[1]),
        pa.table({"x": [1]}),
    ):
        open_table(data, schema=SCHEMA, unit=rows()).close()


def test_lines_in_quotes_are_a_condition(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('name,x\n"A\nnn",1\nBob,2\n')
    schema = Schema({"name": category(["A\nnn", "Bob"]), "x": number(0, 9)})
    with open_table(files(path, multiline=True), schema=schema, unit=rows()) as table:
        read = ask.read(table, [ask.count(by="name").on(schema, rows())])[0]["count"]
        assert list(read) == [1, 1]
        assert len(table.conditions) == 1
    with open_table(path, schema=schema, unit=rows()) as table:
        assert list(ask.read(table, [ask.count(by="name").on(schema, rows())])[0]["count"]) == [0, 1]
        assert table.conditions == ()


def test_a_column_without_a_name_is_passed_over_by_its_custodian_too(tmp_path):
    """In Parquet as in CSV: the reason would be that the file is none."""
    from tacit.sources.microdata import open_microdata

    table = pa.table([pa.array(["r1", "r2"]), pa.array([1, 2])], names=["", "x"])
    pq.write_table(table, tmp_path / "t.parquet")
    for data in (tmp_path / "t.parquet", table, table.to_pandas()):
        with open_microdata(data) as found:
            assert found.columns == ("x",)
            assert found.rows()["x"].to_pylist() == [1, 2]
    assert total(tmp_path / "t.parquet") == 3
