"""Gaussian-process noise for a function in the RKHS of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.canonical import formerly
from tacit.exact.checks import members, positive, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, Exact, ball, exact_parameter, lower, up
from tacit.exact.threads import one_thread
from tacit.functions.boxes import Box
from tacit.functions.kernels import Kernel
from tacit.functions.kernels.base import legendre_nodes, most_nodes
from tacit.functions.means import Mean
from tacit.functions.paths.grids import SharedNormals, float_constant, round_exactly
from tacit.guarantees import GaussianDP, gaussian_budget
from tacit.mechanisms.base import Mechanism, epsilon_parameter, shown
from tacit.mechanisms.gaussian import delta_parameter
from tacit.noise import grid_spacing
from tacit.noise.source import Source, default_source

# A released function: finitely many noisy coefficients in a public basis. It carries no data.
#
# The basis is the Karhunen-Loeve one of the kernel on the domain, by Nystrom's method: phi_j = sum_q B_qj K(u_q, .)
# with public nodes u and a public matrix B of floats, scaled so that S = B'K(u, u)B has |S| <= 1. The coefficients
# <f_D, phi_j> = sum_q B_qj f_D(u_q) then move by at most the RKHS sensitivity in Euclidean norm, whatever B is, and
# they are what is noised: theorem `gaussian-process-expansion`. (Noise made of features and added to the exact f_D
# would not be private.)

LEAST_EIGENVALUE = 2.0**-24
MOST_SPREAD = 2.0**-8
LINES = (16, 32, 64, 128, 256, 400)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FiniteBasis:
    """phi_j = sum_q matrix_qj K(nodes_q, .), j < terms, with a Gram matrix S in the RKHS of norm at most 1."""

    kernel: Kernel
    nodes: Floats
    matrix: Floats
    gram: Floats = field(repr=False)
    slack: float

    @property
    def terms(self) -> int:
        """How many functions."""
        return int(self.matrix.shape[1])

    def functions(self, points: Floats) -> Floats:
        """phi_j at the points: an array (m, terms). Rows do not depend on the other rows."""
        gram = self.kernel.gram(points, self.nodes)
        return np.stack([(gram * column).sum(axis=1) for column in self.matrix.T], axis=1)

    def distance(self, points: Floats) -> Floats:
        """|K(x, .) - sum_j phi_j(x) phi_j| in the RKHS, rounded up: a bound on the distance between path and basis at
        x.

        Its square is K(x, x) - 2 |phi(x)|^2 + phi(x)'S phi(x).
        """
        phi = self.functions(points)
        square = (
            self.kernel.diagonal(points) - 2 * (phi**2).sum(axis=1) + ((phi @ self.gram) * phi).sum(axis=1)
        )
        return np.asarray(np.sqrt(np.maximum(square, 0.0) + self.slack))


def karhunen_loeve(kernel: Kernel, box: Box, terms: int | None = None) -> FiniteBasis:
    """The first eigenfunctions on the box, those whose eigenvalue is above 2^-24 of the largest; or `terms` of them."""
    wanted = None if terms is None else whole("terms", terms)
    with one_thread():
        for each in LINES:
            nodes, roots = legendre_nodes(box, each)
            gram = kernel.gram(nodes)
            values, vectors = np.linalg.eigh(roots[:, None] * gram * roots[None, :])
            values, vectors = values[::-1], vectors[:, ::-1]
            resolved = int((values > LEAST_EIGENVALUE * values[0]).sum())
            count = resolved if wanted is None else min(wanted, resolved)
            # Eigenvalues that half of the nodes give are those of the kernel, not of the nodes.
            if 2**box.dimension * count <= nodes.shape[0] or most_nodes(box) <= each:
                break
        matrix = np.ascontiguousarray(roots[:, None] * vectors[:, :count] / np.sqrt(values[:count]))
        # An error e of each entry of K moves B'KB by e |B_i|_1 |B_j|_1; products of k terms err by k 2^-53 of theirs.
        top, sums = kernel.sup_diagonal, np.abs(matrix).sum(axis=0) * (1 + 2.0**-30)
        each = kernel.gram_error + (2 * nodes.shape[0] + 8) * 2.0**-53 * (top + kernel.gram_error)
        error = each * float((sums**2).sum()) * (1 + 2.0**-30)
        spread = error + float(np.abs(matrix.T @ (gram @ matrix) - np.eye(count)).sum(axis=1).max())
        if spread > MOST_SPREAD:
            raise NotCertified(
                what="a basis", reason="floats cannot distinguish its functions", hint="ask for fewer terms"
            )
        # |S| <= (1 - spread)^2 (1 + spread) < 1.
        matrix = matrix * (1 - spread)
        inner = matrix.T @ (gram @ matrix)
    slack = 8 * (top**0.5 * each * float(np.linalg.norm(sums)) + error * top) + 2.0**-45 * top
    return FiniteBasis(kernel=kernel, nodes=nodes, matrix=matrix, gram=inner, slack=slack)


def noisy_coefficients(
    *, basis: FiniteBasis, mean: Mean, noise_std: Fraction, step: Fraction, source: Source
) -> AnyArray:
    """<f_D, phi_j> + noise, rounded exactly."""
    normals = SharedNormals(basis.terms, source)
    reals = mean.enclosed(basis.nodes).apply(np.ascontiguousarray(basis.matrix.T))
    reals = reals + normals.enclosure() * float_constant(noise_std)

    def exact(j: int) -> Ball:
        column = zip(basis.matrix[:, j].tolist(), basis.nodes, strict=True)
        return sum((ball(b) * mean.ball(u) for b, u in column), ball(noise_std) * normals.ball(j))

    return round_exactly(reals, step, exact, lambda j: normals.extend([j]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedFunction:
    """x -> sum_j coefficient_j phi_j(x): one sample path without any row, with the same value at every call.

    Evaluating it is post-processing. `publishable` is False if the noise came from a seeded source.
    """

    basis: FiniteBasis
    domain: Box
    coefficients: AnyArray
    spacing: Fraction
    noise_std: float
    bound: GaussianDP
    publishable: bool
    norm_bound: float | None = None
    numerical_delta: float = 0.0
    _weights: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        scaled = np.asarray(self.coefficients).astype(np.float64) * float(self.spacing)
        object.__setattr__(self, "_weights", self.basis.matrix @ scaled)

    def __call__(self, points: npt.ArrayLike) -> Floats:
        """The values at the points, which must lie in the domain."""
        at = self.domain.inside(points)
        return np.asarray((self.basis.kernel.gram(at, self.basis.nodes) * self._weights).sum(axis=1))

    def noise_std_at(self, points: npt.ArrayLike) -> Floats:
        """The standard deviation of the noise in the values: noise_std |phi(x)|."""
        return np.asarray(
            self.noise_std * np.sqrt((self.basis.functions(self.domain.inside(points)) ** 2).sum(axis=1))
        )

    def noise_covariance(self, points: npt.ArrayLike) -> Floats:
        """noise_std^2 phi(x)'phi(y): public, so that bands come from simulation."""
        phi = self.basis.functions(self.domain.inside(points))
        return np.asarray(self.noise_std**2 * (phi @ phi.T))

    def truncation_error(self, points: npt.ArrayLike) -> Floats:
        """The largest error of the expansion of f_D at the points: a public bound on |f_D| times the distance."""
        if self.norm_bound is None:
            raise InvalidParameter(
                parameter="norm_bound", value=None, must="be known for a truncation error",
                hint="give `norm_bound` to the release: a public bound on the RKHS norm of f_D",
            )  # fmt: skip
        return np.asarray(self.norm_bound * self.basis.distance(self.domain.inside(points)))

    def to_dict(self) -> dict[str, Any]:
        """The release, in plain values."""
        return {
            **self.basis.kernel.to_dict(), "basis": "Karhunen-Loeve by Nystrom's method", "terms": self.basis.terms,
            "noise_std": self.noise_std, "numerical_delta": self.numerical_delta,
        }  # fmt: skip

    words = formerly("words")


