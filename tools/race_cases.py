"""The cases of `race_search.py`: small problems of each kernel that has barriers or counters.

Sizes are awkward: one more or less than tiles, primes, fewer elements than items, and a single one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["CASES", "LOWERED", "Case"]

Made = tuple[Any, dict[str, Any], dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A case that runs under Oclgrind.

    Attributes
    ----------
    make : callable
        Takes the device and random numbers; returns a plan, its inputs, and the expected outputs.
    short : bool
        Whether it belongs to the short run.
    edit : tuple of str, optional
        Text of the source, and its replacement.
    planted : str
        If that edit is a fault, the beginning of its report.
    error : float
        Largest difference from the expected outputs, relative to the largest of these.
    in_order : str
        Why groups are in order by counters, so that reports of races between them do not count.
    """

    make: Callable[[Any, Any], Made]
    short: bool = False
    edit: tuple[str, str] | None = None
    planted: str = ""
    error: float = 0.0
    in_order: str = ""


# ---------------------------------------------------------------------- cases


def _sort(
    algorithm: str,
    config: dict[str, Any],
    n: int,
    dtype: str = "int16",
    rows: int = 1,
    even: bool = False,
    **options: Any,
) -> Callable[[Any, Any], Made]:
    def make(device: Any, rng: Any) -> Made:
        import numpy as np

        from opencl_lab.ops.solver import made
        from opencl_lab.ops.sort.problem import SortProblem

        problem = SortProblem(n, np.dtype(dtype), rows, **options)
        keys = rng.integers(-40, 40, (rows, n)).astype(dtype)
        keys[:, ::7] *= 300  # further digits differ
        if even:
            keys = rng.integers(-(2**15), 2**15, (rows, n)).astype(dtype)
        order = np.argsort(-keys if problem.descending else keys, axis=-1, kind="stable")
        arrays, expected = {"keys": keys}, {}
        if problem.indices:
            expected["sorted_values"] = order
        else:
            expected["sorted"] = np.take_along_axis(keys, order, -1)
        if problem.value_bytes:
            arrays["values"] = rng.integers(0, 256, (rows, n * problem.value_bytes), np.uint8).view(
                f"V{problem.value_bytes}"
            )
            expected["sorted_values"] = np.take_along_axis(arrays["values"], order, -1)
        return _planned(made(SORTS[algorithm]), problem, config, device), arrays, expected

    return make


def _merged(lengths: list[int], dtype: str, values: bool = False) -> Callable[[Any, Any], Made]:
    def make(device: Any, rng: Any) -> Made:
        import numpy as np

        from opencl_lab.ops.sort.merge_runs import MergePathRuns, RunsProblem

        runs = [np.sort(rng.integers(-40, 40, n).astype(dtype)) for n in lengths]
        keys, ends = np.concatenate(runs), np.cumsum(lengths)
        order = np.argsort(keys, kind="stable")
        arrays, expected = {"keys": keys[None], "ends": ends}, {"sorted": keys[order][None]}
        problem = RunsProblem(
            keys.size, keys.dtype, value_bytes=4 if values else 0, runs=len(lengths)
        )
        if values:
            arrays["values"] = np.arange(keys.size, dtype=np.uint32)[None].view("V4")
            expected["sorted_values"] = order[None].astype(np.uint32).view("V4")
        return _planned(MergePathRuns(), problem, {"STRETCH": 32}, device), arrays, expected

    return make


def _topk(config: dict[str, Any], n: int, k: int, rows: int = 1) -> Callable[[Any, Any], Made]:
    def make(device: Any, rng: Any) -> Made:
        import numpy as np

        from opencl_lab.ops.select.problem import TopkProblem
        from opencl_lab.ops.select.topk import SELECTION

        keys = rng.integers(0, 300, (rows, n)).astype(np.int16)
        order = np.argsort(-keys, axis=-1, kind="stable")[:, :k]
        places = np.sort(order, axis=-1)  # selected ones come in the order of the row
        expected = {"values": np.take_along_axis(keys, places, -1), "places": places}
        problem = TopkProblem(n, k, keys.dtype, rows)
        return (
            _planned(SELECTION, problem, config, device),
            {"keys": keys},
            expected,
        )

    return make


