"""The randomness of releases comes from one place; seeded generators stay with tables that describe nobody."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "tacit"
SYNTHETIC = SRC / "sources" / "synthetic"
FILES = [p for p in sorted(SRC.rglob("*.py")) if not p.is_relative_to(SYNTHETIC)]


def generators(text: str) -> list[str]:
    """Uses of numpy.random or of the standard library's random."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name in ("random", "numpy.random")]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = {a.name for a in node.names}
            if node.module in ("random", "numpy.random") or (node.module == "numpy" and "random" in names):
                found.append(node.module or "")
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("np.random", "numpy.random"):
            found.append("numpy.random")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_no_seeded_generator_outside_of_made_up_tables(path: Path) -> None:
    assert not generators(path.read_text())


def test_a_generator_is_noticed() -> None:
    for text in (
        "import random",
        "from numpy import random",
        "import numpy.random",
        "import numpy as np\nnp.random.rand()",
    ):
        assert generators(text)
    assert not generators("from tacit.noise import source\nsource.random_data")


def test_nothing_that_releases_imports_made_up_tables() -> None:
    """Only surfaces may: a curator on synthetic data gets it as any other table."""
    for room in ("noise", "mechanisms", "statistics", "functions", "random_data", "coupled", "curator"):
        for path in sorted((SRC / room).rglob("*.py")):
            assert "sources.synthetic" not in path.read_text(), path
