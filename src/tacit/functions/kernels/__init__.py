"""Kernels: positive definite functions, and what a release needs to know of them. One file a family."""

from tacit.functions.kernels.base import Kernel, Spectrum, nystrom
from tacit.functions.kernels.combined import ProductKernel, SumKernel, TensorProductKernel
from tacit.functions.kernels.exponential import ExponentialKernel
from tacit.functions.kernels.gaussian import GaussianKernel
from tacit.functions.kernels.matern import MaternKernel
from tacit.functions.kernels.periodic import PeriodicKernel, WrappedGaussianKernel
from tacit.functions.kernels.polynomial import PolynomialKernel

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
