"""The choice: the mechanisms of a request with all their parameters, stored whole with the charge.

A replay and `tacit verify` read the stored choice and check it; they never choose again. If a later version prefers
another mechanism, new requests get it, and old answers keep theirs, with their intervals.

    {"format": 1, "charged_by": theorem, "releases": [{"assignment": ..., "grid": ..., "sensitivity": ...}]}

Objects are written as {"is": name, field: value, ...} and read through a closed table of names (`KNOWN`), never by
import. Fractions are texts, so that no number is rounded. The reason for the choice is stored beside the numbers, in
the words of its time; no computation uses it. A long array that follows from the question (the cells that a margin
adds up) is stored as its digest and computed again from the question.
"""

from __future__ import annotations

import base64
import datetime
import importlib
import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tacit.errors import LedgerError, TacitError
from tacit.exact.canonical import sha256
from tacit.guarantees import Neighbours
from tacit.ledger import Charge
from tacit.statistics.base import Question

if TYPE_CHECKING:
    from tacit.curator.assignments import Assignment
    from tacit.curator.planning import Plan, Planned
    from tacit.curator.request import Given


FORMAT = 1
LONG = 512
"""Arrays of at least this many bytes are looked for in the question."""
ARRAYS = ("<i8", "<f8", "|b1", "|u1", "<i4")
LONGEST = 4096
"""Characters of a fraction."""
MOST = 1 << 28
"""Bytes of an array."""
_FRACTION = re.compile("-?[0-9]+(/0*[1-9][0-9]*)?")
WRONG = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    ArithmeticError,
    LookupError,
    zlib.error,
    TacitError,
)
"""The error for a reader of a changed choice."""


ROOMS = {
    "coupled.noiseless.answer": "ExactAnswer",
    "coupled.noiseless.histograms": "FixedSize",
    "curator.exact_answers": "DiscardingAssignment ExactAssignment TruncatedAssignment",
    "curator.functions.by_test": "ByTestAssignment",
    "curator.functions.fits": "DensityFit KernelModelFit PureDensityFit",
    "curator.functions.histogram_fit": "FourthOrderDensityFit HistogramDensityFit",
    "curator.functions.models": "PerturbedFit",
    "curator.functions.statistics": "InputColumns",
    "curator.functions.assignment": "FunctionAssignment",
    "curator.functions.trees": "TreeAssignment",
    "curator.charging": "Price",
    "curator.quantile_choice": "SelectedRanks SparseRanks",
    "curator.random_counts": "OnRandomData",
    "curator.request": "ExactGiven Given SampledGiven",
    "curator.selected": "ClampingAssignment Ranks Selected Sparse",
    "curator.synthesised": "SynthesisAssignment",
    "curator.assignments": "Applied Assignment",
    "functions.boxes": "Box",
    "functions.densities.kde": "GaussianKDE",
    "functions.densities.plan": "DensityPlan",
    "functions.fourier.family": "FourierKDE",
    "functions.fourier.plan": "FourierPlan",
    "functions.models.contrasts": "Contrasts",
    "functions.models.features": "FourierFeatures LinearFeatures PublicBall PublicBox",
    "functions.models.losses": "LogCosh",
    "functions.models.solvers": "EpsilonInsensitive Hinge Huber Logistic",
    "functions.models.training": "KernelModelPlan",
    "functions.models.trees": "SplitColumn TreePlan TreeShape",
    "mechanisms.bodies": "Contribution Gauge",
    "mechanisms.cumulative": "CumulativeGaussian CumulativeTree",
    "mechanisms.fitted_tables": "Agreement FittedTables HullTables Image",
    "mechanisms.fourier": "FourierNoise",
    "mechanisms.gaussian": "Gaussian RoundedGaussian",
    "mechanisms.knorm": "Gamma KNorm KNormDifference",
    "mechanisms.bounded": "TruncatedDiscreteLaplace",
    "mechanisms.laplace": "Laplace Staircase",
    "mechanisms.objective": "ObjectivePerturbation",
    "mechanisms.own_statistics": "LeastSquares",
    "mechanisms.partition": "GaussianSelection OptimalSelection",
    "mechanisms.pure_objective": "PureObjectivePerturbation",
    "mechanisms.rank_selection": "RankSelection",
    "mechanisms.ranges": "RangeAnswers RangeTree",
    "mechanisms.selection": "Exponential PermuteAndFlip",
    "mechanisms.base": "CountSensitivity L1 L2 Linf Score",
    "mechanisms.sparse": "SparseHistogram",
    "mechanisms.sparse_keys": "Impossible",
    "mechanisms.sparse_ranks": "SparseRankSelection",
    "mechanisms.stability": "KeysOfAUnit StableHistogram",
    "mechanisms.tables": "CellSums ShapedTables",
    "noise.bodies": "EuclideanBall",
    "noise.caratheodory": "CaratheodoryBody",
    "sources.axes": "Bins Cut Listed",
    "sources.columns": "Category Date Flag Integer Number",
    "synthesis.schedule": "Schedule",
}
"""The closed table of names in a choice, by their modules. No name is ever given away."""
KNOWN = {name: f"tacit.{room}" for room, names in ROOMS.items() for name in names.split()}
EARLIER = {
    "MachineFit": "KernelModelFit",
    "MachinePlan": "KernelModelPlan",
    **{
        f"{kind}Treatment": f"{kind}Assignment"
        for kind in ("", "Clamping", "Discarding", "Exact", "Function", "Synthesis", "Tree", "Truncated")
    },
}
"""Earlier names in ledgers, with today's names."""


