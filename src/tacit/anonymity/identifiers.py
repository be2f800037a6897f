"""Columns that look like identifiers: the ICPSR lists, and the 18 elements of the health privacy rule.

Finds identifiers by name, by type, by a pattern of the values, which the engine matches, or by (nearly) unique
values. Each finding says by what. An empty result proves nothing: the search misses a name in free text, or a
column called "x7", and in principle every column is a quasi-identifier.

ICPSR, Guide to Social Science Data Preparation and Archiving (Groce, section 2.2): direct and indirect identifiers.
45 CFR 164.514(b)(2)(i), elements (A) to (R).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.checks import whole
from tacit.exact.data_classes import dataclass
from tacit.sources.microdata import Microdata

ICPSR_DIRECT = {
    "name": "names",
    "address": "addresses, including ZIP and other postal codes",
    "telephone": "telephone numbers, including area codes",
    "ssn": "Social Security numbers",
    "number": "other linkable numbers, such as driver's license numbers and certification numbers",
}
ICPSR_INDIRECT = {
    "geography": "detailed geographic information (state, county, province, census tract of residence)",
    "organisation": "organisations to which the respondent belongs",
    "school": "educational institutions, and year of graduation",
    "occupation": "detailed occupational titles",
    "origin": "place where the respondent grew up",
    "date": "exact dates of events (birth, death, marriage, divorce)",
    "income": "detailed income",
    "office": "offices or posts held by the respondent",
}
ELEMENTS = {
    "A": "names", "B": "geographic subdivisions smaller than a state", "C": "dates, except the year; ages over 89",
    "D": "telephone numbers", "E": "fax numbers", "F": "electronic mail addresses", "G": "Social Security numbers",
    "H": "medical record numbers", "I": "health plan beneficiary numbers", "J": "account numbers",
    "K": "certificate and license numbers", "L": "vehicle identifiers and serial numbers, license plates",
    "M": "device identifiers and serial numbers", "N": "web addresses (URLs)", "O": "IP addresses",
    "P": "biometric identifiers, finger and voice prints", "Q": "full-face photographs and comparable images",
    "R": "any other unique identifying number, characteristic or code",
}  # fmt: skip

# kind: (words of a column's name, ICPSR, element of the rule)
NAMES: dict[str, tuple[str, str | None, str | None]] = {
    "fax": (r"fax", "direct:telephone", "E"),
    "telephone": (r"(tele)?phone|mobile|cell_?(no|number|phone)|tel|area_?code", "direct:telephone", "D"),
    "email": (r"e_?mail", "direct:number", "F"),
    "ssn": (r"ssn|social_security(_(no|nr|num|number))?|national_(insurance_)?(id|no|number)", "direct:ssn", "G"),
    "medical record": (
        r"mrn|medical_?record(_\w+)?|patient_?(id|no|nr|num|number)|chart_?(no|number)", "direct:number",
        "H",
    ),
    "health plan": (r"(health_?plan|beneficiary|insurance|member|policy)_?(id|no|nr|num|number)", "direct:number", "I"),
    "account": (r"(account|acct|iban|credit_?card|card)(_?(id|no|nr|num|number))?", "direct:number", "J"),
    "licence": (
        r"(driver\w*_?)?(licen[cs]e|certificate|certification|passport)(_?(id|no|nr|num|number))?", "dire"
        r"ct:number",
        "K",
    ),
    "vehicle": (
        r"vin|(license|licence|number)_?plate|plate(_?(no|number))?|vehicle_?(id|no|number)", "direct:num"
        r"ber",
        "L",
    ),
    "device": (r"device_?(id|serial|no)|imei|mac(_?address)?|serial(_?(no|nr|num|number))?", "direct:number", "M"),
    "web address": (r"url|web_?(site|page)|home_?page", None, "N"),
    "IP address": (r"ip(_?addr(ess)?)?", None, "O"),
    "biometric": (r"finger_?print|voice_?print|retina|iris_scan|biometric\w*|dna", None, "P"),
    "photograph": (r"photo(graph)?|portrait|face_?image|picture", None, "Q"),
    "name": (
        r"(first|last|middle|full|given|family|sur|maiden|user|nick|person|patient|customer|student)_?nam"
        r"e|name", "direct:name",
        "A",
    ),
    "address": (
        r"(home_?|street_?|postal_?)?address|street|zip(_?code)?|post_?(al_?)?code|postcode|plz", "direct"
        r":address",
        "B",
    ),
    "geography": (
        r"county|city|town|village|municipality|(census_?)?tract|precinct|district|latitude|longitude|lat"
        r"|lon|lng|geo\w*|place(_of_residence)?", "indirect:geography",
        "B",
    ),
    "state": (r"state|province|region|canton", "indirect:geography", None),
    "date": (
        r"dob|birth_?(date|day)|date_?of_?\w+|\w+_date|death_?date|(admission|discharge|wedding|marriage|"
        r"divorce)(_?(day|date))?|birthday", "indirect:date",
        "C",
    ),
    "occupation": (r"occupation\w*|job(_?title)?|profession", "indirect:occupation", None),
    "school": (r"school|college|university|alma_mater|graduat\w+", "indirect:school", None),
    "organisation": (r"organi[sz]ation|employer|company|union|church|club|membership", "indirect:organisation", None),
    "origin": (
        r"birth_?place|place_of_birth|native_?(country|place)|home_?town|grew_up\w*|country_of_birth", "i"
        r"ndirect:origin",
        None,
    ),
    "income": (r"income|salary|wage|earnings|net_worth", "indirect:income", None),
    "office": (r"office|post_held|rank|position", "indirect:office", None),
    "identifier": (
        r"(person|people|subject|respondent|participant|case|record|client|customer|household|user|studen"
        r"t|employee)?_?(id|key|code|uuid|guid|identifier|number|no|nr)", "direct:number",
        "R",
    ),
}  # fmt: skip

# kind: (pattern of a whole value, ICPSR, element of the rule)
PATTERNS: dict[str, tuple[str, str | None, str | None]] = {
    "email": (r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+[.][A-Za-z]{2,}$", "direct:number", "F"),
    "ssn": (r"^[0-9]{3}-[0-9]{2}-[0-9]{4}$", "direct:ssn", "G"),
    "telephone": (r"^([+][0-9]{1,3}[ .-]?)?[(]?[0-9]{3}[)]?[ .-][0-9]{3}[ .-][0-9]{4}$", "direct:telephone", "D"),
    "web address": (r"^(https?://|www[.])[^ ]+$", None, "N"),
    "IP address": (r"^([0-9]{1,3}[.]){3}[0-9]{1,3}$", None, "O"),
    "device": (r"^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$", "direct:number", "M"),
    "vehicle": (r"^[A-HJ-NPR-Z0-9]{9}[A-HJ-NPR-Z0-9]{2}[0-9]{6}$", "direct:number", "L"),
    "account": (r"^([A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}|([0-9]{4}[ -]){3}[0-9]{4})$", "direct:number", "J"),
    "identifier": (r"^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$", "direct:number", "R"),
    "address": (r"^[0-9]{5}-[0-9]{4}$", "direct:address", "B"),
    "date": (
        r"^([0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?|[0-9]{1,2}[/.][0-9]{1,2}[/.]([0-9]{2}|[0-9]{4}))$", "indi"
        r"rect:date",
        "C",
    ),
}  # fmt: skip
MATCHES = 0.9
"""The share of values that must match a pattern."""
DIFFERENT = 0.95
"""From this share of different values on, text and whole numbers look like an identifier."""
LEAST = 20
"""The least number of rows for judging the share of different values."""
OLDEST = 89


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A column that looks like an identifier: its kind, the lists that name it, and the evidence."""

    column: str
    kind: str
    by: str
    icpsr: str | None
    element: str | None

    @property
    def direct(self) -> bool:
        """Whether the column identifies one person alone, by ICPSR's list or the rule's."""
        return (self.icpsr or "").startswith("direct") or (self.icpsr is None and self.element is not None)

    def describe(self) -> str:
        """One sentence."""
        on = []
        if self.icpsr:
            side, _, word = self.icpsr.partition(":")
            about = (ICPSR_DIRECT if side == "direct" else ICPSR_INDIRECT)[word]
            on.append(f"ICPSR {side} identifier ({about})")
        if self.element:
            on.append(f"element ({self.element}) of the health privacy rule ({ELEMENTS[self.element]})")
        return f"{self.column}: looks like {self.kind}, by {self.by}; " + ", ".join(on)


