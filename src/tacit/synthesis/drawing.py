"""Rows from a model: along the junction tree, by systematic sampling inside each value of the separator.

The rows that share a value s of a clique's separator are put in a fresh random order; row j of n_s takes the cell of
the new columns at which their conditional distribution function passes (j + u_s) / n_s, u_s uniform. So n_s
p(cell | s) rows get each cell, rounded up or down, and the choice among the n_s rows is random. Columns that
the model makes independent given the separator stay so. Post-processing; all randomness comes from the noise
room.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Floats, Integers
from tacit.noise.source import Source
from tacit.synthesis.model import Model, margin_of
from tacit.synthesis.public import exact_table
from tacit.synthesis.trees import Margin, cells_of

Codes = npt.NDArray[np.int32]
"""One line a row, one column a column: the place of each value on its axis."""
MOST_VALUES = 200_000_000
"""The largest product of drawn rows and columns: beyond it, fewer rows with a weight stand for more."""


def most_rows(columns: int) -> int:
    """The largest number of rows that are drawn of this many columns."""
    return MOST_VALUES // columns


def draw_rows(model: Model, rows: int, source: Source, *, exact: bool = False) -> Codes:
    """This many rows of the model; with `exact` they have its public margins, whose total is their number."""
    tree = model.tree
    codes = np.zeros((rows, len(model.sizes)), dtype=np.int32, order="F")
    held = model.held if exact else ()
    if held:
        shape = [model.sizes[i] for i in held]
        belief = margin_of(model.beliefs[0], tree.cliques[0], held)
        nobody = np.zeros(rows, dtype=np.int64)
        drawn = np.bincount(_systematic(belief.reshape(1, -1), nobody, source), minlength=belief.size)
        exact_counts = exact_table(drawn.reshape(shape), model.public, held, belief > 0)
        order, _, _ = _shuffled(nobody, 1, source)
        cells = np.repeat(np.arange(belief.size), exact_counts.ravel())[order]
        for i, place in zip(held, np.unravel_index(cells, shape), strict=True):
            codes[:, i] = place
    for k, (clique, common, belief) in enumerate(
        zip(tree.cliques, tree.separators, model.beliefs, strict=True)
    ):
        if k == 0 and held:
            common = held
        new = [i for i in clique if i not in common]
        if not new:
            continue
        moved = belief.transpose([clique.index(i) for i in (*common, *new)])
        shape = [model.sizes[i] for i in new]
        table = moved.reshape(-1, math.prod(shape))
        cells = _systematic(table, flat(codes, common, model.sizes), source)
        for i, place in zip(new, np.unravel_index(cells, shape), strict=True):
            codes[:, i] = place
    return codes


def _systematic(table: Floats, held: Integers, source: Source) -> Integers:
    """A cell of the second axis for each row, given its place on the first."""
    count, values = table.shape
    rows = held.size
    order, inside, sizes = _shuffled(held, count, source)
    starts = _uniform(source, count)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = (inside + starts[held[order]]) / sizes[held[order]]
    total = table.sum(axis=1)
    # A value that the model holds impossible takes the distribution without it; nothing else is known of it.
    if bool((total <= 0).any()):
        overall = table.sum(axis=0)
        table = np.where((total <= 0)[:, None], overall, table)
    ends = np.cumsum(table, axis=1)
    ends /= ends[:, -1:]
    # Line s of the table lies in (s, s + 1]: one search for all rows.
    flat_ends = (ends + np.arange(count)[:, None]).ravel()
    found = np.searchsorted(flat_ends, held[order] + at, side="right") - held[order] * values
    last = values - 1 - np.argmax(table[:, ::-1] > 0, axis=1)
    out = np.empty(rows, dtype=np.int64)
    out[order] = np.clip(found, 0, last[held[order]])
    return out


def _shuffled(held: Integers, count: int, source: Source) -> tuple[Integers, Integers, Integers]:
    """Rows sorted by their group, in random order within each; the place of each in its group; and the groups'
    sizes.
    """
    rows = held.size
    bits = max(1, (count - 1).bit_length())
    key = (held.astype(np.uint64) << np.uint64(64 - bits)) | (source.words(rows) >> np.uint64(bits))
    order = np.argsort(key)
    sizes = np.bincount(held, minlength=count)
    first = np.cumsum(sizes) - sizes
    inside = np.arange(rows) - first[held[order]]
    return order, inside, sizes


def _uniform(source: Source, count: int) -> Floats:
    """Uniform on (0, 1), to 52 bits; no privacy depends on them."""
    return ((source.words(count) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def flat(codes: npt.NDArray[Any], margin: Margin, sizes: tuple[int, ...]) -> Integers:
    """The place of each row in the table of some columns, last column fastest."""
    held = np.zeros(len(codes), dtype=np.int64)
    for i in margin:
        held = held * sizes[i] + codes[:, i]
    return held


def counted(codes: npt.NDArray[Any], margin: Margin, sizes: tuple[int, ...]) -> Integers:
    """The number of rows in each cell of a margin; flattened."""
    return np.bincount(flat(codes, margin, sizes), minlength=cells_of(margin, sizes))