@cache
def _class(name: str) -> type:
    """The class of this name; its module is imported on demand."""
    name = EARLIER.get(name, name)
    return cast("type", getattr(importlib.import_module(KNOWN[name]), name))


# --- writing ----------------------------------------------------------------------------------------------------
def choice_of(plan: Plan) -> dict[str, Any]:
    """The choice for a plan, as plain values. It is stored with the charge."""
    if "choice" not in plan.kept:
        plan.kept["choice"] = {
            "format": FORMAT,
            "charged_by": plan.charged.theorem,
            "releases": [release_choice(r) for r in plan.releases],
        }
    return dict(plan.kept["choice"])


def release_choice(planned: Planned) -> dict[str, Any]:
    """The choice for one release: the assignment, with its grid and sensitivity."""
    assignment, question = planned.assignment, planned.question
    given = dict(_arrays(question))
    return {
        "assignment": _put(assignment, given),
        **({} if planned.plain is None else {"plain": _put(planned.plain, given)}),
        "grid": assignment.grid_record(question),
        "sensitivity": assignment.sensitivity_record(question),
    }


def _put(value: Any, given: Mapping[str, Any]) -> Any:
    """A value as plain JSON."""
    if value is None or (isinstance(value, bool | str | int) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return float(value) if np.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, Neighbours):
        return {"neighbours": value.value}
    if isinstance(value, np.ndarray):
        return _array(value, given)
    if isinstance(value, np.generic):
        return _put(value.item(), given)
    if KNOWN.get(type(value).__name__) == type(value).__module__:
        return {
            "is": type(value).__name__,
            **{n: _put(_field(value, n), given) for n in _names(type(value))},
        }
    if isinstance(value, tuple):
        return [_put(v, given) for v in value]
    if isinstance(value, list):
        return {"list": [_put(v, given) for v in value]}
    if isinstance(value, Mapping):
        kind = "fixed" if isinstance(value, MappingProxyType) else "table"
        return {kind: [[_put(k, given), _put(v, given)] for k, v in value.items()]}
    if isinstance(value, datetime.date):
        return {"day": value.isoformat()}
    raise TypeError(f"a {type(value).__name__} has no place in a stored choice")


def _field(value: Any, name: str) -> Any:
    """A field in its stored form: a mechanism's standard deviation is written as the fraction of its float."""
    found = getattr(value, name)
    noise = name == "noise_std" and type(value).__module__.startswith("tacit.mechanisms.")
    return Fraction(found) if noise and isinstance(found, float) else found


