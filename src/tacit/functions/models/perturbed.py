"""What models by objective perturbation share: declared columns, the price and its division, the release.

One noisy histogram of all columns may come first (a tenth of mu^2): it chooses bins of numbers by their rows, and says
how sure each bin of an additive model is. Then each head is one perturbed objective. The price is that of all of them
together, by the composed curve of what is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event, GaussianEvent
from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import Floats
from tacit.exact.checks import is_number, positive, settle, whole
from tacit.exact.rounding import down
from tacit.functions.models.columns import LONGEST, CategoryColumn, Column, DeclaredColumns, NumberColumn
from tacit.functions.models.objective import BinnedDesign, DenseDesign, ModelRows, PerturbedObjective
from tacit.functions.models.solvers import SmoothLoss
from tacit.guarantees import Neighbours, Profile, gaussian_budget
from tacit.mechanisms import RoundedGaussian
from tacit.mechanisms.objective import Minimise, ObjectivePerturbation
from tacit.noise.source import Source, default_source
from tacit.pld import GaussianPair, Product

FINE = 256
"""Cells of a number's noisy histogram, from which its bins are made."""
SHARE = Fraction(1, 10)
"""The share of mu^2 that goes to the histogram."""
RIDGE = 2.0
"""The default ridge: so many times second rows / (epsilon - mu^2/2)."""
SMOOTH = 4.0
"""The default weight of squared differences of neighbouring bins, in ridges."""
CODINGS = ("binned", "linear")


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbedPlan:
    """Public numbers of a fit: coding, loss, relation, and the noise of its parts. No row is read for it."""

    columns: DeclaredColumns
    coding: str
    loss: SmoothLoss
    epsilon: float
    delta: float
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE
    rows: int = 1
    heads: int = 1
    ridge: float | None = None
    smooth: float = SMOOTH
    bought: bool = False
    bins: int = 24
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.coding not in CODINGS:
            raise InvalidParameter(
                parameter="coding", value=self.coding, must=f"be one of {', '.join(CODINGS)}"
            )
        settle(
            self,
            rows=whole("rows", self.rows),
            heads=whole("heads", self.heads),
            bins=whole("bins", self.bins),
        )
        settle(self, epsilon=positive("epsilon", self.epsilon), delta=positive("delta", self.delta))
        if self.ridge is not None:
            settle(self, ridge=positive("ridge", self.ridge))
        if not (is_number(self.smooth) and 0 <= self.smooth < math.inf):
            raise InvalidParameter(parameter="smooth", value=self.smooth, must="be a number of at least 0")

    @property
    def steps(self) -> int:
        """How many rows are added or taken away between neighbours."""
        return self.rows * (2 if self.neighbours is Neighbours.REPLACE_ONE else 1)

    @property
    def kind(self) -> str:
        """Which theorem holds for the loss."""
        return "logistic" if self.loss.name == "logistic" else "bounded"

    @property
    def share(self) -> float:
        """Of mu^2, for the histogram."""
        return float(SHARE) if self.bought and self.coding == "binned" else 0.0

    def dimension(self) -> int:
        """How many numbers are released for each head: at most so many where bins are bought."""
        return self._coded().dimension if self.coding == "binned" else len(self.columns.linear_names) + 1

    def _coded(self) -> DeclaredColumns:
        """Columns with as many bins as may be bought."""
        if not self.share:
            return self.columns
        most = tuple(
            NumberColumn(low=c.low, high=c.high, bins=self.bins) if isinstance(c, NumberColumn) else c
            for c in self.columns.columns
        )
        return replace(self.columns, columns=most)

    def histogram(self) -> RoundedGaussian | None:
        """The noise on the counts of all columns; a row is in one cell of each."""
        if not self.share:
            return None
        squared = len(self.columns.columns) * self.steps**2
        budget = Fraction(gaussian_budget(epsilon=down(Fraction(self.epsilon)), delta=self.delta).mu) ** 2
        return RoundedGaussian.for_mu_squared(
            mu_squared=budget * SHARE, squared_steps=squared, dimension=sum(_fine_sizes(self.columns))
        )

    def mechanism(self, dimension: int | None = None) -> ObjectivePerturbation:
        """The noise of one head, such that all of it keeps to (epsilon, delta)."""
        gradient, second = self.loss.lipschitz * LONGEST, self.loss.curvature * LONGEST**2
        if self.kind == "logistic":
            second = LONGEST**2  # the theorem is about radius^2, p(1 - p) being the loss's own
        count = self.dimension() if dimension is None else dimension
        common: dict[str, Any] = {
            "dimension": count, "gradient": gradient, "second": second, "rows": self.steps, "loss": self.kind,
            "heads": self.heads, "tolerance": self.tolerance,
        }  # fmt: skip
        noise = self.histogram()
        if noise is None:
            return ObjectivePerturbation.for_target(
                epsilon=Fraction(self.epsilon), delta=self.delta, ridge=self.ridge, **common
            )
        # The histogram's share is taken off by a smaller delta first; the composed curve has the last word.
        event = noise.event
        assert isinstance(event, GaussianEvent)
        other = GaussianPair(squared=event.squared)
        target, limit = down(Fraction(self.epsilon)), self.delta
        most = gaussian_budget(epsilon=target, delta=limit).mu
        rest = most * math.sqrt(1 - self.share)
        for _ in range(200):
            reduced = GaussianPair(mu=rest).hockey_stick(target).high
            if reduced <= 0:
                break
            found = ObjectivePerturbation.for_target(
                epsilon=target, delta=reduced, ridge=self._ridge(second, most), **common
            )
            if self._together(found, other).delta(target).high <= limit:
                return found
            rest *= 0.9995
        raise NotCertified(
            what="a model with bought bins", reason="the price leaves no room for its histogram",
            hint="declare bins, or a larger epsilon",
        )  # fmt: skip

    def _ridge(self, second: float, most: float) -> float | None:
        if self.ridge is not None or self.kind != "logistic":
            return self.ridge
        return float(f"{RIDGE * second * self.steps * self.heads / (self.epsilon - most**2 / 2):.6g}")

    def _together(self, mechanism: ObjectivePerturbation, other: GaussianPair | None) -> Product:
        pairs: list[Any] = [(p, self.heads) for p in mechanism._pairs()]
        return Product(pairs=[*pairs, *([(other, 1)] if other is not None else [])])

    def events(self, mechanism: ObjectivePerturbation) -> tuple[Event, ...]:
        """All that is run."""
        noise = self.histogram()
        first = () if noise is None else (noise.event,)
        return (*first, *(e for _ in range(self.heads) for e in mechanism.events))

    def bound(self, mechanism: ObjectivePerturbation) -> Profile:
        """The composed curve of all that is run."""
        noise = self.histogram()
        parts = [(mechanism.bound, self.heads)]
        if noise is not None:
            parts.append((Profile.of(noise.bound), 1))
        return Profile.product(parts)

    # --- running: the only part that sees rows ---------------------------------------------------------
    def release(self, X: Any, targets: Sequence[Floats], *, source: Source | None = None) -> PerturbedRelease:
        """Buys bins where that is asked for, then releases one minimiser a head; NaN targets count as absent rows."""
        source = source if source is not None else default_source()
        columns, counts = self.columns, None
        noise = self.histogram()
        if noise is not None:
            fine = np.concatenate(_fine_counts(self.columns, X, _usable(targets)))
            counts = noise.release(fine, source=source).to_floats()
            columns = bought_columns(self.columns, counts, bins=self.bins)
            counts = _merged(self.columns, columns, counts)
        coded = columns.linear(X) if self.coding == "linear" else columns.codes(X)
        mechanism = self.mechanism(coded.shape[1] if self.coding == "linear" else columns.dimension)
        smooth = None
        if self.coding == "binned" and self.smooth:
            smooth = columns.roughness(self.smooth * mechanism.ridge)
        found, publishable = [], True
        for target in targets:
            used = np.isfinite(target)
            design = self._design(columns, coded[used])
            head = perturbed_head(self.loss, design, target[used], mechanism, smooth)
            released = mechanism.release(head, source=source)
            found.append(released.to_floats())
            publishable = publishable and released.publishable
        return PerturbedRelease(
            plan=self, columns=columns, mechanism=mechanism, weights=np.array(found), counts=counts,
            publishable=publishable,
        )  # fmt: skip

    def _design(self, columns: DeclaredColumns, coded: npt.NDArray[Any]) -> ModelRows:
        if self.coding == "linear":
            return DenseDesign(table=coded, radius=LONGEST)
        return BinnedDesign(codes=coded, bins=columns.dimension, height=columns.height, radius=LONGEST)


