"""The kept list of breaches is a list of real changes with real witnesses. `make mutants` runs it."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = ROOT / "tests" / "mutants" / "run.py"
_spec = importlib.util.spec_from_file_location("mutants_run", RUN)
assert _spec is not None
assert _spec.loader is not None
run = importlib.util.module_from_spec(_spec)
sys.modules["mutants_run"] = run
_spec.loader.exec_module(run)

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
