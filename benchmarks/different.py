"""Ten thousand releases, no two alike, of every kind: from events to a certified epsilon at delta = 1e-6.

The ratio is of the two seconds that are asked to the time taken, the better of two runs with nothing cached.
Parameters are drawn evenly from the ranges. Widths are those of the enclosure; kinds that are only bounded from
above (exponential, concentrated, and sampling without replacement) have no lower end.
"""

from __future__ import annotations

import math
import resource
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accounting import fresh
from tacit.accounting import events as e

NUMBER = 10_000
Plan = Callable[[], Sequence[e.Event]]


def drawn(low: float, high: float, seed: int = 1) -> list[float]:
    """Even on [low, high]."""
    return [float(x) for x in np.random.default_rng(seed).uniform(low, high, NUMBER)]


def even(low: float, high: float) -> list[float]:
    """From low to high in equal steps."""
    return [float(x) for x in np.linspace(low, high, NUMBER)]


def _epsilon(kind: Any, **fixed: Any) -> Callable[[float], e.Event]:
    def made(value: float) -> e.Event:
        event = kind(epsilon=value, **fixed)
        assert isinstance(event, e.Event)
        return event

    return made


def _tabulated(x: float) -> e.Event:
    return e.TabulatedEvent(p=[0.5 + x, 0.3, 0.2 - x], q=[0.5, 0.3, 0.2])


def _gaussian(multiplier: float) -> e.Event:
    return e.GaussianEvent(noise_multiplier=multiplier)


def _integers(multiplier: float) -> e.Event:
    return e.DiscreteGaussianEvent(noise_multiplier=multiplier)


KINDS: dict[str, tuple[Callable[[float], e.Event], tuple[float, float], tuple[float, float]]] = {
    "Laplace": (_epsilon(e.LaplaceEvent), (1e-3, 2e-2), (0.1, 1)),
    "discrete Laplace": (_epsilon(e.DiscreteLaplaceEvent), (1e-3, 2e-2), (0.1, 1)),
    "discrete Laplace, sensitivity 3": (
        _epsilon(e.DiscreteLaplaceEvent, sensitivity=3),
        (1e-3, 2e-2),
        (0.1, 1),
    ),
    "staircase": (_epsilon(e.StaircaseEvent, gamma=0.4), (1e-3, 2e-2), (0.1, 1)),
    "exponential": (_epsilon(e.ExponentialEvent), (1e-3, 2e-2), (0.1, 1)),
    "permute-and-flip": (_epsilon(e.PermuteAndFlipEvent), (1e-3, 2e-2), (0.1, 1)),
    "randomised response": (_epsilon(e.RandomizedResponseEvent), (1e-3, 2e-2), (0.1, 1)),
    "randomised response, 5 categories": (
        _epsilon(e.RandomizedResponseEvent, categories=5),
        (1e-3, 2e-2),
        (0.1, 1),
    ),
    "pure": (_epsilon(e.PureEvent), (1e-3, 2e-2), (0.1, 1)),
    "approximate (delta 1e-11)": (_epsilon(e.ApproximateEvent, delta=1e-11), (1e-3, 2e-2), (0.1, 1)),
    "concentrated": (lambda rho: e.ConcentratedEvent(rho=rho), (1e-6, 2e-4), (0.01, 0.5)),
    "tabulated": (_tabulated, (1e-3, 1e-2), (0.01, 0.1)),
    "Gaussian": (_gaussian, (50, 500), (1, 10)),
    "discrete Gaussian": (_integers, (50, 500), (1, 10)),
}
"""How each kind is made, the range of its parameter, and that range where the event is sampled."""


def _poisson(make: Callable[[float], e.Event], values: list[float], rates: list[float]) -> Plan:
    return lambda: [
        e.PoissonSampledEvent(event=make(v), sampling_rate=q) for v, q in zip(values, rates, strict=True)
    ]


def _without(make: Callable[[float], e.Event], values: list[float], rates: list[float]) -> Plan:
    return lambda: [
        e.SampledWithoutReplacementEvent(event=make(v), sampling_rate=q)
        for v, q in zip(values, rates, strict=True)
    ]


def _plain(make: Callable[[float], e.Event], values: list[float]) -> Plan:
    return lambda: [make(v) for v in values]


def plans() -> list[tuple[str, Plan, str]]:
    """Names, plans and neighbours."""
    both, one = "add-or-remove", "replace-one"
    rates, fixed = drawn(1e-3, 0.05, 0), [0.01] * NUMBER
    found: list[tuple[str, Plan, str]] = []
    for name, (make, plain, sampled) in KINDS.items():
        found.append((f"{name}, {plain[0]:g}-{plain[1]:g}", _plain(make, drawn(*plain)), both))
        ranges = f"{sampled[0]:g}-{sampled[1]:g}"
        values = drawn(*sampled)
        found.append((f"{name}, {ranges}, Poisson .001-.05", _poisson(make, values, rates), both))
        found.append((f"{name}, {ranges}, without replacement .001-.05", _without(make, values, rates), one))
    small = [math.exp(x) for x in drawn(math.log(1e-4), math.log(0.01), 0)]
    found += [
        ("Gaussian, 1-10 evenly, Poisson .01", _poisson(_gaussian, even(1, 10), fixed), both),
        ("Gaussian, 1-10 evenly, Poisson .01, replace-one", _poisson(_gaussian, even(1, 10), fixed), one),
        ("Gaussian, 1-2 evenly, Poisson .01", _poisson(_gaussian, even(1, 2), fixed), both),
        ("Gaussian, 1, Poisson .001-.02 evenly", _poisson(_gaussian, [1.0] * NUMBER, even(1e-3, 0.02)), both),
        ("Gaussian, .6-2, Poisson .0001-.01", _poisson(_gaussian, drawn(0.6, 2), small), both),
        ("Gaussian, 5-50, Poisson .05-.5", _poisson(_gaussian, drawn(5, 50), drawn(0.05, 0.5, 0)), both),
    ]
    return found


def main() -> list[dict[str, Any]]:
    rows = []
    for name, plan, neighbours in plans():
        done, seconds = fresh(plan, repeats=2, neighbours=neighbours)
        ends = done.epsilon
        width = f"width {ends.width:.0e}" if ends.low > 0 else "upper end"
        rows.append(
            {
                "measure": f"{name}: epsilon {ends.high:.4f}, {width}, by {done.accountant}",
                "ours": f"{seconds:.2f} s",
                "ratio": 2 / seconds,
                "target": 1.0,
            }
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows.append({"measure": "peak memory of all of these (asked: 1 GiB)", "ours": f"{peak:.2f} GiB"})
    return rows