def find_identifiers(micro: Microdata, *, values: bool = True) -> tuple[Finding, ...]:
    """The columns of a table that look like identifiers; values=False reads names and types only, and no row."""
    found: dict[tuple[str, str], Finding] = {}

    def note(column: str, kind: str, by: str, icpsr: str | None, element: str | None) -> None:
        made = Finding(column=column, kind=kind, by=by, icpsr=icpsr, element=element)
        found.setdefault((column, kind), made)

    for column in micro.columns:
        word = _word(column)
        for kind, (pattern, icpsr, element) in NAMES.items():
            if re.search(rf"(^|_)({pattern})(_?(no|nr|num|number))?$", word):
                note(column, kind, "its name", icpsr, element)
                break
        if micro.type_of(column).is_date() or micro.type_of(column).is_timestamp():
            note(column, "date", "its type", "indirect:date", "C")
    if values:
        _by_values(micro, note)
    order = {name: i for i, name in enumerate(micro.columns)}
    return tuple(sorted(found.values(), key=lambda f: (order[f.column], f.kind)))


def _word(name: str) -> str:
    """A column's name in small letters, its words apart: birthDate, Birth-Date and birth date are birth_date."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", apart.lower()).strip("_")


def _by_values(micro: Microdata, note: Any) -> None:
    relation = micro.relation
    asked: dict[str, Any] = {"rows": relation.count()}
    texts, ages = [], []
    for i, name in enumerate(micro.columns):
        column, kind = relation[name], micro.type_of(name)
        if kind.is_string() or kind.is_integer():
            asked[f"there{i}"] = column.count()
            asked[f"different{i}"] = column.nunique()
        if kind.is_string():
            texts.append(i)
            text = micro.dialect.trimmed(column)
            for j, (pattern, _, _) in enumerate(PATTERNS.values()):
                matched = (micro.dialect.matched(text, pattern) == text) & (text != "")
                asked[f"match{i}_{j}"] = matched.cast("int64").sum()
        if re.search(r"(^|_)age($|_)", _word(name)) and (kind.is_numeric() or kind.is_string()):
            ages.append(i)
            asked[f"old{i}"] = (micro.number(name) > OLDEST).cast("int64").sum()
    told = micro.one(relation.aggregate(**asked))
    for i in texts:
        there = told[f"there{i}"]
        for j, (kind, (_, icpsr, element)) in enumerate(PATTERNS.items()):
            if there and (told[f"match{i}_{j}"] or 0) >= MATCHES * there:
                note(micro.columns[i], kind, "the pattern of its values", icpsr, element)
    for i in ages:
        if told[f"old{i}"]:
            note(micro.columns[i], "date", "ages over 89", None, "C")
    for i, name in enumerate(micro.columns):
        there = told.get(f"there{i}", 0)
        if there >= LEAST and told[f"different{i}"] >= DIFFERENT * there:
            note(name, "identifier", "nearly all values being different", "direct:number", "R")


def direct_identifiers(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The columns that point to one person, each once."""
    return tuple(dict.fromkeys(f.column for f in findings if f.direct))


