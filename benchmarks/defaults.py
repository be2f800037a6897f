"""Medians and quartiles as the curator gives them by default, beside OpenDP, diffprivlib and ten lines of numpy.

Same rows, bounds, candidates (4,001 even ones; here the 4,000 ranges between them), relation (add-or-remove, one row a
unit) and epsilon. diffprivlib needs no candidates. The error is the median over runs and groups of |value - the table's
quantile|; peers spend all of epsilon on the value and give no interval.

usage: defaults.py [RUNS] [python of OpenDP] [python of diffprivlib]; prints a table. With TACIT_PEERS=FILE the peers'
errors are kept in that file, and taken from it the next time. With TACIT_RESOLUTION=0 tacit has 65,536
ranges; what it chooses by itself is in quantile_laws.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit.curator.charging import CONFIDENCE, price
from tacit.curator.planning import choose
from tacit.noise import SeededSource
from tacit.sources.axes import CountRows
from tacit.statistics.quantiles import range_steps

BY_HAND = True
"""It prints a table of its own; `run.py` leaves it out."""
HERE = Path(__file__).parent
SHARED = Path("/work/shared/data")
EPSILONS = (0.1, 0.5, 1.0)
CANDIDATES = 4001
RESOLUTION = int(os.environ.get("TACIT_RESOLUTION", CANDIDATES - 1))
SHARES = {"median": (0.5,), "quartiles": (0.25, 0.5, 0.75)}


def tables() -> dict[str, tuple[list[Any], float, float]]:
    """Groups of values, and declared bounds."""
    rng = np.random.default_rng(1)
    split = rng.random(1400) < 0.5
    skew = rng.lognormal(10, 0.8, 1400)
    ties = rng.choice([20.0, 35.0, 40.0, 60.0], 3000, p=[0.15, 0.2, 0.5, 0.15])
    found = {
        "skew, 1,400": ([skew[split], skew[~split]], 0.0, 250_000.0),
        "ties, 3,000": ([ties[:1800], ties[1800:]], 0.0, 100.0),
        "10^6 rows": ([rng.gamma(2.0, 20_000.0, n) for n in (600_000, 400_000)], 0.0, 250_000.0),
    }
    if SHARED.exists():
        import pandas as pd

        wages = pd.read_parquet(SHARED / "userlevel/nlswork.parquet")[:5000]
        put = np.exp(wages["ln_wage"].to_numpy(float))
        races = wages["race"].to_numpy()
        found["nlswork wages"] = ([put[races == r] for r in (1, 2)], 0.0, 50.0)
        adult = pd.read_csv(SHARED / "adult/adult_raw.csv", skipinitialspace=True)
        ages = next(c for c in adult if "age" in str(c).lower())
        groups = next(c for c in adult if str(c).lower() in ("sex", "gender"))
        found["adult age"] = ([g[ages].to_numpy(float)[:5000] for _, g in adult.groupby(groups)], 0.0, 120.0)
        panel = pd.read_parquet(SHARED / "userlevel/rwm5yr.parquet")[:5000]
        income, women = panel["hhninc"].to_numpy(float), panel["female"].to_numpy() == 1
        found["rwm5yr income"] = ([income[women], income[~women]], 0.0, 20.0)
    return found


def quantile(values: Any, share: float) -> float:
    """The least value with at least this share of the rows at most it."""
    return float(np.sort(values)[max(int(np.ceil(share * len(values))) - 1, 0)])


class Held:
    """A histogram as an engine gives it."""

    def __init__(self, counts: Any, keys: Any = None) -> None:
        self.values, self.keys = {CountRows(where=None): counts}, None if keys is None else (keys,)


def ours(
    groups: list[Any], low: float, high: float, shares: Any, epsilon: float, runs: int, seed: int
) -> Any:
    """Errors by share, cover, widths, and the share of intervals that are the whole range."""
    names = [str(i) for i in range(len(groups))]
    by = {"by": "g"} if len(groups) > 1 else {}
    schema = tacit.Schema({"x": tacit.number(low, high), "g": tacit.category(names)})
    fine = {"resolution": RESOLUTION or 1 << 16}
    question = tacit.quantiles("x", at=shares, **by, **fine).on(schema, tacit.rows())
    column, bins = schema.measured("x"), question.details["bins"]
    how, source = choose(question, price(epsilon=epsilon)), SeededSource(seed=seed)
    steps = range_steps(question, bins)
    put = [np.clip(np.rint(g / float(column.spacing)), column.lowest, column.highest) for g in groups]
    counts = np.array([np.bincount(np.searchsorted(steps, p, side="right") - 1, minlength=bins) for p in put])
    cells = [Held(counts if len(groups) > 1 else counts[0])]
    truth = np.array([[quantile(g, s) for s in shares] for g in groups])
    grid = np.array([[quantile(p, s) * float(column.spacing) for s in shares] for p in put])
    errors, widths, covered, whole = [], [], [], []
    for _ in range(runs):
        found = how.read(question, how.run(question, cells, source=source), CONFIDENCE)  # type: ignore[arg-type]
        value, left, right = (np.reshape(v, truth.shape) for v in (found.value, found.low, found.high))
        errors.append(np.abs(value - truth))
        widths.append(right - left)
        covered.append((left <= grid) & (grid <= right))
        whole.append(right - left >= 0.999 * (high - low))
    return (np.array(e) for e in (errors, widths, covered, whole))


def numpy_draws(groups: list[Any], low: float, high: float, share: float, epsilon: float, runs: int) -> float:
    """Ten lines: the exponential mechanism over the same candidates."""
    rng, candidates, errors = np.random.default_rng(7), np.linspace(low, high, CANDIDATES), []
    for values in groups:
        below = np.searchsorted(np.sort(values), candidates)
        score = -np.abs(below - share * len(values)) * epsilon / (2 * max(share, 1 - share))
        noisy = score + rng.gumbel(size=(runs, CANDIDATES))
        errors.append(np.abs(candidates[noisy.argmax(axis=1)] - quantile(values, share)))
    return float(np.median(np.concatenate(errors)))


def main(runs: int, peers: dict[str, str]) -> None:
    found, cases, arrays = {}, [], {}
    for t, (name, (groups, low, high)) in enumerate(tables().items()):
        for kind, shares in SHARES.items():
            case = f"{name}: {kind}"
            found[case] = {"groups": groups, "low": low, "high": high, "shares": shares}
            keys = [f"{t}-{i}" for i in range(len(groups))]
            arrays |= dict(zip(keys, groups, strict=True))
            cases.append({
                "name": case, "groups": keys, "low": low, "high": high, "shares": shares, "runs": runs,
                "epsilons": EPSILONS, "candidates": np.linspace(low, high, CANDIDATES).tolist(),
                "truth": [[quantile(g, s) for s in shares] for g in groups],
            })  # fmt: skip
    theirs: dict[tuple[str, float, float], dict[str, float]] = {}
    kept = Path(os.environ["TACIT_PEERS"]) if "TACIT_PEERS" in os.environ else None
    for line in kept.read_text().splitlines() if kept is not None and kept.exists() else ():
        row = json.loads(line)
        theirs.setdefault((row["case"], row["epsilon"], row["share"]), {})[row["peer"]] = row["error"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tables.npz"
        np.savez(path, cases=json.dumps(cases), **arrays)
        for peer, python in peers.items():
            if any(peer in said for said in theirs.values()):
                continue
            done = subprocess.run(
                [python, str(HERE / "_quantile_peers.py"), peer, str(path)], capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            for line in done.stdout.splitlines():
                row = json.loads(line)
                theirs.setdefault((row["case"], row["epsilon"], row["share"]), {})[peer] = row["error"]
                if kept is not None:
                    with kept.open("a") as file:
                        file.write(json.dumps(row | {"peer": peer}) + "\n")
            if done.returncode:
                print(f"{peer}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    print(
        "| table | epsilon | share | ours | numpy | OpenDP | diffprivlib | ratio | s.e. | cover | width | whole |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for case, about in found.items():
        for k, epsilon in enumerate(EPSILONS):
            few = runs if len(about["groups"][0]) <= 10_000 else min(runs, 500)
            errors, widths, covered, whole = ours(**about, epsilon=epsilon, runs=few, seed=11 + k)
            for j, share in enumerate(about["shares"]):
                each = errors[:, :, j].ravel()
                error = float(np.median(each))
                plain = numpy_draws(
                    about["groups"], about["low"], about["high"], share, epsilon / len(about["shares"]), few
                )
                said = theirs.get((case, epsilon, share), {})
                best = min([plain, *said.values()])
                again = np.random.default_rng(3).choice(each, (200, each.size))
                spread = float(np.median(again, axis=1).std())
                ratio = error / best if best else float("nan") if error else 1.0
                other = " | ".join(f"{said.get(p, float('nan')):.4g}" for p in ("opendp", "diffprivlib"))
                print(
                    f"| {case} | {epsilon} | {share} | {error:.4g} | {plain:.4g} | {other}"
                    f" | {ratio:.2f} | {spread / best if best else 0:.2f}"
                    f" | {covered[:, :, j].mean():.3f} | {np.median(widths[:, :, j]):.4g}"
                    f" | {whole[:, :, j].mean():.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    given = sys.argv[1:]
    main(
        int(given[0]) if given else 500,
        dict(zip(("opendp", "diffprivlib"), given[1:], strict=False)),
    )
