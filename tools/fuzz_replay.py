"""Random calls of all public functions: replayed ones must do what the whole road does, bit by bit.

    python tools/fuzz_replay.py --seconds 600 --seed 1
    python tools/fuzz_replay.py --seed 1 --case 4711

Each case is a call and a neighbour of it that differs in one thing: an option, a layout, what
shares memory. Both are made in turns, each time with other data, so that all but the first ones
may be replayed, and so that a kind that is told too coarsely takes the recipe of its neighbour.
Then each of them is made again from the same data with nothing recorded. Compared are types,
dtypes, shapes, strides, queues, all bytes of results and of the memory around them, inputs, which
must stay as they are, whether `out` is returned, and errors: their types and words.

The device is that of ``OCLAB_DEVICE``. The exit status is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

os.environ["OCLAB_REPLAY"] = "on"

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools

import opencl_lab as ol
from opencl_lab.discovery import select_device
from opencl_lab.runtime import replay
from opencl_lab.runtime.session import default_queue

SIZES = (1, 2, 3, 4, 8, 12, 17)  # few, as kernels are built for each length of a transform
KEYS = ("bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
SIGNALS = ("f4", "c8", "f4", "c8", "f2", "f8", "c16", "i4", "u1", "bool")
REALS = ("f4", "f4", "f2", "f8", "i2", "bool")
PIXELS = ("f4", "u1", "i2", "u2", "f2", "f8")
NORMS = (None, "backward", "ortho", "forward")
BOUNDARIES = ("constant", "nearest", "reflect", "mirror", "wrap")
ALIASES = ("same", "view", "shifted", "turned")
MARGIN = 32  # bytes around the elements of an array

PAIRS = {"sort_by_key", "topk"}
"""Functions that return two arrays, and take two as `out`."""

RECIPE: Any = getattr(replay, "Recipe", None) or replay._Recipe

_once: set[str] = set()


@dataclass(frozen=True)
class Layout:
    """How the elements of an array lie in memory.

    Parameters
    ----------
    order : tuple of int
        Axes from the slowest to the fastest.
    steps : tuple of int
        Elements from one of an axis to the next, in units of what is dense; 0 repeats one.
    odd_ones : bool
        Whether axes of one element have strides that no dense array has.
    offset : int
        Elements before the first one.
    shift : int
        Bytes by which it is not aligned.
    swapped, locked : bool
        Other byte order; read-only.
    queue : int or None
        On a device: which queue the array has.
    pooled : bool
        Whether it has an allocator.
    """

    order: tuple[int, ...]
    steps: tuple[int, ...]
    odd_ones: bool = False
    offset: int = 0
    shift: int = 0
    swapped: bool = False
    locked: bool = False
    queue: int | None = 0
    pooled: bool = False


@dataclass(frozen=True)
class Data:
    """An argument that is an array: its name, shape, dtype, layout, and what it shares."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    layout: Layout
    resident: bool
    alias: tuple[str, str] | None = None  # of which argument, and how
    wrapped: str = ""  # a list or a tuple in place of an array


@dataclass(frozen=True)
class Call:
    """One call: a function, its arrays, and its options."""

    function: str
    data: tuple[Data, ...]
    options: dict[str, Any] = field(default_factory=dict)
    out: tuple[Data, ...] = ()
    by_name: bool = False  # arrays given by keyword
    followed: bool = False  # by a call on its results, before anybody else has looked at them

    def __str__(self) -> str:
        how = " by name" * self.by_name + " followed" * self.followed
        lines = [f"{self.function} {self.options}{how}"]
        return "\n".join([*lines, *(f"    {item}" for item in (*self.data, *self.out))])


