"""Random calls of all public functions: right, and equal bit by bit whether replayed or not.

    python tools/fuzz.py --seconds 600 --seed 1
    python tools/fuzz.py --seed 1 --case 4711

Each case is a call that `oclab soak` may make, at small sizes, with any layout of its arrays, and a
neighbour that differs in one thing: an option, a layout, a limit of the device's memory, or which
arrays share memory. Both are made in turns, each time with different data, so that all but the
first ones may be replayed, and a call key that is too coarse would replay the neighbour's call.
Then each is made again with the same data and nothing recorded. Types, dtypes, shapes, strides,
queues, all bytes of results and of the memory around them, inputs, which must not change, whether
`out` is returned, and errors, with their messages, are compared. Results of calls whose arrays do
not share memory, with no option that the soak does not know, must be right, too.

The device is that of ``OCLAB_DEVICE``. The exit status is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import inspect
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

os.environ["OCLAB_REPLAY"] = "on"  # whatever the environment says

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools

import opencl_lab as ol
from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.soak.cases import Case, Draw, Drawer
from opencl_lab.ops.gemm import functions
from opencl_lab.ops.gemm.host import panels
from opencl_lab.runtime import replay

MARGIN = 64
"""Bytes behind the elements of an array."""
LIMIT = "OCLAB_DEVICE_BYTES"
SIZES = (1, 2, 3, 4, 8, 12, 17, 40)
"""Few, as kernels are built for each length of a transform."""
ALIASES = ("same", "view", "shifted", "turned")
TYPES = ("bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")
RECORDED: Any = replay.RecordedCall

OPTIONS: dict[str, Callable[[Drawer, int], Any]] = {
    "axis": lambda d, ndim: d.pick((None, *range(-ndim, ndim), 9)),
    "axes": lambda d, ndim: d.pick((None, (0,), (0, 0), tuple(range(ndim))[::-1], -1)),
    "n": lambda d, ndim: d.pick((*SIZES, -7)),
    "s": lambda d, ndim: tuple(d.pick((*SIZES, -1)) for _ in range(ndim)),
    "norm": lambda d, ndim: d.pick((None, "backward", "ortho", "forward", "x")),
    "type": lambda d, ndim: d.pick((1, 2, 3, 4)),
    "orthogonalize": lambda d, ndim: d.chance(0.5),
    "descending": lambda d, ndim: d.chance(0.5),
    "largest": lambda d, ndim: d.chance(0.5),
    "side": lambda d, ndim: d.pick(("left", "right", "up")),
    "k": lambda d, ndim: d.pick((0, 1, 2, 3, 5, 40)),
    "alpha": lambda d, ndim: d.pick((1, 0, 2.5, -1.0, True, 1j)),
    "activation": lambda d, ndim: d.pick((None, "relu", "gelu")),
    "trans_a": lambda d, ndim: d.pick((True, "T", 1, "C", "N")),
    "trans_b": lambda d, ndim: d.pick((True, "T", 1, "C", "N")),
    "algorithm": lambda d, ndim: d.pick(("auto", "hybrid", "packed", "fft", "sort", "x")),
    "mode": lambda d, ndim: d.pick(("same", "valid", "full")),
    "boundary": lambda d, ndim: d.pick(("constant", "nearest", "reflect", "mirror", "wrap")),
    "cval": lambda d, ndim: d.pick((0, 1.5, -2)),
    "flip": lambda d, ndim: d.chance(0.5),
    "saturate": lambda d, ndim: d.chance(0.5),
    "fs": lambda d, ndim: d.pick((1, 44100, 0.5)),
    "scaling": lambda d, ndim: d.pick(("density", "spectrum")),
    "queue": lambda d, ndim: d.pick((0, 0, 1, None)),
    "no_such": lambda d, ndim: 1,
}
"""Values of the options of all functions by name, some of them wrong; queues by number."""


@dataclass(frozen=True)
class Place:
    """How an array lies in memory, and what it shares with another one."""

    resident: bool
    order: tuple[int, ...] = ()
    """Axes from the slowest to the fastest."""
    steps: tuple[int, ...] = ()
    """Elements from one of an axis to the next, in units of what is dense; 0 repeats one."""
    odd_ones: bool = False
    """Whether axes of one element have strides that no dense array has."""
    offset: int = 0
    shift: int = 0
    """Bytes by which it is not aligned."""
    swapped: bool = False
    locked: bool = False
    queue: int | None = 0
    pooled: bool = False
    alias: tuple[str, str] | None = None
    dtype: str = ""
    """If it is not that of the data."""
    listed: bool = False


@dataclass(frozen=True)
class Call:
    """A public function with arrays by parameter, and options."""

    name: str
    draw: Draw
    places: dict[str, Place]
    changed: dict[str, Any] = field(default_factory=dict)
    """Options besides those of the case."""
    out: tuple[tuple[tuple[int, ...], Place], ...] = ()
    """Shapes and places; the places have types."""
    by_name: bool = False
    followed: bool = False
    """By a call on its results, before anybody else has looked at them."""
    limit: str = ""


def function_of(name: str) -> Callable[..., Any]:
    """Return a public function."""
    return getattr(ol.fft if name in ol.fft.__all__ else ol, name)


def arrays_of(case: Case) -> dict[str, Any]:
    """Return the arrays of a case by parameter."""
    names = inspect.signature(case.function).parameters
    options = {name: value for name, value in case.options.items() if hasattr(value, "shape")}
    return {**dict(zip(names, case.arrays, strict=False)), **options}


def on_device(array: Any) -> bool:
    """Return whether it is a device array, of pyopencl's class or one that is made of it."""
    return isinstance(array, cl.array.Array)


