"""The theorems of the algebra: curves, conversions, composition, groups, sampling, meaning, conditions."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

_SHARPER, _CORRECTED = Standing.SHARPER, Standing.CORRECTED

# --- what a bound means as a curve -------------------------------------------------------------------
register(
    "approximate-profile",
    "Among all (epsilon, delta)-private pairs the worst gives itself away with probability delta and is "
    "randomised response otherwise: delta(e) = delta + (1-delta)(e^epsilon - e^e)/(1 + e^epsilon) for e < epsilon.",
    "Kairouz, Oh, Viswanath 2015; Murtagh, Vadhan 2016",
    "neighbours are symmetric",
)
register(
    "dominating-pair",
    "The supremum over neighbours of the hockey-stick divergences, at all real epsilon, is the curve of one pair "
    "(P, Q), and so is the convex hull in e^e of any upper bound; products of such pairs bound compositions.",
    "Zhu, Dong, Wang 2022, Thm 10; Dong, Roth, Su 2022",
    "the bounds are fixed in advance; the mechanisms may be chosen adaptively within them",
)
register(
    "curve-order",
    "A bound whose curve lies below another at all real epsilon implies it; delta(e_(i-1)) <= delta'(e_i) at points "
    "0 = e_0 < ... < e_m and delta(e_m) <= delta'(infinity), in both orders, is enough.",
    "Zhu, Dong, Wang 2022 (domination); the finite check is proved on the page",
)
register(
    "gaussian-profile",
    "Gaussian noise: delta(e) = Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu) with mu = l2_sensitivity/noise_std.",
    "Balle, Wang 2018, Thm 8; Hall 2012, Prop. 1.3.3 has the cruder constant",
    "continuous noise; the discrete Gaussian has another curve",
    _SHARPER,
)
register(
    "gaussian-classic",
    "noise_std = l2_sensitivity sqrt(2 ln(2/delta)) / epsilon gives (epsilon, delta).",
    "Hall 2012, Prop. 1.3.3 and eq. (1.9); Groce 2014, Thm 3.3",
    "epsilon <= 1; kept as a named reference only: it needs 17% to 241% more noise than the exact curve",
    _CORRECTED,
)
register(
    "density-form",
    "A mechanism with densities is epsilon-private if and only if f <= e^epsilon f' almost everywhere.",
    "lecture 2, Thm 2.2",
    "both densities with respect to one measure",
    _CORRECTED,
)
register(
    "pointwise-to-approximate",
    "Pointwise (epsilon, delta) implies (epsilon, delta); the converse is false.",
    "Hall 2012, Prop. 1.2.3; Kasiviswanathan, Smith 2008",
)
register(
    "profile-to-pointwise",
    "If delta(e) bounds the curve, the loss exceeds e' > e with probability at most delta(e)/(1 - e^{e-e'}).",
    "Kasiviswanathan, Smith 2008 has a cruder constant; the sharp form is proved on the page",
    standing=Standing.SHARPER,
)
# --- conversions -------------------------------------------------------------------------------------
register(
    "pure-to-approximate",
    "epsilon-privacy is (epsilon, 0)-privacy, pointwise as well; and a mechanism whose curve is 0 at epsilon is "
    "epsilon-private.",
    "Groce 2014, Def. 3.3",
)
register(
    "pure-to-renyi",
    "epsilon-privacy gives D_a <= ln(cosh((a-1/2) epsilon)/cosh(epsilon/2))/(a-1), attained by randomised response.",
    "lecture 7, Thm 7.9 (D_a <= epsilon); Bun, Steinke 2016; Steinke 2024",
    "neighbours are symmetric",
    _SHARPER,
)
register(
    "pure-to-zcdp",
    "epsilon-privacy gives rho = epsilon tanh(epsilon/2), the smallest possible; epsilon^2/2 is the classic bound.",
    "Bun, Steinke 2016, Prop. 1.4 (epsilon^2/2); Steinke 2024",
    "neighbours are symmetric",
    _SHARPER,
)
register(
    "pure-to-gdp",
    "epsilon-privacy gives mu-Gaussian privacy with Phi(mu/2) = e^epsilon/(1 + e^epsilon), the smallest possible mu.",
    "Dong, Roth, Su 2022 (trade-off functions); the constant is proved on the page",
    "neighbours are symmetric",
    _SHARPER,
)
register(
    "renyi-to-approximate",
    "D_a <= r gives epsilon = r + ln(1-1/a) - (ln delta + ln a)/(a-1) at every delta.",
    "Canonne, Kamath, Steinke 2020, Prop. 12; Balle et al. 2020; lecture 7, Thm 7.10 has r + ln(1/delta)/(a-1)",
    "0 < delta < 1",
    _SHARPER,
)
register(
    "renyi-budget",
    "Rényi divergence epsilon/2 at order 1 + 2 ln(1/delta)/epsilon gives (epsilon, delta).",
    "lecture 7, Cor. 7.12",
    "0 < delta < 1",
)
register(
    "renyi-interpolation",
    "D_a does not decrease in a, and (a-1) D_a is convex in a and 0 at a = 1, so that chords bound it.",
    "van Erven, Harremoës 2014",
    "finite divergence at the larger order",
)
register(
    "zcdp-to-renyi",
    "rho-concentrated privacy is D_a <= a rho at every order.",
    "lecture 7, Def. 7.16; Bun, Steinke 2016, Def. 1.1",
)
register(
    "zcdp-to-approximate",
    "rho gives delta(e) = min over a > 1 of exp((a-1)(a rho - e))/(a-1) (1-1/a)^a.",
    "Canonne, Kamath, Steinke 2020, Cor. 13; lecture 7, Thm 7.18 has epsilon = rho + 2 sqrt(rho ln(1/delta))",
    standing=_SHARPER,
)
register(
    "gdp-to-zcdp",
    "mu-Gaussian privacy gives rho = mu^2/2; Gaussian noise has rho = l2_sensitivity^2/(2 noise_std^2).",
    "lecture 7, Lemma 7.15 and Thm 7.19 (which prints the sensitivity without its square)",
    standing=_CORRECTED,
)
# --- composition -------------------------------------------------------------------------------------
register(
    "compose-pure",
    "Epsilons add, also for adaptively chosen mechanisms and parameters.",
    "Hall 2012, Prop. 1.2.4; Groce 2014, sec. 3.2",
    "adaptive parameters stay within a total fixed in advance",
)
register(
    "compose-approximate-basic",
    "Epsilons add and deltas add, also adaptively.",
    "Dwork et al. 2006b; Groce 2014, sec. 3.2",
    "adaptive parameters stay within totals fixed in advance",
)
register(
    "compose-approximate-advanced",
    "(epsilon_i, delta_i) give epsilon = sum epsilon_i tanh(epsilon_i/2) + sqrt(2 ln(1/slack) sum epsilon_i^2) "
    "with delta = 1 - (1-slack) prod(1-delta_i).",
    "Dwork, Rothblum, Vadhan 2010; Kairouz, Oh, Viswanath 2015",
    "the epsilons and deltas are fixed in advance; neighbours are symmetric; 0 < slack < 1",
)
register(
    "compose-approximate-optimal",
    "The product of the worst pairs of `approximate-profile` is the exact curve of the composition, for unequal "
    "(epsilon_i, delta_i) too; computing it is #P-hard in general, and a certified grid encloses it.",
    "Kairouz, Oh, Viswanath 2015, Thm 3.3; Murtagh, Vadhan 2016",
    "the epsilons and deltas are fixed in advance",
)
register(
    "compose-pointwise",
    "Pointwise losses compose: epsilons add, delta = 1 - prod(1 - delta_i).",
    "Kasiviswanathan, Smith 2008; the product form is proved on the page",
    "every later mechanism keeps its bound whatever the earlier outputs were",
)
register(
    "compose-renyi",
    "Divergences of one order add, also adaptively.",
    "lecture 7, Thm 7.6 and Cor. 7.7; Mironov 2017",
)
register(
    "compose-zcdp",
    "Rhos add, also for adaptively chosen rhos under a budget fixed in advance.",
    "lecture 7, Thm 7.17; Bun, Steinke 2016, Lemma 1.7; Feldman, Zrnic 2021",
)
register(
    "compose-gdp",
    "mus add in squares: mu = sqrt(sum mu_i^2), exactly for Gaussian noise.",
    "Dong, Roth, Su 2022, Cor. 3.3",
)
register(
    "compose-profile",
    "The composed curve is that of the product pair: privacy losses add as independent random variables.",
    "Zhu, Dong, Wang 2022; Koskela, Jälkö, Honkela 2020; Gopi, Lee, Wutschitz 2021",
    "the pairs are fixed in advance; each direction (add, remove) is composed apart",
)
register(
    "parallel-composition",
    "Mechanisms on disjoint parts of the rows cost the worst of them, composed as often as one unit touches parts.",
    "McSherry 2009",
    "a row's part depends on that row alone; add-or-remove, or replace-one with parts that do not depend on data",
)
register(
    "post-processing",
    "What is computed from a release without the data reveals no more than the release.",
    "Hall 2012, Prop. 1.2.5; lecture 7, Thm 7.4; Groce 2014, Thm 5.3",
    "its randomness is independent of the data; against bounded adversaries it must be efficient",
)
register(
    "pointwise-post-processing",
    "Pointwise bounds are not closed under post-processing; what remains is the (epsilon, delta) bound.",
    "Meiser 2018; the counterexample is on the page",
)
# --- groups and units --------------------------------------------------------------------------------
register(
    "group-privacy",
    "k units at once: (k epsilon, delta (e^{k epsilon}-1)/(e^epsilon-1)); pure k epsilon. Curves: the sum of "
    "e^{e_1+...+e_{i-1}} delta(e_i) for every split e_1 + ... + e_k of e.",
    "Groce 2014, sec. 3.2 prints (k epsilon, k delta), which is false",
    standing=_CORRECTED,
)
register(
    "group-renyi",
    "k = 2^c units at once: D_{a/2^c} <= D_a prod_{j=1..c} (2 + 1/(2(a/2^j - 1))) <= 3^c D_a for a >= 2^(c+1).",
    "lecture 7, Thm 7.5; Mironov 2017, Prop. 2 (both with 3^c)",
    standing=_SHARPER,
)
register(
    "group-zcdp",
    "k units at once: rho becomes k^2 rho, mu becomes k mu.",
    "Bun, Steinke 2016; Dong, Roth, Su 2022",
)
register(
    "replace-by-remove-and-add",
    "A replacement is one removal and one addition, so that it is a group of two steps of add-or-remove.",
    "folklore; there is no way back",
)
register(
    "fewer-neighbours",
    "A bound for all pairs of neighbours is a bound for some of them: for people in fewer groups, for smaller groups "
    "of units, for a person with one row.",
    "immediate from the definitions; there is no way back",
    "the condition speaks of single pairs of neighbours: Always, or a bounded adversary",
)
# --- amplification -----------------------------------------------------------------------------------
register(
    "poisson-approximate",
    "Keeping each unit with probability q: epsilon' = ln(1 + q(e^epsilon - 1)), delta' = q delta.",
    "Balle, Barthe, Gaboardi 2018, Thm 8",
    "add-or-remove neighbours; the choice of units stays secret",
)
register(
    "poisson-profile",
    "Removal: (qP + (1-q)Q, Q); addition: its swap. H_e = q H_{e'}(P, Q), e' = ln(1 + (e^e - 1)/q), "
    "where e^e > 1 - q, and 1 - e^e below.",
    "Zhu, Dong, Wang 2022; Balle, Barthe, Gaboardi 2018",
    "add-or-remove neighbours; the choice of units stays secret",
)
register(
    "poisson-renyi",
    "Integer orders: the binomial expansion bounds one direction exactly, and the other by "
    "1 + sum_{j>=2} q^j C(a,j) min(e^{(j-1) r(j)} - 1, (e^E - 1)^j (1 + e^{(1-j)E})/(1 + e^E)), E = r(inf).",
    "Zhu, Wang 2019; the second direction is proved on the page",
    "add-or-remove neighbours; integer orders; the divergences bound both directions",
    _SHARPER,
)
register(
    "without-replacement-approximate",
    "A uniform subset of a share q of the units: epsilon' = ln(1 + q(e^epsilon - 1)), delta' = q delta.",
    "Balle, Barthe, Gaboardi 2018, Thm 9",
    "replace-one neighbours; the choice of units stays secret",
)
register(
    "without-replacement-renyi",
    "Integer orders a >= 2: 1 + q^2 C(a,2) min[4(e^{r(2)}-1), e^{r(2)} min(2, (e^{r(inf)}-1)^2)] + "
    "sum_{j>=3} q^j C(a,j) min[e^{(j-1) r(j)} min(2, (e^{r(inf)}-1)^j), 2^j (e^{(j-1) r(j)}-1)] bounds e^{(a-1) D_a}.",
    "Wang, Balle, Kasiviswanathan 2019, Thm 9; lecture 7, Thm 7.8 prints 4(r(2)-1)",
    "replace-one neighbours; integer orders",
    _CORRECTED,
)
register(
    "poisson-replace-one",
    "Each unit kept with probability q, one exchanged: H_e = q H_e(P, Q) for e >= 0, so that epsilon stays and delta "
    "becomes q delta; reached where the size of the sample is told.",
    "joint convexity; the example is on the page",
    "replace-one neighbours; the choice of units stays secret",
)
register(
    "group-sampling",
    "A bound for any k units holds for the sampled mechanism as one for a subset of share w = 1 - (1-q)^k (each unit "
    "kept with probability q, add-or-remove) or w = min(1, k q) (a uniform subset of a share q, replace-one).",
    "Balle, Barthe, Gaboardi 2018, Thm 2 (one unit); groups are proved on the page",
    "the choice of units stays secret",
    _SHARPER,
)
# --- meaning -----------------------------------------------------------------------------------------
register(
    "trade-off-curve",
    "Any test of size s between two neighbours has power at most e^e s + delta(e), and at most "
    "1 - e^{-e}(1 - delta(e) - s), for every e >= 0.",
    "Hall 2012, Prop. 1.2.2; Wasserman, Zhou 2010",
)
register(
    "posterior-shift",
    "Pure epsilon: beliefs after the release with and without the unit differ by at most tanh(epsilon/2) in "
    "statistical distance, whatever the prior and the output.",
    "Groce 2014, Def. 3.4 and Thm 3.1; Kasiviswanathan, Smith 2008",
    "pure epsilon",
    _SHARPER,
)
register(
    "semantic-privacy",
    "(epsilon, delta): beliefs with and without the unit differ by at most tanh(epsilon/2) + 2 h, except with "
    "probability ((1 + e^epsilon)/h + 1) delta over the data and the output, for every h > 0.",
    "Groce 2014, Thm 3.1 and Kasiviswanathan, Smith 2008 have e^{3 epsilon} - 1 + 2 sqrt(delta) and O(n sqrt(delta))",
    "for one unit; for all n units at once the probability is multiplied by n",
    _SHARPER,
)
register(
    "incentive",
    "Whatever non-negative harm u a release may do to somebody, their data raise its expectation by at most "
    "a factor e^epsilon (and delta max u).",
    "Hall 2012, sec. 1.2.1; McSherry, Talwar 2007",
)
register(
    "bounded-adversary-readings",
    "Under BoundedAdversary with advantage a: a test's power is at most power(s) + a (IND) or power(s + a) + a (SIM), "
    "a best guess moves by at most a, the addend of expected harm by a (IND) or (1 + e^epsilon) a (SIM); beliefs are "
    "not limited.",
    "the definitions of Groce 2014, Def. 4.2 and 4.3; proved on the page",
    "tests, guesses and harms that adversaries within the assumption can compute",
)
register(
    "random-data-has-no-reading",
    "No limit on a test, a guess, a belief or a harm follows from random differential privacy, not even except with "
    "probability gamma over the data.",
    "a counterexample on the page",
)
register(
    "deterministic-is-constant",
    "A deterministic mechanism that is (epsilon, delta)-private with finite epsilon and delta < 1 is constant.",
    "Groce 2014, Thm 3.5 (which forgets delta < 1)",
    "any two data sets are joined by a chain of neighbours",
    _CORRECTED,
)
# --- conditions --------------------------------------------------------------------------------------
register(
    "always-implies-random-data",
    "What holds for all neighbours holds for randomly drawn ones, with any gamma.",
    "Hall, Rinaldo, Wasserman 2011, Prop. 4.1",
    "single rows",
)
register(
    "always-implies-priors",
    "Differential privacy is coupled-worlds privacy for every class of priors: the simulator runs the mechanism on "
    "the other rows (add-or-remove), or fills in a fixed one (replace-one).",
    "Groce 2014, Def. 5.1, 5.3",
    "alt drops exactly the unit",
)
register(
    "always-implies-bounded-adversary",
    "What holds against every adversary holds against bounded ones, with advantage 0.",
    "Groce 2014, sec. 4.2",
)
register(
    "compose-random-data",
    "For mechanisms fixed in advance the bounds compose and the gammas add; adaptively this fails.",
    "Hall, Rinaldo, Wasserman 2011, Prop. 4.2; the counterexample is on the page",
    "mechanisms fixed in advance, independent noise, one sample",
    _CORRECTED,
)
register(
    "compose-priors",
    "(F, G) has epsilon_F + epsilon_G, delta = max(delta_F e^{epsilon_G} + delta_G, delta_F + delta_G e^{epsilon_F}).",
    "Groce 2014, Thm 5.6",
    "G is private given F's output as auxiliary knowledge, and F given the output of G's simulator",
)
register(
    "compose-priors-disjoint",
    "Releases from disjoint, independent sets of rows: the largest epsilon and the largest delta.",
    "Groce 2014, Thm 6.8",
    "the rows of the parts are independent, given the auxiliary knowledge, under every prior of the class",
    _CORRECTED,
)
register(
    "less-auxiliary-knowledge",
    "An adversary who knows less learns no more: the bound survives functions of the auxiliary knowledge.",
    "Groce 2014, Thm 5.5",
)
register(
    "compose-bounded-adversary",
    "SIM: advantages add. IND, pure bounds fixed in advance: advantages a_1 + e^{epsilon_1} a_2.",
    "Mironov, Pandey, Reingold, Vadhan 2009; the concrete form is proved on the page",
    "the mechanisms are efficient; adversaries are non-uniform",
)
register(
    "sim-implies-ind",
    "SIM with advantage a gives IND with advantage (1 + e^epsilon) a.",
    "Mironov, Pandey, Reingold, Vadhan 2009; the concrete form is proved on the page",
)
