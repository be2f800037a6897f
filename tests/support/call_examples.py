"""One right call for every method that takes parameters: constructors by another name, readings, curators, ledgers.

Each is (what has the signature, how it is called, an example). What is returned is compared as text.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import ArrayLike

import tacit
from support.parameter_examples import MECHANISMS, declared
from tacit.accounting import filters
from tacit.curator import Curator, Price, make_plan, price
from tacit.ledger import Ledger, Request, export
from tacit.mechanisms import L1, L2, Contribution, Gauge, KeysOfAUnit, Laplace
from tacit.noise import LinfBall, SeededSource
from tacit.sources import Schema, integer

Call = tuple[Callable[..., Any], dict[str, Any]]

CUBE = LinfBall(coordinates=2)
UNIT = tacit.rows()
BUDGET = tacit.Guarantee(bound=tacit.Approximate(epsilon=8, delta=1e-3), unit=UNIT)
CHARGE = tacit.Guarantee(bound=tacit.Approximate(epsilon=0.5, delta=1e-6), unit=UNIT)
SCHEMA = Schema({"x": integer(0, 9)})
DATA = pa.table({"x": [1, 2, 3]})
CURVES = {
    "Pure": tacit.Pure(epsilon=1),
    "Approximate": tacit.Approximate(epsilon=1, delta=1e-6),
    "Concentrated": tacit.Concentrated(rho=0.5),
    "Gaussian": tacit.GaussianDP(mu=1),
    "Renyi": tacit.Renyi(orders=(2.0, 8.0), epsilons=(0.5, 2.0)),
    "Profile": tacit.Profile.laplace(epsilon=1),
    "Guarantee": tacit.Guarantee(bound=tacit.Profile.laplace(epsilon=1), unit=UNIT),
}


def signed(run: Callable[..., Any], *like: Callable[..., Any]) -> Callable[..., Any]:
    """The call with the parameters of those that it stands for."""
    found: dict[str, inspect.Parameter] = {}
    for one in like:
        for name, parameter in inspect.signature(one).parameters.items():
            if name != "self" and parameter.kind is not parameter.VAR_KEYWORD:
                found.setdefault(name, parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    def call(**given: Any) -> Any:
        return run(**given)

    call.__signature__ = inspect.Signature(list(found.values()))  # type: ignore[attr-defined]
    return call


def curated(**given: Any) -> str:
    """Made, with its table and its ledger opened: a parameter that is looked at late is looked at."""
    with Curator(**{"source": SeededSource(seed=1), **given}) as held:
        table = held._open()
        return f"{held.remaining} {held.analyst!r} {held.version!r} {table.engine} {table.conditions}"


def _session(**options: Any) -> Curator:
    return Curator(
        DATA, protect=UNIT, schema=SCHEMA, budget=BUDGET.bound, source=SeededSource(seed=1), **options
    )


def previewed(**given: Any) -> str:
    with _session() as held:
        return str(held.preview(**given).digest)


def released(**given: Any) -> str:
    with _session() as held:
        made = held.release(**given)
        return str(made.to_csv()) + str([c.key for c in held.ledger.charges()])


def _new(**options: Any) -> Ledger:
    folder = tempfile.mkdtemp(dir=_FOLDER.name)
    return Ledger.create(Path(folder) / "l.ledger", budget=BUDGET, **options)


_FOLDER = tempfile.TemporaryDirectory(prefix="tacit-calls-")


def _told(ledger: Ledger) -> str:
    with ledger:
        return f"{ledger.budget} {ledger.table!r} {ledger.rehearsal} {ledger.exact} {ledger.shares()}"


def created(**given: Any) -> str:
    """In a new place each time; what is no place at all is passed on as it is."""
    if isinstance(given["where"], str) and given["where"] == "somewhere":
        given["where"] = Path(tempfile.mkdtemp(dir=_FOLDER.name)) / "l.ledger"
    return _told(Ledger.create(**given))


def found(**given: Any) -> str:
    if isinstance(given["where"], str) and given["where"] == "somewhere":
        given["where"] = Path(tempfile.mkdtemp(dir=_FOLDER.name)) / "l.ledger"
    return _told(Ledger.at(**given))


@cache
def _kept() -> Ledger:
    """A ledger with one charge, which is only read."""
    ledger = _new()
    ledger.reserve(REQUEST)
    return ledger


def _read(name: str) -> Callable[..., Any]:
    def run(**given: Any) -> str:
        out = getattr(_kept(), name)(**given)
        return str([str(x) for x in out] if isinstance(out, tuple) else out)

    return signed(run, getattr(Ledger, name))


def shared(**given: Any) -> str:
    with _new() as ledger:
        ledger.share(**given)
        return str(ledger.shares())


def exported(*, answers: bool = True) -> str:
    return str(len(list(export(_kept(), answers=answers))))


REQUEST = Request(key="k", plan_digest="d", analyst="a", event={}, charge=CHARGE)
EITHER: dict[str, Any] = {"delta": {"epsilon": 1.0}, "epsilon": {"delta": 1e-5}, "renyi": {"order": 2.0}}


def _at(level: Any) -> Callable[..., Any]:
    """A stated number, read as a curve."""

    def reading(*, at: ArrayLike) -> Any:
        return level(at)

    return reading


def _admitted(name: str, budget: Any) -> Callable[..., Any]:
    def run(**given: Any) -> str:
        one = filters.filter_for(budget)
        return f"{getattr(one, name)(**given)} {one.spent!r}"

    return signed(run, getattr(filters.Filter, name))


CURATOR: dict[str, Call] = {
    "Curator": (signed(curated, Curator.__init__), {
        "data": DATA, "protect": UNIT, "schema": SCHEMA, "budget": BUDGET.bound, "table": "t", "version": "1",
        "analyst": "a", "wait_seconds": 1.0,
    }),
    "Curator.preview": (signed(previewed, Curator.preview, price), {"asked": tacit.count(), "epsilon": 1}),
    "Curator.release": (signed(released, Curator.release, price), {"asked": tacit.count(), "epsilon": 1}),
    "Price": (Price, {"epsilon": Fraction(1)}),
    "Price.part": (Price(epsilon=Fraction(1)).part, {"share": Fraction(1, 2)}),
    "make_plan": (make_plan, {
        "asks": [tacit.query(tacit.count(), epsilon=1)], "schema": SCHEMA, "unit": UNIT, "budget": BUDGET.bound,
    }),
}  # fmt: skip

LEDGER: dict[str, Call] = {
    "Request": (Request, {
        "key": "k", "plan_digest": "d", "analyst": "a", "event": {}, "charge": CHARGE, "table": "t", "version": "1",
        "exact": {"epsilon": Fraction(1, 2)},
    }),
    "Ledger.create": (signed(created, Ledger.create), {
        "where": "somewhere", "budget": BUDGET, "shares": {"a": CHARGE.bound}, "exact": {"epsilon": Fraction(8)},
        "table": "t", "rehearsal": False, "wait_seconds": 1.0,
    }),
    "Ledger.at": (signed(found, Ledger.at), {
        "where": "somewhere", "budget": BUDGET, "exact": {"epsilon": Fraction(8)}, "table": "t", "rehearsal": True,
        "wait_seconds": 1.0,
    }),
    "Ledger.exists_at": (Ledger.exists_at, {"where": "/nowhere/at all.ledger", "wait_seconds": 1.0}),
    "Ledger.share": (signed(shared, Ledger.share), {
        "analyst": "a", "bound": CHARGE.bound, "exact": {"epsilon": Fraction(1, 2)},
    }),
    "Ledger.state": (_read("state"), {"sequence": 1}),
    "Ledger.spent": (_read("spent"), {"analyst": "a"}),
    "Ledger.remaining": (_read("remaining"), {"analyst": "a"}),
    "Ledger.standing": (_read("standing"), {"analyst": "a"}),
    "Ledger.charges": (_read("charges"), {"analyst": "a"}),
    "Ledger.check": (_read("check"), {"budget": BUDGET, "table": "t"}),
    "export": (exported, {"answers": True}),
}  # fmt: skip

READINGS: dict[str, Call] = {
    **{
        f"{name}.{reading}": (getattr(bound, reading), example)
        for name, bound in CURVES.items()
        for reading, example in EITHER.items()
        if inspect.ismethod(getattr(bound, reading, None)) and (name, reading) != ("Approximate", "renyi")
    },
    "Pure.epsilon": (_at(tacit.Pure(epsilon=1).epsilon), {"at": 1e-5}),
    "Approximate.epsilon": (_at(tacit.Approximate(epsilon=1, delta=1e-6).epsilon), {"at": 1e-5}),
    "Approximate.delta": (_at(tacit.Approximate(epsilon=1, delta=1e-6).delta), {"at": 2.0}),
    "Guarantee.power": (CURVES["Guarantee"].power, {"size": 0.05}),
    "Guarantee.best_guess": (CURVES["Guarantee"].best_guess, {"prior": 0.5}),
    "Guarantee.incentive": (CURVES["Guarantee"].incentive, {"delta": 1e-6}),
    "Guarantee.group": (CURVES["Guarantee"].group, {"size": 2}),
    "Guarantee.subsampled": (CURVES["Guarantee"].subsampled, {"rate": 0.5, "scheme": "poisson"}),
    "Profile.delta_between": (CURVES["Profile"].delta_between, {"epsilon": 1.0, "tolerance": 1e-3}),
    "Profile.epsilon_between": (CURVES["Profile"].epsilon_between, {"delta": 1e-5, "tolerance": 1e-3}),
    "Profile.from_pair": (tacit.Profile.from_pair, {"p": [0.5, 0.5], "q": [0.25, 0.75]}),
    "Profile.from_losses": (tacit.Profile.from_losses, {"losses": [0.0], "probabilities": [0.5], "infinite": 0.5}),
    "Profile.gaussian": (tacit.Profile.gaussian, {"mu": 1}),
    "Profile.laplace": (tacit.Profile.laplace, {"epsilon": 1}),
    "Profile.grouped": (CURVES["Profile"].grouped, {"size": 2}),
    "Profile.poisson_sampled": (CURVES["Profile"].poisson_sampled, {"rate": 0.5}),
    "Profile.sampled_without_replacement": (CURVES["Profile"].sampled_without_replacement, {"rate": 0.5}),
    **{
        f"{name}Filter.{verb}": (_admitted(verb, CURVES[name]), {"release": CURVES[name]})
        for name in ("Pure", "Approximate", "Concentrated", "Gaussian")
        for verb in ("admit", "fits")
    },
}  # fmt: skip

_ONE = {"epsilon": 1, "spacing": 1}
_TWO = {**_ONE, "delta": 1e-6}
NAMED: dict[str, dict[str, Any]] = {
    "L2.root": {"square": 2},
    "CumulativeGaussian.for_rho": {"bins": 8, "l2_squared": 1, "rho": 1, "total_is_public": False},
    "CumulativeGaussian.for_target": {
        "bins": 8, "l2_squared": 1, "epsilon": 1, "delta": 1e-6, "total_is_public": False
    },
    "Gamma.for_target": {**_ONE, "sensitivity": L2(1), "dimension": 2},
    "Gaussian.for_rho": {"rho": 1, "spacing": 1, "sensitivity": L2(1), "dimension": 2},
    "Gaussian.for_target": {**_TWO, "sensitivity": L2(1), "dimension": 2},
    "GaussianSelection.for_rho": {"rho": 1, "delta": 1e-6, "keys": 2, "replaced": False, "group": 1},
    "GaussianSelection.for_target": {"epsilon": 1, "delta": 1e-6, "keys": 2, "replaced": False, "group": 1},
    "IntervalExponential.for_target": {**_ONE, "sensitivity": L1(1), "low": 0, "high": 8},
    "KNorm.for_target": {**_ONE, "sensitivity": Gauge(1, CUBE)},
    "KNormDifference.for_target": {**_ONE, "sensitivity": Contribution(1, CUBE)},
    "Laplace.for_target": {**_ONE, "sensitivity": L1(1)},
    "Mahalanobis.from_factor": {"value": 1, "factor": [[1, 0], [0, 2]]},
    "PolytopeNorm.for_target": {**_ONE, "points": [(1, 0), (0, 1)], "times": 1},
    "RangeNorm.for_target": {**_ONE, "dimension": 2, "times": 1},
    "RangeTree.plan": {"cells": 4, "epsilon": 1, "delta": 1e-6, "branching": 2, "rows": 1, "absent": False},
    "RoundedGaussian.for_mu_squared": {"mu_squared": 0.5, "squared_steps": 2, "dimension": 2},
    "RoundedGaussian.for_target": {**_TWO, "sensitivity": L2(1), "dimension": 2},
    "ShapedTables.for_target": {
        "epsilon": 1, "sizes": (2, 3), "times": 1, "replaced": True, "complete": True, "fixed": False
    },
    "SmoothLaplace.classic": _TWO,
    "SmoothLaplace.for_target": _TWO,
    "SmoothStudent.for_target": {**_ONE, "degrees": 3, "beta": 0.01},
    "SparseHistogram.for_target": {"epsilon": 1, "delta": 1e-6, "sensitivity": L2(1), "domain": 100},
    "SparseHistogram.with_rule": {
        "noise": Laplace(sensitivity=L1(1), noise_scale=1), "domain": 100, "threshold": None, "occupied": 3
    },
    "StableHistogram.for_target": {
        "epsilon": 1, "delta": 1e-6, "sensitivity": L1(2), "unit": KeysOfAUnit(keys=2, each=1, total=2)
    },
    "Bernoulli.exponential": {"exponent": 1},
    **{
        f"{name}.for_target": MECHANISMS[name]
        for name in (
            "CumulativeTree", "Exponential", "Geometric", "HadamardResponse", "OptimalSelection", "PermuteAndFlip",
            "QuantileSelection", "RandomizedResponse", "RankSelection", "Selection", "Staircase", "SubsetSelection",
            "TruncatedGeometric",
        )
    },
    "SparseRankSelection.for_target": {
        name: value for name, value in MECHANISMS["SparseRankSelection"].items() if name not in ("origin", "unit")
    },
    **{f"{name}.for_target": given for name, given in declared(tacit.mechanisms, "target_example").items()},
}  # fmt: skip
"""Mechanisms and laws by another name."""
