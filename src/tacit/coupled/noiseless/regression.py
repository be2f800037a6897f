"""Exact least squares by moments over disjoint parts (Groce 2014, 6.4): the (epsilon, delta), and the fit itself.

Part 0 publishes means of the columns (for a constant), part k the k-th normal equation. Parts have disjoint rows that
are fixed in advance, so that the largest epsilon and delta of a part hold for all together (Thm 6.8). Products are
recorded on a declared grid. Assume a prism (theorem `prism-sums`, with boxes by `regression-parts`), or, for one
regressor, that the laws and the slope are known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.coupled.noiseless.answer import ExactAnswer, delta_out_of_reach, shown, within_reach
from tacit.coupled.noiseless.designs import Box, Design, density
from tacit.coupled.noiseless.known_pairs import known_means, known_part, recorded
from tacit.coupled.noiseless.prisms import pair_epsilon, prism_epsilon
from tacit.errors import InvalidParameter, NoLaw, UnknownName
from tacit.exact.checks import flag, probability, whole
from tacit.guarantees.arguments import listed

__all__ = ["ExactRegression", "Fitted", "exact_regression"]

ASSUMPTIONS = ("known", "prism")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Coefficients of the columns as they were given, their standard errors, and the answer's (epsilon, delta)."""

    intercept: float | None
    slopes: tuple[float, ...]
    standard_errors: tuple[float, ...]
    answer: ExactAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactRegression:
    """Which rows give which means, on which grids, and what that promises."""

    design: Design
    sizes: tuple[int, ...]
    constant: bool
    answer: ExactAnswer
    slope: float = 0.0

    @property
    def known(self) -> bool:
        """Is the law assumed to be known? Then products are recorded on the grids that the claim is about."""
        return bool(self.answer.details["assume"] == "known")

    def steps(self, part: int) -> NDArray[np.float64]:
        """The grids on which the products of a part are recorded."""
        if not self.known:
            return np.array(self.design.steps(part))
        coarse = np.array(self.coarse(part), dtype=np.float64)
        return 2 * np.array(self.design.half_widths(part)) / coarse

    def coarse(self, part: int) -> tuple[int, int]:
        """With a known law: in how many steps each of the two products is recorded."""
        first, second = self.answer.details["parts"][self.parts.index(part)]["steps"]
        return int(first), int(second)

    @property
    def parts(self) -> tuple[int, ...]:
        """Numbers of the parts: 0 is that of the constant."""
        d = self.design.dimension
        return tuple(range(d + 1)) if self.constant else tuple(range(1, d + 1))

    def moments(self, regressors: ArrayLike, response: ArrayLike) -> list[NDArray[np.float64]]:
        """The published means, a vector a part: centred, clamped, multiplied, recorded on the grid, added up."""
        g, h = np.asarray(regressors, dtype=np.float64), np.asarray(response, dtype=np.float64)
        d, n = self.design.dimension, sum(self.sizes)
        if g.shape not in ((n, d), (n,)) or h.shape != (n,):
            raise InvalidParameter(
                parameter="rows",
                value=g.shape[0] if g.ndim else 0,
                must=f"be {n} rows of {d} regressors and a response",
            )
        g = g.reshape(n, d)
        middle = np.array([x.centre for x in self.design.regressors])
        half = np.array([x.half for x in self.design.regressors])
        # A value that is missing counts as the middle: nothing but its row may tell.
        g = np.clip(np.nan_to_num(g - middle, nan=0.0), -half, half)
        limit = self.design.response_half
        h = np.clip(np.nan_to_num(h - self.design.error.centre, nan=0.0), -limit, limit)
        out, start = [], 0
        for part, size in zip(self.parts, self.sizes, strict=True):
            rows = slice(start, start + size)
            columns = np.column_stack([g[rows], h[rows]])
            start += size
            if self.known:
                out.append(known_means(self.design, part, self.slope, self.coarse(part), columns)[0])
                continue
            products = columns if part == 0 else columns * g[rows, part - 1 : part]
            steps, lows = np.array(self.design.steps(part)), np.array(self.design.lows(part))
            recorded = np.clip(np.rint((products - lows) / steps), 0, self.design.points).astype(np.int64)
            out.append(lows + steps * (recorded.sum(axis=0, dtype=np.int64) / size))
        return out

    def fit(self, regressors: ArrayLike, response: ArrayLike) -> Fitted:
        """Solve the normal equations from the published means alone; nothing else is read from the rows.

        Standard errors take the declared variance of the error, and count what the parts differ by and the rounding.
        """
        means = self.moments(regressors, response)
        d = self.design.dimension
        first = means[0] if self.constant else np.zeros(d + 1)
        lines = means[1:] if self.constant else means
        size = d + 1 if self.constant else d
        matrix, right = np.zeros((size, size)), np.zeros(size)
        if self.constant:
            matrix[0] = [1.0, *first[:d]]
            right[0] = first[d]
        for k, line in enumerate(lines):
            matrix[k + size - d] = [first[k], *line[:d]] if self.constant else line[:d]
            right[k + size - d] = line[d]
        try:
            inverse = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            inverse = np.full((size, size), math.nan)
        found = inverse @ right
        covariance = inverse @ self._spread(found, first, lines) @ inverse.T
        middles = np.array([x.centre for x in self.design.regressors])
        slopes = found[size - d :]
        intercept = None
        if self.constant:
            # Back from centred columns: the constant moves by the slopes times the middles.
            back = np.eye(size)
            back[0, 1:] = -middles
            covariance = back @ covariance @ back.T
        errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        if self.constant:
            intercept = float(found[0] + self.design.error.centre - slopes @ middles)
        return Fitted(
            intercept=intercept,
            slopes=tuple(float(b) for b in slopes),
            standard_errors=tuple(float(e) for e in errors),
            answer=self.answer,
        )

    def _spread(self, found: Any, first: Any, lines: Any) -> NDArray[np.float64]:
        """The covariance of the equations' errors: the model's error, the constant over two parts, the rounding."""
        d, size = self.design.dimension, len(found)
        variance = self.design.error.variance
        out = np.zeros((size, size))
        slopes = found[size - d :]
        n0 = self.sizes[0]
        if self.constant:
            out[0, 0] = variance / n0 + self._rounding(0, slopes, n0)
        for k, line in enumerate(lines):
            n = self.sizes[k + size - d]
            square = max(float(line[k]), 0.0)
            value = variance * square / n + self._rounding(k + 1, slopes, n)
            if self.constant:
                value += found[0] ** 2 * max(square - float(first[k]) ** 2, 0.0) * (1 / n0 + 1 / n)
            out[k + size - d, k + size - d] = value
        return out

    def _rounding(self, part: int, slopes: Any, n: int) -> float:
        moved = np.abs(np.append(slopes, 1.0)) * self.steps(part)
        if self.known:
            # So few steps that rounding may lean one way in every row: half a step each, not averaged out.
            return float(np.sum(moved) / 2) ** 2
        return float(moved @ moved) / 12 / n


