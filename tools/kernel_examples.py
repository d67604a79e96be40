"""One rendered example of each kernel file: OpenCL C to read, as a device is given it.

    python tools/kernel_examples.py write        # after a change of a template or a planner
    python tools/kernel_examples.py check        # names those that are missing, stale or too many

`docs/kernels/gemm/packed.cl` is `clkernels/gemm/packed.cl.mako` for one problem on one made-up
device of `rendered_kernels.py`, with the configuration that its head gives. Nothing of it depends
on what was tuned, nor on a device that is there. `indented.py` indents it.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from indented import indented
from rendered_kernels import DEVICES

from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Value
from opencl_lab.core.template import ROOT, render
from opencl_lab.lab.registry import get_operation
from opencl_lab.ops.fft import cosine
from opencl_lab.ops.fft.fast import FftAlgorithm
from opencl_lab.ops.fft.passes.rows import mirror, pointwise_product
from opencl_lab.ops.fft.problem import DftProblem
from opencl_lab.ops.select.problem import UniqueProblem
from opencl_lab.ops.select.unique import HEADS
from opencl_lab.ops.sort.gather import GATHER, GatherProblem
from opencl_lab.ops.sort.merge_runs import MERGE, RunsProblem
from opencl_lab.runtime.copies import Copy, View

FOLDER = Path(__file__).parents[1] / "docs/kernels"
SUFFIX = ".cl.mako"
WIDTH = 98
COMPLEX64 = np.dtype("complex64")


@dataclass(frozen=True)
class Example:
    """What renders a kernel file, and what to say of it, by name."""

    params: Mapping[str, Any]
    facts: Mapping[str, str]


def launched(template: str, plan: Plan, problem: str, device: str, **facts: str) -> Example:
    """Return the first launch of a kernel file in a plan, as an example."""
    launch = next(item for item in plan.launches if item.template == f"{template}{SUFFIX}")
    shape = f"{launch.kernel}, {launch.global_size} items in groups of {launch.local_size}"
    where = f"{DEVICES[device].name} ({device} of tools/rendered_kernels.py)"
    return Example(launch.params, {"problem": problem, **facts, "device": where, "launch": shape})


def planned(
    template: str, chosen: str, device: str, options: Mapping[str, Any], **config: Value
) -> Example:
    """Return how an algorithm, named "operation algorithm", solves a problem.

    Its configuration is the built-in one but for `config`.
    """
    name, algorithm_name = chosen.split()
    operation = get_operation(name)
    problem = operation.problem(**operation.with_defaults(options))
    algorithm = operation.algorithm(algorithm_name)
    built_in = algorithm.default_config(problem, DEVICES[device])
    whole = built_in.replace(**config)
    said = " ".join([name, *(f"{option}={value}" for option, value in options.items())])
    given = " ".join(f"{parameter}={value}" for parameter, value in whole.items())
    facts = {"algorithm": algorithm_name, "configuration": given}
    plan = algorithm.plan(problem, whole, DEVICES[device])
    return launched(template, plan, said, device, **facts)


def given(**params: Any) -> Example:
    """Return an example of a kernel file that no planner launches."""
    return Example(params, {"parameters": ", ".join(f"{n}={v}" for n, v in params.items())})


def columns() -> Example:
    """Return how long transforms along columns become transforms along rows."""
    fft, device = FftAlgorithm(), DEVICES["pocl"]
    problem = DftProblem(1 << 14, COMPLEX64, inner=64)
    plan = fft.plan(problem, fft.default_config(problem, device), device)
    return launched("fourier/rows", plan, "64 columns of 16384 complex64", "pocl")


def cosine_transform() -> Example:
    """Return what surrounds the Fourier transforms of a cosine transform."""
    problem = cosine._Cosine(2, False, 1000, 8, COMPLEX64, 1.0, False)
    device = DEVICES["h200"]
    plan = problem.plan(FftAlgorithm().default_config(problem.fourier, device), device)
    return launched("dft/cosine", plan, "8 cosine transforms of type 2, of 1000 float32", "h200")


def gathering() -> Example:
    """Return how elements are taken from places."""
    problem, device = GatherProblem(n=1000, k=7, rows=3, nbytes=8, places=True), DEVICES["h200"]
    algorithm = GATHER.algorithms[0]
    plan = algorithm.plan(problem, algorithm.default_config(problem, device), device)
    return launched("sort/gather", plan, "7 elements of 8 bytes of each of 3 rows of 1000", "h200")


def merging() -> Example:
    """Return how sorted runs are merged."""
    problem, device = RunsProblem(1_000_000, np.dtype("int32"), runs=4), DEVICES["pocl"]
    algorithm = MERGE.algorithms[0]
    plan = algorithm.plan(problem, algorithm.default_config(problem, device), device)
    return launched("sort/merge_runs_cpu", plan, "4 sorted runs of 1000000 int32 in all", "pocl")


def heads() -> Example:
    """Return how one thread finds the heads of runs."""
    problem = UniqueProblem(1000, np.dtype("float32"), counts=True)
    device = replace(DEVICES["pocl"], compute_units=1)
    plan = HEADS.plan(problem, HEADS.default_config(problem, device), device)
    return launched("select/heads_serial", plan, "1000 sorted float32, counted", "pocl")


def copying() -> Example:
    """Return a copy of a transposed matrix of float16 to a dense one of float32."""
    views = View((300, 200), (1, 300), 0), View.dense((300, 200))
    plan = Copy(*views, np.dtype("float16"), np.dtype("float32")).plan()
    return launched("common/copy", plan, "300 x 200 numbers of float16 to float32", "h200")


def spectra() -> Example:
    """Return what makes whole spectra of halves."""
    plan = mirror(1000, 8, COMPLEX64, False, DEVICES["h200"])
    return launched("fourier/mirror", plan, "8 spectra of 1000 complex64", "h200")


def product() -> Example:
    """Return a product of spectra."""
    plan = pointwise_product(1000, COMPLEX64, DEVICES["h200"])
    return launched("fourier/pointwise", plan, "1000 numbers of complex64", "h200")


PLANNED: tuple[tuple[str, str, str, dict[str, Any], dict[str, Value]], ...] = (
    ("common/widen", "dft direct-naive", "h200", {"n": 1000, "dtype": "float16"}, {}),
    ("conv2d/fft", "conv2d adaptive", "h200", {"size": 1000, "ksize": 31}, {}),
    ("conv2d/naive", "conv2d naive", "pocl", {"size": 1000, "ksize": 5}, {}),
    (
        "conv2d/register", "conv2d register", "h200", {"size": 1000, "ksize": 3},
        {"VECTOR_WIDTH": 4, "VECTORS": 1, "ROWS": 2},
    ),
    ("conv2d/rolling", "conv2d rolling", "pocl", {"size": 300, "ksize": 3}, {"VECTORS": 2}),
    ("conv2d/tiled", "conv2d tiled", "h200", {"size": 1000, "ksize": 5}, {}),
    ("dft/direct_naive", "dft direct-naive", "h200", {"n": 1000, "batch": 8}, {}),
    (
        "dft/direct_tiled", "dft direct-tiled", "pocl", {"n": 1000, "batch": 8},
        {"WORK_PER_ITEM": 4, "VECTOR_WIDTH": 4, "TILE": 16},
    ),
    ("fourier/bluestein", "dft fft", "pocl", {"n": 10_007, "batch": 1}, {}),
    ("fourier/fft_local", "dft fft", "h200", {"n": 64, "batch": 100}, {}),
    ("fourier/fft_vector", "dft fft", "pocl", {"n": 64, "batch": 100}, {}),
    ("fourier/real", "dft fft", "h200", {"n": 100_000, "dtype": "float32"}, {}),
    ("fourier/scales", "dft fft", "pocl", {"n": 1009, "batch": 3, "dtype": "float32"}, {}),
    (
        "gemm/blocked", "gemm blocked", "h200", {"size": 1024}, {"WORK_M": 4, "WORK_N": 4},
    ),
    ("gemm/direct", "gemm direct", "pocl", {"m": 30, "n": 40, "k": 50}, {"ROWS": 4}),
    ("gemm/gemv_cpu", "gemm gemv", "pocl", {"m": 1, "n": 4096, "k": 4096, "trans_b": True}, {}),
    ("gemm/gemv_gpu", "gemm gemv", "h200", {"m": 1, "n": 4096, "k": 4096, "trans_b": True}, {}),
    ("gemm/naive", "gemm naive", "h200", {"size": 1000, "beta": 0.5}, {}),
    (
        "gemm/packed", "gemm packed", "pocl", {"size": 4096},
        {"ROWS": 4, "VECTORS": 2, "VECTOR_WIDTH": 8, "PACK_B": "ahead"},
    ),
    ("gemm/split_k_reduction", "gemm blocked", "plain-gpu", {"m": 64, "n": 64, "k": 65_536}, {}),
    ("gemm/tensor_pack", "gemm tensor", "h200-units", {"size": 2000, "dtype": "float64"}, {}),
    (
        "gemm/tensor_pack_halves", "gemm tensor", "h200-units",
        {"size": 2000, "dtype": "float16"}, {"PACK": 1},
    ),
    ("gemm/tensor_warp", "gemm tensor", "h200-units", {"size": 2000, "dtype": "float64"}, {}),
    (
        "gemm/tensor_warpgroup", "gemm tensor", "h200-units",
        {"size": 4096, "dtype": "float16"}, {"PACK": 1},
    ),
    ("gemm/tiled", "gemm tiled", "h200", {"size": 1000}, {}),
    ("select/radix_rank", "topk radix-rank", "pocl", {"n": 1000, "k": 10}, {}),
    ("select/radix_select", "topk radix-select", "h200", {"n": 50_000, "k": 4}, {}),
    ("select/search", "searchsorted binary-search", "h200", {"n": 100_000, "m": 1000}, {}),
    ("select/unique", "unique radix", "h200", {"n": 50_000}, {}),
    ("sort/half_keys", "sort odd-even-merge", "h200", {"n": 5000, "dtype": "float16"}, {}),
    ("sort/merge_path_cpu", "sort merge-path", "pocl", {"n": 1_000_000}, {}),
    ("sort/merge_path_gpu", "sort merge-path", "h200", {"n": 1_000_000}, {}),
    ("sort/odd_even_merge", "sort odd-even-merge", "h200", {"n": 1_000_000}, {}),
    ("sort/quicksort_cpu", "sort quicksort", "pocl", {"n": 10_000, "dtype": "float32"}, {}),
    ("sort/radix_cpu", "sort radix", "pocl", {"n": 1_000_000}, {}),
    ("sort/radix_gpu", "sort radix", "plain-gpu", {"n": 1_000_000}, {}),
    ("sort/radix_gpu_rows", "sort radix", "plain-gpu", {"n": 1000}, {}),
)  # fmt: skip
"""A kernel file, what plans it, the device, the problem, and what its configuration differs in."""
BY_OTHERS = {
    "common/copy": copying,
    "dft/cosine": cosine_transform,
    "fourier/mirror": spectra,
    "fourier/pointwise": product,
    "fourier/rows": columns,
    "select/heads_serial": heads,
    "sort/gather": gathering,
    "sort/merge_runs_cpu": merging,
}
"""Kernel files that no operation of the lab launches."""
GIVEN: dict[str, dict[str, Any]] = {
    "common/fingerprint": {"CHUNKED": False},
    "doctor/barriers": {"WG_SIZE": 64},
    "doctor/local_memory": {"WG_SIZE": 64, "WORDS": 8192, "PASSED": True},
    "doctor/matrix_units": {"UNITS": "warp", "TYPE": "double"},
    "doctor/peak_arithmetic": {
        "REAL_T": "float", "VECTOR_WIDTH": 4, "CHAINS": 4, "UNROLL": 2, "WG_SIZE": 64,
    },
    "doctor/peak_copy": {"VECTOR_WIDTH": 4, "CHUNKED": False, "UNROLL": 4, "WG_SIZE": 256},
    "doctor/peak_matrix": {"UNITS": "warp", "TYPE": "double"},
    "doctor/progress": {"PTX": False},
    "doctor/vector_forms": {
        "TYPE": "short", "PARTNER": "float", "WIDTHS": (2, 3, 4), "ITEMS": 16, "STORED": False,
    },
    "doctor/vectors": {"elements": (("float", 4), ("uint", 4)), "size": 16},
}  # fmt: skip
"""Parameters of kernel files that no plan launches."""


def examples() -> Iterator[tuple[str, Example]]:
    """Yield the name of each kernel file below `clkernels`, without its suffix, and its example."""
    for template, chosen, device, options, config in PLANNED:
        yield template, planned(template, chosen, device, options, **config)
    for template, make in BY_OTHERS.items():
        yield template, make()
    for template, params in GIVEN.items():
        yield template, given(**params)


def head(template: str, facts: Mapping[str, str]) -> str:
    """Return the comment that says what an example is of."""
    lines = [
        f"An example of clkernels/{template}{SUFFIX}, rendered by tools/kernel_examples.py:",
        "what to change is the template.",
        "",
    ]
    for name, text in facts.items():
        indent = " " * 18
        lines += textwrap.wrap(f"    {name:14}{text}", WIDTH - 3, subsequent_indent=indent)
    return "/*\n" + "".join(f" * {line}".rstrip() + "\n" for line in lines) + " */\n"


def fresh() -> dict[Path, str]:
    """Return all examples: their texts by their paths below the folder."""
    return {
        Path(f"{template}.cl"): head(template, example.facts)
        + indented(render(f"{template}{SUFFIX}", example.params).text)
        for template, example in examples()
    }


def complaints(found: Mapping[Path, str], folder: Path = FOLDER) -> list[str]:
    """Return what is wrong with the examples of a folder, a line each, by what they should be."""
    there = {path.relative_to(folder) for path in folder.rglob("*.cl")}
    files = {path.relative_to(ROOT) for path in ROOT.rglob(f"*{SUFFIX}")}
    wanted = {path.with_name(path.name.removesuffix(".mako")) for path in files}
    return [
        *(f"{path}: the kernel file has no example" for path in sorted(wanted - found.keys())),
        *(f"{path}: there is no such example" for path in sorted(there - found.keys())),
        *(
            f"{path}: not what the kernel file is rendered to now"
            for path, text in found.items()
            if path not in there or (folder / path).read_text("utf-8") != text
        ),
    ]


def main() -> int:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", choices=("write", "check"))
    found = fresh()
    if parser.parse_args().command == "write":
        for path in FOLDER.rglob("*.cl"):
            path.unlink()
        for path, text in found.items():
            (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
            (FOLDER / path).write_text(text, encoding="utf-8")
    wrong = complaints(found)
    print("\n".join(wrong) or f"{len(found)} examples, all fresh")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
