"""Systems that answer exactly and refuse some questions: small sets, overlapping sets, sums that give somebody away."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tacit.attacks.systems.base import AnsweringService, refuse
from tacit.attacks.systems.echelon import Echelon
from tacit.errors import InvalidParameter
from tacit.exact.checks import whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tacit.exact.arrays import Booleans


__all__ = ["AtomicPopulations", "AuditedSums", "OverlapRestriction", "SetSizeRestriction"]


class SetSizeRestriction(AnsweringService):
    """Sets with fewer than `least` people are refused, and so are their complements."""

    idea: ClassVar[str] = "answer no question about few people, nor about all but few"
    source: ClassVar[str] = "Hoffman and Miller 1970; Fellegi 1972"

    def __init__(self, values: npt.ArrayLike, *, least: int) -> None:
        super().__init__(values)
        self.least = whole("least", least)

    def _answer(self, members: Booleans, wording: str) -> float:
        size = int(members.sum())
        if not self.least <= size <= self.people - self.least:
            raise refuse(f"sets of fewer than {self.least} people, and their complements")
        return self._true(members)


class OverlapRestriction(AnsweringService):
    """Sets of at least `least` people, any two of which share at most `shared`."""

    idea: ClassVar[str] = "answer no two questions whose sets overlap much"
    source: ClassVar[str] = "Dobkin, Jones and Lipton 1979"

    def __init__(self, values: npt.ArrayLike, *, least: int, shared: int = 1) -> None:
        super().__init__(values)
        self.least, self.shared = whole("least", least), whole("shared", shared, least=0)
        self._before: list[Booleans] = []

    def _answer(self, members: Booleans, wording: str) -> float:
        if int(members.sum()) < self.least:
            raise refuse(f"sets of fewer than {self.least} people")
        if any(int((members & other).sum()) > self.shared for other in self._before):
            raise refuse(f"a set that shares more than {self.shared} people with an earlier one")
        self._before.append(members.copy())
        return self._true(members)


class AuditedSums(AnsweringService):
    """Every answer is kept, and a sum is refused from which, with the others, one person's value follows.

    The audit is linear algebra over the answers: person i's value follows if and only if the unit vector of i is in the
    span of the sets, which is when the reduced echelon form has that unit vector as a row.
    """

    idea: ClassVar[str] = "answer no sum from which somebody's value follows by linear algebra"
    source: ClassVar[str] = "Chin and Özsoyoğlu 1982"

    def __init__(self, values: npt.ArrayLike) -> None:
        super().__init__(values)
        self._echelon = Echelon()

    def _answer(self, members: Booleans, wording: str) -> float:
        changed = self._echelon.after(members.nonzero()[0].tolist())
        if any(len(row) == 1 for row in changed.values()):
            raise refuse("a sum from which, with earlier ones, somebody's value would follow")
        self._echelon.keep(changed)
        return self._true(members)


class AtomicPopulations(AnsweringService):
    """The conceptual model: people are in atoms of at least two, and a set has all or none of each atom."""

    idea: ClassVar[str] = "answer only about unions of populations of at least two"
    source: ClassVar[str] = "Chin and Özsoyoğlu 1981"

    def __init__(self, values: npt.ArrayLike, *, atoms: Sequence[Sequence[int]]) -> None:
        super().__init__(values)
        self.atoms = [tuple(a) for a in atoms]
        if (
            sorted(i for a in self.atoms for i in a) != list(range(self.people))
            or min(map(len, self.atoms)) < 2
        ):
            raise InvalidParameter(
                parameter="atoms",
                value=len(self.atoms),
                must="have everybody once, and at least two people each",
            )
        import numpy as np

        self._sizes = np.array([len(a) for a in self.atoms])
        self._atom_of = np.empty(self.people, dtype=np.int64)
        self._atom_of[[i for a in self.atoms for i in a]] = np.repeat(np.arange(len(self.atoms)), self._sizes)

    def _answer(self, members: Booleans, wording: str) -> float:
        import numpy as np

        touched, inside = np.unique(self._atom_of[np.flatnonzero(members)], return_counts=True)
        if (inside < self._sizes[touched]).any():
            raise refuse("a set that divides an atomic population")
        return self._true(members)
