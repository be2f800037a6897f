"""Post-processing: what is computed from a release, without the data, reveals no more than the release."""

from __future__ import annotations

from tacit.guarantees.bounds import Approximate, Bound, Pointwise
from tacit.guarantees.laws.registry import law

__all__ = ["post_process_bound"]


@law("post-processing", operation="post-process")
def post_process_bound(bound: Bound) -> Bound:
    """The bound itself, except that a pointwise bound keeps only its (epsilon, delta) meaning."""
    return pointwise_after_processing(bound) if isinstance(bound, Pointwise) else bound


@law("pointwise-post-processing", operation="post-process")
def pointwise_after_processing(bound: Pointwise) -> Approximate:
    """Merging outputs may spread the bad event over more probability than delta."""
    return Approximate(epsilon=float(bound.epsilon), delta=float(bound.delta))
