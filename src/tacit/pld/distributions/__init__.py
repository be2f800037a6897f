"""Privacy-loss distributions: by atoms, by tails, or by an upper curve; each knows how to be put on a grid."""

from __future__ import annotations

from tacit.pld.distributions.atomic import AtomicPLD
from tacit.pld.distributions.base import PrivacyLossDistribution, sampled_loss, unsampled_loss
from tacit.pld.distributions.curve import CurvePLD
from tacit.pld.distributions.tails import Cells, TailPLD, Tails

__all__ = [
    "AtomicPLD",
    "Cells",
    "CurvePLD",
    "PrivacyLossDistribution",
    "TailPLD",
    "Tails",
    "sampled_loss",
    "unsampled_loss",
]
