"""Names that stored configurations may still have: parameters, their values, and digests.

Files of users outlive the names in them. What reads a configuration asks here first: of tuned
entries, of results, and of runs of a tuner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["renamed_config", "renamed_digest", "with_all_sizes"]

PARAMETERS: dict[tuple[str, str], dict[str, str]] = {
    ("dft", "fft"): {"FEW_ROOTS": "FEW_TWIDDLES", "JOIN": "FUSED"},
}
"""Today's name of each parameter that had another, by operation and algorithm."""

VALUES: dict[tuple[str, str], dict[str, dict[str, str]]] = {
    ("dft", "fft"): {
        "FORM": {"lanes": "vector", "groups": "local-memory"},
        "EXCHANGE": {"pairs": "interleaved", "parts": "split", "turns": "two-phase"},
    },
    ("sort", "radix"): {"FORM": {"units": "cpu"}},
    ("sort", "merge-path"): {"FORM": {"units": "cpu", "groups": "gpu"}},
}
"""Today's name of each value that had another, by today's name of its parameter."""

DIGESTS: dict[str, str] = {
    "b8a5114c169b4d4e": "4175fc7717c59729",  # conv2d register, separable
    "d55a9936340ca9e8": "60001e0edcac98ce",  # conv2d tiled
    "420f69a5b5d6a6bc": "0ad019b350fb8e95",  # conv2d naive
    "d8d6dfae88780dd1": "ee2cc291dfa713c6",  # sort odd-even-merge
    "f2576f2511bce286": "156c0f4cca5b1eaa",  # sort radix
    "ec27416afd12b285": "f45138ef1853690a",  # sort merge-path
    "d10fda7da2c39a57": "728d8f34516504e0",  # conv2d fft
    "01539b3ceb0d1b0f": "728d8f34516504e0",  # conv2d fft
    "42253065bfd81399": "0833b7b81cfe0c26",  # dft fft
    "7375ba9722e05c35": "0833b7b81cfe0c26",  # dft fft
}
"""Today's digest of templates, by that of earlier ones that rendered the same kernels."""

SIZES: dict[str, dict[str, int]] = {"gemm": {"batch": 1}}
"""Sizes that problems have not always had, by operation, and what they were."""


def with_all_sizes(operation: str, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes of a problem with those that it has today."""
    return {**sizes, **{n: v for n, v in SIZES.get(operation, {}).items() if n not in sizes}}


def renamed_config(operation: str, algorithm: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with today's names of parameters and of their values."""
    names = PARAMETERS.get((operation, algorithm), {})
    values = VALUES.get((operation, algorithm), {})
    found = {names.get(name, name): value for name, value in config.items()}
    return {
        name: values.get(name, {}).get(value, value) if isinstance(value, str) else value
        for name, value in found.items()
    }


def renamed_digest(digest: str) -> str:
    """Return the digest of the templates that render the same kernels today."""
    return DIGESTS.get(digest, digest)
