"""The figures of `tacit serve`: budget under load, kills, live prices, start, size. Loopback only, bounded loops.

python benchmarks/server.py load  [questions] [clients]     a budget for 100 releases, many different questions
python benchmarks/server.py kills [times]                    SIGKILL of the server or a worker at random moments
python benchmarks/server.py price [users] [seconds]          live prices
python benchmarks/server.py fuzz  [questions]                bad questions on neighbouring tables
python benchmarks/server.py start                            processor time to the first answer, installed size
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.servers import ROWS, people_of, settings_for, table_of
from tacit.server.desk import Desk, opened
from tacit.server.store import JOBS, TABLES

PORT = int(os.environ.get("PORT", "8611"))
LONGEST = float(os.environ.get("LONGEST", "2"))
"""Seconds between two kills, at most; more where processes start slowly."""
MOST_SECONDS = float(os.environ.get("MOST_SECONDS", "3600"))
"""Load and kills end after this time, with what was done by then."""
LIMITS = "[limits]\nrequests_per_minute = 100000000\ntick_seconds = 0.05\npreview_seconds = 60\nprices_at_once = 100\n"


def filled(folder: Path, *, budget: float, rows: str = ROWS) -> tuple[list[str], Desk]:
    """A server's folder with a table, accounts and tokens of three analysts' programs."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "server.toml").write_text(LIMITS)
    with opened(settings_for(folder)) as desk:
        people_of(desk)
        table_of(desk, rows=rows, budget={"epsilon": budget})
        clara = desk.accounts.person("clara")
        assert clara is not None
        table = desk.table("people", clara)
        for name in ("andy", "ben"):
            desk.grant(table, name, ["analyst"], str(budget), "", clara)
        tokens = []
        for name in ("andy", "ben"):
            person = desk.accounts.person(name)
            assert person is not None
            tokens.append(desk.accounts.new_token(person, "bench", ("read", "ask"), 1, 90))
        return tokens, desk


class Server:
    """`tacit serve` as a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start it; seconds of processor time of its own process to the first answer."""
        code = "import sys; from tacit.cli import main; sys.exit(main(sys.argv[1:]))"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "serve", "--folder", str(self.folder), "--port", str(PORT)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        until = time.monotonic() + 120
        while time.monotonic() < until:
            try:
                if ask("GET", "/health", None, "")[0] == 200:
                    break
            except OSError:
                time.sleep(0.02)
        ticks = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")

    def children(self, what: str) -> list[int]:
        """Processes of the server that run a module."""
        assert self.process is not None
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                line = (place / "cmdline").read_bytes()
                parent = (place / "stat").read_text().rsplit(")", 1)[1].split()[1]
            except OSError:
                continue
            if what.encode() in line and int(parent) == self.process.pid:
                found.append(int(place.name))
        return found

    def kill(self) -> None:
        """SIGKILL, for the server alone."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it in order."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


def ask(method: str, path: str, body: Any, token: str, seconds: float = 120) -> tuple[int, Any]:
    """One call."""
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=seconds)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(
            method, path, sent, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        )
        response = connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text[:1] in b"{[" else text.decode()
    finally:
        connection.close()


def question(i: int) -> dict[str, Any]:
    """A question that no other number gives."""
    return {
        "releases": [{"kind": "count", "where": f"income > {i // 100} and age > {i % 100}"}],
        "spend": {"epsilon": 0.01},
    }  # fmt: skip


def checked(folder: Path) -> dict[str, Any]:
    """What ledger and jobs say in the end: every answer has its charge, every committed answer its job or record."""
    with opened(settings_for(folder)) as desk:
        table = desk.store.one(TABLES, name="people")
        assert table is not None
        ledger = desk.ledger(table)
        charges = ledger.charges()
        states = Counter(ledger.state(c.sequence) for c in charges)
        jobs = desk.store.all(JOBS)
        done = [j for j in jobs if j["state"] == "done"]
        known = {c.sequence for c in charges if ledger.state(c.sequence) == "committed"}
        keys = {c.key for c in charges if c.sequence in known}
        lost = [c for c in charges if c.sequence in known and not any(j["key"] == c.key for j in done)]
        return {
            "charges": len(charges), **{f"charges {k}": v for k, v in states.items()},
            "jobs": dict(Counter(j["state"] for j in jobs)), "ledger valid": ledger.verify().ok,
            "spent": ledger.spent().parameters["epsilon"],
            "answers without a charge": sum(j["key"] not in keys for j in done),
            "committed answers lost": len(lost),
            "answered": len({j["charge"] for j in done}),
        }  # fmt: skip


def wait(token: str, seconds: float) -> None:
    """Wait until no job is open."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            _, found = ask("GET", "/api/v1/tables/people/releases", None, token)
            if not any(r["state"] in ("queued", "running") for r in found["releases"]):
                return
        except (OSError, ValueError, TypeError, KeyError):
            pass
        time.sleep(0.5)


