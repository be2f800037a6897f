"""The last digits of Laplace noise in floating point reveal the answer (Mironov 2012).

A textbook sampler computes y = c + s b ln(u) in doubles, with u a multiple of 2^-53 and s = ±1. Only some
doubles are possible outputs, and c decides which ones. If c = 0 cannot give the published y, the answer was 1,
for noise of any size. The attack tries the few u that could have given y. Noise on integers or on a grid that
does not depend on the data has no such holes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.attacks.finding import Draws, Finding
from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.exact.checks import non_negative, positive, probability, refuse_if, whole
from tacit.exact.data_classes import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

    from tacit.exact.arrays import Booleans, Floats

# Membership from published frequencies: was somebody in the study? (Homer et al. 2008; Sankararaman et al. 2009.)
#
# A study publishes, for each of m bits, the share f_j of its n people who have it. The attacker has the bits x of one
# person and the shares p_j of the population. Tests, large for members:
#
#     homer               Σ |x_j - p_j| - |x_j - f_j|
#     likelihood ratio    Σ x_j ln(f_j / p_j) + (1 - x_j) ln((1 - f_j) / (1 - p_j))
#     correlation         Σ (x_j - p_j)(f_j - p_j) / (p_j (1 - p_j) / n + noise_std²)
#
# With exact frequencies the tests tell members from others once m is well above n: their means differ by about √(m/n)
# standard deviations. The correlation is the test for frequencies with noise of known size. Under epsilon-DP for one
# replaced person, a member and somebody else are told apart with probability at most e^ε / (1 + e^ε), whatever the
# test; the area under the curve is that probability.

TESTS = ("correlation", "homer", "likelihood ratio")


def membership_scores(
    frequencies: npt.ArrayLike,
    reference: npt.ArrayLike,
    people: npt.ArrayLike,
    *,
    size: int,
    test: str = "likelihood ratio",
    noise_std: float = 0.0,
) -> Floats:
    """The test statistic of each person: a row of `people` is the bits of one.

    Published shares outside of [1/2n, 1 - 1/2n] are moved to its ends before a logarithm is taken; `noise_std` is that
    of a published share.
    """
    import numpy as np

    f = np.asarray(frequencies, dtype=np.float64)
    p = np.asarray(reference, dtype=np.float64)
    x = np.atleast_2d(np.asarray(people))
    n = whole("size", size)
    if f.ndim != 1 or p.shape != f.shape or x.shape[1:] != f.shape:
        raise InvalidParameter(
            parameter="people", value=x.shape, must="have one bit for each frequency, and so the reference"
        )
    if not (np.isfinite(f).all() and ((p > 0) & (p < 1)).all()):
        raise InvalidParameter(
            parameter="reference", value="shares", must="lie strictly between 0 and 1, frequencies be finite"
        )
    sigma = non_negative("noise_std", noise_std)
    if test == "homer":
        # x is 0 or 1, so that both distances are linear in it.
        shut = np.clip(f, 0.0, 1.0)
        return np.asarray(x @ (2 * (shut - p)) + np.sum(p - shut), dtype=np.float64)
    if test == "likelihood ratio":
        inside = np.clip(f, 1 / (2 * n), 1 - 1 / (2 * n))
        one, zero = np.log(inside / p), np.log((1 - inside) / (1 - p))
        return np.asarray(x @ (one - zero) + zero.sum(), dtype=np.float64)
    if test == "correlation":
        weight = (f - p) / (p * (1 - p) / n + sigma**2)
        return np.asarray(x @ weight - p @ weight, dtype=np.float64)
    raise UnknownName(what="test", name=test, known=TESTS)


def area_under_curve(members: npt.ArrayLike, others: npt.ArrayLike) -> float:
    """Pr[a member's score is above another's] + half the probability of a tie: the Mann-Whitney statistic."""
    import numpy as np

    a = np.sort(np.asarray(members, dtype=np.float64))
    b = np.asarray(others, dtype=np.float64)
    refuse_if(not a.size or not b.size, "members", a.size, "be at least one, and so the others")
    below = np.searchsorted(a, b, side="left")
    up_to = np.searchsorted(a, b, side="right")
    return float(1 - (below + up_to).sum() / (2 * a.size * b.size))


def membership(
    frequencies: npt.ArrayLike,
    reference: npt.ArrayLike,
    people: npt.ArrayLike,
    *,
    size: int,
    test: str = "likelihood ratio",
    noise_std: float = 0.0,
    false_alarms: float = 0.01,
) -> Finding:
    """The members of the study: everybody whose score is too large for a non-member.

    For an outsider the score is a sum of independent terms with known mean and variance; the threshold is the normal
    quantile of `false_alarms`. Guessing alone at the same rate of false alarms finds that share of the members.
    """
    import numpy as np
    from scipy.special import ndtri

    alarms = probability("false_alarms", false_alarms)
    refuse_if(not 0 < alarms < 1, "false_alarms", alarms, "lie strictly between 0 and 1")
    scores = membership_scores(frequencies, reference, people, size=size, test=test, noise_std=noise_std)
    # The score is linear in the bits: c + Σ x_j g_j. The two constants are read off two made-up people.
    m = int(np.size(reference))
    p = np.asarray(reference, dtype=np.float64)
    nobody = membership_scores(
        frequencies, reference, np.zeros((1, m)), size=size, test=test, noise_std=noise_std
    )[0]
    slopes = _slopes(frequencies, reference, size=size, test=test, noise_std=noise_std)
    mean = nobody + float(p @ slopes)
    spread = float(np.sqrt((p * (1 - p)) @ slopes**2))
    threshold = mean - float(ndtri(alarms)) * spread
    found = np.flatnonzero(scores > threshold)
    return Finding(
        attack="membership",
        people=int(scores.size),
        exposed=found.tolist(),
        learned=["member"] * int(found.size),
        guessing=alarms,
        alone="the share of false alarms that is allowed",
        details={
            "test": test,
            "frequencies": m,
            "size": size,
            "threshold": threshold,
            "scores": [float(s) for s in scores[:20]],
        },
    )


def _slopes(
    frequencies: npt.ArrayLike, reference: npt.ArrayLike, *, size: int, test: str, noise_std: float
) -> Floats:
    """The weight of each bit in the score."""
    import numpy as np

    f, p = np.asarray(frequencies, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if test == "homer":
        return np.asarray(2 * (np.clip(f, 0.0, 1.0) - p), dtype=np.float64)
    if test == "likelihood ratio":
        inside = np.clip(f, 1 / (2 * size), 1 - 1 / (2 * size))
        return np.asarray(np.log(inside / p) - np.log((1 - inside) / (1 - p)), dtype=np.float64)
    return np.asarray((f - p) / (p * (1 - p) / size + noise_std**2), dtype=np.float64)


# Notions of privacy that look right and fail: nothing useful satisfies Dalenius', and others protect nobody.
#
# All numbers here are exact. The examples are those of Groce 2014, 2.7.1 and of lecture 2.


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """An outsider's belief about Bob's secret, before and after a release that is not about him.

    `statement` is a set of worlds that the release makes likelier; the auxiliary information is "Bob has the secret if
    and only if the world is one of these", and `outcome` is the release after which belief moves most.
    """

    statement: tuple[Hashable, ...]
    outcome: Hashable
    before: Fraction
    after: Fraction


def dalenius(
    prior: Mapping[Hashable, Fraction], mechanism: Mapping[Hashable, Mapping[Hashable, Fraction]]
) -> Breach | None:
    """Auxiliary information with which a release violates Dalenius' definition; None if the release reveals nothing
    at all.

    The world is drawn from `prior`; Bob's secret is a fair coin that has nothing to do with it, and his row is not in
    the data. An attacker knows whether "secret = S" holds, for a statement S about the world. Alone, this bit
    reveals nothing about the secret. Then Pr[secret | that they agree, outcome] = Pr[S | outcome], which
    differs from Pr[S] for some S and outcome unless the outcome is independent of the world. So a release that
    satisfies the definition for every auxiliary information is useless.
    """
    if sum(prior.values()) != 1 or any(p < 0 for p in prior.values()) or set(prior) != set(mechanism):
        raise InvalidParameter(
            parameter="prior",
            value=len(prior),
            must="be probabilities of the worlds of the mechanism, with sum 1",
        )
    if any(sum(law.values()) != 1 or any(p < 0 for p in law.values()) for law in mechanism.values()):
        raise InvalidParameter(parameter="mechanism", value=len(mechanism), must="have a law for each world")
    best: Breach | None = None
    for outcome in {o for law in mechanism.values() for o in law}:
        likely = {w: prior[w] * mechanism[w].get(outcome, Fraction(0)) for w in prior}
        total = sum(likely.values(), Fraction(0))
        if not total:
            continue
        # The set of worlds that the outcome makes likelier moves the belief most.
        risen = tuple(w for w in prior if likely[w] / total > prior[w])
        before = sum((prior[w] for w in risen), Fraction(0))
        after = sum((likely[w] / total for w in risen), Fraction(0))
        if risen and (best is None or after - before > best.after - best.before):
            best = Breach(statement=risen, outcome=outcome, before=before, after=after)
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomRow:
    """The distance between the distributions with and without one person, for a release that publishes somebody's
    whole row.
    """

    total_variation: float
    kullback_leibler: float
    wasserstein: float
    published: float
    best_guess: float


def random_row(*, people: int, domain: int, mixed: float = 0.01, diameter: float = 1.0) -> RandomRow:
    """Publishes one row drawn at random; with probability `mixed` a uniform value of the domain instead.

    One person's row is replaced by a unique one. Then with q = (1 - mixed) / n and u = mixed / domain
    the two distributions differ in two points, q + u against u: total variation is q; the Kullback-Leibler
    divergence is
    q ln(1 + q/u); the Wasserstein distance is at most q times the diameter of the domain. All go to 0 with n, and the
    release is somebody's row with probability 1 - mixed. Anybody who sees the row knows its owner. The
    posterior for one of the two versions of the person is (q + u) / (q + 2u), which tends to 1 as the domain
    grows.
    """
    n, k = whole("people", people), whole("domain", domain, least=2)
    refuse_if(not 0 < mixed < 1, "mixed", mixed, "lie strictly between 0 and 1")
    q, u = (1 - mixed) / n, mixed / k
    return RandomRow(
        total_variation=q,
        kullback_leibler=q * math.log1p(q / u),
        wasserstein=q * positive("diameter", diameter),
        published=1 - mixed,
        best_guess=(q + u) / (q + 2 * u),
    )


def mean_loss(epsilons: Sequence[float]) -> tuple[float, float]:
    """The mean of people's privacy losses, and the chance that the worst protected person's bit is guessed.

    Publishing one person's bit by randomised response with epsilon = 20 and nobody else's has a mean loss of 20/n, as
    small as one likes, and reveals that bit with probability e^20 / (1 + e^20).
    An average over people protects nobody in
    particular.
    """
    if not epsilons or any(not (e >= 0 and math.isfinite(e)) for e in epsilons):
        raise InvalidParameter(
            parameter="epsilons", value=len(epsilons), must="be finite, at least 0, one a person"
        )
    worst = max(epsilons)
    return math.fsum(epsilons) / len(epsilons), 1 / (1 + math.exp(-worst))


GRID = 2.0**53
REACH = 24
"""The number of neighbours of the nearest u that the attack tries on either side. If further ones could lead
to y, y counts as possible.
"""


def textbook_laplace(answers: npt.ArrayLike, *, noise_scale: float, draws: Draws) -> Floats:
    """The sampler under attack: c + s b ln(u), each step rounded to a double."""
    import numpy as np

    c = np.asarray(answers, dtype=np.float64)
    u = draws.dyadic(*c.shape)
    sign = np.where(draws.bits(*c.shape) == 1, 1.0, -1.0)
    return np.asarray(c + sign * (noise_scale * np.log(u)), dtype=np.float64)


def possible(published: npt.ArrayLike, answer: float, *, noise_scale: float) -> Booleans:
    """Whether the textbook sampler could have published this number for that answer."""
    import numpy as np

    y = np.asarray(published, dtype=np.float64)
    b = positive("noise_scale", noise_scale)
    gap = y - answer
    sign = np.where(gap <= 0, 1.0, -1.0)  # ln u is negative
    u = np.exp(-np.abs(gap) / b)
    nearest = np.rint(u * GRID)
    wide = u * GRID * np.spacing(np.maximum(np.abs(y), abs(answer))) / b + 2 > REACH
    found = np.array(wide, dtype=np.bool_)
    for step in range(-REACH, REACH + 1):
        k = nearest + step
        inside = (k >= 1) & (k <= GRID)
        tried = np.clip(k, 1, GRID) / GRID
        found |= inside & (answer + sign * (b * np.log(tried)) == y)
    return found


def which_answer(published: npt.ArrayLike, candidates: Sequence[float], *, noise_scale: float) -> Finding:
    """The published numbers that only one of the candidates can have given."""
    import numpy as np

    y = np.atleast_1d(np.asarray(published, dtype=np.float64))
    if len(candidates) < 2:
        raise EmptyComposition(what="the list of candidates", hint="give at least two possible answers")
    refuse_if(not np.isfinite(y).all(), "published", "not finite", "be finite numbers")
    table = np.stack([possible(y, float(c), noise_scale=noise_scale) for c in candidates])
    exposed = np.flatnonzero(table.sum(axis=0) == 1)
    return Finding(
        attack="floating-point noise",
        people=int(y.size),
        exposed=exposed.tolist(),
        learned=[candidates[i] for i in table[:, exposed].argmax(axis=0).tolist()],
        guessing=1 / len(candidates),
        alone="one of the candidates at random",
        details={
            "noise_scale": noise_scale,
            "possible": {str(c): float(t.mean()) for c, t in zip(candidates, table, strict=True)},
        },
    )
