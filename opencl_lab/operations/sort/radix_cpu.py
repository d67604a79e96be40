"""The radix sort for CPUs: groups of one item that go through phases of tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.kernels import c_type, index_type
from opencl_lab.operations.sort.elements import Elements
from opencl_lab.operations.sort.phases import in_phases
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.plan import Argument, Buffer, Plan
from opencl_lab.space import Config

__all__ = ["TEMPLATE", "cpu_plan"]

TEMPLATE = "sort/radix_cpu.cl.mako"

STATE = 5  # words of the state of a row: `radix_cpu_buckets.mako` names them
LIMITS = 3
BLOCK = 512  # keys whose codes are made at once
SPARE_BITS = 4
EXPONENTS = {"float32": 4, "float64": 11}
"""More of them where a row may hold floats of any size: few exponents are those of most keys."""
FEW = 24  # keys that insertion sorts by itself
SAMPLE = 1024  # keys of a row
SKEW = 64
VECTOR = 64
"""Bytes of a vector in registers with which networks of comparisons pay."""
LONGEST_NETWORKS = {4: 8192, 8: 512}
"""By the size of a key, how many of them a network sorts in less time than digits do."""
CUT_FOR_NETWORKS = 4
"""Bytes of the largest keys whose buckets are made so small that networks sort them."""
SHARES = ((256, 9), (512, 9), (1024, 10), (2048, 11), (4096, 11), (8192, 11))
"""Keys of a run for a network, and how many bits of a bucket they are worth: the first that fits.

