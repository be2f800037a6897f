"""Matrices in balls, written from the definitions: second implementations for the tests of paths."""

import flint
import numpy as np

from tacit.exact.rounding import ball
from tacit.functions import Kernel


def gram_balls(kernel: Kernel, points: np.ndarray) -> flint.arb_mat:
    """K(x_i, x_j) at the working precision."""
    rows = [[ball(float(v)) for v in x] for x in points]
    return flint.arb_mat([[kernel.ball(x, y) for y in rows] for x in rows])


def is_positive(matrix: flint.arb_mat) -> bool:
    """Whether Cholesky's pivots are all certainly positive."""
    n = matrix.nrows()
    a = [[matrix[i, j] for j in range(n)] for i in range(n)]
    for k in range(n):
        if not a[k][k] > 0:
            return False
        for i in range(k + 1, n):
            factor = a[i][k] / a[k][k]
            for j in range(k + 1, i + 1):
                a[i][j] -= factor * a[j][k]
    return True
