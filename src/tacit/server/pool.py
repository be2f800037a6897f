"""Processes that compute prices and checks apart from requests, each of which can be stopped when it takes too long.

A message is one line of JSON; no pickle crosses. A process over its time is killed and started anew, so that no
question keeps the server busy. Output of engines is dropped: it may quote a row.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tacit.errors import TacitError


class RemoteProblem(TacitError):
    """An error of another process, as plain values."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        super().__init__(str(said["message"]), hint=str(said["hint"]))
        self.kind = str(said["error"])
        self.kinds = tuple(map(str, said["kinds"]))
        self.exit_code = int(said["exit"])
        self.after_charge = bool(said["charged"])


TOO_LONG: dict[str, Any] = {
    "error": "NotReachable", "message": "this takes longer than the server allows", "exit": 1, "charged": False,
    "hint": "ask for fewer cells, a simpler filter or fewer questions at once; nothing was charged",
    "kinds": ["NotReachable", "Refused", "TacitError"],
}  # fmt: skip
BUSY: dict[str, Any] = {**TOO_LONG, "message": "the server is busy", "hint": "try again in a moment"}


class _Child:
    """One process, which answers one question at a time."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tacit.server.pool"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=child_environment(), start_new_session=True,
        )  # fmt: skip
        self._send({"folders": [str(f) for f in folders]})

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def ask(self, call: str, given: Sequence[Any], seconds: float) -> dict[str, Any]:
        """The answer; refuses if it does not come in time, and ends the process."""
        try:
            self._send({"call": call, "given": list(given)})
            line = _line(self._process.stdout, seconds)
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            self.stop()
            return {"problem": TOO_LONG}
        return dict(json.loads(line))

    def stop(self) -> None:
        """Kill it, and wait for its end."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _line(pipe: IO[bytes] | None, seconds: float) -> bytes:
    assert pipe is not None
    until, found = time.monotonic() + seconds, b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while not found.endswith(b"\n"):
            if not selector.select(max(0.0, until - time.monotonic())):
                return found
            part = os.read(pipe.fileno(), 1 << 20)
            if not part:
                return found
            found += part
    return found


def child_environment() -> dict[str, str]:
    """For processes of the server: the same package, with one thread for each library of linear algebra."""
    import tacit

    source = str(Path(tacit.__file__).parents[1])
    known = os.environ.get("PYTHONPATH", "")
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**os.environ, **single, "PYTHONPATH": os.pathsep.join(filter(None, [source, known]))}


class Pool:
    """Some processes. They start when they are first needed, or when `warm` is called."""

    def __init__(
        self, folders: Sequence[Path], *, processes: int = 2, wait: float = 20.0,
        said: Callable[[str], str] = str,
    ) -> None:  # fmt: skip
        self._folders, self._wait, self._said = list(folders), wait, said
        self._free: queue.LifoQueue[_Child | None] = queue.LifoQueue()
        for _ in range(processes):
            self._free.put(None)
        self._lock, self._children, self._closed = threading.Lock(), set[_Child](), False

    def call(self, name: str, *given: Any, seconds: float) -> Any:
        """The result of the function; its error, as a `RemoteProblem`."""
        try:
            child = self._free.get(timeout=self._wait)
        except queue.Empty:
            raise RemoteProblem(BUSY) from None
        try:
            first = child is None or not child.alive
            if child is None or first:
                child = self._started(child)
            # The first question of a process waits for the library to be loaded.
            answer = child.ask(name, given, seconds + (60 if first else 0))
        finally:
            self._free.put(child)
        if "problem" in answer:
            found = answer["problem"]
            raise RemoteProblem({**found, **{w: self._said(found[w]) for w in ("message", "hint")}})
        return answer["answer"]

    def _started(self, old: _Child | None) -> _Child:
        with self._lock:
            if self._closed:
                raise RemoteProblem(BUSY)
            if old is not None:
                self._children.discard(old)
            child = _Child(self._folders)
            self._children.add(child)
            return child

    def warm(self) -> None:
        """Start the processes in the background, so that the first price is quick."""

        def start() -> None:
            with contextlib.suppress(TacitError):
                self.call("ready", seconds=60)

        for _ in range(self._free.qsize()):
            threading.Thread(target=start, daemon=True).start()

    def close(self) -> None:
        """Stop all."""
        with self._lock:
            self._closed = True
            for child in self._children:
                child.stop()
            self._children.clear()


def main(lines: IO[bytes], answers: IO[bytes]) -> None:
    """Answers one question a line until the other side closes."""
    from tacit.server import work

    work.confine_to([Path(f) for f in json.loads(lines.readline())["folders"]])
    calls: dict[str, Callable[..., Any]] = {**work.CALLS, "ready": lambda: True}
    for line in iter(lines.readline, b""):
        asked = json.loads(line)
        told: dict[str, Any]
        try:
            told = {"answer": calls[asked["call"]](*asked["given"])}
            text = json.dumps(told, allow_nan=False)
        except Exception as error:
            text = json.dumps({"problem": work.problem(error)})
        answers.write(text.encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    own = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    main(sys.stdin.buffer, own)
