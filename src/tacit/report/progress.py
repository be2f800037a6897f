"""Progress of long work: a bar on standard error for a person at a terminal, nothing for anybody else.

    with progress("Releasing", total=12) as step:
        for ask in plan:
            step(f"{ask.name}")
            ...

The progress of reading appears only on the terminal of the person who holds the rows. It never goes to a file, to a
pipe, or into anything written.

An interruption (Ctrl-C) leaves the block like any other exception: the bar disappears, and the `finally`
clauses of the work decide which results are kept.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from tacit.errors import visible
from tacit.sources.error_boundary import Step as Told
from tacit.sources.error_boundary import watch

Step = Callable[[str], None]
AFTER = 1.0
"""Seconds before the first sign of progress."""
EVERY = 0.1


def shows_progress(stream: TextIO | None = None) -> bool:
    """Whether a person watches the stream. A terminal that can move its cursor, outside of automatic runs."""
    where = sys.stderr if stream is None else stream
    try:
        terminal = where.isatty()
    except (AttributeError, ValueError):
        return False
    return terminal and os.environ.get("TERM", "") != "dumb" and not os.environ.get("CI")


class _Steps:
    """The hook of a block before each step. Without a watcher it does nothing."""

    shown: Any = None
    task: Any = None
    bars = 0

    def __init__(self, title: str) -> None:
        self.title, self.begun = title, False

    def __call__(self, word: str) -> None:
        if self.shown is not None:
            words = f"{self.title}: {word}"
            self.shown.update(self.task, advance=1 if self.begun else 0, description=words, refresh=True)
        self.begun = True

    def say(self, words: str) -> None:
        """Other words for the same step."""
        if self.shown is not None:
            self.shown.update(self.task, description=f"{self.title}: {words}", refresh=True)


@contextmanager
def progress(title: str, *, total: int | None = None, quiet: bool = False) -> Iterator[Step]:
    """A function to call before each step, with a word for the step; the bar disappears at the end.

    Without a total, a line that only moves. `quiet` shows nothing, as --json asks for.
    """
    with _steps(title, total=total, quiet=quiet) as step:
        yield step


@contextmanager
def watched(title: str, *, total: int | None = None, quiet: bool = False) -> Iterator[Step]:
    """The same, with the progress that the library reports: rows read, passes and releases done."""
    with _steps(title, total=total, quiet=quiet) as step:
        if step.shown is None:
            yield step
            return
        last = ("", 0.0)

        def tell(told: Told) -> None:
            nonlocal last
            now = time.monotonic()
            if told.what == last[0] and now - last[1] < EVERY:
                return
            last = (told.what, now)
            of = f" of {told.of:,}" if told.of is not None else ""
            step.say(f"{visible(told.what)}, {told.done:,}{of}")

        with watch(tell):
            yield step


@contextmanager
def _steps(title: str, *, total: int | None, quiet: bool) -> Iterator[_Steps]:
    step = _Steps(title)
    if quiet or not shows_progress():
        yield step
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = [
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
    ]
    if total is not None:
        columns.insert(3, MofNCompleteColumn())
    _Steps.bars += 1
    try:
        with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
            step.shown, step.task = shown, shown.add_task(title, total=total)
            yield step
            if step.begun:
                shown.update(step.task, advance=1, refresh=True)
    finally:
        _Steps.bars -= 1
        step.shown = None


@contextmanager
def waited() -> Iterator[None]:
    """For any command: after a second a line on the terminal says for how long it has been at work.

    It disappears before anything is printed, and never shows beside a bar.
    """
    if not shows_progress():
        yield
        return
    line, out = _Line(sys.stderr), sys.stdout
    sys.stdout = _Clearing(out, line)
    line.thread.start()
    try:
        yield
    finally:
        line.stop()
        sys.stdout = out


class _Line:
    """One line that counts seconds, from a thread of its own."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.begun, self.shown = stream, time.monotonic(), False
        self.over, self.lock = threading.Event(), threading.Lock()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        wait = AFTER
        while not self.over.wait(wait):
            wait = 0.5
            with self.lock:
                if _Steps.bars or self.over.is_set():
                    continue
                self.say(f"\r\x1b[Kworking, {time.monotonic() - self.begun:.0f} s (Ctrl-C stops it)")
                self.shown = True

    def say(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self.stream.write(text)
            self.stream.flush()

    def stop(self) -> None:
        """Removes the line for good; later output has the terminal for itself."""
        self.over.set()
        with self.lock:
            if self.shown:
                self.say("\r\x1b[K")
                self.shown = False


class _Clearing:
    """Standard output that takes the line away before its first word."""

    def __init__(self, stream: TextIO, line: _Line) -> None:
        self._stream, self._line = stream, line

    def write(self, text: str) -> int:
        self._line.stop()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
