"""Noise of the Caratheodory body beside a random walk in it, and Fourier coefficients of 10^7 rows in DuckDB.

Vectors are drawn on one thread from the cryptographic source, eight frequencies, on a grid of 2^-16, in processor
time. The walk is Hall's hit-and-run (2012, 4.4.4) for a batch of 64 with eigenvalues by numpy; 1000 steps are taken
as ten times 100. The rows are counted by lattice cell inside the engine, and 129 coefficients follow from the counts,
exactly; beside it stands the SQL that adds up 64 cosines and 64 sines, run once. Times of queries are of the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np

from tacit.functions.boxes import Box
from tacit.functions.fourier import FourierKDE, FourierPlan
from tacit.functions.fourier.plan import grid_sums
from tacit.mechanisms import fourier_noise
from tacit.noise import CaratheodoryBody, Difference, KNormVector

FREQUENCIES = 8
VECTORS = 1 << 15
WALKERS = 64
STEPS = 100
ROWS = 10**7
ORDER = 64


def best(run: Callable[[], Any], repeats: int = 3, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds, best of a few."""
    times = []
    for _ in range(repeats):
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)


def toeplitz(c: np.ndarray) -> np.ndarray:
    """The Hermitian Toeplitz matrices of (0, c) for rows c."""
    m = c.shape[1]
    full = np.concatenate([c[:, ::-1].conj(), np.zeros((c.shape[0], 1)), c], axis=1)
    return full[:, np.arange(m + 1)[None, :] - np.arange(m + 1)[:, None] + m]


def walk(steps: int) -> None:
    """Hit-and-run in the body: the chord's ends are -1 / eigenvalues of A^(-1/2) B A^(-1/2)."""
    rng = np.random.default_rng(0)
    c = np.zeros((WALKERS, FREQUENCIES), dtype=complex)
    for _ in range(steps):
        direction = rng.normal(size=c.shape) + 1j * rng.normal(size=c.shape)
        factor = np.linalg.cholesky(toeplitz(c) + np.eye(FREQUENCIES + 1))
        half = np.linalg.solve(factor, toeplitz(direction))
        ends = np.linalg.eigvalsh(np.linalg.solve(factor, half.conj().transpose(0, 2, 1)))
        low, high = -1 / ends[:, -1], -1 / ends[:, 0]
        c = c + (low + (high - low) * rng.random(WALKERS) * (1 - 1e-9))[:, None] * direction


def aggregates() -> dict[str, Any]:
    """Seconds for the coefficients from the counts of cells, and for the plain SQL sums."""
    connection = duckdb.connect()
    connection.execute("set threads = 2")
    connection.execute(f"create table rows as select random() as x from range({ROWS})")
    family = FourierKDE(domain=Box(low=0, high=1), order=ORDER, bandwidth=0.01, margin=0.0)
    spacing = FourierPlan(family=family, size=ROWS, epsilon=1).choice.spacing
    count = family.cells[0]

    def ours() -> None:
        found = connection.execute(
            f"select least(cast(floor(least(greatest(x, 0.0), 1.0) * {count}) as bigint), {count - 1}) as cell, "
            "count(*) from rows group by cell"
        ).fetchnumpy()
        grid_sums(family, found["cell"][:, None], found["count_star()"], spacing)

    sums = ", ".join(
        f"sum({f}({2 * np.pi * k!r} * x)) as {f}{k}" for k in range(1, ORDER + 1) for f in ("cos", "sin")
    )
    plain = f"select count(*), {sums} from rows"
    ours()
    return {"ours": best(ours), "plain": best(lambda: connection.execute(plain).fetchall(), 1)}


def main() -> list[dict[str, Any]]:
    body = KNormVector(body=CaratheodoryBody(frequencies=FREQUENCIES), noise_scale=2)
    laws = {"K-norm vectors": body, "differences of two": Difference(distribution=body)}
    rows: list[dict[str, Any]] = []
    walked = best(lambda: walk(STEPS), clock=time.process_time) * 1000 / STEPS / WALKERS
    for name, law in laws.items():
        law.sample(spacing=2.0**-16, size=64)
        each = (
            best(lambda law=law: law.sample(spacing=2.0**-16, size=VECTORS), 5, time.process_time) / VECTORS
        )
        rows.append(
            {
                "measure": f"{name} of the Caratheodory body, m = 8, a second",
                "ours": f"{1 / each:,.0f}",
                "peer": "asked",
                "theirs": "30,000",
                "ratio": 1 / each / 30_000,
                "target": 1.0,
            }
        )
        if law is body:
            rows.append(
                {
                    "measure": "one vector, m = 8",
                    "ours": f"{each * 1e6:.1f} us",
                    "peer": "hit-and-run, 1000 steps",
                    "theirs": f"{walked * 1e6:,.0f} us",
                    "ratio": walked / each,
                    "target": 100.0,
                }
            )
    for m, target in ((8, 4.0), (16, 8.0)):
        noise = fourier_noise(frequencies=m, epsilon=1, replace=True)
        for other, asked in (("laplace", target), ("gamma", 0.0)):
            rows.append(
                {
                    "measure": f"noise energy of sums, m = {m}, epsilon = 1",
                    "ours": f"{noise.energy:,.0f}",
                    "peer": f"{other} noise, its own sensitivity",
                    "theirs": f"{noise.energies[other]:,.0f}",
                    "ratio": noise.energies[other] / noise.energy,
                    "target": asked,
                }
            )
    seconds = aggregates()
    rows.append(
        {
            "measure": "10^7 rows into 129 coefficients, DuckDB, two threads",
            "ours": f"{seconds['ours']:.2f} s",
            "peer": "SQL sums of cosines and sines",
            "theirs": f"{seconds['plain']:.2f} s",
            "ratio": seconds["plain"] / seconds["ours"],
            "target": 1 / 1.5,
        }
    )
    return rows
