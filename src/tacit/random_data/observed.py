"""Bounds read off the data: what goes wrong, computed. An attack, not a release."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.exact.checks import positive
from tacit.exact.rationals import Exact
from tacit.random_data.base import rows_parameter
from tacit.random_data.changes import _value
from tacit.random_data.outputs import laplace_divergence

__all__ = ["observed_range_delta"]


def observed_range_delta(values: Sequence[Exact], *, replaced: Exact, epsilon: float) -> float:
    """The delta that "mean + Laplace noise sized by the observed range" really has, for one pair of samples.

    The last row is replaced by `replaced`. The larger of the two hockey-stick divergences of the two outputs at
    epsilon, continuous noise of scale (max - min)/(n epsilon). It tends to 1 as the replaced row moves away, and is 1
    where one of the two samples is constant. Theorem `random-observed-range`. Source: Hall 2012, 5.1.1.
    """
    e = positive("epsilon", epsilon)
    one = [float(_value(v)) for v in values]
    n = rows_parameter(len(one))
    other = [*one[:-1], float(_value(replaced))]
    (m1, s1), (m2, s2) = ((sum(x) / n, (max(x) - min(x)) / (n * e)) for x in (one, other))
    if s1 == 0 or s2 == 0:
        return 0.0 if (m1, s1) == (m2, s2) else 1.0
    there = laplace_divergence(value=m1, scale=s1, other=m2, other_scale=s2, epsilon=e)
    back = laplace_divergence(value=m2, scale=s2, other=m1, other_scale=s1, epsilon=e)
    return max(there, back)
