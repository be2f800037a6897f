"""What somebody may declare and no program can check; a guarantee that rests on it says so."""

from __future__ import annotations

__all__ = [
    "DISJOINT_ROWS",
    "FIXED_BEFORE",
    "FIXED_MECHANISMS",
    "FIXED_PARAMETERS",
    "FIXED_PARTS",
    "INDEPENDENT_DRAWS",
    "LARGEST_CHANGE",
    "LEAST_ROWS",
    "MOST_CHANGE",
    "MUTUAL_KNOWLEDGE",
    "ORACLE_LAW",
    "PARTS_ARE_GROUPS",
    "SECRET_SAMPLE",
    "SEEN",
    "SEEN_ANOTHER",
    "SEEN_BEFORE",
    "SMOOTH_CHANGE",
]

DISJOINT_ROWS = "the releases use disjoint rows, independent given what an adversary knows"
FIXED_BEFORE = "this plan was fixed before any other release about these data was seen"
FIXED_MECHANISMS = "all mechanisms were fixed before the data were seen"
FIXED_PARAMETERS = "the parameters of all releases were fixed in advance"
FIXED_PARTS = "the part in which a row lies does not depend on its data"
INDEPENDENT_DRAWS = "the rows are independent draws from one population"
LARGEST_CHANGE = "no two rows differ by more than the largest level"
LEAST_ROWS = "there are at least as many rows as declared"
MOST_CHANGE = (
    "one replaced row moves the statistic by no more than the declared change of the two rows, over n"
)
MUTUAL_KNOWLEDGE = "each release is private for somebody who knows the other"
ORACLE_LAW = "the oracle is public and draws from the law of the rows"
PARTS_ARE_GROUPS = "the parts are the groups of which a person may be in so many"
SMOOTH_CHANGE = "the chosen change of neighbouring samples differs by no more than the declared factor"
SECRET_SAMPLE = "nobody learns which units were sampled"
SEEN = "declarations were made by someone who had seen the data"
SEEN_ANOTHER = (
    "declarations were made by someone who had seen the data under another declared version or name, which may hold "
    "the same rows"
)
SEEN_BEFORE = (SEEN, SEEN_ANOTHER)
"""What a ledger knows against a guarantee: bounds, keys and bins may have been fitted, and that is not in the bound."""
