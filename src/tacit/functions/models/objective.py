"""Certified minima of perturbed objectives: sum of smooth convex losses, a ridge, and a random linear term.

    J(w) = sum_i loss(w . x_i, y_i) + (ridge/2)|w|^2 + w'Pw/2 + b . w

Rows are dense vectors, or one place of each of several blocks. Newton's method is not trusted: `certified` bounds the
length of the exact gradient at the floats that are released, every rounding counted against us. P is public.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass
from tacit.functions.models.solvers import UNIT, SmoothLoss

BLOCK = 4096
"""Rows that are added up together: sums of blocks are off by (BLOCK + blocks) units."""
SAFE = 1 + 1e-9
NEWTON_STEPS = 200


class ModelRows(ABC):
    """Rows as exact floats, whose lengths are at most `radius`."""

    rows: int
    dimension: int
    radius: float

    @abstractmethod
    def model(self, weights: Floats) -> Floats:
        """w . x at each row."""

    @abstractmethod
    def rounding_error(self, weights: Floats) -> float:
        """The largest error of `model` at any row."""

    @abstractmethod
    def pull(self, coefficients: Floats) -> Floats:
        """sum_i c_i x_i, added up in blocks."""

    @abstractmethod
    def exact_pull(self, coefficients: Floats) -> Floats:
        """The same with each product rounded once and their sums rounded once, which is slow."""

    @abstractmethod
    def gram(self, weights: Floats) -> Floats:
        """X' diag(weights) X."""

    def pull_error(self, total: float, *, exact: bool) -> float:
        """The length of the error of `pull`, if the sizes of the coefficients add up to at most `total`."""
        units = 4.0 if exact else BLOCK + self.rows / BLOCK + 6.0
        return SAFE * total * 2 * units * UNIT * self.radius


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseDesign(ModelRows):
    """Rows as a dense array."""

    table: Floats
    radius: float

    @property
    def rows(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return int(self.table.shape[0])

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """The number of weights."""
        return int(self.table.shape[1])

    def model(self, weights: Floats) -> Floats:
        return np.asarray(self.table @ weights)

    def rounding_error(self, weights: Floats) -> float:
        return SAFE * 2 * (self.dimension + 4) * UNIT * self.radius * _length(weights)

    def pull(self, coefficients: Floats) -> Floats:
        starts = range(0, self.rows, BLOCK)
        parts = [self.table[i : i + BLOCK].T @ coefficients[i : i + BLOCK] for i in starts]
        return np.asarray(np.sum(parts, axis=0)) if parts else np.zeros(self.dimension)

    def exact_pull(self, coefficients: Floats) -> Floats:
        return np.array(
            [math.fsum((self.table[:, j] * coefficients).tolist()) for j in range(self.dimension)]
        )

    def gram(self, weights: Floats) -> Floats:
        """The Gram matrix in single precision. It chooses the solver's steps, and no certificate depends on it."""
        total = np.zeros((self.dimension, self.dimension))
        roots = np.sqrt(weights)
        for i in range(0, self.rows, BLOCK):
            block = np.multiply(
                self.table[i : i + BLOCK], roots[i : i + BLOCK, None], dtype=np.float32, casting="same_kind"
            )
            total += block.T @ block
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedDesign(ModelRows):
    """One place of each of several blocks: a row is the rows of these matrices side by side.

    `codes` has a row for each row and a column for each block, places counted over all blocks. Lengths of the blocks'
    rows are at most h_j, and the root of the sum of h_j^2 is at most `radius`.
    """

    codes: npt.NDArray[np.int64]
    blocks: tuple[Floats, ...]
    radius: float

    @property
    def rows(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return int(self.codes.shape[0])

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """How many weights there are."""
        return sum(b.shape[1] for b in self.blocks)

    @property
    def places(self) -> int:
        """How many places there are, of all blocks."""
        return sum(b.shape[0] for b in self.blocks)

    def values(self, weights: Floats) -> Floats:
        """The value of each place."""
        out, at = [], 0
        for block in self.blocks:
            out.append(block @ weights[at : at + block.shape[1]])
            at += block.shape[1]
        return np.concatenate(out)

    def model(self, weights: Floats) -> Floats:
        values, total = self.values(weights), np.zeros(self.rows)
        for j in range(self.codes.shape[1]):
            total += values[self.codes[:, j]]
        return total

    def rounding_error(self, weights: Floats) -> float:
        terms = float(max(b.shape[1] for b in self.blocks) + len(self.blocks) + 4)
        return SAFE * 2 * terms * UNIT * self.radius * _length(weights)

    def pull(self, coefficients: Floats) -> Floats:
        total = np.zeros(self.places)
        for i in range(0, self.rows, BLOCK):
            block, values = self.codes[i : i + BLOCK], coefficients[i : i + BLOCK]
            inner = np.zeros(self.places)
            for j in range(block.shape[1]):
                inner += np.bincount(block[:, j], weights=values, minlength=self.places)
            total += inner
        return self._gathered(total)

    def _gathered(self, sums: Floats) -> Floats:
        """Sums at places, pulled back to the weights."""
        out, at = [], 0
        for block in self.blocks:
            out.append(sums[at : at + block.shape[0]] @ block)
            at += block.shape[0]
        return np.concatenate(out)

    def exact_pull(self, coefficients: Floats) -> Floats:
        total = np.zeros(self.places)
        for j in range(self.codes.shape[1]):
            order = np.argsort(self.codes[:, j], kind="stable")
            places, values = self.codes[order, j], coefficients[order]
            starts = [i for i in range(len(places)) if not i or places[i] != places[i - 1]]
            ends = [*starts[1:], len(places)]
            for a, z in zip(starts, ends, strict=True):
                total[places[a]] += math.fsum(values[a:z].tolist())
        return self._gathered(total)

    def pull_error(self, total: float, *, exact: bool) -> float:
        """The divergence of sums at places, and that of the product with the blocks: as many terms as a block
        has places.
        """
        terms = float(max(b.shape[0] for b in self.blocks) + 2)
        return ModelRows.pull_error(self, total, exact=exact) + SAFE * total * 2 * terms * UNIT * self.radius

    def gram(self, weights: Floats) -> Floats:
        """Every pair of blocks counts its pairs of places."""
        columns = self.codes.shape[1]
        starts = [0, *(int(v) for v in np.cumsum([b.shape[0] for b in self.blocks]))]
        ends = [0, *(int(v) for v in np.cumsum([b.shape[1] for b in self.blocks]))]
        total = np.zeros((self.dimension, self.dimension))
        own = [self.codes[:, j] - starts[j] for j in range(columns)]
        for j in range(columns):
            wide = own[j] * 1
            for k in range(j + 1):
                one, two = self.blocks[j], self.blocks[k]
                np.multiply(own[j], two.shape[0], out=wide)
                wide += own[k]
                counts = np.bincount(wide, weights=weights, minlength=one.shape[0] * two.shape[0])
                inner = one.T @ counts.reshape(one.shape[0], two.shape[0]) @ two
                total[ends[j] : ends[j + 1], ends[k] : ends[k + 1]] = inner
        return _full(total)


def _full(lower: Floats) -> Floats:
    """A symmetric matrix from blocks on and below the diagonal."""
    below = np.tril(lower, -1)
    return np.asarray(np.diag(np.diag(lower)) + below + below.T)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbedObjective:
    """The objective. `smooth` is a public symmetric matrix with no negative eigenvalue, or None."""

    loss: SmoothLoss
    design: ModelRows
    target: Floats
    ridge: float
    term: Floats
    smooth: Floats | None = None

    def _quadratic(self, weights: Floats) -> Floats:
        own = self.ridge * weights
        return own if self.smooth is None else np.asarray(own + self.smooth @ weights)

    def value(self, weights: Floats, model: Floats) -> float:
        """J(w) in plain floats, from the values of the model at the rows: for the solver's steps only."""
        losses = self.loss.values(model, self.target)
        return float(losses.sum() + weights @ self._quadratic(weights) / 2 + self.term @ weights)

    def gradient(
        self, weights: Floats, *, exact: bool = False, model: Floats | None = None
    ) -> tuple[Floats, float]:
        """The gradient in floats, and a bound on the length of its error; `model` are the values at the rows."""
        design, loss = self.design, self.loss
        slopes = loss.slopes(design.model(weights) if model is None else model, self.target)
        pulled = (design.exact_pull if exact else design.pull)(slopes)
        found = pulled + self._quadratic(weights) + self.term
        rows, size = float(design.rows), self.ridge
        if self.smooth is not None:
            size += float(np.linalg.norm(self.smooth))
        # Slopes are off by the curvature times the model's error, and by some units of their own size.
        off = loss.curvature * design.rounding_error(weights) + 16 * UNIT * loss.lipschitz
        total = float(np.abs(slopes).sum()) * SAFE
        error = design.pull_error(total, exact=exact) + off * design.radius * rows
        error += (
            2
            * (design.dimension + 8)
            * UNIT
            * (size * _length(weights) + _length(self.term) + _length(pulled))
        )
        return np.asarray(found), SAFE * error

    def certified(self, weights: Floats, *, exact: bool = False) -> float:
        """An upper bound on the length of the exact gradient at these floats."""
        found, error = self.gradient(weights, exact=exact)
        return SAFE * (_length(found) + error)

    def minimise(self, *, tolerance: float, spacing: float) -> tuple[Floats, float]:
        """A point of the grid, and the certified length of its gradient, which may be above the tolerance."""
        try:
            with np.errstate(all="ignore"):
                return self._newton(tolerance, spacing)
        except (ArithmeticError, ValueError, np.linalg.LinAlgError):
            return np.zeros(self.design.dimension), math.inf

    def _newton(self, tolerance: float, spacing: float) -> tuple[Floats, float]:
        from scipy.linalg import cho_factor, cho_solve

        design, loss = self.design, self.loss
        weights = np.zeros(design.dimension)
        model = design.model(weights)
        value, best = self.value(weights, model), (weights, math.inf)
        factor, before = None, math.inf
        for step_number in range(NEWTON_STEPS):
            gradient, error = self.gradient(weights, model=model)
            length = _length(gradient)
            if not math.isfinite(length):
                return best
            if length <= tolerance / 4 or length <= 2 * error:
                rounded = np.rint(weights / spacing) * spacing
                reached = self.certified(rounded)
                if reached > tolerance:
                    reached = self.certified(rounded, exact=True)
                if reached < best[1]:
                    best = (rounded, reached)
                if reached <= tolerance or step_number > NEWTON_STEPS // 2:
                    return best
            # An old factor serves as long as each step leaves a twentieth of the gradient at most.
            if factor is None or length > before / 20:
                hessian = design.gram(loss.bends(model, self.target))
                if self.smooth is not None:
                    hessian += self.smooth
                hessian[np.diag_indices_from(hessian)] += self.ridge
                factor = cho_factor(hessian, overwrite_a=True, check_finite=False)
            before = length
            step = cho_solve(factor, gradient, check_finite=False)
            slope, size = float(gradient @ step), 1.0
            while size > 2.0**-60:
                tried = weights - size * step
                model = design.model(tried)
                arrived = self.value(tried, model)
                # Near the end floats cannot tell the values apart: then the full step is right.
                if arrived <= value - 1e-4 * size * slope or slope <= 1e-12 * (1 + abs(value)):
                    break
                size /= 2
            weights, value = tried, arrived
        return best


def _length(vector: Floats) -> float:
    return float(np.linalg.norm(vector)) * SAFE