def perturbed_head(
    loss: SmoothLoss,
    design: ModelRows,
    target: Floats,
    mechanism: ObjectivePerturbation,
    smooth: Floats | None,
) -> Minimise:
    """The minimiser of one head, for the mechanism; targets are moved into their range."""
    values = np.clip(target, loss.lowest, loss.highest)

    def minimise(term: Floats, spacing: float) -> tuple[Floats, float]:
        problem = PerturbedObjective(
            loss=loss, design=design, target=values, ridge=mechanism.ridge, term=term, smooth=smooth
        )
        return problem.minimise(tolerance=mechanism.tolerance, spacing=spacing)

    return minimise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PerturbedRelease:
    """Released weights, one row a head, with the public numbers that they came by; nothing of any row."""

    plan: PerturbedPlan
    columns: DeclaredColumns
    mechanism: ObjectivePerturbation
    weights: Floats
    counts: Floats | None
    publishable: bool

    def __call__(self, X: Any) -> Floats:
        """The released function at rows, one column a head."""
        if self.plan.coding == "linear":
            return np.asarray(self.columns.linear(X) @ self.weights.T)
        codes = self.columns.codes(X)
        scaled = self.weights * self.columns.height
        return np.stack([w[codes].sum(axis=1) for w in scaled], axis=1)