def exact_regression(
    regressors: str | Sequence[str],
    error: str,
    *,
    n: int | None = None,
    sizes: Sequence[int] | None = None,
    delta: float,
    slopes: Sequence[float] | float = 0.0,
    level: float = 0.0,
    constant: bool = True,
    unknown_rows: int | None = None,
    assume: str = "prism",
    prisms: Sequence[Sequence[tuple[float, float]] | None] | None = None,
    points: int = 100,
) -> ExactRegression:
    """The epsilon, at this delta, of publishing exact least squares of n rows.

    `regressors` and `error` are laws; `slopes` bound the coefficients (for `assume="known"`: are the coefficient) and
    `level` the constant of the centred columns. `sizes` are the numbers of rows of the parts; else n is shared so that
    the parts need about the same epsilon. `prisms` are boxes, one a part (None: the best one that is found).
    """
    target = probability("delta", delta, below_one=True)
    if not target > 1e-100:
        raise InvalidParameter(
            parameter="delta", value=delta, must="be above 0: an exact answer is never private with 0"
        )
    laws = [
        density(x)
        for x in ([regressors] if isinstance(regressors, str) else listed("regressors", regressors))
    ]
    bounds = [slopes] * len(laws) if isinstance(slopes, int | float) else list(listed("slopes", slopes))
    design = Design(
        regressors=tuple(laws),
        error=density(error),
        slopes=tuple(abs(float(b)) for b in bounds),
        level=float(level),
        points=points,
    )
    parts = tuple(range(len(laws) + 1)) if flag("constant", constant) else tuple(range(1, len(laws) + 1))
    if assume not in ASSUMPTIONS:
        raise UnknownName(what="assumption", name=str(assume), known=ASSUMPTIONS)
    boxes: list[Box | None] = [None] * len(parts)
    if assume == "prism":
        given = [None] * len(parts) if prisms is None else list(listed("prisms", prisms))
        if len(given) != len(parts):
            raise InvalidParameter(parameter="prisms", value=len(given), must=f"be {len(parts)}, one a part")
        boxes = [
            design.best_box(p) if b is None else design.box(p, b) for p, b in zip(parts, given, strict=True)
        ]
    elif len(laws) != 1 or level != 0:
        raise NoLaw(
            operation="a regression with known laws",
            reason="the law of more than two sums at once is not computed, nor one with a constant",
            hint='assume "prism"',
        )
    shared = _sizes(design, parts, boxes, n, sizes)
    known = 0 if unknown_rows is None else sum(shared) - whole("unknown_rows", unknown_rows)
    if known < 0:
        raise InvalidParameter(
            parameter="unknown_rows", value=unknown_rows, must=f"be at most the number of rows, {sum(shared)}"
        )
    told, worst = [], 0.0
    pair: float | None = 0.0
    for part, box, size in zip(parts, boxes, shared, strict=True):
        hidden = size - 1 - known
        if hidden < 1:
            raise InvalidParameter(
                parameter="unknown_rows",
                value=unknown_rows,
                must=f"leave two rows unknown in every part, also if all {known} known ones are in one of {size}",
            )
        if box is None:
            epsilon, _, details = known_part(design, part, float(bounds[0]), hidden, target)
            pair = None
        else:
            prism = design.prism(part, box)
            epsilon, _ = prism_epsilon(prism, hidden=hidden, delta=target)
            if pair is not None:
                apart = pair_epsilon(prism, hidden=hidden, delta=target)
                pair = max(pair, apart) if math.isfinite(apart) else None
            details = {"prism": [list(x) for x in box.intervals], "mass": float(prism.mass)}
        if math.isinf(epsilon):
            rows = [n - 1 - known for n in shared]
            smallest = _within_reach(design, parts, boxes, rows, float(bounds[0]), target)
            raise delta_out_of_reach(f"regression (part {part} of {size} rows)", target, smallest, ours=True)
        worst = max(worst, epsilon)
        told.append({"part": part, "rows": size, "epsilon": epsilon, **details})
    answer = _answer(design, told, assume, (worst, pair), target, sum(shared), known, bounds)
    slope = float(bounds[0]) if assume == "known" else 0.0
    return ExactRegression(design=design, sizes=shared, constant=constant, answer=answer, slope=slope)


