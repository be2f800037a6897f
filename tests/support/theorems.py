"""Which theorems the code can name: read off its source, without running it."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from support import code

ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
NAMES = {"theorem", "theorems", "lower_bound_theorem", "rests_on"}
TOLD = re.compile(r"[Tt]heorems?\s+((?:`[a-z0-9-]+`(?:,\s+|\s+and\s+)?)+)")
"""Words of docstrings and comments: theorem `laplace`, theorems `laplace`, `rounded-gaussian`."""


@functools.cache
def named_in(path: Path) -> dict[str, int]:
    """Every theorem id that a module can put into a certificate, a price or a law, with the line that says it."""
    found = dict(_coded(code.tree(path)))
    for match in TOLD.finditer(re.sub(r"\n\s*#?\s*", " ", code.text(path))):
        found |= dict.fromkeys(re.findall(r"`([a-z0-9-]+)`", match[1]), 0)
    return found


def _coded(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name="theorems", body=[first, *rest]):
                yield from _words([*rest] if ast.get_docstring(node) else [first, *rest])
            case ast.keyword(arg=str(name), value=value) if name in NAMES:
                yield from _words([value])
            case ast.Assign(targets=[target], value=value) if _name(target) in NAMES:
                yield from _words([value])
            case ast.Assign(targets=[ast.Subscript(value=target, slice=place)]) if _name(target) in NAMES:
                yield from _words([place])
            case ast.AnnAssign(target=target, value=ast.expr() as value) if _name(target) in NAMES:
                yield from _words([value])
            case ast.Call(func=ast.Name(id="theorem"), args=[first]):
                yield from _words([first])
            case ast.Call(func=ast.Name(id="law"), args=[first], keywords=more):
                # Where a law says what it rests on, its own id is no theorem.
                yield from _words([] if any(k.arg == "rests_on" for k in more) else [first])
            case ast.Call(func=ast.Attribute(value=target), args=args) if _name(target) in NAMES:
                yield from _words(args)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _words(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, int]]:
    """Words that are values; those that are compared with something are not ids."""
    for node in nodes:
        compared = {id(x) for c in ast.walk(node) if isinstance(c, ast.Compare) for x in ast.walk(c)}
        for x in ast.walk(node):
            word = x.value if isinstance(x, ast.Constant) and isinstance(x.value, str) else ""
            if ID.fullmatch(word) and word not in NAMES and id(x) not in compared:
                yield word, x.lineno
