"""The figures of `tacit serve`: budget under load, kills, live prices, start, size. Loopback only, bounded loops.

python benchmarks/server.py load  [questions] [clients]     a budget for 100 releases, many different questions
python benchmarks/server.py kills [times] [seed]             SIGKILL of server, worker or both at random moments
python benchmarks/server.py price [users] [seconds]          live prices
python benchmarks/server.py fuzz  [questions]                bad questions on neighbouring tables
python benchmarks/server.py start                            processor time to the first answer, installed size
"""

from __future__ import annotations

import http.client
import importlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.servers import ROWS, people_of, settings_for, table_of
from tacit.server.desk import Desk, opened
from tacit.server.running import bound
from tacit.server.store import JOBS, TABLES, ServerStore

PORT = int(os.environ.get("PORT", "8611"))
LONGEST = float(os.environ.get("LONGEST", "1"))
"""Seconds between the start of a job and a kill, at most; more where processes are slow."""
MOST_SECONDS = float(os.environ.get("MOST_SECONDS", "3600"))
"""Load and kills end after this time, with what was done by then."""
NAMES = "anna dora emil frieda gerd hans ida jonas lena marta nora otto paula quentin rosa stefan tina ursula bert"
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


class Forks:
    """Servers and workers forked from a process that has loaded the library: they are killed at work, not at start."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ours, theirs = folder, *socket.socketpair()
        self.number = os.fork()
        if self.number == 0:
            self.ours.close()
            try:
                self._serve(theirs)
            finally:
                os._exit(0)
        theirs.close()
        self.lines = self.ours.makefile()

    def _serve(self, asks: socket.socket) -> None:
        from tacit.server import app, work, worker
        from tacit.server.running import server_of

        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        settings = replace(settings_for(self.folder), workers=0, port=PORT)
        lines = asks.makefile()
        table = json.loads(lines.readline())
        # What a release imports is learned from one on made-up rows in a process of its own: no thread before a fork.
        told, tells = os.pipe()
        if (child := os.fork()) == 0:
            place = self.folder / "releases" / "warm"
            work.release(table, question(1), "andy", place, key="warm", rehearsal=True)
            os.write(tells, json.dumps(sorted(sys.modules)).encode())
            os._exit(0)
        os.close(tells)
        with os.fdopen(told) as names:
            for name in json.loads(names.read()):
                with suppress(Exception):
                    importlib.import_module(name)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)
        for line in lines:
            what, _, server = line.strip().partition(" ")
            child = os.fork()
            if child:
                asks.sendall(f"{child}\n".encode())
                continue
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            asks.close()
            if what == "server":
                made = app.make_app(settings, workers=False)
                made.state.desk.pool = made.state.desk.slow = Direct()
                with bound(settings) as listening:
                    server_of(made).run(sockets=[listening])
            else:
                found = worker.Worker(worker.ServerStore(self.folder), settings.releases, "", 0.05)

                def watch() -> None:
                    while Path(f"/proc/{server}").exists():  # noqa: B023
                        time.sleep(0.05)
                    found.over.set()  # noqa: B023

                threading.Thread(target=watch, daemon=True).start()
                found.loop()
            os._exit(0)

    def new(self, what: str) -> int:
        """A new process: "server", or "worker" and the number of its server."""
        self.ours.sendall(f"{what}\n".encode())
        return int(self.lines.readline())


class Direct:
    """Calls as a pool of processes takes them, made in the server itself."""

    def call(self, name: str, *given: Any, seconds: float) -> Any:
        from tacit.server import work

        return work.CALLS[name](*given)

    def warm(self) -> None: ...

    def close(self) -> None: ...


def alive(number: int) -> bool:
    """Is a process there?"""
    try:
        os.kill(number, 0)
    except OSError:
        return False
    return True


def kills(times: int = 100, seed: int = 1, clients: int = 3) -> dict[str, Any]:
    """SIGKILL of the server, of its worker or of both at random moments of a job, while clients ask; then the rest.

    A client that saw an answer keeps it: in the end it must be there still, with its charge.
    """
    luck, died, at_work = random.Random(seed), Counter[str](), Counter[str]()
    seen: dict[str, tuple[int, Any]] = {}
    over, numbers, lock = threading.Event(), iter(range(10**6)), threading.Lock()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "desk"
        tokens, _ = filled(folder, budget=40.0)
        with opened(settings_for(folder)) as desk:
            row = desk.store.one(TABLES, name="people")
            assert row is not None
            table = desk.place(row)
        forks = Forks(folder)
        forks.ours.sendall(json.dumps(table).encode() + b"\n")
        server = forks.new("server")
        worker = forks.new(f"worker {server}")

        def called(method: str, path: str, body: Any, token: str) -> tuple[int, Any]:
            while True:
                try:
                    return ask(method, path, body, token, 30)
                except (OSError, ValueError, http.client.HTTPException):
                    time.sleep(0.1)

        def client(number: int) -> None:
            token = tokens[number % 2]
            while not over.is_set():
                with lock:
                    i = next(numbers)
                # The same key until it is taken: a call that was cut off is repeated, and is one job.
                body = {**question(i), "key": f"question-{i}"}
                status, job = called("POST", "/api/v1/tables/people/release", body, token)
                while status == 202 and job["state"] in ("queued", "running"):
                    time.sleep(0.1)
                    got, found = called("GET", f"/api/v1/jobs/question-{i}", None, token)
                    job = found if got == 200 else job
                if status == 202 and job["state"] == "done":
                    got, answer = called("GET", f"/api/v1/jobs/question-{i}/answer", None, token)
                    if got == 200:
                        values = [r["columns"]["value"] for r in answer["releases"]]
                        seen[str(job["job"])] = (job["charge"], values)

        threads = [threading.Thread(target=client, args=(n,), daemon=True) for n in range(clients)]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        store = ServerStore(folder)
        while sum(died.values()) < times and time.monotonic() - began < MOST_SECONDS:
            if not alive(server):
                server = forks.new("server")
            if not alive(worker):
                worker = forks.new(f"worker {server}")
            until = time.monotonic() + 20
            while time.monotonic() < until:
                mine = [j for j in store.all(JOBS, state="running") if j["worker"].startswith(f"{worker}-")]
                if mine:
                    break
                time.sleep(0.005)
            time.sleep(luck.uniform(0.0, LONGEST))
            what = luck.choice(["server", "worker", "both"])
            for name, number in (("worker", worker), ("server", server)):
                if what in (name, "both") and alive(number):
                    os.kill(number, signal.SIGKILL)
            died[what] += 1
            at_work["in a job" if store.all(JOBS, state="running") else "between jobs"] += 1
            while (what != "worker" and alive(server)) or (what != "server" and alive(worker)):
                time.sleep(0.005)
        over.set()
        until = time.monotonic() + 300
        while time.monotonic() < until:
            if not alive(server):
                server = forks.new("server")
            if not alive(worker):
                worker = forks.new(f"worker {server}")
            if not any(t.is_alive() for t in threads) and not store.all(JOBS, state="running"):
                break
            time.sleep(0.2)
        for number in (worker, server, forks.number):
            os.kill(number, signal.SIGKILL)
        os.waitpid(forks.number, 0)
        store.close()
        with opened(settings_for(folder)) as desk:
            ledger = desk.ledger(row)
            paid = {c.sequence for c in ledger.charges() if ledger.state(c.sequence) == "committed"}
            changed = unpaid = missing = 0
            for job, (charge, values) in seen.items():
                found = desk.store.one(JOBS, id=job)
                assert found is not None
                changed += [r["columns"]["value"] for r in desk.answer(found)["releases"]] != values
                unpaid += charge not in paid
            for found in desk.store.all(JOBS, state="done"):
                missing += not desk.answer(found)["releases"]
        return {
            "killed": dict(died), "moments": dict(at_work), "seconds": round(time.monotonic() - began),
            "answers seen by clients": len(seen), "seen and changed later": changed, "seen and unpaid": unpaid,
            "done without values": missing, "load": os.getloadavg()[0], **checked(folder),
        }  # fmt: skip


def processor(process: int) -> float:
    """Seconds of processor time of a process and its children that live."""
    total = 0.0
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(place.name) == process or int(words[1]) == process:
            total += (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return total


def price(users: int = 20, seconds: float = 60) -> dict[str, Any]:
    """Users at the page *Ask* who change something every 2 s: the time of each price, as the browser waits for it."""
    from urllib.parse import urlencode

    from tacit.server.store import PEOPLE, SESSIONS, now

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "desk"
        filled(folder, budget=10.0)
        names, cookies = NAMES.split()[:users], dict[str, tuple[str, str]]()
        users = len(names)
        with opened(settings_for(folder)) as desk:
            clara = desk.accounts.person("clara")
            assert clara is not None
            table = desk.table("people", clara)
            for name in names:
                desk.store.add(PEOPLE, name=name, roles='["analyst"]', created=now())
                desk.grant(table, name, ["analyst"], "1", "", clara)
                secret = desk.accounts.new_session(name)
                session = desk.store.one(SESSIONS, person=name)
                assert session is not None
                cookies[name] = secret, str(session["csrf"])
        server = Server(folder)
        server.start()
        kinds = [
            {"kind": "count", "by": "region"}, {"kind": "mean", "column": "income", "by": "region", "rows": "500"},
            {"kind": "histogram", "column": "age", "bins": "12"}, {"kind": "sum", "column": "income"},
            {"kind": "quantiles", "column": "age", "at": "0.25, 0.5, 0.75"}, {"kind": "median", "column": "income"},
            {"kind": "contingency", "by": ["region", "age"], "bins:age": "6"},
        ]  # fmt: skip

        def one(name: str, luck: random.Random) -> tuple[float, bool]:
            secret, token = cookies[name]
            sent = {
                **luck.choice(kinds), "where": f"age > {luck.randrange(100)}", "pay": "own", "csrf": token,
                "amount": str(luck.randrange(1, 100) / 1000), "basket": "[]",
            }  # fmt: skip
            began = time.monotonic()
            connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
            connection.request(
                "POST", "/tables/people/price", urlencode(sent, doseq=True),
                {"Cookie": f"tacit-session={secret}", "Content-Type": "application/x-www-form-urlencoded"},
            )  # fmt: skip
            text = connection.getresponse().read().decode()
            connection.close()
            return time.monotonic() - began, 'class="big"' in text

        for i in range(30):  # the library is loaded in both processes
            one(names[i % users], random.Random(i))
        times: list[float] = []
        wrong = [0]
        assert server.process is not None
        before, until = processor(server.process.pid), time.monotonic() + seconds

        def user(number: int) -> None:
            luck = random.Random(number)
            time.sleep(luck.uniform(0, 2))
            while time.monotonic() < until:
                took, good = one(names[number], luck)
                times.append(took)
                wrong[0] += not good
                time.sleep(2)

        threads = [threading.Thread(target=user, args=(n,)) for n in range(users)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        used = processor(server.process.pid) - before
        server.stop()
        times.sort()
        at = {
            f"p{q}": round(1000 * times[min(len(times) - 1, len(times) * q // 100)]) for q in (50, 90, 95, 99)
        }
        return {
            "users": users, "prices": len(times), "without a price": wrong[0], **{f"{k}, ms": v for k, v in at.items()},
            "processor, ms a price": round(1000 * used / len(times), 1), "load": os.getloadavg()[0],
        }  # fmt: skip


def bad(luck: random.Random) -> Any:
    """A question that no server should answer, or nearly one, or one that it may."""
    odd = [
        None, -1, 0, 2**60, 1e308, "nan", "p7", "age'; DROP TABLE x", "north", [], {}, [[1]], True, "\x00", "../x",
        "é" * 30, "age", "region", "person", "age > ", "age > 1e999", "income = 'x' or", "person = 'p7'", "age > 30",
    ]  # fmt: skip
    words: dict[str, Any] = luck.choice([
        {"kind": "count"}, {"kind": "count", "by": "region"}, {"kind": "mean", "column": "age"}, {"kind": "nothing"},
        {"kind": "sum", "column": "income", "by": ["region"]}, {"kind": "median", "column": "age"}, {"kind": ""},
        {"kind": "histogram", "column": "age", "bins": 5}, {"kind": "proportion", "of": "age > 30"},
    ])  # fmt: skip
    words = dict(words)
    for _ in range(luck.choice([0, 1, 1, 1, 2, 3])):
        word = luck.choice(
            ["by", "column", "where", "bins", "at", "of", "rows", "name", "epsilon", "given", "path", "x"]
        )
        words[word] = luck.choice(odd)
    spend = luck.choice(
        [*6 * [{"epsilon": 0.01}], {"epsilon": -1}, {"epsilon": "1"}, None, [], {"rho": 1}, {"epsilon": 9}]
    )
    right: list[Any] = 12 * [{"releases": [words], "spend": spend}]
    return luck.choice([*right, {"releases": words}, [words], {"releases": []}, "x"])


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
                if status == 202:  # what is left is told by the next answer: let the job end first
                    wait(tokens[0], 60)
                if isinstance(body, dict) and status < 300:
                    for name in ("job", "request"):
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
    return {"start, processor seconds": times, "added MB": added()}


def added() -> float:
    """The size of `pip install "tacit[server]"` beyond `pip install tacit`, from the metadata of what is installed."""
    import importlib.metadata as data
    import re

    def needs(name: str, extras: frozenset[str], known: set[tuple[str, frozenset[str]]]) -> set[str]:
        from packaging.requirements import Requirement

        found = {re.sub(r"[-_.]+", "-", name).lower()}
        if (name.lower(), extras) in known:
            return found
        known.add((name.lower(), extras))
        for line in data.requires(name) or ():
            one = Requirement(line)
            if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in extras | {""}):
                found |= needs(one.name, frozenset(one.extras), known)
        return found

    more = needs("tacit", frozenset({"server"}), set()) - needs("tacit", frozenset(), set())
    size = 0
    for name in sorted(more):
        for file in data.files(name) or ():
            place = Path(str(file.locate()))
            size += place.stat().st_size if place.exists() else 0
    print("tacit[server] adds", ", ".join(sorted(more)))
    return round(size / 1e6, 1)


if __name__ == "__main__":
    call, *given = sys.argv[1:] or ["start"]
    print(json.dumps({call: globals()[call](*map(int, given))}, indent=1))
