"""Twelve attacks, on an earlier publication, and on the same statistic from a curator at epsilon = .1, 1, 10."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tacit.attacks import (
    Draws,
    Scoreboard,
    area_under_curve,
    membership_scores,
    random_questions,
    reconstruct,
)
from tacit.attacks.linking import ECCENTRICITY, Best
from tacit.attacks.membership_inference import TESTS
from tacit.attacks.reconstruction import METHODS
from tacit.curator import Curator
from tacit.guarantees import Pure, people
from tacit.noise import SeededSource
from tacit.report.figures import ACCENT, INK, MUTED, label
from tacit.reproduce.attacks import (
    BEFORE,
    COLUMNS,
    EPSILONS,
    Bar,
    bar,
    counts_from,
    draw_panels,
    most,
    on_averages,
    on_block,
    on_classes,
    on_counts,
    on_differences,
    on_digits,
    on_linkage,
    on_two_releases,
    release_from,
    table_rows,
)
from tacit.reproduce.base import Made, Reproduction
from tacit.sources import integer
from tacit.sources.synthetic.worlds import (
    Genomes,
    Histories,
    Known,
    enough,
    genomes,
    histories,
    known_entries,
)
from tacit.statistics import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tacit.exact.arrays import Integers

# Subset counts, n = 200 and 4n random questions: share of bits found against the noise (Dinur and Nissim 2003).

PEOPLE, SEEDS = 200, 20
FACTORS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 7.5)
Row = tuple[float | str, ...]


def shares(factor: float, seed: int) -> dict[str, float]:
    """The share of bits that each method finds, for Gaussian noise of factor √n."""
    draws = Draws(seed, "subset counts")
    bits = draws.bits(PEOPLE)
    asked = random_questions(PEOPLE, 4 * PEOPLE, seed=seed)
    answers = asked @ bits + factor * math.sqrt(PEOPLE) * draws.normals(4 * PEOPLE)
    return {m: reconstruct(asked, answers, method=m).score(bits.tolist()).share for m in METHODS}


def best_guess(factor: float) -> float:
    """Φ(mu/2): one replaced bit moves up to 4n answers by 1, so that mu = √(4n) / noise = 2 / factor."""
    from scipy.special import ndtr

    return float(ndtr(1 / factor))


def make_attack_counts() -> Made:
    """Twenty seeds at each noise."""
    rows: list[Row] = []
    for factor in FACTORS:
        runs = [shares(factor, seed) for seed in range(SEEDS)]
        means = {m: sum(r[m] for r in runs) / SEEDS for m in METHODS}
        better = sum(max(r.values()) for r in runs) / SEEDS
        rows.append((factor, *(means[m] for m in METHODS), max(means.values()), better, best_guess(factor)))
    at = {float(r[0]): r for r in rows}
    notes = (
        "Mean share of bits found, the better of the two programs: "
        + ", ".join(f"{float(at[f][3]):.2%} at {f:g}√n" for f in (0.1, 0.25, 2.0, 7.5))
        + ".",
        "Nobody can guess a bit better than Φ(mu/2) with mu = 2/factor: "
        f"{best_guess(2):.1%} at 2√n, where mu = 1, and {best_guess(7.5):.1%} at 7.5√n, which is (1, 1e-5)-DP.",
        "better_by_seed takes the better program for each seed by itself, which only somebody who holds the truth can.",
    )
    columns = (
        "noise_over_root_n",
        *(m.replace(" ", "_") for m in METHODS),
        "better",
        "better_by_seed",
        "bound",
    )
    return Made(columns=columns, rows=tuple(rows), notes=notes, draw=lambda: _draw_attack_counts(rows))


def _draw_attack_counts(rows: list[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.4), layout="constrained")
    axes = figure.subplots()
    x = [float(r[0]) for r in rows]
    axes.plot(x, [float(r[1]) for r in rows], color=BEFORE, marker="o", markersize=4, label="linear program")
    axes.plot(
        x, [float(r[2]) for r in rows], color=ACCENT, marker="o", markersize=4, label="bounded least squares"
    )
    axes.plot(
        x, [float(r[5]) for r in rows], color=INK, linewidth=2, label="what the noise allows at most, Φ(μ/2)"
    )
    axes.axhline(0.5, color=MUTED, linewidth=1.2, linestyle=(0, (3, 2)), label="a coin")
    axes.set_xscale("log")
    axes.set_xticks(x, [f"{f:g}" for f in x])
    axes.minorticks_off()
    axes.set_ylim(0.46, 1.02)
    axes.legend(frameon=False, fontsize=9)
    label(axes, "200 bits from 800 noisy subset counts", "noise_std / √n", "share of bits found")
    return figure


ATTACK_COUNTS = Reproduction(
    name="attack-counts",
    title="Linear reconstruction from subset counts",
    source="Dinur and Nissim 2003; the data are made up",
    make=make_attack_counts,
)


# Membership in a study of 200 people from 10,000 frequencies: exact, and from a curator (Homer et al. 2008).

ATTACK_MEMBERSHIP_PEOPLE, SITES = 200, 10_000


def exact_areas(made: Genomes) -> dict[str, float]:
    """The area under the curve of each test on exact frequencies."""
    shares = made.study.mean(axis=0)
    return {
        test: area_under_curve(
            *(
                membership_scores(shares, made.shares, who, size=ATTACK_MEMBERSHIP_PEOPLE, test=test)
                for who in (made.study, made.others)
            )
        )
        for test in TESTS
    }


def areas(made: Genomes, epsilon: float, releases: int, *, seed: int) -> list[float]:
    """The area of the best test for noisy frequencies, for each of several releases at this epsilon, rows replaced."""
    import numpy as np
    import pyarrow as pa

    sites = made.study.shape[1]
    who, site = np.nonzero(made.study)
    found = []
    with Curator(
        pa.table({"person": who, "site": site}),
        protect=people("person", at_most=sites, neighbours="replace-one"),
        schema={"site": integer(0, sites - 1)},
        budget=Pure(epsilon=epsilon * releases * 1.001),
        source=SeededSource(seed=seed),
    ) as study:
        for number in range(releases):
            released = study.release(count(by="site"), epsilon=epsilon, key=str(number))
            noise = 2 * sites / epsilon * math.sqrt(2) / ATTACK_MEMBERSHIP_PEOPLE
            shares = released.table["value"].to_numpy() / ATTACK_MEMBERSHIP_PEOPLE
            members, others = (
                membership_scores(
                    shares,
                    made.shares,
                    bits,
                    size=ATTACK_MEMBERSHIP_PEOPLE,
                    test="correlation",
                    noise_std=noise,
                )
                for bits in (made.study, made.others)
            )
            found.append(area_under_curve(members, others))
    return found


def on_membership(*, releases: int = 10) -> list[Bar]:
    """The bars: the area is the probability that of a member and another person the member is named."""
    import numpy as np

    made = genomes(sites=SITES)
    best = max(exact_areas(made).values())
    found = [_bar("exact frequencies", best, ATTACK_MEMBERSHIP_PEOPLE, None)]
    for epsilon in EPSILONS:
        found.append(
            _bar(
                "",
                float(np.mean(areas(made, epsilon, releases, seed=71))),
                ATTACK_MEMBERSHIP_PEOPLE * releases,
                epsilon,
            )
        )
    return found


def _bar(release: str, right: float, tries: int, epsilon: float | None) -> Bar:
    bound = 1.0 if epsilon is None else most(epsilon, 0.5)
    return Bar(
        attack="membership",
        release=release,
        epsilon=epsilon,
        right=right,
        tries=tries,
        guessing=0.5,
        bound=bound,
    )


def make_attack_membership() -> Made:
    """200 releases at epsilon = .1, and 40 at 1 and at 10."""
    import numpy as np

    made = genomes(sites=SITES)
    exact = exact_areas(made)
    rows: list[tuple[float | str, ...]] = [
        ("exact", test, "", "", area, "", "") for test, area in exact.items()
    ]
    found = {e: areas(made, e, 200 if e == 0.1 else 40, seed=72) for e in EPSILONS}
    for epsilon, some in found.items():
        error = float(np.std(some, ddof=1)) / math.sqrt(len(some))
        rows.append(
            ("curator", "correlation", epsilon, len(some), float(np.mean(some)), error, most(epsilon, 0.5))
        )
    mean, error, bound = (float(x) for x in rows[len(exact)][4:7])
    notes = (
        "Area under the curve on exact frequencies: "
        + ", ".join(f"{test} {area:.4f}" for test, area in exact.items())
        + ".",
        f"On 200 releases at epsilon = .1 (one replaced person): {mean:.4f} with a standard error of {error:.4f}; "
        f"epsilon allows {bound:.4f}.",
        "One person has up to 10,000 of the counts, so that the noise of each has a scale of 20,000 / epsilon: "
        "nothing of use is left of single frequencies of 200 people, and that is the point.",
    )
    columns = ("release", "test", "epsilon", "releases", "area", "standard_error", "bound")
    return Made(
        columns=columns, rows=tuple(rows), notes=notes, draw=lambda: _draw_attack_membership(exact, found)
    )


def _draw_attack_membership(exact: dict[str, float], found: dict[float, list[float]]) -> Figure:
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.2), layout="constrained")
    axes = figure.subplots()
    for at, area in enumerate(exact.values()):
        axes.plot([at], [area], "o", color=BEFORE, markersize=9)
    for at, (epsilon, some) in enumerate(found.items(), start=len(exact)):
        spread = np.linspace(-0.2, 0.2, len(some))
        axes.plot(at + spread, sorted(some), ".", color=ACCENT, markersize=3, alpha=0.7)
        axes.plot([at - 0.3, at + 0.3], [np.mean(some)] * 2, color=ACCENT, linewidth=2)
        axes.plot([at - 0.3, at + 0.3], [most(epsilon, 0.5)] * 2, color=INK, linewidth=2)
    axes.axhline(0.5, color=MUTED, linewidth=1.2, linestyle=(0, (3, 2)))
    names = [f"exact,\n{test}" for test in exact]
    names += [f"curator, ε = {e:g},\n{len(some)} releases" for e, some in found.items()]
    axes.set_xticks(range(len(names)), names, fontsize=8.5)
    axes.set_ylim(0.4, 1.04)
    label(axes, "Who was in the study? 200 people, 10,000 frequencies", "", "area under the curve")
    axes.grid(axis="x", visible=False)
    handles = [
        ("o", BEFORE, "exact frequencies"),
        (".", ACCENT, "a release, and their mean"),
        ("_", INK, "what epsilon allows"),
        ("_", MUTED, "guessing"),
    ]
    for marker, color, text in handles:
        axes.plot([], [], marker, color=color, label=text, markersize=9, markeredgewidth=2)
    axes.legend(frameon=False, fontsize=8.5, loc="center left")
    return figure


ATTACK_MEMBERSHIP = Reproduction(
    name="attack-membership",
    title="Membership from published frequencies",
    source="Homer et al. 2008; Sankararaman et al. 2009; the data are made up",
    make=make_attack_membership,
)


# 100,000 sparse histories: the scoreboard of Narayanan and Shmatikov, its eccentricity rule, and a released table.

TRIES = 1000
AT_MOST = 40
"""This many entries of a person are used in the released table."""


class _World:
    """The table, some of its people, some non-members, and the known entries of either."""

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
        """Membership in the table, from released counts of items: the area under the curve of members against others.

        The score of a person is the sum, over the known entries, of the count's excess over its expectation,
        divided by its variance. The attacker takes the expectation from the distribution of the items.
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
    """The bars: people named in the histories, and members told from non-members by released counts."""
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


