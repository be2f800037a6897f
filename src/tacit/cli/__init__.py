"""The command line: thin, the same calls as the library.

Every command has --json and exits 0, 1 (refused: no law, over budget) or 2 (bad input), with one clear
sentence on standard error and no traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tacit.errors import TacitError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `tacit` on the shell."""
    import typer

    from tacit.cli.app import app

    try:
        result = app(args=list(arguments) if arguments is not None else None, standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except TacitError as problem:
        print(f"tacit: {problem}", file=sys.stderr)
        code = problem.exit_code
    except typer.TyperException as problem:
        print(f"tacit: {_sentence(problem)}", file=sys.stderr)
        code = 2
    except (typer.Abort, KeyboardInterrupt):
        print("tacit: interrupted; nothing was left half-written", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        code = 0
    if arguments is None:
        sys.exit(code)
    return code


def _sentence(problem: Exception) -> str:
    """The parser's own words, on one line."""
    told = getattr(problem, "format_message", None)
    return " ".join(str(told() if callable(told) else problem).split()).rstrip(".")
