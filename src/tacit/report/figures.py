"""The meaning of a guarantee, drawn: its curve, the power of the best test, beliefs before and after."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.coupled.noiseless.answer import Curves, ExactAnswer
from tacit.coupled.noiseless.histograms import (
    FixedSize,
    cell_delta,
    sampling_of,
    smallest_epsilon,
    truncated_histogram,
)
from tacit.errors import EmptyComposition, InvalidParameter, NoLaw
from tacit.exact.rounding import Interval, digits_up
from tacit.guarantees import Always, Pointwise, convert

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tacit.accounting import PrivacyCurve
    from tacit.guarantees import Guarantee
    from tacit.risk import RiskBody

# The look of every figure that matplotlib draws: colours, axes, and settings.

INK = "#1f2a37"
MUTED = "#6b7280"
ACCENT = "#0f6cbd"
SHADE = "#dbe9f6"


def label(axes: Axes, title: str, x: str, y: str) -> None:
    """Title, axis names and a quiet grid."""
    axes.set_title(title, color=INK, fontsize=11, loc="left")
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(colors=INK)
    axes.grid(color="#e5e7eb", linewidth=0.6)
    axes.set_axisbelow(True)


def style() -> Any:
    """The settings of every figure, for the time of a `with`; names in SVG files do not depend on the time of day."""
    import matplotlib as mpl

    return mpl.rc_context(
        {"font.size": 10, "font.family": "DejaVu Sans", "axes.edgecolor": MUTED, "svg.hashsalt": "tacit"}
    )


CURVE_POINTS = 161


def draw_guarantee(guarantee: Guarantee, path: Path) -> None:
    """Three panels side by side: profile, power, posterior; written as PNG (or by the path's ending)."""
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(13.2, 4.6), layout="constrained")
        axes = figure.subplots(1, 3)
        figure.suptitle(f"What {guarantee.bound} means for {guarantee.unit}", color=INK, fontsize=13)
        draw_profile(axes[0], guarantee)
        draw_power(axes[1], guarantee)
        draw_posterior(axes[2], guarantee)
        figure.savefig(path, dpi=150, facecolor="white")


def draw_meaning(guarantee: Guarantee, path: Path) -> None:
    """Two panels: the power of the best test about one unit, and beliefs before and after."""
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9.2, 4.6), layout="constrained")
        axes = figure.subplots(1, 2)
        figure.suptitle(f"What {guarantee.bound} means", color=INK, fontsize=13)
        draw_power(axes[0], guarantee)
        draw_posterior(axes[1], guarantee)
        figure.savefig(path, dpi=150, facecolor="white")


def draw_profile(axes: Axes, guarantee: Guarantee) -> None:
    """delta(epsilon): the smallest delta at every epsilon, on a logarithmic scale."""
    far = _far(guarantee)
    at = np.linspace(0.0, far, CURVE_POINTS)
    values = np.array([guarantee.delta(float(e)) for e in at])
    floor = max(1e-12, float(values[values > 0].min(initial=1.0)) / 10)
    axes.plot(at, np.maximum(values, floor), color=ACCENT, linewidth=2)
    axes.fill_between(at, np.maximum(values, floor), 1.0, color=SHADE)
    axes.set_yscale("log")
    axes.set_ylim(floor, 1.0)
    axes.set_xlim(0.0, far)
    label(axes, "The curve: every (epsilon, delta) above it holds", "epsilon", "delta")


def draw_power(axes: Axes, guarantee: Guarantee) -> None:
    """The best test of one version of a unit's data against another: power at every size."""
    sizes = np.linspace(0.0, 1.0, 101)
    power = [guarantee.power(float(s)) for s in sizes]
    axes.fill_between(sizes, sizes, power, color=SHADE)
    axes.plot(sizes, power, color=ACCENT, linewidth=2, label="best possible test")
    axes.plot(sizes, sizes, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label="guessing")
    mark = guarantee.power(0.05)
    axes.plot([0.05], [mark], "o", color=INK, markersize=5)
    axes.annotate(
        f"5% false alarms:\nfinds at most {_ceil_percent(mark)}",
        (0.05, mark),
        xytext=(0.42, 0.26),
        color=INK,
        fontsize=9,
        arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.8},
    )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    label(axes, "The best test about one unit", "false alarms (size)", "truth found (power)")


