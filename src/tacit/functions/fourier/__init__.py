"""Fourier series densities with pure noise: periodic kernels on a box, plans, bounds on what truncation costs."""

from tacit.functions.fourier.family import (
    FourierKDE,
    component_laplace_energy,
    noise_energies,
    noise_rate,
    squared_norm_noise,
)
from tacit.functions.fourier.plan import (
    CumulativeCurve,
    FourierPlan,
    FourierRegression,
    ReleasedRegression,
    fourier_bandwidth,
    fourier_order,
    truncation_bound,
    wrapping_bound,
)

__all__ = [
    "CumulativeCurve",
    "FourierKDE",
    "FourierPlan",
    "FourierRegression",
    "ReleasedRegression",
    "component_laplace_energy",
    "fourier_bandwidth",
    "fourier_order",
    "noise_energies",
    "noise_rate",
    "squared_norm_noise",
    "truncation_bound",
    "wrapping_bound",
]
