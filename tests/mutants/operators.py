"""Breaches made by a machine: simple changes of one place in the source, for lines that were changed lately.

The kept list says what somebody thought of. Here every comparison, sum, product, guard, constant and call in a set of
lines is changed in the ways in which such lines have been wrong: `<` for `<=`, `max` for `+`, one factor dropped, one
call dropped, two arguments exchanged, `or` for `and`, a guard that is never entered, a constant off by one, the other
end of an interval, only the first of several. Each change is one edit of the text, found in the syntax tree.
"""

from __future__ import annotations

import ast
import random
import re
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "src" / "tacit"
EQUIVALENT = HERE / "equivalent.toml"
"""Changes that change nothing anybody could see, each with the reason: `file`, `old` and `new` line, `why`."""

_COMPARED: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=",),
    ast.LtE: ("<",),
    ast.Gt: (">=",),
    ast.GtE: (">",),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
_EXCHANGED = {
    "max": "min",
    "min": "max",
    "all": "any",
    "any": "all",
    "ceil": "floor",
    "floor": "ceil",
    "upper": "lower",
    "lower": "upper",
    "up": "down",
    "down": "up",
    "high": "low",
    "low": "high",
    "maximum": "minimum",
    "minimum": "maximum",
    "argmax": "argmin",
    "argmin": "argmax",
}
_UNTRIED_CALLS = {"print", "update_wrapper", "cast", "overload", "field", "dataclass"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The text from `start` to `end` of a file becomes `new`; `function` is the first line of the function around."""

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str
    function: int
    operator: str

    def text(self, source: str) -> str:
        """The whole file with the change made."""
        data = source.encode()
        return (data[: self.start] + self.new.encode() + data[self.end :]).decode()

    def lines(self, source: str) -> tuple[str, str]:
        """The line as it was and as it becomes, without the space around them."""
        data = source.encode()
        left = data.rfind(b"\n", 0, self.start) + 1
        right = data.find(b"\n", self.end)
        right = len(data) if right < 0 else right
        before = data[left:right].decode()
        after = (data[left : self.start] + self.new.encode() + data[self.end : right]).decode()
        return " ".join(before.split()), " ".join(after.split())


def changed_lines(base: str) -> dict[str, set[int]]:
    """The lines of src/tacit that were added or changed since a revision, by file; unsaved changes count too."""
    words = ["git", "diff", "-U0", "--no-color", "--no-ext-diff", base, "--", "src/tacit"]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found: dict[str, set[int]] = {}
    file = ""
    for line in said.splitlines():
        if line.startswith("+++ "):
            file = line[6:].removeprefix("src/tacit/") if line.startswith("+++ b/src/tacit/") else ""
        elif line.startswith("@@") and file.endswith(".py"):
            start, _, count = re.findall(r"\+(\d+)(,(\d+))?", line)[0]
            found.setdefault(file, set()).update(range(int(start), int(start) + int(count or 1)))
    return found


def last_release() -> str:
    """The last tag, or the commit before this one."""
    words = ["git", "describe", "--tags", "--abbrev=0"]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return said.stdout.strip() or "HEAD~1"


def equivalent() -> set[tuple[str, str, str]]:
    """The listed changes that nobody can notice."""
    if not EQUIVALENT.exists():
        return set()
    entries = tomllib.loads(EQUIVALENT.read_text()).get("equivalent", [])
    return {(e["file"], " ".join(e["old"].split()), " ".join(e["new"].split())) for e in entries}


def changes(file: str, lines: set[int] | None = None) -> list[Change]:
    """Every change of one file, or of some of its lines, each once."""
    source = (PACKAGE / file).read_text()
    found = {}
    for change in _Finder(file, source).all():
        if (lines is None or change.line in lines) and change.old != change.new:
            found.setdefault((change.start, change.end, change.new), change)
    return list(found.values())


def some(everything: Sequence[Change], number: int, seed: str) -> list[Change]:
    """So many of them, drawn evenly from the operators, since there are far more constants than guards."""
    shuffled = list(everything)
    random.Random(seed).shuffle(shuffled)
    kinds: dict[str, list[Change]] = {}
    for change in shuffled:
        kinds.setdefault(change.operator, []).append(change)
    found: list[Change] = []
    while len(found) < number and any(kinds.values()):
        for few in kinds.values():
            while few and not _is_python(few[-1]):
                few.pop()
            if few and len(found) < number:
                found.append(few.pop())
    return found


def _is_python(change: Change) -> bool:
    try:
        ast.parse(change.text((PACKAGE / change.file).read_text()))
    except SyntaxError:
        return False
    return True


class _Finder:
    def __init__(self, file: str, source: str) -> None:
        self.file = file
        self.tree = ast.parse(source)
        self.data = source.encode()
        self.dropped: set[int] = set()
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def all(self) -> Iterator[Change]:
        yield from self._visit(self.tree, 0)

    def _visit(self, node: ast.AST, function: int) -> Iterator[Change]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            # Decorators come first: that is the line that a code object knows.
            function = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            for child in (*node.args.defaults, *node.args.kw_defaults, *node.body):
                if child is not None and not _is_text(child):
                    yield from self._visit(child, function)
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from self._visit(node.value, function)
            return
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr):
            return
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets
        ):
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self.dropped.add(id(node.value))
        for new, operator in self._new(node):
            yield self._change(node, new, operator, function)
        for child in ast.iter_child_nodes(node):
            if (
                isinstance(node, ast.Call)
                and isinstance(child, ast.keyword)
                and child.arg in ("hint", "why", "theorem")
            ):
                continue
            if isinstance(node, ast.ClassDef) and child in (*node.decorator_list, *node.bases):
                continue
            yield from self._visit(child, function)

    def _change(self, node: ast.AST, new: tuple[ast.AST, str] | str, operator: str, function: int) -> Change:
        place, text = (node, new) if isinstance(new, str) else new
        start, end = self._span(place)
        line = self.data.count(b"\n", 0, start) + 1
        old = self.data[start:end].decode()
        values = {"file": self.file, "line": line, "old": old, "new": text, "function": function}
        return Change(start=start, end=end, operator=operator, **values)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        start = self.starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = self.starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return start, end

    def _said(self, node: ast.AST) -> str:
        start, end = self._span(node)
        text = self.data[start:end].decode()
        plain = isinstance(node, ast.Name | ast.Constant | ast.Attribute | ast.Call | ast.Subscript)
        return text if plain and "\n" not in text else f"({text})"

    def _new(self, node: ast.AST) -> Iterator[tuple[tuple[ast.AST, str] | str, str]]:
        said = self._said
        match node:
            case ast.Compare():
                parts = [node.left, *node.comparators]
                for i, op in enumerate(node.ops):
                    for other in _COMPARED[type(op)]:
                        words = [said(parts[0])]
                        for j, (op_, part) in enumerate(zip(node.ops, parts[1:], strict=True)):
                            words += [other if i == j else _SAID[type(op_)], said(part)]
                        yield " ".join(words), "comparison"
            case ast.BoolOp(op=op, values=values):
                other = " or " if isinstance(op, ast.And) else " and "
                same = " and " if isinstance(op, ast.And) else " or "
                yield f"({other.join(map(said, values))})", "and/or"
                if len(values) > 2:
                    for i in range(len(values)):
                        yield (
                            f"({same.join(said(v) for j, v in enumerate(values) if j != i)})",
                            "part dropped",
                        )
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=inner):
                yield said(inner), "sign or not dropped"
            case ast.BinOp(left=left, op=op, right=right):
                if _is_text(left) or _is_text(right) or isinstance(left, ast.JoinedStr) or _is_type(node):
                    return
                if isinstance(op, ast.Add):
                    yield f"max({said(left)}, {said(right)})", "max for sum"
                    yield f"({said(left)} - {said(right)})", "minus for plus"
                elif isinstance(op, ast.Mult | ast.MatMult):
                    yield said(left), "factor dropped"
                    yield said(right), "factor dropped"
                elif isinstance(op, ast.Sub | ast.Div | ast.FloorDiv | ast.Pow | ast.Mod):
                    yield said(left), "second operand dropped"
                elif isinstance(op, ast.BitAnd | ast.BitOr):
                    yield said(left), "part dropped"
                    yield said(right), "part dropped"
            case ast.AugAssign(target=target, value=value):
                yield f"{said(target)} = {said(value)}", "only the last"
            case ast.Constant(value=bool() as value):
                yield str(not value), "constant"
            case ast.Constant(value=int() as value):
                yield str(value + 1), "constant"
                if value:
                    yield str(value - 1), "constant"
            case ast.Constant(value=float() as value):
                yield repr(value * 2), "constant"
            case ast.Name(id=name, ctx=ast.Load()) if name in _EXCHANGED:
                yield _EXCHANGED[name], "the other one"
            case ast.Attribute(value=inner, attr=name, ctx=ast.Load()) if name in _EXCHANGED:
                yield f"{said(inner)}.{_EXCHANGED[name]}", "the other one"
            case ast.Expr(value=ast.Call()):
                yield "pass", "call dropped"
            case ast.Call(func=func, args=args):
                if ast.unparse(func).rpartition(".")[2] in _UNTRIED_CALLS:
                    return
                alone = len(args) == 1 and not node.keywords and id(node) not in self.dropped
                if alone and isinstance(func, ast.Name) and func.id[0].islower():
                    yield said(args[0]), "call dropped"
                plain = [a for a in args if not isinstance(a, ast.Starred)]
                if ast.unparse(func) in ("max", "min"):
                    return
                if len(plain) >= 2 and len(plain) == len(args) and ast.dump(args[0]) != ast.dump(args[1]):
                    first, last = self._span(args[0])[0], self._span(args[1])[1]
                    start, end = self._span(node)
                    text = self.data[start:first].decode()
                    if not text.rstrip().endswith("(") or "\n" in self.data[first:last].decode():
                        return
                    tail = self.data[last:end].decode()
                    yield f"{text}{said(args[1])}, {said(args[0])}{tail}", "arguments exchanged"
            case ast.If(test=test) | ast.While(test=test):
                if isinstance(node, ast.If):
                    yield (test, "False"), "guard never entered"
                    yield (test, f"not ({said(test)})"), "guard negated"
            case ast.IfExp(body=body, orelse=orelse):
                yield said(body), "one branch"
                yield said(orelse), "one branch"
            case ast.For(iter=several) | ast.comprehension(iter=several):
                yield (several, f"list({said(several)})[:1]"), "only the first"
                yield (several, f"list({said(several)})[-1:]"), "only the last"
                if isinstance(node, ast.comprehension):
                    for condition in node.ifs:
                        yield (condition, "True"), "condition dropped"


_SAID: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


def _is_text(node: ast.AST) -> bool:
    inner = node.value if isinstance(node, ast.Expr) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, str)


def _is_type(node: ast.AST) -> bool:
    """`int | None` is a type, not a sum."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.BitOr):
        return False
    right = node.right
    return (isinstance(right, ast.Constant) and right.value is None) or (
        isinstance(right, ast.Name)
        and (right.id[:1].isupper() or right.id in ("int", "float", "str", "bytes", "bool"))
    )
