"""Decision trees in the curator: the price, the charge, the certificate, the file, and refusals that charge nothing."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.audit import opinion_on_certificate
from tacit.cli import main
from tacit.curator.functions import decision_tree
from tacit.curator.functions.trees import TreeAssignment, depth_of
from tacit.errors import InvalidParameter, TacitError
from tacit.guarantees import Concentrated, GaussianDP, Pure
from tacit.mechanisms import Laplace, PermuteAndFlip

from .functions import BUDGET, DECLARED, curator, small

ASK = decision_tree(["x", "z", "c", "d", "f"], "k", size=300, depth=2)


def test_a_tree_is_released_charged_replayed_and_certified() -> None:
    with curator(protect=tacit.rows()) as held:
        release = held.release(ASK, epsilon=40, key="tree")
        assert held.release(ASK, epsilon=40, key="tree").to_csv() == release.to_csv()
        assert held.spent.epsilon == 40
        said = release.certificate
        assert said["mechanism"]["tree"] == {
            "depth": 2,
            "splits": 91,
            "lost_score": pytest.approx(1.0, rel=0.1),
        }
        assert {"tree-scores", "tree-levels", "permute-and-flip"} <= set(said["theorems"])
        assert said["sensitivity"] == {"score": "1", "l1_steps": "1", "l2_squared_steps": "1"}
        assert opinion_on_certificate(said).confirmed
        assert [e["event"]["kind"] for e in said["event"]][:2] == ["permute_and_flip"] * 2
        # The table: a rule and a class a row, noisy counts that add up to about the rows.
        assert list(release.columns) == ["leaf", "k", "value", "low", "high"]
        assert sum(release.columns["value"]) == pytest.approx(300, abs=12)
        tree = release.tree
        points = {
            "x": [-0.9, 0.9],
            "z": [5, 5],
            "c": ["a", "a"],
            "d": [np.datetime64("2020-06-01").item()] * 2,
        }
        assert tree.predict({**points, "f": [False, True]}).tolist() == ["no", "yes"]
        assert len(said["function"]["nodes"]) == 7
        with pytest.raises(InvalidParameter, match="decision tree"):
            _ = held.release(tacit.count(), epsilon=1).tree


@pytest.mark.parametrize(
    ("protect", "moves"),
    [
        (tacit.rows(), 1),
        (tacit.rows(neighbours="replace-one"), 2),
        (tacit.people("id", at_most=2), 2),
        (tacit.people("id", at_most=2, neighbours="replace-one"), 4),
        (tacit.group_of(tacit.rows(), size=3), 3),
    ],
    ids=str,
)
def test_the_choice_is_made_for_as_many_rows_as_come_or_go(protect: Any, moves: int) -> None:
    with curator(protect=protect) as held:
        one = held.preview(ASK, epsilon=60).releases[0].assignment
    assert isinstance(one, TreeAssignment)
    assert one.plan.choice.sensitivity.exact == moves
    assert one.plan.choice.rate == Fraction(20) / (2 * moves)
    assert isinstance(one.plan.noise, Laplace)
    assert one.pure() <= 60


@pytest.mark.parametrize(
    ("paid", "kind", "choice"),
    [
        ({"epsilon": 30}, Pure, PermuteAndFlip),
        ({"epsilon": 30, "delta": 1e-6}, Pure, PermuteAndFlip),
        ({"rho": 20}, Pure, PermuteAndFlip),
        ({"mu": 30}, GaussianDP, PermuteAndFlip),
    ],
    ids=str,
)
def test_every_kind_of_price(paid: Any, kind: Any, choice: Any) -> None:
    budget = {"rho": Concentrated(rho=100), "mu": GaussianDP(mu=100)}.get(next(iter(paid)), BUDGET)
    with curator(protect=tacit.rows(), budget=budget) as held:
        release = held.release(ASK, **paid)
        assignment: Any = release.planned.assignment
        assert isinstance(assignment.plan.choice, choice)
        assert isinstance(assignment.bound, kind) or kind is GaussianDP
        assert opinion_on_certificate(release.certificate).confirmed


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: decision_tree(["x"], "k", size=300, depth=10), "less deep"),
        (lambda: decision_tree(["x"], "k", size=300, depth=20), "at most 12"),
        (lambda: decision_tree(["x"], "k", size=300, depth=0), "depth"),
        (lambda: decision_tree(["x"], "z", size=300), "flag, or a category"),
        (lambda: decision_tree(["x", "k"], "k", size=300), "none of the columns"),
        (lambda: decision_tree(["t"], "k", size=300), "declared"),
        (lambda: decision_tree(["u"], "k", size=300), "u"),
        (lambda: decision_tree([], "k", size=300), "columns"),
    ],
)
def test_bad_trees_are_one_sentence_and_charge_nothing(ask: Any, said: str) -> None:
    with curator(protect=tacit.rows()) as held:
        with pytest.raises(TacitError, match=said):
            held.release(ask(), epsilon=1)
        assert held.spent.epsilon == 0


def test_depths_follow_from_the_public_size() -> None:
    assert [depth_of(n) for n in (1, 1000, 5000, 32561, 10**9)] == [1, 1, 3, 6, 12]
    assert decision_tree(["x"], "k", size=5000).depth == 3


PLAN = """
[data]
path = "table.parquet"
[protect]
unit = "rows"
[schema.x]
kind = "number"
low = -1
high = 1
[schema.c]
kind = "category"
keys = ["a", "b", "c"]
[schema.k]
kind = "category"
keys = ["no", "yes"]
[budget]
epsilon = 20.0
[ledger]
path = "table.ledger"
[[release]]
name = "who"
kind = "decision_tree"
columns = ["x", "c"]
label = "k"
size = 300
depth = 2
"""


def test_through_a_plan_file_and_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small().drop(columns=["t", "d"]).to_parquet("table.parquet")
    Path("plan.toml").write_text(PLAN)
    assert main(["release", "plan.toml", "--out", "out"]) == 0
    assert main(["verify", "out", "--ledger", "table.ledger"]) == 0
    page = Path("out/report.html").read_text()
    assert 'class="picture tree"' in page
    certificate = json.loads(Path("out/certificates/who.json").read_text())
    assert certificate["function"]["classes"] == ["no", "yes"]
    # A tree that somebody changed is noticed.
    text = Path("out/values/who.csv").read_text()
    Path("out/values/who.csv").write_text(text.replace("x >", "x ≥"))
    assert main(["verify", "out", "--ledger", "table.ledger"]) != 0
    capsys.readouterr()
    Path("deep.toml").write_text(PLAN.replace("depth = 2", "depth = 9").replace("20.0", "0.5"))
    assert main(["plan", "deep.toml"]) != 0
    assert "less deep" in capsys.readouterr().err
    assert "x" in DECLARED
