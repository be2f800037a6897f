"""100,000 sparse histories: the scoreboard of Narayanan and Shmatikov, its eccentricity rule, and a released table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.attacks import Draws, Scoreboard, area_under_curve
from tacit.attacks.histories import ECCENTRICITY, Best
from tacit.report.look import ACCENT, INK, MUTED, label
from tacit.reproduce.attack_figures import BEFORE
from tacit.reproduce.attack_releases import EPSILONS, Bar, bar, counts_from, most, release_from
from tacit.reproduce.base import Made, Reproduction
from tacit.sources import integer
from tacit.sources.synthetic.histories import Histories, Known, enough, histories, known_entries
from tacit.statistics import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tacit.exact.arrays import Integers


__all__ = ["HERE", "make", "on_histories"]

TRIES = 1000
AT_MOST = 40
"""So many entries of a person are used in the released table."""


class _World:
    """The table, some of its people, some strangers, and what is known of either."""

    def __init__(self, tries: int) -> None:
        self.table: Histories = histories()
        others = histories(people=2 * tries + 1000, seed=99)
        chosen = enough(self.table)
        self.who: Integers = chosen[Draws(81, "who").permutation(chosen.size)[:tries]]
        self.known: Known = known_entries(self.table, self.who)
        self.strangers: Known = known_entries(others, enough(others)[:tries], seed=2)

    def best(self, known: Known, *, dates: bool) -> list[Best]:
        """The best match of each."""
        t = self.table
        board = Scoreboard(t.person, t.item, t.value, t.day if dates else None)
        return [
            board.best(known.item[i], known.value[i], known.day[i] if dates else None)
            for i in range(len(known.item))
        ]

    def area(self, epsilon: float, *, seed: int) -> float:
        """Who is in the table, from released counts of items: the area under the curve of members against strangers.

        The score of a person is the sum, over the known entries, of what the count is above its expectation, which the
        attacker takes from the law of the items, over its variance.
        """
        import numpy as np
        import pyarrow as pa

        t = self.table
        data = pa.table({"person": t.person, "item": t.item})
        schema = {"item": integer(0, t.items - 1)}
        frame = release_from(
            data, schema, count(by="item"), epsilon, seed=seed, person="person", at_most=AT_MOST
        )[0]
        noisy = counts_from(frame, ["item"], (t.items,))
        law = 1 / np.arange(1, t.items + 1)
        expected = np.maximum(noisy, 0).sum() * law / law.sum()
        weight = (noisy - expected) / (expected + 8 * (AT_MOST / epsilon) ** 2)
        area: float = area_under_curve(
            weight[self.known.item].sum(axis=1), weight[self.strangers.item].sum(axis=1)
        )
        return area


def _named(found: list[Best], who: Integers, limit: float) -> float:
    """The share that is named, and rightly."""
    right = [b.eccentricity >= limit and b.person == w for b, w in zip(found, who.tolist(), strict=True)]
    return float(sum(right)) / len(right)


def _accused(found: list[Best], limit: float) -> float:
    """The share of strangers that is named."""
    return sum(b.eccentricity >= limit for b in found) / len(found)


def on_histories(*, tries: int = 400) -> list[Bar]:
    """The bars: who is named in the histories, and who of a member and a stranger is told from released counts."""
    world = _World(tries)
    guess = 1 / world.table.people
    found = []
    for dates in (True, False):
        share = _named(world.best(world.known, dates=dates), world.who, ECCENTRICITY)
        name = "histories, with dates" if dates else "histories, no dates"
        found.append(bar("histories", name, share, tries, guess))
    for epsilon in EPSILONS:
        found.append(bar("histories", "", world.area(epsilon, seed=82), tries, 0.5, epsilon))
    return found


def make() -> Made:
    """1,000 people and 1,000 strangers, with and without dates; three released tables."""
    world = _World(TRIES)
    limits = [1, 1.5, 2, 3, 4, 5, 6, ECCENTRICITY, 8, 10, 12]
    rows: list[tuple[float | str, ...]] = []
    curves = {}
    for dates in (True, False):
        mine = world.best(world.known, dates=dates)
        theirs = world.best(world.strangers, dates=dates)
        curves[dates] = [(e, _named(mine, world.who, e), _accused(theirs, e)) for e in limits]
        wrong = [
            sum(b.eccentricity >= e and b.person != w for b, w in zip(mine, world.who.tolist(), strict=True))
            / TRIES
            for e in limits
        ]
        kind = "with dates" if dates else "without dates"
        rows += [(kind, *point, bad, "") for point, bad in zip(curves[dates], wrong, strict=True)]
    areas = {e: world.area(e, seed=83) for e in EPSILONS}
    rows += [("released counts", e, area, "", "", most(e, 0.5)) for e, area in areas.items()]
    at = {d: next(p for p in curve if p[0] == ECCENTRICITY) for d, curve in curves.items()}
    notes = (
        f"Eight known entries, two of them wrong, dates by up to 14 days, an eccentricity of {ECCENTRICITY:g}: "
        f"{at[True][1]:.1%} of {TRIES:,} people are named rightly, and {at[True][2]:.2%} of as many strangers are "
        f"named at all. Without dates: {at[False][1]:.1%} and {at[False][2]:.2%}.",
        f"The paper's eccentricity of 1.5 names {next(p for p in curves[True] if p[0] == 1.5)[2]:.1%} of the strangers "
        "here.",
        "From counts of items that a curator released (up to 40 entries of a person used, one replaced person), of a "
        "member and a stranger the member is told with probability "
        + ", ".join(f"{a:.3f} at epsilon = {e:g} (at most {most(e, 0.5):.3f})" for e, a in areas.items())
        + ".",
    )
    columns = (
        "release",
        "eccentricity_or_epsilon",
        "named_rightly_or_area",
        "strangers_named",
        "named_wrongly",
        "bound",
    )
    return Made(columns=columns, rows=tuple(rows), notes=notes, draw=lambda: _draw(curves, areas))


def _draw(curves: dict[bool, list[tuple[float, float, float]]], areas: dict[float, float]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    for dates, curve in curves.items():
        e, named, accused = zip(*curve, strict=True)
        style = "-" if dates else (0, (4, 3))
        kind = "dates known within 14 days" if dates else "no dates"
        left.plot(
            e, named, color=BEFORE, linestyle=style, marker="o", markersize=3, label=f"named rightly, {kind}"
        )
        left.plot(
            e, accused, color=INK, linestyle=style, marker="o", markersize=3, label=f"strangers named, {kind}"
        )
    left.axvline(ECCENTRICITY, color=MUTED, linewidth=0.8)
    left.axhline(0.01, color=MUTED, linewidth=0.8, linestyle=(0, (3, 2)))
    left.annotate(
        "1%", (12, 0.01), xytext=(0, 3), textcoords="offset points", color=MUTED, fontsize=8, ha="right"
    )
    left.set_ylim(-0.02, 1.03)
    left.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(0.01, 0.44))
    label(left, "100,000 histories: eight known entries, two wrong", "eccentricity", "share of the people")
    for at, (epsilon, area) in enumerate(areas.items()):
        right.bar(at, area, width=0.55, color=ACCENT, alpha=0.85)
        right.plot([at - 0.4, at + 0.4], [most(epsilon, 0.5)] * 2, color=INK, linewidth=2)
        right.annotate(f"{area:.3f}", (at, 0.41), ha="center", color="white", fontsize=9)
    right.axhline(0.5, color=MUTED, linewidth=1.2, linestyle=(0, (3, 2)))
    right.set_xticks(range(len(areas)), [f"ε = {e:g}" for e in areas])
    right.set_ylim(0.4, 1.03)
    label(right, "Released counts of items: member or stranger?", "", "how often right")
    right.grid(axis="x", visible=False)
    return figure


HERE = Reproduction(
    name="attack-histories",
    title="Sparse histories with errors",
    source="Narayanan and Shmatikov 2008; the histories are made up",
    make=make,
)
