"""Two releases about the same people: they compose only if a theorem's conditions hold on the given finite priors.

Theorem `compose-priors` (Groce 2014, Thm 5.6): G must be private for somebody who knows F(X), and F for somebody
who knows Sim_G(alt(X)). Theorem `compose-priors-disjoint` (Thm 6.8): the two use disjoint rows that are independent
given Z. Otherwise there is no law: the counts of all rows and of all rows but one are each private under much
uncertainty, and their difference is a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from tacit.coupled.best import best_delta
from tacit.coupled.definitions import CoupledWorlds, InferenceCoupledWorlds, Noiseless, SimulationDP
from tacit.coupled.mechanisms import Cell, FiniteMechanism, Simulator, cells, check_pairs, check_priors, scrub
from tacit.coupled.numbers import Level, as_probability, mixed, total_variation
from tacit.coupled.pairs import GONE, Pair
from tacit.coupled.priors import Prior, point_priors, with_auxiliary
from tacit.coupled.verdict import Found, against_simulator, found_best, found_delta
from tacit.errors import InvalidParameter, NoLaw, NotCertified
from tacit.exact.checks import instance, listed, refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Interval, up
from tacit.guarantees.bounds import Approximate, Bound, Pure
from tacit.guarantees.conditions import Priors
from tacit.guarantees.guarantee import Guarantee
from tacit.guarantees.units import Coupled, Neighbours, rows

__all__ = [
    "Composed",
    "compose_disjoint_rows",
    "compose_known",
    "independent_given_auxiliary",
    "neighbour_priors",
    "promised",
    "semantic_failure",
]

COUNTEREXAMPLE = "the exact count of all rows, and the exact count of all rows but one"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Composed:
    """The pair of two releases: its bound by the theorem, its simulator, and the exact delta against that simulator."""

    mechanism: FiniteMechanism
    simulator: Simulator
    epsilon: Interval
    delta: Fraction
    exact: Found
    theorem: str

    @property
    def bound(self) -> Bound:
        """(epsilon, delta), rounded against ourselves."""
        if self.delta == 0:
            return Pure(epsilon=self.epsilon.high)
        return Approximate(epsilon=self.epsilon.high, delta=up(self.delta))


def compose_known(
    first: FiniteMechanism,
    second: FiniteMechanism,
    *,
    priors: Sequence[Prior],
    pairs: Sequence[Pair],
    claims: tuple[tuple[object, object], tuple[object, object]],
    simulators: tuple[Simulator, Simulator] | None = None,
) -> Composed:
    """Thm 5.6, after its two conditions have been checked exactly; NoLaw with a witness if one fails.

    `claims` are (epsilon, delta) of both. Without `simulators` it uses the best ones under the conditions.
    """
    beliefs, protected = check_priors(priors), check_pairs(pairs)
    (level_f, delta_f), (level_g, delta_g) = _claims(claims)
    _mechanisms(first, second)
    given = (None, None) if simulators is None else listed("simulators", simulators)
    refuse_if(len(given) != 2, "simulators", len(given), "be two, one for each release")
    knowing = [with_auxiliary(p, first.table, name=p.name) for p in beliefs]
    sim_g = _shown(
        second,
        cells(second, knowing, protected),
        level_g,
        delta_g,
        given[1],
        f"knows what {first.name} said",
    )
    parts: list[Cell] = []
    for pair in protected:

        def simulated(x: Any, pair: Pair = pair) -> Any:
            inputs = scrub(pair, x)
            return mixed(inputs, {a: sim_g(pair.name, a) for a in inputs})

        parts += cells(first, [with_auxiliary(p, simulated, name=p.name) for p in beliefs], [pair])
    sim_f = _shown(
        first,
        parts,
        level_f,
        delta_f,
        given[0],
        f"knows what the simulator of {second.name} said",
    )
    delta = max(delta_f * level_g.high + delta_g, delta_f + delta_g * level_f.high)
    if delta >= 1:
        raise NoLaw(operation="this composition", reason="its delta reaches 1, and then nothing is promised")
    return _joined(
        first,
        second,
        _both(sim_f, sim_g),
        cells(first.beside(second), beliefs, protected),
        Level(
            epsilon=f"{level_f.epsilon} + {level_g.epsilon}",
            low=level_f.low * level_g.low,
            high=level_f.high * level_g.high,
        ),
        delta,
        "compose-priors",
    )


def compose_disjoint_rows(
    first: FiniteMechanism,
    second: FiniteMechanism,
    *,
    priors: Sequence[Prior],
    rows: Iterable[int],
    claims: tuple[tuple[object, object], tuple[object, object]],
) -> Composed:
    """Thm 6.8: `first` uses these rows only, `second` the others only, and the two sets are independent given Z.

    Every condition is checked on the given priors; the result is (max epsilon, max delta).
    """
    beliefs = check_priors(priors)
    _mechanisms(first, second)
    size = _one_size(beliefs)
    part = frozenset(whole("rows", i, least=0) for i in listed("rows", rows))
    if any(i >= size for i in part):
        raise InvalidParameter(
            parameter="rows", value=sorted(part), must=f"be below the number of rows, {size}"
        )
    rest = frozenset(range(size)) - part
    for prior in beliefs:
        if not independent_given_auxiliary(prior, part):
            raise NoLaw(
                operation="disjoint composition",
                reason=f"the two sets of rows are not independent given the auxiliary knowledge under '{prior.name}'",
                counterexample="four fair bits, X1+X2 and X3+X4 modulo 2, for somebody who knows X2+X3+X4",
            )
    levels, deltas, simulators = [], [], []
    for mechanism, own, (level, delta) in zip((first, second), (part, rest), _claims(claims), strict=True):
        if not depends_only_on(mechanism, own):
            raise NoLaw(
                operation="disjoint composition",
                reason=f"{mechanism.name} depends on rows outside of its part",
                counterexample=COUNTEREXAMPLE,
            )
        levels.append(level)
        deltas.append(delta)
        inside = cells(mechanism, beliefs, [_row_within(i, own) for i in sorted(own)])
        simulators.append(_shown(mechanism, inside, levels[-1], deltas[-1], None, "knows the auxiliary only"))

    def answer(pair: str, scrubbed: Any) -> Any:
        i = int(pair.removeprefix("row "))
        one, other = (simulators[0], second) if i in part else (simulators[1], first)
        own = part if i in part else rest
        told = one(pair, tuple(v if j in own else GONE for j, v in enumerate(scrubbed)))
        # The other mechanism does not look at row i: any value stands in its place.
        filled = other[
            next(x for x in other.table if all(x[j] == scrubbed[j] for j in range(size) if j != i))
        ]
        both = ((s, p, t, q) for s, p in told.items() for t, q in filled.items())
        return {((s, t) if i in part else (t, s)): p * q for s, p, t, q in both}

    most = max(levels, key=lambda one: one.high)
    everybody = [_row_within(i, frozenset(range(size))) for i in range(size)]
    return _joined(
        first,
        second,
        Simulator(name="the simulator of one part, and the mechanism of the other", answer=answer),
        cells(first.beside(second), beliefs, everybody),
        most,
        max(deltas),
        "compose-priors-disjoint",
    )


def independent_given_auxiliary(prior: Prior, rows: Iterable[int]) -> bool:
    """Are these rows independent of the other rows given Z, exactly?"""
    part = frozenset(rows)
    joint: dict[Any, Fraction] = {}
    left: dict[Any, Fraction] = {}
    right: dict[Any, Fraction] = {}
    whole_: dict[Any, Fraction] = {}
    for (x, z), w in prior.weights.items():
        a = tuple(v for i, v in enumerate(x) if i in part)
        b = tuple(v for i, v in enumerate(x) if i not in part)
        keys: list[tuple[dict[Any, Fraction], Any]]
        keys = [(joint, (a, b, z)), (left, (a, z)), (right, (b, z)), (whole_, z)]
        for table, key in keys:
            table[key] = table.get(key, Fraction(0)) + w
    return all(
        joint.get((a, b, z), Fraction(0)) * whole_[z] == p * q
        for (a, z), p in left.items()
        for (b, y), q in right.items()
        if y == z
    )


def depends_only_on(mechanism: FiniteMechanism, part: frozenset[int]) -> bool:
    """Is the output's distribution a function of these rows, on every data set of the table?

    Changing one row at a time is not enough: it would miss rows that only change together.
    """
    seen: dict[Any, Any] = {}
    for x, row in mechanism.table.items():
        if dict(seen.setdefault(tuple(v for i, v in enumerate(x) if i in part), row)) != dict(row):
            return False
    return True


def _one_size(priors: Sequence[Prior]) -> int:
    """The number of rows, which all data sets of all priors have."""
    sizes = {len(x) if isinstance(x, tuple) else -1 for prior in priors for x in prior.data}
    refuse_if(
        len(sizes) != 1 or -1 in sizes, "priors", "data of several forms", "draw tuples of one number of rows"
    )
    return sizes.pop()


def _mechanisms(*given: object) -> None:
    for one in given:
        instance("mechanism", one, FiniteMechanism, must="be a finite mechanism")


def _claims(claims: object) -> list[tuple[Level, Fraction]]:
    """(epsilon, delta) of the first release, and of the second."""
    given = listed("claims", claims)
    if len(given) != 2 or any(not isinstance(c, tuple | list) or len(c) != 2 for c in given):
        raise InvalidParameter(
            parameter="claims", value=f"{len(given)} of them", must="be two pairs (epsilon, delta)"
        )
    return [(Level.of(e), as_probability("delta", d)) for e, d in given]


def _row_within(row: int, part: frozenset[int]) -> Pair:
    """priv = the row, alt = the other rows of its part; rows outside of the part are dropped, too."""
    return Pair(
        name=f"row {row}",
        priv=lambda x: x[row],
        alt=lambda x: tuple(v if j in part and j != row else GONE for j, v in enumerate(x)),
    )


def _shown(
    mechanism: FiniteMechanism,
    parts: Sequence[Cell],
    level: Level,
    delta: Fraction,
    simulator: Simulator | None,
    knows: str,
) -> Simulator:
    """The simulator of the checked claim; NoLaw if the claim fails, or stays undecided."""
    if simulator is None:
        best = best_delta(parts, level)
        found, used = found_best(best, level, len(parts)), best.simulator
    else:
        used = instance("simulators", simulator, Simulator, must="be simulators")
        found = found_delta(against_simulator(parts, used), level, simulator=used.name)
    if found.high > delta:
        where = f": {found.witnesses[0]}" if found.witnesses else ""
        raise NoLaw(
            operation="composition under Priors",
            reason=f"{mechanism.name} is not ({level.epsilon}, {float(delta):.4g})-private for somebody who {knows}: "
            f"delta is {float(found.high):.4g}{where}",
            counterexample=COUNTEREXAMPLE,
        )
    return used


def _both(first: Simulator, second: Simulator) -> Simulator:
    """Both simulators with independent coins."""

    def answer(pair: str, scrubbed: Any) -> Any:
        left, right = first(pair, scrubbed), second(pair, scrubbed)
        return {(s, t): p * q for s, p in left.items() for t, q in right.items()}

    return Simulator(name="both simulators", answer=answer)


def _joined(
    first: FiniteMechanism,
    second: FiniteMechanism,
    simulator: Simulator,
    parts: Sequence[Cell],
    level: Level,
    delta: Fraction,
    theorem: str,
) -> Composed:
    found = found_delta(against_simulator(parts, simulator), level, simulator=simulator.name)
    if found.low > delta:
        raise NotCertified(
            what="the composition",
            reason="its simulator is worse than the theorem allows, so that a condition was missed: please report it",
        )
    return Composed(
        mechanism=first.beside(second),
        simulator=simulator,
        epsilon=level.interval,
        delta=delta,
        exact=found,
        theorem=theorem,
    )


# From a verdict to a guarantee of the algebra: bound, unit and condition, none of them dropped.


def promised(
    definition: CoupledWorlds,
    mechanism: FiniteMechanism,
    *,
    epsilon: object,
    family: str,
    simulator: Simulator | None = None,
) -> Guarantee:
    """The checked guarantee: (epsilon, the certified upper end of delta), for these pairs, under these priors.

    `family` names the class of priors. Under all point priors (Def. 5.1) the guarantee is differential privacy itself,
    for replace-one neighbours, between two values of a row.
    """
    instance("definition", definition, CoupledWorlds, must="be a definition with a simulator")
    if isinstance(definition, Noiseless | InferenceCoupledWorlds):
        raise NoLaw(
            operation=f"a guarantee from {definition.title}",
            reason="the algebra's laws under Priors are about simulators that see alt(X)",
            hint="check CoupledWorlds or Distributional",
        )
    level = Level.of(epsilon)
    if isinstance(definition, SimulationDP):
        from tacit.coupled.verdict import between_values, found_delta

        found = found_delta(between_values(definition.cells(mechanism)), level)
        return Guarantee(bound=_bound(level, found), unit=rows(neighbours=Neighbours.REPLACE_ONE))
    unknown = min(prior.unknown_rows() for prior in definition.priors)
    if unknown == 0:
        raise InvalidParameter(
            parameter="priors",
            value="one that knows every row",
            must="leave at least one row unknown",
            hint="for all point priors use SimulationDP, which gives differential privacy",
        )
    found = definition.delta(mechanism, epsilon=level, simulator=simulator)
    names = {f"row {i}" for x in definition.priors[0].data for i in range(len(x))}
    whole = names == {pair.name for pair in definition.pairs}
    return Guarantee(
        bound=_bound(level, found),
        unit=Coupled(
            priv="any one row" if whole else "; ".join(p.name for p in definition.pairs),
            alt="; ".join(dict.fromkeys(p.alt_name for p in definition.pairs)),
            family=len(definition.pairs),
        ),
        condition=Priors(family=family, unknown_rows=unknown),
    )


def _bound(level: Level, found: Found) -> Bound:
    if found.high >= 1:
        raise NoLaw(
            operation="a guarantee", reason="delta is 1 at this epsilon, and then nothing is promised"
        )
    high = level.interval.high
    return Pure(epsilon=high) if found.high == 0 else Approximate(epsilon=high, delta=up(found.high))


# Semantic privacy (Groce 2014, Def. 3.4): how far a whole belief moves, with and without somebody's row.
#
# For a prior B over data sets and a row i, the belief after F(x) = t is compared with the belief after F(x_{-i}) = t,
# where the row was replaced by a fixed default. Semantic privacy (s, d) asks that the two are within s in statistical
# distance, except with probability d over x and t. Theorem `semantic-implies-dp`: for all priors it implies (ln((1 +
# 2s)/(1 - 2s)), 2d)-DP.


def semantic_failure(
    mechanism: FiniteMechanism, prior: Prior, *, row: int, default: Any, shift: object
) -> Fraction:
    """The exact probability that the two beliefs are more than `shift` apart."""
    i, most = whole("row", row, least=0), as_probability("shift", shift)
    real: dict[Any, dict[Any, Fraction]] = {}
    ideal: dict[Any, dict[Any, Fraction]] = {}
    for x, weight in prior.data.items():
        scrubbed = (*x[:i], default, *x[i + 1 :])
        for told, table in ((mechanism[x], real), (mechanism[scrubbed], ideal)):
            for t, p in told.items():
                row_of = table.setdefault(t, {})
                row_of[x] = row_of.get(x, Fraction(0)) + weight * p
    failing = Fraction(0)
    for t, beliefs in real.items():
        chance = sum(beliefs.values(), Fraction(0))
        other = ideal.get(t)
        if other is None or total_variation(_normal(beliefs), _normal(other)) > most:
            failing += chance
    return failing


def _normal(row: dict[Any, Fraction]) -> dict[Any, Fraction]:
    whole_ = sum(row.values(), Fraction(0))
    return {x: w / whole_ for x, w in row.items()}


def neighbour_priors(values: Sequence[Any], *, rows: int) -> list[tuple[int, Prior]]:
    """The priors of the proof: a fair coin between two data sets that differ in row i, for all of them, with i."""
    points = [next(iter(p.data)) for p in point_priors(values, rows=rows)]
    found = []
    for a, x in enumerate(points):
        for y in points[a + 1 :]:
            differing = [i for i, (v, w) in enumerate(zip(x, y, strict=True)) if v != w]
            if len(differing) == 1:
                half = Fraction(1, 2)
                found.append(
                    (differing[0], Prior(name=f"{x!r} or {y!r}", weights={(x, None): half, (y, None): half}))
                )
    return found
