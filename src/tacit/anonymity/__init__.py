"""Tables that look anonymous: what they are, what treatments do to them, and what is still wrong. No guarantees."""

from __future__ import annotations

from tacit.anonymity.check import Checked, SensitiveChecked, check_table
from tacit.anonymity.classes import Classes
from tacit.anonymity.closeness import closeness
from tacit.anonymity.hierarchies import Hierarchy, intervals, read_hierarchy, suppression
from tacit.anonymity.identifiers import ELEMENTS, ICPSR_DIRECT, ICPSR_INDIRECT, Finding, find_identifiers
from tacit.anonymity.likeness import basic_likeness, disclosure, enhanced_likeness, presence
from tacit.anonymity.measures import (
    alpha,
    diversity,
    entropy_diversity,
    k_anonymity,
    k_map,
    recursive_c,
    recursive_diversity,
)
from tacit.anonymity.properties import Property
from tacit.anonymity.risk import Risk, journalist, prosecutor
from tacit.anonymity.uniques import Uniques, population_uniques

__all__ = [
    "ELEMENTS",
    "ICPSR_DIRECT",
    "ICPSR_INDIRECT",
    "Checked",
    "Classes",
    "Finding",
    "Hierarchy",
    "Property",
    "Risk",
    "SensitiveChecked",
    "Uniques",
    "alpha",
    "basic_likeness",
    "check_table",
    "closeness",
    "disclosure",
    "diversity",
    "enhanced_likeness",
    "entropy_diversity",
    "find_identifiers",
    "intervals",
    "journalist",
    "k_anonymity",
    "k_map",
    "population_uniques",
    "presence",
    "prosecutor",
    "read_hierarchy",
    "recursive_c",
    "recursive_diversity",
    "suppression",
]
