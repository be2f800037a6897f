"""Quantiles planned with a public number of rows: what is charged is released, in the ranges that were planned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.curator.quantile_choice import SelectedRanks


@pytest.mark.parametrize(("epsilon", "rows"), [(0.1, 1000), (0.1, 100_000), (1, 1000), (1, None)])
@pytest.mark.parametrize("by", [(), "sex"])
def test_a_plan_with_a_public_number_of_rows_is_released(epsilon: float, rows: int | None, by: Any) -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x": rng.uniform(0, 1000, 500), "sex": rng.choice(["f", "m"], 500)})
    schema = {"x": tacit.number(0, 1000), "sex": tacit.category(["f", "m"])}
    with tacit.Curator(data, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=9)) as held:
        plan = held.preview(tacit.quantiles("x", at=[0.25, 0.5, 0.75], by=by), epsilon=epsilon, rows=rows)
        assignment = plan.releases[0].assignment
        assert isinstance(assignment, SelectedRanks)
        (release,) = held.release(plan)
        spent = held.spent
        frame = release.table
        assert bool((frame["low"] <= frame["value"]).all() and (frame["value"] <= frame["high"]).all())
        # Kept with the charge: the same plan is answered from the record, alike and free.
        (again,) = held.release(plan)
        pd.testing.assert_frame_equal(again.table, frame)
        assert held.spent == spent
