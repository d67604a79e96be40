"""The direct algorithms of a convolution in global and in local memory: naive, tiled."""

from __future__ import annotations

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import lacks_barriers, largest_power, positive
from opencl_lab.core.plan import Buffer, Launch, LocalMemory, ceil_divide, passed_room
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.conv2d.launch import Convolution
from opencl_lab.ops.conv2d.pixels import FilterPass
from opencl_lab.ops.conv2d.problem import Conv2dProblem

CONSTANT_WEIGHTS = Parameter(
    "CONSTANT_WEIGHTS", (False, True), "the filter lies in constant memory if it fits"
)


def _group(columns: int, rows: int, device: Device) -> Config:
    """Return a work-group of at most `columns` x `rows` items that the device allows."""
    limit = device.capabilities.max_work_group
    columns = largest_power(columns, limit, device.max_work_items[0])
    rows = largest_power(rows, limit // columns, device.max_work_items[1])
    return Config(WG_X=columns, WG_Y=rows, CONSTANT_WEIGHTS=True)


class NaiveConvolution(Convolution):
    """One work-item for one value of the result; nothing is shared."""

    name = "naive"
    templates = ("conv2d/naive.cl.mako",)
    kernel = "conv2d_naive"
    has_long_sums = True
    space = SearchSpace(
        (
            Parameter("WG_X", (1, 4, 8, 16, 32, 64, 128, 256), "values of a row in a work-group"),
            Parameter("WG_Y", (1, 2, 4, 8, 16, 32), "rows of a work-group"),
            CONSTANT_WEIGHTS,
        ),
        (positive("WG_X"), positive("WG_Y")),
    )

    def default_config(self, problem: Conv2dProblem, device: Device) -> Config:
        """Return groups along the rows, whose items share memory transactions."""
        return _group(64, 4, device).replace(CONSTANT_WEIGHTS=False)

    def _solve(
        self, problem: Conv2dProblem, config: Config, device: Device, buffers: list[Buffer]
    ) -> list[Launch]:
        """Return one launch with an item for every value, whole groups."""
        group = config.integer("WG_Y"), config.integer("WG_X")
        params = {name: config[name] for name in ("WG_X", "WG_Y")}
        return self._launches(
            problem,
            FilterPass.whole(problem),
            params,
            tile=group,
            group=group,
            arguments={"channels": np.int32(problem.channels)},
            constant_weights=bool(config["CONSTANT_WEIGHTS"]),
            device=device,
        )


class TiledConvolution(Convolution):
    """A tile and its halo in local memory, the filter in constant memory."""

    name = "tiled"
    templates = ("conv2d/tiled.cl.mako",)
    kernel = "conv2d_tiled"
    space = SearchSpace(
        (
            Parameter("WG_X", (8, 16, 32, 64, 128), "values of a row in a work-group"),
            Parameter("WG_Y", (1, 2, 4, 8, 16, 32), "items of a work-group across rows"),
            Parameter("WORK_PER_ITEM", (1, 2, 4, 8, 16), "rows of an item"),
            CONSTANT_WEIGHTS,
        ),
        (positive("WG_X"), positive("WG_Y"), positive("WORK_PER_ITEM")),
    )

    def supports(self, problem: Conv2dProblem, device: Device) -> str | None:
        """Need barriers, and local memory for a tile and its halo."""
        reason = super().supports(problem, device) or lacks_barriers(device)
        least = _group(8, 8, device).replace(WORK_PER_ITEM=1)
        if reason is None and not self._fits(problem, least, device):
            return "the device has no room for a tile of 8 x 8 values and the halo of this filter"
        return reason

    def default_config(self, problem: Conv2dProblem, device: Device) -> Config:
        """Return wide tiles, and fewer rows where local memory is short."""
        config = _group(32, 8, device).replace(WORK_PER_ITEM=4)
        while not self._fits(problem, config, device):
            if config.integer("WORK_PER_ITEM") == 1:
                return _group(8, 8, device).replace(WORK_PER_ITEM=1)
            config = config.replace(WORK_PER_ITEM=config.integer("WORK_PER_ITEM") // 2)
        return config

    @staticmethod
    def _tile(problem: Conv2dProblem, config: Config) -> tuple[int, int]:
        """Return values of a row of a tile with its halo, and how many each item loads."""
        group = config.integer("WG_X") * config.integer("WG_Y")
        line = config.integer("WG_X") + (problem.filter_width - 1) * problem.channels
        lines = config.integer("WG_Y") * config.integer("WORK_PER_ITEM") + problem.filter_height - 1
        return line, ceil_divide(line * lines, group)

    def _fits(self, problem: Conv2dProblem, config: Config, device: Device) -> bool:
        group = config.integer("WG_X") * config.integer("WG_Y")
        values = self._tile(problem, config)[1] * group
        return values * problem.sum_type.itemsize <= passed_room(device)

    def _solve(
        self, problem: Conv2dProblem, config: Config, device: Device, buffers: list[Buffer]
    ) -> list[Launch]:
        """Return one launch, with a work-group per tile of the result."""
        group = config.integer("WG_Y"), config.integer("WG_X")
        line, trips = self._tile(problem, config)
        params = {name: config[name] for name in ("WG_X", "WG_Y", "WORK_PER_ITEM")}
        return self._launches(
            problem,
            FilterPass.whole(problem),
            params,
            tile=(group[0] * config.integer("WORK_PER_ITEM"), group[1]),
            group=group,
            arguments={
                "channels": np.int32(problem.channels),
                "tile": LocalMemory(trips * group[0] * group[1] * problem.sum_type.itemsize),
                "line": np.int32(line),
                "trips": np.int32(trips),
            },
            constant_weights=bool(config["CONSTANT_WEIGHTS"]),
            device=device,
        )
