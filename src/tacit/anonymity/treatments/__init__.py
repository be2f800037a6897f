"""Treatments of tables: what agencies do to a table before they publish it. None has a guarantee."""

from __future__ import annotations

from tacit.anonymity.treatments import lost, methods, synthetic
from tacit.anonymity.treatments.lost import *
from tacit.anonymity.treatments.methods import *
from tacit.anonymity.treatments.synthetic import *

__all__ = sorted([*lost.__all__, *methods.__all__, *synthetic.__all__])
