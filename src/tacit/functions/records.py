"""Kernels, releases and means as records, and back: a closed table, never by import or pickle."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.functions.boxes import Box
from tacit.functions.kernels import (
    ExponentialKernel,
    GaussianKernel,
    Kernel,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    ProductKernel,
    SumKernel,
    TensorProductKernel,
    WrappedGaussianKernel,
)
from tacit.functions.means import KernelCombination, Mean

if TYPE_CHECKING:
    from tacit.functions.process import GaussianProcessRelease

__all__ = ["joined", "kernel_from", "mean_from", "parted", "release_from", "release_record", "to_bytes"]

Arrays = Mapping[str, npt.NDArray[Any]]


def _parts(record: Mapping[str, Any]) -> tuple[Kernel, ...]:
    return tuple(kernel_from(one) for one in record["kernels"])


_KERNELS: dict[str, Callable[[Mapping[str, Any]], Kernel]] = {
    "gaussian": lambda r: GaussianKernel(bandwidth=r["bandwidth"], dimension=r["dimension"]),
    "exponential": lambda r: ExponentialKernel(length=r["length"], dimension=r["dimension"]),
    "matern": lambda r: MaternKernel(
        length=r["length"], smoothness=r["smoothness"], dimension=r["dimension"]
    ),
    "periodic": lambda r: PeriodicKernel(length=r["length"], period=r["period"]),
    "wrapped gaussian": lambda r: WrappedGaussianKernel(bandwidth=r["bandwidth"], period=r["period"]),
    "polynomial": lambda r: PolynomialKernel(
        degree=r["degree"], offset=r["offset"], box=Box(low=r["low"], high=r["high"])
    ),
    "sum": lambda r: SumKernel(kernels=_parts(r)),
    "product": lambda r: ProductKernel(kernels=_parts(r)),
    "tensor product": lambda r: TensorProductKernel(kernels=_parts(r)),
}


def kernel_from(record: Mapping[str, Any]) -> Kernel:
    """The kernel of `describe()`."""
    make = _KERNELS.get(str(record.get("kernel")))
    if make is None:
        raise _unknown("kernel", sorted(_KERNELS))
    return make(record)


def release_record(release: GaussianProcessRelease) -> dict[str, Any]:
    """What a release is, as plain JSON values; exact numbers as fractions."""
    return {
        "kernel": release.kernel.describe(),
        "rkhs_sensitivity": str(release._sensitivity),
        "noise_std": str(release._noise),
        "low": list(release.domain.lows),
        "high": list(release.domain.highs),
        "spacing": str(release.step),
    }


def release_from(record: Mapping[str, Any]) -> GaussianProcessRelease:
    """The release of a record."""
    from tacit.functions.process import GaussianProcessRelease

    return GaussianProcessRelease(
        kernel=kernel_from(record["kernel"]),
        rkhs_sensitivity=Fraction(record["rkhs_sensitivity"]),
        noise_std=Fraction(record["noise_std"]),
        domain=Box(low=record["low"], high=record["high"]),
        spacing=Fraction(record["spacing"]),
    )


def to_bytes(mean: Mean) -> tuple[dict[str, Any], Arrays]:
    """A mean as plain values and arrays, for the custodian's vault."""
    if type(mean) is not KernelCombination:
        raise _unknown("mean", ["KernelCombination"])
    words = {
        "mean": "kernel combination",
        "kernel": mean.kernel.describe(),
        "absolute_sum": str(Fraction(mean.absolute_sum)),
    }
    return words, {"points": mean.at, "coefficients": mean.weights}


def mean_from(record: Mapping[str, Any], arrays: Arrays) -> Mean:
    """The mean that was kept."""
    if record.get("mean") != "kernel combination":
        raise _unknown("mean", ["kernel combination"])
    return KernelCombination(
        kernel=kernel_from(record["kernel"]), points=arrays["points"], coefficients=arrays["coefficients"],
        absolute_sum=Fraction(record["absolute_sum"]),
    )  # fmt: skip


def joined(words: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Words and arrays as one text of bytes."""
    out = io.BytesIO()
    text = json.dumps({"words": words, "arrays": sorted(arrays)}, allow_nan=False).encode("utf-8")
    out.write(len(text).to_bytes(8, "little") + text)
    for name in sorted(arrays):
        np.save(out, arrays[name], allow_pickle=False)
    return out.getvalue()


def parted(data: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Words and arrays of `joined`."""
    source = io.BytesIO(data)
    header = json.loads(source.read(int.from_bytes(source.read(8), "little")))
    return header["words"], {name: np.load(source, allow_pickle=False) for name in header["arrays"]}


def _unknown(what: str, known: list[str]) -> InvalidParameter:
    return InvalidParameter(parameter=what, value="another kind", must=f"be one of {known} to be kept")
