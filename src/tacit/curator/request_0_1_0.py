"""Questions as tacit 0.1.0 named them: its canonical form of a plan, frozen here with its sentences.

The ledgers of 0.1.0 store one digest of the request *and* the choice, with the sentence of its reason. To
answer such a question from the record its digest must be made again, letter by letter. So this file has copies
of those sentences and forms, which nobody may reword: ledgers written long ago depend on them. The golden files
in tests/golden/0.1.0 show whether it still holds.

The digest can be made again only if the same mechanism is chosen as then: for quantiles `plan_of_0_1_0` does
so. Otherwise, if a ledger of 0.1.0 has an answer that looks like the question, the ledger refuses and charges
nothing (`Ledger._replay_earlier`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.curator.assignments import Assignment
from tacit.curator.charging import Price
from tacit.curator.exact_answers import DiscardingAssignment, ExactAssignment, TruncatedAssignment
from tacit.curator.functions.assignment import FunctionAssignment
from tacit.curator.functions.fits import DensityFit, KernelModelFit, PureDensityFit
from tacit.curator.functions.histogram_fit import HistogramDensityFit
from tacit.curator.random_counts import OnRandomData, fits
from tacit.curator.request import ExactGiven, Given, Query, SampledGiven
from tacit.curator.selected import ClampingAssignment, Ranks, Selected, Sparse
from tacit.exact.canonical import canonical, canonical_table, sha256
from tacit.exact.rounding import up
from tacit.guarantees import Bound
from tacit.guarantees.conditions import told_gamma
from tacit.ledger import Earlier
from tacit.mechanisms import Gamma, Gaussian, KNorm, KNormDifference, Laplace, RoundedGaussian, Staircase
from tacit.mechanisms.base import L2
from tacit.mechanisms.cumulative import CumulativeGaussian, CumulativeTree
from tacit.mechanisms.fitted_tables import FittedTables, HullTables
from tacit.mechanisms.partition import GaussianSelection, OptimalSelection
from tacit.mechanisms.polytope import PolytopeNorm, RangeNorm
from tacit.mechanisms.ranges import RangeAnswers, RangeTree
from tacit.mechanisms.sparse import SparseHistogram
from tacit.mechanisms.stability import StableHistogram
from tacit.mechanisms.tables import CellSums, ShapedTables
from tacit.noise import Body
from tacit.statistics import Mean, Proportion

if TYPE_CHECKING:
    from tacit.curator.planning import Plan, Planned


FORMAT = 2
LONGEST = 2000


def earlier_requests(plan: Plan) -> tuple[Earlier, ...]:
    """The digest of this plan's request in 0.1.0; of a plan with a choice of 0.1.0, the stored digest."""
    if "earlier" not in plan.kept:
        plan.kept["earlier"] = (
            Earlier(plan_digest=sha256(plan_text(plan)), told=told_of(plan_of_0_1_0(plan))),
        )
    found: tuple[Earlier, ...] = plan.kept["earlier"]
    return found


def plan_of_0_1_0(plan: Plan) -> Plan:
    """The same request with the mechanisms that 0.1.0 chose for it."""
    changed = any(
        r.question.statistic.fits == "ranks"
        or (r.ask.sampling and isinstance(r.ask.statistic, Mean | Proportion))
        or (
            isinstance(r.assignment, FunctionAssignment) and isinstance(r.assignment.fit, HistogramDensityFit)
        )
        for r in plan.releases
    )
    if plan.budget is None or not changed:
        return plan
    if "of_0_1_0" not in plan.kept:
        from tacit.curator.planning import make_plan

        plan.kept["of_0_1_0"] = make_plan(
            [r.ask for r in plan.releases], schema=plan.schema, unit=plan.unit, budget=plan.budget,
            total=plan.total, given=plan.given, reading=plan.reading, earlier=True,
        )  # fmt: skip
    found: Plan = plan.kept["of_0_1_0"]
    return found


Told = Callable[["Plan", "Planned"], dict[str, Any]]


