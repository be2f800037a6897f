"""What a report shows, as plain values: no data, no engine, no randomness.

Everything is checked when it is made: a cell with a flag that nothing explains, a truth beside a release of data
that are not synthetic, or a price of privacy that is missing without a reason cannot exist.
"""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NoReturn, get_args

from tacit.curator.figures import Figures, figures
from tacit.curator.quality import QualityFlag, QualityRule
from tacit.errors import InvalidParameter, UnknownName
from tacit.guarantees import theorem
from tacit.report.officer import Paragraph

__all__ = ["BudgetPart", "BudgetView", "Cell", "Key", "Picture", "ReleaseView", "ReportView", "Rest"]

Simple = str | int | float | bool | datetime.date | None
Key = Simple | tuple[Simple, Simple]
Picture = Literal[
    "auto", "number", "bars", "histogram", "curve", "points", "heatmap", "map", "multiples", "table"
]
DEFAULT_RULE = QualityRule()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
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
        """The truth in words, at the place of the value; nothing where it is not shown."""
        if self.truth is None:
            return ""
        return _day(self.truth, round) if self.days else figures(self.truth, self.low, self.high).value


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What is told of all cells of a release that is too large for a page, of which it holds the largest alone."""

    total: int
    flag_counts: dict[str, int]
    typical_width: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseView:
    """One release: what was asked, the cells, what it cost, what it means, and where it is certified.

    `ratio` is the price of privacy, expected error over the smallest possible one; without it `ratio_reason` says
    why it is not known. `certificate` and `values` are file names beside the report. Where there is a `rest`, `cells`
    are the largest, in that order. `condition` is given what alone it holds; nothing where it holds always.
    """

    name: str
    kind: str
    title: str
    question: str
    cells: tuple[Cell, ...]
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

    def __post_init__(self) -> None:
        if not self.name or not self.certificate:
            _refuse("certificate", self.certificate, "name the file that the numbers come from")
        if self.picture not in get_args(Picture):
            raise UnknownName(what="picture", name=str(self.picture), known=get_args(Picture))
        if not 0 < self.confidence < 1:
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
        """How many cells carry each flag; only those that occur."""
        if self.rest is not None:
            return {f.id: n for f in self.flags if (n := self.rest.flag_counts.get(f.id, 0))}
        counts = {f.id: sum(c.flag == f.id for c in self.cells) for f in self.flags}
        return {id: n for id, n in counts.items() if n}

    @property
    def total(self) -> int:
        """How many cells there are, shown or not."""
        return len(self.cells) if self.rest is None else self.rest.total

    @property
    def typical_width(self) -> float | None:
        """The median width of the intervals, from end to end; None where there are none."""
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
    """What one release costs by itself, in the budget's own terms."""

    release: str
    amount: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetView:
    """The budget in one kind of unit (epsilon, rho, mu): total, spent and left, with the words for each.

    `earlier` is what had been spent on other releases. The parts need not add up to what was spent: a plan
    that is accounted as a whole costs less than its releases one by one.
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
    """What an exact answer rests on: it is printed in the largest type of the page."""
    publisher: str = ""
    period: str = ""
    contact: str = ""
    about_you: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What must stand in the open, beside what the release says about people."""
    withdrawn: str = ""
    """That numbers of the page do not stand any more: it stands above all of them."""
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
