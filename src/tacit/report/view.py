"""The contents of a report, as plain values: no data, no engine, no randomness.

Everything is checked at construction. A view refuses a cell with an unexplained flag, a truth beside a release of real
data, and a missing privacy cost without a reason.
"""

from __future__ import annotations

import datetime
import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, Literal, NoReturn, get_args
from urllib.parse import quote

from tacit.curator import Plan, Release
from tacit.curator.cells import QualityFlag, QualityRule
from tacit.curator.text import SLACK, Figures, PublicWords, figures, outwards, three
from tacit.errors import InvalidParameter, UnknownName, visible
from tacit.exact.data_classes import dataclass
from tacit.guarantees import theorem
from tacit.guarantees.units import GroupOf, People, Unit

# Numbers for people, as the page writes them: shares, axes, keys; the digits are those of `tacit.curator.text`.


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{three(100 * share)}%"


def compact(value: float) -> str:
    """A short form for axes and small cells: 12.3k, 4.5M."""
    size = abs(value)
    for least, letter in ((999.5e9, ""), (999.5e6, "bn"), (999.5e3, "M"), (9995, "k")):
        if size >= least:
            if not letter:
                return three(value)
            return three(value / {"bn": 1e9, "M": 1e6, "k": 1e3}[letter]) + letter
    return three(value)


def compact_ends(low: float, high: float) -> str:
    """Both ends of an interval in short words, each rounded outwards: 1.87k to 2.01k."""
    return f"{compact(outwards(low, math.floor))} to {compact(outwards(high, math.ceil))}"


def key_words(key: Any) -> str:
    """A key as people write it: a word, a number, yes or no, a day, or a range."""
    if key is None:
        return "(missing)"
    if isinstance(key, bool):
        return "yes" if key else "no"
    if isinstance(key, tuple):
        return " – ".join(key_words(end) for end in key)
    if isinstance(key, float):
        # Edges are public and printed whole; points between them are rounded as values are.
        if key.is_integer() and abs(key) < 1e15:
            return f"{key:,.0f}"
        return f"{key:.6g}" if abs(key) < 1000 else three(key)
    return key.isoformat() if isinstance(key, datetime.date) else str(key)


