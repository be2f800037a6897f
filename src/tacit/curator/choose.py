"""Which treatment a question gets: additive noise, noisy ranks, or a selection of keys first."""

from __future__ import annotations

from tacit.curator.keys import treat_keys
from tacit.curator.prices import Price
from tacit.curator.ranks import treat_ranks
from tacit.curator.rough import treat_bounds
from tacit.curator.sparse import treat_sparse
from tacit.curator.treatments import Treatment, treat
from tacit.guarantees import Bound
from tacit.statistics.base import Question

__all__ = ["choose", "needs_delta"]


def choose(question: Question, price: Price, *, budget: Bound | None = None) -> Treatment:
    """The treatment of a question at this price; `budget` says what is cheap."""
    if question.statistic.kind == "sparse_histogram":
        return treat_sparse(question, price)
    if not question.known_keys:
        return treat_keys(question, price)
    if question.statistic.kind == "bounds":
        return treat_bounds(question, price)
    if question.statistic.kind == "quantiles":
        return treat_ranks(question, price)
    return treat(question, price, budget=budget)


def needs_delta(question: Question) -> bool:
    """Does its treatment at an (epsilon, delta) price spend a delta of its own?"""
    return not question.known_keys or question.statistic.kind == "sparse_histogram"
