"""The laws: each is a function with the theorem that makes it true. Everything else is `NoLaw`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tacit.errors import UnknownName
from tacit.exact.checks import refuse_if, text
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import bisected
from tacit.guarantees.bounds import Approximate, Bound, Pointwise
from tacit.guarantees.theorems import Theorem, theorem

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """One edge of the algebra: its effect, its reason, and its function."""

    id: str
    operation: str
    theorem: Theorem
    apply: Callable[..., Any]


LAWS: dict[str, Law] = {}


def law(id: str, *, operation: str, rests_on: str = "") -> Callable[[F], F]:
    """Registers a law under its id; `rests_on` names its theorem if that has another id."""

    def enter(function: F) -> F:
        refuse_if(id in LAWS, "id", id, "be registered once")
        LAWS[id] = Law(id=id, operation=operation, theorem=theorem(rests_on or id), apply=function)
        return function

    return enter


def find(id: str, *, operation: str) -> Law:
    """The law with this id among those of one operation."""
    text("law", id)
    known = {name: entry for name, entry in LAWS.items() if entry.operation == operation}
    if id not in known:
        raise UnknownName(what=f"law of {operation}", name=id, known=known)
    return known[id]


# The largest parameter that keeps a promise: every answer is a number at which the promise was checked.

STEPS = 200


def largest(keeps: Callable[[float], bool], low: float, high: float) -> float:
    """The largest number, within rounding, that `keeps` accepts. `keeps` accepts `low`, and rejects all numbers
    from some point on.
    """
    while keeps(high):
        low, high = high, high * 2
    return bisected(lambda number: not keeps(number), low, high, halvings=STEPS, relative=2e-16)[0]


# Post-processing: what is computed from a release, without the data, reveals no more than the release.


@law("post-processing", operation="post-process")
def post_process_bound(bound: Bound) -> Bound:
    """The bound itself, except that a pointwise bound keeps only its (epsilon, delta) meaning."""
    return pointwise_after_processing(bound) if isinstance(bound, Pointwise) else bound


@law("pointwise-post-processing", operation="post-process")
def pointwise_after_processing(bound: Pointwise) -> Approximate:
    """Merging outputs may spread the bad event over more probability than delta."""
    return Approximate(epsilon=float(bound.epsilon), delta=float(bound.delta))
