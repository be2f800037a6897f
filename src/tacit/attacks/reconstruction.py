"""Linear reconstruction: bits of people from noisy counts of subsets (Dinur and Nissim 2003).

Each of n people has a bit. The server answered m questions "how many of these people have it?" with noise. If
the noise is o(√n), a linear program or least squares over [0, 1]^n, rounded, finds almost all bits. So a
defence against every set of questions needs noise of order √n. Against Gaussian noise that is mu-GDP for one
replaced bit, the best guess of a bit is right with probability Φ(mu/2), against 1/2 for a coin.

For 10^5 people the questions need a matrix that is never stored (`walsh_questions`) or a sparse one. 4 · 10^5
questions about half of the people each take one to three seconds of processor time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from tacit.attacks.finding import Draws, Finding
from tacit.errors import EmptyComposition, InvalidParameter, NotCertified, UnknownName
from tacit.exact.checks import positive, refuse_if, whole
from tacit.exact.data_classes import dataclass

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tacit.exact.arrays import Floats, Integers

# Questions about half of a large population each, asked and answered without their matrix.
#
# A Walsh-Hadamard matrix H of size N = 2^q has entries ±1 and orthogonal rows. With a fair sign d_i for each person,
# question j is about the people with H_ji d_i = 1: by itself a uniformly random subset, as in Dinur and Nissim 2003.
# All N counts are (Σ x + H D x) / 2, which the fast transform gives in about N q additions (Dwork and Yekhanin 2008
# ask Fourier questions for the same reason). More than N questions take further blocks with signs of their own. The
# first column of H is constant and stays empty: whoever stood there would be in all questions of a block or in none.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WalshQuestions:
    """Random questions about people, as two products with their matrix, which an attack needs.

    `members(j)` gives the people of question j.
    """

    people: int
    questions: int
    seed: int = 0
    signs: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        people, questions = whole("people", self.people), whole("questions", self.questions)
        blocks = -(-questions // _size(people))
        bits = Draws(self.seed, "walsh questions").bits(blocks, people)
        object.__setattr__(self, "signs", 1.0 - 2.0 * bits)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of questions and the number of people, as the shape of a matrix."""
        return self.questions, self.people

    def counts(self, values: npt.ArrayLike) -> Floats:
        """The true answers: the sum of values over the people of each question."""
        import numpy as np

        x = np.asarray(values, dtype=np.float64)
        wide = np.zeros((len(self.signs), _size(self.people)))
        wide[:, 1 : self.people + 1] = self.signs * x
        return np.asarray((x.sum() + _transform(wide)) / 2.0).ravel()[: self.questions]

    def back(self, weights: npt.ArrayLike) -> Floats:
        """For each person the sum of weights over the questions that she is in."""
        import numpy as np

        w = np.asarray(weights, dtype=np.float64)
        wide = np.zeros((len(self.signs), _size(self.people)))
        wide.ravel()[: self.questions] = w
        pulled = (self.signs * _transform(wide)[:, 1 : self.people + 1]).sum(axis=0)
        return np.asarray((w.sum() + pulled) / 2.0)

    def members(self, question: int) -> npt.NDArray[np.bool_]:
        """Who is in one question."""
        import numpy as np

        at = whole("question", question, least=0)
        if at >= self.questions:
            raise InvalidParameter(parameter="question", value=at, must=f"be below {self.questions:,}")
        block, row = divmod(at, _size(self.people))
        # H_ji is -1 where the bits that i and j share are odd in number.
        shared = np.arange(1, self.people + 1) & row
        for shift in (32, 16, 8, 4, 2, 1):
            shared ^= shared >> shift
        return np.asarray((shared & 1 == 0) == (self.signs[block] > 0))


def walsh_questions(people: int, questions: int, *, seed: int = 0) -> WalshQuestions:
    """Random subsets of a large population, each with every person with probability one half."""
    return WalshQuestions(people=people, questions=questions, seed=seed)


def _size(people: int) -> int:
    """The least power of two above the number of people."""
    return 1 << people.bit_length()


