"""Code on the pages is typed: what README, tutorial and the other pages show passes mypy --strict as it stands.

One run for all pages, with the project's own settings, so that what `make lint` has found out about src is used again.
A page is checked like a notebook, where a name may be bound anew with another type (`allow-redefinition`).
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tacit
from support.documents import blocks, page

ROOT = Path(__file__).parents[2]
# Every block of errors.md is wrong on purpose.
PAGES = [
    path
    for path in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").glob("*.md")),
        *(ROOT / "examples").glob("*.md"),
    ]
    if path.name != "errors.md" and any(b.language == "python" for b in blocks(page(path)))
]


WRONG = """import tacit


def checked(bound: tacit.guarantees.Bound, guarantee: tacit.Guarantee, found: tacit.Releases) -> None:
    tacit.Pur  # wrong
    tacit.risk.optimal_cuont  # wrong
    half: str = tacit.Pure(epsilon=1).epsilon  # wrong
    bound.rhoo  # wrong
    guarantee.bound.epsilom  # wrong
    guarantee.condition.gama  # wrong
    rho: str = bound.rho  # wrong
    one: str = found[0]  # wrong
    two: tacit.Release = found[0:1]  # wrong
    three: int = found["people"]  # wrong
    found[0].tabel  # wrong
    right: float = bound.rho + float(bound.epsilon) + bound.delta(1.0) + guarantee.condition.gamma
    release: tacit.Release = found[0]
"""


def module(text: str) -> str:
    """The python blocks of a page as one file; a line that must raise may be wrong in its types too."""
    code = "\n".join(b.body for b in blocks(text) if b.language == "python")
    code = re.sub(r"  # raises \w+.*$", "  # type: ignore", code, flags=re.M)
    return f"# mypy: allow-redefinition, disable-error-code=unused-ignore\n{code}"


def mypy(folder: Path, texts: dict[str, str]) -> list[str]:
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(module(text), encoding="utf-8")
    told = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", *map(str, sorted(folder.glob("*.py")))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert told.stderr == ""
    return told.stdout.splitlines()


@pytest.mark.slow
def test_what_the_pages_show_is_typed(tmp_path: Path) -> None:
    assert len(PAGES) > 20
    texts = {"page_" + re.sub(r"\W", "_", str(p.relative_to(ROOT))): page(p) for p in PAGES}
    found = mypy(tmp_path, {**texts, "wrong": f"```python\n{WRONG}```\n"})
    mine = [line for line in found if "wrong.py" in line and ": error:" in line]
    told = {int(line.split(":")[1]) for line in mine}
    lines = [
        i for i, line in enumerate(module(f"```python\n{WRONG}```\n").splitlines(), 1) if "# wrong" in line
    ]
    assert sorted(told) == lines, "a wrong type is not noticed"
    assert [line for line in found if "wrong.py" not in line] == []


def test_tables_are_annotated() -> None:
    """A user who has types for pandas and pyarrow gets them: no Any stands in their place."""
    for name, kind in (("table", "pd.DataFrame"), ("to_arrow", "pa.Table")):
        member = inspect.getattr_static(tacit.Release, name)
        made = member.fget if isinstance(member, property) else member
        assert made.__annotations__["return"] == kind
