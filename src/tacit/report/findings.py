"""What a release found, in a sentence: released values with their intervals, and whether the noise tells them apart."""

from __future__ import annotations

from tacit.curator.quality import ABSENT, NOISY
from tacit.report.numbers import key_words, percent
from tacit.report.view import Cell, ReleaseView

__all__ = ["finding"]

FUNCTIONS = ("classifier", "density", "regression function")


def finding(view: ReleaseView) -> str:
    """A sentence or two for everybody; cells that are too noisy to use are in none."""
    usable = [c for c in view.cells if c.flag not in (NOISY, ABSENT)]
    if not view.cells:
        return "No cell was published."
    if not usable:
        return "No value here can be used: the noise says more than the data."
    if view.kind in FUNCTIONS:
        return "A function, shown at some of its points; the certificate has all of it."
    if view.kind.startswith("quantile") and len(view.columns) == 1:
        return "; ".join(map(_quantile, usable)) + "."
    if len(usable) == 1 and not view.columns:
        return f"{_words(usable[0])}."
    if len(usable) == 1:
        return f"Only {_words(usable[0])} can be used."
    if view.kind in ("margins", "hierarchy", "clamping bounds"):
        return f"{view.total:,} values; the table below has all that are shown."
    most = max(usable, key=lambda c: c.value or 0.0)
    least = min(usable, key=lambda c: c.value or 0.0)
    if most.value == least.value:
        return f"All {len(usable):,} values are {most.figures.value}."
    told = f"Largest: {_words(most)}. Smallest: {_words(least)}."
    if len(usable) < view.total and view.rest is None:
        some = f"Of the {len(usable):,} of {view.total:,} that can be used"
        told = f"{some}: largest {_words(most)}; smallest {_words(least)}."
    elif view.rest is not None:
        return f"Largest: {_words(most)}."
    if most.low is not None and least.high is not None and most.low <= least.high:
        told += " Their intervals overlap: the noise does not tell them apart."
    return told


def _words(cell: Cell) -> str:
    told = cell.figures
    name = ", ".join(key_words(k) for k in cell.keys)
    ends = f" ({told.interval})" if cell.low is not None and cell.low != cell.high else ""
    return f"{name}, {told.value}{ends}" if name else f"{told.value}{ends}"


def _quantile(cell: Cell) -> str:
    share = cell.keys[0]
    told = cell.figures
    named = percent(share) if isinstance(share, float) else key_words(share)
    return f"{named} are below {told.value} ({told.interval})"
