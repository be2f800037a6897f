"""The theorems of the mechanisms."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "laplace",
    "L1 sensitivity D and noise scale b give epsilon = D/b, reached.",
    "Dwork, McSherry, Nissim, Smith 2006; Hall 2012, Prop. 1.3.1; lecture 2, Thm 2.7",
    "sensitivity in the L1 norm",
)
register(
    "discrete-laplace",
    "On a grid the same epsilon exactly, and in any dimension the curve of one coordinate that moves by "
    "the whole sensitivity.",
    "Ghosh, Roughgarden, Sundararajan 2012; the curve is proved on the page",
    "integer statistics",
    Standing.SHARPER,
)
register(
    "discrete-gaussian",
    "rho = k/(2 v) for integer moves of squared length k, and the curve is the largest over integer moves "
    "of its own sums.",
    "Canonne, Kamath, Steinke 2020",
    "integer statistics",
    Standing.SHARPER,
)
register(
    "rounded-gaussian",
    "Gaussian noise rounded to the grid of the statistic keeps the continuous bound.",
    "folklore; Balle, Wang 2018",
    "the statistic lies on the grid; the draw is exact",
)
register(
    "gamma-mechanism",
    "Noise of density e^(-|x|/b) in a Mahalanobis norm gives epsilon = D/b.",
    "Hall 2012, Prop. 1.3.2",
    "sensitivity in the same norm",
)
register(
    "k-norm",
    "Noise of density e^(-gauge/b) gives epsilon = D/b.",
    "Hardt, Talwar 2010; Hall 2012, Prop. 1.3.4",
    "the body is symmetric",
    Standing.CORRECTED,
)
register(
    "k-norm-difference",
    "A - B, each of density e^(-lambda gauge), gives lambda times the gauge of the move in the hull of K "
    "and -K, at most 2 lambda c.",
    "proved on the page",
    "0 inside the convex body",
    Standing.SHARPER,
)
register(
    "caratheodory-noise",
    "Sums of trigonometric moments plus A - B, each of density e^(-lambda gauge) of the Caratheodory body, are "
    "epsilon-private for lambda = epsilon/2 (replace-one) or epsilon (add-or-remove); the printed form loses "
    "epsilon (m + 1)/2.",
    "Hall 2012, 4.4.2",
    "n is public under replace-one; the rounding of records is counted",
    Standing.CORRECTED,
)
register(
    "fourier-sensitivity",
    "L1 and L2 sensitivities of sums of trigonometric features, in closed form or by a grid with a bound on what "
    "it misses.",
    "proved on the page; compare Hall 2012, 4.4.1",
    "none",
    Standing.SHARPER,
)
register(
    "exponential-mechanism",
    "Weights e^(epsilon score/(2D)) give epsilon.",
    "McSherry, Talwar 2007; Hall 2012, Prop. 1.3.5; Groce 2014, Thm 3.4",
    "public candidates; larger scores are better",
    Standing.CORRECTED,
)
register(
    "exponential-interval",
    "On an interval with a metric: epsilon = a s + ln(Z(s)/Z(0)), exactly.",
    "Hall 2012, Prop. 1.3.5",
    "a public interval",
    Standing.SHARPER,
)
register(
    "permute-and-flip",
    "Permute-and-flip is epsilon-private and never worse than the exponential mechanism.",
    "McKenna, Sheldon 2020; Ding et al. 2021",
    "public candidates",
)
register(
    "geometric",
    "Geometric noise on a count is epsilon-private, and optimal up to a remap of its output.",
    "Ghosh, Roughgarden, Sundararajan 2012; Gupte, Sundararajan 2010",
    "one count; a loss that grows with the distance",
)
register(
    "staircase-mechanism",
    "Staircase noise is epsilon-private and has the least mean absolute error on fine grids.",
    "Geng, Viswanath 2014",
    "one number",
)
register(
    "randomised-response",
    "Estimates from randomised responses are unbiased; for a bit the variance is n e^epsilon/(e^epsilon - "
    "1)^2.",
    "Warner 1965; lecture 2, Thm 2.3 to 2.5",
    "answers randomised independently",
    Standing.SHARPER,
)
register(
    "local-intervals",
    "How often a category is named is Bin(c, p) + Bin(n - c, q), which rises with the true count c: the counts whose "
    "tails are above half the miss on both sides are an interval, and cover.",
    "Clopper, Pearson 1934, for one binomial",
    "people answer independently, by the rule",
    Standing.SHARPER,
)
register(
    "balanced-response",
    "Categories that are supported by s of K outcomes, m of them shared with any other category: odds of e^epsilon for "
    "the supporting ones are epsilon-private, lose +-epsilon or 0, and count each category by a two-chance law.",
    "Acharya, Sun, Zhang 2019; Ye, Barg 2018",
    "people answer independently, by the rule",
)
register(
    "subset-selection",
    "A random set of d of k categories that holds the truth with probability d e^epsilon/(d e^epsilon + k - d) is "
    "epsilon-private, and its estimates are unbiased.",
    "Ye, Barg 2018; Wang et al. 2016",
    "people answer independently, by the rule",
)
register(
    "hadamard-response",
    "An answer of log2 K bits whose parity with the truth's row is even with probability e^epsilon/(e^epsilon + 1) is "
    "epsilon-private; an estimate has variance at most n ((e^epsilon + 1)/(e^epsilon - 1))^2 for any number of "
    "categories.",
    "Acharya, Sun, Zhang 2019",
    "people answer independently, by the rule",
)
register(
    "joint-responses",
    "Two questions randomised apart: products of the unbiased indicators count the joint table, with a known variance "
    "and an unbiased covariance; a person pays both epsilons; answers are independent if and only if truths are.",
    "Warner 1965; Groce 2014, section 2.6; the formulas are proved on the page",
    "people answer independently, by the rule, with noise of its own for each question",
    Standing.SHARPER,
)
register(
    "smooth-sensitivity",
    "The smallest beta-smooth bound on the sensitivity of an order statistic, in O(n log n).",
    "Nissim, Raskhodnikova, Smith 2007",
    "replace-one; public n and range",
)
register(
    "smooth-laplace",
    "The exact delta of Laplace noise whose centre and scale both move.",
    "Nissim, Raskhodnikova, Smith 2007",
    "one number",
    Standing.SHARPER,
)
register(
    "smooth-student",
    "The exact pure epsilon of Student and Cauchy noise whose centre and scale both move.",
    "Nissim, Raskhodnikova, Smith 2007; Bun, Steinke 2019",
    "one number",
    Standing.SHARPER,
)
register(
    "propose-test-release",
    "A proposed bound, a noisy test of it, and a release only if it passes: (epsilon_1 + epsilon_2, delta).",
    "Dwork, Lei 2009",
    "replace-one; public n",
)
register(
    "cumulative-tree",
    "Laplace noise on h levels of nodes is epsilon-private at scale h D/epsilon; every rank is a walk of whole "
    "nodes, and its error a sum of independent noises with a known law.",
    "Hay, Rastogi, Miklau, Suciu 2010; Qardaji, Yang, Li 2013",
    "public ordered bins; a row lies in at most one",
    Standing.SHARPER,
)
register(
    "cumulative-gaussian",
    "Gaussian noise under the square root of the summation matrix: mu = |R| sqrt(M)/noise_std, and ranks with a "
    "standard deviation of about 1 + ln(K)/pi.",
    "Fichtenberger, Henzinger, Upadhyay 2023",
    "public ordered bins; a row lies in at most one",
)
register(
    "quantile-intervals",
    "The bins whose noisy rank is within its error's quantile cover a quantile's bin, without a union over bins.",
    "proved on the page",
    "public ordered bins; the law of the noise is known",
)
register(
    "partition-selection",
    "The largest probabilities with which unknown keys may be named at (epsilon, delta), and their noisy counts at "
    "the same price.",
    "Desfontaines, Voss, Gipson, Mandayam 2022; Kairouz, Oh, Viswanath 2017",
    "supports are exact; keys without support are not seen",
    Standing.SHARPER,
)
register(
    "partition-threshold",
    "Unknown keys told where noise lifts their support over a threshold: the curve of the noise and the chance of a "
    "new key, for every number of new keys.",
    "Korolova, Kenthapadi, Mishra, Ntoulas 2009",
    "supports are exact; keys without support are not seen",
    Standing.SHARPER,
)
register(
    "clamping-bounds",
    "No empty range reaches a threshold that all noises stay below.",
    "Wilson et al. 2020",
    "public ranges; independent noise of a known law",
)
register(
    "sparse-histogram",
    "Noise on all p cells and a threshold: drawn from the occupied cells and one binomial number, the same law; the "
    "risk is a sum of one-cell risks.",
    "Hall 2012, eq. (2.3), Prop. 2.4.3; Cormode, Procopiuc, Srivastava, Tran 2012",
    "public domain, threshold and impossible cells",
    Standing.SHARPER,
)
register(
    "stability-threshold",
    "Only occupied cells noised and large ones released: delta = d + (1 - d) delta_noise(epsilon), d the chance that "
    "cells of a unit's own show, exactly.",
    "Korolova, Kenthapadi, Mishra, Ntoulas 2009; Bun, Nissim, Stemmer 2016",
    "a unit's keys and counts are bounded as declared",
    Standing.SHARPER,
)
register(
    "false-discovery",
    "The least threshold with p Pr[noise > t] <= a times the cells kept: at most a share a of them is expected to be "
    "empty.",
    "Benjamini, Hochberg 1995; Hall 2012, section 2.4",
    "independent noise of one law",
)
register(
    "estimated-risk",
    "h minus q/(1-q)^2 times its second difference, at a count with discrete Laplace noise, has the expectation h at "
    "the count.",
    "after Stein 1981; proved on the page",
    "Laplace noise",
    Standing.SHARPER,
)
