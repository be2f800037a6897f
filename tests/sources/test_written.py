"""CSV as R, pandas and Excel write it: what is declared is read, what is not as declared is missing, alone."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

import tacit
import tacit.statistics as ask
from tacit.errors import BadData, InvalidParameter, UnknownColumn, UnknownName
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, date, flag, integer, number, open_table
from tacit.sources.opening import textfiles as encodings
from tacit.sources.opening import textfiles as lines
from tacit.sources.opening.files import ENCODINGS, files

KEY = b"0123456789abcdef-secret"
SCHEMA = Schema(
    {
        "age": integer(0, 120),
        "income": number(0, 1000, spacing=0.25),
        "town": category(["Zürich", "Genève", "Bern"]),
        "seen": date("2020-01-01", "2024-12-31"),
        "code": category([1, 2, 3]),
        "insured": flag(),
    }
)
WRITE_CSV = b""""","age","income","town","seen","code","insured"
"1",30,12.5,"Z\xfcrich",2021-01-31,1,TRUE
"2",40,NA,"Gen\xe8ve",NA,2,FALSE
"3",NA,100,"Bern",2022-03-04,3,NA
"""
WRITE_CSV2 = (
    WRITE_CSV.replace(b",", b";")
    .replace(b"12.5", b"12,5")
    .replace(b"2021-01-31", b"31.01.2021")
    .replace(b"2022-03-04", b"4/3/2022")
)


def read(data, statistic, schema=SCHEMA, unit=None):
    unit = unit or rows()
    with open_table(data, schema=schema, unit=unit) as table:
        (found,) = ask.read(table, [statistic.on(Schema(schema), unit)], key=KEY)
    return [np.ravel(v).tolist() for v in found.values()]


def everything(data, schema=SCHEMA):
    """What the engine holds, row by row."""
    with open_table(data, schema=schema, unit=rows()) as table:
        frame = table.read(lambda: table.relation.to_pyarrow())
    return sorted((tuple(r.values()) for r in frame.to_pylist()), key=repr)


def write(path, content):
    path.write_bytes(content)
    return path


def test_what_r_and_pandas_and_excel_write_is_one_table(tmp_path):
    """Row names without a header, semicolons, decimal commas, latin-1, UTF-16, day-first dates, a mark in front."""
    plain = WRITE_CSV.decode("latin-1").replace("NA", "").encode()
    same = [
        write(tmp_path / "plain.csv", plain),
        files(write(tmp_path / "r.csv", WRITE_CSV), encoding="latin-1", missing=["NA"]),
        files(
            write(tmp_path / "r2.csv", WRITE_CSV2), encoding="cp1252", decimal=",", dates="day-first", missing=["NA"]
        ),
        write(tmp_path / "bom.csv", b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n")),
        files(write(tmp_path / "wide.csv", plain.decode().encode("utf-16")), encoding="utf-16"),
        files(write(tmp_path / "wide2.csv", plain.decode().encode("utf-16-be")), encoding="utf-16-be"),
        write(tmp_path / "tabs.csv", plain.replace(b",", b"\t")),
        write(tmp_path / "bars.csv", plain.replace(b",", b"|")),
        write(tmp_path / "semicolons.tsv", plain.replace(b",", b";")),
    ]  # fmt: skip
    first, *others = [everything(data) for data in same]
    assert len(first) == 3
    assert sum(v is None for row in first for v in row) == 4
    for other in others:
        assert other == first


def test_the_separator_is_found_from_the_header_alone(tmp_path):
    schema = {"a b": integer(0, 9), "c": integer(0, 9)}
    for body in (b"1,1;2\n3;4\n", b"9,9,9,9\n1;2\n", b"\n", b""):
        path = write(tmp_path / "t.csv", b'"a b";c;"x, y"\n' + body.replace(b"\n", b";0\n"))
        with open_table(path, schema=schema, unit=rows()) as table:
            assert sorted(table.relation.columns) == ["a b", "c"]
    assert read(write(tmp_path / "t.csv", b"x;y\n1;2\n3,3,3;4\n"), ask.sum("y"), {"y": integer(0, 9)})[0] == [
        6
    ]


def test_a_wrong_separator_is_refused_with_the_reason_and_a_headerless_file_shows_nobody(tmp_path):
    path = write(tmp_path / "t.csv", WRITE_CSV2)
    with pytest.raises(BadData, match="separated by ';', not by ','"):
        open_table(files(path, separator=",", encoding="latin-1"), schema=SCHEMA, unit=rows())
    with pytest.raises(UnknownColumn) as caught:
        open_table(
            write(tmp_path / "n.csv", b"Zebulon;42\nYuri;43\n"), schema={"age": integer(0, 9)}, unit=rows()
        )
    assert "Zebulon" not in str(caught.value)
    with pytest.raises(UnknownColumn):
        open_table(files(path, encoding="latin-1"), schema={"wage": integer(0, 9)}, unit=rows())


@pytest.mark.parametrize(
    ("content", "said", "reason"),
    [
        (b"\xff\xfea\0\n\0", None, "mark of UTF-16"),
        (b"\xff\xfea\0\n\0", "latin-1", "mark of UTF-16"),
        (b"\xef\xbb\xbfa\n", "latin-1", "mark of UTF-8"),
        (b"\xef\xbb\xbfa\n", "utf-16", "mark of UTF-8"),
        (b"a\n", "utf-16", "does not begin with the mark"),
        (b"\xe9\n", None, "no header"),
    ],
)
def test_what_the_header_shows_of_its_encoding_is_refused(tmp_path, content, said, reason):
    path = write(tmp_path / "t.csv", content)
    with pytest.raises(BadData, match=reason):
        open_table(files(path, encoding=said), schema={"a": integer(0, 9)}, unit=rows())


def test_a_column_that_no_question_uses_blocks_none(tmp_path):
    """Without a name, there twice, called as ours are, or alike but for case: the others are read."""
    for head in (b'"",x,x,a', b"A,x,X,a", b"__tacit_twin2,,,a", b"x,x ,x,a"):
        path = write(tmp_path / "t.csv", head + b"\n1,2,3,4\n1,2,3,5\n")
        if b"A," in head:
            continue
        assert read(path, ask.sum("a"), {"a": integer(0, 9)})[0] == [9]
    path = write(tmp_path / "t.csv", b"a,a,b\n1,2,3\n")
    assert read(path, ask.sum("b"), {"b": integer(0, 9)})[0] == [3]
    with pytest.raises(BadData, match="several columns"):
        open_table(path, schema={"a": integer(0, 9)}, unit=rows())


@pytest.mark.parametrize("text", ["1.5", "1,5,5", "1.000,5", "x", "1,5e", "٣", ""])
def test_a_number_that_is_not_written_as_declared_is_missing_alone(tmp_path, text):
    schema = {"x": number(0, 1000, spacing=0.25)}
    body = f"x;y\n2,5;a\n{text};b\n4;c\n".encode()
    found = everything(files(write(tmp_path / "t.csv", body), decimal=","), schema)
    assert sorted(v for (v,) in found if v is not None) == [2.5, 4.0]
    assert len(found) == 3


@pytest.mark.parametrize(
    ("order", "text", "day"),
    [
        ("day-first", "3/4/2021", "2021-04-03"), ("day-first", "03.04.2021 12:30", "2021-04-03"),
        ("month-first", "3/4/2021", "2021-03-04"), ("day-first", "2021-04-03", "2021-04-03"),
        ("day-first", "13/13/2021", None), ("month-first", "13/3/2021", None), ("day-first", "3/4/21", None),
        ("day-first", "3/4/20211", None), ("year-first", "3/4/2021", None), ("day-first", "31.02.2021", None),
        (None, "3/4/2021", None),
    ],
)  # fmt: skip
def test_days_in_the_declared_order(tmp_path, order, text, day):
    schema = {"d": date("2020-01-01", "2024-12-31")}
    ((found,),) = everything(files(write(tmp_path / "t.csv", f"d\n{text}\n".encode()), dates=order), schema)
    assert (None if found is None else found.isoformat()) == day


def test_words_for_no_value_count_for_nobody_too(tmp_path):
    """A person called NA is nobody: rows of many people would be one person's."""
    body = b"who;x\na;1\nNA;2\n NA ;4\nb;NA\n"
    path = write(tmp_path / "t.csv", body)
    unit, schema = people("who", at_most=3), {"x": integer(0, 9)}
    assert read(files(path, missing=["NA"]), ask.count(of="people"), schema, unit) == [[2]]
    assert read(path, ask.count(of="people"), schema, unit) == [[4]]


