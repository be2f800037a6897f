"""The theorems of random differential privacy: the definition's laws, and releases that satisfy it."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

_HALL = "Hall, Rinaldo, Wasserman 2011"
_INDEPENDENT = (
    "rows are independent draws from one population; n, the cells and the pairing are fixed in advance"
)

register(
    "replace-on-random-data",
    "A bound for one row added or removed, under RandomData(gamma), gives two steps of its group law for one row "
    "replaced, under RandomData(2 gamma).",
    f"{_HALL}, footnote 1 (without a proof)",
    "single rows",
    Standing.SHARPER,
)
register(
    "random-data-average-guess",
    "Over data drawn at random, a row is told from a fresh draw in its place with probability at most "
    "g + gamma (1 - g), g the best guess of the bound.",
    "proved on the page",
    "the row and its alternative are both drawn at random; nothing is said of a given person",
    Standing.SHARPER,
)
register(
    "random-is-not-probabilistic",
    "Probabilistic DP bounds a probability over the coins for every data set; random DP one over the data. Neither "
    "implies the other.",
    f"{_HALL}, sec. 4",
)
register(
    "random-relabelling",
    "If at most a share gamma of the relabellings of every multiset of n + 1 rows breaks the bound, the mechanism is "
    "random differentially private with gamma, for every law of the rows.",
    "Hall 2012, 5.2.1",
    "rows are independent draws from one population, or exchangeable",
)
register(
    "random-proportion",
    "A count c of n rows may be published exactly if f(c) <= gamma and f(c+1) <= gamma, f(s) = 2s(n+1-s)/(n(n+1)), and "
    "else with Laplace noise: (epsilon, 0, gamma); no rule that publishes more counts exactly is.",
    "Hall 2012, (5.1), Prop. 5.2.1",
    _INDEPENDENT,
    Standing.SHARPER,
)
register(
    "random-histogram",
    "Cells of fewer than tau rows may be published exactly and the others with Laplace noise of scale 2/epsilon, if "
    "(k-1) tau (2(n+1) - k tau) <= gamma n(n+1) and k tau <= n + 1; for tau = 1 it is enough that 2k <= gamma n.",
    f"{_HALL}, (5), Prop. 5.1; Hall 2012, (5.2), (5.3), Prop. 5.2.2, 5.2.3",
    _INDEPENDENT,
    Standing.SHARPER,
)
register(
    "random-chosen-bins",
    "A number of bins chosen among L by the exponential mechanism, then a histogram of gamma_j for the j-th: "
    "(epsilon_0 + epsilon, 0, sum of all gamma_j).",
    f"{_HALL}, footnote 2 and sec. 9 leave it open",
    _INDEPENDENT,
    Standing.SHARPER,
)
register(
    "random-pairs",
    "The k-th smallest change of m disjoint pairs of rows bounds the change of the statistic except with probability "
    "(m - k + 1)/m; with noise sized by it and a declared smoothness: (epsilon, delta, (m-k+1)/m).",
    f"{_HALL}, sec. 6 (by the DKW inequality, in the limit)",
    f"{_INDEPENDENT}; one replaced row changes the statistic by at most h(x, x')/n; the smoothness is declared",
    Standing.SHARPER,
)
register(
    "random-private-quantile",
    "A bound on the change chosen from a public grid of N by the exponential mechanism, then Laplace noise: "
    "(epsilon_1 + epsilon_2, N e^(-epsilon_1 t/2), (m - k + t)/m) for every t.",
    f"proved on the page; {_HALL}, sec. 6, has (10), which cannot be had without assumptions",
    f"{_INDEPENDENT}; the largest grid point is a declared bound on h",
    Standing.CORRECTED,
)
register(
    "random-all-pairs",
    "The same over all n(n-1)/2 pairs: gamma = 1 - k/C(n+1, 2), and for the private quantile, whose score has "
    "sensitivity n - 1, delta = N e^(-epsilon_1 t/(2(n-1))) and gamma = 1 - (k - t + 1)/C(n+1, 2).",
    f"{_HALL}, end of sec. 6 (the U-statistic process, without constants)",
    f"{_INDEPENDENT}; h is symmetric",
    Standing.SHARPER,
)
register(
    "random-sensitivity-sampling",
    "The k-th smallest of m changes of the statistic, sampled from a public oracle of the data's own law, gives "
    "gamma = 1 - k/(m+1); given the oracle's draws gamma exceeds g with probability at most Pr[Bin(m, 1-g) >= k].",
    "Rubinstein, Alda 2017 (by the DKW inequality)",
    "the oracle draws from the law of the rows, independently of them",
    Standing.SHARPER,
)
register(
    "random-observed-range",
    "Noise sized by the range of the data themselves is not (epsilon, delta)-private for any delta below 1.",
    "Hall 2012, 5.1.1",
)
register(
    "predictive-implies-random",
    "Predictive differential privacy with gamma is random differential privacy with 2 gamma.",
    "Hall 2012, Def. 5.4.1 (which prints no factor)",
    "rows are independent draws from one population; the prediction set does not depend on the order of the rows",
    Standing.CORRECTED,
)
register(
    "predictive-histogram",
    "Cells of fewer than tau rows told as 0 with probability 1 - e^(-(tau-c) epsilon/2), and else as tau with noise: "
    "predictive differential privacy with gamma = k tau/(n+1), for the conformal set of cells with at least tau rows.",
    "proved on the page; the definition is Hall 2012, Def. 5.4.1",
    _INDEPENDENT,
    Standing.SHARPER,
)
register(
    "survey-overlap",
    "For an attacker whose m rows overlap with the n in at least k: a count is exact where all F_d(s) <= gamma, empty "
    "cells are exact if 2 cells d/(n+d) <= gamma, d <= min(n, m) - k, and the noise is d times as large.",
    "Hall 2012, sec. 5.4 (a sketch of the definition)",
    _INDEPENDENT,
    Standing.SHARPER,
)
