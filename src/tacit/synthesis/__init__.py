"""Synthetic rows: margins are chosen, measured with noise and fitted; rows are drawn from the fit."""

from __future__ import annotations

from tacit.synthesis.rounds import Outcome, synthesise_margins
from tacit.synthesis.schedule import Schedule, schedule_of
from tacit.synthesis.statistic import SyntheticTable, synthetic_table

__all__ = ["Outcome", "Schedule", "SyntheticTable", "schedule_of", "synthesise_margins", "synthetic_table"]
