"""Every error that tacit raises, as one tree.

    TacitError
    ├── InvalidInput               the request is malformed: nothing was computed, nothing spent   (exit 2)
    │   ├── InvalidParameter       a number outside its domain: NaN, negative, delta > 1, order <= 1
    │   │   └── NoSuchFile         a file that is not there
    │   ├── Closed                 a curator that was closed, and is used again
    │   ├── EmptyComposition       a composition, plan or grid with nothing in it
    │   ├── LedgerError            the ledger cannot be used as it is: absent, read-only, full, unreachable
    │   │   ├── LedgerCorrupt      an entry was changed, removed, moved or cut off, or the file is damaged
    │   │   ├── LedgerLocked       another process held the ledger for longer than the wait
    │   │   └── LedgerVersion      the ledger was written by a newer version of tacit
    │   ├── UnknownName            a word outside the closed list of its parameter
    │   │   └── UnknownColumn      a column that the schema does not declare, or the table does not have
    │   ├── UnitMismatch           two guarantees about different units, or a unit used as another
    │   ├── BadData                a table that does not fit its description
    │   ├── BadMessage             bytes that are no message of this joint release, or were altered
    │   ├── BadExpression          a filter outside the closed language of `where=`
    │   ├── MissingBounds          a statistic of a number whose bounds were not declared
    │   ├── TooManyCells           a grid of groups that is too large to be released
    │   └── WrongType              a column used as, or stored as, something else than it was declared
    ├── InternalError              tacit found a mistake of its own: a claim failed its own check  (exit 2)
    ├── FitFailed                  a model's solver missed its tolerance, after the charge       (exit 3)
    ├── ReadFailed                 the rows could not be read, after the charge, which stays       (exit 3)
    └── Refused                    well-formed, and the answer is no                               (exit 1)
        ├── BudgetExceeded         the request exceeds the remaining budget
        ├── JointRefused           a joint release that too few finish, or that shows different views
        ├── NoLaw                  no theorem gives the requested step
        ├── NotAllowed             a ledger's roles say no: no such role, no approval, no signature
        ├── NotCertified           the numerical bound could not be made tight enough to be of use
        └── NotReachable           no treatment of a table reaches the requested properties

An error of any class that ends a release after its charge has `after_charge = True` and exit code 3.

Errors carry fields and a hint. They never contain a value from a person's record: only typed parameters, names
of the schema, and constants of the library.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar

__all__ = [
    "BadData",
    "BadExpression",
    "BadMessage",
    "BudgetExceeded",
    "Closed",
    "EmptyComposition",
    "FitFailed",
    "InternalError",
    "InvalidInput",
    "InvalidParameter",
    "JointRefused",
    "LedgerCorrupt",
    "LedgerError",
    "LedgerLocked",
    "LedgerVersion",
    "MissingBounds",
    "NoLaw",
    "NoSuchFile",
    "NotAllowed",
    "NotCertified",
    "NotReachable",
    "ReadFailed",
    "Refused",
    "TacitError",
    "TooManyCells",
    "UnitMismatch",
    "UnknownColumn",
    "UnknownName",
    "WrongType",
]

_JOINERS = "\u200c\u200d"  # words of some languages are spelled with them, and they move nothing
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
# Letters, marks and signs without a shape: fillers, selectors of variants, blanks that are no blanks.
_BLANK = frozenset(
    {
        0x034F,
        0x115F,
        0x1160,
        0x17B4,
        0x17B5,
        0x2800,
        0x3164,
        0xFFA0,
        0x16FE4,
        0x1D159,
        0x13441,
        0x13442,
        0x13443,
    }
).union(range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
MOST_OF_A_VALUE = 160


def visible(text: str) -> str:
    """Text with everything that would steer a terminal or turn the reading around spelled out, as `\\u{1b}`.

    Control characters, line breaks, marks of direction, fillers and other characters without a shape are written as
    `\\u{hex}`, and a `\\u{` that stood there as `\\u{5c}u{`: so two texts never look the same, and reading `\\u{hex}`
    as its character gives the text back.
    """
    if text.isascii() and text.isprintable() and "\\u{" not in text:
        return text
    return "".join(
        f"\\u{{{ord(c):x}}}" if shows_nothing(c) and c not in _JOINERS else c
        for c in text.replace("\\u{", "\\u{5c}u{")
    )


def shows_nothing(c: str) -> bool:
    """Whether this character has no shape of its own. Blanks count as having a shape, since they separate words."""
    return unicodedata.category(c) in _UNSEEN or ord(c) in _BLANK


def _value_text(value: object) -> str:
    """A typed value for one sentence: long values are cut, and unprintably large numbers named as such."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "a value that is too long to print"
    return text if len(text) <= MOST_OF_A_VALUE else text[: MOST_OF_A_VALUE - 3] + "..."


