"""The matrix product by blocks in registers."""

from __future__ import annotations

from opencl_lab.device import Device
from opencl_lab.kernels import divides, not_negative, positive, vector_width
from opencl_lab.operations.gemm import launches
from opencl_lab.operations.gemm.problem import GemmProblem
from opencl_lab.plan import Launch, Plan, round_up
from opencl_lab.space import Config, Constraint, Parameter, SearchSpace

__all__ = ["Blocked"]


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


class Blocked(launches.Product):
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
        if problem.dtype.name not in ("float32", "float64"):
            return f"it multiplies no matrices of {problem.dtype}"
        if problem.batch != 1 or problem.bias or problem.activation:
            return "it multiplies one pair of matrices, without a bias and an activation"
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
        items = _items(config)
        vector = config.integer("VECTOR_WIDTH")
        # Built-in functions may not take every vector; the kernel puts these together from pieces.
        load = min(vector, max(1, device.capabilities.vector_bytes // problem.dtype.itemsize))
        buffers = launches.buffers(problem)
        if launches.is_empty(problem):
            return Plan(buffers, ())
        shared = launches.params(problem)
        launch = Launch(
            template=self.templates[0],
            kernel="gemm_blocked",
            params={
                **config,
                **{name: shared[name] for name in ("INDEX_T", "TRANS_A", "TRANS_B", "HAS_C")},
                "REAL_T": shared["TYPE"],
                "LOAD_WIDTH": load,
            },
            global_size=(
                round_up(problem.n, tile[1]) // tile[1] * items,
                round_up(problem.m, tile[0]) // tile[0],
            ),
            local_size=(items, 1),
            arguments=launches.arguments(problem),
            local_bytes=self._local_elements(config) * problem.dtype.itemsize,
        )
        return Plan(buffers, (launch,))

    @staticmethod
    def _local_elements(config: Config) -> int:
        pad = config.integer("LOCAL_PAD") * config.integer("VECTOR_WIDTH")
        line = 0
        if config["STAGE_A"]:
            line += config.integer("TILE_M") + pad
        if config["STAGE_B"]:
            line += config.integer("TILE_N") + pad
        return config.integer("TILE_K") * line