def plan_text(plan: Plan, mechanism: Told | None = None) -> str:
    """The canonical text of a plan, in the format of 0.1.0; `mechanism` describes assignments unknown here."""
    plan = plan_of_0_1_0(plan)
    total, told = plan.total, mechanism or mechanism_of
    parts = {
        "format": FORMAT,
        "unit": plan.charge.to_dict()["unit"],
        "delta": None if total is None or total.delta is None else str(total.delta),
        **({"gamma": str(plan.gamma)} if plan.gamma else {}),
        **({"reading": plan.reading} if plan.reading else {}),
        "releases": [
            {**_ask(r.ask), "price": _price(r.assignment.price), "mechanism": told(plan, r)}
            for r in plan.releases
        ],
    }
    texts = {name: canonical(part, what="plan") for name, part in parts.items()}
    return canonical_table({**texts, "schema": plan.schema.text})


def _ask(a: Query) -> dict[str, Any]:
    return {
        "name": a.name,
        "statistic": a.statistic.to_dict(),
        "weight": str(a.weight),
        "confidence": str(a.confidence),
        "consistent": a.consistent,
        "rows": a.rows,
        "sampling": a.sampling,
        "public": None if a.public is None else a.public.to_dict(),
        "target": None if a.target is None else str(a.target),
        **({} if a.given is None else {"given": _given(a.given)}),
    }


def _given(given: Given) -> dict[str, Any]:
    if isinstance(given, SampledGiven):
        if given.sampling == "fixed":
            return {"sampling": given.sampling, "n": given.n, "size_epsilon": given.size_epsilon}
        return {"sampling": given.sampling, "rate": given.rate, "known_rows": given.known_rows}
    if isinstance(given, ExactGiven):
        return {
            "unknown_rows": given.unknown_rows,
            "rows": given.rows_law,
            "probability": None if given.probability is None else list(given.probability),
            "assume": given.assume,
            "rectangle": None if given.rectangle is None else list(given.rectangle),
        }
    return {
        "random_data": str(given.gamma),
        "rows": given.rows,
        "small_cells": bool(given.small_cells),
        "fixed_before": given.fixed_before,
    }


def _price(price: Price) -> dict[str, Any]:
    numbers = {n: getattr(price, n) for n in ("epsilon", "delta", "rho", "mu", "within")}
    said: dict[str, Any] = {name: str(v) for name, v in numbers.items() if v is not None}
    if price.within is not None:
        said |= {"confidence": str(price.confidence), "simultaneous": price.simultaneous}
    return said


# --- mechanisms -------------------------------------------------------------------------------------------------
def mechanism_of(plan: Plan, planned: Planned) -> dict[str, Any]:
    """The stated words about the mechanism of a release: numbers from the choice, and words from here."""
    assignment = planned.assignment
    said: dict[str, Any] = {
        "noise": _noise(assignment),
        "chosen": reason_of(assignment, plan.budget),
        "numerical_delta": 0.0,
    }
    if (
        plan.given is not None
        and plan.given.gamma
        and planned.ask.given is None
        and not fits(planned.question)
    ):
        said["chosen"] += "; differentially private: it takes nothing from random data"
    if isinstance(assignment, ExactAssignment):
        said["exact"] = _exact(planned, assignment)
    if isinstance(assignment, OnRandomData):
        rule = "random-proportion" if assignment.cells == 1 else "random-histogram"
        said["random_data"] = {**_given(assignment.given), "cells": assignment.cells, "rule": rule}
    if isinstance(assignment, FunctionAssignment):
        said["fit"] = fit_of(assignment.fit)
    return said


def _noise(assignment: Assignment) -> list[dict[str, Any]]:
    if isinstance(assignment, Sparse | Ranks):
        return [law_of(assignment.mechanism)]
    if isinstance(assignment, FunctionAssignment):
        return [law_of(assignment.fit.mechanism)]
    stated = [_noise_values(a.parts, a.mechanism) for a in assignment.noise]
    if isinstance(assignment, Selected):
        return [{"selection": _method(assignment.selection), **law_of(assignment.selection)}, *stated]
    return stated


