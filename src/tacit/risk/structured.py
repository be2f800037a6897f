"""Long ranges: the derivative of the risks as two one-sided filters, a rank-one mirror image, and a band.

With h increasing, row x of the derivative is + for y >= k(x) and - below, and q^|x-y| splits into
    U_i = sum_{y >= i} q^(y-i) c_y dh_y,      V_i = sum_{y < i} q^(i-y) c_y dh_y,
so that row x needs three filter values only (that h increases is a matter of speed, not of truth):
    k >= x:  2 q^(k-x) U_k - U_x - V_x,       k < x:  U_x + V_x - 2 q^(x-k) V_k.
The mirror half contributes -q^(n-x-y) c_y, of rank one. Near the kinks the pairs of the interior point
method correct these slopes. All of it is one sparse system with two dense borders.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.exact.arrays import Floats
from tacit.risk.interior import Pairs, Program, lightest
from tacit.risk.kernel import GeometricKernel

__all__ = ["Structured", "structured_program"]

WINDOW = 12


def structured_program(n: int, epsilon: float, h: Floats) -> Program:
    """The program with pairs only within a window of the kinks of this h."""
    far = Structured(n, epsilon, h)
    return Program(n, epsilon, far.pairs(), far)


class Structured:
    """The slopes outside the windows, for kinks at `centre`."""

    def __init__(self, n: int, epsilon: float, h: Floats) -> None:
        from scipy.sparse import csr_matrix, diags

        self.n, self.kernel = n, GeometricKernel(n=n, epsilon=epsilon)
        self.rows, self.columns = n // 2 + 1, (n + 1) // 2
        self.centre = np.maximum.accumulate(np.clip(np.rint(h), 0, n // 2)).astype(np.int64)
        self.c = self.kernel.weights[: self.columns]
        q, m = float(np.exp(-epsilon)), self.rows
        x = np.arange(m)
        k = np.searchsorted(self.centre, x, side="left")
        power = self.kernel.powers[np.abs(k - x)]
        right = k >= x
        # Filter values: U_0..U_m in places 0..m, V_0..V_m after them.
        entries = [
            (x, np.where(right, k, x), np.where(right, 2 * power, 1.0)),
            (x, np.where(right, x, m + 1 + x), np.where(right, -1.0, 1.0)),
            (x, np.where(right, m + 1 + x, m + 1 + k), np.where(right, -1.0, -2 * power)),
        ]
        i, j, v = (np.concatenate(part) for part in zip(*entries, strict=True))
        self.select = csr_matrix((v, (i, j)), shape=(m, 2 * (m + 1)))
        up = diags([np.ones(m + 1), np.full(m, -q)], [0, 1])
        down = diags([np.ones(m + 1), np.full(m, -q)], [0, -1])
        from scipy.sparse import block_diag

        self.filters = block_diag([up, down]).tocsc()
        y = np.arange(self.columns)
        self.feed = csr_matrix(
            (np.concatenate([self.c, q * self.c]), (np.concatenate([y, m + 2 + y]), np.concatenate([y, y]))),
            shape=(2 * (m + 1), self.columns),
        )
        from scipy.sparse.linalg import splu

        self._filter = splu(self.filters, permc_spec="NATURAL")
        # q^(n-x-y) = q^(n/2-x) q^(n/2-y), each of them at most 1.
        self.v = np.exp(-epsilon * (n / 2 - x))
        self.u = self.c * np.exp(-epsilon * (n / 2 - y))
        self.ones = self.near(np.ones(self.columns))

    def near(self, values: Floats) -> Floats:
        """The settled slopes of the near half, applied to h."""
        return np.asarray(self.select @ self._filter.solve(self.feed @ values))

    def risks(self, h: Floats) -> Floats:
        """The risks with every |x - h(y)| replaced by its settled slope times (h(y) - x)."""
        x = np.arange(self.rows)
        mirror = self.v * ((self.n - x) * self.u.sum() - self.u @ h)
        return np.asarray(self.near(h) - x * self.ones + mirror)

    def transposed(self, prior: Floats) -> Floats:
        """The settled slopes of both halves, transposed, applied to a prior."""
        back = self.feed.T @ self._filter.solve(self.select.T @ prior, trans="T")
        return np.asarray(back - self.u * (self.v @ prior))

    def inside(self, h: Floats) -> bool:
        """Whether no kink has left its window."""
        return bool(np.abs(h - self.centre).max() <= WINDOW)

    def pairs(self) -> Pairs:
        """The pairs within the windows: around centre(y), and around its mirror image near the middle."""
        reach = np.arange(-WINDOW, WINDOW + 1)
        y = np.arange(self.columns)
        row = self.centre[:, None] + reach
        column = np.broadcast_to(y[:, None], row.shape)
        keep = (row >= 0) & (row < self.rows)
        mirror = (self.n - self.centre)[:, None] + reach
        keep_mirror = (mirror >= 0) & (mirror < self.rows)
        rows = np.concatenate([row[keep], mirror[keep_mirror]])
        columns = np.concatenate([column[keep], column[keep_mirror]])
        sign = np.concatenate([np.ones(keep.sum()), -np.ones(keep_mirror.sum())])
        place = np.where(sign > 0, columns, self.n - columns)
        law = self.c[columns] * self.kernel.powers[np.abs(rows - place)]
        settled = np.where(sign > 0, np.where(self.centre[columns] >= rows, 1.0, -1.0), 1.0)
        heavy = law > lightest(self.kernel)
        offset = np.where(sign > 0, -rows.astype(float), self.n - rows.astype(float))
        return Pairs(rows[heavy], columns[heavy], sign[heavy], offset[heavy], law[heavy], settled[heavy])

    def system(self, pairs: Pairs, slopes: Floats, curvature: Floats, inverse_w: Floats) -> Bordered:
        """The linear system with these slopes of the pairs on top of the settled ones."""
        return Bordered(self, pairs, slopes, curvature, inverse_w)


class Bordered:
    """The sparse core factorised once; dt and the mirror's rank one enter as two borders."""

    def __init__(
        self, far: Structured, pairs: Pairs, slopes: Floats, curvature: Floats, inverse_w: Floats
    ) -> None:
        from scipy.sparse import bmat, csr_matrix, diags

        self.far = far
        band = csr_matrix((slopes, (pairs.row, pairs.column)), shape=(far.rows, far.columns))
        curvature = curvature * (1 + 1e-13) + 1e-300
        # Unknowns: dh, filter values, their multipliers, dprior.
        self.core = bmat(
            [
                [diags(curvature), None, far.feed.T, band.T],
                [far.feed, -far.filters, None, None],
                [None, None, -far.filters.T, far.select.T],
                [band, far.select, None, diags(-inverse_w)],
            ]
        ).tocsc()
        self.order = _interleave(far)
        permuted = self.core[self.order][:, self.order]
        from scipy.sparse.linalg import splu

        self.lu = splu(permuted.tocsc(), permc_spec="NATURAL")
        size = self.core.shape[0]
        self.dh = slice(0, far.columns)
        self.dprior = slice(size - far.rows, size)
        # Columns of the borders: z = u.dh and z' = v.dprior (mirror), dt.
        borders = np.zeros((size, 3))
        borders[self.dprior, 0] = -far.v
        borders[self.dh, 1] = -far.u
        borders[self.dprior, 2] = -1.0
        self.tests = np.zeros((3, size))
        self.tests[0, self.dh] = far.u
        self.tests[1, self.dprior] = far.v
        self.tests[2, self.dprior] = 1.0
        self.response = self._core(borders)
        self.small = self.tests @ self.response
        self.small[0, 0] += 1.0
        self.small[1, 1] += 1.0

    def _core(self, right: Floats) -> Any:
        solution = np.empty_like(right)
        solution[self.order] = self.lu.solve(np.ascontiguousarray(right[self.order]))
        rest = right - self.core @ solution
        again = np.empty_like(right)
        again[self.order] = self.lu.solve(np.ascontiguousarray(rest[self.order]))
        return solution + again

    def solve(self, b: Floats, f: Floats, r_t: float) -> tuple[Floats, Floats, float]:
        """dh, dprior, dt: core s + borders (z, z', dt) = right, with z = u.dh, z' = v.dprior, sum dprior = r_t."""
        right = np.zeros(self.core.shape[0])
        right[self.dh] = b
        right[self.dprior] = -f
        first = self._core(right)
        tested = self.tests @ first
        tested[2] -= r_t
        outer = np.linalg.solve(self.small, tested)
        solution = first - self.response @ outer
        return solution[self.dh], solution[self.dprior], float(outer[2])


def _interleave(far: Structured) -> Any:
    """All unknowns of one place next to each other, so that the matrix is a band before it is factorised."""
    m = far.rows + 1
    places = [
        np.arange(far.columns),
        np.arange(m),
        np.arange(m),
        np.arange(m),
        np.arange(m),
        np.arange(far.rows),
    ]
    return np.argsort(np.concatenate(places), kind="stable")
