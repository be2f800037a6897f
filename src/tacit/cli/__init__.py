"""The command line: thin, the same calls as the library.

Every command has --json and exits 0, 1 (refused: no law, over budget), 2 (bad input, nothing was charged), 3 (the
budget was charged and nothing was released) or 130 (interrupted), with one clear sentence on standard error and no
traceback.
"""

from __future__ import annotations

import functools
import gc
import io
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

from tacit.errors import TacitError, UnknownName

__all__ = ["main"]

COMPLETING = "_TACIT_COMPLETE"
"""The variable with which a shell asks for the next words (`tacit --install-completion`)."""

_ALLOCATIONS = 20_000
"""New objects between two searches for unreachable cycles: loading modules makes many objects and no garbage."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `tacit` on the shell."""
    if arguments is None:
        gc.set_threshold(_ALLOCATIONS, 10, 10)
    try:
        if arguments is None:
            _told_to_end()
        _encodable()
        code = _run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        _say("interrupted; nothing was left half-written")
        code = 130
    except BrokenPipeError:
        code = _silent(0)
    except OSError as problem:  # most often a full disk behind standard output
        _say(f"the system refused: {(problem.strerror or type(problem).__name__).lower()}")
        code = _silent(1)
    if arguments is None:
        gc.freeze()  # the system takes the memory back: looking for cycles at the end took a fifth of a small command
        sys.exit(code)
    return code


def _told_to_end() -> None:
    """SIGTERM (a service that stops, `timeout`) is an interrupt: the command tidies up, as after Ctrl-C."""
    import signal

    def stop(*_: object) -> None:
        # A second one ends at once.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, stop)


def _run(arguments: Sequence[str] | None) -> int:
    import typer

    commands = _commands()
    try:
        with _waiting():
            result = commands(args=list(arguments) if arguments is not None else None, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except TacitError as problem:
        _say(str(problem))
        if problem.after_charge and "--json" in (sys.argv[1:] if arguments is None else arguments):
            _print_charged(problem)
        return problem.exit_code
    except typer.TyperException as problem:
        _say(_sentence(problem))
        return 2
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as end:  # the parser's own way to say that nobody reads any more
        if COMPLETING in os.environ:
            return end.code if isinstance(end.code, int) else 0
        raise BrokenPipeError from None


def _print_charged(problem: TacitError) -> None:
    """The object of a command that charged the budget and released nothing."""
    from tacit.cli.output import print_json

    print_json(
        {
            "charged": True,
            "released": False,
            "error": type(problem).__name__,
            "message": problem.message,
            "hint": problem.hint,
        }
    )


@functools.cache
def _commands() -> Any:
    """All commands with their options. They are read from the signatures once in a process, since that takes longer
    than most commands.
    """
    import typer.main

    from tacit.cli.app import app
    from tacit.cli.examples import commands, with_examples
    from tacit.cli.output import lightened

    root = with_examples(typer.main.get_command(app))
    for _, command in commands(root):
        command.get_params = lightened(command.get_params)
    return root


def _waiting() -> AbstractContextManager[None]:
    """On a terminal, a slow command says so after a second; otherwise this loads nothing."""
    if sys.stderr is None or not sys.stderr.isatty():
        return nullcontext()
    from tacit.report.progress import waited

    return waited()


def _say(sentence: str) -> None:
    with suppress(OSError):
        print(f"tacit: {sentence}", file=sys.stderr)


def _encodable() -> None:
    """Characters outside of the stream's encoding are spelled out, and raise no error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _options(context: Any) -> list[str]:
    """The names of a command's options."""
    params = context.command.get_params(context)
    return [name for param in params for name in (*param.opts, *param.secondary_opts) if name.startswith("-")]


def _silent(code: int) -> int:
    """Nothing more is printed: the rest of the output would fail again when the interpreter ends."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    return code


def _sentence(problem: Exception) -> str:
    """The parser's own words, on one line; for an unknown option, the most similar known one."""
    typed, context = getattr(problem, "option_name", None), getattr(problem, "ctx", None)
    if isinstance(typed, str) and context is not None:
        return str(UnknownName(what="option", name=typed, known=_options(context)))
    told = getattr(problem, "format_message", None)
    return " ".join(str(told() if callable(told) else problem).split()).rstrip(".")
