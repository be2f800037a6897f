"""Small linear algebra runs on one thread, and the setting is given back."""

from __future__ import annotations

import threading

import pytest

from tacit.errors import InvalidParameter
from tacit.exact.threads import _functions, _libraries, one_thread
from tacit.pld import LaplacePair, Product
from tacit.pld import engine as engine_room
from tacit.risk import optimal_count
from tacit.risk import remap as remap_room
from tacit.risk import remap as solve_room


def settings() -> list[int]:
    return [int(_functions(library)[0]()) for library in _libraries()]


@pytest.fixture
def two() -> object:
    """Two threads before and after, whatever the machine has."""
    before = settings()
    if not before:
        pytest.skip("numpy has no OpenBLAS of its own here")
    for library in _libraries():
        _functions(library)[1](2)
    if settings() != [2] * len(before):
        pytest.skip("this OpenBLAS has one thread")
    yield None
    for library, count in zip(_libraries(), before, strict=True):
        _functions(library)[1](count)


def test_one_thread_inside_and_as_before_outside(two: object) -> None:
    with one_thread():
        assert set(settings()) == {1}
        with one_thread():
            assert set(settings()) == {1}
        assert set(settings()) == {1}, "the inner one gives nothing back while the outer one is inside"
    assert set(settings()) == {2}


def test_given_back_after_an_error_and_between_threads(two: object) -> None:
    with pytest.raises(InvalidParameter), one_thread():
        raise InvalidParameter(parameter="x", value=1, must="be 2")
    assert set(settings()) == {2}
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with one_thread():
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=other)
    with one_thread():
        thread.start()
        inside.wait(30)
    assert set(settings()) == {1}
    leave.set()
    thread.join()
    assert set(settings()) == {2}


def test_the_best_count_is_solved_on_one(two: object, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    plain = remap_room.minimax_remap

    def watched(*given: object) -> object:
        seen.extend(settings())
        return plain(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(solve_room, "minimax_remap", watched)
    optimal_count(n=40, epsilon=1.0)
    assert set(seen) == {1}
    assert set(settings()) == {2}


def test_compositions_are_computed_on_one(two: object, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    plain = engine_room.CompositionEngine._solve

    def watched(*given: object) -> object:
        seen.extend(settings())
        return plain(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(engine_room.CompositionEngine, "_solve", watched)
    product = Product(pairs=[(LaplacePair(epsilon=e), 1) for e in (0.31, 0.52, 0.73)])
    for read in (lambda: product.epsilon(0.031), lambda: product.delta(0.31), product.as_pair().pld):
        seen.clear()
        read()
        assert set(seen) == {1}
        assert set(settings()) == {2}
