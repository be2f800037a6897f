"""Tables with totals: sensitivities, the weights of the noise, exact quantiles, coverage, numbers that add up."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit
from support.neighbours import moves
from tacit import errors
from tacit.curator.choice import calibrated
from tacit.mechanisms import L1, Laplace
from tacit.sources import Schema, category, flag, integer
from tacit.statistics import NoisyTable, consistent_margins, table
from tacit.statistics.totals import combination, mixed_quantile, top_down, whole_quantile

GAPS = Schema({"sex": category(["f", "m"]), "ok": flag(), "age": integer(0, 2)})
FULL = Schema(
    {"sex": category(["f", "m"], missing="f"), "ok": flag(missing=False), "age": integer(0, 2, missing=0)}
)
DOMAIN = [
    {"sex": s, "ok": o, "age": a}
    for s, o, a in itertools.product(["f", "m", None], [True, False], [0, 2, None])
]
UNITS = [
    tacit.rows(),
    tacit.rows(neighbours="replace-one"),
    tacit.people("id", at_most=2),
    tacit.people("id", at_most=2, neighbours="replace-one"),
]
SHARES = {"cells": 4, "sex": 1, "total": 1}


def counted(question, rows, schema):
    """The released numbers from the definition: a row with all its keys is counted once in every block."""
    from support.naive import key

    found = {p.name: {} for p in question.parts}
    for row in rows:
        if None in [key(a, schema, row) for a in question.axes]:
            continue
        for part in question.parts:
            cell = tuple(key(a, schema, row) for a in part.axes)
            found[part.name][cell] = found[part.name].get(cell, 0) + 1
    return found


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("schema", [GAPS, FULL], ids=["gaps", "full"])
@pytest.mark.parametrize("importance", [None, SHARES], ids=["cells", "blocks"])
def test_moves_are_never_above_the_claim_and_attain_it(importance, schema, unit, monkeypatch):
    question = table("sex", "ok", importance=importance).on(schema, unit)
    monkeypatch.setattr("support.neighbours.parts", lambda q, rows, who: counted(q, rows, schema))
    seen = moves(question, unit, DOMAIN)
    for part in question.parts:
        claimed = question.sensitivities[part.name]
        assert seen[part.name] == [claimed.l1, claimed.l2_squared, claimed.linf], part.name
        assert part.exact == claimed.none
    joint = question.sensitivity
    assert all(a <= b for a, b in zip(seen[""], (joint.l1, joint.l2_squared, joint.linf), strict=True))


def test_shares_of_the_price_are_as_declared_and_stored_choices_are_checked():
    frame = pd.DataFrame({"sex": ["f", "m"] * 20, "ok": [True, False] * 20, "age": [0, 1] * 20})
    budget = tacit.Approximate(epsilon=9, delta=1e-5)
    with tacit.Curator(frame, protect=tacit.rows(), schema=GAPS, budget=budget, ledger=None) as curator:
        plan = curator.preview(table("sex", "ok", importance=SHARES), epsilon=1)
        gaussian = curator.preview(table("sex", "ok", importance=SHARES), epsilon=0.01, delta=1e-5)
        with pytest.raises(errors.InvalidParameter, match="within"):
            curator.preview(table("sex", "ok"), within=5)
    planned = plan.releases[0]
    epsilons = {a.parts[0]: a.mechanism.exact_epsilon for a in planned.assignment.noise}
    assert epsilons == {"cells": Fraction(4, 6), "sex": Fraction(1, 6), "total": Fraction(1, 6)}
    assert plan.charge.bound.epsilon == 1
    assert gaussian.charge.bound.epsilon <= 0.01
    assert {type(m).__name__ for m in gaussian.releases[0].assignment.mechanisms} == {"RoundedGaussian"}
    assert calibrated(planned.assignment, planned.question)
    question = table("sex", "ok", importance=SHARES).on(GAPS, tacit.rows(neighbours="replace-one"))
    assert calibrated(planned.assignment, question) is False, "noise for half of the move"


SIZES = (("a", 3), ("b", 4), ("c", 2))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("of", [("a", "b", "c"), ("a", "c"), ("b",), ()])
def test_the_weights_of_the_noise_are_those_of_least_squares(of, exact):
    """Theorem `tables-with-totals`, part (b): impulses through the fit, one by one."""
    laws = [Laplace.for_target(epsilon=e, sensitivity=L1(1)) for e in (0.5, 0.3, 0.2)]
    blocks = [(("a", "b", "c"), laws[0]), (("a", "b"), laws[1]), (("c",), laws[2])]
    if exact:
        blocks.append(((), None))
    sizes = dict(SIZES)
    for which, (columns, law) in enumerate(blocks):
        if law is None:
            continue
        seen = []
        for place in np.ndindex(*(sizes[c] for c in columns)):
            tables = []
            for k, (names, noise) in enumerate(blocks):
                values = np.zeros([sizes[c] for c in names])
                if k == which:
                    values[place] = 1.0
                tables.append(
                    NoisyTable(columns=names, values=values, variance=noise.variance if noise else 0.0)
                )
            whole = consistent_margins(tables)[0]
            gone = tuple(i for i, c in enumerate("abc") if c not in of)
            seen.append(float(np.ravel(whole.sum(axis=gone))[0]))
        _, weights, counts = combination(SIZES, tuple(blocks), of)[which]
        told = sorted(w for w, n in zip(weights, counts, strict=True) for _ in range(int(n)))
        np.testing.assert_allclose(told, sorted(seen), atol=1e-12)


@pytest.mark.parametrize(("scale", "terms"), [(1.0, 1), (1.0, 20), (0.3, 7), (5.0, 12), (2.0, 200)])
def test_whole_quantiles_are_the_least_ones(scale, terms):
    """By convolution of one law after the other."""
    q, reach = math.exp(-1 / scale), int(60 * scale) + 60
    one = q ** np.abs(np.arange(-reach, reach + 1))
    one /= one.sum()
    law = np.ones(1)
    for _ in range(terms):
        law = np.convolve(law, one)
        if law.size > 20_001:
            law = law[(law.size - 20_001) // 2 : -((law.size - 20_001) // 2)]
    middle = law.size // 2
    for miss in (0.05, 0.01):
        t = whole_quantile(scale, terms, miss)
        assert law[middle - t : middle + t + 1].sum() >= 1 - miss - 1e-9
        assert t == 0 or law[middle - t + 1 : middle + t].sum() < 1 - miss + 1e-9


def test_mixed_quantiles_hold_and_are_not_wide():
    rng = np.random.default_rng(3)
    laws = ((2.0, 0.7, 1), (2.0, 0.05, 30), (4.0, 0.2, 5))
    drawn = np.zeros(200_000)
    for scale, weight, count in laws:
        p = -math.expm1(-1 / scale)
        for _ in range(count):
            drawn += weight * (rng.geometric(p, drawn.size) - rng.geometric(p, drawn.size))
    for miss in (0.05, 0.01):
        t = mixed_quantile(laws, miss)
        assert (np.abs(drawn) > t).mean() < miss
        assert (np.abs(drawn) > t - 1.2).mean() > miss, "no more than twice the smoothing too wide"


def test_displayed_numbers_are_whole_and_add_up_and_valid_ones_stay():
    rng = np.random.default_rng(5)
    for shape in [(4,), (3, 5), (2, 3, 4)]:
        counts = rng.poisson(0.7, shape)
        np.testing.assert_array_equal(top_down(counts.astype(float)), counts)
        noisy = counts + rng.laplace(0, 3, shape)
        shown = top_down(noisy)
        assert (shown >= 0).all()
        assert shown.sum() == max(round(noisy.sum()), 0)
    assert (top_down(np.full((2, 2), -3.0)) == 0).all()


@pytest.mark.parametrize("importance", [None, {"cells": 0.55, "sex": 0.15, "age": 0.15, "total": 0.15}])
def test_two_hundred_releases_cover_every_number(importance):
    """Through `release()`: 12 x 200 numbers; the misses of one table of numbers within four standard deviations."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], 90), "age": rng.choice([0, 1, 2], 90, p=[0.8, 0.19, 0.01])}
    )
    truth = {(s, a): 0 for s in ("f", "m", "all") for a in ("0", "1", "2", "all")}
    for s, a in zip(frame.sex, frame.age, strict=True):
        for cell in itertools.product((s, "all"), (str(a), "all")):
            truth[cell] += 1
    schema = {"sex": category(["f", "m"]), "age": integer(0, 2)}
    asked, held, runs = table("sex", "age", importance=importance), 0, 200
    budget = tacit.Pure(epsilon=1000)
    with tacit.Curator(frame, protect=tacit.rows(), schema=schema, budget=budget, ledger=None) as curator:
        for k in range(runs):
            found = curator.release(tacit.query(asked, name=f"t{k}", epsilon=1)).table
            cells = {(s, a): v for s, a, v in zip(found.sex, found.age, found.value, strict=True)}
            assert (found.value >= 0).all()
            assert cells["all", "all"] == cells["f", "all"] + cells["m", "all"]
            assert cells["f", "all"] == sum(cells["f", a] for a in "012")
            assert cells["all", "1"] == cells["f", "1"] + cells["m", "1"]
            true = np.array([truth[s, a] for s, a in zip(found.sex, found.age, strict=True)])
            held += int(((found.low <= true) & (true <= found.high)).sum())
    assert held / (12 * runs) >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / (4 * runs)), (
        "about four independent numbers a run"
    )