# --------------------------------------------------------------------------- drawing


def draw_place(d: Drawer, ndim: int, resident: bool, before: Any = (), out: bool = False) -> Place:
    """Draw how an array lies in memory; a share of them in that of one of those `before`."""
    place = Place(resident, tuple(range(ndim)), (1,) * ndim, queue=d.pick((0, 0, 0, 0, 1, None)))
    if d.chance(0.5):
        axes, moved = list(range(ndim)), []
        while axes:
            moved.append(axes.pop(d.pick((-1, d.pick(range(len(axes)))))))
        plain = resident or out
        steps = (1, 1, 1, 2, 3) if resident else (1, 1, 1, 2, 3, -1, -2, *(() if plain else (0,)))
        place = replace(
            place,
            order=tuple(moved),
            steps=tuple(d.pick(steps) for _ in range(ndim)),
            odd_ones=d.chance(0.2),
            offset=d.pick((0, 0, 1, 4)),
            shift=0 if resident else d.pick((0, 0, 0, 1)),
            swapped=not resident and d.chance(0.1),
            locked=not resident and d.chance(0.1),
            pooled=d.chance(0.1),
            listed=not plain and d.chance(0.05),
        )
    if before and d.chance(0.5 if out else 0.3):
        place = replace(place, alias=(d.pick(list(before)), d.pick(ALIASES)))
    return place


def draw_call(d: Drawer, number: int) -> Call:
    """Draw a call, which may be wrong."""
    draw = d.draw(number)
    case = draw(0)
    resident = d.chance(0.5)
    places: dict[str, Place] = {}
    for name, array in arrays_of(case).items():
        there = resident and (name != "weights" or d.chance(0.3))
        same = [other for other, place in places.items() if place.resident == there]
        places[name] = draw_place(d, np.ndim(array), there, same)
    call = Call(case.function.__name__, draw, places, {}, (), d.chance(0.2), d.chance(0.3))
    if any(place.resident and place.queue is None for place in places.values()):
        call = replace(call, changed={"queue": 0})
    for _ in range(d.pick((0, 0, 1, 2))):
        call = with_option(d, call)
    return replace(call, limit=str(d.pick((800, 3000, 20_000))) if d.chance(0.1) else "")


def with_option(d: Drawer, call: Call) -> Call:
    """Return the call with another value of one of its options."""
    known = inspect.signature(function_of(call.name)).parameters
    name = d.pick([name for name in OPTIONS if name in known or d.chance(0.02)])
    ndim = max(len(place.order) for place in call.places.values())
    return replace(call, changed={**call.changed, name: OPTIONS[name](d, ndim)})


def with_out(d: Drawer, call: Call, results: tuple[Any, ...]) -> Call:
    """Return the call with an out that fits the results of a call without one, or nearly."""
    made = []
    for result in results:
        shape, dtype = tuple(result.shape), np.dtype(result.dtype).str[1:]
        shape = (*shape, 2) if d.chance(0.03) else shape
        resident = on_device(result) != d.chance(0.02)
        before = [name for name, place in call.places.items() if place.resident == resident]
        place = draw_place(d, len(shape), resident, before, out=True)
        made.append((shape, replace(place, dtype="i2" if d.chance(0.03) else dtype)))
    return replace(call, out=tuple(made))


