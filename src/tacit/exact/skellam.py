"""The masses of the Skellam law, Pr[X = k] = e^-v I_k(v), as balls: for draws, curves and error bars."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from tacit.errors import NotCertified
from tacit.exact.balls import Ball, ball, precision

__all__ = ["MOST_TERMS", "skellam_masses", "skellam_reach"]

MOST_TERMS = 1 << 20


def skellam_reach(variance: Fraction, bits: int) -> int:
    """A K beyond which less than 2^-bits of the law lies.

    By Bernstein's inequality Pr[X > K] <= exp(-K^2 / (2 (v + K/3))): jumps of size 1, variance v.
    """
    size, want = float(variance), 0.7 * (bits + 8)
    third = want / 3
    return int(third + (third * third + 2 * want * size) ** 0.5) + 4


@lru_cache(maxsize=32)
def skellam_masses(variance: Fraction, bits: int, tail_bits: int) -> tuple[list[Ball], list[Ball]]:
    """Balls of Pr[X = k] and Pr[X >= k], k = 0..K, right to about `bits`; what lies beyond K is below 2^-tail_bits.

    I_{k-1} = I_{k+1} + (2k/v) I_k downwards from two certified values: a sum of positive terms, which loses nothing.
    The law is log-concave (a convolution of two that are), so beyond K the masses fall at least as I_{K+1}/I_K.
    """
    reach = skellam_reach(variance, tail_bits)
    if reach > MOST_TERMS:
        raise NotCertified(
            what="the sum of a Skellam law",
            reason=f"a variance of {float(variance):g} needs more than a million terms",
            hint="use a coarser grid",
        )
    with precision(bits + 2 * reach.bit_length() + 32):
        v = ball(variance)
        high, mass = v.bessel_i(ball(reach + 1), scaled=True), v.bessel_i(ball(reach), scaled=True)
        edge = high / (1 - high / mass)
        masses, factor = [mass], 2 / v
        for k in range(reach, 0, -1):
            high, mass = mass, high + k * factor * mass
            masses.append(mass)
        masses.reverse()
        tails = [ball(0).union(edge)]
        for mass in reversed(masses):
            tails.append(tails[-1] + mass)
        tails.reverse()
    return masses, tails
