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
