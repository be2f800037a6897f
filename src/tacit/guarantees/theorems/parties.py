"""The theorems of several holders and of bounded adversaries."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "polya-shares",
    "Differences of negative binomials of shapes that add up to 1 add up to discrete Laplace noise, and are drawn "
    "exactly.",
    "Ács, Castelluccia 2011; Goryczka, Xiong 2017",
    "independent shares; uniform words",
)
register(
    "skellam-noise",
    "Skellam noise is closed under sums, its pair has the curve F(m) - e^epsilon F(m - s), and a vector of integers "
    "costs at most one such pair for each number that a unit can move.",
    "Skellam 1946; Agarwal, Kairouz, Liu 2021",
    "integers; independent noise",
    Standing.SHARPER,
)
register(
    "honest-survivors",
    "Shares sized for h = s - c keep the promise if at least s holders remain and at most c of them tell their shares.",
    "Dwork, Kenthapadi, McSherry, Mironov, Naor 2006; Ács, Castelluccia 2011",
    "noise that is infinitely divisible; honest holders draw their shares independently",
)
