"""One way to plain values and to text: `to_dict()` gives values for JSON, `summary()` sentences for people.

A name that says only that something is said leaves a reader to guess which of the two it gives, and a property hides
that it is made anew. `words` stays where it means machine words: the random bits of a source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).parents[2] / "src" / "tacit"
VAGUE = {"told", "stated", "said", "noted"}
OLD_NAME = ("statistics/base.py", "describe")
"""It gives plain values for one version more, with a warning: classes of others may define it."""
RANDOM_WORDS = {"attacks/finding.py", "curator/rehearsing.py", "noise/source.py"}

Found = tuple[str, ast.FunctionDef, bool]


def _functions() -> Iterator[Found]:
    """Every function and method of the package: its file, its definition, and whether it belongs to a class."""
    for path in sorted(SRC.rglob("*.py")):
        tree = ast.parse(path.read_text())
        owned = {id(f) for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for f in c.body}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield path.relative_to(SRC).as_posix(), node, id(node) in owned


def _returns(node: ast.FunctionDef) -> str:
    return "" if node.returns is None else ast.unparse(node.returns)


def test_no_function_has_a_name_that_only_says_that_something_is_said() -> None:
    found = [
        f"{file}:{node.lineno} {node.name}"
        for file, node, _ in _functions()
        if (name := node.name.lstrip("_")) in VAGUE or (name == "words" and file not in RANDOM_WORDS)
    ]
    assert found == []


def test_no_property_is_named_record() -> None:
    """A record is what the ledger keeps; the plain values of an object come from `to_dict`."""
    found = [
        f"{file}:{node.lineno}"
        for file, node, in_class in _functions()
        if in_class and node.name == "record" and "property" in map(ast.unparse, node.decorator_list)
    ]
    assert found == []


def test_plain_values_and_texts_are_methods_of_one_form() -> None:
    """`describe` is the phrase for people that bounds, units, conditions and treatments have."""
    forms = {"to_dict": "dict", "summary": "str", "describe": "str"}
    wrong = []
    for file, node, in_class in _functions():
        if not in_class or node.name not in forms or (file, node.name) == OLD_NAME:
            continue
        decorators = [ast.unparse(d) for d in node.decorator_list]
        needed = len(node.args.args) - len(node.args.defaults) - 1
        if (
            not _returns(node).startswith(forms[node.name])
            or {"property", "cached_property"} & set(decorators)
            or (node.name == "to_dict" and needed)
        ):
            wrong.append(f"{file}:{node.lineno} {node.name}")
    assert wrong == []
