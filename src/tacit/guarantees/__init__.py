"""Promises: bounds, units, conditions, and the laws between them. No data, no randomness. The only file
that is read is the package's own register of theorems.

Read in this order: `bounds/` (the amount of privacy loss), `units.py` (the protected unit), `conditions.py` (the
assumption), `guarantee.py` (all three together, and their sentences), `laws/` (the rules between guarantees),
`meaning.py` (the
meaning for people), `theorems.py` (the proofs).
"""

from tacit.guarantees.bounds import (
    COMMON_ORDERS,
    Approximate,
    Bound,
    Concentrated,
    GaussianDP,
    Pointwise,
    Profile,
    Pure,
    Renyi,
)
from tacit.guarantees.conditions import (
    Always,
    BoundedAdversary,
    Condition,
    Indistinguishability,
    Priors,
    RandomData,
)
from tacit.guarantees.guarantee import Guarantee
from tacit.guarantees.implication import Implication
from tacit.guarantees.laws.amplify import Sampling
from tacit.guarantees.laws.compose import (
    compose,
    concentrated_budget,
    group,
    parallel,
    post_process,
    renyi_budget,
    repeat,
    subsample,
)
from tacit.guarantees.laws.convert import convert, gaussian_budget
from tacit.guarantees.laws.registry import LAWS, Law
from tacit.guarantees.theorems import THEOREMS, Theorem, theorem
from tacit.guarantees.units import Coupled, GroupOf, Neighbours, People, Rows, Unit, group_of, people, rows

__all__ = [
    "COMMON_ORDERS",
    "LAWS",
    "THEOREMS",
    "Always",
    "Approximate",
    "Bound",
    "BoundedAdversary",
    "Concentrated",
    "Condition",
    "Coupled",
    "GaussianDP",
    "GroupOf",
    "Guarantee",
    "Implication",
    "Indistinguishability",
    "Law",
    "Neighbours",
    "People",
    "Pointwise",
    "Priors",
    "Profile",
    "Pure",
    "RandomData",
    "Renyi",
    "Rows",
    "Sampling",
    "Theorem",
    "Unit",
    "compose",
    "concentrated_budget",
    "convert",
    "gaussian_budget",
    "group",
    "group_of",
    "parallel",
    "people",
    "post_process",
    "renyi_budget",
    "repeat",
    "rows",
    "subsample",
    "theorem",
]
