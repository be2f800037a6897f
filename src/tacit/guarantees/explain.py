"""Plain sentences for a disclosure officer: what is protected, what an adversary gains, when it holds."""

from __future__ import annotations

import math

from tacit.guarantees import meaning
from tacit.guarantees.bounds import Bound, Pointwise
from tacit.guarantees.conditions import Always, BoundedAdversary, Condition, Priors, RandomData
from tacit.guarantees.units import Coupled, Neighbours, Unit

__all__ = ["explain"]

_READING_DELTA = 1e-6


def explain(bound: Bound, unit: Unit, condition: Condition, declared: tuple[str, ...] = ()) -> str:
    """Three sentences, and one more each for a condition and for declarations; numbers rounded against us."""
    sentences = _sentences(bound, unit, condition)
    if declared:
        sentences.append(f"It rests on what was declared and cannot be checked: {'; '.join(declared)}.")
    return " ".join(sentences)


def _sentences(bound: Bound, unit: Unit, condition: Condition) -> list[str]:
    if isinstance(condition, Priors) or isinstance(unit, Coupled):
        return _coupled_sentences(bound, unit, condition)
    change = (
        "had been replaced by any other"
        if unit.neighbours is Neighbours.REPLACE_ONE
        else "had been added or left out"
    )
    what = f"What is published would change only within limits if the data of {unit.noun} {change}"
    first = f"{what}: {_loss(bound)}."
    guess = meaning.best_guess(bound)
    power = meaning.power(bound, 0.05)
    second = (
        f"Somebody who knows everything else, and must tell two versions of those data apart, is right at most "
        f"{_percent(guess)} of the time where a coin is right 50%; a test that raises a false alarm in 5% of "
        f"cases finds the truth in at most {_percent(power)}."
    )
    return [first, second, _belief(bound), *_condition(condition)]


def _loss(bound: Bound) -> str:
    epsilon = bound._epsilon(0.0)
    if math.isfinite(epsilon):
        return f"no outcome becomes more than {_factor(epsilon)} times as likely ({bound})"
    stated = (
        float(bound.delta) if isinstance(bound, Pointwise) else max(_READING_DELTA, bound._delta(math.inf))
    )
    epsilon = bound._epsilon(stated)
    if math.isinf(epsilon):
        return f"no useful factor holds for the likelihood of outcomes ({bound})"
    reach = f"{_factor(epsilon)} times as likely"
    if isinstance(bound, Pointwise):
        return f"except with probability {stated:.2g}, no outcome becomes more than {reach} ({bound})"
    return f"no event becomes more than {reach}, give or take a probability of {stated:.2g} ({bound})"


def _belief(bound: Bound) -> str:
    epsilon = bound._epsilon(0.0)
    if math.isfinite(epsilon):
        shift = meaning.posterior_shift(bound)
        return (
            f"Whatever somebody believed before, what they believe afterwards differs by at most "
            f"{_percent(shift)} (in probability, of any statement) from what they would believe had those data "
            f"not been used."
        )
    reached = meaning.incentive(bound, delta=max(_READING_DELTA, bound._delta(math.inf)))
    return (
        f"Taking part multiplies the expected harm from the publication, of whatever kind, by at most "
        f"{_factor(bound._epsilon(reached.addend))}, plus {reached.addend:.2g} of the worst harm imaginable."
    )


def _condition(condition: Condition) -> list[str]:
    if isinstance(condition, Always):
        return []
    if isinstance(condition, RandomData):
        return [f"This is random differential privacy, not differential privacy: it holds {condition}."]
    if isinstance(condition, BoundedAdversary):
        return [f"This is computational differential privacy: it holds {condition}."]
    return [f"It holds {condition}."]


def _coupled_sentences(bound: Bound, unit: Unit, condition: Condition) -> list[str]:
    priv = unit.priv if isinstance(unit, Coupled) else f"the data of {unit.noun}"
    alt = unit.alt if isinstance(unit, Coupled) else "the table without them"
    first = (
        f"What is published tells about {priv} only within limits more than could be told from {alt}: {_loss(bound)}, "
        f"compared with an imitation made from {alt} alone."
    )
    second = "This is not differential privacy: " + (
        f"it holds {condition}."
        if not isinstance(condition, Always)
        else "it protects only what is named here."
    )
    return [first, second, "Two such releases together have no guarantee, unless their theorem says so."]


def _factor(epsilon: float) -> str:
    """e^epsilon, rounded up; as a power where it is beyond the floats."""
    return _up(math.exp(epsilon)) if epsilon <= 700 else f"e^{_up(epsilon)}"


def _percent(value: float) -> str:
    """A share, rounded up to three significant digits."""
    return f"{_round_up(100 * value)}%"


def _up(value: float) -> str:
    return _round_up(value)


def _round_up(value: float) -> str:
    if value <= 0 or math.isinf(value):
        return f"{value:g}"
    digits = 2 - math.floor(math.log10(value))
    scaled = math.ceil(round(value * 10.0**digits, 6))
    if digits <= 0:
        return f"{scaled * 10.0**-digits:.3g}"
    return f"{scaled / 10.0**digits:.{digits}f}".rstrip("0").rstrip(".")
