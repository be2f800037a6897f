"""The same plan on DuckDB and on Spark: the same numbers under the test source of randomness, people bounded alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from support.spark import needs_spark
from tacit.curator.plan_files import read_plan
from tacit.noise.source import SeededSource

STATES = ["CA", "NY", "TX"]
SCHEMA = {
    "state": tacit.category(STATES),
    "age": tacit.integer(0, 99),
    "income": tacit.number(0, 250_000),
    "insured": tacit.flag(),
    "town": tacit.category(),
}
ASKS = [
    tacit.query(tacit.count(by="state"), epsilon=0.5),
    tacit.query(tacit.count(by=["state", "insured"], of="people"), epsilon=0.5),
    tacit.query(tacit.sum("income", by="state"), epsilon=0.5),
    tacit.query(tacit.mean("income"), epsilon=0.5),
    tacit.query(tacit.variance("age"), epsilon=0.5),
    tacit.query(tacit.ratio("income", "age"), epsilon=0.5),
    tacit.query(tacit.proportion("insured and age > 30", by="state"), epsilon=0.5),
    tacit.query(tacit.quantiles("income", by="state", resolution=256), epsilon=0.5),
    tacit.query(tacit.histogram("age", 7, where="insured"), epsilon=0.5),
    tacit.query(tacit.margins(["state", "age", "insured"]), epsilon=0.5),
    tacit.query(tacit.sparse_histogram(["state", "age", "insured"]), epsilon=0.5),
    tacit.query(tacit.count(by="town", of="people"), epsilon=0.5, delta=1e-6),
    tacit.query(tacit.mean("income", by="town"), epsilon=0.5, delta=1e-6),
    tacit.query(tacit.density(["income", "age"], size=3000, guarantee="pure", order=2), epsilon=0.5),
]


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random, rows = np.random.default_rng(8), 3000
    table = pa.table(
        {
            "person_id": random.integers(0, 500, rows),
            "state": random.choice(STATES, rows),
            "age": random.integers(0, 100, rows),
            "income": random.lognormal(10.4, 0.7, rows),
            "insured": random.random(rows) < 0.8,
            "town": random.choice(["a", "b", "c", "d"], rows, p=[0.5, 0.3, 0.19, 0.01]),
        }
    )
    path = tmp_path_factory.mktemp("visits") / "visits.parquet"
    pq.write_table(table, path)
    return path


@needs_spark
@pytest.mark.parametrize(
    "unit",
    [tacit.rows(), tacit.people("person_id", at_most=3), tacit.people("person_id", at_most=4, groups=2)],
)
def test_every_statistic_has_the_same_answer(visits: Path, unit: Any) -> None:
    """People are bounded by a hash that both engines have, with one key, so that the same rows are kept."""
    people = not isinstance(unit, type(tacit.rows()))
    asks = [a for a in ASKS if people or getattr(a.statistic, "of", "rows") != "people"]
    found = []
    for engine in ("duckdb", "spark"):
        curator = tacit.Curator(
            visits, protect=unit, schema=SCHEMA, budget=tacit.Approximate(epsilon=100.0, delta=1e-3),
            engine=engine, portable=True, source=SeededSource(seed=11),
        )  # fmt: skip
        with curator:
            plan = curator.preview(asks)
            from tacit.statistics import read_cells

            cells = read_cells(curator._open(), [r.question for r in plan.releases], key=b"k" * 32)
            found.append(
                [
                    (
                        {} if r.question.statistic.fits == "function" else r.question.integers(c),
                        r.assignment.run(r.question, _sorted(c), source=SeededSource(seed=i)),
                    )
                    for i, (r, c) in enumerate(zip(plan.releases, cells, strict=True))
                ]
            )
    for r, (here, noisy), (there, other) in zip(plan.releases, *found, strict=True):
        for name, values in here.items():
            assert sorted(np.ravel(values).tolist()) == sorted(np.ravel(there[name]).tolist()), r.name
        assert noisy.keys == other.keys, r.name
        for name, values in noisy.parts.items():
            assert np.array_equal(values, other.parts[name]), r.name


@needs_spark
@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove"])
def test_counts_given_random_data_have_the_same_answer(visits: Path, neighbours: str) -> None:
    """The same cells are exact, the same noise elsewhere, the same number of rows decides; one key is never there."""
    unit = tacit.rows(neighbours=neighbours)
    schema = SCHEMA | {"age": tacit.integer(0, 119)}
    asks = [tacit.count(by=["state", "age"]), tacit.count(where="age > 98"), tacit.proportion("age > 98")]
    budget = tacit.Guarantee(
        bound=tacit.Pure(epsilon=3.0), unit=unit, condition=tacit.guarantees.RandomData(gamma=0.9)
    )
    found = []
    for engine in ("duckdb", "spark"):
        with tacit.Curator(
            visits, protect=unit, schema=schema, budget=budget, engine=engine, source=SeededSource(seed=11)
        ) as curator:
            found.append(curator.release(asks, epsilon=3, given={"random_data": 0.9, "rows": 3000}))
    for here, there in zip(*found, strict=True):
        assert here.to_csv() == there.to_csv()
        assert here.certificate["random_data"] == there.certificate["random_data"]
    assert found[0][0].certificate["random_data"]["exact_cells"] >= 60


def _sorted(cells: tuple[Any, ...]) -> tuple[Any, ...]:
    """Groups come in no order; for equal noise on equal groups they are put in one."""
    from dataclasses import replace

    out = []
    for c in cells:
        if c.keys is None or c.request.sparse:
            out.append(c)
            continue
        order = sorted(range(len(c.keys[0])), key=lambda i: tuple(str(k[i]) for k in c.keys))
        values = {a: np.asarray(v)[order] for a, v in c.values.items()}
        out.append(replace(c, keys=tuple(np.asarray(k)[order] for k in c.keys), values=values))
    return tuple(out)


@needs_spark
def test_a_plan_file_names_its_engine(visits: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f"""
[data]
path = "{visits}"
engine = "spark"
[protect]
unit = "rows"
[schema.state]
kind = "category"
keys = ["CA", "NY", "TX"]
[budget]
epsilon = 1.0
[[release]]
kind = "count"
by = "state"
epsilon = 0.5
"""
    )
    with read_plan(plan).curator() as curator:
        answer = curator.release(read_plan(plan).plan())[0]
    assert answer.certificate["data"]["engine"] == "pyspark"
    assert abs(answer.table["value"].sum() - 3000) < 200


@needs_spark
@pytest.mark.parametrize("unit", [tacit.rows(), tacit.people("person_id", at_most=4, groups=2)])
def test_spark_counts_the_margins_of_synthetic_rows(visits: Path, unit: Any, monkeypatch) -> None:
    """Spark counts every margin itself, those of missing and undeclared keys too; rows of both engines are alike."""
    from tacit.sources import margins

    schema = {**SCHEMA, "state": tacit.category(STATES[:2])}
    asked = tacit.synthesis.synthetic_table(
        ["state", tacit.bins("age", 5), "insured"], rounds=2, where="income > 9000"
    )
    counts, made = [], []
    for engine in ("duckdb", "spark"):
        if engine == "spark":
            monkeypatch.setattr(margins, "_here", None)
        curator = tacit.Curator(
            visits, protect=unit, schema=schema, budget=tacit.Approximate(epsilon=9.0, delta=1e-3),
            engine=engine, portable=True, source=SeededSource(seed=13),
        )  # fmt: skip
        with curator:
            (planned,) = curator.preview(asked, epsilon=3.0, delta=1e-6).releases
            request = planned.question.requests[0]
            cells = margins.read_margins(curator._open(), request, key=b"k" * 32)
            counts.append({m: c.tolist() for m, c in cells.margins.items()})
            noisy = planned.assignment.run(planned.question, (cells,), source=SeededSource(seed=3))
            made.append(
                planned.assignment.synthetic(planned.question, noisy, confidence=planned.ask.confidence)
            )
    assert counts[0] == counts[1]
    assert {sum(c) for c in counts[0].values()} == {sum(counts[0][(0,)])}
    assert min(min(c) for c in counts[1].values()) >= 0
    assert counts[1][(0,)][-1] > 0
    assert made[0].to_csv() == made[1].to_csv()
