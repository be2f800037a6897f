"""The notebooks run from top to bottom, print what is stored below their cells, and link to what is there."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from support.notebooks import NOTEBOOKS, read, run, source, stored
from support.spark import needs_spark, ordinary

ROOT = Path(__file__).parents[2]
MARKS = {"examples/on-spark.ipynb": [needs_spark]}


@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=MARKS.get(path, [])) for path in NOTEBOOKS], ids=lambda p: Path(p).stem
)
def test_a_notebook_runs_and_prints_what_it_shows(path: str) -> None:
    if "spark" in path:
        ordinary()
    compared = run(read(ROOT / path), path)
    assert compared >= NOTEBOOKS[path], f"only {compared} outputs of {path} were compared"


def test_another_output_or_an_error_is_noticed() -> None:
    def cell(code: str, shown: str, *tags: str) -> dict[str, Any]:
        text = {"name": "stdout", "output_type": "stream", "text": [shown]}
        return {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": [code], "outputs": [text]}

    def book(*cells: dict[str, Any]) -> dict[str, Any]:
        return {"cells": copy.deepcopy(list(cells))}

    assert run(book(cell("a = 2", ""), cell("print(a, 'x')", "2  x\n")), "book") == 2
    assert run(book(cell("print('about 1,204 or -3.5e-7')", "about 17 or 2\n", "varies")), "book") == 1
    for bad in (
        cell("print(2)", "3"),
        cell("print('about 2')", "nearly 2", "varies"),
        cell("print('x2')", "x3", "varies"),
    ):
        with pytest.raises(AssertionError):
            run(book(bad), "book")
    with pytest.raises(ZeroDivisionError):
        run(book(cell("1 / 0", "")), "book")


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_a_notebook_is_small_and_says_what_it_is(path: str) -> None:
    assert (ROOT / path).stat().st_size < 150_000
    notebook = read(ROOT / path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({c["id"] for c in notebook["cells"]}) == len(notebook["cells"])
    first = source(notebook["cells"][0])
    assert first.startswith("# ")
    assert "\nFor " in first, "the first cell says for whom it is"
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["execution_count"] is None
            shown = stored(cell) or ""
            assert len(shown) < 4000
            assert str(Path.home()) not in shown
            assert "/tmp/" not in shown


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_links_of_a_notebook_resolve(path: str) -> None:
    cells = [c for c in read(ROOT / path)["cells"] if c["cell_type"] == "markdown"]
    links = [target for c in cells for target in re.findall(r"\]\(([^)\s#]+)", source(c))]
    assert links
    for target in links:
        goal = (ROOT / path).parent / target
        assert goal.exists(), f"{path} links to {target}, which does not exist"


@pytest.mark.parametrize("path", sorted(NOTEBOOKS))
def test_a_notebook_opens_with_a_picture(path: str) -> None:
    """The first thing below the title; its file is there."""
    first = source(read(ROOT / path)["cells"][0])
    picture = re.search(r"\A# [^\n]+\n\n!\[[^\]]+\]\(([^)]+)\)", first)
    assert picture is not None
    assert ((ROOT / path).parent / picture[1]).resolve().is_file()
