"""A released function: finitely many noisy coefficients in a public basis. It carries no data.

The basis is the Karhunen-Loeve one of the kernel on the domain, by Nystrom's method: phi_j = sum_q B_qj K(u_q, .) with
public nodes u and a public matrix B of floats, scaled so that S = B'K(u, u)B has |S| <= 1. The coefficients
<f_D, phi_j> = sum_q B_qj f_D(u_q) then move by at most the RKHS sensitivity in Euclidean norm, whatever B is, and
they are what is noised: theorem `gaussian-process-expansion`. (Noise made of features and added to the exact f_D would
not be private.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.balls import Ball, ball
from tacit.exact.checks import whole
from tacit.exact.threads import one_thread
from tacit.functions.boxes import Box
from tacit.functions.kernels import Kernel
from tacit.functions.kernels.base import legendre_nodes, most_nodes
from tacit.functions.means import Mean
from tacit.functions.paths.rounding import SharedNormals, float_constant, round_exactly
from tacit.guarantees import GaussianDP
from tacit.noise.source import Source

__all__ = ["FiniteBasis", "ReleasedFunction", "karhunen_loeve"]

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
        """|K(x, .) - sum_j phi_j(x) phi_j| in the RKHS, rounded up: how far from the path the basis can be at x.

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
                what="a basis", reason="floats do not tell its functions apart", hint="ask for fewer terms"
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
    """x -> sum_j coefficient_j phi_j(x): one sample path, the same value whenever it is asked, and no row in it.

    Evaluating it is post-processing. `publishable` is False where the noise came from a seeded source.
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
        """How far the expansion of f_D can be from f_D at the points: a public bound on |f_D| times the distance."""
        if self.norm_bound is None:
            raise InvalidParameter(
                parameter="norm_bound", value=None, must="be known for a truncation error",
                hint="give `norm_bound` to the release: a public bound on the RKHS norm of f_D",
            )  # fmt: skip
        return np.asarray(self.norm_bound * self.basis.distance(self.domain.inside(points)))

    @property
    def words(self) -> dict[str, Any]:
        """What it is, in plain values."""
        return {
            **self.basis.kernel.describe(), "basis": "Karhunen-Loeve by Nystrom's method", "terms": self.basis.terms,
            "noise_std": self.noise_std, "numerical_delta": self.numerical_delta,
        }  # fmt: skip
