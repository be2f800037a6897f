"""The import arrows of the architecture, and the habits that a reader relies on."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "tacit"

# What each room may import of tacit. A room that is not named here may not exist.
BASE = {"errors", "exact"}
PLD = BASE | {"guarantees"}
ACCOUNTING = PLD | {"noise", "pld"}
MECHANISMS = ACCOUNTING | {"accounting"}
LEDGER = MECHANISMS | {"mechanisms"}
SOURCES = LEDGER | {"risk", "ledger"}
STATISTICS = SOURCES | {"sources"}
SYNTHESIS = STATISTICS | {"statistics"}
CURATOR = SYNTHESIS | {"functions", "random_data", "coupled", "anonymity", "synthesis"}
REPORT = CURATOR | {"curator"}
SURFACE = REPORT | {"parties", "report", "reproduce", "audit", "attacks"}
BLACK_BOX = {"errors", "exact", "guarantees", "pld", "accounting", "curator"}

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "exact": {"errors"},
    "noise": BASE,
    "guarantees": BASE,
    "pld": PLD,
    "accounting": PLD | {"pld"},
    "mechanisms": MECHANISMS,
    "risk": LEDGER,
    "ledger": LEDGER,
    "sources": SOURCES,
    "statistics": STATISTICS,
    "functions": STATISTICS,
    "random_data": STATISTICS,
    "coupled": STATISTICS,
    "anonymity": STATISTICS,
    "synthesis": SYNTHESIS,
    "curator": CURATOR,
    "parties": REPORT,
    "report": REPORT,
    "reproduce": REPORT | {"report", "attacks"},
    "audit": BLACK_BOX | {"sources"},  # made-up neighbours of a plan
    "attacks": BLACK_BOX,
    "server": SURFACE,
    "cli": SURFACE | {"server"},
}

ROOMS = sorted({p.name.removesuffix(".py") for p in SRC.iterdir() if p.suffix == ".py" or p.is_dir()})
ROOMS = [r for r in ROOMS if r not in {"__init__", "__main__", "__pycache__", "py.typed"}]


def imported_rooms(path: Path) -> set[str]:
    """Rooms of tacit that a file imports, at the top or inside a function."""
    found: set[str] = set()
    package = path.relative_to(SRC.parent).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package[: len(package) - node.level]
                base = ".".join([*parents, base]) if base else ".".join(parents)
            names = [base] if base != "tacit" else [f"tacit.{a.name}" for a in node.names]
        else:
            continue
        found |= {n.split(".")[1] for n in names if n.startswith("tacit.")}
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_room_is_known_and_respects_the_arrows(room: str) -> None:
    assert room in MAY_IMPORT, f"{room} is not a room of the architecture"
    files = [SRC / f"{room}.py"] if (SRC / f"{room}.py").exists() else sorted((SRC / room).rglob("*.py"))
    for path in files:
        stray = imported_rooms(path) - MAY_IMPORT[room] - {room}
        assert not stray, f"{path.relative_to(ROOT)} imports {sorted(stray)}"


def rank(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, each in order (as the linter sorts them)."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2), name


def test_every_package_sorts_its_exports() -> None:
    for path in sorted(SRC.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets
            ):
                if isinstance(node.value, ast.Call):
                    assert ast.unparse(node.value.func) == "sorted", "what is put together is sorted"
                    continue
                names = ast.literal_eval(node.value)
                assert names == sorted(names, key=rank), f"{path.relative_to(ROOT)}: __all__ is not sorted"
                assert len(set(names)) == len(names)


# Two rooms export these; each has one meaning in its room.
EXPORTED_TWICE = {
    "Box", "Draws", "Finding", "Hierarchy", "Level", "Loss", "Mean", "Pair", "Price", "Question", "Score", "Selected",
    "Table",
}  # fmt: skip


def test_a_class_name_has_one_meaning() -> None:
    """A reader who sees a class anywhere finds one definition of it."""
    places: dict[str, list[str]] = {}
    for path in sorted(SRC.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(path.relative_to(SRC).as_posix())
    assert {name for name, found in places.items() if len(found) > 1} == EXPORTED_TWICE


# What a command loads before it does anything. Loading takes longer than most commands run.
HEAVY = (
    "duckdb",
    "email",
    "ibis",
    "importlib.metadata",
    "matplotlib",
    "pandas",
    "pydantic",
    "pyspark",
    "scipy.stats",
    "sklearn",
    "sqlalchemy",
    "sqlglot",
)
LIGHT = {
    "import tacit; tacit.Curator": (*HEAVY, "pyarrow", "scipy", "typer"),
    "from tacit.cli import main; main(['--help'])": (*HEAVY, "flint", "numpy", "pyarrow", "scipy"),
    "from tacit.cli import main; main(['plan', 'plan.toml'])": HEAVY,
    "from tacit.cli import main; main(['release', 'nothing.toml', '--out', 'out'])": (
        *HEAVY,
        "pyarrow",
        "scipy",
    ),
}
PLAN = """
[data]
path = "table.csv"
[protect]
unit = "rows"
[budget]
epsilon = 1.0
[schema.region]
kind = "category"
keys = ["north", "south"]
[[release]]
name = "rows"
kind = "count"
by = "region"
epsilon = 0.5
"""


@pytest.mark.parametrize("code", LIGHT)
def test_commands_that_read_no_row_load_no_engine(code: str, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "table.csv").write_text("region\nnorth\n")
    shown = f"import sys\n{code}\nprint('loaded:', *(m for m in {LIGHT[code]!r} if m in sys.modules), file=sys.stderr)"
    ended = subprocess.run(
        [sys.executable, "-c", shown], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SRC.parent)},
    )  # fmt: skip
    assert ended.stderr.splitlines()[-1].split() == ["loaded:"]