def _noise_values(parts: Sequence[str], mechanism: Any) -> dict[str, Any]:
    """The statements about the noise of some parts."""
    if isinstance(mechanism, Laplace):
        return {
            "parts": list(parts),
            "distribution": "discrete Laplace",
            "noise_scale": str(1 / mechanism.distribution.rate),
            "epsilon": str(mechanism.exact_epsilon),
            "sensitivity": {"norm": "L1", "steps": mechanism.sensitivity.steps(mechanism.step)},
            "exact": True,
        }
    if isinstance(mechanism, RoundedGaussian):
        moved = mechanism.sensitivity
        steps = moved.squared_steps(mechanism.step) if isinstance(moved, L2) else None
        return {
            "parts": list(parts),
            "distribution": "Gaussian, rounded to the grid",
            "noise_std": str(Fraction(mechanism.noise_std) / mechanism.step),
            "sensitivity": {"norm": "L2", "steps_squared": steps},
            "exact": True,
        }
    if isinstance(mechanism, Staircase):
        return {
            "parts": list(parts),
            "distribution": "staircase",
            "epsilon": str(mechanism.exact_epsilon),
            "plateau_steps": str(mechanism.distribution.plateau),
            "sensitivity": {"norm": "L1", "steps": mechanism.sensitivity.steps(mechanism.step)},
            "exact": True,
        }
    return law_of(mechanism)


def law_of(m: Any) -> dict[str, Any]:
    """The law of the noise as 0.1.0 told it."""
    match m:
        case Laplace():
            return {"distribution": "discrete Laplace", **_scaled(m)}
        case Gaussian():
            return {
                "distribution": "discrete Gaussian",
                "noise_std": str(Fraction(m.noise_std)),
                "spacing": str(m.step),
                "exact": True,
            }
        case RoundedGaussian():
            return {
                "distribution": "Gaussian, rounded",
                "noise_std": str(Fraction(m.noise_std)),
                "dimension": m.coordinates,
                "spacing": str(m.step),
                "exact": True,
            }
        case Gamma():
            return {"distribution": "Euclidean Laplace, rounded", "dimension": m.coordinates, **_scaled(m)}
        case KNorm():
            told = {
                "distribution": "K-norm, rounded",
                "body": type(m.body).__name__,
                "dimension": m.coordinates,
            }
            return {**told, **_scaled(m), "exact": isinstance(m.body, Body)}
        case KNormDifference():
            told = {
                "distribution": "difference of K-norm noises, rounded",
                "body": type(m.sensitivity.body).__name__,
            }
            return {**told, "dimension": m.coordinates, **_scaled(m)}
        case RangeNorm():
            return {"distribution": "range norm, rounded", "dimension": m.coordinates, **_scaled(m)}
        case PolytopeNorm():
            corners = [list(p) for p in sorted({p for cone in m.cones for p in cone})]
            told = {"distribution": "K-norm of the hull of moves, rounded", "corners": corners}
            return {**told, "dimension": m.coordinates, **_scaled(m)}
        case ShapedTables():
            return {**law_of(m.noise), "on": _shaped(m), "tables": list(m.sizes)}
        case HullTables():
            on = f"{len(m.image.base)} of {sum(m.image.sizes)} counts, of which the others are combinations"
            return {**law_of(m.noise), "on": on, "tables": list(m.image.sizes)}
        case FittedTables():
            told = {
                "on": f"{m.agreement.counts} counts, then least squares",
                "tables": list(m.agreement.sizes),
            }
            return {**law_of(m.noise), **told, "known_total": m.agreement.fixed}
        case CellSums():
            return {**law_of(m.noise), "on": f"{m.cells} cells, of which the tables are sums"}
        case RangeAnswers():
            return {**law_of(m.noise), "on": f"{m.cells} bins, of which the ranges are sums"}
        case RangeTree():
            levels = [None if level is None else law_of(level) for level in m.mechanisms]
            told = {"distribution": "tree of sums, least squares", "branching": m.branching}
            return {**told, "levels": levels}
    return _law_of_others(m)


