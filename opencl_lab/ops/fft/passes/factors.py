"""Factors of lengths: radices, and the two lengths of a four-step transform."""

from __future__ import annotations

import math
from functools import lru_cache

SMALL_PRIMES = (2, 3, 5, 7, 11, 13)
LARGE_PRIMES = (
    17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109,
    113, 127,
)  # fmt: skip
"""Primes whose butterflies are loops over points in memory, which is not what GPUs are fast at."""
PRIMES = (*SMALL_PRIMES, *LARGE_PRIMES)
RADICES = (*range(2, 17), 20, 21, 25, 27, 32, *LARGE_PRIMES)
"""The radices that have a butterfly, see ``clkernels/fourier/butterflies.mako``."""


def prime_factors(n: int) -> tuple[int, ...] | None:
    """Return the prime factors of `n`, smallest first; None where one has no butterfly."""
    found: list[int] = []
    for prime in PRIMES:
        while n > 1 and n % prime == 0:
            found.append(prime)
            n //= prime
    return tuple(found) if n == 1 else None


def is_smooth(n: int, large: int = 0) -> bool:
    """Return whether `n` has small prime factors, and large ones whose sum is at most `large`."""
    factors = prime_factors(n)
    return factors is not None and sum(p for p in factors if p not in SMALL_PRIMES) <= large


@lru_cache(maxsize=4096)
def radices_of(n: int, largest: int = 16) -> tuple[int, ...]:
    """Return the fewest radices whose product is `n`, the largest first.

    Of equally many, those with the least sum. `largest` bounds composite radices only: all primes
    are allowed.
    """
    if prime_factors(n) is None:
        raise ValueError(f"{n} has a prime factor without a butterfly")
    return _best_radices(n, tuple(r for r in RADICES if r <= largest or r in PRIMES)) or (1,)


@lru_cache(maxsize=4096)
def _best_radices(n: int, allowed: tuple[int, ...]) -> tuple[int, ...]:
    if n == 1:
        return ()
    found = ((radix, *_best_radices(n // radix, allowed)) for radix in allowed if n % radix == 0)
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
