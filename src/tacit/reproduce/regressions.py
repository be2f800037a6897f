"""Three private regressions side by side: noisy moments, propose-test-release, smooth sensitivity. When does which win?

Columns are uniform on [-spread, spread] inside declared bounds [-1, 1], the outcome is a line in them with noise,
clipped to [-1, 1]. All are (epsilon, 1e-6)-private for one replaced row, n public. The error is the L2 distance of the
released coefficients to those of least squares on the same rows, the mean of some releases. Propose-test-release
proposes half of the true least eigenvalue, as an analyst with a rough idea of the spread would, and spends a quarter
of epsilon on the test. A table that fails the test publishes nothing. Smooth sensitivity releases each coefficient by
Laplace noise of the smooth bound, coefficients clipped to [-2, 2]. Noisy moments have Gaussian noise on all sums of
products.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.attacks import Draws
from tacit.errors import InvalidParameter
from tacit.guarantees import gaussian_budget
from tacit.mechanisms import SmoothBound, SmoothLaplace
from tacit.mechanisms.own_statistics import LeastSquares
from tacit.noise import DiscreteGaussian, SeededSource
from tacit.report.figures import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made, Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DELTA = 1e-6
SIZES = (1_000, 10_000, 100_000)
CASES = ((1, 1.0), (1, 0.3), (3, 1.0), (3, 0.3))
EPSILONS = (0.5, 2.0)
RUNS = 10
RANGE = 2.0
STEP = Fraction(1, 1 << 20)
Row = tuple[float | str, ...]


def table(rows: int, columns: int, spread: float, seed: int) -> Any:
    """Columns, then the outcome."""
    from scipy.special import ndtri

    draws = Draws(seed, f"{rows} {columns}")
    x = spread * (2 * draws.uniforms(rows, columns) - 1)
    noise = 0.1 * ndtri(draws.uniforms(rows))
    slopes = np.linspace(0.6, 0.2, columns)
    return np.column_stack([x, np.clip(x @ slopes + 0.1 + noise, -1, 1)])


def solved(data: Any) -> Any:
    """Least squares with a constant."""
    z = np.column_stack([data[:, :-1], np.ones(len(data))])
    return np.linalg.lstsq(z, data[:, -1], rcond=None)[0]


def by_moments(data: Any, epsilon: float, source: SeededSource) -> Any:
    """Gaussian noise on sum z z' and sum z y: the entries of one row lie in [-1, 1], squares in [0, 1]."""
    z = np.column_stack([data[:, :-1], np.ones(len(data))])
    size = z.shape[1]
    upper = [(i, j) for i in range(size) for j in range(i, size) if (i, j) != (size - 1, size - 1)]
    # Squared L2 distance of the entries of two rows: squares lie in [0, 1], all others in [-1, 1].
    squared = 4 * len(upper) - 3 * (size - 1) + 4 * size
    std = math.sqrt(squared) / gaussian_budget(epsilon=epsilon, delta=DELTA).mu
    grid = 1 << 10
    law = DiscreteGaussian(noise_std=Fraction(std) * grid)
    drawn = [int(law.sample(source=source)) / grid for _ in range(len(upper) + size)]
    products, right = z.T @ z, z.T @ data[:, -1]
    for (i, j), noise in zip(upper, drawn, strict=False):
        products[i, j] += noise
        products[j, i] = products[i, j]
    right += np.array(drawn[len(upper) :])
    # Noise may leave a matrix that no data have: eigenvalues below the noise are raised to it.
    values, vectors = np.linalg.eigh(products)
    floor = std * math.sqrt(size)
    return np.clip(vectors @ ((vectors.T @ right) / np.maximum(values, floor)), -RANGE, RANGE)


def by_test(data: Any, epsilon: float, spread: float, source: SeededSource) -> Any | None:
    """Propose-test-release; None if the test fails, or could not be passed."""
    columns = data.shape[1] - 1
    guess = min(spread**2 / 3, 1.0) / 2
    try:
        made = LeastSquares.for_spread(
            columns=columns, rows=len(data), least_eigenvalue=guess, test_epsilon=epsilon / 4, delta=DELTA
        )
    except InvalidParameter:
        return None
    mechanism = made.mechanism(
        test_epsilon=epsilon / 4, release_epsilon=3 * epsilon / 4, delta=DELTA, spacing=STEP
    )
    found = mechanism.release(data, source=source)
    return None if found.released is None else np.clip(found.released.to_floats(), -RANGE, RANGE)


