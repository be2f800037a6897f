"""One thread for small linear algebra.

OpenBLAS divides even an inverse of 100 x 100 among all cores, whose threads then wait longer for each other
than they work: four times longer on two idle cores, a hundred times on busy ones. The libraries that numpy and
scipy bring in their wheels are limited to one thread. Otherwise it does nothing.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "scipy")
PLACES = ("../{}.libs", ".dylibs")
PREFIXES, ENDINGS = ("scipy_openblas", "openblas"), ("64_", "")


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, linear algebra runs on the calling thread; the last one to leave restores the other threads."""
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


class _Limit:
    """The setting belongs to the process: the first caller changes it, and the last one restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._restore: list[Callable[[], object]] = []

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._restore = []
                for library in _libraries():
                    with suppress(AttributeError, OSError):
                        ask, tell = _functions(library)
                        before = int(ask())
                        tell(1)
                        self._restore.append(lambda tell=tell, before=before: tell(before))  # type: ignore[misc]
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for restore in self._restore:
                    restore()


def _libraries() -> Iterator[ctypes.CDLL]:
    """The OpenBLAS of each package, if it is loaded."""
    import sys

    for name in PACKAGES:
        module: Any = sys.modules.get(name)
        if module is None:
            continue
        home = Path(module.__file__).parent
        for place in PLACES:
            for path in sorted((home / place.format(name)).glob("*openblas*")):
                with suppress(OSError):
                    yield ctypes.CDLL(
                        str(path.resolve()), mode=getattr(os, "RTLD_NOLOAD", 0) | ctypes.DEFAULT_MODE
                    )


def _functions(library: ctypes.CDLL) -> tuple[Any, Any]:
    for prefix in PREFIXES:
        for ending in ENDINGS:
            with suppress(AttributeError):
                return (
                    getattr(library, f"{prefix}_get_num_threads{ending}"),
                    getattr(library, f"{prefix}_set_num_threads{ending}"),
                )
    raise AttributeError("no OpenBLAS")


_limit = _Limit()
