"""What a treatment lost: how far each column, and how columns go together, lie from what they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.anonymity.treatments.columns import is_number, numbers

__all__ = ["Lost", "compare_tables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """rows: removed. columns: removed. changed: the share of values that differ, where rows kept their places.

    shift: for each column the distance between its two distributions, from 0 to 1: Kolmogorov and Smirnov's for
    numbers, total variation otherwise. correlation: the largest change of a correlation between two columns of numbers.
    """

    rows: int
    columns: tuple[str, ...]
    changed: Mapping[str, float]
    shift: Mapping[str, float]
    correlation: float | None

    @property
    def record(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "rows_removed": self.rows, "columns_removed": list(self.columns), "changed": dict(self.changed),
            "shift": dict(self.shift), "correlation": self.correlation,
        }  # fmt: skip


def compare_tables(before: Any, after: Any, *, aligned: bool) -> Lost:
    """What is different between two Arrow tables; aligned: row i of one is row i of the other."""
    common = [name for name in before.column_names if name in after.column_names]
    same_rows = aligned and before.num_rows == after.num_rows
    changed, shift, both = {}, {}, []
    for name in common:
        if is_number(before, name) and is_number(after, name):
            old, new = numbers(before, name), numbers(after, name)
            shift[name] = _kolmogorov(old, new)
            both.append(name)
            if same_rows:
                changed[name] = float(np.mean(~((old == new) | (np.isnan(old) & np.isnan(new)))))
        else:
            old_words, new_words = _words(before, name), _words(after, name)
            shift[name] = _variation(old_words, new_words)
            if same_rows:
                changed[name] = float(np.mean(old_words != new_words))
    return Lost(
        rows=before.num_rows - after.num_rows,
        columns=tuple(name for name in before.column_names if name not in after.column_names),
        changed=changed,
        shift=shift,
        correlation=_correlation(before, after, both),
    )


def _words(table: Any, name: str) -> npt.NDArray[Any]:
    """Values as texts, a missing one as a text of its own."""
    coded = table.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
    coded = coded.combine_chunks() if hasattr(coded, "combine_chunks") else coded
    texts = np.array(
        ["\0missing" if v is None else str(v) for v in coded.dictionary.to_pylist()], dtype=object
    )
    return texts[np.asarray(coded.indices.to_numpy(zero_copy_only=False))] if len(texts) else texts


def _variation(old: npt.NDArray[Any], new: npt.NDArray[Any]) -> float:
    if not len(old) or not len(new):
        return float(len(old) != len(new))
    words = {w: i for i, w in enumerate(dict.fromkeys([*old.tolist(), *new.tolist()]))}
    p = np.bincount([words[w] for w in old.tolist()], minlength=len(words)) / len(old)
    q = np.bincount([words[w] for w in new.tolist()], minlength=len(words)) / len(new)
    return float(np.abs(p - q).sum() / 2)


def _kolmogorov(old: npt.NDArray[np.float64], new: npt.NDArray[np.float64]) -> float:
    old, new = np.sort(old[np.isfinite(old)]), np.sort(new[np.isfinite(new)])
    if not len(old) or not len(new):
        return float(len(old) != len(new))
    places = np.concatenate([old, new])
    p = np.searchsorted(old, places, side="right") / len(old)
    q = np.searchsorted(new, places, side="right") / len(new)
    return float(np.abs(p - q).max())


def _correlation(before: Any, after: Any, names: list[str]) -> float | None:
    if len(names) < 2:
        return None
    found = []
    for table in (before, after):
        made = np.stack([numbers(table, n) for n in names], axis=1)
        made = made[np.isfinite(made).all(axis=1)]
        if len(made) < 3:
            return None
        with np.errstate(invalid="ignore", divide="ignore"):
            found.append(np.nan_to_num(np.corrcoef(made, rowvar=False)))
    return float(np.abs(found[0] - found[1]).max())
