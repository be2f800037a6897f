"""A look at a table before its publication: its measures, its unique people, and its weaknesses.

For the custodian only: every number is exact, none may be published with the table, and none is a guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from tacit.anonymity import classes as likeness
from tacit.anonymity import classes as measures
from tacit.anonymity import closeness
from tacit.anonymity.classes import Classes, Risk, check_roles, journalist, prosecutor
from tacit.anonymity.hierarchies import Hierarchy
from tacit.anonymity.identifiers import (
    Finding,
    Uniques,
    direct_identifiers,
    find_identifiers,
    population_uniques,
)
from tacit.errors import NoLaw
from tacit.exact.canonical import formerly
from tacit.exact.checks import positive, whole
from tacit.exact.data_classes import dataclass
from tacit.sources.microdata import Microdata, open_microdata

# A property of a table: a name, a value, what it says and what it does not; and no law of composition.
#
# Two tables about the same people can each be k-anonymous, and together name somebody's disease: in the lecture's
# example Alice, 28, of 13012 is pinned to AIDS by two hospitals' tables with k = 4 and k = 6, and by neither alone.
# So nothing follows for two tables, and `compose` refuses with that example.


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """What a table is. `better` names the direction of less exposure."""

    name: str
    value: Any
    better: str
    says: str
    silent: str

    def compose(self, *others: object) -> NoReturn:
        """Always raises: properties of tables do not compose."""
        raise NoLaw(
            operation=f"composition of {self.name}",
            reason="it is a property of one table and no guarantee: nothing follows for two tables about one person",
            counterexample="two hospitals publish tables with k = 4 and k = 6; Alice is 28, lives in 13012 and is in"
            " both: the classes that she can be in have one disease in common, and she has it",
            hint="release what is wanted through a curator: its guarantees compose",
        )

    # The algebra of guarantees asks everything that it is handed for this.
    no_law = compose


SILENT = "nothing about an attacker with other knowledge, or with a second table about the same people"


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitiveChecked:
    """The exposure of one sensitive column by the classes. homogeneous: rows in classes that have a single value."""

    column: str
    distance: str
    properties: tuple[Property, ...]
    homogeneous: int

    def __getitem__(self, name: str) -> Any:
        return next(p.value for p in self.properties if p.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Findings about the table. Not for publication."""

    source: str
    quasi: tuple[str, ...]
    rows: int
    classes: int
    threshold: int
    properties: tuple[Property, ...]
    sizes: Mapping[int, int]
    prosecutor: Risk
    journalist: Risk | None
    uniques: tuple[Uniques, ...]
    identifiers: tuple[Finding, ...]
    sensitive: tuple[SensitiveChecked, ...]
    blank: int = 0
    """Rows without any value: of a CSV file, also the lines that are no records."""

    @property
    def k(self) -> int:
        """The size of the smallest class."""
        return min(self.sizes)

    @property
    def sample_uniques(self) -> int:
        """Rows that have their class for themselves."""
        return self.sizes.get(1, 0)

    @property
    def problems(self) -> tuple[str, ...]:
        """The table's weaknesses, in sentences; the last sentence is true of every table."""
        return tuple(_problems(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return _checked_values(self)

    record = formerly("record")


def check_table(
    data: Any,
    *,
    quasi: Sequence[str],
    sensitive: str | Sequence[str] = (),
    k: int = 5,
    c: float = 3.0,
    population: Any = None,
    people: int | None = None,
    distance: str | None = None,
    order: Sequence[Any] | None = None,
    hierarchy: Hierarchy | None = None,
    engine: str | None = None,
) -> Checked:
    """Every measure of a table, computed in its engine.

    quasi: the columns that an attacker may know of a person. sensitive: the columns to be protected. k: classes below
    it are
    counted as at risk. c: of recursive (c, l)-diversity. population: a table that contains this one, for k-map, the
    journalist and presence. people: how many people the table is a random sample of, for estimated population uniques.
    distance: of t-closeness, "equal", "ordered" or "hierarchical"; ordered where the values are numbers.
    """
    micro = open_microdata(data, engine=engine)
    known: Microdata | None = None
    try:
        names = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
        check_roles(micro.columns, quasi, source=micro.source)
        for name in names:
            check_roles(micro.columns, quasi, name, source=micro.source)
        k, c = whole("k", k), positive("c", c)
        classes = Classes(micro, quasi)
        properties = [_property("k-anonymity", measures.k_anonymity(classes))]
        asked = None
        if population is not None:
            known = open_microdata(population, engine=engine)
            everybody = Classes(known, quasi)
            properties.append(_property("k-map", measures.k_map(classes, everybody)))
            asked = journalist(classes, everybody, k=k)
            low, high = likeness.presence(classes, everybody)
            properties += [_property("delta-presence", (low, high))]
            people = everybody.rows if people is None else people
        uniques: tuple[Uniques, ...] = ()
        if people is not None:
            uniques = tuple(
                population_uniques(classes.histogram, people=people, estimator=e)
                for e in ("pitman", "zayatz")
            )
        learned = tuple(
            _learned(Classes(micro, quasi, name), c, distance, order, hierarchy) for name in names
        )
        return Checked(
            source=micro.source, quasi=classes.quasi, rows=classes.rows, threshold=k,
            classes=sum(classes.histogram.values()), properties=tuple(properties), sizes=classes.histogram,
            prosecutor=prosecutor(classes, k=k), journalist=asked, uniques=uniques,
            identifiers=find_identifiers(micro), sensitive=learned, blank=_blank(micro),
        )  # fmt: skip
    finally:
        if micro is not data:
            micro.close()
        if known is not None and known is not population:
            known.close()


def _blank(micro: Microdata) -> int:
    """Rows in which every column is missing."""
    empty = micro.relation
    for name in micro.columns:
        empty = empty.filter(empty[name].isnull())
    return int(micro.one(empty.aggregate(rows=empty.count()))["rows"])


def _learned(
    classes: Classes, c: float, distance: str | None, order: Sequence[Any] | None, hierarchy: Hierarchy | None
) -> SensitiveChecked:
    if distance is None:
        ordered = order is not None or closeness.is_ordered(classes)
        distance = "hierarchical" if hierarchy is not None else "ordered" if ordered else "equal"
    cells = classes.cells
    single = cells.group_by(*classes.keys).aggregate(values=cells.count(), size=cells["n"].sum())
    alone = single.filter(single["values"] == 1)
    homogeneous = classes.micro.one(alone.aggregate(rows=alone["size"].sum()))["rows"]
    properties = (
        _property("alpha", measures.alpha(classes)),
        _property("distinct l-diversity", measures.diversity(classes)),
        _property("entropy l-diversity", measures.entropy_diversity(classes)),
        _property("recursive (c, l)-diversity", measures.recursive_diversity(classes, c=c), c=c),
        _property(
            "t-closeness", closeness.closeness(classes, distance=distance, order=order, hierarchy=hierarchy)
        ),
        _property("basic beta-likeness", likeness.basic_likeness(classes)),
        _property("enhanced beta-likeness", likeness.enhanced_likeness(classes)),
        _property("delta-disclosure", likeness.disclosure(classes)),
        _property("delta-disclosure, present values", likeness.disclosure(classes, absent=False)),
    )
    return SensitiveChecked(
        column=classes.sensitive or "",
        distance=distance,
        properties=properties,
        homogeneous=int(homogeneous or 0),
    )


SAYS = {
    "k-anonymity": ("larger", "every row agrees in the quasi-identifiers with at least k - 1 others"),
    "k-map": ("larger", "every row agrees in them with at least k people of the population"),
    "delta-presence": ("closer together", "the chance that one of the population is in the table lies between the two"),
    "alpha": ("smaller", "no value has a larger share in any class"),
    "distinct l-diversity": ("larger", "every class has at least l different values"),
    "entropy l-diversity": ("larger", "the entropy of the values of every class is at least ln l"),
    "recursive (c, l)-diversity": ("larger", "in every class r_1 < {c:g} (r_l + ... + r_m), r falling frequencies"),
    "t-closeness": ("smaller", "no class lies further from the table, in earth mover's distance"),
    "basic beta-likeness": ("smaller", "no value is more than 1 + beta times as frequent as in the table"),
    "enhanced beta-likeness": ("smaller", "as basic, and rare values at most 1 - ln q times as frequent"),
    "delta-disclosure": ("smaller", "no frequency in a class is off the table's by more than a factor of e^delta"),
    "delta-disclosure, present values": ("smaller", "as above, for values that the class has; not the definition"),
}  # fmt: skip


def _property(name: str, value: Any, **words: Any) -> Property:
    better, says = SAYS[name]
    return Property(name=name, value=value, better=better, says=says.format(**words), silent=SILENT)


def _problems(checked: Checked) -> list[str]:
    found = []
    if checked.blank:
        found.append(
            f"Rows without any value: {checked.blank:,}. A line of a CSV file that is no record is read as one, as are"
            " the parts of a record with a line break inside: their people are not measured."
        )
    direct = direct_identifiers(checked.identifiers)
    if direct:
        found.append(f"Columns that may point to one person by themselves: {', '.join(direct)}.")
    if checked.sample_uniques:
        share = checked.sample_uniques / checked.rows
        found.append(
            f"Rows that are alone with their quasi-identifiers: {checked.sample_uniques:,} ({share:.1%})."
        )
    if checked.prosecutor.at_risk:
        found.append(
            f"{checked.prosecutor.at_risk:.1%} of the rows share theirs with fewer than {checked.threshold}."
        )
    for one in checked.sensitive:
        if one.homogeneous:
            found.append(
                f"Rows in classes with a single value of {one.column}: {one.homogeneous:,}. Anybody "
                "known to be in such a class is known to have its value."
            )
        if math.isinf(one["delta-disclosure"]):
            found.append(
                f"Some class lacks a value of {one.column}: that somebody does not have it is learned."
            )
    found.append(
        "Whatever the numbers, they hold for this table alone and for these quasi-identifiers: other knowledge, or a"
        " second table about the same people, can undo them."
    )
    return found


def _checked_values(checked: Checked) -> dict[str, Any]:
    def json_value(value: Any) -> Any:
        if isinstance(value, tuple):
            return [json_value(v) for v in value]
        return None if isinstance(value, float) and math.isinf(value) else value

    def listed(properties: Sequence[Property]) -> dict[str, Any]:
        return {p.name: json_value(p.value) for p in properties}

    def risk(one: Risk | None) -> dict[str, Any] | None:
        if one is None:
            return None
        return {
            "highest": one.highest,
            "average": one.average,
            "at_risk": one.at_risk,
            "threshold": one.threshold,
        }

    return {
        "for_publication": False,
        "source": checked.source,
        "rows": checked.rows,
        "quasi": list(checked.quasi),
        "classes": checked.classes,
        "blank_rows": checked.blank,
        "properties": listed(checked.properties),
        "sensitive": {
            s.column: {"distance": s.distance, "homogeneous_rows": s.homogeneous, **listed(s.properties)}
            for s in checked.sensitive
        },
        "risk": {
            "prosecutor": risk(checked.prosecutor),
            "journalist": risk(checked.journalist),
            "marketer": (checked.journalist or checked.prosecutor).average,
        },
        "uniques": {
            "sample": checked.sample_uniques,
            "population": {
                u.estimator: {"people": u.people, "uniques": u.population, "share": u.share, "right": u.right}
                for u in checked.uniques
            },
        },
        "sizes": {str(size): many for size, many in checked.sizes.items()},
        "identifiers": [
            {"column": f.column, "kind": f.kind, "by": f.by, "icpsr": f.icpsr, "element": f.element}
            for f in checked.identifiers
        ],
        "problems": list(checked.problems),
    }
