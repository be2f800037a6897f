"""The only code that sees rows: declared schemas, filters, contribution bounding, and aggregates in the engine."""

from __future__ import annotations

from tacit.sources.axes import MAX_CELLS, Aggregate, Axis, bins
from tacit.sources.columns import Category, Column, Date, Flag, Integer, Measured, Number
from tacit.sources.expressions import Expression, parse
from tacit.sources.opening.files import Files, Joined, files, join
from tacit.sources.query import Aggregation, Cells, run
from tacit.sources.schema import Schema, category, date, derived, flag, integer, number
from tacit.sources.tables import Table, open_table

__all__ = [
    "MAX_CELLS",
    "Aggregate",
    "Aggregation",
    "Axis",
    "Category",
    "Cells",
    "Column",
    "Date",
    "Expression",
    "Files",
    "Flag",
    "Integer",
    "Joined",
    "Measured",
    "Number",
    "Schema",
    "Table",
    "bins",
    "category",
    "date",
    "derived",
    "files",
    "flag",
    "integer",
    "join",
    "number",
    "open_table",
    "parse",
    "run",
]
