"""Measure sorts on a GPU, on arrays of the device, beside those of CuPy (CUB) and PyTorch.

    python tools/gpu_sort.py [--device SPEC] [--cases NAME,NAME] [--configs] [--limit SECONDS]

Times are those of calls in a row with one synchronisation at the end, in turns, medians of rounds;
in brackets what the kernels took by their events, in one call. Each result is checked, bit for bit,
against PyTorch's stable sort or, without it, NumPy's. A peer that is not installed is left out.
`--configs` tries tiles of other sizes, too; after `--limit` seconds no case is begun.
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
        *((wg_size, items, 8) for wg_size in (256, 384, 512) for items in (8, 12, 16, 20)),
        *((256, 16, looks) for looks in (1, 4, 16)),
    )
)
MERGE_CONFIGS = tuple(
    {"WG_SIZE": wg_size, "ITEM_KEYS": items}
    for wg_size in (128, 256, 512)
    for items in (5, 7, 11, 15, 17, 19)
)
TRIED = ("int32-50k", "int32-1M", "int32-64M", "int64-64M")
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


def main() -> None:
    """Print a row a case and contestant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--configs", action="store_true")
    parser.add_argument("--limit", type=float, default=200)
    arguments = parser.parse_args()
    device = ol.select_device(arguments.device)
    print(device)
    queue = default_queue(device)
    begin = time.monotonic()
    for name in arguments.cases.split(","):
        if time.monotonic() - begin > arguments.limit:
            print(f"{name:12} left out: {arguments.limit:.0f} s have passed")
            continue
        run_case(name, queue, arguments.configs and name in TRIED)
        print(f"# {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