class TacitError(Exception):
    """The root: `except TacitError` catches all that tacit raises on purpose."""

    exit_code: int = 2
    after_charge: bool = False
    EXIT_AFTER_CHARGE: ClassVar[int] = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = visible(message)
        self.hint = visible(hint)
        super().__init__(f"{self.message}; {self.hint}" if hint else self.message)

    def mark_charged(self) -> None:
        """Marks that the budget was charged and nothing was released."""
        self.after_charge = True
        self.exit_code = self.EXIT_AFTER_CHARGE


@contextmanager
def charge_made() -> Iterator[None]:
    """Mark every error of ours that ends this block: the charge was made before it."""
    try:
        yield
    except TacitError as problem:
        problem.mark_charged()
        raise


class InvalidInput(TacitError, ValueError):
    """The request is malformed. Nothing was computed and nothing was spent."""

    exit_code = 2


class InvalidParameter(InvalidInput):
    """A parameter is outside its domain."""

    def __init__(self, *, parameter: str, value: object, must: str, hint: str = "") -> None:
        self.parameter = parameter
        self.value = value
        self.must = must
        super().__init__(f"{parameter} must {must}, got {_value_text(value)}", hint=hint)


class NoSuchFile(InvalidParameter):
    """A named file does not exist; the error suggests the nearest name beside it."""

    def __init__(self, *, parameter: str, path: str, beside: Iterable[str] = ()) -> None:
        self.path = path
        near = difflib.get_close_matches(path, tuple(beside), n=1)
        self.nearest = near[0] if near else None
        self.parameter, self.value, self.must = parameter, path, "be a file that is there"
        TacitError.__init__(
            self, f"no such file: {path}", hint=f"did you mean {self.nearest!r}?" if near else ""
        )


class EmptyComposition(InvalidInput):
    """There is nothing to compose."""

    def __init__(self, *, what: str, hint: str = "") -> None:
        self.what = what
        super().__init__(f"{what} is empty", hint=hint or "give at least one member")


class Closed(InvalidInput):
    """A curator was closed, and is used again."""

    def __init__(self, *, what: str = "curator") -> None:
        super().__init__(
            f"the {what} was closed",
            hint="its budget is not granted again; make another one with its ledger",
        )


class LedgerError(InvalidInput):
    """The ledger cannot be used as it is. Nothing was answered, and a charge is spent only if the text says so."""

    def __init__(self, *, ledger: str, reason: str, hint: str = "") -> None:
        self.ledger = ledger
        self.reason = reason
        super().__init__(f"the ledger {ledger} {reason}", hint=hint)


class LedgerCorrupt(LedgerError):
    """The ledger is damaged: an entry was changed, removed, moved or cut off."""


class LedgerLocked(LedgerError):
    """Another process held the ledger for longer than the wait."""


class LedgerVersion(LedgerError):
    """The ledger was written in a format that this version does not know."""


class UnknownName(InvalidInput):
    """A word is not in the closed list of its parameter; the error suggests the nearest one."""

    def __init__(self, *, what: str, name: str, known: Iterable[str], hint: str = "") -> None:
        self.what = what
        self.name = name
        self.known = tuple(sorted(known))
        near = difflib.get_close_matches(name, self.known, n=1) if len(name) <= MOST_OF_A_VALUE else []
        self.nearest = near[0] if near else None
        shown = ", ".join(self.known[:24]) + (", ..." if len(self.known) > 24 else "")
        default = f"did you mean {self.nearest!r}?" if near else f"known: {shown}"
        super().__init__(f"unknown {what} {_value_text(name)}", hint=hint or default)


class UnknownColumn(UnknownName):
    """A column that is not declared in the schema, or not in the table."""

    def __init__(
        self, *, column: str, known: Iterable[str], where: str = "the schema", hint: str = ""
    ) -> None:
        self.column = column
        super().__init__(what=f"column (not in {where})", name=column, known=known, hint=hint)


class BadData(InvalidInput):
    """A table cannot be read. The text names the file and the fault, never the content."""

    def __init__(self, *, source: str, problem: str, hint: str = "") -> None:
        self.source = source
        self.problem = problem
        super().__init__(f"{source} {problem}", hint=hint)


class BadMessage(InvalidInput):
    """Bytes that are not a message of this joint release, or that somebody altered on the way. Nothing was done with
    them.
    """

    def __init__(self, *, what: str, reason: str, hint: str = "") -> None:
        self.what = what
        self.reason = reason
        super().__init__(f"{what} is not used: {reason}", hint=hint)


class BadExpression(InvalidInput):
    """A filter is outside the closed language; the text shows the place in the caller's input."""

    def __init__(self, *, text: str, position: int, problem: str, hint: str = "") -> None:
        self.text = text
        self.position = position
        self.problem = problem
        shown = text if len(text) <= 80 else text[:77] + "..."
        super().__init__(f"the filter {shown!r} is wrong at character {position + 1}: {problem}", hint=hint)


