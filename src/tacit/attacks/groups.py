"""What a k-anonymous table still tells: homogeneity, background knowledge, skewness.

The attacker knows in which class of rows a person lies, because that is what quasi-identifiers are, and reads the
sensitive values of the class (Machanavajjhala et al. 2006; Li, Li, Venkatasubramanian 2007). No k prevents it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tacit.attacks.finding import Finding
from tacit.attacks.tables import Columns, check_roles, classes, coded
from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.checks import positive

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tacit.exact.arrays import Integers


__all__ = ["background", "homogeneity", "skewness"]


class _Counted:
    """The table as classes and values: how often each value occurs in each class, as sparse pairs."""

    def __init__(self, table: Columns, quasi: Sequence[str], sensitive: str) -> None:
        import numpy as np

        self.rows = check_roles(table, quasi, sensitive)
        if self.rows == 0:
            raise InvalidParameter(parameter="table", value=0, must="have rows")
        self.classes = classes([coded(table[name])[0] for name in quasi])
        column = coded(table[sensitive])[0]
        # A missing value is a value of its own: that somebody has none can be learned too.
        self.values = [*column.values, None]
        self.value_of_row = np.where(column.codes < 0, len(column.values), column.codes)
        self.totals = np.bincount(self.value_of_row, minlength=len(self.values))
        pair = self.classes.of_row * len(self.values) + self.value_of_row
        pairs, self.in_pair = np.unique(pair, return_counts=True)
        self.class_of_pair = pairs // len(self.values)
        self.value_of_pair = pairs % len(self.values)

    @property
    def commonest(self) -> float:
        """What guessing the commonest value gets."""
        return float(self.totals.max() / self.rows)

    def number(self, value: object) -> int:
        """The number of a value; an unknown one is refused by the name that was typed."""
        for code, known in enumerate(self.values[:-1]):
            if known == value or str(known) == str(value):
                return code
        raise UnknownName(what="sensitive value", name=str(value), known=())

    def left_with_one(self, keep: npt.NDArray[np.bool_]) -> tuple[Integers, Integers]:
        """Rows of the kept pairs in classes with one kept value: who they are, and the value."""
        import numpy as np

        many = np.bincount(self.class_of_pair[keep], minlength=len(self.classes.sizes))
        only = np.full(len(self.classes.sizes), -1, dtype=np.int64)
        only[self.class_of_pair[keep]] = self.value_of_pair[keep]
        only[many != 1] = -1
        told = only[self.classes.of_row]
        rows = np.flatnonzero((told >= 0) & (told == self.value_of_row))
        return rows, told[rows]


def homogeneity(table: Columns, *, quasi: Sequence[str], sensitive: str) -> Finding:
    """Rows whose whole class has one sensitive value: whoever is known to be in it is known to have it."""
    import numpy as np

    counted = _Counted(table, quasi, sensitive)
    rows, told = counted.left_with_one(np.ones(len(counted.in_pair), dtype=np.bool_))
    return Finding(
        attack="homogeneity",
        people=counted.rows,
        exposed=rows.tolist(),
        learned=[counted.values[v] for v in told.tolist()],
        guessing=counted.commonest,
        alone="the commonest value of the table",
        details={
            "k": int(counted.classes.sizes.min()),
            "classes": len(counted.classes.sizes),
            "homogeneous_classes": int(
                np.count_nonzero(
                    np.bincount(counted.class_of_pair, minlength=len(counted.classes.sizes)) == 1
                )
            ),
        },
    )


def background(
    table: Columns, *, quasi: Sequence[str], sensitive: str, ruled_out: Sequence[object]
) -> Finding:
    """Somebody knows that a person does not have some of the values: classes that have then one value left.

    Exposed are the rows with that value: the people about whom the background knowledge is true. The rate at which
    guessing is right is that of the commonest value among those that are not ruled out.
    """
    import numpy as np

    counted = _Counted(table, quasi, sensitive)
    out = [counted.number(value) for value in ruled_out]
    keep = ~np.isin(counted.value_of_pair, out)
    rows, told = counted.left_with_one(keep)
    left = counted.totals.copy()
    left[out] = 0
    return Finding(
        attack="background knowledge",
        people=counted.rows,
        exposed=rows.tolist(),
        learned=[counted.values[v] for v in told.tolist()],
        guessing=float(left.max() / left.sum()) if left.sum() else 0.0,
        alone="the commonest value that is not ruled out",
        details={"k": int(counted.classes.sizes.min()), "ruled_out": [str(v) for v in ruled_out]},
    )


def skewness(
    table: Columns, *, quasi: Sequence[str], sensitive: str, value: object, factor: float = 2.0
) -> Finding:
    """Rows whose class has a value at least `factor` times as often as the whole table has it.

    Nobody is certain of anything, and a belief has moved all the same: from the share of the value in the table to its
    share in the class. Learned is that share.
    """
    import numpy as np

    counted = _Counted(table, quasi, sensitive)
    wanted = counted.number(value)
    limit = positive("factor", factor)
    prior = float(counted.totals[wanted] / counted.rows)
    in_class = np.zeros(len(counted.classes.sizes), dtype=np.int64)
    chosen = counted.value_of_pair == wanted
    in_class[counted.class_of_pair[chosen]] = counted.in_pair[chosen]
    share = in_class / counted.classes.sizes
    told = share[counted.classes.of_row]
    rows = np.flatnonzero(told >= limit * prior)
    learned: list[Any] = [float(s) for s in told[rows]]
    return Finding(
        attack="skewness",
        people=counted.rows,
        exposed=rows.tolist(),
        learned=learned,
        guessing=prior,
        alone="the share of the value in the whole table",
        details={"value": str(value), "largest_share": float(share.max()), "factor": limit},
    )
