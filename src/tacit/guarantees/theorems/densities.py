"""The theorems of densities: how far a row moves them, the nearest density, bands, errors, and a private choice."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "density-lattice",
    "Sums of features that are products over the coordinates move by at most sqrt(2 (B + A)) if a row is replaced, "
    "B the product of the largest squared lengths and A what negative inner products add.",
    "proved on the page; Hall 2012, 3.1.1 leaves it open",
    "lattice, grid and functions are public",
    Standing.SHARPER,
)
register(
    "density-kde",
    "A Gaussian kernel density estimate has the RKHS sensitivity sqrt(2)/(N (2 pi)^(d/2) h^d) for a replaced row, a "
    "root of 2 less for an added one, also on a circle 8 bandwidths longer.",
    "Hall 2012, 3.3.1",
    "N is public",
    Standing.SHARPER,
)
register(
    "density-sobolev",
    "A Gaussian kernel density estimate has in H^1 the squared sensitivity 2(R + r)/N^2, in closed form.",
    "Hall 2012, 3.3.2",
    "N is public",
    Standing.SHARPER,
)
register(
    "density-projection",
    "The nearest non-negative vector with sum one is max(v - t, 0), t from the sorted values; it is nearer to every "
    "density than v was.",
    "Held, Wolfe, Crowder 1974",
    "none",
    Standing.AS_PRINTED,
)
register(
    "density-errors",
    "The expected integrated squared error of a released density is smoothing plus sampling plus noise.",
    "Hall 2012, (3.1)",
    "independent rows; noise with mean 0, independent of them",
    Standing.AS_PRINTED,
)
register(
    "density-bands",
    "An order statistic of simulated noise covers at all points at once with the stated confidence, but for a stated "
    "chance over the simulation.",
    "Wilks 1941; proved on the page",
    "the points are fixed; sampling bands take the released curve for the density",
    Standing.SHARPER,
)
register(
    "density-choice",
    "Least-squares cross-validation moves by at most 2 (sup q - inf q)/n + sup B2/n^2 if a row is replaced; "
    "permute-and-flip of it is pure.",
    "Hall 2012, 1.2.3; proved on the page",
    "replace-one neighbours; at least two rows, their number public",
    Standing.SHARPER,
)