Twice as long a run takes a fifth longer for each of its keys; so does a bit more from the tenth on.
"""
KEYS_OF_BUCKET = 4096
LEAST_BITS = 8
KEYS_OF_RUN = 4096
KEYS_OF_CHUNK = 1 << 16
CHUNKS_OF_UNIT = 4
FINISH_SHARES = 32
"""Tasks of a unit among which runs are shared out: few, as each is claimed and counted."""
LARGEST = 1 << 22
"""Elements of a run that one unit sorts; longer ones are those of all units, digit by digit."""
WHOLE = 1 << 20
"""Keys of a row that one unit sorts by itself, where there are rows for all units."""
CUT = 1 << 14
"""Keys of a row that pays to be cut."""
PATIENCE = 1 << 12


def _bits(number: float) -> int:
    """Return the exponent of the power of two that is not below `number`."""
    return max(int(np.ceil(np.log2(max(number, 1)))), 0)


def _is_cut(problem: SortProblem, units: int) -> bool:
    """Return whether all units work on a row; else each has rows of its own."""
    if problem.n <= CUT or (units == 1 and problem.n <= WHOLE):
        return False
    return problem.rows < 2 * units or problem.n > WHOLE


def digit_bits(problem: SortProblem, device: Device) -> int:
    """Return how long digits may be for the local memory of a device, at most 11 bits."""
    index = np.dtype(index_type(problem.n * problem.rows)).itemsize
    bits = 11
    while bits > 5 and _local_bytes(bits, index) > device.capabilities.local_memory:
        bits -= 1
    return bits


def _local_bytes(bits: int, index: int) -> int:
    """Return the local memory of a row that is cut: counts, lines and places."""
    return (3 * index + 64 + 2 * index) << bits


def _number_type(problem: SortProblem, device: Device) -> str | None:
    """Return the type of OpenCL C in which keys can be subtracted, if it is one of floats."""
    if problem.dtype == np.float32:
        return "float"
    return "double" if problem.dtype == np.float64 and device.capabilities.fp64 else None


def _longest_network(problem: SortProblem, elements: Elements, device: Device, cut: bool) -> int:
    """Return how many keys networks of comparisons sort, or 0 where they sort no run."""
    size = problem.dtype.itemsize
    longest = LONGEST_NETWORKS.get(size, 0)
    pays = size <= CUT_FOR_NETWORKS if cut else problem.n <= longest
    # Values would have to go with their keys, and keys stay in order of which few bits count.
    keys_alone = elements.value_type is None and problem.bits is None
    return longest if pays and keys_alone and device.native_vector_bytes >= VECTOR else 0


def _shares(n: int, most_bits: int) -> tuple[int, int] | None:
    """Return the keys of a run and the bits of a bucket for networks, if that is possible."""
    for share, bits in SHARES:
        needed = max(_bits(n / share), LEAST_BITS)
        if needed <= min(bits, most_bits):
            return share, needed
    return None


def cpu_plan(problem: SortProblem, config: Config, device: Device) -> Plan:
    """Plan one launch, or one a phase where items do not see what others have written."""
    elements = Elements(problem)
    buffers = elements.buffers
    n, rows = problem.n, problem.rows
    if n * rows == 0:
        return Plan(tuple(buffers), ())
    units = device.compute_units
    index = index_type(n * rows)
    cut = _is_cut(problem, units)
    capacity = config.integer("CAPACITY")
    items = units if cut else min(units, rows)
    element = np.dtype(f"V{elements.nbytes}")
    bucket_bits = min(config.integer("DIGIT_BITS"), max(_bits(n / KEYS_OF_BUCKET), LEAST_BITS))
    run_bits = min(config.integer("DIGIT_BITS"), 11)
    network = _longest_network(problem, elements, device, cut)
    share = max(min(KEYS_OF_RUN, n // (8 * units)), 1) if cut else 1
    if cut and network:
        share, bucket_bits = _shares(n, config.integer("DIGIT_BITS")) or (share, bucket_bits)

    # Rows that fit in the spares of an item need no other memory.
    whole = ["first"] if elements.value_type is None else ["first", "second"]
    fits = not cut and n <= capacity
    buffers.append(Buffer("spares", "scratch", (items, 2, capacity), element))
    if not fits:
        buffers += [Buffer(name, "scratch", (n * rows,), element) for name in whole]
    arguments: dict[str, Argument] = {**elements.arguments, "spares": "spares"}
    arguments |= {name: "spares" if fits else name for name in whole}
    local_bytes = 3 * np.dtype(index).itemsize << run_bits
    phases = 1
    if cut:
        chunks = min(max(n // KEYS_OF_CHUNK, units), CHUNKS_OF_UNIT * units)
        for name, words, dtype in (
            ("table", rows * chunks << bucket_bits, index),
            ("limits", rows * chunks * LIMITS, f"u{problem.dtype.itemsize}"),
            ("state", rows * STATE, np.uint64),
            ("starts", rows * ((1 << bucket_bits) + 1 + 8 * units), index),
        ):
            buffers.append(Buffer(name, "scratch", (words,), np.dtype(dtype)))
            arguments[name] = name
        arguments["chunks"] = np.uint32(chunks)
        local_bytes += (64 + 2 * np.dtype(index).itemsize) << bucket_bits
        phases = 5 + 3 * -(-8 * problem.dtype.itemsize // bucket_bits)
    params: dict[str, Any] = {
        **elements.params,
        "BITS": problem.bits,
        "INDICES": problem.indices,
        "INDEX_T": c_type(index),
        "FLOAT": _number_type(problem, device) if cut and problem.bits is None else None,
        "ROWS": "cut" if cut else "whole",
        "CAPACITY": capacity,
        "BUCKET_BITS": bucket_bits if cut else 1,
        "SAMPLE": SAMPLE,
        "SKEW": SKEW,
        "SHARE": share,
        "NETWORK": network,
        "LANES": VECTOR // problem.dtype.itemsize,
        "LARGEST": LARGEST,
        "FINISH_SHARES": FINISH_SHARES,
        "STREAM": config["STREAM"],
        "BLOCK": BLOCK,
        "RUN_BITS": run_bits,
        "SPARE_BITS": SPARE_BITS + (0 if cut else EXPONENTS.get(problem.dtype.name, 0)),
        "FEW": FEW,
        "PATIENCE": PATIENCE,
    }
    counters, launches = in_phases(
        problem,
        device,
        phases,
        items,
        arguments,
        template=TEMPLATE,
        kernel="radix_cpu",
        params=params,
        local_bytes=local_bytes,
    )
    return Plan((*buffers, counters), launches)
