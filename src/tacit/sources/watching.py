"""Who waits may watch: how much of a long piece of work is done, told to one function of the caller's own.

    with tacit.watch(lambda step: print(step.what, step.done, step.of)):
        survey.release(ask, epsilon=0.2)

How many rows were read is a number from the data: it is told to whoever holds them and set the watcher in this very
thread, and to nobody else. Nothing is told where nobody watches, and no step is ever written to a file, a log, a
ledger or a certificate. A watcher that fails is not asked again; one that raises KeyboardInterrupt stops the work as
Ctrl-C does, and what was charged or written by then stays.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from tacit.errors import InvalidParameter

__all__ = ["Step", "counted", "each", "polled", "stopped", "tell", "watch"]

T = TypeVar("T")
EVERY = 0.25
"""Seconds between two looks at an engine that is at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How far some work is: `done` of `of`, which is None where nobody knows how much there is."""

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
    """Tell this function how far the work inside is: rows read, passes and releases done."""
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
    """Say how far the work is, if somebody watches."""
    current = _current.get()
    if current is not None:
        current.tell(Step(what=what, done=done, of=of))


def counted(batches: Iterable[T], what: str = "rows read") -> Iterator[T]:
    """The same batches; their rows are told as they pass. An engine may fetch them from a thread of its own."""
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
    """A request to stop that an engine swallowed since this was last asked."""
    found = _stops[-1] if _stops else None
    _stops.clear()
    return found


def each(things: Iterable[T], what: str) -> Iterator[T]:
    """The same things; how many are done is told before each of them, and at the end."""
    known = list(things)
    for done, thing in enumerate(known):
        tell(what, done, len(known))
        yield thing
    tell(what, len(known), len(known))


@contextlib.contextmanager
def polled(progress: Callable[[], float], what: str) -> Iterator[None]:
    """While the engine is at work: what it says of itself, in percent, now and then, from a thread of its own."""
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
