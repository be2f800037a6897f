"""What a plan asks, in words that a ledger keeps and a report shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.curator.plan import Plan

__all__ = ["question_words", "told_of"]

LONGEST = 2000


def told_of(plan: Plan) -> list[dict[str, Any]]:
    """Each release of a plan for the ledger: its name, the question, and its own price."""
    if "told" not in plan.kept:
        plan.kept["told"] = [
            (
                r.name, _short(question_words(r.ask.statistic.describe())), r.guarantee.bound.kind,
                str(r.guarantee.bound),
            )
            for r in plan.releases
        ]  # fmt: skip
    return [
        {"release": name, "statistic": words, "price": {"kind": kind, "words": price}}
        for name, words, kind, price in plan.kept["told"]
    ]


def _short(words: str) -> str:
    """A printable text that a ledger takes: names of columns may be anything."""
    shown = "".join(c if c.isprintable() else "?" for c in words)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 3] + "..."


def question_words(statistic: Mapping[str, Any]) -> str:
    """The question as a sentence."""
    kind = statistic["kind"]
    what = {
        "count": f"How many {statistic.get('of', 'rows')} there are",
        "sum": f"The sum of {statistic.get('column')}",
        "mean": f"The mean of {statistic.get('column')}",
        "variance": f"The {'standard deviation' if statistic.get('root') else 'variance'} of {statistic.get('column')}",
        "proportion": f"The share of rows with {statistic.get('of')}",
        "ratio": f"The sum of {statistic.get('numerator')} over the sum of {statistic.get('denominator')}",
        "quantiles": f"The values of {statistic.get('column')} below which given shares of the rows lie",
        "margins": f"All tables of order {statistic.get('order')} of {_listed(statistic.get('columns'))}",
        "density": f"The density of {_listed(statistic.get('columns'))}",
        "classifier": f"A function that tells {statistic.get('label')} from {_listed(statistic.get('columns'))}",
        "regression_function": f"What {statistic.get('outcome')} to expect, from {_listed(statistic.get('columns'))}",
    }.get(kind, kind.replace("_", " ").capitalize())
    by = f", for each {_listed(statistic['by'])}" if statistic.get("by") else ""
    where = f", of rows where {statistic['where']}" if statistic.get("where") else ""
    return f"{what}{by}{where}."


def _listed(entries: Any) -> str:
    names = [e if isinstance(e, str) else e["column"] for e in entries or []]
    return " and ".join(map(str, names))
