"""The radix sort for CPUs: groups of one item that go through phases of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import c_type, index_type
from opencl_lab.core.plan import Argument, Buffer, Plan, ceil_divide, named
from opencl_lab.core.space import Config
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.phases import phased_plan
from opencl_lab.ops.sort.problem import SortProblem

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


@dataclass(frozen=True)
class Cut:
    """How rows are cut into buckets, as ``radix_cpu_buckets.mako`` and its parts are told."""

    bits: int  # of a bucket, and of a digit of a row that is not cut
    share: int  # elements of a run, about
    # Type in which keys are numbers, or None for integers and where it is not to be used.
    float_type: str | None
    # As the constants of this module.
    sample: int
    skew: int
    largest: int
    finish_shares: int

    @classmethod
    def of(cls, problem: SortProblem, config: Config, device: Device, network: int) -> Cut:
        """Return how rows are cut, so that networks sort runs of buckets if they sort any."""
        most = config.integer("DIGIT_BITS")
        bits = min(most, max(_bits(problem.n / KEYS_OF_BUCKET), LEAST_BITS))
        share = max(min(KEYS_OF_RUN, problem.n // (8 * device.compute_units)), 1)
        if network:
            share, bits = _shares(problem.n, most) or (share, bits)
        float_type = _number_type(problem, device) if problem.bits is None else None
        return cls(bits, share, float_type, SAMPLE, SKEW, LARGEST, FINISH_SHARES)


@dataclass(frozen=True)
class Run:
    """How one item sorts a run, which ``radix_cpu_run.mako`` and its parts are told."""

    bits: int  # of a digit, at most
    spare_bits: int  # of digits, beyond those that count the keys of a run
    few: int  # keys that insertion sorts by itself
    block: int  # keys whose codes are made at once, in a loop without branches
    network: int  # keys of the longest run for a network of comparisons, or 0
    lanes: int  # keys of one of its vectors

    @classmethod
    def of(cls, problem: SortProblem, config: Config, network: int, cut: bool) -> Run:
        """Return how runs of rows, or of buckets, are sorted."""
        spare_bits = SPARE_BITS + (0 if cut else EXPONENTS.get(problem.dtype.name, 0))
        lanes = VECTOR // problem.dtype.itemsize
        return cls(min(config.integer("DIGIT_BITS"), 11), spare_bits, FEW, BLOCK, network, lanes)


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
    if problem.n * problem.rows == 0:
        return Plan(tuple(elements.buffers), ())
    units, is_cut = device.compute_units, _is_cut(problem, device.compute_units)
    network = _longest_network(problem, elements, device, is_cut)
    cut = Cut.of(problem, config, device, network) if is_cut else None
    run = Run.of(problem, config, network, is_cut)
    index = index_type(problem.n * problem.rows)
    items = units if cut else min(units, problem.rows)
    capacity = config.integer("CAPACITY")
    buffers, arguments = _room_for_elements(elements, items, capacity, is_cut)
    local_bytes, phases = 3 * np.dtype(index).itemsize << run.bits, 1
    if cut:
        chunks = min(max(problem.n // KEYS_OF_CHUNK, units), CHUNKS_OF_UNIT * units)
        counts = _room_for_counts(problem, cut.bits, chunks, units)
        buffers += counts
        arguments |= named(*(buffer.name for buffer in counts))
        arguments["chunks"] = np.uint32(chunks)
        local_bytes += (64 + 2 * np.dtype(index).itemsize) << cut.bits
        phases = 5 + 3 * ceil_divide(8 * problem.dtype.itemsize, cut.bits)
    params: dict[str, Any] = {
        "ELEMENT": elements.types,
        "INDEX_T": c_type(index),
        "CAPACITY": capacity,
        "CUT": cut,
        "RUN": run,
        "STREAM": config["STREAM"],
        "PATIENCE": PATIENCE,
    }
    return phased_plan(
        problem, device, [*elements.buffers, *buffers], arguments, phases=phases, items=items,
        template=TEMPLATE, kernel="radix_cpu", params=params, local_bytes=local_bytes,
    )  # fmt: skip


def _room_for_elements(
    elements: Elements, items: int, capacity: int, is_cut: bool
) -> tuple[list[Buffer], dict[str, Argument]]:
    """Return the buffers of elements on the way, and the kernel's arguments of elements."""
    problem, element = elements.problem, np.dtype(f"V{elements.nbytes}")
    whole = ["first"] if elements.value_type is None else ["first", "second"]
    # Rows that fit in the spares of an item need no other memory.
    fits = not is_cut and problem.n <= capacity
    buffers = [Buffer("spares", "scratch", (items, 2, capacity), element)]
    if not fits:
        count = problem.n * problem.rows
        buffers += [Buffer(name, "scratch", (count,), element) for name in whole]
    names = {name: "spares" if fits else name for name in whole}
    return buffers, {**elements.arguments, "spares": "spares", **names}


def _room_for_counts(problem: SortProblem, bits: int, chunks: int, units: int) -> list[Buffer]:
    """Return the buffers in which items tell each other what they have counted of rows."""
    rows, index = problem.rows, np.dtype(index_type(problem.n * problem.rows))
    key = np.dtype(f"u{problem.dtype.itemsize}")
    return [
        Buffer("table", "scratch", (rows * chunks << bits,), index),
        Buffer("limits", "scratch", (rows * chunks * LIMITS,), key),
        Buffer("state", "scratch", (rows * STATE,), np.dtype(np.uint64)),
        Buffer("starts", "scratch", (rows * ((1 << bits) + 1 + 8 * units),), index),
    ]
