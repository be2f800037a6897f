"""The theorems of exact noise. The room itself knows nobody, so that its theorems are entered here."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "lazy-inversion",
    "Comparing uniform words with certified binary expansions of the survival function, extended only on "
    "a boundary, draws exactly the law.",
    "Knuth, Yao 1976; Devroye 1986; Johansson 2017",
    "uniform words; balls that shrink with the precision",
)
register(
    "geometric-digits",
    "A geometric splits into independent truncated-geometric digits, and discrete Laplace is one coin and "
    "one geometric.",
    "Marsaglia 1971; Ghosh, Roughgarden, Sundararajan 2012",
    "a rational scale",
)
register(
    "block-rejection",
    "Rejection from a step envelope with exact coins is exact for unimodal weights.",
    "von Neumann 1951; Karney 2016; Canonne, Kamath, Steinke 2020",
    "weights monotone away from the centre; a certified envelope sum",
)
register(
    "discrete-gaussian-sums",
    "Normaliser, variance and tails of the discrete Gaussian by Poisson summation and Euler-Maclaurin "
    "sums with remainder.",
    "Canonne, Kamath, Steinke 2020; Olver 1974",
    "positive variance; the series depends on the scale",
)
register(
    "exact-grid-rounding",
    "Formulas in lazily extended random reals round to a grid exactly; an inexact sampler costs d 2 eta "
    "(1/(g - 2 eta) + 2 M) + p.",
    "Karney 2016; Mironov 2012",
    "IEEE basic operations; laws with densities; the true value lies on the grid",
    Standing.SHARPER,
)
register(
    "body-formulas",
    "Uniform points of the sphere, the l1 and l2 balls, and K-norm noise as Gamma(d+1) times a uniform "
    "point.",
    "Barthe, Guédon, Mendelson, Naor 2005; Hardt, Talwar 2010",
    "0 inside a compact convex body",
)
register(
    "body-marginals",
    "The mean and covariance of K-norm noise follow from those of a uniform point; one coordinate of it is Laplace's "
    "for the l1 ball, a difference of two Gamma((d+1)/2) for the ball, a Gamma mixture for a box, a sum of "
    "exponentials for a simplex.",
    "computed here; Neuts 1981 for sums of exponentials",
    "0 inside a compact convex body",
    Standing.SHARPER,
)
register(
    "caratheodory-marginals",
    "One coordinate of K-norm noise of the Caratheodory body has the characteristic function Pf[(l - j) F_{j+l}(t)] "
    "over its value at 0, F_n the Fourier coefficients of (1 - i t cos k theta)^-2.",
    "de Bruijn 1955 for the integral",
    "a uniform point times an independent Gamma(2m + 1)",
    Standing.SHARPER,
)
register(
    "caratheodory-sampler",
    "Independent Verblunsky coefficients, |a_j|^2 ~ Beta(1, 2(m - j) + 1), give moments that are uniform on the "
    "Caratheodory body; rounding them to a grid is exact.",
    "Verblunsky 1935; Cantero, Moral, Velazquez 2003; Killip, Nenciu 2004",
    "IEEE basic operations",
    Standing.SHARPER,
)
register(
    "caratheodory-inertia",
    "The Caratheodory body has volume pi^m / (2m - 1)!! and E |c_k|^2 = (2m + 2k + 1 + k(H_m - H_{m-k})) / "
    "(2(m + 1)(2m + 1)).",
    "Schoenberg 1954; Hall 2012, Prop. 4.4.1",
    "a uniform point",
    Standing.CORRECTED,
)
register(
    "staircase-on-a-grid",
    "The integer staircase is epsilon-private for every plateau.",
    "Geng, Viswanath 2014",
    "an integer query that moves by at most the sensitivity",
)
register(
    "cipher-noise",
    "Noise from a cipher stream is computationally private (SIM) with the ideal mechanism's numbers.",
    "Mironov, Pandey, Reingold, Vadhan 2009; Bellare, Desai, Jokipii, Rogaway 1997",
    "AES-256 is a pseudorandom permutation; the operating system's generator is sound",
)
