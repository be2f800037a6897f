"""Theorem `population-intervals` through `release()`: fifty samples from a known law, one a group of one release.

What the intervals cover is simulated at length by `make simulate`; here fifty of each hold at least 44 times, which a
coverage of 95% misses with a probability of 1 in 1,000 (the noise is seeded, so that a run is as the next).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.errors import InvalidParameter
from tacit.noise import SeededSource

RUNS, EACH = 50, 800
LEAST = 44
SCHEMA: dict[str, Any] = {
    "run": tacit.integer(0, RUNS - 1),
    "w": tacit.number(0, 4),
    "x": tacit.number(0, 1),
    "z": tacit.number(0, 2),
    "yes": tacit.flag(),
    "unit": tacit.category([f"u{i}" for i in range(8)]),
}
LISTED = {"north": [f"u{i}" for i in range(4)], "south": [f"u{i}" for i in range(4, 8)]}


@pytest.fixture(scope="module")
def samples() -> Any:
    random = np.random.default_rng(5)
    n = RUNS * EACH
    x = random.beta(2, 5, n)
    w = np.clip(np.exp(random.normal(0, math.sqrt(0.5), n) + 0.5 * (x - 0.3)), 0.25, 4)
    return pa.table(
        {
            "run": np.repeat(np.arange(RUNS), EACH), "w": w, "x": x, "z": np.clip(x + random.random(n), 0, 2),
            "yes": random.random(n) < 0.12, "unit": [f"u{i}" for i in random.integers(0, 8, n)],
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def truths() -> dict[str, float]:
    random = np.random.default_rng(6)
    x = random.beta(2, 5, 2_000_000)
    w = np.clip(np.exp(random.normal(0, math.sqrt(0.5), x.size) + 0.5 * (x - 0.3)), 0.25, 4)
    z = np.clip(x + random.random(x.size), 0, 2)
    return {
        "mean": 2 / 7, "share": 0.12, "median": float(np.median(x)), "ratio": float(x.mean() / z.mean()),
        "weighted": float((w * x).sum() / w.sum()), "weighted ratio": float((w * x).sum() / (w * z).sum()),
        "total": EACH * float((w * x).mean()), "people": EACH * float(w.mean()),
    }  # fmt: skip


ASKED = {
    "mean": tacit.mean("x", by="run"),
    "share": tacit.proportion("yes", by="run"),
    "median": tacit.median("x", by="run"),
    "ratio": tacit.ratio("x", "z", by="run"),
    "weighted": tacit.mean("x", by="run", survey_weight="w"),
    "weighted ratio": tacit.ratio("x", "z", by="run", survey_weight="w"),
    "total": tacit.sum("x", by="run", survey_weight="w"),
    "people": tacit.count(by="run", survey_weight="w"),
}


def held(answer: Any, truth: float) -> int:
    low, high = np.ravel(answer.estimate.low), np.ravel(answer.estimate.high)
    assert low.size == RUNS
    return int(((low <= truth) & (truth <= high)).sum())


@pytest.mark.parametrize("unit", [tacit.rows(), tacit.rows(neighbours="replace-one")], ids=str)
@pytest.mark.parametrize("name", ASKED)
def test_fifty_samples_hold_their_population(name: str, unit: Any, samples: Any, truths: Any) -> None:
    budget = tacit.Approximate(epsilon=10, delta=1e-5)
    source = SeededSource(seed=11)
    with tacit.Curator(samples, protect=unit, schema=SCHEMA, budget=budget, source=source) as curator:
        answer = curator.release(tacit.query(ASKED[name], sampling=True, epsilon=1, rows=EACH))
        assert held(answer, truths[name]) >= LEAST
        if name not in ("median",):
            other = curator.release(tacit.query(ASKED[name], sampling=True, epsilon=1, delta=1e-6))
            assert held(other, truths[name]) >= LEAST
        form = answer.planned.question.form
        if form is not None:
            noise = replace(answer.planned.question, form=form.noise_only())
            alone = answer.planned.assignment.read(noise, answer.noisy, Fraction(95, 100))
            assert (
                np.ravel(answer.estimate.high - answer.estimate.low) >= np.ravel(alone.high - alone.low)
            ).all()


@pytest.mark.parametrize("name", ["weighted", "total", "people", "weighted ratio"])
def test_fifty_samples_of_clusters(name: str, samples: Any, truths: Any) -> None:
    """Units of independent rows are a design like any other: t with 8 - 2 degrees of freedom."""
    design = {"psu": "unit", "strata": LISTED}
    asked: Any = {
        "weighted": tacit.mean("x", by="run", survey_weight="w", design=design),
        "total": tacit.sum("x", by="run", survey_weight="w", design=design),
        "people": tacit.count(by="run", survey_weight="w", design=design),
        "weighted ratio": tacit.ratio("x", "z", by="run", survey_weight="w", design=design),
    }[name]
    source = SeededSource(seed=12)
    with tacit.Curator(
        samples, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=9), source=source
    ) as curator:
        answer = curator.release(asked, epsilon=2)
        assert held(answer, truths[name]) >= LEAST
        assert "primary sampling units" in answer.certificate["intervals"]["declared"][0]
        assert "primary sampling units" in str(answer)


def test_a_mean_over_a_public_number_of_rows(samples: Any) -> None:
    """Rows replaced, none missing: half the noise, and the variance at no price."""
    schema = {"x": tacit.number(0, 1, missing=0.0), "yes": tacit.flag(missing=False)}
    hits = 0
    unit = tacit.rows(neighbours="replace-one")
    for run in range(RUNS):
        part = samples.slice(run * EACH, EACH).select(["x", "yes"])
        with tacit.Curator(
            part, protect=unit, schema=schema, budget=tacit.Pure(epsilon=9), source=SeededSource(seed=run)
        ) as curator:
            mean, share = curator.release(
                [
                    tacit.query(tacit.mean("x"), sampling=True, epsilon=1),
                    tacit.query(tacit.proportion("yes"), sampling=True, epsilon=1),
                ]
            )
        low, high = mean.interval
        hits += low <= 2 / 7 <= high
        if run == 0:
            x = np.asarray(part["x"])
            ordinary = 2 * 1.96 * x.std() / math.sqrt(EACH)
            assert ordinary < high - low < 1.1 * ordinary
            assert mean.planned.question.sensitivity.l1 == mean.planned.question.sensitivity.linf
            low, high = share.interval
            assert low < 0.12 < high
    assert hits >= LEAST


def test_in_a_plan_file_and_verified(
    tmp_path: Path, samples: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.parquet as pq

    from tacit.cli import main

    pq.write_table(samples.slice(0, 4 * EACH), tmp_path / "survey.parquet")
    (tmp_path / "plan.toml").write_text(
        """
