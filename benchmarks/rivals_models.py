"""Perturbed objectives beside their rivals at the asked price, over ordinary public settings: where is another less?

    python benchmarks/rivals_models.py            # the grid of the formulas

Nothing is read: all errors are those of public reference tables (`tacit.functions.models.rivals`). Their formulas are
those of simulated fits (tests/functions/test_perturbed_models.py).
"""

from __future__ import annotations

import itertools

import numpy as np

from tacit.errors import NotCertified
from tacit.functions.models.columns import LONGEST, DeclaredColumns
from tacit.functions.models.losses import LogCosh
from tacit.functions.models.rivals import GAUSSIAN, PURE, perturbation
from tacit.functions.models.solvers import Logistic

BY_HAND = True

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
DELTAS = (1e-6, 0.0)
ROWS = (1_000, 10_000, 100_000)
COLUMNS = (2, 8, 32, 128)
LOSSES = {"logistic": Logistic(), "log-cosh": LogCosh(threshold=0.5)}


def settings() -> list[tuple[str, float, float, int, int]]:
    """288 of them: 2 losses, 6 epsilons, with and without a delta, 3 sizes, 4 numbers of columns."""
    return list(itertools.product(LOSSES, EPSILONS, DELTAS, ROWS, COLUMNS))


def main() -> None:
    """The share of settings in which a rival has less error, by how much, and which."""
    worst: list[tuple[float, str]] = []
    for coding in ("linear", "additive"):
        found: list[tuple[float, str, str]] = []
        refused = 0
        for name, epsilon, delta, rows, columns in settings():
            more = {"dimension": columns + 1} if coding == "linear" else {}
            if coding == "additive":
                if columns > 32:
                    continue
                halves = {f"c{j}": (0, 1) if j % 2 else ["a", "b", "c"] for j in range(columns)}
                more = {"columns": DeclaredColumns.of(halves)}  # type: ignore[dict-item]
            try:
                choice = perturbation(
                    epsilon=epsilon, delta=delta, loss=LOSSES[name], radius=LONGEST, reference_rows=rows,
                    **more,  # type: ignore[arg-type]
                )  # fmt: skip
            except NotCertified:
                refused += 1
                continue
            own = min(choice.errors[n] for n in (GAUSSIAN, PURE) if n in choice.errors)
            others = {n: e for n, e in choice.errors.items() if n not in (GAUSSIAN, PURE)}
            best = min(others, key=lambda n: others[n])
            said = f"{coding} {name} epsilon {epsilon:g} delta {delta:g} rows {rows} columns {columns}"
            found.append((own / others[best], best, said))
        for loss in LOSSES:
            own = [(r, b) for r, b, said in found if f" {loss} " in said]
            ratios = np.array([r for r, _ in own])
            far = (ratios > 1.05).sum()
            print(
                f"{coding} {loss}: {len(own)} settings, a rival has less in {(ratios > 1).sum()}, by more than 5% in "
                f"{far}; median ratio {np.median(ratios):.2f}, largest {ratios.max():.2f}", flush=True,
            )  # fmt: skip
        print(f"  {refused} refused")
        worst += [(r, f"{said}: {best}") for r, best, said in found]
    for ratio, said in sorted(worst, reverse=True)[:12]:
        print(f"  {ratio:.2f} {said}")


if __name__ == "__main__":
    main()
