"""A plan given random data: who gets how much of its gamma, and what is done with it.

The plan's gamma is divided by weight among the releases that have no words of their own and a mechanism for it. A
release for which nothing may be exact at its share is plain DP and spends none; what it leaves goes to the others.
Statistics without a mechanism stay plain DP in such a plan; asked for by themselves they are refused. A plan with
public totals is refused: its bound compares tables that agree on them, and gamma is counted over all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tacit.curator.asks import Ask
from tacit.curator.given import ALWAYS, Given, check_unit, no_mechanism, shares_of
from tacit.curator.prices import Price
from tacit.curator.random_counts import fits, gamma_of, treat_on_random_data
from tacit.curator.treatments import Treatment
from tacit.errors import NoLaw
from tacit.guarantees import Bound, Unit
from tacit.statistics.base import Question

__all__ = ["on_random_data"]

PLAIN = "differentially private: it takes nothing from random data"

Wanted = tuple[Question, Price, Treatment]


def on_random_data(
    asks: Sequence[Ask], wanted: Sequence[Wanted], given: Given | None, *, unit: Unit, budget: Bound
) -> list[tuple[Question, Treatment]]:
    """Question and treatment of each ask: the plain one, or one with exact small cells."""
    found = [(question, plain) for question, _, plain in wanted]
    own = {i: a.given.within(given) for i, a in enumerate(asks) if a.given is not None and a.given.gamma}
    # The plan was fixed before, or not: what one release declares, all rest on, and their certificates say so.
    before = any(words.fixed_before for words in (*own.values(), given or ALWAYS))
    if not own and (given is None or not given.gamma):
        return found
    check_unit(unit)
    if any(a.public is not None for a in asks):
        raise _agreeing()
    for i in own:
        _refuse(wanted[i][0])

    def treated(i: int, words: Given) -> tuple[Question, Treatment]:
        question, price, plain = wanted[i]
        words = replace(words, fixed_before=before)
        return treat_on_random_data(question, price, words, plain, budget=budget)

    for i, words in own.items():
        found[i] = treated(i, words)
    if given is None or not given.gamma:
        return found
    for i, a in enumerate(asks):
        if a.given is None and not fits(wanted[i][0]):
            question, plain = found[i]
            found[i] = question, replace(plain, reason=f"{plain.reason}; {PLAIN}")
    sharing = [i for i, a in enumerate(asks) if a.given is None and fits(wanted[i][0])]
    if not sharing and not own:
        _refuse(wanted[0][0])
    while sharing:
        shares = shares_of(given, [asks[i].weight for i in sharing])
        for i, share in zip(sharing, shares, strict=True):
            found[i] = treated(i, share)
        kept = [i for i in sharing if gamma_of(found[i][1])]
        if kept == sharing:
            break
        sharing = kept
    return found


def _refuse(question: Question) -> None:
    """Refuse a statistic without a mechanism."""
    if not fits(question):
        raise no_mechanism(question.statistic.kind)


def _agreeing() -> NoLaw:
    """Why totals that are public, of any release of a plan, and random data do not go together."""
    return NoLaw(
        operation="public totals given random data",
        reason="gamma is counted over tables that may differ in any row; those that agree on totals are others",
        counterexample="one row in twenty is of region 0 and has a cell of its own, each other row is in a cell with "
        "many and a region of its own: gamma = 0.1 for all pairs, but those that agree by region are of region 0, and "
        "their exact cells differ",
        hint="leave out one of the two, of the whole plan",
    )
