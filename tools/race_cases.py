"""The cases of `race_search.py`: small problems of each kernel that has barriers or counters.

Sizes are so small that a simulator runs them: one more or less than tiles, primes, fewer elements
than items, and a single one. Data are those of the operations' trials, and where an operation has
the problem, so are right results.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from matrix import Case, sorting

__all__ = ["CASES", "LOWERED", "Race"]

Made: TypeAlias = Callable[[np.random.Generator], tuple[Any, dict[str, Any], dict[str, Any]]]


@dataclass(frozen=True)
class Race:
    """A case that runs under Oclgrind.

    Attributes
    ----------
    algorithm : str
        Operation, algorithm, and the kind of device that it is for; or the place of an algorithm.
        Copies have none.
    config : dict
    case : Case or callable
        The problem and its data; or, if no operation has it, ``case(rng)`` gives a problem, its
        inputs, and the expected outputs.
    short : bool
        Whether it belongs to the short run.
    seen : dict
        Capabilities that the device has besides.
    units : int
        Number of compute units, if it is not that of the device: for each, a step is further ahead.
    edit : tuple of str, optional
        Text of the source, and its replacement.
    planted : str
        If that edit is a fault, the beginning of its report.
    in_order : str
        Why groups are in order by counters, so that reports of races between them do not count.
    """

    algorithm: str
    config: dict[str, Any]
    case: Case | Made
    short: bool = False
    seen: Mapping[str, Any] | None = None
    units: int = 0
    edit: tuple[str, str] | None = None
    planted: str = ""
    in_order: str = ""

    def make(self, device: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """Return a plan, its inputs, and the expected outputs."""
        from opencl_lab.lab.registry import operations

        kept = {"forward_progress": False, "visible_writes": False, "inline_ptx": False}
        seen = replace(device.capabilities, **{**kept, "fp64": True, **(self.seen or {})})
        units = self.units or device.compute_units
        device = replace(device, capabilities=seen, compute_units=units)
        operation = None
        if " " in self.algorithm:
            name, algorithm, kind = self.algorithm.split()
            operation = operations()[name]
            found = operation.algorithm(algorithm).on(kind)
            device = replace(device, kind=kind)
        if isinstance(self.case, Case):
            problem, inputs, expected = self.case.make(operation, 1)
        else:
            problem, inputs, expected = self.case(np.random.default_rng(1))
        if hasattr(problem, "plan"):
            return problem.plan(), inputs, expected
        if operation is None:
            module, _, name = self.algorithm.rpartition(".")
            found = getattr(importlib.import_module(module), name)
            found = found() if isinstance(found, type) else found
        plan = found.plan(problem, found.configure(problem, device, self.config), device)
        assert not seen.visible_writes or len(plan.launches) == 1
        return plan, inputs, expected


# ------------------------------------------------------------- problems that no command has


def _merged(lengths: list[int], dtype: str, values: bool = False) -> Made:
    def make(rng: Any) -> Any:
        from opencl_lab.ops.sort.problem import RunsProblem
        from opencl_lab.ops.sort.trials import awkward_keys

        few = awkward_keys(rng, dtype, 80)
        runs = [np.sort(rng.choice(few, n)) for n in lengths]
        keys, ends = np.concatenate(runs), np.cumsum(lengths)
        order = np.argsort(keys, kind="stable")
        arrays, expected = {"keys": keys[None], "ends": ends}, {"sorted": keys[order][None]}
        if values:
            arrays["values"] = np.arange(keys.size, dtype=np.uint32)[None].view("V4")
            expected["sorted_values"] = order[None].astype(np.uint32).view("V4")
        width, count = 4 if values else 0, len(lengths)
        return RunsProblem(keys.size, keys.dtype, value_bytes=width, runs=count), arrays, expected

    return make


def _chosen(n: int, k: int, rows: int = 1) -> Made:
    def make(rng: Any) -> Any:
        from opencl_lab.ops.select.problem import TopkProblem
        from opencl_lab.ops.sort.trials import order_of

        keys = rng.integers(0, 300, (rows, n)).astype(np.int16)
        places = np.sort(order_of(keys, descending=True)[:, :k], axis=-1)  # in those of the row
        expected = {"values": np.take_along_axis(keys, places, -1), "places": places}
        return TopkProblem(n, k, keys.dtype, rows), {"keys": keys}, expected

    return make


def _distinct(n: int) -> Made:
    def make(rng: Any) -> Any:
        from opencl_lab.ops.select.problem import UniqueProblem

        keys = rng.integers(0, n // 3, n).astype(np.int32)
        order = np.argsort(keys, kind="stable")
        names = ("values", "first_places", "inverse", "counts")
        results = dict(zip(names, np.unique(keys, True, True, True), strict=True))
        problem = UniqueProblem(n, keys.dtype, True, True, True)
        return problem, {"keys": keys[order], "order": order}, results

    return make


def _along(reduce: str) -> Made:
    def make(rng: Any) -> Any:
        from opencl_lab.ops.filters.problem import Window
        from opencl_lab.ops.filters.trials import lines

        windows = Window(1, 5, 2, "reflect"), Window(2, 4, 2, "wrap")
        problem, inputs, right = lines(reduce, "int32", windows, rng, (2, 17, 13, 2))
        return problem, inputs, {"result": right}

    return make


def _under(name: str, sizes: tuple[int, ...]) -> Made:
    def make(rng: Any) -> Any:
        from opencl_lab.ops.filters.trials import windows

        problem, inputs, right = windows(name, "int32", sizes, "wrap", rng, (4, 9, 13))
        # As in calls, axes that are not filtered have no window.
        filtered = tuple(window for window in problem.windows if window.size > 1)
        if name == "rank":  # networks have the places of a window in their programs
            del inputs["distances_0"]
        return replace(problem, windows=filtered), inputs, {"result": right}

    return make


def _agreeing(n: int, lengths: list[int]) -> Made:
    """Rows of keys of which so many each agree in their upper digits, between two that do not.

    So no item of a group looks at a key that another one of the group moves, to see that its
    digits differ.
    """

    def make(rng: Any) -> Any:
        from opencl_lab.ops.sort.problem import SortProblem

        tops = np.arange(n) * ((1 << 31) // n)
        rows = [np.repeat(tops, np.resize([1, length], n))[:n] for length in lengths]
        keys = rng.permuted(rows, axis=-1) << 32 | rng.integers(0, 1 << 30, (len(rows), n))
        order = np.argsort(keys, axis=-1, kind="stable")
        problem = SortProblem(n, keys.dtype, len(lengths), indices=True)
        return problem, {"keys": keys}, {"sorted_values": order}

    return make


def _columns(n: int, inner: int) -> Case:
    from opencl_lab.ops.fft.problem import DftProblem

    return Case("", record=DftProblem(n, inner=inner))


def _copied(shape: tuple[int, ...], dtype: str, converted: str) -> Made:
    """A copy with its axes in reverse, to another type."""

    def make(rng: Any) -> Any:
        from opencl_lab.runtime.copies import Copy, View, dense_strides

        source = rng.integers(-99, 99, shape).astype(dtype)
        turned = View(shape[::-1], dense_strides(shape)[::-1], 0)
        copy = Copy(turned, View.dense(shape[::-1]), source.dtype, np.dtype(converted))
        return copy, {"source": source}, {"target": source.T.astype(converted)}

    return make


def _of(**options: Any) -> Case:
    return Case("", options)


def _planted(name: str, what: str, text: str, instead: str = "", short: bool = False) -> Race:
    """Return another case with a fault in its source."""
    return replace(CASES[name], edit=(text, instead), planted=what, short=short)


RADIX_CPU_LIMITS, TOPK_LIMITS = "opencl_lab.ops.sort.radix_cpu.", "opencl_lab.ops.select.topk."
LOWERED = {
    RADIX_CPU_LIMITS + "CUT": 100,
    RADIX_CPU_LIMITS + "WHOLE": 200,
    RADIX_CPU_LIMITS + "KEYS_OF_CHUNK": 256,
    RADIX_CPU_LIMITS + "KEYS_OF_RUN": 64,
    RADIX_CPU_LIMITS + "LEAST_BITS": 4,
    "opencl_lab.ops.sort.radix_gpu.TOP_KEYS": 1,
    TOPK_LIMITS + "WHOLE": 100,
    "opencl_lab.ops.select.sampled.ROOM": 64,
    "opencl_lab.ops.fft.passes.fusion.LOOK_AHEAD_POINTS": 256,
    TOPK_LIMITS + "WHOLE_OF_MANY": 100,
}
"""Sizes from which rows are cut, and into how much; how far steps of a transform are ahead."""
BARRIER = "barrier(CLK_LOCAL_MEM_FENCE);"
RACE, UNINITIALIZED, OUTSIDE = "data race", "Uninitialized value", "Invalid"
IN_COMMON = "others look at digits that all keys of a run have, and at bits that nobody clears"
TICKETS = "a group waits for the counts of those before it, which come after a fence"

TILES = {"WG_SIZE": 32, "ITEM_KEYS": 2, "DIGIT_BITS": 4}
SCAN, ONESWEEP = {"FORM": "scan", **TILES}, {"FORM": "onesweep", **TILES}
FEW_BITS = {"DIGIT_BITS": 5, "CAPACITY": 64}
MERGE_GPU = {"WG_SIZE": 32, "ITEM_KEYS": 3}
BUCKETS = {
    "WG_SIZE": 32, "ITEM_KEYS": 8, "TILE_ITEMS": 4, "BUCKET_ITEMS": 1, "SPACING": 16,
    "DIGIT_BITS": 4,
}  # fmt: skip
ODD_EVEN = {"WG_SIZE": 16, "TILE": 64, "WORK_PER_ITEM": 8}
BLOCKED = {
    "WORK_M": 2, "WORK_N": 4, "WG_M": 4, "WG_N": 4, "TILE_K": 8, "WG_K": 1, "BUFFERS": 2,
    "LOCAL_PAD": 1, "SWIZZLE": 2, "SPLITS": 1,
}  # fmt: skip
GEMV = {"LANES": 4, "PIECES": 4, "VECTOR": 2, "ROWS": 2, "UNROLL": 2, "SPLITS": 1}
LOCAL = {"FORM": "local-memory", "WG_SIZE": 32, "POINTS": 4, "MAX_RADIX": 8}
STEPS = {**LOCAL, "LOCAL_LIMIT": 32}
FUSED = {**STEPS, "FUSED": "always"}
VECTOR = {"FORM": "vector", "VECTOR_WIDTH": 4, "BLOCK": 2, "MAX_RADIX": 8}
CONV2D_FFT = {"BLOCK": 16, "PAIRS": 2, "WG_SIZE": 32}

RADIX, RADIX_CPU = "sort radix gpu", "sort radix cpu"
MERGE, OWN_MERGE = "sort merge-path gpu", "opencl_lab.ops.sort.merge_runs.MergePathRuns"
GPU_RUNS = "opencl_lab.ops.sort.merge_runs_gpu.MergeRunsGpu"
NETWORK, SAMPLES = "sort odd-even-merge gpu", "sort sample-sort gpu"
TOPK, UNIQUE = "opencl_lab.ops.select.topk.SELECTION", "opencl_lab.ops.select.by_sort.HEADS"
LINES = "opencl_lab.ops.filters.lines.TiledLines"
IN_TILES = {"BLOCK": 2, "TILE_BYTES": 3000, "WG_SIZE": 32}
FFT, FFT_CPU = "dft fft gpu", "dft fft cpu"
PRODUCT, THIN, TILED = "gemm blocked gpu", "gemm gemv gpu", "gemm tiled gpu"
TICKET = {"forward_progress": True, "visible_writes": True}
LAST = {"visible_writes": True}
"""The last group of a tile adds up what others have of k."""
AWKWARD, THREE = _of(m=11, n=19, k=29), _of(m=3, n=21, k=37)
IMAGE = {"height": 9, "width": 21, "ksize": 3, "boundary": "reflect"}

CASES: dict[str, Race] = {
    "radix-scan": Race(RADIX, SCAN, sorting(301), True),
    "radix-scan-rows": Race(RADIX, SCAN, sorting(131, rows=3, value_bytes=8)),
    "radix-onesweep": Race(RADIX, ONESWEEP, sorting(301), True),
    "radix-onesweep-rows": Race(RADIX, ONESWEEP, sorting(131, "int32", 3, indices=True)),
    "radix-onesweep-impatient": Race(
        RADIX, {**ONESWEEP, "MAX_POLLS": 0, "LOOKS": 1}, sorting(301, descending=True)
    ),
    "radix-onesweep-counts-for-others": Race(
        RADIX, {**ONESWEEP, "MAX_POLLS": 0}, sorting(301),
        edit=("#define PUT(p, word) atomic_xchg((p), (word))", "#define PUT(p, word)"),
    ),
    "radix-onesweep-mended": Race(
        RADIX, ONESWEEP, _agreeing(301, [1, 3, 40]), in_order=IN_COMMON
    ),
    "radix-one-launch": Race(RADIX, SCAN, sorting(61, rows=4, value_bytes=2), True),
    "radix-cpu-rows": Race(RADIX_CPU, FEW_BITS, sorting(77, "int32", 9)),
    "radix-cpu-cut": Race(
        RADIX_CPU, FEW_BITS, sorting(1501, "int32", few=0, value_bytes=4), True
    ),
    "radix-cpu-cut-streamed": Race(
        RADIX_CPU, {**FEW_BITS, "STREAM": True}, sorting(1501, "float32", few=0)
    ),
    "radix-cpu-uneven": Race(RADIX_CPU, FEW_BITS, sorting(1501, "int32", indices=True)),
    "merge-gpu": Race(MERGE, MERGE_GPU, sorting(500), True),
    "merge-gpu-indices": Race(MERGE, MERGE_GPU, sorting(301, "float32", 2, indices=True)),
    "merge-gpu-values": Race(MERGE, MERGE_GPU, sorting(193, value_bytes=16)),
    "merge-gpu-short-rows": Race(MERGE, MERGE_GPU, sorting(11, "float32", 21)),
    "merge-gpu-runs": Race(GPU_RUNS, MERGE_GPU, _merged([200, 0, 1, 150], "float32")),
    "merge-runs": Race(OWN_MERGE, {"STRETCH": 32}, _merged([200, 0, 1, 150], "int32"), True),
    "merge-runs-codes": Race(OWN_MERGE, {"STRETCH": 32}, _merged([90, 70], "float32")),
    "merge-runs-pairs": Race(
        OWN_MERGE, {"STRETCH": 32}, _merged([33, 100, 64, 7, 1], "int16", values=True)
    ),
    "samples": Race(SAMPLES, BUCKETS, sorting(301), True),
    "samples-indices": Race(SAMPLES, BUCKETS, sorting(301, "int16", 2, indices=True)),
    "samples-one-tile": Race(SAMPLES, BUCKETS, sorting(61, rows=4, value_bytes=2)),
    "odd-even": Race(NETWORK, ODD_EVEN, sorting(500), True),
    "odd-even-short-runs": Race(
        NETWORK, {**ODD_EVEN, "WG_SIZE": 4}, sorting(300, indices=True)
    ),
    "topk-cut": Race(TOPK, TILES, _chosen(700, 60), True),
    "topk-cut-rows": Race(TOPK, {**TILES, "DIGIT_BITS": 6}, _chosen(400, 150, 3)),
    "topk-cut-alone": Race(TOPK, {**TILES, "WG_SIZE": 1, "ITEM_KEYS": 16}, _chosen(400, 20)),
    "topk-row-a-group": Race(TOPK, TILES, _chosen(90, 33, 4), True),
    "topk-sampled": Race(
        "topk sample-select gpu", {"WG_SIZE": 32, "ITEM_KEYS": 2}, _of(n=700, k=10), True
    ),
    "topk-sampled-rows": Race(
        "topk sample-select gpu", {"WG_SIZE": 32, "ITEM_KEYS": 2}, _of(n=300, k=30, rows=3)
    ),
    "unique": Race(UNIQUE, {"WG_SIZE": 32, "ITEM_KEYS": 2}, _distinct(500), True),
    "unique-alone": Race(UNIQUE, {"WG_SIZE": 1, "ITEM_KEYS": 16}, _distinct(300)),
    "searchsorted-guides": Race(
        "searchsorted binary-search gpu", {"WG_SIZE": 16, "VALUES": 2, "TOP": 8},
        _of(n=77, m=99), True,
    ),
    "searchsorted-entries": Race(
        "searchsorted binary-search gpu",
        {"WG_SIZE": 16, "VALUES": 2, "TOP": 8, "STEP": 4}, _of(n=77, m=99),
    ),
    "filter-lines-sum": Race(LINES, IN_TILES, _along("sum"), True),
    "filter-lines-mean": Race(LINES, IN_TILES, _along("mean")),
    "filter-lines-max": Race(LINES, IN_TILES, _along("max")),
    "filter-extremes": Race(
        "opencl_lab.ops.filters.extremes.Extremes", {"ROWS": 4, "BLOCK": 1, "WG_SIZE": 32},
        _along("max"),
    ),
    "filter-sheet": Race(
        "opencl_lab.ops.filters.sheets.Sheets",
        {"ROWS": 4, "TILE": 32, "BAND": 8, "WG_SIZE": 32}, _along("sum"), True,
    ),
    "filter-near": Race(
        "opencl_lab.ops.filters.near.NearWindow",
        {"LAYERS": 2, "ROWS": 4, "BLOCK": 1, "WG_SIZE": 32}, _under("sum", (3, 1, 3)), True,
    ),
    "filter-network": Race(
        "opencl_lab.ops.filters.networks.Networks",
        {"RESULTS": 2, "WIDE": 8, "WG_SIZE": 32}, _under("rank", (1, 3, 3)), True,
    ),
    "searchsorted": Race(
        "searchsorted binary-search gpu", {"WG_SIZE": 16, "VALUES": 2}, _of(n=77, m=99), True
    ),
    "gemm-tiled": Race(TILED, {"TILE": 4, "UNROLL": 2}, _of(m=7, n=9, k=10), True),
    "gemm-blocked": Race(PRODUCT, BLOCKED, AWKWARD, True),
    "gemm-blocked-one-buffer": Race(
        PRODUCT, {**BLOCKED, "BUFFERS": 1}, _of(m=11, n=19, k=29, trans_a=True, trans_b=True)
    ),
    "gemm-blocked-split": Race(PRODUCT, {**BLOCKED, "SPLITS": 20}, _of(m=6, n=7, k=160), True),
    "gemm-gemv": Race(THIN, GEMV, THREE, True),
    "gemm-gemv-split": Race(THIN, {**GEMV, "SPLITS": 4}, _of(m=21, n=2, k=70, trans_a=True)),
    "gemm-blocked-last-group": Race(
        PRODUCT, {**BLOCKED, "SPLITS": 3, "WG_K": 2}, _of(m=11, n=19, k=29, batch=2), True, LAST
    ),
    "gemm-gemv-last-group": Race(
        THIN, {**GEMV, "SPLITS": 3}, _of(m=3, n=21, k=37, batch=2), True, LAST
    ),
    "gemm-gemv-last-group-together": Race(  # several items add up the slices of a result
        THIN, {**GEMV, "ROWS": 1, "SPLITS": 9}, _of(m=1, n=9, k=150), seen=LAST
    ),
    "gemm-direct": Race("gemm direct cpu", {}, AWKWARD, True),
    "gemm-packed": Race("gemm packed cpu", {}, AWKWARD, True),
    "gemm-packed-batch": Race("gemm packed cpu", {}, _of(m=33, n=7, k=41, batch=2, trans_a=True)),
    "gemm-gemv-cpu": Race("gemm gemv cpu", {"SPLITS": 3}, THREE, True),
    "gemm-one": Race(PRODUCT, BLOCKED, _of(m=1, n=1, k=1)),
    "fft-local": Race(FFT, LOCAL, _of(n=60, batch=3), True),
    "fft-local-split": Race(
        FFT, {**LOCAL, "EXCHANGE": "split"}, _of(n=98, batch=2, inverse=True)
    ),
    "fft-local-two-phase": Race(FFT, {**LOCAL, "EXCHANGE": "two-phase"}, _of(n=64, batch=5)),
    "fft-local-steps": Race(FFT, STEPS, _of(n=384), True),
    "fft-local-tickets": Race(
        FFT, FUSED, _of(n=384, batch=9), seen=TICKET, units=1, in_order=TICKETS
    ),
    "fft-local-tickets-alone": Race(
        FFT, FUSED, _of(n=384), seen=TICKET, units=1, in_order=TICKETS
    ),
    "fft-local-tickets-columns": Race(
        FFT, {**FUSED, "LOCAL_LIMIT": 16}, _columns(64, 24), seen=TICKET, units=1, in_order=TICKETS
    ),
    "fft-local-sections": Race(
        FFT, {**LOCAL, "EXCHANGE": "two-phase"}, _of(n=512, batch=2), seen={"local_memory": 1200}
    ),
    "fft-local-long-prime": Race(FFT, STEPS, _of(n=149, batch=2)),
    "fft-local-prime": Race(FFT, LOCAL, _of(n=37, batch=2)),
    "fft-local-real": Race(FFT, LOCAL, _of(n=90, batch=3, dtype="float32")),
    "fft-half": Race(FFT, LOCAL, _of(n=77, batch=2, dtype="float16")),
    "fft-vector": Race(FFT_CPU, VECTOR, _of(n=120, batch=3), True),
    "fft-vector-one-row": Race(FFT_CPU, {**VECTOR, "SPLIT": "always"}, _of(n=1024)),
    "fft-vector-back": Race(
        FFT_CPU, VECTOR, _of(n=98, batch=2, dtype="float32", inverse=True)
    ),
    "fft-vector-prime-radix": Race(FFT_CPU, VECTOR, _of(n=68, batch=241), True),
    "fft-vector-convolved": Race(FFT_CPU, VECTOR, _of(n=131, batch=4), True),
    "fft-vector-convolved-steps": Race(
        FFT_CPU, {**VECTOR, "SPLIT": "always"}, _of(n=131, batch=4)
    ),
    "dft-direct-tiled": Race("dft direct-tiled gpu", {}, _of(n=45, batch=3), True),
    "conv2d-tiled": Race("conv2d tiled gpu", {"WG_X": 8, "WG_Y": 4}, _of(**IMAGE), True),
    "conv2d-rolling": Race("conv2d rolling cpu", {}, _of(**IMAGE), True),
    "conv2d-register": Race("conv2d register gpu", {}, _of(**IMAGE, dtype="uint8"), True),
    "conv2d-fft": Race("conv2d fft gpu", CONV2D_FFT, _of(**IMAGE), True),
    "conv2d-adaptive": Race(
        "conv2d adaptive gpu", CONV2D_FFT, _of(**IMAGE), True,
        edit=("const bool worth =", "const bool worth = true ||"),  # an image so small takes sums
    ),
    "conv2d-fft-cpu": Race("conv2d fft cpu", {**CONV2D_FFT, "WG_SIZE": 1}, _of(**IMAGE)),
    "copy": Race("", {}, _copied((5, 1, 7), "int16", "int16"), True),
    "copy-converted": Race("", {}, _copied((3, 37), "float32", "complex64")),
}  # fmt: skip
CASES |= {
    f"planted-{name}": _planted(*planted)
    for name, planted in {
        "outside": (
            "gemm-tiled", OUTSIDE, "if (row < m && column < n)", "if (row <= m && column < n)", True
        ),
        "uninitialized": ("gemm-tiled", UNINITIALIZED, "sum_t sum = 0;", "sum_t sum;", True),
        "fft": ("fft-local", RACE, BARRIER),
        "conv2d-fft": (
            "conv2d-fft", RACE,
            "barrier(CLK_GLOBAL_MEM_FENCE); /* other items may have put a pixel */",
        ),
        "blocked": ("gemm-blocked-one-buffer", RACE, BARRIER),
        "last-group": (
            "gemm-blocked-last-group", RACE, "own = left + number % splits * apart", "own = left"
        ),
        "gemv-last-group": (
            "gemm-gemv-last-group-together", RACE, f"{BARRIER}\n        sum = 0;", "sum = 0;"
        ),
        "rank": ("radix-scan", RACE, f"{BARRIER}\n    if (!before) {{", "if (!before) {"),
        "merge": ("merge-gpu", RACE, f"{BARRIER} /* others may still read */", "", True),
        "odd-even": ("odd-even", RACE, f"{BARRIER}\n        from = to;", "from = to;"),
        "topk": ("topk-row-a-group", RACE, f"*below = 0;\n    {BARRIER}", "*below = 0;"),
        "cpu": ("radix-cpu-cut", RACE, "sum += here;", "sum += k ? here : 0;"),
        "cpu-uneven": ("radix-cpu-uneven", RACE, "sum += here;", "sum += k ? here : 0;"),
        "between-groups": (
            "radix-scan", RACE,
            "table[(row * RADIX + item) * tiles + tile] = ", "table[row * RADIX + item] = ",
        ),
    }.items()
}  # fmt: skip
