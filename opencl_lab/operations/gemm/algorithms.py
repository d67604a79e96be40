"""The algorithms of the matrix product: naive, tiled, blocked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from opencl_lab.device import Device
from opencl_lab.kernels import (
    c_type,
    divides,
    index_type,
    lacks_barriers,
    lacks_type,
    largest_power,
    not_negative,
    positive,
    vector_width,
)
from opencl_lab.operations.gemm.problem import GemmProblem
from opencl_lab.plan import Buffer, Launch, Plan, round_up
from opencl_lab.solver import Algorithm
from opencl_lab.space import Config, Constraint, Parameter, SearchSpace

__all__ = ["Blocked", "Naive", "Tiled"]


def _items(config: Config) -> int:
    """Return how many items a group of `Blocked` has."""
    rows = config.integer("TILE_M") // config.integer("WORK_M")
    return rows * (config.integer("TILE_N") // config.integer("WORK_N"))


def _shared(matrix: str, extent: str) -> Constraint:
    return Constraint(
        lambda c: (
            not c[f"STAGE_{matrix}"] or c.integer(extent) * c.integer("TILE_K") % _items(c) == 0
        ),
        f"the items must share the staging of {matrix} evenly: "
        f"{extent} * TILE_K must be a multiple of their number",
    )


def _vectors(config: Config) -> int:
    """Return how many vectors of sums an item of `Blocked` has."""
    return config.integer("WORK_M") * config.integer("WORK_N") // config.integer("VECTOR_WIDTH")


class _Product(Algorithm[GemmProblem]):
    """What the algorithms share: one launch over tiles of the result."""

    kernel: ClassVar[str]
    synchronises: ClassVar[bool] = True

    def supports(self, problem: GemmProblem, device: Device) -> str | None:
        """Need double precision for float64, and barriers where items share tiles."""
        reason = lacks_type(device, problem.dtype)
        return reason or (lacks_barriers(device) if self.synchronises else None)

    def _plan(
        self,
        problem: GemmProblem,
        params: Mapping[str, Any],
        tile: tuple[int, int],
        group: tuple[int, int],
        local_elements: int = 0,
    ) -> Plan:
        """Plan one launch; `tile` and `group` are rows and columns of a work-group."""
        shape = (problem.m, problem.n)
        buffers = [
            Buffer("a", "in", problem.shape_a, problem.dtype),
            Buffer("b", "in", problem.shape_b, problem.dtype),
            Buffer("result", "out", shape, problem.dtype),
        ]
        if problem.beta:
            buffers.append(Buffer("c", "in", shape, problem.dtype))
        if problem.m * problem.n == 0:
            return Plan(tuple(buffers), ())

        real = problem.dtype.type
        largest = max(problem.m * problem.k, problem.k * problem.n, problem.m * problem.n)
        index = index_type(largest)
        launch = Launch(
            template=self.templates[0],
            kernel=self.kernel,
            params={
                **params,
                "REAL_T": c_type(problem.dtype),
                "INDEX_T": c_type(index),
                "TRANS_A": problem.trans_a,
                "TRANS_B": problem.trans_b,
                "HAS_C": bool(problem.beta),
            },
            global_size=(
                round_up(problem.n, tile[1]) // tile[1] * group[1],
                round_up(problem.m, tile[0]) // tile[0] * group[0],
            ),
            local_size=(group[1], group[0]),
            arguments={
                "a": "a",
                "b": "b",
                **({"c": "c"} if problem.beta else {}),
                "result": "result",
                "m": index(problem.m),
                "n": index(problem.n),
                "k": index(problem.depth),
                # An infinite alpha times an empty sum must not become NaN.
                "alpha": real(problem.alpha if problem.depth else 0),
                "beta": real(problem.beta),
            },
            local_bytes=local_elements * problem.dtype.itemsize,
        )
        return Plan(tuple(buffers), (launch,))


class Naive(_Product):
    """One work-item for one element of the result; nothing is shared."""

    name = "naive"
    templates = ("gemm/naive.cl.mako",)
    kernel = "gemm_naive"
    synchronises = False
    space = SearchSpace(
        (
            Parameter("WG_M", (1, 2, 4, 8, 16, 32), "rows of a work-group"),
            Parameter("WG_N", (1, 4, 8, 16, 32, 64, 128, 256), "columns of a work-group"),
        ),
        (positive("WG_M"), positive("WG_N")),
    )

    def default_config(self, problem: GemmProblem, device: Device) -> Config:
        """Return groups along the rows on GPUs, whose items share memory transactions."""
        rows, columns = (32, 8) if device.kind == "cpu" else (8, 32)
        limit, sizes = device.capabilities.max_work_group, device.max_work_items
        columns = largest_power(columns, limit, sizes[0])
        rows = largest_power(rows, limit // columns, sizes[1])
        return Config(WG_M=rows, WG_N=columns)

    def plan(self, problem: GemmProblem, config: Config, device: Device) -> Plan:
        """Plan one launch with an item for every element, whole groups."""
        group = config.integer("WG_M"), config.integer("WG_N")
        return self._plan(problem, config, group, group)


class Tiled(_Product):
    """Square tiles of both matrices in local memory, one element of the result an item."""

    name = "tiled"
    templates = ("gemm/tiled.cl.mako",)
    kernel = "gemm_tiled"
    space = SearchSpace(
        (
            Parameter("TILE", (8, 16, 32), "rows and columns of a tile and of the group"),
            Parameter("LOCAL_PAD", (0, 1), "elements between the rows of a tile"),
            Parameter("UNROLL", (1, 2, 4, 8, 16, 32), "products a trip of the inner loop"),
        ),
        (
            positive("TILE"),
            positive("UNROLL"),
            not_negative("LOCAL_PAD"),
            divides("UNROLL", "TILE", "the inner loop makes whole trips"),
        ),
    )

    def supports(self, problem: GemmProblem, device: Device) -> str | None:
        """Need a work-group and local memory for the least tile."""
        reason = super().supports(problem, device)
        if reason is None and not self._fits(8, problem, device):
            return "the device has no room for work-groups of 8 x 8 items with their tiles"
        return reason

    def default_config(self, problem: GemmProblem, device: Device) -> Config:
        """Return the largest tile that suits the kind of device and fits it."""
        tile = 32
        while tile > 8 and not self._fits(tile, problem, device):
            tile //= 2
        return Config(TILE=tile, LOCAL_PAD=1, UNROLL=8)

    @staticmethod
    def _fits(tile: int, problem: GemmProblem, device: Device) -> bool:
        return (
            tile * tile <= device.capabilities.max_work_group
            and tile <= min(device.max_work_items[:2])
            and 2 * tile * (tile + 1) * problem.dtype.itemsize <= device.capabilities.local_memory
        )

    def plan(self, problem: GemmProblem, config: Config, device: Device) -> Plan:
        """Plan one launch, a group of TILE x TILE items a tile."""
        tile = config.integer("TILE")
        local = 2 * tile * (tile + config.integer("LOCAL_PAD"))
        return self._plan(problem, config, (tile, tile), (tile, tile), local)


class Blocked(_Product):
    """A block of the result in the registers of each item, tiles in local memory."""

    name = "blocked"
    templates = ("gemm/blocked.cl.mako",)
    kernel = "gemm_blocked"
    space = SearchSpace(
        (
            Parameter("TILE_M", (12, 16, 24, 32, 48, 64, 96, 128, 192), "rows of a work-group"),
            Parameter("TILE_N", (8, 16, 32, 64, 128, 256), "columns of a work-group"),
            Parameter("TILE_K", (4, 8, 16, 32, 64, 128, 256), "length of a step along k"),
            Parameter("WORK_M", (1, 2, 4, 6, 8, 12, 16), "rows of an item"),
            Parameter("WORK_N", (1, 2, 4, 8, 16, 32), "columns of an item"),
            Parameter("VECTOR_WIDTH", (1, 2, 4, 8, 16), "columns in a vector"),
            Parameter("VECTOR_ROWS", (1, 2, 4), "rows of A read at once from local memory"),
            Parameter("LOCAL_PAD", (0, 1), "vectors between the lines of a tile"),
            Parameter("UNROLL", (1, 2, 4, 8, 16), "values of k a trip of the inner loop"),
            Parameter("STAGE_A", (False, True), "A goes through local memory"),
            Parameter("STAGE_B", (False, True), "B goes through local memory"),
            Parameter(
                "STAGE_UNROLL",
                (0, 1, 2, 4),
                "loads under way while staging; 0: the compiler's choice",
            ),
        ),
        (
            *map(positive, ("TILE_M", "TILE_N", "TILE_K", "WORK_M", "WORK_N", "UNROLL")),
            vector_width("VECTOR_WIDTH"),
            vector_width("VECTOR_ROWS"),
            not_negative("LOCAL_PAD"),
            divides("WORK_M", "TILE_M", "each item owns as many rows"),
            divides("WORK_N", "TILE_N", "each item owns as many columns"),
            divides("VECTOR_WIDTH", "WORK_N", "an item's columns are whole vectors"),
            divides("VECTOR_ROWS", "WORK_M", "an item's rows are whole vectors"),
            divides("VECTOR_ROWS", "VECTOR_WIDTH", "else padding would misalign vectors of rows"),
            divides("UNROLL", "TILE_K", "the inner loop makes whole trips"),
            _shared("A", "TILE_M"),
            _shared("B", "TILE_N"),
            Constraint(
                lambda c: c["VECTOR_ROWS"] == 1 or bool(c["STAGE_A"]),
                "VECTOR_ROWS reads local memory, so it needs STAGE_A",
            ),
            Constraint(
                lambda c: c["LOCAL_PAD"] == 0 or bool(c["STAGE_A"]) or bool(c["STAGE_B"]),
                "LOCAL_PAD pads local memory, so it needs STAGE_A or STAGE_B",
            ),
            not_negative("STAGE_UNROLL"),
            Constraint(
                lambda c: c["STAGE_UNROLL"] == 0 or bool(c["STAGE_A"]) or bool(c["STAGE_B"]),
                "STAGE_UNROLL unrolls staging, so it needs STAGE_A or STAGE_B",
            ),
            Constraint(
                lambda c: c.integer("WORK_M") * c.integer("WORK_N") <= 512,
                "more than 512 sums an item do not fit in any registers",
            ),
            Constraint(
                lambda c: _vectors(c) <= 64,
                "more than 64 vectors of sums an item do not stay in registers",
            ),
            Constraint(
                lambda c: _vectors(c) * c.integer("UNROLL") <= 512,
                "more than 512 statements a trip take too long to compile",
            ),
        ),
    )

    def supports(self, problem: GemmProblem, device: Device) -> str | None:
        """Need local memory and a work-group for the least of the built-in configurations."""
        reason = super().supports(problem, device)
        if reason is None and not self._fits(self._configs(problem, device)[-1], problem, device):
            return "the device has no room for the smallest tiles"
        return reason

    def default_config(self, problem: GemmProblem, device: Device) -> Config:
        """Return the largest tiles that fit the device, fill it, and waste little at edges."""
        configs = self._configs(problem, device)
        # Threads of a CPU share what is left over; a GPU's processors start together.
        groups = device.compute_units * (2 if device.kind == "cpu" else 1)
        for config in configs:
            tile_m, tile_n = config.integer("TILE_M"), config.integer("TILE_N")
            rows, columns = round_up(problem.m, tile_m), round_up(problem.n, tile_n)
            if (
                self._fits(config, problem, device)
                and rows * columns >= groups * tile_m * tile_n
                and rows * columns <= 2 * problem.m * problem.n
            ):
                return config
        return configs[-1]

    @staticmethod
    def _configs(problem: GemmProblem, device: Device) -> list[Config]:
        """Return the built-in configurations for this kind of device, large tiles first."""
        word = problem.dtype.itemsize
        if device.kind == "cpu":
            # Items run one after the other: a few long steps along k, tiles that live in the
            # second cache. Rows of A are read in place, where they lie along k.
            common = Config(
                TILE_K=128,
                WORK_M=6,
                WORK_N=64 // word,
                VECTOR_WIDTH=64 // word,
                VECTOR_ROWS=1,
                LOCAL_PAD=1,
                UNROLL=1,
                STAGE_A=problem.trans_a,
                STAGE_B=True,
                STAGE_UNROLL=0,
            )
            return [
                common.replace(TILE_M=6 * factor, TILE_N=factor * 32 // word)
                for factor in (16, 8, 4, 2)
            ]
        common = Config(
            TILE_K=32,
            VECTOR_WIDTH=16 // word,
            VECTOR_ROWS=16 // word,
            LOCAL_PAD=1,
            UNROLL=8,
            STAGE_A=True,
            STAGE_B=True,
            STAGE_UNROLL=2 if word == 4 else 0,
        )
        smaller = [
            common.replace(TILE_M=tile, TILE_N=tile, TILE_K=min(32, tile), WORK_M=4, WORK_N=4)
            for tile in (64, 32, 16)
        ]
        largest = common.replace(TILE_M=128, TILE_N=128, WORK_M=8, WORK_N=8)
        if word == 8:  # the same tiles would leave room for one group on a processor
            largest = largest.replace(TILE_M=64, TILE_K=16, UNROLL=16)
        return [largest, *smaller]

    def _fits(self, config: Config, problem: GemmProblem, device: Device) -> bool:
        local = self._local_elements(config) * problem.dtype.itemsize
        limit = min(device.capabilities.max_work_group, device.max_work_items[0])
        return _items(config) <= limit and local <= device.capabilities.local_memory

    def plan(self, problem: GemmProblem, config: Config, device: Device) -> Plan:
        """Plan one launch, a group of items a tile of the result."""
        tile = config.integer("TILE_M"), config.integer("TILE_N")
        group = 1, _items(config)
        vector = config.integer("VECTOR_WIDTH")
        # Built-in functions may not take every vector; the kernel puts these together from pieces.
        load = min(vector, max(1, device.capabilities.vector_bytes // problem.dtype.itemsize))
        return self._plan(
            problem, {**config, "LOAD_WIDTH": load}, tile, group, self._local_elements(config)
        )

    @staticmethod
    def _local_elements(config: Config) -> int:
        pad = config.integer("LOCAL_PAD") * config.integer("VECTOR_WIDTH")
        line = 0
        if config["STAGE_A"]:
            line += config.integer("TILE_M") + pad
        if config["STAGE_B"]:
            line += config.integer("TILE_N") + pad
        return config.integer("TILE_K") * line
