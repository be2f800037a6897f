"""Derived columns: a small closed language, its types, and what engines make of it."""

from __future__ import annotations

from tacit.sources.deriving.language import Node
from tacit.sources.deriving.parsing import parse
from tacit.sources.deriving.types import check_derived

__all__ = ["Node", "check_derived", "parse"]
