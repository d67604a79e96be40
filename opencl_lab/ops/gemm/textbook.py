"""The textbook algorithms: one element of the result per work-item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import divides, largest_power, not_negative, positive
from opencl_lab.core.plan import CUDA_GROUPS, Launch, Plan, round_up
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.gemm import launches
from opencl_lab.ops.gemm.problem import GemmProblem


class _Textbook(launches.Product):
    """An item for every element of the result, and for the padding of the last groups.

    There is one launch, unless there are more products or groups of rows than a grid may have.
    """

    modelled = False
    takes_integers = True
    kernel: ClassVar[str]

    def _plan(
        self,
        problem: GemmProblem,
        params: Mapping[str, Any],
        group: tuple[int, int],
        local_elements: int = 0,
    ) -> Plan:
        buffers = launches.buffers(problem)
        if launches.is_empty(problem):
            return Plan(buffers, ())
        index = launches.index_of(problem)
        arguments = launches.arguments(problem)
        return Plan(
            buffers,
            tuple(
                Launch(
                    template=self.templates[0],
                    kernel=self.kernel,
                    params={**params, **launches.params(problem)},
                    global_size=(round_up(problem.n, group[1]), round_up(rows, group[0]), products),
                    local_size=(group[1], group[0], 1),
                    arguments={
                        **arguments,
                        "first_row": index(first_row),
                        "first_product": index(first_product),
                    },
                    local_bytes=local_elements * problem.sum_type.itemsize,
                )
                for first_product, products in _parts(problem.batch, CUDA_GROUPS)
                for first_row, rows in _parts(problem.m, CUDA_GROUPS * group[0])
            ),
        )


def _parts(count: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield the start and length of consecutive ranges of `count`, each at most `most` long."""
    for first in range(0, count, most):
        yield first, min(most, count - first)


class NaiveProduct(_Textbook):
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
        return self._plan(problem, config, group)


class TiledProduct(_Textbook):
    """Square tiles of both matrices in local memory, one element of the result per item."""

    name = "tiled"
    templates = ("gemm/tiled.cl.mako",)
    kernel = "gemm_tiled"
    space = SearchSpace(
        (
            Parameter("TILE", (8, 16, 32), "rows and columns of a tile and of the group"),
            Parameter("LOCAL_PAD", (0, 1), "elements between the rows of a tile"),
            Parameter("UNROLL", (1, 2, 4, 8, 16, 32), "products per iteration of the inner loop"),
        ),
        (
            positive("TILE"),
            positive("UNROLL"),
            not_negative("LOCAL_PAD"),
            divides("UNROLL", "TILE", "the inner loop makes whole iterations"),
        ),
    )

    def supports(self, problem: GemmProblem, device: Device) -> str | None:
        """Need the work-group and local memory of the smallest tile."""
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
        local = 2 * tile * (tile + 1) * problem.sum_type.itemsize
        return (
            tile * tile <= device.capabilities.max_work_group
            and tile <= min(device.max_work_items[:2])
            and local <= device.capabilities.local_memory
        )

    def plan(self, problem: GemmProblem, config: Config, device: Device) -> Plan:
        """Plan one launch, with a group of TILE x TILE items per tile."""
        tile = config.integer("TILE")
        local = 2 * tile * (tile + config.integer("LOCAL_PAD"))
        return self._plan(problem, config, (tile, tile), local)