def _law_of_others(m: Any) -> dict[str, Any]:
    """Ranks, thresholds and selections."""
    match m:
        case CumulativeTree():
            return {
                "distribution": "discrete Laplace on a tree of counts",
                "noise_scale": str(m.noise_scale),
                "widths": list(m.widths),
                "spacing": str(m.spacing),
                "exact": True,
            }
        case CumulativeGaussian():
            return {
                "distribution": "Gaussian, rounded, under the square root of the summation matrix",
                "noise_std": str(Fraction(m.noise_std)),
                "coefficient_bits": m.bits,
                "spacing": "1",
                "exact": True,
            }
        case SparseHistogram():
            told = {"threshold": m.threshold, "domain": str(m.domain), "cells": str(m.cells)}
            return {**law_of(m.noise), **told}
        case StableHistogram():
            unit = {"keys_of_a_unit": m.unit.keys, "each": m.unit.each, "total": m.unit.total}
            return {**law_of(m.noise), "threshold": m.threshold, **unit}
        case OptimalSelection():
            epsilon, delta = m.level
            return {
                "distribution": "optimal partition selection",
                "key_epsilon": str(epsilon),
                "key_delta": str(delta),
                "longest": len(m.distribution.reached),
                "exact": True,
            }
        case GaussianSelection():
            return {
                "distribution": "Gaussian, rounded, with a threshold",
                "noise_std": str(Fraction(m.noise_std)),
                "threshold": m.threshold,
                "spacing": "1",
                "exact": True,
            }
    # 0.1.0 chose nothing else.
    return dict(m.noise_distribution)


def _scaled(m: Any) -> dict[str, Any]:
    return {"noise_scale": str(Fraction(m.noise_scale)), "spacing": str(m.step), "exact": True}


def fit_of(fit: Any) -> dict[str, Any]:
    """The stated words about a fitted function."""
    plan = fit.plan
    if isinstance(fit, KernelModelFit):
        features = {"map": type(plan.features).__name__, "dimension": plan.features.dimension}
        return {
            "loss": plan.loss.name,
            "features": {**features, "radius": plan.features.radius},
            "penalty": plan.penalty,
            "size": plan.size,
            "heads": plan.heads,
            "solver_tolerance": plan.tolerance,
            "l2_sensitivity": plan.l2_sensitivity,
            "noise": law_of(plan.mechanism),
            "expected_excess_error": plan.expected_excess_error(),
        }
    family = plan.family
    said = {
        "family": {
            "family": family.kind, "low": list(family.box.lows), "high": list(family.box.highs), **family.parameters,
        },
        "size": plan.size,
        "rows": plan.rows,
        "neighbours": plan.neighbours.value,
        "outside": plan.outside,
        "noise_std": plan.noise_std,
    }  # fmt: skip
    if isinstance(fit, PureDensityFit):
        return {
            **said,
            "coefficients": family.coefficients - 1,
            "mechanism": plan.choice.name,
            "reason": _fourier_reason(plan),
            "noise": law_of(plan.choice.mechanism),
            "keys": [key.count for key in fit.keys],
        }
    assert isinstance(fit, DensityFit)
    moved = {"sensitivity": float(plan.sensitivity.value), "noise": law_of(plan.noise_mechanism)}
    return {**said, "coefficients": family.coefficients, **moved}


FOURIER = {
    "laplace": "Laplace noise",
    "gamma": "Gamma (Euclidean Laplace) noise",
    "caratheodory": "noise of the Caratheodory body",
    "gaussian": "Gaussian noise",
}


def _fourier_reason(plan: Any) -> str:
    """Why the sums of a Fourier density got this noise."""
    energies, best, family = plan.choice.energies, plan.choice.name, plan.family
    if plan.mechanism != "best":
        return f"{FOURIER[best]}, as asked"
    if family.order == 1 and family.dimension == 1:
        return (
            "the body of one frequency is a disc, which is symmetric: its plain K-norm noise is Gamma noise"
        )
    second = sorted(energies, key=energies.__getitem__)[1]
    ratio = energies[second] / energies[best] if energies[best] > 0 else math.inf
    words = f"{FOURIER[best]} has the least expected noise energy of {len(energies)} mechanisms: "
    words += (
        f"that of {FOURIER[second]} is {ratio:.3g} times as large"
        if ratio > 1 + 1e-9
        else f"as {FOURIER[second]}"
    )
    if family.dimension > 1:
        return words + f"; for {family.dimension} dimensions no exact sampler of the moment body is known"
    return words


