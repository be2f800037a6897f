"""Predictors guess which of two neighbours gave an output, and learn on past outputs only.

A predictor turns past outputs with their coins into *levels*. Levels partition all outputs, ordered by their evidence
for neighbour 1, and hold the numbers of past outputs of either neighbour. A model scores only past outputs
outside its fit, so that the counts of a level are honest about new outputs. Validity of an audit does not rest
on any of this, only its power does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tacit.audit.outputs import Encoder, Output
from tacit.exact.arrays import Floats, Integers
from tacit.exact.data_classes import dataclass

TAILS = (0.002, 0.005, 0.01, 0.02, 0.04, 0.07)
QUANTILES = np.array([*TAILS, *np.arange(0.1, 0.91, 0.05), *(1 - np.array(TAILS))[::-1]])
"""The cuts between levels: finer in the tails, since rare outputs distinguish best."""
FINE = np.array([*TAILS, *np.arange(0.01, 0.995, 0.01), *(1 - np.array(TAILS))[::-1]])
"""The same for events of one column, from which one cut is chosen."""
FOLDS = 5
FEW = 400
"""Below this many outputs a model is fitted FOLDS times, each time without a part; above it twice, without a half."""
MOST_FITTED = 20_000
"""Outputs that a model is fitted to, the latest; levels count all."""
APART = 2.2
"""Shares of neighbouring levels that differ by fewer standard errors become one level."""
RIDGE = 3.3
NEWTON = 12
BELIEF = 1.0
"""Outputs of each neighbour that a level is believed to have had before any was seen."""

Score = Callable[[Floats, Sequence[Output]], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """A partition of outputs in an order, with counts of past outputs: the last level speaks most for neighbour 1."""

    name: str
    score: Score
    edges: Floats
    level_of_bin: Integers
    ones: Floats
    zeros: Floats
    events: bool
    """True for fine bins, whose runs from one end are events; False for clearly separate levels."""
    words: Callable[[int, bool], str]
    """An event in words: all levels from this one on (True), or up to this one (False)."""

    def place(self, columns: Floats, outputs: Sequence[Output]) -> Integers:
        """The level of each output."""
        bins = np.searchsorted(self.edges, self.score(columns, outputs), side="left")
        return np.asarray(self.level_of_bin[bins])


def levelled(
    name: str,
    scores: Floats,
    bits: Integers,
    score: Score,
    words: Callable[[float, bool], str],
    *,
    events: bool = False,
) -> Levels:
    """Levels from honest scores of past outputs: quantiles, then neighbours pooled until the shares of 1 rise."""
    cuts = np.quantile(scores, np.unique(FINE) if events else QUANTILES, method="lower")
    distinct = np.unique(scores[:2000])
    edges = np.unique(cuts) if distinct.size > 40 else np.unique(np.r_[cuts, distinct])
    bins = np.searchsorted(edges, scores, side="left")
    ones: Floats = np.bincount(bins, weights=bits, minlength=edges.size + 1).astype(np.float64)
    zeros: Floats = np.bincount(bins, weights=1 - bits, minlength=edges.size + 1).astype(np.float64)
    level_of_bin = np.arange(edges.size + 1)
    if not events:
        level_of_bin, ones, zeros = _pooled(ones, zeros)

    def event(level: int, up: bool) -> str:
        inside = np.flatnonzero(level_of_bin >= level if up else level_of_bin <= level)
        if up:
            return words(float(edges[inside[0] - 1]) if inside[0] > 0 else -np.inf, True)
        return words(float(edges[inside[-1]]) if inside[-1] < edges.size else np.inf, False)

    return Levels(
        name=name,
        score=score,
        edges=edges,
        level_of_bin=level_of_bin,
        ones=ones,
        zeros=zeros,
        events=events,
        words=event,
    )


def _pooled(ones: Floats, zeros: Floats) -> tuple[Integers, Floats, Floats]:
    """Pools adjacent violators: bins in order become levels with clearly rising shares of ones."""
    pools: list[list[float]] = []
    for i in range(ones.size):
        pools.append([float(ones[i]), float(zeros[i]), i, i])
        while len(pools) > 1 and _share(pools[-1]) <= _share(pools[-2]):
            last = pools.pop()
            pools[-1] = [pools[-1][0] + last[0], pools[-1][1] + last[1], pools[-1][2], last[3]]
    while len(pools) > 2:
        apart = [_apart(a, b) for a, b in pairwise(pools)]
        at = int(np.argmin(apart))
        if apart[at] >= APART:
            break
        last = pools.pop(at + 1)
        pools[at] = [pools[at][0] + last[0], pools[at][1] + last[1], pools[at][2], last[3]]
    level = np.zeros(ones.size, dtype=np.int64)
    for at, pool in enumerate(pools):
        level[int(pool[2]) : int(pool[3]) + 1] = at
    return level, np.array([p[0] for p in pools]), np.array([p[1] for p in pools])


def _apart(a: Sequence[float], b: Sequence[float]) -> float:
    """Standard errors between the shares of two pools."""
    n, m = a[0] + a[1] + 1, b[0] + b[1] + 1
    both = (a[0] + b[0] + 1) / (n + m)
    return (_share(b) - _share(a)) / float(np.sqrt(both * (1 - both) * (1 / n + 1 / m)))


def _share(pool: Sequence[float]) -> float:
    return (pool[0] + 0.1) / (pool[0] + pool[1] + 0.2)


# The four predictors. Each returns None if it has nothing to say.


def table(encoder: Encoder, columns: Floats, outputs: Sequence[Output], bits: Integers) -> Levels | None:
    """Whole outputs that occur again: their frequencies for either neighbour.
    This finds an output that one side never gives.

    The honest score of a past output leaves that output out.
    """
    seen: dict[Output, list[int]] = {}
    for output, bit in zip(outputs, bits, strict=True):
        seen.setdefault(output, [0, 0])[bit] += 1
    if len(seen) > 0.8 * len(outputs) and len(outputs) > 20:
        return None
    honest = np.empty(len(outputs))
    for i, (output, bit) in enumerate(zip(outputs, bits, strict=True)):
        zeros, ones = seen[output]
        honest[i] = np.log((ones - (bit == 1) + 0.5) / (zeros - (bit == 0) + 0.5))
    kept = {o: float(np.log((ones + 0.5) / (zeros + 0.5))) for o, (zeros, ones) in seen.items()}

    def score(_: Floats, given: Sequence[Output]) -> Floats:
        return np.array([kept.get(o, 0.0) for o in given])

    def event_text(edge: float, up: bool) -> str:
        chosen = [o for o, odds in kept.items() if (odds > edge) == up]
        chosen.sort(key=lambda o: -abs(kept[o]))
        return (
            "the output is "
            + " or ".join(_output_text(o) for o in chosen[:3])
            + (f" or one of {len(chosen) - 3} others" if len(chosen) > 3 else "")
        )

    return levelled("table of outputs", honest, bits, score, event_text)


def _output_text(output: Output) -> str:
    structure, leaves = output
    if not leaves:
        return structure
    shown = ", ".join(repr(leaf) for leaf in leaves[:12]) + (", ..." if len(leaves) > 12 else "")
    return f"[{shown}]" if len(leaves) > 1 else shown


def projection(
    encoder: Encoder, columns: Floats, outputs: Sequence[Output], bits: Integers, q: float = 0.5
) -> Levels | None:
    """The column and direction whose levels promised most on past outputs."""
    ready = np.where(np.isnan(columns), -np.inf, columns)
    varied = np.flatnonzero(ready.max(axis=0) > ready.min(axis=0))
    if not varied.size:
        return None
    gains = _ends_gain(ready[:, varied], bits, q)
    column, way = np.unravel_index(int(np.argmax(gains)), gains.shape)
    return _by_column(encoder, columns, bits, int(varied[column]), (1.0, -1.0)[int(way)])


def _ends_gain(columns: Floats, bits: Integers, q: float) -> Floats:
    """By column and direction, the gain of the best event of each end, for all columns at once."""
    n = len(columns)
    order = np.argsort(columns, axis=0, kind="stable")
    ordered, ones = np.take_along_axis(columns, order, axis=0), bits[order]
    below = np.concatenate([np.zeros((1, columns.shape[1])), np.cumsum(ones, axis=0)])
    places = np.arange(1, n) if n <= FEW else np.unique((np.unique(FINE) * n).astype(np.int64))
    # An event ends where the value changes: at the first place of a run of equal values.
    first = np.concatenate([np.zeros((1, columns.shape[1]), dtype=bool), ordered[1:] != ordered[:-1]])
    runs = np.maximum.accumulate(np.where(first, np.arange(n)[:, None], 0), axis=0)
    cuts = runs[places]
    low_ones = np.take_along_axis(below, cuts, axis=0)
    low_zeros = cuts - low_ones
    high_ones, high_zeros = below[-1] - low_ones, n - below[-1] - low_zeros
    at = np.array([q])

    def best(mine: Floats, other: Floats) -> Floats:
        return np.asarray(_gain(mine.ravel(), other.ravel(), at).reshape(mine.shape).max(axis=0))

    up = best(high_ones, high_zeros) + best(low_zeros, low_ones)
    down = best(low_ones, low_zeros) + best(high_zeros, high_ones)
    return np.column_stack([up, down])


def _by_column(encoder: Encoder, columns: Floats, bits: Integers, c: int, sign: float) -> Levels:
    def score(given: Floats, _: Sequence[Output]) -> Floats:
        one = sign * given[:, c]
        return np.where(np.isnan(one), -np.inf if sign > 0 else np.inf, np.clip(one, -1e308, 1e308))

    def event_text(edge: float, up: bool) -> str:
        name = encoder.in_words(c)
        if not np.isfinite(edge):
            return f"{name} is anything"
        verb = ("above" if up else "at most") if sign > 0 else ("below" if up else "at least")
        return f"{name} is {verb} {sign * edge:.6g}"

    return levelled("one column", score(columns, ()), bits, score, event_text, events=True)


def promise(levels: Levels, q: Floats) -> Floats:
    """By claim, the gain of betting on these levels, with counts as frequencies shrunk to one half."""
    if levels.events:
        ends = ((levels.ones[::-1], levels.zeros[::-1]), (levels.zeros, levels.ones))
        total = np.zeros(q.size)
        for a, b in ends:
            total += _gain(np.cumsum(a), np.cumsum(b), q).max(axis=1)
        return total
    return np.asarray(
        _gain(levels.ones, levels.zeros, q).sum(axis=1) + _gain(levels.zeros, levels.ones, q).sum(axis=1)
    )


def _gain(mine: Floats, other: Floats, q: Floats) -> Floats:
    """One row a claim."""
    n = mine + other
    share = (mine + 2) / (n + 4)
    some = np.flatnonzero(share > q.min(initial=1.0))
    found = np.zeros((q.size, n.size))
    if some.size:
        part, at = share[some][None, :], np.minimum(q, np.nextafter(1.0, 0.0))[:, None]
        gain = part * np.log(part / at) + (1 - part) * np.log((1 - part) / (1 - at))
        found[:, some] = np.where((part > at) & (q < 1)[:, None], n[some] * gain, 0.0)
    return found


def _by_model(
    name: str,
    make: Callable[[], Any],
    prepare: Callable[[Floats], Floats],
    columns: Floats,
    bits: Integers,
) -> Levels | None:
    """Levels by scores of models that did not see the scored part; new outputs get the mean of all scores."""
    n = len(bits)
    folds = FOLDS if n < FEW else 2
    fold = np.arange(n) % folds
    late = np.arange(n) >= n - MOST_FITTED
    ready = prepare(columns)
    honest = np.zeros(n)
    models = []
    for out in range(folds):
        use = (fold != out) & late
        if len(np.unique(bits[use])) < 2:
            return None
        model = make()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(ready[use], bits[use])
            honest[fold == out] = model.decision_function(ready[fold == out])
        models.append(model)

    def score(given: Floats, _: Sequence[Output]) -> Floats:
        if not len(given):
            return np.empty(0)
        prepared = prepare(given)
        return np.asarray(sum(m.decision_function(prepared) for m in models) / len(models))

    def event_text(edge: float, up: bool) -> str:
        return f"the score of {name} is {'above' if up else 'at most'} {edge:.3g}"

    return levelled(name, honest, bits, score, event_text)


def logistic(encoder: Encoder, columns: Floats, outputs: Sequence[Output], bits: Integers) -> Levels | None:
    """Logistic regression on standardised columns, missing ones marked."""
    gaps = np.isnan(columns).any(axis=0)
    capped = _capped(columns)
    middle = np.median(capped, axis=0)
    spread = np.maximum(np.std(capped, axis=0), 1e-12)
    used = np.std(capped, axis=0) > 1e-12
    if not used.any() and not gaps.any():
        return None
    low, high = np.quantile(capped, 0.01, axis=0), np.quantile(capped, 0.99, axis=0)

    def prepare(given: Floats) -> Floats:
        clipped = np.clip(_capped(given), low, high)
        return np.column_stack([((clipped - middle) / spread)[:, used], np.isnan(given[:, gaps])])

    return _by_model("a logistic regression", _Logistic, prepare, columns, bits)


class _Logistic:
    """Logistic regression with a ridge, by Newton's steps: small enough to be fitted hundreds of times."""

    def fit(self, columns: Floats, bits: Integers) -> None:
        """Coefficients, the constant last and without a ridge."""
        x = np.column_stack([columns, np.ones(len(columns))])
        ridge = np.full(x.shape[1], RIDGE)
        ridge[-1] = 1e-6
        self.coefficients = np.zeros(x.shape[1])
        for _ in range(NEWTON):
            p = 1 / (1 + np.exp(-np.clip(x @ self.coefficients, -30, 30)))
            slope = x.T @ (bits - p) - ridge * self.coefficients
            curve = (x * np.maximum(p * (1 - p), 1e-4)[:, None]).T @ x + np.diag(ridge)
            step = np.linalg.solve(curve, slope)
            self.coefficients += step
            if np.abs(step).max() < 1e-3:
                break

    def decision_function(self, columns: Floats) -> Floats:
        """The log odds of 1."""
        return np.asarray(columns @ self.coefficients[:-1] + self.coefficients[-1])


def boosted(encoder: Encoder, columns: Floats, outputs: Sequence[Output], bits: Integers) -> Levels | None:
    """Boosted trees on the unchanged columns."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    def make() -> Any:
        return HistGradientBoostingClassifier(
            max_iter=50,
            learning_rate=0.1,
            max_leaf_nodes=8,
            min_samples_leaf=15,
            max_bins=63,
            early_stopping=False,
            random_state=0,
        )

    return _by_model("boosted trees", make, _capped_with_gaps, columns, bits)


def _capped(columns: Floats) -> Floats:
    return np.clip(np.nan_to_num(columns, nan=0.0), -1e100, 1e100)


def _capped_with_gaps(columns: Floats) -> Floats:
    return np.clip(np.nan_to_num(columns, nan=-1e90), -1e100, 1e100)
