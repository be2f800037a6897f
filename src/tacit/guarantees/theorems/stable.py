"""Theorems of stable functions: estimates, decisions, modes."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "two-answers",
    "An answer by whether a sum of scores reaches a threshold has as its exact curve that of two laws on two points; "
    "rows that are known move the threshold to its worst place.",
    "Groce 2014, Thm 6.1, 6.3, Cor. 6.1, which is false for known rows",
    "independent rows of one law of a class; n public",
    Standing.CORRECTED,
)
register(
    "stable-functions",
    "A function that one row changes with probability at most delta, given the row, is (0, delta)-private; with least "
    "answer probability c it is (ln((c + mu)/(c - mu)), 0)-private; for arg-max of sums and modes the probability is a "
    "union of exact ones.",
    "Groce 2014, Thm 6.1 to 6.4; the unions are proved on the page",
    "for arg-max: independent rows",
    Standing.SHARPER,
)
register(
    "simulated-stability",
    "A stable function that is published only if an upper limit of a simulation, wrong with probability at most beta, "
    "and beta together are at most delta is (0, delta)-private, the simulation included.",
    "Clopper, Pearson 1934 for the limit; proved on the page",
    "one simulation, of tables of the assumed laws, whose number is fixed before; independent rows, all unknown",
    Standing.SHARPER,
)
register(
    "map-with-noise",
    "Permute-and-flip on sums of log-likelihood ratios, with the largest range of a row's score as sensitivity, is "
    "epsilon-differentially private.",
    "Groce 2014, 6.1, last remark; McKenna, Sheldon 2020",
    "replace-one neighbours; scores rounded to a grid",
    Standing.SHARPER,
)
