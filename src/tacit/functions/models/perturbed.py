"""The common base of models by objective perturbation: declared columns, the price and its division, the release.

One noisy histogram of all columns may come first (a tenth of mu^2). It chooses the bins of numeric columns by their
rows, and gives the uncertainty of each bin of an additive model.
Then each head is one perturbed objective. A classifier's scores may be
calibrated last (a fortieth of mu^2): slope and constant of the released score, by a perturbed objective of their own.
The price covers all of them together, by the composed curve of the events; at a pure price the shares are shares of
epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event, GaussianEvent
from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import Floats
from tacit.exact.checks import is_number, non_negative, positive, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import down, up
from tacit.functions.models.columns import LONGEST, CategoryColumn, Column, DeclaredColumns, NumberColumn
from tacit.functions.models.contrasts import SMOOTH, Contrasts
from tacit.functions.models.losses import ShiftedLogistic
from tacit.functions.models.objective import DenseDesign, ModelRows, PerturbedObjective
from tacit.functions.models.rivals import REFERENCE_ROWS, ModelChoice, perturbation, with_contrasts
from tacit.functions.models.solvers import SmoothLoss
from tacit.guarantees import Bound, Neighbours, Profile, Pure, gaussian_budget
from tacit.mechanisms import L1, Laplace, RoundedGaussian
from tacit.mechanisms.objective import (
    COVER,
    MOST_SHRINKS,
    Minimise,
    ObjectivePerturbation,
    PerturbedMinimiser,
    rounded_up,
    smallest_shrink,
)
from tacit.mechanisms.pure_objective import PureObjectivePerturbation
from tacit.noise.source import Source, default_source
from tacit.pld import GaussianPair, Product

FINE = 256
"""The number of cells of a number's noisy histogram, from which its bins are made."""
SHARE = Fraction(1, 10)
"""The share of mu^2 that goes to the histogram."""
CALIBRATION = Fraction(1, 40)
"""The share of mu^2 that goes to the calibration of scores."""
WIDEST_SCORE = 3.0
"""Scores are moved into this range before their slope is fitted."""
STEEPEST = 10.0
RIDGE = 2.0
"""The default ridge, as a multiple of second rows / (epsilon - mu^2/2)."""
FIRM = 10.0
"""The ridge of the calibration, in ridges of the model, so that its curve costs about its share of mu^2."""
CODINGS = ("binned", "linear")


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbedParts:
    """The noise of all parts of one fit."""

    model: PerturbedMinimiser
    heads: int
    histogram: RoundedGaussian | Laplace | None
    calibration: PerturbedMinimiser | None
    contrasts: Contrasts | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """All that is run."""
        first = () if self.histogram is None else (self.histogram.event,)
        last = () if self.calibration is None else self.calibration.events
        return (*first, *(e for _ in range(self.heads) for e in self.model.events), *last)

    @property
    def pure(self) -> Fraction | None:
        """The exact epsilon of all parts, if each is pure."""
        if not isinstance(self.model, PureObjectivePerturbation):
            return None
        others = [p.exact_epsilon for p in (self.histogram, self.calibration) if p is not None]
        return self.heads * self.model.exact_epsilon + sum((e or Fraction(0) for e in others), Fraction(0))

    @property
    def bound(self) -> Bound:
        """The composed curve of all events; one epsilon if all of them are pure."""
        pure = self.pure
        if pure is not None:
            return Pure(epsilon=up(pure))
        parts = [(Profile.of(self.model.bound), self.heads)]
        parts += [(Profile.of(p.bound), 1) for p in (self.histogram, self.calibration) if p is not None]
        return Profile.product(parts)


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
    calibrated: bool = False
    bins: int = 24
    tolerance: float | None = None
    reference_rows: int = REFERENCE_ROWS

    def __post_init__(self) -> None:
        if self.coding not in CODINGS:
            raise InvalidParameter(
                parameter="coding", value=self.coding, must=f"be one of {', '.join(CODINGS)}"
            )
        set_fields(
            self,
            rows=whole("rows", self.rows),
            heads=whole("heads", self.heads),
            bins=whole("bins", self.bins),
            reference_rows=whole("reference_rows", self.reference_rows),
        )
        set_fields(self, epsilon=positive("epsilon", self.epsilon), delta=non_negative("delta", self.delta))
        if self.ridge is not None:
            set_fields(self, ridge=positive("ridge", self.ridge))
        if not (is_number(self.smooth) and 0 <= self.smooth < math.inf):
            raise InvalidParameter(parameter="smooth", value=self.smooth, must="be a number of at least 0")

    @property
    def steps(self) -> int:
        """The number of rows that differ between neighbours."""
        return self.rows * (2 if self.neighbours is Neighbours.REPLACE_ONE else 1)

    @property
    def kind(self) -> str:
        """The theorem for the loss."""
        return self.loss.signs

    @property
    def share(self) -> Fraction:
        """The histogram's share of mu^2 or epsilon."""
        return SHARE if self.bought and self.coding == "binned" else Fraction(0)

    @property
    def calibration_share(self) -> Fraction:
        """The calibration's share of mu^2 or epsilon: for one function with logistic loss."""
        return CALIBRATION if self.calibrated and self.heads == 1 and self.kind == "logistic" else Fraction(0)

    def _coded(self) -> DeclaredColumns:
        """Columns with the largest number of bins that may be bought."""
        if not self.share:
            return self.columns
        most = tuple(
            NumberColumn(low=c.low, high=c.high, bins=self.bins) if isinstance(c, NumberColumn) else c
            for c in self.columns.columns
        )
        return replace(self.columns, columns=most)

    def choice(self) -> ModelChoice:
        """The perturbed objective for the whole price, beside the expected errors of its rivals."""
        return perturbation(
            epsilon=Fraction(self.epsilon), delta=Fraction(self.delta), loss=self.loss, radius=LONGEST,
            dimension=len(self.columns.linear_names) + 1, rows=self.steps, heads=self.heads, ridge=self.ridge,
            tolerance=self.tolerance, reference_rows=self.reference_rows,
            columns=self._coded() if self.coding == "binned" else None, smooth=self.smooth,
        )  # fmt: skip

    def parts(self, columns: DeclaredColumns | None = None) -> PerturbedParts:
        """The noise of all parts, which together keep to (epsilon, delta).

        `columns` are those with the bins that were bought.
        """
        # Chosen for as many numbers as there may be: a histogram that was drawn before cannot change the kind of noise.
        choice = self.choice()
        chosen = choice.mechanism
        parts = PerturbedParts(
            model=chosen, heads=self.heads, histogram=None, calibration=None, contrasts=choice.contrasts
        )
        if self.share or self.calibration_share:
            if isinstance(chosen, PureObjectivePerturbation):
                parts = self._pure_parts(chosen)
            else:
                assert isinstance(chosen, ObjectivePerturbation)
                parts = self._gaussian_parts(chosen)
        if self.coding == "linear":
            return parts
        own = columns if columns is not None else self._coded()
        model, learned = with_contrasts(
            parts.model, own, rows=self.reference_rows, loss=self.loss, smooth=self.smooth
        )
        return replace(parts, model=model, contrasts=learned)

    def _pure_parts(self, chosen: PureObjectivePerturbation) -> PerturbedParts:
        """Shares of epsilon, each of them exact."""
        whole_price, histogram, calibration = Fraction(self.epsilon), None, None
        if self.share:
            moved = L1(Fraction(len(self.columns.columns) * self.steps))
            histogram = Laplace.for_target(epsilon=whole_price * self.share, sensitivity=moved)
        common: dict[str, Any] = {
            "gradient": chosen.gradient, "second": chosen.second, "rows": self.steps, "loss": chosen.loss,
        }  # fmt: skip
        if self.calibration_share:
            calibration = PureObjectivePerturbation.for_target(
                epsilon=whole_price * self.calibration_share, dimension=2, **common
            )
        model = PureObjectivePerturbation.for_target(
            epsilon=whole_price * (1 - self.share - self.calibration_share), dimension=chosen.dimension,
            heads=self.heads, ridge=chosen.ridge, tolerance=self.tolerance, **common,
        )  # fmt: skip
        return PerturbedParts(model=model, heads=self.heads, histogram=histogram, calibration=calibration)

    def _gaussian_parts(self, chosen: ObjectivePerturbation) -> PerturbedParts:
        """Shares of mu^2 first; then the model's is made smaller until the composed curve keeps to the price."""
        target, limit = down(Fraction(self.epsilon)), self.delta
        most = gaussian_budget(epsilon=target, delta=limit).mu
        ridge = chosen.ridge
        if self.ridge is None and self.kind == "logistic":
            # The Gaussian parts of all curves begin before half of epsilon, together.
            room = (target - most**2 / 2) / (1 + (1 / FIRM if self.calibration_share else 0))
            ridge = float(f"{RIDGE * chosen.second * self.steps * self.heads / room:.6g}")
        histogram = calibration = None
        others: list[Any] = []
        if self.share:
            histogram = RoundedGaussian.for_mu_squared(
                mu_squared=Fraction(most) ** 2 * self.share,
                squared_steps=len(self.columns.columns) * self.steps**2,
                dimension=sum(_fine_sizes(self.columns)),
            )
            event = histogram.event
            assert isinstance(event, GaussianEvent)
            others.append((GaussianPair(squared=event.squared), 1))
        if self.calibration_share:
            mu = most * math.sqrt(self.calibration_share)
            calibration = replace(
                chosen, dimension=2, ridge=float(f"{FIRM * ridge:.6g}"), output_mu=float(f"{mu / 100:.4g}"),
                noise_std=rounded_up(chosen.gradient * self.steps / (mu * math.sqrt(1 - COVER))),
            )  # fmt: skip
            others += [(p, 1) for p in calibration.pairs]
        left = most * math.sqrt((1 - self.share - self.calibration_share) / self.heads)

        def attempt(shrink: int) -> ObjectivePerturbation | None:
            mu = left * 0.9995**shrink
            found = replace(
                chosen, ridge=ridge, output_mu=float(f"{mu / 100:.4g}"),
                noise_std=rounded_up(chosen.gradient * self.steps / (mu * math.sqrt(1 - COVER))),
            )  # fmt: skip
            together = Product(pairs=[*((p, self.heads) for p in found.pairs), *others])
            return found if together.delta(target).high <= limit else None

        model = smallest_shrink(attempt, MOST_SHRINKS)
        if model is None:
            raise NotCertified(
                what="a model with bought bins or calibrated scores", reason="the price leaves no room for all parts",
                hint="declare bins, calibrate=False, or a larger epsilon",
            )  # fmt: skip
        return PerturbedParts(model=model, heads=self.heads, histogram=histogram, calibration=calibration)

    # --- running: the only part that sees rows ---------------------------------------------------------
    def release(self, X: Any, targets: Sequence[Floats], *, source: Source | None = None) -> PerturbedRelease:
        """Buys bins if they are requested, then releases one minimiser a head; NaN targets count as absent rows."""
        source = source if source is not None else default_source()
        columns, counts = self.columns, None
        if self.share:
            noise = self.parts().histogram
            assert noise is not None
            fine = np.concatenate(_fine_counts(self.columns, X, _usable(targets)))
            bought = noise.release(fine, source=source)
            columns = bought_columns(self.columns, bought.to_floats(), bins=self.bins)
            counts = _merged(self.columns, columns, bought.to_floats())
        coded = columns.linear(X) if self.coding == "linear" else columns.codes(X)
        parts = self.parts(columns)
        mechanism, learned = parts.model, parts.contrasts
        extra = None if learned is None else learned.penalty(mechanism.ridge)
        found, publishable = [], True
        for target in targets:
            used = np.isfinite(target)
            design = _design(learned, coded[used])
            head = perturbed_head(self.loss, design, target[used], mechanism, extra)
            released = mechanism.release(head, source=source)
            weights = released.to_floats()
            if learned is not None:
                weights = columns.monotone(learned.matrix @ weights, counts)
            found.append(weights)
            publishable = publishable and released.publishable
        weights, slope = np.array(found), 1.0
        if parts.calibration is not None:
            weights, slope = self._calibrated(coded, targets[0], weights, parts.calibration, source)
        return PerturbedRelease(
            plan=self, columns=columns, parts=parts, weights=weights, counts=counts, publishable=publishable,
            slope=slope,
        )  # fmt: skip

    def _calibrated(
        self, coded: npt.NDArray[Any], target: Floats, weights: Floats, noise: PerturbedMinimiser, source: Source
    ) -> tuple[Floats, float]:  # fmt: skip
        """Slope and constant of the released score: logit = f + (a f + c), with a ridge on a and c.

        The loss of a row at (a, c) is logistic in y (f + a f + c), whose slope p and second derivative p (1 - p) are
        those of the theorem; its row (f/3, 1)/sqrt(2), f moved into [-3, 3], has a length of at most 1.
        """
        used = np.isfinite(target)
        score = weights[0][coded[used]].sum(axis=1)
        inside = np.clip(score, -WIDEST_SCORE, WIDEST_SCORE) / WIDEST_SCORE
        table = np.column_stack([inside, np.ones(len(inside))]) * math.sqrt(0.5)
        head = perturbed_head(
            ShiftedLogistic(by=score), DenseDesign(table=table, radius=LONGEST), target[used], noise, None
        )
        a, c = noise.release(head, source=source).to_floats() * math.sqrt(0.5)
        slope = float(np.clip(1 + a / WIDEST_SCORE, 1 / STEEPEST, STEEPEST))
        out = weights * slope
        out[0, -1] += float(c)
        return out, slope