@pytest.mark.parametrize("encoding", sorted(set(ENCODINGS.values())))
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 16])
def test_a_stream_is_the_same_in_pieces_of_any_size(tmp_path, monkeypatch, encoding, size):
    """Against Python's decoder, on random text; and every line of random bytes by itself."""
    # The header is read in pieces of its own, which would swallow a short file.
    monkeypatch.setattr(encodings, "CHUNK", size)
    chance = random.Random(size)
    letters = "ab,\n;" + ("Я" if encoding == "cp1251" else "é") + ("€𝄞" if encoding.startswith("utf") else "")
    text = "".join(chance.choices(letters, k=300))
    path = write(tmp_path / "t", text.encode(encoding))
    with encodings.opened(str(path), encoding) as stream:
        parts = [stream.readline(1 << 20)]
        while part := stream.read(size):
            parts.append(part)
    assert b"".join(parts).decode("utf-8") == text


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "cp1250", "utf-16-le", "utf-16-be", "utf-16"])
@pytest.mark.parametrize("block", [2, 64, 1 << 20])
def test_one_record_of_any_bytes_moves_no_other(tmp_path, monkeypatch, encoding, block):
    """Units of 16 bits in UTF-16, halves of pairs among them; single bytes elsewhere."""
    monkeypatch.setattr(lines, "BLOCK", block)
    chance = random.Random(block)
    mark = b"\xff\xfe" if encoding == "utf-16" else b""
    real = "utf-16-le" if encoding == "utf-16" else encoding

    def found(odd):
        body = [line.encode(real) for line in ("a,b", "1,x")]
        ends = "\n".encode(real)
        path = write(tmp_path / "t.csv", mark + ends.join([*body, *odd, "2,y".encode(real), b""]))
        batches = lines.records(str(path), ["a", "b"], ["a", "b"], mark=",", encoding=encoding)
        return [tuple(r.values()) for batch in batches for r in batch.to_pylist()]

    assert found([]) == [("1", "x"), ("2", "y")]
    for _ in range(60):
        size = chance.randrange(1, 12)
        if real.startswith("utf-16"):
            order = "little" if real.endswith("le") else "big"
            near = [0xD800, 0xDC00, 0xDBFF, 0xDFFF, 0xFFFF, 0xFEFF, 0, 0x2C, 0x22, 0x0D, 0x0A0A, 0x0A00]
            units = [
                chance.choice(near) if chance.random() < 0.7 else chance.randrange(65536) for _ in range(size)
            ]
            odd = b"".join(u.to_bytes(2, order) for u in units if u != 0x0A)
        else:
            odd = bytes(b for b in chance.randbytes(size) if b != 0x0A)
        assert [r for i, r in enumerate(found([odd])) if i != 1] == [("1", "x"), ("2", "y")]


