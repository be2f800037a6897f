"""Every parameter of everything public is taken as what it is, or refused: nothing is cut, wrapped or guessed.

1.9, True, "3", "no", NaN, masked arrays, narrow and unsigned NumPy scalars, very large and very small numbers are fed
to each parameter of each public class and constructor. What is public is found by looking; what has no example in
`tests/support/parameter_examples.py` and is not named below fails.
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from typing import Any

import pytest
from tests.support import parameter_examples as examples
from tests.support.parameters import problems
from tests.support.random_examples import RANDOM_DATA

ROOMS: dict[str, dict[str, dict[str, Any]]] = {
    "tacit.mechanisms": examples.MECHANISMS,
    "tacit.noise": examples.NOISE,
    "tacit.accounting.events": examples.EVENTS,
    "tacit.accounting": examples.ACCOUNTING,
    "tacit.guarantees": {**examples.GUARANTEES, **examples.LAWS},
    "tacit.random_data": RANDOM_DATA,
    "tacit.statistics": examples.STATISTICS,
    "tacit.sources": examples.SOURCES,
    "tacit.curator": examples.CURATOR,
}

MADE_BY_TACIT: dict[str, str] = {
    "tacit.mechanisms": """Answers Candidate Chosen Cumulated FourierNoise Kept MarginPlan NoisyQuantiles Released
        Correlation EstimatedCount EstimatedTable IndependenceTest JointTable LocalCandidate LocalChoice Reports
        ReleasedTables ResponseComparison FoundBounds Selected SelectedBins SparseReleased SparseTable StableReleased
        Tested TreeCounts""",
    "tacit.noise": """CertifiedReal ComputableDistribution CryptographicSource Difference Draws FormulaBody GridVector
        Needs RoundedMarginal SampledBody permutation root total uniform_integer""",
    "tacit.accounting.events": "Event SimpleEvent",
    "tacit.accounting": """Account Accounts Calibration Enclosures Event PrivacyCurve dp_accounting_source
        from_dp_accounting""",
    "tacit.guarantees": """Always Condition Implication Indistinguishability Law Neighbours Profile Sampling Theorem
        Unit compose parallel theorem""",
    "tacit.random_data": """OverlapCount OverlapHistogram RandomCurve Referee ReleasedBins ReleasedCount
        ReleasedHistogram ReleasedStatistic Worst conformal_cells conformal_gamma conformal_interval counts_differ
        observed_range_delta ordered_failure pair_changes pair_differs sample_sensitivities sampled_failure
        worst_share""",
    "tacit.statistics": """Areas CountTable GlobalSensitivity NoisyTable Part PublicTotals Question RegressionMoments
        SparseQuestion Tree
        consistent_margins consistent_tree fit_table regression_moments integer_margins is_valid_histogram
        nearest_histogram read
        read_cells synthetic_rows tables_of valid_counts whole_cells whole_table""",
    "tacit.sources": """Aggregate Aggregation Axis Cells Column Expression Files Joined Measured Schema Table
        derived files join open_table parse run""",
    "tacit.curator": "Curator Plan Planned Price Release Releases make_plan",
}
"""Results, base classes, enumerations, and functions of data: no constructors of a promise."""


def public(room: str) -> dict[str, Any]:
    """What a room exports that can be called with parameters."""
    module = importlib.import_module(room)
    found = {name: getattr(module, name) for name in module.__all__}
    return {
        name: value
        for name, value in found.items()
        if (inspect.isclass(value) or inspect.isfunction(value))
        and not inspect.isabstract(value)
        and not (inspect.isclass(value) and issubclass(value, BaseException))
    }


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_everything_public_has_an_example_or_is_made_by_tacit(room: str) -> None:
    made = set(MADE_BY_TACIT[room].split())
    assert not made & set(ROOMS[room])
    assert sorted(public(room)) == sorted(made & set(public(room)) | set(ROOMS[room]))
    assert made <= set(public(room)), "names that are gone"


CASES = [(room, name) for room, table in sorted(ROOMS.items()) for name in table]


@pytest.mark.parametrize(("room", "name"), CASES, ids=[f"{r.removeprefix('tacit.')}.{n}" for r, n in CASES])
def test_strange_parameters_are_taken_right_or_refused(room: str, name: str) -> None:
    make, example = public(room)[name], ROOMS[room][name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(**example)
        found = list(
            problems(make, example, numbers_only=name in examples.LAWS, decimals=room == "tacit.curator")
        )
    assert not found, "\n".join(found)
