"""The query systems keep their own rules, and each is broken by its attack."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.attacks import Draws, dalenius, mean_loss, random_row
from tacit.attacks.systems import (
    SYSTEMS,
    AtomicPopulations,
    AuditedSums,
    FixedNoise,
    OverlapRestriction,
    PerturbedValues,
    RandomSamples,
    RemoteAnalysis,
    SetSizeRestriction,
    grid_of_sets,
    show,
    track,
    weigh,
)
from tacit.attacks.systems.kinds import fitting_bits
from tacit.errors import InvalidParameter, NotCertified, Refused, UnknownName

BITS = [int(b) for b in np.random.default_rng(3).integers(0, 2, 60)]


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_is_broken_and_every_claim_is_true(system: str) -> None:
    shown = show(system, seed=5)
    assert shown.score.claims > 0
    assert shown.score.precision == 1
    assert shown.idea
    assert shown.source
    assert shown.finding.details["asked"] > 0


def test_small_sets_and_their_complements_are_refused() -> None:
    service = SetSizeRestriction(BITS, least=10)
    for size in (0, 1, 9, 51, 59, 60):
        with pytest.raises(Refused):
            service.total(list(range(size)))
    assert service.total(list(range(10))) == sum(BITS[:10])
    assert service.total(list(range(50))) == sum(BITS[:50])
    found = track(service, range(60))
    assert list(found.learned) == BITS
    with pytest.raises(InvalidParameter):
        track(SetSizeRestriction(BITS, least=16), [0])


def test_overlaps_are_refused_and_the_grid_has_none() -> None:
    service = OverlapRestriction(BITS, least=5, shared=1)
    service.total([0, 1, 2, 3, 4])
    with pytest.raises(Refused):
        service.total([3, 4, 5, 6, 7])
    with pytest.raises(Refused):
        service.total([5, 6, 7, 8])
    for target in (0, 59):
        found = grid_of_sets(OverlapRestriction(BITS, least=8, shared=1), target)
        assert list(found.learned) == [BITS[target]]
        assert found.details["asked"] == 15
    with pytest.raises(InvalidParameter):
        grid_of_sets(OverlapRestriction(BITS, least=9, shared=1), 0)


@pytest.mark.parametrize("seed", range(5))
def test_the_audit_refuses_exactly_what_gives_somebody_away(seed: int) -> None:
    """By the rank of the sets with and without each unit vector, in floating point on few small integers."""
    generator = np.random.default_rng(seed)
    service = AuditedSums(generator.normal(size=5))
    answered: list[np.ndarray] = []
    for _ in range(14):
        members = generator.integers(0, 2, 5).astype(bool)
        rows = np.array([*answered, members], dtype=float)
        rank = np.linalg.matrix_rank(rows)
        gives_away = any(np.linalg.matrix_rank(np.vstack([rows, unit])) == rank for unit in np.eye(5))
        if gives_away:
            with pytest.raises(Refused):
                service.total(members)
        else:
            service.total(members)
            answered.append(members)
    assert answered


@pytest.mark.parametrize("seed", range(6))
def test_bits_are_claimed_where_all_that_fits_agrees(seed: int) -> None:
    """Against all patterns of 2 to 7 people, one by one."""
    generator = np.random.default_rng(seed)
    people = 2 + seed
    asked = generator.integers(0, 2, (3, people))
    answers = asked @ generator.integers(0, 2, people)
    fit = [p for p in itertools.product((0, 1), repeat=people) if (asked @ p == answers).all()]
    right = {i: fit[0][i] for i in range(people) if len({p[i] for p in fit}) == 1}
    assert fitting_bits(asked, answers.tolist()) == right
    with pytest.raises(NotCertified):
        fitting_bits(asked, (answers + 0.5).tolist())
    with pytest.raises(NotCertified):
        fitting_bits(asked, [people + 1, 0, 0])


@pytest.mark.slow
def test_a_hundred_thousand_audited_people_are_weighed() -> None:
    values = Draws(3, "audited").bits(100_000)
    found = weigh(AuditedSums(values), questions=12, block=16)
    assert found.share > 0.98
    assert found.score(values.tolist()).precision == 1
    with pytest.raises(InvalidParameter):
        weigh(AuditedSums(values[:50]), questions=12, block=33)
    with pytest.raises(NotCertified):
        weigh(AuditedSums([2.0, 5.0, 3.0]), questions=1)


def test_atoms_are_not_divided() -> None:
    service = AtomicPopulations([1, 0, 1, 1], atoms=[(0, 1), (2, 3)])
    assert service.total([0, 1]) == 1
    for members in itertools.chain(([0], [0, 2], [0, 1, 2])):
        with pytest.raises(Refused):
            service.total(members)
    with pytest.raises(InvalidParameter):
        AtomicPopulations([1, 0, 1], atoms=[(0, 1), (2,)])


def test_disturbed_answers_are_fixed_by_what_they_say() -> None:
    fixed = PerturbedValues(BITS, noise_std=1)
    assert fixed.total([3]) == fixed.total([3])
    assert PerturbedValues(BITS, noise_std=1, fresh=True).total([3]) != fixed.total([3])
    sampled = RandomSamples(BITS, share=0.5)
    assert sampled.total(range(60), wording="a") == sampled.total(range(60), wording="a")
    assert len({sampled.total(range(60), wording=str(i)) for i in range(20)}) > 5
    means = np.mean([sampled.total(range(60), wording=str(i)) for i in range(3000)])
    # A standard deviation of at most sqrt(60): 6.2 of them (below 1e-9).
    assert abs(means - sum(BITS)) < 6.2 * math.sqrt(60 / 3000)
    noise = FixedNoise(BITS, noise_std=2)
    assert noise.total([1, 2], wording="x") == noise.total([2, 1], wording="y")
    assert noise.total([1, 2]) != noise.total([1, 3])


def test_models_about_few_people_are_refused() -> None:
    service = RemoteAnalysis(BITS, least=10)
    x = np.column_stack([np.ones(60), np.arange(60)])
    assert service.fit(x) == pytest.approx(np.polyfit(np.arange(60), BITS, 1)[::-1])
    with pytest.raises(Refused):
        service.fit(x, np.arange(60) < 9)
    dummy = np.column_stack([np.ones(60), np.arange(60) == 7])
    with pytest.raises(Refused):
        service.fit(dummy)
    with pytest.raises(Refused):
        service.total([1])


def test_strange_questions_and_systems_are_refused() -> None:
    with pytest.raises(UnknownName):
        show("oracle")
    with pytest.raises(InvalidParameter):
        AuditedSums([])
    with pytest.raises(InvalidParameter):
        AuditedSums([1.0, math.nan])
    with pytest.raises(InvalidParameter):
        SetSizeRestriction(BITS, least=2).total(np.array([True, False]))


# --- notions --------------------------------------------------------------------------------------------
def test_any_release_that_tells_something_breaks_dalenius() -> None:
    """Smoking causes cancer, or not; a study says which, right in nine of ten cases. Bob is not in it."""
    half, tenth = Fraction(1, 2), Fraction(1, 10)
    study = {"causes": {"yes": 9 * tenth, "no": tenth}, "harmless": {"yes": tenth, "no": 9 * tenth}}
    breach = dalenius({"causes": half, "harmless": half}, study)
    assert breach is not None
    assert (breach.before, breach.after) == (half, 9 * tenth)
    # Brute force: world, secret and outcome; the attacker knows whether the secret agrees with the statement.
    joint = {(w, s, o): half * half * study[w][o] for w in study for s in (0, 1) for o in ("yes", "no")}
    agreed = {k: p for k, p in joint.items() if k[1] == int(k[0] in breach.statement)}
    assert sum(p for (_, s, _), p in agreed.items() if s) / sum(agreed.values()) == breach.before
    seen = {k: p for k, p in agreed.items() if k[2] == breach.outcome}
    assert sum(p for (_, s, _), p in seen.items() if s) / sum(seen.values()) == breach.after


def test_only_what_tells_nothing_satisfies_dalenius() -> None:
    third, half = Fraction(1, 3), Fraction(1, 2)
    constant = {w: {"a": half, "b": half} for w in "xyz"}
    assert dalenius(dict.fromkeys("xyz", third), constant) is None
    nearly = {**constant, "z": {"a": half + Fraction(1, 10**9), "b": half - Fraction(1, 10**9)}}
    assert dalenius(dict.fromkeys("xyz", third), nearly) is not None
    with pytest.raises(InvalidParameter):
        dalenius({"x": half}, {"x": {"a": Fraction(1)}})


def test_one_random_row_is_close_in_every_sum_of_differences() -> None:
    """The distances from the two laws themselves, on a small domain."""
    n, k, mixed = 4, 9, 0.25
    rows, other = [0, 1, 2, 3], [0, 1, 2, 8]

    def law(people: list[int]) -> np.ndarray:
        return np.array([mixed / k + (1 - mixed) * people.count(v) / n for v in range(k)])

    p, q = law(rows), law(other)
    found = random_row(people=n, domain=k, mixed=mixed)
    assert found.total_variation == pytest.approx(np.abs(p - q).sum() / 2)
    assert found.kullback_leibler == pytest.approx(float((p * np.log(p / q)).sum()))
    assert found.best_guess == pytest.approx(p[3] / (p[3] + q[3]))
    large = random_row(people=10**6, domain=10**12)
    assert large.total_variation < 1e-6
    assert large.kullback_leibler < 2e-5
    assert large.best_guess > 0.9999
    assert large.published == 0.99


def test_a_mean_over_people_protects_nobody_in_particular() -> None:
    mean, guess = mean_loss([20.0] + [0.0] * 99_999)
    assert mean == pytest.approx(2e-4)
    assert guess > 0.999999
    with pytest.raises(InvalidParameter):
        mean_loss([])
