"""The quicksort for CPUs: groups of one item, each of which sorts rows alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import WORD_TYPES, c_type, index_type, largest_power, power_of_two
from opencl_lab.core.plan import Buffer, Launch, Plan, ceil_divide
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.problem import SortProblem

TEMPLATE = "sort/quicksort_cpu.cl.mako"
VECTOR = 64
"""Bytes of a vector register, which words are sorted in."""
ROWS = 16
"""Vectors of a block of a network."""
NETWORKS = {4: 1024, 8: 512}
"""Words of a run that a sorting network takes, by the size of a word in bytes."""


def _position_bits(problem: SortProblem) -> int:
    """Return the bits of a position in a word, or 0 where keys are made again from their codes."""
    if problem.indices or problem.value_bytes or problem.bits is not None:
        return max((problem.n - 1).bit_length(), 1)
    return 0


def _word_size(problem: SortProblem) -> int | None:
    """Return the bytes of a word for a code and a position, or None if they do not fit."""
    bits = problem.code_bits + _position_bits(problem)
    return 4 if bits <= 32 else 8 if bits <= 64 else None


def _width(problem: SortProblem, lanes: int) -> int:
    """Return the lanes of a network that a row takes: all, unless rows share a block."""
    width = largest_power(2 * ceil_divide(problem.n, ROWS) - 1)
    return min(width, lanes) if problem.rows > 1 else lanes


class QuicksortCpu(Algorithm[SortProblem]):
    """Stable quicksort of codes and positions for CPUs, each row by one thread: no barriers."""

    name = "quicksort"
    templates = (TEMPLATE,)
    space = SearchSpace(
        (Parameter("NETWORK", (256, 512, 1024, 2048), "words that a sorting network takes"),),
        (power_of_two("NETWORK"),),
    )

    def supports(self, problem: SortProblem, device: Device) -> str | None:
        """Need a CPU, and words of which 64 bits hold a key and its position."""
        if device.kind != "cpu":
            return "only threads of a CPU sort rows alone"
        if _word_size(problem) is None:
            return "a key and its position have more than 64 bits"
        return None

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return runs for which a network is faster than to divide them further."""
        return Config(NETWORK=NETWORKS[_word_size(problem) or 8])

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        """Plan one launch, in which each item has an equal share of the rows."""
        elements = Elements(problem)
        buffers = elements.buffers
        if problem.n * problem.rows == 0:
            return Plan(tuple(buffers), ())
        items = min(device.compute_units, problem.rows)
        size = _word_size(problem)
        assert size is not None
        lanes = VECTOR // size
        room = max(problem.n, 2 * ROWS * lanes)
        buffers.append(
            Buffer("words", "scratch", (items, 2, room), np.dtype(f"u{size}"))
        )
        params: dict[str, Any] = {
            "ELEMENT": elements.element,
            "WORD": WORD_TYPES[size],
            "POSITION": _position_bits(problem),
            "INDEX_T": c_type(index_type(problem.n * problem.rows)),
            "NETWORK": config["NETWORK"],
            "LANES": lanes,
            "WIDTH": _width(problem, lanes),
        }
        launch = Launch(
            TEMPLATE,
            "quicksort_cpu",
            params,
            (items,),
            (1,),
            {**elements.arguments, "words": "words", "room": np.uint64(room), "n": np.uint64(problem.n), "rows": np.uint64(problem.rows)},
        )
        return Plan(tuple(buffers), (launch,))
