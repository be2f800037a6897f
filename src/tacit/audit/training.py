"""One training run with canaries: a lower bound for the privacy loss of a model's training (theorem `audit-canaries`).

Each canary, an odd training example, is included by a fair coin. The trained model guesses, for the canaries on
which it is surest, whether they were in. Too many right guesses reject a claim. One run is enough, because the
canaries are many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tacit.audit.black_box import system_coins
from tacit.audit.claimed import AuditedClaim, claim_of
from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray, Floats, Integers
from tacit.exact.checks import probability, whole
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Approximate, Bound, Pure

MOST_GUESSES = 2_000
SLACK = 1e-9
"""Above the rounding errors of the dual's value."""


def canary_tail(
    bound: Bound, *, canaries: int, guesses: int, right: int, epsilons: Sequence[float] = ()
) -> float:
    """An upper bound on P(at least `right` of `guesses` guesses are right) if training has this bound.

    The largest tail over all distributions that the theorem allows. The value is that of a feasible point of
    the dual linear program, so no solver is trusted.
    """
    m, r = whole("canaries", canaries), whole("guesses", guesses)
    c = whole("right", right, least=0)
    if not c <= r <= m:
        raise InvalidParameter(
            parameter="right", value=right, must="be at most guesses, and these at most canaries"
        )
    if r > MOST_GUESSES:
        raise InvalidParameter(parameter="guesses", value=guesses, must=f"be at most {MOST_GUESSES}")
    if c == 0:
        return 1.0
    if isinstance(bound, Pure):
        from scipy.special import betainc

        q = 1 / (1 + math.exp(-float(bound.epsilon)))
        return min(1.0, float(betainc(c, r - c + 1, q)) * (1 + SLACK))
    chosen = tuple(epsilons) or _epsilons(bound)
    deltas = [float(bound.delta_at(e)) for e in chosen]
    return min(1.0, _dual(m, r, c, chosen, deltas) + SLACK)


def _epsilons(bound: Bound) -> tuple[float, ...]:
    if isinstance(bound, Approximate):
        return (float(bound.epsilon) / 2, float(bound.epsilon))
    top = float(bound.delta_at(0.0))
    found = {
        float(bound.epsilon_at(top * share))
        for share in (0.7, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6)
        if top > 0
    }
    return tuple(sorted(e for e in found if e < 50))


