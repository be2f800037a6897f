"""Tables that look anonymous: what they are, what treatments do to them, and what is still wrong. No guarantees."""

from __future__ import annotations

from tacit.anonymity.cellkey import PTable, cell_key_counts, entropy_ptable, record_keys, ten_five_rule
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
from tacit.anonymity.mondrian import Recoded, mondrian
from tacit.anonymity.properties import Property
from tacit.anonymity.risk import Risk, journalist, prosecutor
from tacit.anonymity.search import Generalised, generalise
from tacit.anonymity.suppressed import Pattern, suppress_cells
from tacit.anonymity.treat import Treated, finish, treat_table
from tacit.anonymity.treatments import (
    BottomCode,
    Collapse,
    CorrectedRegression,
    Disturb,
    Lost,
    MatrixMask,
    Microaggregate,
    ModelDraws,
    Remove,
    Round,
    Sample,
    Swap,
    TopCode,
    Treatment,
    corrected_covariance,
    corrected_regression,
)
from tacit.anonymity.treatments.draws import Draws
from tacit.anonymity.uniques import Uniques, population_uniques
from tacit.sources.microdata import Microdata, open_microdata

__all__ = [
    "ELEMENTS",
    "ICPSR_DIRECT",
    "ICPSR_INDIRECT",
    "BottomCode",
    "Checked",
    "Classes",
    "Collapse",
    "CorrectedRegression",
    "Disturb",
    "Draws",
    "Finding",
    "Generalised",
    "Hierarchy",
    "Lost",
    "MatrixMask",
    "Microaggregate",
    "Microdata",
    "ModelDraws",
    "PTable",
    "Pattern",
    "Property",
    "Recoded",
    "Remove",
    "Risk",
    "Round",
    "Sample",
    "SensitiveChecked",
    "Swap",
    "TopCode",
    "Treated",
    "Treatment",
    "Uniques",
    "alpha",
    "basic_likeness",
    "cell_key_counts",
    "check_table",
    "closeness",
    "corrected_covariance",
    "corrected_regression",
    "disclosure",
    "diversity",
    "enhanced_likeness",
    "entropy_diversity",
    "entropy_ptable",
    "find_identifiers",
    "finish",
    "generalise",
    "intervals",
    "journalist",
    "k_anonymity",
    "k_map",
    "mondrian",
    "open_microdata",
    "population_uniques",
    "presence",
    "prosecutor",
    "read_hierarchy",
    "record_keys",
    "recursive_c",
    "recursive_diversity",
    "suppress_cells",
    "suppression",
    "ten_five_rule",
    "treat_table",
]