class Arrays:
    """The arrays of one call, and the memory that they lie in."""

    def __init__(self, world: World):
        self.world = world
        self.host: dict[str, np.ndarray] = {}
        self.device: dict[str, Any] = {}
        self.blocks: dict[str, Any] = {}  # flat bytes, or buffers

    def make(self, item: Data, rng: np.random.Generator) -> Any:
        """Return an array of random numbers as `item` says."""
        if item.alias is not None:
            made = self._alias(item)
            if made is not None:
                return made
        view, block = _laid(item, rng)
        self.host[item.name], self.blocks[item.name] = view, block
        if not item.resident:
            view.flags.writeable = not item.layout.locked
            return {"list": view.tolist, "scalar": view.tolist}.get(item.wrapped, lambda: view)()
        queue = self.world.queues[0]
        buffer = cl.Buffer(
            queue.context,
            cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR,
            hostbuf=block,
        )
        self.blocks[item.name] = buffer
        made = self._on_device(item, view.shape, view.strides, _start(view, block), buffer)
        self.device[item.name] = made
        return made

    def _on_device(self, item: Data, shape: Any, strides: Any, offset: int, buffer: Any) -> Any:
        """Return a device array in a buffer."""
        own = item.layout.queue
        base = self.world.queues[own or 0]
        array = cl.array.Array(
            base,
            shape,
            np.dtype(item.dtype),
            allocator=self.world.pools[own or 0] if item.layout.pooled else None,
            data=buffer,
            offset=offset,
            strides=strides,
        )
        return array if own is not None else array.with_queue(None)

    def _alias(self, item: Data) -> Any:
        """Return an array in the memory of an earlier one, or None if it does not fit."""
        other, how = item.alias  # type: ignore[misc]
        if other not in self.host or (other in self.device) != item.resident:
            return None
        source = self.device.get(other) if item.resident else self.host[other]
        if source is None or np.dtype(item.dtype) != source.dtype:
            return None
        self.blocks[item.name] = self.blocks[other]
        shape, strides = source.shape, source.strides
        if how == "turned" and len(shape) == 2:
            shape, strides = shape[::-1], strides[::-1]
        if shape != item.shape:
            return None
        if how == "same":
            self.host[item.name] = self.host[other]
            if item.resident:
                self.device[item.name] = source
            return source
        if item.resident:
            step = source.dtype.itemsize if how == "shifted" else 0
            made = self._on_device(item, shape, strides, source.offset + step, source.base_data)
            self.device[item.name] = made
            self.host[item.name] = self.host[other]
            return made
        block = self.blocks[other]
        step = source.dtype.itemsize if how == "shifted" else 0
        start = _start(source, block) + step
        _, high = np.lib.array_utils.byte_bounds(source)
        if high + step > np.lib.array_utils.byte_bounds(block)[1]:
            return None
        made = np.ndarray(shape, source.dtype, block.data, start, strides)
        made.flags.writeable = source.flags.writeable
        self.host[item.name] = made
        return made

    def bytes(self) -> dict[str, bytes]:
        """Return all memory, by argument."""
        return {name: _bytes(self.world, block) for name, block in self.blocks.items()}


def _bytes(world: World, block: Any) -> bytes:
    if isinstance(block, np.ndarray):
        return block.tobytes()
    host = np.empty(block.size, np.uint8)
    cl.enqueue_copy(world.queues[0], host, block)
    return host.tobytes()


def _start(view: np.ndarray, block: np.ndarray) -> int:
    return int(view.ctypes.data - block.ctypes.data)


