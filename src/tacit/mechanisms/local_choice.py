"""Which local mechanism a question gets: the one with the smallest error among those whose answers can be sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.errors import InvalidParameter
from tacit.exact.checks import whole
from tacit.exact.rationals import Exact
from tacit.mechanisms.hadamard_response import MOST_CATEGORIES as MOST_OF_HADAMARD
from tacit.mechanisms.hadamard_response import HadamardResponse
from tacit.mechanisms.local import LocalMechanism
from tacit.mechanisms.randomized_response import RandomizedResponse
from tacit.mechanisms.subset_selection import MOST_CATEGORIES as MOST_OF_SUBSETS
from tacit.mechanisms.subset_selection import SubsetSelection, share_parameter

__all__ = ["LocalCandidate", "LocalChoice", "local_mechanism"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCandidate:
    """A local mechanism, the variance of an estimated count per person, and the bits of an answer.

    The variance is that of a category with the declared share of the people.
    """

    mechanism: LocalMechanism
    variance: float
    bits: int
    allowed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalChoice:
    """The mechanism, why it was chosen, and what it was compared with."""

    mechanism: LocalMechanism
    reason: str
    considered: tuple[LocalCandidate, ...]


def _candidate(mechanism: LocalMechanism, bits: int, most: int, share: float) -> LocalCandidate:
    outside, inside = (mechanism.variance(people=1, count=count) for count in (0, 1))
    variance = outside if share == 0 else (1 - share) * outside + share * inside
    return LocalCandidate(mechanism=mechanism, variance=variance, bits=bits, allowed=bits <= most)


def local_mechanism(
    *,
    epsilon: Exact,
    categories: int = 2,
    labels: Sequence[str] | None = None,
    most_bits: int = 8192,
    share: Exact = 0,
) -> LocalChoice:
    """The mechanism with the smallest variance among those whose answers have at most `most_bits` bits.

    Compared are randomised response, subset selection and Hadamard response, all of the same epsilon, by the variance
    of the estimated count of a category that a declared `share` of the people have. The default is a category that
    nobody has, which is where the noise of a long list lies. Nothing of it looks at answers. Of equal variances the
    shorter answer is taken.
    """
    declared = float(share_parameter(share))
    most = whole("most_bits", most_bits)
    response = RandomizedResponse(epsilon=epsilon, categories=categories, labels=labels)
    k = response.categories
    name = (k - 1).bit_length()
    found = [_candidate(response, name, most, declared)]
    if k <= MOST_OF_SUBSETS:
        subset = SubsetSelection(epsilon=epsilon, categories=categories, labels=labels, share=share)
        # A list of names, or a bit for each category.
        found.append(_candidate(subset, min(subset.size * name, k), most, declared))
    if k <= MOST_OF_HADAMARD:
        hadamard = HadamardResponse(epsilon=epsilon, categories=categories, labels=labels)
        found.append(_candidate(hadamard, k.bit_length(), most, declared))
    allowed = [one for one in found if one.allowed]
    if not allowed:
        raise InvalidParameter(
            parameter="most_bits", value=most_bits, must=f"be at least {min(one.bits for one in found)}",
            hint="the shortest answer there is has so many bits",
        )  # fmt: skip
    # Rounding apart, subsets of one category are randomised response.
    best = min(allowed, key=lambda one: (float(f"{one.variance:.12g}"), one.bits, found.index(one)))
    return LocalChoice(
        mechanism=best.mechanism, reason=_reason(best, found, declared), considered=tuple(found)
    )


def _reason(best: LocalCandidate, found: list[LocalCandidate], share: float) -> str:
    others = [one for one in found if one is not best]
    words = [
        f"{_WORDS[type(one.mechanism)]} {one.variance:.3g}"
        + ("" if one.allowed else f" (but {one.bits:,} bits)")
        for one in others
    ]
    counted = f"a category with a share of {share:.3g}" if share else "an empty category"
    size = f" of {best.mechanism.size}" if isinstance(best.mechanism, SubsetSelection) else ""
    return (
        f"{_WORDS[type(best.mechanism)]}{size}: the count of {counted} has variance {best.variance:.3g} n, "
        f"an answer {best.bits:,} bits" + (f"; against {', '.join(words)}" if words else "")
    )


_WORDS: dict[type[LocalMechanism], str] = {
    RandomizedResponse: "randomised response",
    SubsetSelection: "subset selection",
    HadamardResponse: "Hadamard response",
}
