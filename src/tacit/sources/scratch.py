"""Private folders for data that do not fit in memory; the folders do not outlive the process.

Engines spill rows to disk. A folder is removed when its table is closed and when the process ends. A killed process
can remove nothing. So a small shell, started with the first folder, waits for the end of a pipe that only this
process holds open, and then removes the folders. If no shell can be started, or if it is killed as well, the next
process finds the folder without a locked file and removes it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

PREFIX = "tacit-scratch-"
LOCK = "held"
SHELL = "/bin/sh"
WAIT = 'trap "" TERM INT HUP QUIT; read -r _; rm -rf -- "$1"'
_guard = threading.Lock()
_roots: dict[int, _Root] = {}


class _Root:
    """The folder of one process, with the lock and the shell that guard it."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        # Under another name until it is held: who sweeps takes a lock that nobody holds for that of the dead.
        self.lock = _locked(self.path / f"{LOCK}-not-yet")
        (self.path / f"{LOCK}-not-yet").rename(self.path / LOCK)
        self.janitor = _janitor(self.path)
        atexit.register(self.close)

    def close(self) -> None:
        if os.getpid() != self.owner:
            return
        _roots.pop(self.owner, None)
        shutil.rmtree(self.path, ignore_errors=True)
        if self.janitor is not None:
            with contextlib.suppress(Exception):
                self.janitor.stdin.close()
                self.janitor.wait(10)
        if self.lock is not None:
            with contextlib.suppress(OSError):
                os.close(self.lock)


def new_folder() -> Path:
    """A new empty folder that only this user can enter."""
    with _guard:
        root = _roots.get(os.getpid())
        if root is None or not root.path.is_dir():
            sweep()
            root = _roots[os.getpid()] = _Root()
        return Path(tempfile.mkdtemp(dir=root.path))


def remove(folder: Path) -> None:
    """Removes a folder with all its contents."""
    shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Removes the files of this user's processes that have ended."""
    with contextlib.suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                found = folder.lstat()
                mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
                if not mine or folder.is_symlink() or not (folder / LOCK).is_file():
                    continue
                lock = _locked(folder / LOCK)
                if lock is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(lock)


def _locked(path: Path) -> int | None:
    """The open file with its lock, which the system releases when the process dies; None if another process holds the
    lock.
    """
    try:
        import fcntl
    except ImportError:
        return None
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _janitor(folder: Path) -> Any:
    if not os.access(SHELL, os.X_OK):
        return None
    import subprocess

    with contextlib.suppress(OSError):
        return subprocess.Popen(
            [SHELL, "-c", WAIT, "tacit", str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    return None