def load(questions: int = 10_000, clients: int = 50) -> dict[str, Any]:
    """Many clients, a budget for 100 releases, questions that are all different."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "desk"
        tokens, _ = filled(folder, budget=1.0)
        server = Server(folder)
        server.start()
        seen: Counter[int] = Counter()
        began = time.monotonic()

        def one(i: int) -> None:
            if time.monotonic() - began > MOST_SECONDS:
                return
            status = 429
            while status == 429 and time.monotonic() - began < MOST_SECONDS:
                try:
                    status = ask("POST", "/api/v1/tables/people/release", question(i), tokens[i % 2])[0]
                except OSError:
                    status = 0
                if status == 429:  # so many of this person's jobs wait
                    time.sleep(1)
            seen[status] += 1

        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(one, range(questions)))
        for token in tokens:
            wait(token, 120)
        seconds = time.monotonic() - began
        server.stop()
        return {
            "questions": sum(seen.values()),
            "clients": clients,
            "status": dict(seen),
            "seconds": round(seconds),
            **checked(folder),
        }


def kills(times: int = 100, seed: int = 1) -> dict[str, Any]:
    """SIGKILL of workers at random moments of their work, until so many died; then the rest is worked off.

    A worker is forked from a process that has loaded the library, so that it dies at work and not while it starts.
    """
    from tacit.server import jobs, work
    from tacit.server.store import ServerStore
    from tacit.server.worker import Worker

    luck, done = random.Random(seed), 0
    jobs.LEASE = 1.0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "desk"
        filled(folder, budget=40.0)
        settings = settings_for(folder)

        def submitted(number: int) -> None:
            with opened(settings) as desk:
                table = desk.store.one(TABLES, name="people")
                assert table is not None
                for i in range(40):
                    quote = work.quote(desk.place(table), question(100 * number + i), "andy", desk.limits)
                    jobs.submit(desk.store, quote, table="people", version="2026", person="andy")

        def forked() -> int:
            child = os.fork()
            if child == 0:
                try:
                    Worker(ServerStore(folder), settings.releases, "").loop()
                finally:
                    os._exit(0)
            return child

        began, number = time.monotonic(), 0
        while done < times and time.monotonic() - began < MOST_SECONDS:
            with opened(settings) as desk:
                waiting = len(desk.store.all(JOBS, state="queued"))
            if waiting < 5:
                submitted(number)
                number += 1
            child = forked()
            time.sleep(luck.uniform(0.0, LONGEST))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            done += 1
        child = forked()
        until = time.monotonic() + 240
        while time.monotonic() < until:
            with opened(settings) as desk:
                if not desk.store.all(JOBS, state="queued") and not desk.store.all(JOBS, state="running"):
                    break
            time.sleep(1)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return {"killed": done, "seconds": round(time.monotonic() - began), **checked(folder)}


def price(users: int = 20, seconds: float = 60) -> dict[str, Any]:
    """Users who change something every 2 s: the time of each price."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "desk"
        tokens, _ = filled(folder, budget=10.0)
        server = Server(folder)
        server.start()
        for i in range(6):
            ask("POST", "/api/v1/tables/people/preview", question(i), tokens[0])
        times: list[float] = []
        until = time.monotonic() + seconds
        kinds = [
            {"kind": "count", "by": "region"}, {"kind": "mean", "column": "income", "by": "region", "rows": 500},
            {"kind": "histogram", "column": "age", "bins": 12}, {"kind": "sum", "column": "income"},
            {"kind": "quantiles", "column": "age", "at": [0.25, 0.5, 0.75]},
        ]  # fmt: skip

        def user(number: int) -> None:
            luck = random.Random(number)
            time.sleep(luck.uniform(0, 2))
            while time.monotonic() < until:
                asked = {**luck.choice(kinds), "where": f"age > {luck.randrange(100)}"}
                body = {"releases": [asked], "spend": {"epsilon": luck.randrange(1, 100) / 1000}}
                began = time.monotonic()
                status, _ = ask("POST", "/api/v1/tables/people/preview", body, tokens[number % 2])
                if status == 200:
                    times.append(time.monotonic() - began)
                time.sleep(2)

        threads = [threading.Thread(target=user, args=(n,)) for n in range(users)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.stop()
        times.sort()
        at = {
            f"p{q}": round(1000 * times[min(len(times) - 1, len(times) * q // 100)]) for q in (50, 90, 95, 99)
        }
        return {
            "users": users,
            "prices": len(times),
            **{f"{k}, ms": v for k, v in at.items()},
            "load": os.getloadavg()[0],
        }


def bad(luck: random.Random) -> Any:
    """A question that no server should answer, or one that it may."""
    words: dict[str, Any] = {
        "kind": luck.choice(["count", "mean", "sum", "median", "histogram", "nothing", "", "ratio"])
    }
    odd = [
        None,
        -1,
        0,
        2**60,
        1e308,
        "nan",
        "p7",
        "age'; DROP TABLE x",
        "north",
        [],
        {},
        [[1]],
        True,
        "\x00",
        "../x",
        "é" * 30,
    ]
    for _ in range(luck.randrange(4)):
        word = luck.choice(
            ["by", "column", "where", "bins", "at", "of", "rows", "name", "epsilon", "given", "path", "x"]
        )
        words[word] = luck.choice(
            [*odd, "age", "region", "person", "age > ", "age > 1e999", "income = 'x' or", "person = 'p7'"]
        )
    spend = luck.choice(
        [{"epsilon": luck.choice([0.1, -1, 0, "1", None, 1e300])}, None, [], {"rho": 1}, {"epsilon": 9}]
    )
    return luck.choice(
        [{"releases": [words], "spend": spend}, {"releases": words}, [words], {"releases": []}, "x"]
    )


def fuzz(questions: int = 1_000, seed: int = 3) -> dict[str, Any]:
    """The same bad questions to a table and to one with a person less and an odd row more: bodies must be equal."""
    odd = ROWS.replace("p7,25,north,1049\n", "") + 'p9999999999999999999,1e400,"nörth\x01",-2\n,,,\n'
    bodies = []
    for rows in (ROWS, odd):
        with tempfile.TemporaryDirectory() as place:
            folder, luck, found = Path(place) / "desk", random.Random(seed), []
            tokens, _ = filled(folder, budget=10.0, rows=rows)
            server = Server(folder)
            server.start()
            for _ in range(questions):
                asked, verb = bad(luck), luck.choice(["preview", "preview", "request", "release"])
                status, body = ask("POST", f"/api/v1/tables/people/{verb}", asked, tokens[0])
                for name in ("job", "request"):
                    if isinstance(body, dict) and status < 300:
                        body.pop(name, None)
                found.append((status, json.dumps(body, sort_keys=True)))
            server.stop()
            bodies.append(found)
    same = sum(a == b for a, b in zip(*bodies, strict=True))
    return {
        "questions": questions,
        "identical": same,
        "status": dict(Counter(s for s, _ in bodies[0])),
    }


def start() -> dict[str, Any]:
    """Processor seconds to the first answer, and the size of what the extra adds."""
    with tempfile.TemporaryDirectory() as place:
        server = Server(Path(place) / "desk")
        times = []
        for _ in range(3):
            times.append(server.start())
            server.stop()
    import importlib.metadata as data

    size = 0
    for name in (
        "starlette",
        "uvicorn",
        "argon2-cffi",
        "argon2-cffi-bindings",
        "jinja2",
        "markupsafe",
        "anyio",
        "h11",
        "idna",
    ):
        size += sum(
            f.locate().stat().st_size
            for f in data.files(name) or ()
            if f.locate().exists() and "__pycache__" not in str(f)
        )  # type: ignore[union-attr]
    return {"start, processor seconds": times, "added MB": round(size / 1e6, 1)}


if __name__ == "__main__":
    call, *given = sys.argv[1:] or ["start"]
    print(json.dumps({call: globals()[call](*map(int, given))}, indent=1))
