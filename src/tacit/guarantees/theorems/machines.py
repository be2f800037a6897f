"""The theorems of machines: how far a row moves them, what a solver adds, what the noise costs."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "machine-sensitivity",
    "The minimiser of (1/N) sum loss + penalty |w|^2 moves by at most M radius/(penalty N) if one row is replaced, "
    "and by half of that if one is added.",
    "Bousquet, Elisseeff 2002, Lemma 20; Hall 2012, 3.3.3",
    "convex losses of slope at most M; no weight without penalty; N public",
    Standing.SHARPER,
)
register(
    "machine-gap",
    "A vector within `gap` of the least objective lies within sqrt(gap/penalty) of the minimiser, and its gap has "
    "upper ends that floats can certify.",
    "proved on the page; Fenchel duality",
    "the tolerance is public",
    Standing.SHARPER,
)
register(
    "machine-excess",
    "Gaussian noise of std s in a machine's value raises the expected loss by at most curvature s^2/2, and by at most "
    "turn s/sqrt(2 pi).",
    "proved on the page; left open in Hall 2012, 3.3.3",
    "the loss that is minimised, not the share of wrong classes",
    Standing.SHARPER,
)
register(
    "machine-choice",
    "One row moves a clipped held-out risk by at most max(clip/n_t, M radius d), so that a noisy minimum over k "
    "candidates is epsilon-private; its price adds to the fit's.",
    "Hall 2012, 1.2.3",
    "rows are replaced where they stand; n public",
    Standing.SHARPER,
)
