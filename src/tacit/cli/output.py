"""What every command shares: JSON on standard output, and files that are never left half-written."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tacit.errors import InvalidParameter, UnknownName

__all__ = ["print_json", "write_picture", "write_whole"]

PICTURES = (".pdf", ".png", ".svg")


def print_json(data: Mapping[str, Any]) -> None:
    """One object on standard output; numbers at full precision, keys in their given order.

    JSON has no word for what is endless or no number: these are the strings "inf", "-inf" and "nan".
    """
    print(json.dumps(_strict(data), indent=2, allow_nan=False))


def _strict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {(str(key) if isinstance(key, float) else key): _strict(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(one) for one in value]
    return str(float(value)) if isinstance(value, float) and not math.isfinite(value) else value


def write_whole(path: Path, write: Callable[[Path], None]) -> Path:
    """Write to a neighbour first and move it into place, so that the file is whole or absent."""
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
    """The same for a picture, whose kind is that of its ending; without one it would be written beside the file."""
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
