"""Membership from published frequencies: was somebody in the study? (Homer et al. 2008; Sankararaman et al. 2009.)

A study publishes, for each of m bits, the share f_j of its n people who have it. The attacker has the bits x of one
person and the shares p_j of the population. Tests, large for members:

    homer               Σ |x_j - p_j| - |x_j - f_j|
    likelihood ratio    Σ x_j ln(f_j / p_j) + (1 - x_j) ln((1 - f_j) / (1 - p_j))
    correlation         Σ (x_j - p_j)(f_j - p_j) / (p_j (1 - p_j) / n + noise_std²)

With exact frequencies the tests tell members from others once m is well above n: their means differ by about √(m/n)
standard deviations. The correlation is the test for frequencies with noise of known size. Under epsilon-DP for one
replaced person, a member and somebody else are told apart with probability at most e^ε / (1 + e^ε), whatever the test;
the area under the curve is that probability.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.attacks.finding import Finding
from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.checks import non_negative, probability, whole

if TYPE_CHECKING:
    import numpy.typing as npt

    from tacit.exact.arrays import Floats


__all__ = ["TESTS", "area_under_curve", "membership", "membership_scores"]

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

    Published shares outside of [1/2n, 1 - 1/2n] are moved to its ends where a logarithm is taken; `noise_std` is that
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
    if not a.size or not b.size:
        raise InvalidParameter(parameter="members", value=a.size, must="be at least one, and so the others")
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
    """Who was in the study: everybody whose score is too large for somebody who was not.

    For an outsider the score is a sum of independent terms with known mean and variance; the threshold is the normal
    quantile of `false_alarms`. Guessing alone at the same rate of false alarms finds that share of the members.
    """
    import numpy as np
    from scipy.special import ndtri

    alarms = probability("false_alarms", false_alarms)
    if not 0 < alarms < 1:
        raise InvalidParameter(parameter="false_alarms", value=alarms, must="lie strictly between 0 and 1")
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
    """How much each bit adds to the score."""
    import numpy as np

    f, p = np.asarray(frequencies, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if test == "homer":
        return np.asarray(2 * (np.clip(f, 0.0, 1.0) - p), dtype=np.float64)
    if test == "likelihood ratio":
        inside = np.clip(f, 1 / (2 * size), 1 - 1 / (2 * size))
        return np.asarray(np.log(inside / p) - np.log((1 - inside) / (1 - p)), dtype=np.float64)
    return np.asarray((f - p) / (p * (1 - p) / size + noise_std**2), dtype=np.float64)
