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
register(
    "agreed-members",
    "If a vector leaves only under a roster and a list of members that threshold of n holders signed, and 2 threshold "
    "> n + c, then all honest holders that send one have the same two, whatever the aggregator tells each of them.",
    "proved here",
    "signatures that cannot be forged; honest holders sign one list a session, also after a restart",
)
register(
    "one-list-of-survivors",
    "If threshold of n holders must sign the list of survivors and 2 threshold > n + c, two lists are never both "
    "confirmed, and of no honest member both secrets are opened.",
    "Bonawitz et al. 2017, sec. 6.2",
    "signatures that cannot be forged; at most c holders sign more than once",
)
register(
    "secure-sum",
    "Whoever runs the aggregator and at most c holders learns of the honest ones' vectors no more than their sum, up "
    "to the advantage against X25519, HKDF, AES-256 and Ed25519.",
    "Bonawitz et al. 2017; Bell et al. 2020",
    "c < threshold; a complete graph of masks; keys exchanged beforehand; messages as in the state machine, the "
    "aggregator's chosen by the adversary",
)
register(
    "sparse-masks",
    "On a ring in random order whose lists of survivors have no gap of more than half of m in a row, honest holders "
    "stay connected and keep their secrets but for a hypergeometric chance, which is added to delta.",
    "Bell, Bonawitz, Gascón, Lepoint, Raykova 2020",
    "corrupt holders are fixed before the order is drawn, at most 2^60 times; who is gone may depend on it",
    Standing.SHARPER,
)
register(
    "smoothing",
    "A SIM-CDP mechanism with outputs on a grid and a bounded error is statistically private, with a concrete delta'; "
    "integers need no added noise.",
    "Groce 2014, Thm 4.2",
    "boxes are among the tests that eta bounds; one stand-in for all data sets",
    Standing.SHARPER,
)
register(
    "black-box-oracle",
    "A mechanism that uses a one-way function as a black box, and is IND-CDP for every one, is statistically private "
    "with a random function in its place, at the same utility.",
    "Groce 2014, Thm 4.1",
    "the proof of privacy relativises; a random function is one-way against q queries",
)
register(
    "group-bounded-adversary",
    "Groups keep the advantage under SIM; under IND with pure epsilon it grows by (e^{k epsilon} - 1)/(e^epsilon - 1).",
    "proved here",
)
register(
    "sim-ind-order",
    "SIM gives SIM with a stand-in for each pair of neighbours, which gives IND; whether IND gives SIM is open.",
    "Mironov, Pandey, Reingold, Vadhan 2009; Groce 2014, Def. 4.4",
)
register(
    "two-party-gap",
    "Two parties with n bits each, whose messages are epsilon-private against everybody, answer their inner product "
    "with a mean squared error of at least n / cosh(epsilon/2)^4 on uniform bits.",
    "McGregor, Mironov, Pitassi, Reingold, Talwar, Vadhan 2010",
    "statistical privacy of the transcript for each bit; answers from the transcript and one party's bits",
    standing=Standing.SHARPER,
)
