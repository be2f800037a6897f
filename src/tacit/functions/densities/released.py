"""A released density: noisy coefficients of a public family. It carries no row, and anybody may read it anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import flag, non_negative, whole
from tacit.exact.integers import integer_array
from tacit.functions.bases.families import DensityFamily
from tacit.functions.bases.rows import OUTSIDE
from tacit.functions.densities.bands import Band, band_of
from tacit.functions.densities.gridded import GriddedDensity
from tacit.functions.densities.noises import CoefficientNoise, noise_from_record
from tacit.guarantees import Bound, Guarantee, Neighbours
from tacit.guarantees import rows as unit_of_rows
from tacit.guarantees.record import from_record as guarantee_from_record
from tacit.guarantees.record import to_record as guarantee_to_record
from tacit.noise import grid_spacing
from tacit.noise.source import Source

__all__ = ["ReleasedDensity"]

VERSION = 1
CELLS = {1: 512, 2: 64, 3: 24}
FEW_CELLS = 8
BLOCK = 1 << 22
FIELDS = (
    "version", "kind", "family", "values", "spacing", "size", "noise", "bound", "neighbours", "rows", "outside",
    "numerical_delta", "publishable",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedDensity:
    """x -> s(x) . values * spacing / size: one sample path, the same value whenever it is asked.

    All that is done with it is post-processing, and none of it asks for the noise's distribution but bands. `values`
    are integers on a grid. `publishable` is False where the noise came from a seeded source.
    """

    family: DensityFamily
    values: AnyArray
    spacing: Fraction
    size: int
    noise: CoefficientNoise
    bound: Bound
    neighbours: Neighbours
    rows: int
    outside: str
    numerical_delta: float
    publishable: bool

    def __post_init__(self) -> None:
        values = integer_array(self.values)
        if values.shape != (self.family.coefficients,):
            raise InvalidParameter(
                parameter="values", value=f"{values.shape}", must=f"be {self.family.coefficients} integers"
            )
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        object.__setattr__(self, "size", whole("size", self.size))
        if self.outside not in OUTSIDE:
            raise InvalidParameter(
                parameter="outside", value=self.outside, must=f"be one of {', '.join(OUTSIDE)}"
            )

    @property
    def dimension(self) -> int:
        """d."""
        return self.family.dimension

    @property
    def coefficients(self) -> Floats:
        """The noisy mean of each coefficient."""
        return np.asarray(self.values).astype(np.float64) * (float(self.spacing) / self.size)

    # --- the curve ------------------------------------------------------------------------------------
    def __call__(self, points: npt.ArrayLike) -> Floats:
        """The released curve at points of the box; noise may make it negative."""
        at = self.family.box.inside(points)
        weights = self.coefficients
        step = max(1, BLOCK // max(1, weights.size))
        # Summed row by row: a point has the same value whichever others are asked beside it.
        parts = [
            (self.family.synthesis(at[s : s + step]) * weights).sum(axis=1)
            for s in range(0, at.shape[0], step)
        ]
        return np.concatenate(parts) if parts else np.empty(0)

    evaluate = __call__

    def noise_std_at(self, points: npt.ArrayLike) -> Floats:
        """The standard deviation of the noise in the curve at each point; public."""
        at = self.family.box.inside(points)
        stds = self.noise.stds(self.family.coefficients) / self.size
        return np.asarray(np.sqrt((self.family.synthesis(at) ** 2) @ stds**2))

    def band(
        self,
        points: npt.ArrayLike,
        *,
        confidence: float = 0.95,
        simultaneous: bool = False,
        covers: str = "noise",
        draws: int = 4000,
        seed: int = 0,
        cells: int | None = None,
    ) -> Band:
        """A band at the points, for what the noise did ("noise"), the sample ("sampling"), or "both".

        "sampling" and "both" take the released curve, made a density on `cells` cells a side, for the truth. No band
        covers the smoothing: it is about the curve's own mean, not about the density that rows come from.
        """
        return band_of(
            self,
            points,
            confidence=confidence,
            simultaneous=simultaneous,
            covers=covers,
            draws=draws,
            seed=whole("seed", seed, least=0),
            cells=self._cells(cells, {1: 256, 2: 32, 3: 12}),
        )

    # --- a density ------------------------------------------------------------------------------------
    def _cells(self, count: int | None, usual: dict[int, int] = CELLS) -> int:
        return usual.get(self.dimension, FEW_CELLS) if count is None else whole("cells", count)

    def on_grid(self, cells: int | None = None) -> GriddedDensity:
        """The nearest density that is non-negative with integral one, on `cells` equal cells along each side."""
        count = self._cells(cells)
        if count**self.dimension > 1 << 22:
            raise InvalidParameter(parameter="cells", value=count, must="make at most 2^22 cells in all")
        box = self.family.box
        axes = [
            low + side * (np.arange(count) + 0.5) / count
            for low, side in zip(box.lows, box.sides, strict=True)
        ]
        return GriddedDensity.nearest(box, self.family.on_axes(axes, self.coefficients))

    def cdf(self, points: npt.ArrayLike) -> Floats:
        """The distribution function of the nearest density, on the usual grid."""
        return self.on_grid().cdf(points)

    def quantile(self, probabilities: npt.ArrayLike) -> Floats:
        """Quantiles of the nearest density, on the usual grid; in one dimension."""
        return self.on_grid().quantile(probabilities)

    def sample(self, count: int, *, source: Source | None = None) -> Floats:
        """Made-up rows from the nearest density, on the usual grid."""
        return self.on_grid().sample(count, source=source)

    # --- records --------------------------------------------------------------------------------------
    def to_record(self) -> dict[str, Any]:
        """All of it as plain JSON values."""
        unit = unit_of_rows(neighbours=self.neighbours)
        return {
            "version": VERSION,
            "kind": "density",
            "family": self.family.describe(),
            "values": [int(v) for v in self.values],
            "spacing": str(self.spacing),
            "size": self.size,
            "noise": self.noise.to_record(),
            "bound": guarantee_to_record(Guarantee(bound=self.bound, unit=unit))["bound"],
            "neighbours": self.neighbours.value,
            "rows": self.rows,
            "outside": self.outside,
            "numerical_delta": self.numerical_delta,
            "publishable": self.publishable,
        }

    @classmethod
    def from_record(cls, record: Any) -> ReleasedDensity:
        """The density that a record describes, through closed tables; unknown kinds and versions are refused."""
        from tacit.functions.densities.table import family_from_record

        if not isinstance(record, dict) or set(record) != set(FIELDS):
            raise InvalidParameter(
                parameter="record",
                value=sorted(record) if isinstance(record, dict) else type(record).__name__,
                must="have exactly " + ", ".join(FIELDS),
            )
        if record["version"] != VERSION or record["kind"] != "density":
            raise InvalidParameter(
                parameter="version", value=record["version"], must=f"be {VERSION}, of kind density",
                hint="this record was written by another version of tacit",
            )  # fmt: skip
        neighbours = Neighbours.parse(record["neighbours"])
        unit = unit_of_rows(neighbours=neighbours)
        whole_record = {**guarantee_to_record(Guarantee(bound=_ANY, unit=unit)), "bound": record["bound"]}
        try:
            spacing = Fraction(record["spacing"])
        except (TypeError, ValueError, ZeroDivisionError):
            raise InvalidParameter(parameter="spacing", value="text", must="be a fraction") from None
        return cls(
            family=family_from_record(record["family"]),
            values=integer_array(record["values"]),
            spacing=spacing,
            size=record["size"],
            noise=noise_from_record(record["noise"]),
            bound=guarantee_from_record(whole_record).bound,
            neighbours=neighbours,
            rows=whole("rows", record["rows"]),
            outside=record["outside"],
            numerical_delta=non_negative("numerical_delta", record["numerical_delta"]),
            publishable=flag("publishable", record["publishable"]),
        )


def _any_bound() -> Bound:
    from tacit.guarantees import Pure

    return Pure(epsilon=1.0)


_ANY = _any_bound()
