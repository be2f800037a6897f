"""Error against epsilon: every mechanism that we have for a problem, above what no mechanism can go below."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.report.look import ACCENT, INK, MUTED, SHADE, label, style

__all__ = ["draw_prices", "price_table"]

POINTS = 25
# Up to this n the best mechanism itself is solved at every epsilon; beyond it, closed formulas only.
SOLVED_RANGE = 300
COLOURS = ("#b45309", "#0e7490", "#7c3aed", "#be185d", "#4d7c0f")


def price_table(
    problem: str, *, n: int, epsilons: Iterable[float] | None = None, **about: Any
) -> tuple[list[float], dict[str, list[float]], list[float]]:
    """The epsilons, the worst expected L1 error of each mechanism at each, and a lower bound at each.

    `about` is what `tacit.risk.expected_errors` takes: cells, occupied, attributes, neighbours.
    """
    from tacit.risk import expected_errors, optimal_count

    at = [float(e) for e in (np.geomspace(0.01, 5.0, POINTS) if epsilons is None else epsilons)]
    if not at:
        raise EmptyComposition(what="epsilons")
    errors: dict[str, list[float]] = {}
    floors = []
    for e in at:
        found = expected_errors(problem, n=n, epsilon=e, **about)
        if problem == "count" and n <= SOLVED_RANGE:
            best = optimal_count(n=n, epsilon=e).certificate
            found = {**found, "best for this range": best.risk}
            floors.append(best.lower_bound)
        else:
            floors.append(_floor(problem, n, e, about))
        for name, value in found.items():
            errors.setdefault(name, []).append(value)
    return at, errors, floors


def draw_prices(
    problem: str, path: Path, *, n: int, epsilons: Iterable[float] | None = None, **about: Any
) -> None:
    """The table drawn, both axes logarithmic; what lies in the shaded part cannot be had."""
    at, errors, floors = price_table(problem, n=n, epsilons=epsilons, **about)
    if min(at) <= 0:
        raise InvalidParameter(parameter="epsilons", value=min(at), must="be above 0")
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.2, 5.0), layout="constrained")
        axes = figure.subplots()
        low = min(v for v in floors if v > 0) / 3 if max(floors) > 0 else min(map(min, errors.values())) / 3
        axes.fill_between(at, low, np.maximum(floors, low), color=SHADE, linewidth=0)
        # Wide and below the others, so that a mechanism that reaches it is seen upon it.
        axes.plot(at, np.maximum(floors, low), color=ACCENT, alpha=0.45, linewidth=5, label="none goes below")
        colours = iter(COLOURS * 3)
        styles = iter(("-", "--", "-.", ":", (0, (6, 2, 1, 2))) * 3)
        for name, values in sorted(errors.items(), key=lambda item: -math.log(item[1][len(at) // 2])):
            axes.plot(at, values, color=next(colours), linestyle=next(styles), linewidth=1.7, label=name)
        axes.text(0.03, 0.05, "cannot be had", transform=axes.transAxes, color=INK, fontsize=10)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(min(at), max(at))
        axes.set_ylim(low, 3 * max(map(max, errors.values())))
        axes.legend(loc="upper right", frameon=True, framealpha=0.95, edgecolor="none", fontsize=9)
        label(
            axes, f"What privacy costs: {_words(problem, n, about)}", "epsilon", "worst expected error (L1)"
        )
        axes.grid(which="minor", color="#f1f3f5", linewidth=0.4)
        axes.spines["left"].set_color(MUTED)
        figure.savefig(path, dpi=150, facecolor="white")


def _words(problem: str, n: int, about: dict[str, Any]) -> str:
    if problem == "count":
        return f"a count on 0..{n}"
    kind = about.get("neighbours")
    told = (
        f"{about.get('attributes', 1)} margins" if problem == "margins" else f"{about.get('cells', 2)} cells"
    )
    return f"{problem.replace('-', ' ')}, {told}, n = {n}" + (f", {kind.value}" if kind is not None else "")


def _floor(problem: str, n: int, epsilon: float, about: dict[str, Any]) -> float:
    """A lower bound by closed formulas where the range is long; the largest of all where it is short."""
    from tacit.guarantees import Neighbours
    from tacit.risk import lower_bound, release_price
    from tacit.risk.minimax import margins_cube, sparse_packing, sparse_product

    if n <= SOLVED_RANGE:
        return lower_bound(problem, n=n, epsilon=epsilon, **about).value
    cells, k = int(about.get("cells", 2)), int(about.get("attributes", 1))
    kind = about.get("neighbours", Neighbours.REPLACE_ONE)

    def quick(what: str, numbers: int, attributes: int = 1) -> float:
        found = release_price(
            what, error=1e300, epsilon=epsilon, neighbours=kind, n=n, cells=numbers, attributes=attributes
        )
        return numbers * (found.lower_bound or 0.0)

    if problem == "count":
        return quick("count", 1)
    if problem == "histogram":
        return quick("histogram", cells)
    if problem == "margins":
        return max(quick("margins", k, k), margins_cube(k, n, epsilon))
    occupied = int(about["occupied"])
    return max(
        sparse_product(cells, occupied, n, epsilon),
        sparse_packing(cells, occupied, n, epsilon),
        quick("histogram", occupied),
    )