def _design(learned: Contrasts | None, coded: npt.NDArray[Any]) -> ModelRows:
    if learned is None:
        return DenseDesign(table=coded, radius=LONGEST)
    return learned.design(coded)


def perturbed_head(
    loss: SmoothLoss,
    design: ModelRows,
    target: Floats,
    mechanism: PerturbedMinimiser,
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
    """Released weights, one row a head, with their public numbers; nothing of any row.

    Of a linear model they are coefficients, of an additive one the values of all places of its columns.
    """

    plan: PerturbedPlan
    columns: DeclaredColumns
    parts: PerturbedParts
    weights: Floats
    counts: Floats | None
    publishable: bool
    slope: float = 1.0

    @property
    def mechanism(self) -> PerturbedMinimiser:
        """The noise of one head."""
        return self.parts.model

    def __call__(self, X: Any) -> Floats:
        """The released function at rows, one column a head."""
        if self.plan.coding == "linear":
            return np.asarray(self.columns.linear(X) @ self.weights.T)
        codes = self.columns.codes(X)
        return np.stack([w[codes].sum(axis=1) for w in self.weights], axis=1)


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
    """The number of rows of each cell. PRIVATE: to be given to the mechanism only."""
    table = columns.table(X)
    cells = [_fine_column(c) for c in columns.columns]
    return [
        np.bincount(c.places(v)[used], minlength=c.bins + 1).astype(np.int64)
        for c, v in zip(cells, table, strict=True)
    ]


def bought_columns(columns: DeclaredColumns, counts: Floats, *, bins: int) -> DeclaredColumns:
    """At most this many bins of about equal noisy counts for each number without declared edges: post-processing."""
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
    # Cells of pairs were not counted: their bands know the ridge alone.
    return np.concatenate([*out, np.zeros(sum(p.bins for p in coarse.pair_columns)), [rows]])
