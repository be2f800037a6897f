"""Shared by all commands: JSON on standard output, and files that are never left half-written."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import typer

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.data_classes import dataclass

PICTURES = (".pdf", ".png", ".svg")


def print_json(data: Mapping[str, Any]) -> None:
    """One object on standard output; numbers at full precision, keys in their given order.

    JSON has no infinite numbers and no NaN. They are written as the strings "inf", "-inf" and "nan".
    """
    print(json.dumps(_strict(data), indent=2, allow_nan=False))


def _strict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {(str(key) if isinstance(key, float) else key): _strict(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(one) for one in value]
    return str(float(value)) if isinstance(value, float) and not math.isfinite(value) else value


def write_whole(path: Path, write: Callable[[Path], None]) -> Path:
    """Writes beside the target first and moves the file into place, so that it is complete or absent."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=path.suffix)
    except OSError as problem:
        raise InvalidParameter(
            parameter="output",
            value=str(path),
            must="be writable",
            hint=(problem.strerror or "the folder cannot be written to").lower(),
        ) from None
    os.close(handle)
    partial = Path(name)
    try:
        write(partial)
        partial.chmod(0o666 & ~_umask())
        partial.replace(path)
    except OSError as problem:
        raise InvalidParameter(
            parameter="output", value=str(path), must="be writable", hint=(problem.strerror or "").lower()
        ) from None
    finally:
        partial.unlink(missing_ok=True)
    return path


def write_picture(path: Path, draw: Callable[[Path], None]) -> Path:
    """The same for a picture, whose suffix names its format; a name without a suffix would put the picture
    beside the file.
    """
    if path.suffix.lower() not in PICTURES:
        raise UnknownName(
            what="kind of picture", name=path.suffix or path.name, known=PICTURES, hint="end the name in .png"
        )
    return write_whole(path, draw)


def _umask() -> int:
    """The process's file mode mask (which can only be read by setting it)."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# Options of plain types, read without the parser's validator.
#
# To turn "70" into 70 typer loads pydantic, which takes longer than most commands. Options of plain types, and lists of
# them, are read here; any other type, and any other version of the parser, is left alone.


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
}


@dataclass(frozen=True, slots=True)
class _PlainText:
    """Replaces typer's reader of one option."""

    read: Any
    must: str
    several: bool

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if self.several else None
        if self.several:
            return [self._one(each, param, ctx) for each in value]
        return self._one(value, param, ctx)

    def _one(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return self.read(value)
        except ValueError:
            raise typer.BadParameter(f"{value!r} is not {self.must}", ctx=ctx, param=param) from None


def lighten(param: Any) -> None:
    """Give an option of a plain type a reader of ours, unless it has a list of values, limits, or a reader."""
    about = getattr(param, "type_descriptor", None)
    limits = getattr(about, "parameter_info", None)
    kind = getattr(about, "annotation", None)
    several = getattr(param, "multiple", False) or getattr(param, "nargs", 0) == -1
    if several:
        kind = get_args(kind)[0] if get_origin(kind) is list else None
    names = ("min", "max", "exists", "resolve_path", "parser")
    limited = limits is None or any(getattr(limits, name, None) not in (None, False) for name in names)
    single = several or getattr(param, "nargs", 0) == 1
    if kind in READERS and single and not limited and getattr(param, "_runtime_param", 0) is None:
        param._runtime_param = _PlainText(*READERS[kind], several)


def lightened(get_params: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The options of a command, --help among them, with readers of ours where they are plain."""

    def params(ctx: Any) -> Any:
        found = get_params(ctx)
        for param in found:
            lighten(param)
        return found

    return params
