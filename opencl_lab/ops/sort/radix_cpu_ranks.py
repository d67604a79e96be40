"""Steps of the radix sort for CPUs by several processes of a node, each with a part of a row.

The processes count the keys of buckets, agree where these lie in memory that they share, move their
elements there, and sort the runs of buckets that make their parts of the result. So keys are read
and written as often as in one process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.kernels import c_type, index_type
from opencl_lab.core.plan import Argument, Buffer, Launch, Plan, named
from opencl_lab.core.space import Config
from opencl_lab.ops.solver import Registry, Solver
from opencl_lab.ops.sort import radix_cpu
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.radix_cpu import Cut, RadixCpu, RunSort
from opencl_lab.ops.sort.solver import SORT_SOLVER

Array = np.ndarray[Any, Any]
TEMPLATE = "sort/radix_cpu_ranks.cl.mako"
STEPS = ("count", "scatter", "finish")
BORDER = 8
"""Most elements of a run that two processes sort, as a multiple of those of an average bucket."""


@dataclass(frozen=True)
class PartProblem(SortProblem):
    """A step of the sort of a row of `whole` keys, of which a process has `n`.

    In the result the part of the process begins at `low`. `sampled` keys show the range of all.
    """

    step: str = "count"
    whole: int = 0
    low: int = 0
    sampled: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rows != 1 or self.indices or self.bits is not None or self.step not in STEPS:
            raise InvalidProblem("processes sort one row together, by whole keys")

    @property
    def row(self) -> SortProblem:
        """The problem of the whole row."""
        return SortProblem(
            self.whole, self.dtype, descending=self.descending, value_bytes=self.value_bytes
        )


@dataclass(frozen=True)
class Buckets:
    """How a row is cut: what processes that sort it together must have in common."""

    cut: Cut
    border: int  # most elements of a run that two processes sort

    @property
    def number(self) -> int:
        """How many buckets there are."""
        return 1 << self.cut.bits

    def runs(self, counts: Array, units: int) -> list[int] | None:
        """Return where runs of buckets begin, and the end; None if keys crowd in a few buckets.

        `counts` are those of all buckets, `units` those of all processes.
        """
        starts, size, place = [0], 0, 0
        for count in counts.tolist():
            if size and size + count > self.cut.share:
                starts.append(place)
                size = 0
            size += count
            place += count
        starts.append(place)
        most = max(place // (8 * units) * 5, self.cut.share)
        longest = max(np.diff(starts).tolist())
        return starts if longest <= min(most, self.cut.largest) else None


class RadixCpuRanks(RadixCpu):
    """The radix sort for CPUs, a step of it for one process of several."""

    templates = (TEMPLATE,)

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return the configuration of a sort of the whole row."""
        assert isinstance(problem, PartProblem)
        return SORT_SOLVER.algorithm("radix").on("cpu").configure(problem.row, device)

    def buckets(self, problem: PartProblem, config: Config, device: Device) -> Buckets:
        """Return how the row is cut."""
        cut = Cut.of(problem.row, config, device, self._network(problem, device))
        average = problem.whole >> cut.bits
        return Buckets(cut, max(BORDER * average, config.integer("CAPACITY")))

    @staticmethod
    def _network(problem: PartProblem, device: Device) -> int:
        row = problem.row
        return radix_cpu._longest_network(row, Elements(row), device, True)

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        """Plan the launch of a step."""
        assert isinstance(problem, PartProblem)
        buckets = self.buckets(problem, config, device)
        buffers, scalars = self._memory(problem, config, device, buckets)
        if not problem.n:
            return Plan(tuple(buffers), ())
        run = RunSort.of(problem.row, config, self._network(problem, device), True)
        index, step = index_type(problem.whole), problem.step
        items = np.dtype(index).itemsize
        local = {
            "count": 2 * items << buckets.cut.bits,
            "scatter": (64 + 2 * items) << buckets.cut.bits,
            "finish": 3 * items << run.bits,
        }
        counters = Buffer("counters", "zeros", (3,), np.dtype(np.uint32))
        arguments: dict[str, Argument] = {
            **named(*(buffer.name for buffer in buffers)),
            **scalars,
            "n": index(problem.n),
            "counters": counters.name,
        }
        params: dict[str, Any] = {
            "ELEMENT": Elements(problem).element,
            "INDEX_T": c_type(index),
            "CAPACITY": config.integer("CAPACITY"),
            "CUT": buckets.cut,
            "RUN": run,
            "STREAM": config["STREAM"],
            "STEP": step,
            "BORDER": buckets.border,
        }
        launch = Launch(
            template=TEMPLATE, kernel="radix_cpu_ranks", params=params, local_bytes=local[step],
            global_size=(device.compute_units,), local_size=(1,), arguments=arguments,
        )  # fmt: skip
        return Plan((*buffers, counters), (launch,))

    @staticmethod
    def _memory(
        problem: PartProblem, config: Config, device: Device, buckets: Buckets
    ) -> tuple[list[Buffer], dict[str, Argument]]:
        """Return the buffers of a step in the order of arguments, and scalars that follow."""
        elements, units = Elements(problem), device.compute_units
        index, key = index_type(problem.whole), np.dtype(f"u{problem.dtype.itemsize}")
        element = np.dtype(f"V{elements.nbytes}")
        given = {buffer.name: buffer for buffer in elements.buffers}
        first = Buffer("first", "out", (problem.whole,), element)
        if problem.step == "finish":
            border, moved = buckets.border, problem.value_bytes
            found = [
                first,
                Buffer("starts", "in", (buckets.number + 2,), np.dtype(index)),
                given["sorted"],
                Buffer("spares", "scratch", (units, 2, config.integer("CAPACITY")), element),
                Buffer("aside", "scratch", (4 * border,), element),
                Buffer("aside_keys", "scratch", (2 * border,), key),
            ]
            if moved:
                found.append(given["sorted_values"])
                found.append(Buffer("second", "scratch", (problem.n,), element))
                room = np.dtype(f"V{moved}")
                found.append(Buffer("aside_values", "scratch", (2 * border,), room))
            return found, {"low": index(problem.low)}
        chunks, counting = chunks_of(problem.n, units), problem.step == "count"
        role: Any = "out" if counting else "in"
        found = [
            given["keys"],
            Buffer("sampled", "in", (problem.sampled,), problem.dtype),
            Buffer("table", role, (chunks, buckets.number), np.dtype(index)),
            Buffer("limits", "scratch", (3 * chunks,), key) if counting else first,
        ]
        if problem.value_bytes and not counting:
            found.insert(1, given["values"])
        return found, {"chunks": np.uint32(chunks), "sampled_n": index(problem.sampled)}


