"""The register of theorems, made from the front matter of docs/theory: `python docs/_site/theorems.py` writes it.

The package has no pages, so that it carries their front matter as JSON: room, id, and what the page says of the
theorem. A contract test compares the file with what this one makes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
THEORY = ROOT / "docs" / "theory"
REGISTER = ROOT / "src" / "tacit" / "guarantees" / "theorems.json"
KEYS = ["id", "statement", "source", "assumptions", "standing", "room"]
STANDINGS = ["as printed", "corrected", "sharper"]


def parts(text: str) -> tuple[str, str]:
    """The front matter of a page, without its lines of hyphens, and the page below it."""
    found = re.fullmatch(r"---\n(.*?\n)---\n\n(.*)", text, re.S)
    if not found:
        raise ValueError(
            "a page begins with front matter between two lines of hyphens, and an empty line below"
        )
    return found[1], found[2]


def front(path: Path) -> dict[str, str]:
    """What the front matter of a page says, checked: every key once and in order, each with one line of text."""
    try:
        head, _ = parts(path.read_text("utf-8"))
        said = yaml.safe_load(head)
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path.name}: {error}") from None
    if not isinstance(said, dict) or [line.split(":")[0] for line in head.splitlines()] != KEYS:
        raise ValueError(
            f"{path.name}: front matter has one line for each of {', '.join(KEYS)}, in this order"
        )
    for key, value in said.items():
        if not isinstance(value, str) or not value or value != " ".join(value.split()):
            raise ValueError(f"{path.name}: {key} must be one line of text; put it between double quotes")
    if said["id"] != path.stem:
        raise ValueError(f"{path.name}: the id must be the name of the page, {path.stem}")
    if said["standing"] not in STANDINGS:
        raise ValueError(f"{path.name}: standing must be one of {', '.join(STANDINGS)}")
    return said


def register() -> str:
    """The text of the register: rooms and ids in the order of the alphabet."""
    pages = [front(path) for path in THEORY.glob("*.md") if path.name != "README.md"]
    found: dict[str, dict[str, dict[str, str]]] = {}
    for said in sorted(pages, key=lambda said: (said["room"], said["id"])):
        room = found.setdefault(said["room"], {})
        room[said["id"]] = {key: said[key] for key in KEYS if key not in ("id", "room")}
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    REGISTER.write_text(register(), "utf-8")
    print(f"wrote {REGISTER.relative_to(ROOT)}")
