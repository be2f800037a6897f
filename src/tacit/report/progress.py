"""Progress of long work: a bar on standard error for a person at a terminal, nothing for anybody else.

    with progress("Releasing", total=12) as step:
        for ask in plan:
            step(f"{ask.name}")
            ...

An interruption (Ctrl-C) leaves the block as it would leave any other: the bar is taken away, and the work's own
`finally` clauses decide what is kept.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["progress", "shows_progress"]

Step = Callable[[str], None]


def shows_progress(stream: TextIO | None = None) -> bool:
    """Is a person watching? A terminal that can move its cursor, outside of automatic runs."""
    where = sys.stderr if stream is None else stream
    try:
        terminal = where.isatty()
    except (AttributeError, ValueError):
        return False
    return terminal and os.environ.get("TERM", "") != "dumb" and not os.environ.get("CI")


@contextmanager
def progress(title: str, *, total: int | None = None, quiet: bool = False) -> Iterator[Step]:
    """A function to call before each step, with a word for it; the bar goes away at the end.

    Without a total, a line that only moves. `quiet` shows nothing, as --json asks for.
    """
    if quiet or not shows_progress():
        yield lambda word: None
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

    columns = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()]
    if total is not None:
        columns.insert(3, MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=total)
        begun = False

        def step(word: str) -> None:
            nonlocal begun
            shown.update(task, advance=1 if begun else 0, description=f"{title}: {word}", refresh=True)
            begun = True

        yield step
        if begun:
            shown.update(task, advance=1, refresh=True)