def draw_posterior(axes: Axes, guarantee: Guarantee) -> None:
    """Beliefs in a statement about one unit, before and after the release.

    A loss of at most e multiplies the odds of one version of the data against another by at most e^e. If the
    bound is not pure, the loss is at most e except with the probability that the panel names.
    """
    if not isinstance(guarantee.condition, Always):
        raise NoLaw(
            operation=f"a picture of beliefs under {type(guarantee.condition).__name__}",
            reason="only guarantees that always hold limit what somebody may come to believe",
            hint="explain() says in words what holds",
        )
    epsilon, note = _working_epsilon(guarantee)
    prior = np.linspace(0.0, 1.0, 201)
    high = prior * math.exp(epsilon) / (prior * math.exp(epsilon) + 1 - prior)
    low = prior / (prior + (1 - prior) * math.exp(epsilon))
    axes.fill_between(prior, low, high, color=SHADE)
    axes.plot(prior, high, color=ACCENT, linewidth=2, label="the strongest evidence")
    axes.plot(prior, low, color=ACCENT, linewidth=2)
    axes.plot(prior, prior, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label="no change")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    wide = epsilon > 2  # then the curves run along the edges, and there is room in the middle
    axes.legend(loc="upper center" if wide else "upper left", frameon=False, fontsize=9)
    at, side = ((0.62, 0.2), "center") if wide else ((0.98, 0.03), "right")
    axes.text(*at, note, ha=side, va="bottom", color=INK, fontsize=9)
    label(axes, "Beliefs about one unit", "before the release", "after the release")


def _working_epsilon(guarantee: Guarantee) -> tuple[float, str]:
    """The largest loss, always or with the probability that the note names."""
    pure = guarantee.epsilon(0.0)
    if math.isfinite(pure):
        return min(pure, 50.0), f"whatever comes out\n(a loss of at most {digits_up(pure)})"
    level = 10 * max(1e-6, guarantee.delta(math.inf))
    try:
        # Half for beliefs that rise too far, half for those that fall too far.
        bound = convert(guarantee.bound, Pointwise, delta=min(0.5, level) / 2)
    except NoLaw:
        return 50.0, "no bound on beliefs\nat so large a delta"
    epsilon = float(bound.epsilon)
    share = 2 * float(bound.delta)
    return min(
        epsilon, 50.0
    ), f"except with probability {digits_up(share, 2)}\n(a loss of at most {digits_up(epsilon)})"


def _far(guarantee: Guarantee) -> float:
    for level in (1e-10, 1e-6, 1e-3):
        far = guarantee.epsilon(max(level, guarantee.delta(math.inf)))
        if 0 < far < math.inf:
            return far * 1.05
    return 1.0


def _ceil_percent(value: float) -> str:
    return f"{math.ceil(1000 * value - 1e-9) / 10:g}%"


# What a plan of events reveals, drawn: its privacy profile, and the trade-off curve of tests about one unit.

_LINES = (
    (INK, "-"), (ACCENT, "-"), (ACCENT, (0, (5, 2))), ("#b45309", "-"), ("#b45309", (0, (5, 2))), (MUTED, "-")
)  # fmt: skip