FINENESS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class PathValues:
    """One noisy path at some points: integers for integer * spacing, and the cost of sampling them.

    `numerical_delta` bounds the total variation between the drawn path and one with the release's guarantee; 0 means
    exact. `added_std` bounds the extra noise at a point, beyond that of the ideal path: it compensates for the
    rounding of the covariance's decomposition in floats. It takes nothing from privacy and is smaller than the
    grid.
    """

    points: Floats
    values: AnyArray
    spacing: Fraction
    numerical_delta: float
    publishable: bool
    added_std: float = 0.0

    def to_floats(self) -> Floats:
        """values * spacing, for reading; post-processing."""
        return np.asarray(self.values).astype(np.float64) * float(self.spacing)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianProcessRelease(Mechanism):
    """f_D + noise_std G, G a Gaussian process with covariance K, for f_D in the RKHS of K.

    At a point the noise has the standard deviation noise_std sqrt(K(x, x)). Guarantee: GaussianDP(mu =
    rkhs_sensitivity / noise_std) for the whole path, however often and wherever it is asked; reached.
    Assumption: |f_D - f_D'| <= rkhs_sensitivity in the RKHS of `kernel`, for all neighbours.
    Theorem `gaussian-process-release`. Source: Hall 2012, Prop. 3.2.2 (whose calibration is looser).
    """

    kernel: Kernel
    rkhs_sensitivity: Exact
    noise_std: Exact
    domain: Box
    spacing: Exact | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise InvalidParameter(parameter="kernel", value=type(self.kernel).__name__, must="be a kernel")
        if not isinstance(self.domain, Box) or self.domain.dimension != self.kernel.dimension:
            raise InvalidParameter(
                parameter="domain", value=self.domain, must=f"be a Box of dimension {self.kernel.dimension}"
            )
        ends = np.array([self.domain.lows, self.domain.highs])
        self.kernel.check_domain(ends)
        exact_parameter("rkhs_sensitivity", self.rkhs_sensitivity)
        noise = exact_parameter("noise_std", self.noise_std)
        set_fields(self, rkhs_sensitivity=self.rkhs_sensitivity, noise_std=self.noise_std)
        object.__setattr__(
            self, "spacing", default_spacing(noise) if self.spacing is None else grid_spacing(self.spacing)
        )

    @classmethod
    def for_mu(
        cls, *, mu: Exact, kernel: Kernel, rkhs_sensitivity: Exact, domain: Box, spacing: Exact | None = None
    ) -> GaussianProcessRelease:
        """noise_std = rkhs_sensitivity / mu."""
        noise_std = exact_parameter("rkhs_sensitivity", rkhs_sensitivity) / epsilon_parameter(mu, "mu")
        return cls(
            kernel=kernel,
            rkhs_sensitivity=rkhs_sensitivity,
            noise_std=noise_std,
            domain=domain,
            spacing=spacing,
        )

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, delta: Exact, kernel: Kernel, rkhs_sensitivity: Exact, domain: Box,
        spacing: Exact | None = None,
    ) -> GaussianProcessRelease:  # fmt: skip
        """The least noise whose exact curve has delta(epsilon) <= delta."""
        target, limit = up(epsilon_parameter(epsilon)), delta_parameter(delta)
        mu = gaussian_budget(epsilon=target, delta=float(limit)).mu
        return cls.for_mu(
            mu=mu, kernel=kernel, rkhs_sensitivity=rkhs_sensitivity, domain=domain, spacing=spacing
        )

    @property
    def step(self) -> Fraction:
        """The grid's spacing."""
        assert self.spacing is not None
        return Fraction(self.spacing)

    @property
    def mu(self) -> float:
        """rkhs_sensitivity / noise_std, rounded up."""
        return up(self._sensitivity / self._noise)

    @property
    def _sensitivity(self) -> Fraction:
        return exact_parameter("rkhs_sensitivity", self.rkhs_sensitivity)

    @property
    def _noise(self) -> Fraction:
        return exact_parameter("noise_std", self.noise_std)

    @property
    def noise_multiplier(self) -> float:
        """noise_std / rkhs_sensitivity, rounded down."""
        return lower(lambda: ball(self._noise / self._sensitivity))

    @property
    def bound(self) -> GaussianDP:
        return GaussianDP(mu=self.mu)

    @property
    def event(self) -> events.GaussianEvent:
        return events.GaussianEvent(noise_multiplier=self.noise_multiplier)

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("gaussian-process-release",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "Gaussian process, rounded",
            **self.kernel.to_dict(),
            "noise_std": shown(self._noise),
            "spacing": shown(self.step),
            "exact": True,
        }

    def noise_std_at(self, points: npt.ArrayLike) -> Floats:
        """noise_std sqrt(K(x, x)): the noise's standard deviation at the points."""
        return float(self._noise) * np.sqrt(self.kernel.diagonal(self.domain.inside(points)))

    def noise_covariance(self, points: npt.ArrayLike) -> Floats:
        """noise_std^2 K: public, so that bands come from simulation."""
        return float(self._noise) ** 2 * self.kernel.gram(self.domain.inside(points))

    def batch(self, mean: Mean, points: npt.ArrayLike, *, source: Source | None = None) -> PathValues:
        """f_D + noise at the given points, once; repeated points get the same value.

        Theorems `gaussian-process-batch` and `gaussian-process-dominated`.
        """
        from tacit.functions.paths.grids import batch_values

        source = source if source is not None else default_source()
        at = self._asked(mean, points)
        unique, inverse = np.unique(at, axis=0, return_inverse=True)
        values, added = batch_values(
            kernel=self.kernel, mean=mean, points=unique, noise_std=self._noise, step=self.step, source=source
        )
        return PathValues(
            points=at, values=values[inverse.ravel()], spacing=self.step, numerical_delta=0.0,
            publishable=source.publishable, added_std=added,
        )  # fmt: skip

    def on_grid(self, mean: Mean, count: int | Sequence[int], *, source: Source | None = None) -> PathValues:
        """f_D + noise on a regular grid of `count` points along each side of the domain, once.

        The points are exact floats and fill the domain but for count 2^-51 of it. For stationary kernels, by a fast
        Fourier transform: 2^20 points take about a second. Theorem `gaussian-process-grid`.
        """
        from tacit.functions.paths.grids import RegularGrid, grid_values

        source = source if source is not None else default_source()
        d = self.domain.dimension
        counts = members("count", count) if np.ndim(count) else (count,) * d
        if len(counts) != d:
            raise InvalidParameter(parameter="count", value=len(counts), must=f"be one number or {d}")
        grid = RegularGrid.of(self.domain, tuple(whole("count", n) for n in counts))
        self._of(mean)
        values, added = grid_values(
            kernel=self.kernel, mean=mean, grid=grid, noise_std=self._noise, step=self.step, source=source
        )
        return PathValues(
            points=grid.points(), values=values, spacing=self.step, numerical_delta=0.0,
            publishable=source.publishable, added_std=added,
        )  # fmt: skip

    def expansion(
        self,
        mean: Mean,
        *,
        terms: int | None = None,
        norm_bound: float | None = None,
        source: Source | None = None,
    ) -> ReleasedFunction:
        """Noisy Karhunen-Loeve coefficients of f_D on the domain: a function that anyone may ask anywhere in it.

        `terms` limits their number; by default all are taken whose eigenvalue is above 2^-24 of the largest. Theorem
        `gaussian-process-expansion`.
        """
        source = source if source is not None else default_source()
        self._of(mean)
        basis = karhunen_loeve(self.kernel, self.domain, terms)
        coefficients = noisy_coefficients(
            basis=basis, mean=mean, noise_std=self._noise, step=self.step, source=source
        )
        given = mean.norm_bound(self.kernel) if norm_bound is None else positive("norm_bound", norm_bound)
        return ReleasedFunction(
            basis=basis, domain=self.domain, coefficients=coefficients, spacing=self.step,
            noise_std=up(self._noise), bound=self.bound, publishable=source.publishable, norm_bound=given,
        )  # fmt: skip

    def _of(self, mean: Mean) -> None:
        if not isinstance(mean, Mean) or mean.dimension != self.kernel.dimension:
            raise InvalidParameter(
                parameter="mean",
                value=type(mean).__name__,
                must=f"be a Mean of dimension {self.kernel.dimension}",
            )

    def _asked(self, mean: Mean, points: npt.ArrayLike) -> Floats:
        """The points as an array with at least one row, in the domain."""
        self._of(mean)
        at = self.domain.inside(points)
        if at.shape[0] == 0:
            raise InvalidParameter(parameter="points", value="no points", must="hold at least one")
        # -0.0 and 0.0 are one point.
        return at + 0.0


def default_spacing(noise_std: Fraction) -> Fraction:
    """The largest power of two that is at most noise_std / 256."""
    fine = noise_std / FINENESS
    power = fine.numerator.bit_length() - fine.denominator.bit_length()
    step = Fraction(2) ** power
    return step if step <= fine else step / 2