def _dual(m: int, r: int, c: int, epsilons: Sequence[float], deltas: Sequence[float]) -> float:
    """Solve the program, then rebuild a feasible point of its dual: weak duality makes its value a bound."""
    from scipy.optimize import linprog
    from scipy.sparse import bmat, diags, eye, lil_matrix

    k = len(epsilons)
    goal = np.zeros(r + 1 + k * r)
    goal[c : r + 1] = -1.0
    blocks = []
    for i, e in enumerate(epsilons):
        odds = math.exp(e)
        up = diags([-odds * (r - np.arange(r)), np.arange(1, r + 1)], [0, 1], shape=(r, r + 1))
        blocks.append([up, *[(-eye(r) if j == i else None) for j in range(k)]])
    sums = lil_matrix((k, r + 1 + k * r))
    for i in range(k):
        sums[i, r + 1 + i * r : r + 1 + (i + 1) * r] = 1.0
    left = bmat([[bmat(blocks, format="csr")], [sums]], format="csr")
    right = np.r_[np.zeros(k * r), [m * d for d in deltas]]
    total = lil_matrix((1, goal.size))
    total[0, : r + 1] = 1.0
    solved = linprog(
        goal, A_ub=left, b_ub=right, A_eq=total.tocsr(), b_eq=[1.0], bounds=(0, None), method="highs"
    )
    if solved.ineqlin is None or solved.status != 0:
        return 1.0
    y = np.maximum(0.0, -np.asarray(solved.ineqlin.marginals)[: k * r]).reshape(k, r)
    value = np.zeros(r + 1)
    value[c:] = 1.0
    for i, e in enumerate(epsilons):
        value[1:] -= np.arange(1, r + 1) * y[i]
        value[:-1] += math.exp(e) * (r - np.arange(r)) * y[i]
    return float(value.max() + sum(m * d * float(y[i].max(initial=0.0)) for i, d in enumerate(deltas)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAudit:
    """The answer of one training run with canaries."""

    claim: AuditedClaim
    level: float
    canaries: int
    guesses: int
    right: int
    probability: float
    """The largest probability of this many right guesses if the claim is true."""
    rejected: bool
    lower: float

    def lines(self) -> list[str]:
        """The answer in sentences."""
        verdict = "rejected" if self.rejected else "not rejected"
        name = self.claim.parameter
        most = _most(self.claim, self.canaries, self.guesses, self.level)
        return [
            f"{verdict}: the claim {self.claim.describe()} for one training example, added or removed"
            f" (level {self.level:g}); {self.right} of {self.guesses} guesses are right",
            *([f"{name} is above {self.lower:.4g} with confidence {1 - self.level:g}"] if name else []),
            f"the audit could not have seen: a true {name or 'curve'} that even {self.guesses} right guesses of"
            f" {self.guesses} do not reject (above {most:.3g}), training that reveals less about these canaries"
            " than about others, and other attacks than these guesses",
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        plain = {k: v for k, v in asdict(self).items() if k != "claim"}
        return {"claim": self.claim.describe(), **plain, "sentences": self.lines()}


def _most(claim: AuditedClaim, m: int, r: int, level: float) -> float:
    """The largest claim of the ladder that a perfect score would reject."""
    last = 0.0
    for value in claim.ladder():
        if canary_tail(claim.at(value), canaries=m, guesses=r, right=r) > level:
            break
        last = value
    return last


def guess_audit(
    scores: Any, included: Any, *, claim: Any, guesses: int, level: float = 0.05
) -> TrainingAudit:
    """An audit from scores of canaries (larger means "in") and their coins. `guesses` must be fixed before the run."""
    wanted = claim_of(claim)
    score, coin = np.asarray(scores, dtype=np.float64), np.asarray(included, dtype=np.int64)
    if (
        score.ndim != 1
        or score.shape != coin.shape
        or not np.isin(coin, (0, 1)).all()
        or np.isnan(score).any()
    ):
        raise InvalidParameter(
            parameter="scores", value=score.shape, must="be one number a canary, with a coin of 0 or 1"
        )
    m, r = score.size, whole("guesses", guesses)
    level = probability("level", level, below_one=True)
    order = np.argsort(score, kind="stable")
    low, high = order[: r // 2], order[m - (r - r // 2) :]
    right = int((coin[low] == 0).sum() + (coin[high] == 1).sum())
    last, broken = 0.0, False
    found = math.nan
    for value in wanted.ladder():
        tail = canary_tail(wanted.at(value), canaries=m, guesses=r, right=right)
        if not wanted.parameter or abs(value - wanted.value) < 1e-12 * max(1.0, abs(value)):
            found = tail
        broken = broken or tail > level
        if broken and not math.isnan(found):
            break
        last = last if broken else value
    return TrainingAudit(
        claim=wanted, level=level, canaries=m, guesses=r, right=right, probability=found,
        rejected=found <= level, lower=0.0 if math.isnan(last) else last,
    )  # fmt: skip


def training(
    fit: Callable[[AnyArray, AnyArray], Any],
    rows: Any,
    targets: Any,
    *,
    canaries: tuple[Any, Any],
    claim: Any,
    guesses: int | None = None,
    level: float = 0.05,
    coins: Callable[[int], Integers] = system_coins,
) -> TrainingAudit:
    """Train once with canaries and guess. `fit(rows, targets)` returns a model with scikit-learn's methods.

    `canaries` are (rows, targets) that differ from all other rows: far away, or with wrong targets. Each is one unit,
    added or not. By default a quarter of the canaries is guessed.
    """
    x, y = np.asarray(rows, dtype=np.float64), np.asarray(targets)
    cx, cy = np.asarray(canaries[0], dtype=np.float64), np.asarray(canaries[1])
    if cx.ndim != 2 or x.ndim != 2 or cx.shape[1] != x.shape[1] or len(cx) != len(cy):
        raise InvalidParameter(
            parameter="canaries", value=cx.shape, must="be rows with the columns of the data, and targets"
        )
    coin = coins(len(cx))
    chosen = coin == 1
    model = fit(np.vstack([x, cx[chosen]]), np.concatenate([y, cy[chosen]]))
    wanted = max(2, len(cx) // 4) if guesses is None else guesses
    return guess_audit(_scores(model, cx, cy), coin, claim=claim, guesses=wanted, level=level)


def _scores(model: Any, rows: Floats, targets: AnyArray) -> Floats:
    """The model's score of each canary: a larger one suggests that it was in the training rows."""
    classes = getattr(model, "classes_", None)
    if classes is not None and hasattr(model, "predict_proba"):
        shares = np.asarray(model.predict_proba(rows))
        place = np.searchsorted(classes, targets)
        return np.asarray(shares[np.arange(len(rows)), np.clip(place, 0, len(classes) - 1)], dtype=np.float64)
    if classes is not None and hasattr(model, "decision_function"):
        raw = np.asarray(model.decision_function(rows))
        if raw.ndim == 1:
            return np.asarray(np.where(targets == classes[-1], raw, -raw), dtype=np.float64)
        return np.asarray(raw[np.arange(len(rows)), np.searchsorted(classes, targets)], dtype=np.float64)
    said = np.asarray(model.predict(rows))
    if classes is not None:
        return np.asarray(said == targets, dtype=np.float64)
    return -np.abs(np.asarray(said, dtype=np.float64) - np.asarray(targets, dtype=np.float64))