def _unique(config: dict[str, Any], n: int) -> Callable[[Any, Any], Made]:
    def make(device: Any, rng: Any) -> Made:
        import numpy as np

        from opencl_lab.ops.select.problem import UniqueProblem
        from opencl_lab.ops.select.unique import HEADS

        keys = rng.integers(0, n // 3, n).astype(np.int32)
        order = np.argsort(keys, kind="stable")
        names = ("values", "first_places", "inverse", "counts")
        results = dict(zip(names, np.unique(keys, True, True, True), strict=True))
        problem = UniqueProblem(n, keys.dtype, True, True, True)
        plan = _planned(HEADS, problem, config, device)
        return plan, {"keys": keys[order], "order": order}, results

    return make


def _search(config: dict[str, Any], n: int, m: int) -> Callable[[Any, Any], Made]:
    def make(device: Any, rng: Any) -> Made:
        import numpy as np

        from opencl_lab.ops.select.problem import SearchProblem
        from opencl_lab.ops.select.search import SEARCH

        keys = np.sort(rng.integers(0, n, n).astype(np.int32))
        values = rng.integers(-1, n + 1, m).astype(np.int32)
        problem = SearchProblem(n, m, keys.dtype)
        plan = _planned(SEARCH.algorithm("binary-search"), problem, config, device)
        return plan, {"keys": keys, "values": values}, {"places": np.searchsorted(keys, values)}

    return make


def _gemm(
    algorithm: str,
    config: dict[str, Any],
    m: int,
    n: int,
    k: int,
    in_launch: bool = False,
    **options: Any,
) -> Callable[[Any, Any], Made]:
    """With `in_launch`, the last group of a tile adds up what others have of k."""

    def make(device: Any, rng: Any) -> Made:
        import numpy as np

        from opencl_lab.ops.gemm.problem import GemmProblem
        from opencl_lab.ops.gemm.solver import GEMM_SOLVER

        problem = GemmProblem(m, n, k, **options)
        inputs = {  # whose products and sums are exact
            name: rng.integers(-4, 5, shape).astype(np.float32)
            for name, shape in (("a", problem.shape_a), ("b", problem.shape_b))
        }
        a, b = (
            inputs[name].swapaxes(-1, -2) if getattr(problem, f"trans_{name}") else inputs[name]
            for name in "ab"
        )
        if in_launch:
            seen = replace(device.capabilities, visible_writes=True, inline_ptx=False)
            device = replace(device, capabilities=seen)
        plan = _planned(GEMM_SOLVER.algorithm(algorithm), problem, config, device)
        assert not in_launch or len(plan.launches) == 1
        return plan, inputs, {"result": a @ b}

    return make


def _named(
    operation: str,
    algorithm: str,
    config: dict[str, Any],
    kind: str = "cpu",
    fused: bool = False,
    local_memory: int = 0,
    inner: int = 1,
    **options: Any,
) -> Callable[[Any, Any], Made]:
    """A problem with the data and the right outputs of the lab, by the form for a kind of device.

    With `fused`, steps share a launch, whose groups take tickets. `local_memory` is in bytes, if it
    is not that of the device; with `inner`, columns are transformed.
    """

    def make(device: Any, rng: Any) -> Made:
        from opencl_lab.lab.registry import operations

        chosen = operations()[operation]
        problem = chosen.problem(**options)
        problem = replace(problem, inner=inner) if inner > 1 else problem
        inputs = chosen.generate(problem, 1, **options)
        seen = replace(device.capabilities, forward_progress=fused, visible_writes=fused, fp64=True)
        seen = replace(seen, local_memory=local_memory or seen.local_memory)
        units = 1 if fused else device.compute_units  # for each, one step is further ahead
        device = replace(device, kind=kind, capabilities=seen, compute_units=units)
        plan = _planned(chosen.algorithm(algorithm).on(kind), problem, config, device)
        assert not fused or len(plan.launches) == 1
        return plan, inputs, chosen.expected(problem, inputs)

    return make


def _copy(shape: tuple[int, ...], dtype: str, converted: str) -> Callable[[Any, Any], Made]:
    """A copy with its axes in reverse, to another type."""

    def make(device: Any, rng: Any) -> Made:
        import numpy as np

        from opencl_lab.runtime.copies import Copy, View, dense_strides

        source = rng.integers(-99, 99, shape).astype(dtype)
        turned = View(shape[::-1], dense_strides(shape)[::-1], 0)
        plan = Copy(turned, View.dense(shape[::-1]), source.dtype, np.dtype(converted)).plan()
        return plan, {"source": source}, {"target": source.T.astype(converted)}

    return make


def _planned(algorithm: Any, problem: Any, config: dict[str, Any], device: Any) -> Any:
    return algorithm.plan(problem, algorithm.configure(problem, device, config), device)


SORTS = {
    "radix-cpu": "opencl_lab.ops.sort.radix_cpu:RadixCpu",
    "radix-gpu": "opencl_lab.ops.sort.radix_gpu:RadixGpu",
    "merge-cpu": "opencl_lab.ops.sort.merge_cpu:MergePathCpu",
    "merge-gpu": "opencl_lab.ops.sort.merge_gpu:MergePathGpu",
    "odd-even-merge": "opencl_lab.ops.sort.odd_even_merge:OddEvenMerge",
}
"""Both sorts of a name: CPUs run those for GPUs, too."""
TILES = {"WG_SIZE": 32, "ITEM_KEYS": 2, "DIGIT_BITS": 4}
SCAN, ONESWEEP = {"FORM": "scan", **TILES}, {"FORM": "onesweep", **TILES}
RADIX_CPU = {"DIGIT_BITS": 5, "CAPACITY": 64}
MERGE_GPU = {"WG_SIZE": 32, "ITEM_KEYS": 3}
MERGE_CPU = {"TILE": 32, "STRETCH": 32}
ODD_EVEN = {"WG_SIZE": 16, "TILE": 64, "WORK_PER_ITEM": 8, "BLOCKED": False, "NARROW": False}
SELECT = {"WG_SIZE": 32, "ITEM_KEYS": 2, "DIGIT_BITS": 4}
BLOCKED = {
    "WORK_M": 2, "WORK_N": 4, "WG_M": 4, "WG_N": 4, "TILE_K": 8, "BUFFERS": 2, "LOCAL_PAD": 1,
    "SWIZZLE": 2, "SPLITS": 1,
}  # fmt: skip
GEMV = {"LANES": 4, "PIECES": 4, "VECTOR": 2, "ROWS": 2, "UNROLL": 2, "SPLITS": 1}
RADIX_CPU_LIMITS, TOPK_LIMITS = (
    "opencl_lab.ops.sort.radix_cpu.",
    "opencl_lab.ops.select.topk.",
)
LOWERED = {
    RADIX_CPU_LIMITS + "CUT": 100,
    RADIX_CPU_LIMITS + "WHOLE": 200,
    RADIX_CPU_LIMITS + "KEYS_OF_CHUNK": 256,
    RADIX_CPU_LIMITS + "KEYS_OF_RUN": 64,
    RADIX_CPU_LIMITS + "LEAST_BITS": 4,
    TOPK_LIMITS + "WHOLE": 100,
    "opencl_lab.ops.fft.passes.fusion.LOOK_AHEAD_POINTS": 256,
    TOPK_LIMITS + "WHOLE_OF_MANY": 100,
}
"""Sizes from which rows are cut, and into how much; how far steps of a transform are ahead."""
BARRIER = "barrier(CLK_LOCAL_MEM_FENCE);"
RACE, UNINITIALIZED, OUTSIDE = "data race", "Uninitialized value", "Invalid"
FFT_LOCAL = {"FORM": "local-memory", "WG_SIZE": 32, "POINTS": 4, "MAX_RADIX": 8}
FFT_VECTOR = {"FORM": "vector", "VECTOR_WIDTH": 4, "BLOCK": 2, "MAX_RADIX": 8}
OBLONG = {"height": 9, "width": 21, "ksize": 3, "boundary": "reflect"}
CONV2D_FFT = {"BLOCK": 16, "PAIRS": 2, "WG_SIZE": 32}
NEAR = 1e-5
TICKETS = "a group waits for the counts of those before it, which come after a fence"

CASES: dict[str, Case] = {
    "radix-scan": Case(_sort("radix-gpu", SCAN, 301), short=True),
    "radix-scan-rows": Case(_sort("radix-gpu", SCAN, 131, rows=3, value_bytes=8)),
    "radix-onesweep": Case(_sort("radix-gpu", ONESWEEP, 301), short=True),
    "radix-onesweep-rows": Case(_sort("radix-gpu", ONESWEEP, 131, "int32", 3, indices=True)),
    "radix-onesweep-impatient": Case(
        _sort("radix-gpu", {**ONESWEEP, "MAX_POLLS": 0, "LOOKS": 1}, 301, descending=True)
    ),
    "radix-onesweep-counts-for-others": Case(
        _sort("radix-gpu", {**ONESWEEP, "MAX_POLLS": 0}, 301),
        edit=("#define PUT(p, word) atomic_xchg((p), (word))", "#define PUT(p, word)"),
    ),
    "radix-one-launch": Case(_sort("radix-gpu", SCAN, 61, rows=4, value_bytes=2), short=True),
    "radix-cpu-rows": Case(_sort("radix-cpu", RADIX_CPU, 77, "int32", 9)),
    "radix-cpu-cut": Case(
        _sort("radix-cpu", RADIX_CPU, 1501, "int32", even=True, value_bytes=4), short=True
    ),
    "radix-cpu-cut-streamed": Case(
        _sort("radix-cpu", {**RADIX_CPU, "STREAM": True}, 1501, "float32", even=True)
    ),
    "radix-cpu-uneven": Case(_sort("radix-cpu", RADIX_CPU, 1501, "int32", indices=True)),
    "merge-gpu": Case(_sort("merge-gpu", MERGE_GPU, 500), short=True),
    "merge-gpu-indices": Case(_sort("merge-gpu", MERGE_GPU, 301, "float32", 2, indices=True)),
    "merge-gpu-values": Case(_sort("merge-gpu", MERGE_GPU, 193, value_bytes=16)),
    "merge-gpu-short-rows": Case(_sort("merge-gpu", MERGE_GPU, 11, "float32", 21)),
    "merge-cpu": Case(_sort("merge-cpu", MERGE_CPU, 500, "float32"), short=True),
    "merge-cpu-rows": Case(_sort("merge-cpu", MERGE_CPU, 150, rows=3, indices=True)),
    "merge-runs": Case(_merged([200, 0, 1, 150], "int32"), short=True),
    "merge-runs-codes": Case(_merged([90, 70], "float32")),
    "merge-runs-pairs": Case(_merged([33, 100, 64, 7, 1], "int16", values=True)),
    "odd-even": Case(_sort("odd-even-merge", ODD_EVEN, 500), short=True),
    "odd-even-narrow": Case(
        _sort("odd-even-merge", {**ODD_EVEN, "NARROW": True}, 500, value_bytes=4)
    ),
    "odd-even-blocked": Case(
        _sort("odd-even-merge", {**ODD_EVEN, "BLOCKED": True, "WG_SIZE": 4}, 300, indices=True)
    ),
    "topk-cut": Case(_topk(SELECT, 700, 60), short=True),
    "topk-cut-rows": Case(_topk({**SELECT, "DIGIT_BITS": 6}, 400, 150, 3)),
    "topk-cut-alone": Case(_topk({**SELECT, "WG_SIZE": 1, "ITEM_KEYS": 16}, 400, 20)),
    "topk-row-a-group": Case(_topk(SELECT, 90, 33, 4), short=True),
    "unique": Case(_unique({"WG_SIZE": 32, "ITEM_KEYS": 2}, 500), short=True),
    "unique-alone": Case(_unique({"WG_SIZE": 1, "ITEM_KEYS": 16}, 300)),
    "searchsorted": Case(_search({"WG_SIZE": 16, "VALUES": 2}, 77, 99), short=True),
    "gemm-tiled": Case(_gemm("tiled", {"TILE": 4, "UNROLL": 2}, 7, 9, 10), short=True),
    "gemm-blocked": Case(_gemm("blocked", BLOCKED, 11, 19, 29), short=True),
    "gemm-blocked-one-buffer": Case(
        _gemm("blocked", {**BLOCKED, "BUFFERS": 1}, 11, 19, 29, trans_a=True, trans_b=True)
    ),
    "gemm-blocked-split": Case(
        _gemm("blocked", {**BLOCKED, "SPLITS": 20}, 6, 7, 160), short=True
    ),
    "gemm-gemv": Case(_gemm("gemv", GEMV, 3, 21, 37), short=True),
    "gemm-gemv-split": Case(_gemm("gemv", {**GEMV, "SPLITS": 4}, 21, 2, 70, trans_a=True)),
    "gemm-blocked-last-group": Case(
        _gemm("blocked", {**BLOCKED, "SPLITS": 3}, 11, 19, 29, in_launch=True, batch=2), short=True
    ),
    "gemm-gemv-last-group": Case(
        _gemm("gemv", {**GEMV, "SPLITS": 3}, 3, 21, 37, in_launch=True, batch=2), short=True
    ),
    "gemm-gemv-last-group-together": Case(  # several items add up the slices of a result
        _gemm("gemv", {**GEMV, "ROWS": 1, "SPLITS": 9}, 1, 9, 150, in_launch=True)
    ),
    "gemm-direct": Case(_gemm("direct", {}, 11, 19, 29), short=True),
    "gemm-packed": Case(_gemm("packed", {}, 11, 19, 29), short=True),
    "gemm-packed-batch": Case(_gemm("packed", {}, 33, 7, 41, batch=2, trans_a=True)),
    "gemm-gemv-cpu": Case(
        _named("gemm", "gemv", {"SPLITS": 3}, m=3, n=21, k=37), error=NEAR, short=True
    ),
    "gemm-one": Case(_gemm("blocked", BLOCKED, 1, 1, 1)),
    "fft-local": Case(
        _named("dft", "fft", FFT_LOCAL, "gpu", n=60, batch=3), error=NEAR, short=True
    ),
    "fft-local-split": Case(
        _named(
            "dft", "fft", {**FFT_LOCAL, "EXCHANGE": "split"}, "gpu", n=98, batch=2, inverse=True
        ),
        error=NEAR,
    ),
    "fft-local-two-phase": Case(
        _named("dft", "fft", {**FFT_LOCAL, "EXCHANGE": "two-phase"}, "gpu", n=64, batch=5),
        error=NEAR,
    ),
    "fft-local-steps": Case(
        _named("dft", "fft", {**FFT_LOCAL, "LOCAL_LIMIT": 32}, "gpu", n=384), error=NEAR, short=True
    ),
    "fft-local-tickets": Case(
        _named(
            "dft", "fft", {**FFT_LOCAL, "LOCAL_LIMIT": 32, "FUSED": "always"}, "gpu", n=384,
            batch=9, fused=True,
        ),
        error=NEAR,
        in_order=TICKETS,
    ),
    "fft-local-tickets-alone": Case(
        _named(
            "dft", "fft", {**FFT_LOCAL, "LOCAL_LIMIT": 32, "FUSED": "always"}, "gpu", n=384,
            fused=True,
        ),
        error=NEAR,
        in_order=TICKETS,
    ),
    "fft-local-tickets-columns": Case(
        _named(
            "dft", "fft", {**FFT_LOCAL, "LOCAL_LIMIT": 16, "FUSED": "always"}, "gpu", n=64,
            inner=24, fused=True,
        ),
        error=NEAR,
        in_order=TICKETS,
    ),
    "fft-local-sections": Case(
        _named(
            "dft", "fft", {**FFT_LOCAL, "EXCHANGE": "two-phase"}, "gpu", n=512, batch=2,
            local_memory=1200,
        ),
        error=NEAR,
    ),
    "fft-local-long-prime": Case(
        _named("dft", "fft", {**FFT_LOCAL, "LOCAL_LIMIT": 32}, "gpu", n=149, batch=2), error=NEAR
    ),
    "fft-local-prime": Case(_named("dft", "fft", FFT_LOCAL, "gpu", n=37, batch=2), error=NEAR),
    "fft-local-real": Case(
        _named("dft", "fft", FFT_LOCAL, "gpu", n=90, batch=3, dtype="float32"), error=NEAR
    ),
    "fft-half": Case(
        _named("dft", "fft", FFT_LOCAL, "gpu", n=77, batch=2, dtype="float16"), error=1e-3
    ),
    "fft-vector": Case(
        _named("dft", "fft", FFT_VECTOR, n=120, batch=3), error=NEAR, short=True
    ),
    "fft-vector-one-row": Case(
        _named("dft", "fft", {**FFT_VECTOR, "SPLIT": "always"}, n=1024), error=NEAR
    ),
    "fft-vector-back": Case(
        _named("dft", "fft", FFT_VECTOR, n=98, batch=2, dtype="float32", inverse=True), error=NEAR
    ),
    "fft-vector-prime-radix": Case(
        _named("dft", "fft", FFT_VECTOR, n=68, batch=241), error=NEAR, short=True
    ),
    "fft-vector-convolved": Case(
        _named("dft", "fft", FFT_VECTOR, n=131, batch=4), error=NEAR, short=True
    ),
    "fft-vector-convolved-steps": Case(
        _named("dft", "fft", {**FFT_VECTOR, "SPLIT": "always"}, n=131, batch=4), error=NEAR
    ),
    "dft-direct-tiled": Case(
        _named("dft", "direct-tiled", {}, "gpu", n=45, batch=3), error=NEAR, short=True
    ),
    "conv2d-tiled": Case(
        _named("conv2d", "tiled", {"WG_X": 8, "WG_Y": 4}, "gpu", **OBLONG), error=NEAR, short=True
    ),
    "conv2d-rolling": Case(_named("conv2d", "rolling", {}, **OBLONG), error=NEAR, short=True),
    "conv2d-register": Case(
        _named("conv2d", "register", {}, "gpu", **{**OBLONG, "dtype": "uint8"}), short=True
    ),
    "conv2d-fft": Case(
        _named("conv2d", "fft", CONV2D_FFT, "gpu", **OBLONG),
        error=NEAR,
        short=True,
    ),
    "conv2d-adaptive": Case(
        _named("conv2d", "adaptive", CONV2D_FFT, "gpu", **OBLONG),
        edit=("const bool worth =", "const bool worth = true ||"),  # an image so small takes sums
        error=NEAR,
        short=True,
    ),
    "conv2d-fft-cpu": Case(
        _named("conv2d", "fft", {"BLOCK": 16, "PAIRS": 2, "WG_SIZE": 1}, **OBLONG), error=NEAR
    ),
    "copy": Case(_copy((5, 1, 7), "int16", "int16"), short=True),
    "copy-converted": Case(_copy((3, 37), "float32", "complex64")),
    "planted-outside": Case(
        _gemm("tiled", {"TILE": 4, "UNROLL": 2}, 7, 9, 10),
        edit=("if (row < m && column < n)", "if (row <= m && column < n)"),
        planted=OUTSIDE,
        short=True,
    ),
    "planted-uninitialized": Case(
        _gemm("tiled", {"TILE": 4, "UNROLL": 2}, 7, 9, 10),
        edit=("sum_t sum = 0;", "sum_t sum;"),
        planted=UNINITIALIZED,
        short=True,
    ),
    "planted-fft": Case(
        _named("dft", "fft", FFT_LOCAL, "gpu", n=60, batch=3),
        edit=(BARRIER, ""),
        planted=RACE,
    ),
    "planted-conv2d-fft": Case(
        _named("conv2d", "fft", CONV2D_FFT, "gpu", **OBLONG),
        edit=("barrier(CLK_GLOBAL_MEM_FENCE); /* other items may have put a pixel */", ""),
        planted=RACE,
    ),
    "planted-blocked": Case(
        _gemm("blocked", {**BLOCKED, "BUFFERS": 1}, 11, 19, 29),
        edit=(BARRIER, ""),
        planted=RACE,
    ),
    "planted-last-group": Case(
        _gemm("blocked", {**BLOCKED, "SPLITS": 3}, 11, 19, 29, in_launch=True),
        edit=("own = left + number % splits * apart", "own = left"),
        planted=RACE,
    ),
    "planted-gemv-last-group": Case(
        _gemm("gemv", {**GEMV, "ROWS": 1, "SPLITS": 9}, 1, 9, 150, in_launch=True),
        edit=("barrier(CLK_LOCAL_MEM_FENCE);\n        sum = 0;", "sum = 0;"),
        planted=RACE,
    ),
    "planted-rank": Case(
        _sort("radix-gpu", SCAN, 301),
        edit=(f"{BARRIER}\n    if (!before) {{", "if (!before) {"),
        planted=RACE,
    ),
    "planted-merge": Case(
        _sort("merge-gpu", MERGE_GPU, 300),
        short=True,
        edit=(f"{BARRIER} /* others may still read */", ""),
        planted=RACE,
    ),
    "planted-odd-even": Case(
        _sort("odd-even-merge", ODD_EVEN, 150),
        edit=(f"{BARRIER}\n        from = to;", "from = to;"),
        planted=RACE,
    ),
    "planted-topk": Case(
        _topk(SELECT, 90, 33, 2),
        edit=(f"*below = 0;\n    {BARRIER}", "*below = 0;"),
        planted=RACE,
    ),
    "planted-cpu": Case(
        _sort("radix-cpu", RADIX_CPU, 1501, "int32", even=True),
        edit=("sum += here;", "sum += k ? here : 0;"),
        planted=RACE,
    ),
    "planted-cpu-uneven": Case(
        _sort("radix-cpu", RADIX_CPU, 1501, "int32"),
        edit=("sum += here;", "sum += k ? here : 0;"),
        planted=RACE,
    ),
    "planted-between-groups": Case(
        _sort("radix-gpu", SCAN, 301),
        edit=("table[(row * RADIX + item) * tiles + tile] = ", "table[row * RADIX + item] = "),
        planted=RACE,
    ),
}  # fmt: skip
