"""The quicksort for CPUs: groups of one item, each of which sorts rows alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import WORD_TYPES, c_type, index_type, largest_power, power_of_two
from opencl_lab.core.plan import Buffer, Launch, Plan, ceil_divide
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.problem import SortProblem

TEMPLATE = "sort/quicksort_cpu.cl.mako"

VECTOR_BYTES = 64
"""Bytes of a vector register, which words are sorted in."""
ROWS = 16
"""Vectors of a block of a sorting network, as in ``network.mako``."""
NETWORKS = {4: 1024, 8: 512}
"""Words of a run that a network sorts faster than a further division, by the bytes of a word."""
LONGEST_NARROW = 1 << 12
"""Keys of a row up to which it is faster than radix, for codes of one digit."""
LONGEST_WIDE = 1 << 13
"""The same for words of 8 bytes, but not for floats, for which radix needs more digits."""
GROUPS_OF_UNIT = 8
"""Groups per compute unit among which rows are divided, where there are several units."""


def _has_positions(problem: SortProblem) -> bool:
    """Return whether words need positions; else keys are made again from their codes."""
    return bool(problem.indices or problem.value_bytes or problem.bits is not None)


def word_bytes(problem: SortProblem) -> int | None:
    """Return the bytes of a word for a code and a position, or None if they do not fit."""
    bits = problem.code_bits + problem.n.bit_length() * _has_positions(problem)
    return 4 if bits <= 32 else 8 if bits <= 64 else None


def _width(problem: SortProblem, lanes: int) -> int:
    """Return the lanes of a block that a row takes: all of them, unless rows share blocks."""
    return min(largest_power(2 * ceil_divide(problem.n, ROWS) - 1), lanes)


def pays(problem: SortProblem, units: int, wide: bool = True) -> bool:
    """Return whether it is the fastest on a CPU of so many units, which may have wide vectors."""
    size = word_bytes(problem)
    if size is None:
        return False
    if problem.rows > 1 and _width(problem, VECTOR_BYTES // size) < VECTOR_BYTES // size:
        return True  # short rows share blocks of a network
    if units > 1 or not wide:
        return False
    if problem.code_bits <= 8:
        return problem.n <= LONGEST_NARROW
    floats = problem.dtype.kind == "f" and problem.dtype.itemsize >= 4
    return size == 4 or floats or problem.n <= LONGEST_WIDE


class QuicksortCpu(Algorithm[SortProblem]):
    """Stable quicksort in vectors for CPUs: each row is sorted by one thread, without barriers."""

    name = "quicksort"
    templates = (TEMPLATE,)
    space = SearchSpace(
        (Parameter("NETWORK", (256, 512, 1024, 2048), "words that a sorting network takes"),),
        (
            power_of_two("NETWORK"),
            Constraint(
                lambda c: 256 <= c.integer("NETWORK") <= 8192, "NETWORK must be 256 to 8192"
            ),
        ),
    )

    def supports(self, problem: SortProblem, device: Device) -> str | None:
        """Need a CPU, and words of at most 64 bits for keys and positions."""
        if device.kind != "cpu":
            return "only the threads of a CPU sort rows alone"
        if word_bytes(problem) is None:
            return "a key and its position have more than 64 bits"
        return None

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return runs for which a network is faster than a further division."""
        return Config(NETWORK=NETWORKS[word_bytes(problem) or 8])

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        """Plan one launch, in which each item has an equal share of the rows."""
        elements, size = Elements(problem), word_bytes(problem)
        if problem.n * problem.rows == 0 or size is None:
            return Plan(tuple(elements.buffers), ())
        lanes = VECTOR_BYTES // size
        # A single row has a block for itself, for which no more kernels are compiled.
        width = _width(problem, lanes) if problem.rows > 1 else lanes
        units = device.compute_units
        items = min(GROUPS_OF_UNIT * units, ceil_divide(problem.rows * width, lanes))
        items = 1 if units == 1 else items
        room = max(problem.n, 2 * ROWS * lanes)
        words = Buffer("words", "scratch", (items, 2, room), np.dtype(f"u{size}"))
        params: dict[str, Any] = {
            "ELEMENT": elements.element,
            "WORD": WORD_TYPES[size],
            "POSITION": (8 * size - problem.code_bits) * _has_positions(problem),
            "INDEX_T": c_type(index_type(problem.n * problem.rows)),
            "NETWORK": config["NETWORK"],
            "LANES": lanes,
            "WIDTH": width,
        }
        sizes = {"room": room, "n": problem.n, "rows": problem.rows}
        launch = Launch(
            template=TEMPLATE,
            kernel="quicksort_cpu",
            params=params,
            global_size=(items,),
            local_size=(1,),
            arguments={
                **elements.arguments,
                "words": words.name,
                **{name: np.uint64(value) for name, value in sizes.items()},
            },
        )
        return Plan((*elements.buffers, words), (launch,))
