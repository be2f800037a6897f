"""A released function: numbers, declared columns, and nothing of any row. It answers alike whenever it is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.curator.functions.density import DensityFit
from tacit.curator.functions.fits import Fit, MachineFit
from tacit.curator.functions.fourier import PureDensityFit
from tacit.curator.functions.inputs import InputColumns
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.functions.densities import ReleasedDensity
from tacit.mechanisms.base import confidence_level
from tacit.statistics.base import Question

__all__ = ["PublishedFunction"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedFunction:
    """x -> the released function at x: `function({"age": [30, 40]})`, or an array with one column each.

    Evaluating it is post-processing: it costs nothing, anywhere, as often as anybody likes.
    """

    kind: str
    fit: Fit = field(repr=False)
    inputs: InputColumns = field(repr=False)
    numbers: Floats = field(repr=False)
    publishable: bool = True

    @classmethod
    def of(
        cls, question: Question, fit: Fit, numbers: Floats, *, publishable: bool = True
    ) -> PublishedFunction:
        """The function of a question from its released numbers."""
        return cls(
            kind=question.statistic.kind, fit=fit, inputs=question.details["inputs"], numbers=numbers,
            publishable=publishable,
        )  # fmt: skip

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is a function of."""
        return self.inputs.names

    def __call__(self, points: Any) -> Floats:
        """The value at each point; several classes have a column each. Points outside are moved to the bounds."""
        values = self.fit.shown(self.fit.values(self.numbers, self.inputs.of_values(points)))
        return values[:, 0] if values.shape[1] == 1 else values

    def noise_std_at(self, points: Any) -> Floats:
        """The standard deviation of the noise at each point; public."""
        return self.fit.stds(self.inputs.of_values(points))

    def band(self, points: Any, *, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Low and high at each point by itself: they hold the function without noise with this confidence."""
        at = self.inputs.of_values(points)
        half = (
            self.fit.spread(float(confidence_level(confidence))) * self.fit.stds(at)[:, None] / self.fit.unit
        )
        plain = self.fit.values(self.numbers, at)
        low, high = self.fit.shown(plain - half), self.fit.shown(plain + half)
        return (low[:, 0], high[:, 0]) if low.shape[1] == 1 else (low, high)

    def predict(self, points: Any) -> npt.NDArray[Any]:
        """A classifier's class for each point; the value itself for other functions."""
        values = self(points)
        classes = self.fit.classes if isinstance(self.fit, MachineFit) else ()
        if not classes:
            return values
        chosen = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        out = np.empty(len(chosen), dtype=object)
        out[:] = [classes[int(k)] for k in chosen]
        return out

    def density(self) -> ReleasedDensity:
        """A density with all that can be read from it: the nearest true density, quantiles, samples, bands."""
        if not isinstance(self.fit, DensityFit | PureDensityFit):
            raise InvalidParameter(parameter="function", value=self.kind, must="be a density")
        return self.fit.released(self.numbers, publishable=self.publishable)

    @property
    def record(self) -> dict[str, Any]:
        """All of it in plain values: the certificate holds this, so that anybody can evaluate it."""
        spacing = self.fit.spacing
        return {
            "columns": list(self.columns),
            "spacing": str(spacing),
            "numbers": [float(v) for v in self.numbers],
        }
