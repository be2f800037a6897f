"""The theorems of risk: optimal mechanisms, and what no mechanism can go below."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "optimal-count-remap",
    "For a loss that grows outwards the best epsilon-private mechanisms for a count, Bayes and "
    "minimax, are remaps of the truncated geometric, and every prior gives a lower bound.",
    "Ghosh, Roughgarden, Sundararajan 2012; Gupte, Sundararajan 2010; Hall 2012, 1.3.5 and 2.3.3",
    "pure epsilon; the loss does not fall as the output moves away from the truth",
    Standing.SHARPER,
)
register(
    "optimal-count-zero-one",
    "The best worst-case chance of saying the true count is (1-q)/(1+q) + 2q/((1+q)S), S the sum of "
    "e^(epsilon min(x, n-x)).",
    "proved on the page",
    "pure epsilon; a public range",
    Standing.SHARPER,
)
register(
    "finite-program",
    "The best mechanism on finitely many states is a linear program, and any multipliers give a lower bound.",
    "Hall 2012, 1.3.5 and 2.3.3",
    "finitely many states and outputs",
    Standing.AS_PRINTED,
)
register(
    "exact-matrix",
    "Raising entries, levelling rows and mixing turn any matrix into one of integers whose privacy is "
    "checked exactly.",
    "proved on the page",
    "none beyond the definitions",
    Standing.SHARPER,
)
register(
    "count-packing",
    "Every private count has worst error at least t/(e^(epsilon t) + 2) for 2t <= n, and "
    "(t/2)/(e^(epsilon t) + 1) for t <= n.",
    "Hall 2012, Prop. 2.3.1, kept general",
    "pure epsilon",
    Standing.SHARPER,
)
register(
    "count-rate",
    "Every private count has worst error at least e^-2/epsilon, for epsilon < 2 and n >= 6/epsilon.",
    "Hall 2012, Prop. 2.3.1",
    "pure epsilon; n >= 6/epsilon",
    Standing.CORRECTED,
)
register(
    "count-closed-form",
    "Every private count on 0..n has worst error at least 1/sinh(epsilon) - 1/((n+1) sinh(epsilon/2)^2), and "
    "t/(e^(epsilon t) + 1) for t <= n; "
    "without a largest n the smallest is 1/sinh(epsilon), that of geometric noise.",
    "proved on the page",
    "pure epsilon",
    Standing.SHARPER,
)
register(
    "embedded-counts",
    "Grouped counts, margins, sums, and counts of units with several rows contain independent counts, each "
    "worth what one unit can add, and inherit their lower bounds.",
    "proved on the page",
    "pure epsilon",
    Standing.SHARPER,
)
register(
    "uniform-count",
    "A mechanism for a count whose worst error is at most W has an error of the same order at every count.",
    "Hall 2012, Prop. 2.3.2; Hall, Rinaldo, Wasserman 2011, Prop. 3.2",
    "the bound W holds for all counts",
    Standing.CORRECTED,
)
register(
    "count-trade-off",
    "A count on 0..n whose answers at counts t apart have total variation at most 1 - o(t) has worst expected error at "
    "least s times the sum over odd k of (1 - k/(floor(n/s)+1)) o(s k); o(t) for (epsilon, delta), mu and rho.",
    "Ziv, Zakai 1969 for whole numbers; Dong, Roth, Su 2022, Thm 2.14; Bretagnolle, Huber 1979; proved on the page",
    "a unit changes the count by at most one",
    Standing.SHARPER,
)
register(
    "histogram-pairs",
    "Every private histogram has worst L1 error at least 2 sum R*(n_j, epsilon) over pairs of cells.",
    "proved on the page",
    "pure epsilon",
    Standing.SHARPER,
)
register(
    "histogram-triples",
    "Every private histogram under replace-one neighbours has worst L1 error at least the sum over groups of "
    "three cells of the smallest mean loss on a hexagonal lattice; about 1.17 p/epsilon for small epsilon.",
    "proved on the page",
    "pure epsilon; replace-one neighbours",
    Standing.SHARPER,
)
register(
    "histogram-assouad",
    "Every private histogram has worst L1 error at least d t/(1 + e^(epsilon t)), d = min(p-1, n/t).",
    "Hall, Rinaldo, Wasserman 2011, Prop. 3.1; Hall 2012, Prop. 2.4.2",
    "pure epsilon",
    Standing.CORRECTED,
)
register(
    "sparse-product",
    "Every private histogram with q of p cells occupied has worst L1 error at least s t (1 - "
    "e^(epsilon t)/g)/(1 - 1/g), s < q, s g < p.",
    "proved on the page",
    "pure epsilon",
    Standing.SHARPER,
)
register(
    "sparse-packing",
    "N answers pairwise 2r apart, within d replacements of one data set, force a worst loss of at "
    "least r (1 - e^(epsilon d)/N).",
    "Hardt, Talwar 2010; Hall 2012, Prop. 2.4.4",
    "pure epsilon",
    Standing.CORRECTED,
)
register(
    "margins-counts",
    "The k one-way margins have worst L1 error at least k R*(n, epsilon).",
    "proved on the page",
    "pure epsilon",
    Standing.SHARPER,
)
register(
    "margins-cube",
    "The k one-way margins have worst L1 error at least t times the mean distance in a ball of "
    "e^(-epsilon t) 2^k corners.",
    "Hall 2012, Prop. 2.4.5",
    "pure epsilon",
    Standing.CORRECTED,
)
register(
    "risk-decomposition",
    "The error against the population is at most the privacy error plus the sampling error.",
    "Hall 2012, 2.1.1",
    "one metric; a declared sampling model",
    Standing.AS_PRINTED,
)
