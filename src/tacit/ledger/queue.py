"""Who writes next: a queue in the order of arrival, in a small file beside a ledger's file.

SQLite lets waiters try again after random naps, so that one of them may wait for ever. Here each takes a number:

    byte 0          held while a number is taken
    bytes 1 to 8    the last number
    byte 64 + n     held by whoever has number n, from before the waiting to the end of the writing

It is somebody's turn when no smaller number is held. Locks belong to an open file and end with it, so that whoever
dies is not waited for. The queue only decides who comes first: that one writes at a time is SQLite's own doing,
and where there are no such locks (they are Linux's) SQLite's naps are all there is.
"""

from __future__ import annotations

import io
import os
import struct
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - not a Unix
    fcntl = None  # type: ignore[assignment]

__all__ = ["Late", "queued"]

_SET = getattr(fcntl, "F_OFD_SETLK", None)
_FIRST = 64
_LONGEST_NAP = 0.004
_OPEN: weakref.WeakSet[io.FileIO] = weakref.WeakSet()


class Late(Exception):
    """The turn did not come in time."""


@contextmanager
def queued(path: Path, *, until: float) -> Iterator[None]:
    """Wait for one's turn to write to the ledger at `path`, until this moment of the monotonic clock at most."""
    file = _opened(path)
    if file is None:
        yield
        return
    _OPEN.add(file)
    # Ctrl-C comes anywhere, here too: a second attempt at closing does no harm, and a file that nobody has is closed.
    try:
        handle = file.fileno()
        number = _number(handle, until)
        _wait(lambda: _lock(handle, _FIRST, number, shared=True), until)
        yield
    finally:
        try:
            file.close()
        finally:
            file.close()


def _opened(path: Path) -> io.FileIO | None:
    if _SET is None:
        return None
    # A ledger that cannot be written has no queue: the database says what is wrong with it.
    with suppress(OSError):
        if path.exists():
            return io.FileIO(f"{path}-queue", "r+", opener=_create)
    return None


def _create(name: str, _: int) -> int:
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _number(handle: int, until: float) -> int:
    _wait(lambda: _lock(handle, 0, 1), until)
    try:
        number = int.from_bytes(os.pread(handle, 8, 1), "big") + 1
        _lock(handle, _FIRST + number, 1)
        with suppress(OSError):  # a full disk: then two may hold one number, and neither waits for the other
            os.pwrite(handle, number.to_bytes(8, "big"), 1)
        return number
    finally:
        _lock(handle, 0, 1, free=True)


def _wait(attempt: Callable[[], bool], until: float) -> None:
    nap = 0.0002
    while not attempt():
        if time.monotonic() >= until:
            raise Late
        time.sleep(nap)
        nap = min(2 * nap, _LONGEST_NAP)


def _lock(handle: int, start: int, length: int, *, shared: bool = False, free: bool = False) -> bool:
    """Lock bytes of the file for this opening of it, without waiting."""
    kind = fcntl.F_UNLCK if free else fcntl.F_RDLCK if shared else fcntl.F_WRLCK
    try:
        # struct flock: type, whence, start, length, process (none: the lock is the open file's)
        fcntl.fcntl(handle, int(_SET or 0), struct.pack("@hhqqi4x", kind, os.SEEK_SET, start, length, 0))
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a file system without locks has no queue either
        return True
    return True


def _not_ours() -> None:
    """A child shares its parent's open files, and would keep its parent's number held."""
    for file in list(_OPEN):
        with suppress(OSError):
            file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_not_ours)