# People who are alone: unique in the table, and how many of a population are unique, estimated by a named model.
#
# Sample uniques are counted. Population uniques are not in the table: an estimate rests on a model of the population,
# and on the table being a simple random sample of it. Two are offered, each with its assumption.
#
# - pitman (Hoshino 2001): the table is a draw from the Ewens-Pitman partition distribution with parameters
# theta and alpha,
#   fitted by maximum likelihood. A population of N has N (theta + alpha)_{N-1} / (theta + 1)_{N-1} expected uniques,
#   (x)_n the rising factorial. Assumes that classes are exchangeable: no quasi-identifier says how many share it.
# - zayatz (Zayatz 1991): the sizes of the population's classes have the same distribution as those of the
# table. A unique of the
#   table is then a unique of the population with a probability by Bayes' rule and the hypergeometric
# distribution. Large classes
#   of the population are seen in part only, so that it counts too many where the sampling share is small.

ESTIMATORS = ("pitman", "zayatz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniques:
    """sample: uniques of the table. population: estimated uniques of the population. share: of its people.

    right: the chance that a unique of the table is one of the population, which is population x (rows / people)
    over sample, at most 1.
    """

    estimator: str
    rows: int
    people: int
    sample: int
    population: float
    parameters: Mapping[str, float]

    @property
    def share(self) -> float:
        """The estimated share of the population that is unique."""
        return self.population / self.people

    @property
    def right(self) -> float:
        """The chance that somebody who is unique in the table is unique in the population."""
        return 0.0 if not self.sample else min(1.0, self.population * self.rows / self.people / self.sample)


def population_uniques(sizes: Mapping[int, int], *, people: int, estimator: str = "pitman") -> Uniques:
    """Estimated uniques of a population of `people`, from the numbers of classes of each size in a random sample."""
    if not isinstance(estimator, str) or estimator not in ESTIMATORS:
        raise UnknownName(what="estimator", name=str(estimator), known=ESTIMATORS)
    table = {int(size): int(many) for size, many in sizes.items() if many}
    rows = sum(size * many for size, many in table.items())
    people = whole("people", people)
    if not rows or people < rows:
        raise InvalidParameter(
            parameter="people", value=people, must=f"be at least the {rows:,} rows of the table"
        )
    alone = table.get(1, 0)
    found: float
    parameters: dict[str, float] = {}
    if people == rows:
        found = float(alone)
    elif estimator == "zayatz":
        found = alone * _zayatz(table, rows, people) * people / rows
    else:
        theta, alpha = _fit(table, rows)
        parameters = {"theta": theta, "alpha": alpha}
        found = _expected(theta, alpha, people)
    return Uniques(
        estimator=estimator, rows=rows, people=people, sample=alone,
        population=min(max(found, 0.0), float(people)), parameters=parameters,
    )  # fmt: skip


def _zayatz(table: Mapping[int, int], rows: int, people: int) -> float:
    """The chance that a unique of the sample comes from a class of size 1 in the population."""

    def once(size: int) -> float:
        # ln of the hypergeometric probability that exactly one of `size` people is among the sampled rows
        if people - size < rows - 1:
            return 0.0
        ln = math.log(size) + _choose(people - size, rows - 1) - _choose(people, rows)
        return math.exp(ln)

    total = sum(many * once(size) for size, many in table.items())
    return table.get(1, 0) * once(1) / total if total else 0.0


def _choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def log_likelihood(table: Mapping[int, int], theta: float, alpha: float) -> float:
    """ln of the Ewens-Pitman probability of a partition with these class sizes, up to a constant in theta and alpha.

    prod_{i=1}^{u-1} (theta + i alpha) / (theta + 1)_{n-1} times prod over classes of (1 - alpha)_{size - 1}.
    """
    rows = sum(size * many for size, many in table.items())
    classes = sum(table.values())
    if alpha > 0:
        first = (classes - 1) * math.log(alpha)
        first += math.lgamma(theta / alpha + classes) - math.lgamma(theta / alpha + 1)
    else:
        first = (classes - 1) * math.log(theta)
    second = math.lgamma(theta + rows) - math.lgamma(theta + 1)
    third = sum(
        many * (math.lgamma(size - alpha) - math.lgamma(1 - alpha))
        for size, many in table.items()
        if size > 1
    )
    return first - second + third


def _fit(table: Mapping[int, int], rows: int) -> tuple[float, float]:
    """The maximum of the likelihood over 0 <= alpha < 1, theta > 0: nested golden-section search on a fixed range."""
    if set(table) == {1}:
        # All distinct: the likelihood rises without end in alpha -> 1 and in theta.
        return float(rows), 1.0 - 1e-9
    top = math.log(1e4 * rows)

    def best_theta(alpha: float) -> tuple[float, float]:
        return _golden(lambda t: log_likelihood(table, math.exp(t), alpha), math.log(1e-6), top)

    alpha, _ = _golden(lambda a: best_theta(a)[1], 0.0, 1.0 - 1e-6)
    return math.exp(best_theta(alpha)[0]), alpha


def _golden(function: object, low: float, high: float, steps: int = 70) -> tuple[float, float]:
    assert callable(function)
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = function(a), function(b)
    for _ in range(steps):
        if at_a < at_b:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = function(b)
        else:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = function(a)
    middle = (low + high) / 2
    return middle, function(middle)


def _expected(theta: float, alpha: float, people: int) -> float:
    """N (theta + alpha)_{N-1} / (theta + 1)_{N-1}."""
    ln = math.lgamma(theta + alpha + people - 1) - math.lgamma(theta + alpha)
    ln -= math.lgamma(theta + people) - math.lgamma(theta + 1)
    return people * math.exp(ln)
