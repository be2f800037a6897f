"""Every mechanism's claim has a test from the definition, and every theorem a test of its statement.

Both are registers: a class with a `bound` or a theorem that is not here fails, and so does a test that is gone.
A test says itself whose claim it tests (`@pytest.mark.claim("Laplace")`), or `CLAIMS` does. Theorems are named by the
test itself, or in statements.toml.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import tacit.mechanisms
from tacit.guarantees import THEOREMS
from tacit.mechanisms import Mechanism

TESTS = Path(__file__).parents[1]
THEORY = TESTS.parent / "docs" / "theory"
STATEMENTS: dict[str, str] = tomllib.loads((Path(__file__).parent / "statements.toml").read_text("utf-8"))


def marked_claims() -> Iterator[tuple[str, str]]:
    """The classes that tests are marked with, and the tests."""
    for path in sorted((TESTS / "mechanisms").glob("test_*.py")):
        if "mark.claim(" not in (text := path.read_text("utf-8")):
            continue
        for node in ast.walk(ast.parse(text)):
            for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.claim":
                    for name in mark.args:
                        yield str(ast.literal_eval(name)), f"{path.relative_to(TESTS)}::{node.name}"


CLAIMS = {
    "CumulativeGaussian": "mechanisms/test_cumulative.py::test_gaussian_moves_by_its_sensitivity",
    "CumulativeTree": "mechanisms/test_cumulative.py::test_tree_moves_by_levels_times_l1",
    "Exponential": "mechanisms/test_claims_of_selection.py::test_selection_over_all_neighbours_of_random_scores",
    "FittedTables": "mechanisms/test_fitted_tables.py::test_a_fit_costs_what_its_noise_costs",
    "Gamma": "mechanisms/test_claims_of_bodies.py::test_rounding_to_the_grid_keeps_the_bound_of_continuous_noise",
    "Gaussian": "mechanisms/test_claims.py::test_gaussian_in_one_dimension_sums_its_own_curve",
    "GaussianSelection": "mechanisms/test_partition.py::test_threshold_by_enumeration",
    "Geometric": "mechanisms/test_claims.py::test_geometric_and_staircase",
    "HadamardResponse": "mechanisms/test_local_sets.py::test_hadamard_response_by_enumeration",
    "HullTables": "mechanisms/test_hull_tables.py::test_the_law_of_three_cells_that_are_exchanged",
    "InterquartileRangeByTest":
        "mechanisms/test_smooth.py::test_propose_test_release_end_to_end_on_all_small_data_sets",
    "IntervalExponential": "mechanisms/test_claims_of_selection.py::test_interval_exponential",
    "KNorm": "mechanisms/test_claims_of_bodies.py::test_k_norms_on_a_dense_set_of_outputs",
    "KNormDifference": "mechanisms/test_claims_of_bodies.py::test_k_norm_difference_in_one_dimension",
    "Laplace": "mechanisms/test_claims.py::test_laplace_in_one_dimension",
    "MedianByTest": "mechanisms/test_smooth.py::test_propose_test_release_end_to_end_on_all_small_data_sets",
    "OptimalSelection": "mechanisms/test_partition.py::test_one_key_is_private_exactly_and_cannot_be_better",
    "PermuteAndFlip": "mechanisms/test_claims_of_selection.py::test_selection_over_all_neighbours_of_random_scores",
    "PolytopeNorm": "mechanisms/test_linear.py::test_polytope_noise_has_the_density_of_its_gauge",
    "QuantileSelection": "mechanisms/test_quantile_selection.py::test_each_choice_is_private_by_enumeration",
    "RandomizedResponse": "mechanisms/test_claims.py::test_randomized_response",
    "RangeNorm": "mechanisms/test_linear.py::test_range_norm_is_the_hull_of_the_cube_corners",
    "RankSelection": "mechanisms/test_rank_selection.py::test_private_from_both_sides",
    "RoundedGaussian":
        "mechanisms/test_claims_of_bodies.py::test_rounding_to_the_grid_keeps_the_bound_of_continuous_noise",
    "ShapedTables": "mechanisms/test_tables.py::test_what_gets_noise_is_moved_by_no_more_than_the_claim",
    "SmoothLaplace": "mechanisms/test_smooth.py::test_smooth_laplace_against_integration",
    "SmoothStudent": "mechanisms/test_smooth.py::test_smooth_student_against_a_dense_scan",
    "StableHistogram": "mechanisms/test_stability.py::test_delta_is_an_upper_bound_and_reached",
    "Staircase": "mechanisms/test_claims.py::test_geometric_and_staircase",
    "ForestSelection": "mechanisms/test_forests.py::test_the_law_of_a_forest_on_60_random_neighbours",
    "StatisticByTest": "mechanisms/test_own_statistics.py::test_the_law_of_the_outcome_on_all_neighbours",
    "SubsetSelection": "mechanisms/test_local_sets.py::test_subset_selection_by_enumeration",
    "TwoQuestions": "mechanisms/test_two_questions.py::test_privacy_by_enumeration",
    "CellSums": "laws/test_statements.py::test_sums_of_noisy_cells_are_sums_of_what_was_noised",
    "RangeAnswers": "laws/test_statements.py::test_sums_of_noisy_cells_are_sums_of_what_was_noised",
    "RangeTree": "laws/test_statements.py::test_levels_of_a_range_tree_move_as_their_noise_says",
    "Selection": "laws/test_statements.py::test_a_selection_is_the_choice_of_its_method",
    "SparseHistogram": "mechanisms/test_sparse.py::test_which_cells_are_released_has_the_law_of_dense_noise",
    "TruncatedGeometric": "mechanisms/test_claims.py::test_truncated_geometric",
}  # fmt: skip


CLAIMS |= dict(marked_claims())


def with_a_bound() -> set[str]:
    """Every public class of the mechanisms that says what it promises."""
    found = set()
    for module in pkgutil.iter_modules(tacit.mechanisms.__path__, "tacit.mechanisms."):
        for name, value in vars(importlib.import_module(module.name)).items():
            own = inspect.isclass(value) and value.__module__ == module.name and not name.startswith("_")
            if own and not inspect.isabstract(value) and isinstance(getattr(value, "bound", None), property):
                found.add(name)
    return found


def test_every_class_with_a_bound_is_here() -> None:
    known = with_a_bound()
    assert len(known) > 25
    assert not known - set(CLAIMS), "a bound without a test of its claim"
    assert not set(CLAIMS) - known, "gone"
    assert issubclass(tacit.mechanisms.Laplace, Mechanism)


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_the_test_of_a_claim_is_there_and_is_about_it(name: str) -> None:
    file, _, function = CLAIMS[name].partition("::")
    text = (TESTS / file).read_text("utf-8")
    assert re.search(rf"\b{name}\b", text)
    assert function in {n.name for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)}


# --- theorems ------------------------------------------------------------------------------------------
def named_by_tests() -> set[str]:
    """Theorem ids that stand in what a test, or a file of tests, says of itself: a name among a certificate's theorems
    is no test of a statement."""
    words: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.Module):
                said = ast.get_docstring(node) or ""
                words |= set(re.findall(r"(?<![\w-])[a-z0-9]+(?:-[a-z0-9]+)*(?![\w-])", said))
    return words & set(THEOREMS)


def test_every_theorem_has_a_test_of_its_statement() -> None:
    unnamed = set(THEOREMS) - named_by_tests() - set(STATEMENTS)
    assert unnamed <= NOT_YET_NAMED, f"theorems without a test of their statement: {unnamed - NOT_YET_NAMED}"
    assert not NOT_YET_NAMED - unnamed, "these have a test, or are gone"
    assert not set(STATEMENTS) - set(THEOREMS), "gone"


@pytest.mark.parametrize("id", sorted(STATEMENTS))
def test_the_test_of_a_statement_is_there(id: str) -> None:
    file, _, function = STATEMENTS[id].partition("::")
    assert function in functions(TESTS / file)


@cache
def functions(path: Path) -> frozenset[str]:
    return frozenset(
        n.name for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.FunctionDef)
    )


@pytest.mark.parametrize("id", sorted(THEOREMS))
def test_a_proof_has_substance(id: str) -> None:
    """A proof is an argument and not a citation: it has sentences, and it is not the statement over again."""
    text = (THEORY / f"{id}.md").read_text("utf-8")
    statement = text.split("**Statement.**")[1].split("\n**")[0]
    proof = text.split("**Proof.**")[1].split("\n**Source.**")[0]
    assert len(proof.split()) >= 15
    assert proof.strip() not in statement


# Statements that no test would notice to be false.
NOT_YET_NAMED: set[str] = set()
