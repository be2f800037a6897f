"""Functions: kernels, Gaussian-process release, and the sample paths behind it.

The packages `bases`, `densities`, `fourier` and `models` are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from tacit.functions import bases as bases
    from tacit.functions import densities as densities
    from tacit.functions import fourier as fourier
    from tacit.functions import models as models
else:
    # Hidden from type checkers, which would take any name for one that exists.
    def __getattr__(name: str) -> object:
        if name in ("bases", "densities", "fourier", "models"):
            return importlib.import_module(f"tacit.functions.{name}")
        raise AttributeError(f"module 'tacit.functions' has no attribute {name!r}")


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
