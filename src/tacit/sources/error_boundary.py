"""The error boundary of the engines: every call that reads a file's header, or a person's row, runs inside one of
these contexts.

Engines, Arrow, pandas and Polars quote faulty rows: in the error, in its context, in a warning, in a log line.
Two functions keep all of these faults inside.

- `metadata` is for facts without rows: types, columns, footers, headers. It runs before the charge, and
describes faults of the table in words of its own. - `rows`, and `batches` for a result in parts, are for all
reads of rows, which happen after the charge.
  Any failure there gives one fixed sentence (`ReadFailed`), without a cause and without a context. A fault that
  a single row could cause must not get that far: the engine makes its value missing.

A request to stop (KeyboardInterrupt, SystemExit) passes both, without its context.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

from tacit.errors import BadData, InvalidParameter, ReadFailed, TacitError
from tacit.exact.data_classes import dataclass

# Who waits may watch: how much of a long piece of work is done, told to one function of the caller's own.
#
#     with tacit.watch(lambda step: print(step.what, step.done, step.of)):
#         survey.release(ask, epsilon=0.2)
#
# How many rows were read is a number from the data: it is told to whoever holds them and set the watcher in this very
# thread, and to nobody else. Nothing is told where nobody watches, and no step is ever written to a file, a log, a
# ledger or a certificate. A watcher that fails is not asked again; one that raises KeyboardInterrupt stops the work
# as Ctrl-C does, and what was charged or written by then stays.

T = TypeVar("T")
EVERY = 0.25
"""Seconds between two looks at an engine that is at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The progress of some work: `done` out of `of` (None if the total is unknown)."""

    what: str
    done: int
    of: int | None = None


Watcher = Callable[[Step], object]


class _Watch:
    """A watcher, until it fails."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher: Watcher | None = watcher

    def tell(self, step: Step) -> None:
        if self.watcher is None:
            return
        try:
            self.watcher(step)
        except Exception:
            self.watcher = None


_current: ContextVar[_Watch | None] = ContextVar("tacit_watch", default=None)


@contextlib.contextmanager
def watch(watcher: Watcher) -> Iterator[None]:
    """Calls this function with the progress of the work inside: rows read, passes and releases done."""
    if not callable(watcher):
        raise InvalidParameter(
            parameter="watcher", value=type(watcher).__name__, must="be a function of one step",
            hint="with tacit.watch(print): ...",
        )  # fmt: skip
    token = _current.set(_Watch(watcher))
    try:
        yield
    finally:
        _current.reset(token)


def tell(what: str, done: int, of: int | None = None) -> None:
    """Reports the progress of the work, if somebody watches."""
    current = _current.get()
    if current is not None:
        current.tell(Step(what=what, done=done, of=of))


def counted(batches: Iterable[T], what: str = "rows read") -> Iterator[T]:
    """The same batches; counts their rows for the progress. An engine may fetch them from a thread of its own."""
    current = _current.get()

    def passed() -> Iterator[T]:
        done = 0
        try:
            for batch in batches:
                done += getattr(batch, "num_rows", 0)
                if current is not None:
                    current.tell(Step(what=what, done=done))
                yield batch
        except KeyboardInterrupt as wish:
            # Engines make an error of their own of it, which would say that the file cannot be read.
            _stops.append(wish)
            raise

    return passed()


_stops: list[KeyboardInterrupt] = []


def stopped() -> KeyboardInterrupt | None:
    """A request to stop that an engine swallowed since the last check."""
    found = _stops[-1] if _stops else None
    _stops.clear()
    return found


def each(things: Iterable[T], what: str) -> Iterator[T]:
    """The same items; the progress shows a number before each of them, and at the end."""
    known = list(things)
    for done, thing in enumerate(known):
        tell(what, done, len(known))
        yield thing
    tell(what, len(known), len(known))


@contextlib.contextmanager
def polled(progress: Callable[[], float], what: str) -> Iterator[None]:
    """While the engine is at work: its own progress in percent, now and then, from a thread."""
    current = _current.get()
    if current is None:
        yield
        return
    over = threading.Event()

    def look() -> None:
        while not over.wait(EVERY):
            with contextlib.suppress(Exception):
                share = float(progress())
                if 0 <= share <= 100:
                    current.tell(Step(what=what, done=int(share), of=100))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


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
    """The result of the action; `BadData` in our words if it fails. For types and names: it must read no row."""
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
    """The result of the action, or the one fixed sentence if anything at all goes wrong in it."""
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


def noised(action: Callable[[], T], *, source: str) -> T:
    """The result of an action that adds noise to true numbers: errors of our own pass, any other one becomes the fixed
    sentence. Whether memory suffices depends on the number of occupied cells, and numpy's error says how many.
    """
    try:
        return action()
    except (TacitError, *STOPS):
        raise
    except Exception:
        # Raised below, outside the handler, so that no context keeps its words.
        pass
    raise ReadFailed(source=source)


def batches(start: Callable[[], Iterator[Any]], *, source: str) -> Iterator[Any]:
    """The parts of a result, each inside the error boundary."""
    parts = rows(lambda: iter(start()), source=source)
    while (part := rows(lambda: next(parts, None), source=source)) is not None:
        yield part


def forget(problem: BaseException) -> None:
    """Clears the local values of all calls that ended with this error: a debugger, or a log with local values, would
    show exact numbers.
    """
    chain: list[BaseException | None] = [problem]
    for one in chain:
        if one is not None:
            traceback.clear_frames(one.__traceback__)
            chain += [e for e in (one.__cause__, one.__context__) if e not in chain]


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
    """Suppresses warnings and log lines of engines while any thread is inside; several threads may enter at once."""

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
