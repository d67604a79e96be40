"""Gathering: elements of any type in the order that an argsort gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.kernels import WORD_TYPES, item_launch, positive, word_size
from opencl_lab.core.plan import Argument, Buffer, Plan, Work, named
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.solver import Algorithm, Homes, Problem, Solver

TEMPLATE = "sort/gather.cl.mako"


@dataclass(frozen=True)
class GatherProblem(Problem):
    """Gather the first `k` elements of each row in a given order.

    There are `rows` rows of `n` elements of `nbytes` bytes. With `places`, the positions of the
    gathered elements are an output, too.
    """

    sizes = ("n", "rows", "k")
    layout = ("nbytes", "places")

    n: int
    rows: int
    nbytes: int
    k: int
    places: bool = False

    def __post_init__(self) -> None:
        if min(self.n, self.rows) < 0 or self.nbytes < 1:
            raise InvalidProblem("sizes must not be negative, and elements not empty")
        if not 0 <= self.k <= self.n:
            raise InvalidProblem(f"k must be 0 to {self.n}, not {self.k}")

    @property
    def work(self) -> Work:
        """One read and one write of every element, and one read of its position."""
        return Work(0, float(self.rows * self.k * (2 * self.nbytes + 8 + 8 * self.places)))


class Words(Algorithm[GatherProblem]):
    """Copy each element as words of the largest type that divides it, one work-item per word."""

    name = "words"
    templates = (TEMPLATE,)
    space = SearchSpace(
        (Parameter("WG_SIZE", (64, 128, 256), "items in a group"),),
        (positive("WG_SIZE"),),
    )

    def default_config(self, problem: GatherProblem, device: Device) -> Config:
        """Return groups of 256 items, or the largest that the device allows."""
        return Config(WG_SIZE=min(256, device.capabilities.max_work_group))

    def plan(self, problem: GatherProblem, config: Config, device: Device) -> Plan:
        """Plan one launch."""
        shape, taken = (problem.rows, problem.n), (problem.rows, problem.k)
        element, long = np.dtype(f"V{problem.nbytes}"), np.dtype(np.int64)
        places = ["places"] * problem.places
        buffers = (
            Buffer("source", "in", shape, element),
            Buffer("order", "in", shape, long),
            Buffer("target", "out", taken, element),
            *(Buffer(name, "out", taken, long) for name in places),
        )
        count = problem.rows * problem.k
        if not count:
            return Plan(buffers, ())
        word = word_size(problem.nbytes)
        words = problem.nbytes // word
        params = {
            "WORD_T": WORD_TYPES[word],
            "WORDS": words,
            "PLACES": problem.places,
            "WG_SIZE": config.integer("WG_SIZE"),
        }
        arguments: dict[str, Argument] = {
            **named("source", "order", "target", *places),
            "n": np.uint64(problem.n),
            "k": np.uint64(problem.k),
            "count": np.uint64(count),
        }
        launch = item_launch(TEMPLATE, "gather", count * words, params, arguments)
        return Plan(buffers, (launch,))


class Gather(Solver[GatherProblem]):
    """Elements in another order."""

    name = "gather"
    homes: ClassVar[Homes] = {"words": Words()}
    tunable = False


GATHER = Gather()
