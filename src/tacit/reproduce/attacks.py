"""Attacks on tables of people, before and after: linkage, the three attacks on classes, intersection."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tacit.attacks import (
    Draws,
    background,
    difference,
    homogeneity,
    intersection,
    link,
    random_questions,
    reconstruct,
    seven,
    skewness,
    textbook_laplace,
    which_answer,
)
from tacit.curator import Curator
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Pure, people, rows
from tacit.noise import SeededSource
from tacit.report.figures import ACCENT, INK, MUTED, label
from tacit.sources import bins, flag, integer, number
from tacit.sources.synthetic.worlds import DIAGNOSES, town
from tacit.statistics import count
from tacit.statistics import sum as total_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tacit.exact.arrays import Floats, Integers

# How attacks are drawn before and after: bars for what they get, ticks for what was proved, a line for guessing.

BEFORE = "#b42318"
COLUMNS = ("attack", "release", "epsilon", "right", "standard_error", "guessing", "bound")


def table_rows(bars: Sequence[Bar]) -> tuple[tuple[float | str, ...], ...]:
    """The bars as rows of a table; a release without a guarantee has no epsilon and no bound."""
    return tuple(
        (
            b.attack,
            b.release or "curator",
            "" if b.epsilon is None else b.epsilon,
            b.right,
            b.error,
            b.guessing,
            "" if b.epsilon is None else b.bound,
        )
        for b in bars
    )


def draw_bars(axes: Axes, bars: Sequence[Bar]) -> None:
    """One attack: red without a guarantee, blue from a curator."""
    for at, b in enumerate(bars):
        before = b.epsilon is None
        axes.bar(at, b.right, width=0.62, color=BEFORE if before else ACCENT, alpha=0.85)
        axes.plot([at, at], [b.right - 2 * b.error, b.right + 2 * b.error], color=INK, linewidth=1)
        if not before:
            axes.plot([at - 0.4, at + 0.4], [b.bound, b.bound], color=INK, linewidth=2)
        axes.plot(
            [at - 0.45, at + 0.45],
            [b.guessing, b.guessing],
            color=MUTED,
            linewidth=1.2,
            linestyle=(0, (3, 2)),
        )
        small = b.right < 0.12  # a number that does not fit into its bar stands above what is drawn there
        axes.annotate(
            f"{b.right:.1%}" if small else f"{b.right:.0%}",
            (
                at,
                max(b.right + 2 * b.error, b.bound if not before and b.bound < 0.2 else 0.0) if small else 0,
            ),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
            color=INK if small else "white",
        )
    names = [b.release.replace(", ", ",\n") if b.epsilon is None else f"ε = {b.epsilon:g}" for b in bars]
    axes.set_xticks(range(len(bars)), names, fontsize=7)
    axes.set_ylim(0, 1.06)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"], fontsize=8)


def draw_panels(bars: Sequence[Bar], titles: dict[str, str]) -> Figure:
    """A panel an attack, and one legend."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure = Figure(figsize=(12.6, 10.4), layout="constrained")
    grid = figure.subplots(4, 3).ravel()
    for axes, (attack, title) in zip(grid, titles.items(), strict=True):
        draw_bars(axes, [b for b in bars if b.attack == attack])
        label(axes, title, "", "")
        axes.grid(axis="x", visible=False)
    figure.legend(
        handles=[
            Patch(color=BEFORE, alpha=0.85, label="as it was published"),
            Patch(color=ACCENT, alpha=0.85, label="the same statistic from a curator"),
            Line2D([], [], color=INK, linewidth=2, label="what epsilon allows at most"),
            Line2D([], [], color=MUTED, linewidth=1.2, linestyle=(0, (3, 2)), label="guessing alone"),
        ],
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    figure.supylabel("how often the attacker is right about one person", color=INK, fontsize=10)
    return figure


# What the attacks meet in the pictures: made-up tables, and the same statistics from a curator at several epsilons.

EPSILONS = (0.1, 1.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One release under one attack: its success rate, the number of tries, and the earlier proof."""

    attack: str
    release: str
    epsilon: float | None
    right: float
    tries: int
    guessing: float
    bound: float

    @property
    def error(self) -> float:
        """The standard error of the share."""
        return math.sqrt(max(0.0, self.right * (1 - self.right)) / self.tries)


def most(epsilon: float, guessing: float) -> float:
    """The best that anybody can do who would guess right with probability g without the data of the person.

    Under pure epsilon for one replaced unit no likelihood ratio is above e^epsilon, so that a value with prior
    probability π has a posterior of at most π e^ε / (1 - π + π e^ε), which grows with π ≤ g.
    """
    return guessing * math.exp(epsilon) / (1 - guessing + guessing * math.exp(epsilon))


def bar(
    attack: str,
    release: str,
    right: float,
    tries: int,
    guessing: float,
    epsilon: float | None = None,
    times: int = 1,
) -> Bar:
    """A bar; `times` releases of this epsilon each were read."""
    bound = 1.0 if epsilon is None else most(times * epsilon, guessing)
    return Bar(
        attack=attack,
        release=release,
        epsilon=epsilon,
        right=right,
        tries=tries,
        guessing=guessing,
        bound=bound,
    )


def release_from(
    table: Any,
    schema: dict[str, Any],
    asked: Any,
    epsilon: float,
    *,
    seed: int,
    person: str = "",
    at_most: int = 1,
) -> list[Any]:
    """The tables of a plan from a curator, for one replaced row or person, with repeatable test noise."""
    unit = (
        people(person, at_most=at_most, neighbours="replace-one")
        if person
        else rows(neighbours="replace-one")
    )
    plan = asked if isinstance(asked, list) else [asked]
    with Curator(
        table,
        protect=unit,
        schema=schema,
        budget=Pure(epsilon=epsilon),
        source=SeededSource(seed=seed),
    ) as curator:
        return [released.table for released in curator.release(plan, epsilon=epsilon)]


def counts_from(frame: Any, keys: list[str], shape: tuple[int, ...]) -> Floats:
    """A released count as an array: the keys are whole numbers from 0."""
    import numpy as np

    found = np.zeros(shape)
    found[tuple(frame[key].to_numpy().astype(np.int64) for key in keys)] = frame["value"].to_numpy()
    return found


def shrunk(noisy: Floats, size: Floats | float, shares: Floats, noise_variance: float) -> Floats:
    """Counts of a class as an attacker estimates them: between the expected and the published count."""
    expected = size * shares
    variance = size * shares * (1 - shares)
    weight = variance / (variance + noise_variance)
    estimate: Floats = expected + weight * (noisy - expected)
    return estimate


# Attacks on answers, before and after: differencing, averaging, floating-point noise, a block, subset counts.
#
# Each try is a village of its own with one person under attack; all villages are one table, and one release is as
# many tries. The attacker knows everybody else in the village.

VILLAGES, SIZE = 4000, 20
PEOPLE = 200


def _villages(seed: int) -> tuple[Any, Integers, Integers]:
    """A table of people with bits, the target's bit in each village, and the sum of the others."""
    import numpy as np
    import pyarrow as pa

    bits = Draws(seed, "villages").bits(VILLAGES, SIZE)
    target = np.tile(np.arange(SIZE) == 0, VILLAGES)
    table = pa.table(
        {"village": np.repeat(np.arange(VILLAGES), SIZE), "bit": bits.ravel() == 1, "target": target}
    )
    return table, bits[:, 0], bits[:, 1:].sum(axis=1)


SCHEMA = {"village": integer(0, VILLAGES - 1), "bit": flag(), "target": flag()}


def _by_village(frame: Any) -> Floats:
    return counts_from(frame, ["village"], (VILLAGES,))


def _right(guess: Any, truth: Integers) -> float:
    return float(((guess > 0.5) == (truth == 1)).mean())


def on_differences() -> list[Bar]:
    """Two counts, with the target and without."""
    table, truth, others = _villages(51)
    exact = difference(truth + others, others).score(truth.tolist())
    found = [bar("differencing", "exact counts", exact.share, VILLAGES, 0.5)]
    for epsilon in EPSILONS:
        both = [count(by="village", where="bit"), count(by="village", where="bit and not target")]
        with_her, without = (_by_village(f) for f in release_from(table, SCHEMA, both, epsilon, seed=52))
        found.append(bar("differencing", "", _right(with_her - without, truth), VILLAGES, 0.5, epsilon))
    return found


def on_averages() -> list[Bar]:
    """The same count asked many times; the attacker knows the other people and subtracts them."""
    import numpy as np

    table, truth, others = _villages(53)
    draws = Draws(54, "server")
    found = []
    for times in (1, 100, 10_000):
        total = np.zeros(VILLAGES)
        for start in range(0, times, 500):
            total += draws.laplace(min(500, times - start), VILLAGES).sum(axis=0)
        mean = truth + 2 / 0.1 * total / times  # epsilon = .1 for one replaced person, in each of the answers
        found.append(bar("averaging", f"no ledger, {times:,}×", _right(mean, truth), VILLAGES, 0.5))
    for epsilon in EPSILONS:
        # A curator gives a recorded answer again: the mean of any number of them is the first.
        frame = release_from(table, SCHEMA, count(by="village", where="bit"), epsilon, seed=55)[0]
        found.append(bar("averaging", "", _right(_by_village(frame) - others, truth), VILLAGES, 0.5, epsilon))
    return found


def on_digits() -> list[Bar]:
    """One noisy bit for each village: textbook noise in doubles, and tacit's noise on integers."""
    import numpy as np

    table, truth, others = _villages(56)
    found = []
    for ours in (False, True):
        for epsilon in EPSILONS:
            if ours:
                frame = release_from(table, SCHEMA, count(by="village", where="bit"), epsilon, seed=57)[0]
                published, scale = _by_village(frame) - others, 2 / epsilon
            else:
                scale = 1 / epsilon
                published = textbook_laplace(truth, noise_scale=scale, draws=Draws(58, f"{epsilon}"))
            told = which_answer(published, [0, 1], noise_scale=scale)
            guess = (published > 0.5).astype(np.float64)
            guess[list(told.exposed)] = np.array(told.learned, dtype=np.float64)
            share = _right(guess, truth)
            name = "" if ours else f"textbook, ε = {epsilon:g}"
            found.append(bar("floating-point noise", name, share, VILLAGES, 0.5, epsilon if ours else None))
    return found


def on_block() -> list[Bar]:
    """Blocks of seven: exact tables reveal everybody; noisy sums reveal which of two ages the seventh person has."""
    import numpy as np
    import pyarrow as pa

    solved = seven().reconstruct()
    found = [bar("people from tables", "exact, suppressed", solved.share, solved.people, 1 / 1008)]
    known = np.array([8, 18, 24, 30, 36, 66])
    truth = Draws(59, "ages").bits(VILLAGES)
    ages = np.column_stack([np.tile(known, (VILLAGES, 1)), np.where(truth == 1, 84, 24)])
    table = pa.table({"village": np.repeat(np.arange(VILLAGES), 7), "age": ages.ravel()})
    schema = {"village": integer(0, VILLAGES - 1), "age": number(0, 125, spacing=1)}
    for epsilon in EPSILONS:
        frame = release_from(table, schema, total_of("age", by="village"), epsilon, seed=60)[0]
        last = _by_village(frame) - known.sum()
        found.append(bar("people from tables", "", _right((last - 24) / 60, truth), VILLAGES, 0.5, epsilon))
    return found


def on_counts() -> list[Bar]:
    """200 people, 800 subset counts: noise of a tenth of √n, and counts from a curator's table, ten times each."""
    import numpy as np
    import pyarrow as pa

    runs = 10
    asked = random_questions(PEOPLE, 4 * PEOPLE, seed=61)
    before, ours = 0.0, dict.fromkeys(EPSILONS, 0.0)
    for run in range(runs):
        draws = Draws(62 + run, "bits")
        bits = draws.bits(PEOPLE)
        answers = asked @ bits + 0.1 * math.sqrt(PEOPLE) * draws.normals(len(asked))
        before += reconstruct(asked, answers).score(bits.tolist()).share / runs
        table = pa.table({"id": np.arange(PEOPLE), "bit": bits == 1})
        schema = {"id": integer(0, PEOPLE - 1), "bit": flag()}
        for epsilon in EPSILONS:
            frame = release_from(table, schema, count(by="id", where="bit"), epsilon, seed=63 + run)[0]
            cells = counts_from(frame, ["id"], (PEOPLE,))
            ours[epsilon] += reconstruct(asked, asked @ cells).score(bits.tolist()).share / runs
    tries = runs * PEOPLE
    return [
        bar("subset counts", "noise √n/10", before, tries, 0.5),
        *(bar("subset counts", "", share, tries, 0.5, epsilon) for epsilon, share in ours.items()),
    ]


K = 5
CLASSES = 20_000
RARE = "HIV"


def _shares() -> Floats:
    import numpy as np

    return np.array(list(DIAGNOSES.values()))


def _coded(values: Any) -> Integers:
    import numpy as np

    at = {name: i for i, name in enumerate(DIAGNOSES)}
    return np.array([at[v] for v in values], dtype=np.int64)


def on_linkage() -> list[Bar]:
    """105,000 people: guess a neighbour's diagnosis from her birth date, sex and postal code."""
    import numpy as np
    import pyarrow as pa

    people = town()
    quasi = ["birth", "sex", "code"]
    ill = _coded(people["diagnosis"].to_pylist())
    n, guess = people.num_rows, max(DIAGNOSES.values())
    raw = link(people.select([*quasi, "diagnosis"]), people, quasi=quasi, sensitive="diagnosis")
    claimed = np.zeros(
        n, dtype=np.int64
    )  # whoever is not found is guessed to have the commonest, which is coded 0
    claimed[list(raw.exposed)] = _coded(raw.learned)
    found = [bar("linkage", "birth date, sex, code", float((claimed == ill).mean()), n, guess)]
    year = people["birth"].to_numpy().astype("datetime64[Y]").astype(np.int64) + 1970
    decade = np.minimum((2025 - year) // 10, 9)
    sex = (np.array(people["sex"].to_pylist()) == "male").astype(np.int64)
    code = np.array(people["code"].to_pylist()).astype(np.int64) - 13000
    codes = int(code.max()) + 1
    shape = (codes, 10, 2, len(DIAGNOSES))
    exact = np.zeros(shape)
    np.add.at(exact, (code, decade, sex, ill), 1)
    best = exact.argmax(axis=3)[code, decade, sex]
    found.append(bar("linkage", "decade, sex, code", float((best == ill).mean()), n, guess))
    table = pa.table({"code": code, "decade": decade, "sex": sex, "ill": ill})
    schema = {
        "code": integer(0, codes - 1),
        "decade": integer(0, 9),
        "sex": integer(0, 1),
        "ill": integer(0, len(DIAGNOSES) - 1),
    }
    keys = ["code", "decade", "sex", "ill"]
    for epsilon in EPSILONS:
        noisy = counts_from(release_from(table, schema, count(by=keys), epsilon, seed=41)[0], keys, shape)
        size = np.maximum(noisy.sum(axis=3, keepdims=True), 1.0)
        guessed = shrunk(noisy, size, _shares(), 8 / epsilon**2).argmax(axis=3)[code, decade, sex]
        found.append(bar("linkage", "", float((guessed == ill).mean()), n, guess, epsilon))
    return found


def on_classes() -> list[Bar]:
    """100,000 people in classes of five: homogeneity, background knowledge, and skewness of one published table."""
    import numpy as np
    import pyarrow as pa

    shares, names = _shares(), list(DIAGNOSES)
    ill = np.searchsorted(np.cumsum(shares)[:-1], Draws(42, "ill").uniforms(CLASSES * K), side="right")
    place = np.repeat(np.arange(CLASSES), K)
    table = pa.table({"place": place, "ill": ill})
    columns = {"place": place, "ill": np.array(names)[ill]}
    roles = {"quasi": ["place"], "sensitive": "ill"}
    exact = np.zeros((CLASSES, len(names)))
    np.add.at(exact, (place, ill), 1)
    one = homogeneity(columns, quasi=["place"], sensitive="ill")
    assert one.details["k"] == K
    # What the attacks claim is part of what the best guess from the classes gets right.
    assert one.score(columns["ill"].tolist()).precision == 1
    assert background(columns, **roles, ruled_out=["none"]).score(columns["ill"].tolist()).precision == 1  # type: ignore[arg-type]
    assert len(skewness(columns, **roles, value=RARE).exposed)  # type: ignore[arg-type]
    found = [b for part in _three(f"exact, k = {K}", exact, place, ill, None) for b in part]
    for epsilon in EPSILONS:
        schema = {"place": integer(0, CLASSES - 1), "ill": integer(0, len(names) - 1)}
        released = release_from(table, schema, count(by=["place", "ill"]), epsilon, seed=43)[0]
        noisy = counts_from(released, ["place", "ill"], (CLASSES, len(names)))
        estimate = shrunk(noisy, float(K), shares, 8 / epsilon**2)
        found += [b for part in _three("", estimate, place, ill, epsilon) for b in part]
    return found


def _three(
    release: str, estimate: Floats, place: Integers, ill: Integers, epsilon: float | None
) -> list[list[Bar]]:
    """The three attacks on one table of estimated counts."""
    import numpy as np

    shares, names = _shares(), list(DIAGNOSES)
    plain = estimate.argmax(axis=1)[place]
    rest = estimate.copy()
    rest[:, 0] = -np.inf
    sick = ill != 0  # the neighbour knows that she is ill
    other = rest.argmax(axis=1)[place]
    rare = names.index(RARE)
    # The hundredth of the people of whom the table says most that they have the rare value.
    suspected = np.argsort(-estimate[:, rare], kind="stable")[: CLASSES // 100]
    inside = np.isin(place, suspected)
    return [
        [bar("homogeneity", release, float((plain == ill).mean()), ill.size, float(shares[0]), epsilon)],
        [
            bar(
                "background knowledge",
                release,
                float((other == ill)[sick].mean()),
                int(sick.sum()),
                float(shares[1:].max() / shares[1:].sum()),
                epsilon,
            )
        ],
        [
            bar(
                "skewness",
                release,
                float((ill == rare)[inside].mean()),
                int(inside.sum()),
                float(shares[rare]),
                epsilon,
            )
        ],
    ]


def on_two_releases() -> list[Bar]:
    """20,000 people in two releases with different age bands; 20 equally likely conditions."""
    import numpy as np
    import pyarrow as pa

    n, codes, values = 20_000, 200, 20
    draws = Draws(44, "two releases")
    age, code, ill = draws.integers(100, n), draws.integers(codes, n), draws.integers(values, n)
    cuts = (np.arange(0, 101, 10), np.array([0, *range(5, 100, 10), 100]))
    bands = [np.searchsorted(c, age, side="right") - 1 for c in cuts]
    releases = [
        {
            "age": np.array([f"{c[i]}-{c[i + 1] - 1}" for i in range(len(c) - 1)])[band],
            "code": code,
            "ill": ill,
        }
        for c, band in zip(cuts, bands, strict=True)
    ]
    people = {"age": age, "code": code}
    guess = 1 / values
    found = []
    exact = []
    for c, band in zip(cuts, bands, strict=True):
        cells = np.zeros((len(c) - 1, codes, values))
        np.add.at(cells, (band, code, ill), 1)
        exact.append(np.log(np.maximum(cells, 1e-9))[band, code])
    for name, some in (("one release", 1), ("two releases", 2)):
        seen = intersection(releases[:some], people, quasi=["age", "code"], sensitive="ill")
        assert seen.score(ill.tolist()).precision == 1
        # Anybody who is not pinned down is guessed to have the commonest of what is left in the classes.
        guessed = sum(exact[:some]).argmax(axis=1)  # type: ignore[union-attr]
        assert (guessed[list(seen.exposed)] == np.array(seen.learned)).all()
        found.append(bar("intersection", name, float((guessed == ill).mean()), n, guess))
    schema = {"age": integer(0, 99), "code": integer(0, codes - 1), "ill": integer(0, values - 1)}
    table = pa.table({"age": age, "code": code, "ill": ill})
    for epsilon in EPSILONS:
        score = np.zeros((n, values))
        for step, (c, band) in enumerate(zip(cuts, bands, strict=True)):
            asked = count(by=[bins("age", [float(x) for x in c]), "code", "ill"])
            frame = release_from(table, schema, asked, epsilon, seed=45 + step)[0]
            noisy = frame["value"].to_numpy().reshape(len(c) - 1, codes, values)
            size = np.maximum(noisy.sum(axis=2, keepdims=True), 1.0)
            score += shrunk(noisy, size, np.full(values, guess), 8 / epsilon**2)[band, code]
        right = float((score.argmax(axis=1) == ill).mean())
        found.append(bar("intersection", "", right, n, guess, epsilon, times=2))
    return found