def test_bytes_without_a_character_are_missing_in_their_field(tmp_path):
    schema = {"a": category(["x", "y"]), "b": integer(0, 9)}
    for encoding, body in (("cp1252", b"a;b\nx;1\nx\x81;2\ny;3\n"), ("utf-8", b"a;b\nx;1\nx\xe9;2\ny;3\n")):
        path = write(tmp_path / "t.csv", body)
        assert read(files(path, encoding=encoding), ask.count(by="a"), schema)[0] == [1, 1]
        assert read(files(path, encoding=encoding), ask.sum("b"), schema)[0] == [6]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"separator": "::"}, UnknownName), ({"separator": 3}, UnknownName), ({"encoding": "shift-jis"}, UnknownName),
        ({"encoding": 8}, UnknownName), ({"decimal": ";"}, UnknownName), ({"dates": "us"}, UnknownName),
        ({"missing": "NA"}, InvalidParameter), ({"missing": [3]}, InvalidParameter),
        ({"decimal": ",", "separator": ","}, InvalidParameter),
    ],
)  # fmt: skip
def test_words_that_are_not_known_are_refused(wrong, error):
    with pytest.raises(error):
        files("t.csv", **wrong)
    with pytest.raises(InvalidParameter, match="left out for Parquet files"):
        files("t.parquet", separator=";")