def chunks_of(n: int, units: int) -> int:
    """Return into how many chunks a part is divided."""
    return min(max(n // radix_cpu.KEYS_OF_CHUNK, units), radix_cpu.CHUNKS_OF_UNIT * units)


RADIX = RadixCpuRanks()


class PartSort(Solver[PartProblem]):
    """Steps of a sort by several processes."""

    name = "sort"  # verdicts on radix sorts hold for it, too
    registry: ClassVar[Registry] = {"radix": RADIX}
    tunable = False


PART_SORT = PartSort()


def buckets_of(problem: PartProblem, device: Device) -> Buckets | None:
    """Return how a device cuts a row; None if it does not sort parts of rows so.

    It must use memory of the host in place, as others write there at the same time.
    """
    if device.kind != "cpu" or not (device.unified_memory and device.shared_pointers):
        return None
    SORT_SOLVER.choose(problem.row, device, "radix", internal=True)
    return RADIX.buckets(problem, RADIX.configure(problem, device), device)


def run_step(
    problem: PartProblem, step: str, queue: Any, inputs: Mapping[str, Any], first: Any = None
) -> dict[str, Any]:
    """Run a step and return its outputs; `first` is the memory that all processes share."""
    out = None if first is None else {"first": first}
    run = PART_SORT.run(replace(problem, step=step), inputs, queue=queue, out=out)
    return run.outputs
