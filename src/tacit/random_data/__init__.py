"""Releases under random differential privacy: private for most data, not for all. See docs/random-data.md."""

from __future__ import annotations

from tacit.random_data import base, changes, density, histogram, predictive, survey
from tacit.random_data.base import *
from tacit.random_data.changes import *
from tacit.random_data.density import *
from tacit.random_data.histogram import *
from tacit.random_data.predictive import *
from tacit.random_data.survey import *

__all__ = sorted(
    [
        *base.__all__,
        *changes.__all__,
        *density.__all__,
        *histogram.__all__,
        *predictive.__all__,
        *survey.__all__,
    ]
)
