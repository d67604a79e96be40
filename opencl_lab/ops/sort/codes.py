"""The order of keys on the host, as unsigned integers like those of `keys.mako`."""

from __future__ import annotations

from typing import Any

import numpy as np

Keys = np.ndarray[Any, Any]


def codes(keys: Keys, descending: bool = False) -> Keys:
    """Return unsigned integers in the same order as the keys of a dense array.

    Equal keys get equal codes: -0.0 and 0.0 are equal, and so are all NaN. These come last, as NaT
    does, also if the order is descending.
    """
    bits = keys.view(f"u{keys.itemsize}")
    kind = keys.dtype.kind
    if kind in "ifmM":
        top = bits.dtype.type(1 << (8 * keys.itemsize - 1))
        if kind != "f":
            bits = bits ^ top
            if kind != "i" and not descending:
                bits -= bits.dtype.type(1)  # NaT is the least integer
        else:
            signs = keys.view(f"i{keys.itemsize}") >> (8 * keys.itemsize - 1)
            bits = bits ^ (signs.view(bits.dtype) | top)
            bits += bits == ~top  # -0.0 gets the code of 0.0
    if descending:
        bits = ~bits
    if kind == "f":
        np.putmask(bits, np.isnan(keys), np.iinfo(bits.dtype).max)
    return bits


def last_key(dtype: np.dtype[Any], descending: bool) -> Any:
    """Return a key that sorts last: no other key comes after it."""
    if dtype.kind in "mM":
        return np.array("NaT", dtype)[()]
    if dtype.kind == "f":
        return dtype.type(np.nan)
    if dtype.kind == "b":
        return dtype.type(not descending)
    limits = np.iinfo(dtype)
    return dtype.type(limits.min if descending else limits.max)