def make_attack_histories() -> Made:
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
    return Made(
        columns=columns, rows=tuple(rows), notes=notes, draw=lambda: _draw_attack_histories(curves, areas)
    )


def _draw_attack_histories(
    curves: dict[bool, list[tuple[float, float, float]]], areas: dict[float, float]
) -> Figure:
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


ATTACK_HISTORIES = Reproduction(
    name="attack-histories",
    title="Sparse histories with errors",
    source="Narayanan and Shmatikov 2008; the histories are made up",
    make=make_attack_histories,
)


TITLES = {
    "linkage": "linkage: a neighbour's diagnosis",
    "histories": "sparse histories: who is in the table",
    "membership": "membership from 10,000 frequencies",
    "homogeneity": "homogeneity: the diagnosis",
    "background knowledge": "background knowledge: she is ill",
    "skewness": "skewness: the suspected have HIV",
    "intersection": "intersection of two releases",
    "differencing": "differencing: a bit",
    "averaging": "averaging: a bit",
    "subset counts": "800 subset counts: a bit",
    "people from tables": "tables of a block of seven",
    "floating-point noise": "floating-point noise: a bit",
}


def make_attack_before_after() -> Made:
    """All panels, from the modules of the single attacks with fewer tries."""
    bars = [
        *on_linkage(),
        *on_histories(tries=400),
        *on_membership(releases=10),
        *on_classes(),
        *on_two_releases(),
        *on_differences(),
        *on_averages(),
        *on_counts(),
        *on_block(),
        *on_digits(),
    ]
    over = [b for b in bars if b.right > b.bound + 4 * b.error]
    ours = [b for b in bars if b.epsilon is not None]
    notes = (
        f"{len(TITLES)} attacks; `right` is how often one is right about one person. People are independent here, "
        "so that without a person's own data nobody does better than guessing.",
        f"None of the {len(ours)} shares from a curator lies more than four standard errors above what epsilon allows."
        if not over
        else f"{len(over)} shares lie above what epsilon allows: {', '.join(b.attack for b in over)}.",
        "Who guesses right with probability g without the data of a person is right with probability at most "
        "g e^ε / (1 - g + g e^ε) afterwards; of two releases, with 2ε.",
    )
    return Made(columns=COLUMNS, rows=table_rows(bars), notes=notes, draw=lambda: draw_panels(bars, TITLES))


ATTACK_BEFORE_AFTER = Reproduction(
    name="attack-before-after",
    title="Attacks, before and after",
    source="the attacks of Groce 2014, chapter 2, and lecture 2; the numbers are ours",
    make=make_attack_before_after,
)
