"""Several holders: joint statistics of tables that nobody pools, and adversaries who cannot compute everything."""

from __future__ import annotations

from tacit.parties.aggregator import Aggregator, SecureSum, Wire, run_in_process
from tacit.parties.holder import Holder
from tacit.parties.joint import Joint, joint_release, releases_of
from tacit.parties.masks import Opening, commit_to
from tacit.parties.noise import (
    JointNoise,
    JointPolya,
    JointSkellam,
    black_box_delta,
    smoothed,
    smoothed_delta,
    smoothed_delta_printed,
)
from tacit.parties.session import Session, Sizes

__all__ = [
    "Aggregator",
    "Holder",
    "Joint",
    "JointNoise",
    "JointPolya",
    "JointSkellam",
    "Opening",
    "SecureSum",
    "Session",
    "Sizes",
    "Wire",
    "black_box_delta",
    "commit_to",
    "joint_release",
    "releases_of",
    "run_in_process",
    "smoothed",
    "smoothed_delta",
    "smoothed_delta_printed",
]
