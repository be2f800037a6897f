"""The answer of an audit: the finding, its confidence, and the limits of the audit."""

from __future__ import annotations

import math
from dataclasses import asdict, field
from typing import Any

import numpy as np

from tacit.audit.betting import FIXED, LEADER, STAKE
from tacit.audit.black_box import Course, PairRecord
from tacit.audit.claimed import AuditedClaim
from tacit.audit.predictors import Levels, promise
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Approximate, Concentrated, GaussianDP

POWER = 0.8
Z_POWER = 0.8416
"""The 80% quantile of a normal distribution."""
MOST_POINTS = 400
BARS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFound:
    """The event that distinguishes the neighbours best in the outputs so far, in words and with counts."""

    words: str
    first: str
    second: str
    """The two inputs, as text."""
    in_first: int
    of_first: int
    in_second: int
    of_second: int

    def sentence(self) -> str:
        """The event and its frequencies."""
        return (
            f"{self.words}: {self.in_second:,} of {self.of_second:,} outputs on {self.second}, "
            f"{self.in_first:,} of {self.of_first:,} on {self.first}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The breaches that an audit of this size would find, and those that it would miss."""

    least_probability: float
    """An event that one neighbour never gives is found with 80% power if the other gives it at least this often."""
    caught: float
    """The smallest true value of the claim's parameter that is caught with 80% power, in the most telling mechanism."""
    telling: str
    """That mechanism."""
    outputs_needed: int
    """The number of outputs after which a true value one quarter above the claim is caught with 80% power, in
    that mechanism."""

    def sentences(self, parameter: str) -> list[str]:
        """The limits of this audit, in sentences."""
        said = [
            f"events that one neighbour gives with a probability below {self.least_probability:.2g}",
            f"a true {parameter or 'curve'} below {self.caught:.3g}, even in the most telling mechanism"
            f" ({self.telling}), with 80% power",
            "neighbours that are not in its list, and any dependence between separate calls",
        ]
        if self.outputs_needed:
            said.append(
                f"a true {parameter} one quarter above the claim needs about {self.outputs_needed:,} outputs,"
                " more in a mechanism that tells less"
            )
        return said


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismAudit:
    """The answer of the black box. A claim that was not rejected is not thereby confirmed."""

    claim: AuditedClaim
    relation: str
    level: float
    rejected: bool
    outputs: int
    rejected_after: int | None
    lower: float
    """The mechanism's true parameter is above this number, with confidence 1 - level, at every moment of the audit."""
    wealth: float
    ended: str
    seconds: float
    event: EventFound | None
    reach: Reach
    notes: tuple[str, ...] = ()
    path: tuple[tuple[int, float], ...] = ()
    """Outputs, and log10 of the wealth against the claim."""
    histograms: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The answer in sentences."""
        name, sure = self.claim.parameter, f"{1 - self.level:.6g}"
        if self.rejected:
            said = [
                f"rejected: the claim {self.claim.describe()} for {self.relation},"
                f" after {self.rejected_after:,} outputs (level {self.level:g})"
            ]
        else:
            said = [
                f"not rejected: the claim {self.claim.describe()} for {self.relation},"
                f" in {self.outputs:,} outputs (level {self.level:g}); this is no proof of the claim"
            ]
        if name:
            said.append(f"{name} is above {self.lower:.4g} with confidence {sure}, valid at any time")
        if self.event is not None:
            said.append(f"the event that tells most: {self.event.sentence()}")
        said += list(self.notes)
        said.append("the audit could not have seen: " + "; ".join(self.reach.sentences(name)))
        return said

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "claim": self.claim.describe(),
            "parameter": self.claim.parameter,
            "claimed": None if not self.claim.parameter else self.claim.value,
            "neighbours": self.relation,
            "rejected": self.rejected,
            "level": self.level,
            "outputs": self.outputs,
            "rejected_after": self.rejected_after,
            "lower": self.lower,
            "wealth": self.wealth,
            "event": None if self.event is None else asdict(self.event),
            "could_not_see": {**asdict(self.reach), "sentences": self.reach.sentences(self.claim.parameter)},
            "notes": list(self.notes),
            "ended": self.ended,
            "seconds": self.seconds,
        }


def answer_of(course: Course, notes: tuple[str, ...] = ()) -> MechanismAudit:
    """The answer of an audit that ended."""
    wealth = course.wealth
    rejected = wealth.crossed is not None
    path = wealth.path
    if len(path) > MOST_POINTS:
        path = [path[int(i)] for i in np.linspace(0, len(path) - 1, MOST_POINTS)]
    best, found = _event(course)
    return MechanismAudit(
        claim=course.claim,
        relation=course.neighbours.relation,
        level=course.level,
        rejected=rejected,
        outputs=course.outputs,
        rejected_after=wealth.crossed,
        lower=wealth.lower(course.needed),
        wealth=float(np.exp(min(700.0, wealth.value()[wealth.main]))),
        ended=course.ended,
        seconds=course.seconds,
        event=found,
        reach=reach_of(
            course.claim, max(len(r.bits) for r in course.records), course.level, wealth.strategies
        ),
        notes=(*_odd(course), *notes),
        path=tuple((n, v / math.log(10)) for n, v in path),
        histograms={} if best is None else _histograms(course, best),
    )


def _odd(course: Course) -> list[str]:
    """Runs that raised or gave no answer, by kind and by neighbour."""
    counts: dict[str, list[int]] = {}
    for record in course.records:
        for (structure, _), bit in zip(record.outputs, record.bits, strict=True):
            if structure.startswith(("raised ", "no answer: ")):
                counts.setdefault(structure, [0, 0])[bit] += 1
    return [
        f"{what} in {first:,} runs on the first inputs and {second:,} on the second; this is part of the output"
        for what, (first, second) in sorted(counts.items())
    ]


def _event(course: Course) -> tuple[int | None, EventFound | None]:
    """The simple event (one column, or a set of whole outputs) that would have gained most against the claim."""
    q = 1 / (1 + math.exp(-course.claim.value)) if course.claim.pure else 0.5
    best: tuple[float, int, Levels] | None = None
    for i, record in enumerate(course.records):
        for name in ("table of outputs", "one column"):
            levels = record.levels.get(name)
            if levels is None:
                continue
            gain = float(np.max(promise(levels, np.array([q, 0.5])) * (1.0, 1e-3)))
            if best is None or gain > best[0]:
                best = gain, i, levels
    if best is None or course.encoder is None or best[0] <= 0:
        return None, None
    _, at, levels = best
    record = course.records[at]
    assert record.columns is not None
    place = levels.place(record.columns, record.outputs)
    bits = np.array(record.bits)
    ones = np.bincount(place[bits == 1], minlength=len(levels.ones)).astype(float)
    zeros = np.bincount(place[bits == 0], minlength=len(levels.zeros)).astype(float)
    grown = math.exp(min(300.0, course.claim.value)) if course.claim.pure else 1.0
    choices: list[tuple[float, int, bool]] = []
    for cut in range(1, len(ones)):
        choices.append((_strength(ones[cut:].sum(), zeros[cut:].sum(), grown), cut, True))
        choices.append((_strength(zeros[:cut].sum(), ones[:cut].sum(), grown), cut - 1, False))
    if not choices:
        return at, None
    _, cut, up = max(choices)
    inside = place >= cut if up else place <= cut
    a, b = (_short(x) for x in course.neighbours.pairs[at])
    return at, EventFound(
        words=levels.words(cut, up),
        first=a,
        second=b,
        in_first=int((inside & (bits == 0)).sum()),
        of_first=int((bits == 0).sum()),
        in_second=int((inside & (bits == 1)).sum()),
        of_second=int((bits == 1).sum()),
    )


def _strength(mine: float, other: float, grown: float) -> float:
    return (mine - grown * other) / math.sqrt(mine + grown**2 * other + 1)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _histograms(course: Course, at: int) -> dict[str, Any]:
    """Two histograms of one projection of the outputs, on the most informative pair."""
    record: PairRecord = course.records[at]
    levels = record.levels.get("one column")
    if levels is None or record.columns is None:
        return {}
    scores = levels.score(record.columns, record.outputs)
    bits = np.array(record.bits)
    finite = scores[np.isfinite(scores)]
    if finite.size < 2:
        return {}
    low, high = np.quantile(finite, [0.01, 0.99])
    if not low < high:
        low, high = float(finite.min()) - 0.5, float(finite.max()) + 0.5
    edges = np.linspace(low, high, BARS + 1)
    clipped = np.clip(np.nan_to_num(scores, neginf=low, posinf=high), low, high)
    of = levels.words(len(levels.ones) // 2, True)
    backwards = " is below " in of or " is at least " in of
    shown = (-edges[::-1] if backwards else edges).tolist()

    def bars(side: int) -> list[int]:
        counts: list[int] = np.histogram(clipped[bits == side], edges)[0].tolist()
        return counts[::-1] if backwards else counts

    a, b = (_short(x) for x in course.neighbours.pairs[at])
    return {
        "of": of.rpartition(" is ")[0],
        "edges": shown,
        "first": bars(0),
        "second": bars(1),
        "inputs": [a, b],
    }


# What was in reach.


def reach_of(claim: AuditedClaim, outputs: int, level: float, strategies: int) -> Reach:
    """The sizes of breaches that an audit of this many outputs of one pair of neighbours would have caught with
    80% power.

    Computes the gain of a bettor who learns one event's frequencies as it goes, and shares the wealth with
    other strategies. It is a guide to power; no error probability rests on it.
    """
    share = min(LEADER, (1 - LEADER) / strategies) * (1 - FIXED if claim.pure else 1.0)
    needed = math.log(1 / level) + math.log(1 / share)
    hits = _hits(claim, needed)
    half = max(1.0, outputs / 2)
    least = min(1.0, (hits + Z_POWER * math.sqrt(hits)) / half)
    telling = "randomised response" if not _gaussian(claim) else "Gaussian noise"
    return Reach(
        least_probability=least,
        caught=_caught(claim, outputs, needed),
        telling=telling,
        outputs_needed=_needed(claim, needed) if claim.parameter and claim.value > 0 else 0,
    )


def _gaussian(claim: AuditedClaim) -> bool:
    return isinstance(claim.bound, GaussianDP | Concentrated)


def _hits(claim: AuditedClaim, needed: float) -> int:
    """Occurrences of an event that only one side gives, until the wealth is enough, with learning."""
    if claim.pure:
        q = 1 / (1 + math.exp(-claim.value))
        for k in range(1, 100_000):
            if -k * math.log(q) - math.log(k + 1) >= needed:
                return k
        return 100_000
    epsilon = max(claim.epsilons())
    return math.ceil(1.5 * needed / math.log1p(STAKE / (math.exp(epsilon) + 1))) + 4


def _moments(claim: AuditedClaim, value: float) -> tuple[float, float]:
    """Mean and variance of the gain of one output (or pair) if the true parameter has this value."""
    if claim.pure:
        p, q = 1 / (1 + math.exp(-value)), 1 / (1 + math.exp(-claim.value))
        right, wrong = math.log(p / q), math.log((1 - p) / (1 - q)) if p < 1 else 0.0
        mean = p * right + (1 - p) * wrong
        return mean, p * right**2 + (1 - p) * wrong**2 - mean**2
    if isinstance(claim.bound, Approximate):
        epsilon, delta = claim.value, float(claim.bound.delta)
        p = delta + (1 - delta) / (1 + math.exp(-value))
        r = (1 - delta) * (1 - 1 / (1 + math.exp(-value)))
    else:
        mu = value if isinstance(claim.bound, GaussianDP) else math.sqrt(2 * value)
        if not _gaussian(claim):
            return 0.0, 1.0
        epsilon, delta = 0.0, float(claim.bound.delta_at(0.0))
        p = 0.5 * math.erfc(-mu / 2 / math.sqrt(2))
        r = 1 - p
    grown = math.exp(epsilon)
    excess = p - grown * r - delta
    spread = p * (1 - p) + grown**2 * r * (1 - r) + 1e-12
    if excess <= 0:
        return 0.0, 1.0
    stake = min(excess / spread, STAKE / (grown + delta))
    return stake * excess - stake**2 * spread / 2, stake**2 * spread


def _enough(claim: AuditedClaim, value: float, bets: float, needed: float) -> bool:
    mean, variance = _moments(claim, value)
    learning = 0.5 * math.log(max(bets, 2.0))
    return bets * mean - Z_POWER * math.sqrt(bets * variance) >= needed + learning


def _caught(claim: AuditedClaim, outputs: int, needed: float) -> float:
    if not claim.parameter:
        return math.nan
    bets = outputs if claim.pure else outputs / 2
    low, high = claim.value, max(1.0, 2 * claim.value)
    while not _enough(claim, high, bets, needed):
        low, high = high, 2 * high
        if high > 200:
            return math.inf
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if _enough(claim, middle, bets, needed) else (middle, high)
    return high


def _needed(claim: AuditedClaim, needed: float) -> int:
    low, high = 1.0, 2.0
    value = 1.25 * claim.value
    while not _enough(claim, value, high, needed):
        high *= 2
        if high > 1e12:
            return 0
    low = high / 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _enough(claim, value, middle, needed) else (middle, high)
    return int(high) * (1 if claim.pure else 2)
