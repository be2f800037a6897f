"""The kept list of breaches is a list of real changes with real witnesses. `make mutants` runs it."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def _module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(
        f"mutants_{name}", ROOT / "tests" / "mutants" / f"{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"mutants_{name}"] = module
    spec.loader.exec_module(module)
    return module


run, operators = _module("run"), _module("operators")

MUTANTS = run.mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.title)
def test_a_mutant_is_one_change_with_a_witness(mutant: run.Mutant) -> None:
    path = ROOT / "src" / "tacit" / mutant.file
    assert path.is_file(), f"{mutant.file} does not exist"
    assert path.read_text().count(mutant.old) == 1, f"{mutant.old!r} must stand in {mutant.file} exactly once"
    assert mutant.new != mutant.old
    assert mutant.why
    assert mutant.notice
    for name in mutant.notice:
        file, _, test = name.partition("::")
        assert (ROOT / file).exists(), f"{file} does not exist"
        if test:
            word = test.partition("[")[0].split("::")[-1]
            assert f"def {word}(" in (ROOT / file).read_text(), f"{name} does not exist"


def test_no_breach_is_listed_twice() -> None:
    """Two entries are one breach if they leave the same file behind, however much of the line they quote."""
    made = Counter(
        (m.file, (ROOT / "src" / "tacit" / m.file).read_text().replace(m.old, m.new)) for m in MUTANTS
    )
    assert [file for (file, _), n in made.items() if n > 1] == []


SOURCE = '''"""Words with a + b."""
def f(a, b, parts):
    """More words: a < b."""
    if a <= b and not parts:
        raise ValueError("1 + 1")
    check(a)
    found = 0
    for x in parts:
        found += g(x, b) * 2
    return max(found, a + b) if a else upper(found.low)
'''
MADE = [
    ("comparison", "if a < b and not parts:"),
    ("and/or", "if ((a <= b) or (not parts)):"),
    ("guard never entered", "if False:"),
    ("guard negated", "if not ((a <= b and not parts)):"),
    ("sign or not dropped", "if a <= b and parts:"),
    ("call dropped", "pass"),
    ("call dropped", "return max(found, a + b) if a else found.low"),
    ("constant", "found = 1"),
    ("constant", "found += g(x, b) * 3"),
    ("constant", "found += g(x, b) * 1"),
    ("only the first", "for x in list(parts)[:1]:"),
    ("only the last", "for x in list(parts)[-1:]:"),
    ("only the last", "found = (g(x, b) * 2)"),
    ("factor dropped", "found += g(x, b)"),
    ("factor dropped", "found += 2"),
    ("arguments exchanged", "found += g(b, x) * 2"),
    ("max for sum", "return max(found, max(a, b)) if a else upper(found.low)"),
    ("minus for plus", "return max(found, (a - b)) if a else upper(found.low)"),
    ("the other one", "return min(found, a + b) if a else upper(found.low)"),
    ("the other one", "return max(found, a + b) if a else upper(found.high)"),
    ("the other one", "return max(found, a + b) if a else lower(found.low)"),
    ("one branch", "return max(found, a + b)"),
    ("one branch", "return upper(found.low)"),
]


def test_the_machine_makes_these_changes_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operators, "PACKAGE", tmp_path)
    (tmp_path / "a.py").write_text(SOURCE)
    found = operators.changes("a.py")
    assert sorted((c.operator, c.lines(SOURCE)[1]) for c in found) == sorted(MADE)
    assert {c.function for c in found} == {2}
    for change in found:
        ast.parse(change.text(SOURCE))
        assert SOURCE.splitlines()[change.line - 1].strip() == change.lines(SOURCE)[0]
    assert {c.line for c in operators.changes("a.py", {7})} == {7}
    kinds = Counter(c.operator for c in operators.some(found, len({o for o, _ in MADE}), "seed"))
    assert set(kinds) == {operator for operator, _ in MADE}
    assert len(operators.some(found, 1000, "seed")) == len(MADE)


def test_changed_lines_are_those_of_the_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> None:
        name = ["-c", "user.name=n", "-c", "user.email=e"]
        subprocess.run(["git", *name, *words], cwd=tmp_path, check=True, capture_output=True)

    file = tmp_path / "src" / "tacit" / "a.py"
    file.parent.mkdir(parents=True)
    file.write_text("a = 1\nb = 2\nc = 3\nd = 4\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    file.write_text("a = 1\nb = 5\nc = 3\ne = 4\nf = 4\n")
    monkeypatch.setattr(operators, "ROOT", tmp_path)
    assert operators.changed_lines("HEAD") == {"a.py": {2, 4, 5}}


@pytest.mark.parametrize("entry", sorted(operators.equivalent()), ids=lambda e: f"{e[0]}: {e[2]}")
def test_what_cannot_be_noticed_is_a_change_that_could_be_made(entry: tuple[str, str, str]) -> None:
    file, old, new = entry
    source = (ROOT / "src" / "tacit" / file).read_text()
    assert (old, new) in {c.lines(source) for c in operators.changes(file)}


def test_changes_are_noticed_only_by_tests_that_ran_them(tmp_path: Path) -> None:
    """One file, changed: a test that fails, one that does not look, one that is skipped, none, and one that hangs."""
    (tmp_path / "test_x.py").write_text(
        "import time, pytest, tacit.errors\n"
        "def test_looks(): assert not hasattr(tacit.errors, 'broken')\n"
        "def test_looks_away(): pass\n"
        "def test_skips(): pytest.skip('no')\n"
        "def test_hangs():\n"
        "    if hasattr(tacit.errors, 'broken'): time.sleep(60)\n"
    )
    code = (
        "import sys, json; sys.path.insert(0, 'tests/mutants'); import forks\n"
        "text = (forks.PACKAGE / 'errors.py').read_text() + '\\nbroken = 1\\n'\n"
        "jobs = [forks.Job(notice=(f'{sys.argv[1]}/test_x.py::{n}',), seconds=s, **kw)\n"
        "        for kw in ({}, {'file': 'errors.py', 'text': text})\n"
        "        for n, s in (('test_looks', 50), ('test_looks_away', 50), ('test_skips', 50), ('test_no', 50),\n"
        "                     ('test_hangs', 50 if not kw else 6))]\n"
        "print(json.dumps([e.word for _, e in sorted(forks.run(jobs), key=lambda x: x[0])]))\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path)]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300).stdout
    unchanged = ["SURVIVED", "SURVIVED", "BROKEN", "BROKEN", "SURVIVED"]
    assert json.loads(said) == [*unchanged, "noticed", "SURVIVED", "BROKEN", "BROKEN", "hung"]
