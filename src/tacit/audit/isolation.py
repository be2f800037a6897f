"""Runs foreign mechanisms in a separate process, with limits of time and memory.

The process loads the file, runs the function on numbered inputs, and sends back each output as plain leaves before
the next run. What it prints is dropped. A run that takes too long, raises, or ends its process counts as an output:
it may be the breach. The parent reads plain values only and never loads an object of
the process.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import pickle
import selectors
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from tacit.audit.neighbours import NeighbourPairs, given_neighbours
from tacit.audit.outputs import Output, no_answer, plain_output, raised
from tacit.errors import InvalidInput, InvalidParameter, NoSuchFile, TacitError, UnknownName

SECONDS_A_RUN = 10.0
MEMORY = 4 << 30
"""Bytes of address space of the process."""
MOST_ENDS = 20
"""The number of ended processes after which an audit stops."""
GRACE = 3.0


def split_place(text: str) -> tuple[Path, str]:
    """FILE.py::NAME in two."""
    path, _, name = text.rpartition("::")
    if not path or not name:
        raise InvalidParameter(
            parameter="mechanism",
            value=text,
            must="be FILE.py::function",
            hint="name the function: noise.py::release",
        )
    if not Path(path).is_file():
        raise NoSuchFile(
            parameter="mechanism", path=path, beside=[str(p) for p in Path(path).parent.glob("*.py")]
        )
    return Path(path), name


def load(text: str) -> Any:
    """An object of a Python file. This runs the file."""
    path, name = split_place(text)
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise InvalidParameter(parameter="mechanism", value=str(path), must="be a Python file")
    module = sys.modules.get(path.stem)
    if module is not None and getattr(module, "__file__", None) == spec.origin and hasattr(module, name):
        return getattr(module, name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except BaseException as problem:
        raise InvalidParameter(
            parameter="mechanism",
            value=str(path),
            must="be a file that runs",
            hint=f"it raised {type(problem).__name__}: {str(problem)[:120]}",
        ) from None
    if not hasattr(module, name):
        public = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise UnknownName(what=f"function in {path.name}", name=name, known=public)
    return getattr(module, name)


# The child.


class _TooLong(BaseException):
    """The alarm of one run."""


def _alarm(*_: Any) -> None:
    raise _TooLong


def run_once(f: Callable[[Any], Any], packed: bytes | None, given: Any) -> Output:
    """One run; an exception counts as its output. Each run gets a fresh copy of its input."""
    value = pickle.loads(packed) if packed is not None else given
    try:
        out = f(value)
    except Exception as problem:
        return raised(problem)
    return plain_output(out)


def packed_input(value: Any) -> bytes | None:
    """The input as bytes, from which each run gets its own copy; None if it cannot be packed."""
    try:
        return pickle.dumps(value)
    except Exception:
        return None


class InProcess:
    """Runs a function in this process, without limits: for functions that cannot be sent to another one."""

    def __init__(self, f: Callable[[Any], Any], neighbours: NeighbourPairs) -> None:
        self.f = f
        self.inputs = [(packed_input(x), x) for pair in neighbours.pairs for x in pair]

    def __call__(self, jobs: Sequence[tuple[int, int]]) -> list[Output]:
        return [run_once(self.f, *self.inputs[2 * pair + side]) for pair, side in jobs]


def child(argv: Sequence[str]) -> None:
    """The program of the audit process: place, neighbours, seconds and memory, then jobs on standard input."""
    place, neighbours_place, seconds, memory = argv[0], argv[1], float(argv[2]), int(argv[3])
    reply = os.fdopen(os.dup(1), "wb", buffering=0)
    asked = os.fdopen(os.dup(0), "rb")
    quiet = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(quiet, fd)
    _limit(memory)
    try:
        f = load(place)
        if not callable(f):
            raise InvalidParameter(parameter="mechanism", value=place, must="be a function")
        pairs = given_neighbours(load(neighbours_place) if neighbours_place else _read(asked))
        inputs = [(packed_input(x), x) for pair in pairs.pairs for x in pair]
        _write(reply, ("ready", pairs.relation, [_plain_input(x) for pair in pairs.pairs for x in pair],
                       str(getattr(f, "data_dependent_proof", ""))))  # fmt: skip
    except TacitError as problem:
        _write(reply, ("refused", problem.message, problem.hint, ""))
        return
    signal.signal(signal.SIGALRM, _alarm)
    while True:
        jobs = _read(asked)
        if not jobs:
            return
        for at in jobs:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            try:
                out = run_once(f, *inputs[at])
            except _TooLong:
                out = no_answer(f"a run took longer than {seconds:g} s")
            except InvalidInput as problem:
                signal.setitimer(signal.ITIMER_REAL, 0)
                _write(reply, ("refused", problem.message, problem.hint, ""))
                return
            except BaseException as problem:
                out = raised(problem)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            _write(reply, ("output", *out))


def _plain_input(value: Any) -> Any:
    """An input as a list of numbers, or else as text; the parent process gets no more of it."""
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(v, bool | int | float) for v in value):
        return list(value)
    return repr(value)[:200]


def _write(where: Any, value: Any) -> None:
    data = pickle.dumps(value, protocol=4)
    where.write(struct.pack("<I", len(data)) + data)


def _read(where: BinaryIO) -> Any:
    head = where.read(4)
    if len(head) < 4:
        return None
    return _PlainReader(io.BytesIO(where.read(struct.unpack("<I", head)[0]))).load()


MOST_REPLY = 1 << 28
"""The largest number of bytes of a reply."""
_GARBLED = (
    "refused",
    "mechanism must leave open files of others alone, got bytes on the channel of the audit",
    "it wrote to a file descriptor that it did not open",
    "",
)


def _reply(data: bytes) -> Any:
    """A reply of the process. The function may have written to that stream, too: output that is no reply gets
    an error that says so.
    """
    try:
        said = _PlainReader(io.BytesIO(data)).load()
    except Exception:
        return _GARBLED
    sizes = {"ready": 4, "refused": 4, "output": 3, "replay": 3}
    if not isinstance(said, tuple) or not said or sizes.get(str(said[0])) != len(said):
        return _GARBLED
    return said


def _refused(place: str, said: Any) -> InvalidParameter:
    """A refusal of the process as an error of this one."""
    must, _, got = str(said[1]).removeprefix("mechanism must ").rpartition(", got ")
    if not must:
        must, got = f"be of use: {said[1]}", ""
    got = got.strip("'")
    value = f"{got} by {place}" if got and place not in got else place
    return InvalidParameter(parameter="mechanism", value=value, must=must, hint=str(said[2] or ""))


class _PlainReader(pickle.Unpickler):
    """Reads plain values only: no class, no function."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError("only plain values are read")


