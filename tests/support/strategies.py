"""Hypothesis strategies for bounds, units and conditions."""

from __future__ import annotations

from hypothesis import strategies as st

import tacit
from tacit.accounting import events
from tacit.guarantees import Bound, Renyi

epsilons = st.one_of(
    st.sampled_from([0.0, 1e-12, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0]), st.floats(1e-6, 20, allow_nan=False)
)
deltas = st.one_of(st.sampled_from([0.0, 1e-12, 1e-6, 1e-3]), st.floats(1e-12, 0.4))
orders = st.one_of(st.sampled_from([1.01, 1.5, 2.0, 3.0, 16.0]), st.floats(1.01, 200))

pure = st.builds(lambda e: tacit.Pure(epsilon=e), epsilons)
approximate = st.builds(lambda e, d: tacit.Approximate(epsilon=e, delta=d), epsilons, deltas)
pointwise = st.builds(lambda e, d: tacit.guarantees.Pointwise(epsilon=e, delta=d), epsilons, deltas)
concentrated = st.builds(lambda r: tacit.Concentrated(rho=r), st.floats(1e-6, 5))
gaussian = st.builds(lambda m: tacit.GaussianDP(mu=m), st.floats(1e-4, 4))


@st.composite
def renyi(draw: st.DrawFn) -> Renyi:
    """A consistent curve: that of a pure or concentrated bound, at a few orders."""
    source = draw(st.one_of(pure, concentrated))
    at = draw(st.lists(st.sampled_from([1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 8.0, 32.0]), min_size=1, unique=True))
    return Renyi(orders=tuple(at), epsilons=tuple(source.renyi(a) for a in at))


closed: dict[str, st.SearchStrategy[Bound]] = {
    "pure": pure,
    "approximate": approximate,
    "pointwise": pointwise,
    "concentrated": concentrated,
    "gaussian": gaussian,
    "renyi": renyi(),
}
any_closed = st.one_of(*closed.values())


# --- events of answers that people randomise themselves ------------------------------------------------------
@st.composite
def balanced_responses(draw: st.DrawFn) -> events.BalancedResponseEvent:
    """Subset selection of d among k, Hadamard response, and any three numbers that fit."""
    epsilon = draw(st.floats(0.01, 5))
    k = draw(st.integers(2, 7))
    d = draw(st.integers(1, k - 1))
    outcomes, supporting, shared = draw(
        st.sampled_from(
            [(k * (k - 1), d * (k - 1), d * (d - 1)), (4, 2, 1), (2 * k + d, k, draw(st.integers(0, k - 1)))]
        )
    )
    return events.BalancedResponseEvent(
        epsilon=epsilon, outcomes=outcomes, supporting=supporting, shared=shared
    )


local_answers: st.SearchStrategy[events.Event] = st.one_of(
    balanced_responses(),
    st.builds(
        lambda e, k: events.RandomizedResponseEvent(epsilon=e, categories=k),
        st.floats(0.01, 5),
        st.integers(2, 9),
    ),
    st.builds(lambda e: events.PureEvent(epsilon=e), st.floats(0.01, 5)),
    st.builds(
        lambda e, one: events.ComposedEvent(events=(one, events.PureEvent(epsilon=e))),
        st.floats(0.01, 2),
        balanced_responses(),
    ),
)
shuffled = st.builds(
    lambda event, people: events.ShuffledEvent(event=event, people=people), local_answers, st.integers(1, 30)
)