def draw_plan(curve: PrivacyCurve, path: Path) -> None:
    """Two panels: delta over epsilon with its certified lower end, and the power of the best test over its size."""
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9.2, 4.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        positive = curve.delta[curve.delta > 0]
        floor = max(1e-12, float(positive.min(initial=1.0)) / 10)
        left.fill_between(curve.epsilon, np.maximum(curve.delta, floor), 1.0, color=SHADE)
        left.plot(
            curve.epsilon,
            np.maximum(curve.delta, floor),
            color=ACCENT,
            linewidth=2,
            label="promised (upper end)",
        )
        if curve.delta_low.max() > 0:
            low = np.maximum(curve.delta_low, floor)
            left.plot(curve.epsilon, low, color=INK, linewidth=1, linestyle=":", label="lower end")
        left.set_yscale("log")
        left.set_ylim(floor, 1.0)
        if curve.epsilon[-1] > curve.epsilon[0]:
            left.set_xlim(float(curve.epsilon[0]), float(curve.epsilon[-1]))
        left.legend(loc="upper right", frameon=False, fontsize=9)
        label(left, "The plan's curve: every point above holds", "epsilon", "delta")
        right.fill_between(curve.size, curve.size, curve.power, color=SHADE)
        right.plot(curve.size, curve.power, color=ACCENT, linewidth=2, label="best possible test")
        right.plot(curve.size, curve.size, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label="guessing")
        right.set_xlim(0, 1)
        right.set_ylim(0, 1)
        right.legend(loc="lower right", frameon=False, fontsize=9)
        guess = np.ceil(1000 * curve.best_guess) / 10
        label(
            right,
            f"Membership: a right guess in at most {guess:g}%",
            "false alarms (size)",
            "detections (power)",
        )
        figure.savefig(path, dpi=150, facecolor="white")


def draw_curves(curves: Mapping[str, PrivacyCurve], path: Path) -> None:
    """Several plans in one picture, written as PNG (or by the path's ending)."""
    with style():
        curves_figure(curves).savefig(path, dpi=150, facecolor="white")


def curves_figure(curves: Mapping[str, PrivacyCurve]) -> Figure:
    """Two panels with a line a plan: delta over epsilon, and the power of the best test over its size."""
    from matplotlib.figure import Figure

    if not curves:
        raise EmptyComposition(what="the picture", hint="name at least one curve")
    figure = Figure(figsize=(10.4, 5.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    floor = 1e-12
    for number, (name, curve) in enumerate(curves.items()):
        colour, dashes = _LINES[number % len(_LINES)]
        drawn = np.maximum(curve.delta, floor / 10)
        left.plot(curve.epsilon, drawn, color=colour, linestyle=dashes, linewidth=2, label=name)
        right.plot(curve.size, curve.power, color=colour, linestyle=dashes, linewidth=2)
    right.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label="guessing")
    left.set_yscale("log")
    left.set_ylim(floor, 1.0)
    left.set_xlim(left=0.0)
    right.set_xlim(0, 1)
    right.set_ylim(0, 1)
    right.legend(loc="lower right", frameon=False, fontsize=9)
    label(left, "Curves: every (epsilon, delta) above one holds", "epsilon", "delta")
    label(right, "The best test of each", "false alarms (size)", "detections (power)")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9, handles=left.lines)
    return figure


# Error against epsilon: every mechanism that we have for a problem, above what no mechanism can go below.

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


def draw_risk_body(body: RiskBody, path: Path) -> None:
    """The pairs of risks of private mechanisms: the inner polygon filled, the outer one as a line."""
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.0, 5.6), layout="constrained")
        axes = figure.subplots()
        inner, outer = (np.vstack([p, p[:1]]) for p in (body.inner, body.outer))
        axes.fill(inner[:, 0], inner[:, 1], color=SHADE, linewidth=0, label="private mechanisms")
        axes.plot(inner[:, 0], inner[:, 1], color=ACCENT, linewidth=1.6, marker="o", markersize=4)
        axes.plot(outer[:, 0], outer[:, 1], color=INK, linewidth=0.8, linestyle="--", label="none is outside")
        axes.legend(loc="center", frameon=True, framealpha=0.95, edgecolor="none", fontsize=9)
        axes.set_aspect("equal")
        x, y = body.counts
        level = f"epsilon = {body.epsilon:g}" + (f", delta = {body.delta:g}" if body.delta else "")
        label(axes, f"Risk body, n = {body.n}, {level}", f"expected loss at {x}", f"expected loss at {y}")
        figure.savefig(path, dpi=150, facecolor="white")


