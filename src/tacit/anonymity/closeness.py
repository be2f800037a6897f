"""t-closeness: how far the sensitive values of a class lie from those of the whole table (Li, Li, Venkatasubramanian).

The earth mover's distance between the shares p of a class and q of the table, by one of three ground distances:

- equal: every two values are 1 apart. D = sum of (p_v - q_v)+, over the values that the class has;
- ordered: the i-th and the j-th of m values are |i - j| / (m - 1) apart. D = 1/(m-1) sum_i |sum_{j<=i} (p_j - q_j)|;
- hierarchical: two values are as far apart as the height of their lowest common ancestor, over the height H of the
  tree. An ultrametric is the mean of H equal distances, so that D is the mean of the equal distances between the two,
  with values replaced by their ancestors of height 0, 1, ..., H - 1.

A class is compared only at its own values. Between two of them its cumulated share P is constant and the
table's Q rises, so |P - Q| is a difference of prefix sums on both sides of the crossing of P and Q.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tacit.anonymity import classes as statements
from tacit.anonymity.classes import COUNT_COLUMN as COUNT
from tacit.anonymity.classes import VALUE_COLUMN as VALUE
from tacit.anonymity.classes import Classes
from tacit.anonymity.hierarchies import Hierarchy
from tacit.errors import InvalidParameter, UnknownName, WrongType

DISTANCES = ("equal", "hierarchical", "ordered")


def closeness(
    classes: Classes,
    *,
    distance: str = "equal",
    order: Sequence[Any] | None = None,
    hierarchy: Hierarchy | None = None,
) -> float:
    """The largest distance of a class from the table: the table is t-close for every t from here on.

    order: all values, lowest first, for the ordered distance of values other than numbers. A missing value comes
    before all others. hierarchy: for the hierarchical distance.
    """
    if not isinstance(distance, str) or distance not in DISTANCES:
        raise UnknownName(what="distance", name=str(distance), known=DISTANCES)
    if distance == "equal":
        if classes.cells_name is not None:
            (worst,) = classes.micro.state(
                statements.equal_distance(classes.cells_name, classes.keys, classes.rows)
            )
            return max(0.0, float(worst))
        found = _equal(classes, classes.shares_once())
        return _largest(classes, found, found["distance"])
    if distance == "ordered":
        return _ordered(classes, order)
    if hierarchy is None:
        raise InvalidParameter(
            parameter="hierarchy", value=None, must="be given for the hierarchical distance",
            hint="Hierarchy.of({value: (group, larger group), ...})",
        )  # fmt: skip
    return _hierarchical(classes, hierarchy)


def is_ordered(classes: Classes) -> bool:
    """Is every sensitive value a number or a day, as stored or as its text is read?"""
    kind = classes.micro.type_of(classes.sensitive or "")
    if kind.is_boolean() or not (kind.is_numeric() or kind.is_temporal() or kind.is_string()):
        return False
    if not kind.is_string():
        return True
    values = classes.values
    bad = values[VALUE].notnull() & classes.micro.dialect.real(values[VALUE]).isnull()
    found = classes.micro.one(values.aggregate(bad=bad.cast("int64").sum(), all=values[VALUE].count()))
    return bool(found["bad"] == 0 and found["all"] > 0)


def _largest(classes: Classes, relation: Any, column: Any) -> float:
    return max(0.0, float(classes.micro.one(relation.aggregate(worst=column.max()))["worst"] or 0.0))


def _equal(classes: Classes, shares: Any) -> Any:
    """One row a class: the total variation distance of its values from the table's."""
    import ibis

    p = shares[COUNT] / shares["size"].cast("float64")
    more = ibis.greatest(p - shares["total"].cast("float64") / classes.rows, 0.0)
    return shares.group_by(*classes.keys).aggregate(distance=more.sum())


def _ordered(classes: Classes, order: Sequence[Any] | None) -> float:
    import ibis

    micro, rows = classes.micro, classes.rows
    ranked = micro.keep(_ranked(classes, order))
    many = int(micro.one(ranked.aggregate(m=ranked.count()))["m"])
    if many < 2:
        return 0.0
    first = ranked.order_by("rank")
    so_far = ibis.window(order_by="rank", rows=(None, 0))
    values = first.mutate(cumulated=first["total"].sum().over(so_far).cast("int64"))
    share = values["cumulated"].cast("float64") / rows
    values = micro.keep(values.mutate(upto=share.sum().over(so_far), before=share.sum().over(so_far) - share))
    everything = float(micro.one(values.aggregate(all=values["upto"].max()))["all"])
    shares = classes.shares
    cells = shares.join(values.select(VALUE, "rank", "before"), _same(shares, values)).select(
        *classes.keys, COUNT, "size", "rank", "before"
    )
    keys = list(classes.keys)
    up = ibis.window(group_by=keys, order_by="rank", rows=(None, 0))
    along = {"group_by": keys, "order_by": "rank"}
    cells = cells.mutate(
        below=cells[COUNT].sum().over(up).cast("int64"),
        next=cells["rank"].lead(1).over(**along).fill_null(many + 1),
        next_before=cells["before"].lead(1).over(**along).fill_null(everything),
    )
    p = cells["below"] / cells["size"].cast("float64")
    cells = micro.keep(cells.mutate(p=p, mark=(p * rows).floor().cast("int64")))
    crossing = _crossings(cells, values)
    met = cells.join(crossing, "mark")
    middle = ibis.greatest(met["rank"], ibis.least(met["passed"] + 1, met["next"]))
    reached = ibis.cases(
        (middle == met["rank"], met["before"]),
        (middle == met["next"], met["next_before"]),
        else_=met["reached"],
    )
    area = (
        met["p"] * (middle - met["rank"]) - (reached - met["before"])
        + (met["next_before"] - reached) - met["p"] * (met["next"] - middle)
    )  # fmt: skip
    met = met.mutate(area=area)
    # Before its first value a class has nothing, and the table the first value's prefix sum.
    found = met.group_by(*keys).aggregate(moved=met["area"].sum() + met["before"].min())
    return _largest(classes, found, found["moved"]) / (many - 1)


