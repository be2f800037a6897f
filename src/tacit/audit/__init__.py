"""A second opinion: the bound of a certificate, computed again by a small program of its own.

An outside auditor reads these files first, in this order. They share no code with `pld` or `accounting`, know nothing
of tables, and prefer what is plainly right to what is fast:

    curves        one event, as it stands in a certificate -> delta(epsilon) for every real epsilon
    composition   one grid of losses, every rounding upwards, one exact multiplication of integers
    claims        the fields that a certificate may have; what it states -> what this program finds
    plans         the noise of a certificate against its events, and the charge of all of a plan

`release` applies them to a folder; it is what `tacit verify` asks.

Nothing here proves that the program drew the noise which the certificate names; `tacit verify --ledger` compares the
certificate with plan, ledger and recorded answer.
"""

from __future__ import annotations

from tacit.audit.claims import Opinion, opinion_on_certificate
from tacit.audit.plans import opinion_on_charge, opinion_on_noise

__all__ = ["Opinion", "opinion_on_certificate", "opinion_on_charge", "opinion_on_noise"]
