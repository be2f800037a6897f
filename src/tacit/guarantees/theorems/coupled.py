"""Theorems of coupled worlds: simulators, priors, posteriors, and the neighbours of the definition."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "best-simulator",
    "Weights l, l' on cells and outputs, with the sum of their largest values over all cells equal to 1, bound the "
    "delta of every simulator from below; for delta = 0 and one input the smallest e^epsilon is a closed formula.",
    "linear-programming duality, proved on the page; the definition is Groce 2014, Def. 5.5",
    "finitely many priors, data sets and outputs; the simulator knows which pair is protected",
    Standing.SHARPER,
)
register(
    "simulator-to-pair",
    "F is (epsilon, delta)-close to a simulator: two private values for which the scrubbed data are distributed alike "
    "are (2 epsilon, (1 + e^epsilon) delta)-indistinguishable; back, (epsilon, delta) between all values gives a "
    "simulator.",
    "Groce 2014, remarks after Def. 5.1, which call the two equivalent and do not name the factor 2",
    "for the way back: the scrubbed data are distributed alike for all values, given the auxiliary knowledge",
    Standing.CORRECTED,
)
register(
    "post-processing-priors",
    "Coupled-worlds privacy survives post-processing, with the same epsilon, delta, priors and pairs.",
    "Groce 2014, Thm 5.3",
    "the coins of the post-processing are its own",
)
register(
    "mixtures-of-priors",
    "Coupled-worlds privacy for a class of priors is so for its convex hull, with the same simulator.",
    "Groce 2014, Thm 5.4",
)
register(
    "posteriors-in-coupled-worlds",
    "(epsilon, delta)-coupled-worlds privacy for |G| pairs gives the inference-based form with delta' = "
    "sqrt((1 + e^epsilon) |G| delta) and epsilon' = 2 epsilon + ln(1/(1 - delta')).",
    "Groce 2014, Lemma 5.1, Thm 5.1 and 5.2, which print (3 epsilon, 2 sqrt(|G| delta))",
    "delta' below 1",
    Standing.CORRECTED,
)
register(
    "posteriors-in-pufferfish",
    "(epsilon, delta)-Pufferfish with secrets in {0, 1} gives the inference-based form with any c > epsilon and "
    "(1 + e^{-c}) delta / (1 - e^{epsilon - c}); for delta = 0 with epsilon itself.",
    "Groce 2014, Thm 5.7, which prints (3 epsilon, 2 sqrt(delta))",
    "no secret is undecided",
    Standing.SHARPER,
)
register(
    "participation-secret",
    "Differential privacy for added or removed rows is Pufferfish privacy with participation as the secret, over all "
    "priors under which each row is independent of the others.",
    "Groce 2014, sec. 5.5, footnote 4; Kifer, Machanavajjhala 2012",
    "each row's presence and value are independent of all other rows, given the auxiliary knowledge",
)
register(
    "semantic-implies-dp",
    "(s, d)-semantic privacy with s < 1/2 gives (ln((1 + 2s)/(1 - 2s)), 2d)-differential privacy for replaced rows.",
    "Groce 2014, Def. 3.4 and sec. 3.1, footnote 2; Kasiviswanathan, Smith 2008; the constants are proved on the page",
    "semantic privacy holds for all priors, or for fair coins between any two neighbours",
    Standing.SHARPER,
)