def _usable(targets: Sequence[Floats]) -> npt.NDArray[np.bool_]:
    """Rows that count for some head."""
    return np.asarray(np.any([np.isfinite(t) for t in targets], axis=0))


def _fine_column(column: Column) -> Column:
    """The cells of a column's histogram: even ones for a number whose edges are not declared."""
    if isinstance(column, CategoryColumn) or column.edges is not None:
        return column
    return NumberColumn(low=column.low, high=column.high, bins=FINE)


def _fine_sizes(columns: DeclaredColumns) -> list[int]:
    return [_fine_column(c).bins + 1 for c in columns.columns]


def _fine_counts(
    columns: DeclaredColumns, X: Any, used: npt.NDArray[np.bool_]
) -> list[npt.NDArray[np.int64]]:
    """How many rows each cell has. PRIVATE: to be given to the mechanism only."""
    table = columns.table(X)
    cells = [_fine_column(c) for c in columns.columns]
    return [
        np.bincount(c.places(v)[used], minlength=c.bins + 1).astype(np.int64)
        for c, v in zip(cells, table, strict=True)
    ]


def bought_columns(columns: DeclaredColumns, counts: Floats, *, bins: int) -> DeclaredColumns:
    """At most so many bins of about equal noisy counts for each number without declared edges: post-processing."""
    out: list[Column] = []
    at = 0
    for column, size in zip(columns.columns, _fine_sizes(columns), strict=True):
        own, at = counts[at : at + size], at + size
        fine = _fine_column(column)
        if fine is column:
            out.append(column)
            continue
        assert isinstance(fine, NumberColumn)
        mass = np.maximum(own[:-1], 0.0)
        total = np.cumsum(mass)
        cuts: list[float] = []
        if total[-1] > 0:
            wanted, last = total[-1] / bins, 0.0
            for k, edge in enumerate(fine.cuts):
                # A bin ends where it has its share, and before a cell that has a share of its own.
                heavy = mass[k + 1] >= wanted and total[k] - last >= wanted / 8
                if total[k] - last >= wanted or heavy:
                    cuts.append(float(edge))
                    last = float(total[k])
            cuts = cuts[: bins - 1]
        low, high = column.low, column.high  # type: ignore[union-attr]
        out.append(
            NumberColumn(low=low, high=high, edges=tuple(cuts))
            if cuts
            else NumberColumn(low=low, high=high, bins=1)
        )
    return replace(columns, columns=tuple(out))


def _merged(fine: DeclaredColumns, coarse: DeclaredColumns, counts: Floats) -> Floats:
    """The noisy counts of the chosen bins, the constant's last."""
    out: list[Floats] = []
    at = 0
    for one, other, size in zip(fine.columns, coarse.columns, _fine_sizes(fine), strict=True):
        own, at = counts[at : at + size], at + size
        cells = _fine_column(one)
        if cells is one:
            out.append(own)
            continue
        assert isinstance(cells, NumberColumn)
        lows = np.concatenate([[cells.low], cells.cuts])
        places = other.places(lows)
        out.append(np.append(np.bincount(places, weights=own[:-1], minlength=other.bins), own[-1]))
    rows = float(np.mean([part.sum() for part in out]))
    return np.concatenate([*out, [rows]])