# --- exact answers ----------------------------------------------------------------------------------------------
ALONE = "nothing else that depends on these rows is published"
CELLS_FIXED = "the cells were fixed before the rows were seen"
_COUNT = re.compile(r"(?<![A-Za-z0-9_.,])[0-9]+(?:,[0-9]{3})*(?:[.][0-9]+)?(?:e[-+]?[0-9]+)?")
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])-?[0-9]+(?:[.][0-9]+)?(?:e[-+]?[0-9]+)?")


def _exact(planned: Planned, assignment: ExactAssignment) -> dict[str, Any]:
    answer = assignment.answer
    said: dict[str, Any] = {
        "epsilon": answer.epsilon,
        "epsilon_pair": answer.epsilon_pair,
        "delta": answer.delta,
        "theorem": answer.theorem,
        "simulator": _simulator(assignment),
        "unknown_rows": answer.unknown_rows,
        "sentence": _sentence(planned, assignment),
        **_given(assignment.given),
    }
    if isinstance(assignment, TruncatedAssignment):
        said["threshold"] = assignment.threshold
    if isinstance(assignment, DiscardingAssignment):
        said |= {"epsilon_pair": assignment.epsilon, "delta_pair": up(assignment.delta)}
        said |= {"discards": assignment.size.discards, "size_epsilon": assignment.size.size_epsilon}
    return said


def _sentence(planned: Planned, assignment: ExactAssignment) -> str:
    if isinstance(assignment, DiscardingAssignment):
        size = assignment.size
        believed = [
            f"the {size.rows} rows are independent draws of one law, whatever it is",
            "nobody knows any other row",
            f"up to {size.discards} rows are discarded at random first, as many as theorem "
            "truncated-histogram-fixed-size says, and nobody learns how many or which",
            CELLS_FIXED,
            ALONE,
        ]
        wrong = (
            "no noise is added to the counts of the rows that were kept, and this is not differential privacy"
        )
    else:
        wrong = "the numbers are exact, and this is not differential privacy"
        believed = (
            _sampled(assignment)
            if isinstance(assignment, TruncatedAssignment)
            else _hidden(planned, assignment)
        )
    return f"This is private provided that {'; and '.join(believed)}. If that is wrong, nothing is promised: {wrong}."


def _sampled(assignment: TruncatedAssignment) -> list[str]:
    given = assignment.given
    assert isinstance(given, SampledGiven)
    drawn = (
        "the numbers of rows in the cells are independent Poisson numbers, with any means (Poisson sampling of a "
        "population that is large against the sample)"
    )
    if given.sampling == "binomial":
        drawn = (
            "the rows are a random sample of a population: every member is in it independently, with probability at "
            f"most {float(assignment.answer.details['rate']):g}"
        )
    known = "nobody knows of any other person whether they are in the sample"
    if given.known_rows:
        known = f"nobody knows of more than {given.known_rows} other people of one cell that they are in the sample"
    return [drawn, known, CELLS_FIXED, ALONE]


def _hidden(planned: Planned, assignment: ExactAssignment) -> list[str]:
    unknown = assignment.answer.unknown_rows
    knows = f"an adversary knows nothing of at least {unknown} rows but how they are drawn"
    return [_drawn(planned, assignment), knows, ALONE]


def _drawn(planned: Planned, assignment: ExactAssignment) -> str:
    details = assignment.answer.details
    if "probability" in details:
        a, b = details["probability"]
        chance = f"{a:g}" if a == b else f"its own, between {a:g} and {b:g}"
        return f"every row is counted independently of the others, with a probability of {chance}"
    statistic: Any = planned.ask.statistic
    law = assignment.given.law(planned.question.schema.measured(statistic.column).spacing).reduced()
    if assignment.given.assume == "known":
        ends = f"from {_digits(law.low)} to {_digits(law.high)}"
        return f"the rows are independent draws from {law.name}, recorded on the grid of {_digits(law.step)} {ends}"
    shapes = " or ".join(dict.fromkeys(_shape(s) for s in details["shapes"]))
    grid = f"the grid of {float(law.step):g} from {float(law.low):g} to {float(law.high):g}"
    return f"the rows are independent draws from one distribution on {grid} that {shapes}"


