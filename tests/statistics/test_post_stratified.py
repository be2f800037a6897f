"""Theorem `post-stratified-sums`: neighbours of tables through the engine, R's estimates, coverage, refusals."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
import tacit.statistics as ask
from tacit.errors import InvalidParameter, TacitError, UnknownName
from tacit.guarantees import group_of, people, rows
from tacit.noise import SeededSource
from tacit.sources import Schema, category, integer, number, open_table
from tacit.statistics.post_stratified import STEPS

SCHEMA = Schema({"h": category(["a", "b"]), "d": category(["p", "q"]), "x": integer(0, 3)})
MEMBERS = {"h": {"a": 40, "b": 5}}
ASKED = {
    "mean by": ask.post_stratified("x", by="d", standard=MEMBERS, largest_weight=4),
    "mean": ask.post_stratified("x", standard=MEMBERS, largest_weight=4),
    "share": ask.post_stratified(of="x > 1", by="d", standard=MEMBERS, largest_weight=4),
    "mean where": ask.post_stratified("x", where="d = 'p'", standard=MEMBERS, largest_weight=4),
}
Row = tuple[str, str, int | None]


def released(question: Any, table: Sequence[Row]) -> list[Fraction]:
    """The statistic's whole numbers from counts that are made here, row by row."""
    statistic = question.statistic
    strata, groups = ["a", "b"], ["p", "q"] if statistic.by else [None]
    levels = question.details["levels"]
    first, second = np.zeros((len(groups), 2), dtype=object), np.zeros((len(groups), 2), dtype=object)
    for h, d, x in table:
        if x is None or (statistic.where is not None and d != "p"):
            continue
        place = groups.index(d) if statistic.by else 0, strata.index(h)
        if statistic.of is None:
            first[place] += 1
            second[place] += x * levels // 3
        else:
            (second if x > 1 else first)[place] += 1
    shape = (2, 2) if statistic.by else (2,)
    sums = dict(zip(statistic._sums(levels), (first.reshape(shape), second.reshape(shape)), strict=True))
    counted = np.array([sum(h == s for h, _, _ in table) for s in strata], dtype=object)
    cells = [SimpleNamespace(values=sums), SimpleNamespace(values={"rows": counted})]
    made = statistic.integers(question, cells)
    return [Fraction(int(v)) for name in ("below", "above") for v in np.ravel(made[name])]


ROWS: list[Row] = [(h, d, x) for h in "ab" for d in "pq" for x in (0, 1, 3, None)]


@pytest.mark.parametrize("name", ASKED)
def test_neighbours_move_the_sums_by_at_most_two_rows(name: str) -> None:
    """Every table of up to three rows on top of several others; one more row, and one in another's place."""
    claims = {}
    for kind in ("add-or-remove", "replace-one"):
        claims[kind] = ASKED[name].on(SCHEMA, rows(neighbours=kind)).sensitivity
    question = ASKED[name].on(SCHEMA, rows())
    largest = {kind: [Fraction(0)] * 3 for kind in claims}
    bases = [
        [],
        [("a", "p", 3)] * 2,
        [("a", "p", 3), ("a", "q", 0)] * 3,
        [("b", "p", 1)] * 4 + [("a", "q", 3)] * 30,
        [("a", "p", 3)] * 10,
    ]
    for base in bases:
        for size in range(2):
            for more in itertools.combinations_with_replacement(ROWS, size):
                here = released(question, [*base, *more])
                others = [released(question, [*base, *more, row]) for row in ROWS]
                moves = {
                    "add-or-remove": [(here, o) for o in others],
                    "replace-one": list(itertools.combinations(others, 2)),
                }
                for kind, pairs in moves.items():
                    for one, other in pairs:
                        d = [abs(a - b) for a, b in zip(one, other, strict=True)]
                        norms = (sum(d), sum(v * v for v in d), max(d))
                        largest[kind] = [max(a, b) for a, b in zip(largest[kind], norms, strict=True)]
    for kind, claim in claims.items():
        seen = largest[kind]
        assert seen[0] <= claim.l1
        assert seen[1] <= claim.l2_squared
        assert seen[2] <= claim.linf
    # Ten rows of the largest weight, and one more: those that stay move by nearly as much as the one that comes.
    assert largest["add-or-remove"][0] > 1.8 * STEPS
    assert largest["add-or-remove"][1] > (1.8 * STEPS) ** 2 / 2


def test_rounding_is_paid_for_once_a_number() -> None:
    for name, count in (("mean", 2), ("mean by", 4)):
        claim = ASKED[name].on(SCHEMA, rows()).sensitivity
        assert claim.l1 == 2 * STEPS + count
        assert claim.linf == STEPS + 1
        assert claim.l2_squared >= (2**0.5 * STEPS) ** 2
    unit = people("id", at_most=3)
    several = ASKED["mean"].on(SCHEMA, unit).sensitivity
    assert several.l1 == 6 * STEPS + 2
    assert ASKED["mean"].on(SCHEMA, group_of(rows(), size=3)).sensitivity == several
    replaced = ASKED["mean"].on(SCHEMA, rows(neighbours="replace-one")).sensitivity
    assert replaced.l1 == 4 * STEPS + 2