def by_smooth_bound(data: Any, epsilon: float, source: SeededSource) -> Any:
    """Each coefficient by Laplace noise of the smooth bound of `least-squares-distance`, clipped to [-2, 2]."""
    z = np.column_stack([data[:, :-1], np.ones(len(data))])
    size, n = z.shape[1], len(data)
    smallest = float(np.linalg.eigvalsh(z.T @ z)[0]) * (1 - 1e-9)
    mechanism = SmoothLaplace.for_target(epsilon=epsilon / size, delta=DELTA / size, spacing=STEP)
    ks = np.arange(n + 1)
    left = smallest - ks * size
    safe = np.maximum(left, size * (1 + 1e-9))
    moves = 2 * math.sqrt(size) * (1 + math.sqrt(size) * np.sqrt(n / safe)) / (safe - size * (1 - 1e-12))
    moves = np.where(left > size, np.minimum(moves, 2 * RANGE), 2 * RANGE)
    largest = float(np.max(np.exp(-float(mechanism.beta) * ks) * moves)) + float(STEP)
    bound = SmoothBound(value=largest * (1 + 1e-6), beta=mechanism.beta)
    true = np.rint(np.clip(solved(data), -RANGE, RANGE) / float(STEP)).astype(np.int64)
    noisy = [mechanism.release(int(v), bound, source=source).to_floats() for v in true]
    return np.clip(np.array([float(np.ravel(v)[0]) for v in noisy]), -RANGE, RANGE)


def make() -> Made:
    """Mean errors of all three, and who wins."""
    rows: list[Row] = []
    for columns, spread in CASES:
        for n in SIZES:
            for epsilon in EPSILONS:
                source = SeededSource(seed=n + columns)
                errors: dict[str, list[float]] = {"moments": [], "test": [], "smooth": []}
                passed = 0
                for run in range(RUNS):
                    data = table(n, columns, spread, run)
                    true = solved(data)
                    errors["moments"].append(float(np.linalg.norm(by_moments(data, epsilon, source) - true)))
                    errors["smooth"].append(
                        float(np.linalg.norm(by_smooth_bound(data, epsilon, source) - true))
                    )
                    tested = by_test(data, epsilon, spread, source)
                    if tested is not None:
                        passed += 1
                        errors["test"].append(float(np.linalg.norm(tested - true)))
                means = {k: float(np.mean(v)) if v else math.inf for k, v in errors.items()}
                if passed < RUNS:
                    means["test"] = math.inf
                best = min(means, key=lambda k: means[k])
                rows.append((columns, spread, n, epsilon, *means.values(), passed / RUNS, best))
    wins = {k: sum(r[-1] == k for r in rows) for k in ("moments", "test", "smooth")}
    return Made(
        columns=("columns", "spread", "rows", "epsilon", "moments", "test", "smooth", "test_passes", "best"),
        rows=tuple(rows),
        notes=(
            f"Of {len(rows)} settings noisy moments win {wins['moments']}, the test {wins['test']}, "
            f"smooth sensitivity {wins['smooth']}.",
        ),
        draw=lambda: _draw(rows),
    )


def _draw(rows: list[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.2, 4.2), layout="constrained")
    for axes, (columns, spread) in zip(figure.subplots(1, 2), ((1, 1.0), (3, 0.3)), strict=True):
        mine = [r for r in rows if r[0] == columns and r[1] == spread and r[3] == 2.0]
        for k, colour, words in (
            (4, INK, "noisy moments"),
            (5, ACCENT, "test"),
            (6, MUTED, "smooth sensitivity"),
        ):
            known = [(float(r[2]), float(r[k])) for r in mine if math.isfinite(float(r[k]))]
            if known:
                axes.loglog(*zip(*known, strict=True), "o-", color=colour, label=words)
        axes.legend(frameon=False, fontsize=8)
        name = "column" if columns == 1 else "columns"
        label(axes, f"{columns} {name}, spread {spread:g}, epsilon = 2", "rows", "error of the coefficients")
    return figure


REGRESSIONS = Reproduction(
    name="regressions",
    title="Three private regressions: noisy moments, a test, smooth sensitivity",
    source="the methods are of Dwork, Lei 2009 and Nissim, Raskhodnikova, Smith 2007; the numbers are ours",
    make=make,
)