def _crossings(cells: Any, values: Any) -> Any:
    """For each mark P N of a class: the number of the table's values at or below it (`passed`), and their
    prefix sum.
    """
    import ibis

    marks = cells.select(mark=cells["mark"].cast("int64")).distinct()
    asked = marks.select(
        at=marks["mark"], kind=_integer(1), rank=_integer(0), upto=ibis.literal(0.0, type="float64")
    )
    known = values.select(
        at=values["cumulated"].cast("int64"),
        kind=_integer(0),
        rank=values["rank"].cast("int64"),
        upto=values["upto"].cast("float64"),
    )
    both = known.union(asked)
    so_far = ibis.window(order_by=["at", "kind"], rows=(None, 0))
    met = both.mutate(passed=both["rank"].max().over(so_far), reached=both["upto"].max().over(so_far))
    return met.filter(met["kind"] == 1).select(mark=met["at"], passed=met["passed"], reached=met["reached"])


def _integer(value: int) -> Any:
    import ibis

    return ibis.literal(value, type="int64")


def _same(left: Any, right: Any) -> Any:
    return left[VALUE].identical_to(right[VALUE])


def _ranked(classes: Classes, order: Sequence[Any] | None) -> Any:
    """The values of the table with their ranks from 1 on."""
    import ibis

    values, micro = classes.values, classes.micro
    if order is not None:
        return _by_list(classes, order)
    kind = micro.type_of(classes.sensitive or "")
    if not is_ordered(classes):
        raise WrongType(
            column=classes.sensitive or "", found=f"{kind}", wanted="numbers, for the ordered distance",
            hint="give order=[lowest, ..., highest], or take the equal distance",
        )  # fmt: skip
    key = micro.dialect.real(values[VALUE]) if kind.is_string() else values[VALUE]
    values = values.mutate(key=key)
    order_by = [ibis.asc(values["key"], nulls_first=True), ibis.asc(values[VALUE], nulls_first=True)]
    return values.mutate(rank=(ibis.row_number().over(order_by=order_by) + 1).cast("int64")).drop("key")


def _by_list(classes: Classes, order: Sequence[Any]) -> Any:
    import ibis
    import pyarrow as pa

    values, micro = classes.values, classes.micro
    kind = values[VALUE].type()
    listed = pa.table({"listed": pa.array([str(v) for v in order]), "at": pa.array(range(1, len(order) + 1))})
    if len(set(listed.column("listed").to_pylist())) != len(order):
        raise InvalidParameter(parameter="order", value=len(order), must="name each value once")
    places = micro.show(listed)
    text = values[VALUE] if kind.is_string() else values[VALUE].cast("string")
    values = values.mutate(listed=text)
    met = values.left_join(places, values["listed"] == places["listed"]).select(
        VALUE, "total", "listed", "at"
    )
    stray = met["listed"].notnull() & met["at"].isnull()
    if int(micro.one(met.aggregate(stray=stray.cast("int64").sum()))["stray"] or 0):
        raise InvalidParameter(
            parameter="order", value=len(order), must=f"name every value of {classes.sensitive!r}",
            hint="lowest first; missing values need no place",
        )  # fmt: skip
    rank = ibis.row_number().over(order_by=[ibis.asc(met["at"], nulls_first=True)]) + 1
    return met.mutate(rank=rank.cast("int64")).select(VALUE, "total", "rank")


def _hierarchical(classes: Classes, hierarchy: Hierarchy) -> float:
    import pyarrow as pa

    micro, keys = classes.micro, list(classes.keys)
    column = micro.ask(classes.values.select(VALUE))[VALUE]
    leaves = column.to_pylist()
    texts = [None if v is None else str(v) for v in leaves]
    hierarchy.check_covers([t for t in texts if t is not None], column=classes.sensitive or "")
    paths = [hierarchy.path(t) for t in texts]
    height = len(paths[0])
    found = None
    for level in range(height):
        table = pa.table({"leaf": column, "node": pa.array([path[level] for path in paths])})
        lifted = micro.show(table)
        cells = classes.cells
        cells = cells.join(lifted, cells[VALUE].identical_to(lifted["leaf"]))
        cells = cells.group_by(*keys, **{VALUE: cells["node"]}).aggregate(**{COUNT: cells[COUNT].sum()})
        totals = cells.group_by(VALUE).aggregate(total=cells[COUNT].sum())
        part = _equal(classes, classes.sized(cells, classes.sizes, totals))
        found = part if found is None else found.union(part)
    assert found is not None
    mean = found.group_by(*keys).aggregate(moved=found["distance"].sum())
    return _largest(classes, mean, mean["moved"]) / height