# R 4.2.2, survey 4.1-1: svyby(~y, ~strata, postStratify(svydesign(ids = ~1, weights = ~1), ~g, c(34, 26)), svymean)
WITH_R = [27.324567522321427, 34.720720563616069, 25.341796875]
REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "survey.json").read_text())


def test_without_noise_it_is_rs_post_stratified_mean() -> None:
    schema = Schema(
        {
            "y": number(0, 100, spacing=Fraction(1, 256)),
            "g": category(["f", "m"]),
            "strata": category(["a", "b", "c"]),
        }
    )
    asked = ask.post_stratified("y", by="strata", standard={"g": {"f": 34, "m": 26}}, largest_weight=10)
    question = asked.on(schema, rows())
    with open_table(pa.table(REFERENCE["rows"]), schema=schema, unit=rows()) as table:
        (found,) = ask.read(table, [question])
    assert np.ravel(asked.assemble(question, found)) == pytest.approx(WITH_R, rel=1e-8)


def test_fifty_releases_cover_the_estimate_of_the_table() -> None:
    random = np.random.default_rng(3)
    n = 4000
    h = random.choice(["a", "b"], n, p=[0.8, 0.2])
    x = random.integers(0, 2, n) + 2 * (h == "b")
    frame = pa.table({"h": h, "d": random.choice(["p", "q"], n), "x": x})
    members = {"h": {"a": 20_000, "b": 20_000}}
    asked = ask.post_stratified("x", by="d", standard=members, largest_weight=30)
    weight = np.where(h == "a", 20_000 / (h == "a").sum(), 20_000 / (h == "b").sum())
    d = np.array(frame["d"])
    truth = [(weight * x)[d == k].sum() / weight[d == k].sum() for k in "pq"]
    inside = 0
    for seed in range(50):
        with tacit.Curator(
            frame, protect=tacit.rows(), schema={n: SCHEMA[n] for n in ("h", "d", "x")}, ledger=None,
            budget=tacit.Pure(epsilon=1), source=SeededSource(seed=seed),
        ) as curator:  # fmt: skip
            preview = curator.preview(asked, epsilon=1)
            found = curator.release(asked, epsilon=1)
            assert curator.spent == preview.charged.bound
            inside += int(((found.table["low"] <= truth) & (found.table["high"] >= truth)).sum())
    assert inside >= 90
    assert "public" in str(found.guarantee)
    # Without the weights the estimate is far off.
    assert abs(x[d == "p"].mean() - truth[0]) > 0.4


@pytest.mark.parametrize(
    ("words", "error", "match"),
    [
        ({"standard": {"h": {"a": 1}}}, InvalidParameter, "each declared key"),
        ({"standard": {"h": {"a": 1, "b": 1, "c": 1}}}, UnknownName, "key of"),
        ({"standard": {"d": {"p": 1, "q": 1}}, "by": "d"}, InvalidParameter, "not in"),
        ({"largest_weight": 0}, InvalidParameter, "largest_weight"),
        ({"of": "x > 1"}, InvalidParameter, "not both"),
        ({"column": None}, InvalidParameter, "not both"),
        ({"column": "h"}, TacitError, "h"),
    ],
)
def test_what_is_refused(words: dict[str, Any], error: type[Exception], match: str) -> None:
    given: dict[str, Any] = {"column": "x", "standard": MEMBERS, "largest_weight": 4} | words
    with pytest.raises(error, match=match):
        ask.post_stratified(**given).on(SCHEMA, rows())


def test_previews_know_the_weights_and_shares_have_tables() -> None:
    """What a preview expects is what a release tells, for a weight that is far from one and a range that is none."""
    frame = pa.table({"h": ["a", "b"] * 400, "d": ["p", "q", "q", "p"] * 200, "x": [0, 3] * 400})
    with tacit.Curator(
        frame, protect=tacit.rows(), schema={n: SCHEMA[n] for n in ("h", "d", "x")}, ledger=None,
        budget=tacit.Pure(epsilon=3), source=SeededSource(seed=1),
    ) as curator:  # fmt: skip
        for words in ({"column": "x"}, {"of": "x > 1"}):
            asked = ask.post_stratified(
                **words, by="d", standard={"h": {"a": 4000, "b": 4000}}, largest_weight=20
            )
            within = curator.preview(tacit.query(asked, rows=400), epsilon=1).releases[0].expected.within
            table = curator.release(tacit.query(asked, rows=400), epsilon=1).table
            assert within is not None
            assert ((table["high"] - table["low"]) / 2).mean() == pytest.approx(within, rel=0.1)


def test_sampling_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="sampling"):
        ASKED["mean"].drawn(SCHEMA, rows())
