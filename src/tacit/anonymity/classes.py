"""Equivalence classes: rows that agree in the quasi-identifiers, counted inside the engine.

A missing value counts as a value: two people without a postal code agree in it. Text is compared by its
bytes, numbers as they are stored. This module reads no row into this process; the engine returns sizes of classes and
the number of classes of each size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from tacit.errors import BadData, EmptyComposition, InvalidParameter, UnknownColumn, WrongType
from tacit.exact.checks import positive, whole
from tacit.exact.data_classes import dataclass
from tacit.sources.microdata import Microdata

# What every table is asked first, as DuckDB's own SQL: Ibis takes as long to write it as DuckDB to answer it.
#
# The same numbers are asked through Ibis of other engines (`classes`, `closeness`); tests compare both with the
# definitions. Columns are grouped by their places: a name may be that of a column of the table too. A null is the
# same as a null.

COUNT = "n"
VALUE = "s"


def cells(table: str, quasi: Sequence[str], sensitive: str) -> str:
    """One row for each class and sensitive value in it; `table` is a statement that gives the rows."""
    named = [f"{_quoted(name)} AS q{i}" for i, name in enumerate(quasi)]
    places = ", ".join(str(i + 1) for i in range(len(quasi) + 1))
    return (
        f"SELECT {', '.join(named)}, {_quoted(sensitive)} AS {VALUE}, count(*) AS {COUNT} "
        f"FROM ({table}) AS rows GROUP BY {places}"
    )


def least(cells: str, keys: Sequence[str]) -> str:
    """The size of the smallest class, the number of rows, and the fewest sensitive values in a class."""
    return (
        f"SELECT min(size), sum(size), min(many) FROM "
        f"(SELECT sum({COUNT}) AS size, count(*) AS many FROM {cells} GROUP BY {', '.join(keys)})"
    )


def equal_distance(cells: str, keys: Sequence[str], rows: int) -> str:
    """The largest total variation distance between the sensitive values of a class and those of the table."""
    names = ", ".join(keys)
    same = " AND ".join(f"c.{key} IS NOT DISTINCT FROM z.{key}" for key in keys)
    return (
        f"WITH z AS (SELECT {names}, sum({COUNT})::DOUBLE AS size FROM {cells} GROUP BY {names}), "
        f"w AS (SELECT {VALUE}, sum({COUNT})::DOUBLE / {rows} AS share FROM {cells} GROUP BY {VALUE}) "
        f"SELECT max(distance) FROM (SELECT sum(greatest(c.{COUNT} / z.size - w.share, 0.0)) AS distance "
        f"FROM {cells} AS c JOIN z ON {same} JOIN w ON c.{VALUE} IS NOT DISTINCT FROM w.{VALUE} "
        f"GROUP BY {', '.join(f'c.{key}' for key in keys)})"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


COUNT_COLUMN, VALUE_COLUMN = COUNT, VALUE


def check_roles(
    columns: Sequence[str], quasi: Sequence[str], sensitive: str | None = None, *, source: str = "the table"
) -> tuple[str, ...]:
    """The quasi-identifiers: columns of the table, each once, without the sensitive column."""
    names = (quasi,) if isinstance(quasi, str) else tuple(quasi)
    if not names:
        raise EmptyComposition(
            what="the list of quasi-identifiers",
            hint="name the columns that somebody else may know of a person, such as age, sex, postal code",
        )
    for name in (*names, *([sensitive] if sensitive is not None else [])):
        if not isinstance(name, str):
            raise InvalidParameter(parameter="quasi", value=type(name).__name__, must="be names of columns")
        if name not in columns:
            raise UnknownColumn(column=name, known=columns, where=source)
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise InvalidParameter(parameter="quasi", value=twice[0], must="name each column once")
    if sensitive is not None and sensitive in names:
        raise InvalidParameter(
            parameter="sensitive", value=sensitive, must="not be a quasi-identifier too",
            hint="what an attacker knows already cannot be what she learns: leave it out of one of the two",
        )  # fmt: skip
    return names


class Classes:
    """The classes of a table by its quasi-identifiers, with one sensitive column or none.

    `keys` are q0, q1, ... in the order of `quasi`; `sizes` has a row a class, with its size n; `cells` a row for each
    class and sensitive value in it, computed once and kept by the engine.
    """

    def __init__(self, micro: Microdata, quasi: Sequence[str], sensitive: str | None = None) -> None:
        self.micro = micro
        self.quasi = check_roles(micro.columns, quasi, sensitive, source=micro.source)
        self.sensitive = sensitive
        for name in (*self.quasi, *([sensitive] if sensitive else [])):
            kind = micro.type_of(name)
            if kind.is_nested() or kind.is_json() or kind.is_geospatial():
                raise WrongType(column=name, found=f"stored as {kind}", wanted="a plain value",
                                hint="make columns of its parts first")  # fmt: skip
        self.keys = tuple(f"q{i}" for i in range(len(self.quasi)))

    def grouped(self, relation: Any, more: Mapping[str, Any] | None = None) -> Any:
        """A table with these columns, counted by them under the names q0, q1, ... and `more`."""
        named = {key: relation[name] for key, name in zip(self.keys, self.quasi, strict=True)}
        return relation.group_by(**named, **(more or {})).aggregate(**{COUNT_COLUMN: relation.count()})

    def need_sensitive(self) -> Classes:
        """These classes, if they have a sensitive column."""
        if self.sensitive is None:
            raise InvalidParameter(
                parameter="sensitive",
                value=None,
                must="name a column",
                hint="this measure is about what is learned",
            )
        return self

    @cached_property
    def cells_name(self) -> str | None:
        """The name of the table of cells in DuckDB, made without Ibis; None in other engines."""
        self.need_sensitive()
        return self.micro.keep_statement(lambda table: cells(table, self.quasi, self.sensitive or ""))

    @cached_property
    def cells(self) -> Any:
        """One row for each class and value of the sensitive column in it."""
        name = self.cells_name
        if name is not None:
            return self.micro.held(name)
        relation = self.micro.relation
        return self.micro.keep(self.grouped(relation, {VALUE_COLUMN: relation[self.sensitive]}))

    @cached_property
    def sizes(self) -> Any:
        """One row for each class: its size n, and the number of different sensitive values in it."""
        return self.micro.keep(self._sizes())

    def _sizes(self) -> Any:
        """`sizes`, computed on demand and not kept."""
        if "sizes" in vars(self):
            return self.sizes
        if self.sensitive is None:
            return self.grouped(self.micro.relation)
        cells = self.cells
        total = cells[COUNT_COLUMN].sum().cast("int64")
        return cells.group_by(*self.keys).aggregate(**{COUNT_COLUMN: total, "values": cells.count()})

    @cached_property
    def histogram(self) -> dict[int, int]:
        """The number of classes of each size. Sizes that do not occur are left out."""
        sizes = self.sizes
        found = self.micro.ask(sizes.group_by(size=sizes[COUNT_COLUMN]).aggregate(classes=sizes.count()))
        pairs = zip(found.column("size").to_pylist(), found.column("classes").to_pylist(), strict=True)
        table = {int(size): int(classes) for size, classes in sorted(pairs)}
        if not table:
            raise BadData(source=self.micro.source, problem="has no rows", hint="there is nothing to measure")
        return table

    @cached_property
    def least(self) -> dict[str, int]:
        """The number of rows, the size of the smallest class and, with a sensitive column, the fewest values in one."""
        if self.sensitive is not None and (name := self.cells_name) is not None:
            row = self.micro.state(least(name, self.keys))
            return self._checked(dict(zip(("size", "rows", "values"), row, strict=True)))
        sizes = self.sizes if self.sensitive is None else self._sizes()
        asked = {"size": sizes[COUNT_COLUMN].min(), "rows": sizes[COUNT_COLUMN].sum().cast("int64")}
        asked |= {"values": sizes["values"].min()} if self.sensitive else {}
        return self._checked(self.micro.one(sizes.aggregate(**asked)))

    def _checked(self, found: dict[str, Any]) -> dict[str, int]:
        if found["size"] is None:
            raise BadData(source=self.micro.source, problem="has no rows", hint="there is nothing to measure")
        return {name: int(number) for name, number in found.items()}

    @cached_property
    def rows(self) -> int:
        """The number of rows."""
        return self.least["rows"]

    @cached_property
    def values(self) -> Any:
        """The sensitive values of the whole table with their numbers of rows."""
        cells = self.cells
        return self.micro.keep(
            cells.group_by(VALUE_COLUMN).aggregate(total=cells[COUNT_COLUMN].sum().cast("int64"))
        )

    @cached_property
    def shares(self) -> Any:
        """`cells` with the size of the class and the number of rows with the value in the whole table."""
        return self.sized(self.cells, self.sizes, self.values)

    def sized(self, cells: Any, sizes: Any, values: Any) -> Any:
        """Cells with `size` and `total`; two nulls count as equal."""
        small = sizes.select(size=sizes[COUNT_COLUMN], **{f"z{key}": sizes[key] for key in self.keys})
        return self._met(cells, small, values.select(v=values[VALUE_COLUMN], total=values["total"]))

    def shares_once(self) -> Any:
        """`shares` for a single question: sizes and totals are added up in it and not stored."""
        cells = self.cells
        n = cells[COUNT_COLUMN].sum()
        small = cells.group_by(**{f"z{key}": cells[key] for key in self.keys}).aggregate(size=n)
        return self._met(cells, small, cells.group_by(v=cells[VALUE_COLUMN]).aggregate(total=n))

    def _met(self, cells: Any, small: Any, named: Any) -> Any:
        met = cells.join(small, [cells[key].identical_to(small[f"z{key}"]) for key in self.keys])
        met = met.join(named, met[VALUE_COLUMN].identical_to(named["v"]))
        return met.select(*self.keys, VALUE_COLUMN, COUNT_COLUMN, "size", "total")


# k-anonymity, (alpha, k), k-map and l-diversity: what a table is, not what it promises.
#
# Each number is exact for the table that was read. None of them is a guarantee: see `properties`.


def k_anonymity(classes: Classes) -> int:
    """The size of the smallest class (Samarati and Sweeney 1998; Groce, Definition 2.1)."""
    return classes.least["size"]


def alpha(classes: Classes) -> float:
    """The largest share of one sensitive value in a class: the alpha of (alpha, k)-anonymity (Wong et al. 2006)."""
    shares = classes.shares
    return float(
        classes.micro.one(
            shares.aggregate(found=(shares[COUNT_COLUMN].cast("float64") / shares["size"]).max())
        )["found"]
    )


def k_map(classes: Classes, population: Classes) -> int:
    """The fewest people of the population who share the quasi-identifiers of somebody in the table (Sweeney 2002).

    A class with 0 members in the population shows that the population belongs to another table.
    """
    joined = against(classes, population)
    joined = joined.filter(joined["here"] > 0)
    return int(classes.micro.one(joined.aggregate(found=joined["there"].min()))["found"])


def against(classes: Classes, population: Classes) -> Any:
    """All classes with their numbers of rows in the table (`here`) and in the population (`there`); a null counts as
    a value.
    """
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

    ours = here.select(**keys(here), here=here[COUNT_COLUMN].cast("int64"), there=_zero())
    both = ours.union(there.select(**keys(there), here=_zero(), there=there[COUNT_COLUMN].cast("int64")))
    return both.group_by(*classes.keys).aggregate(
        here=both["here"].sum().cast("int64"), there=both["there"].sum().cast("int64")
    )


def _common(mine: Any, theirs: Any) -> Any:
    """A type for the values of both columns that merges no two of them; None if there is no such type."""
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
    n = cells[COUNT_COLUMN].cast("float64")
    # The entropy of counts n_v that sum to N is ln N - sum n_v ln n_v / N, which needs one pass.
    found = cells.group_by(*classes.keys).aggregate(size=n.sum(), inner=(n * n.ln()).sum())
    entropy = found["size"].ln() - found["inner"] / found["size"]
    least = float(classes.micro.one(found.aggregate(least=entropy.min()))["least"])
    return math.exp(max(least, 0.0))


def _tails(classes: Classes) -> Any:
    """For each class its values by falling frequency: rank, most frequent (top), rows from this rank on (tail)."""
    import ibis

    shares = classes.shares
    order = [ibis.desc(shares[COUNT_COLUMN]), shares[VALUE_COLUMN]]
    keys = list(classes.keys)
    before = ibis.window(group_by=keys, order_by=order, rows=(None, -1))
    return shares.mutate(
        rank=ibis.row_number().over(group_by=keys, order_by=order) + 1,
        top=shares[COUNT_COLUMN].max().over(group_by=keys),
        tail=shares["size"] - shares[COUNT_COLUMN].sum().over(before).fill_null(0),
    )


def recursive_diversity(classes: Classes, *, c: float) -> int:
    """The largest l for which the table is recursively (c, l)-diverse; 0 if it fails for l = 1 already.

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

    Infinite if a class has fewer than l values.
    """
    import ibis

    l = whole("l", l)  # noqa: E741
    tails = _tails(classes)
    at = ibis.ifelse(tails["rank"] == l, tails["tail"], 0)
    found = tails.group_by(*classes.keys).aggregate(top=tails["top"].max(), tail=at.max())
    ratio = ibis.ifelse(found["tail"] > 0, found["top"].cast("float64") / found["tail"], float("inf"))
    return float(classes.micro.one(found.aggregate(worst=ratio.max()))["worst"])


# beta-likeness, delta-disclosure and delta-presence: how much more likely a value, or a person, becomes.
#
# p is the share of a value in a class, q its share in the whole table.


def _shares(classes: Classes) -> Any:
    shares = classes.shares
    return shares.mutate(
        p=shares[COUNT_COLUMN] / shares["size"].cast("float64"),
        q=shares["total"].cast("float64") / classes.rows,
    )


def basic_likeness(classes: Classes) -> float:
    """The largest (p - q) / q of a value that a class has more of: basic beta-likeness (Cao and Karras 2012)."""
    shares = _shares(classes)
    gain = (shares["p"] - shares["q"]) / shares["q"]
    return max(0.0, float(classes.micro.one(shares.aggregate(worst=gain.max()))["worst"]))


def enhanced_likeness(classes: Classes) -> float:
    """The least beta with (p - q) / q <= min(beta, -ln q) for all p > q; infinite if no beta satisfies this.

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

    A class that lacks a value of the table has p = 0 there, and no finite delta. With absent=False only present
    values count, as in some programs.
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

    Anybody known to be in the population is in the table with a probability between the two, for an attacker who knows
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


# Re-identification risk: the chance that a link by quasi-identifiers is right, for three attackers (El Emam 2013).
#
# - The prosecutor knows that her target is in the table: her chance is 1 / size of the target's class.
# - The journalist does not, and knows the population: her chance is 1 / size of the class in the population.
# - The marketer links everybody: the expected share of right links.
#
# All three assume that the attacker knows the quasi-identifiers exactly, and nothing else.


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """highest: of any row. average: over rows, which is the marketer's share. at_risk: the share of rows above 1/k."""

    highest: float
    average: float
    at_risk: float
    threshold: int


def prosecutor(classes: Classes, *, k: int = 5) -> Risk:
    """The risk by an attacker who knows that her target is in the table.
    Its average is the marketer's risk within the table."""
    k = whole("k", k)
    sizes, rows = classes.histogram, classes.rows
    small = sum(size * many for size, many in sizes.items() if size < k)
    return Risk(
        highest=1.0 / min(sizes), average=sum(sizes.values()) / rows, at_risk=small / rows, threshold=k
    )


def journalist(classes: Classes, population: Classes, *, k: int = 5) -> Risk:
    """The risk by an attacker who knows the population.
    Its average, over rows of the table, is the marketer's risk."""
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
