"""Estimates with survey weights: totals, means, proportions and ratios by group, with the design's own variance.

A row with weight w of [0, wh] and value x, u = (x - low) / width, q = w / wh, adds

    w u, w (1 - u)                                              to the two parts of a weighted mean, and
    wh {2 q (1 - q), q^2} x {(1 - u)^2, 2 u (1 - u), u^2}       to the six of one with a population interval.

No part is negative and their sum is at most wh, reached at w = wh. Contributions are those of a histogram with cells
of size wh (theorem `survey-weights`). A weight must be a function of its own row and of public figures. Weights
calibrated on the rows of this table are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tacit.errors import InvalidParameter, NoLaw, TooManyCells, UnknownName, WrongType
from tacit.exact.arrays import AnyArray
from tacit.exact.checks import set_fields, text
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Unit
from tacit.sources.axes import Axis, Factor, OpenAxis, Products, axis_of, cell_count
from tacit.sources.columns import Date, Measured
from tacit.sources.expressions import And, Expression, Not
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import (
    Frame,
    GlobalSensitivity,
    Part,
    Question,
    Statistic,
    base_unit,
    public_rows,
    row_limit,
    simplex,
)
from tacit.statistics.forms import Form, Share
from tacit.statistics.population import (
    INDEPENDENT,
    Affine,
    Clusters,
    RatioOfSums,
    SumCoefficients,
    Variable,
    coefficients,
    part_integers,
    part_names,
    powers,
    simplex_total,
    spacing_of,
    typical_parts,
)
from tacit.statistics.rates import Standard, checked_standard, standard_axis, standard_of, with_standard

FINE, COARSE = 1 << 15, 1 << 10
"""Levels of a value: two columns of fourth degree fit into 62 bits, or three of sixth degree."""
OF_ITS_ROW = "a survey weight is a function of its own row and of public figures"
WEIGHTED = (
    "rows are drawn independently, and each stands for as many members of the population as its weight says"
)
CLUSTERED = (
    "primary sampling units are drawn independently within their strata, and nobody has rows in two of them"
)
ADJUSTED = ("calibrated", "non-response", "post-stratified", "raked")
"""Weights that depend on other rows of the table."""
MOST_UNITS = 1 << 20
"""A design may have so many primary sampling units, in all strata together."""

Strata = str | tuple[tuple[str, tuple[Any, ...]], ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyDesign:
    """The design of a sample: its primary sampling units, and their strata."""

    psu: str = ""
    strata: Strata = None


def design_of(given: Mapping[str, Any] | None) -> SurveyDesign:
    """`design={"strata": "region", "psu": "village"}`; strata may list the units: `{"north": ["a", "b"], ...}`."""
    if given is None:
        return SurveyDesign()
    if not isinstance(given, Mapping):
        raise InvalidParameter(
            parameter="design", value=type(given).__name__, must="be a table", hint='{"psu": "village"}'
        )
    for word in given:
        if word not in ("psu", "strata", "weights"):
            raise UnknownName(what="word in design", name=str(word), known=("psu", "strata", "weights"))
    _check_weights(given.get("weights", "design"))
    if "psu" not in given and "strata" in given:
        raise InvalidParameter(
            parameter="design", value="strata", must="name the primary sampling units, too",
            hint='{"strata": "region", "psu": "village"}; where single people are drawn within strata, ask by stratum',
        )  # fmt: skip
    psu, strata = given.get("psu", ""), given.get("strata")
    if "psu" in given:
        psu = text("psu", psu, empty=False)
    if isinstance(strata, Mapping):
        strata = tuple((str(s), units) for s, units in strata.items())
    return SurveyDesign(psu=psu, strata=_strata(strata))


def _listed(units: Any) -> tuple[Any, ...]:
    if isinstance(units, str) or not isinstance(units, Sequence):
        raise InvalidParameter(
            parameter="strata", value=type(units).__name__, must="list primary sampling units"
        )
    return tuple(units)


def _strata(value: Any) -> Strata:
    """A column, or for each stratum its units."""
    if value is None or isinstance(value, str):
        return None if value is None else text("strata", value, empty=False)
    if not isinstance(value, tuple | list) or not all(
        isinstance(v, tuple | list) and len(v) == 2 for v in value
    ):
        raise InvalidParameter(
            parameter="strata", value=type(value).__name__, must="name a column, or list strata"
        )
    return tuple((text("strata", name, empty=False), _listed(units)) for name, units in value)


def _check_weights(kind: Any) -> None:
    """Refuse weights that depend on other rows, with the reason."""
    if kind == "design":
        return
    if kind not in ADJUSTED:
        raise UnknownName(what="weights in design", name=str(kind), known=("design", *ADJUSTED))
    raise NoLaw(
        operation=f"{kind} weights of the table that is protected",
        reason="each weight depends on all rows: a person who leaves changes all other weights, and "
        "no theorem bounds the change for a table of doubles",
        counterexample="post-stratified weights N / n: one row that leaves moves the other n - 1 weights by w in sum, "
        "twice what its own weight says, and rounding n equal weights to a grid can move n steps more",
        hint="ask with the design weights, and calibrate what was released: standard={...} takes public counts",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedStatistic(Statistic):
    """The common base of weighted statistics: the weight, the design, and sums of products."""

    survey_weight: str = ""
    psu: str = ""
    strata: Strata = None
    standard: Standard = None

    def __post_init__(self) -> None:
        self._check_words()
        for name in ("survey_weight", "psu"):
            set_fields(self, **{name: text(name, getattr(self, name))})
        set_fields(self, strata=_strata(self.strata), standard=checked_standard(self.standard))
        if self.standard is not None and (self.psu or not self.standardises):
            raise InvalidParameter(
                parameter="standard",
                value=self.kind,
                must="be asked for means, shares and sums without clusters",
            )

    # --- what differs from one to the other ----------------------------------------------------------------
    def values(self, schema: Schema) -> tuple[tuple[str, Measured], ...]:
        """The measured columns behind the weight, in order."""
        raise NotImplementedError

    def functions(self, schema: Schema) -> tuple[Affine, Affine]:
        """f and g of the value variables."""
        raise NotImplementedError

    def scaled(self, schema: Schema) -> dict[str, Any]:
        """low, width, least, most and total of the form."""
        raise NotImplementedError

    averaged: ClassVar[bool] = False
    """Is it a mean or a share, of one variable?"""
    standardises: ClassVar[bool] = False
    """Can it be made of estimates in the keys of a column, with public weights?"""

    @property
    def test(self) -> Expression | None:
        """The test of a proportion, whose variable is yes or no."""
        return None

    # --- questions -------------------------------------------------------------------------------------------
    def on(self, schema: Schema, unit: Unit) -> Question:
        return self._question(schema, unit, drawn=bool(self.psu))

    def drawn(self, schema: Schema, unit: Unit) -> Question:
        if not self.psu:
            independent_rows(unit)
        return self._question(schema, unit, drawn=True)

    def _question(self, schema: Schema, unit: Unit, *, drawn: bool) -> Question:
        weight = weight_column(schema, self.survey_weight) if self.survey_weight else None
        columns = tuple(name for name, _ in self.values(schema))
        frame = self._weighted_frame(schema, unit, columns)
        (design, strata), weights = self._design(schema, frame), None
        if self.standard is not None:
            if frame.support is not None:
                raise InvalidParameter(
                    parameter="by", value=self.kind, must="have declared keys with a standard"
                )
            axis, weights = standard_axis(self.standard, self.by, schema)
            design = (axis,)
        elif drawn and weight is None and not self.psu and public_rows(frame, unit) and self.averaged:
            return self._of_public_rows(schema, unit, frame)
        flat = bool(self.psu) or not drawn
        variables = self._variables(schema, weight, flat=flat)
        axes = (*frame.axes, *design)
        names = part_names(variables)
        joint = simplex(simplex_total(variables), unit, axes)
        largest = Fraction(1) if weight is None else weight.highest * weight.spacing
        spacing = spacing_of(variables, largest)
        cell_count(axes)
        return Question(
            statistic=self, schema=schema, unit=unit, axes=frame.axes,
            requests=(
                Aggregation(
                    axes=axes, groups=frame.axes,
                    aggregates=tuple(
                        dict.fromkeys([*self._products(schema, variables), *([frame.support] if frame.support else [])])
                    ),
                ),
            ),
            parts=tuple(Part(name=n, spacing=spacing, axes=axes) for n in names),
            sensitivity=joint, sensitivities=dict.fromkeys(names, joint),
            form=self._form(schema, variables, float(largest), strata, weights, drawn=drawn),
            support=frame.support, support_sensitivity=frame.sensitivity,
            details=self._details(drawn) | {"variables": tuple(variables)},
        )  # fmt: skip

    def _weighted_frame(self, schema: Schema, unit: Unit, columns: tuple[str, ...]) -> Frame:
        if self.test is not None:
            self.test.check(schema)
        frame = self._frame(schema, unit, (*columns, *([self.survey_weight] if self.survey_weight else [])))
        known = self.test is None or self.test.never_unknown(schema)
        return frame if known else replace(frame, absent=True)

    def _details(self, drawn: bool) -> dict[str, Any]:
        declared = (OF_ITS_ROW,) if self.survey_weight else ()
        if not drawn:
            return {"declared": declared}
        said = CLUSTERED if self.psu else WEIGHTED if self.survey_weight else INDEPENDENT
        return {"declared": declared, "sample": (said,)}

    def _variables(self, schema: Schema, weight: Measured | None, *, flat: bool) -> list[Variable]:
        """The variables of first degree if the parts need no variance (`flat`), else of second degree."""
        values = self.values(schema)
        most = FINE if len(values) < 2 else COARSE
        out = []
        if weight is not None:
            out.append(Variable(block="size" if flat else "weight", levels=levels_of(weight.highest, most)))
        for _, column in values:
            out.append(Variable(block="line" if flat else "square", levels=levels_of(column.width, most)))
        if self.test is not None:
            out.append(Variable(block="line"))
        return out

    def _products(self, schema: Schema, variables: Sequence[Variable]) -> list[Products]:
        return [one for exponents in powers(variables) for one in self._sums(schema, variables, exponents)]

    def _sums(
        self, schema: Schema, variables: Sequence[Variable], exponents: Sequence[int]
    ) -> list[Products]:
        """The terms of one sum of products: one aggregate, or one each for yes and no."""
        columns = [name for name, _ in self.values(schema)]
        named = ([self.survey_weight] if self.survey_weight else []) + columns
        factors = tuple(
            Factor(column=name, power=power, levels=v.levels, from_zero=name == self.survey_weight and i == 0)
            for i, (name, v, power) in enumerate(zip(named, variables, exponents, strict=False))
            if power
        )
        present = tuple(dict.fromkeys(named))
        if self.test is None:
            return [Products(factors=factors, where=self.where, present=present)]
        tests = [self.test] if exponents[-1] else [self.test, Not(inner=self.test)]
        return [
            Products(
                factors=factors, present=present,
                where=t if self.where is None else And(parts=(self.where, t)),
            )
            for t in tests
        ]  # fmt: skip

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        variables = question.details["variables"]
        sums = {}
        for exponents in powers(variables):
            found = [
                np.asarray(cells[0].values[one]).astype(object)
                for one in self._sums(question.schema, variables, exponents)
            ]
            sums[exponents] = sum(found[1:], found[0])
        if question.details.get("public_rows"):
            (one,) = variables
            if one.block == "line":
                return {"sum": sums[1,], "rows": sums[0,]}
            # In steps of 1 / levels^2: sum u and sum u (1 - u).
            return {
                "sum": one.levels * sums[1,],
                "crossed": one.levels * sums[1,] - sums[2,],
                "rows": sums[0,],
            }
        parts = part_integers(variables, sums)
        if not self.psu:
            return parts
        shape = tuple(a.size or 0 for a in question.axes)
        return {name: values.reshape((*shape, -1)) for name, values in parts.items()}

    def _of_public_rows(self, schema: Schema, unit: Unit, frame: Frame) -> Question:
        """The parts for replaced rows that all count: sum u and sum u (1 - u), at the sensitivity of the first alone.

        |u - v| + |u (1 - u) - v (1 - v)| = |u - v| (1 + |1 - u - v|) is at most 1: u + v <= 1 gives (2u - u^2) -
        (2v - v^2), and u + v >= 1 gives u^2 - v^2, for u >= v. So it is in L2 and Linf, and (1, 0) reaches it.
        """
        variables = self._variables(schema, None, flat=False)
        (one,) = variables
        total = simplex_total(variables)
        yes = one.block == "line"
        names = ("sum",) if yes else ("sum", "crossed")
        whole = Fraction(total * base_unit(unit)[1])
        moved = GlobalSensitivity(l1=whole, l2_squared=whole**2, linf=whole)
        scale = 1.0 / total
        first = (scale,) if yes else (scale, 0.0)
        squares = (scale,) if yes else (scale, -scale)
        rows, none = (*(0.0 for _ in names), 1.0), 0.0
        of = SumCoefficients(f=(*first, none), g=rows, ff=(*squares, none), fg=(*first, none), gg=rows)
        middle = (0.5 * total, 1.0) if yes else (0.5 * total, 0.25 * total, 1.0)
        return Question(
            statistic=self, schema=schema, unit=unit, axes=frame.axes,
            requests=frame.request(*dict.fromkeys(self._products(schema, variables))),
            parts=(
                *(Part(name=n, spacing=Fraction(1, total), axes=frame.axes) for n in names),
                Part(name="rows", axes=frame.axes, exact=True),
            ),
            sensitivity=moved,
            sensitivities={**dict.fromkeys(names, moved), "rows": moved.times(0)},
            form=RatioOfSums(names=(*names, "rows"), typical=middle, of=of, score=yes, **self.scaled(schema)),
            details=self._details(True) | {"variables": tuple(variables), "public_rows": True},
        )  # fmt: skip

    # --- forms -------------------------------------------------------------------------------------------------
    def _form(
        self,
        schema: Schema,
        variables: Sequence[Variable],
        largest: float,
        strata: tuple[int, ...],
        standard: tuple[float, ...] | None,
        *,
        drawn: bool,
    ) -> Form:
        f, g = self.functions(schema)
        scaled = self.scaled(schema)
        about: dict[str, Any] = {
            "names": part_names(variables),
            "typical": typical_parts(variables),
            **scaled,
        }
        weight = largest if self.survey_weight else None
        if self.psu:
            made = coefficients(variables, f, g, weight=weight, variance=False)
            return Clusters(f=made.f, g=made.g, strata=strata, **about)
        if standard is not None:
            of = coefficients(variables, f, g, weight=weight, variance=drawn)
            return with_standard(RatioOfSums(of=of, **about), standard, total=bool(scaled.get("total")))
        if not drawn and not scaled.get("total") and len(self.values(schema)) < 2:
            below, above = part_names(variables)
            return Share(low=scaled["low"], width=scaled["width"], above=above, below=below)
        score = drawn and weight is None and self.test is not None
        return RatioOfSums(
            of=coefficients(variables, f, g, weight=weight, variance=drawn), score=score, **about
        )

    # --- designs -----------------------------------------------------------------------------------------------
    def _design(self, schema: Schema, frame: Frame) -> tuple[tuple[Axis, ...], tuple[int, ...]]:
        """The axes of the primary sampling units, and the stratum of each unit."""
        if not self.psu:
            return (), ()
        units = axis_of(self.psu, schema)
        if isinstance(units, OpenAxis) or frame.support is not None:
            raise InvalidParameter(
                parameter="psu", value=self.psu, must="be a column whose keys are declared, as all keys of `by`",
                hint="the design of a survey is public: category([...]) lists its primary sampling units",
            )  # fmt: skip
        used = {b if isinstance(b, str) else b.column for b in self.by}
        if self.psu in used or (isinstance(self.strata, str) and self.strata in {*used, self.psu}):
            raise InvalidParameter(
                parameter="design", value=self.psu, must="name other columns than those in `by`, each only once",
                hint="ask with where= for one stratum",
            )  # fmt: skip
        count = units.size or 0
        _few(count)
        if self.strata is None:
            return (units,), _two_each(dict.fromkeys(range(count), 0), {0: "the whole sample"}, count)
        if isinstance(self.strata, str):
            axis = axis_of(self.strata, schema)
            if isinstance(axis, OpenAxis):
                raise InvalidParameter(
                    parameter="strata", value=self.strata, must="be a column with declared keys"
                )
            size = axis.size or 0
            _few(size * count)
            place = {h * count + i: h for h in range(size) for i in range(count)}
            return (axis, units), _two_each(place, dict(enumerate(map(str, axis.labels))), size * count)
        known = {str(label): i for i, label in enumerate(units.labels)}
        place = {}
        for h, (stratum, members) in enumerate(self.strata):
            for member in members:
                if str(member) not in known:
                    raise UnknownName(
                        what=f"unit of stratum {stratum!r}", name=str(member), known=tuple(known)
                    )
                if known[str(member)] in place:
                    raise InvalidParameter(parameter="strata", value=str(member), must="list every unit once")
                place[known[str(member)]] = h
        left = [label for label, i in known.items() if i not in place]
        if left:
            raise InvalidParameter(
                parameter="strata", value=left[0], must="list every declared primary sampling unit",
                hint="a unit of no stratum would be left out of every estimate",
            )  # fmt: skip
        return (units,), _two_each(place, {h: s for h, (s, _) in enumerate(self.strata)}, count)


def _few(count: int) -> None:
    """Refuses a design whose list of units would fill the memory: an id with declared bounds has billions."""
    if count > MOST_UNITS:
        raise TooManyCells(
            cells=count, limit=MOST_UNITS,
            hint="the primary sampling units of a design are listed one by one: declare the codes that occur",
        )  # fmt: skip


def _two_each(place: Mapping[int, int], names: Mapping[int, str], count: int) -> tuple[int, ...]:
    strata = tuple(place[i] for i in range(count))
    units = Counter(strata)
    for stratum, name in names.items():
        if units[stratum] < 2:
            raise InvalidParameter(
                parameter="strata", value=name, must="have two primary sampling units at least",
                hint="one unit shows no variance: merge the stratum with a similar one",
            )  # fmt: skip
    return strata


def surveyed_by(
    survey_weight: str | None,
    design: Mapping[str, Any] | None,
    standard: Mapping[str, Any] | None = None,
    *,
    total: bool = False,
) -> dict[str, Any]:
    """The fields of a weighted statistic; empty without a weight, a design and a standard."""
    if survey_weight is None and design is None and standard is None:
        return {}
    found = design_of(design)
    if standard is not None:
        weight = "" if survey_weight is None else text("survey_weight", survey_weight, empty=False)
        return {"survey_weight": weight, "psu": found.psu, "standard": standard_of(standard)}
    if survey_weight is None and (total or not found.psu):
        raise InvalidParameter(
            parameter="survey_weight", value=None, must="be given for totals, and where a design has no psu",
            hint='survey_weight="w"',
        )  # fmt: skip
    weight = "" if survey_weight is None else text("survey_weight", survey_weight, empty=False)
    return {"survey_weight": weight, "psu": found.psu, "strata": found.strata}


def levels_of(top: int, most: int) -> int:
    """Levels of a variable: its own steps if they are few, else a power of two."""
    return top if top <= most else most


def weight_column(schema: Schema, name: str) -> Measured:
    """A weight: a number that is not negative, with a declared largest value."""
    column = schema.measured(name)
    if isinstance(column, Date):
        raise WrongType(column=name, found=column.kind, wanted="a number")
    if column.lowest < 0 or column.highest <= 0:
        raise InvalidParameter(
            parameter="survey_weight", value=name, must="be declared between 0 or more and a largest weight",
            hint="number(low=0, high=...): larger weights are clamped to it",
        )  # fmt: skip
    return column


def value_column(schema: Schema, name: str, *, dates: bool = False) -> Measured:
    """A value with two different bounds."""
    column = schema.measured(name)
    if (isinstance(column, Date) and not dates) or column.width == 0:
        raise WrongType(column=name, found=column.kind, wanted="a number with two different bounds")
    return column


def independent_rows(unit: Unit) -> None:
    """Refuses a sampling model if one person has several rows."""
    if row_limit(unit) > 1:
        raise InvalidParameter(
            parameter="sampling", value=str(unit), must="be declared where a person has one row",
            hint="several rows of one person are no independent draws; design={'psu': ...} allows for them",
        )  # fmt: skip


def _ends(column: Measured) -> tuple[float, float]:
    return float(column.lowest * column.spacing), float(column.width * column.spacing)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedMean(WeightedStatistic):
    """sum w x / sum w over the rows that have both, in each cell.

    A unit of m rows: add-or-remove m wh in L1, L2 and Linf; replace-one 2 m wh, sqrt(2) m wh, m wh.
    """

    kind: ClassVar[str] = "weighted_mean"
    standardises: ClassVar[bool] = True
    averaged: ClassVar[bool] = True
    in_column_units: ClassVar[bool] = True

    column: str

    def values(self, schema: Schema) -> tuple[tuple[str, Measured], ...]:
        return ((self.column, value_column(schema, self.column, dates=True)),)

    def functions(self, schema: Schema) -> tuple[Affine, Affine]:
        return {(1,): 1.0}, {(0,): 1.0}

    def scaled(self, schema: Schema) -> dict[str, Any]:
        low, width = _ends(schema.measured(self.column))
        return {"low": low, "width": width}


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedProportion(WeightedStatistic):
    """The weighted share of rows for which a test is true, among rows with a known result."""

    kind: ClassVar[str] = "weighted_proportion"
    standardises: ClassVar[bool] = True
    averaged: ClassVar[bool] = True
    filters: ClassVar[tuple[str, ...]] = ("where", "of")

    of: Expression

    @property
    def test(self) -> Expression | None:
        return self.of

    def values(self, schema: Schema) -> tuple[tuple[str, Measured], ...]:
        return ()

    def functions(self, schema: Schema) -> tuple[Affine, Affine]:
        return {(1,): 1.0}, {(0,): 1.0}

    def scaled(self, schema: Schema) -> dict[str, Any]:
        return {"low": 0.0, "width": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedTotal(WeightedStatistic):
    """sum w x: the total in the population.

    The variance is that of a sample of random size, sum (w x)^2, which is at least that of one of fixed size.
    """

    kind: ClassVar[str] = "weighted_total"
    standardises: ClassVar[bool] = True

    column: str

    def values(self, schema: Schema) -> tuple[tuple[str, Measured], ...]:
        return ((self.column, value_column(schema, self.column)),)

    def functions(self, schema: Schema) -> tuple[Affine, Affine]:
        low, width = _ends(schema.measured(self.column))
        return {(0,): low, (1,): width}, {(0,): 1.0}

    def scaled(self, schema: Schema) -> dict[str, Any]:
        return {"total": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedCount(WeightedStatistic):
    """sum w: the number of members of the population."""

    kind: ClassVar[str] = "weighted_count"

    def values(self, schema: Schema) -> tuple[tuple[str, Measured], ...]:
        return ()

    def functions(self, schema: Schema) -> tuple[Affine, Affine]:
        return {(): 1.0}, {(): 1.0}

    def scaled(self, schema: Schema) -> dict[str, Any]:
        return {"total": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedRatio(WeightedStatistic):
    """sum w y / sum w x over the rows that have all three."""

    kind: ClassVar[str] = "weighted_ratio"

    numerator: str
    denominator: str

    def __post_init__(self) -> None:
        WeightedStatistic.__post_init__(self)
        if self.numerator == self.denominator:
            raise InvalidParameter(parameter="denominator", value=self.denominator, must="be another column")

    def values(self, schema: Schema) -> tuple[tuple[str, Measured], ...]:
        names = (self.numerator, self.denominator)
        return tuple((name, value_column(schema, name)) for name in names)

    def functions(self, schema: Schema) -> tuple[Affine, Affine]:
        (a, b), (c, d) = (_ends(column) for _, column in self.values(schema))
        return {(0, 0): a, (1, 0): b}, {(0, 0): c, (0, 1): d}

    def scaled(self, schema: Schema) -> dict[str, Any]:
        return {"least": -np.inf, "most": np.inf}
