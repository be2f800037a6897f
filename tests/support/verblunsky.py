"""A second way from Verblunsky coefficients to trigonometric moments, and exact moments of them, from definitions."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from math import factorial

import numpy as np


def levinson(alpha: np.ndarray) -> np.ndarray:
    """c_1..c_m of rows of coefficients by the Levinson-Durbin recursion, in the convention c_1 = alpha_1.

    The predictor of order k, a_1..a_k, solves the Toeplitz system of (1, c_1..c_{k-1}); the next moment is what it
    predicts plus alpha times its error.
    """
    rows, m = alpha.shape
    c = np.zeros((rows, m + 1), dtype=complex)
    c[:, 0] = 1.0
    predictor, error = np.zeros((rows, 0), dtype=complex), np.ones(rows)
    for k in range(1, m + 1):
        guess = (predictor * c[:, 1:k][:, ::-1]).sum(axis=1)
        a = alpha[:, k - 1]
        c[:, k] = guess + a * error
        predictor = np.concatenate([predictor - a[:, None] * predictor[:, ::-1].conj(), a[:, None]], axis=1)
        error = error * (1 - np.abs(a) ** 2)
    return c[:, 1:]


def coefficients(uniforms: np.ndarray) -> np.ndarray:
    """Rows of 2m uniforms to m coefficients: |alpha_j|^2 ~ Beta(1, 2 (m - j) + 1) by inversion, uniform phase."""
    m = uniforms.shape[1] // 2
    b = 2 * (m - np.arange(1, m + 1)) + 1
    size = np.sqrt(1 - (1 - uniforms[:, :m]) ** (1 / b))
    return size * np.exp(2j * np.pi * uniforms[:, m:])


def as_real(c: np.ndarray) -> np.ndarray:
    """(Re c_1, Im c_1, Re c_2, ...)."""
    return np.stack([c.real, c.imag], axis=-1).reshape(c.shape[0], -1)


Polynomial = dict[tuple[int, ...], int]


def _times(p: Polynomial, q: Polynomial) -> Polynomial:
    out: Polynomial = defaultdict(int)
    for i, a in p.items():
        for j, b in q.items():
            out[tuple(x + y for x, y in zip(i, j, strict=True))] += a * b
    return {k: v for k, v in out.items() if v}


def _plus(*parts: Polynomial) -> Polynomial:
    out: Polynomial = defaultdict(int)
    for part in parts:
        for k, v in part.items():
            out[k] += v
    return {k: v for k, v in out.items() if v}


def _conjugate(p: Polynomial) -> Polynomial:
    half = len(next(iter(p), ())) // 2
    return {k[half:] + k[:half]: v for k, v in p.items()}


def moment_polynomials(last: int) -> list[Polynomial]:
    """c_1..c_last as polynomials in alpha_1.., conj alpha_1..: exponents of both, and integers. The same recursion."""
    zero = (0,) * (2 * last)
    one: Polynomial = {zero: 1}

    def variable(k: int, bar: bool) -> Polynomial:
        at = list(zero)
        at[k + last * bar] = 1
        return {tuple(at): 1}

    c = [one]
    predictor: list[Polynomial] = []
    error = one
    for k in range(last):
        a, bar = variable(k, False), variable(k, True)
        guess = _plus(*(_times(p, c[k - i]) for i, p in enumerate(predictor)))
        c.append(_plus(guess, _times(a, error)))
        turned = [_conjugate(p) for p in reversed(predictor)]
        minus = {key: -v for key, v in a.items()}
        predictor = [_plus(p, _times(minus, q)) for p, q in zip(predictor, turned, strict=True)] + [a]
        error = _plus(error, _times({key: -v for key, v in error.items()}, _times(a, bar)))
    return c[1:]


def second_moment(polynomial: Polynomial, m: int) -> Fraction:
    """E |p|^2 for independent alpha_j with uniform phases and |alpha_j|^2 ~ Beta(1, 2 (m - j) + 1).

    Only products whose powers of every alpha_j and of its conjugate agree survive: monomials meet those with the same
    differences of exponents.
    """
    half = len(next(iter(polynomial))) // 2
    groups: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = defaultdict(list)
    for key, value in polynomial.items():
        groups[tuple(a - b for a, b in zip(key[:half], key[half:], strict=True))].append((key, value))

    def expectation(powers: tuple[int, ...]) -> Fraction:
        out = Fraction(1)
        for j, s in enumerate(powers, start=1):
            b = 2 * (m - j) + 1
            if s:
                out *= Fraction(factorial(s) * factorial(b), factorial(b + s))
        return out

    total, known = Fraction(0), {}
    for members in groups.values():
        for i, a in members:
            for j, b in members:
                # |alpha|^(2s) with 2s the sum of all four exponents
                powers = tuple((i[k] + i[k + half] + j[k] + j[k + half]) // 2 for k in range(half))
                if powers not in known:
                    known[powers] = expectation(powers)
                total += a * b * known[powers]
    return total
