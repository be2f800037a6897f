"""Neighbours under the same noise: where they part, and who is accused."""

from __future__ import annotations

import os
import random
import secrets
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.zoo import ZOO
from tacit.audit import Tape, named_neighbours, recorded, replay
from tacit.audit.claimed import claim_of
from tacit.audit.grey_box import Replay
from tacit.audit.isolation import load

PRIVATE = {
    "laplace", "geometric", "gaussian", "exponential", "noisy_max", "randomised_response", "clipped_sum",
    "sparse_vector_1", "sparse_vector_2",
}  # fmt: skip


@pytest.fixture(scope="module")
def found() -> dict[str, Replay]:
    """The replay of every entry of the zoo, loaded under the tape so that its generator is recorded."""
    # Other tests have loaded the file before, without a tape: its generator would not be recorded.
    sys.modules.pop(ZOO.stem, None)
    with Tape() as tape:
        entries = load(f"{ZOO}::ZOO")
        tape.loaded()
        return {
            name: replay(
                entry.run,
                neighbours=named_neighbours(entry.neighbours),
                tape=tape,
                claim=claim_of(entry.claim),
            )
            for name, entry in entries.items()
        }


@pytest.mark.parametrize("name", sorted(PRIVATE))
def test_right_mechanisms_are_not_accused(found: dict[str, Replay], name: str) -> None:
    assert not found[name].accuses


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6])
def test_all_sparse_vectors_part_and_only_those_without_a_proof_are_accused(
    found: dict[str, Replay], number: int
) -> None:
    one = found[f"sparse_vector_{number}"]
    assert one.partings
    assert one.accuses == (number > 2)
    path, _, line = one.partings[0].place.rpartition(":")
    code = Path(path).read_text().splitlines()
    start = next(i for i, text in enumerate(code) if f"def sparse_vector_{number}(" in text)
    assert start < int(line) <= start + 22


@pytest.mark.parametrize("name", ["threshold_wrong", "gaussian_too_small"])
def test_broken_mechanisms_that_a_replay_shows(found: dict[str, Replay], name: str) -> None:
    assert found[name].accuses


def test_what_a_replay_says_of_the_others(found: dict[str, Replay]) -> None:
    assert found["noise_kept"].partings[0].kind == "state"
    assert found["noise_reused"].partings[0].kind == "few draws"
    assert found["person_per_row"].moved == 3.0
    assert found["laplace"].additive
    assert found["laplace"].moved == 1.0
    assert all("could not have seen" in one.lines()[-1] for one in found.values())


def run(f: Any, neighbours: Any = "number", **more: Any) -> Replay:
    with Tape() as tape:
        tape.loaded()
        return replay(f, neighbours=named_neighbours(neighbours), tape=tape, **more)


def test_a_scale_that_depends_on_the_data_is_accused() -> None:
    one = run(lambda x: float(np.random.laplace(x, 1 + x)))
    assert [p.kind for p in one.partings] == ["scale"]
    assert one.accuses


def test_the_declared_sensitivity_is_held_against_the_difference() -> None:
    def doubled(x: float) -> float:
        return 2 * x + random.gauss(0, 5)

    assert not run(doubled, sensitivity=2.0).accuses
    one = run(doubled, sensitivity=1.5)
    assert [p.kind for p in one.partings] == ["sensitivity"]


def test_noise_that_is_too_small_for_its_claim() -> None:
    one = run(lambda x: x + float(np.random.default_rng().laplace(scale=0.5)), claim=claim_of("epsilon=1"))
    assert [p.kind for p in one.partings] == ["noise too small"]
    right = run(lambda x: x + float(np.random.default_rng().laplace(scale=1.1)), claim=claim_of("epsilon=1"))
    assert not right.accuses


def grid(noise: Any) -> float:
    return round(float(noise) * 64) / 64


def both(x: float) -> list[float]:
    return [x + float(np.random.laplace(scale=1.0)), 7 + float(np.random.laplace(scale=0.0))]


def noisy_test(x: float) -> int:
    if x + random.random() >= 1:
        raise RuntimeError("no answer")
    return 0


