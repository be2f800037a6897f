"""Bounds on the privacy loss: those with a closed form, and whole curves."""

from tacit.guarantees.bounds.base import (
    COMMON_ORDERS,
    Approximate,
    Bound,
    Concentrated,
    GaussianDP,
    Level,
    Pointwise,
    Pure,
    Renyi,
)
from tacit.guarantees.bounds.profile import Profile

__all__ = [
    "COMMON_ORDERS",
    "Approximate",
    "Bound",
    "Concentrated",
    "GaussianDP",
    "Level",
    "Pointwise",
    "Profile",
    "Pure",
    "Renyi",
]
