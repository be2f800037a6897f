"""diffprivlib 0.6.6: LinearRegression adds noise of sensitivity 0 to the sum of squares of a column with lower bound 0.

Run in an environment with diffprivlib 0.6.6. The sensitivity of sum x^2 is computed from the lower bound twice
(models/linear_regression.py, `np.abs([bounds_X[0][i], bounds_X[0][i]])`), so that it is 0 for rows in [0, 1], where one
replaced row moves the sum by 1. The script prints the sensitivities that the mechanisms of the fit are given.
"""

from __future__ import annotations

import warnings

import numpy as np
from diffprivlib.models import LinearRegression, linear_regression

warnings.simplefilter("ignore")
given: list[tuple[str, float]] = []
for name in ("LaplaceFolded", "Laplace"):
    real = getattr(linear_regression, name)

    def noted(*args, name=name, real=real, **named):  # type: ignore[no-untyped-def]
        given.append((name, float(named["sensitivity"])))
        return real(*args, **named)

    setattr(linear_regression, name, noted)

x = np.linspace(0, 1, 20).reshape(-1, 1)
LinearRegression(epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1), fit_intercept=False).fit(x, x.ravel())
for name, sensitivity in given:
    print(f"{name}: sensitivity {sensitivity:g}")
assert any(sensitivity == 0 for _, sensitivity in given), "this version computes it otherwise"
print("a sum of squares of rows in [0, 1] is released with noise of sensitivity 0")