def _numbers(shape: Any, dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Return random numbers of which some come more than once."""
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = max(info.min, -50), min(info.max, 50)
        if rng.random() < 0.3:
            low, high = info.min, info.max
        return rng.integers(low, high, shape, dtype, endpoint=True)
    values = rng.standard_normal(shape)
    if dtype.kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    made = np.asarray(values).astype(dtype)
    if made.size and rng.random() < 0.1:
        made.reshape(-1)[rng.integers(made.size)] = rng.choice([np.nan, np.inf, -0.0])
    return made


def _laid(item: Data, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return an array with the layout of `item`, and the block of bytes that it lies in."""
    layout = item.layout
    dtype = np.dtype(item.dtype)
    if layout.swapped and not item.resident:
        dtype = dtype.newbyteorder()
    values = _numbers(item.shape, np.dtype(item.dtype), rng)
    strides, dense = [0] * len(item.shape), dtype.itemsize
    low = high = 0
    for axis in reversed(layout.order):
        size, step = item.shape[axis], layout.steps[axis]
        strides[axis] = dense * step
        reach = strides[axis] * max(size - 1, 0)
        low, high = low + min(reach, 0), high + max(reach, 0)
        dense *= max(size, 1) * max(abs(step), 1)
        if size == 1 and layout.odd_ones:
            strides[axis] = 7 * dtype.itemsize
    lead = layout.offset * dtype.itemsize
    block = rng.integers(0, 256, MARGIN * 2 + lead + high - low + dtype.itemsize, np.uint8)
    shift = 0 if item.resident else layout.shift
    # Blocks of the host begin where NumPy puts them: at multiples of 16 bytes at least.
    view = np.ndarray(item.shape, dtype, block.data, lead - low + shift, tuple(strides))
    if values.size:
        view[...] = values  # repeated elements get the last one
    return view, block


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
        first = default_queue(device)
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
                    named = {"c": arguments.pop("c")} if "c" in arguments else {}
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
        whole = np.frombuffer(_bytes(self, array.base_data), np.uint8)
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
        return [f"error {got.error} in place of {right.error}"]
    if got.error:
        return []
    if (len(got.results), got.several) != (len(right.results), right.several):
        return ["another number of results"]
    for place, (one, other) in enumerate(zip(got.results, right.results, strict=True)):
        kinds = [cl.array.Array if on_device(array) else type(array) for array in (one, other)]
        if kinds[0] is not kinds[1]:
            found.append(f"result {place}: {type(one)} in place of {type(other)}")
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
                found.append(f"result {place}: {name} {mine} in place of {theirs}")
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


# ---------------------------------------------------------------------- drawing calls


class Drawer:
    """Draws calls by a random generator."""

    def __init__(self, world: World, rng: np.random.Generator):
        self.world = world
        self.rng = rng
        self.double = world.device.capabilities.fp64

    def chance(self, share: float) -> bool:
        """Return True in such a share of all cases."""
        return bool(self.rng.random() < share)

    def pick(self, items: Any) -> Any:
        """Return one of the items."""
        return items[int(self.rng.integers(len(items)))]

    def layout(self, ndim: int) -> Layout:
        """Draw how an array lies in memory; every second one as most arrays do."""
        order = tuple(range(ndim))
        if self.chance(0.5):
            return Layout(order, (1,) * ndim, queue=self.queue())
        if self.chance(0.5):
            order = order[::-1] if self.chance(0.6) else tuple(self.rng.permutation(ndim).tolist())
        steps = [1] * ndim
        if self.chance(0.5):
            steps = [int(self.pick((1, 1, 1, 2, 3, -1, -2))) for _ in range(ndim)]
        return Layout(
            order,
            tuple(steps),
            odd_ones=self.chance(0.2),
            offset=int(self.pick((0, 0, 1, 4))),
            shift=int(self.pick((0, 0, 0, 1))),
            swapped=self.chance(0.1),
            locked=self.chance(0.1),
            queue=self.queue(),
            pooled=self.chance(0.1),
        )

    def queue(self) -> int | None:
        """Draw the queue of a device array."""
        return self.pick((0, 0, 0, 0, 0, 1, None))

    def data(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        resident: bool,
        before: tuple[Data, ...] = (),
        share: float = 0.25,
        out: bool = False,
    ) -> Data:
        """Draw an array; a share of them lies in the memory of one of those `before`."""
        layout = self.layout(len(shape))
        if resident or out:
            steps = tuple((abs(step) if resident else step) or 1 for step in layout.steps)
            layout = replace(layout, steps=steps)
        elif self.chance(0.05) and shape:  # one element stands for many
            layout = replace(layout, steps=(0, *layout.steps[1:]))
        if resident:
            layout = replace(layout, swapped=False, locked=False, shift=0)
        alias = None
        if before and self.chance(share):
            alias = (self.pick(before).name, self.pick(ALIASES))
        wrapped = "list" if not resident and not out and self.chance(0.03) else ""
        return Data(name, shape, dtype, layout, resident, alias, wrapped)

    def shape(self, least: int = 1, most: int = 3) -> tuple[int, ...]:
        """Draw a shape of so many dimensions."""
        ndim = int(self.rng.integers(least, most + 1))
        sizes = tuple(int(self.pick(SIZES)) for _ in range(ndim))
        if ndim and self.chance(0.03):
            sizes = (*sizes[:-1], 0)
        return sizes

    def axis(self, ndim: int) -> int:
        """Draw an axis."""
        return int(self.rng.integers(-ndim, ndim)) if ndim else 0

    def dtype(self, names: Any) -> str:
        """Draw a dtype that the device can transform."""
        chosen = str(self.pick(names))
        if not self.double and chosen in ("f8", "c16", "i4", "u1", "bool", "i2"):
            chosen = "f4"
        return chosen

    def options(self, **choices: Any) -> dict[str, Any]:
        """Return some of the options, each drawn by its function."""
        return {name: draw() for name, draw in choices.items() if self.chance(0.5)}

    def call(self) -> Call:
        """Draw a call, which may be wrong."""
        maker, names = self.pick(MAKERS)
        resident = self.chance(0.6)
        call: Call = maker(self, self.pick(names), resident)
        options = dict(call.options)
        queueless = any(item.resident and item.layout.queue is None for item in call.data)
        if queueless or self.chance(0.2):
            options["queue"] = self.pick((0, 0, 1, None))
        if self.chance(0.04):
            options[self.pick(("axis", "norm", "no_such", "axes", "n"))] = self.pick((9, "x", -7))
        by_name, followed = self.chance(0.3), self.chance(0.3)
        return replace(call, options=options, by_name=by_name, followed=followed)

    def with_out(self, call: Call, right: Outcome) -> Call:
        """Return the call with an out that fits the results of a call without one, or nearly."""
        made: list[Data] = []
        several = call.function in PAIRS
        results = right.results if several else right.results[-1:]
        for place, result in enumerate(results):
            shape, dtype = tuple(result.shape), result.dtype.str[1:]
            resident = on_device(result)
            if self.chance(0.03):
                shape = (*shape, 2)
            if self.chance(0.03):
                dtype = "i2"
            if self.chance(0.02):
                resident = not resident
            name = ("out_keys", "out_values")[place] if several else "out"
            before = tuple(item for item in (*call.data, *made) if item.resident == resident)
            made.append(self.data(name, shape, dtype, resident, before, 0.4, out=True))
        return replace(call, out=tuple(made))

    def neighbour(self, call: Call) -> Call:
        """Return a call that differs in one thing."""
        data = list(call.data)
        place = int(self.rng.integers(len(data)))
        item = data[place]
        kind = self.pick(("layout", "alias", "alias", "option", "queue", "dtype", "out", "out"))
        if len(data) > 1 and self.chance(0.4):
            kind, place = "alias", len(data) - 1
            item = data[place]
        if kind == "alias" and place:
            how = None if item.alias else (data[0].name, self.pick(ALIASES))
            data[place] = replace(item, alias=how)
        elif kind == "option":
            maker = next(make for make, names in MAKERS if call.function in names)
            other = maker(self, call.function, item.resident)
            options = dict(call.options)
            for name in other.options:
                if self.chance(0.5):
                    options[name] = other.options[name]
            return replace(call, options=options)
        elif kind == "queue":
            data[place] = replace(item, layout=replace(item.layout, queue=self.queue()))
        elif kind == "dtype":
            same = [
                name for name in KEYS if np.dtype(name).itemsize == np.dtype(item.dtype).itemsize
            ]
            if same:
                data[place] = replace(item, dtype=str(self.pick(same)))
        elif kind == "out" and call.out:
            outs = list(call.out)
            chosen = int(self.rng.integers(len(outs)))
            one = outs[chosen]
            outs[chosen] = self.data(
                one.name, one.shape, one.dtype, one.resident, call.data, 0.6, out=True
            )
            return replace(call, out=tuple(outs))
        else:
            data[place] = self.data(item.name, item.shape, item.dtype, item.resident)
        return replace(call, data=tuple(data))


def _sorts(d: Drawer, name: str, resident: bool) -> Call:
    shape = (int(d.pick((70, 300, 1000, 5000))),) if d.chance(0.2) else d.shape()
    key = d.dtype(KEYS)
    keys = d.data("keys" if name == "sort_by_key" else "a", shape, key, resident)
    data = [keys]
    if name == "sort_by_key":
        data.append(d.data("values", shape, d.dtype(KEYS), resident, (keys,)))
    options = d.options(
        axis=lambda: d.pick((None, d.axis(len(shape)), d.axis(len(shape)))),
        descending=lambda: d.chance(0.5),
    )
    return Call(name, tuple(data), options)


def _topk(d: Drawer, name: str, resident: bool) -> Call:
    shape = (int(d.pick((70, 300, 1000, 20_000))),) if d.chance(0.3) else d.shape()
    a = d.data("a", shape, d.dtype(KEYS), resident)
    options = d.options(
        axis=lambda: d.pick((None, d.axis(len(shape)), d.axis(len(shape)))),
        largest=lambda: d.chance(0.5),
        algorithm=lambda: d.pick(("auto", "radix-select", "sort")),
    )
    return Call(name, (a,), {**options, "k": int(d.pick((0, 1, 2, 3, 5, 40)))})


def _searchsorted(d: Drawer, name: str, resident: bool) -> Call:
    key = d.dtype(KEYS)
    a = d.data("a", (int(d.pick((0, 1, 5, 70, 300))),), key, resident)
    v = d.data("v", d.shape(), key if d.chance(0.8) else d.dtype(KEYS), resident, (a,))
    return Call(name, (a, v), d.options(side=lambda: d.pick(("left", "right", "up"))))


def _gemm(d: Drawer, name: str, resident: bool) -> Call:
    m, n, k = (int(d.pick((0, 1, 3, 4, 8, 17, 30, 64) if d.chance(0.1) else (1, 4, 8, 17)))
               for _ in range(3))  # fmt: skip
    if d.chance(0.4):
        m = n = k = int(d.pick((4, 8, 17)))  # all may share memory
    dtype = "f8" if d.double and d.chance(0.3) else "f4"
    turned = {key: d.pick((True, "T", 1)) for key in ("trans_a", "trans_b") if d.chance(0.3)}
    a = d.data("a", (k, m) if "trans_a" in turned else (m, k), dtype, resident)
    b = d.data("b", (n, k) if "trans_b" in turned else (k, n), dtype, resident, (a,))
    data: tuple[Data, ...] = (a, b)
    options = {**turned, **d.options(alpha=lambda: d.pick((1, 0, 2.5, -1.0, True)))}
    if d.chance(0.4):
        data = (a, b, d.data("c", (m, n), dtype, resident, data))
        options["beta"] = d.pick((0.0, 1, -0.5))
    return Call(name, data, options)


def _conv2d(d: Drawer, name: str, resident: bool) -> Call:
    last = d.chance(0.2)
    lead = d.shape(0, 1)
    shape = (*lead, *(int(d.pick((1, 5, 16, 30))) for _ in range(2)), *((3,) if last else ()))
    image = d.data("image", shape, d.dtype(PIXELS), resident)
    small = tuple(int(d.pick((1, 2, 3, 3, 5))) for _ in range(2))
    there = resident and d.chance(0.3)
    kind = "f4" if there and image.dtype != "f8" else d.pick(("f4", "f8", "i4", "u1"))
    weights = d.data("weights", small, kind, there, (image,) if there == resident else ())
    if weights.wrapped or not d.double:
        weights = replace(weights, wrapped="", dtype="f4" if not d.double else weights.dtype)
    options = d.options(
        mode=lambda: d.pick(("same", "valid", "full")),
        boundary=lambda: d.pick(BOUNDARIES),
        cval=lambda: d.pick((0, 1.5, -2)),
        flip=lambda: d.chance(0.5),
        saturate=lambda: d.chance(0.5),
    )
    if last:
        options["channels_last"] = True
    return Call(name, (image, weights), options)


def _one_axis(d: Drawer, name: str, resident: bool) -> Call:
    shape = d.shape(0 if d.chance(0.05) else 1)
    real = name in ("rfft", "ihfft") and d.chance(0.97)
    dtype = d.dtype(REALS if real else SIGNALS)
    cosine = name.lstrip("i") in ("dct", "dst")
    array = d.data("x" if cosine or name == "dft" else "a", shape, dtype, resident)
    options = d.options(axis=lambda: d.axis(len(shape)), norm=lambda: d.pick(NORMS))
    if name == "dft":
        options |= d.options(inverse=lambda: d.chance(0.5))
    elif d.chance(0.5):
        options["n"] = int(d.pick(SIZES))
    if cosine:
        options |= d.options(type=lambda: d.pick((1, 2, 3, 4)), orthogonalize=lambda: d.chance(0.5))
    return Call(name, (array,), options)


def _several_axes(d: Drawer, name: str, resident: bool) -> Call:
    shape = d.shape(2 if name.endswith("2") or d.chance(0.8) else 0)
    real = name in ("rfft2", "rfftn", "ihfft2", "ihfftn") and d.chance(0.97)
    dtype = d.dtype(REALS if real else SIGNALS)
    scipy_s = name.startswith(("hfft", "ihfft")) or name.lstrip("i").startswith(("dct", "dst"))
    array = d.data("x" if scipy_s else "a", shape, dtype, resident)
    options = d.options(norm=lambda: d.pick(NORMS))
    count = 2 if name.endswith("2") else int(d.rng.integers(0, len(shape) + 1))
    if d.chance(0.5) and count <= len(shape):
        options["axes"] = tuple(d.rng.permutation(len(shape))[:count].tolist())
        if d.chance(0.1) and count:
            options["axes"] = (options["axes"][0],) * count
    elif d.chance(0.5):
        count = 2 if name.endswith("2") else len(shape)
    if d.chance(0.4):
        options["s"] = tuple(int(d.pick((*SIZES, -1))) for _ in range(count))
    if name.lstrip("i").startswith(("dct", "dst")):
        options |= d.options(type=lambda: d.pick((1, 2, 3, 4)))
    return Call(name, (array,), options)


def _shift(d: Drawer, name: str, resident: bool) -> Call:
    shape = d.shape(0)
    array = d.data("x", shape, d.dtype((*KEYS, "c8", "c16")), resident)
    options = d.options(
        axes=lambda: d.pick((None, d.axis(len(shape)), tuple(range(len(shape))), (0,), (0, 0)))
    )
    return Call(name, (array,), options)


def _convolve(d: Drawer, name: str, resident: bool) -> Call:
    shape = d.shape(1, 2)
    other = tuple(int(d.pick((1, 2, 3, 5))) for _ in shape)
    a = d.data("a", shape, d.dtype(SIGNALS), resident)
    b = d.data("b", shape if d.chance(0.3) else other, d.dtype(SIGNALS), resident, (a,))
    return Call(name, (a, b), d.options(mode=lambda: d.pick(("full", "same", "valid"))))


def _power(d: Drawer, name: str, resident: bool) -> Call:
    shape = d.shape(1, 2)
    axis = d.axis(len(shape))
    options: dict[str, Any] = {"axis": axis} | d.options(
        fs=lambda: d.pick((1, 44100, 0.5)), scaling=lambda: d.pick(("density", "spectrum"))
    )
    if d.chance(0.4):
        options["window"] = np.hanning(shape[axis] + 2)[1:-1]
    return Call(name, (d.data("x", shape, d.dtype(REALS), resident),), options)


FOURIER = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
COSINE = ("dct", "idct", "dst", "idst")
MAKERS: tuple[tuple[Callable[[Drawer, str, bool], Call], tuple[str, ...]], ...] = (
    (_sorts, ("sort", "argsort", "sort_by_key")),
    (_topk, ("topk",)),
    (_searchsorted, ("searchsorted",)),
    (_gemm, ("gemm",)),
    (_conv2d, ("conv2d",)),
    (_one_axis, (*FOURIER, "dft")),
    (_one_axis, (*COSINE, "dft")),
    (_several_axes, tuple(f"{name}{end}" for name in FOURIER for end in ("2", "n"))),
    (_several_axes, tuple(f"{name}n" for name in COSINE)),
    (_shift, ("fftshift", "ifftshift")),
    (_convolve, ("convolve",)),
    (_power, ("power_spectrum",)),
)


def takes_out(name: str) -> bool:
    """Return whether a function has a parameter ``out``."""
    return "out" in inspect.signature(function_of(name)).parameters


def check(world: World, seed: int, case: int) -> list[str]:
    """Make the calls of one case; return what is wrong."""
    rng = np.random.default_rng([seed, case])
    drawer = Drawer(world, rng)
    call = drawer.call()
    if takes_out(call.function) and drawer.chance(0.5):
        replay.forget()
        plain = world.perform(call, [seed, case, 99])
        if plain.error is None:
            call = drawer.with_out(call, plain)
    other = drawer.neighbour(call)
    world.counts[call.function] += 1
    sequence = [other, call, other, call, call]
    replay.forget()
    recipes = []
    run = RECIPE.run

    def counting(self: Any, *args: Any, **kwargs: Any) -> Any:
        recipes.append(self)
        return run(self, *args, **kwargs)

    RECIPE.run = counting
    try:
        outcomes: list[Outcome | None] = []
        for place, one in enumerate(sequence):
            outcomes.append(world.perform(one, [seed, case, place]))
            if place == 2 and drawer.chance(0.5):
                outcomes[2] = None  # the next call may use its memory
    finally:
        RECIPE.run = run
    world.replayed[call.function] += bool(recipes)
    last = outcomes[-1]
    world.errors[call.function] += last is not None and last.error is not None
    found = []
    for place, (one, got) in enumerate(zip(sequence, outcomes, strict=True)):
        if got is None:
            continue
        late = tuple(world.content(array) for array in got.results)
        if late != got.kept[: len(late)]:
            found.append(f"call {place}: its result was changed by later calls\n{one}")
        replay.forget()
        right = world.perform(one, [seed, case, place])
        texts = "; ".join(dict.fromkeys(differences(one, got, right)))
        if texts:
            found.append(f"call {place}: {texts}\n{one}")
    return found


def main() -> int:
    """Run cases until the time is over, or one of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="this one alone")
    parser.add_argument("--trace", action="store_true", help="print each case before it is tried")
    parser.add_argument("--first", type=int, default=0, help="the case to begin with")
    options = parser.parse_args()
    world = World()
    end = time.monotonic() + options.seconds
    case, findings = options.first if options.case is None else options.case, 0
    try:
        while options.case == case or (options.case is None and time.monotonic() < end):
            if options.trace:
                print(f"--case {case}", flush=True)
            found = check(world, options.seed, case)
            if found:
                findings += 1
                print(f"--seed {options.seed} --case {case}:", *found, sep="\n  ", flush=True)
            case += 1
    except KeyboardInterrupt:
        print("interrupted")
    total = sum(world.counts.values())
    print(f"{world.device.name}: {total} cases, {findings} with findings; by function:")
    for name in sorted(world.counts):
        print(
            f"  {name:15} {world.counts[name]:6}, replayed {world.replayed[name]:6}, "
            f"errors {world.errors[name]:6}"
        )
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
