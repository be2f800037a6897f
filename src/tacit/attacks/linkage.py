"""Linkage on quasi-identifiers: a release without names against a list with names (Sweeney's attack on the GIC files).

Whoever is alone in the release with her birth date, sex and postal code, and is on the list with the same three, is
named, and so is all else in her row. In a population of n people drawn from cells with probabilities p_i the expected
share of people who are alone in their cell is Σ p_i (1 - p_i)^(n-1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tacit.attacks.finding import Finding
from tacit.attacks.tables import Columns, check_roles, classes, coded
from tacit.errors import InvalidParameter
from tacit.exact.checks import whole

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["expected_unique_share", "link", "unique_share"]


def link(release: Columns, known: Columns, *, quasi: Sequence[str], sensitive: str | None = None) -> Finding:
    """Name the people of a list in a release.

    Exposed are the people on the list whose quasi-identifiers occur in exactly one row of the release and on exactly
    one line of the list. Learned is the sensitive value of that row, or its number. It is right if the person is in
    the release at all and the list has no errors: an outsider who does not know that has a probable name, not a proof.
    """
    import numpy as np

    rows = check_roles(release, quasi, sensitive)
    people = check_roles(known, quasi)
    there, here = [], []
    for name in quasi:
        left, right = coded(release[name], known[name])
        there.append(left)
        here.append(right)
    joined = classes(
        [
            type(a)(codes=np.concatenate([a.codes, b.codes]), values=a.values)
            for a, b in zip(there, here, strict=True)
        ]
    )
    whole_rows = np.concatenate(
        [
            np.all([a.codes >= 0 for a in there], axis=0),
            np.all([b.codes >= 0 for b in here], axis=0),
        ]
    )
    cells = len(joined.sizes)
    in_release = np.bincount(joined.of_row[:rows][whole_rows[:rows]], minlength=cells)
    on_list = np.bincount(joined.of_row[rows:][whole_rows[rows:]], minlength=cells)
    row_of = np.full(cells, -1, dtype=np.int64)
    row_of[joined.of_row[:rows]] = np.arange(rows)
    mine = joined.of_row[rows:]
    named = np.flatnonzero((in_release[mine] == 1) & (on_list[mine] == 1) & whole_rows[rows:])
    where = row_of[mine[named]]
    learned: Sequence[Any] = where.tolist()
    guessing, alone = (1 / rows if rows else 0.0), "a row drawn at random"
    if sensitive is not None:
        value = coded(release[sensitive])[0]
        learned = [value.values[c] if c >= 0 else None for c in value.codes[where].tolist()]
        there_are = value.codes[value.codes >= 0]
        guessing = float(np.bincount(there_are).max() / rows) if there_are.size else 0.0
        alone = "the commonest value of the release"
    return Finding(
        attack="linkage",
        people=people,
        exposed=named.tolist(),
        learned=learned,
        guessing=guessing,
        alone=alone,
        details={
            "rows": rows,
            "unique_rows": int(np.count_nonzero(in_release == 1)),
            "quasi": list(quasi),
        },
    )


def unique_share(table: Columns, *, quasi: Sequence[str]) -> float:
    """The share of rows that no other row agrees with in all quasi-identifiers."""
    import numpy as np

    rows = check_roles(table, quasi)
    if not rows:
        return 0.0
    found = classes([coded(table[name])[0] for name in quasi])
    return int(np.count_nonzero(found.sizes == 1)) / rows


def expected_unique_share(
    probabilities: npt.ArrayLike, people: int, *, times: npt.ArrayLike = 1
) -> tuple[float, float]:
    """The expected share of people alone in their cell among n independent ones, and its standard deviation.

    E = Σ p_i (1 - p_i)^(n-1). With U the number of them, E[U(U-1)] = Σ_{i≠j} n(n-1) p_i p_j (1 - p_i - p_j)^(n-2).
    `times` says how many cells have each probability, so that many equal cells cost nothing.
    """
    import numpy as np

    n = whole("people", people)
    p = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
    k = np.broadcast_to(np.asarray(times, dtype=np.float64), p.shape)
    if p.size == 0 or not (np.isfinite(p).all() and (p >= 0).all() and abs(float(p @ k) - 1) < 1e-9):
        raise InvalidParameter(
            parameter="probabilities", value=float(p @ k), must="be at least 0 and add up to 1"
        )
    alone = p * (1 - p) ** (n - 1)
    mean = float(k @ alone)
    if n == 1:
        return mean, 0.0
    kept = np.clip(1 - p[:, None] - p[None, :], 0.0, None)
    pairs = n * (n - 1) * p[:, None] * p[None, :] * kept ** (n - 2)
    both = float(k @ pairs @ k) - float(k @ np.diag(pairs))
    variance = both + n * mean - (n * mean) ** 2
    return mean, float(np.sqrt(max(0.0, variance))) / n
