"""Theorems of exact sums of vectors and of exact regression."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "prism-sums",
    "If a row's law gives every point of a box at least an even share of mass v, exact sums of vectors are private "
    "with the mean, over M ~ Bin(m, v), of the divergence of sums of M uniform rows with independent coordinates, at a "
    "corner of the range against its middle.",
    "Groce 2014, Thm 6.7 and Cor. 6.2, with a failure case and added epsilons",
    "independent rows given what is known; values on a declared grid, the middle on it",
    Standing.SHARPER,
)
register(
    "regression-parts",
    "Least squares from the means of the columns and of the d normal equations over disjoint parts of the rows has the "
    "largest epsilon and delta of a part; a box below the density of the products is given for symmetric laws.",
    "Groce 2014, 6.4, which takes d + 1 averages for d regressors",
    "independent rows given what is known; parts fixed in advance; products recorded on a grid",
    Standing.CORRECTED,
)
