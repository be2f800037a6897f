"""Notebooks that are run without Jupyter: the code cells in one namespace, and what is stored below them checked.

A stored text is what the cell prints, word for word; in a cell tagged `varies`, whose noise is fresh each time, the
numbers may be others. Cells without a stored text just run. To write the texts anew after a change:

    PYTHONPATH=tests .venv/bin/python -m support.notebooks examples/first-release.ipynb
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support.documents import NUMBER

NOTEBOOKS = {
    "examples/first-release.ipynb": 10,
    "examples/budget-over-a-year.ipynb": 8,
    "examples/people-with-many-rows.ipynb": 8,
    "examples/choosing-epsilon.ipynb": 8,
    "examples/on-spark.ipynb": 3,
    "examples/before-differential-privacy.ipynb": 15,
}
"""Every notebook, and how many of its cells show what they print at least."""

VARIES = "varies"
Shown = Callable[[int, dict[str, Any], str], None]


def read(path: Path) -> dict[str, Any]:
    """The notebook, which is JSON."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def source(cell: dict[str, Any]) -> str:
    """A cell's text."""
    text = cell["source"]
    return text if isinstance(text, str) else "".join(text)


def stored(cell: dict[str, Any]) -> str | None:
    """The text below a cell; None where there is none."""
    texts = [o["text"] for o in cell["outputs"] if o["output_type"] == "stream"]
    return "".join("".join(t) for t in texts) if texts else None


def run(notebook: dict[str, Any], name: str) -> int:
    """Run all cells in a temporary folder; how many stored texts were compared."""
    compared = 0

    def compare(index: int, cell: dict[str, Any], printed: str) -> None:
        nonlocal compared
        expected = stored(cell)
        if expected is None:
            return
        varies = VARIES in cell["metadata"].get("tags", [])
        left, right = (_words(t, masked=varies) for t in (expected, printed))
        assert left == right, f"{name}, cell {index}, shows other output than:\n{printed}"
        compared += 1

    _walk(notebook, name, compare)
    return compared


def _walk(notebook: dict[str, Any], name: str, shown: Shown) -> None:
    scope: dict[str, Any] = {"__name__": "__main__"}
    with _elsewhere():
        for index, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] != "code":
                continue
            output = io.StringIO()
            code = compile(ast.parse(source(cell)), f"{name}, cell {index}", "exec")
            with contextlib.redirect_stdout(output):
                exec(code, scope)
            shown(index, cell, output.getvalue())


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """In a folder of its own, with pictures that open no window."""
    import matplotlib

    before, backend = Path.cwd(), matplotlib.get_backend()
    matplotlib.use("Agg")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
            pictures()
            matplotlib.use(backend)


def pictures() -> list[bytes]:
    """The open figures as PNG, closed afterwards."""
    from matplotlib import pyplot

    found = []
    for number in pyplot.get_fignums():
        held = io.BytesIO()
        pyplot.figure(number).savefig(held, dpi=72, metadata={"Software": None})
        found.append(held.getvalue())
    pyplot.close("all")
    return found


def _words(text: str, *, masked: bool) -> str:
    if masked:
        text = re.sub(rf"(?<![\w.])-?{NUMBER}(?:,\d{{3}})*", "#", text.replace("∞", "inf"))
    return " ".join(text.split())


def refresh(path: Path) -> None:
    """Run a notebook and store what its cells print and draw."""
    notebook = read(path)

    def keep(index: int, cell: dict[str, Any], printed: str) -> None:
        cell["outputs"] = []
        cell["execution_count"] = None
        if printed:
            lines = printed.splitlines(keepends=True)
            cell["outputs"].append({"name": "stdout", "output_type": "stream", "text": lines})
        for png in pictures():
            data = {"image/png": base64.b64encode(png).decode(), "text/plain": ["a figure"]}
            cell["outputs"].append({"data": data, "metadata": {}, "output_type": "display_data"})

    _walk(notebook, path.name, keep)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for one in sys.argv[1:]:
        refresh(Path(one))
