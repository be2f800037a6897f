"""Every theorem that tacit rests on: id, statement, source, assumptions; the proof is in docs/theory/<id>.md."""

from tacit.guarantees.theorems import (
    accounting,
    algebra,
    coupled,
    densities,
    functions,
    machines,
    mechanisms,
    noise,
    noiseless,
    parties,
    random_data,
    risk,
    statistics,
    tables,
    truncation,
)
from tacit.guarantees.theorems.register import THEOREMS, Standing, Theorem, register, theorem

__all__ = [
    "THEOREMS",
    "Standing",
    "Theorem",
    "accounting",
    "algebra",
    "coupled",
    "densities",
    "functions",
    "machines",
    "mechanisms",
    "noise",
    "noiseless",
    "parties",
    "random_data",
    "register",
    "risk",
    "statistics",
    "tables",
    "theorem",
    "truncation",
]
