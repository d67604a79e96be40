"""What every algorithm would build and launch, to compare before and after a change of its code.

    python tools/rendered_kernels.py > before     # then change templates or planners
    python tools/rendered_kernels.py > after
    diff before after
    python tools/rendered_kernels.py "dft fft n=1024 on h200" --text      # what differs, as text

Plans are pure, so this needs no device: it plans many problems on made-up devices, renders their
kernels, and prints a digest of each. Comments, white space and the names of variables, functions,
buffers and arguments do not count, nor where a template lies, so that renaming changes nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.core.plan import Launch, LocalMemory, Plan, Table
from opencl_lab.core.template import render
from opencl_lab.lab.operation import Problem, Solver
from opencl_lab.lab.registry import operations
from opencl_lab.ops.sort.gather import GATHER, GatherProblem

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from covering import candidates, feasible
from matrix import ROWS

_ALL = {"fp64": True, "fp16": True, "int64_atomics": True, "visible_writes": True}
_H200 = Capabilities(
    **_ALL, inline_ptx=True, max_work_group=1024, local_memory=48 << 10,
    vector_bytes=64, forward_progress=True,
)  # fmt: skip
_UNITS = replace(_H200, matrix_units=True, warpgroup_matrix_units=True, declared_memory=226 << 10)
_PLAIN = Capabilities(max_work_group=256, local_memory=64 << 10, vector_bytes=16)
_CPU = Capabilities(**_ALL, max_work_group=4096, local_memory=256 << 10, vector_bytes=64)
_LARGE = {"global_memory": 1 << 40, "max_allocation": 1 << 38, "max_work_items": (4096,) * 3}

DEVICES = {
    "h200": Device(
        "NVIDIA H200", "gpu", vendor="NVIDIA Corporation", platform="NVIDIA CUDA",
        compute_units=132, compute_capability=(9, 0), work_group_multiple=32,
        native_vector_bytes=4, local_memory=48 << 10, max_work_group=1024, capabilities=_H200,
        **_LARGE,
    ),
    "plain-gpu": Device(
        "GPU", "gpu", vendor="Somebody", compute_units=40, work_group_multiple=64,
        local_memory=64 << 10, capabilities=_PLAIN, **_LARGE,
    ),
    "pocl": Device(
        "EPYC", "cpu", platform="Portable Computing Language", compute_units=2,
        native_vector_bytes=32, local_memory=256 << 10, max_work_group=4096, unified_memory=True,
        capabilities=_CPU, **_LARGE,
    ),
    "intel-16": Device(
        "Xeon", "cpu", platform="Intel(R) OpenCL", compute_units=16, native_vector_bytes=64,
        local_memory=256 << 10, max_work_group=4096, unified_memory=True, capabilities=_CPU,
        **_LARGE,
    ),
}  # fmt: skip
MATRIX_UNITS = "h200-units"
"""The device whose matrix units OpenCL reaches: for the algorithm that uses them, no other."""
DEVICES[MATRIX_UNITS] = replace(DEVICES["h200"], capabilities=_UNITS)


def _each(**choices: Any) -> list[dict[str, Any]]:
    """Return every combination of options."""
    names = list(choices)
    return [dict(zip(names, values, strict=True)) for values in product(*choices.values())]


LARGE: dict[str, list[dict[str, Any]]] = {
    "sort": _each(n=(50_000_000,), dtype=("uint8", "int32", "float64")),
    "gemm": [
        *_each(size=(1000, 4096), dtype=("float16", "float32", "float64", "complex64")),
        *_each(size=(1000,), precision=("tf32", "3xtf32"), beta=(0.0, 0.5)),
        *_each(m=(64, 1), n=(4096,), k=(4096,), trans_a=(False, True)),
    ],
    "conv2d": _each(size=(1024,), ksize=(3, 7, 15, 31, 63), dtype=("uint8", "float32", "float64")),
    "filter": [
        *_each(size=(3000,), gaussian=(2.0, 20.0), dtype=("uint8", "float32", "float64")),
        *_each(size=(3000,), median=(3, 5), dtype=("uint8", "float32"), channels=(1, 3)),
        *_each(size=(256,), depth=(256,), maximum=(5,), dtype=("uint16", "float32")),
    ],
    "dft": [
        *_each(n=(44_100, 65_536, 1 << 20, 1 << 24, 3**13, 1_000_003), inverse=(False, True)),
        *_each(n=(4096, 10_007, 100_000), batch=(100,), dtype=("complex128", "float32")),
    ],
    "topk": _each(n=(1_000_003, 3_000_000_000), k=(4, 100), dtype=("float32", "int64")),
    "unique": _each(n=(50_000, 3_000_000_000), dtype=("int8", "float64"), counts=(False, True)),
    "searchsorted": _each(n=(5, 3_000_000_000), m=(100_000,), dtype=("int16", "float32")),
}
"""Problems besides those of the matrix of tests, which are small."""
GATHERED = _each(n=(1_000,), k=(7,), rows=(3,), nbytes=(3, 8, 24), places=(False, True))
"""Problems of an operation that no command has."""

CONFIGS = 6
"""Configurations besides the default one, of the smaller problems: every eighth candidate."""
TOKEN = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
DEFINED = re.compile(r"(?:\w[\w\s\*]*?\b([A-Za-z_]\w*)\s*\([^;{}()]*\)\s*\{|#define\s+(\w+)\()")


def canonical(text: str) -> str:
    """Return OpenCL C without comments, white space and names of its own."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
    text = re.sub(r"[ \t]+", " ", re.sub(r"\n\s*", "\n", text)).strip()
    defined = {name for pair in DEFINED.findall(text) for name in pair if name}
    keywords = {"if", "for", "while", "switch", "return", "sizeof"}
    kept = (set(CALLED.findall(text)) - defined) | keywords
    names: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        name = match.group()
        return name if name in kept else names.setdefault(name, f"v{len(names)}")

    return TOKEN.sub(renamed, text)


