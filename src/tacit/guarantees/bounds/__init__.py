"""Bounds on the privacy loss, one file a bound."""

from tacit.guarantees.bounds.approximate import Approximate, Pointwise
from tacit.guarantees.bounds.base import Bound, Level
from tacit.guarantees.bounds.concentrated import Concentrated
from tacit.guarantees.bounds.gaussian import GaussianDP
from tacit.guarantees.bounds.profile import Profile
from tacit.guarantees.bounds.pure import Pure
from tacit.guarantees.bounds.renyi import COMMON_ORDERS, Renyi

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