def test_a_list_is_names_and_each_file_counts_once(tmp_path):
    for name, value in (("a*", 1), ("ab", 2), ("c", 4)):
        write(tmp_path / f"{name}.csv", b"x\n%d\n" % value)
    schema = {"x": integer(0, 9)}
    assert read(files([tmp_path / "a*.csv", tmp_path / "c.csv"]), ask.sum("x"), schema)[0] == [5]
    os.link(tmp_path / "c.csv", tmp_path / "d.csv")
    (tmp_path / "e.csv").symlink_to(tmp_path / "c.csv")
    for twice in (["c.csv", "c.csv"], ["c.csv", "d.csv"], ["e.csv", "ab.csv", "c.csv"]):
        with pytest.raises(BadData, match="one file that was given under two names"):
            open_table(files([tmp_path / n for n in twice]), schema=schema, unit=rows())
    with pytest.raises(BadData, match="one file that was given under two names"):
        open_table(files(tmp_path / "[cde].csv", pattern=True), schema=schema, unit=rows())
    for wrong in ([], ["a.csv", "b.parquet"]):
        with pytest.raises((InvalidParameter, BadData)):
            open_table(files([tmp_path / n for n in wrong]), schema=schema, unit=rows())
    with pytest.raises(InvalidParameter, match="pattern"):
        files(["a.csv", "b.csv"], pattern=True)


def test_one_twin_among_files_makes_nobody_else_up(tmp_path):
    from tacit.sources.facts import MARK, is_twin

    write(tmp_path / "real.csv", b"x\n1\n")
    write(tmp_path / "twin.csv", f"x;{MARK}\n1;true\n".encode())
    assert is_twin(tmp_path / "twin.csv")
    assert not is_twin(files([tmp_path / "twin.csv", tmp_path / "real.csv"]))


PLAN = """
[data]
path = "r.csv"
{words}
[protect]
unit = "rows"
[schema.income]
kind = "number"
low = 0
high = 1000
[budget]
epsilon = 5
[[release]]
kind = "mean"
column = "income"
"""


def test_what_is_declared_is_part_of_the_plan_and_of_its_certificates(tmp_path):
    from tacit.curator.plan_files import read_plan

    write(tmp_path / "r.csv", WRITE_CSV2)
    digests = set()
    words = (
        "",
        'encoding = "latin-1"',
        'encoding = "latin1"\ndecimal = ","',
        'missing = ["NA"]',
        'separator = ";"',
    )
    for said in words:
        (tmp_path / "plan.toml").write_text(PLAN.format(words=said))
        digests.add(read_plan(tmp_path / "plan.toml").plan().digest)
    assert len(digests) == 5
    (tmp_path / "plan.toml").write_text(PLAN.format(words='encoding = "latin1"\ndecimal = ","'))
    file = read_plan(tmp_path / "plan.toml")
    with file.curator() as curator:
        (release,) = curator.release(file.plan())
        assert release.certificate["data"]["reading"] == {"encoding": "latin-1", "decimal": ","}
        other = tacit.Curator(
            tmp_path / "r.csv",
            protect=file.unit,
            schema=file.schema,
            budget=file.budget,
            ledger=curator.ledger,
        )
        with pytest.raises(InvalidParameter, match="read as these"):
            other.release(file.plan())


WRITTEN_BY_R = """
data = { path = "r.csv", decimal = ",", encoding = "latin-1", missing = ["NA"] }
protect = { unit = "rows" }
budget = { epsilon = 4 }
release = [{ kind = "mean", column = "income", by = "town" }]
[schema]
income = { kind = "number", low = 0, high = 1000 }
town = { kind = "category", keys = ["Zürich", "Genève", "Bern"] }
"""


def test_what_r_writes_is_released_in_ten_lines_and_a_wrong_separator_costs_nothing(tmp_path):
    """`write.csv2` with row names, semicolons, decimal commas, NA and latin-1."""
    assert len(WRITTEN_BY_R.strip().splitlines()) <= 10
    write(tmp_path / "r.csv", WRITE_CSV2)
    plan = tmp_path / "plan.toml"
    plan.write_text(WRITTEN_BY_R.replace("missing =", 'separator = "|", missing ='), encoding="utf-8")
    file = tacit.read_plan(plan)
    with file.curator() as curator, pytest.raises(BadData, match="separated by ';', not by"):
        curator.release(file.plan())
    assert not (tmp_path / "r.ledger").exists()
    plan.write_text(WRITTEN_BY_R, encoding="utf-8")
    file = tacit.read_plan(plan)
    with file.curator() as curator:
        (release,) = curator.release(file.plan())
    assert list(release.columns["town"]) == ["Zürich", "Genève", "Bern"]
    assert everything(file.data)[0] is not None
