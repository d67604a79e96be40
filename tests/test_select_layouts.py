"""Selections of arrays of any type, shape and layout, on either side, beside NumPy's answers."""

import numpy as np
import pyopencl.array as cla
import pytest
from select_checks import GROUPS, check, hard_floats, right_topk

import opencl_lab as ol
from opencl_lab.ops.sort.problem import KEY_TYPES

LAYOUTS = {
    "C": lambda a: a,
    "Fortran": np.asfortranarray,
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
}


def drawn(rng, shape, dtype):
    """Return keys with ties and with the extremes of their type."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return hard_floats(rng, shape, dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    limits = np.iinfo(dtype)
    some = [limits.min, limits.max, 0, 1]
    keys = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.5, rng.choice(np.array(some, dtype), shape), keys)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", KEY_TYPES)
def test_keys_of_any_layout(dtype, layout, queue, rng):
    """In one form or the other of those that select."""
    keys = drawn(rng, (5, 83), dtype)
    given = LAYOUTS[layout](keys)
    given.flags.writeable = False
    axis, k, largest = int(rng.integers(2)), int(rng.integers(6)), bool(rng.integers(2))
    values, places = right_topk(np.moveaxis(keys, axis, -1), k, largest)
    right = [np.moveaxis(part, -1, axis) for part in (values.astype(given.dtype), places)]
    form = {} if layout in ("C", "strided") else {"config": {**GROUPS, "DIGIT_BITS": 8}}
    how = {"algorithm": "radix-select", **form} if k and layout != "reversed" else {}
    check(ol.topk(given, k, largest=largest, axis=axis - 2, **how), right)
    once, counts = ol.unique(given, True)
    expected = np.unique(keys, return_counts=True)
    assert np.array_equal(once, expected[0], equal_nan=keys.dtype.kind == "f")
    assert once.dtype == given.dtype and np.array_equal(counts, expected[1])
    ordered = np.sort(keys.reshape(-1))
    assert np.array_equal(ol.searchsorted(ordered, given), np.searchsorted(ordered, keys))
    if not given.dtype.isnative:
        return
    on_device = cla.to_device(queue, np.vstack([keys, keys]))[5:]
    found = ol.topk(on_device, k, largest=largest, axis=axis)
    on_device.set(np.ones_like(keys))  # in the queue, behind what reads it
    check(found, right)