def draw_prices(
    problem: str, path: Path, *, n: int, epsilons: Iterable[float] | None = None, **about: Any
) -> None:
    """The table drawn, both axes logarithmic; no mechanism reaches the shaded part."""
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
            axes,
            f"What privacy costs: {_problem_text(problem, n, about)}",
            "epsilon",
            "worst expected error (L1)",
        )
        axes.grid(which="minor", color="#f1f3f5", linewidth=0.4)
        axes.spines["left"].set_color(MUTED)
        figure.savefig(path, dpi=150, facecolor="white")


def _problem_text(problem: str, n: int, about: dict[str, Any]) -> str:
    if problem == "count":
        return f"a count on 0..{n}"
    kind = about.get("neighbours")
    told = (
        f"{about.get('attributes', 1)} margins" if problem == "margins" else f"{about.get('cells', 2)} cells"
    )
    return f"{problem.replace('-', ' ')}, {told}, n = {n}" + (f", {kind.value}" if kind is not None else "")


def _floor(problem: str, n: int, epsilon: float, about: dict[str, Any]) -> float:
    """A lower bound by closed formulas for a long range; the largest of all bounds for a short one."""
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


# The picture of a truncated histogram: epsilon against delta, and against the rows that somebody knows.

_DELTAS = tuple(10.0**-p for p in range(3, 13))
_KNOWN = 16
NOT_DP = "Only if the rows were drawn as assumed: this is not differential privacy."


