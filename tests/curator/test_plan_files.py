"""Plan files of any shape: a plan, or one clear sentence and exit 2; never an exception of Python's own."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.curator.plan_files import parse_toml, read_plan, without_secrets
from tacit.errors import InvalidParameter, TacitError

from .mutated import BASE, RELEASES, plans, text, toml
from .plans import COUNT, Runner, write


def release_with(word: str, value: Any, kind: str = "count") -> str:
    found = next(r for r in RELEASES if r["kind"] == kind)
    return text(BASE | {"release": [found | {word: value}]})


@pytest.mark.parametrize("release", RELEASES, ids=lambda r: r["kind"])
def test_the_plans_that_are_mutated_are_plans(release: dict[str, Any], tmp_path: Path) -> None:
    budget = next(({w: 1.0} for w in ("rho", "mu") if w in release), BASE["budget"])
    (tmp_path / "plan.toml").write_text(text(BASE | {"budget": budget, "release": [release]}))
    assert read_plan(tmp_path / "plan.toml").plan().releases


def test_thousands_of_mutated_plans_raise_nothing_of_pythons_own(tmp_path: Path) -> None:
    path, outcomes = tmp_path / "plan.toml", {"planned": 0, "refused": 0}
    unclear: list[str] = []
    for written in plans(1600, seed=13):
        path.write_text(written, encoding="utf-8")
        try:
            str(read_plan(path).plan())
            outcomes["planned"] += 1
        except TacitError as problem:
            outcomes["refused"] += 1
            unclear += [str(problem)] if "\n" in str(problem) or len(str(problem)) > 1000 else []
        except Exception as problem:
            raise AssertionError(f"{type(problem).__name__} for\n{written}") from problem
    assert outcomes["planned"] > 50, "mutants that all fail at the first word would test one line"
    assert outcomes["refused"] > 1000
    assert not unclear


@pytest.mark.parametrize(
    ("word", "value", "kind"),
    [
        ("by", 1, "count"), ("by", [0.5], "count"), ("at", "0.5", "quantiles"), ("at", [0.5], "quantile"),
        ("name", 5, "count"), ("consistent", "no", "count"), ("consistent", 1, "count"), ("consistent", [], "count"),
        ("simultaneous", "yes", "count"), ("simultaneous", 0, "count"), ("sampling", "false", "variance"),
        ("rows", 1.9, "mean"), ("rows", True, "mean"), ("rows", "3", "mean"), ("order", 1.0, "margins"),
        ("order", True, "margins"), ("resolution", 64.0, "median"), ("bins", 2.5, "histogram"),
        ("bins", True, "histogram"), ("epsilon", True, "count"), ("epsilon", "1", "count"),
        ("epsilon", 1e-320, "count"),
        ("weight", [1], "contingency"), ("where", 1, "count"), ("where", ["a"], "count"), ("column", {}, "sum"),
        ("columns", [1, 2], "margins"), ("impossible", {"a": 1}, "sparse_histogram"),
        ("impossible", 3, "sparse_histogram"),
        ("parents", ["a"], "hierarchy"), ("interval", "95%", "mean"), ("target", {"a": 1}, "ratio"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_named_with_its_word(
    tmp_path: Path, run: Runner, word: str, value: Any, kind: str
) -> None:
    (tmp_path / "plan.toml").write_text(release_with(word, value, kind))
    assert run("plan", tmp_path / "plan.toml") == 2
    assert word in run.one_sentence()


@pytest.mark.parametrize(
    ("table", "word", "value"),
    [
        ("data", "path", 1), ("data", "engine", True), ("data", "engine", "duckbd"), ("data", "memory", 5),
        ("protect", "at_most", "4"), ("protect", "at_most", 4.0), ("protect", "at_most", True),
        ("protect", "column", 7), ("protect", "neighbours", 1), ("protect", "groups", 1.5),
        ("budget", "analyst", 5), ("budget", "epsilon", "1"), ("ledger", "path", 3), ("ledger", "path", []),
    ],
)  # fmt: skip
def test_the_tables_above_the_releases_are_as_strict(
    tmp_path: Path, run: Runner, table: str, word: str, value: Any
) -> None:
    plan = BASE | {table: BASE[table] | {word: value}, "release": [RELEASES[0]]}
    (tmp_path / "plan.toml").write_text(text(plan))
    assert run("plan", tmp_path / "plan.toml") == 2
    assert word in run.one_sentence()


ODD_FILES = {
    "nested arrays": b"x = " + b"[" * 100_000 + b"]" * 100_000,
    "nested tables": b"x = " + b"{a=" * 50_000 + b"1" + b"}" * 50_000,
    "a dotted name of 200 000 parts": b".".join([b"a"] * 200_000) + b" = 1",
    "a dotted header": b"[" + b".".join([b"a"] * 200_000) + b"]",
    "a dotted name in quotes": b'."b" . '.join([b"a"] * 100_000) + b" = 1",
    "a number of 200 000 digits": b"x = " + b"9" * 200_000,
    "quotes that are never closed": b'"\\' * 200_000,
    "a hexadecimal number of 10 000 digits": b"x = 0x" + b"f" * 10_000,
    "ten to the 400": b"[budget]\nepsilon = 1" + b"0" * 400,
    "not UTF-8": b"[data]\npath = \"\xff\xfe\"",
    "a NUL": b"a\0b = 1",
    "empty": b"",
    "a list": b"release = 3",
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_FILES)
def test_odd_files_are_refused_at_once(tmp_path: Path, run: Runner, name: str) -> None:
    (tmp_path / "plan.toml").write_bytes(ODD_FILES[name])
    started = time.process_time()
    assert run("plan", tmp_path / "plan.toml") == 2
    # What is read in more than linear time takes minutes: the limit is far from either.
    assert time.process_time() - started < 20
    run.one_sentence()


def test_what_is_no_file_is_refused(tmp_path: Path, run: Runner) -> None:
    for place in (tmp_path, tmp_path / "absent.toml", "a\0b", "/dev/zero", "x" * 5000):
        assert run("plan", place) == 2
        run.one_sentence()


def test_long_dots_in_texts_and_comments_are_no_names(tmp_path: Path) -> None:
    """The limit is on names: a text, a comment, a list of numbers and a path may have any number of dots."""
    dots = ".".join("abc" for _ in range(500))
    written = (
        f'# {dots}\nx = "{dots}"\ny = \'{dots}\'\nz = """\n{dots}"""\nw = [{", ".join(["0.5"] * 500)}]\n'
    )
    assert parse_toml(written, parameter="plan", name="p")["x"] == dots
    with pytest.raises(InvalidParameter, match="parts"):
        parse_toml(f"{dots} = 1", parameter="plan", name="p")


def test_a_hierarchy_has_its_parents_in_a_file(tmp_path: Path) -> None:
    """TOML has no word for nothing: the top is contained in the empty text."""
    tree = next(r for r in RELEASES if "parents" in r)
    (tmp_path / "plan.toml").write_text(text(BASE | {"release": [tree]}))
    (planned,) = read_plan(tmp_path / "plan.toml").plan().releases
    assert planned.question.cells is None or len(planned.question.parts) == 3


# --- passwords -----------------------------------------------------------------------------------------
URLS = [
    "postgresql://clerk:hunter2@db.example/budget",
    "postgresql://clerk:hunter2@@db.example/budget",
    "postgresql://clerk:hunter2 '/x@db.example/budget?sslmode=require",
    "postgresql://db.example/budget?user=clerk&password=hunter2",
    "postgresql+psycopg://clerk:hunter2@db.example:5432/budget",
]


@pytest.mark.parametrize("url", URLS)
def test_a_copied_plan_has_no_password(url: str) -> None:
    written = f"[ledger]  # once {url} was it\npath = {toml(url)}\nother = '''{url.replace(chr(39), '')}'''\n"
    hidden = "".join(f"\\u{ord(c):04x}" for c in url)
    written += f'again = "{hidden}"\n'
    safe = without_secrets(written)
    told = parse_toml(safe, parameter="plan", name="p")
    for held in (safe, str(told)):
        assert "hunter2" not in held
        assert "clerk" not in held
    assert told["ledger"]["path"].endswith("/budget")
    assert "db.example" in told["ledger"]["path"]
    assert told["ledger"]["again"] == told["ledger"]["path"]


@pytest.mark.parametrize("comment", ["# host=h password=hunter2", "# PWD: hunter2", "# api token hunter2"])
def test_a_comment_that_names_a_secret_is_not_copied(comment: str) -> None:
    copied = without_secrets(f'x = 1 {comment}\ny = "kept" # and this comment\n')
    assert "hunter2" not in copied
    assert tomllib.loads(copied) == {"x": 1, "y": "kept"}
    assert "# and this comment" in copied


def test_a_plan_without_a_password_is_copied_letter_by_letter(tmp_path: Path) -> None:
    written = write(tmp_path, releases=COUNT).read_text() + "# a comment, 'with' \"quotes\"\n"
    assert without_secrets(written) == written


@pytest.mark.parametrize("url", URLS)
def test_a_price_is_told_without_the_password(tmp_path: Path, run: Runner, url: str) -> None:
    plan = write(tmp_path, releases=COUNT)
    plan.write_text(plan.read_text().replace('"survey.ledger"', toml(url)))
    for more in ((), ("--json",)):
        # The price is told; whether it fits cannot be, and that is no 0.
        assert run("plan", plan, *more) == 2
        assert "epsilon" in run.out
        assert "hunter2" not in run.out + run.err
        assert "clerk" not in run.out
    assert "hunter2" not in repr(read_plan(plan))
    assert "hunter2" not in repr(read_plan(plan).curator())


def test_the_copy_beside_the_values_has_no_password(tmp_path: Path, run: Runner) -> None:
    plan = write(tmp_path, releases=COUNT)
    plan.write_text(f"# once in {URLS[0]}\n" + plan.read_text())
    assert run("release", plan, "--out", tmp_path / "out") == 0
    for path in (tmp_path / "out").rglob("*"):
        if path.is_file():
            assert b"hunter2" not in path.read_bytes(), path
    assert "db.example/budget" in (tmp_path / "out/plan.toml").read_text()


@pytest.mark.parametrize("value", ["no", "true", 0, 1, None, [], 1.0])
def test_a_flag_is_read_as_one_or_not_at_all(value: Any) -> None:
    """By the reader itself: what comes after it may be as strict, and need not be."""
    from tacit.curator.plan_files import typed

    with pytest.raises(InvalidParameter, match="true or false"):
        typed("release 1:", {"consistent": value})
    assert typed("release 1:", {"consistent": False}) == {"consistent": False}


def test_a_word_that_a_release_does_not_take_is_answered_with_those_that_it_takes(tmp_path: Path) -> None:
    text = """
    data = { path = "t.csv" }
    protect = { unit = "rows" }
    schema.dead = { kind = "flag" }
    budget = { epsilon = 1 }
    release = [{ kind = "proportion", test = "dead" }]
    """
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(tacit.errors.UnknownName, match="it takes of, by, where"):
        tacit.read_plan(tmp_path / "plan.toml")
