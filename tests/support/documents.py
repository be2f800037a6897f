"""Markdown that is run: code blocks, the values that their comments claim, the output shown below them.

Three conventions, in every page that `run` is given:

    expression  # 0.2876: any words          the value is this number, to the digits shown
    expression  # epsilon = 2.142            so is this field of the value
    statement   # raises NoLaw               exactly this error is raised

and a ```text block directly below a ```python block is what that block printed, or the error that it
raised; line breaks may differ.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NUMBER = r"(?:-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf\b)"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its lines, where it starts, and what stands between it and the next."""

    language: str
    body: str
    line: int
    gap: str


@dataclass
class Outcome:
    """How many claims a page made that were checked, and which errors it showed."""

    checked: int = 0
    raised: list[BaseException] = field(default_factory=list)


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a page, in order."""
    found = list(FENCE.finditer(text))
    ends = [*(m.start() for m in found[1:]), len(text)][: len(found)]
    return [
        Block(
            language=m.group(1),
            body=m.group(2),
            line=text[: m.start()].count("\n") + 2,
            gap=text[m.end() : end].strip(),
        )
        for m, end in zip(found, ends, strict=True)
    ]


def run(text: str, name: str, *, shown: bool, namespace: dict[str, Any] | None = None) -> Outcome:
    """Run the python blocks of a page one after the other, in one namespace.

    `shown` demands that everything printed is shown in a text block.
    """
    outcome = Outcome()
    scope: dict[str, Any] = {"__name__": name} if namespace is None else namespace
    page = blocks(text)
    for index, block in enumerate(page):
        if block.language != "python":
            continue
        printed, told = _run_block(block, name, scope, outcome)
        below = page[index + 1] if index + 1 < len(page) and not block.gap else None
        if below is not None and below.language == "text":
            where = f"{name}:{below.line}"
            assert _words(below.body) == _words(told), f"{where} shows other output than:\n{told}"
            outcome.checked += 1
        elif shown:
            assert not printed, f"{name}:{block.line} prints what the page does not show:\n{printed}"
    return outcome


def _run_block(block: Block, name: str, scope: dict[str, Any], outcome: Outcome) -> tuple[str, str]:
    """What the block printed, and that together with the errors it claims and raises."""
    lines = block.body.splitlines()
    output = io.StringIO()
    errors = ""
    # Padding with empty lines makes tracebacks and assertions point into the page itself.
    source = "\n" * (block.line - 1) + block.body
    for node in ast.parse(source, filename=name).body:
        assert node.end_lineno is not None
        rest = lines[node.end_lineno - block.line].encode()[node.end_col_offset :].decode().strip()
        claim = rest.removeprefix("#").strip() if rest.startswith("#") else ""
        before = output.tell()
        value, error = _run_statement(node, name, scope, output)
        where = f"{name}:{node.lineno}"
        if claim.startswith("raises "):
            expected = claim.split()[1].rstrip(".,:")
            assert type(error).__name__ == expected, f"{where} raised {error!r}, not {expected}"
            outcome.raised.append(error)  # type: ignore[arg-type]
            errors += f"{type(error).__name__}: {error}\n"
            outcome.checked += 1
            continue
        if error is not None:
            raise error
        if claim and isinstance(node, ast.Expr):
            if _is_print(node):
                said = output.getvalue()[before:].strip()
                assert said == claim or not re.search(r"\d", claim), f"{where} printed {said!r}"
                outcome.checked += said == claim
            else:
                outcome.checked += check_claim(value, claim, where)
    return output.getvalue(), output.getvalue() + errors


def _run_statement(
    node: ast.stmt, name: str, scope: dict[str, Any], output: io.StringIO
) -> tuple[Any, Exception | None]:
    with contextlib.redirect_stdout(output):
        try:
            if isinstance(node, ast.Expr):
                return eval(compile(ast.Expression(node.value), name, "eval"), scope), None
            exec(compile(ast.Module([node], []), name, "exec"), scope)
        except Exception as error:
            return None, error
    return None, None


def _is_print(node: ast.Expr) -> bool:
    return (
        isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "print"
    )


def check_claim(value: Any, claim: str, where: str) -> int:
    """Compare a value with the numbers that a comment claims; how many there were."""
    if isinstance(value, bool):
        assert claim.startswith(str(value)), f"{where} is {value}, the page says {claim!r}"
        return 1
    leading = re.match(NUMBER, claim)
    if leading and isinstance(value, int | float):
        assert agrees(float(value), leading.group()), f"{where} is {value!r}, the page says {claim!r}"
        return 1
    checked = 0
    for field_name, number in re.findall(rf"\b(epsilon|delta|rho|mu|gamma) = ({NUMBER})", claim):
        actual = _field(value, field_name)
        assert actual is not None, f"{where} has no {field_name}"
        assert agrees(actual, number), f"{where} has {field_name} = {actual!r}, the page says {number}"
        checked += 1
    return checked


def _field(value: Any, name: str) -> float | None:
    for holder in (value, getattr(value, "bound", None), getattr(value, "condition", None)):
        found = getattr(holder, name, None)
        if isinstance(found, int | float):
            return float(found)
    return None


def agrees(value: float, shown: str) -> bool:
    """Is `shown` the value to its own digits: rounded to the nearest, or upwards?"""
    if "inf" in shown:
        return value == float(shown)
    mantissa, _, exponent = shown.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return -0.5 * unit * (1 + 1e-9) <= float(shown) - value < unit * (1 - 1e-9)


def _words(text: str) -> str:
    return " ".join(text.split())


def page(path: Path) -> str:
    """A page's text."""
    return path.read_text(encoding="utf-8")
