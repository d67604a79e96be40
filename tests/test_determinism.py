"""Equal calls give equal bits: in one process, in another one, under load, at any alignment.

Each result is computed with arrays at several offsets in memory, in four threads at once, first and
replayed, and by a process that makes the same calls in another order.
"""

import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import opencl_lab as ol
from opencl_lab.core.errors import OclabError
from opencl_lab.lab.registry import get_operation, operations
from opencl_lab.ops.solver import AUTO

PROBLEMS = {
    "gemm": [
        {"m": 301, "n": 290, "k": 313},
        {"m": 40, "n": 50, "k": 9_001},  # few tiles, long sums: slices of k
        {"m": 1, "n": 1_500, "k": 1_501},
        {"m": 1_501, "n": 3, "k": 1_200, "trans_a": True},
        {"m": 8, "n": 1, "k": 40_003, "beta": 0.5},
        {"m": 65, "n": 70, "k": 67, "batch": 9, "dtype": "complex64", "bias": "row"},
        {"m": 90, "n": 210, "k": 777, "dtype": "float64", "activation": "gelu"},
        {"m": 90, "n": 210, "k": 777, "dtype": "float16"},
    ],
    "conv2d": [
        {"height": 301, "width": 257, "ksize": 5},
        {"height": 201, "width": 319, "ksize": 9, "dtype": "float64", "boundary": "wrap"},
        {"height": 250, "width": 341, "ksize": 31, "mode": "full"},  # by transforms
        {"height": 250, "width": 341, "filter": "gaussian", "ksize": 7, "dtype": "uint8"},
    ],
    "filter": [
        {"height": 301, "width": 257, "gaussian": 3.0},
        {"height": 301, "width": 257, "mean": 6, "dtype": "float64", "channels": 3},
        {"size": 90, "depth": 11, "median": 4},
    ],
    "dft": [
        {"n": 1 << 16},
        {"n": 1_000, "batch": 91, "dtype": "float32"},
        {"n": 10_007, "batch": 3},  # a prime
        {"n": 30_030, "batch": 2, "dtype": "float32", "inverse": True},
        {"n": 4_096, "batch": 17, "dtype": "complex128"},
        {"n": 701, "batch": 5},
    ],
    "sort": [{"n": 70_001, "dtype": "float32"}, {"n": 301, "rows": 99, "dtype": "float64"}],
    "topk": [{"n": 70_001, "k": 1_000, "dtype": "float32"}],
    "unique": [{"n": 70_001, "dtype": "float32", "counts": True}],
    "searchsorted": [{"n": 30_001, "m": 20_001, "dtype": "float32"}],
}
OTHERS = {
    "fft2": lambda a: ol.fft.fft2(a + 1j * a[::-1]),
    "rfftn": lambda a: ol.fft.rfftn(a.reshape(40, 30, -1)),
    "dct": lambda a: ol.fft.dct(a),
}
DIRECT_LENGTH = 1_000
OFFSETS = (0, 4, 8, 24, 60)
"""Bytes from a multiple of 64, so far as they are multiples of the element's size."""


def call_of(name, number, algorithm):
    """Return a public call and its arrays, the same in every process."""
    if name in OTHERS:
        rng = np.random.default_rng(2)
        return OTHERS[name], (rng.standard_normal((240, 320), np.float32),)
    operation, options = get_operation(name), PROBLEMS[name][number]
    problem = operation.problem(**options)
    inputs = operation.generate(problem, 3, **options)
    first = inputs[operation.inputs[0]]
    if first.dtype.kind == "f":  # equal keys of different bits; far apart magnitudes
        first.reshape(-1)[::7] *= np.array(-0.0 if name in ("sort", "unique") else 1e4, first.dtype)
    call = operation.calls.ours(problem, inputs, algorithm)
    if call is None:
        return None
    return lambda *arrays: call.function(*arrays, **call.explicit()), call.arrays


def at(array, offset):
    """Return a copy at some bytes from a multiple of 64."""
    block = np.empty(array.nbytes + 128, np.uint8)
    begin = -block.ctypes.data % 64 + offset
    made = block[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def digest(results):
    several = results if isinstance(results, tuple) else (results,)
    return hashlib.sha256(b"".join(np.ascontiguousarray(one) for one in several)).hexdigest()[:16]


def digests(name, number, algorithm):
    """Return the digests of all results of one call, or None if there is no such call."""
    made = call_of(name, number, algorithm)
    if made is None:
        return None
    call, arrays = made
    least = max(array.dtype.itemsize for array in arrays)
    placed = [[at(array, offset - offset % least) for array in arrays] for offset in OFFSETS]
    try:
        found = [digest(call(*one)) for one in placed]
    except OclabError:  # an algorithm that is not for such problems
        return None
    with ThreadPoolExecutor(4) as pool:
        found += pool.map(lambda one: digest(call(*one)), placed * 3)
    return found


def calls(names, algorithms=(AUTO,)):
    found = [(name, number, algorithm) for name in names if name in PROBLEMS
             for number in range(len(PROBLEMS[name])) for algorithm in algorithms]  # fmt: skip
    return found + [(name, 0, AUTO) for name in names if name in OTHERS]


def takes_long(name, number, how):
    """Return whether a sum by the definition is too long for a test."""
    direct = name == "dft" and how not in (AUTO, "fft")
    return direct and PROBLEMS[name][number]["n"] > DIRECT_LENGTH


@cache
def elsewhere():
    """Return the digests of all public calls in another process, in another order."""
    program = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); import test_determinism as t\n"
        "todo = t.calls([*t.OTHERS, *t.PROBLEMS])[::-1]\n"
        "print(json.dumps([[*one, t.digests(*one)] for one in todo]))"
    )
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, here],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {(name, number, how): found for name, number, how, found in json.loads(done.stdout)}


def test_all_operations_have_problems():
    assert set(PROBLEMS) == set(operations())


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "number", "how"), calls(["gemm", "conv2d", "dft"]))
def test_sums_have_equal_bits_in_one_process(name, number, how):
    found = digests(name, number, how)
    assert found is not None and len(set(found)) == 1


@pytest.mark.full
@pytest.mark.parametrize("one", calls([*OTHERS, *PROBLEMS]), ids=str)
def test_all_results_have_equal_bits_in_two_processes(one):
    found = digests(*one)
    assert found is not None and len({*found, *elsewhere()[one]}) == 1


@pytest.mark.full
@pytest.mark.parametrize("name", PROBLEMS)
def test_each_algorithm_gives_equal_bits(name):
    algorithms = [item.name for item in get_operation(name).algorithms]
    made = calls([name], algorithms)
    tried = {one: digests(*one) for one in made if not takes_long(*one)}
    known = {one: found for one, found in tried.items() if found is not None}
    assert known and not [one for one, found in known.items() if len(set(found)) > 1]
