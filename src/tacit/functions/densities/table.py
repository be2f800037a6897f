"""Families of densities by their names: a closed table, for records."""

from __future__ import annotations

from typing import Any

from tacit.errors import InvalidParameter, UnknownName
from tacit.functions.bases import FourierBasis, HermiteBasis, HistogramBasis, WaveletBasis
from tacit.functions.boxes import Box
from tacit.functions.densities.kde import GaussianKDE, ReflectedKDE, SobolevKDE
from tacit.functions.density_families import DensityFamily
from tacit.functions.fourier.family import FourierKDE

FAMILIES: dict[str, type[DensityFamily]] = {
    c.kind: c
    for c in (
        GaussianKDE,
        ReflectedKDE,
        SobolevKDE,
        FourierBasis,
        FourierKDE,
        HermiteBasis,
        WaveletBasis,
        HistogramBasis,
    )
}


def family_from_record(record: Any) -> DensityFamily:
    """The family that `describe` wrote down."""
    if not isinstance(record, dict) or not isinstance(record.get("family"), str):
        raise InvalidParameter(parameter="family", value=type(record).__name__, must="be a table with a name")
    if record["family"] not in FAMILIES:
        raise UnknownName(what="family of densities", name=record["family"], known=FAMILIES)
    rest = {k: v for k, v in record.items() if k not in ("family", "low", "high")}
    try:
        box = Box(low=record["low"], high=record["high"])
        return FAMILIES[record["family"]](domain=box, **rest)
    except (KeyError, TypeError):
        raise InvalidParameter(
            parameter="family", value=sorted(record), must=f"have the fields of {record['family']!r}"
        ) from None
