"""beta-likeness, delta-disclosure and delta-presence: how much more likely a value, or a person, becomes.

p is the share of a value in a class, q its share in the whole table.
"""

from __future__ import annotations

import math
from typing import Any

from tacit.anonymity.classes import COUNT, Classes
from tacit.anonymity.measures import against
from tacit.errors import InvalidParameter

__all__ = ["basic_likeness", "disclosure", "enhanced_likeness", "presence"]


def _shares(classes: Classes) -> Any:
    shares = classes.shares
    return shares.mutate(
        p=shares[COUNT] / shares["size"].cast("float64"), q=shares["total"].cast("float64") / classes.rows
    )


def basic_likeness(classes: Classes) -> float:
    """The largest (p - q) / q of a value that a class has more of: basic beta-likeness (Cao and Karras 2012)."""
    shares = _shares(classes)
    gain = (shares["p"] - shares["q"]) / shares["q"]
    return max(0.0, float(classes.micro.one(shares.aggregate(worst=gain.max()))["worst"]))


def enhanced_likeness(classes: Classes) -> float:
    """The least beta with (p - q) / q <= min(beta, -ln q) for all p > q; infinite where no beta will do.

    The cap -ln q does not depend on beta (Cao and Karras 2012, definition 3): a class that exceeds it for one value
    has no enhanced beta-likeness at all. Basic likeness is then still finite.
    """
    shares = _shares(classes)
    gain = (shares["p"] - shares["q"]) / shares["q"]
    over = (shares["p"] > shares["q"]) & (gain > -shares["q"].ln())
    found = classes.micro.one(shares.aggregate(worst=gain.max(), over=over.cast("int64").sum()))
    return math.inf if found["over"] else max(0.0, float(found["worst"]))


def disclosure(classes: Classes, *, absent: bool = True) -> float:
    """The largest |ln(p / q)|: delta-disclosure privacy (Brickell and Shmatikov 2008), natural logarithm.

    A class that lacks a value of the table has p = 0 there, and no finite delta; absent=False passes over such values,
    as some programs do, and is then about present values only.
    """
    shares = _shares(classes)
    worst = (shares["p"] / shares["q"]).ln().abs().max()
    found = classes.micro.one(shares.aggregate(worst=worst, cells=shares.count()))
    if absent:
        values = classes.values
        many = int(classes.micro.one(values.aggregate(m=values.count()))["m"])
        if found["cells"] < many * sum(classes.histogram.values()):
            return math.inf
    return float(found["worst"])


def presence(classes: Classes, population: Classes) -> tuple[float, float]:
    """The least and largest share of a population's class that is in the table: delta-presence (Nergiz et al. 2007).

    Who is known to be in the population is in the table with a probability between the two, for an attacker who knows
    the quasi-identifiers. The table must be a part of the population.
    """
    met = against(classes, population)
    stray = (met["here"] > met["there"]).cast("int64").sum()
    share = met["here"] / met["there"].cast("float64").nullif(0.0)
    found = classes.micro.one(met.aggregate(low=share.min(), high=share.max(), stray=stray))
    if found["stray"]:
        raise InvalidParameter(
            parameter="population", value="another table", must="contain every row of the table",
            hint="some class has more rows in the table than in the population",
        )  # fmt: skip
    return float(found["low"]), float(found["high"])
