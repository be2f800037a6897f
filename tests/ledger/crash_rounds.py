"""A process of its own that starts workers on one ledger and kills them at random moments (a script).

    python crash_rounds.py ROUNDS SEED LOG SHORTEST LONGEST PLACE [PLACE ...]

Every round: eight workers are forked; each reserves, runs and commits as fast as it can; as soon as they have noted
some things, a random number, they are killed with SIGKILL, one after the other at random moments. What they come to
decides, and not the clock alone, so that a busy machine tests as much as an idle one. Rounds are spread over the
places in turn. Workers note in LOG what they were told, a line with one write, so that a note is whole or absent:

    ran PLACE SEQUENCE DIGEST KEY       reserve returned a ticket: the charge must be durable
    answered PLACE SEQUENCE             commit returned: the answer must be durable
    replayed PLACE SEQUENCE             an answer came from the record
    refused PLACE                       over budget
    error PLACE TEXT                    anything else, which must not happen
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import time

from support.ledgers import ask
from tacit.errors import BudgetExceeded
from tacit.ledger import Ledger, Recorded

WORKERS = 8


def work(ledger: Ledger, note: int, place: int, name: str) -> None:
    number = 0
    while True:
        number += 1
        # Every third question is one that all workers ask, so that answers are found in the record too.
        key = f"shared {number // 3 % 5}" if number % 3 == 0 else f"{name} {number}"
        try:
            outcome = ledger.reserve(ask(key, 0.125, analyst=name.split()[0]))
        except BudgetExceeded:
            os.write(note, f"refused {place}\n".encode())
            ledger.remaining()
            continue
        if isinstance(outcome, Recorded):
            os.write(note, f"replayed {place} {outcome.sequence}\n".encode())
            continue
        os.write(note, f"ran {place} {outcome.sequence} {outcome.digest} {key}\n".encode())
        ledger.commit(outcome, {"question": key, "padding": "x" * (number * 97 % 5000)})
        os.write(note, f"answered {place} {outcome.sequence}\n".encode())


def start(ledger: Ledger, note: int, place: int, name: str) -> int:
    child = os.fork()
    if child:
        return child
    signal.alarm(60)  # a worker that nobody kills ends by itself
    try:
        work(ledger, note, place, name)
    except BaseException as problem:
        os.write(note, f"error {place} {type(problem).__name__}: {problem}\n".encode())
    os._exit(1)


def main() -> None:
    rounds, seed = int(sys.argv[1]), int(sys.argv[2])
    note = os.open(sys.argv[3], os.O_RDWR | os.O_APPEND | os.O_CREAT)
    shortest, longest = float(sys.argv[4]), float(sys.argv[5])
    ledgers = [Ledger.open(place) for place in sys.argv[6:]]
    chance = random.Random(seed)
    for ledger in ledgers:
        # Statements are compiled once and inherited: workers die in the middle of their work, not of getting ready.
        for _ in range(2):
            ledger.run(ask("first", 0.0), dict)
        ledger.remaining()
    gc.freeze()
    for number in range(rounds):
        place = number * len(ledgers) // rounds
        ledger = ledgers[place]
        ledger.spent()  # what happened in earlier rounds is inherited by the workers, not read by each
        noted = os.fstat(note).st_size
        children = [start(ledger, note, place, f"w{w} round {number}") for w in range(WORKERS)]
        chance.shuffle(children)
        moments = sorted(chance.uniform(shortest, longest) for _ in children)
        begun = time.monotonic()
        enough = chance.randint(1, 2 * WORKERS)
        while time.monotonic() < begun + 20 and os.pread(note, 1 << 20, noted).count(b"\n") < enough:
            time.sleep(0.001)
        begun = time.monotonic()
        for child, moment in zip(children, moments, strict=True):
            time.sleep(max(0.0, begun + moment - time.monotonic()))
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)
        found = ledger.verify()
        if not found.ok:
            os.write(note, f"error {place} {found}\n".encode())


if __name__ == "__main__":
    main()
