"""Basis expansions of densities: Fourier, Hermite, wavelets, and the histogram as the simple rival."""

from tacit.functions.bases.fourier import FourierBasis
from tacit.functions.bases.hermite import HermiteBasis
from tacit.functions.bases.histogram import HistogramBasis
from tacit.functions.bases.series import SeriesBasis
from tacit.functions.bases.wavelets import WaveletBasis

__all__ = ["FourierBasis", "HermiteBasis", "HistogramBasis", "SeriesBasis", "WaveletBasis"]
