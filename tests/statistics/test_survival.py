"""Survival curves: the sensitivity from the definition, the estimator against the textbook's, coverage of releases."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import errors
from tacit.sources import Schema, category, flag, integer, number
from tacit.statistics.life_tables import LifeTable, compared, largest_quantile

SCHEMA = Schema(
    {"time": integer(0, 6), "died": flag(), "arm": category(["a", "b"]), "how": category(["alive", "x", "y"])}
)
ASKED = tacit.statistics.survival("time", "died", [0, 2, 4], by="arm")
CAUSES = tacit.statistics.survival("time", "how", [0, 3, 6], censored="alive")


def cells_of(question, rows):
    """The definition: who is counted where."""
    statistic, edges = question.statistic, question.details["edges"]
    found = {}
    for row in rows:
        time, what = row["time"], row[statistic.event]
        group = tuple(row[b] for b in statistic.by)
        if time is None or what is None or None in group:
            continue
        time = min(max(time, 0), 6)
        k = sum(time >= e for e in edges) - 1
        cell = ("beyond", *group) if k == len(edges) - 1 else (k, what, *group)
        found[cell] = found.get(cell, 0) + 1
    return found


DOMAIN = [
    {"time": t, "died": d, "how": h, "arm": a}
    for t, (d, h), a in itertools.product(
        [0, 1, 2, 5, 9, None], [(True, "x"), (False, "alive"), (None, None), (True, "y")], ["a", "b", None]
    )
]


@pytest.mark.parametrize("asked", [ASKED, CAUSES], ids=["groups", "causes"])
@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace-one"])
def test_a_row_moves_the_table_as_far_as_the_theorem_says(asked, neighbours):
    """Theorem `survival-intervals`, part (a): never above, and attained, together and part by part."""
    question = asked.on(SCHEMA, tacit.rows(neighbours=neighbours))
    tables = [cells_of(question, [row]) for row in DOMAIN]
    others = [{}] if neighbours == "add-or-remove" else tables
    for part, claimed in [("", question.sensitivity), *question.sensitivities.items()]:
        best = [0, 0, 0]
        for one, two in itertools.product(tables, others):
            keys = [c for c in {*one, *two} if not part or (c[0] == "beyond") == (part == "beyond")]
            move = [abs(one.get(c, 0) - two.get(c, 0)) for c in keys]
            size = sum(move), sum(x * x for x in move), max(move, default=0)
            best = [max(a, b) for a, b in zip(best, size, strict=True)]
        assert best == [claimed.l1, claimed.l2_squared, claimed.linf], part


@pytest.mark.parametrize("asked", [ASKED, CAUSES], ids=["groups", "causes"])
def test_the_engine_counts_what_the_definition_counts(asked):
    frame = pd.DataFrame(DOMAIN * 2)
    with tacit.Curator(
        frame, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=1e9), ledger=None
    ) as curator:
        release = curator.release(asked, epsilon=1e6)  # no noise to speak of
    question = release.planned.question
    expected = cells_of(question, DOMAIN * 2)
    labels = [a.labels for a in question.axes]
    held, beyond = (np.asarray(release.noisy.parts[n]) for n in ("people", "beyond"))
    for place in np.ndindex(held.shape):
        *group, k, what = place
        key = (k, labels[-1][what], *(labels[i][g] for i, g in enumerate(group)))
        assert held[place] == expected.get(key, 0)
    for group in np.ndindex(beyond.shape):
        key = ("beyond", *(labels[i][g] for i, g in enumerate(group)))
        assert beyond[group] == expected.get(key, 0)


def exact(events, censored, beyond, edges=None, variance=0.0):
    events = np.atleast_2d(np.asarray(events, dtype=float))
    edges = np.arange(events.shape[1] + 1.0) if edges is None else np.asarray(edges, dtype=float)
    return LifeTable(
        events=events, censored=np.asarray(censored, dtype=float), beyond=float(beyond), edges=edges,
        noise_variance=variance, within=lambda count, level: 0.0,
    )  # fmt: skip


def test_without_noise_it_is_kaplan_and_meier_with_greenwoods_variance():
    """Nobody is censored inside of a bin with events: the actuarial curve is the product-limit one."""
    table = exact([20, 0, 30, 25, 0, 10], [0, 15, 0, 0, 40, 0], 60)
    alive, at_risk, product, greenwood = 200, [], [], []
    s = g = 0.0
    s = 1.0
    for e, c in zip([20, 0, 30, 25, 0, 10], [0, 15, 0, 0, 40, 0], strict=True):
        at_risk.append(alive)
        s *= 1 - e / alive
        g += e / (alive * (alive - e))
        product.append(s)
        greenwood.append(g)
        alive -= e + c
    (value, low, high), (_, all_low, all_high) = table.survival(0.95)
    np.testing.assert_allclose(value, product, rtol=1e-12)
    _, slopes = table._losses(6)
    np.testing.assert_allclose(np.diag(table._spread(slopes)), greenwood, rtol=1e-9)
    np.testing.assert_array_equal(table.at_risk, at_risk)
    assert (all_low <= low).all()
    assert (all_high >= high).all()


def test_derivatives_are_those_of_differences():
    """The covariance is made of derivatives of S, of incidence and of the comparison; here by small differences."""
    one = exact([[20, 9, 30], [5, 7, 3]], [4, 5, 6], 60)
    cells = one.cells

    def moved(by):
        events = (cells + by)[:6].reshape(2, 3)
        return exact(events, (cells + by)[6:9], (cells + by)[9])

    _, slopes = one._losses(3)
    h = 1e-5
    for i in range(cells.size):
        step = np.zeros(cells.size)
        step[i] = h
        change = (moved(step)._losses(3)[0] - moved(-step)._losses(3)[0]) / (2 * h)
        np.testing.assert_allclose(slopes[:, i], change, atol=1e-8)
        middle = (moved(step)._middle(3)[0] - moved(-step)._middle(3)[0]) / (2 * h)
        np.testing.assert_allclose(one._middle(3)[1][:, i], middle, atol=1e-8)
    np.testing.assert_allclose(
        slopes @ cells, 0.0, atol=1e-12
    )  # Euler: multiplying all cells changes nothing
    incidence = [one.incidence(k, 0.95)[0] for k in range(2)]
    survival = one.survival(0.95)[0][0]
    np.testing.assert_allclose(incidence[0] + incidence[1] + survival, 1.0, rtol=1e-12)


def test_noise_widens_every_interval_and_ends_the_curve():
    quiet, loud = (exact([20, 9, 30], [4, 5, 6], 60, variance=v) for v in (0.0, 30.0))
    for a, b in [(quiet.survival(0.95)[0], loud.survival(0.95)[0]), (quiet.hazard(0.95), loud.hazard(0.95))]:
        assert (b[1] < a[1]).all()
        assert (b[2] > a[2]).all()
    slopes = loud._losses(3)[1]
    both = (slopes**2 * (loud.cells + 30.0)).sum(axis=1)
    assert (loud._std(slopes) ** 2 >= both).all(), "never below sampling and noise together"
    assert quiet.end == 3
    assert exact([20, 9, 30], [4, 5, 6], 1, variance=200.0).end == 0
    assert exact([3, 1], [2, 2], 1).end == 0, "fewer than ten at risk"
    assert exact([20, 60], [0, 0], 0).end == 1, "nobody stays"
    nothing = exact([20, 60], [0, 0], 0).restricted_mean(2, 0.95)
    assert all(map(math.isnan, nothing))


def test_median_and_restricted_mean_of_a_straight_line():
    table = exact([100, 100, 100, 100], [0] * 4, 100, edges=[0, 1, 2, 3, 4])
    middle, low, high = table.median(0.95)
    assert middle == pytest.approx(2.5)
    assert low == 2.0
    assert high == 3.0
    mean, lower, upper = table.restricted_mean(4, 0.95)
    assert mean == pytest.approx(4 * 0.6)
    bent = 0.4  # a bin's fall, 0.2, times its width, halved, four times
    assert upper - mean == pytest.approx(mean - lower)
    assert upper - mean > bent
    never = exact([1, 1], [0, 0], 1000).median(0.95)
    assert math.isnan(never[0])
    assert never[2] == math.inf


def test_two_groups_are_compared_by_their_hazards():
    one, two = exact([20, 16, 13], [0, 0, 0], 51), exact([36, 23, 15], [0, 0, 0], 26)
    told = compared(one, two, 0.95)
    ratio, low, high = told["hazard ratio"]
    assert low < ratio < high < 1
    assert ratio == pytest.approx(0.5, abs=0.01), "hazards of 0.2 and 0.36 a bin, by -log of what stays"
    back = compared(two, one, 0.95)
    assert back["hazard ratio"][0] == pytest.approx(1 / ratio)
    assert back["log-rank z"][0] == pytest.approx(-told["log-rank z"][0])
    assert told["log-rank z"][2] < 0
    alike = compared(one, one, 0.95)
    assert alike["log-rank z"][0] == pytest.approx(0.0, abs=1e-12)


def test_the_largest_of_independent_and_of_equal_errors():
    assert largest_quantile(np.eye(5), np.ones(5), 0.95) == pytest.approx(2.569, abs=0.03)
    assert largest_quantile(np.ones((5, 5)), np.ones(5), 0.95) == pytest.approx(1.96, abs=0.03)


def test_fifty_releases_cover_the_population():
    """Through `release()`: each interval and each band, with what 50 runs allow (99.99% of binomial draws)."""
    rng = np.random.default_rng(7)
    edges = [3.0 * k for k in range(13)]
    schema = {"months": tacit.number(0, 40), "died": tacit.flag()}
    asked = tacit.statistics.survival("months", "died", edges, horizon=18.0)
    truth = np.exp(-((np.array(edges[1:]) / 13.5) ** 1.32))
    held = bands = published = 0
    for _ in range(50):
        time, end = 13.5 * rng.weibull(1.32, 228), rng.uniform(6, 60, 228)
        frame = pd.DataFrame({"months": np.minimum(time, end), "died": time <= end})
        with tacit.Curator(
            frame, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=1), ledger=None
        ) as curator:
            table = curator.release(asked, epsilon=1).table
        for name in ("survival", "survival, all at once"):
            part = table[table.measure == name]
            there = part.value.notna().to_numpy()
            inside = ((part.low <= truth) & (truth <= part.high)).to_numpy()[there]
            if name == "survival":
                held, published = held + inside.sum(), published + there.sum()
            else:
                bands += bool(inside.all())
        assert (table[table.measure == "survival"].value.dropna().diff().dropna() <= 0).all()
    assert published > 400
    assert held / published > 0.91
    assert bands >= 41


REFUSALS = [
    (lambda: tacit.statistics.survival("time", "time", 3), errors.InvalidParameter, "another column"),
    (
        lambda: tacit.statistics.survival("time", "died", 3, by="died"),
        errors.InvalidParameter,
        "another column",
    ),
    (lambda: tacit.statistics.survival("time", "died", 0), errors.InvalidParameter, "between 1 and"),
    (lambda: tacit.statistics.survival("time", "died", 401), errors.InvalidParameter, "between 1 and"),
    (
        lambda: tacit.statistics.survival("time", "died", [3]).on(SCHEMA, tacit.rows()),
        errors.InvalidParameter,
        "between 1",
    ),
    (
        lambda: tacit.statistics.survival("time", "died", [1, 3]).on(SCHEMA, tacit.rows()),
        errors.InvalidParameter,
        "delayed",
    ),
    (
        lambda: tacit.statistics.survival("time", "died", [0, 3, 3]).on(SCHEMA, tacit.rows()),
        errors.InvalidParameter,
        "increase",
    ),
    (
        lambda: tacit.statistics.survival("time", "died", [0, 7]).on(SCHEMA, tacit.rows()),
        errors.InvalidParameter,
        "end within",
    ),
    (lambda: tacit.statistics.survival("arm", "died", 3).on(SCHEMA, tacit.rows()), errors.WrongType, "arm"),
    (
        lambda: tacit.statistics.survival("time", "how", 3).on(SCHEMA, tacit.rows()),
        errors.InvalidParameter,
        "censored",
    ),
    (
        lambda: tacit.statistics.survival("time", "how", 3, censored="dead").on(SCHEMA, tacit.rows()),
        errors.InvalidParameter,
        "one of the keys",
    ),
    (
        lambda: tacit.statistics.survival("time", "died", 3, censored="alive").on(SCHEMA, tacit.rows()),
        errors.InvalidParameter,
        "left out for a flag",
    ),
    (
        lambda: tacit.statistics.survival("time", "word", 3).on(
            Schema({**SCHEMA, "word": category()}), tacit.rows()
        ),
        errors.WrongType,
        "a flag",
    ),
    (
        lambda: tacit.statistics.survival("time", "died", 3, by="word").on(
            Schema({**SCHEMA, "word": category()}), tacit.rows()
        ),
        errors.InvalidParameter,
        "keys are declared",
    ),
    (
        lambda: tacit.statistics.survival("time", "died", [0, 2, 4], horizon=3).on(SCHEMA, tacit.rows()),
        errors.InvalidParameter,
        "an edge",
    ),
    (
        lambda: tacit.statistics.survival("time", "died", 3).on(SCHEMA, tacit.people("id", at_most=2)),
        errors.InvalidParameter,
        "one row a person",
    ),
]


@pytest.mark.parametrize(("ask", "error", "words"), REFUSALS)
def test_what_is_refused(ask, error, words):
    with pytest.raises(error, match=words):
        ask()


def test_an_event_coded_as_text_counts_nowhere_unless_it_reads_as_yes_or_no():
    """As the schema says: "2" and "dead" are no flag, and their rows are missing; nothing is raised."""
    frame = pd.DataFrame({"t": [1.0] * 30, "e": ["1"] * 10 + ["0"] * 10 + ["dead"] * 5 + ["2"] * 5})
    with tacit.Curator(
        frame, protect=tacit.rows(), schema={"t": number(0, 4), "e": flag()}, budget=tacit.Pure(epsilon=1e9),
        ledger=None,
    ) as curator:  # fmt: skip
        found = curator.release(tacit.statistics.survival("t", "e", [0, 2, 4]), epsilon=1e6).table
    assert found.value[0] == 20
