"""Runs tests against changed sources, many times, without starting Python anew each time.

One process imports the libraries that tests wait for (numpy, pandas, ibis, DuckDB, scikit-learn: three seconds), but
nothing of tacit and none of its tests. For each job it forks. The child puts its own tree of sources first on the
path, for itself and for processes that its tests start, and runs pytest. A tree is made of links to the package, with
the changed file written anew, so that it costs some milliseconds and has the compiled files of all other modules.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "src" / "tacit"
SECONDS = 240.0
MEMORY = 6 * 2**30
"""A change may make a loop that never ends: beyond this time or memory (bytes) the tests have hung."""
HUNG = -1
LIBRARIES = (
    *(
        "numpy",
        "scipy.special",
        "scipy.stats",
        "scipy.optimize",
        "scipy.integrate",
        "scipy.linalg",
        "scipy.sparse",
    ),
    *(
        "pandas",
        "pyarrow",
        "pyarrow.parquet",
        "pyarrow.csv",
        "ibis",
        "ibis.backends.duckdb",
        "duckdb",
        "sqlglot",
    ),
    *(
        "sqlalchemy",
        "sqlalchemy.dialects.sqlite",
        "sklearn.svm",
        "sklearn.linear_model",
        "sklearn.utils.validation",
    ),
    *(
        "flint",
        "pywt",
        "hypothesis",
        "hypothesis.strategies",
        "pytest",
        "_pytest.assertion.rewrite",
        "typer",
        "rich",
    ),
    *("rich.table", "rich.progress", "typer.testing", "cryptography.hazmat.primitives.ciphers", "openpyxl"),
    *(
        "cryptography.hazmat.primitives.asymmetric.ed25519",
        "cryptography.hazmat.primitives.asymmetric.x25519",
    ),
    *("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_svg", "pyreadstat"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Tests to run, and the one file that is changed: its path below src/tacit, and its new text."""

    notice: tuple[str, ...]
    file: str = ""
    text: str = ""
    seconds: float = SECONDS
    first_failure: bool = True
    record: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What pytest returned (0: all passed, 1: some failed, HUNG, or another number: not run) and what it said."""

    code: int
    said: str
    seconds: float
    ran: int = 0
    failed: tuple[str, ...] = ()
    took: Mapping[str, float] = field(default_factory=dict)
    reached: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def word(self) -> str:
        """noticed, hung, SURVIVED, or BROKEN: the tests did not start, or every one of them was skipped."""
        if self.code == 0 and not self.ran:
            return "BROKEN"
        return {0: "SURVIVED", 1: "noticed", HUNG: "hung"}.get(self.code, "BROKEN")


def prepare() -> None:
    """Imports the libraries, with one thread each: a fork keeps only the thread that makes it."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    for name in LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError:
            continue  # An optional one; the tests say what they need.
    known = [n for n in sys.modules if n.partition(".")[0] in ("tacit", "support", "conftest")]
    if known:
        raise SystemExit(f"the parent must not know the sources it changes: {known[:3]}")
    if threading.active_count() > 1:
        raise SystemExit(f"a library started threads: {threading.enumerate()}")
    gc.collect()
    gc.freeze()


def tree(place: Path, file: str, text: str) -> None:
    """The package as links, compiled files among them, with one file written anew."""
    changed = PACKAGE / file if file else None
    for folder, inner, names in os.walk(PACKAGE):
        inner[:] = [n for n in inner if not n.startswith(".")]
        there = place / "tacit" / Path(folder).relative_to(PACKAGE)
        there.mkdir(parents=True)
        for name in names:
            here = Path(folder) / name
            compiled = here.suffix == ".pyc"
            if changed is not None and (here == changed or (compiled and _compiled_from(here) == changed)):
                continue
            if compiled and name.count(".") != 2:
                continue  # One that another process is writing.
            try:
                os.link(here, there / name)
            except FileNotFoundError:
                continue  # Compiled files come and go.
            except OSError:
                shutil.copy2(here, there / name)
    if changed is not None:
        (place / "tacit" / file).write_text(text)


def _compiled_from(path: Path) -> Path:
    return path.parent.parent / f"{path.name.partition('.')[0]}.py"


