"""The result of an attack: the exposed people, the learned values, and the success of guessing alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from operator import eq
from typing import TYPE_CHECKING, Any

from tacit.errors import BadData, EmptyComposition, InvalidParameter, UnknownColumn
from tacit.exact.canonical import formerly
from tacit.exact.checks import refuse_if, whole
from tacit.exact.data_classes import dataclass

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tacit.exact.arrays import Floats, Integers

MOST_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The success rate of an attack, by comparison with the truth.

    `right` of `claims` claims are true, about `people` people in all; `guessing` is the chance that one guess
    without the release is right.
    """

    claims: int
    right: int
    people: int
    guessing: float

    @property
    def precision(self) -> float:
        """The share of claims that are true; 1 if the attack made none."""
        return self.right / self.claims if self.claims else 1.0

    @property
    def share(self) -> float:
        """The share of all people about whom something true was claimed."""
        return self.right / self.people if self.people else 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finding:
    """What one attack says.

    `exposed` are people, as the attacker numbers them (positions in the list of people that were attacked, or in the
    release where the attacker had no list); `learned` has the claim about each of them, in the same order.
    `guessing` is the probability that one guess without the attack is right, by public knowledge; `alone`
    describes that guess.
    """

    attack: str
    people: int
    exposed: Sequence[int]
    learned: Sequence[object]
    guessing: float
    alone: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.exposed) != len(self.learned):
            raise InvalidParameter(
                parameter="learned", value=len(self.learned), must="have an entry for everybody exposed"
            )

    @property
    def share(self) -> float:
        """The share of people about whom something is claimed, true or not."""
        return len(self.exposed) / self.people if self.people else 0.0

    def score(self, truth: Sequence[Any], *, agree: Callable[[Any, Any], bool] = eq) -> Score:
        """Compares with the truth, one entry for each of the people; `agree(true, claimed)` defines a right claim."""
        refuse_if(
            len(truth) != self.people, "truth", len(truth), f"have one entry for each of {self.people} people"
        )
        right = sum(bool(agree(truth[i], claim)) for i, claim in zip(self.exposed, self.learned, strict=True))
        return Score(claims=len(self.exposed), right=right, people=self.people, guessing=self.guessing)

    def to_dict(self, most: int | None = MOST_SHOWN) -> dict[str, Any]:
        """Plain data; at most this many people are listed (None: all)."""
        shown = len(self.exposed) if most is None else min(most, len(self.exposed))
        return {
            "attack": self.attack,
            "people": self.people,
            "exposed": len(self.exposed),
            "share": self.share,
            "guessing": self.guessing,
            "alone": self.alone,
            **{name: plain(value) for name, value in self.details.items()},
            "found": [
                {"who": plain(self.exposed[i]), "learned": plain(self.learned[i])} for i in range(shown)
            ],
        }

    record = formerly("record", method=True)


