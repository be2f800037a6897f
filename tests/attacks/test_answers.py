"""Membership, averaging, differencing and floating-point noise, against definitions and against our own noise."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.attacks import (
    Draws,
    area_under_curve,
    average,
    difference,
    membership,
    membership_scores,
    possible,
    textbook_laplace,
    which_answer,
)
from tacit.attacks.finding import Finding
from tacit.attacks.membership_inference import TESTS
from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.sources.synthetic.worlds import genomes


def naive_score(x: np.ndarray, f: np.ndarray, p: np.ndarray, n: int, test: str) -> float:
    score = 0.0
    for bit, own, pool in zip(x.tolist(), f.tolist(), p.tolist(), strict=True):
        inside = min(max(own, 1 / (2 * n)), 1 - 1 / (2 * n))
        if test == "homer":
            score += abs(bit - pool) - abs(bit - own)
        elif test == "likelihood ratio":
            score += math.log(inside / pool) if bit else math.log((1 - inside) / (1 - pool))
        else:
            score += (bit - pool) * (own - pool) / (pool * (1 - pool) / n)
    return score


@pytest.mark.parametrize("test", TESTS)
def test_scores_are_those_of_the_definition(test: str) -> None:
    made = genomes(people=20, others=5, sites=40, seed=3)
    f = made.study.mean(axis=0)
    scores = membership_scores(f, made.shares, made.others, size=20, test=test)
    assert scores == pytest.approx([naive_score(x, f, made.shares, 20, test) for x in made.others])


@pytest.mark.parametrize("test", TESTS)
def test_exact_frequencies_tell_members_from_others(test: str) -> None:
    made = genomes()
    assert made.study.shape == (200, 10_000)
    f = made.study.mean(axis=0)
    members, others = (
        membership_scores(f, made.shares, who, size=200, test=test) for who in (made.study, made.others)
    )
    assert area_under_curve(members, others) > 0.99
    assert membership(f, made.shares, made.study, size=200, test=test).share > 0.99
    # 1% false alarms of 200 people: 12 or more have a probability below 1e-6 for a fair threshold.
    assert len(membership(f, made.shares, made.others, size=200, test=test).exposed) < 12


def test_the_area_is_the_share_of_ordered_pairs() -> None:
    generator = np.random.default_rng(2)
    a, b = generator.integers(0, 6, 30), generator.integers(0, 6, 25)
    right = np.mean([1.0 if x > y else 0.5 if x == y else 0.0 for x in a for y in b])
    assert area_under_curve(a, b) == pytest.approx(right)
    with pytest.raises(InvalidParameter):
        area_under_curve([], [1.0])


@pytest.mark.slow
def test_our_release_tells_members_from_others_no_better_than_its_epsilon_allows() -> None:
    """Twelve releases of 2,000 frequencies; the full figure has 200 of 10,000 (`tacit reproduce attack-membership`)."""
    sites = 2000
    made = genomes(sites=sites)
    person, site = np.nonzero(made.study)
    with tacit.Curator(
        pa.table({"person": person, "site": site}),
        protect=tacit.people("person", at_most=sites, neighbours="replace-one"),
        schema={"site": tacit.integer(0, sites - 1)},
        budget=tacit.Pure(epsilon=2),
    ) as study:
        areas = []
        for i in range(12):
            released = study.release(tacit.count(by="site"), epsilon=0.1, key=str(i))
            f = released.table["value"].to_numpy() / 200
            noise = 2 * sites / 0.1 * math.sqrt(2) / 200
            members, others = (
                membership_scores(f, made.shares, who, size=200, test="correlation", noise_std=noise)
                for who in (made.study, made.others)
            )
            areas.append(area_under_curve(members, others))
    # The bound, and seven standard errors of an area of 200 against 200 whose scores were pure noise.
    assert np.mean(areas) < math.exp(0.1) / (1 + math.exp(0.1)) + 7 * math.sqrt(
        401 / (12 * 200 * 200)
    ) / math.sqrt(12)


def test_bad_frequencies_are_refused() -> None:
    for wrong in (
        {"frequencies": [0.5], "reference": [0.5, 0.5], "people": [[1, 0]]},
        {"frequencies": [0.5, 0.5], "reference": [0.5, 1.0], "people": [[1, 0]]},
        {"frequencies": [0.5, math.nan], "reference": [0.5, 0.5], "people": [[1, 0]]},
        {"frequencies": [0.5, 0.5], "reference": [0.5, 0.5], "people": [[1]]},
    ):
        with pytest.raises(InvalidParameter):
            membership_scores(**wrong, size=10)  # type: ignore[arg-type]
    with pytest.raises(UnknownName):
        membership_scores([0.5], [0.5], [[1]], size=3, test="guess")


# --- arithmetic of answers -------------------------------------------------------------------------------
def test_means_of_many_answers_are_the_truth() -> None:
    generator = np.random.default_rng(5)
    truth = generator.integers(0, 1000, 40)
    answers = truth[:, None] + generator.laplace(0, 10, (40, 40_000))
    found = average(answers)
    assert found.score(truth.astype(float).tolist()).precision == 1
    assert found.share > 0.9
    few = average(answers[:, :50])
    assert not few.exposed
    assert few.details["standard_error"] == pytest.approx(10 * math.sqrt(2) / math.sqrt(50), rel=0.2)


def test_differences_of_totals_are_values() -> None:
    found = difference([10, 7, 3.5], [9, 7, 3.25])
    assert list(found.learned) == [1, 0, 0.25]
    assert list(difference([100.0], [20.0], low=0, high=50).learned) == [50]
    with pytest.raises(InvalidParameter):
        difference([1, 2], [1])
    with pytest.raises(EmptyComposition):
        average([])


# --- floating point --------------------------------------------------------------------------------------
@pytest.mark.parametrize("noise_scale", [1.0, 10.0, 100.0])
def test_textbook_noise_is_read_off_its_digits(noise_scale: float) -> None:
    """Whatever is claimed is true: the sampler cannot publish what is impossible for its answer."""
    draws = Draws(1, "textbook")
    truth = draws.bits(20_000)
    published = textbook_laplace(truth, noise_scale=noise_scale, draws=draws)
    found = which_answer(published, [0, 1], noise_scale=noise_scale)
    assert found.share > 0.5
    assert found.score(truth.tolist()).precision == 1
    for answer in (0, 1):
        assert possible(published[truth == answer], answer, noise_scale=noise_scale).all()


def test_integers_tell_nothing_by_their_digits() -> None:
    """Discrete noise: claims are right about as often as a coin, whatever is made of the digits (below 1e-9)."""
    generator = np.random.default_rng(1)
    truth = generator.integers(0, 2, 20_000)
    e = math.exp(-0.1)
    noise = generator.geometric(1 - e, 20_000) - generator.geometric(1 - e, 20_000)
    found = which_answer((truth + noise).astype(float), [0, 1], noise_scale=10.0)
    score = found.score(truth.tolist())
    best = math.exp(0.1) / (1 + math.exp(0.1))
    assert score.right <= best * score.claims + 6.2 * math.sqrt(max(1, score.claims)) / 2


def test_findings_and_bad_candidates() -> None:
    with pytest.raises(EmptyComposition):
        which_answer([0.5], [0], noise_scale=1)
    with pytest.raises(InvalidParameter):
        which_answer([math.inf], [0, 1], noise_scale=1)
    with pytest.raises(InvalidParameter):
        Finding(attack="x", people=1, exposed=[0], learned=[], guessing=0.5, alone="")
    found = Finding(attack="x", people=2, exposed=[1], learned=[np.int64(3)], guessing=0.5, alone="a coin")
    assert found.score([0, 3]).share == 0.5
    assert found.to_dict()["found"] == [{"who": 1, "learned": 3}]
    with pytest.raises(InvalidParameter):
        found.score([1])
