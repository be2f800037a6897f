"""A zoo of mechanisms for audits and for teaching: right ones, and broken ones from the literature and from practice.

Every mechanism takes one input and claims epsilon = 1 unless its entry in `ZOO` says otherwise. Try one:

    tacit audit examples/mechanism_zoo.py::sparse_vector_5 --claim "epsilon=1" --neighbours answers

The noise comes from NumPy's floating-point generators. These mechanisms are for audits, not for data about people.
Sources: the six sparse-vector variants are those of Lyu, Su and Li (2017), "Understanding the sparse vector technique
for differential privacy"; floating-point Laplace noise is Mironov (2012).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

rng = np.random.default_rng()
THRESHOLD = 0.0
CUTOFF = 1

Answers = Sequence[float]


# Right mechanisms.


def laplace(x: float) -> float:
    """Laplace noise of scale 1 on a number that moves by at most 1, rounded to a grid that hides the float format."""
    return round(float(x + rng.laplace(scale=1.0)) * 64) / 64


def geometric(x: float) -> int:
    """Two-sided geometric noise on an integer that moves by at most 1."""
    alpha = math.exp(-1.0)
    return int(x) + int(rng.geometric(1 - alpha)) - int(rng.geometric(1 - alpha))


def gaussian(x: float) -> float:
    """Gaussian noise of standard deviation 1/0.268, on a grid: Gaussian DP with mu = 0.268."""
    return round(float(x + rng.normal(scale=1 / 0.268)) * 64) / 64


def exponential(scores: Answers) -> int:
    """The exponential mechanism over candidates whose scores move by at most 1."""
    weights = np.exp(0.5 * (np.asarray(scores, dtype=float) - max(scores)))
    return int(rng.choice(len(scores), p=weights / weights.sum()))


exponential.data_dependent_proof = "McSherry and Talwar 2007"  # type: ignore[attr-defined]


def noisy_max(scores: Answers) -> int:
    """Report noisy max with Laplace noise of scale 2: the index alone."""
    return int(np.argmax(np.asarray(scores, dtype=float) + rng.laplace(scale=2.0, size=len(scores))))


noisy_max.data_dependent_proof = "Dwork and Roth 2014, 3.3"  # type: ignore[attr-defined]


def randomised_response(bit: float) -> int:
    """The bit with probability e / (1 + e), the other one otherwise."""
    return int(bit) if rng.random() < math.e / (1 + math.e) else 1 - int(bit)


randomised_response.data_dependent_proof = "Warner 1965"  # type: ignore[attr-defined]


def clipped_sum(rows: Answers) -> float:
    """A sum of numbers clipped to [0, 1], with Laplace noise of scale 1, on a grid."""
    return round(float(sum(min(1.0, max(0.0, r)) for r in rows) + rng.laplace(scale=1.0)) * 64) / 64


def sparse_vector_1(answers: Answers, epsilon: float = 1.0) -> list[bool]:
    """Algorithm 1 of Lyu, Su and Li: right."""
    threshold = THRESHOLD + rng.laplace(scale=2 / epsilon)
    out, found = [], 0
    for answer in answers:
        above = bool(answer + rng.laplace(scale=4 * CUTOFF / epsilon) >= threshold)
        out.append(above)
        found += above
        if found >= CUTOFF:
            break
    return out


sparse_vector_1.data_dependent_proof = "Lyu, Su and Li 2017"  # type: ignore[attr-defined]


def sparse_vector_2(answers: Answers, epsilon: float = 1.0) -> list[bool]:
    """Algorithm 2 (the book of Dwork and Roth): right."""
    scale = 2 * CUTOFF / epsilon
    threshold = THRESHOLD + rng.laplace(scale=scale)
    out, found = [], 0
    for answer in answers:
        above = bool(answer + rng.laplace(scale=2 * scale) >= threshold)
        out.append(above)
        if above:
            threshold = THRESHOLD + rng.laplace(scale=scale)
            found += 1
            if found >= CUTOFF:
                break
    return out


sparse_vector_2.data_dependent_proof = "Lyu, Su and Li 2017"  # type: ignore[attr-defined]


# Broken mechanisms.


def sparse_vector_3(answers: Answers, epsilon: float = 1.0) -> list[bool | float]:
    """Algorithm 3 (lecture notes, 2011): publishes the noisy answer that was compared."""
    threshold = THRESHOLD + rng.laplace(scale=2 / epsilon)
    out: list[bool | float] = []
    found = 0
    for answer in answers:
        noisy = round(float(answer + rng.laplace(scale=2 * CUTOFF / epsilon)) * 64) / 64
        if noisy >= threshold:
            out.append(noisy)
            found += 1
            if found >= CUTOFF:
                break
        else:
            out.append(False)
    return out


def sparse_vector_4(answers: Answers, epsilon: float = 1.0) -> list[bool]:
    """Algorithm 4 (Lee and Clifton, 2014): noise that does not grow with the cut-off."""
    threshold = THRESHOLD + rng.laplace(scale=4 / epsilon)
    out, found = [], 0
    for answer in answers:
        above = bool(answer + rng.laplace(scale=4 / (3 * epsilon)) >= threshold)
        out.append(above)
        found += above
        if found >= CUTOFF:
            break
    return out


def sparse_vector_5(answers: Answers, epsilon: float = 1.0) -> list[bool]:
    """Algorithm 5 (Stoddard and others, 2014): no noise on the answers, no cut-off."""
    threshold = THRESHOLD + rng.laplace(scale=2 / epsilon)
    return [bool(answer >= threshold) for answer in answers]


def sparse_vector_6(answers: Answers, epsilon: float = 1.0) -> list[bool]:
    """Algorithm 6 (Chen and others, 2015): no cut-off."""
    threshold = THRESHOLD + rng.laplace(scale=2 / epsilon)
    return [bool(answer + rng.laplace(scale=2 / epsilon) >= threshold) for answer in answers]


def float_laplace(x: float) -> float:
    """Laplace noise as floats give it: the last bits tell the input."""
    return float(x + rng.laplace(scale=1.0))


def sensitivity_zero(rows: Answers) -> float:
    """A mean whose sensitivity was computed as 0: no noise."""
    return float(sum(rows) + rng.laplace(scale=1.0) * 0.0)


_NOISE: list[float] = []


def noise_reused(x: float) -> tuple[float, float]:
    """Two answers of price one half each that share one draw: their difference is exact."""
    draw = rng.laplace(scale=2.0)
    return round(float(x + draw) * 64) / 64, round(float(2 * x + draw) * 64) / 64


def noise_kept(x: float) -> float:
    """Noise that is drawn once in a process and used for every call."""
    if not _NOISE:
        _NOISE.append(round(float(rng.laplace(scale=1.0)) * 64) / 64)
    return x + _NOISE[0]


def redrawn_function(rows: Answers) -> float:
    """A published curve whose noise is drawn anew at each of 200 evaluations; the reader takes their mean."""
    total = sum(min(1.0, max(0.0, r)) for r in rows)
    return round(float(np.mean(total + rng.laplace(scale=1.0, size=200))) * 64) / 64


_BODY: list[np.ndarray[Any, Any]] = []


def _in_body() -> np.ndarray[Any, Any]:
    """A uniform point of the convex hull of (e^(2 pi i x), e^(4 pi i x)): where I + T(c) is positive semidefinite."""
    while not _BODY:
        parts = rng.uniform(-1, 1, size=(4096, 4))
        c1, c2 = parts[:, 0] + 1j * parts[:, 1], parts[:, 2] + 1j * parts[:, 3]
        one = np.ones(len(parts))
        rows = [[one, c1, c2], [c1.conj(), one, c1], [c2.conj(), c1.conj(), one]]
        matrix = np.moveaxis(np.array(rows), -1, 0)
        _BODY.extend(parts[np.linalg.eigvalsh(matrix)[:, 0] >= 0])
    return _BODY.pop()


def caratheodory_printed(rows: Answers) -> list[float]:
    """Two trigonometric moments under K-norm noise as printed in Hall (2012), 4.4.2: it loses 3/2 of its claim.

    The body is not symmetric, so that a replaced row moves the sum by up to 3 in its gauge, where 2 was assumed.
    """
    at = np.asarray(rows, dtype=float)
    true = [f(2 * np.pi * k * at).sum() for k in (1, 2) for f in (np.cos, np.sin)]
    noisy = np.array(true) + rng.gamma(5.0, 2.0) * _in_body()
    return [round(float(v) * 64) / 64 for v in noisy]


def noisy_max_gap(scores: Answers) -> tuple[int, float]:
    """Report noisy max with the noise of the index alone, and also publish the winning noisy score."""
    noisy = np.asarray(scores, dtype=float) + rng.laplace(scale=1.0, size=len(scores))
    return int(np.argmax(noisy)), round(float(noisy.max()) * 64) / 64


def threshold_wrong(rows: Answers) -> int | None:
    """A count of ones that is published if it is `>` 0, where the proof of its threshold needs noise first."""
    count = round(sum(rows))
    if count > 0:
        return count + int(rng.geometric(1 - math.exp(-1.0))) - int(rng.geometric(1 - math.exp(-1.0)))
    return None


def person_per_row(rows: Sequence[tuple[str, float]]) -> int:
    """A count of rows under the noise of one row a person, where a person has up to three."""
    return len(rows) + int(rng.geometric(1 - math.exp(-1.0))) - int(rng.geometric(1 - math.exp(-1.0)))


def masked_32_bits(x: float) -> int:
    """Additive masking in 32 bits of a number that does not fit: the carry shows the sign."""
    mask = int(rng.integers(0, 2**32))
    return (int(x * 2**31) + mask) & 0x1_FFFF_FFFF


def gaussian_too_small(x: float) -> float:
    """Gaussian noise of 0.8 of the standard deviation that mu = 0.268 needs."""
    return round(float(x + rng.normal(scale=0.8 / 0.268)) * 64) / 64


@dataclass(frozen=True)
class Entry:
    """A mechanism with its claim, its neighbours, and whether the claim is true."""

    run: Any
    neighbours: str
    private: bool
    claim: str = "epsilon=1"


ZOO: dict[str, Entry] = {
    "laplace": Entry(laplace, "number", True),
    "geometric": Entry(geometric, "number", True),
    "gaussian": Entry(gaussian, "number", True, "mu=0.268"),
    "exponential": Entry(exponential, "answers", True),
    "noisy_max": Entry(noisy_max, "answers", True),
    "randomised_response": Entry(randomised_response, "bit", True),
    "clipped_sum": Entry(clipped_sum, "rows added", True),
    "sparse_vector_1": Entry(sparse_vector_1, "answers", True),
    "sparse_vector_2": Entry(sparse_vector_2, "answers", True),
    "sparse_vector_3": Entry(sparse_vector_3, "answers", False),
    "sparse_vector_4": Entry(sparse_vector_4, "answers", False),
    "sparse_vector_5": Entry(sparse_vector_5, "answers", False),
    "sparse_vector_6": Entry(sparse_vector_6, "answers", False),
    "float_laplace": Entry(float_laplace, "number", False),
    "sensitivity_zero": Entry(sensitivity_zero, "rows added", False),
    "noise_reused": Entry(noise_reused, "number", False),
    "noise_kept": Entry(noise_kept, "number", False),
    "redrawn_function": Entry(redrawn_function, "rows added", False),
    "caratheodory_printed": Entry(caratheodory_printed, "rows replaced", False),
    "noisy_max_gap": Entry(noisy_max_gap, "answers", False),
    "threshold_wrong": Entry(threshold_wrong, "rows added", False),
    "person_per_row": Entry(person_per_row, "people added", False),
    "masked_32_bits": Entry(masked_32_bits, "number", False),
    "gaussian_too_small": Entry(gaussian_too_small, "number", False, "mu=0.268"),
}
