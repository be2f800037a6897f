"""Hypothesis strategies for bounds, units and conditions."""

from __future__ import annotations

from hypothesis import strategies as st

import tacit
from tacit.guarantees import Bound, Renyi

epsilons = st.one_of(
    st.sampled_from([0.0, 1e-12, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0]), st.floats(1e-6, 20, allow_nan=False)
)
deltas = st.one_of(st.sampled_from([0.0, 1e-12, 1e-6, 1e-3]), st.floats(1e-12, 0.4))
orders = st.one_of(st.sampled_from([1.01, 1.5, 2.0, 3.0, 16.0]), st.floats(1.01, 200))

pure = st.builds(lambda e: tacit.Pure(epsilon=e), epsilons)
approximate = st.builds(lambda e, d: tacit.Approximate(epsilon=e, delta=d), epsilons, deltas)
pointwise = st.builds(lambda e, d: tacit.Pointwise(epsilon=e, delta=d), epsilons, deltas)
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
