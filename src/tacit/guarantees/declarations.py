"""What somebody may declare and no program can check; a guarantee that rests on it says so."""

from __future__ import annotations

__all__ = [
    "DISJOINT_ROWS",
    "FIXED_MECHANISMS",
    "FIXED_PARAMETERS",
    "FIXED_PARTS",
    "MUTUAL_KNOWLEDGE",
    "PARTS_ARE_GROUPS",
    "SECRET_SAMPLE",
]

DISJOINT_ROWS = "the releases use disjoint rows, independent given what an adversary knows"
FIXED_MECHANISMS = "all mechanisms were fixed before the data were seen"
FIXED_PARAMETERS = "the parameters of all releases were fixed in advance"
FIXED_PARTS = "the part in which a row lies does not depend on its data"
MUTUAL_KNOWLEDGE = "each release is private for somebody who knows the other"
PARTS_ARE_GROUPS = "the parts are the groups of which a person may be in so many"
SECRET_SAMPLE = "nobody learns which units were sampled"
