"""Secrets shared t-of-n: Shamir's polynomials over the prime field of 2^521 - 1.

Not constant-time: Python's integers are not. What is multiplied are shares and random coefficients on the holder's
own machine, and shares that are public by then at the aggregator's; no operation depends on a secret's value by a
branch of ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tacit.errors import InvalidParameter
from tacit.noise.source import Source

__all__ = ["PRIME", "SHARE_BYTES", "join", "split"]

PRIME = (1 << 521) - 1
SHARE_BYTES = 66
SECRET_BYTES = 32


def _element(source: Source) -> int:
    """A uniform element: 521 bits, and again in the one case that is no element."""
    while True:
        value = int.from_bytes(source.words(9).tobytes(), "little") >> (9 * 64 - 521)
        if value < PRIME:
            return value


def split(secret: bytes, *, threshold: int, points: Sequence[int], source: Source) -> dict[int, bytes]:
    """A share at each point (from 1 on); any `threshold` of them give the secret, fewer tell nothing."""
    if len(secret) != SECRET_BYTES or not 1 <= threshold <= len(points):
        raise InvalidParameter(
            parameter="threshold", value=threshold, must=f"be at most the number of shares, {len(points)}"
        )
    if len(set(points)) != len(points) or min(points) < 1:
        raise InvalidParameter(parameter="points", value=len(points), must="be different, from 1 on")
    coefficients = [int.from_bytes(secret, "little"), *(_element(source) for _ in range(threshold - 1))]
    shares = {}
    for x in points:
        value = 0
        for a in reversed(coefficients):
            value = (value * x + a) % PRIME
        shares[x] = value.to_bytes(SHARE_BYTES, "little")
    return shares


def weights(points: Sequence[int]) -> list[int]:
    """Lagrange's weights at 0; one inversion for all."""
    tops, bottoms = [], []
    for i, x in enumerate(points):
        top, bottom = 1, 1
        for j, y in enumerate(points):
            if j != i:
                top, bottom = top * y % PRIME, bottom * (y - x) % PRIME
        tops.append(top)
        bottoms.append(bottom)
    prefix = [1]
    for b in bottoms:
        prefix.append(prefix[-1] * b % PRIME)
    inverse, out = pow(prefix[-1], PRIME - 2, PRIME), [0] * len(points)
    for i in range(len(points) - 1, -1, -1):
        out[i] = tops[i] * inverse * prefix[i] % PRIME
        inverse = inverse * bottoms[i] % PRIME
    return out


def join(
    shares: Mapping[int, bytes], *, known: Mapping[tuple[int, ...], list[int]] | None = None
) -> bytes | None:
    """The secret of these shares; None where they are shares of nothing of 32 bytes (one of them is wrong)."""
    points = tuple(shares)
    at = (known or {}).get(points) or weights(points)
    value = sum(w * int.from_bytes(s, "little") for w, s in zip(at, shares.values(), strict=True)) % PRIME
    return value.to_bytes(SECRET_BYTES, "little") if value < 1 << (8 * SECRET_BYTES) else None
