"""The algorithms of a convolution that work in registers: register, separable."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.kernels import (
    VECTOR_WIDTHS,
    group_limit,
    largest_power,
    positive,
    sub_group,
    vector_width,
)
from opencl_lab.core.plan import Buffer, Launch, ceil_divide, round_up
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace, Value
from opencl_lab.ops.conv2d.launch import Convolution, line_buffers
from opencl_lab.ops.conv2d.pixels import FilterPass
from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.ops.conv2d.strip import Strip

CPU_ROWS = 5
CPU_STEP = 1024  # values along a row that an item of a CPU computes, block by block

UNROLL = (4, 8, 16, 32)

ROWS = 9, (8, 4)
"""The most rows of a filter, and the rows of results of an item for such a filter, and for others:
kernels with more of them do not fit the instruction cache."""
KNOWN_ROWS = 5, (8, 3)
"""The same where registers are known to be few. With 4 to 8 rows of results, Intel's compiler
spills up to 30 registers for some filters of 7 to 15 rows; for none with 3."""


def _widths(word: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the widths of vectors of `sizes` bytes, in values of `word` bytes."""
    return tuple(dict.fromkeys(n // word for n in sizes if n // word in VECTOR_WIDTHS))


MOST_SUMS = 96


def _sums(config: Config) -> int:
    """Return how many variables for sums an item has."""
    each = config.integer("VECTOR_WIDTH") if config["WINDOW"] else 1
    return config.integer("ROWS") * config.integer("VECTORS") * each


class Register(Convolution):
    """Strips of the result in the registers of each item, from a sliding window of the image."""

    name = "register"
    templates: ClassVar[tuple[str, ...]] = ("conv2d/register.cl.mako",)
    kernel = "conv2d_register"
    space = SearchSpace(
        (
            Parameter("WG_X", (1, 8, 16, 32, 64, 128, 256), "items of a work-group along a row"),
            Parameter("WG_Y", (1, 2, 4, 8, 16), "items of a work-group across rows"),
            Parameter("VECTOR_WIDTH", VECTOR_WIDTHS, "values of a row in a vector"),
            Parameter("VECTORS", (1, 2, 3, 4), "vectors of an item side by side"),
            Parameter("ROWS", (1, 2, 3, 4, 5, 6, 8, 12, 16), "rows that an item computes together"),
            Parameter("STEPS_X", (1, 4, 16, 64, 128), "blocks of an item along a row"),
            Parameter("STEPS_Y", (1, 2, 4, 8), "blocks of an item across rows"),
            Parameter("UNROLL", UNROLL, "taps of a row that are unrolled"),
            Parameter("WINDOW", (False, True), "the values under a vector stay in registers"),
            Parameter(
                "CONSTANT_WEIGHTS", (False, True), "the filter lies in constant memory if it fits"
            ),
        ),
        (
            *map(positive, ("WG_X", "WG_Y", "VECTORS", "ROWS", "STEPS_X", "STEPS_Y", "UNROLL")),
            vector_width("VECTOR_WIDTH"),
            Constraint(
                lambda c: _sums(c) <= MOST_SUMS,
                f"more than {MOST_SUMS} sums per item do not stay in registers",
            ),
            Constraint(
                lambda c: _sums(c) * c.integer("ROWS") * c.integer("UNROLL") <= 8192,
                "more than 8192 unrolled products take too long to compile",
            ),
        ),
    )

    def default_config(self, problem: Conv2dProblem, device: Device) -> Config:
        """Return long rows per item on CPUs; elsewhere blocks side by side in wide groups."""
        word = problem.sum_type.itemsize
        if device.kind == "cpu":
            # Ten sums, two vectors and a weight nearly fill the registers of AVX2.
            vector = min(64, max(32, device.native_vector_bytes)) // word
            step = 2 * vector
            steps_x = min(CPU_STEP, round_up(problem.out_width * problem.channels, step)) // step
            columns = ceil_divide(problem.out_width * problem.channels, steps_x * step or 1)
            blocks = ceil_divide(problem.out_height, CPU_ROWS) * columns * problem.batch
            enough = 8 * device.compute_units
            return Config(
                WG_X=1,
                WG_Y=1,
                VECTOR_WIDTH=vector,
                VECTORS=2,
                ROWS=CPU_ROWS,
                STEPS_X=max(1, steps_x),
                STEPS_Y=next((n for n in (8, 4, 2) if blocks >= n * enough), 1),
                UNROLL=16,
                WINDOW=False,
                CONSTANT_WEIGHTS=False,
            )
        registers, whole = device.capabilities.item_registers, FilterPass.whole(problem)
        few, rows = KNOWN_ROWS if registers else ROWS
        config = Config(
            WG_X=largest_power(64, group_limit(device)),
            WG_Y=1,
            VECTOR_WIDTH=16 // word,
            VECTORS=1,
            ROWS=rows[problem.filter_height > few],
            STEPS_X=1,
            STEPS_Y=1,
            UNROLL=16,
            WINDOW=True,
            CONSTANT_WEIGHTS=True,
        )
        while registers and config.integer("ROWS") > 1:
            if Strip.of(problem, whole, config).registers(word) <= registers:
                break
            config = config.replace(ROWS=config.integer("ROWS") // 2)
        return config

    def search_space(self, problem: Conv2dProblem, device: Device) -> SearchSpace:
        """Return groups of one item on CPUs, elsewhere groups of warps; vectors that fit."""
        word, taps = problem.sum_type.itemsize, problem.filter_width
        native = max(16, device.native_vector_bytes) if device.kind == "cpu" else 16
        unroll = [item for item in UNROLL if item < taps] + [n for n in UNROLL if n >= taps][:1]
        tried: dict[str, tuple[Value, ...]] = {"UNROLL": tuple(unroll[-2:])}
        if device.kind == "cpu":
            widths = (native // 2, native, 2 * native)
            tried |= {"WG_X": (1,), "WG_Y": (1,), "STEPS_X": (4, 16, 64, 128)}
            tried |= {"ROWS": (1, 2, 3, 4, 5, 6, 8), "CONSTANT_WEIGHTS": (False,)}
            tried |= {"VECTOR_WIDTH": _widths(word, widths), "WINDOW": (False,)}
            return self.space.among(tried)
        tried |= {"WG_X": (16, 32, 64, 128), "WG_Y": (1, 2, 4, 8), "ROWS": (2, 4, 6, 8, 12, 16)}
        tried |= {"VECTORS": (1, 2), "STEPS_X": (1,), "STEPS_Y": (1, 2)}
        tried |= {"VECTOR_WIDTH": _widths(word, (native // 4, native // 2, native))}
        return self.space.among(
            tried,
            Constraint(
                lambda c: 64 <= c.integer("WG_X") * c.integer("WG_Y") <= 256,
                "groups of 64 to 256 items are the fastest",
            ),
        )

    def _solve(
        self, problem: Conv2dProblem, config: Config, device: Device, buffers: list[Buffer]
    ) -> list[Launch]:
        """Return one launch."""
        return self._strips(problem, FilterPass.whole(problem), config, device)

    def _strips(
        self, problem: Conv2dProblem, one: FilterPass, config: Config, device: Device
    ) -> list[Launch]:
        """Return the launches of one pass."""
        native = device.native_vector_bytes
        word = problem.sum_type.itemsize
        wide = config.integer("VECTOR_WIDTH") * word
        if device.kind == "cpu" and _sums(config) * ceil_divide(wide, native) > MOST_SUMS:
            raise InvalidConfig(
                f"{_sums(config)} sums of {wide} bytes per item do not stay in registers of "
                f"{native} bytes, and PoCL's compiler may crash"
            )
        number, strip = config.integer, Strip.of(problem, one, config)
        group = number("WG_Y"), number("WG_X")
        tile = (
            group[0] * number("ROWS") * number("STEPS_Y"),
            group[1] * number("VECTOR_WIDTH") * number("VECTORS") * number("STEPS_X"),
        )
        return self._launches(
            problem,
            one,
            {"STRIP": strip, "SUB_GROUP": sub_group(device, strip.registers(word))},
            tile=tile,
            group=group,
            arguments={
                "steps_x": np.int32(number("STEPS_X")),
                "steps_y": np.int32(number("STEPS_Y")),
            },
            constant_weights=bool(config["CONSTANT_WEIGHTS"]),
            device=device,
            sized=strip.sized,
        )


class Separable(Register):
    """For filters of rank 1: along the rows, then along the columns, strips in registers."""

    name = "separable"

    def supports(self, problem: Conv2dProblem, device: Device) -> str | None:
        """Need a filter that is the outer product of two vectors."""
        if not problem.separable:
            return "the filter is not the outer product of a column and a row"
        return super().supports(problem, device)

    def too_slow(self, problem: Conv2dProblem) -> str | None:
        """Return None: it forms few products."""
        return None

    def _solve(
        self, problem: Conv2dProblem, config: Config, device: Device, buffers: list[Buffer]
    ) -> list[Launch]:
        """Return a launch along the rows, which extends the image, and one along the columns."""
        between = (problem.out_height + problem.filter_height - 1, problem.out_width)
        shape = (problem.batch, *between, problem.channels)
        buffers += line_buffers(problem)
        buffers.append(Buffer("between", "scratch", shape, problem.sum_type))
        passes = _passes(problem, between)
        return [each for one in passes for each in self._strips(problem, one, config, device)]


def _passes(problem: Conv2dProblem, between: tuple[int, int]) -> tuple[FilterPass, FilterPass]:
    """Return the pass along the rows, whose results are `between`, and that along the columns."""
    whole, sums = FilterPass.whole(problem), problem.sum_type
    along_rows = replace(
        whole,
        weights="row",
        target="between",
        target_type=sums,
        out_size=between,
        taps=(1, problem.filter_width),
    )
    along_columns = replace(
        whole,
        source="between",
        weights="column",
        source_type=sums,
        size=between,
        offset=(0, 0),
        taps=(problem.filter_height, 1),
    )
    return along_rows, along_columns
