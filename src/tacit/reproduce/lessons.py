"""The cost of privacy beside the sampling error: the error of a published share against the size of a survey."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tacit.accounting import account, privacy_curve
from tacit.accounting.events import Event, GaussianEvent, LaplaceEvent, PureEvent, RepeatedEvent
from tacit.guarantees import Approximate, Pure, repeat
from tacit.mechanisms import (
    L1,
    HadamardResponse,
    Laplace,
    LocalMechanism,
    RandomizedResponse,
    SubsetSelection,
)
from tacit.noise import SeededSource
from tacit.report.figures import ACCENT, INK, MUTED, SHADE, curves_figure, label
from tacit.reproduce.base import Made, Reproduction, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Lecture 2's comparison as a picture: answers that nobody is trusted with, against one trusted curator.

PEOPLE = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
LECTURE_2_LOCAL_EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
CATEGORIES = (2, 5, 10, 20, 50, 100, 200, 500, 1_000)
RUNS = 200
Row = tuple[float | str, ...]


def simulated(people: int, epsilon: float, runs: int, seed: int) -> float:
    """Root mean squared error of the number of ones, a third of the people, by randomised response."""
    ask, source = RandomizedResponse(epsilon=epsilon), SeededSource(seed=seed)
    truth = (np.arange(people) % 3 == 0).astype(np.int64)
    ones = int(truth.sum())
    errors = [ask.estimate(ask.release(truth, source=source))[1] - ones for _ in range(runs)]
    return math.sqrt(float(np.mean(np.square(errors))))


def _curator(epsilon: float, moved: int) -> float:
    """The standard deviation of discrete Laplace noise on numbers that one replaced person moves by so much."""
    return math.sqrt(float(Laplace.for_target(epsilon=epsilon, sensitivity=L1(moved)).distribution.variance))


def _row(what: str, size: float, n: int, epsilon: float, seed: int) -> Row:
    ask = RandomizedResponse(epsilon=epsilon)
    printed = math.sqrt(n) * (math.exp(epsilon) + 1) / math.expm1(epsilon)
    seen = simulated(n, epsilon, RUNS, seed)
    return (what, size, _curator(epsilon, 1), math.sqrt(ask.variance(people=n)), seen, printed)


def make_lecture_2_local() -> Made:
    """Errors of a count by n and by epsilon, and of an empty cell by the number of categories."""
    rows: list[Row] = [_row("count, by people", n, n, 1.0, n) for n in PEOPLE]
    rows += [_row("count, by epsilon", e, 10_000, e, int(1000 * e)) for e in LECTURE_2_LOCAL_EPSILONS]
    central = _curator(1.0, 2)
    for k in CATEGORIES:
        asks: list[LocalMechanism] = [
            RandomizedResponse(epsilon=1.0, categories=k), SubsetSelection(epsilon=1.0, categories=k),
            HadamardResponse(epsilon=1.0, categories=k),
        ]  # fmt: skip
        spreads = [math.sqrt(ask.variance(people=10_000, count=0)) for ask in asks]
        rows.append(("empty cell, by categories", k, central, *spreads))
    ratio = float(rows[4][3]) / float(rows[4][2])
    return Made(
        columns=("question", "size", "curator", "randomised_response", "simulated_or_subset_selection",
                 "printed_bound_or_hadamard_response"),
        rows=tuple(rows),
        notes=(
            "Standard deviations of a number of people. The first two parts: one count at epsilon = 1 by the number of "
            "people, and of 10,000 people by epsilon; a curator's noise, randomised response by its exact variance, "
            "the same simulated, and the lecture's bound on it.",
            "At epsilon = 1 and 10,000 people "
            f"the local error is {ratio:.0f} times the curator's; it grows as the "
            "root of n, the curator's does not grow.",
            "The third part: a category that nobody has, of 10,000 people at epsilon = 1, by randomised response, "
            "subset selection and Hadamard response. The curator's noise is for a person who moves from one cell to "
            "another.",
        ),
        draw=lambda: _draw_lecture_2_local(rows),
    )  # fmt: skip


def _columns(rows: Sequence[Row], what: str) -> list[np.ndarray]:
    return [np.array([float(r[i]) for r in rows if r[0] == what]) for i in range(1, 6)]


def _draw_lecture_2_local(rows: Sequence[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.8, 4.0), layout="constrained")
    axes = figure.subplots(1, 3)
    for ax, what, x, title in (
        (axes[0], "count, by people", "people", "a count, epsilon = 1"),
        (axes[1], "count, by epsilon", "epsilon", "a count, 10,000 people"),
    ):
        size, curator, exact, seen, printed = _columns(rows, what)
        ax.fill_between(size, exact, curator, color=SHADE)
        ax.loglog(size, printed, color=MUTED, linewidth=1, label="the lecture's bound")
        ax.loglog(size, exact, color=INK, linewidth=1, label="randomised response")
        ax.loglog(size, seen, "o", color=INK, markersize=4, label="the same, simulated")
        ax.loglog(size, curator, color=ACCENT, linewidth=2, label="one trusted curator")
        ax.set_ylim(curator.min() / 2, printed.max() * 4)
        label(ax, x=x, y="standard deviation, people", title=title)
    size, curator, exact, subset, hadamard = _columns(rows, "empty cell, by categories")
    axes[2].loglog(size, exact, color=INK, linewidth=1, label="randomised response")
    axes[2].loglog(size, hadamard, color=MUTED, linewidth=1, label="Hadamard response")
    axes[2].loglog(size, subset, color=INK, linewidth=2, linestyle="--", label="subset selection")
    axes[2].loglog(size, curator, color=ACCENT, linewidth=2, label="one trusted curator")
    axes[2].set_ylim(curator.min() / 2, exact.max() * 4)
    label(axes[2], x="categories", y="standard deviation, people", title="an empty category, 10,000 people")
    for ax in axes:
        ax.legend(fontsize=8, frameon=False)
    return figure


LECTURE_2_LOCAL = Reproduction(
    name="lecture-2-local",
    title="Local answers against a trusted curator",
    source="lecture 2, Thm 2.4 and eq. (2.6), (2.13) to (2.15)",
    make=make_lecture_2_local,
)


# What k releases of epsilon 0.1 cost together, by five ways to add up: from the sum to the curve of the noise.

LESSON_COMPOSITION_EPSILON, DELTA = 0.1, 1e-6
TIMES = (1, 2, 5, 10, 20, 40, 70, 100, 150, 200, 300, 400)


def _together(event: Event, times: int) -> float:
    return account(RepeatedEvent(event=event, times=times), delta=DELTA).epsilon.high


def make_lesson_composition() -> Made:
    """Each way at each number of releases."""
    rows: list[Row] = []
    for k in TIMES:
        by_sum = float(repeat(Pure(epsilon=LESSON_COMPOSITION_EPSILON), k).epsilon_at(0.0))
        advanced = repeat(
            Approximate(epsilon=LESSON_COMPOSITION_EPSILON, delta=0.0), k, law="advanced", slack=DELTA
        )
        rows.append(
            (
                k,
                by_sum,
                float(advanced.epsilon_at(DELTA)),
                _together(PureEvent(epsilon=LESSON_COMPOSITION_EPSILON), k),
                _together(LaplaceEvent(epsilon=LESSON_COMPOSITION_EPSILON), k),
                _together(GaussianEvent(noise_multiplier=2**0.5 / LESSON_COMPOSITION_EPSILON), k),
            )
        )
    return Made(
        columns=("releases", "sum", "advanced", "optimal", "laplace", "gaussian"),
        rows=tuple(rows),
        notes=(
            f"k releases, each of epsilon = {LESSON_COMPOSITION_EPSILON}; from the second way on at delta = {DELTA:g}.",
            "The sum grows as k, all others as the root of k in the end. Up to some 30 releases the sum is no worse "
            "than advanced composition; the optimal way is never worse than either.",
            "Who says which noise it was pays less still: Laplace noise loses all of its epsilon only sometimes. "
            "Gaussian noise with the variance of that Laplace noise is drawn beside it.",
        ),
        draw=lambda: _draw_lesson_composition(rows),
    )


def _draw_lesson_composition(rows: Sequence[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.6), layout="constrained")
    axes = figure.subplots()
    k = [float(r[0]) for r in rows]
    ways = (
        ("the sum of the epsilons", MUTED, "-"),
        ("advanced composition", INK, (0, (5, 2))),
        ("optimal composition of any epsilon", INK, "-"),
        ("Laplace noise, its own curve", ACCENT, "-"),
        ("Gaussian noise of the same variance", ACCENT, (0, (2, 2))),
    )
    for column, (name, colour, dashes) in enumerate(ways, start=1):
        axes.plot(
            k, [float(r[column]) for r in rows], color=colour, linestyle=dashes, linewidth=2, label=name
        )
    axes.set_xlim(0, max(k))
    axes.set_ylim(0, 20)
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    title = f"What k releases of epsilon = {LESSON_COMPOSITION_EPSILON} cost together, at delta = {DELTA:g}"
    label(axes, title, "releases k", "epsilon of all of them")
    return figure


LESSON_COMPOSITION = Reproduction(
    name="lesson-composition",
    title="What many releases cost together",
    source="for lessons; Dwork, Rothblum, Vadhan 2010; Kairouz, Oh, Viswanath 2015; the numbers are ours",
    make=make_lesson_composition,
)


# Several promises in one picture: their curves delta(epsilon), and the best test against each.

PLANS: dict[str, Event] = {
    "anything of epsilon 1": PureEvent(epsilon=1.0),
    "Laplace noise of epsilon 1": LaplaceEvent(epsilon=1.0),
    "ten times Laplace noise of 0.1": RepeatedEvent(event=LaplaceEvent(epsilon=0.1), times=10),
    "Gaussian noise of the variance of Laplace": GaussianEvent(noise_multiplier=math.sqrt(2)),
}
AT = tuple(i / 20 for i in range(81))
FINELY = tuple(i / 200 for i in range(801))


def make_lesson_curves() -> Made:
    """The certified upper ends at the same epsilons."""
    curves = {name: privacy_curve(event, epsilons=AT) for name, event in PLANS.items()}
    rows: list[Row] = [(e, *(float(c.delta[i]) for c in curves.values())) for i, e in enumerate(AT)]
    guesses: Sequence[str] = [f"{100 * c.best_guess:.1f}% ({name})" for name, c in curves.items()]

    def draw() -> Figure:
        # Corners show only between points that are close together.
        return curves_figure(
            {name: privacy_curve(event, epsilons=FINELY, points=1001) for name, event in PLANS.items()}
        )

    return Made(
        columns=("epsilon", *(f"delta of {name}" for name in PLANS)),
        rows=tuple(rows),
        notes=(
            "A pure epsilon ends at its epsilon; Gaussian noise has a delta at every epsilon, however small.",
            f"At even odds membership is guessed rightly at most {', '.join(guesses)}.",
        ),
        draw=draw,
    )


LESSON_CURVES = Reproduction(
    name="lesson-curves",
    title="Several promises in one picture",
    source="for lessons; the numbers are ours",
    make=make_lesson_curves,
)


# Two tables that differ in one person: the distributions of a noisy count of each, and how far they are apart.

EPSILON_OF_COUNT, WITHOUT, WITH = 0.5, 40, 41
ASIDE = 9


def law(count: int, value: int) -> float:
    """Pr[count + noise = value] of discrete Laplace noise: (1 - r) / (1 + r) r^|value - count|, r = e^-epsilon."""
    r = math.exp(-EPSILON_OF_COUNT)
    return (1 - r) / (1 + r) * r ** abs(value - count)


def make_lesson_neighbours() -> Made:
    """Both distributions and their ratio at every value near the counts."""
    values = range(WITHOUT - ASIDE, WITH + ASIDE + 1)
    rows: list[Row] = [(v, law(WITHOUT, v), law(WITH, v), law(WITH, v) / law(WITHOUT, v)) for v in values]
    return Made(
        columns=("published", "without", "with", "ratio"),
        rows=tuple(rows),
        notes=(
            f"A count of {WITHOUT} people, and of {WITH} with one more; integer noise at epsilon = {EPSILON_OF_COUNT}.",
            f"Whatever is published, it is between e^-{EPSILON_OF_COUNT:g} and e^{EPSILON_OF_COUNT:g} times as "
            "likely with that person "
            "as without: that is the definition, and here it is reached at every value.",
        ),
        draw=lambda: _draw_lesson_neighbours(rows),
    )


def _draw_lesson_neighbours(rows: Sequence[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    values, without, present, ratio = (np.array([float(r[i]) for r in rows]) for i in range(4))
    left.bar(values - 0.2, without, width=0.4, color=MUTED, label=f"without the person: {WITHOUT}")
    left.bar(values + 0.2, present, width=0.4, color=ACCENT, label=f"with the person: {WITH}")
    left.set_ylim(0, float(present.max()) * 1.3)
    left.legend(frameon=False, fontsize=9, loc="upper left")
    label(left, "Two neighbours, one noisy count", "what is published", "probability")
    top = math.exp(EPSILON_OF_COUNT)
    right.axhspan(1 / top, top, color=SHADE)
    for edge, name, at in ((top, "e^epsilon", values[0]), (1 / top, "e^-epsilon", values[-1] - 2.5)):
        right.axhline(edge, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        right.text(float(at), edge * 1.03, name, color=INK, fontsize=9, va="bottom")
    right.axhline(1, color=MUTED, linewidth=0.8)
    right.plot(values, ratio, "o", color=ACCENT, markersize=5)
    right.set_yscale("log")
    right.set_ylim(1 / top**2, top**2)
    right.set_yticks([0.5, 1, 2], ["1/2", "1", "2"])
    right.minorticks_off()
    for axes in (left, right):
        axes.set_xticks(range(35, 51, 5))
    label(right, "How many times as likely with the person", "what is published", "ratio")
    return figure


LESSON_NEIGHBOURS = Reproduction(
    name="lesson-neighbours",
    title="Two neighbours and one noisy count",
    source="for lessons; the definition of Dwork, McSherry, Nissim, Smith 2006; the numbers are ours",
    make=make_lesson_neighbours,
)


LESSON_PRICE_EPSILONS = (0.01, 0.1, 1.0)


def sampling(n: float) -> float:
    """Half the width of a 95% interval for a share of one half among n drawn people: 1.96 / (2 sqrt(n))."""
    return 1.959964 * 0.5 / math.sqrt(n)


def noise(n: float, epsilon: float) -> float:
    """The error that Laplace noise adds to the count with 95%: ln(20) / (epsilon n)."""
    return math.log(20) / (epsilon * n)


def crossing(epsilon: float) -> float:
    """The n at which both are equal: (2 ln(20) / (1.96 epsilon))^2."""
    return (2 * math.log(20) / (1.959964 * epsilon)) ** 2


def make_lesson_price() -> Made:
    """Both errors from 10 people to ten million."""
    rows: list[Row] = [
        (n, sampling(n), *(noise(n, e) for e in LESSON_PRICE_EPSILONS)) for n in spread(10, 1e7, 61)
    ]
    equal = ", ".join(f"{crossing(e):,.0f} people at epsilon = {e:g}" for e in LESSON_PRICE_EPSILONS)
    return Made(
        columns=("people", "sampling", *(f"noise_at_{e:g}" for e in LESSON_PRICE_EPSILONS)),
        rows=tuple(rows),
        notes=(
            "95% of a published share: what the sample misses falls as the root of n, what the noise adds as n.",
            f"They are alike at {equal}; above that privacy is the smaller part of the error.",
        ),
        draw=lambda: _draw_lesson_price(rows),
    )


def _draw_lesson_price(rows: Sequence[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.6), layout="constrained")
    axes = figure.subplots()
    n = [float(r[0]) for r in rows]
    axes.loglog(n, [float(r[1]) for r in rows], color=INK, linewidth=2, label="the sample itself")
    for column, (epsilon, dashes) in enumerate(
        zip(LESSON_PRICE_EPSILONS, ((0, (1, 1)), (0, (4, 2)), "-"), strict=True), 2
    ):
        values = [float(r[column]) for r in rows]
        axes.loglog(
            n, values, color=ACCENT, linestyle=dashes, linewidth=2, label=f"noise, epsilon = {epsilon:g}"
        )
        at = crossing(epsilon)
        if at < min(n):
            continue
        axes.plot([at], [sampling(at)], "o", color=MUTED, markersize=6)
        axes.annotate(
            f"{at:,.0f} people",
            (at, sampling(at)),
            textcoords="offset points",
            xytext=(6, 8),
            color=INK,
            fontsize=9,
        )
    axes.set_xlim(min(n), max(n))
    axes.set_ylim(1e-5, 1)
    axes.legend(frameon=False, fontsize=9, loc="lower left")
    label(axes, "The price of privacy for a share", "people in the survey", "95% error")
    return figure


LESSON_PRICE = Reproduction(
    name="lesson-price",
    title="The price of privacy beside the error of a sample",
    source="for lessons; the numbers are ours",
    make=make_lesson_price,
)