def _transform(rows: Floats) -> Floats:
    """H times each row. H of 2^q is a Kronecker product, and factors of up to 64 are multiplied as matrices."""
    import numpy as np
    from scipy.linalg import hadamard

    many, size = rows.shape
    made, done = rows, 1
    while done < size:
        part = min(64, size // done)
        factor = hadamard(part, dtype=np.float64)
        # The last factor first; each product is moved to the front, so that the next one is last.
        made = (made.reshape(-1, part) @ factor).reshape(many, size // part, part)
        made = np.ascontiguousarray(made.transpose(0, 2, 1)).reshape(many, size)
        done *= part
    return made


# What answers give away by arithmetic: the mean of repeated ones, the difference of two that are one person apart.
#
# A server that adds fresh noise to every answer and keeps no ledger answers the same question t times; the mean has
# 1/√t of the noise. Two exact totals over sets that differ in one person differ by that person's value.


def average(answers: npt.ArrayLike, *, step: float = 1.0) -> Finding:
    """The truth behind repeated answers: a row for each question, a column for each repetition.

    True answers are multiples of `step` (1 for counts), so that the mean is rounded to the nearest. The exposed
    questions have a mean within half a step of one multiple at 4.5 standard errors, estimated from the answers.
    """
    import numpy as np

    table = np.atleast_2d(np.asarray(answers, dtype=np.float64))
    grid = positive("step", step)
    if table.size == 0:
        raise EmptyComposition(what="the list of answers")
    refuse_if(not np.isfinite(table).all(), "answers", "not finite", "be finite numbers")
    times = table.shape[1]
    means = table.mean(axis=1)
    spread = table.std(axis=1, ddof=1) if times > 1 else np.full(len(table), math.inf)
    errors = spread / math.sqrt(times)
    # A spread of 0 says that the answers were never noisy, or that the noise was fixed; the mean is taken as it is.
    rounded = np.rint(means / grid) * grid
    sure = 4.5 * errors + np.abs(means - rounded) < grid / 2
    found = np.flatnonzero(sure)
    typical = float(np.median(spread))
    single = math.erf(grid / 2 / (typical * math.sqrt(2))) if 0 < typical < math.inf else float(typical == 0)
    return Finding(
        attack="averaging",
        people=len(table),
        exposed=found.tolist(),
        learned=rounded[found].tolist(),
        guessing=single,
        alone="rounding one of the answers",
        details={"times": times, "noise_std": typical, "standard_error": float(np.median(errors))},
    )


def difference(
    with_person: npt.ArrayLike, without: npt.ArrayLike, *, low: float = 0.0, high: float = 1.0
) -> Finding:
    """One person's value from two totals, with and without her: a pair for each person.

    Values lie in [low, high]; the guess without the attack is the middle of the range, a coin flip for a bit.
    """
    import numpy as np

    a = np.atleast_1d(np.asarray(with_person, dtype=np.float64))
    b = np.atleast_1d(np.asarray(without, dtype=np.float64))
    refuse_if(a.shape != b.shape or a.ndim != 1, "without", b.shape, "have one total for each of the others")
    if not (low < high and np.isfinite(a).all() and np.isfinite(b).all()):
        raise InvalidParameter(parameter="low", value=low, must="be below high, and totals be finite")
    values = np.clip(a - b, low, high)
    return Finding(
        attack="differencing",
        people=int(a.size),
        exposed=range(int(a.size)),
        learned=[int(v) if float(v).is_integer() else float(v) for v in values],
        guessing=0.5,
        alone="a coin for a bit; the middle of the range for a value",
        details={"low": low, "high": high},
    )


# Least squares over the cube [0, 1]^n that needs no matrix, only its products with vectors.
#
# min ½ Σ (a_j x - y_j - c)² over x in the cube and a constant c, by accelerated projected gradients (Nesterov 1983;
# restarted where they point uphill, O'Donoghue and Candès 2015). The constant takes the one direction of random
# subsets that is n times as steep as all others, the number of ones, which tells next to nothing of anybody; what is
# left has eigenvalues close together, and some dozen steps do. How far the result can lie from the best is stated:
# f(x) - min f ≤ Σ max(g_i x_i, -g_i (1 - x_i)), g the gradient, since f is convex.

if TYPE_CHECKING:
    Product = Callable[[Floats], Floats]


STEPS, LOOK = 2000, 5
CLOSE = 1e-6
"""The gap at which the solver stops, as a share of the remaining error."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedBits:
    """The final point. `gap` bounds the distance of half the sum of squares, `error`, from its minimum."""

    x: Floats
    error: float
    gap: float
    steps: int


def fit_in_cube(times: Product, back: Product, answers: Floats, people: int) -> FittedBits:
    """The fit, with the questions A given by x -> Ax and r -> A'r."""
    import numpy as np

    def forward(x: Floats) -> Floats:
        found = times(x)
        return np.asarray(found - found.mean(), dtype=np.float64)

    def gradient(rest: Floats) -> Floats:
        return back(np.asarray(rest - rest.mean(), dtype=np.float64))

    y = answers - answers.mean()
    nothing = 1e-14 * float(y @ y) + 1e-12
    x = np.full(people, 0.5)
    steep = _steepest(forward, gradient, people)
    image = forward(x)
    before, image_before, momentum = x, image, 1.0
    gap = np.inf
    for step in range(STEPS):
        rest = image - y
        error = float(rest @ rest) / 2.0
        if step % LOOK == 0:
            slope = gradient(rest)
            gap = float(np.maximum(slope * x, slope * (x - 1.0)).sum())
            if not np.isfinite(gap):
                raise NotCertified(what="bounded least squares", reason="the products are not finite")
            if gap <= CLOSE * error + nothing:
                break
        after = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = (momentum - 1.0) / after
        at, image_at = x + ahead * (x - before), image + ahead * (image - image_before)
        off = image_at - y
        slope = gradient(off)
        while True:
            there = np.clip(at - slope / steep, 0.0, 1.0)
            image_there = forward(there)
            moved = image_there - image_at
            way = there - at
            # The curve along the step must lie below the parabola that chose it.
            if float(moved @ moved) <= steep * float(way @ way) * (1.0 + 1e-9) + 1e-300:
                break
            steep *= 2.0
        uphill = float((at - there) @ (there - x)) > 0.0
        before, image_before, momentum = x, image, 1.0 if uphill else after
        x, image = there, image_there
        if uphill:
            before, image_before = x, image
    return FittedBits(x=x, error=error, gap=gap, steps=step)


def _steepest(forward: Product, gradient: Product, people: int) -> float:
    """The approximate largest eigenvalue of A'A without the constant, by the power method.

    The caller doubles an estimate that is too small.
    """
    import numpy as np

    along = np.cos(np.arange(people) * 2.399963)
    found = 1e-300
    for _ in range(12):
        size = float(np.sqrt(along @ along))
        if not size > 0.0:
            return max(found, 1e-12)
        along = along / size
        along = gradient(forward(along))
        found = max(found, float(np.sqrt(along @ along)))
    return max(found, 1e-12)


if TYPE_CHECKING:
    Questions: TypeAlias = npt.ArrayLike | WalshQuestions


METHODS = ("linear program", "least squares")
MOST_EXACT = 1000
"""People for whom bounded least squares are solved by active sets."""


def random_questions(people: int, questions: int, *, seed: int = 0) -> Integers:
    """A matrix of zeros and ones, one row a question: each person is in it with probability one half."""
    return Draws(seed, "questions").bits(whole("questions", questions), whole("people", people))


def relaxed_bits(questions: Questions, answers: npt.ArrayLike, *, method: str) -> Floats:
    """The point of [0, 1]^n that fits the answers best: least sum of absolute errors, or least squares.

    questions: a matrix with a row for each, a sparse one of SciPy's, or `walsh_questions`. The linear program is
    min Σ e_j with -e ≤ Ax - y ≤ e, solved by HiGHS, for matrices that are not sparse. Solves least squares by
    BVLS, with exact active sets, for up to 1,000 people in a dense matrix; otherwise by products alone, to a
    millionth of the remaining error (`fit_in_cube`).
    """
    return _relaxed(questions, answers, method)[0]


def _relaxed(questions: Questions, answers: npt.ArrayLike, method: str) -> tuple[Floats, dict[str, float]]:
    """The point, and how the solver found it."""
    import numpy as np
    from scipy.optimize import lsq_linear
    from scipy.sparse import issparse

    if method not in METHODS:
        raise UnknownName(what="method", name=method, known=METHODS)
    y = np.asarray(answers, dtype=np.float64)
    implicit = isinstance(questions, WalshQuestions)
    a: Any = questions if implicit or issparse(questions) else np.asarray(questions, dtype=np.float64)
    refuse_if(
        len(a.shape) != 2 or 0 in a.shape, "questions", a.shape, "be a matrix with a row for each question"
    )
    refuse_if(y.shape != a.shape[:1], "answers", y.shape, "have one answer for each question")
    entries = np.zeros(1) if implicit else a.data if issparse(a) else a
    if not (np.isfinite(entries).all() and np.isfinite(y).all()):
        raise InvalidParameter(parameter="answers", value="not finite", must="be finite numbers")
    dense = isinstance(a, np.ndarray)
    if method == "linear program":
        if not dense:
            raise InvalidParameter(
                parameter="method", value=method, must="be least squares for sparse or implicit questions",
                hint="the linear program holds every number of the matrix",
            )  # fmt: skip
        return _least_absolute(a, y), {}
    if dense and a.shape[1] <= MOST_EXACT:
        found = lsq_linear(a, y, bounds=(0.0, 1.0), method="bvls", max_iter=4 * a.shape[1])
        return np.asarray(found.x), {}
    if isinstance(questions, WalshQuestions):
        fit = fit_in_cube(questions.counts, questions.back, y, a.shape[1])
    else:
        rows, columns = (a, a.T) if dense else (a.tocsr(), a.T.tocsr())
        fit = fit_in_cube(lambda x: rows @ x, lambda r: columns @ r, y, a.shape[1])
    return fit.x, {"steps": fit.steps, "gap": fit.gap / fit.error if fit.error > 0 else 0.0}


def _least_absolute(a: Floats, y: Floats) -> Floats:
    """Solves the problem by its dual, which has one column a question and one row a person.

    Primal: min Σ|e|, Ax + e = y, 0 ≤ x ≤ 1. Dual: max y·λ - Σ_i max(0, (A'λ)_i), |λ| ≤ 1; with s_i for the positive
    part, min -y·λ + Σ s, A'λ - s ≤ 0, s ≥ 0. The multipliers of its rows are -x.
    """
    import numpy as np
    from scipy.optimize import linprog

    m, n = a.shape
    left = np.hstack([a.T, -np.eye(n)])
    found = linprog(
        np.concatenate([-y, np.ones(n)]),
        A_ub=left,
        b_ub=np.zeros(n),
        bounds=[(-1.0, 1.0)] * m + [(0.0, None)] * n,
        method="highs",
    )
    if found.status != 0:
        raise NotCertified(what="the linear program", reason=f"HiGHS ended with status {found.status}")
    return np.clip(-np.asarray(found.ineqlin.marginals, dtype=np.float64), 0.0, 1.0)


def reconstruct(
    questions: Questions, answers: npt.ArrayLike, *, method: str = "least squares", share: float = 0.5
) -> Finding:
    """A bit for everybody, from questions and their noisy answers.

    `share` is the attacker's belief about the share of ones (public, or from the answers); guessing alone is right
    with probability max(share, 1 - share). If given, `gap` bounds the possible decrease of the share of errors.
    """
    import numpy as np

    found, told = _relaxed(questions, answers, method)
    bits = (found > 0.5).astype(np.int64)
    return Finding(
        attack="linear reconstruction",
        people=int(bits.size),
        exposed=range(int(bits.size)),
        learned=bits.tolist(),
        guessing=max(share, 1 - share),
        alone="the commoner of the two bits",
        details={
            "method": method,
            "questions": int(np.shape(answers)[0]),
            "undecided": int(np.count_nonzero(np.abs(found - 0.5) < 0.25)),
            **told,
        },
    )
