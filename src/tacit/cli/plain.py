"""Options of plain types, read without the parser's validator.

To turn "70" into 70 typer loads pydantic, which takes longer than solving n = 70 does. Commands that answer at
once read str, int, float and Path themselves; any other type, and any other version of the parser, is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

__all__ = ["PlainCommand", "PlainGroup"]


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


READERS: dict[Any, tuple[Any, str]] = {
    bool: (_flag, "a flag"),
    str: (str, "text"),
    int: (int, "an integer"),
    float: (float, "a number"),
    Path: (Path, "a path"),
    Path | None: (Path, "a path"),
}


@dataclass(frozen=True, slots=True)
class _Plain:
    """Stands where typer keeps its own reader of one option."""

    read: Any
    must: str

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return None
        try:
            return self.read(value)
        except ValueError:
            raise typer.BadParameter(f"{value!r} is not {self.must}", ctx=ctx, param=param) from None


def lighten(param: Any) -> None:
    """Give an option of a plain type a reader of ours, unless it has a list of values, limits, or a reader."""
    about = getattr(param, "type_descriptor", None)
    limits = getattr(about, "parameter_info", None)
    reader = READERS.get(getattr(about, "annotation", None))
    single = not getattr(param, "multiple", False) and getattr(param, "nargs", 0) == 1
    names = ("min", "max", "exists", "resolve_path", "parser")
    limited = limits is None or any(getattr(limits, name, None) not in (None, False) for name in names)
    if reader and single and not limited and getattr(param, "_runtime_param", 0) is None:
        param._runtime_param = _Plain(*reader)


class PlainCommand(TyperCommand):
    """A command whose options of plain types need no pydantic."""

    def get_params(self, ctx: Any) -> Any:
        """The options, with readers of ours where they are plain."""
        params = super().get_params(ctx)
        for param in params:
            lighten(param)
        return params


class PlainGroup(TyperGroup):
    """The same for a group of commands, whose --help is such an option."""

    def get_params(self, ctx: Any) -> Any:
        """The options, with readers of ours where they are plain."""
        params = super().get_params(ctx)
        for param in params:
            lighten(param)
        return params
