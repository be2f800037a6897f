"""Made-up tables: a public survey to show and test with, and twins of declared tables to rehearse plans on.

This folder alone may use numpy's seeded generator. Its draws describe nobody, are public by construction and never
become noise: the randomness of releases comes only from `noise.source`. The same seed gives the same
table with the same version of numpy.
"""

from __future__ import annotations

from tacit.sources.facts import is_twin
from tacit.sources.synthetic.survey import SEED, survey, survey_schema, write_survey
from tacit.sources.synthetic.twin import twin, write_table

__all__ = ["SEED", "is_twin", "survey", "survey_schema", "twin", "write_survey", "write_table"]
