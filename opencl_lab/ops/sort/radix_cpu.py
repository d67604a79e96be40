"""The radix sort for CPUs: groups of one item, which claim the tasks of one phase after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import c_type, index_type, positive
from opencl_lab.core.plan import Argument, Buffer, Plan, ceil_divide, named
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.phases import phased_plan
from opencl_lab.ops.sort.problem import SortProblem

TEMPLATE = "sort/radix_cpu.cl.mako"

STATE = 10  # words of a row's state: `radix_cpu_buckets.mako` names them
PHASES = 10
"""Five for order that is there already, four for buckets, and a copy; digits have three each."""
KEYS_OF_PIECE = 256
"""Keys that a piece of a slope has at least, on average, as in `slopes_cpu.mako`."""
MOST_PIECES = 1 << 20
"""Pieces of a chunk at most: a row of more is sorted like any other."""
LIMITS = 3
BLOCK = 512  # keys whose codes are computed together
SPARE_BITS = 4
EXPONENTS = {"float32": 4, "float64": 11}
"""Bits of the exponent, added to `SPARE_BITS` for whole rows: most floats share a few exponents."""
FEW = 24  # keys up to which insertion sort is used
SAMPLE = 1024  # keys sampled from a row
SKEW = 64
OFTEN = 16
VECTOR = 64
"""Bytes of a vector register from which sorting networks pay."""
LONGEST_NETWORKS = {4: 8192, 8: 512}
"""Most keys that a network sorts faster than radix passes, by the size of a key in bytes."""
CUT_FOR_NETWORKS = 4
"""Largest key, in bytes, whose buckets are made small enough for sorting networks."""
SHARES = ((256, 9), (512, 9), (1024, 10), (2048, 11), (4096, 11), (8192, 11))
"""Keys of a run for a sorting network, and the most bits of a bucket at which it is chosen.