def draw_threshold(found: ExactAnswer, path: Path) -> None:
    """Two panels at the found threshold; PNG, SVG or PDF by the path's ending."""
    from matplotlib.figure import Figure

    sampling, k = str(found.details["sampling"]), found.threshold
    assert k is not None
    with style():
        fixed = sampling == "fixed"
        figure = Figure(figsize=(10.5, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        if fixed:
            _fixed_against_delta(left, found)
            _thresholds(right, found)
        else:
            rate = found.details["rate"]
            known = int(found.details["known_rows"])
            _against_delta(left, found, sampling, rate, known)
            _against_known(right, found, sampling, rate, known)
        figure.supxlabel(NOT_DP, color=MUTED, fontsize=9)
        figure.savefig(
            path, dpi=150, facecolor="white", metadata={"Date": None} if path.suffix == ".svg" else None
        )


def _epsilon(sampling: str, rate: object, threshold: int, delta: float, known: int) -> float | None:
    """Epsilon to three digits; None without one."""
    delta_at = cell_delta(sampling_of(sampling, rate))
    return smallest_epsilon(lambda e: delta_at(threshold - known, e), delta=delta, steps=1e-3)


def _against_delta(axes: Axes, found: ExactAnswer, sampling: str, rate: object, known: int) -> None:
    k = found.threshold
    assert k is not None
    points = [(d, _epsilon(sampling, rate, k, d, known)) for d in _DELTAS]
    kept = [(d, e) for d, e in points if e is not None]
    axes.plot([d for d, _ in kept], [e for _, e in kept], color=ACCENT, marker="o", markersize=4)
    axes.plot([found.delta], [found.epsilon], "s", color=INK, markersize=6)
    axes.annotate("asked", (found.delta, found.epsilon), xytext=(6, 6), textcoords="offset points", color=INK)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    label(axes, f"counts below {k} hidden", "delta", "epsilon")


def _against_known(axes: Axes, found: ExactAnswer, sampling: str, rate: object, known: int) -> None:
    k = found.threshold
    assert k is not None
    most = k - 2
    shown = sorted({known, *range(0, most + 1, -(-most // _KNOWN) or 1)})
    points = [(v, _epsilon(sampling, rate, k, found.delta, v)) for v in shown]
    kept = [(v, e) for v, e in points if e is not None]
    axes.plot([v for v, _ in kept], [e for _, e in kept], color=ACCENT, marker="o", markersize=4)
    lost = [v for v, e in points if e is None]
    if lost:
        axes.axvspan(lost[0] - 0.5, most + 0.5, color="#f3f4f6")
        axes.annotate("no epsilon", (lost[0], 0.05), xycoords=("data", "axes fraction"), color=MUTED)
    axes.set_ylim(bottom=0)
    label(axes, f"delta = {found.delta:.3g}", "known sampled rows of one cell", "epsilon")


def _fixed_against_delta(axes: Axes, found: ExactAnswer) -> None:
    """For a fixed size, with this threshold and number of discards: the epsilon of each delta above that of the
    size.
    """
    k, told = found.threshold, found.details
    assert k is not None
    assert found.rows is not None
    size = FixedSize(
        rows=found.rows, discards=int(told["discards"]), size_epsilon=float(told["size_epsilon"])
    )
    points = []
    for d in sorted({*(x for x in _DELTAS[::2] if x > 2 * size.size_delta.high), found.delta}):
        cell = smallest_epsilon(partial(_of_cell, size, k, d), delta=d, steps=2e-2)
        if cell is not None:
            points.append((d, size.size_epsilon + cell))
    axes.plot([d for d, _ in points], [e for _, e in points], color=ACCENT, marker="o", markersize=4)
    axes.plot([found.delta], [found.epsilon], "s", color=INK, markersize=6)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    label(axes, f"counts below {k} hidden, up to {size.discards} rows discarded", "delta", "epsilon")


def _of_cell(size: FixedSize, threshold: int, enough: float, cell_epsilon: float) -> Interval:
    return size.delta(threshold, cell_epsilon, enough=enough)


def _thresholds(axes: Axes, found: ExactAnswer) -> None:
    """For a fixed size: the threshold that each delta needs."""
    points = []
    for d in _DELTAS:
        try:
            made = truncated_histogram(
                sampling="fixed",
                n=found.rows,
                epsilon=found.epsilon,
                delta=d,
                size_epsilon=float(found.details["size_epsilon"]),
            )
        except NoLaw:
            continue
        points.append((d, made.threshold or 0))
    axes.plot([d for d, _ in points], [k for _, k in points], color=ACCENT, marker="o", markersize=4)
    axes.set_xscale("log")
    label(axes, f"epsilon = {found.epsilon:.3g}, {found.rows} rows", "delta", "smallest safe threshold")


# The picture of an exact answer: epsilon against delta, and against how many rows an adversary knows.


def draw_exact_answer(curves: Curves, path: Path) -> None:
    """Two panels with the requested point marked; written to the file."""
    from matplotlib.figure import Figure

    answer = curves.answer
    with style():
        figure = Figure(figsize=(9.5, 4.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        deltas, epsilons = zip(*curves.by_delta, strict=True) if curves.by_delta else ((), ())
        left.plot(deltas, epsilons, color=ACCENT, marker="o", markersize=3)
        left.plot([answer.delta], [answer.epsilon], "o", color=INK, markersize=7)
        left.set_xscale("log")
        left.set_ylim(bottom=0.0)
        figure.suptitle(textwrap.shorten(f"Exact {answer.statistic}", 90), x=0.01, ha="left", color=INK)
        label(left, "epsilon at each delta", "delta", "epsilon")
        known, epsilons = zip(*curves.by_known, strict=True) if curves.by_known else ((), ())
        right.plot(known, epsilons, color=ACCENT, marker="o", markersize=3)
        right.plot([curves.rows - answer.unknown_rows], [answer.epsilon], "o", color=INK, markersize=7)
        right.set_xlim(left=-0.02 * curves.rows, right=1.02 * curves.rows)
        right.set_ylim(bottom=0.0)
        # Between the last number of known rows that some epsilon allows, and all rows, there is none.
        last = max((*known, curves.rows - answer.unknown_rows))
        if last < 0.85 * curves.rows:
            right.axvspan(last, 1.02 * curves.rows, color="#f3f4f6")
            right.annotate(
                "no epsilon at this delta", ((last + curves.rows) / 2, 0.05), xycoords=("data", "axes fraction"),
                ha="center", color=MUTED,
            )  # fmt: skip
        label(
            right,
            f"epsilon at delta = {answer.delta:.3g}",
            f"rows that an adversary knows, of {curves.rows}",
            "epsilon",
        )
        figure.supxlabel(
            "Only if the rows are drawn as assumed: this is not differential privacy.",
            color=MUTED,
            fontsize=9,
        )
        figure.savefig(path, dpi=150)