class MissingBounds(InvalidInput):
    """A statistic of a number needs declared bounds; they are never read from the data."""

    def __init__(self, *, column: str, hint: str = "") -> None:
        self.column = column
        super().__init__(
            f"column {column!r} has no bounds",
            hint=hint
            or "declare number(low, high); bounds are never read from the data,"
            f" or release private ones: curator.release(tacit.clamping_bounds({column!r}), epsilon=...)",
        )


class TooManyCells(InvalidInput):
    """The declared keys span more groups than can be released one by one."""

    def __init__(self, *, cells: int, limit: int, hint: str = "") -> None:
        self.cells = cells
        self.limit = limit
        super().__init__(
            f"the declared keys span {cells:,} groups, the limit is {limit:,}",
            hint=hint or "group by fewer columns or coarser bins, or leave the keys undeclared: category()",
        )


class WrongType(InvalidInput):
    """A column is used as, or stored as, something else than it was declared."""

    def __init__(self, *, column: str, found: str, wanted: str, hint: str = "") -> None:
        self.column = column
        self.found = found
        self.wanted = wanted
        super().__init__(f"column {column!r} is {found}, where {wanted} is needed", hint=hint)


class UnitMismatch(InvalidInput):
    """Two guarantees are about different units, so that no statement about both exists in this form."""

    def __init__(self, *, left: str, right: str, hint: str = "") -> None:
        self.left = left
        self.right = right
        super().__init__(
            f"the units differ: {left} against {right}",
            hint=hint or "state both for one unit first, by a group law or by declaring contribution bounds",
        )


class ReadFailed(TacitError):
    """The rows could not be read. One fixed sentence for every failure, since the failure may reveal a person's row."""

    def __init__(self, *, source: str) -> None:
        self.source = source
        super().__init__(
            f"{source} could not be read; nothing was released, and what was charged for it stays spent",
            hint="check that the file is whole, that a view of yours fails for no row, and that there is room on disk",
        )


class InternalError(TacitError):
    """A claim of tacit failed its own check: a mistake in tacit, found before anything was charged or published."""

    def __init__(self, *, what: str, reason: str) -> None:
        self.what = what
        self.reason = reason
        super().__init__(
            f"{what}: {reason}",
            hint="this is a mistake in tacit; nothing was charged. Please report it with the plan",
        )


class FitFailed(TacitError):
    """A model was not trained to its public tolerance. One fixed sentence for every cause."""

    def __init__(self) -> None:
        super().__init__(
            "the model could not be trained to its tolerance; nothing was released, and what was charged for it"
            " stays spent",
            hint="a larger tolerance= or penalty= is easier to reach; both are public",
        )


class Refused(TacitError):
    """The request is well-formed, and the answer is no."""

    exit_code = 1


class BudgetExceeded(Refused):
    """The charge does not fit in the remaining budget. Nothing was spent."""

    def __init__(
        self, *, spent: object, asked: object, left: object, whose: str = "the budget", hint: str = ""
    ) -> None:
        self.spent = spent
        self.asked = asked
        self.left = left
        self.whose = whose
        super().__init__(f"{whose} does not cover it: spent {spent}; asked {asked}; left {left}", hint=hint)


class JointRefused(Refused):
    """A joint release ends without a number: too few are left, or the views of the holders differ.

    `charged` says whether the charge of a holder who raises it is spent.
    """

    def __init__(self, *, reason: str, charged: str, hint: str = "", after_charge: bool = False) -> None:
        self.reason = reason
        self.charged = charged
        super().__init__(f"the joint release is refused: {reason}; {charged}", hint=hint)
        if after_charge:
            self.mark_charged()


class NoLaw(Refused):
    """No theorem gives the requested step; contains the reason and, if one is known, a counterexample."""

    def __init__(self, *, operation: str, reason: str, counterexample: str = "", hint: str = "") -> None:
        self.operation = operation
        self.reason = reason
        self.counterexample = counterexample
        text = f"no law for {operation}: {reason}"
        if counterexample:
            text += f" (counterexample: {counterexample})"
        super().__init__(text, hint=hint)


class NotAllowed(Refused):
    """The caller lacks the role, the approval or the key for it. Nothing was charged."""

    def __init__(self, *, who: str, what: str, reason: str, hint: str = "") -> None:
        self.who = who
        self.what = what
        self.reason = reason
        super().__init__(f"{_value_text(who)} may not {what}: {reason}; nothing was charged", hint=hint)


class NotCertified(Refused):
    """A numerical bound could not be certified to the accuracy that the answer needs."""

    def __init__(self, *, what: str, reason: str, hint: str = "") -> None:
        self.what = what
        self.reason = reason
        super().__init__(f"{what} could not be certified: {reason}", hint=hint)


class NotReachable(Refused):
    """No treatment of the requested kind gives the table the requested property."""

    def __init__(self, *, what: str, hint: str = "") -> None:
        self.what = what
        super().__init__(f"{what} cannot be reached", hint=hint)
