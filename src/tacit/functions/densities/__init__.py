"""Densities: released once as a whole curve, read by anybody anywhere."""

from tacit.functions.bases.families import DensityFamily
from tacit.functions.densities.bands import Band
from tacit.functions.densities.choice import ChosenDensity, DensityChoice
from tacit.functions.densities.gridded import GriddedDensity, nearest_probabilities
from tacit.functions.densities.kde import GaussianKDE
from tacit.functions.densities.noises import (
    CoefficientNoise,
    EuclideanLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
)
from tacit.functions.densities.plan import DensityPlan
from tacit.functions.densities.reflected import ReflectedKDE
from tacit.functions.densities.released import ReleasedDensity
from tacit.functions.densities.rules import (
    DensityComparison,
    ExpectedErrors,
    compare_densities,
    expansion_errors,
    expected_errors,
    normal_reference,
    public_bandwidth,
)
from tacit.functions.densities.sobolev import SobolevKDE

__all__ = [
    "Band",
    "ChosenDensity",
    "CoefficientNoise",
    "DensityChoice",
    "DensityComparison",
    "DensityFamily",
    "DensityPlan",
    "EuclideanLaplaceNoise",
    "ExpectedErrors",
    "GaussianKDE",
    "GaussianNoise",
    "GriddedDensity",
    "LaplaceNoise",
    "ReflectedKDE",
    "ReleasedDensity",
    "SobolevKDE",
    "compare_densities",
    "expansion_errors",
    "expected_errors",
    "nearest_probabilities",
    "normal_reference",
    "public_bandwidth",
]
