"""One interface for the systems that answered questions before differential privacy, each with its own idea of safety.

A service holds one private value of each of n people, and is asked for totals over sets of them (Adam and Wortmann
1989; Groce 2014, 2.6). That sets are named person by person is no more than an outsider has: public attributes single
people out. `asked` counts the questions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from tacit.errors import InvalidParameter, Refused

if TYPE_CHECKING:
    import numpy.typing as npt

    from tacit.exact.arrays import Booleans


__all__ = ["AnsweringService", "refuse"]


def refuse(reason: str) -> Refused:
    """A question that the system will not answer; the reason is its public rule and nobody's value."""
    return Refused(f"the system does not answer: {reason}")


class AnsweringService(ABC):
    """Answers totals over sets of people, by its own rule."""

    idea: ClassVar[str] = ""
    source: ClassVar[str] = ""

    def __init__(self, values: npt.ArrayLike) -> None:
        import numpy as np

        self._values = np.array(values, dtype=np.float64)
        if self._values.ndim != 1 or not self._values.size or not np.isfinite(self._values).all():
            raise InvalidParameter(
                parameter="values", value=self._values.shape, must="be finite numbers, one a person"
            )
        self.asked = 0

    @property
    def people(self) -> int:
        """How many there are: it is public."""
        return int(self._values.size)

    def total(self, members: npt.ArrayLike, *, wording: str = "") -> float:
        """The total over a set: an array of booleans, or a list of people. The wording is how the set was described."""
        import numpy as np

        given = np.asarray(members)
        if given.dtype == np.bool_:
            chosen = given
        else:
            chosen = np.zeros(self.people, dtype=np.bool_)
            chosen[given.astype(np.int64)] = True
        if chosen.shape != (self.people,):
            raise InvalidParameter(parameter="members", value=chosen.shape, must="be a set of the people")
        self.asked += 1
        return self._answer(chosen, wording)

    @abstractmethod
    def _answer(self, members: Booleans, wording: str) -> float:
        """The answer, or `refuse`."""

    def _true(self, members: Booleans) -> float:
        return float(self._values[members].sum())