def _within_reach(
    design: Design,
    parts: Sequence[int],
    boxes: Sequence[Box | None],
    rows: Sequence[int],
    slope: float,
    delta: float,
) -> float:
    """About the smallest delta that some epsilon reaches in every part, from above."""

    def reached(at: float) -> bool:
        for part, box, hidden in zip(parts, boxes, rows, strict=True):
            if box is None:
                epsilon, _, _ = known_part(design, part, slope, hidden, at)
            else:
                epsilon, _ = prism_epsilon(design.prism(part, box), hidden=hidden, delta=at)
            if math.isinf(epsilon):
                return False
        return True

    # With a known law one look takes long: to a factor of e.
    return within_reach(reached, delta, steps=1.0 if None in boxes else 0.1)


def _sizes(
    design: Design, parts: Sequence[int], boxes: Sequence[Box | None], n: object, sizes: Any
) -> tuple[int, ...]:
    if (n is None) == (sizes is None):
        raise InvalidParameter(parameter="n", value=n, must="be given, or sizes, not both")
    if sizes is not None:
        found = tuple(whole("sizes", x, least=2) for x in listed("sizes", sizes))
        if len(found) != len(parts):
            raise InvalidParameter(parameter="sizes", value=len(found), must=f"be {len(parts)}, one a part")
        return found
    rows = whole("n", n, least=2 * len(parts))
    if any(b is None for b in boxes):
        costs = [1.0 + 0.6 * (p > 0) for p in parts]
    else:
        # The squared strength falls like 1/rows: shares in proportion to it make the parts alike.
        costs = [design.prism(p, b).strength(10**9) ** 2 for p, b in zip(parts, boxes, strict=True) if b]
    shared = [max(2, math.floor(rows * c / sum(costs))) for c in costs]
    shared[-1] += rows - sum(shared)
    return tuple(shared)


