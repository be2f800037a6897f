"""A tape of randomness: the same words in every run, for any generator of a mechanism.

While a tape is in place, NumPy's generators, `random`, `secrets`, `os.urandom` and tacit's source give words
that follow from its seed. The tape records every draw with its line. `rewind` begins again from the first word,
so that a second run on a neighbour meets the same noise. This module gives no randomness to any release.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import importlib
import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from tacit.exact.data_classes import dataclass

DRAWS = (
    "beta", "binomial", "bytes", "chisquare", "choice", "dirichlet", "exponential", "f", "gamma", "geometric", "gumbel",
    "hypergeometric", "integers", "laplace", "logistic", "lognormal", "multinomial", "multivariate_normal",
    "negative_binomial", "normal", "pareto", "permutation", "permuted", "poisson", "power", "rand", "randint", "randn",
    "random", "random_sample", "rayleigh", "shuffle", "standard_cauchy", "standard_exponential", "standard_gamma",
    "standard_normal", "standard_t", "triangular", "uniform", "vonmises", "wald", "weibull", "zipf",
)  # fmt: skip
PLAIN_DRAWS = (
    "random", "uniform", "gauss", "normalvariate", "expovariate", "choice", "choices", "randint", "randrange", "sample",
    "shuffle", "getrandbits", "betavariate", "gammavariate", "lognormvariate", "paretovariate", "triangular",
    "vonmisesvariate", "weibullvariate", "randbytes", "binomialvariate",
)  # fmt: skip
MOST_NUMBERS = 50
"""The number of kept scales and values of one draw."""
SECRET_DRAWS = ("randbelow", "randbits", "token_bytes", "token_hex", "token_urlsafe", "choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One draw: its distribution, its line, its count, and the parameters that must not vary."""

    name: str
    place: str
    size: int
    scale: tuple[float, ...] = ()
    other: str = ""
    values: tuple[float, ...] = ()
    """The drawn numbers, if their scale is known."""


