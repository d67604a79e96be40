"""The direct algorithms of a convolution in global and in local memory: naive, tiled."""

from __future__ import annotations

import math

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import largest_power, positive
from opencl_lab.core.plan import LocalMemory, Plan, passed_room, round_up
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

    def plan(self, problem: Conv2dProblem, config: Config, device: Device) -> Plan:
        """Plan one launch with an item for every value, whole groups."""
        buffers = self._buffers(problem)
        if 0 in problem.result_shape:
            return Plan(tuple(buffers), ())
        group = config.integer("WG_Y"), config.integer("WG_X")
        params = {name: config[name] for name in ("WG_X", "WG_Y")}
        launches = self._launches(
            problem,
            FilterPass.whole(problem),
            params,
            tile=group,
            group=group,
            arguments={"channels": np.int32(problem.channels)},
            constant_weights=bool(config["CONSTANT_WEIGHTS"]),
            device=device,
        )
        return Plan(tuple(buffers), tuple(launches))


class TiledConvolution(Convolution):
    """A tile and its halo in local memory, the filter in constant memory."""

    name = "tiled"
    templates = ("conv2d/tiled.cl.mako",)
    kernel = "conv2d_tiled"
    synchronises = True
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
        """Need local memory for a tile and the halo of one weight."""
        reason = super().supports(problem, device)
        if reason is None and self._section(problem, _group(8, 8, device), 1, device) is None:
            return "the device has no room for a tile of 8 x 8 values"
        return reason

    def default_config(self, problem: Conv2dProblem, device: Device) -> Config:
        """Return wide tiles, and fewer rows where local memory is short."""
        config = _group(32, 8, device).replace(WORK_PER_ITEM=4)
        while self._section(problem, config, config.integer("WORK_PER_ITEM"), device) is None:
            if config.integer("WORK_PER_ITEM") > 1:
                config = config.replace(WORK_PER_ITEM=config.integer("WORK_PER_ITEM") // 2)
            else:
                return _group(8, 8, device).replace(WORK_PER_ITEM=1)
        return config

    @staticmethod
    def _section(
        problem: Conv2dProblem, config: Config, work: int, device: Device
    ) -> tuple[int, int] | None:
        """Return rows and columns of the largest section of the filter whose tile fits, if any.

        As a halo is cheap along a row, the section loses rows of the filter first.
        """
        room = passed_room(device) // problem.sum_type.itemsize
        group = config.integer("WG_X") * config.integer("WG_Y")
        rows, columns = problem.filter_shape
        while True:
            line = config.integer("WG_X") + (columns - 1) * problem.channels
            lines = config.integer("WG_Y") * work + rows - 1
            if round_up(line * lines, group) <= room:
                return rows, columns
            if rows == columns == 1:
                return None
            if rows > 1 and rows >= columns // 4:
                rows = math.ceil(rows / 2)
            else:
                columns = math.ceil(columns / 2)

    def plan(self, problem: Conv2dProblem, config: Config, device: Device) -> Plan:
        """Plan one launch, with a work-group per tile of the result."""
        buffers = self._buffers(problem)
        if 0 in problem.result_shape:
            return Plan(tuple(buffers), ())
        work = config.integer("WORK_PER_ITEM")
        group = config.integer("WG_Y"), config.integer("WG_X")
        # A tile that does not fit at all is planned all the same: the check of plans reports it.
        rows, columns = self._section(problem, config, work, device) or (1, 1)
        line = group[1] + (columns - 1) * problem.channels
        trips = round_up(line * (group[0] * work + rows - 1), math.prod(group)) // math.prod(group)
        params = {name: config[name] for name in ("WG_X", "WG_Y", "WORK_PER_ITEM")}
        launches = self._launches(
            problem,
            FilterPass.whole(problem),
            params,
            tile=(group[0] * work, group[1]),
            group=group,
            arguments={
                "channels": np.int32(problem.channels),
                "tile": LocalMemory(trips * math.prod(group) * problem.sum_type.itemsize),
                "line": np.int32(line),
                "trips": np.int32(trips),
                "section_height": np.int32(rows),
                "section_width": np.int32(columns),
            },
            constant_weights=bool(config["CONSTANT_WEIGHTS"]),
            device=device,
        )
        return Plan(tuple(buffers), tuple(launches))
