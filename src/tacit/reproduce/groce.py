"""Groce 2014, Table 6.4: the means of g^2 and g h for uniform g and h, published exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.coupled.noiseless import exact_sum
from tacit.coupled.noiseless.thesis import prism_forms, rectangle_theorem, uniform_theorem
from tacit.exact.data_classes import dataclass
from tacit.report.figures import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made, Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What Groce's tables 6.1 and 6.2 share: rows with four columns of epsilon, and their picture.

COLUMNS = (
    "epsilon_printed",
    "epsilon_theorem",
    "epsilon_same_assumption",
    "epsilon_known_law",
    "delta_printed",
    "delta_as_printed",
    "delta_theorem",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLine:
    """One row of a table: its parameters, the printed value, and our value at the printed delta."""

    parameters: tuple[float, ...]
    printed: tuple[float, float]
    theorem: tuple[float, float, float]
    ours: float
    known: float

    @property
    def cells(self) -> tuple[float, ...]:
        """In the order of the columns."""
        epsilon, as_printed, delta = self.theorem
        return (
            *self.parameters,
            self.printed[0],
            epsilon,
            self.ours,
            self.known,
            self.printed[1],
            as_printed,
            delta,
        )


def table_of(names: Sequence[str], lines: Sequence[TableLine], *, title: str, notes: tuple[str, ...]) -> Made:
    """The table, and a picture with one group of points a row."""

    def draw() -> Figure:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8.5, 4.2), layout="constrained")
        axes = figure.subplots()
        x = list(range(len(lines)))
        kinds = (
            ("printed", [line.printed[0] for line in lines], "o", MUTED),
            ("by the theorem", [line.theorem[0] for line in lines], "x", INK),
            ("ours, same assumption", [line.ours for line in lines], "s", ACCENT),
            ("ours, law known", [line.known for line in lines], "^", "#b45309"),
        )
        for name, values, mark, colour in kinds:
            axes.plot(x, values, mark, color=colour, label=name, markersize=7, fillstyle="none")
        axes.set_xticks(x, [f"n = {line.parameters[0]:.0f}\n{line.printed[1]:.3g}" for line in lines])
        axes.set_ylim(bottom=0.0)
        axes.legend(frameon=False)
        label(axes, title, "rows, and the printed delta", "epsilon")
        return figure

    return Made(columns=(*names, *COLUMNS), rows=tuple(line.cells for line in lines), notes=notes, draw=draw)


# Groce 2014, Tables 6.3 and 6.4: what is printed, what the theorem says, and ours.

Row = tuple[int, float, float, float, float]
"""n, a, r, epsilon and delta as printed."""

GROCE_PRISMS_COLUMNS = (
    "n",
    "a",
    "r",
    "printed_epsilon",
    "printed_delta",
    "computed_epsilon",
    "computed_printed_delta",
    "theorem_delta",
    "same_assumption_epsilon",
    "known_prior_epsilon",
)


def table(
    rows: Sequence[Row],
    *,
    mass: float,
    widths: Sequence[float],
    same: Callable[[int, float], float],
    known: Callable[[int, float], float],
    notes: tuple[str, ...],
) -> Made:
    """Both of our epsilons are at the printed delta."""
    out: list[tuple[float | str, ...]] = []
    for n, a, r, epsilon, delta in rows:
        form = prism_forms(n=n, mass=mass, widths=widths, a=a, r=r)
        ours = same(n, delta), known(n, delta)
        out.append((n, a, r, epsilon, delta, form.epsilon, form.printed_delta, form.delta, *ours))
    return Made(columns=GROCE_PRISMS_COLUMNS, rows=tuple(out), notes=notes, draw=lambda: _draw(out))


def _draw(rows: Sequence[tuple[float | str, ...]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    sizes = [float(row[0]) for row in rows]
    for place, name, colour, mark in (
        (3, "printed", MUTED, "s"),
        (8, "same assumption", ACCENT, "o"),
        (9, "known prior", INK, "^"),
    ):
        axes.plot(sizes, [float(row[place]) for row in rows], color=colour, marker=mark, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.legend(frameon=False)
    label(axes, "epsilon at the printed delta", "rows", "epsilon")
    return figure


# Groce 2014, Table 6.1: exact sums of uniform rows.

GROCE_6_1_PRINTED: tuple[tuple[int, int, float, float], ...] = (
    (100, 40, 0.634, 6.83e-4),
    (100, 37, 0.835, 8.18e-6),
    (1000, 460, 0.243, 1.31e-5),
    (1000, 450, 0.303, 4.82e-8),
    (10_000, 4870, 0.0782, 6.95e-6),
    (10_000, 4850, 0.0902, 2.12e-7),
    (10_000, 4830, 0.102, 4.07e-9),
)
"""n, a, epsilon, delta."""


def make_groce_6_1() -> Made:
    """Every row, at the printed a and delta."""
    lines = []
    for n, a, epsilon, delta in GROCE_6_1_PRINTED:
        theorem = uniform_theorem(n, shift=a)
        ours = exact_sum("uniform(0, 1, grid=0.002)", n=n, delta=delta).epsilon
        lines.append(
            TableLine(
                parameters=(n, a),
                printed=(epsilon, delta),
                theorem=(theorem.epsilon, theorem.delta_printed, theorem.delta),
                ours=ours,
                known=ours,
            )
        )
    return table_of(
        ("n", "a"),
        lines,
        title="Exact sums of uniform rows",
        notes=(
            "Every printed number is that of Thm 6.6 with the exact Irwin-Hall law, to all digits printed.",
            "Ours is the exact profile of the same rows, recorded on a grid of 0.002, at the printed delta: a fifth to "
            "a third below. The assumption of this table is a known law, so that the last two columns are one.",
        ),
    )


GROCE_6_1 = Reproduction(
    name="groce-6.1", title="Exact sums of uniform rows", source="Groce 2014, Table 6.1", make=make_groce_6_1
)


# Groce 2014, Table 6.2: exact sums of normal rows, cut at 2.5 standard deviations.

GROCE_6_2_PRINTED: tuple[tuple[int, float, int, float, float, float], ...] = (
    (1000, 1.0, 175, 0.83, 0.986, 2.77e-5),
    (1000, 1.5, 125, 0.78, 0.904, 7.43e-7),
    (1000, 1.5, 130, 0.79, 0.775, 1.24e-5),
    (1000, 2.0, 56, 0.66, 0.829, 4.73e-5),
    (10_000, 1.5, 1725, 0.93, 0.227, 3.69e-6),
    (10_000, 1.5, 1690, 0.92, 0.273, 2.89e-8),
)
"""n, t, a, r, epsilon, delta."""
GROCE_6_2_ROWS = "normal(0, 1, clamp=(-2.5, 2.5), grid=0.02)"


def make_groce_6_2() -> Made:
    """Every row, at the printed a, r and delta; ours with the same rectangle, and with a known distribution."""
    lines = []
    for n, t, a, r, epsilon, delta in GROCE_6_2_PRINTED:
        height = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
        theorem = rectangle_theorem(n, volume=2 * t * height, widths=[2.5 / t], shift=a, share=r)
        same = exact_sum(GROCE_6_2_ROWS, n=n, delta=delta, assume="rectangle", rectangle_over=(-t, t))
        lines.append(
            TableLine(
                parameters=(n, t, 2 * t * height, 2.5 / t, a, r),
                printed=(epsilon, delta),
                theorem=(theorem.epsilon, theorem.delta_printed, theorem.delta),
                ours=same.epsilon,
                known=exact_sum(GROCE_6_2_ROWS, n=n, delta=delta).epsilon,
            )
        )
    best = exact_sum(GROCE_6_2_ROWS, n=1000, delta=1.24e-5, assume="rectangle")
    shape = best.details["shapes"][0]
    return table_of(
        ("n", "t", "volume", "w", "a", "r"),
        lines,
        title="Exact sums of normal rows, tails on the ends at 2.5",
        notes=(
            "Printed epsilons are those of Cor. 6.2 with the exact Irwin-Hall law. The printed deltas are cdf terms + "
            "Pr[fail], where the corollary has (1 + e^epsilon) Pr[fail]: both are shown. By theorem undisclosed-rows "
            "the smaller one is true as well.",
            "The column h of the source is the volume of the rectangle, not its height.",
            "Ours is for rows recorded on a grid of 0.02, at the printed delta, with the same rectangle. The best "
            f"rectangle for n = 1000 and 1.24e-5 goes from {shape['low']:g} to {shape['high']:g} and gives "
            f"{best.epsilon:.3f}.",
        ),
    )


GROCE_6_2 = Reproduction(
    name="groce-6.2",
    title="Exact sums of clamped normal rows",
    source="Groce 2014, Table 6.2",
    make=make_groce_6_2,
)


# Groce 2014, Table 6.3: the means of two uniform columns, published exactly.

GROCE_6_3_ROWS: tuple[Row, ...] = (
    (1000, 400, 0.9, 0.669, 2.05e-8),
    (5000, 2270, 0.955, 0.295, 1.14e-8),
    (20000, 9500, 0.976, 0.160, 4.42e-10),
)
GROCE_6_3_NOTES = (
    "The printed delta has cdf(a - w/2) where the theorem has cdf(a + w/2); the theorem's is beside it.",
    "Ours is for rows recorded on the grid of 1/50, at the printed delta. The prism is the whole support, so that the "
    "same assumption and the known prior are one: no row is told, and epsilon falls to a little more than half.",
)


def make_groce_6_3() -> Made:
    """Three sizes."""
    from tacit.coupled.noiseless.prisms import Prism, prism_epsilon

    whole = Prism(mass=Fraction(1), points=(101, 101), half_ranges=(50, 50))

    def ours(n: int, delta: float) -> float:
        return prism_epsilon(whole, hidden=n - 1, delta=delta)[0]

    return table(GROCE_6_3_ROWS, mass=1.0, widths=(1.0, 1.0), same=ours, known=ours, notes=GROCE_6_3_NOTES)


GROCE_6_3 = Reproduction(
    name="groce-6.3",
    title="Exact regression: the means of two uniform columns",
    source="Groce 2014, Table 6.3",
    make=make_groce_6_3,
)


GROCE_6_4_ROWS: tuple[Row, ...] = (
    (7500, 535, 0.82, 0.914, 9.30e-8),
    (10000, 740, 0.84, 0.801, 3.64e-8),
    (14000, 1082, 0.865, 0.676, 3.02e-8),
    (70000, 6113, 0.938, 0.293, 1.35e-8),
)
PRISM = ((0.36, 1.0), (-0.6, 0.6))
_STEPS = (4, 4)
_POINTS = 1 << 24
GROCE_6_4_NOTES = (
    "The printed delta has cdf(a - w/2) where the theorem has cdf(a + w/2); the theorem's is beside it.",
    "Ours is at the printed delta, for products recorded on the grid of a hundredth of their range, with the thesis's "
    "prism; with the prior known for products recorded on a quarter of their range, which keeps the law of both sums "
    "on few enough points of the plane.",
    "Together with 5,000 rows of Table 6.3: (.295, 1.35e-8) as printed.",
)


def make_groce_6_4() -> Made:
    """Four sizes; the known prior is a distribution on millions of points, and takes about a minute."""
    from tacit.coupled.noiseless.prisms import prism_epsilon
    from tacit.coupled.noiseless.regression import Design, density, known_part

    uniform = density("uniform(-1, 1)")
    design = Design(regressors=(uniform,), error=uniform, slopes=(0.0,))
    prism = design.prism(1, design.box(1, PRISM))

    def same(n: int, delta: float) -> float:
        return prism_epsilon(prism, hidden=n - 1, delta=delta)[0]

    def known(n: int, delta: float) -> float:
        return known_part(design, 1, 0.0, n - 1, delta, steps=_STEPS, most_points=_POINTS)[0]

    return table(
        GROCE_6_4_ROWS, mass=0.192, widths=(1 / 0.64, 2 / 1.2), same=same, known=known, notes=GROCE_6_4_NOTES
    )


GROCE_6_4 = Reproduction(
    name="groce-6.4",
    title="Exact regression: the means of g squared and of g h",
    source="Groce 2014, Table 6.4",
    make=make_groce_6_4,
)
