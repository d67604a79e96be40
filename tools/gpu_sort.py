"""Measure sorts on a GPU, on arrays of the device, beside those of CuPy (CUB) and PyTorch.

    python tools/gpu_sort.py [--device SPEC] [--cases NAME,NAME] [--configs] [--limit SECONDS]
    python tools/gpu_sort.py --select [--device SPEC] [--cases NAME,NAME]

Times are those of calls in a row with one synchronisation at the end, in turns, medians of rounds;
in brackets what the kernels took by their events, in one call. Each result is checked, bit for bit,
against PyTorch's stable sort or, without it, NumPy's. A peer that is not installed is left out.
`--configs` tries tiles of other sizes, too; after `--limit` seconds no case is begun. `--select`
measures topk, unique and searchsorted instead of sorts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

import opencl_lab as ol
from opencl_lab.operations.sort.operation import SORT
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.runtime.session import default_queue

CASES: dict[str, tuple[str, tuple[int, ...], bool]] = {
    "int32-8k": ("int32", (8_000,), False),
    "int32-50k": ("int32", (50_000,), False),
    "int32-200k": ("int32", (200_000,), False),
    "int32-1M": ("int32", (1_000_000,), False),
    "int32-10M": ("int32", (10_000_003,), False),
    "int32-64M": ("int32", (64 << 20,), False),
    "int32-256M": ("int32", (256 << 20,), False),
    "int64-64M": ("int64", (64 << 20,), False),
    "float32-10M": ("float32", (10_000_000,), False),
    "argsort-10M": ("int32", (10_000_000,), True),
    "rows": ("int32", (16_384, 1000), False),
    "equal-10M": ("equal", (10_000_000,), False),
    "sorted-10M": ("sorted", (10_000_000,), False),
}
CONFIGS = tuple(
    {"WG_SIZE": wg_size, "ITEM_KEYS": items, "LOOKS": looks}
    for wg_size, items, looks in (
        *((wg_size, items, 4) for wg_size in (256, 384, 512) for items in (8, 12, 16, 18, 20)),
        *((384, 12, looks) for looks in (1, 8, 16)),
    )
)
SELECTIONS: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "topk-20k": ("topk", "int32", (20_000,)),
    "topk-50k": ("topk", "int32", (50_000,)),
    "topk-130k": ("topk", "int32", (130_000,)),
    "topk-140k": ("topk", "int32", (140_000,)),
    "topk-1M": ("topk", "int32", (1_000_000,)),
    "topk-10M": ("topk", "int32", (10_000_003,)),
    "topk-64M": ("topk", "int32", (64 << 20,)),
    "topk-float32-10M": ("topk", "float32", (10_000_000,)),
    "topk-equal-10M": ("topk", "equal", (10_000_000,)),
    "topk-int64-10M": ("topk", "int64", (10_000_000,)),
    "topk-rows": ("topk", "float32", (16_384, 1000)),
    "topk-long-rows": ("topk", "float32", (64, 300_000)),
    "unique-1M": ("unique", "int32", (1_000_000,)),
    "unique-10M": ("unique", "int32", (10_000_003,)),
    "searchsorted-1M": ("searchsorted", "int32", (1_000_000,)),
    "searchsorted-10M": ("searchsorted", "int32", (10_000_003,)),
}
TOPK_CONFIGS = tuple(
    {"WG_SIZE": wg_size, "ITEM_KEYS": items, "DIGIT_BITS": bits}
    for wg_size, items, bits in (
        *((wg_size, items, 8) for wg_size in (128, 256, 512) for items in (4, 8, 16)),
        (256, 4, 11),
    )
)
TOP = 100
"""How many elements `topk` looks for."""
MERGE_CONFIGS = tuple(
    {"WG_SIZE": wg_size, "ITEM_KEYS": items}
    for wg_size in (128, 256, 512)
    for items in (5, 7, 11, 15, 17, 19)
)
TRIED = ("int32-50k", "int32-1M", "int32-64M", "int64-64M", "argsort-10M")
ROUNDS = 5


def keys_of(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return random keys; equal or sorted ones are int32."""
    rng = np.random.default_rng(0)
    if kind == "float32":
        return rng.standard_normal(shape, np.float32)
    if kind == "equal":
        return np.full(shape, 12345, np.int32)
    dtype = np.dtype("int32" if kind == "sorted" else kind)
    drawn = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]
    return np.sort(drawn) if kind == "sorted" else drawn


