"""A treated table, one treatment after another: the treated rows, their loss, and the remaining risks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tacit.anonymity.check import Checked, check_table
from tacit.anonymity.classes import check_roles
from tacit.anonymity.treatments import Lost, Treatment, compare_tables
from tacit.anonymity.treatments.methods import Draws
from tacit.errors import BadData, EmptyComposition, InvalidParameter, UnknownColumn
from tacit.exact.canonical import formerly
from tacit.exact.data_classes import dataclass
from tacit.noise.source import Source
from tacit.sources.microdata import open_microdata


@dataclass(frozen=True, slots=True, kw_only=True)
class Treated:
    """table: the treated rows, as Arrow. lost: against the table before. checked: what it still exposes."""

    table: Any
    done: tuple[str, ...]
    lost: Lost
    checked: Checked | None

    @property
    def problems(self) -> tuple[str, ...]:
        """The remaining weaknesses of the table."""
        if self.checked is None:
            return ("Nothing was measured: name the quasi-identifiers.",)
        return self.checked.problems

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "for_publication": False,
            "done": list(self.done),
            "lost": self.lost.to_dict(),
            "left": self.checked.to_dict() if self.checked is not None else None,
            "problems": list(self.problems),
        }

    record = formerly("record")


def treat_table(
    data: Any,
    treatments: Sequence[Treatment],
    *,
    quasi: Sequence[str] = (),
    sensitive: str | Sequence[str] = (),
    k: int = 5,
    source: Source | None = None,
    engine: str | None = None,
) -> Treated:
    """Applies the treatments in their order. Reports the loss and, for given quasi-identifiers, the remaining exposure.

    source: of randomness, the cryptographic one by default. A repeatable source hides nothing.
    """
    if not treatments:
        raise EmptyComposition(what="the list of treatments")
    for one in treatments:
        if not isinstance(one, Treatment):
            raise InvalidParameter(
                parameter="treatments", value=type(one).__name__, must="be treatments, such as Round(...)"
            )
    micro = open_microdata(data, engine=engine)
    try:
        before = micro.rows()
    finally:
        if micro is not data:
            micro.close()
    check_asked(before.column_names, quasi, (sensitive,) if isinstance(sensitive, str) else tuple(sensitive))
    if not before.num_rows:
        raise BadData(source=micro.source, problem="has no rows", hint="there is nothing to treat")
    draws, after = Draws(source), before
    for one in treatments:
        after = one.apply(after, draws)
    return finish(
        before,
        after,
        done=[one.describe() for one in treatments],
        aligned=all(one.aligned for one in treatments),
        quasi=quasi,
        sensitive=sensitive,
        k=k,
    )


def check_asked(columns: Sequence[str], quasi: Sequence[str], sensitive: Sequence[str]) -> tuple[str, ...]:
    """The quasi-identifiers; an unknown name is refused, since ignoring it would hide exposure."""
    asked = (quasi,) if isinstance(quasi, str) else tuple(quasi)
    if asked:
        for name in sensitive or (None,):
            check_roles(columns, asked, name)
    for name in sensitive:
        if name not in columns:
            raise UnknownColumn(column=name, known=columns, where="the table")
    return asked


def finish(
    before: Any,
    after: Any,
    *,
    done: Sequence[str],
    aligned: bool,
    quasi: Sequence[str] = (),
    sensitive: str | Sequence[str] = (),
    k: int = 5,
) -> Treated:
    """The loss of a treated table against the earlier one, and its remaining exposure."""
    names = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    quasi = check_asked(before.column_names, quasi, names)
    left = [name for name in quasi if name in after.column_names]
    hidden = [name for name in names if name in after.column_names]
    checked = check_table(after, quasi=left, sensitive=hidden, k=k) if left and after.num_rows else None
    lost = compare_tables(before, after, aligned=aligned)
    return Treated(table=after, done=tuple(done), lost=lost, checked=checked)
