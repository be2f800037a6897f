"""The theorems of accounting: filters, and what is not one."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "adaptive-advanced",
    "(epsilon_i, delta_i) chosen as one goes, with sum epsilon_i tanh(epsilon_i/2) <= rho and sum delta_i <= d'' "
    "always, give (epsilon, d' + d'') where rho gives (epsilon, d').",
    "Whitehouse, Ramdas, Rogers, Wu 2023",
    "epsilon, d' and d'' are fixed before the first release; neighbours are symmetric",
    Standing.SHARPER,
)
register(
    "profile-filter",
    "Admitting whatever keeps the composed profile within (epsilon, delta) is not (epsilon, delta)-private when the "
    "next mechanism may depend on earlier outputs.",
    "Rogers, Roth, Ullman, Vadhan 2016 for the question; the example is on the page",
    "none: it is a counterexample",
)
register(
    "grid-from-below",
    "The curve of a composition on a grid of losses, which is above the true one, also bounds it from below, with "
    "an error of second order in the step.",
    "proved on the page; connect-the-dots itself is Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022",
    "every pair is put on one grid by connect-the-dots",
    Standing.SHARPER,
)
register(
    "negligible-frequencies",
    "Fourier coefficients of a composed loss are negligible beyond a band that is known without computing them.",
    "proved on the page",
    "losses on a grid, tilted",
    Standing.SHARPER,
)
register(
    "characteristic-function-composition",
    "The curve of a product of many different pairs, smoothed by a little normal noise, is a short Fourier sum of "
    "transforms that a few nodes give, all errors bounded.",
    "proved on the page; the rules of quadrature are Trefethen and Weideman 2014 and Trefethen 2013",
    "Gaussian, discrete Gaussian, Laplace, bounded-range and tabulated pairs, also Poisson-sampled (rates up to 0.999) "
    "or sampled without replacement",
    Standing.SHARPER,
)
register(
    "without-replacement-pair",
    "The curve of a symmetric pair sampled without replacement is that of a pair whose losses above 0 are those of "
    "Poisson sampling, mirrored below 0, with the rest at 0.",
    "proved on the page; the curve is Balle, Barthe, Gaboardi 2018",
    "the pair that is sampled is its own swap",
    Standing.SHARPER,
)
register(
    "poisson-gaussian-replace-one",
    "Poisson-sampled Gaussian noise, one unit exchanged: (1-q) N(0,1) + q N(mu,1) against (1-q) N(0,1) + q N(-mu,1) "
    "dominates, in every dimension; reached by one record and its negative.",
    "Neyman, Pearson 1933, for half-spaces; proved on the page",
    "replace-one neighbours; the sample stays secret; mu is the norm of one record over the noise, not the distance "
    "of two",
    Standing.SHARPER,
)
register(
    "rising-parameters",
    "Curves rise with the parameters of their pairs, so that the largest parameters of a run of pairs give a pair "
    "above all of them.",
    "Zhu, Dong, Wang 2022 for domination; each case is on the page",
    "none",
)
register(
    "bounded-range-pair",
    "The least curve above all mechanisms whose losses lie in an interval of length epsilon: "
    "(1 - sqrt(t e^-epsilon))^2/(1 - e^-epsilon).",
    "Dong, Durfee, Rogers 2020 for the class; the curve is proved on the page",
    "the exponential mechanism is one of them",
    Standing.SHARPER,
)
register(
    "shuffled-responses",
    "One of n shuffled local answers of pure epsilon hides among Bin(n - 1, e^-epsilon) others, each for its value or "
    "the other by a fair coin; balanced ones among all that were drawn uniformly.",
    "Feldman, McMillan, Talwar 2021; Balle, Bell, Gascon, Nissim 2019; the sums are exact",
    "all answer by the rule; replace-one; only the multiset of messages is seen",
    Standing.SHARPER,
)
register(
    "coin-mixture",
    "A mechanism chosen by a coin that the data do not turn: the curve is the mean of the members' curves, exactly if "
    "the coin is told and at most if it is not.",
    "joint convexity, Balle, Barthe, Gaboardi 2018; the pair is stated on the page",
    "weights do not depend on the data; the coin is thrown anew at each use",
)
register(
    "participation-schedules",
    "Cx + Gaussian noise, C lower triangular and not negative, adaptive x: mu is the largest norm of a sum of columns "
    "over schedules; for Toeplitz C that does not rise the earliest schedule is worst, for trees level by level.",
    "Denisov et al. 2022; Kalinin, Lampert 2024; Kairouz et al. 2021; proofs on the page",
    "each unit takes part at most k times, at least b steps apart, and moves a step by a norm of at most 1",
)
register(
    "sampled-composition",
    "One secret Poisson sample for a whole composition: the product of the pairs is sampled as one pair, "
    "(qP + (1-q)Q, Q) and its swap.",
    "Zhu, Dong, Wang 2022",
    "add-or-remove neighbours; one sample for all, which stays secret",
)
register(
    "kullback-leibler",
    "D(P||Q), the Rényi divergence of order 1, is the integral from t = 1 on of h(t)/t + h'(t)/t^2, with the curves of "
    "both orders; both terms are convex, so that the trapezoidal rule bounds it from above.",
    "Sason, Verdú 2016, for the integral; the rule from above is proved on the page",
    "P has no mass where Q has none",
    Standing.SHARPER,
)