def _digits(value: Fraction) -> str:
    number = float(value)
    return f"{number:.12g}" if Fraction(repr(number)) == value else str(value)


def _shape(told: Mapping[str, Any]) -> str:
    """A shape below the law of a row; its numbers stand in today's sentence, in the same order."""
    found, kind = _NUMBER.findall(told["words"]), told["kind"]
    if kind == "rectangle" and len(found) == 4:
        low, high, height, mass = found
        return f"gives each value from {low} to {high} a probability of at least {height} (a rectangle of mass {mass})"
    if kind == "rectangles" and len(found) % 3 == 1:
        *steps, mass = found
        each = zip(steps[::3], steps[1::3], steps[2::3], strict=True)
        sums = ", plus ".join(f"{h} from {a} to {b}" for h, a, b in each)
        return f"gives every value at least {sums} (a staircase of rectangles of mass {mass})"
    if kind == "triangle" and len(found) == 8:
        height, centre, _, left, right, low, high, mass = found
        what = f"the triangle that is {height} at {centre} and 0 at {left} and {right}"
        return f"lies above {what}, for values from {low} to {high} (mass {mass})"
    if kind == "normal" and len(found) == 9:
        height, centre, _, _, width, _, low, high, mass = found
        what = f"the normal shape {height} exp(-(x - {centre})^2 / (2 {width}^2))"
        return f"lies above {what}, for values from {low} to {high} (mass {mass})"
    return str(told["words"])


def _simulator(assignment: ExactAssignment) -> str:
    """The words in place of the row; its numbers stand in today's sentence, in the same order."""
    if isinstance(assignment, DiscardingAssignment):
        return "the same, discarding included, without the row"
    if isinstance(assignment, TruncatedAssignment):
        return "the truncated histogram without the row"
    found = _NUMBER.findall(assignment.answer.simulator)
    if "probability" in assignment.answer.details:
        how = f"a bit that is 1 with probability {found[-1]}" if found else "a fair bit"
        return f"the count of the other rows, plus {how}"
    if len(found) == 1:
        return f"the other rows, with {found[0]} in place of the protected one"
    first, second, *share = found
    how = f"a coin that takes the first with probability {share[0]}" if share else "a fair coin"
    return f"the other rows, with {first} or {second} in place of the protected one, by {how}"


def _method(selection: Any) -> str:
    """How keys were selected."""
    if isinstance(selection, OptimalSelection):
        e, d = selection.level
        return f"optimal selection, one key at epsilon = {float(e):.4g}, delta = {float(d):.4g}"
    if isinstance(selection, GaussianSelection):
        return f"Gaussian noise of {float(selection.noise_std):.4g} and threshold {selection.threshold}"
    return str(selection.method)


# --- why it was chosen ------------------------------------------------------------------------------------------
def reason_of(assignment: Assignment, budget: Bound | None = None) -> str:
    """The sentence of 0.1.0 with the reason for a choice, made from the compared numbers and not from today's
    sentence.

    `budget` names the unit of the errors. For an assignment that 0.1.0 did not know this is today's sentence.
    """
    if isinstance(assignment, DiscardingAssignment):
        discards, threshold = assignment.size.discards, assignment.answer.threshold
        return f"up to {discards} rows discarded, then exact from {threshold} on; smaller counts are 0"
    if isinstance(assignment, TruncatedAssignment):
        return f"exact from {assignment.answer.threshold} on, given the sample; smaller counts are 0"
    if isinstance(assignment, ExactAssignment):
        pair = assignment.answer.epsilon_pair
        return f"exact, given the rows: epsilon = {pair:.3g} between two values of a row"
    if isinstance(assignment, FunctionAssignment):
        return _of_function(assignment)
    if isinstance(assignment, ClampingAssignment):
        return "Laplace noise: bounds are read from pure noise"
    if isinstance(assignment, Selected):
        return _of_keys(assignment)
    if isinstance(assignment, Sparse):
        return _of_sparse(assignment)
    if isinstance(assignment, OnRandomData):
        small = "small cells" if assignment.given.small_cells else "empty cells"
        said = f"given random data (random DP, gamma = {told_gamma(assignment.given.gamma)})"
        return f"{_name(assignment.noise[0].mechanism)}, and {small} exact, {said}"
    if isinstance(assignment, Ranks):
        return (
            _compared(_rank_name(assignment), assignment.candidates)
            if assignment.candidates
            else assignment.reason
        )
    if type(assignment) is not Assignment:
        return assignment.reason
    return _of_noise(assignment, budget)