def _answer(
    design: Design,
    told: list[dict[str, Any]],
    assume: str,
    epsilons: tuple[float, float | None],
    delta: float,
    rows: int,
    known: int,
    slopes: Any,
) -> ExactAnswer:
    names = ", ".join(f"x{j + 1} ~ {g.name}" for j, g in enumerate(design.regressors))
    bounds = ", ".join(f"{float(b):g}" for b in slopes)
    model = f"{names}, independent, and response = slopes times centred regressors + error, error ~ {design.error.name}"
    if assume == "known":
        grids = [f"{name} {recorded(law).describe()}" for name, law in
                 (("regressor", design.regressors[0]), ("error", design.error))]  # fmt: skip
        first = (
            f"the rows are independent draws of a law that is known: {model}, with slope {bounds}; centred, "
            f"{' and '.join(grids)}, and the products of part {_steps_told(told)}"
        )
    else:
        first = (
            f"the rows are independent draws of one law whose recorded products lie above prisms, {_prisms_told(told)}"
            f", as they do if {model}, with slopes of at most {bounds} in size"
        )
    knows = (
        f"an adversary knows none of the {rows} rows"
        if not known
        else f"an adversary knows at most {known} of the {rows} rows, and they are independent of the others"
    )
    return ExactAnswer(
        statistic="least-squares regression by moments over disjoint parts",
        epsilon=epsilons[0],
        epsilon_pair=epsilons[1],
        delta=delta,
        assumptions=(
            first,
            knows,
            "which rows are in which part was fixed in advance",
            "nothing else that depends on these rows is published",
        ),
        theorem="regression-parts",
        simulator="the other rows, with the middle of the range in place of each product of the protected one",
        rows=rows,
        unknown_rows=rows - known,
        family=f"independent rows, {'known law' if assume == 'known' else 'prisms'}: {model}; slopes {bounds}",
        details={"assume": assume, "parts": told, "points": design.points},
    )


def _steps_told(told: list[dict[str, Any]]) -> str:
    return ", of part ".join(f"{t['part']} in {t['steps'][0]} and {t['steps'][1]} steps" for t in told)


def _prisms_told(told: list[dict[str, Any]]) -> str:
    """Which box of which mass, part after part."""
    return ", ".join(
        f"in part {t['part']} of mass {shown(t['mass'], 4)} over "
        + " x ".join(f"[{a:.4g}, {b:.4g}]" for a, b in t["prism"])
        for t in told
    )
