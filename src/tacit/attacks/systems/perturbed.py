"""Systems that refuse nothing and disturb what they answer: values, samples, answers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, ClassVar

from tacit.attacks.draws import Draws
from tacit.attacks.systems.base import AnsweringService
from tacit.exact.checks import positive, rate, whole

if TYPE_CHECKING:
    import numpy.typing as npt

    from tacit.exact.arrays import Booleans


__all__ = ["FixedNoise", "PerturbedValues", "RandomSamples"]


class PerturbedValues(AnsweringService):
    """Every value gets noise of the same size: once for all (`fresh=False`), or anew in every answer."""

    idea: ClassVar[str] = "add noise to every value, and answer everything"
    source: ClassVar[str] = "Traub, Yemini and Woźniakowski 1984"

    def __init__(
        self, values: npt.ArrayLike, *, noise_std: float, fresh: bool = False, seed: int = 0
    ) -> None:
        super().__init__(values)
        self.noise_std, self.fresh = positive("noise_std", noise_std), fresh
        self._draws = Draws(seed, "perturbed")
        self._noise = self.noise_std * self._draws.normals(self.people)

    def _answer(self, members: Booleans, wording: str) -> float:
        noise = self.noise_std * self._draws.normals(self.people) if self.fresh else self._noise
        return self._true(members) + float(noise[members].sum())


class RandomSamples(AnsweringService):
    """Each question is answered on a sample of its set, which its wording decides: asked again, it says the same."""

    idea: ClassVar[str] = "answer on a random sample that the question itself selects"
    source: ClassVar[str] = "Denning 1980"

    def __init__(self, values: npt.ArrayLike, *, share: float = 0.5, seed: int = 0) -> None:
        super().__init__(values)
        self.share, self._seed = rate("share", share), whole("seed", seed, least=0)

    def _answer(self, members: Booleans, wording: str) -> float:
        sampled = Draws(self._seed, f"sample/{wording}").uniforms(self.people) < self.share
        return self._true(members & sampled) / self.share


class FixedNoise(AnsweringService):
    """Each answer gets noise that is fixed by the set of people: asking again, in any words, gives the same answer."""

    idea: ClassVar[str] = "add noise that is fixed for each set, so that nothing can be averaged"
    source: ClassVar[str] = "as in cell-key perturbation and sticky noise"

    def __init__(self, values: npt.ArrayLike, *, noise_std: float, seed: int = 0) -> None:
        super().__init__(values)
        self.noise_std, self._seed = positive("noise_std", noise_std), whole("seed", seed, least=0)

    def _answer(self, members: Booleans, wording: str) -> float:
        set_key = hashlib.sha256(members.tobytes()).hexdigest()
        noise = float(Draws(self._seed, f"fixed/{set_key}").normals(1)[0])
        return self._true(members) + self.noise_std * noise
