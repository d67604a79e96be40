"""The ways in which a case is called: where its arrays lie, and with ``out=`` or prepared."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.lab.measuring.poison import poisoned
from opencl_lab.lab.soak.cases import Array, Case, Results
from opencl_lab.ops.prepared import FUNCTIONS, prepare
from opencl_lab.runtime.exchange import to_device

MOST_OFFSET = 64
"""Bytes; the elements of arrays begin at each multiple of their size below that."""


@dataclass(frozen=True)
class Way:
    """How a call is made."""

    resident: bool = False
    strided: bool = False
    """Every second element of a longer array; else contiguous, and on the host at some offset."""
    out: bool = False
    prepared: bool = False
    timed: bool = False
    """On the library's queue with profiling."""

    def __str__(self) -> str:
        words = ["device" if self.resident else "host"]
        for name in ("strided", "out", "prepared", "timed"):
            words += [name] * getattr(self, name)
        return " ".join(words)


def drawn(rng: np.random.Generator) -> Way:
    """Return a random way; most are plain."""
    resident, strided, out, ready, timed = rng.random(5) < (0.4, 0.25, 0.25, 0.15, 0.2)
    return Way(bool(resident), bool(strided), bool(out), bool(ready), bool(timed))


def perform(
    case: Case, way: Way, device: Device, rng: np.random.Generator
) -> tuple[list[Results], str]:
    """Call; return the results of each call as host arrays, and what is wrong besides these.

    With ``out=`` the call is made twice, the second time so.
    """
    queue = device.queue(profiling=way.timed)
    watched: list[tuple[Array, Callable[[], Array]]] = []

    def placed(array: Array, resident: bool) -> tuple[Any, Callable[[], Array]]:
        """Return a copy of an array as the way says, and what reads it."""
        if not resident:
            made = _strided(array) if way.strided else _offset(array, rng)
            return made, lambda: made
        if not way.strided:
            there = to_device(array, queue=queue)
            return there, there.get
        whole = to_device(_strided(array).base, queue=queue)
        return whole[..., ::2], lambda: whole.get()[..., ::2]

    def given(array: Array) -> Any:
        made, read = placed(array, way.resident)
        watched.append((array, read))
        return made

    arrays = [given(array) for array in case.arrays]
    options = dict(case.options)
    for name in {"c", "bias"} & set(options):  # weights stay on the host
        options[name] = given(options[name])
    where = {} if way.resident else {"queue": queue} if way.timed else {"device": device}
    call: Callable[..., Any] = partial(case.function, **options, **where)
    if way.prepared and case.function in FUNCTIONS.values():
        call = prepare(case.function, *arrays, **options, **where)
    results = _several(call(*arrays))
    seen, complaint = [tuple(map(_host, results))], ""
    if way.out and "out" in inspect.signature(case.function).parameters:
        on_device = not isinstance(results[-1], np.ndarray)
        outs = [placed(poisoned(one.shape, one.dtype), on_device) for one in seen[0]]
        out = tuple(target for target, _ in outs)
        again = _several(call(*arrays, out=out if len(out) > 1 else out[0]))
        if any(one is not two for one, two in zip(again, out, strict=True)):
            complaint = "the result is not out"
        seen.append(tuple(get() for _, get in outs))
    if any(read().tobytes() != array.tobytes() for array, read in watched):
        complaint = "an input was changed"
    return seen, complaint


def _several(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _host(result: Any) -> Array:
    found: Array = result if isinstance(result, np.ndarray) else result.get()
    return found


def _strided(array: Array) -> Array:
    """Return a copy that is every second element of a longer array."""
    whole = poisoned((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    view = whole[..., ::2]
    view[...] = array
    return view


def _offset(array: Array, rng: np.random.Generator) -> Array:
    """Return a copy that begins at a random multiple of its element's size."""
    size = array.dtype.itemsize
    block = np.empty(array.nbytes + 2 * MOST_OFFSET, np.uint8)
    begin = -block.ctypes.data % MOST_OFFSET + size * int(rng.integers(MOST_OFFSET // size))
    made: Array = block[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made
