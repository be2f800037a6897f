"""The page about mechanisms runs as printed, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tacit.mechanisms as room

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "mechanisms.md").read_text()
# What goes on with the names of a block above, or shows an error, is run with the whole page by the contracts.
BLOCKS = [
    block
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    if block.startswith(("from ", "import ")) and "# raises" not in block
]


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_examples_run(block) -> None:
    exec(compile(block, "docs/mechanisms.md", "exec"), {})


def test_the_page_of_direct_use_runs_from_top_to_bottom() -> None:
    text = (ROOT / "docs" / "direct-mechanisms.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= text.count("\n## ") >= 8
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/direct-mechanisms.md", "exec"), names)


def test_every_mechanism_is_on_the_page_and_every_link_leads_to_a_proof() -> None:
    mechanisms = [n for n in room.__all__ if hasattr(getattr(room, n), "bound") and "Mechanism" not in n]
    assert len(mechanisms) >= 18
    for name in mechanisms:
        assert f"`{name}`" in PAGE, name
    for target in re.findall(r"\]\((theory/[a-z-]+\.md)\)", PAGE):
        text = (ROOT / "docs" / target).read_text()
        for heading in ("**Statement.**", "**Assumptions.**", "**Proof.**", "**Source.**", "**In code.**"):
            assert heading in text, f"{target} lacks {heading}"


def test_theorems_named_in_docstrings_have_pages() -> None:
    for path in sorted((ROOT / "src" / "tacit" / "mechanisms").glob("*.py")):
        for names in re.findall(r"Theorems? ((?:`[a-z-]+`(?:, )?)+)", path.read_text()):
            for name in re.findall(r"`([a-z-]+)`", names):
                assert (ROOT / "docs" / "theory" / f"{name}.md").exists(), f"{path.name}: {name}"


def test_every_mechanism_is_reached_or_on_the_page_of_direct_use() -> None:
    """One that no other file names is called by nobody but its users: the page shows where."""
    page = (ROOT / "docs" / "direct-mechanisms.md").read_text() + (ROOT / "docs" / "local.md").read_text()
    files = [
        path.read_text() for path in (ROOT / "src" / "tacit").rglob("*.py") if path.name != "__init__.py"
    ]
    names = [n for n in room.__all__ if hasattr(getattr(room, n), "bound") and "Mechanism" not in n]
    chosen_by = {"GaussianSelection": "partition_selection"}  # in its own file

    def told(name: str) -> int:
        return sum(re.search(rf"\b{name}\b", text) is not None for text in files)

    lonely = [n for n in names if told(chosen_by.get(n, n)) < 2]
    assert "QuantileSelection" in lonely
    assert [n for n in lonely if not re.search(rf"\b{n}\b", page)] == []
