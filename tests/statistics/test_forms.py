"""How statistics are made of noisy parts: values, derivatives and ranges."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit.statistics as ask
from tacit.guarantees import rows
from tacit.sources import Schema, category, integer, number
from tacit.statistics.forms import Average, Linear, Quotient, Root, Share, Spread

FORMS = {
    "linear": (Linear(part="sum", spacing=Fraction(1, 4)), {"sum": 40}),
    "average": (
        Average(part="a", rows="n", low=-2.0, width=10.0, spacing=Fraction(1, 2)),
        {"a": 120, "n": 20},
    ),
    "share": (Share(low=-3.0, width=8.0), {"above": 300, "below": 500}),
    "quotient": (Quotient(numerator="x", denominator="y", scale=0.25), {"x": -300, "y": 70}),
    "spread": (Spread(width=6.0), {"squares_below": 900, "products": 400, "squares_above": 700}),
    "root": (Root(of=Spread(width=6.0)), {"squares_below": 900, "products": 400, "squares_above": 700}),
}


@pytest.mark.parametrize("name", FORMS)
def test_gradients_are_derivatives(name):
    form, parts = FORMS[name]
    arrays = {k: np.array([float(v)]) for k, v in parts.items()}
    for part, slope in form.gradient(arrays).items():
        if part == "n":
            continue
        h = 1e-4
        up = form.value({**arrays, part: arrays[part] + h})
        down = form.value({**arrays, part: arrays[part] - h})
        assert np.allclose((up - down) / (2 * h), slope, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("name", FORMS)
def test_ranges_hold_every_value_in_the_box(name):
    form, parts = FORMS[name]
    rng = np.random.default_rng(5)
    low = {k: np.array([v - 35.0 * (k != "n")]) for k, v in parts.items()}
    high = {k: np.array([v + 60.0 * (k != "n")]) for k, v in parts.items()}
    least, most = form.enclose(low, high)
    inside = {k: rng.uniform(low[k], high[k], 4000) for k in parts}
    corners = [np.array(c) for c in itertools.product(*[(low[k][0], high[k][0]) for k in parts])]
    values = np.concatenate(
        [
            form.value(inside),
            *[form.value({k: np.array([x]) for k, x in zip(parts, c, strict=True)}) for c in corners],
        ]
    )
    assert (least <= values + 1e-12).all()
    assert (values <= most + 1e-12).all()
    if name not in ("spread", "root"):
        assert np.isclose(values.min(), least)
        assert np.isclose(values.max(), most)


@pytest.mark.parametrize("name", ["share", "quotient"])
def test_pivots_vanish_at_the_value_and_nowhere_else(name):
    form, parts = FORMS[name]
    value = form.value({k: np.array([v]) for k, v in parts.items()})
    for shift, zero in ((0.0, True), (0.01, False)):
        total = sum(c * parts[k] for k, c in form.pivot(value + shift).items())
        assert np.isclose(total, 0.0, atol=1e-9).all() == zero


def test_noise_that_hides_the_rows_gives_a_value_within_the_bounds():
    share = Share(low=10.0, width=5.0)
    for above, below in [(-5, -5), (0, 0), (-3, 10), (10, -3)]:
        value = share.value({"above": np.array([above]), "below": np.array([below])})
        assert ((value >= 10.0) & (value <= 15.0)).all()
    least, most = share.enclose(
        {"above": np.array([-9]), "below": np.array([-9])}, {"above": np.array([-1]), "below": np.array([-1])}
    )
    assert (least, most) == (10.0, 15.0)
    nothing = Quotient(numerator="x", denominator="y", scale=1.0)
    assert np.isnan(nothing.value({"x": np.array([1]), "y": np.array([0])})).all()
    wide = nothing.enclose(
        {"x": np.array([1]), "y": np.array([-1])}, {"x": np.array([2]), "y": np.array([1])}
    )
    assert (wide[0], wide[1]) == (-np.inf, np.inf)
    spread = Spread(width=4.0)
    blank = {n: np.array([-5]) for n in spread.names}
    assert 0 <= spread.value(blank) <= 4.0
    assert spread.enclose(blank, blank) == (0.0, 4.0)


def test_parts_give_the_mean_and_the_variance_back():
    schema = Schema({"x": number(-2, 6, spacing=0.5), "g": category(["a"])})
    values = [-2.0, 0.5, 3.0, 6.0, 6.0]
    u = np.array([(v + 2) * 2 for v in values]).astype(int)
    mean, variance = ask.mean("x").on(schema, rows()), ask.variance("x").on(schema, rows())
    w = 16
    assert np.isclose(mean.assemble({"above": u.sum(), "below": (w - u).sum()}), np.mean(values))
    parts = {
        "squares_below": ((w - u) ** 2).sum(),
        "products": (2 * u * (w - u)).sum(),
        "squares_above": (u**2).sum(),
    }
    assert np.isclose(variance.assemble(parts), np.var(values))
    assert np.isclose(ask.standard_deviation("x").on(schema, rows()).assemble(parts), np.std(values))


def test_quantiles_of_noisy_counts_are_in_order_and_within_bounds():
    schema = Schema({"x": integer(0, 9)})
    question = ask.quantiles("x", at=[0.1, 0.5, 0.9]).on(schema, rows())
    rng = np.random.default_rng(1)
    for _ in range(50):
        found = question.assemble({"counts": rng.integers(-20, 20, 10)})
        assert (np.diff(found) >= 0).all()
        assert (found >= 0).all()
        assert (found <= 10).all()
    assert list(question.assemble({"counts": np.array([0, 0, 0, 4, 0, 0, 0, 0, 4, 0])})) == [3.2, 4.0, 8.8]


def test_statistics_describe_themselves_in_plain_values():
    import json

    told = json.loads(json.dumps(ask.mean("x", by=["g"], where="x > 1").to_dict()))
    assert told == {"kind": "mean", "by": ["g"], "where": "x > 1", "column": "x"}
    json.dumps(ask.histogram("x", [0, 1.5, 3]).to_dict())
    json.dumps(ask.proportion("x > 2").to_dict())
    json.dumps(ask.margins(["a", "b"]).to_dict())


@pytest.mark.parametrize(
    "statistic",
    [
        ask.count(), ask.mean("n", by="a"), ask.margins(["a", "b"], order=1), ask.margins(["a", "b"], order=2),
        ask.quantiles("n", at=[0.25, 0.5, 0.75]), ask.median("n", by="a"), ask.histogram("n", 4),
        ask.hierarchy(["a", "b"]), ask.ranges("n", 4), ask.clamping_bounds("n"),
    ],
    ids=lambda s: s.kind,
)  # fmt: skip
def test_a_plan_counts_the_numbers_that_are_released(statistic: Any) -> None:
    """A table of margins has no axes of its own, and a quantile has as many values as shares were asked."""
    import tacit

    schema = {"a": tacit.category(["x", "y"]), "b": tacit.category(["p", "q", "r"]), "n": tacit.integer(0, 9)}
    data = {"a": ["x", "y"], "b": ["p", "q"], "n": [1, 2]}
    import pyarrow as pa

    with tacit.Curator(
        pa.table(data), protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=1)
    ) as curator:
        release = curator.release(statistic, epsilon=1)
    assert release.planned.question.numbers == len(release.columns["value"])
