"""The byte that outputs are full of before a checked run, so that what is left out shows."""

from __future__ import annotations

from typing import Any

import numpy as np

POISON = 0xCD
"""A byte that no right result is made of."""


def poisoned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return an array full of `POISON`."""
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[:] = POISON
    return array
