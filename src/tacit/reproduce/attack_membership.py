"""Membership in a study of 200 people from 10,000 frequencies: exact, and from a curator (Homer et al. 2008)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tacit.attacks import area_under_curve, membership_scores
from tacit.attacks.membership import TESTS
from tacit.curator import Curator
from tacit.guarantees import Pure, people
from tacit.noise import SeededSource
from tacit.report.look import ACCENT, INK, MUTED, label
from tacit.reproduce.attack_figures import BEFORE
from tacit.reproduce.attack_releases import EPSILONS, Bar, most
from tacit.reproduce.base import Made, Reproduction
from tacit.sources import integer
from tacit.sources.synthetic.genomes import Genomes, genomes
from tacit.statistics import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HERE", "areas", "make", "on_membership"]

PEOPLE, SITES = 200, 10_000


def exact_areas(made: Genomes) -> dict[str, float]:
    """The area under the curve of each test on exact frequencies."""
    shares = made.study.mean(axis=0)
    return {
        test: area_under_curve(
            *(
                membership_scores(shares, made.shares, who, size=PEOPLE, test=test)
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
            noise = 2 * sites / epsilon * math.sqrt(2) / PEOPLE
            shares = released.table["value"].to_numpy() / PEOPLE
            members, others = (
                membership_scores(shares, made.shares, bits, size=PEOPLE, test="correlation", noise_std=noise)
                for bits in (made.study, made.others)
            )
            found.append(area_under_curve(members, others))
    return found


def on_membership(*, releases: int = 10) -> list[Bar]:
    """The bars: the area is the probability that of a member and another person the member is named."""
    import numpy as np

    made = genomes(sites=SITES)
    best = max(exact_areas(made).values())
    found = [_bar("exact frequencies", best, PEOPLE, None)]
    for epsilon in EPSILONS:
        found.append(
            _bar("", float(np.mean(areas(made, epsilon, releases, seed=71))), PEOPLE * releases, epsilon)
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


def make() -> Made:
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
    return Made(columns=columns, rows=tuple(rows), notes=notes, draw=lambda: _draw(exact, found))


def _draw(exact: dict[str, float], found: dict[float, list[float]]) -> Figure:
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


HERE = Reproduction(
    name="attack-membership",
    title="Membership from published frequencies",
    source="Homer et al. 2008; Sankararaman et al. 2009; the data are made up",
    make=make,
)
