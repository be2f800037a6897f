"""A Fourier series density before it is paid for: the least noisy mechanism for its sums, and what it costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import settle, whole
from tacit.exact.rationals import Exact, exact_parameter
from tacit.functions.bases.rows import OUTSIDE, as_rows, cells_of
from tacit.functions.densities.noises import FourierSeriesNoise
from tacit.functions.densities.released import ReleasedDensity
from tacit.functions.fourier.family import FourierKDE
from tacit.guarantees import Bound, Neighbours
from tacit.mechanisms.base import epsilon_parameter
from tacit.mechanisms.fourier import FourierNoise, fourier_noise
from tacit.mechanisms.gaussian import delta_parameter
from tacit.noise.source import Source

__all__ = ["MECHANISMS", "FourierPlan", "grid_sums"]

MECHANISMS = ("best", "caratheodory", "gamma", "laplace", "gaussian")
BLOCK = 1 << 22
CHECKED_POINTS = {1: 129, 2: 17, 3: 7}


@dataclass(frozen=True, slots=True, kw_only=True)
class FourierPlan:
    """A `FourierKDE` of `size` rows with noise on the sums of its cosines and sines; no row has been read.

    Guarantee: Pure(epsilon) for the whole curve; with a delta, "best" may also take Gaussian noise, whose exact curve
    meets (epsilon, delta). `mechanism="best"` takes the least expected integral of the squared noise, and
    `choice.reason` says why. Exactly: sums are integers on a grid, and the noise is drawn exactly.
    Assumptions: `size` is public: the number of rows under replace-one neighbours, any public number near it under
    add-or-remove. A unit has at most `rows` rows. Rows outside of the box are moved to its edge or count as absent.
    Theorems `caratheodory-noise`, `fourier-sensitivity`, `fourier-series-density`, `density-lattice`.
    Source: Hall 2012, chapter 4 (whose mechanism is not private as printed).
    """

    family: FourierKDE
    size: int
    epsilon: Exact
    delta: Exact | None = None
    mechanism: str = "best"
    rows: int = 1
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    outside: str = "edge"
    choice: FourierNoise = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.family, FourierKDE):
            raise InvalidParameter(
                parameter="family", value=type(self.family).__name__, must="be a FourierKDE",
                hint="other families of densities have DensityPlan",
            )  # fmt: skip
        for name, known in (("mechanism", MECHANISMS), ("outside", OUTSIDE)):
            given = getattr(self, name)
            if not isinstance(given, str) or given not in known:
                raise InvalidParameter(parameter=name, value=given, must=f"be one of {', '.join(known)}")
        settle(self, size=whole("size", self.size, least=1), rows=whole("rows", self.rows, least=1))
        settle(self, neighbours=Neighbours.parse(self.neighbours))
        epsilon_parameter(self.epsilon)
        settle(self, epsilon=self.epsilon)
        if self.delta is not None:
            delta_parameter(self.delta)
            settle(self, delta=self.delta)
        object.__setattr__(
            self,
            "choice",
            fourier_noise(
                frequencies=self.family.order,
                epsilon=self.epsilon,
                delta=self.delta,
                replace=self.neighbours is Neighbours.REPLACE_ONE,
                dimension=self.family.dimension,
                records=self.rows,
                weights=self.family.energy_weights(),
                only=None if self.mechanism == "best" else self.mechanism,
            ),
        )

    @property
    def noise(self) -> FourierSeriesNoise:
        """The noise's distribution, for bands."""
        return FourierSeriesNoise(
            mechanism=self.choice.name,
            noise_scale=_scale_of(self.choice),
            order=self.family.order,
            dimension=self.family.dimension,
        )

    @property
    def bound(self) -> Bound:
        """What the release may reveal."""
        return self.choice.mechanism.bound

    @property
    def event(self) -> Event:
        """What is run, for the accountants and the ledger."""
        return self.choice.mechanism.event

    # --- what it costs, before any row is read ------------------------------------------------------------
    def noise_std_at(self, points: npt.ArrayLike) -> Floats:
        """The standard deviation of the noise in the curve at points of the box."""
        at = self.family.box.inside(points)
        stds = self.noise.stds(self.family.coefficients) / self.size
        return np.asarray(np.sqrt((self.family.synthesis(at) ** 2) @ stds**2))

    @property
    def noise_std(self) -> float:
        """The noise's standard deviation: in one dimension it is the same everywhere."""
        return float(self.noise_std_at(self._some_points()).max())

    def expected_noise_error(self) -> float:
        """E of the integral of the squared noise over the box: noise_std^2 times its volume in one dimension."""
        return float((self.noise_std_at(self._some_points()) ** 2).mean()) * self.family.volume

    def expected_error(self, confidence: Exact = 0.95) -> float:
        """The size that the noise stays within at any one point (Chebyshev where it is not normal)."""
        level = float(exact_parameter("confidence", confidence))
        factor = self.noise.quantile(level)
        return self.noise_std * (factor if factor is not None else 1 / math.sqrt(1 - level))

    def _some_points(self) -> Floats:
        box, count = self.family.box, CHECKED_POINTS[self.family.dimension]
        inner = (np.arange(count) + 0.5) / count
        axes = [low + side * inner for low, side in zip(box.lows, box.sides, strict=True)]
        return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)

    # --- the release --------------------------------------------------------------------------------------
    def release(self, rows: Any, *, source: Source | None = None) -> ReleasedDensity:
        """Reads the rows once, adds the noise, and keeps nothing else of them."""
        table = as_rows(rows, self.family.dimension)
        if self.neighbours is Neighbours.REPLACE_ONE and self.rows == 1 and table.shape[0] != self.size:
            raise InvalidParameter(
                parameter="rows", value=f"{table.shape[0]} rows", must=f"have {self.size}, as planned",
                hint="under replace-one neighbours the number of rows is public; declare add-or-remove otherwise",
            )  # fmt: skip
        where, counts = cells_of(table, self.family.box, self.family.cells, self.outside)
        return self.release_cells(where, counts, source=source)

    def release_cells(
        self, cells: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], *, source: Source | None = None
    ) -> ReleasedDensity:
        """The same from how many rows lie in which cells of the family's lattice, as an engine counts them."""
        step = self.choice.spacing
        noisy = self.choice.mechanism.release(grid_sums(self.family, cells, counts, step), source=source)
        first = np.empty(1, dtype=object)
        first[0] = int(self.size / step)
        return ReleasedDensity(
            family=self.family,
            values=np.concatenate([first, np.asarray(noisy.values).astype(object)]),
            spacing=step,
            size=self.size,
            noise=self.noise,
            bound=self.bound,
            neighbours=self.neighbours,
            rows=self.rows,
            outside=self.outside,
            numerical_delta=noisy.numerical_delta,
            publishable=noisy.publishable,
        )

    @property
    def words(self) -> dict[str, Any]:
        """The plan in plain values, for a certificate."""
        return {
            "family": self.family.describe(),
            "coefficients": self.family.coefficients - 1,
            "size": self.size,
            "rows": self.rows,
            "neighbours": self.neighbours.value,
            "outside": self.outside,
            "mechanism": self.choice.name,
            "reason": self.choice.reason,
            "noise_std": self.noise_std,
            "noise": self.choice.mechanism.noise_distribution,
        }


def _scale_of(choice: FourierNoise) -> float:
    mechanism = choice.mechanism
    given = mechanism.noise_std if choice.name == "gaussian" else getattr(mechanism, "noise_scale")  # noqa: B009
    return float(given)


def grid_sums(
    family: FourierKDE,
    cells: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    spacing: Fraction,
    values: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[Any]:
    """sum_i phi(x_i) in grid steps, the constant left out: each row's features are rounded by themselves.

    Exact integers, never to be shown without noise. `values` are whole numbers that stand before each cell's features
    in place of its count.
    """
    total = np.zeros(family.coefficients - 1, dtype=object)
    weights = counts if values is None else values
    step = max(1, BLOCK // family.coefficients)
    inverse = float(1 / spacing)
    for start in range(0, cells.shape[0], step):
        block = np.rint(family.features(cells[start : start + step])[:, 1:] * inverse).astype(np.int64)
        many = weights[start : start + step]
        if float(np.abs(many).sum(dtype=np.float64)) * float(np.abs(block).max(initial=0)) < 2.0**61:
            total = total + (many @ block).astype(object)
        else:
            total = total + many.astype(object) @ block.astype(object)
    return total
