"""The cipher stream: unpredictable, never repeated across threads, forks and copies."""

from __future__ import annotations

import copy
import os
import pickle
import threading
import warnings

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.noise import CryptographicSource, SeededSource, default_source
from tacit.noise import source as module


def test_words_look_uniform() -> None:
    words = SeededSource(seed=1).words(1 << 18)
    for bit in (0, 1, 31, 62, 63):
        ones = int(((words >> np.uint64(bit)) & np.uint64(1)).sum())
        assert abs(ones - (1 << 17)) < 7 * 256


def test_seeded_is_repeatable_and_never_publishable() -> None:
    a, b = SeededSource(seed=5), SeededSource(seed=5)
    assert np.array_equal(a.words(10), b.words(10))
    assert np.array_equal(a.words(10_000), b.words(10_000))
    assert not np.array_equal(SeededSource(seed=5).words(10), SeededSource(seed=6).words(10))
    assert not a.publishable
    assert default_source().publishable
    assert not isinstance(a, CryptographicSource)


def test_the_stream_does_not_depend_on_how_it_is_cut() -> None:
    whole = SeededSource(seed=9).words(5_000)
    source = SeededSource(seed=9)
    assert np.array_equal(whole[:3_000], np.concatenate([source.words(1_000) for _ in range(3)]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_process_never_continues_its_parent() -> None:
    source = CryptographicSource()
    source.words(3)
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os.write(write, source.words(8).tobytes())
        os._exit(0)
    os.waitpid(pid, 0)
    child = np.frombuffer(os.read(read, 64), dtype=np.uint64)
    assert not set(child.tolist()) & set(source.words(8).tolist())


@pytest.mark.parametrize("sign", ["process id", "fork count"])
def test_either_sign_of_a_fork_forces_a_new_key(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = CryptographicSource()
    source.words(3)
    before = source._local.stream
    if sign == "process id":
        monkeypatch.setattr(module.os, "getpid", lambda: -1)
    else:
        monkeypatch.setattr(module._ForkEpoch, "count", module._ForkEpoch.count + 1)
    source.words(3)
    assert source._local.stream is not before


def test_threads_have_their_own_streams() -> None:
    source = CryptographicSource()
    found: list[bytes] = []

    def work() -> None:
        mine = [source.words(2).tobytes() for _ in range(500)]
        found.extend(mine)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(found)) == len(found) == 4_000


def test_each_thread_draws_from_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams are not shared: each thread makes one, and uses that alone, for all it draws."""
    from tacit.noise import source as module

    used: dict[int, set[int]] = {}
    keys: list[bytes] = []

    class Watched(module._Stream):
        def __init__(self, key: bytes, nonce: bytes) -> None:
            keys.append(key)
            super().__init__(key, nonce)

        def take(self, count: int) -> module.Words:
            used.setdefault(threading.get_ident(), set()).add(id(self))
            return super().take(count)

    monkeypatch.setattr(module, "_Stream", Watched)
    source = CryptographicSource()
    start, end = threading.Barrier(8), threading.Barrier(8)

    def work() -> None:
        start.wait()
        for _ in range(20):
            source.words(3)
        end.wait()  # all streams live at once, so that none takes another's place in memory

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(used) == 8
    assert all(len(streams) == 1 for streams in used.values())
    assert len(set().union(*used.values())) == 8
    assert len(set(keys)) == len(keys) == 8


def test_the_seeded_source_gives_each_word_once_under_threads() -> None:
    source, expected = SeededSource(seed=3), SeededSource(seed=3).words(8_000)
    found: list[int] = []

    def work() -> None:
        for _ in range(100):
            found.extend(source.words(10).tolist())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == sorted(expected.tolist())


def test_a_key_is_replaced_by_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[int] = []
    real = os.urandom
    monkeypatch.setattr(module.os, "urandom", lambda n: keys.append(n) or real(n))
    monkeypatch.setattr(module, "REKEY_BYTES", 1 << 16)
    source = CryptographicSource()
    words = source.words(5 << 13)
    assert words.size == 5 << 13
    assert keys.count(32) == 5


def test_copies_and_pickles_carry_no_key() -> None:
    source = CryptographicSource()
    source.words(1)
    for other in (pickle.loads(pickle.dumps(source)), copy.deepcopy(source), copy.copy(source)):
        assert not set(source.words(4).tolist()) & set(other.words(4).tolist())


@pytest.mark.parametrize("count", [-1, 1.5, True, "3"])
def test_bad_counts(count: object) -> None:
    with pytest.raises(InvalidParameter):
        default_source().words(count)  # type: ignore[arg-type]
    assert default_source().words(0).size == 0


@pytest.mark.parametrize("seed", [1.0, None, True])
def test_bad_seeds(seed: object) -> None:
    with pytest.raises(InvalidParameter):
        SeededSource(seed=seed)  # type: ignore[arg-type]
