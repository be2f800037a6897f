"""Questions about half of a large population each, asked and answered without their matrix.

A Walsh-Hadamard matrix H of size N = 2^q has entries ±1 and orthogonal rows. With a fair sign d_i for each person,
question j is about the people with H_ji d_i = 1: by itself a uniformly random subset, as in Dinur and Nissim 2003.
All N counts are (Σ x + H D x) / 2, which the fast transform gives in about N q additions (Dwork and Yekhanin 2008 ask
Fourier questions for the same reason). More than N questions take further blocks with signs of their own. The first
column of H is constant and stays empty: whoever stood there would be in all questions of a block or in none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tacit.attacks.draws import Draws
from tacit.errors import InvalidParameter
from tacit.exact.checks import whole

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tacit.exact.arrays import Floats


__all__ = ["WalshQuestions", "walsh_questions"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WalshQuestions:
    """So many questions about so many people, as the two products that an attack needs; `members(j)` is one of them."""

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
        """Questions and people, as of a matrix."""
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
