"""From a verdict to a guarantee of the algebra: bound, unit and condition, none of them dropped."""

from __future__ import annotations

from tacit.coupled.definitions import CoupledWorlds, InferenceCoupledWorlds, Noiseless, SimulationDP
from tacit.coupled.mechanisms import FiniteMechanism, Simulator
from tacit.coupled.numbers import Level
from tacit.coupled.verdict import Found
from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.rounding import up
from tacit.guarantees.arguments import instance
from tacit.guarantees.bounds import Approximate, Bound, Pure
from tacit.guarantees.conditions import Priors
from tacit.guarantees.guarantee import Guarantee
from tacit.guarantees.units import Coupled, Neighbours, rows

__all__ = ["promised"]


def promised(
    definition: CoupledWorlds,
    mechanism: FiniteMechanism,
    *,
    epsilon: object,
    family: str,
    simulator: Simulator | None = None,
) -> Guarantee:
    """The guarantee that was checked: (epsilon, the certified upper end of delta), for these pairs, under these priors.

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
        from tacit.coupled.comparing import between_values, found_delta

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
