"""The queues on which calls are made, what they gave, and in which ways that differs."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools

import opencl_lab as ol
from fuzz.arrays import Arrays, bytes_of
from fuzz.calls import Call
from opencl_lab.drivers.discovery import select_device

_once: set[str] = set()


@dataclass
class Outcome:
    """What a call gave."""

    error: tuple[str, str] | None
    results: tuple[Any, ...] = ()
    several: bool = False
    given: tuple[Any, ...] = ()
    before: dict[str, bytes] = field(default_factory=dict)
    after: dict[str, bytes] = field(default_factory=dict)
    kept: tuple[Any, ...] = ()
    written: frozenset[str] = frozenset()


class World:
    """The queues, and what counts calls."""

    def __init__(self) -> None:
        device = select_device()
        first = device.queue()
        self.device = device
        self.queues = [first, cl.CommandQueue(first.context)]
        self.pools = [
            pyopencl.tools.MemoryPool(pyopencl.tools.ImmediateAllocator(queue))
            for queue in self.queues
        ]
        self.counts: Counter[str] = Counter()
        self.replayed: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    def finish(self) -> None:
        """Wait for all queues."""
        for queue in self.queues:
            queue.finish()

    def perform(self, call: Call, seed: list[int]) -> Outcome:
        """Make a call with the data of a seed."""
        rng = np.random.default_rng(seed)
        arrays = Arrays(self)
        # Values of weights belong to the kind of a call: they stay for some calls.
        seldom = np.random.default_rng([*seed[:-1], seed[-1] // 4])
        arguments = {
            item.name: arrays.make(item, seldom if item.name == "weights" else rng)
            for item in call.data
        }
        out = tuple(arrays.make(item, rng) for item in call.out)
        options = dict(call.options)
        if out:
            options["out"] = out if len(out) > 1 else out[0]
        if "queue" in options and options["queue"] is not None:
            options["queue"] = self.queues[options["queue"]]
        self.finish()
        before = arrays.bytes()
        error, results, several = None, (), False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function = function_of(call.function)
                if call.by_name:
                    result = function(**arguments, **options)
                else:
                    keywords = [name for name in ("c", "bias") if name in arguments]
                    named = {name: arguments.pop(name) for name in keywords}
                    result = function(*arguments.values(), **named, **options)
            several = isinstance(result, tuple)
            results = result if several else (result,)
        except Exception as problem:  # errors are results, too
            error = type(problem).__name__, str(problem)
        followers = []
        if call.followed:
            resident = [array for array in results if on_device(array) and array.queue]
            followers = [ol.fft.fftshift(array) for array in resident]
        self.finish()
        kept = tuple(self.content(array) for array in (*results, *followers))
        targets = [id(arrays.blocks[item.name]) for item in call.out]
        written = frozenset(name for name, b in arrays.blocks.items() if id(b) in targets)
        return Outcome(error, results, several, out, before, arrays.bytes(), kept, written)

    def content(self, array: Any) -> bytes:
        """Return the elements of a result."""
        if not on_device(array):
            return np.asarray(array).tobytes()
        if not array.size:
            return b""
        if array.flags.c_contiguous and not array.offset:  # its memory may come from a pool
            return array.get(self.queues[0]).tobytes()
        whole = np.frombuffer(bytes_of(self, array.base_data), np.uint8)
        return np.ndarray(
            array.shape, array.dtype, whole.data, array.offset, array.strides
        ).tobytes()


def on_device(array: Any) -> bool:
    """Return whether it is a device array, of pyopencl's class or one that is made of it."""
    return isinstance(array, cl.array.Array)


def function_of(name: str) -> Callable[..., Any]:
    """Return a public function."""
    return getattr(ol.fft if name in ol.fft.__all__ else ol, name)


def differences(call: Call, got: Outcome, right: Outcome) -> list[str]:
    """Return in which ways two outcomes differ."""
    found = []
    if got.error != right.error:
        return [f"error {got.error} instead of {right.error}"]
    if got.error:
        return []
    if (len(got.results), got.several) != (len(right.results), right.several):
        return ["another number of results"]
    for place, (one, other) in enumerate(zip(got.results, right.results, strict=True)):
        kinds = [cl.array.Array if on_device(array) else type(array) for array in (one, other)]
        if kinds[0] is not kinds[1]:
            found.append(f"result {place}: {type(one)} instead of {type(other)}")
            continue
        for name in ("dtype", "shape", "strides", "offset", "queue", "allocator"):
            mine, theirs = getattr(one, name, None), getattr(other, name, None)
            if name == "strides" and mine != theirs and one.shape == other.shape:
                needed = [n != 1 and one.size for n in one.shape]
                if not any(m != t for m, t, n in zip(mine, theirs, needed, strict=True) if n):
                    if name not in _once:
                        _once.add(name)
                        print(f"note: strides of axes of one element differ: {mine}, {theirs}")
                    continue
            if mine != theirs:
                found.append(f"result {place}: {name} {mine} instead of {theirs}")
        if got.kept[place] != right.kept[place]:
            found.append(f"result {place}: other values")
    count = len(got.results)
    if got.kept[count:] != right.kept[count:]:
        found.append("a call on its results gives other values")
    for place, (one, other) in enumerate(zip(got.results, right.results, strict=True)):
        first = len(got.results) - len(got.given)  # some functions take one for the last result
        for outs, results in ((got.given, one), (right.given, other)):
            if outs and place >= first and results is not outs[place - first]:
                found.append(f"result {place} is not out")
    for name, after in got.after.items():
        if after != right.after[name]:
            found.append(f"memory of {name} differs")
        if name not in got.written and after != got.before[name]:
            found.append(f"the input {name} was changed")
    return found