def key_place(key: Any) -> float | None:
    """The position of a key on a line: a number, a day, the middle of a range; None for a word."""
    if isinstance(key, tuple):
        ends = [key_place(end) for end in key]
        known = [e for e in ends if e is not None]
        return sum(known) / len(known) if len(known) == len(ends) and known else None
    if isinstance(key, datetime.date):
        return float(key.toordinal())
    if isinstance(key, int | float) and not isinstance(key, bool):
        return float(key)
    return None


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten) inside the range, at most `most`."""
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    for step in (s * power for s in (1, 2, 5, 10, 20, 50)):
        first, last = math.ceil(low / step - SLACK), math.floor(high / step + SLACK)
        if last - first < most:
            break
    return [k * step for k in range(first, last + 1)]


# HTML and SVG as nested calls: what is not markup already is escaped, so no value can become code.

VOID = frozenset({"br", "hr", "meta", "link", "img", "col"})


class Markup(str):
    """Text that may appear in a page without escaping."""

    __slots__ = ()


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """<name attributes>children</name>; None and False leave an attribute or child out.

    Names of attributes: class_ for class, underscores for hyphens.
    """
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        spelled = key.rstrip("_").replace("_", "-")
        words.append(
            spelled if value is True else f'{spelled}="{escape(visible(_plain(value)), quote=True)}"'
        )
    opening = " ".join(words)
    if name in VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join(*children)}</{name}>")


def join(*children: Any) -> Markup:
    """Children one after another; lists are opened, text is escaped."""
    parts = []
    for child in children:
        if child is None or child is False:
            continue
        if isinstance(child, Markup):
            parts.append(str(child))
        elif isinstance(child, list | tuple):
            parts.append(join(*child))
        else:
            parts.append(escape(visible(str(child)), quote=False))
    return Markup("".join(parts))


def ident(name: str) -> str:
    """A name as part of an id: different names stay different, and nothing in it needs quoting."""
    return re.sub(r"[^A-Za-z0-9-]", lambda odd: f"_{ord(odd[0]):x}_", name)


def file_link(name: str) -> Markup:
    """A link to a file beside the page, which may have any name."""
    return tag("a", tag("code", name), href=quote(name, safe="/"))


def picture(id: str, title: str, description: str, height: float, *children: Any, class_: str = "") -> Markup:
    """An SVG as wide as its place, with its name and its description for those who do not see it.

    Widths are percentages, heights and text sizes are pixels: so text stays readable on a phone.
    """
    return tag(
        "svg",
        tag("title", title, id=f"{id}-title"),
        tag("desc", description, id=f"{id}-desc"),
        *children,
        class_=f"picture {class_}".strip(),
        role="img",
        aria_labelledby=f"{id}-title {id}-desc",
        width="100%",
        height=height,
    )


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)


# What a disclosure officer needs: who asked, who approved, which data, what the declarations do, who signed.
#
# Everything here is declared, charged or recorded; no number of it is read from the data.


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficerPart:
    """Facts about a release beside its numbers, from the plan, the ledger and the key."""

    analyst: str = ""
    approved_by: tuple[str, ...] = ()
    table: str = ""
    version: str = ""
    signed_by: str = ""
    """The fingerprint of the key that signs the files."""
    replaces: tuple[str, ...] = ()
    """The charges that this charge replaces by the ledger, in words."""
    written: bool = False
    """Is the page written beside files that may be signed?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A heading with its sentences."""

    heading: str
    sentences: tuple[str, ...]


def officer_of(
    plan: Plan,
    releases: Sequence[Release],
    *,
    metadata: OfficerPart,
    words: PublicWords,
    notes: Sequence[str] = (),
) -> tuple[Paragraph, ...]:
    """The paragraphs, in the order in which an officer asks."""
    first = releases[0].statement
    said = [r.statement for r in releases]
    found = [
        ("Who asked", [_asked(metadata, first)]),
        ("Who approved", [_approved(metadata, first)]),
        ("Which data", _data(metadata, first)),
        ("Which plan", [*_plan(plan, first), *(f"It replaces {one}." for one in metadata.replaces)]),
        ("Who had looked", _looks(said)),
        ("What the declarations do", [*_bounded(plan.unit, said), *_clamped(said, words)]),
        ("What it rests on", _rests_on(said)),
        ("Signature", [_signature(metadata)]),
        ("Notes", list(notes)),
    ]
    return tuple(Paragraph(heading=h, sentences=tuple(s)) for h, s in found if s)


def _asked(metadata: OfficerPart, first: Mapping[str, Any]) -> str:
    who = f"Asked by {metadata.analyst}" if metadata.analyst else "Who asked is not recorded"
    return f"{who}; answered at {first['made']}, by version {first['versions'].get('tacit', 'unknown')} of tacit."


SIGNED = {
    "server": " (signed with a key that the server keeps under a passphrase)",
    "elsewhere": " (signed with a key that the approver keeps)",
}


def _approved(metadata: OfficerPart, first: Mapping[str, Any]) -> str:
    names = metadata.approved_by or tuple(first["data"].get("approved_by", ()))
    kept = first["data"].get("signed", {})
    if names:
        return f"Approved by {', '.join(n + SIGNED.get(kept.get(n, ''), '') for n in names)}."
    return "This page knows of no approval: what the ledger records of requests and approvals, tacit ledger show tells."


def _data(metadata: OfficerPart, first: Mapping[str, Any]) -> list[str]:
    table = metadata.table or str(first["data"].get("table", ""))
    named = f"Table {table}" if table else "A table without a name"
    found = [
        f"{named}, {f'version {metadata.version}' if metadata.version else 'of which no version is declared'}."
    ]
    if first["data"].get("made_up"):
        found.append("The table says of itself that it is made up and describes nobody.")
    return found


def _plan(plan: Plan, first: Mapping[str, Any]) -> list[str]:
    found = [f"The plan has the digest {plan.digest}; labels and titles are no part of it."]
    ledger = first["ledger"]
    if ledger.get("sequence") is not None:
        found.append(
            f"It was charged as entry {ledger['sequence']} of ledger {ledger['id']}: {plan.charge.bound}."
        )
    return found


def _looks(said: Sequence[Mapping[str, Any]]) -> list[str]:
    seen = list(dict.fromkeys(d for one in said for d in one["data"].get("seen", [])))
    if not seen:
        return ["The ledger knows of no look at the data before this plan."]
    return [f"Known to the ledger, and not counted in the bound: {d}." for d in seen]


def _bounded(unit: Unit, said: Sequence[Mapping[str, Any]]) -> list[str]:
    who = unit.of if isinstance(unit, GroupOf) else unit
    if not isinstance(who, People) or not any(one["data"]["bounded"] for one in said):
        return []
    rows = "row is" if who.at_most == 1 else "rows are"
    return [
        f"Of one {who.column} at most {who.at_most} {rows} used, by a keyed choice; the others are in no number."
    ]


def _clamped(said: Sequence[Mapping[str, Any]], words: PublicWords) -> list[str]:
    """The clamping bounds and their effect on a mean, as declared, without the number of affected rows."""
    schema: dict[str, Mapping[str, Any]] = {}
    summed: set[str] = set()
    for one in said:
        schema |= one["schema"]
        statistic = one["statistic"]
        summed |= {str(statistic[n]) for n in ("column", "numerator", "denominator") if statistic.get(n)}
    found = []
    for name, column in schema.items():
        low, high = column.get("low"), column.get("high")
        if low is None or high is None:
            continue
        label, ends = words.column(name), f"{_end(low)} and {_end(high)}"
        if column.get("outside") != "clamp":
            found.append(
                f"{label} counts between {ends}; rows outside are counted as missing, and are in no mean of it."
            )
            continue
        told = f"{label} is clamped between {ends}: smaller values count as {_end(low)}, larger ones as {_end(high)}"
        if name in summed:
            told += "; values below raise a mean, values above lower it, and only a paid release can tell by how much"
        found.append(f"{told}.")
        filled = column.get("missing")
        if isinstance(filled, int | float) and not isinstance(filled, bool):
            found.append(f"A missing {label} counts as {_end(filled)}, in means too.")
    return found


def _rests_on(said: Sequence[Mapping[str, Any]]) -> list[str]:
    """Conditions and declarations of all releases, each once; one that is not common to all names its releases."""
    told: dict[str, list[str]] = {}
    for one in said:
        looked = one["data"].get("seen", [])
        mine = [f"It holds {one['condition']}."]
        if "random_data" in one:
            mine.append(one["random_data"]["sentence"])
        declared = [d for d in one["guarantee"].get("declared", []) if d not in looked]
        mine += [
            f"Declared, and not checked: {d}." for d in (*declared, *one["intervals"].get("declared", []))
        ]
        mine += [f"Believed, and not checked: {c}." for c in one["data"]["conditions"]]
        for sentence in dict.fromkeys(mine):
            told.setdefault(sentence, []).append(one["name"])
    return [s if len(n) == len(said) else f"{s} This is about {', '.join(n)}." for s, n in told.items()]


def _signature(metadata: OfficerPart) -> str:
    if metadata.signed_by:
        return f"Certificates and manifest are signed by the key with the fingerprint {metadata.signed_by}."
    if metadata.written:
        return "Nothing is signed: whoever can write these files can change them. tacit release --sign signs."
    return "This page does not know whether the files are signed."


def _end(value: Any) -> str:
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)


Simple = str | int | float | bool | datetime.date | None
Key = Simple | tuple[Simple, Simple]
Picture = Literal[
    "auto",
    "number",
    "bars",
    "crosstab",
    "histogram",
    "curve",
    "points",
    "heatmap",
    "lorenz",
    "map",
    "multiples",
    "regression",
    "survival",
    "table",
    "tree",
]
DEFAULT_RULE = QualityRule()


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    """One released number: its keys, its interval, its flag, and the truth where the data are synthetic."""

    keys: tuple[Key, ...] = ()
    value: float | None
    low: float | None = None
    high: float | None = None
    flag: str = ""
    truth: float | None = None
    days: bool = False
    """Are these days, counted from 1970-01-01?"""

    def __post_init__(self) -> None:
        for name in ("value", "truth"):
            held = getattr(self, name)
            if held is not None and not math.isfinite(held):
                _refuse(name, held, "be a finite number, or None where there is none")
        if (self.low is None) != (self.high is None):
            _refuse("low", (self.low, self.high), "come together with the other end of the interval")
        if self.low is not None and self.high is not None and not self.low <= self.high:
            _refuse("low", (self.low, self.high), "lie below the other end of the interval")
        if self.value is None and not self.flag:
            _refuse("flag", self.flag, "say why there is no value")

    @property
    def figures(self) -> Figures:
        """Value, low and high in words: numbers rounded at one place, ends outwards; days as days."""
        if not self.days:
            return figures(self.value, self.low, self.high)
        return Figures([_day(self.value, round), _day(self.low, math.floor), _day(self.high, math.ceil)])

    @property
    def truth_words(self) -> str:
        """The truth in words, rounded at the place of the value; empty if it is not shown."""
        if self.truth is None:
            return ""
        return _day(self.truth, round) if self.days else figures(self.truth, self.low, self.high).value


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """The line about all cells of a release that is too large for a page, which holds the largest cells only."""

    total: int
    flag_counts: dict[str, int]
    typical_width: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseView:
    """One release: the query, the cells, the cost, the meaning, and the certificate.

    `ratio` is the price of privacy, expected error over the smallest possible one; without it `ratio_reason` says
    why it is not known. `certificate` and `values` are file names beside the report. With a `rest`, `cells` are
    the largest, in that order. `condition` is the assumption of the guarantee; empty if it always holds.
    """

    name: str
    kind: str
    title: str
    question: str
    cells: tuple[CellView, ...]
    certificate: str
    price: str
    columns: tuple[str, ...] = ()
    picture: Picture = "auto"
    measure: str = ""
    confidence: float = 0.95
    condition: str = ""
    corrections: tuple[str, ...] = ()
    mechanism: str = ""
    theorems: tuple[str, ...] = ()
    expected_error: float | None = None
    lower_bound: float | None = None
    ratio: float | None = None
    ratio_reason: str = ""
    values: str = ""
    rule: QualityRule = DEFAULT_RULE
    more_flags: tuple[QualityFlag, ...] = ()
    rest: Rest | None = None
    covers: str = "the noise"
    """What the intervals are for."""
    tree: tuple[tuple[str, ...], ...] = ()
    """Of a decision tree, the conditions on the way to each leaf."""
    left_out: tuple[str, ...] = ()
    """The rows that no number here counts, by the declarations."""

    def __post_init__(self) -> None:
        if not self.name or not self.certificate:
            _refuse("certificate", self.certificate, "name the file that the numbers come from")
        if self.picture not in get_args(Picture):
            raise UnknownName(what="picture", name=str(self.picture), known=get_args(Picture))
        if not 0 < self.confidence <= 1:
            _refuse("confidence", self.confidence, "lie between 0 and 1")
        known = {f.id for f in self.flags}
        for cell in self.cells:
            if len(cell.keys) != len(self.columns):
                _refuse("cells", cell.keys, f"have one key for each of {self.columns}")
            if cell.flag and cell.flag not in known:
                raise UnknownName(what=f"quality flag in {self.name!r}", name=cell.flag, known=known)
        if self.ratio is None and not self.ratio_reason:
            _refuse("ratio_reason", "", "say why the price of privacy is not known")
        for id in self.theorems:
            theorem(id)

    @property
    def flags(self) -> tuple[QualityFlag, ...]:
        """All flags that cells of this release may carry."""
        return (*self.rule.flags, *self.more_flags)

    @property
    def flag_counts(self) -> dict[str, int]:
        """The number of cells with each flag that occurs."""
        if self.rest is not None:
            return {f.id: n for f in self.flags if (n := self.rest.flag_counts.get(f.id, 0))}
        counts = {f.id: sum(c.flag == f.id for c in self.cells) for f in self.flags}
        return {id: n for id, n in counts.items() if n}

    @property
    def total(self) -> int:
        """The number of cells, shown or not."""
        return len(self.cells) if self.rest is None else self.rest.total

    @property
    def typical_width(self) -> float | None:
        """The median width of the intervals, from end to end; None without intervals."""
        if self.rest is not None:
            return self.rest.typical_width
        wide = [c.high - c.low for c in self.cells if c.low is not None and c.high is not None]
        return statistics.median(wide) if wide else None

    @property
    def shows_truth(self) -> bool:
        """Does any cell carry the truth?"""
        return any(c.truth is not None for c in self.cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPart:
    """The cost of one release alone, in the budget's own terms."""

    release: str
    amount: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetView:
    """The budget in one kind of unit (epsilon, rho, mu): total, spent and left, with the words for each.

    `earlier` is the amount spent on other releases before. The parts need not add up to the spent amount: a plan
    accounted as a whole costs less than its releases one by one.
    """

    kind: str
    total: float
    spent: float
    remaining: float
    total_words: str
    spent_words: str
    remaining_words: str
    earlier: float = 0.0
    parts: tuple[BudgetPart, ...] = ()
    meaning: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("total", "spent", "remaining", "earlier"):
            held = getattr(self, name)
            if not (math.isfinite(held) and held >= 0):
                _refuse(name, held, "be a finite number of at least 0")
        if self.total <= 0 or self.earlier > self.spent * (1 + 1e-9):
            _refuse("total", (self.total, self.spent, self.earlier), "be above 0, and earlier within spent")
        for part in self.parts:
            if not (math.isfinite(part.amount) and part.amount >= 0):
                _refuse(f"parts[{part.release}]", part.amount, "be a finite number of at least 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportView:
    """The whole report."""

    title: str
    made_at: datetime.datetime
    unit_sentence: str
    budget: BudgetView
    releases: tuple[ReleaseView, ...]
    methods: tuple[str, ...] = ()
    synthetic: bool = False
    files: tuple[tuple[str, str], ...] = ()
    condition: str = ""
    """The assumptions of an exact answer, printed in the largest type of the page."""
    publisher: str = ""
    period: str = ""
    contact: str = ""
    about_you: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """Sentences that must stand open on the page, beside the statements about people."""
    withdrawn: str = ""
    """The warning that numbers of the page were withdrawn or replaced; it stands above all of them."""
    officer: tuple[Paragraph, ...] = ()

    def __post_init__(self) -> None:
        names = [r.name for r in self.releases]
        if len(set(names)) != len(names):
            _refuse("releases", names, "have different names")
        for part in self.budget.parts:
            if part.release not in names:
                raise UnknownName(what="release in the budget", name=part.release, known=names)
        if not self.synthetic and any(r.shows_truth for r in self.releases):
            _refuse(
                "synthetic", False, "be True where the truth is shown", "only made-up data may be shown true"
            )
        for id in self.methods:
            theorem(id)

    @property
    def theorems(self) -> tuple[str, ...]:
        """Every theorem that the report rests on, in order of first mention."""
        return tuple(dict.fromkeys([*self.methods, *(id for r in self.releases for id in r.theorems)]))


def _day(value: float | None, turn: Callable[[float], int]) -> str:
    if value is None or not math.isfinite(value):
        return "none"
    return (datetime.date(1970, 1, 1) + datetime.timedelta(days=turn(value))).isoformat()


def _refuse(parameter: str, value: object, must: str, hint: str = "") -> NoReturn:
    raise InvalidParameter(parameter=parameter, value=value, must=must, hint=hint)
