"""The algorithm `radix`."""

from __future__ import annotations

from opencl_lab.device import Device
from opencl_lab.operation import Algorithm
from opencl_lab.operations.sort.elements import Elements
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.operations.sort.units import TEMPLATE as UNITS
from opencl_lab.operations.sort.units import units_plan
from opencl_lab.plan import Plan
from opencl_lab.space import Config, Constraint, Parameter, SearchSpace

__all__ = ["Radix"]

STREAMED = 8 << 20
"""Bytes of all elements from which lines that go past the caches pay."""


class Radix(Algorithm[SortProblem]):
    """Stable radix sort."""

    name = "radix"
    templates = (UNITS,)
    space = SearchSpace(
        (
            Parameter("FORM", ("units",), "units: groups of one item, for CPUs"),
            Parameter("DIGIT_BITS", (8, 9, 10, 11), "bits of a digit, at most"),
            Parameter("CAPACITY", (8192, 16384, 32768, 65536), "elements of a run in a cache"),
            Parameter("STREAM", (False, True), "lines of memory are written past the caches"),
        ),
        (Constraint(lambda c: 0 < c.integer("DIGIT_BITS") <= 12, "DIGIT_BITS must be 1 to 12"),),
    )

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        total = problem.n * problem.rows * Elements(problem).nbytes
        return Config(FORM="units", DIGIT_BITS=11, CAPACITY=32768, STREAM=total >= STREAMED)

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        return units_plan(problem, config, device)