def neighbour(d: Drawer, call: Call) -> Call:
    """Return a call that differs in one thing."""
    places = dict(call.places)
    name = d.pick(list(places))
    place = places[name]
    kind = d.pick(
        ("layout", "alias", "alias", "option", "option", "queue", "dtype", "out", "limit")
    )
    if kind == "out" and call.out:
        at = d.pick(range(len(call.out)))
        shape, old = call.out[at]
        new = draw_place(d, len(shape), old.resident, list(places), out=True)
        new = replace(new, dtype=old.dtype)
        return replace(call, out=(*call.out[:at], (shape, new), *call.out[at + 1 :]))
    if kind == "option":
        return with_option(d, call)
    if kind == "limit":
        return replace(call, limit="" if call.limit else "3000")
    if kind == "alias" and len(places) > 1:
        *before, name = places
        alias = (d.pick(before), d.pick(ALIASES))
        places[name] = replace(places[name], alias=None if places[name].alias else alias)
    elif kind == "queue":
        places[name] = replace(place, queue=d.pick((0, 1, None)))
    elif kind == "dtype":
        places[name] = replace(place, dtype=d.pick(TYPES))
    else:
        places[name] = draw_place(d, len(place.order), place.resident)
    return replace(call, places=places)


# ----------------------------------------------------------------------- making calls


class Memory:
    """The arrays of one call, and the blocks of bytes that they lie in."""

    def __init__(self, world: World, rng: np.random.Generator):
        self.world, self.rng = world, rng
        self.given: dict[str, Any] = {}
        self.views: dict[str, np.ndarray] = {}
        self.blocks: dict[str, np.ndarray] = {}
        self.buffers: dict[int, Any] = {}

    def put(self, name: str, values: np.ndarray, place: Place) -> Any:
        """Return an array with these values, as its place says."""
        view, block = self._shared(values, place) or self._laid(values, place)
        self.views[name], self.blocks[name] = view, block
        if place.alias and place.alias[1] == "same" and view is self.views.get(place.alias[0]):
            made = self.given[place.alias[0]]
        elif place.resident:
            made = self._on_device(view, block, place)
        else:
            view.flags.writeable = not place.locked
            made = view.tolist() if place.listed else view
        self.given[name] = made
        return made

    def _on_device(self, view: np.ndarray, block: np.ndarray, place: Place) -> Any:
        queue, pool = self.world.queues[place.queue or 0], self.world.pools[place.queue or 0]
        if id(block) not in self.buffers:
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            self.buffers[id(block)] = cl.Buffer(queue.context, flags, hostbuf=block)
        made = cl.array.Array(
            queue, view.shape, view.dtype, allocator=pool if place.pooled else None,
            data=self.buffers[id(block)], strides=view.strides,
            offset=view.ctypes.data - block.ctypes.data,
        )  # fmt: skip
        return made if place.queue is not None else made.with_queue(None)

    def _shared(self, values: np.ndarray, place: Place) -> Any:
        """Return an array in the memory of an earlier one, or None if it does not fit."""
        other, how = place.alias or ("", "")
        if other not in self.views or values.dtype != self.views[other].dtype:
            return None
        view, block = self.views[other], self.blocks[other]
        if (id(block) in self.buffers) != place.resident:
            return None
        turned = view.T if how == "turned" else view
        if turned.shape != values.shape:
            return None
        start = view.ctypes.data - block.ctypes.data + view.itemsize * (how == "shifted")
        if how == "same":
            return view, block
        return np.ndarray(turned.shape, view.dtype, block.data, start, turned.strides), block

    def _laid(self, values: np.ndarray, place: Place) -> Any:
        dtype = values.dtype.newbyteorder() if place.swapped else values.dtype
        strides, dense = [0] * values.ndim, dtype.itemsize
        low = high = 0
        for axis in reversed(place.order):
            size, step = values.shape[axis], place.steps[axis]
            strides[axis] = dense * step
            reach = strides[axis] * max(size - 1, 0)
            low, high = low + min(reach, 0), high + max(reach, 0)
            dense *= max(size, 1) * max(abs(step), 1)
            if size == 1 and place.odd_ones:
                strides[axis] = 7 * dtype.itemsize
        lead = place.offset * dtype.itemsize - low + place.shift
        block = self.rng.integers(0, 256, lead + high + dtype.itemsize + MARGIN, np.uint8)
        view = np.ndarray(values.shape, dtype, block.data, lead, tuple(strides))
        if values.size:
            view[...] = values  # repeated elements get the last one
        return view, block

    def bytes(self) -> dict[str, bytes]:
        """Return all memory, by argument."""
        return {
            name: self.world.bytes_of(self.buffers.get(id(block), block))
            for name, block in self.blocks.items()
        }


