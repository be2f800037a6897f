"""The library's own source, room by room; each file is read and parsed once a process."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

SRC = Path(__file__).parents[2] / "src" / "tacit"
FILES = sorted(SRC.rglob("*.py"))


def named(path: Path) -> str:
    """A file as it is called below src/tacit."""
    return path.relative_to(SRC).as_posix()


def rooms() -> dict[str, list[Path]]:
    """Files by room; those that stand beside the rooms come together, as "tacit"."""
    out: dict[str, list[Path]] = {}
    for path in FILES:
        room, _, rest = named(path).partition("/")
        out.setdefault(room if rest else "tacit", []).append(path)
    return out


ROOMS = rooms()


@functools.cache
def text(path: Path) -> str:
    """What a file says."""
    return path.read_text(encoding="utf-8")


@functools.cache
def tree(path: Path) -> ast.Module:
    """A file, parsed. It belongs to all: look, and change nothing."""
    return ast.parse(text(path))