def _of_noise(assignment: Assignment, budget: Bound | None) -> str:
    if not assignment.noise:
        return "no unit can change it: it is published as it is"
    found, name = _named(assignment.candidates), _name(assignment.noise[0].mechanism)
    if assignment.price.within is not None:
        return _costs(name, found, budget) + _beside(assignment)
    return (_compared(name, found) if name in found else assignment.reason.partition("; ")[0]) + _beside(
        assignment
    )


def _costs(name: str, costs: Mapping[str, float], budget: Bound | None) -> str:
    """Why this noise stays within an error that was asked."""
    independent = {n: c for n, c in costs.items() if n in ("Laplace noise", "Gaussian noise")}
    rest = {n: c for n, c in (independent if name in independent else costs).items() if n != name}
    if not rest:
        return f"{name}: the least that stays within the asked error"
    other = min(rest, key=lambda n: rest[n])
    what = "rho" if budget is not None and budget.kind in ("concentrated", "gaussian", "renyi") else "epsilon"
    return f"{name}: for this error it costs {what} {costs[name]:.3g}, {other} {costs[other]:.3g}"


def _beside(assignment: Assignment) -> str:
    """The old sentence why no answer is exact given random data, with the numbers of today's sentence; empty if the
    reason has none.
    """
    found = _COUNT.findall(assignment.reason.partition("; ")[2])
    if len(found) < 3:
        return ""
    twice = "2k" if len(found) > 3 else "k"
    return (
        f"; nothing may be exact given random data, as {twice} = {found[-3]} is more than gamma n = {found[-2]}: every "
        "cell has noise, it is differentially private, and gamma = 0 is spent"
    )


def _of_function(assignment: FunctionAssignment) -> str:
    fit: Any = assignment.fit
    plan = fit.plan
    if isinstance(fit, PureDensityFit):
        return (
            f"{_fourier_reason(plan)}; {plan.family.coefficients - 1} numbers, which are the whole function"
        )
    return f"Gaussian noise on {fit.mechanism.dimension} numbers, which are the whole function"


def _of_keys(assignment: Selected) -> str:
    method = _method(assignment.selection)
    if not assignment.noise:
        return f"{method}; the counts come with the names"
    inner = _compared(_name(assignment.noise[0].mechanism), _named(assignment.candidates))
    return f"{method}, at half of epsilon; then {inner}"


def _of_sparse(assignment: Sparse) -> str:
    thresholds = {name: int(t) for name, t in assignment.candidates.items()}
    if assignment.price.kind == "pure" and not thresholds:
        return "Laplace noise on every cell; published by an estimate of the risk, after the noise"
    best = _sparse_name(assignment.mechanism)
    if best not in thresholds:
        return assignment.reason
    others = ", ".join(f"that of {name} {t}" for name, t in thresholds.items() if name != best)
    return f"{best}: at this price its threshold is {thresholds[best]}, {others}"


def _sparse_name(mechanism: Any) -> str:
    if not isinstance(mechanism, SparseHistogram):
        return "noise on occupied cells alone"
    law = "Laplace" if isinstance(mechanism.noise, Laplace) else "Gaussian"
    return f"{law} noise on every cell"


def _rank_name(assignment: Ranks) -> str:
    if isinstance(assignment.mechanism, CumulativeTree):
        return "Laplace noise on a tree of counts"
    return "Gaussian noise under the square root of the summation matrix"


