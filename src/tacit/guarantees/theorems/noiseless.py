"""Theorems about exact answers: sums, means and counts that the other rows hide (Groce 2014, ch. 6)."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "shifted-sums",
    "If rows are independent draws from a known law on a grid, the exact sum is (epsilon, delta)-private with delta "
    "the largest hockey-stick divergence of S + x and S + U in both directions, S the sum of the other unknown rows; "
    "if that law is log-concave, the worst x are the ends of the support.",
    "proved on the page; Groce 2014, Thm 6.6 is a weaker form for uniform rows",
    "the simulator's U lies on the lattice of the sums",
    Standing.SHARPER,
)
register(
    "undisclosed-rows",
    "If the law of a row lies above a shape g of mass v, the exact sum is private with delta(epsilon) at most the mean "
    "over M ~ Bin(m, v) of the delta of M rows drawn from g/v; delta falls in M, and no M fails but 0.",
    "proved on the page; Groce 2014, Thm 6.7 and Cor. 6.2, 6.3 have a failure case instead",
    "rows independent, from one law or mixtures of such priors; the range is declared; m of the others are unknown",
    Standing.SHARPER,
)
register(
    "irwin-hall-sums",
    "For n uniform rows on [0, 1] the exact sum is private with epsilon = ln pdf(a - .5)/pdf(a - 1) and delta = "
    "cdf(a - .5) + cdf(a), pdf and cdf those of n - 1 rows; the density is a finite Fourier series but for a tail.",
    "Groce 2014, Thm 6.6, where the monotone ratio is assumed (Assumption 6.1); here it is proved",
    "rows with a density, law known, no auxiliary knowledge: a statement about the continuous world",
    Standing.SHARPER,
)
register(
    "rectangle-sums",
    "If the density of a row in R^d contains a prism of volume v, the exact sum is private with epsilon = "
    "sum_j ln pdf(a_j)/pdf(a_j - w_j/2) and delta = 2 sum_j cdf(a_j + w_j/2) + (1 + e^epsilon) e^{-2 n v^2 (1-r)^2}, "
    "with ceil(r v n) - 1 rows; and with Pr[fail] once.",
    "Groce 2014, Thm 6.7, Cor. 6.2, 6.3, whose simulator fills in (w2 - w1)/2",
    "rows with a density on a declared range; nu known rows take the place of n by n - nu",
    Standing.CORRECTED,
)
register(
    "count-corners",
    "For independent rows that are 1 with probabilities in [a, b] the exact count is hidden worst when every "
    "probability is a or b: m + 1 cases, and k1 to k2 of them are covered by Bin(k1, a) + Bin(m - k2, b).",
    "joint convexity of divergences, proved on the page",
    "rows independent given what is known; one simulator, the count of the others plus a coin, for all of them",
    Standing.SHARPER,
)
register(
    "lattice-sums",
    "The law of a sum on a lattice from its transform on N points, with the tail that wraps around, the frequencies "
    "left out, the transform's rounding and a tilt all bounded.",
    "discrete Fourier inversion and Chernoff's bound, proved on the page",
    "floating-point addition and multiplication are correctly rounded, and sines and cosines nearly",
    Standing.SHARPER,
)
