"""A risk-utility map (R-U): treatments of one made-up table, and our releases of the same counts beside them.

Duncan, Keller-McNulty and Stokes 2001 draw a treatment as a point: the attacker's gain against the analyst's loss.
Both need a definition that fits a treated table and a noisy one.

- Risk: somebody knows age, sex and region of everybody, and guesses each person's illness from the release: the
  commonest one among rows (or in the noisy counts) that fit. The risk is the difference between her success for
  people in the table and for others from the same population: the cost of taking part.
  Under epsilon-differential privacy it is at most tanh(epsilon / 2), for any knowledge. - Loss: the total variation
  distance between the table's counts by decade, sex, region and illness, and the counts in the release; a range of
  ages, or a set of values, is spread evenly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit import anonymity as anon
from tacit.exact.arrays import Booleans, Integers
from tacit.mechanisms import L1, Laplace
from tacit.noise import DiscreteLaplace, SeededSource
from tacit.report.figures import ACCENT, INK, MUTED, SHADE, label
from tacit.reproduce.base import Made, Reproduction
from tacit.risk.minimax import curator_squared_error, response_squared_error, two_party_floor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PEOPLE, AGES, REGIONS, SEXES, ILLNESSES = 2000, (18, 88), 5, 2, 4
EPSILONS = (0.1, 1.0, 10.0)
REPEATS = 5


def make_risk_utility() -> Made:
    """Every treatment and every epsilon, a row each."""
    inside, outside = _people(1), _people(2)
    table = _table(inside)
    truth = _counts(inside)
    rows: list[tuple[float | str, ...]] = []
    for kind, name, treated in _treated(table):
        boxes = _boxes(treated)
        risk = _right(boxes, treated, inside) - _right(boxes, treated, outside)
        rows.append((kind, name, round(risk, 4), round(_lost(truth, _spread(boxes, treated)), 4), ""))
    for epsilon in EPSILONS:
        found = [_released(truth, epsilon, seed, inside, outside) for seed in range(REPEATS)]
        risk, lost = np.mean(found, axis=0)
        name = f"noisy counts, epsilon = {epsilon:g}"
        rows.append(("released", name, round(float(risk), 4), round(float(lost), 4), math.tanh(epsilon / 2)))
    notes = (
        f"{PEOPLE:,} made-up people, and as many others from the same population. Quasi-identifiers: age in years, "
        "sex, region. Risk: how much more often an illness is guessed right of people in the table than of others.",
        "Counts were released with discrete Laplace noise, replace-one; risk and loss are means of "
        f"{REPEATS} releases. Their bound holds against every attacker, the other risks against this one alone.",
        "A risk is a difference of two shares of 2,000 people: its standard error is about 0.015. A treated table "
        "answers other questions too; the noisy counts answer these.",
    )
    return Made(
        columns=("kind", "treatment", "risk", "loss", "bound_on_risk"),
        rows=tuple(rows),
        notes=notes,
        draw=lambda: _draw_risk_utility(rows),
    )


def _people(seed: int) -> Integers:
    """Age, sex, region, illness: ages fall off, and illness goes with age."""
    draws = anon.Draws(SeededSource(seed=seed))
    low, high = AGES
    age = low + np.floor((high - low) * draws.uniform(PEOPLE) ** 1.3).astype(np.int64)
    sex = (draws.uniform(PEOPLE) < 0.5).astype(np.int64)
    region = np.floor(REGIONS * draws.uniform(PEOPLE) ** 2).astype(np.int64)
    score = (age - low) / (high - low) + 0.25 * draws.normal(PEOPLE)
    illness = np.clip(np.floor(score * ILLNESSES), 0, ILLNESSES - 1).astype(np.int64)
    return np.stack([age, sex, region, illness], axis=1)


def _table(people: Integers) -> Any:
    import pyarrow as pa

    words = {"sex": people[:, 1], "region": people[:, 2]}
    made = {"age": people[:, 0], **{name: [str(v) for v in codes] for name, codes in words.items()}}
    return pa.table({**made, "illness": [f"i{v}" for v in people[:, 3]]})


def _treated(table: Any) -> list[tuple[str, str, Any]]:
    """(kind, name, treated table)."""
    source = SeededSource(seed=7)
    low, high = AGES
    trees = {
        "age": anon.intervals(range(low, high), widths=[5, 10, 20]),
        "sex": anon.suppression(range(SEXES)),
        "region": anon.suppression(range(REGIONS)),
    }

    def treat(*how: anon.Treatment) -> Any:
        return anon.treat_table(table, how, source=source).table

    made: list[tuple[str, str, Any]] = [("treated", "as it is", table)]
    made += [("treated", f"{share:.0%} sample", treat(anon.Sample(share=share))) for share in (0.5, 0.1)]
    made += [
        ("treated", f"regions swapped, {s:.0%}", treat(anon.Swap(columns=("region",), share=s)))
        for s in (0.1, 0.5)
    ]
    made += [
        (
            "treated",
            f"ages disturbed, {s:g} of std",
            treat(anon.Disturb(column="age", share_of_std=s), ROUNDED),
        )
        for s in (0.1, 0.5)
    ]
    drawn = anon.ModelDraws(column="illness", given=("age", "sex", "region"))
    made.append(("treated", "illness drawn from classes", treat(drawn)))
    decades = anon.Collapse(column="age", hierarchy=trees["age"], level=2)
    made.append(("treated", "ages in decades", treat(decades)))
    for k in (5, 20):
        found = anon.generalise(table, hierarchies=trees, k=k, suppress=0.02)
        made.append(("k-anonymous", f"best generalisation, k = {k}", found.table))
        boxes = anon.mondrian(table, quasi=["age", "sex", "region"], k=k)
        made.append(("k-anonymous", f"Mondrian, k = {k}", boxes.table))
    return made


ROUNDED = anon.Round(column="age", base=1)


def _boxes(table: Any) -> Booleans:
    """The ages, sexes and regions that each row may represent, side by side."""
    parts = []
    for name, values in (
        ("age", range(*AGES)),
        ("sex", range(SEXES)),
        ("region", range(REGIONS)),
    ):
        column = table.column(name).to_pylist()
        known = {text: _covers(str(text), values) for text in set(column)}
        parts.append(np.array([known[text] for text in column]))
    return np.concatenate(parts, axis=1)


def _covers(text: str, values: range) -> list[bool]:
    """The values behind a published text: "*", "[20, 30)", "[20, 34]", "{0, 2}", or a number."""
    if text == "*":
        return [True] * len(values)
    if text.startswith("["):
        low, high = (float(v) for v in text[1:-1].split(", "))
        return [low <= v < high or (text.endswith("]") and v == high) for v in values]
    if text.startswith("{"):
        return [str(v) in text[1:-1].split(", ") for v in values]
    near = min(max(round(float(text)), values[0]), values[-1])
    return [v == near for v in values]


def _cell(people: Integers) -> tuple[Integers, Integers, Integers]:
    wide = AGES[1] - AGES[0]
    return people[:, 0] - AGES[0], wide + people[:, 1], wide + SEXES + people[:, 2]


def _right(boxes: Booleans, table: Any, people: Integers) -> float:
    """The share of people whose illness is the commonest among the fitting rows; without one, the commonest of all."""
    illness = np.array([int(v[1:]) for v in table.column("illness").to_pylist()])
    one = np.eye(ILLNESSES)[illness]
    age, sex, region = _cell(people)
    fits = boxes[:, age] & boxes[:, sex] & boxes[:, region]
    votes = fits.T.astype(np.float64) @ one
    guess = np.where(votes.sum(axis=1) > 0, votes.argmax(axis=1), np.bincount(illness).argmax())
    return float(np.mean(guess == people[:, 3]))


def _counts(people: Integers) -> npt.NDArray[np.float64]:
    made = np.zeros((7, SEXES, REGIONS, ILLNESSES))
    np.add.at(made, ((people[:, 0] - AGES[0]) // 10, people[:, 1], people[:, 2], people[:, 3]), 1.0)
    return made


def _spread(boxes: Booleans, table: Any) -> npt.NDArray[np.float64]:
    """The counts of a treated table, each row spread evenly over its possible values."""
    illness = np.array([int(v[1:]) for v in table.column("illness").to_pylist()])
    wide = AGES[1] - AGES[0]
    share = [part / np.maximum(part.sum(axis=1, keepdims=True), 1) for part in
             (boxes[:, :wide], boxes[:, wide : wide + SEXES], boxes[:, wide + SEXES :])]  # fmt: skip
    decades = share[0].reshape(len(illness), 7, 10).sum(axis=2)
    told = np.einsum("na,ns,nr,ni->asri", decades, share[1], share[2], np.eye(ILLNESSES)[illness])
    return np.asarray(told, dtype=np.float64)


def _lost(truth: npt.NDArray[np.float64], told: npt.NDArray[np.float64]) -> float:
    total = max(float(told.sum()), 1e-9)
    return float(np.abs(truth / truth.sum() - told / total).sum() / 2)


def _released(
    truth: npt.NDArray[np.float64], epsilon: float, seed: int, inside: Integers, outside: Integers
) -> tuple[float, float]:
    mechanism = Laplace.for_target(epsilon=epsilon, sensitivity=L1(2))
    source = SeededSource(seed=1000 * seed + round(10 * epsilon))
    noisy = mechanism.release(truth.astype(np.int64).ravel(), source=source)
    told = np.asarray(noisy.values, dtype=np.float64).reshape(truth.shape)

    def right(people: Integers) -> float:
        guess = told.argmax(axis=3)[(people[:, 0] - AGES[0]) // 10, people[:, 1], people[:, 2]]
        return float(np.mean(guess == people[:, 3]))

    return right(inside) - right(outside), _lost(truth, np.maximum(told, 0.0))


def _draw_risk_utility(rows: list[tuple[float | str, ...]]) -> Figure:
    """Points with numbers; their names are beside the picture, where they cannot overlap."""
    import matplotlib.pyplot as plt

    figure: Figure
    figure, (axes, side) = plt.subplots(
        1, 2, figsize=(10.4, 5.2), width_ratios=(2.1, 1), layout="constrained"
    )
    looks = {"treated": ("o", "#5c6875"), "k-anonymous": ("s", "#9a5b00"), "released": ("D", "#0a58a3")}
    for number, (kind, name, risk, lost, bound) in enumerate(rows, start=1):
        mark, colour = looks[str(kind)]
        x, y = float(lost), float(risk)
        axes.scatter([x], [y], marker=mark, color=colour, s=26, zorder=3)
        axes.annotate(
            str(number), (x, y), xytext=(4, 4), textcoords="offset points", fontsize=8, color=colour
        )
        words = f"{number}  {name}"
        if bound != "":
            words += f" (at most {float(bound):.2g})"
            if float(bound) < 0.6:
                axes.plot([x, x], [y, float(bound)], color=colour, linewidth=1)
                axes.scatter([x], [float(bound)], marker="_", s=140, color=colour, zorder=3)
        side.text(0.0, 1.0 - 0.058 * number, words, fontsize=8.5, color=colour, transform=side.transAxes)
    side.set_axis_off()
    axes.axhline(0.0, color="#7b8794", linewidth=0.8)
    axes.set_xlabel("loss: total variation distance of counts by decade, sex, region and illness", fontsize=9)
    axes.set_ylabel(
        "risk: how much more often a guess is right\nof people in the table than of others", fontsize=9
    )
    axes.set_title("Circles and squares: treated tables; diamonds: released under differential privacy,\n"
                   "their bars end where no attacker can go beyond", fontsize=9.5)  # fmt: skip
    axes.set_xlim(left=-0.02)
    return figure


RISK_UTILITY = Reproduction(
    name="risk-utility",
    title="A risk-utility map of treatments, with releases under differential privacy beside them",
    source="the map is that of Duncan, Keller-McNulty, Stokes 2001; the table and the numbers are ours",
    make=make_risk_utility,
)


# The two-party gap: what a joint curator errs, what two parties must err, and noise on every message.

EPSILON = 1.0
TWO_PARTY_GAP_ROWS = (16, 64, 256, 1024, 4096, 16384, 65536)
HOLDERS = (2, 5, 10, 20, 50, 100, 200)
DRAWS = 1 << 21
Row = tuple[float | str, ...]


def simulated_response(rows: int, epsilon: float, runs: int, seed: int) -> float:
    """Root mean squared error of the inner product when both publish their bits by randomised response."""
    source = SeededSource(seed=seed)
    keep, tilt = math.exp(epsilon) / (1 + math.exp(epsilon)), math.tanh(epsilon / 2)
    total = 0.0
    for _ in range(runs):
        words = source.words(2 * rows).reshape(2, rows)
        # One bit of a word is the party's own, 53 others say whether it is published as it is.
        x, y = (words & np.uint64(1)).astype(np.int64) * 2 - 1
        kept = np.where((words >> np.uint64(11)) * 2.0**-53 < keep, 1, -1)
        told = [x * kept[0], y * kept[1]]
        total += (tilt**2 * float(told[0] @ told[1]) - float(x @ y)) ** 2
    return math.sqrt(total / runs)


def make_two_party_gap() -> Made:
    """Errors of the inner product and of the distance by n, and of a joint count by the number of holders."""
    pairs: list[Row] = []
    simulated = {
        n: simulated_response(n, EPSILON, max(30, min(400, DRAWS // n)), n) for n in TWO_PARTY_GAP_ROWS
    }
    for hamming in (False, True):
        curator = math.sqrt(curator_squared_error(epsilon=EPSILON, hamming=hamming))
        for n in TWO_PARTY_GAP_ROWS:
            floor = math.sqrt(two_party_floor(rows=n, epsilon=EPSILON, hamming=hamming))
            reached = math.sqrt(response_squared_error(rows=n, epsilon=EPSILON)) / (2 if hamming else 1)
            seen = simulated[n] / (2 if hamming else 1)
            what = "Hamming distance" if hamming else "inner product"
            pairs.append((what, n, curator, floor, reached, seen))
    one = math.sqrt(DiscreteLaplace(noise_scale=1 / EPSILON).variance)
    for k in HOLDERS:
        honest = max(1, math.ceil(0.9 * k) - k // 10)
        pairs.append(("count, k holders", k, one, one, math.sqrt(k / honest) * one, math.sqrt(k) * one))
    crossing = next(n for w, n, c, f, *_ in pairs if w == "inner product" and float(f) > float(c))
    return Made(
        columns=("question", "size", "curator", "floor", "protocol", "noisy_messages_or_simulated"),
        rows=tuple(pairs),
        notes=(
            "Root mean squared errors at epsilon = 1. For the inner product and the distance: the curator's noise; the "
            "computed lower bound for every two-party protocol that is private against everybody; what randomised "
            "response reaches; the same, simulated.",
            f"From n = {crossing} on no statistical two-party protocol reaches the curator, and the gap grows as the "
            "root of n.",
            "For a count over k holders: the curator; the same; a secure sum whose shares are sized for nine tenths "
            "that remain, less one tenth that colludes; and whole noise on every message, the root of k times as much.",
        ),
        draw=lambda: _draw_two_party_gap(pairs),
    )


def _draw_two_party_gap(rows: Sequence[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.8, 4.0), layout="constrained")
    axes = figure.subplots(1, 3)
    for ax, what in zip(axes[:2], ("inner product", "Hamming distance"), strict=True):
        n, curator, floor, reached, seen = (
            np.array([float(r[i]) for r in rows if r[0] == what]) for i in range(1, 6)
        )
        ax.fill_between(n, floor, floor.min() / 10, color=SHADE)
        ax.loglog(n, floor, color=MUTED, linewidth=2, label="no statistical protocol below")
        ax.loglog(n, reached, color=INK, linewidth=1, label="randomised response")
        ax.loglog(n, seen, "o", color=INK, markersize=4, label="the same, simulated")
        ax.loglog(n, curator, color=ACCENT, linewidth=2, label="one curator, or a secure protocol")
        ax.set_ylim(min(floor.min(), curator.min()) / 2, reached.max() * 2)
        label(ax, x="bits of each party", y="root mean squared error", title=what)
    k, curator, _, shares, noisy = (
        np.array([float(r[i]) for r in rows if r[0] == "count, k holders"]) for i in range(1, 6)
    )
    axes[2].loglog(k, noisy, color=INK, linewidth=1, label="noise on every message")
    axes[2].loglog(k, shares, color=ACCENT, linewidth=2, label="shares behind masks")
    axes[2].loglog(k, curator, color=MUTED, linewidth=2, label="one curator")
    label(axes[2], x="holders", y="standard deviation", title="a joint count")
    for ax in axes:
        ax.legend(fontsize=8, frameon=False)
    return figure


TWO_PARTY_GAP = Reproduction(
    name="two-party-gap",
    title="What two parties must err without a cipher, and noise on every message",
    source="McGregor et al. 2010; Groce 2014, ch. 4; Hall 2012, sec. 1.4",
    make=make_two_party_gap,
)
