"""The randomness of releases comes from one place; seeded generators stay with tables that describe nobody."""

from __future__ import annotations

import ast

import pytest

from support.code import ROOMS, SRC, named, text, tree

SYNTHETIC = SRC / "sources" / "synthetic"


def _numpy(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("np", "numpy")


def generators(module: ast.Module) -> list[str]:
    """Uses of numpy.random or of the standard library's random."""
    found = []
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name in ("random", "numpy.random")]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = {a.name for a in node.names}
            if node.module in ("random", "numpy.random") or (node.module == "numpy" and "random" in names):
                found.append(node.module or "")
        elif isinstance(node, ast.Attribute) and node.attr == "random" and _numpy(node.value):
            found.append("numpy.random")
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_no_seeded_generator_outside_of_made_up_tables(room: str) -> None:
    found = {named(p): generators(tree(p)) for p in ROOMS[room] if not p.is_relative_to(SYNTHETIC)}
    assert not {name: uses for name, uses in found.items() if uses}


def test_a_generator_is_noticed() -> None:
    for one in (
        "import random",
        "from numpy import random",
        "import numpy.random",
        "import numpy as np\nnp.random.rand()",
    ):
        assert generators(ast.parse(one))
    assert not generators(ast.parse("from tacit.noise import source\nsource.random_data"))


def test_nothing_that_releases_imports_made_up_tables() -> None:
    """Only surfaces may: a curator on synthetic data gets it as any other table."""
    for room in ("noise", "mechanisms", "statistics", "functions", "random_data", "coupled", "curator"):
        for path in sorted((SRC / room).rglob("*.py")):
            assert "sources.synthetic" not in text(path), path
