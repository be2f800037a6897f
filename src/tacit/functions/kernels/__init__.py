"""Kernels: positive definite functions, with the facts that a release needs. One file a family."""

from tacit.functions.kernels.base import (
    Kernel,
    ProductKernel,
    Spectrum,
    SumKernel,
    TensorProductKernel,
    nystrom,
)
from tacit.functions.kernels.families import (
    ExponentialKernel,
    GaussianKernel,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    WrappedGaussianKernel,
)

__all__ = [
    "ExponentialKernel",
    "GaussianKernel",
    "Kernel",
    "MaternKernel",
    "PeriodicKernel",
    "PolynomialKernel",
    "ProductKernel",
    "Spectrum",
    "SumKernel",
    "TensorProductKernel",
    "WrappedGaussianKernel",
    "nystrom",
]
