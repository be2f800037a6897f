"""TOML files as people and attackers write them: read with limits, and copied without anybody's password.

The parser of the standard library is right, but a file may be endless, be nested beyond the stack, or hold one
dotted name of 200 000 parts, for which it takes time that grows with the square. Strings and comments are told
apart from names here, so that a limit on names is one on names only.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from tacit.errors import InvalidParameter, visible
from tacit.ledger.places import without_credentials

__all__ = ["MOST_BYTES", "parse_toml", "read_text", "read_toml", "without_secrets"]

MOST_BYTES = 16 << 20
MOST_PARTS = 16
MOST_DEPTH = 16
LARGEST = 1 << 63

# Comments and the four kinds of strings of TOML; what is left between them are names, numbers and brackets. A string
# that is never closed is one to its end: the parser stops there.
_TOKEN = re.compile(
    r"#[^\n]*"
    r'|"""(?:[^"\\]|\\.|"{1,2}(?!"))*+(?:"{3,5})?+'
    r"|'''(?:[^']|'{1,2}(?!'))*+(?:'{3,5})?+"
    r'|"(?:[^"\\\n]|\\.)*+"?+'
    r"|'[^'\n]*+'?+",
    re.DOTALL,
)
# Possessive, and from the first letter of a name on: the time is linear in the length of the text.
_DOTTED = re.compile(rf"(?<![\w-])[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++){{{MOST_PARTS},}}+", re.ASCII)


def read_text(path: str | Path, *, parameter: str, most: int = MOST_BYTES) -> str:
    """A text file in UTF-8, not longer than `most` bytes; anything else is one clear error."""
    try:
        with Path(path).open("rb") as file:
            body = file.read(most + 1)
        if len(body) > most:
            raise InvalidParameter(
                parameter=parameter, value=str(path), must=f"have at most {most >> 20} MiB"
            )
        return body.decode("utf-8")
    except InvalidParameter:
        raise
    except (OSError, ValueError):
        raise InvalidParameter(
            parameter=parameter, value=str(path), must="be a readable text file", hint="text is UTF-8"
        ) from None


def read_toml(path: str | Path, *, parameter: str) -> dict[str, Any]:
    """The tables of a TOML file."""
    return parse_toml(read_text(path, parameter=parameter), parameter=parameter, name=str(path))


def parse_toml(text: str, *, parameter: str, name: str) -> dict[str, Any]:
    """The tables of a TOML text: well-formed, of 64-bit numbers, not nested deeper than anybody needs."""

    def refuse(problem: str) -> InvalidParameter:
        return InvalidParameter(parameter=parameter, value=name, must=f"be well-formed TOML: {problem}")

    if _DOTTED.search(_TOKEN.sub(lambda m: "" if m[0].startswith("#") else "s", text)):
        raise refuse(f"a name has more than {MOST_PARTS} parts")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise refuse(visible(str(problem)).rstrip(".").lower()[:200]) from None
    except RecursionError:
        raise refuse("it is nested too deeply") from None
    except ValueError:
        raise refuse("a number has too many digits") from None
    wrong = _odd(data)
    if wrong:
        raise refuse(wrong)
    return data


def _odd(value: Any, depth: int = 0) -> str:
    """What no plan may hold, whichever word it stands behind; nothing if all is well."""
    if depth > MOST_DEPTH:
        return "it is nested too deeply"
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return next((wrong for v in inner if (wrong := _odd(v, depth + 1))), "")
    if isinstance(value, int) and not -LARGEST <= value < LARGEST:
        return "a whole number has more than 64 bits"
    return ""


_SECRET = re.compile(r"pass(?:word|wd|phrase)|\bpwd\b|secret|token|credential", re.IGNORECASE)


def without_secrets(text: str) -> str:
    """The same text with every URL in its strings and comments stripped of names and passwords.

    Comments that name a secret are left out whole, since they need not be URLs.
    """

    def strip(match: re.Match[str]) -> str:
        token = match[0]
        if token.startswith("#"):
            # Of a comment nothing depends: a line that speaks of a secret is not copied at all.
            return "#" if _SECRET.search(token) else without_credentials(token)
        try:
            value = tomllib.loads(f"x = {token}")["x"]
        except tomllib.TOMLDecodeError:
            return without_credentials(token)
        safe = without_credentials(value)
        return token if safe == value else json.dumps(safe)

    return _TOKEN.sub(strip, text)
