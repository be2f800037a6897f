"""Re-identification risk: the chance that a link by quasi-identifiers is right, for three attackers (El Emam 2013).

- The prosecutor knows that her target is in the table: her chance is 1 / size of the target's class.
- The journalist does not, and knows the population: her chance is 1 / size of the class in the population.
- The marketer links everybody: the expected share of right links.

All three assume that the attacker knows the quasi-identifiers exactly, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.anonymity.classes import Classes
from tacit.anonymity.measures import against
from tacit.errors import InvalidParameter
from tacit.exact.checks import whole

__all__ = ["Risk", "journalist", "prosecutor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """highest: of any row. average: over rows, which is the marketer's share. at_risk: the share of rows above 1/k."""

    highest: float
    average: float
    at_risk: float
    threshold: int


def prosecutor(classes: Classes, *, k: int = 5) -> Risk:
    """Of an attacker who knows that her target is in the table. Its average is the marketer's risk within the table."""
    k = whole("k", k)
    sizes, rows = classes.histogram, classes.rows
    small = sum(size * many for size, many in sizes.items() if size < k)
    return Risk(
        highest=1.0 / min(sizes), average=sum(sizes.values()) / rows, at_risk=small / rows, threshold=k
    )


def journalist(classes: Classes, population: Classes, *, k: int = 5) -> Risk:
    """Of an attacker who knows the population. Its average, over rows of the table, is the marketer's risk there."""
    k = whole("k", k)
    met = against(classes, population)
    met = met.filter(met["here"] > 0)
    # Nobody there: refused below. Spark would not divide by 0.
    there = met["there"].cast("float64").nullif(0.0)
    small = (met["there"] < k).cast("int64") * met["here"]
    found = classes.micro.one(
        met.aggregate(
            least=met["there"].min(),
            expected=(met["here"].cast("float64") / there).sum(),
            small=small.sum(),
            stray=(met["here"] > met["there"]).cast("int64").sum(),
        )
    )
    if found["stray"]:
        raise InvalidParameter(
            parameter="population", value="another table", must="contain every row of the table",
            hint="some class has more rows in the table than in the population",
        )  # fmt: skip
    rows = classes.rows
    return Risk(
        highest=1.0 / int(found["least"]),
        average=float(found["expected"]) / rows,
        at_risk=int(found["small"]) / rows,
        threshold=k,
    )
