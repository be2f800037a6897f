"""Outputs of a mechanism as plain leaves, and as columns of numbers that predictors can read.

An output is anything that a Python function returns: numbers, texts, lists, arrays, tables, an exception. Types, shapes
and the texts of exceptions are part of it, because a reader sees them. Nothing of an output is rounded away: -0.0, NaN
and the last bit of a float count.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats

Leaf = Any
Output = tuple[str, tuple[Leaf, ...]]
"""The structure (types, shapes, kinds of the leaves), and the leaves in order."""

MOST_LEAVES = 20_000
MOST_DEPTH = 40
POSITIONS = 40
"""The number of leaves with their own columns; the others count in sums, extremes and numbers of each kind."""
WORDS = 24
_NUMBERS = [float("bifzsyon".find(letter)) for letter in "ifz"]

_KINDS = {bool: "b", int: "i", float: "f", str: "s", bytes: "y", type(None): "o"}


def not_comparable(kind: str) -> InvalidParameter:
    """The error for an output of a type that two runs cannot be compared in."""
    return InvalidParameter(
        parameter="mechanism",
        value=kind,
        must="return values that can be compared",
        hint="return numbers, texts, lists, dictionaries, arrays or tables; evaluate a function at fixed points",
    )


def raised(problem: BaseException) -> Output:
    """An exception as an output: readers see its type and its text."""
    try:
        said = str(problem)
    except Exception:
        said = "a text that cannot be made"
    return f"raised {type(problem).__name__}", (said[:200],)


def no_answer(why: str) -> Output:
    """A run without an answer: the time was up, or its process ended."""
    return f"no answer: {why}", ()


def is_answer(output: Output) -> bool:
    """Did the run end with a returned value?"""
    return not output[0].startswith(("raised ", "no answer: "))


def plain_output(value: Any) -> Output:
    """An output as its structure and its leaves."""
    kind = _KINDS.get(type(value))
    if kind is not None:
        letter, leaf = _leaf(kind, value)
        return letter, (leaf,)
    leaves: list[Leaf] = []
    letters: list[str] = []
    try:
        said = _walk(value, leaves, letters, 0)
    except RecursionError:
        raise not_comparable(type(value).__name__) from None
    return said + ":" + "".join(letters), tuple(leaves)


def _leaf(kind: str, value: Any) -> tuple[str, Leaf]:
    if kind == "f":
        if value != value:
            return "n", 0.0
        if value == 0 and math.copysign(1, value) < 0:
            return "z", 0.0
    return kind, value


def _walk(value: Any, leaves: list[Leaf], letters: list[str], depth: int) -> str:
    """Append the leaves of a value; return the text of its structure."""
    kind = _KINDS.get(type(value))
    if kind is not None:
        if len(leaves) >= MOST_LEAVES:
            raise not_comparable(f"more than {MOST_LEAVES} numbers at once")
        letter, leaf = _leaf(kind, value)
        letters.append(letter)
        leaves.append(leaf)
        return ""
    if depth > MOST_DEPTH:
        raise not_comparable("lists in lists without an end")
    name = type(value).__name__
    if isinstance(value, np.generic):
        return f"{value.dtype} " + _walk(value.item(), leaves, letters, depth + 1)
    if isinstance(value, np.ndarray):
        if value.size > MOST_LEAVES:
            raise not_comparable(f"more than {MOST_LEAVES} numbers at once")
        for one in value.ravel().tolist():
            _walk(one, leaves, letters, depth + 1)
        return f"{name}{value.shape}{value.dtype}"
    if isinstance(value, list | tuple):
        inside = {_walk(one, leaves, letters, depth + 1) for one in value}
        return f"{name}[{len(value)}]" + "".join(sorted(inside))
    if isinstance(value, Mapping):
        inside = {_walk(one, leaves, letters, depth + 1) for one in value.values()}
        return f"{name}{{{', '.join(map(repr, value))}}}" + "".join(sorted(inside))
    if isinstance(value, set | frozenset):
        for one in sorted(value, key=repr):
            _walk(one, leaves, letters, depth + 1)
        return f"{name}[{len(value)}]"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return f"{name} " + _walk(fields, leaves, letters, depth + 1)
    if isinstance(value, complex):
        return "complex " + _walk((value.real, value.imag), leaves, letters, depth + 1)
    if hasattr(value, "to_numpy") and hasattr(value, "columns"):
        columns = {str(c): np.asarray(value[c].to_numpy()) for c in value.columns}
        return f"{name} " + _walk(columns, leaves, letters, depth + 1)
    if hasattr(value, "to_numpy"):
        return f"{name} " + _walk(np.asarray(value.to_numpy()), leaves, letters, depth + 1)
    if type(value).__module__ in ("decimal", "fractions", "datetime", "uuid"):
        return f"{name} " + _walk(str(value), leaves, letters, depth + 1)
    raise not_comparable(name)


def low_bit(values: Floats) -> Floats:
    """The exponent of the lowest set bit of each float; NaN for 0, infinities and NaN.

    The sum of a number near 1 and a small noise has no bits below 2^-53; noise on 0 has them. This is where
    floating-point noise shows its input (Mironov 2012).
    """
    finite = np.isfinite(values) & (values != 0)
    mantissa, exponent = np.frexp(np.where(finite, values, 1.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = np.log2((whole & -whole).astype(np.float64))
    return np.where(finite, exponent - 53 + lowest, np.nan)


SIGNS = "signs along the difference of the inputs"
MATCHED = ("marks along the difference of the inputs", "numbers along the difference of the inputs", SIGNS)


def matched(outputs: Sequence[Output], toward: Sequence[float]) -> Floats:
    """Outputs projected on the difference of the inputs: of their true values and numbers as marks, of all
    values, and of marks as signs, where false and missing values count against.

    For a mechanism that answers each entry of its input, these sums separate the neighbours best.
    """
    found = np.zeros((len(outputs), 3))
    if len(toward) < 2:
        return found
    for r, (structure, leaves) in enumerate(outputs):
        letters = structure.rpartition(":")[2]
        marks = numbers = signs = 0.0
        for letter, leaf, weight in zip(letters, leaves, toward, strict=False):
            if letter == "b":
                marks += weight * leaf
                numbers += weight * leaf
                signs += weight if leaf else -weight
            elif letter in "ifz":
                marks += weight
                numbers += weight * max(-1e300, min(1e300, leaf))
                signs += weight
            elif letter in "on":
                signs -= weight
        found[r] = marks, numbers, signs
    return found


def difference(a: Any, b: Any) -> tuple[float, ...]:
    """The difference of two inputs that are lists of numbers of one length; empty otherwise."""
    try:
        left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    except (TypeError, ValueError):
        return ()
    if left.ndim != 1 or left.shape != right.shape or left.size > MOST_LEAVES:
        return ()
    moved = right - left
    return tuple(moved.tolist()) if np.isfinite(moved).all() else ()


class Encoder:
    """Columns of numbers from outputs: the value at each position, and joint properties of all positions.

    The columns follow from the outputs that were given when it was made. Later outputs of another structure get the
    code -1 there, which a predictor can see as well.
    """

    def __init__(self, outputs: Sequence[Output]) -> None:
        self.seen = len(outputs)
        shapes = Counter(structure for structure, _ in outputs)
        self.structures = {s: float(i) for i, (s, _) in enumerate(shapes.most_common(200))}
        self.size = max((len(leaves) for _, leaves in outputs), default=0)
        kept = [leaves for _, leaves in outputs]
        words = Counter(leaf for leaves in kept for leaf in leaves if isinstance(leaf, str | bytes))
        self.words = {w: float(i) for i, (w, _) in enumerate(words.most_common(WORDS))}
        kinds: list[set[str]] = [set() for _ in range(min(self.size, POSITIONS))]
        for structure, leaves in outputs:
            letters = structure.rpartition(":")[2]
            for i, seen in enumerate(kinds):
                seen.add(letters[i] if i < len(letters) and i < len(leaves) else "-")
        self.mixed = [i for i, seen in enumerate(kinds) if len(seen) > 1]
        # Where some outputs have a number and others a mark or nothing, the others are put beyond all numbers, once
        # above and once below: then "a number, and a small one" is an event of one column, and so is a large one.
        self.partly = [i for i, seen in enumerate(kinds) if seen & set("ifz") and seen - set("ifz")]
        numbers = [leaves[i] for _, leaves in outputs for i in self.partly if i < len(leaves)]
        sizes = [
            min(1e300, abs(n)) for n in numbers if type(n) is int or (type(n) is float and math.isfinite(n))
        ]
        self.beyond = 4.0 * float(max(sizes, default=1.0)) + 1.0
        self.floats = any("f" in seen for seen in kinds)
        self.names = [f"number {i + 1}" for i in range(len(kinds))]
        self.names += [f"kind of {i + 1}" for i in self.mixed]
        self.names += [f"number {i + 1}, where it is one," for i in self.partly for _ in "ab"]
        self.together = self.size > 1
        if self.together:
            self.names += [
                "sum",
                "largest",
                "smallest",
                "place of the largest",
                "count of true",
                "first true",
            ]
            self.names += ["numbers", "length"]
        if self.floats:
            self.names += ["lowest bit of 1", "lowest bit"]
        self.names += ["structure", *MATCHED]
        self.at = {name: i for i, name in enumerate(self.names)}

    def columns(self, outputs: Sequence[Output], toward: Sequence[float] = ()) -> Floats:
        """One row for each output; `toward` is the difference of the two inputs, if they are lists of numbers."""
        n, wide = len(outputs), min(self.size, POSITIONS)
        values = np.full((n, max(wide, 1)), np.nan)
        kinds = np.full((n, max(wide, 1)), -1.0)
        together = np.full((n, 8), np.nan)
        codes = np.empty(n)
        for r, (structure, leaves) in enumerate(outputs):
            codes[r] = self.structures.get(structure, -1.0)
            letters = structure.rpartition(":")[2]
            numbers: list[float] = []
            trues, first, floats = 0, -1, 0
            for i, leaf in enumerate(leaves):
                letter = letters[i] if i < len(letters) else "?"
                if letter in "bifz":
                    if letter == "i":
                        leaf = max(-1e300, min(1e300, leaf))
                    number = float(leaf)
                    if letter == "b":
                        trues += leaf
                        first = i if leaf and first < 0 else first
                    else:
                        numbers.append(number)
                        floats += 1
                elif letter in "sy":
                    number = self.words.get(leaf, -1.0)
                else:
                    number = math.nan
                if i < wide:
                    values[r, i] = number
                    kinds[r, i] = "bifzsyon".find(letter)
            if self.together:
                if numbers:
                    top = max(numbers)
                    total = math.fsum(x for x in numbers if math.isfinite(x))
                    together[r, :4] = total, top, min(numbers), numbers.index(top)
                together[r, 4:] = trues, first, floats, len(leaves)
        parts = [values[:, :wide], kinds[:, self.mixed]]
        for i in self.partly:
            there = np.isin(kinds[:, i], _NUMBERS) & ~np.isnan(values[:, i])
            parts += [np.where(there, values[:, [i]].T, side * self.beyond).T for side in (-1, 1)]
        if self.together:
            parts.append(together)
        if self.floats:
            bits = low_bit(values)
            least = np.min(np.where(np.isnan(bits), 2000.0, bits), axis=1)
            parts.append(np.column_stack([bits[:, 0], least]))
        return np.column_stack([*parts, codes, matched(outputs, toward)])

    def in_words(self, column: int) -> str:
        """A column's name for a sentence."""
        name = self.names[column]
        return {
            "number 1": "the output" if self.size == 1 else "the first number",
            "structure": "the type or shape of the output",
            "lowest bit of 1": "the exponent of the lowest bit of the first number",
            "lowest bit": "the exponent of the lowest bit of all numbers",
            "length": "the length of the output",
            "sum": "the sum of the numbers",
            "largest": "the largest number",
            "smallest": "the smallest number",
            "count of true": "the number of true values",
            "first true": "the place of the first true value",
            "numbers": "the number of numbers",
        }.get(name, name)