def plain(value: Any) -> Any:
    """NumPy's numbers as Python's, tuples as lists, for JSON."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return value if isinstance(value, str | int | float | bool | None.__class__) else str(value)


# Randomness of attackers and of the systems they attack: a hash of a seed, so that every attack can be repeated.
#
# It is public by construction and never becomes noise of a release of ours.


class Draws:
    """A stream of numbers from a seed and a label; the same seed and label give the same stream."""

    def __init__(self, seed: int = 0, label: str = "") -> None:
        self._key = f"{whole('seed', seed, least=0)}/{label}/".encode()
        self._block = 0

    def _words(self, count: int) -> npt.NDArray[np.uint64]:
        import numpy as np

        self._block += 1
        taken = hashlib.shake_256(self._key + str(self._block).encode()).digest(8 * count)
        return np.frombuffer(taken, dtype="<u8")

    def uniforms(self, *shape: int) -> Floats:
        """Uniform on (0, 1), on the midpoints of 2^53 cells."""
        import numpy as np

        words = self._words(int(np.prod(shape, dtype=np.int64)))
        return ((words >> np.uint64(11)).astype(np.float64) + 0.5).reshape(shape) / 2.0**53

    def dyadic(self, *shape: int) -> Floats:
        """Uniform on the multiples of 2^-53 in (0, 1], as textbook samplers take them."""
        import numpy as np

        words = self._words(int(np.prod(shape, dtype=np.int64)))
        return ((words >> np.uint64(11)).astype(np.float64) + 1.0).reshape(shape) / 2.0**53

    def normals(self, *shape: int) -> Floats:
        """Standard normal, by inversion."""
        import numpy as np
        from scipy.special import ndtri

        return np.asarray(ndtri(self.uniforms(*shape)), dtype=np.float64)

    def laplace(self, *shape: int) -> Floats:
        """Laplace of scale 1."""
        import numpy as np

        u = self.uniforms(*shape)
        return np.asarray(np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u))), dtype=np.float64)

    def bits(self, *shape: int) -> Integers:
        """Fair bits."""
        return (self.uniforms(*shape) < 0.5).astype("int64")

    def integers(self, below: int, *shape: int) -> Integers:
        """Uniform on 0, ..., below - 1, within 2^-53 · below, which no attack here can notice."""
        import numpy as np

        return np.minimum((self.uniforms(*shape) * below).astype(np.int64), below - 1)

    def permutation(self, size: int) -> Integers:
        """A uniform order of 0, ..., size - 1."""
        import numpy as np

        return np.argsort(self.uniforms(size), kind="stable").astype(np.int64)


# Tables as an outsider holds them: columns by name, in classes of rows that agree; no row is visited in Python.

Columns = Mapping[str, Any]
"""A column is a list, a NumPy array or an Arrow column, found by its name in any table."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coded:
    """A column as numbers: `codes` point into `values`; a missing value has the code -1."""

    codes: Integers
    values: list[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedClasses:
    """Rows that agree in some columns: the class of each row, and for each class its size and its values."""

    of_row: Integers
    sizes: Integers
    values: list[tuple[Any, ...]]


def height(table: Columns, names: Sequence[str]) -> int:
    """The number of rows of the named columns, which must exist and agree."""
    known = list(table.column_names) if hasattr(table, "column_names") else list(table)
    lengths = set()
    for name in names:
        if name not in known:
            raise UnknownColumn(column=name, known=[str(k) for k in known], where="the table")
        lengths.add(len(table[name]))
    if len(lengths) > 1:
        raise BadData(source="the table", problem="has columns of different lengths")
    return lengths.pop() if lengths else 0


def check_roles(table: Columns, quasi: Sequence[str], sensitive: str | None = None) -> int:
    """Checks that quasi-identifiers are named, different, and not the sensitive column; returns the number of rows."""
    if isinstance(quasi, str) or not quasi:
        raise EmptyComposition(
            what="the list of quasi-identifiers", hint="name the columns that an outsider can know"
        )
    if len(set(quasi)) < len(quasi):
        raise InvalidParameter(parameter="quasi", value=list(quasi), must="name each column once")
    if sensitive is not None and sensitive in quasi:
        raise InvalidParameter(
            parameter="sensitive",
            value=sensitive,
            must="not be a quasi-identifier",
            hint="what an outsider knows already cannot be learned",
        )
    return height(table, [*quasi, *([sensitive] if sensitive else [])])


def coded(*columns: Any) -> list[Coded]:
    """Columns with the same meaning, from one table or several, in one code."""
    import numpy as np
    import pyarrow as pa

    arrays = []
    for column in columns:
        if isinstance(column, pa.ChunkedArray):
            arrays.append(column.combine_chunks() if column.num_chunks != 1 else column.chunk(0))
            continue
        try:
            arrays.append(pa.array(column, from_pandas=True))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            arrays.append(pa.array([None if v is None else str(v) for v in column]))
    if any(pa.types.is_nested(a.type) for a in arrays):
        raise BadData(
            source="the table", problem="has lists or records where a plain value is needed",
            hint="make columns of their parts first",
        )  # fmt: skip
    if len({a.type for a in arrays}) > 1:
        arrays = [
            pa.array([None if v is None else str(v) for v in a.to_pylist()], pa.string()) for a in arrays
        ]
    joined = pa.chunked_array(arrays).combine_chunks()
    if isinstance(joined, pa.ChunkedArray):
        joined = pa.concat_arrays(joined.chunks)
    if pa.types.is_null(joined.type):
        joined = joined.cast(pa.string())
    found = joined if pa.types.is_dictionary(joined.type) else joined.dictionary_encode()
    codes = np.asarray(found.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    values = found.dictionary.to_pylist()
    ends = np.cumsum([len(a) for a in arrays])[:-1]
    return [Coded(codes=part, values=values) for part in np.split(codes, ends)]


def classes(columns: Sequence[Coded]) -> ReleasedClasses:
    """Rows that agree in all of the columns; missing values agree with each other."""
    import numpy as np

    combined = np.zeros(len(columns[0].codes), dtype=np.int64)
    for column in columns:
        mixed = combined * (len(column.values) + 1) + (column.codes + 1)
        # Renumbered after each column, so that the products stay small.
        _, combined = np.unique(mixed, return_inverse=True)
    _, first, of_row, sizes = np.unique(combined, return_index=True, return_inverse=True, return_counts=True)
    values = [
        tuple(c.values[code] if (code := int(c.codes[row])) >= 0 else None for c in columns) for row in first
    ]
    return ReleasedClasses(of_row=of_row.astype(np.int64), sizes=sizes.astype(np.int64), values=values)
