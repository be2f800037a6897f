"""A property of a table: a name, a value, what it says and what it does not; and no law of composition.

Two tables about the same people can each be k-anonymous, and together name somebody's disease: in the lecture's
example Alice, 28, of 13012 is pinned to AIDS by two hospitals' tables with k = 4 and k = 6, and by neither alone. So
nothing follows for two tables, and `compose` refuses with that example.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from tacit.errors import NoLaw

__all__ = ["Property"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """What a table is. `better` says in which direction less is exposed."""

    name: str
    value: Any
    better: str
    says: str
    silent: str

    def compose(self, *others: object) -> NoReturn:
        """There is no law: properties of tables do not compose."""
        raise NoLaw(
            operation=f"composition of {self.name}",
            reason="it is a property of one table and no guarantee: nothing follows for two tables about one person",
            counterexample="two hospitals publish tables with k = 4 and k = 6; Alice is 28, lives in 13012 and is in"
            " both: the classes that she can be in have one disease in common, and she has it",
            hint="release what is wanted through a curator: its guarantees compose",
        )

    # The algebra of guarantees asks everything that it is handed for this.
    no_law = compose
