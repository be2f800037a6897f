"""Coverage and width of intervals for populations, by simulation: `make simulate`.

A module in `benchmarks/simulations` has a list LINES. Each line draws data many times, adds noise of the law that a
release draws, calls the estimator of the package, and states a target. A line fails if its figure is worse than its
target by more than two standard errors.

    python benchmarks/simulate.py                      every line, 2,000 runs each
    python benchmarks/simulate.py weighted --runs 500  lines whose name has this word
"""

from __future__ import annotations

import argparse
import importlib
import math
import pkgutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
ALLOWED = 2.0
"""Standard errors that a figure may be worse than its target."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the runs of a line gave: whether each interval held the truth, and ratios of widths to the ordinary one."""

    covered: Floats
    width: Floats = field(default_factory=lambda: np.zeros(0))
    more: dict[str, Floats] = field(default_factory=dict)
    """Further figures by name, one entry a run."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A setting with its targets: coverage at least, mean width at most, further figures at most."""

    name: str
    run: Callable[[np.random.Generator, int], Found]
    cover: float | None = None
    width: float | None = None
    at_most: dict[str, float] = field(default_factory=dict)
    runs: int | None = None
    """Its own number of runs, where one is slow; at least 2,000 by default."""


def noise(rng: np.random.Generator, scale: float, size: int | tuple[int, ...]) -> Floats:
    """Discrete Laplace noise of this scale in steps, as `Laplace` draws it; beyond 2^40 steps a rounded Laplace law."""
    if scale > 2.0**40:
        return np.rint(rng.laplace(0.0, scale, size))
    p = -math.expm1(-1.0 / scale)
    return (rng.geometric(p, size) - rng.geometric(p, size)).astype(np.float64)


def judged(line: Line, found: Found) -> list[tuple[str, float, float, float, bool]]:
    """Figure, standard error, target and whether it holds, for each target of a line."""
    out = []
    if line.cover is not None:
        share = float(found.covered.mean())
        error = math.sqrt(max(line.cover * (1 - line.cover), 1e-9) / found.covered.size)
        out.append(("cover", share, error, line.cover, share >= line.cover - ALLOWED * error))
    figures = {**({"width": (found.width, line.width)} if line.width is not None else {})}
    figures |= {name: (found.more[name], most) for name, most in line.at_most.items()}
    for name, (values, most) in figures.items():
        held = values[np.isfinite(values)]
        value, error = float(held.mean()), float(held.std() / math.sqrt(max(held.size, 1)))
        out.append((name, value, error, most, value <= most + ALLOWED * error))
    return out


def lines(words: Sequence[str]) -> list[Line]:
    """All lines of all modules, or those with one of the words in their names."""
    folder = Path(__file__).parent / "simulations"
    sys.path.insert(0, str(folder.parent))
    found: list[Line] = []
    for module in sorted(m.name for m in pkgutil.iter_modules([str(folder)])):
        found += importlib.import_module(f"simulations.{module}").LINES
    return [one for one in found if not words or any(w in one.name for w in words)]


def main() -> int:
    """Print a table; 1 if a line fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    failed = 0
    for line in lines(given.words):
        start = time.perf_counter()
        # One seed a line, from its name: a line that is added changes no other.
        seed = [given.seed, *line.name.encode()]
        found = line.run(np.random.default_rng(seed), line.runs or given.runs)
        for name, value, error, target, holds in judged(line, found):
            failed += not holds
            sign = ">=" if name == "cover" else "<="
            verdict = "" if holds else "  FAILS"
            print(
                f"{line.name:<58} {name:<8} {value:8.4f} (se {error:.4f}) {sign} {target:g}{verdict}",
                flush=True,
            )
        if line.cover is None and line.width is None and not line.at_most:
            print(f"{line.name:<58} has no target", flush=True)
        if time.perf_counter() - start > 60:
            print(f"    {time.perf_counter() - start:.0f} s", flush=True)
    print(f"{failed} failed" if failed else "all lines hold")
    return int(bool(failed))


if __name__ == "__main__":
    # Modules of lines import this one by its name.
    sys.modules["simulate"] = sys.modules["__main__"]
    sys.exit(main())
