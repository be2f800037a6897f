"""Sentences that people read, drawn at random: from guides, theory, help, error texts and docstrings.

    python tests/support/sentences.py 7            100 sentences with seed 7, each with its place
    python tests/support/sentences.py 7 --count 20

Read each one once, aloud. At most five of a hundred may need a second reading (docs/style.md). A theorem's formulas,
tables, code, headings and lists of names are no sentences. Each kind of text is drawn in proportion to its sentences.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import random
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FEWEST_WORDS = 6
_CODE = re.compile(r"^(```|~~~).*?^\1\s*$", re.DOTALL | re.MULTILINE)
_STATEMENT = re.compile(  # for a machine: SQL, markup, style sheets, addresses, lists of keys
    r"\s*(<|(SELECT|DELETE|INSERT|UPDATE|CREATE|ALTER|DROP|WITH|COPY|PRAGMA|SET) |https?:)"
    r"|.*[\w-]+:[^\s;:]+;[\w-]+:|[\w{}]+(, [\w{}]+)+\Z",
    re.DOTALL,
)
_END = re.compile(r"(?<=[.!?])[\"')*]*\s+(?=[A-Z`*\"(])")


def split(text: str) -> list[str]:
    """The sentences of a paragraph."""
    found = _END.split(re.sub(r"\s+", " ", text).strip())
    return [s for s in found if len(re.findall(r"[A-Za-z]{2,}", s)) >= FEWEST_WORDS]


def of_pages() -> Iterator[tuple[str, str]]:
    """Paragraphs and list items of every page; no code, tables, headings or front matter."""
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        if path.name == "style.md":  # its first column is bad on purpose
            continue
        text = _CODE.sub("\n", path.read_text(encoding="utf-8"))
        if text.startswith("---\n"):
            text = text[text.index("\n---\n", 4) + 5 :]
        for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)", text):
            if block.lstrip().startswith(("#", "|", "<", "    ", "!")) or "$$" in block:
                continue
            for sentence in split(re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "", block)):
                yield str(path.relative_to(ROOT)), sentence


def _text(node: ast.expr) -> str:
    """The words of a string or f-string; each value in it is shown as {}."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(v) if isinstance(v, ast.Constant) else "{}" for v in node.values)
    return ""


def of_code() -> Iterator[tuple[str, str]]:
    """Docstrings, and every text of six words or more: errors, hints, help, sentences of reports."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        inside: set[int] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                inside |= {id(v) for v in node.values}
            if not isinstance(node, ast.Constant | ast.JoinedStr) or id(node) in inside:
                continue
            if _STATEMENT.match(text := inspect.cleandoc(_text(node))):
                continue
            for block in re.split(r"\n\s*\n|\n(?= {4,}\S)", text):
                for sentence in split(block):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", sentence


def sample(seed: int, count: int = 100) -> list[tuple[str, str]]:
    """`count` sentences, each with its file."""
    return random.Random(seed).sample(sorted({*of_pages(), *of_code()}), count)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Draws sentences at random from docs, help, errors and docstrings."
    )
    parser.add_argument("seed", type=int)
    parser.add_argument("--count", type=int, default=100)
    given = parser.parse_args()
    for number, (place, sentence) in enumerate(sample(given.seed, given.count), 1):
        print(f"{number:3}. {sentence}\n     {place}")


if __name__ == "__main__":
    main()
