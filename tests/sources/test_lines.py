"""Lines of text as records: one line in, one record out, whatever its bytes."""

from __future__ import annotations

import gzip
import random
import re

import pytest

from tacit.sources.opening import textfiles as lines


def read(path, content, *, mark=",", multiline=False, wanted=None):
    path.write_bytes(content)
    names = lines.header(str(path), mark)
    found = lines.records(str(path), names, wanted or names, mark=mark, multiline=multiline)
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


FIELD = re.compile(rb'\A(?:[^",]*|"(?:[^"]|"")*")\Z', re.S)
SPLIT = re.compile(rb'("(?:[^"]|"")*"|[^",]*)(,|\Z)', re.S)


def one_record(line, fields):
    """From the definition: fields between commas, each without a quote or all in quotes."""
    line = line.removesuffix(b"\r")
    found, at = [], 0
    while True:
        match = SPLIT.match(line, at)
        if match is None or not FIELD.match(match[1]):
            return [(None,) * fields]
        found.append(match[1])
        at = match.end()
        if not match[2]:
            break
    if at != len(line) or len(found) != fields:
        return [(None,) * fields]
    texts = [f[1:-1].replace(b'""', b'"') if f.startswith(b'"') else f for f in found]
    return [tuple(decoded(t) for t in texts)]


def decoded(text):
    try:
        return text.decode() or None
    except UnicodeDecodeError:
        return None


ODD = [
    b"a",
    b"b",
    b"7",
    b",",
    b",",
    b'"',
    b'"',
    b'""',
    b"\n",
    b"\r",
    b"\r\n",
    b"\xff",
    "é".encode(),
    b"\0",
    b" ",
]


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("fields", [1, 2, 3])
def test_every_line_is_read_by_itself(tmp_path, monkeypatch, block, fields):
    """Against the definition, line by line, on 150 files of random bytes and pieces of any size."""
    monkeypatch.setattr(lines, "BLOCK", block)
    chance = random.Random(block * 10 + fields)
    for _ in range(150 if block > 1 else 50):
        body = b"".join(chance.choices(ODD, k=chance.randrange(60)))
        head = b",".join([b"c%d" % i for i in range(fields)])
        wanted = (
            [r for line in body.removesuffix(b"\n").split(b"\n") for r in one_record(line, fields)]
            if body
            else []
        )
        assert read(tmp_path / "t.csv", head + b"\n" + body) == wanted


@pytest.mark.parametrize(
    "line",
    [b"x", b"x,y,z", b'"x,y', b'x"y,z', b'"x"y,z', b"\xff\xff,\xfe", b"z" * (3 << 20) + b",1", b'"', b"\0"],
)
def test_one_line_moves_nothing_else(tmp_path, line):
    others = b"".join(b"%d,w%d\n" % (i, i) for i in range(500))
    base = read(tmp_path / "t.csv", b"a,b\n" + others)
    for at in (0, len(others) // 2, len(others)):
        at = others.rfind(b"\n", 0, at) + 1
        found = read(tmp_path / "t.csv", b"a,b\n" + others[:at] + line + b"\n" + others[at:])
        assert len(found) == len(base) + 1
        row = others[:at].count(b"\n")
        assert found[:row] + found[row + 1 :] == base


@pytest.mark.parametrize("block", [5, 1 << 20])
@pytest.mark.parametrize("multiline", [False, True])
def test_a_line_too_long_is_missing_alone(tmp_path, monkeypatch, block, multiline):
    monkeypatch.setattr(lines, "LONGEST", 40)
    monkeypatch.setattr(lines, "BLOCK", block)
    for long in (b"y" * 39 + b",1", b"y" * 200 + b",1", b'"' + b"y," * 100 + b'",1', b'"' + b"z" * 100):
        found = read(tmp_path / "t.csv", b"a,b\n1,2\n" + long + b"\n3,4\n5,6\n", multiline=multiline)
        assert found == [("1", "2"), (None, None), ("3", "4"), ("5", "6")]
    found = read(tmp_path / "t.csv", b'a,b\n1,2\n"x\n' + b"y\n" * 30 + b'",7\n3,4\n', multiline=True)
    assert found == [("1", "2"), *[(None, None)] * 32, ("3", "4")] or not multiline
    assert read(tmp_path / "t.csv", b"a,b\n" + b"y" * 38 + b",1\n3,4")[0] == ("y" * 38, "1")


@pytest.mark.parametrize("block", [1, 6, 1 << 20])
def test_line_breaks_inside_quotes_where_declared(tmp_path, monkeypatch, block):
    monkeypatch.setattr(lines, "BLOCK", block)
    body = b'a,b\n1,"x\ny"\n"2\r\n""z""",3\r\n4,5\n'
    assert read(tmp_path / "t.csv", body, multiline=True) == [("1", "x\ny"), ('2\r\n"z"', "3"), ("4", "5")]
    assert read(tmp_path / "t.csv", body) == [(None, None)] * 4 + [("4", "5")]
    assert read(tmp_path / "t.csv", b'a,b\n1,2\n"open,3\n4,5\n', multiline=True)[0] == ("1", "2")


def test_marks_endings_and_beginnings(tmp_path):
    path = tmp_path / "t.tsv"
    assert read(path, b"a\tb\r\n1\t2,3\r\n", mark="\t") == [("1", "2,3")]
    assert read(path, b"\xef\xbb\xbfa\tb\n1\t2", mark="\t", wanted=["b"]) == [("2",)]
    assert read(path, b"a\tb", mark="\t") == []
    assert read(path, b'"a ""x"""\n3\n') == [("3",)]
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert lines.header(str(packed), ",") == ["a", "b"]
    assert [b.to_pylist() for b in lines.records(str(packed), ["a", "b"], ["a"], mark=",")] == [[{"a": "1"}]]


@pytest.mark.parametrize(
    "head", [b"", b"\n", b",\n", b'""\n', b'a,"b\n', b"\xff\xfe\n", b"a\0,b\n", b"a,b\r1,2\r3,4", b"a,b\r"]
)
def test_headers_that_are_none(tmp_path, head):
    path = tmp_path / "t.csv"
    path.write_bytes(head)
    with pytest.raises((ValueError, StopIteration, Exception)):
        lines.header(str(path), ",")


def test_columns_without_a_name_or_with_one_that_is_there_twice(tmp_path):
    """Row names, as R and pandas write them; whether a wanted name is there twice is asked by whoever wants it."""
    path = tmp_path / "t.csv"
    for head, names in ((b'"","a","b"\n', ["", "a", "b"]), (b",a,,a\n", ["", "a", "", "a"])):
        path.write_bytes(head)
        assert lines.header(str(path), ",") == names
