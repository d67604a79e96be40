"""The byte that outputs are filled with before a checked run, so that missing values show."""

from __future__ import annotations

from typing import Any

import numpy as np

POISON = 0xCD
"""A byte that correct results do not consist of."""


def poisoned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return an array filled with `POISON`."""
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[:] = POISON
    return array
