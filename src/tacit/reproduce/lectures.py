"""The tables of lecture 2 with their disclosures, and lecture 7's comparison of sigma by composition theorem."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tacit.anonymity import check_table
from tacit.attacks import intersection, possible_values
from tacit.exact.rounding import bisected
from tacit.guarantees import Concentrated, GaussianDP
from tacit.report.figures import ACCENT, INK, MUTED, SHADE, label
from tacit.reproduce.base import Made, Reproduction, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = tuple[float | str, ...]

# Lecture 2, Figures 2.1 and 2.2: a 4-anonymous and a 6-anonymous table of one hospital.

FIRST: dict[str, list[str]] = {
    "zip": ["130**"] * 12,
    "age": ["<30"] * 4 + ["≥40"] * 4 + ["3*"] * 4,
    "nationality": ["*"] * 12,
    "condition": [
        "AIDS", "Heart Disease", "Viral Infection", "Viral Infection",
        "Cancer", "Heart Disease", "Viral Infection", "Viral Infection",
        "Cancer", "Cancer", "Cancer", "Cancer",
    ],
}  # fmt: skip
SECOND: dict[str, list[str]] = {
    "zip": ["130**"] * 12,
    "age": ["<35"] * 6 + ["≥35"] * 6,
    "nationality": ["*"] * 12,
    "condition": [
        "AIDS", "Tuberculosis", "Flu", "Tuberculosis", "Cancer", "Cancer",
        "Cancer", "Cancer", "Cancer", "Tuberculosis", "Viral Infection", "Viral Infection",
    ],
}  # fmt: skip
QUASI = ("zip", "age")
SENSITIVE = "condition"
ALICE = {"zip": ["13012"], "age": [28]}
AGES = tuple(range(20, 61))
"""Ages from 20 to 60, in zip code 13012."""


def left_by(release: dict[str, list[str]], age: int) -> set[str]:
    """The conditions that a release leaves for somebody of this age in zip code 13012."""
    (found,) = possible_values(release, {"zip": ["13012"], "age": [age]}, quasi=QUASI, sensitive=SENSITIVE)
    return {str(v) for v in found}


def smallest_class(release: dict[str, list[str]]) -> int:
    """k: the rows of the smallest class of equal zip code, age and nationality."""
    import pyarrow

    return check_table(pyarrow.table(release), quasi=["zip", "age", "nationality"], sensitive=SENSITIVE).k


def make_lecture_2_1() -> Made:
    """The table, its k, and the remaining values for each age."""
    k = smallest_class(FIRST)
    rows: list[Row] = [
        (age, len(left_by(FIRST, age)), ", ".join(sorted(left_by(FIRST, age)))) for age in AGES
    ]
    return Made(
        columns=("age", "conditions_left", "conditions"),
        rows=tuple(rows),
        notes=(
            f"The smallest class has {k} rows: the table is {k}-anonymous, as printed.",
            "Everybody in their thirties has cancer: the class has four rows and one condition.",
            f"Alice, 28, may have {', '.join(sorted(left_by(FIRST, 28)))}.",
        ),
        draw=lambda: _draw_table(FIRST, "Figure 2.1: a 4-anonymous table", [("this table", FIRST)]),
    )


def make_lecture_2_2() -> Made:
    """The second table, and both together."""
    k = smallest_class(SECOND)
    rows: list[Row] = []
    for age in AGES:
        one, two = left_by(FIRST, age), left_by(SECOND, age)
        rows.append((age, len(one), len(two), len(one & two), ", ".join(sorted(one & two))))
    both = intersection([FIRST, SECOND], ALICE, quasi=QUASI, sensitive=SENSITIVE)
    certain = sum(1 for r in rows if r[3] == 1)
    return Made(
        columns=("age", "left_by_first", "left_by_second", "left_by_both", "conditions"),
        rows=tuple(rows),
        notes=(
            f"The smallest class has {k} rows: the table is {k}-anonymous, as printed.",
            f"Alice, 28, is in both tables. Together they leave one condition: {both.learned[0]}.",
            f"Of the {len(AGES)} ages from 20 to 60, both tables leave one condition for {certain}. k-anonymity has no "
            "composition.",
        ),
        draw=lambda: _draw_table(
            SECOND, "Figure 2.2: a 6-anonymous table", [("Figure 2.1", FIRST), ("Figure 2.2", SECOND)]
        ),
    )


def _draw_table(
    table: dict[str, list[str]], title: str, shown: list[tuple[str, dict[str, list[str]]]]
) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.1])
    left.set_axis_off()
    names = list(table)
    cells = [[str(i + 1), *(table[n][i] for n in names)] for i in range(12)]
    drawn = left.table(cellText=cells, colLabels=["", *names], loc="center", cellLoc="left")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(10.5)
    drawn.auto_set_column_width(list(range(len(names) + 1)))
    drawn.scale(1, 1.55)
    classes = list(dict.fromkeys(table["age"]))
    for (row, _), cell in drawn.get_celld().items():
        cell.set_edgecolor(MUTED)
        cell.set_linewidth(0.4)
        if row and classes.index(table["age"][row - 1]) % 2 == 0:
            cell.set_facecolor(SHADE)
    left.set_title(title, color=INK, fontsize=10, loc="left")
    dashes = ((0, (4, 2)), (0, (1, 1)))
    for (name, one), style in zip(shown, dashes, strict=False):
        sizes = [len(left_by(one, age)) for age in AGES]
        colour = ACCENT if len(shown) == 1 else MUTED
        right.step(
            AGES, sizes, where="mid", color=colour, linestyle="-" if len(shown) == 1 else style, label=name
        )
    if len(shown) > 1:
        both = [len(set.intersection(*(left_by(one, age) for _, one in shown))) for age in AGES]
        right.step(AGES, both, where="mid", color=ACCENT, linewidth=2.2, label="both together")
        right.legend(frameon=False, fontsize=9, loc="upper right")
    right.axvline(28, color=MUTED, linewidth=0.6)
    right.text(28.4, 4.35, "Alice, 28", color=INK, fontsize=9)
    right.axhline(1, color=MUTED, linewidth=0.6)
    right.set_ylim(0, 5)
    right.set_yticks(range(6))
    label(right, "Conditions left for a person in 13012", "age", "conditions")
    return figure


LECTURE_2_1 = Reproduction(
    name="lecture-2.1",
    title="A 4-anonymous table, and what it reveals",
    source="lecture 2, Figure 2.1",
    make=make_lecture_2_1,
)
LECTURE_2_2 = Reproduction(
    name="lecture-2.2",
    title="A 6-anonymous table beside it: both together reveal more",
    source="lecture 2, Figure 2.2",
    make=make_lecture_2_2,
)


# Lecture 7: k Gaussian mechanisms under one (epsilon, delta), the sigma by each theorem. L2 sensitivity 1.

EPSILON, DELTA = 1.0, 1e-5


def by_advanced(k: float, epsilon: float, delta: float) -> float:
    """The lecture's sigma_ACT: sqrt(16 k ln(2.5k/delta) ln(2/delta)) / epsilon."""
    return math.sqrt(16 * k * math.log(2.5 * k / delta) * math.log(2 / delta)) / epsilon