def run(jobs: Sequence[Job], *, at_once: int = 1) -> Iterator[tuple[int, Ended]]:
    """Each job's number and end, as they end."""
    folder = Path(
        tempfile.mkdtemp(prefix="tacit-mutants-")
    )  # Not one that a child would remove when it ends.
    waiting = list(reversed(range(len(jobs))))
    running: dict[int, tuple[int, float, Path]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                number = waiting.pop()
                place = folder / str(number)
                place.mkdir()
                running[_fork(jobs[number], place)] = number, time.monotonic(), place
            done = [p for p, (n, began, _) in running.items() if _over(p, began, jobs[n].seconds)]
            for pid in done:
                number, began, place = running.pop(pid)
                yield number, _read(place, time.monotonic() - began)
                shutil.rmtree(place, ignore_errors=True)
            if not done:
                time.sleep(0.02)
    finally:
        for pid in running:
            _end(pid)
            os.waitpid(pid, 0)
        shutil.rmtree(folder, ignore_errors=True)


def _over(pid: int, began: float, seconds: float) -> bool:
    if os.waitpid(pid, os.WNOHANG)[0] == pid:
        _end(pid)  # What its tests left behind is of its group.
        return True
    if time.monotonic() - began > seconds or _memory(pid) > MEMORY:
        _end(pid)
        os.waitpid(pid, 0)
        return True
    return False


def _memory(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _end(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _read(place: Path, seconds: float) -> Ended:
    said = (place / "said").read_text(errors="replace") if (place / "said").exists() else ""
    if not (place / "ended").exists():
        return Ended(code=HUNG, said=f"took too long, or too much memory\n{said[-1500:]}", seconds=seconds)
    return Ended(said=said[-2000:], seconds=seconds, **json.loads((place / "ended").read_text()))


def _fork(job: Job, place: Path) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 3
    try:
        os.setsid()
        # A run in the background of a script ignores Ctrl-C; the tests' own interrupts must arrive all the same.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = _child(job, place)
    except BaseException:
        with (place / "said").open("a") as file:
            traceback.print_exc(file=file)
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _child(job: Job, place: Path) -> int:
    import pytest

    said = os.open(place / "said", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(said, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sources = place / "src"
    if job.file:
        tree(sources, job.file, job.text)
    else:
        sources = PACKAGE.parent
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = str(sources)
    sys.path[:] = ["", str(sources), *(p for p in sys.path if p not in ("", str(HERE), str(PACKAGE.parent)))]
    importlib.invalidate_caches()
    sys.argv = ["pytest"]
    watcher = Watcher(sources / "tacit", record=job.record)
    words = [
        "-q",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        *(["-x"] if job.first_failure else []),
    ]
    words += [
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ]  # Hypothesis is imported already, on purpose.
    code = int(pytest.main([*words, *job.notice], plugins=[watcher]))
    known = sys.modules.get("tacit")
    if known is not None and Path(str(known.__file__)).parent != sources / "tacit":
        raise RuntimeError(f"the tests ran {known.__file__}, not the changed sources")
    ended = {
        "code": code,
        "ran": watcher.ran,
        "failed": watcher.failed,
        "took": watcher.took,
        "reached": {name: sorted(found) for name, found in watcher.reached.items()},
    }
    (place / "ended.part").write_text(json.dumps(ended))
    (place / "ended.part").rename(place / "ended")
    return code


class Watcher:
    """Counts the tests that ran, and notes on request which functions of the package each of them entered."""

    def __init__(self, package: Path, *, record: bool) -> None:
        self.package = f"{package}{os.sep}"
        self.record = record
        self.ran = 0
        self.failed: list[str] = []
        self.took: dict[str, float] = {}
        self.reached: dict[str, set[str]] = {}
        self._places: dict[Any, str | None] = {}
        self._now: set[str] = set()
        self._imports: set[str] = set()
        if record:
            self._now = self._imports
            self._watch(self._trace)

    def _watch(self, trace: Callable[[FrameType, str, Any], None] | None) -> None:
        sys.settrace(trace)  # type: ignore[arg-type]
        threading.settrace(trace)  # type: ignore[arg-type]

    def _trace(self, frame: FrameType, _event: str, _argument: Any) -> None:
        code = frame.f_code
        try:
            place = self._places[code]
        except KeyError:
            inside = code.co_filename.startswith(self.package)
            place = f"{code.co_filename[len(self.package) :]}:{code.co_firstlineno}" if inside else None
            self._places[code] = place
        if place is not None:
            self._now.add(place)

    def pytest_sessionstart(self) -> None:
        """One example that fails is enough: Hypothesis does not look for the smallest one, which takes minutes."""
        from hypothesis import Phase, settings

        kept = (Phase.explicit, Phase.reuse, Phase.generate)
        settings.register_profile("mutants", settings(), phases=kept, report_multiple_bugs=False)
        settings.load_profile("mutants")

    def pytest_runtest_protocol(self, item: Any) -> None:
        if self.record:
            self._now = self.reached.setdefault(item.nodeid, set())
            self._watch(self._trace)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.took[report.nodeid] = self.took.get(report.nodeid, 0.0) + report.duration
        if report.when == "call" and not report.skipped:
            self.ran += 1
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        if self.record:
            self._watch(None)