@dataclass
class Outcome:
    """What a call gave."""

    error: tuple[str, str] | None
    results: tuple[Any, ...]
    given: tuple[Any, ...]
    before: dict[str, bytes]
    after: dict[str, bytes]
    kept: tuple[bytes, ...]
    written: set[str]
    wrong: str = ""


class World:
    """The queues, and what counts calls."""

    def __init__(self) -> None:
        self.device = select_device()
        first = self.device.queue()
        self.queues = [first, cl.CommandQueue(first.context)]
        allocators = map(pyopencl.tools.ImmediateAllocator, self.queues)
        self.pools = [pyopencl.tools.MemoryPool(allocator) for allocator in allocators]
        self.counts: Counter[str] = Counter()
        self.replayed: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    def bytes_of(self, block: Any) -> bytes:
        """Return the bytes of a block of the host, or of a buffer."""
        if isinstance(block, np.ndarray):
            return block.tobytes()
        host = np.empty(block.size, np.uint8)
        cl.enqueue_copy(self.queues[0], host, block)
        return host.tobytes()

    def content(self, array: Any) -> np.ndarray:
        """Return a copy of a result, on the host and in C order."""
        if not on_device(array):
            return np.array(array, order="C")
        if not array.size:
            return np.empty(array.shape, array.dtype)
        if array.flags.c_contiguous and not array.offset:  # its memory may come from a pool
            return array.get(self.queues[0])
        whole = bytearray(self.bytes_of(array.base_data))
        return np.ndarray(array.shape, array.dtype, whole, array.offset, array.strides).copy()

    def finish(self) -> None:
        """Wait for all queues."""
        for queue in self.queues:
            queue.finish()

    def perform(self, call: Call, seed: int) -> Outcome:
        """Make a call with the data of a seed."""
        memory = Memory(self, np.random.default_rng(seed))
        case, seldom = call.draw(seed), call.draw(seed // 4)
        arrays = arrays_of(case)
        # Values of weights belong to the kind of a call: they stay for some calls.
        arrays |= {name: a for name, a in arrays_of(seldom).items() if name == "weights"}
        for name, place in call.places.items():
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                memory.put(name, arrays[name].astype(place.dtype or arrays[name].dtype), place)
        for at, (shape, place) in enumerate(call.out):
            memory.put(f"out {at}", memory.rng.integers(0, 9, shape).astype(place.dtype), place)
        out = tuple(memory.given[f"out {at}"] for at in range(len(call.out)))
        options = {**case.options, **call.changed}
        options |= {name: memory.given[name] for name in options if name in memory.given}
        if out:
            options["out"] = out if len(out) > 1 else out[0]
        if options.get("queue") is not None:
            options["queue"] = self.queues[options["queue"]]
        names = [name for name in call.places if name not in options]
        named = {name: memory.given[name] for name in names if call.by_name}
        self.finish()
        before = memory.bytes()
        error, results = None, ()
        os.environ[LIMIT] = call.limit
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                arguments = [] if call.by_name else [memory.given[name] for name in names]
                result = case.function(*arguments, **named, **options)
            results = result if isinstance(result, tuple) else (result,)
        except Exception as problem:  # errors are results, too
            error = type(problem).__name__, str(problem)
        followed = [one for one in results if call.followed and on_device(one) and one.queue]
        followers = [ol.fft.fftshift(one) for one in followed]
        self.finish()
        contents = [self.content(array) for array in (*results, *followers)]
        targets = {id(memory.blocks[f"out {at}"]) for at in range(len(out))}
        written = {name for name, block in memory.blocks.items() if id(block) in targets}
        wrong = "" if error else self._judged(call, case, contents[: len(results)])
        kept = tuple(one.tobytes() for one in contents)
        return Outcome(error, results, out, before, memory.bytes(), kept, written, wrong)

    def _judged(self, call: Call, case: Case, results: list[np.ndarray]) -> str:
        places = [*call.places.values(), *(place for _, place in call.out)]
        own = not any(place.alias or 0 in place.steps for place in places)
        own &= not any(place.dtype or place.listed for place in call.places.values())
        if not own or set(call.changed) - {"queue", "algorithm"} or call.name == "conv2d":
            return ""  # of a filter, the case has other weights
        difference = case.judge(tuple(one.astype(one.dtype.newbyteorder("=")) for one in results))
        return "" if difference.ok else f"wrong: {difference}"


# --------------------------------------------------------------------------- checking


def differences(got: Outcome, right: Outcome) -> list[str]:
    """Return in which ways two outcomes differ."""
    if got.error != right.error:
        return [f"error {got.error} instead of {right.error}"]
    if len(got.results) != len(right.results):
        return ["another number of results"]
    found = [got.wrong] * bool(got.wrong)
    for place, (one, other) in enumerate(zip(got.results, right.results, strict=True)):
        kinds = [cl.array.Array if on_device(array) else type(array) for array in (one, other)]
        if kinds[0] is not kinds[1]:
            found.append(f"result {place}: {type(one)} instead of {type(other)}")
            continue
        for name in ("dtype", "shape", "strides", "offset", "queue", "allocator"):
            mine, theirs = getattr(one, name, None), getattr(other, name, None)
            if name == "strides" and one.shape == other.shape:  # those of one element do not count
                mine, theirs = (
                    [step for step, n in zip(steps, one.shape, strict=True) if n != 1 and one.size]
                    for steps in (mine, theirs)
                )
            if mine != theirs:
                found.append(f"result {place}: {name} {mine} instead of {theirs}")
        if got.kept[place] != right.kept[place]:
            found.append(f"result {place}: other values")
        first = len(got.results) - len(got.given)  # some functions take one for the last result
        for outcome, result in ((got, one), (right, other)):
            if outcome.given and place >= first and result is not outcome.given[place - first]:
                found.append(f"result {place} is not out")
    count = len(got.results)
    if got.kept[count:] != right.kept[count:]:
        found.append("a call on its results gives other values")
    for name, after in got.after.items():
        if after != right.after[name]:
            found.append(f"memory of {name} differs")
        if name not in got.written and after != got.before[name]:
            found.append(f"the input {name} was changed")
    return found


def check(world: World, seed: int, number: int) -> list[str]:
    """Make the calls of one case; return what is wrong."""
    d = Drawer(world.device, np.random.default_rng([seed, number]), SIZES)
    call = draw_call(d, number)
    seeds = range(10_000 * seed + 40 * number, 1 << 62)
    if "out" in inspect.signature(function_of(call.name)).parameters and d.chance(0.5):
        replay.forget()
        plain = world.perform(call, seeds[9])
        call = call if plain.error else with_out(d, call, plain.results)
    other = neighbour(d, call)
    world.counts[call.name] += 1
    sequence = [other, call, other, call, call]
    replay.forget()
    replays = []
    run = RECORDED.run

    def counting(self: Any, *args: Any, **kwargs: Any) -> Any:
        replays.append(self)
        return run(self, *args, **kwargs)

    RECORDED.run = counting
    outcomes: list[Outcome | None] = []
    try:
        for place, one in enumerate(sequence):
            outcomes.append(world.perform(one, seeds[place]))
            if place == 2 and d.chance(0.5):
                outcomes[2] = None  # the next call may use its memory
    finally:
        RECORDED.run = run
    world.replayed[call.name] += bool(replays)
    world.errors[call.name] += bool(outcomes[-1] and outcomes[-1].error)
    found = []
    for place, (one, got) in enumerate(zip(sequence, outcomes, strict=True)):
        if got is None:
            continue
        late = [world.content(array).tobytes() for array in got.results]
        texts = ["its result was changed by later calls"] * (late != list(got.kept[: len(late)]))
        replay.forget()
        texts += differences(got, world.perform(one, seeds[place]))
        if texts:
            found.append(f"call {place}: {'; '.join(dict.fromkeys(texts))}\n  {one}, {one.draw(0)}")
    return found


def main() -> int:
    """Check cases until the time is over, or one alone; print what is wrong, and how many."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="this one alone")
    parser.add_argument("--first", type=int, default=0, help="the case to begin with")
    given = parser.parse_args()
    functions.LARGE = panels.SMALL = 0  # small matrices go tile by tile where a limit says so
    world, findings = World(), 0
    end, case = time.monotonic() + given.seconds, given.first
    with suppress(KeyboardInterrupt):
        while given.case is not None or time.monotonic() < end:
            number = case if given.case is None else given.case
            found = check(world, given.seed, number)
            if found:
                findings += 1
                print(f"--seed {given.seed} --case {number}:", *found, sep="\n  ", flush=True)
            case += 1
            if given.case is not None:
                break
    total = world.counts.total()
    print(f"{world.device.name}: {total} cases, {findings} with findings; by name:")
    for name, count in sorted(world.counts.items()):
        replayed, errors = world.replayed[name], world.errors[name]
        print(f"  {name:15} {count:6}, replayed {replayed:6}, errors {errors:6}")
    return int(findings > 0)


if __name__ == "__main__":
    raise SystemExit(main())
