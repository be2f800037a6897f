"""Randomness: one cryptographic source, and exact laws on the integers built on it."""

from __future__ import annotations

from tacit.noise.balls import CertifiedReal
from tacit.noise.laws import (
    Bernoulli,
    Binomial,
    Categorical,
    ComputableLaw,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteLaw,
    FiniteLaw,
    Geometric,
    Staircase,
    permutation,
    uniform_integer,
)
from tacit.noise.source import CryptographicSource, SeededSource, Source, default_source

__all__ = [
    "Bernoulli",
    "Binomial",
    "Categorical",
    "CertifiedReal",
    "ComputableLaw",
    "CryptographicSource",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscreteLaw",
    "FiniteLaw",
    "Geometric",
    "SeededSource",
    "Source",
    "Staircase",
    "default_source",
    "permutation",
    "uniform_integer",
]
