"""The theorems of functions: Gaussian-process release, and how its paths are computed."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "gaussian-process-release",
    "A function in the RKHS of K plus noise_std times a Gaussian process with covariance K is exactly "
    "(RKHS sensitivity / noise_std)-Gaussian private, for the whole path.",
    "Hall 2012, Prop. 3.2.2 and 3.2.3",
    "the sensitivity bounds the RKHS norm of the difference, for all neighbours",
    Standing.SHARPER,
)
register(
    "gaussian-process-batch",
    "Values at m points have covariance noise_std^2 times the Gram matrix; their Mahalanobis move is at most "
    "the RKHS norm of the difference.",
    "Hall 2012, 3.2.5",
    "the sensitivity bounds the RKHS norm of the difference, for all neighbours",
    Standing.CORRECTED,
)
register(
    "gaussian-process-online",
    "A path asked point by point, each value drawn given those before, has the law of the batch; a point at "
    "which the conditional variance is negligible is interpolated, which is post-processing.",
    "Hall 2012, 3.2.5",
    "questions may depend on the answers before, and on nothing else that is secret",
    Standing.CORRECTED,
)
