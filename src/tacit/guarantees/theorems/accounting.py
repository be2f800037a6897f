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
