"""The algorithms that sum by the definition: direct-naive, direct-tiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import (
    WIDEN,
    c_type,
    group_limit,
    index_type,
    lacks_type,
    largest_power,
    not_negative,
    positive,
    sub_group,
    vector_width,
)
from opencl_lab.core.plan import Launch, Plan, ceil_divide
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.fft.passes.local_schedule import OWN_REGISTERS
from opencl_lab.ops.fft.passes.rows import widened
from opencl_lab.ops.fft.passes.twiddles import root_table
from opencl_lab.ops.fft.problem import DftProblem, builder_of
from opencl_lab.ops.solver import Algorithm

BLOCK = 128
"""Samples that `DirectNaive` sums between compensations of rounding errors."""
ROOTS = 5
"""Roots and totals of a frequency, in registers besides its sums."""
MANY_TERMS = 1 << 32
"""Terms above which one processor takes many seconds."""


class _Direct(Algorithm[DftProblem]):
    """What both share: one launch over the frequencies of all rows, after half is widened."""

    kernel: ClassVar[str]

    def supports(self, problem: DftProblem, device: Device) -> str | None:
        """Need contiguous rows, and double precision for complex128."""
        if problem.inner != 1:
            return "it transforms contiguous rows only"
        return lacks_type(device, problem.dtype)

    def too_slow(self, problem: DftProblem) -> str | None:
        """Return why it is too slow: the direct sums of long transforms."""
        if problem.terms <= MANY_TERMS:
            return None
        return f"its {problem.terms:.1e} terms take long"

    def _plan(
        self,
        problem: DftProblem,
        params: Mapping[str, Any],
        device: Device,
        span: int,
        local_bytes: int = 0,
    ) -> Plan:
        """Plan one launch; `span` is how many results a work-group computes."""
        builder = builder_of(problem)
        if problem.n * problem.batch == 0:
            return builder.finish()
        signal = widened(builder, device, "signal")
        table = (problem.n, problem.inverse, problem.dtype)
        roots = builder.table("roots", problem.n, problem.dtype, root_table, *table)
        index = index_type(problem.n)  # powers of the root go up to 2n, which 32 bits hold
        wg_size = int(params["WG_SIZE"])
        (_, points, _), _ = problem.spectrum
        launch = Launch(
            template=self.templates[0],
            kernel=self.kernel,
            params={
                **params,
                "ELEMENT": builder.element,
                "INDEX_T": c_type(index),
                "KIND": problem.kind,
            },
            # All in the first dimension: some devices limit the others to few groups.
            global_size=(ceil_divide(points, span) * wg_size * problem.batch,),
            local_size=(wg_size,),
            arguments={
                "signal": signal,
                "spectrum": "spectrum",
                "roots": roots,
                "n": index(problem.n),
                "scale": problem.real.type(problem.scale),
            },
            local_bytes=local_bytes,
        )
        builder.launches.append(launch)
        return builder.finish()


class DirectNaive(_Direct):
    """The definition, one work-item per frequency; nothing is shared."""

    name = "direct-naive"
    templates = ("dft/direct_naive.cl.mako", WIDEN)
    kernel = "dft_naive"
    space = SearchSpace(
        (Parameter("WG_SIZE", (1, 8, 16, 32, 64, 128, 256), "items in a group"),),
        (positive("WG_SIZE"),),
    )

    def default_config(self, problem: DftProblem, device: Device) -> Config:
        """Return groups of 64 items, or the largest that the device allows."""
        return Config(WG_SIZE=largest_power(64, group_limit(device)))

    def plan(self, problem: DftProblem, config: Config, device: Device) -> Plan:
        """Plan one launch with an item for every frequency."""
        return self._plan(problem, {**config, "BLOCK": BLOCK}, device, config.integer("WG_SIZE"))


class DirectTiled(_Direct):
    """The definition as a matrix product: blocks of samples share the roots of unity."""

    name = "direct-tiled"
    templates = ("dft/direct_tiled.cl.mako", WIDEN)
    kernel = "dft_tiled"
    space = SearchSpace(
        (
            Parameter("WG_SIZE", (1, 16, 32, 64, 128, 256), "items in a group"),
            Parameter("WORK_PER_ITEM", (1, 2, 4, 8, 16, 32), "frequencies of an item"),
            Parameter("VECTOR_WIDTH", (1, 2, 4, 8, 16), "frequencies in a vector"),
            Parameter("TILE", (16, 32, 64, 128), "samples of a block"),
            Parameter("BLOCKS", (1, 2, 3, 4, 6, 8, 16), "blocks that share the roots"),
            Parameter("RESEED", (0, 4, 8, 16, 32), "samples between exact roots; 0: all stored"),
        ),
        (
            *map(positive, ("WG_SIZE", "WORK_PER_ITEM", "TILE", "BLOCKS")),
            vector_width("VECTOR_WIDTH"),
            Constraint(
                lambda c: c.integer("WORK_PER_ITEM") % c.integer("VECTOR_WIDTH") == 0,
                "VECTOR_WIDTH must divide WORK_PER_ITEM: frequencies are whole vectors",
            ),
            Constraint(
                lambda c: c.integer("TILE") * c.integer("BLOCKS") % c.integer("WG_SIZE") == 0,
                "WG_SIZE must divide TILE * BLOCKS: the items share the staging evenly",
            ),
            not_negative("RESEED"),
            Constraint(
                lambda c: not c["RESEED"] or c.integer("TILE") % c.integer("RESEED") == 0,
                "RESEED must divide TILE",
            ),
            Constraint(
                lambda c: bool(c["RESEED"]) or c.integer("TILE") % min(c.integer("TILE"), 4) == 0,
                "TILE must be a multiple of 4 where no root is reseeded",
            ),
            Constraint(
                lambda c: (
                    bool(c["RESEED"]) or c.integer("TILE") * c.integer("WORK_PER_ITEM") <= 4096
                ),
                "more than 4096 roots do not fit into an item's private memory",
            ),
            Constraint(
                lambda c: bool(c["RESEED"]) or c["WG_SIZE"] == 1,
                "RESEED = 0 keeps roots in private memory, which a group of many has not",
            ),
            Constraint(
                lambda c: _sums(c) <= 32, "more than 32 vectors of sums do not stay in registers"
            ),
            Constraint(
                lambda c: _sums(c) * max(c.integer("RESEED"), 4) <= 256,
                "more than 256 products unrolled take too long to compile",
            ),
        ),
    )

    def supports(self, problem: DftProblem, device: Device) -> str | None:
        """Need local memory for the tiles of the built-in configuration."""
        reason = super().supports(problem, device)
        least = self._local_bytes(problem, self.default_config(problem, device))
        if reason is None and device.capabilities.local_memory < least:
            return "the device has no room for tiles of samples"
        return reason

    @staticmethod
    def _local_bytes(problem: DftProblem, config: Config) -> int:
        """Return the bytes of a group's tiles; a single item reads the signal in place."""
        if config.integer("WG_SIZE") == 1:
            return 0
        sample = problem.real if problem.kind == "r2c" else problem.dtype
        return config.integer("TILE") * config.integer("BLOCKS") * sample.itemsize

    def default_config(self, problem: DftProblem, device: Device) -> Config:
        """Return vectors of frequencies on CPUs, and groups of items elsewhere."""
        if device.kind == "cpu" or not device.capabilities.barriers_in_loops:
            vector = 64 // problem.real.itemsize
            return Config(
                WG_SIZE=1, WORK_PER_ITEM=vector, VECTOR_WIDTH=vector, TILE=32, BLOCKS=2, RESEED=0
            )
        wg_size = largest_power(64, group_limit(device))
        return Config(
            WG_SIZE=wg_size, WORK_PER_ITEM=1, VECTOR_WIDTH=1, TILE=64, BLOCKS=8, RESEED=32
        )

    def plan(self, problem: DftProblem, config: Config, device: Device) -> Plan:
        """Plan one launch, with a group for as many frequencies as its items have."""
        span = config.integer("WG_SIZE") * config.integer("WORK_PER_ITEM")
        local = self._local_bytes(problem, config)
        # Sums and roots have a real and an imaginary component each.
        numbers = config.integer("WORK_PER_ITEM") * (config.integer("BLOCKS") + ROOTS)
        registers = OWN_REGISTERS + 2 * problem.real.itemsize // 4 * numbers
        params = {
            **config,
            "REREAD": device.kind == "cpu",
            "SUB_GROUP": sub_group(device, registers),
        }
        return self._plan(problem, params, device, span, local)


def _sums(config: Config) -> int:
    vectors = config.integer("WORK_PER_ITEM") // max(config.integer("VECTOR_WIDTH"), 1)
    return vectors * config.integer("BLOCKS")
