"""Random calls of all public functions in threads: right in every layout, in memory that is flat.

    python tools/soak.py --minutes 30 --threads 8 --seed 0
    python tools/soak.py --seed 0 --only 3:4711

A call is a random trial of an operation (`opencl_lab/ops/*/trials.py`) or of a function that has
none. Its arrays lie on the host or the device, in any order of axes, with steps and offsets,
aligned or not, on one of two queues; results go to new arrays, to `out`, or to the input; calls may
be prepared. Calls recur with new data, so that most are replayed, among others that are new, ever
more seldom. Every second kind is its neighbour, which differs in layouts alone: a call key that is
too coarse would replay the neighbour's call. All results must be right, with nothing written beside
them and inputs unchanged, and calls with a wrong option must be refused. The memory at the end is
compared with that after a third of the time. Everything about a call follows from the seed, its
thread and its number there.

The device is that of ``OCLAB_DEVICE``. The exit status is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import inspect
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

import opencl_lab as ol
from opencl_lab.core.wording import size_text
from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.measuring.gpu_state import find_gpu
from opencl_lab.ops.gemm.trials import random_numbers
from opencl_lab.ops.prepared import FUNCTIONS
from opencl_lab.ops.selftest import all_trials
from opencl_lab.ops.trial import Drawer, Task, Trial
from opencl_lab.runtime.session import session_of

REPEATED, NEW = 102, 2.0
"""Kinds of calls that recur, and how often another one is drawn: call i of a thread is of a new
kind with the probability NEW / (NEW + i), so that programs that drivers keep do not hide a leak."""
HANG_SECONDS = 300.0  # for a call that is under way when the time is over
MARGIN = 64  # bytes around the elements of an array
SLACK_BYTES, CALL_BYTES, PROGRAM_BYTES = 64 << 20, 256, 3 << 19
"""Growth that heaps of 8 threads, a call and a program may leave, of which PoCL 3.0 keeps 1 MB."""
WRONG = {"axis": 9, "norm": "x", "side": "up", "algorithm": "x", "boundary": "x", "no_such": 1}
"""Options that any function which has them refuses."""
DRAWN = [one for one in all_trials() if one.draw and one.solver.name != "merge"]
"""The operations; merging is internal, and takes no arrays in other layouts."""
COSINE = ("dct", "idct", "dst", "idst", "dctn", "idctn", "dstn", "idstn")


# ------------------------------------------------------------- calls that have no other trials


def _cosine(name: str, kind: int, dtype: str, shape: Any, rng: Any) -> Task:
    import scipy.fft

    x = random_numbers(rng, dtype, shape)
    right = getattr(scipy.fft, name)(x.astype("f8"), type=kind).astype(dtype)
    return Task(partial(getattr(ol.fft, name), type=kind), (x,), (right,))


def _shifted(name: str, dtype: str, shape: Any, rng: Any) -> Task:
    x = (99 * rng.standard_normal(shape)).astype(dtype)
    return Task(partial(getattr(ol.fft, name)), (x,), (getattr(np.fft, name)(x),))


def draw(device: Any, rng: np.random.Generator) -> Trial:
    """Draw a trial of any operation, or of a function that none has."""
    d = Drawer(device, rng)
    number = int(rng.integers(len(DRAWN) + 2))
    if number < len(DRAWN):
        trial: Trial = DRAWN[number].draw(d)  # type: ignore[misc]
        return trial
    dtype, name = d.dtype(("float32", "float64", "complex64")), d.pick(("fftshift", "ifftshift"))
    shape = tuple(d.size(60, 2) for _ in range(d.pick((1, 2, 3))))
    tasks = [partial(_shifted, name, dtype, shape)]
    if not dtype.startswith("complex"):
        tasks += [partial(_cosine, d.pick(COSINE), d.pick((2, 3, 4)), dtype, shape)]
    return Trial(f"{dtype}, {shape}", d.pick(tasks), dtype)


# --------------------------------------------------------------------------- ways to call


class Way:
    """How a call is made: where its arrays lie, where its results go."""

    def __init__(self, d: Drawer):
        self.d = d
        self.resident, self.prepared, self.queue = d.chance(0.5), d.chance(0.15), int(d.chance(0.2))
        self.out = d.pick(("", "", "new", "input"))
        self.wrong = d.pick(list(WRONG)) if d.chance(0.05) else ""
        self.laid: dict[tuple[Any, int], tuple[Any, ...]] = {}

    def __str__(self) -> str:
        words = ["device" if self.resident else "host", f"queue {self.queue}", str(self.laid)]
        words += ["prepared"] * self.prepared + [f"out: {self.out}"] * bool(self.out)
        return ", ".join([*words, *[f"wrong: {self.wrong}"] * bool(self.wrong)])

    def layout(self, place: Any, ndim: int, resident: bool, out: bool) -> tuple[Any, ...]:
        """Return the order of axes, steps of each, and the bytes before the first element."""
        if (place, ndim) not in self.laid:
            d, order = self.d, list(range(ndim))
            plain = d.chance(0.4)
            if not plain and d.chance(0.5):
                order = order[::-1] if d.chance(0.5) else [*order[1:], *order[:1]]
            steps = (1, 1, 2, 3) if resident else (1, 1, 2, -1, -2, *([] if out else [0]))
            chosen = tuple(1 if plain else d.pick(steps) for _ in range(ndim))
            shift = 0 if plain else d.pick((0, 1, 4)) if resident else d.pick((0, 3, 7, 16))
            self.laid[place, ndim] = tuple(order), chosen, shift
        return self.laid[place, ndim]


class Placed:
    """An array in a block of bytes, on the host or the device, and what must not change of it."""

    def __init__(self, values: Any, layout: tuple[Any, ...], queue: Any):
        order, steps, shift = layout
        dense, strides, low, high = values.itemsize, [0] * values.ndim, 0, 0
        for axis in reversed(order):
            strides[axis] = dense * steps[axis]
            reach = strides[axis] * max(values.shape[axis] - 1, 0)
            low, high = low + min(reach, 0), high + max(reach, 0)
            dense *= max(values.shape[axis], 1) * max(abs(steps[axis]), 1)
        # On the device in elements, as drivers want them aligned.
        lead = MARGIN - low + shift * (values.itemsize if queue is not None else 1)
        size = lead + high + values.itemsize + MARGIN
        self.block = np.random.default_rng(size).integers(0, 256, size, np.uint8)
        self.view = np.ndarray(values.shape, values.dtype, self.block.data, lead, tuple(strides))
        if values.size:
            self.view[...] = values  # of elements that are repeated, the last one
        self.before, self.queue, self.given = self.block.copy(), queue, self.view
        if queue is not None:
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            self.buffer = cl.Buffer(queue.context, flags, hostbuf=self.block)
            self.given = cl.array.Array(
                queue, values.shape, values.dtype, data=self.buffer, strides=strides, offset=lead
            )

    def changed(self, but: Any = None) -> bool:
        """Return whether bytes have changed; if the array is `but`, other bytes than its own."""
        if self.queue is not None:
            cl.enqueue_copy(self.queue, self.block, self.buffer)
        now = self.block.copy()
        if but is not None and self.view.size:
            offset = self.view.ctypes.data - self.block.ctypes.data
            inner = np.ndarray(
                self.view.shape, self.view.dtype, now.data, offset, self.view.strides
            )
            before = np.ndarray(
                inner.shape, inner.dtype, self.before.data, offset, self.view.strides
            )
            inner[...] = before
        return not np.array_equal(now, self.before)


def host(result: Any) -> Any:
    """Return a result as an array of the host."""
    if not isinstance(result, cl.array.Array):
        return np.array(result)
    if not result.size:
        return np.empty(result.shape, result.dtype)
    whole = np.empty(result.base_data.size, np.uint8)
    cl.enqueue_copy(result.queue, whole, result.base_data)
    return np.ndarray(result.shape, result.dtype, whole.data, result.offset, result.strides).copy()


def perform(trial: Trial, way: Way, queues: Any, rng: np.random.Generator) -> str:
    """Make a call; return what is wrong, or ""."""
    with np.errstate(all="ignore"):
        task, queue = trial.task(rng), queues[way.queue]
    function = getattr(task.call, "func", None)
    named = {} if function is None else inspect.signature(function).parameters
    where = {} if way.resident else {"queue": queue}
    if way.wrong in named or way.wrong == "no_such":
        try:
            task.call(*task.arrays, **{**where, way.wrong: WRONG[way.wrong]})
        except (ol.OclabError, TypeError):
            return ""
        return "a wrong option is not refused"
    places = []
    for at, array in enumerate(task.arrays):
        layout = way.layout(at, array.ndim, way.resident, False)
        if 0 in layout[1] or (way.out == "input" and at == 0):  # repeated elements change results
            layout = layout[0], tuple(step or 1 for step in layout[1]), layout[2]
        places.append(Placed(array, layout, queue if way.resident else None))
    call: Callable[..., Any] = partial(task.call, **where)
    given = [one.given for one in places]
    if way.prepared and function in FUNCTIONS.values():
        call = ol.prepare(function, *given, **task.call.keywords, **where)  # type: ignore[attr-defined]
    outs: list[Placed] = []
    if way.out and "out" in named:
        first, right = places[0], task.expected[0]
        same = (first.view.shape, first.view.dtype) == (right.shape, right.dtype)
        inside = way.out == "input" and same and len(task.expected) == 1
        outs = [first] if inside else []
        for at, right in enumerate(() if inside else task.expected):
            layout = way.layout(f"out {at}", right.ndim, way.resident, True)
            outs.append(Placed(np.zeros_like(right), layout, queue if way.resident else None))
        out = tuple(one.given for one in outs)
        call = partial(call, out=out if len(out) > 1 else out[0])
    given_back = call(*given)
    results = given_back if isinstance(given_back, tuple) else (given_back,)
    if any(one is not other.given for one, other in zip(results, outs, strict=False)):
        return "the result is not out"
    wrong = trial.error(tuple(map(host, results)), task.expected)
    if any(one.changed(but=one if one in outs else None) for one in (*places, *outs)):
        wrong = wrong or "an input was changed, or what lies beside a result"
    return wrong


# ----------------------------------------------------------------------------- the soak


class Soak:
    """Random calls in threads, which are checked and counted."""

    def __init__(self, device: Any, seed: int):
        self.device, self.seed = device, seed
        first = device.queue()
        self.queues = [first, cl.CommandQueue(first.context)]
        self.calls: Counter[str] = Counter()
        self.faults: list[str] = []
        self.samples: list[tuple[int, int, int, int]] = []
        self._lock, self._over = threading.Lock(), threading.Event()

    def make(self, thread: int, call: int) -> None:
        """Make a call, and note what is wrong."""
        rng = np.random.default_rng([self.seed, thread, call])
        number, new = int(rng.integers(REPEATED)), bool(rng.random() < NEW / (NEW + call))
        kind = [self.seed, number // 2, *([thread, call] if new else [])]
        name, words = "drawing", f"kind {number}"
        try:
            trial = draw(self.device, np.random.default_rng(kind))
            way = Way(Drawer(self.device, np.random.default_rng([*kind, number % 2])))
            function = getattr(trial.task, "func", trial.task)
            module = ".".join(function.__module__.split(".")[-2:-1])  # the operation's package
            name = f"{module}{function.__name__}".replace("_", " ").strip()
            what = perform(trial, way, self.queues, rng)
            words = f"{name} {trial.title}; {way}"
        except Exception as error:  # whatever a call raises is a fault
            what = f"{type(error).__name__}: {error}"
        with self._lock:
            self.calls[name] += 1
            if what:
                self.faults.append(f"--seed {self.seed} --only {thread}:{call}: {what} in {words}")

    def run(self, seconds: float, threads: int) -> None:
        """Make calls in threads for some time, and take samples of the memory."""

        def work(thread: int) -> None:
            call = 0
            while not self._over.is_set():
                self.make(thread, call)
                call += 1

        workers = [
            threading.Thread(target=work, args=(number,), daemon=True) for number in range(threads)
        ]
        for worker in workers:
            worker.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._over.wait(min(seconds / 30, max(0.0, end - time.monotonic())))
            self.samples.append(self.sample())
            print(
                "{:,} calls, {} programs, host and device: {}, {}".format(
                    *self.samples[-1][:2], *map(size_text, self.samples[-1][2:])
                ),
                flush=True,
            )
        self._over.set()
        end = time.monotonic() + HANG_SECONDS
        for number, worker in enumerate(workers):
            worker.join(max(0.0, end - time.monotonic()))
            if worker.is_alive():
                self.faults.append(f"a call of thread {number} does not end")

    def sample(self) -> tuple[int, int, int, int]:
        """Return the numbers of calls and programs, and bytes of the process and the device."""
        sides = [self.device, *([self.device.serial_side] if self.device.serial_side else [])]
        programs = sum(session_of(side.queue()).built for side in sides)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        gpu = find_gpu(self.device)
        used = 0 if gpu is None else gpu.used_bytes() or 0
        return self.calls.total(), programs, pages * 4096, used

    def growth(self) -> list[str]:
        """Return which memory grew, from the end of a third of the samples to the last ones."""
        ninth = max(1, len(self.samples) // 9)
        early, late = self.samples[len(self.samples) // 3 :][:ninth], self.samples[-ninth:]
        if not late:
            return []
        calls, programs = (late[-1][at] - early[0][at] for at in (0, 1))
        allowed = SLACK_BYTES + CALL_BYTES * calls + PROGRAM_BYTES * programs
        grown = [median(x[at] for x in late) - median(x[at] for x in early) for at in (2, 3)]
        pairs = zip(("the process", "the device"), grown, strict=True)
        return [
            f"the memory of {side} grew by {size:,} bytes" for side, size in pairs if size > allowed
        ]


def main(arguments: list[str] | None = None) -> int:
    """Make calls until the time is over, or one alone; print what is wrong, and how many."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="THREAD:CALL", help="make one call only")
    given = parser.parse_args(arguments)
    soak = Soak(select_device(), given.seed)
    if given.only:
        soak.make(*map(int, given.only.split(":")))
    else:
        soak.run(given.minutes * 60, given.threads)
    for name, count in sorted(soak.calls.items()):
        print(f"  {name:24} {count:8,}")
    soak.faults += soak.growth()
    for fault in soak.faults:
        print(fault)
    print(f"{soak.device}: {soak.calls.total():,} calls, {len(soak.faults)} faults")
    return int(bool(soak.faults) or not soak.calls)


if __name__ == "__main__":
    raise SystemExit(main())