def child_replay(argv: Sequence[str]) -> None:
    """The program of the replay process: place, neighbours, claim, sensitivity and memory in, one reply out."""
    from tacit.audit.claimed import claim_of
    from tacit.audit.grey_box import replay
    from tacit.audit.recording import Tape

    place, neighbours, claim, sensitivity, memory = argv
    reply = os.fdopen(os.dup(1), "wb", buffering=0)
    quiet = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(quiet, fd)
    _limit(int(memory))
    try:
        with Tape() as tape:
            f = load(place)
            pairs = given_neighbours(load(neighbours) if "::" in neighbours else neighbours)
            tape.loaded()
            folder = str(Path(place.rpartition("::")[0]).parent.resolve()) + "/"
            found = replay(
                f, neighbours=pairs, tape=tape, claim=claim_of(claim),
                sensitivity=float(sensitivity) if sensitivity else None, folder=folder,
            )  # fmt: skip
        _write(reply, ("replay", found.to_dict(), found.lines()))
    except TacitError as problem:
        _write(reply, ("refused", problem.message, problem.hint, ""))


def replay_of_file(
    place: str,
    *,
    claim: str,
    neighbours: str,
    sensitivity: float | None = None,
    seconds: float = 60.0,
    memory: int = MEMORY,
) -> tuple[dict[str, Any], list[str]] | None:
    """The grey box on FILE.py::function in a process of its own; None if it took too long or ended."""
    split_place(place)
    given = [place, neighbours, claim, "" if sensitivity is None else repr(sensitivity), str(memory)]
    try:
        done = subprocess.run(
            [sys.executable, "-c", "import sys; from tacit.audit.isolation import child_replay as c; c(sys.argv[1:])",
             *given],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    if len(done.stdout) < 4:
        return None
    said = _reply(done.stdout[4:])
    if said[0] == "refused":
        raise _refused(place, said)
    return said[1], said[2]


def _limit(memory: int) -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        pass


# The parent.


class Isolated:
    """Runs a function of a file in a separate process; with `fresh`, each run in a new one that loads the file anew."""

    def __init__(
        self,
        place: str,
        neighbours: NeighbourPairs | None,
        *,
        neighbours_place: str = "",
        seconds_a_run: float = SECONDS_A_RUN,
        memory: int = MEMORY,
        fresh: bool = False,
    ) -> None:
        split_place(place)
        self.place, self.neighbours, self.neighbours_place = place, neighbours, neighbours_place
        self.seconds_a_run, self.memory, self.fresh = seconds_a_run, memory, fresh
        self.ends = 0
        self.stop = ""
        self._start()

    def _start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", "import sys; from tacit.audit.isolation import child; child(sys.argv[1:])",
             self.place, self.neighbours_place, str(self.seconds_a_run), str(self.memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.held, self.used = b"", False
        if not self.neighbours_place and self.neighbours is not None:
            self._send([[a, b] for a, b in self.neighbours.pairs])
        said = self._receive(60.0)
        if said is None:
            self.close()
            raise InvalidParameter(
                parameter="mechanism",
                value=self.place,
                must="load within 60 s and without ending its process",
            )
        if said[0] == "refused":
            self.close()
            raise _refused(self.place, said)
        plain = said[2]
        if self.neighbours is None:
            pairs = tuple(zip(plain[::2], plain[1::2], strict=True))
            self.neighbours = NeighbourPairs(relation=said[1], pairs=pairs)
        self.declared_stop = said[3]

    def _send(self, value: Any) -> bool:
        assert self.process.stdin is not None
        data = pickle.dumps(value, protocol=4)
        try:
            self.process.stdin.write(struct.pack("<I", len(data)) + data)
            self.process.stdin.flush()
        except (BrokenPipeError, OSError):
            return False
        return True

    def _receive(self, seconds: float) -> Any:
        """The next reply; None if the process ended or sent nothing within this time."""
        assert self.process.stdout is not None
        until = time.monotonic() + seconds
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.process.stdout, selectors.EVENT_READ)
            while True:
                if len(self.held) >= 4:
                    size = struct.unpack("<I", self.held[:4])[0]
                    if size > MOST_REPLY:
                        return _GARBLED
                    if len(self.held) >= 4 + size:
                        data, self.held = self.held[4 : 4 + size], self.held[4 + size :]
                        return _reply(data)
                if not waiting.select(max(0.0, until - time.monotonic())):
                    return None
                more = self.process.stdout.read(1 << 20)
                if not more:
                    return None
                self.held += more

    def __call__(self, jobs: Sequence[tuple[int, int]]) -> list[Output]:
        out: list[Output] = []
        wanted = [2 * pair + side for pair, side in jobs]
        while len(out) < len(wanted):
            if self.stop:
                raise InvalidParameter(
                    parameter="mechanism", value=self.place, must="keep its process alive", hint=self.stop
                )
            if self.fresh and self.used:
                self.close()
                self._start()
            part = wanted[len(out) : len(out) + (1 if self.fresh else 512)]
            alive, self.used = self._send(part), True
            for _ in part:
                said = self._receive(self.seconds_a_run + GRACE) if alive else None
                if said is None:
                    out.append(no_answer(self._ended()))
                    break
                if said[0] == "refused":
                    raise _refused(self.place, said)
                out.append((said[1], tuple(said[2])))
        return out

    def _ended(self) -> str:
        """The reason for a missing reply; starts a new process for the next run."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=0.5)
        code = self.process.poll()
        why = "its process did not answer" if code is None else f"its process ended with code {code}"
        self.close()
        self.ends += 1
        if self.ends > MOST_ENDS:
            self.stop = f"it ended or hung {self.ends} times; the last time {why}"
        self._start()
        return why

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Isolated:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