def test_a_number_of_rows_that_nobody_moves_is_told_without_noise():
    frame = pd.DataFrame({"sex": ["f", "m", "m"] * 30, "ok": [True, False, False] * 30, "age": [0] * 90})
    unit = tacit.rows(neighbours="replace-one")
    with tacit.Curator(
        frame, protect=unit, schema=FULL, budget=tacit.Pure(epsilon=5), ledger=None
    ) as curator:
        found = curator.release(table("sex", "ok"), epsilon=0.1).table
        all_rows = found[(found.sex == "all") & (found.ok == "all")].iloc[0]
        assert (all_rows.value, all_rows.low, all_rows.high) == (90, 90, 90)
        assert list(curator.release(table("sex", totals="none"), epsilon=0.1).table.sex) == ["f", "m"]


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda: table([]), errors.EmptyComposition, "columns"),
        (lambda: table("sex", "sex"), errors.InvalidParameter, "different"),
        (lambda: table("sex", totals="some"), errors.UnknownName, "totals"),
        (lambda: table("sex", importance={"total": 1}), errors.InvalidParameter, "cells"),
        (lambda: table("sex", importance={"cells": 1, "town": 1}), errors.UnknownName, "importance"),
        (lambda: table("sex", importance={"cells": 0}), errors.InvalidParameter, "positive"),
        (lambda: table("sex", importance=3), errors.InvalidParameter, "weights by name"),
        (lambda: table(["a", "b", "c", "d", "e", "f", "g"]), errors.InvalidParameter, "one to 6"),
        (
            lambda: table("town").on(Schema({"town": category()}), tacit.rows()),
            errors.InvalidParameter,
            "declared keys",
        ),
        (
            lambda: table(["x", "y"]).on(Schema({"x": integer(0, 1999), "y": integer(0, 999)}), tacit.rows()),
            errors.TooManyCells,
            "the limit is",
        ),
    ],
)
def test_what_is_refused(ask, error, words):
    with pytest.raises(error, match=words):
        ask()


def test_public_totals_are_refused_where_nothing_is_taken_from_them():
    frame = pd.DataFrame({"sex": ["f", "m"] * 9, "ok": [True] * 18, "age": [0] * 18})
    public = tacit.public_totals(total=18)
    curator = tacit.Curator(
        frame, protect=tacit.rows(), schema=GAPS, budget=tacit.Pure(epsilon=5), ledger=None
    )
    with curator, pytest.raises(errors.InvalidParameter, match="counts, margins and hierarchies"):
        curator.preview(tacit.query(table("sex"), public=public, epsilon=1))


def test_a_price_whose_noise_has_no_variance_in_floats_gives_the_counts():
    data = pd.DataFrame({"a": ["x", "y"] * 10, "b": ["u"] * 20})
    schema = {"a": category(["x", "y"]), "b": category(["u", "v"])}
    with tacit.Curator(data, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=10**4)) as held:
        found = held.release(table("a", "b"), epsilon=2000).table
    assert found["value"].max() == 20