data = { path = "survey.parquet" }
protect = { unit = "rows" }
schema.w = { kind = "number", low = 0, high = 4 }
schema.x = { kind = "number", low = 0, high = 1 }
schema.unit = { kind = "category", keys = ["u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7"] }
budget = { epsilon = 3 }
[[release]]
kind = "mean"
column = "x"
survey_weight = "w"
sampling = true
rows = 3200
[[release]]
kind = "count"
survey_weight = "w"
design.psu = "unit"
design.strata = { a = ["u0", "u1", "u2"], b = ["u3", "u4", "u5", "u6", "u7"] }
[[release]]
kind = "median"
column = "x"
sampling = true
"""
    )
    plan, out = str(tmp_path / "plan.toml"), str(tmp_path / "out")
    assert main(["plan", plan]) == 0
    assert main(["release", plan, "--out", out]) == 0
    assert main(["verify", out, "--ledger", str(tmp_path / "survey.ledger")]) == 0
    assert main(["verify", out]) == 0
    told = capsys.readouterr().out
    assert "weighted_mean-x" in told
    page = (tmp_path / "out" / "report.html").read_text()
    assert "stands for as many members of the population" in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("design = { psu = 3 }", "text"),
        ('design = { units = "unit" }', "units"),
        ('design = { psu = "unit", strata = { a = "u0" } }', "list primary"),
        ("survey_weight = 4", "text"),
        ('survey_weight = "w", design = { weights = "calibrated" }', "depends on all rows"),
    ],
)
def test_plans_that_are_refused(
    words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tacit.cli import main

    (tmp_path / "plan.toml").write_text(
        f"""
data = {{ path = "survey.parquet" }}
protect = {{ unit = "rows" }}
schema.w = {{ kind = "number", low = 0, high = 4 }}
schema.x = {{ kind = "number", low = 0, high = 1 }}
budget = {{ epsilon = 3 }}
release = [{{ kind = "mean", column = "x", {words} }}]
"""
    )
    assert main(["plan", str(tmp_path / "plan.toml")]) in (1, 2)
    assert said in capsys.readouterr().err


def test_sampling_is_refused_where_no_law_is_known(samples: Any) -> None:
    with tacit.Curator(samples, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=9)) as curator:
        for asked in (tacit.count(), tacit.sum("x"), tacit.variance("x"), tacit.margins(["unit", "yes"])):
            with pytest.raises(InvalidParameter, match="sampling must be declared"):
                curator.preview(tacit.query(asked, sampling=True, epsilon=1))
