"""Mechanisms of other libraries behind one pipe: runs in the environment of that library, imports no tacit.

A line of standard input is a JSON list: the mechanism's name and an input. A line of output is a JSON value.
"""

from __future__ import annotations

import json
import sys
import warnings

warnings.simplefilter("ignore")


def diffprivlib():  # type: ignore[no-untyped-def]
    """Public functions of diffprivlib at epsilon = 1, for rows in [0, 1]."""
    import numpy as np
    from diffprivlib import mechanisms as m
    from diffprivlib import models, tools

    def regression(rows):  # type: ignore[no-untyped-def]
        x = np.array(rows, dtype=float).reshape(-1, 1)
        model = models.LinearRegression(epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1), fit_intercept=False)
        return [float(v) for v in np.ravel(model.fit(x, np.ravel(x)).coef_)]

    return {
        "Laplace": lambda x: m.Laplace(epsilon=1, sensitivity=1).randomise(float(x)),
        "Geometric": lambda x: int(m.Geometric(epsilon=1, sensitivity=1).randomise(int(x))),
        "Snapping": lambda x: m.Snapping(epsilon=1, sensitivity=1, lower=-50, upper=50).randomise(float(x)),
        "mean": lambda rows: float(tools.mean(rows, epsilon=1, bounds=(0, 1))),
        "sum": lambda rows: float(tools.sum(rows, epsilon=1, bounds=(0, 1))),
        "var": lambda rows: float(tools.var(rows, epsilon=1, bounds=(0, 1))),
        "count_nonzero": lambda rows: int(tools.count_nonzero(rows, epsilon=1)),
        "median": lambda rows: float(tools.median(rows, epsilon=1, bounds=(0, 1))),
        "histogram": lambda rows: [int(v) for v in tools.histogram(rows, epsilon=1, bins=3, range=(0, 1))[0]],
        "LinearRegression": regression,
    }


def opendp():  # type: ignore[no-untyped-def]
    """Measurements of OpenDP at epsilon = 1."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    real = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    rows = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False)), dp.symmetric_distance()
    integer, number = dp.m.make_laplace(*whole, scale=1.0), dp.m.make_laplace(*real, scale=1.0)
    total = dp.t.make_sum(*rows) >> dp.m.then_laplace(scale=1.0)
    return {
        "laplace of integers": lambda x: integer(int(x)),
        "laplace of floats": lambda x: number(float(x)),
        "sum": lambda given: total([float(v) for v in given]),
    }


def pydp():  # type: ignore[no-untyped-def]
    """Algorithms of PyDP (Google's library) at epsilon = 1."""
    from pydp.algorithms import laplacian as lap

    def run(make, rows):  # type: ignore[no-untyped-def]
        return make().quick_result([float(v) for v in rows])

    return {
        "Count": lambda rows: lap.Count(epsilon=1.0, dtype="float").quick_result([float(v) for v in rows]),
        "BoundedSum": lambda rows: run(
            lambda: lap.BoundedSum(epsilon=1.0, lower_bound=0, upper_bound=1, dtype="float"), rows
        ),
        "BoundedMean": lambda rows: run(
            lambda: lap.BoundedMean(epsilon=1.0, lower_bound=0, upper_bound=1, dtype="float"), rows
        ),
    }


LIBRARIES = {"diffprivlib": diffprivlib, "opendp": opendp, "pydp": pydp}

if __name__ == "__main__":
    known = LIBRARIES[sys.argv[1]]()
    print(json.dumps(sorted(known)), flush=True)
    for line in sys.stdin:
        name, given = json.loads(line)
        try:
            out = known[name](given)
        except Exception as problem:
            out = {"raised": f"{type(problem).__name__}: {str(problem)[:80]}"}
        print(json.dumps(out), flush=True)
