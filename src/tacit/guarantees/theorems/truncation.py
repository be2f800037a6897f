"""Theorems of truncated histograms: exact counts of a random sample, hidden below a threshold."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "truncated-histogram",
    "Counts of a Poisson or binomial sample, 0 below k, are (epsilon, delta)-private against the same without the row, "
    "delta = max(H(M+1 || M) at mean (k-1)e^-epsilon, H(M || M+1) at mean (k-1)e^epsilon), and no smaller delta holds; "
    "every known sampled row of a cell costs one of k.",
    "Groce 2014, Thm 6.5, which has an unknown constant; the exact delta is proved on the page",
    "cells are independent given the row, and fixed in advance",
    Standing.SHARPER,
)
register(
    "truncated-histogram-fixed-size",
    "With n independent rows, of which up to D are discarded at random so that the size is epsilon_N-close to itself "
    "plus one, the truncated histogram is (epsilon_N + epsilon_C, delta_N + ...)-private: the epsilons add.",
    "Groce 2014, Thm 6.5 and the second example after Def. 6.1; the constants are proved on the page",
    "rows are independent draws of one law; nothing is known of the others; k D <= n",
    Standing.SHARPER,
)
register(
    "sample-then-truncate",
    "Sampling every row of a population at rate q in secret and publishing the truncated histogram is differentially "
    "private, with delta from that of a truncated cell at two other epsilons.",
    "Gehrke, Hay, Lui, Pass 2012 (sampling and crowds); the exact delta is proved on the page",
    "the sample is drawn by the mechanism, at this rate, and stays secret",
    Standing.SHARPER,
)
register(
    "crowd-blending-histogram",
    "A histogram truncated at k is (k, 0)-crowd-blending private: who is in a visible cell can be exchanged with k "
    "people in it, who is in a hidden one leaves no trace.",
    "Gehrke, Hay, Lui, Pass 2012, Def. 2.3 and their example of histograms",
)
