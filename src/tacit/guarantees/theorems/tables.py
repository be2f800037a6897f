"""The theorems of tables: strategies for linear queries, and what is made of released counts."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "linear-strategies",
    "Noise on integer strategy queries, least squares for the answers: epsilons (squared mus) of the blocks add, and "
    "stationary shares are proportional to precision times the error's slope.",
    "Li, Miklau, Hay, McGregor, Rastogi 2015; Hall 2012, 2.4.2",
    "the strategy is chosen before the data are seen",
)
register(
    "polytope-noise",
    "K-norm noise for the hull of integer moves is drawn exactly: a facet's cone by its determinant, then exponential "
    "weights; for corners of the cube it is T (U_i - U_0).",
    "Hardt, Talwar 2010, for the mechanism; the samplers are proved on the page",
    "the moves span the space",
    Standing.SHARPER,
)
register(
    "nearest-histogram",
    "The nearest non-negative integers with a given total are found greedily; without weights one answer is nearest in "
    "L1 and in L2.",
    "Hall, Rinaldo, Wasserman 2011, eq. 2; Gross 1956; Fox 1966",
    "none: post-processing",
    Standing.SHARPER,
)
register(
    "consistent-margins",
    "The least-squares family of tables that share columns averages each interaction over the tables that show it.",
    "Barak et al. 2007, for binary tables; the general form is on the page",
    "uncorrelated noise with known variances",
    Standing.SHARPER,
)
register(
    "tree-least-squares",
    "Counts of a tree are made to add up, by least squares with any variances and fan-outs, in two passes.",
    "Hay, Rastogi, Miklau, Suciu 2010, for equal ones; the general form is on the page",
    "uncorrelated noise with known variances",
    Standing.SHARPER,
)
register(
    "fitted-tables",
    "Tables with noise, fitted to what they have in common, err by a projection of the noise; intervals from its law.",
    "Hay, Rastogi, Miklau, Suciu 2010; Birnbaum 1948; half-widths on the page",
    "independent noise of one law on every count",
    Standing.SHARPER,
)
register(
    "hierarchy-sensitivity",
    "A unit moves the counts of a hierarchy by the longest way down, or by what two ways do not share.",
    "worked out on the page",
    "a row's leaf depends on that row alone",
)
register(
    "public-totals",
    "With totals that are public, a release's bound compares tables that agree on them.",
    "Abowd et al. 2022; worked out on the page",
    "the totals were declared, not read, and count the rows that the question counts",
)
register(
    "proportional-fitting",
    "Scaling to margins in turn converges to the law of largest entropy with them; on a junction tree it is a product.",
    "Deming, Stephan 1940; Csiszar 1975",
    "consistent margins",
)