class Ours:
    """One algorithm or configuration, called on arrays of the device."""

    def __init__(self, keys: np.ndarray, indices: bool, queue: Any, **options: Any) -> None:
        self.queue, self.indices = queue, indices
        self.source = pyopencl.array.to_device(queue, keys)
        self.out = pyopencl.array.empty(queue, keys.shape, np.int64 if indices else keys.dtype)
        self.options = options
        self.finish = queue.finish

    def call(self) -> None:
        """Enqueue a sort."""
        function = ol.argsort if self.indices else ol.sort
        function(self.source, out=self.out, queue=self.queue, **self.options)

    def result(self) -> np.ndarray:
        """Return what the last call gave."""
        return self.out.get()

    def kernels(self) -> tuple[float, str]:
        """Return the time in kernels in milliseconds, and which took how long."""
        keys = self.source.reshape(-1, self.source.shape[-1])
        problem = SortProblem(keys.shape[1], keys.dtype, keys.shape[0], indices=self.indices)
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        timed = cl.CommandQueue(self.queue.context, properties=profiling)
        runs = [SORT.run(problem, {"keys": keys}, queue=timed, **self.options) for _ in range(3)]
        parts = [
            f"{info.kernel} {milliseconds:.4f}"
            for info, milliseconds in min(runs, key=lambda run: run.kernel_ms).profile()
        ]
        return min(run.kernel_ms for run in runs), ", ".join(parts)


class Peer:
    """The sort of CuPy or PyTorch."""

    def __init__(self, name: str, keys: np.ndarray, indices: bool) -> None:
        if name == "cupy":
            import cupy

            self.source = cupy.asarray(keys)
            function = cupy.argsort if indices else cupy.sort
            self.call: Callable[[], Any] = lambda: function(self.source)
            self.finish = cupy.cuda.Device().synchronize
        else:
            import torch

            self.source = torch.from_numpy(keys).cuda()
            self.call = lambda: torch.sort(self.source, stable=True)
            self.finish = torch.cuda.synchronize


class Call:
    """One call of anything, and how its library is waited for."""

    def __init__(self, call: Callable[[], Any], finish: Callable[[], Any]) -> None:
        self.call, self.finish = call, finish


def in_turns(contestants: dict[str, Any], calls: int) -> dict[str, float]:
    """Return medians of milliseconds a call."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, item in contestants.items():
            item.call()
            item.finish()
            begin = time.perf_counter()
            for _ in range(calls):
                item.call()
            item.finish()
            times[name].append((time.perf_counter() - begin) / calls * 1e3)
    return {name: median(values) for name, values in times.items()}


def right_result(keys: np.ndarray, indices: bool) -> np.ndarray:
    """Return the expected result."""
    try:
        import torch

        values, order = torch.sort(torch.from_numpy(keys).cuda(), stable=True)
        return (order if indices else values).cpu().numpy()
    except ImportError:
        order = np.argsort(keys, axis=-1, kind="stable")
        return order if indices else np.take_along_axis(keys, order, -1)


def run_case(name: str, queue: Any, configs: bool) -> None:
    """Check and time everything in one case."""
    kind, shape, indices = CASES[name]
    keys = keys_of(kind, shape)
    ours = {
        "radix": {"algorithm": "radix"},
        "merge-path": {"algorithm": "merge-path"},
        "odd-even-merge": {"algorithm": "odd-even-merge"},
    }
    if len(shape) == 1:
        ours["radix, scan"] = {"algorithm": "radix", "config": {"FORM": "scan"}}
        if configs:
            for config in CONFIGS:
                label = "  " + " ".join(map(str, config.values()))
                ours[label] = {"algorithm": "radix", "config": config}
            for config in MERGE_CONFIGS:
                label = "  merge " + " ".join(map(str, config.values()))
                ours[label] = {"algorithm": "merge-path", "config": config}
    contestants: dict[str, Any] = {}
    expected = right_result(keys, indices)
    for label, options in ours.items():
        item = Ours(keys, indices, queue, **options)
        try:
            item.call()
        except ol.OclabError as error:
            print(f"{name:12} {label:16} {error}")
            continue
        if not np.array_equal(item.result(), expected):
            print(f"{name:12} {label:16} WRONG RESULT")
            continue
        contestants[label] = item
    for peer in ("cupy", "torch"):
        try:
            contestants[peer] = Peer(peer, keys, indices)
        except ImportError:
            continue
    calls = max(1, min(50, 40_000_000 // keys.size))
    for label, milliseconds in in_turns(contestants, calls).items():
        rate = keys.size / milliseconds * 1e-6
        line = f"{name:12} {label:16} {milliseconds:9.4f} ms {rate:8.2f} Gkey/s"
        if isinstance(contestants[label], Ours):
            kernels, parts = contestants[label].kernels()
            line += f" ({kernels:.4f}" + (
                f": {parts})" if label.startswith(("radix", "merge")) else ")"
            )
        print(line, flush=True)


def peers_of(name: str, **arrays: np.ndarray) -> dict[str, Call]:
    """Return what CuPy and PyTorch offer for a selection, on arrays of their own."""
    calls: dict[str, Call] = {}
    try:
        import cupy

        on = {key: cupy.asarray(array) for key, array in arrays.items()}
        finish = cupy.cuda.Device().synchronize
        functions = {
            "topk": lambda: cupy.argpartition(on["a"], on["a"].shape[-1] - TOP),
            "unique": lambda: cupy.unique(on["a"], return_counts=True),
            "searchsorted": lambda: cupy.searchsorted(on["a"], on["v"]),
        }
        calls["cupy"] = Call(functions[name], finish)
    except ImportError:
        pass
    try:
        import torch

        there = {key: torch.from_numpy(array).cuda() for key, array in arrays.items()}
        functions = {
            "topk": lambda: torch.topk(there["a"], TOP),
            "unique": lambda: torch.unique(there["a"], return_counts=True),
            "searchsorted": lambda: torch.searchsorted(there["a"], there["v"]),
        }
        calls["torch"] = Call(functions[name], torch.cuda.synchronize)
    except ImportError:
        pass
    return calls


def expected_of(name: str, **arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return what NumPy gives for a selection."""
    a = arrays["a"]
    if name == "unique":
        return np.unique(a, return_counts=True)
    if name == "searchsorted":
        return (np.searchsorted(a, arrays["v"]),)
    n = a.shape[-1]
    order = n - 1 - np.flip(np.argsort(np.flip(a, -1), axis=-1, kind="stable"), -1)[..., :TOP]
    return np.take_along_axis(a, order, -1), order


