"""Factors of lengths: radices, and the two lengths of a four-step transform."""

from __future__ import annotations

import math
from functools import lru_cache

RADICES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 21, 25, 27, 32)
"""The radices that have a butterfly, see ``clkernels/fourier/butterflies.mako``."""
PRIMES = (13, 11, 7, 5, 3, 2)


def _exponents(n: int) -> dict[int, int] | None:
    """Return the exponents of the prime factors of `n`, or None if one has no butterfly."""
    found: dict[int, int] = {}
    for prime in PRIMES:
        while n % prime == 0 and n > 1:
            found[prime] = found.get(prime, 0) + 1
            n //= prime
    return found if n == 1 else None


def is_smooth(n: int) -> bool:
    """Return whether `n` is a product of radices that have a butterfly."""
    return n > 0 and _exponents(n) is not None


def largest_prime(n: int) -> int:
    """Return the largest prime factor of a smooth `n`, 1 for 1, and 0 where `n` is not smooth."""
    exponents = _exponents(n) if n > 0 else None
    return 0 if exponents is None else max(exponents, default=1)


@lru_cache(maxsize=4096)
def radices_of(n: int, largest: int = 16) -> tuple[int, ...]:
    """Return the fewest radices whose product is a smooth `n`, the largest first.

    Of equally many, those with the least sum. `largest` bounds composite radices only: all primes
    are allowed.
    """
    if not is_smooth(n):
        raise ValueError(f"{n} has a prime factor without a butterfly")
    return _best_radices(n, tuple(r for r in RADICES if r <= largest or r in PRIMES)) or (1,)


@lru_cache(maxsize=4096)
def _best_radices(n: int, able: tuple[int, ...]) -> tuple[int, ...]:
    if n == 1:
        return ()
    found = ((radix, *_best_radices(n // radix, able)) for radix in able if n % radix == 0)
    best = min(found, key=lambda radices: (len(radices), sum(radices)))
    return tuple(sorted(best, reverse=True))


@lru_cache(maxsize=4096)
def pairs_of(n: int) -> tuple[tuple[int, int], ...]:
    """Return all pairs of factors of `n` above 1, smaller one first, nearly equal pairs first."""
    return tuple((small, n // small) for small in range(math.isqrt(n), 1, -1) if n % small == 0)


@lru_cache(maxsize=4096)
def next_smooth(n: int, multiple: int = 1) -> int:
    """Return the least multiple of `multiple`, at least `n`, whose primes are 2, 3 and 5 only."""
    best = multiple
    while best < n:
        best *= 2
    five = multiple
    while five < best:
        three = five
        while three < best:
            candidate = three
            while candidate < n:
                candidate *= 2
            best = min(best, candidate)
            three *= 3
        five *= 5
    return best


def convolution_length(n: int) -> int:
    """Return the length of the convolution for a transform of any length `n`."""
    return next_smooth(2 * n - 1, 64)
