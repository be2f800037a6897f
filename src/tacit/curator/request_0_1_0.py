"""What tacit 0.1.0 called a question: its canonical form of a plan, frozen here with its sentences.

The ledgers of 0.1.0 store a digest of what was asked *and* of what was chosen, with the sentence that said why. To
answer such a question from the record its digest must be made again, letter by letter. So this file has copies of
those sentences and forms, and nobody may reword them: it is read by ledgers that were written long ago. The golden
files in tests/golden/0.1.0 show whether it still holds.

The digest can be made again only if the same mechanism is chosen today. Where it is not, and a ledger of 0.1.0 has an
answer that looks like the question, the ledger refuses and charges nothing (`Ledger._replay_earlier`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tacit.curator.asks import Ask
from tacit.curator.clamping import ClampingTreatment
from tacit.curator.exact_answers import ExactTreatment
from tacit.curator.functions.treatment import FunctionTreatment
from tacit.curator.keys import Selected
from tacit.curator.prices import Price
from tacit.curator.random_counts import OnRandomData
from tacit.curator.ranks import Ranks
from tacit.curator.sparse import Sparse
from tacit.curator.treatments import Treatment
from tacit.curator.truncated import DiscardingTreatment, TruncatedTreatment
from tacit.guarantees.conditions import told_gamma
from tacit.ledger import Earlier
from tacit.ledger.canonical import canonical, canonical_table, sha256
from tacit.mechanisms import Laplace, RoundedGaussian, Staircase
from tacit.mechanisms.cumulative import CumulativeTree
from tacit.mechanisms.fitted_tables import FittedTables
from tacit.mechanisms.hull_tables import HullTables
from tacit.mechanisms.partition import OptimalSelection
from tacit.mechanisms.partition_gaussian import GaussianSelection
from tacit.mechanisms.range_answers import RangeAnswers
from tacit.mechanisms.ranges import RangeTree
from tacit.mechanisms.sparse import SparseHistogram
from tacit.mechanisms.tables import CellSums, ShapedTables

if TYPE_CHECKING:
    from tacit.curator.plan import Plan, Planned

__all__ = ["earlier_requests", "plan_text", "reason_of", "told_of"]

FORMAT = 2
LONGEST = 2000


def earlier_requests(plan: Plan) -> tuple[Earlier, ...]:
    """What 0.1.0 called the request of this plan; of a plan with a choice of 0.1.0, the digest that it stored."""
    if "earlier" not in plan.kept:
        plan.kept["earlier"] = (Earlier(plan_digest=sha256(plan_text(plan)), told=told_of(plan)),)
    found: tuple[Earlier, ...] = plan.kept["earlier"]
    return found


def plan_text(plan: Plan) -> str:
    """The canonical text of a plan, in the format of 0.1.0."""
    total = plan.total
    parts = {
        "format": FORMAT,
        "unit": plan.charge.record["unit"],
        "delta": None if total is None or total.delta is None else str(total.delta),
        **({"gamma": str(plan.gamma)} if plan.gamma else {}),
        **({"reading": plan.reading} if plan.reading else {}),
        "releases": [_release(r) for r in plan.releases],
    }
    texts = {name: canonical(part, what="plan") for name, part in parts.items()}
    return canonical_table({**texts, "schema": plan.schema.text})


def _release(r: Planned) -> dict[str, Any]:
    return {**_ask(r.ask), "price": _price(r.treatment.price), "mechanism": _mechanism(r.treatment)}


def _ask(a: Ask) -> dict[str, Any]:
    return {
        "name": a.name,
        "statistic": a.statistic.describe(),
        "weight": str(a.weight),
        "confidence": str(a.confidence),
        "consistent": a.consistent,
        "rows": a.rows,
        "sampling": a.sampling,
        "public": None if a.public is None else a.public.record,
        "target": None if a.target is None else str(a.target),
        **({} if a.given is None else {"given": a.given.describe()}),
    }


def _price(price: Price) -> dict[str, Any]:
    numbers = {n: getattr(price, n) for n in ("epsilon", "delta", "rho", "mu", "within")}
    said: dict[str, Any] = {name: str(v) for name, v in numbers.items() if v is not None}
    if price.within is not None:
        said |= {"confidence": str(price.confidence), "simultaneous": price.simultaneous}
    return said


# --- mechanisms -------------------------------------------------------------------------------------------------
def _mechanism(treatment: Treatment) -> dict[str, Any]:
    said = {**treatment.describe(), "chosen": reason_of(treatment)}
    if isinstance(treatment, Selected):
        chosen = treatment.selection
        selection = {"selection": _method(chosen), **chosen.noise_distribution}
        said["noise"] = [selection, *(_stated(a.parts, a.mechanism) for a in treatment.noise)]
    elif type(treatment) in (Treatment, ClampingTreatment, OnRandomData):
        said["noise"] = [_stated(a.parts, a.mechanism) for a in treatment.noise]
    return said


def _stated(parts: Sequence[str], mechanism: Any) -> dict[str, Any]:
    """What was stated of the noise of some parts."""
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
        stated = mechanism.stated(parts)
        return {
            **stated,
            "parts": list(parts),
            "distribution": "Gaussian, rounded to the grid",
            "exact": True,
        }
    if isinstance(mechanism, Staircase):
        return {**mechanism.stated(parts), "parts": list(parts), "distribution": "staircase", "exact": True}
    return dict(mechanism.stated(parts))


def _method(selection: Any) -> str:
    """How keys were selected."""
    if isinstance(selection, OptimalSelection):
        e, d = selection.level
        return f"optimal selection, one key at epsilon = {float(e):.4g}, delta = {float(d):.4g}"
    if isinstance(selection, GaussianSelection):
        return f"Gaussian noise of {float(selection.noise_std):.4g} and threshold {selection.threshold}"
    return str(selection.method)


# --- why it was chosen ------------------------------------------------------------------------------------------
def reason_of(treatment: Treatment) -> str:
    """The sentence of 0.1.0 that says why this was chosen: made of what was compared, and not of today's sentence.

    Where too little is known to make it again, it is today's.
    """
    if isinstance(treatment, DiscardingTreatment):
        discards, threshold = treatment.size.discards, treatment.answer.threshold
        return f"up to {discards} rows discarded, then exact from {threshold} on; smaller counts are 0"
    if isinstance(treatment, TruncatedTreatment):
        return f"exact from {treatment.answer.threshold} on, given the sample; smaller counts are 0"
    if isinstance(treatment, ExactTreatment):
        pair = treatment.answer.epsilon_pair
        return f"exact, given the rows: epsilon = {pair:.3g} between two values of a row"
    if isinstance(treatment, FunctionTreatment):
        return _of_function(treatment)
    if isinstance(treatment, ClampingTreatment):
        return "Laplace noise: bounds are read from pure noise"
    if isinstance(treatment, Selected):
        return _of_keys(treatment)
    if isinstance(treatment, Sparse):
        return _of_sparse(treatment)
    if isinstance(treatment, OnRandomData):
        small = "small cells" if treatment.given.small_cells else "empty cells"
        said = f"given random data (random DP, gamma = {told_gamma(treatment.given.gamma)})"
        return f"{_name(treatment.noise[0].mechanism)}, and {small} exact, {said}"
    if isinstance(treatment, Ranks):
        return (
            _compared(_rank_name(treatment), treatment.candidates)
            if treatment.candidates
            else treatment.reason
        )
    if type(treatment) is not Treatment:
        return treatment.reason
    return _of_noise(treatment)


def _of_noise(treatment: Treatment) -> str:
    if not treatment.noise:
        return "no unit can change it: it is published as it is"
    found, name = _named(treatment.candidates), _name(treatment.noise[0].mechanism)
    if name not in found:
        return treatment.reason
    # What is said of random data beside it stands behind the sentence.
    _, more, behind = treatment.reason.partition("; ")
    if treatment.price.within is not None:
        return treatment.reason
    return _compared(name, found) + more + behind


def _of_function(treatment: FunctionTreatment) -> str:
    fit: Any = treatment.fit
    plan = fit.plan
    if hasattr(plan, "choice"):
        return f"{plan.choice.reason}; {plan.family.coefficients - 1} numbers, which are the whole function"
    return f"Gaussian noise on {fit.mechanism.dimension} numbers, which are the whole function"


def _of_keys(treatment: Selected) -> str:
    method = _method(treatment.selection)
    if not treatment.noise:
        return f"{method}; the counts come with the names"
    inner = _compared(_name(treatment.noise[0].mechanism), _named(treatment.candidates))
    return f"{method}, at half of epsilon; then {inner}"


def _of_sparse(treatment: Sparse) -> str:
    thresholds = {name: int(t) for name, t in treatment.candidates.items()}
    if treatment.price.kind == "pure" and not thresholds:
        return "Laplace noise on every cell; published by an estimate of the risk, after the noise"
    best = _sparse_name(treatment.mechanism)
    if best not in thresholds:
        return treatment.reason
    others = ", ".join(f"that of {name} {t}" for name, t in thresholds.items() if name != best)
    return f"{best}: at this price its threshold is {thresholds[best]}, {others}"


def _sparse_name(mechanism: Any) -> str:
    if not isinstance(mechanism, SparseHistogram):
        return "noise on occupied cells alone"
    law = "Laplace" if isinstance(mechanism.noise, Laplace) else "Gaussian"
    return f"{law} noise on every cell"


def _rank_name(treatment: Ranks) -> str:
    if isinstance(treatment.mechanism, CumulativeTree):
        return "Laplace noise on a tree of counts"
    return "Gaussian noise under the square root of the summation matrix"


def _name(mechanism: Any) -> str:
    """What 0.1.0 called this noise among its rivals."""
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
    """Each release as 0.1.0 told it in the ledger."""
    return [
        {
            "release": r.name,
            "statistic": _short(_words(r.ask.statistic.describe())),
            "price": {"kind": r.guarantee.bound.kind, "words": str(r.guarantee.bound)},
        }
        for r in plan.releases
    ]


def _short(words: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in words)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 3] + "..."


def _words(statistic: Mapping[str, Any]) -> str:
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
