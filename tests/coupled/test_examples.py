"""The examples of the thesis, reproduced exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from support import coupled_worlds as independent
from tacit.coupled import (
    Distributional,
    FiniteMechanism,
    InferenceDistributional,
    Noiseless,
    Pufferfish,
    SimulationDP,
    Simulator,
    compose_known,
    filling_in,
    iid_rows,
    mixture,
    neighbour_priors,
    participation_secret,
    point_priors,
    posterior_coupled,
    posterior_coupled_printed,
    row_pairs,
    sampled_rows,
    semantic_failure,
    semantic_to_dp,
    value_secret,
    with_auxiliary,
)
from tacit.coupled.composition import compose_disjoint_rows
from tacit.errors import NoLaw

FAIR = {0: "1/2", 1: "1/2"}


def parity(x: Any) -> int:
    return int(sum(x) % 2)


def majority(x: Any) -> int:
    return 1 if sum(x) > 0 else -1


# --- Example 5.1 ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [2, 3, 5])
def test_parity_is_inference_based_private_and_not_distributional(n: int) -> None:
    prior = with_auxiliary(iid_rows(FAIR, rows=n), parity)
    mechanism = FiniteMechanism.of(parity, [prior])
    coin = Simulator.constant([0, 1])
    inference = InferenceDistributional(priors=(prior,))
    assert inference.delta(mechanism, epsilon=0, simulator=coin).high == 0
    assert inference.check(mechanism, epsilon=0).holds is True
    # A simulator that tells the parity of the other rows does worse, and the definition says so.
    told = Simulator(name="parity", answer=lambda pair, a: parity([v for v in a if v != "gone"]))
    assert inference.delta(mechanism, epsilon=0, simulator=told).low > 0
    verdict = Distributional(priors=(prior,)).check(mechanism, epsilon=5, delta="49/100")
    assert verdict.holds is False
    assert verdict.delta.low == verdict.delta.high == Fraction(1, 2)
    assert {w.pair for w in verdict.witnesses} <= {f"row {i}" for i in range(n)}
    assert sum(w.weight for w in verdict.witnesses) == pytest.approx(1)
    for w in verdict.witnesses:
        assert w.event == (1 - w.auxiliary,)  # type: ignore[comparison-overlap]
        assert w.direction.startswith("in the ideal")


# --- the +-1 mean, sec. 5.5 ----------------------------------------------------------------------------
def means(n: int) -> tuple[Any, Any, Any]:
    up = iid_rows({1: "19/20", -1: "1/20"}, rows=n, name="mean above 0")
    down = iid_rows({1: "1/20", -1: "19/20"}, rows=n, name="mean below 0")
    known = mixture(
        [with_auxiliary(up, lambda x: "above"), with_auxiliary(down, lambda x: "below")],
        ["1/2", "1/2"],
        name="either, and known",
    )
    return known, mixture([up, down], ["1/2", "1/2"], name="either"), (up, down)


def test_the_side_of_the_mean_is_distributional_and_not_noiseless() -> None:
    known, unknown, _ = means(9)
    mechanism = FiniteMechanism.of(majority, [unknown])
    obvious = Simulator(
        name="the majority of the others",
        answer=lambda pair, a: (
            majority([v for v in a if v != "gone"])
            if sum(v for v in a if v != "gone")
            else {1: Fraction(1, 2), -1: Fraction(1, 2)}
        ),
    )
    # By hand: the two differ only if the eight others tie, which has the same chance for both means.
    tie = math.comb(8, 4) * Fraction(19, 20) ** 4 * Fraction(1, 20) ** 4
    found = Distributional(priors=(unknown,)).delta(mechanism, epsilon=0, simulator=obvious)
    assert found.low == found.high == tie / 2
    assert found.high < Fraction(1, 5000)
    assert Distributional(priors=(unknown,)).check(mechanism, epsilon=0, delta="1/5000").holds is True
    # Noiseless privacy fails at every ordinary epsilon, and less auxiliary knowledge is what breaks it.
    assert Noiseless(priors=(unknown,)).check(mechanism, epsilon=2, delta="1/10").holds is False
    assert Noiseless(priors=(known,)).check(mechanism, epsilon=0, delta="1/1000").holds is True
    # So does a mixture of two priors under which it held (no analogue of Thm 5.4).
    for single in means(9)[2]:
        assert Noiseless(priors=(single,)).check(mechanism, epsilon=0, delta="1/1000").holds is True


def test_the_original_delta_of_noiseless_privacy_is_another_number() -> None:
    """All values count, with a small divergence; or all but a few values, with none: neither contains the other."""
    rare = iid_rows({0: "99/200", 1: "99/200", 2: "1/100"}, rows=1)
    tells = FiniteMechanism.of(lambda x: int(x[0] == 2), [rare])
    noiseless = Noiseless(priors=(rare,))
    assert noiseless.delta(tells, epsilon=1).high == 1
    assert noiseless.original_delta(tells, epsilon=1).high == 0.01
    leaks = FiniteMechanism.of(lambda x: {"same": "99/100", x[0]: "1/100"}, [rare])
    assert noiseless.delta(leaks, epsilon=1).high == Fraction(1, 100)
    # Any two values can be told apart: all but the likeliest one must be left out.
    assert 0.505 in noiseless.original_delta(leaks, epsilon=1)
    assert noiseless.original_delta(leaks, epsilon=1).width < 1e-12


# --- DP as the case of all point priors ----------------------------------------------------------------
def geometric(n: int, ratio: Fraction) -> FiniteMechanism:
    """Truncated geometric noise on a count of n bits."""

    def answer(x: Any) -> dict[int, Fraction]:
        c = sum(x)
        out = {}
        for k in range(n + 1):
            inner = (1 - ratio) / (1 + ratio) if 0 < k < n else 1 / (1 + ratio)
            out[k] = inner * ratio ** abs(k - c)
        return out

    return FiniteMechanism.of(answer, point_priors([0, 1], rows=n))


def test_randomised_response_by_simulation() -> None:
    mechanism = FiniteMechanism.of(lambda x: {x[0]: "3/4", 1 - x[0]: "1/4"}, point_priors([0, 1], rows=1))
    verdict = SimulationDP(values=(0, 1), rows=1).check(mechanism, epsilon="ln 2")
    assert verdict.holds is True
    assert verdict.epsilon is not None
    assert verdict.epsilon_pair is not None
    assert math.log(2) in verdict.epsilon
    assert verdict.epsilon.width < 1e-12
    assert math.log(3) in verdict.epsilon_pair
    # No simulator is better: the claim fails just below.
    assert SimulationDP(values=(0, 1), rows=1).check(mechanism, epsilon="ln(199/100)").holds is False
    filled = SimulationDP(values=(0, 1), rows=1).check(
        mechanism, epsilon="ln 3", simulator=filling_in(mechanism, 0)
    )
    assert filled.holds is True
    assert filled.epsilon == verdict.epsilon_pair


def test_the_truncated_geometric_by_simulation() -> None:
    mechanism = geometric(4, Fraction(1, 2))
    definition = SimulationDP(values=(0, 1), rows=4)
    verdict = definition.check(mechanism, epsilon="ln 2")
    assert verdict.holds is True
    assert verdict.epsilon_pair is not None
    assert math.log(2) in verdict.epsilon_pair
    # The closed form of the best simulator, from the table itself.
    best = Fraction(1)
    for p, q in independent.pairs_of_neighbours(mechanism.table):
        most = {t: max(p.get(t, 0), q.get(t, 0)) for t in mechanism.outputs}
        least = {t: min(p.get(t, 0), q.get(t, 0)) for t in mechanism.outputs}
        best = max(best, sum(most.values()), 1 / sum(least.values()))
    assert verdict.epsilon is not None
    assert verdict.epsilon.high == pytest.approx(max(math.log(best), math.log(2) / 2), abs=1e-9)
    # Below epsilon_pair the neighbours' own delta is what Def. 3.3 says.
    level = Fraction(3, 2)
    from tacit.coupled.numbers import Level
    from tacit.coupled.verdict import between_values, found_delta

    found = found_delta(between_values(definition.cells(mechanism)), Level.of_factor(level))
    assert found.high == independent.dp_delta(mechanism.table, level)


def test_inference_based_privacy_of_point_priors_says_nothing() -> None:
    """The source says that they make Def. 5.2 differential privacy: but a row is certain before and after."""
    priors = point_priors([0, 1], rows=2)
    everything = FiniteMechanism.of(lambda x: x, priors)
    verdict = InferenceDistributional(priors=priors).check(everything, epsilon=0)
    assert verdict.holds is True
    assert SimulationDP(values=(0, 1), rows=2).check(everything, epsilon=10, delta="1/3").holds is False


# --- composition ---------------------------------------------------------------------------------------
def test_two_counts_compose_to_nothing() -> None:
    prior = iid_rows(FAIR, rows=6)
    everybody = FiniteMechanism.of(sum, [prior], name="the count")
    others = FiniteMechanism.of(lambda x: sum(x[1:]), [prior], name="the count without row 0")
    definition = Distributional(priors=(prior,))
    for one in (everybody, others):
        assert definition.check(one, epsilon=1, delta="1/40").holds is True
    assert definition.delta(everybody.beside(others), epsilon=10).low == Fraction(1, 2)
    with pytest.raises(NoLaw, match="count of all rows but one") as refused:
        compose_known(
            everybody, others, priors=[prior], pairs=row_pairs(6), claims=((1, "1/40"), (1, "1/40"))
        )
    assert "knows what the count said" in str(refused.value)


def test_the_sharp_floor_of_exact_counts() -> None:
    """(1 - l)^(n-1)/(1 + e^epsilon), here l = 1/2."""
    for n in (3, 6):
        prior = iid_rows(FAIR, rows=n)
        found = Distributional(priors=(prior,)).delta(FiniteMechanism.of(sum, [prior]), epsilon="ln 3")
        floor = Fraction(1, 2) ** (n - 1) / 4
        assert found.low <= floor <= found.high
        assert found.high - found.low < Fraction(1, 10**9)


def test_composition_where_both_conditions_hold() -> None:
    """A count of two rows, and a noisy parity of two others: each is private to who knows the other."""
    prior = iid_rows(FAIR, rows=4)
    first = FiniteMechanism.of(lambda x: sum(x[:2]), [prior], name="F")
    second = FiniteMechanism.of(
        lambda x: {sum(x[2:]) % 2: "3/4", 1 - sum(x[2:]) % 2: "1/4"}, [prior], name="G"
    )
    claims: Any = (("ln 2", "1/6"), (0, 0))
    made = compose_known(first, second, priors=[prior], pairs=row_pairs(4), claims=claims)
    assert made.theorem == "compose-priors"
    assert made.delta == Fraction(1, 6)
    assert math.log(2) in made.epsilon
    assert made.exact.high <= made.delta
    alone = Distributional(priors=(prior,)).delta(first, epsilon="ln 2")
    assert made.exact.high >= alone.low
    assert made.exact.high == independent.distributional_delta(
        prior.weights,
        made.mechanism.__getitem__,
        lambda i, rest: made.simulator(f"row {i}", (*rest[:i], "gone", *rest[i:])),
        Fraction(2),
    )
    parts = compose_disjoint_rows(first, second, priors=[prior], rows=[0, 1], claims=claims)
    assert parts.delta == Fraction(1, 6)
    assert parts.exact.high <= parts.delta


def test_disjoint_rows_must_be_independent_given_the_auxiliary() -> None:
    """Four fair bits, two parities, and somebody who knows a third one: each is private, the pair tells a row."""
    prior = with_auxiliary(iid_rows(FAIR, rows=4), lambda x: parity(x[1:]))
    first = FiniteMechanism.of(lambda x: parity(x[:2]), [prior])
    second = FiniteMechanism.of(lambda x: parity(x[2:]), [prior])
    definition = Distributional(priors=(prior,))
    assert definition.delta(first.beside(second), epsilon=10).low == Fraction(1, 2)
    with pytest.raises(NoLaw, match="not independent given the auxiliary"):
        compose_disjoint_rows(first, second, priors=[prior], rows=[0, 1], claims=((0, 0), (0, 0)))


# --- Pufferfish ----------------------------------------------------------------------------------------
def test_dp_is_pufferfish_with_participation_as_the_secret() -> None:
    population = [0, 1, 1]
    priors = [
        sampled_rows(population, size={0: "1/8", 1: "3/8", 2: "3/8", 3: "1/8"}, name="half of them"),
    ]
    mechanism = geometric_of_present(Fraction(1, 3), priors)
    # Neighbours by removal, from the definition.
    worst = Fraction(0)
    for x, row in mechanism.table.items():
        for i, v in enumerate(x):
            if v is not None:
                other = mechanism.table[(*x[:i], None, *x[i + 1 :])]
                ratios = [row[t] / other[t] for t in row] + [other[t] / row[t] for t in row]
                worst = max(worst, *ratios)
    secrets = tuple(participation_secret(i) for i in range(3))
    found = Pufferfish(priors=tuple(priors), secrets=secrets).epsilon(mechanism)
    assert found is not None
    assert found.high <= math.log(worst) + 1e-12
    assert found.high == pytest.approx(math.log(3))
    # Dependent rows: all three are in, or nobody is.
    together = sampled_rows(population, size={0: "1/2", 3: "1/2"}, name="all or nobody")
    told = Pufferfish(priors=(together,), secrets=secrets).epsilon(mechanism)
    assert told is not None
    assert told.low > 1.9 * math.log(3)


def geometric_of_present(ratio: Fraction, priors: Any) -> FiniteMechanism:
    def answer(x: Any) -> dict[int, Fraction]:
        c = sum(v for v in x if v is not None)
        weights = {0: 1 / (1 + ratio), 1: (1 - ratio) / (1 + ratio), 2: 1 / (1 + ratio)}
        return {k: w * ratio ** abs(k - c) for k, w in weights.items()}

    return FiniteMechanism.of(answer, priors)


# --- dependent rows, sec. 3.5 --------------------------------------------------------------------------
def test_what_dp_promises_to_a_family_that_answers_alike() -> None:
    """Each answers by randomised response at ln 3. Without one row, the others tell as much; that is all DP says."""
    k = 3
    family = mixture(
        [iid_rows({b: 1}, rows=k, name=f"all {b}") for b in (0, 1)], ["1/2", "1/2"], name="a family"
    )
    table = {
        x: {
            tuple(t): math.prod(
                (Fraction(3, 4) if a == b else Fraction(1, 4)) for a, b in zip(x, t, strict=True)
            )
            for t in ((a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1))
        }
        for x in ((a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1))
    }
    mechanism = FiniteMechanism(table=table)
    kept = Distributional(priors=(family,)).check(
        mechanism, epsilon="ln 3", simulator=filling_in(mechanism, 0)
    )
    assert kept.holds is True
    # The best simulator copies a row of the family: a scrubbed table tells everything that the whole one does.
    assert Distributional(priors=(family,)).check(mechanism, epsilon=0).holds is True
    # What an outsider learns about the family is the group's epsilon, three times as much.
    alike = Noiseless(priors=(family,)).epsilon(mechanism)
    assert alike is not None
    assert 3 * math.log(3) in alike
    secret = Pufferfish(priors=(family,), secrets=(value_secret(0, 0, 1),)).epsilon(mechanism)
    assert secret == alike


# --- semantic privacy implies DP, sec. 3.1 --------------------------------------------------------------
def test_semantic_privacy_implies_differential_privacy() -> None:
    mechanism = geometric(2, Fraction(1, 3))
    shift = Fraction(1, 4)  # (e^epsilon - 1)/(2 (e^epsilon + 1)) at e^epsilon = 3
    for row, prior in neighbour_priors([0, 1], rows=2):
        assert semantic_failure(mechanism, prior, row=row, default=0, shift=shift) == 0
    bound = semantic_to_dp(shift=0.25)
    assert bound.epsilon(0) == pytest.approx(math.log(3))
    assert independent.dp_delta(mechanism.table, Fraction(3)) == 0
    # With a smaller shift some outputs fail: twice their probability is a delta for the smaller epsilon.
    small = Fraction(1, 5)
    failing = max(
        semantic_failure(mechanism, prior, row=row, default=0, shift=small)
        for row, prior in neighbour_priors([0, 1], rows=2)
    )
    assert failing > 0
    factor = (1 + 2 * small) / (1 - 2 * small)
    assert independent.dp_delta(mechanism.table, factor) <= 2 * failing
    with pytest.raises(NoLaw):
        semantic_to_dp(shift=0.5)


# --- Thm 5.2 as printed is false -----------------------------------------------------------------------
def test_the_printed_bound_on_posteriors_is_refuted() -> None:
    k, delta, factor = 9, Fraction(1, 400), 6

    def answer(x: Any) -> dict[Any, Fraction]:
        out = {u: factor * delta for u in range(k) if u != x[0]}
        return {**out, "none": 1 - sum(out.values())}

    prior = iid_rows({v: Fraction(1, k) for v in range(k)}, rows=1)
    mechanism = FiniteMechanism.of(answer, [prior])
    plain = Simulator.constant({**dict.fromkeys(range(k), delta), "none": 1 - k * delta})
    assert (
        Distributional(priors=(prior,)).check(mechanism, epsilon="ln 6", delta=delta, simulator=plain).holds
        is True
    )
    printed = InferenceDistributional(priors=(prior,)).check(mechanism, epsilon="ln 216", delta="1/10")
    assert printed.holds is False
    assert printed.witnesses[0].first == 0.12
    with pytest.raises(NoLaw, match="nine values"):
        posterior_coupled_printed(epsilon=math.log(6), delta=1 / 400)
    # The corrected form holds.
    bound = posterior_coupled(epsilon=math.log(6), delta=1 / 400)
    wide, least = bound.parameters["epsilon"], bound.parameters["delta"]
    assert least == pytest.approx(math.sqrt(7 / 400))
    assert InferenceDistributional(priors=(prior,)).check(mechanism, epsilon=wide, delta=least).holds is True