def run_selection(case: str, queue: Any, configs: bool) -> None:
    """Check and time one selection, and the sort that one would take in its place."""
    name, kind, shape = SELECTIONS[case]
    arrays = {"a": keys_of(kind, shape)}
    if name == "unique":
        arrays["a"] %= np.int32(shape[0] // 10)
    if name == "searchsorted":
        arrays["a"] = np.sort(arrays["a"])
        arrays["v"] = np.random.default_rng(1).permutation(keys_of(kind, shape))
    given = [pyopencl.array.to_device(queue, array) for array in arrays.values()]
    calls = {
        "topk": lambda: ol.topk(given[0], TOP),
        "unique": lambda: ol.unique(given[0], True),
        "searchsorted": lambda: ol.searchsorted(*given),
    }
    results = calls[name]()
    results = results if isinstance(results, tuple) else (results,)
    for got, right in zip(results, expected_of(name, **arrays), strict=True):
        if not np.array_equal(got.get(), right):
            print(f"{case:20} WRONG RESULT")
            return
    contestants = {
        "ours": Call(calls[name], queue.finish),
        "our sort": Call(lambda: ol.sort(given[0]), queue.finish),
        **peers_of(name, **arrays),
    }
    for algorithm in ("radix-select", "sort") if name == "topk" else ():
        options = {"algorithm": algorithm}
        contestants[algorithm] = Call(lambda kw=options: ol.topk(given[0], TOP, **kw), queue.finish)
    if name == "unique":
        contestants["no counts"] = Call(lambda: ol.unique(given[0]), queue.finish)
    for config in TOPK_CONFIGS if configs and name == "topk" else ():
        label = " ".join(map(str, config.values()))
        options = {"config": config}
        contestants[label] = Call(lambda kw=options: ol.topk(given[0], TOP, **kw), queue.finish)
    repeats = max(1, min(50, 40_000_000 // arrays["a"].size))
    for label, milliseconds in in_turns(contestants, repeats).items():
        rate = arrays["a"].size / milliseconds * 1e-6
        print(f"{case:20} {label:12} {milliseconds:9.4f} ms {rate:8.2f} Gkey/s", flush=True)


def main() -> None:
    """Print a row a case and contestant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--select", action="store_true")
    parser.add_argument("--cases")
    parser.add_argument("--configs", action="store_true")
    parser.add_argument("--limit", type=float, default=200)
    arguments = parser.parse_args()
    device = ol.select_device(arguments.device)
    print(device)
    queue = default_queue(device)
    begin = time.monotonic()
    known = SELECTIONS if arguments.select else CASES
    for name in arguments.cases.split(",") if arguments.cases else known:
        if time.monotonic() - begin > arguments.limit:
            print(f"{name:12} left out: {arguments.limit:.0f} s have passed")
            continue
        if arguments.select:
            run_selection(name, queue, arguments.configs)
            continue
        run_case(name, queue, arguments.configs and name in TRIED)
        print(f"# {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