def by_renyi(k: float, epsilon: float, delta: float) -> float:
    """The lecture's sigma_rdp: sqrt(k (2 ln(1/delta)/epsilon + 1) / epsilon)."""
    return math.sqrt(k * (2 * math.log(1 / delta) / epsilon + 1) / epsilon)


def _solved(largest: float, fits: object) -> float:
    """The largest parameter with which a bound is (epsilon, delta)-private, to 12 digits from below."""
    assert callable(fits)
    return bisected(lambda value: not fits(value), 0.0, largest, halvings=60)[0]


def by_concentrated(k: float, epsilon: float, delta: float) -> float:
    """By zCDP and the sharp conversion: k Gaussians have rho = k/(2 sigma^2)."""
    rho = _solved(epsilon, lambda r: float(Concentrated(rho=r).delta(epsilon)) <= delta if r else True)
    return math.sqrt(k / (2 * rho))


def by_curve(k: float, epsilon: float, delta: float) -> float:
    """Exactly: k Gaussians are one with mu = sqrt(k)/sigma."""
    mu = _solved(4 * epsilon, lambda m: float(GaussianDP(mu=m).delta(epsilon)) <= delta if m else True)
    return math.sqrt(k) / mu


def make_lecture_7() -> Made:
    """sigma for k from 1 to 10,000."""
    once = by_concentrated(1, EPSILON, DELTA), by_curve(1, EPSILON, DELTA)
    rows: list[Row] = [
        (
            k, by_advanced(k, EPSILON, DELTA), by_renyi(k, EPSILON, DELTA), math.sqrt(k) * once[0],
            math.sqrt(k) * once[1],
        )
        for k in (round(x) for x in spread(1, 10_000, 17))
    ]  # fmt: skip
    at = dict(zip(("advanced", "renyi", "zcdp", "exact"), (float(x) for x in rows[8][1:]), strict=True))
    return Made(
        columns=("k", "sigma_advanced", "sigma_renyi", "sigma_zcdp", "sigma_exact"),
        rows=tuple(rows),
        notes=(
            f"(epsilon, delta) = ({EPSILON:g}, {DELTA:g}), L2 sensitivity 1. For {rows[8][0]} mechanisms sigma is "
            f"{at['advanced']:.1f} by advanced composition, {at['renyi']:.1f} by Renyi divergences as the lecture "
            f"computes it, {at['zcdp']:.1f} by zCDP with the sharp conversion, and {at['exact']:.1f} exactly.",
            f"The lecture's conclusion holds: {at['advanced'] / at['renyi']:.1f} times less noise. Its Renyi noise is "
            f"{at['renyi'] / at['exact']:.2f} times the least Gaussian noise, for every k.",
        ),
        draw=lambda: _draw_sigma(rows),
    )


def _draw_sigma(rows: list[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.6), layout="constrained")
    axes = figure.subplots()
    k = [float(r[0]) for r in rows]
    lines = (
        ("advanced composition (lecture)", MUTED, (0, (1, 1))),
        ("Rényi divergence (lecture)", INK, (0, (4, 2))),
        ("zCDP, sharp conversion", INK, "-"),
        ("exact", ACCENT, "-"),
    )
    for column, (name, colour, style) in enumerate(lines, 1):
        axes.loglog(
            k, [float(r[column]) for r in rows], color=colour, linestyle=style, linewidth=1.8, label=name
        )
    axes.set_xlim(min(k), max(k))
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    label(axes, f"Noise for k releases at ({EPSILON:g}, {DELTA:g})", "Gaussian mechanisms k", "sigma of each")
    return figure


LECTURE_7 = Reproduction(
    name="lecture-7",
    title="Gaussian noise for many releases, by composition theorem",
    source="lecture 7, after Lemma 7.15",
    make=make_lecture_7,
)
