"""A remote analysis server: it keeps the data and answers least squares, with rules against single people.

Users bring predictors that they computed from public columns, and get coefficients (O'Keefe and Good 2008; Sparks et
al. 2008; Reiter 2003; Hall 2012, 1.1.2). Two attacks need no more than that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tacit.attacks.finding import Finding
from tacit.attacks.systems.base import AnsweringService, refuse
from tacit.exact.checks import whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tacit.exact.arrays import Booleans, Floats


__all__ = ["RemoteAnalysis", "by_difference", "by_leverage"]


class RemoteAnalysis(AnsweringService):
    """Least squares on at least `least` people, with no predictor that is 0 for all but few of them."""

    idea: ClassVar[str] = "show no data, only fitted models, and refuse models about few people"
    source: ClassVar[str] = "O'Keefe and Good 2008; Sparks et al. 2008"

    def __init__(self, values: npt.ArrayLike, *, least: int = 10) -> None:
        super().__init__(values)
        self.least = whole("least", least)

    def _answer(self, members: Booleans, wording: str) -> float:
        if int(members.sum()) < self.least:
            raise refuse(f"totals over fewer than {self.least} people")
        return self._true(members)

    def fit(self, predictors: npt.ArrayLike, members: npt.ArrayLike | None = None) -> Floats:
        """Coefficients of least squares of the private value on predictors (a row a person), over a set of people."""
        import numpy as np

        x = np.asarray(predictors, dtype=np.float64)
        chosen = (
            np.ones(self.people, dtype=np.bool_) if members is None else np.asarray(members, dtype=np.bool_)
        )
        self.asked += 1
        if int(chosen.sum()) < self.least:
            raise refuse(f"models of fewer than {self.least} people")
        if (np.count_nonzero(x[chosen], axis=0) < self.least).any():
            raise refuse(f"predictors that are 0 for all but fewer than {self.least} people")
        return np.asarray(np.linalg.lstsq(x[chosen], self._values[chosen], rcond=None)[0], dtype=np.float64)


def by_leverage(service: RemoteAnalysis, public: npt.ArrayLike, people: Sequence[int]) -> Finding:
    """A predictor with all its weight on one person: the model must pass through her value.

    z_i = exp(-(x_i - x_t)² / w²) is 1 for the person and tiny, but not 0, for everybody else; intercept plus
    coefficient is her value. Only a public number that tells people apart is needed.
    """
    import numpy as np

    x = np.asarray(public, dtype=np.float64)
    learned = []
    for target in people:
        gaps = np.abs(x - x[target])
        gaps[target] = np.inf
        width = float(gaps.min()) / 6.0
        weight = np.exp(-np.minimum(((x - x[target]) / width) ** 2, 600.0))
        found = service.fit(np.column_stack([np.ones(x.size), weight]))
        learned.append(float(found.sum()))
    return _finding("leverage", service, people, learned)


def by_difference(service: RemoteAnalysis, predictors: npt.ArrayLike, people: Sequence[int]) -> Finding:
    """The same model with and without one person: X'Xβ is X'y, and the two differ by x_t y_t."""
    import numpy as np

    x = np.asarray(predictors, dtype=np.float64)
    total = x.T @ x @ service.fit(x)
    learned = []
    for target in people:
        rest = np.ones(service.people, dtype=np.bool_)
        rest[target] = False
        without = x[rest].T @ x[rest] @ service.fit(x, rest)
        best = int(np.abs(x[target]).argmax())
        learned.append(float((total - without)[best] / x[target, best]))
    return _finding("difference of models", service, people, learned)


def _finding(
    attack: str, service: RemoteAnalysis, people: Sequence[int], learned: Sequence[float]
) -> Finding:
    return Finding(
        attack=attack,
        people=service.people,
        exposed=list(people),
        learned=learned,
        guessing=0.0,
        alone="a number that is right to many digits cannot be guessed",
        details={"asked": service.asked},
    )
