"""Who may look at the data: the custodian, and nobody who asks questions that are paid for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.errors import InvalidParameter
from tacit.ledger import Ledger, overview

PLAN = """
[data]
path = "t.csv"
[protect]
unit = "rows"
[schema.state]
kind = "category"
keys = ["Bremen", "Hessen"]
[budget]
epsilon = 4.0
[[release]]
kind = "count"
by = "state"
"""
Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text("state\nBremen\nHessen\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def looks(plan: Path) -> list[Any]:
    with Ledger.open(plan.parent / "t.ledger") as ledger:
        return list(overview(ledger)["looks"])


def asked_by(name: str) -> str:
    return PLAN.replace("epsilon = 4.0", f'epsilon = 4.0\nanalyst = "{name}"')


@pytest.mark.parametrize(("share", "name"), [("ann", "ann"), ("ann", "Ann "), ("*", "ann"), ("*", "curator")])
def test_whoever_has_a_share_sees_nothing_and_leaves_no_mark(
    plan: Path, say: Say, share: str, name: str
) -> None:
    assert say("plan", plan, "--record")[0] == 0
    with Ledger.open(plan.parent / "t.ledger") as ledger:
        ledger.share(share, tacit.Pure(epsilon=1.0))
    plan.write_text(asked_by(name))
    code, out, error = say("inspect", plan)
    assert (code, out) == (1, "")
    assert "an analyst with a share" in error
    assert not looks(plan)


def test_an_analyst_by_role_sees_nothing_and_leaves_no_mark(plan: Path, say: Say) -> None:
    assert say("plan", plan, "--record")[0] == 0
    with Ledger.open(plan.parent / "t.ledger") as ledger:
        ledger.enrol("ann", "analyst")
        for name in ("ann", "ANN"):
            plan.write_text(asked_by(name))
            code, out, error = say("inspect", plan)
            assert (code, out) == (1, "")
            assert "may not look at the data: it takes the role of custodian" in error
        ledger.enrol("carl", "custodian")
        for name in ("ann", "curator"):
            plan.write_text(asked_by(name))
            assert say("inspect", plan)[0] == 1
        assert not looks(plan)
        ledger.share("*", tacit.Pure(epsilon=1.0), by="carl")
        plan.write_text(asked_by("carl"))
        assert say("inspect", plan)[0] == 0
    assert len(looks(plan)) == 1


def test_a_file_without_a_ledger_that_lasts_is_not_looked_at(plan: Path) -> None:
    survey = tacit.Curator(
        plan.parent / "t.csv", protect=tacit.rows(), schema={"state": tacit.category(["Bremen"])},
        budget=tacit.Pure(epsilon=1.0),
    )  # fmt: skip
    with pytest.raises(InvalidParameter, match="ledger"), survey:
        tacit.inspect(survey)
