"""Plain sentences for a disclosure officer: the protected unit, an adversary's gain, and the conditions."""

from __future__ import annotations

import math
from functools import lru_cache

from tacit.guarantees import meaning
from tacit.guarantees.bounds import Approximate, Bound, Pointwise
from tacit.guarantees.conditions import SEEN_BEFORE, Always, BoundedAdversary, Condition, Priors, RandomData
from tacit.guarantees.units import Coupled, Neighbours, Unit

_READING_DELTA = 1e-6

NO_PROTECTION = 0.99
"""From this best guess on, where a coin is right half of the time, the text says that a promise protects nobody."""

_NOBODY = (
    "A promise this weak protects nobody: it allows that a reader who knows the rest is right about one person in "
    "99 of 100 cases or more."
)


_FITTED = "what bounds, keys and bins reveal that were fitted to the data is not counted in it"


def explain(bound: Bound, unit: Unit, condition: Condition, declared: tuple[str, ...] = ()) -> str:
    """Three sentences, and one more each for a condition and for declarations; numbers rounded against us."""
    try:
        sentences = _kept_sentences(bound, unit, condition)
    except TypeError:  # a bound of somebody else's that has no hash
        sentences = tuple(_sentences(bound, unit, condition))
    looked = [d for d in declared if d in SEEN_BEFORE]
    rest = [d for d in declared if d not in SEEN_BEFORE]
    said = [f"It rests on what was declared and cannot be checked: {'; '.join(rest)}."] if rest else []
    known = [f"Against it stands what the ledger knows: {'; '.join(looked)}; {_FITTED}."] if looked else []
    return " ".join([*sentences, *said, *known])


@lru_cache(maxsize=128)
def _kept_sentences(bound: Bound, unit: Unit, condition: Condition) -> tuple[str, ...]:
    """Made once: a hundred releases of one price say the same, and a curve is read several times for it."""
    return tuple(_sentences(bound, unit, condition))


def _sentences(bound: Bound, unit: Unit, condition: Condition) -> list[str]:
    if isinstance(condition, Priors) or isinstance(unit, Coupled):
        return _coupled_sentences(bound, unit, condition)
    change = (
        "had been replaced by any other"
        if unit.neighbours is Neighbours.REPLACE_ONE
        else "had been added or left out"
    )
    if isinstance(condition, RandomData):
        return _random_sentences(bound, unit, condition, change)
    guess = meaning.reading_of_best_guess(bound, unit, condition)
    power = meaning.reading_of_power(bound, unit, condition, 0.05)
    weak = guess >= NO_PROTECTION
    limits = "might change in any way" if weak else "would change only within limits"
    what = f"What is published {limits} if the data of {unit.noun} {change}"
    first = (
        f"{what}: {_loss(bound) if isinstance(condition, Always) else _told_loss(bound, unit, condition)}."
    )
    who = "Somebody" if isinstance(condition, Always) else "Somebody within that assumption"
    second = (
        f"{who} who knows everything else, and must tell two versions of those data apart, is right at most "
        f"{_percent(guess)} of the time where a coin is right 50%; a test that raises a false alarm in 5% of "
        f"cases finds the truth in at most {_percent(power)}."
    )
    nobody = [_NOBODY] if weak else []
    return [first, second, *nobody, _belief(bound, unit, condition), *_condition(condition)]


def _random_sentences(bound: Bound, unit: Unit, condition: RandomData, change: str) -> list[str]:
    weak = meaning.best_guess(bound) >= NO_PROTECTION
    limits = "might change in any way" if weak else "would, for most data, change only within limits"
    first = f"What is published {limits} if the data of {unit.noun} {change}: {_loss(bound)}."
    second = f"This is random differential privacy, not differential privacy: it holds {condition}."
    third = (
        "It promises nothing to a given person: the data on which it fails may be those of whoever stands out, an "
        "outlier or the only inhabitant of a cell, and from what is published about them anything may be guessed, "
        "believed or done."
    )
    fourth = (
        "Rows that are copies, relatives or neighbours of each other, or that were selected by what they say, are not "
        "independent draws, and then nothing of this holds."
    )
    return [first, *([_NOBODY] if weak else []), second, third, fourth]


def _told_loss(bound: Bound, unit: Unit, condition: Condition) -> str:
    """The loss as far as bounded adversaries can tell: events that they can recognise, and their advantage."""
    reached = meaning.reading_of_incentive(bound, unit, condition, _level(bound))
    factor = _factor(bound._epsilon(_level(bound)))
    if reached.addend >= 1:
        return f"no useful limit holds for what they can recognise ({bound})"
    return (
        f"as far as anybody within the assumption below can tell, no event becomes more than {factor} times as "
        f"likely, give or take a probability of {_small(reached.addend)} ({bound})"
    )


def _level(bound: Bound) -> float:
    """The delta at which a curve is read: 0 where that is finite, else a small one, or the smallest that holds."""
    if math.isfinite(bound._epsilon(0.0)):
        return 0.0
    if isinstance(bound, Approximate):
        return float(bound.delta)
    return max(_READING_DELTA, bound._delta(math.inf))


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


def _belief(bound: Bound, unit: Unit, condition: Condition) -> str:
    pure = math.isfinite(bound._epsilon(0.0))
    if pure and isinstance(condition, Always):
        shift = meaning.reading_of_posterior_shift(bound, unit, condition)
        return (
            f"Whatever somebody believed before, what they believe afterwards differs by at most "
            f"{_percent(shift)} (in probability, of any statement) from what they would believe had those data "
            f"not been used."
        )
    level = (
        _level(bound) if not isinstance(condition, Always) else max(_READING_DELTA, bound._delta(math.inf))
    )
    reached = meaning.reading_of_incentive(bound, unit, condition, level)
    kind = "of whatever kind" if isinstance(condition, Always) else "of whatever kind they can do"
    return (
        f"Taking part multiplies the expected harm from the publication, {kind}, by at most "
        f"{_factor(bound.epsilon_at(level))}, plus {_small(reached.addend)} of the worst harm imaginable."
    )


def _condition(condition: Condition) -> list[str]:
    if isinstance(condition, BoundedAdversary):
        return [
            f"This is computational differential privacy: it holds {condition}.",
            "What somebody without such limits could come to believe is not limited.",
        ]
    return []


def _coupled_sentences(bound: Bound, unit: Unit, condition: Condition) -> list[str]:
    priv = unit.priv if isinstance(unit, Coupled) else f"the data of {unit.noun}"
    alt = unit.alt if isinstance(unit, Coupled) else "the table without them"
    weak = meaning.best_guess(bound) >= NO_PROTECTION
    tells = f"may tell about {priv} much" if weak else f"tells about {priv} only within limits"
    first = (
        f"What is published {tells} more than could be told from {alt}: {_loss(bound)}, "
        f"compared with an imitation made from {alt} alone."
    )
    second = "This is not differential privacy: " + (
        f"it holds {condition}."
        if not isinstance(condition, Always)
        else "it protects only what is named here."
    )
    last = "Two such releases together have no guarantee, unless their theorem says so."
    return [first, *([_NOBODY] if weak else []), second, last]


def _factor(epsilon: float) -> str:
    """e^epsilon, rounded up; as a power where it is beyond the floats."""
    return _up(math.exp(epsilon)) if epsilon <= 700 else f"e^{_up(epsilon)}"


def _small(value: float) -> str:
    """A probability, rounded up to two significant digits."""
    text = f"{value:.1e}"
    if float(text) < value:
        text = f"{float(text) + 10.0 ** (math.floor(math.log10(value)) - 1):.1e}"
    return f"{float(text):.2g}"


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
