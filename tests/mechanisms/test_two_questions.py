"""Two randomised questions: privacy, means, variances and covariances by enumeration; intervals that cover."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from support.claims import tight
from tacit.errors import EmptyComposition, InvalidParameter, NoLaw
from tacit.mechanisms import HadamardResponse, RandomizedResponse, SubsetSelection, TwoQuestions
from tacit.noise import SeededSource


def response(epsilon: float, k: int) -> np.ndarray:
    return (np.ones((k, k)) + np.eye(k) * math.expm1(epsilon)) / (math.exp(epsilon) + k - 1)


ASK = TwoQuestions(first=RandomizedResponse(epsilon=1), second=RandomizedResponse(epsilon=0.5, categories=3))
ROWS, COLUMNS = response(1, 2), response(0.5, 3)
PAIRS = list(itertools.product(range(2), range(3)))


def test_privacy_by_enumeration() -> None:
    """joint-responses: the pair of answers has the sum of both epsilons, and TwoQuestions says so."""
    joint = np.einsum("ac,bd->abcd", ROWS, COLUMNS).reshape(6, 6)
    losses = [np.abs(np.log(a / b)).max() for a, b in itertools.permutations(joint, 2)]
    assert tight(max(losses), ASK.bound.epsilon)
    assert float(ASK.bound.epsilon) == 1.5
    assert [e.pure() for e in ASK.events] == [1.0, 0.5]  # type: ignore[attr-defined]


def moments(truth: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of what one person adds to all cells, over all pairs of answers."""
    mean, square = np.zeros(6), np.zeros((6, 6))
    for c, d in PAIRS:
        added = ASK.estimate([c], [d]).ravel()
        chance = ROWS[truth[0], c] * COLUMNS[truth[1], d]
        mean += chance * added
        square += chance * np.outer(added, added)
    return mean, square - np.outer(mean, mean)


def test_mean_variance_and_covariance_by_enumeration() -> None:
    tables = np.array([[5, 0, 2], [1, 7, 3]])
    total = np.zeros((6, 6))
    for place, truth in enumerate(PAIRS):
        mean, covariance = moments(truth)
        assert mean == pytest.approx(np.eye(6)[place], abs=1e-12)
        total += tables[truth] * covariance
    for place, (i, j) in enumerate(PAIRS):
        formula = ASK.variance(
            people=18, count=int(tables[i, j]), row=int(tables[i].sum()), column=int(tables[:, j].sum())
        )
        assert formula == pytest.approx(total[place, place], rel=1e-12)
    # The estimated covariance of one person, averaged over all answers, is the covariance.
    for truth in PAIRS:
        found = sum(ROWS[truth[0], c] * COLUMNS[truth[1], d] * ASK.covariance([c], [d]) for c, d in PAIRS)
        assert found == pytest.approx(moments(truth)[1], abs=1e-10)