The first row that fits is taken. A run of twice the length takes a fifth longer per key; so does
each bit beyond the ninth.
"""
KEYS_OF_BUCKET = 4096
LEAST_BITS = 8
KEYS_OF_RUN = 4096
KEYS_OF_CHUNK = 1 << 16
CHUNKS_OF_UNIT = 4
FINISH_SHARES = 32
"""Tasks per compute unit among which runs are shared out: few, as claiming each one costs time."""
LARGEST = 1 << 22
"""Most elements of a run that one unit sorts; all units share longer ones, digit by digit."""
WHOLE = 1 << 20
"""Most keys of a row that one unit sorts alone, where there are rows for all units."""
CUT = 1 << 14
"""Keys of a row above which cutting it into buckets pays."""
MAX_POLLS = 1 << 12
CAPACITY = 1 << 15
"""Elements of a run that fits in a cache."""
STREAMED = 8 << 20
"""Bytes of all elements from which it pays to write whole cache lines past the caches."""


def _bits(number: float) -> int:
    """Return the exponent of the least power of two that is not below `number`."""
    return max(int(np.ceil(np.log2(max(number, 1)))), 0)


def _is_cut(problem: SortProblem, units: int) -> bool:
    """Return whether all units share each row; else each unit sorts whole rows."""
    if problem.n <= CUT or (units == 1 and problem.n <= WHOLE):
        return False
    return problem.rows < 2 * units or problem.n > WHOLE


def digit_bits(problem: SortProblem, device: Device) -> int:
    """Return the longest digits that fit the local memory of a device, at most 11 bits."""
    index = np.dtype(index_type(problem.n * problem.rows)).itemsize
    bits = 11
    while bits > 5 and _local_bytes(bits, index) > device.capabilities.local_memory:
        bits -= 1
    return bits


def _local_bytes(bits: int, index: int) -> int:
    """Return the bytes of local memory for a row that is cut: counts, cache lines, positions."""
    return (3 * index + 64 + 2 * index) << bits


def _number_type(problem: SortProblem, device: Device) -> str | None:
    """Return the OpenCL C floating-point type in which keys can be subtracted, or None."""
    if problem.dtype == np.float32:
        return "float"
    return "double" if problem.dtype == np.float64 and device.capabilities.fp64 else None


@dataclass(frozen=True)
class Cut:
    """How rows are cut into buckets: what ``radix_cpu_buckets.mako`` is rendered with."""

    bits: int  # of a bucket, and of a digit of a row that is not cut
    share: int  # elements of a run, about
    # Floating-point type in which keys are subtracted; None for integers, or not to do so.
    float_type: str | None
    # The constants of this module.
    sample: int
    skew: int
    often: int
    largest: int
    finish_shares: int

    @classmethod
    def of(cls, problem: SortProblem, config: Config, device: Device, network: int) -> Cut:
        """Return how rows are cut; if sorting networks are used, into runs that suit them."""
        most = config.integer("DIGIT_BITS")
        bits = min(most, max(_bits(problem.n / KEYS_OF_BUCKET), LEAST_BITS))
        share = max(min(KEYS_OF_RUN, problem.n // (8 * device.compute_units)), 1)
        if network:
            share, bits = _shares(problem.n, most) or (share, bits)
        float_type = _number_type(problem, device) if problem.bits is None else None
        return cls(bits, share, float_type, SAMPLE, SKEW, OFTEN, LARGEST, FINISH_SHARES)


@dataclass(frozen=True)
class RunSort:
    """How one item sorts a run: what ``radix_cpu_run.mako`` is rendered with."""

    bits: int  # of a digit, at most
    spare_bits: int  # of digits, beyond the bits that number the keys of a run
    few: int  # keys up to which insertion sort is used
    block: int  # keys whose codes are computed together, in a loop without branches
    network: int  # keys of the longest run for a sorting network, or 0
    lanes: int  # keys of one of the network's vectors

    @classmethod
    def of(cls, problem: SortProblem, config: Config, network: int, cut: bool) -> RunSort:
        """Return how a whole row, or a run of buckets, is sorted."""
        spare_bits = SPARE_BITS + (0 if cut else EXPONENTS.get(problem.dtype.name, 0))
        lanes = VECTOR // problem.dtype.itemsize
        return cls(min(config.integer("DIGIT_BITS"), 11), spare_bits, FEW, BLOCK, network, lanes)


def _longest_network(problem: SortProblem, elements: Elements, device: Device, cut: bool) -> int:
    """Return the most keys that a sorting network sorts, or 0 where none is used."""
    size = problem.dtype.itemsize
    longest = LONGEST_NETWORKS.get(size, 0)
    pays = size <= CUT_FOR_NETWORKS if cut else problem.n <= longest
    # Networks move no values, and are not stable, as keys with few significant bits need it.
    keys_alone = elements.value_type is None and problem.bits is None
    return longest if pays and keys_alone and device.native_vector_bytes >= VECTOR else 0


def _shares(n: int, most_bits: int) -> tuple[int, int] | None:
    """Return the keys of a run and the bits of a bucket for sorting networks, if there are such."""
    for share, bits in SHARES:
        needed = max(_bits(n / share), LEAST_BITS)
        if needed <= min(bits, most_bits):
            return share, needed
    return None


class RadixCpu(Algorithm[SortProblem]):
    """Stable radix sort for CPUs, without barriers: buckets that lie in a cache, then digits."""

    name = "radix"
    templates = (TEMPLATE,)
    space = SearchSpace(
        (
            Parameter("DIGIT_BITS", (5, 6, 7, 8, 9, 10, 11), "bits of a digit, at most"),
            Parameter("CAPACITY", (8192, 16384, 32768, 65536), "elements in a cache"),
            Parameter("STREAM", (False, True), "write whole cache lines past the caches"),
        ),
        (
            Constraint(lambda c: 2 <= c.integer("DIGIT_BITS") <= 11, "DIGIT_BITS must be 2 to 11"),
            positive("CAPACITY"),
        ),
    )

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return the longest digits that fit, and lines past the caches where rows are large."""
        streamed = problem.n * problem.rows * Elements(problem).nbytes >= STREAMED
        bits = digit_bits(problem, device)
        return Config(DIGIT_BITS=bits, CAPACITY=CAPACITY, STREAM=streamed)

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        """Plan one launch, or one per phase where items do not see what others have written."""
        elements = Elements(problem)
        if problem.n * problem.rows == 0:
            return Plan(tuple(elements.buffers), ())
        units, is_cut = device.compute_units, _is_cut(problem, device.compute_units)
        network = _longest_network(problem, elements, device, is_cut)
        cut = Cut.of(problem, config, device, network) if is_cut else None
        run = RunSort.of(problem, config, network, is_cut)
        index = index_type(problem.n * problem.rows)
        items = units if cut else min(units, problem.rows)
        capacity = config.integer("CAPACITY")
        buffers, arguments = _room_for_elements(elements, items, capacity, is_cut)
        local_bytes, phases = 3 * np.dtype(index).itemsize << run.bits, 1
        if cut:
            chunks = min(max(problem.n // KEYS_OF_CHUNK, units), CHUNKS_OF_UNIT * units)
            room = min(problem.n // (KEYS_OF_PIECE * chunks) + 16, MOST_PIECES)
            counts = _room_for_counts(problem, cut.bits, chunks, units, room)
            buffers += counts
            arguments |= named(*(buffer.name for buffer in counts))
            arguments |= {"chunks": np.uint32(chunks), "room": np.uint32(room)}
            local_bytes += (64 + 2 * np.dtype(index).itemsize) << cut.bits
            phases = PHASES + 3 * ceil_divide(8 * problem.dtype.itemsize, cut.bits)
        params: dict[str, Any] = {
            "ELEMENT": elements.element,
            "INDEX_T": c_type(index),
            "CAPACITY": capacity,
            "CUT": cut,
            "RUN": run,
            "STREAM": config["STREAM"],
            "MAX_POLLS": MAX_POLLS,
        }
        return phased_plan(
            problem, device, [*elements.buffers, *buffers], arguments, phases=phases, items=items,
            template=TEMPLATE, kernel="radix_cpu", params=params, local_bytes=local_bytes,
        )  # fmt: skip


def _room_for_elements(
    elements: Elements, items: int, capacity: int, is_cut: bool
) -> tuple[list[Buffer], dict[str, Argument]]:
    """Return the scratch buffers of elements, and the arguments that hold elements."""
    problem, element = elements.problem, np.dtype(f"V{elements.nbytes}")
    whole = ["first"] if elements.value_type is None else ["first", "second"]
    # Rows that fit in the spare arrays of an item need no other memory.
    fits = not is_cut and problem.n <= capacity
    buffers = [Buffer("spares", "scratch", (items, 2, capacity), element)]
    if not fits:
        count = problem.n * problem.rows
        buffers += [Buffer(name, "scratch", (count,), element) for name in whole]
    names = {name: "spares" if fits else name for name in whole}
    return buffers, {**elements.arguments, "spares": "spares", **names}


def _room_for_counts(
    problem: SortProblem, bits: int, chunks: int, units: int, room: int
) -> list[Buffer]:
    """Return the buffers through which items share their counts of a row."""
    rows, index = problem.rows, np.dtype(index_type(problem.n * problem.rows))
    key = np.dtype(f"u{problem.dtype.itemsize}")
    return [
        Buffer("table", "scratch", (rows * chunks << bits,), index),
        Buffer("limits", "scratch", (rows * chunks * LIMITS,), key),
        Buffer("state", "scratch", (rows * STATE,), np.dtype(np.uint64)),
        Buffer("starts", "scratch", (rows * ((1 << bits) + 1 + 8 * units),), index),
        Buffer("pieces", "scratch", (rows * chunks * (room + 1) * 4,), index),
    ]
