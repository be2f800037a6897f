"""The theorems of sources and statistics: how far one unit can move an answer."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "contribution-polytopes",
    "The largest move of a sum over rows between neighbours is reached at extreme points of what one row can add, "
    "times the rows of a unit.",
    "Dwork, McSherry, Nissim, Smith 2006 for L1; the table is worked out on the page",
    "what a row adds depends on that row and on public declarations alone",
    Standing.SHARPER,
)
register(
    "contribution-bounding",
    "Keeping of each person the first m rows in the order of a keyed hash changes nobody else's rows.",
    "Wilson et al. 2020 sample; the deterministic form is proved on the page",
    "the order is total up to equal rows; it looks at declared values alone",
)
register(
    "several-versions",
    "Over several versions of a table one person changes nobody else's kept rows, and costs the composition of the "
    "releases about those versions that have that person's rows.",
    "proved on the page",
    "declared values depend on the row alone; declarations and engine are chosen without regard to the person's rows",
    Standing.SHARPER,
)
register(
    "rank-score",
    "The rank score |#{values < t} - q n| moves by at most m max(q, 1-q) under add-or-remove, and m under replace-one.",
    "Smith 2011 for the mechanism",
    "public thresholds; at most m rows for each unit",
    Standing.SHARPER,
)
register(
    "shares-of-a-total",
    "Means and variances as shares of a total that every row has alike: the stacked parts move as one row of a "
    "histogram does.",
    "proved on the page; Bernstein 1912 for the partition of unity",
    "values are clamped and rounded to a grid record by record",
    Standing.SHARPER,
)
register(
    "noisy-least-squares",
    "If every noisy moment is within its half-width, least-squares coefficients of the exact ones are within "
    "(I - G)^-1 |A^-1| (h + H |b|) of those of the noisy ones, G = |A^-1| H of spectral radius below 1.",
    "Rohn 1989",
    "half-widths hold for all moments at once",
)
register(
    "pivot-intervals",
    "A statistic that makes a known combination of the parts vanish has an exact confidence set from the law of the"
    " same combination of the noise.",
    "Fieller 1954 for normal means; for noise on a grid proved on the page",
    assumptions="independent noise of known law on each part",
    standing=Standing.SHARPER,
)