@pytest.mark.parametrize(
    "ask",
    [
        ASK,
        TwoQuestions(
            first=SubsetSelection(epsilon=1, categories=6), second=HadamardResponse(epsilon=1, categories=3)
        ),
    ],
)
def test_drawn_tables_cover(ask: TwoQuestions) -> None:
    """60 tables of 2,000 people: misses as chance allows (below 1e-9), and standard deviations as drawn."""
    k, m = ask.first.categories, ask.second.categories
    one, two = np.arange(2_000) % k, (np.arange(2_000) % k + np.arange(2_000) // 700) % m
    truth = np.zeros((k, m))
    np.add.at(truth, (one, two), 1)
    source, missed, away = SeededSource(seed=4), 0, []
    for _ in range(60):
        table = ask.table(*ask.release(one, two, source=source))
        missed += int(((truth < table.low) | (truth > table.high)).sum())
        away.append((table.estimates - truth) / table.noise_std)
    cells = 60 * k * m
    # cells of one table go together: at most all of them
    assert missed <= 0.05 * cells + 6.5 * math.sqrt(0.05 * cells * k * m)
    assert float(np.mean(np.square(away))) == pytest.approx(1, abs=0.35)
    assert table.normal_error < 0.2


def test_correlation_and_independence() -> None:
    ask = TwoQuestions(first=RandomizedResponse(epsilon=1), second=RandomizedResponse(epsilon=1))
    place = np.arange(20_000)
    one = (place % 10 < 4).astype(int)
    two = np.where(place % 7 < 5, one, (place % 3 == 0).astype(int))
    true = float(np.corrcoef(one, two)[0, 1])
    source, inside, found = SeededSource(seed=9), 0, []
    for _ in range(50):
        answers = ask.release(one, two, source=source)
        estimate = ask.correlation(*answers)
        found.append(estimate.estimate)
        inside += estimate.low <= true <= estimate.high
        assert ask.independence(*answers).p_value < 1e-6
    assert inside >= 38  # of 50 at 95%: below 1e-5 for fewer; the seed is fixed
    error = ask.correlation(*answers).standard_error
    assert float(np.mean(found)) == pytest.approx(true, abs=5 * error / math.sqrt(50))
    assert float(np.std(found)) == pytest.approx(error, rel=0.45)
    # Answers themselves go together far less.
    raw = float(np.corrcoef(answers[0].values, answers[1].values)[0, 1])
    assert raw < 0.4 * true
    unrelated = [
        ask.independence(*ask.release(one, (place // 10) % 2, source=source)).p_value for _ in range(30)
    ]
    assert min(unrelated) > 1e-4
    assert float(np.mean(unrelated)) == pytest.approx(0.5, abs=0.3)


def test_scores() -> None:
    ask = TwoQuestions(
        first=RandomizedResponse(epsilon=3, categories=3), second=RandomizedResponse(epsilon=3, categories=3)
    )
    values = np.arange(9_000) % 3
    answers = ask.release(values, values, source=SeededSource(seed=2))
    plain = ask.correlation(*answers)
    assert plain.low <= 1 <= plain.high + 1e-9
    turned = ask.correlation(*answers, scores=([0, 1, 2], [2, 1, 0]))
    assert turned.estimate == pytest.approx(-plain.estimate)
    assert ask.correlation([0, 0, 0], [1, 1, 1]).low == -1  # nothing to be seen from three people


@pytest.mark.parametrize(
    "call",
    [
        lambda: TwoQuestions(first=3, second=RandomizedResponse(epsilon=1)),  # type: ignore[arg-type]
        lambda: TwoQuestions(
            first=HadamardResponse(epsilon=1, categories=10**6), second=RandomizedResponse(epsilon=1)
        ),
        lambda: ASK.release([0, 1], [0]),
        lambda: ASK.release([0, 2], [0, 0]),
        lambda: ASK.release([0.5, 1], [0, 0]),
        lambda: ASK.table([0, 1], [0]),
        lambda: ASK.table([0, 1], [0, 3]),
        lambda: ASK.table([0, 1], [0, math.nan]),
        lambda: ASK.table([0], [0], confidence=0),
        lambda: ASK.table([0], [0])[0, 5],
        lambda: ASK.variance(people=10, count=5, row=4, column=6),
        lambda: ASK.variance(people=10, count=1, row=8, column=6),
        lambda: ASK.correlation([0], [0], scores=([0, 1],)),
        lambda: ASK.correlation([0], [0], scores=([0, 1], [1, 1, 1])),
        lambda: ASK.correlation([0], [0], scores=([0, 1], [1, 2, "x"])),
        lambda: ASK.independence([0], []),
        lambda: ASK.table(3, [0]),
        lambda: ASK.table(None, None),
        lambda: ASK.table("a", "b"),
        lambda: ASK.table([[0, 1], [2]], [0, 1]),
        lambda: ASK.table(np.ma.masked_array([0, 1], mask=[0, 1]), [0, 1]),
        lambda: ASK.release(np.ma.masked_array([0, 1], mask=[0, 1]), [0, 1]),
        lambda: ASK.release([[0, 1], [2]], [0, 1]),
        lambda: ASK.correlation({}, [0]),
    ],
)
def test_bad_input(call) -> None:
    with pytest.raises(InvalidParameter):
        call()


def test_refusals() -> None:
    with pytest.raises(EmptyComposition):
        ASK.table([], [])
    with pytest.raises(EmptyComposition):
        ASK.independence([], [])
    mixed = TwoQuestions(first=SubsetSelection(epsilon=1, categories=6), second=RandomizedResponse(epsilon=1))
    with pytest.raises(NoLaw):
        mixed.independence([[0, 1]], [0])
