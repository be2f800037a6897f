"""The one door to the engines: every call that reads a file's head, or a person's row, passes one of these.

Engines, Arrow, pandas and Polars quote the row they stumble over: in the error, in its context, in a warning, in a
log line. Two functions keep all of that inside.

- `metadata` is for what is known without rows: types, columns, footers, headers. It runs before the charge, and says
  what is wrong with the table in words of its own.
- `rows`, and `batches` for a result that comes in parts, are for all that reads rows, which happens after the charge.
  Whatever goes wrong there, they say one fixed sentence (`ReadFailed`), without a cause and without a context. What
  a single row could trigger must not even come so far: it becomes a missing value in the engine.

A request to stop (KeyboardInterrupt, SystemExit) passes both, without what was going on when it came.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

from tacit.errors import BadData, ReadFailed, TacitError
from tacit.sources.watching import stopped

__all__ = ["batches", "metadata", "rows"]

T = TypeVar("T")
STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)
LOGGERS = (
    "py4j",
    "py4j.java_gateway",
    "py4j.clientserver",
    "SQLQueryContextLogger",
    "DataFrameQueryContextLogger",
)
"""Loggers of the engines that repeat an error with its words."""


def metadata(action: Callable[[], T], *, source: str, problem: str, hint: str = "") -> T:
    """What the action gives; `BadData` in our words if it fails. For types and names: it must read no row."""
    stop: BaseException | None = None
    with _quiet:
        try:
            return action()
        except TacitError as ours:
            stop = ours
        except STOPS as wish:
            stop = wish
        except BaseException:
            # Raised below, outside the handler: not even the traceback's context keeps the engine's words.
            pass
    raise _bare(stop) if stop is not None else BadData(source=source, problem=problem, hint=hint)


def rows(action: Callable[[], T], *, source: str) -> T:
    """What the action gives; the one fixed sentence if anything at all goes wrong in it."""
    stop: BaseException | None = None
    with _quiet:
        try:
            return action()
        except STOPS as wish:
            stop = wish
        except BaseException:
            # Errors of our own are no exception: if a row can trigger one, it tells of the row.
            stop = stopped()
    raise _bare(stop) if stop is not None else ReadFailed(source=source)


def batches(start: Callable[[], Iterator[Any]], *, source: str) -> Iterator[Any]:
    """The parts of a result, each through the door."""
    parts = rows(lambda: iter(start()), source=source)
    while (part := rows(lambda: next(parts, None), source=source)) is not None:
        yield part


def _bare(error: BaseException) -> BaseException:
    error.__cause__ = error.__context__ = error.__traceback__ = None
    return error


@cache
def _loggers() -> tuple[logging.Logger, ...]:
    return tuple(map(logging.getLogger, LOGGERS))


def _heard_again(loggers: list[logging.Logger]) -> None:
    for logger in loggers:
        logger.disabled = False


class _Quiet:
    """No warning and no log line of an engine while anybody is inside; threads may enter at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                stack = contextlib.ExitStack()
                # Filters belong to the process, so that the first one in sets them and the last one out restores them.
                stack.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
                loud = [logger for logger in _loggers() if not logger.disabled]
                for logger in loud:
                    logger.disabled = True
                stack.callback(_heard_again, loud)
                self._stack = stack
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._stack.close()


_quiet = _Quiet()
