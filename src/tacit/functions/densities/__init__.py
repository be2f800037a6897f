"""Densities: released once as a whole curve, read by anybody anywhere."""

from tacit.functions.densities.kde import GaussianKDE, ReflectedKDE, SobolevKDE
from tacit.functions.densities.noises import (
    CoefficientNoise,
    EuclideanLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
)
from tacit.functions.densities.plan import (
    ChosenDensity,
    DensityChoice,
    DensityComparison,
    DensityPlan,
    ExpectedErrors,
    compare_densities,
    expansion_errors,
    expected_errors,
    normal_reference,
    public_bandwidth,
)
from tacit.functions.densities.released import Band, GriddedDensity, ReleasedDensity, nearest_probabilities
from tacit.functions.density_families import DensityFamily

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
