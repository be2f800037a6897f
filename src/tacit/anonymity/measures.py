"""k-anonymity, (alpha, k), k-map and l-diversity: what a table is, not what it promises.

Each number is exact for the table that was read. None of them is a guarantee: see `properties`.
"""

from __future__ import annotations

import math
from typing import Any

from tacit.anonymity.classes import COUNT, VALUE, Classes
from tacit.errors import WrongType
from tacit.exact.checks import positive, whole

__all__ = [
    "against",
    "alpha",
    "diversity",
    "entropy_diversity",
    "k_anonymity",
    "k_map",
    "recursive_c",
    "recursive_diversity",
]


def k_anonymity(classes: Classes) -> int:
    """The size of the smallest class (Samarati and Sweeney 1998; Groce, Definition 2.1)."""
    return classes.least["size"]


def alpha(classes: Classes) -> float:
    """The largest share of one sensitive value in a class: the alpha of (alpha, k)-anonymity (Wong et al. 2006)."""
    shares = classes.shares
    return float(
        classes.micro.one(shares.aggregate(found=(shares[COUNT].cast("float64") / shares["size"]).max()))[
            "found"
        ]
    )


def k_map(classes: Classes, population: Classes) -> int:
    """The fewest people of the population who share the quasi-identifiers of somebody in the table (Sweeney 2002).

    A class of the table that the population does not have has 0 of them: the population is not one of this table.
    """
    joined = against(classes, population)
    joined = joined.filter(joined["here"] > 0)
    return int(classes.micro.one(joined.aggregate(found=joined["there"].min()))["found"])


def against(classes: Classes, population: Classes) -> Any:
    """All classes with their numbers of rows in the table (here) and in the population (there), nulls being values."""
    here, known = classes.sizes, population.micro.ask(population.sizes)
    there = classes.micro.show(known)
    kinds = {}
    for name, key in zip(classes.quasi, classes.keys, strict=True):
        mine, theirs = here[key].type(), there[key].type()
        common = _common(mine, theirs)
        if common is None:
            raise WrongType(
                column=name, found=f"{theirs} in the population", wanted=f"{mine}, as in the table",
                hint="store both tables alike",
            )  # fmt: skip
        kinds[key] = common

    def keys(table: Any) -> dict[str, Any]:
        return {key: table[key].cast(kind) for key, kind in kinds.items()}

    ours = here.select(**keys(here), here=here[COUNT].cast("int64"), there=_zero())
    both = ours.union(there.select(**keys(there), here=_zero(), there=there[COUNT].cast("int64")))
    return both.group_by(*classes.keys).aggregate(
        here=both["here"].sum().cast("int64"), there=both["there"].sum().cast("int64")
    )


def _common(mine: Any, theirs: Any) -> Any:
    """A type that holds the values of both as they are, so that no two become one; None where there is none."""
    mine, theirs = mine.copy(nullable=True), theirs.copy(nullable=True)
    if mine == theirs or (mine.is_string() and theirs.is_string()):
        return mine
    if mine.is_null() or theirs.is_null():
        return theirs if mine.is_null() else mine
    if mine.is_integer() and theirs.is_integer():
        return "decimal(38, 0)"
    if mine.is_floating() and theirs.is_floating():
        return "float64"
    small = {mine, theirs}
    if any(kind.is_floating() for kind in small) and any(
        kind.is_integer() and kind.nbytes <= 4 for kind in small
    ):
        return "float64"
    return None


def _zero() -> Any:
    import ibis

    return ibis.literal(0, type="int64")


def diversity(classes: Classes) -> int:
    """The fewest distinct sensitive values in a class: distinct l-diversity (Machanavajjhala et al. 2007)."""
    return classes.need_sensitive().least["values"]


def entropy_diversity(classes: Classes) -> float:
    """exp of the least entropy of the sensitive values in a class; entropy l-diversity holds for all l up to it."""
    cells = classes.cells
    n = cells[COUNT].cast("float64")
    # The entropy of counts n_v that sum to N is ln N - sum n_v ln n_v / N, which needs one pass.
    found = cells.group_by(*classes.keys).aggregate(size=n.sum(), inner=(n * n.ln()).sum())
    entropy = found["size"].ln() - found["inner"] / found["size"]
    least = float(classes.micro.one(found.aggregate(least=entropy.min()))["least"])
    return math.exp(max(least, 0.0))


def _tails(classes: Classes) -> Any:
    """For each class its values by falling frequency: rank, most frequent (top), rows from this rank on (tail)."""
    import ibis

    shares = classes.shares
    order = [ibis.desc(shares[COUNT]), shares[VALUE]]
    keys = list(classes.keys)
    before = ibis.window(group_by=keys, order_by=order, rows=(None, -1))
    return shares.mutate(
        rank=ibis.row_number().over(group_by=keys, order_by=order) + 1,
        top=shares[COUNT].max().over(group_by=keys),
        tail=shares["size"] - shares[COUNT].sum().over(before).fill_null(0),
    )


def recursive_diversity(classes: Classes, *, c: float) -> int:
    """The largest l for which the table is recursively (c, l)-diverse; 0 where it is not even for l = 1.

    In every class r_1 < c (r_l + ... + r_m), where r_1 >= ... >= r_m are the frequencies of its values
    (Machanavajjhala et al. 2007, definition 4.2). The sum falls with l, so that the largest l is found by counting.
    """
    c = positive("c", c)
    tails = _tails(classes)
    good = (tails["top"] < tails["tail"].cast("float64") * c).cast("int64")
    found = tails.group_by(*classes.keys).aggregate(l=good.sum())
    return int(classes.micro.one(found.aggregate(least=found["l"].min()))["least"])


def recursive_c(classes: Classes, *, l: int) -> float:  # noqa: E741
    """The number that c must exceed for recursive (c, l)-diversity: the largest r_1 / (r_l + ... + r_m); else infinity.

    Infinite where a class has fewer than l values.
    """
    import ibis

    l = whole("l", l)  # noqa: E741
    tails = _tails(classes)
    at = ibis.ifelse(tails["rank"] == l, tails["tail"], 0)
    found = tails.group_by(*classes.keys).aggregate(top=tails["top"].max(), tail=at.max())
    ratio = ibis.ifelse(found["tail"] > 0, found["top"].cast("float64") / found["tail"], float("inf"))
    return float(classes.micro.one(found.aggregate(worst=ratio.max()))["worst"])
