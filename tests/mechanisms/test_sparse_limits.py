"""Empty cells of sparse histograms are always found, or the declaration is refused: occupancy decides nothing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest

from tacit.errors import InvalidParameter
from tacit.mechanisms import L1, Impossible, Laplace, SparseHistogram
from tacit.mechanisms.sparse_keys import draw_empty, pack_keys
from tacit.noise import SeededSource

NOISE = Laplace.for_target(epsilon=1, sensitivity=L1(1))


def all_but(possible: int) -> Impossible:
    """Only the first keys are possible."""

    def test(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        return np.asarray(keys >= np.uint64(possible))

    return Impossible(test=test, count=(1 << 40) - possible)


@pytest.mark.parametrize("possible", [1, 100, (1 << 32) - 1])
def test_a_test_that_leaves_few_cells_is_refused_before_any_row(possible: int) -> None:
    """An empty cell that passes was sought by 2^32 draws, for minutes, and then in vain; an occupied one never was."""
    with pytest.raises(InvalidParameter, match="one cell in 256"):
        SparseHistogram(noise=NOISE, domain=1 << 40, threshold=3, impossible=all_but(possible))
    SparseHistogram(noise=NOISE, domain=1 << 40, threshold=40, impossible=all_but(1 << 32))


def test_a_count_that_is_far_off_is_refused_in_large_domains_too() -> None:
    with pytest.raises(InvalidParameter, match="number of keys that the test holds for"):
        SparseHistogram(
            noise=NOISE, domain=1 << 40, threshold=40,
            impossible=Impossible(test=lambda k: k % np.uint64(2) == 1, count=(1 << 40) // 4),
        )  # fmt: skip
    wide = Impossible(test=lambda k: np.array([int(v) % 2 == 1 for v in k], dtype=np.bool_), count=1 << 69)
    SparseHistogram(noise=NOISE, domain=1 << 70, threshold=60, impossible=wide)


def test_the_last_free_cells_are_found_and_are_uniform() -> None:
    """One possible cell in 256, and all of them occupied but five."""

    def draw(bits: int, count: int, seed: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        domain = 1 << bits
        barred = Impossible(test=lambda k: k % np.uint64(256) != 7, count=domain // 256 * 255)
        possible = np.arange(7, domain, 256, dtype=np.uint64)
        free = possible[[0, 1, possible.size // 60, possible.size * 2 // 3, possible.size - 1]]
        occupied = pack_keys(np.setdiff1d(possible, free), domain)
        source = SeededSource(seed=seed)
        return free, draw_empty(count, domain=domain, occupied=occupied, impossible=barred, source=source)

    seen: Counter[int] = Counter()
    for seed in range(200):  # how often each is drawn does not depend on how many cells there are
        free, keys = draw(16, 2, seed)
        assert keys.size == 2
        assert np.isin(keys, free).all()
        seen.update(keys.tolist())
    # 400 draws over five keys: 80 each, within 5 standard deviations (fixed seeds).
    assert all(abs(seen[int(k)] - 80) < 5 * 7 for k in free)
    for bits in (16, 23):  # looked through at once, and in eight parts
        free, every = draw(bits, 5, 1)
        assert every.tolist() == free.tolist()


@pytest.mark.parametrize("left", [0, 1, 10_000])
def test_releases_end_whatever_is_occupied(left: int) -> None:
    """From no possible cell free to nearly all, with a threshold that every second empty cell passes."""
    domain = 1 << 23
    barred = Impossible(test=lambda k: k % np.uint64(256) != 0, count=domain // 256 * 255)
    possible = np.arange(0, domain, 256, dtype=np.uint64)
    mechanism = SparseHistogram(noise=NOISE, domain=domain, threshold=0, impossible=barred)
    occupied = possible[: possible.size - left]
    out = mechanism.release(occupied, np.full(occupied.size, 50), source=SeededSource(seed=2))
    # Pr[noise > 0] = 1 / (e + 1).
    assert abs(out.keys.size - occupied.size - left / (np.e + 1)) <= 5 * np.sqrt(left / 5 + 1)
    assert (out.keys % np.uint64(256) == 0).all()