class Tape:
    """Puts recorded generators in place of real ones; a context manager."""

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        self.draws: list[Draw] = []
        self.made: list[Any] = []
        self.kept = 0
        self._restore: list[tuple[Any, str, Any]] = []
        self._bytes = 0
        self._depth = 0
        self._answers: list[Any] = []
        self._asked = 0

    # Words.

    def _word(self, what: str) -> int:
        return int.from_bytes(hashlib.sha256(f"{self.seed}:{what}".encode()).digest()[:8], "big")

    def urandom(self, count: int) -> bytes:
        """Bytes of the tape in place of the operating system's. A draw, unless a noted draw asks for them."""
        if not self._depth:
            self.draws.append(Draw(name="bytes of the system", place=_place(_caller()), size=count))
        out = b""
        while len(out) < count:
            out += hashlib.sha256(f"{self.seed}:bytes:{self._bytes}".encode()).digest()
            self._bytes += 1
        return out[:count]

    def loaded(self) -> None:
        """The mechanism's file was loaded: generators made from now on belong to one run."""
        self.kept = len(self.made)

    def rewind(self, seed: int | None = None) -> None:
        """Starts again at the first word, of this tape or of another one."""
        if seed not in (None, self.seed):
            self._answers.clear()
        self._asked = 0
        self.seed = self.seed if seed is None else seed
        self.draws, self._bytes = [], 0
        del self.made[self.kept :]
        numbers = importlib.import_module("numpy.random")
        numbers.seed(self._word("numpy") % 2**32)
        importlib.import_module("random").seed(self._word("random"))
        for i, one in enumerate(self.made):
            one.bit_generator.state = numbers.PCG64(self._word(f"generator {i}")).state
        source = sys.modules.get("tacit.noise.source")
        if source is not None:
            source.default_source()._local = threading.local()

    def answered(self, draw: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A draw of a foreign generator: the answer of the first run, repeated in every other run with this
        tape.
        """
        if self._asked == len(self._answers):
            self._depth += 1
            try:
                self._answers.append(draw(*args, **named))
            finally:
                self._depth -= 1
        out = copy.deepcopy(self._answers[self._asked])
        self._asked += 1
        if not self._depth:
            self.draws.append(
                Draw(
                    name=getattr(draw, "__name__", "draw"),
                    place=_place(sys._getframe(2)),
                    size=int(np.size(out)) if out is not None else 0,
                    other=repr((args, sorted(named.items())))[:400],
                )
            )
        return out

    # Patches.

    def __enter__(self) -> Tape:
        tape = self
        _IN_PLACE.append(self)
        numbers = importlib.import_module("numpy.random")
        plain = importlib.import_module("random")
        secret = importlib.import_module("secrets")

        class NotedGenerator(numbers.Generator):  # type: ignore[misc, name-defined]
            """A generator whose draws are noted."""

        for name in DRAWS:
            if hasattr(numbers.Generator, name):
                setattr(
                    NotedGenerator, name, self._recorded(getattr(numbers.Generator, name), name, method=True)
                )

        def default_rng(seed: Any = None) -> Any:
            if isinstance(seed, numbers.Generator):
                return seed
            given = tape._word(f"generator {len(tape.made)}") if seed is None else seed
            made = NotedGenerator(numbers.PCG64(given))
            if seed is None:
                tape.made.append(made)
            return made

        self._put(numbers, "default_rng", default_rng)
        for name in DRAWS:
            if callable(getattr(numbers, name, None)):
                self._put(numbers, name, self._recorded(getattr(numbers, name), name))
        for name in PLAIN_DRAWS:
            if hasattr(plain, name):
                self._put(plain, name, self._recorded(getattr(plain, name), name))
        for name in SECRET_DRAWS:
            self._put(secret, name, self._recorded(getattr(secret, name), name))
        self._put(os, "urandom", self.urandom)
        self._put(plain, "_urandom", self.urandom)
        return self

    def __exit__(self, *_: object) -> None:
        _IN_PLACE.remove(self)
        for where, name, old in reversed(self._restore):
            setattr(where, name, old)
        self._restore.clear()
        source = sys.modules.get("tacit.noise.source")
        if source is not None:
            source.default_source()._local = threading.local()
        importlib.import_module("numpy.random").seed(int.from_bytes(os.urandom(4), "big"))
        importlib.import_module("random").seed()

    def _put(self, where: Any, name: str, new: Any) -> None:
        self._restore.append((where, name, getattr(where, name)))
        setattr(where, name, new)

    def _recorded(self, draw: Callable[..., Any], name: str, *, method: bool = False) -> Callable[..., Any]:
        def recorded(*args: Any, **named: Any) -> Any:
            self._depth += 1
            try:
                out = draw(*args, **named)
            finally:
                self._depth -= 1
            if not self._depth:
                given = args[1:] if method else args
                self.draws.append(
                    Draw(
                        name=name,
                        place=_place(sys._getframe(1)),
                        size=int(np.size(out)) if out is not None else 0,
                        scale=(scale := _scale(name, given, named)),
                        other=_other(name, named),
                        values=_numbers(out) if scale else (),
                    )
                )
            return out

        return recorded


_IN_PLACE: list[Tape] = []


def recorded(draw: Callable[..., Any]) -> Callable[..., Any]:
    """For noise of a compiled library: a function that returns only noise gives neighbours the same noise in a
    replay.

    Its arguments are the parameters of the noise. A replay compares them: they must not depend on the data.
    Outside of a replay the function is unchanged.
    """

    @functools.wraps(draw)
    def given(*args: Any, **named: Any) -> Any:
        return _IN_PLACE[-1].answered(draw, args, named) if _IN_PLACE else draw(*args, **named)

    return given


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _caller() -> FrameType:
    """The line that asked for bytes, outside of the standard library's generators."""
    frame = sys._getframe(2)
    generators = {importlib.import_module(name).__file__ for name in ("random", "secrets")}
    while frame.f_back is not None and frame.f_code.co_filename in generators:
        frame = frame.f_back
    return frame


def _numbers(out: Any) -> tuple[float, ...]:
    return tuple(float(v) for v in np.ravel(np.asarray(out, dtype=float))[:MOST_NUMBERS])


def _scale(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[float, ...]:
    """The scale of a location-scale draw; the location may depend on the data, the scale must not."""
    if name not in ("laplace", "normal", "gauss", "normalvariate", "logistic", "gumbel"):
        return ()
    given = named.get("scale", named.get("sigma", args[1] if len(args) > 1 else 1.0))
    try:
        return tuple(float(v) for v in np.ravel(np.asarray(given, dtype=float))[:MOST_NUMBERS])
    except (TypeError, ValueError):
        return ()


def _other(name: str, named: dict[str, Any]) -> str:
    """Other parameters as text, which shows a distribution that depends on the data."""
    kept = {
        k: v
        for k, v in named.items()
        if k in ("p", "weights", "lam", "alpha", "pvals", "shape", "df", "a", "b")
    }
    return (
        "" if not kept else " ".join(f"{k}={np.asarray(v).tolist()!r}"[:400] for k, v in sorted(kept.items()))
    )