def _names(kind: type) -> tuple[str, ...]:
    """The fields that make one. Fields computed from others are left out."""
    if hasattr(kind, "_fields"):
        return tuple(kind._fields)
    return tuple(f.name for f in fields(kind) if f.init)


def _array(value: np.ndarray[Any, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    if value.dtype == object:
        return {"numbers": [str(int(v)) for v in value.ravel()], "shape": list(value.shape)}
    plain = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
    said = {"type": plain.dtype.str, "shape": list(plain.shape)}
    digest = sha256(plain.tobytes())
    if digest in given:
        return {**said, "sha256": digest}
    return {**said, "packed": base64.b64encode(zlib.compress(plain.tobytes())).decode("ascii")}


def _arrays(question: Question) -> Iterator[tuple[str, Any]]:
    """The long arrays that a question holds, by their digests."""
    seen: set[int] = set()

    def walk(value: Any, depth: int) -> Iterator[Any]:
        if isinstance(value, np.ndarray):
            if value.nbytes >= LONG and value.dtype != object:
                yield value
        elif depth < 6 and id(value) not in seen:
            seen.add(id(value))
            if is_dataclass(value) and not isinstance(value, type):
                for f in fields(value):
                    yield from walk(getattr(value, f.name, None), depth + 1)
            elif isinstance(value, Mapping):
                for inner in value.values():
                    yield from walk(inner, depth + 1)

    for held in (question.details, question.form):
        for array in walk(held, 0):
            plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            yield sha256(plain.tobytes()), array


# --- reading ----------------------------------------------------------------------------------------------------
def _get(record: Any, given: Mapping[str, Any]) -> Any:
    """The value of plain JSON; anything that is not known raises one of `WRONG`."""
    if record is None or isinstance(record, bool | str | int | float):
        return record
    if isinstance(record, list):
        return tuple(_get(v, given) for v in record)
    if "is" in record:
        kind, said = _class(record["is"]), {n: v for n, v in record.items() if n != "is"}
        made = {name: _get(value, given) for name, value in said.items()}
        if not set(made) <= set(_names(kind)):
            raise ValueError("a field that is not known")
        return kind(**made)
    if "fraction" in record:
        return _fraction(record["fraction"])
    if "float" in record:
        return float(record["float"])
    if "neighbours" in record:
        return Neighbours(record["neighbours"])
    if "day" in record:
        return datetime.date.fromisoformat(record["day"])
    if "list" in record:
        return [_get(v, given) for v in record["list"]]
    if "table" in record or "fixed" in record:
        pairs = record.get("table", record.get("fixed"))
        found = {_get(k, given): _get(v, given) for k, v in pairs}
        return found if "table" in record else MappingProxyType(found)
    return _read_array(record, given)


def _fraction(text: str) -> Fraction:
    """A fraction in the stored notation: two whole numbers.
    An exponent is refused: a short one may be a huge number."""
    if not _FRACTION.fullmatch(text) or len(text) > LONGEST:
        raise ValueError("no fraction")
    return Fraction(text)


def _read_array(record: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    if "numbers" in record:
        whole = np.empty(len(record["numbers"]), dtype=object)
        whole[:] = [int(v) for v in record["numbers"]]
        return whole.reshape(record["shape"])
    if record["type"] not in ARRAYS:
        raise ValueError("an array of a type that is not known")
    if "sha256" in record:
        return given[record["sha256"]]
    shape = [int(n) for n in record["shape"]]
    size = math.prod(shape) * np.dtype(record["type"]).itemsize
    opened = zlib.decompressobj()
    # No more is unpacked than the shape says: a short text may be packed from gigabytes.
    body = opened.decompress(base64.b64decode(record["packed"]), size + 1) if 0 <= size <= MOST else b""
    return np.frombuffer(body, dtype=record["type"]).reshape(shape).copy()


def read_choice(plan: Plan, charge: Charge) -> Plan:
    """The plan with the choice of its charge: read from the record and checked, never chosen again.

    The check covers the grid and the sensitivity of each question, the equality of the event to be run and the
    recorded one, and its cost, which may not exceed the charged bound. A charge of 0.1.0 has no stored choice.
    Its digest covers the choice, so the same one follows only from the choice of 0.1.0.
    """
    from tacit.curator.charging import Charged
    from tacit.curator.planning import chosen
    from tacit.curator.request_0_1_0 import plan_of_0_1_0

    charged = Charged(bound=charge.guarantee.bound, exact=dict(charge.exact), theorem=plan.charged.theorem)
    if charge.choice is None and charge.files is None:
        return replace(plan_of_0_1_0(plan), digest=charge.plan_digest)
    try:
        said = charge.choice or {}
        if said["format"] != FORMAT:
            raise ValueError("another format")
        charged = replace(charged, theorem=said["charged_by"])
        charged.exact.pop("gamma", None)
        plan = as_recorded(plan, said["releases"])
        pairs = [
            read_assignment(record, r, plan.given)
            for record, r in zip(said["releases"], plan.releases, strict=True)
        ]
        found = chosen(plan, pairs, charged=charged, digest=charge.plan_digest)
        if found.event_record != charge.event or found.charge.bound != charge.guarantee.bound:
            raise ValueError("another event")
    except WRONG:
        raise LedgerError(
            ledger="the ledger", reason=f"has in entry {charge.sequence} a choice that this version cannot read",
            hint="the answer is on record: read it with the version that wrote it",
        ) from None  # fmt: skip
    return found


def as_recorded(plan: Plan, records: Sequence[Mapping[str, Any]]) -> Plan:
    """The plan with the questions that its records are about.

    Earlier versions gave means and proportions of declared draws only the parts of the noise interval, without
    those of the sampling error. Such answers are read in that form.
    """

    def asked(planned: Planned, grid: Mapping[str, Any]) -> Planned:
        if not planned.ask.sampling or set(grid) == {p.name for p in planned.question.parts}:
            return planned
        first = planned.ask.statistic.on(plan.schema, plan.unit)
        return replace(planned, question=first) if set(grid) == {p.name for p in first.parts} else planned

    releases = [asked(r, record["grid"]) for r, record in zip(plan.releases, records, strict=True)]
    return replace(plan, releases=tuple(releases))


def read_assignment(
    record: Mapping[str, Any], asked: Planned, assumed: Given | None
) -> tuple[Assignment, Assignment | None]:
    """The stored assignment, for a question on an unchanged grid, and the plain one beside it.

    `assumed` has the assumptions of the whole plan about the data.
    """
    from tacit.curator.assignments import Assignment

    question = asked.question
    given = dict(_arrays(question))
    made = _get(record["assignment"] if "assignment" in record else record["treatment"], given)
    plain = _get(record["plain"], given) if "plain" in record else None
    if not isinstance(made, Assignment) or not isinstance(plain, Assignment | None):
        raise ValueError("no assignment")
    same = made.grid_record(question) == record["grid"]
    if not same or made.sensitivity_record(question) != record["sensitivity"]:
        raise ValueError("another grid, or another sensitivity")
    if not _of_its_kind(made, asked, assumed):
        raise ValueError("an assignment of another kind of question")
    if calibrated(made, question) is False:
        raise ValueError("noise for another sensitivity, or for other parts")
    return made, plain


def _of_its_kind(assignment: Assignment, asked: Planned, assumed: Given | None) -> bool:
    """Whether a query like `asked` may be answered by this assignment, under the stated assumptions and no others."""
    from tacit.curator.assignments import Assignment
    from tacit.curator.exact_answers import ExactAssignment
    from tacit.curator.functions.assignment import FunctionAssignment
    from tacit.curator.functions.by_test import ByTestAssignment
    from tacit.curator.functions.trees import TreeAssignment
    from tacit.curator.quantile_choice import SelectedRanks
    from tacit.curator.random_counts import OnRandomData
    from tacit.curator.request import ExactGiven
    from tacit.curator.selected import ClampingAssignment, Ranks, Selected, Sparse
    from tacit.curator.synthesised import SynthesisAssignment
    from tacit.mechanisms import TruncatedDiscreteLaplace

    bounded = any(isinstance(m, TruncatedDiscreteLaplace) for m in assignment.mechanisms)
    if assignment.noise and bounded != (asked.ask.noise == "bounded"):
        return False
    words = assumed if asked.ask.given is None else asked.ask.given
    if isinstance(words, ExactGiven) or isinstance(assignment, ExactAssignment):
        return isinstance(words, ExactGiven) and isinstance(assignment, ExactAssignment)
    if isinstance(assignment, OnRandomData):
        return words is not None and 0 < assignment.gamma <= words.gamma
    if isinstance(assignment, SelectedRanks):
        return asked.question.statistic.fits == "ranks"
    kinds: dict[str, type] = {
        "ranks": Ranks, "clamping bounds": ClampingAssignment, "thresholds": Sparse, "function": FunctionAssignment,
        "synthesis": SynthesisAssignment,
        "tree": TreeAssignment,
        "test": ByTestAssignment,
    }  # fmt: skip
    question = asked.question
    kind = kinds.get(question.statistic.fits, Assignment if question.known_keys else Selected)
    return type(assignment) is kind


def calibrated(assignment: Assignment, question: Question) -> bool | None:
    """Whether every number that a unit can move has noise, sized for this move.

    None if the question gets no noise on declared numbers; such a mechanism fits only if it equals today's
    choice (`same_noise`).
    """
    from tacit.curator.assignments import Assignment, cells_of
    from tacit.curator.fitted import fits_tables
    from tacit.curator.functions.assignment import FunctionAssignment
    from tacit.curator.functions.models import ModelStatistic, PerturbedFit, made_for_model
    from tacit.curator.quantile_choice import SelectedRanks, made_for
    from tacit.mechanisms import Laplace, RoundedGaussian, Staircase, TruncatedDiscreteLaplace
    from tacit.mechanisms.base import L1, L2
    from tacit.mechanisms.tables import TableMechanism

    if isinstance(assignment, SelectedRanks):
        return made_for(assignment, question)
    if isinstance(assignment, FunctionAssignment) and isinstance(question.statistic, ModelStatistic):
        return isinstance(assignment.fit, PerturbedFit) and made_for_model(assignment.fit, question)
    if (
        type(assignment) is not Assignment
        or question.statistic.fits not in ("noise", "totals")
        or not question.known_keys
    ):
        return None
    moved = {p.name for p in question.parts if not p.exact and not question.sensitivities[p.name].none}
    noised = [name for applied in assignment.noise for name in applied.parts]
    if len(noised) != len(set(noised)) or set(noised) != moved:
        return False
    for parts, mechanism in assignment.noise:
        # What moves several parts together moves no more than all of them.
        most = question.sensitivities[parts[0]] if len(parts) == 1 else question.sensitivity
        if isinstance(mechanism, TableMechanism):
            # It is made for all tables together.
            if set(parts) != moved or not fits_tables(mechanism, parts, question):
                return False
            continue
        if isinstance(mechanism, TruncatedDiscreteLaplace):
            moved_by = mechanism.sensitivity.steps(mechanism.step)
            if mechanism.moved_cells == 1:
                fits = moved_by >= most.l1
            else:
                fits = moved_by >= most.linf and mechanism.moved_cells >= most.l1
            if not fits or not question.statistic.whole:
                return False
            continue
        # Nothing else was ever chosen for numbers that get noise.
        if not isinstance(mechanism, Laplace | RoundedGaussian | Staircase):
            return False
        declared = mechanism.sensitivity
        if isinstance(mechanism, Laplace | Staircase):
            fits = isinstance(declared, L1) and declared.steps(mechanism.step) >= most.l1
        else:
            fits = isinstance(declared, L2) and declared.squared_steps(mechanism.step) >= most.l2_squared
        if (
            not fits
            or mechanism.step != 1
            or (isinstance(mechanism, Staircase) and cells_of(question, parts) != 1)
        ):
            return False
    return True


def same_noise(one: Assignment, other: Assignment, question: Question) -> bool:
    """Whether these are one assignment, ignoring the reasons for the choice."""
    given = dict(_arrays(question))
    found = [{**_put(t, given), "reason": "", "candidates": ""} for t in (one, other)]
    return bool(found[0] == found[1])