def _name(mechanism: Any) -> str:
    """The name of this noise among its rivals in 0.1.0."""
    if isinstance(mechanism, Laplace):
        return "Laplace noise"
    if isinstance(mechanism, RoundedGaussian):
        return "Gaussian noise"
    if isinstance(mechanism, Staircase):
        return "staircase noise"
    if isinstance(mechanism, CellSums):
        return f"{_name(mechanism.noise)} on the cells"
    if isinstance(mechanism, RangeAnswers):
        if isinstance(mechanism.noise, RangeTree):
            first = next(m for m in mechanism.noise.mechanisms if m is not None)
            return f"{_name(first)} on a tree of sums"
        return f"{_name(mechanism.noise)} on the bins"
    if isinstance(mechanism, FittedTables):
        return f"{_name(mechanism.noise)} and least squares"
    if isinstance(mechanism, ShapedTables):
        law = "cube noise" if mechanism.replaced else "range-norm noise"
        return f"{law} on {_shaped(mechanism)}"
    if isinstance(mechanism, HullTables):
        return f"K-norm noise on {len(mechanism.image.base)} of {sum(mechanism.image.sizes)} counts"
    return ""


def _shaped(mechanism: ShapedTables) -> str:
    counts = "1 count" if mechanism.coordinates == 1 else f"{mechanism.coordinates} counts"
    if not mechanism.complete:
        return counts
    if mechanism.fixed:
        return f"{counts}, the last of each table by subtraction"
    return f"the number of rows and {mechanism.coordinates - 1} counts"


def _named(errors: Mapping[str, float]) -> dict[str, float]:
    """Errors by the names of noise; those of independent noise alone are kept by its law."""
    return {f"{name} noise" if name in ("Laplace", "Gaussian") else name: e for name, e in errors.items()}


def _compared(name: str, errors: Mapping[str, float]) -> str:
    others = [n for n in errors if n != name]
    if not others:
        return f"{name}: the price is pure"
    other = min(others, key=lambda n: errors[n])
    share = errors[name] / errors[other] if errors[other] else 1.0
    times = "the same as" if share > 0.995 else f"{share:.2f} of"
    return f"{name}: at this price its error is {times} that of {other}"


# --- the question in words --------------------------------------------------------------------------------------
def told_of(plan: Plan) -> list[dict[str, Any]]:
    """Each release in the ledger's words of 0.1.0."""
    return [
        {
            "release": r.name,
            "statistic": _short(_statistic_sentence(r.ask.statistic.to_dict())),
            "price": {"kind": r.guarantee.bound.kind, "words": str(r.guarantee.bound)},
        }
        for r in plan.releases
    ]


def _short(words: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in words)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 3] + "..."


def _statistic_sentence(statistic: Mapping[str, Any]) -> str:
    kind, get = statistic["kind"], statistic.get
    what = {
        "count": f"How many {get('of', 'rows')} there are",
        "sum": f"The sum of {get('column')}",
        "mean": f"The mean of {get('column')}",
        "variance": f"The {'standard deviation' if get('root') else 'variance'} of {get('column')}",
        "proportion": f"The share of rows with {get('of')}",
        "ratio": f"The sum of {get('numerator')} over the sum of {get('denominator')}",
        "quantiles": f"The values of {get('column')} below which given shares of the rows lie",
        "margins": f"All tables of order {get('order')} of {_listed(get('columns'))}",
        "density": f"The density of {_listed(get('columns'))}",
        "classifier": f"A function that tells {get('label')} from {_listed(get('columns'))}",
        "regression_function": f"What {get('outcome')} to expect, from {_listed(get('columns'))}",
    }.get(kind, kind.replace("_", " ").capitalize())
    by = f", for each {_listed(get('by'))}" if get("by") else ""
    where = f", of rows where {get('where')}" if get("where") else ""
    return f"{what}{by}{where}."


def _listed(entries: Any) -> str:
    names = [e if isinstance(e, str) else e["column"] for e in entries or []]
    return " and ".join(map(str, names))
