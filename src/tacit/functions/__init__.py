"""Functions: kernels, Gaussian-process release, and the sample paths behind it."""

from tacit.functions.boxes import Box
from tacit.functions.kernels import (
    ExponentialKernel,
    GaussianKernel,
    Kernel,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    ProductKernel,
    Spectrum,
    SumKernel,
    TensorProductKernel,
    WrappedGaussianKernel,
)
from tacit.functions.means import KernelCombination, Mean
from tacit.functions.paths.online import OnlinePath, PathStore
from tacit.functions.process import FiniteBasis, GaussianProcessRelease, PathValues, ReleasedFunction

__all__ = [
    "Box",
    "ExponentialKernel",
    "FiniteBasis",
    "GaussianKernel",
    "GaussianProcessRelease",
    "Kernel",
    "KernelCombination",
    "MaternKernel",
    "Mean",
    "OnlinePath",
    "PathStore",
    "PathValues",
    "PeriodicKernel",
    "PolynomialKernel",
    "ProductKernel",
    "ReleasedFunction",
    "Spectrum",
    "SumKernel",
    "TensorProductKernel",
    "WrappedGaussianKernel",
]
