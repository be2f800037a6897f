"""Unknown keys, quantiles and clamping bounds through the curator: names that may be told, intervals that hold."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.curator.selected import selected_intervals
from tacit.errors import InvalidParameter
from tacit.mechanisms.partition import GaussianSelection, OptimalSelection
from tacit.noise.source import SeededSource

LEVEL = Fraction(95, 100)


@pytest.mark.parametrize(
    "selection",
    [
        OptimalSelection(epsilon=Fraction(1, 2), delta=Fraction(1, 10**5)),
        OptimalSelection(epsilon=Fraction(1), delta=Fraction(1, 10**4), keys=3),
        GaussianSelection.for_target(epsilon=Fraction(1), delta=Fraction(1, 10**5), keys=12),
    ],
    ids=["one key", "three keys", "gaussian"],
)
def test_counts_of_named_keys_are_covered_given_that_they_are_named(selection: Any) -> None:
    """For every support, small ones too: of the releases in which the key is named, 94% hold it.

    40,000 releases for each support; where at least 400 name the key. With the fixed seed nothing is left to luck.
    """
    checked = 0
    for support in (1, 2, 3, 5, 8, 12, 18, 25, 40, 70, 150, 1000):
        kept = selection.release_counts(np.full(40_000, support), source=SeededSource(seed=support))
        counts = np.asarray(kept.counts)[kept.mask]
        if counts.size < 400:
            continue
        low, high = selected_intervals(selection, counts, 0.025)
        assert ((low <= support) & (support <= high)).mean() >= 0.94, support
        checked += 1
    assert checked >= 3
    # Where a key is named for certain the interval is that of the noise, no wider.
    low, high = selected_intervals(selection, np.array([10**6]), 0.025)
    assert (high - low)[0] / 2 <= selection.error_quantile(LEVEL) + 1


def test_unknown_keys_need_a_delta_and_name_only_what_is_common(make: Any) -> None:
    curator = make(tacit.Approximate(epsilon=4.0, delta=1e-4))
    with pytest.raises(InvalidParameter, match="delta must be given"):
        curator.release(tacit.count(by="town"), epsilon=0.5)
    answer = curator.release(tacit.count(by="town", of="people"), epsilon=1.0, delta=1e-6)
    assert set(answer.table["town"]) <= {"a", "b", "c", "d"}
    assert {"a", "b"} <= set(answer.table["town"])
    assert "d" not in set(answer.table["town"])  # two rows of 2,000
    assert list(answer.table["town"]) == sorted(answer.table["town"])
    mean = curator.release(tacit.mean("income", by="town"), epsilon=2.0, delta=1e-6)
    assert (mean.table["low"] <= mean.table["value"]).all()
    assert float(curator.spent.epsilon) == pytest.approx(3.0)
    assert float(curator.spent.delta) == pytest.approx(2e-6)
    again = curator.release(tacit.count(by="town", of="people"), epsilon=1.0, delta=1e-6)
    assert again.replayed
    assert again.table.equals(answer.table)


@pytest.mark.parametrize(
    "asked", [tacit.count(by="town"), tacit.sum("income", by="town")], ids=["count", "sum"]
)
def test_the_order_in_which_an_engine_finds_keys_changes_nothing(make: Any, asked: Any) -> None:
    """Two tables with the same rows in opposite order: under the same source the same names and numbers, sorted."""
    towns = [f"t{i % 37}" for i in range(4000)]
    found = []
    for order in (slice(None), slice(None, None, -1)):
        table = pa.table({"town": towns[order], "income": [float(i % 37) for i in range(4000)][order]})
        curator = make(
            tacit.Approximate(epsilon=4.0, delta=1e-4), data=table, protect=tacit.rows(),
            schema={"town": tacit.category(), "income": tacit.number(0, 64)}, source=SeededSource(seed=11), ledger=None,
        )  # fmt: skip
        with curator:
            found.append(curator.release(asked, epsilon=1.0, delta=1e-6).table)
    assert list(found[0]["town"]) == sorted(set(towns))
    assert found[0].equals(found[1])


@pytest.mark.parametrize(
    "unit", [tacit.rows(), tacit.rows(neighbours="replace-one"), tacit.people("id", at_most=2)]
)
@pytest.mark.parametrize("paid", [{"epsilon": 0.8}, {"epsilon": 0.8, "delta": 1e-6}])
def test_quantiles_cover_and_stay_in_order(make: Any, unit: Any, paid: Any) -> None:
    """300 releases of five quantiles: each interval holds the true quantile in at least 94% of them.

    If it held in exactly 95% of all releases, fewer than 270 of 300 would have a chance below 1e-4; the seed is fixed.
    """
    random = np.random.default_rng(5)
    values = random.lognormal(3, 0.6, 4000)
    table = pa.table({"x": values, "id": np.arange(4000) // 2})
    curator = make(
        tacit.Approximate(epsilon=10.0, delta=1e-4),
        protect=unit,
        data=table,
        schema={"x": tacit.number(0, 200)},
    )
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    planned = curator.preview(tacit.quantiles("x", at=shares, resolution=512), **paid).releases[0]
    from tacit.statistics import read_cells

    cells = read_cells(curator._open(), [planned.question], key=curator.ledger.bounding_key)[0]
    ordered = np.sort(np.clip(values, 0, 200))
    truth = [ordered[int(np.ceil(q * 4000)) - 1] for q in shares]
    hits = np.zeros(5)
    for seed in range(300):
        noisy = planned.assignment.run(planned.question, cells, source=SeededSource(seed=seed))
        found = planned.assignment.read(planned.question, noisy, LEVEL)
        hits += (found.low <= truth) & (truth <= found.high)
        assert (np.diff(found.value) >= 0).all()
        assert (found.low <= found.value).all()
        assert (found.value <= found.high).all()
    assert hits.min() >= 282
    assert planned.expected.within is not None


def test_quantiles_of_dates_are_dates(make: Any) -> None:
    import datetime

    days = np.datetime64("2020-01-01") + np.arange(3000) % 366
    curator = make(
        data=pa.table({"d": days, "person_id": np.arange(3000)}), protect=tacit.rows(),
        schema={"d": tacit.date("2020-01-01", "2020-12-31")},
    )  # fmt: skip
    answer = curator.release(tacit.median("d"), epsilon=0.9)
    assert abs(answer.table["value"][0] - datetime.date(2020, 7, 1)) < datetime.timedelta(days=30)
    assert "2020-0" in str(answer)


def test_clamping_bounds_hold_most_of_the_values(make: Any) -> None:
    curator = make()
    answer = curator.release(tacit.clamping_bounds("free"), epsilon=0.5)
    low, high = answer.table["value"]
    assert -1024 <= low < -64
    assert 64 < high <= 1024
    other = curator.release(tacit.clamping_bounds("free"), epsilon=0.1, delta=1e-7)
    assert other.guarantee.bound == tacit.Pure(epsilon=0.1)
    with pytest.raises(InvalidParameter, match="counts and sums"):
        curator.release(tacit.clamping_bounds("free"), within=4)


def test_certificates_say_what_their_intervals_cover(make: Any) -> None:
    """A threshold chosen after the noise, clamping bounds and named keys are told apart from exact coverage."""
    curator = make(tacit.Approximate(epsilon=9.0, delta=1e-4), protect=tacit.rows())
    told = {
        "sparse": curator.release(tacit.sparse_histogram(["state", "age"]), epsilon=1.0),
        "bounds": curator.release(tacit.clamping_bounds("free"), epsilon=1.0),
        "keys": curator.release(tacit.count(by="town"), epsilon=1.0, delta=1e-6),
        "count": curator.release(tacit.count(by="state"), epsilon=1.0),
    }
    said = {name: answer.certificate["intervals"]["cover"] for name, answer in told.items()}
    assert "approximately" in said["sparse"]
    assert "no intervals" in said["bounds"]
    assert "given that it was named" in said["keys"]
    assert said["count"].endswith("each cell by itself")
    assert "approximately" in str(told["sparse"])


def test_plans_and_certificates_name_the_rows_beyond_a_limit_on_groups(make: Any) -> None:
    """A histogram of the whole table loses nothing to `groups`, and says nothing of it; a grouped one says so."""
    curator = make(
        tacit.Approximate(epsilon=9.0, delta=1e-4), tacit.people("person_id", at_most=30, groups=1)
    )
    asked = {
        "histogram": tacit.histogram("age", 5),
        "median": tacit.median("age"),
        "grouped": tacit.histogram("age", 5, by="state"),
        "people": tacit.count(by=["state", "insured"], of="people"),
    }
    said = {}
    for name, statistic in asked.items():
        plan = curator.preview([tacit.query(statistic, name=name, epsilon=1.0)])
        (answer,) = curator.release(plan)
        found = [t for t in answer.certificate["intervals"]["do_not_cover"] if "beyond 1 group of" in t]
        assert ("beyond 1 group of" in str(plan)) == bool(found)
        said[name] = found
    assert said["histogram"] == said["median"] == []
    assert said["grouped"] == ["rows of a person beyond 1 group of state, which were not used"]
    assert said["people"] == ["rows of a person beyond 1 group of state x insured, which were not used"]


def test_a_part_that_nobody_can_move_is_published_for_named_keys_too(make: Any) -> None:
    """The middle part of a flag's variance is 0 whatever the rows are: it has no noise, and must not be missing."""
    data = pa.table({"town": ["a"] * 500 + ["b"] * 500, "sick": [True, False] * 500})
    with tacit.Curator(
        data, protect=tacit.rows(), schema={"town": tacit.category(), "sick": tacit.flag()},
        budget=tacit.Approximate(epsilon=10.0, delta=1e-3), source=SeededSource(seed=4),
    ) as curator:  # fmt: skip
        answer = curator.release(tacit.variance("sick", by="town"), epsilon=5.0, delta=1e-4)
    assert list(answer.table["town"]) == ["a", "b"]
    assert np.allclose(answer.table["value"], 0.25, atol=0.01)


def test_unknown_keys_beside_a_wide_range_need_no_room_for_all_of_it() -> None:
    """A million million values are possible beside each town; only those that occur are ever made."""
    data = pa.table({"town": ["a"] * 500, "number": [3] * 250 + [10**12] * 250})
    schema = {"town": tacit.category(), "number": tacit.integer(0, 10**12)}
    with tacit.Curator(
        data, protect=tacit.rows(), schema=schema, budget=tacit.Approximate(epsilon=10.0, delta=1e-3),
        source=SeededSource(seed=4),
    ) as curator:  # fmt: skip
        answer = curator.release(tacit.count(by=["town", "number"]), epsilon=5.0, delta=1e-4)
    assert sorted(answer.table["number"]) == [3, 10**12]