RIGHT: dict[str, tuple[Any, str]] = {
    "the noise is multiplied": (lambda x: x + 2 * grid(np.random.laplace()), "epsilon=0.5"),
    "by its standard deviation": (lambda x: x + 3.74 * float(np.random.normal()), "mu=0.268"),
    "the noisy answer is multiplied": (lambda x: 100 * (x + grid(np.random.laplace())), "epsilon=1"),
    "a number beside it that does not move": (both, "epsilon=1"),
    "bytes of the system": (
        lambda x: x + int.from_bytes(os.urandom(4), "big") / 2**20,
        "epsilon=1",
    ),
    "the system's generator": (lambda x: x + random.SystemRandom().expovariate(1.0), "epsilon=1"),
    "a text": (lambda x: f"{{count: {x + grid(np.random.laplace()):.4f}}}", "epsilon=1"),
    "a fraction": (lambda x: Fraction(x + grid(np.random.laplace())), "epsilon=1"),
    "a negative zero": (lambda x: float(np.copysign(0.0, np.random.laplace() - 0.5 + x)), "epsilon=1"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_noise_in_other_spellings_is_not_accused(name: str) -> None:
    f, claim = RIGHT[name]
    assert not run(f, claim=claim_of(claim)).accuses


WRONG: dict[str, tuple[Any, str, str]] = {
    "the noise is multiplied": (
        lambda x: x + 0.5 * float(np.random.laplace()),
        "epsilon=1",
        "noise too small",
    ),
    "the noisy answer is multiplied": (
        lambda x: 100 * (x + float(np.random.laplace(scale=0.5))),
        "epsilon=1",
        "noise too small",
    ),
    "standard deviation": (lambda x: x + 2.0 * float(np.random.normal()), "mu=0.268", "noise too small"),
    "one of two without noise": (
        lambda x: [x + 0 * np.random.laplace(), 1 + np.random.laplace()],
        "epsilon=1",
        "scale 0",
    ),
    "a fixed seed": (
        lambda x: x + float(np.random.default_rng(7).laplace()),
        "epsilon=1",
        "fixed noise",
    ),
    "another text": (lambda x: f"{'low' if x else 'high'} {random.random()}", "epsilon=1", "decision"),
}


@pytest.mark.parametrize("name", WRONG)
def test_and_noise_that_is_too_small_in_them_is(name: str) -> None:
    f, claim, kind = WRONG[name]
    assert (kind, True) in [(p.kind, p.accuses) for p in run(f, claim=claim_of(claim)).partings]


def test_a_declared_proof_covers_scales_and_errors_after_the_noise() -> None:
    def scaled(x: float) -> float:
        return x + float(np.random.laplace(scale=2 + x))

    def early(x: float) -> float:
        if x > 0.5:
            raise ValueError("large")
        return random.random()

    assert run(noisy_test).partings[0].accuses
    for f in (noisy_test, scaled):
        one = run(f, proof="Nissim, Raskhodnikova and Smith 2007")
        assert one.partings
        assert not one.accuses
        # Whoever reads a place that is not accused must read what excuses it.
        assert all("Nissim, Raskhodnikova and Smith 2007" in p.words for p in one.partings)

    def late(x: float) -> float:
        return early(1.0 - x)

    for f in (early, late):  # an error before any noise, on the one neighbour and on the other
        assert run(f, proof="none covers this").accuses
    refused = run(early, proof="none covers this")
    assert all("none covers this" not in p.words for p in refused.partings if p.kind == "error")


def test_equal_answers_do_not_show_that_there_is_no_noise() -> None:
    hidden = random.Random(3).random  # not noted, and on integers often the same twice

    def counted(x: float) -> int:
        return int(x) + (hidden() < 0.2) - (hidden() < 0.2)

    for _ in range(20):
        found = run(counted, tapes=1)
        assert not found.accuses


def test_a_factor_leaves_the_sensitivity_open() -> None:
    def doubled(x: float) -> float:
        return 2 * (x + float(np.random.laplace()))

    one = run(doubled, sensitivity=1.0)
    assert [(p.kind, p.accuses) for p in one.partings] == [("sensitivity", False)]
    assert "unless the noisy answer is multiplied (then by 0.98" in one.partings[0].words
    sure = run(doubled, sensitivity=0.5)
    assert sure.accuses
    assert "unless" not in sure.partings[0].words


def test_noise_that_is_bent_is_not_measured_as_a_multiple() -> None:
    def bent(x: float) -> float:
        return x + 0.6 * float(np.tanh(3 * np.random.laplace()))

    def straight(x: float) -> float:
        return x + 0.1 * float(np.random.laplace())

    claim = claim_of("epsilon=1")
    assert "noise too small" in {p.kind for p in run(straight, claim=claim).partings}
    assert not run(bent, claim=claim).accuses  # only the black box can judge it


def test_no_noise_errors_types_and_draws() -> None:
    assert run(lambda x: x).partings[0].kind == "no noise"

    def fails(x: float) -> float:
        noise = random.random()
        if x > 0.5:
            raise ValueError("large")
        return noise

    assert run(fails).partings[0].kind == "error"
    assert run(lambda x: (secrets.randbelow(9), int(x) if x else x)[1]).partings[0].kind == "type"
    assert run(lambda x: sum(random.random() for _ in range(1 + int(x)))).partings[0].kind in (
        "draws",
        "control flow",
    )


def test_the_tape_gives_the_same_words_again_and_leaves_no_trace() -> None:
    import os

    before = (os.urandom, np.random.default_rng, random.random, secrets.randbelow)
    with Tape(seed=5) as tape:
        kept = np.random.default_rng()
        tape.loaded()
        seen = []
        for seed in (1, 1, 2):
            tape.rewind(seed)
            draws = (os.urandom(4), float(kept.random()), random.random(), secrets.randbelow(10**9))
            seen.append((*draws, float(np.random.default_rng().normal())))
        assert seen[0] == seen[1]
        assert all(a != b for a, b in zip(seen[0], seen[2], strict=True))
    assert before == (os.urandom, np.random.default_rng, random.random, secrets.randbelow)


def test_the_source_of_tacit_is_recorded() -> None:
    from tacit.noise.source import default_source

    with Tape() as tape:
        tape.loaded()
        words = []
        for _ in range(2):
            tape.rewind(3)
            words.append(default_source().words(5).tolist())
        assert words[0] == words[1]
    assert default_source().words(5).tolist() != words[0]


def test_noise_of_a_compiled_library_is_recorded_where_it_is_named() -> None:
    """A generator that no tape knows: without the decorator a replay sees it and says so."""
    hidden = random.Random(7)  # made before the tape, and its method taken before: its draws are not noted
    foreign = hidden.gauss
    noise = recorded(lambda scale: foreign(0.0, scale))

    def right(x: float) -> float:
        return round((x + noise(1.0)) * 64) / 64

    def wrong(x: float) -> float:
        return x + noise(1.0 + x)

    def unnamed(x: float) -> float:
        return x + foreign(0.0, 1.0)

    assert not run(right).partings
    found = run(wrong).partings[0]
    assert found.kind == "distribution"
    assert found.accuses
    assert run(unnamed).partings[0].kind == "state"
    outside = {noise(1.0) for _ in range(3)}
    assert len(outside) == 3
