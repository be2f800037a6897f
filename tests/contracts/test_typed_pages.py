"""Code on the pages is typed: what README, tutorial and the other pages show passes mypy --strict as it stands.

One run for all pages, with the project's own settings, so that what `make lint` has found out about src is used again.
A page is checked like a notebook, where a name may be bound anew with another type (`allow-redefinition`).
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    wrong = "```python\nimport tacit\n\nhalf: str = tacit.Pure(epsilon=1).epsilon\n```\n"
    found = mypy(tmp_path, {**texts, "wrong": wrong})
    mine = [line for line in found if "wrong.py" in line]
    assert len(mine) == 1, "a wrong type is not noticed"
    assert [line for line in found if line not in mine] == []
