"""Linear reconstruction: bits of people from noisy counts of subsets (Dinur and Nissim 2003).

n people have a bit each; m questions "how many of these people have it?" were answered with noise. If the noise is
o(√n), a linear program or least squares over [0, 1]^n, rounded, finds almost all bits; whatever makes the attack fail
for every set of questions adds noise of order √n. Against Gaussian noise that is mu-GDP for one replaced bit nobody
guesses a bit better than Φ(mu/2) where a coin is right half of the time.

10^5 people take questions whose matrix is never made (`walsh_questions`), or a sparse one, and least squares by
products alone: one to three seconds of processor for 4 · 10^5 questions about half of the people each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tacit.attacks.bounded import fit_in_cube
from tacit.attacks.draws import Draws
from tacit.attacks.finding import Finding
from tacit.attacks.questions import WalshQuestions
from tacit.errors import InvalidParameter, NotCertified, UnknownName
from tacit.exact.checks import whole

if TYPE_CHECKING:
    import numpy.typing as npt

    from tacit.exact.arrays import Floats, Integers

    Questions: TypeAlias = npt.ArrayLike | WalshQuestions

__all__ = ["METHODS", "random_questions", "reconstruct", "relaxed_bits"]

METHODS = ("linear program", "least squares")
MOST_EXACT = 1000
"""People for whom bounded least squares are solved by active sets."""


def random_questions(people: int, questions: int, *, seed: int = 0) -> Integers:
    """A matrix of zeros and ones, one row a question: each person is in it with probability one half."""
    return Draws(seed, "questions").bits(whole("questions", questions), whole("people", people))


def relaxed_bits(questions: Questions, answers: npt.ArrayLike, *, method: str) -> Floats:
    """The point of [0, 1]^n that fits the answers best: least sum of absolute errors, or least squares.

    questions: a matrix with a row for each, a sparse one of SciPy's, or `walsh_questions`. The linear program is
    min Σ e_j with -e ≤ Ax - y ≤ e, solved by HiGHS, for matrices that are not sparse. Least squares are solved by BVLS,
    whose active sets are exact, for up to 1,000 people in a matrix that is not sparse; else by products alone, with a
    constant of its own, to a millionth of the error that is left (`fit_in_cube`).
    """
    return _relaxed(questions, answers, method)[0]


def _relaxed(questions: Questions, answers: npt.ArrayLike, method: str) -> tuple[Floats, dict[str, float]]:
    """The point, and what can be said of how it was found."""
    import numpy as np
    from scipy.optimize import lsq_linear
    from scipy.sparse import issparse

    if method not in METHODS:
        raise UnknownName(what="method", name=method, known=METHODS)
    y = np.asarray(answers, dtype=np.float64)
    implicit = isinstance(questions, WalshQuestions)
    a: Any = questions if implicit or issparse(questions) else np.asarray(questions, dtype=np.float64)
    if len(a.shape) != 2 or 0 in a.shape:
        raise InvalidParameter(
            parameter="questions", value=a.shape, must="be a matrix with a row for each question"
        )
    if y.shape != a.shape[:1]:
        raise InvalidParameter(parameter="answers", value=y.shape, must="have one answer for each question")
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
    """Solved by its dual, which has one column a question and no other rows than the people's.

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

    `share` is what the attacker believes of the share of ones (public, or from the answers); guessing alone is right
    with probability max(share, 1 - share). `gap`, where it is told, bounds by which share the error could be smaller.
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
