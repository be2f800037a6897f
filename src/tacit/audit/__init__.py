"""A second opinion: a small separate program computes the bound of a certificate again.

An outside auditor reads these files first, in this order. They share no code with `pld` or `accounting`, know nothing
of tables, and prefer plainly right code to fast code:

    curves        the curve of one event in a certificate: delta(epsilon) for every real epsilon
    composition   one grid of losses, every rounding upwards, one exact multiplication of integers
    claims        the fields that a certificate may have: each stated number, and the number that this program finds
    plans         the noise of a certificate against its events, and the charge of all of a plan

`release` applies them to a folder; it is what `tacit verify` asks.

This room does not prove that the program drew the noise named in the certificate. `tacit verify --ledger`
compares the certificate with plan, ledger and recorded answer.

Audits try to break a claim about any mechanism, from its outputs or with its noise replayed:

    planned                   every release of a plan, on made-up neighbours
    house, answers            a function and a claim in, an answer with its limits out
    black_box, betting        bets against the claim whose wealth is valid evidence at any time
    claimed, neighbours       the claim, and its inputs
    outputs, predictors       which neighbour gave an output, learned from past ones
    grey_box, recording two neighbours under the same noise, and the place where they diverge
    isolation                 a process of its own for foreign code
    exact, training, relaxed  finite mechanisms; canaries in one training run; conditional claims, repeated answers
"""

from __future__ import annotations

from tacit.audit.answers import MechanismAudit
from tacit.audit.claims import Opinion, opinion_on_certificate, opinion_on_charge, opinion_on_noise
from tacit.audit.exact import additive, finite, holes
from tacit.audit.grey_box import replay
from tacit.audit.house import assert_private, mechanism
from tacit.audit.neighbours import NeighbourPairs, named_neighbours
from tacit.audit.planned import PlanAudit, plan
from tacit.audit.recording import Tape, recorded
from tacit.audit.relaxed import distributional, random_data, repeated_answers
from tacit.audit.training import canary_tail, guess_audit, training

__all__ = [
    "MechanismAudit",
    "NeighbourPairs",
    "Opinion",
    "PlanAudit",
    "Tape",
    "additive",
    "assert_private",
    "canary_tail",
    "distributional",
    "finite",
    "guess_audit",
    "holes",
    "mechanism",
    "named_neighbours",
    "opinion_on_certificate",
    "opinion_on_charge",
    "opinion_on_noise",
    "plan",
    "random_data",
    "recorded",
    "repeated_answers",
    "replay",
    "training",
]
