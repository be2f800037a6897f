"""What an attack brings home: who is exposed, what was learned, and what guessing alone would have got."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import eq
from typing import Any

from tacit.errors import InvalidParameter

__all__ = ["Finding", "Score"]

MOST_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How often an attack was right, once somebody who holds the truth looks.

    `right` of `claims` claims are true, about `people` people in all; `guessing` is the chance that one guess
    without the release is right.
    """

    claims: int
    right: int
    people: int
    guessing: float

    @property
    def precision(self) -> float:
        """The share of claims that are true; 1 where nothing was claimed."""
        return self.right / self.claims if self.claims else 1.0

    @property
    def share(self) -> float:
        """The share of all people about whom something true was claimed."""
        return self.right / self.people if self.people else 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finding:
    """What one attack says.

    `exposed` are people, as the attacker numbers them (positions in the list of people that were attacked, or in
    the release where the attacker had no list); `learned` says of each in turn what is claimed. `guessing` is the
    chance that one guess without the attack is right, as the attacker can work it out from what is public; `alone`
    says in words which guess that is.
    """

    attack: str
    people: int
    exposed: Sequence[int]
    learned: Sequence[object]
    guessing: float
    alone: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.exposed) != len(self.learned):
            raise InvalidParameter(
                parameter="learned", value=len(self.learned), must="have an entry for everybody exposed"
            )

    @property
    def share(self) -> float:
        """The share of people about whom something is claimed, true or not."""
        return len(self.exposed) / self.people if self.people else 0.0

    def score(self, truth: Sequence[Any], *, agree: Callable[[Any, Any], bool] = eq) -> Score:
        """Compare with the truth, one entry for each of the people; `agree(true, claimed)` says what right means."""
        if len(truth) != self.people:
            raise InvalidParameter(
                parameter="truth", value=len(truth), must=f"have one entry for each of {self.people} people"
            )
        right = sum(bool(agree(truth[i], claim)) for i, claim in zip(self.exposed, self.learned, strict=True))
        return Score(claims=len(self.exposed), right=right, people=self.people, guessing=self.guessing)

    def record(self, most: int | None = MOST_SHOWN) -> dict[str, Any]:
        """Plain data; at most so many people are listed (None: all)."""
        shown = len(self.exposed) if most is None else min(most, len(self.exposed))
        return {
            "attack": self.attack,
            "people": self.people,
            "exposed": len(self.exposed),
            "share": self.share,
            "guessing": self.guessing,
            "alone": self.alone,
            **{name: plain(value) for name, value in self.details.items()},
            "found": [
                {"who": plain(self.exposed[i]), "learned": plain(self.learned[i])} for i in range(shown)
            ],
        }


def plain(value: Any) -> Any:
    """NumPy's numbers as Python's, tuples as lists, for JSON."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return value if isinstance(value, str | int | float | bool | None.__class__) else str(value)
