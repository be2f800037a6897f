"""Several holders: joint statistics of tables that nobody pools, and adversaries who cannot compute everything."""

from __future__ import annotations

from tacit.parties.aggregator import Aggregator, SecureSum
from tacit.parties.commitments import Opening, commit_to
from tacit.parties.holder import Holder
from tacit.parties.joint import Joint
from tacit.parties.noise import JointNoise, JointPolya, JointSkellam
from tacit.parties.process import Wire, run_in_process
from tacit.parties.releases import joint_release, releases_of
from tacit.parties.session import Session
from tacit.parties.sizes import Sizes
from tacit.parties.smoothing import black_box_delta, smoothed, smoothed_delta, smoothed_delta_printed

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