_texts: dict[tuple[str, str], str] = {}


def _rendered(launch: Launch) -> str:
    key = (launch.template, repr(sorted(launch.params.items(), key=str)))
    if key not in _texts:
        _texts[key] = canonical(render(launch.template, launch.params).text)
    return _texts[key]


@lru_cache(maxsize=512)
def _table(table: Table) -> str:
    return hashlib.sha256(np.ascontiguousarray(table.make()).tobytes()).hexdigest()[:16]


def described(plan: Plan) -> str:
    """Return all that a plan launches, in words that do not depend on names."""
    places = {buffer.name: place for place, buffer in enumerate(plan.buffers)}
    lines = []
    for buffer in plan.buffers:
        small = buffer.table is not None and buffer.nbytes <= 1 << 22
        held = _table(buffer.table) if small and buffer.table else ""
        lines.append(f"buffer {buffer.role} {buffer.shape} {buffer.dtype} {held}")
    for launch in plan.launches:
        arguments = [
            f"buffer {places[argument]}"
            if isinstance(argument, str)
            else f"local {argument.nbytes}"
            if isinstance(argument, LocalMemory)
            else f"{argument.dtype} {argument}"
            for argument in launch.arguments.values()
        ]
        lines += [
            f"launch {launch.global_size} {launch.local_size} {launch.local_bytes}",
            f"options {launch.options}",
            *arguments,
            _rendered(launch),
        ]
    return "\n".join(lines)


def problems() -> Iterator[tuple[Solver[Any], str, Problem]]:
    """Yield what solves a problem, the problem's options as text, and the problem."""
    for operation in operations().values():
        small = [case.options for case in ROWS[operation.name] if not (case.arrays or case.record)]
        for options in (*small, *LARGE.get(operation.name, ())):
            yield operation.solver, _said(options), operation.problem(**options)
    for options in GATHERED:
        yield GATHER, _said(options), GatherProblem(**options)


def _said(options: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in options.items())


def plans(wanted: str) -> Iterator[tuple[str, Plan]]:
    """Yield the plans of all problems, on all devices, by names that hold `wanted`."""
    for solver, said, problem in problems():
        for named, (where, device) in product(solver.algorithms, DEVICES.items()):
            algorithm = named.on(device.kind)
            name = f"{solver.name} {algorithm.name} {said} on {where}"
            if where == MATRIX_UNITS and not algorithm.work(problem).matrix_units:
                continue
            if algorithm.supports(problem, device) is not None:
                continue
            default = algorithm.default_config(problem, device)
            other = candidates(algorithm, problem, device) if problem.work.bytes < 1 << 22 else ()
            able = (
                config
                for config in (default, *islice(other, 0, None, 8))
                if wanted.partition(" #")[0] in name
                and feasible(algorithm, problem, config, device)
            )
            for place, config in enumerate(islice(able, 1 + CONFIGS)):
                full = f"{name} #{place}"
                if wanted in full:
                    yield full, algorithm.plan(problem, config, device)


def main() -> None:
    """Print a line or the text of each plan."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", nargs="?", default="", help="a part of the names of plans")
    parser.add_argument("--text", action="store_true", help="the plans themselves, not digests")
    given = parser.parse_args()
    for name, plan in plans(given.name):
        text = described(plan)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        print(f"== {name}\n{text}\n" if given.text else f"{name}: {digest}")


if __name__ == "__main__":
    main()
