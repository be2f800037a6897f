"""What is written in a text file, in the one way in which engines read it: 1.5 and 2024-01-31.

A comma in a number, a day that stands first, a word for no value are declared, for all columns of the file alike. Each
text is looked at by itself, and one that is not written as declared is missing, or stays what the engines read as
missing. Nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.sources.columns import Category, Column, Date, Flag, Integer, Number
from tacit.sources.opening.files import Files
from tacit.sources.schema import Schema

__all__ = ["rewriter"]

Rewrite = Callable[[Any], Any]
WRITTEN = r"^[ \t]*([0-9]{1,2})[./-]([0-9]{1,2})[./-]([0-9]{4})"
YEAR_FIRST = {"day-first": r"\3-\2-\1", "month-first": r"\3-\1-\2"}


def rewriter(asked: Files, schema: Schema) -> Rewrite:
    """A call that turns a batch of text columns into what the engines read."""
    declared = dict(schema.items())

    def rewrite(batch: Any) -> Any:
        import pyarrow as pa

        made = {name: _column(asked, declared.get(name), batch.column(name)) for name in batch.schema.names}
        return pa.record_batch(made, schema=batch.schema)

    plain = not asked.missing and asked.decimal != "," and asked.dates not in YEAR_FIRST
    return (lambda batch: batch) if plain else rewrite


def _column(asked: Files, declared: Column | None, texts: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if asked.missing:
        words = pa.array(asked.missing, texts.type)
        trimmed = pc.ascii_trim(texts, characters=" \t\r\n\v\f")
        texts = pc.if_else(pc.is_in(trimmed, value_set=words), pa.scalar(None, texts.type), texts)
    if asked.decimal == "," and _is_number(declared):
        # A point is no part of a number that is written with a comma.
        pointed = pc.match_substring(texts, pattern=".")
        with_point = pc.replace_substring(texts, pattern=",", replacement=".")
        texts = pc.if_else(pointed, pa.scalar(None, texts.type), with_point)
    if asked.dates in YEAR_FIRST and isinstance(declared, Date):
        order = YEAR_FIRST[asked.dates]
        texts = pc.replace_substring_regex(texts, pattern=WRITTEN, replacement=order)
    return texts


def _is_number(declared: Column | None) -> bool:
    if isinstance(declared, Category):
        return not declared.of_words
    return isinstance(declared, Number | Integer | Flag)
