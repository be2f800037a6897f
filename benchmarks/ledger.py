"""The ledger: what it costs to open one and to charge it when it is short and when it is long; who waits for whom.

A ledger with 10 charges and one with 10^5, on one disk. The next charge is a `reserve` and a `commit`; medians of
many, of both ledgers in turn, so that the disk treats them alike. "asked"
is what the long one may cost beside the short one; the ratio is of that to what it does. Eight processes charge one
ledger 2,000 times as fast as they can, in memory, and wait_seconds is 30: the 99th percentile of what a charge takes
beside eight times the median. What verifying takes is processor time.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.exact.canonical import sha256
from tacit.guarantees import Guarantee, Pure, rows
from tacit.ledger import Entry, Ledger, Request, Ticket, verify_ledger
from tacit.ledger.entries import reserve_body
from tacit.ledger.log import answer_name, closed_name, head_mac, index_mac, now
from tacit.ledger.store import ANSWERS, ENTRIES, HEADER, INDEX

LONG = 100_000
TIMES = 40
WORKERS, CHARGES = 8, 250
WORKER = """
import sys, time
sys.path.insert(0, sys.argv[3])
from ledger import ask
from tacit.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[4])):
    begun = time.monotonic()
    ledger.run(ask(f"{sys.argv[2]} {number}"), lambda: {"value": number})
    print(time.monotonic() - begun, flush=True)
"""


def ask(key: str) -> Request:
    return Request(
        key=key, plan_digest=f"plan of {key}", version="2026-11", analyst="ann",
        event={"kind": "laplace", "epsilon": 0.0078125}, charge=Guarantee(bound=Pure(epsilon=2**-20), unit=rows()),
    )  # fmt: skip


def made(path: Path, charges: int) -> Path:
    """A ledger with so many charges, written many at a time; it is verified below, and so what single ones write."""
    ledger = Ledger.create(path, budget=Guarantee(bound=Pure(epsilon=10), unit=rows()))
    ledger.run(ask("q0"), lambda: {"value": 1})
    ledger.spent()
    state, sequence, digest, body = ledger._state, ledger._sequence, ledger._digest, b'{"value":1}'
    said = {"kind": "json", "sha256": sha256(body), "size": len(body)}
    held: dict[Any, list[dict[str, Any]]] = {ENTRIES: [], INDEX: [], ANSWERS: []}
    for number in range(1, charges):
        request = ask(f"q{number}")
        given: dict[str, Any] = {"time": now(), **reserve_body(request, "")}
        draft = Entry.new(sequence=sequence + 1, previous=digest, kind="reserve", **state.to_dict(), **given)
        state = state.charged(draft.charge())
        paid = Entry.new(sequence=sequence + 1, previous=digest, kind="reserve", **state.to_dict(), **given)
        entry = Entry.new(
            sequence=sequence + 2, previous=paid.digest, time=now(), kind="commit", **state.to_dict(),
            reserve=paid.sequence, charge=paid.digest, answer=said,
        )  # fmt: skip
        sequence, digest = entry.sequence, entry.digest
        for one in (paid, entry):
            held[ENTRIES].append({"sequence": one.sequence, "digest": one.digest, "content": one.content})
        for name in (
            closed_name(paid.sequence),
            answer_name(ledger._secret, request.key, "", request.version),
        ):
            keyed = index_mac(ledger._secret, ledger._start, name, sequence, digest)
            held[INDEX].append({"name": name, "sequence": sequence, "digest": digest, "mac": keyed})
        held[ANSWERS].append({"sequence": sequence, "body": body})

    def write(connection: Any) -> None:
        for table, found in held.items():
            for row in found:
                connection.change(table.insertion, row)
        keyed = head_mac(ledger._secret, ledger._start, sequence, digest)
        head = {"sequence": sequence, "digest": digest, "mac": keyed, "state": state.text}
        connection.change(HEADER.update(tuple(head)), head)

    ledger._store.write(write)
    return path


def charge(ledger: Ledger, key: str) -> None:
    ticket = ledger.reserve(ask(key))
    assert isinstance(ticket, Ticket)
    ledger.commit(ticket, {"value": 1})


def in_turn(actions: list[Callable[[int], None]]) -> list[float]:
    took: list[list[float]] = [[] for _ in actions]
    for number in range(TIMES):
        for held, action in zip(took, actions, strict=True):
            begun = time.perf_counter()
            action(number)
            held.append(time.perf_counter() - begun)
    return [statistics.median(t) for t in took]


def at_once(path: Path) -> list[float]:
    here = str(Path(__file__).parent)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path), f"w{n}", here, str(CHARGES)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for n in range(WORKERS)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return sorted(float(line) for p in processes for line in p.communicate()[0].splitlines())


def beside(measure: str, short: float, long: float) -> dict[str, Any]:
    return {
        "measure": f"{measure}, with 10^5 charges (asked: at most twice that with 10)",
        "ours": f"{long * 1e3:.2f} ms",
        "peer": "with 10 charges",
        "theirs": f"{short * 1e3:.2f} ms",
        "ratio": 2 * short / long,
        "target": 1.0,
    }


def main() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [made(Path(folder) / "short.ledger", 10), made(Path(folder) / "long.ledger", LONG)]

        def opened(path: Path) -> Callable[[int], None]:
            return lambda _: Ledger.open(path).close()

        opening = in_turn([opened(p) for p in paths])
        ledgers = [Ledger.open(p) for p in paths]
        charging = in_turn([lambda n, held=held: charge(held, f"next {n}") for held in ledgers])  # type: ignore[misc]
        begun = time.process_time()
        assert verify_ledger(paths[1]).ok
        verifying = time.process_time() - begun
        out = [
            beside("opening", *opening),
            beside("next charge", *charging),
            {
                "measure": f"verifying all of 10^5 charges, streamed: {verifying / (2 * LONG) * 1e6:.0f} µs an entry",
                "ours": f"{verifying:.1f} s",
            },
        ]
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        path = Path(folder) / "a.ledger"
        Ledger.create(path, budget=Guarantee(bound=Pure(epsilon=10), unit=rows())).close()
        took = at_once(path)
        ledger = Ledger.open(path)
        kept = sum(e.kind == "commit" for e in ledger.entries())
        middle, late = took[len(took) // 2], took[int(len(took) * 0.99)]
        out.append(
            {
                "measure": f"{WORKERS} processes, {kept} charges of {WORKERS * CHARGES} recorded: 99th percentile",
                "ours": f"{late * 1e3:.0f} ms",
                "peer": "8 x the median",
                "theirs": f"{8 * middle * 1e3:.0f} ms",
                "ratio": 8 * middle / late if kept == WORKERS * CHARGES else 0.0,
                "target": 1.0,
            }
        )
    return out
