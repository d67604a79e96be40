"""Launches of a convolution by Fourier transforms, before, between and after the transforms."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.plan import Argument, Buffer, Launch
from opencl_lab.core.space import Config
from opencl_lab.ops.conv2d.blocks import OverlapBlocks, Recheck
from opencl_lab.ops.conv2d.pixels import FilterPass, Pixels, value_outside
from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.ops.fft.passes.builder import PlanBuilder
from opencl_lab.ops.fft.passes.forms import default_config, planner_of
from opencl_lab.ops.fft.passes.layout import BatchedLayout

TEMPLATE = "conv2d/fft.cl.mako"
COMPLEX: dict[str, np.dtype[Any]] = {
    "float32": np.dtype(np.complex64),
    "float64": np.dtype(np.complex128),
}
MOST_ROUNDS = 1024
"""Most rounds of launches, one for some pairs each; preparing a launch takes time at first."""
IMAGE = "height width"
FILTER = "filter_height filter_width"
BLOCK = "rows columns"
GRID = "blocks_y blocks_x valid_y valid_x"
PLACED = f"{GRID} last_row last_column offset_y offset_x blocks"
RESULTS = f"{IMAGE} {FILTER} {BLOCK} {GRID} out_height out_width offset_y offset_x blocks"
ARGUMENTS = {
    "load_filter": ("weights block", f"{FILTER} {BLOCK} scale"),
    "find_peaks": ("spectrum spectrum_peak", "columns size"),
    "load_blocks": ("image pairs pixel_peak", f"{IMAGE} {BLOCK} {PLACED} first_pair cval"),
    "multiply_spectra": ("pairs spectrum", BLOCK),
    "store_blocks": (
        "pairs image weights result marks pixel_peak spectrum_peak",
        f"{RESULTS} first_pair cval share hidden",
    ),
    "sample_peaks": (
        "image spectrum sampled_peak spectrum_peak",
        f"{IMAGE} {BLOCK} {PLACED} pair_step row_step sampled_rows size cval",
    ),
    "sample_results": (
        "image weights sampled_peak spectrum_peak arrived by_transforms by_sums",
        f"{RESULTS} pair_step sampled_rows samples share hidden check again limit",
    ),
    "sum_doubtful": (
        "image weights result marks",
        f"{IMAGE} {FILTER} {GRID} out_height out_width offset_y offset_x blocks cval",
    ),
}
"""The arguments of each kernel, in order: buffers, and numbers."""
UNSIGNED = {"blocks", "first_pair", "pair_step", "row_step", "sampled_rows", "samples"}
REAL = {"scale", "size", "share", "hidden", "cval", "check", "again", "limit"}
"""Numbers of the type of the sums; those in neither set may be negative."""
SHARED = {
    "load_blocks": 1,
    "find_peaks": 1,
    "sample_peaks": 1,
    "sample_results": 4,
    "store_blocks": 2,
}
"""How many numbers each item of a work-group has in local memory, by kernel."""


def _type(number: str) -> str:
    """Return the type of a number in OpenCL C."""
    return "uint" if number in UNSIGNED else "sum_t" if number in REAL else "int"


NUMBERS = {
    kernel: ",\n    ".join(f"const {_type(number)} {number}" for number in numbers.split())
    for kernel, (_, numbers) in ARGUMENTS.items()
}
"""The declarations of the numbers that each kernel takes."""


class Filtering:
    """A plan that grows: launches over blocks, with a work-group for each row.

    Their kernels are one program, but for the transforms.
    """

    def __init__(
        self,
        problem: Conv2dProblem,
        config: Config,
        device: Device,
        buffers: list[Buffer],
        conditional: bool = False,
    ) -> None:
        """Add scratch memory; `conditional` blocks may be called off by a sample of the image.

        Raise `InvalidConfig` if there would be too many rounds.
        """
        self.problem, self.device = problem, device
        self.blocks = blocks = OverlapBlocks.of(problem, config.integer("BLOCK"))
        self.wg_size = config.integer("WG_SIZE")
        self.recheck = Recheck.of(problem, blocks, self.wg_size)
        self.count = blocks.pairs(problem)
        self.at_once = min(self.count, config.integer("PAIRS"))  # pairs transformed together
        if self.count > MOST_ROUNDS * self.at_once:
            raise InvalidConfig(f"PAIRS={self.at_once} is too few for {self.count} pairs of blocks")
        self.builder = PlanBuilder(COMPLEX[problem.sum_type.name], buffers)
        scratch, bits = self.builder.scratch, np.dtype(f"u{problem.sum_type.itemsize}")
        size, rows = self.at_once * blocks.points, blocks.length[0]
        # Blocks and the filter, each with a second array for its transforms.
        self.pairs = scratch("pairs", size), scratch("pairs", size)
        self.spectrum = scratch("filter", blocks.points), scratch("filter", blocks.points)
        # For the recheck of doubtful results.
        self.marks = scratch("marks", self.recheck.marks, np.dtype(np.uint8))
        self.pixel_peak = scratch("pixel_peak", self.at_once * rows, bits)
        self.spectrum_peak = scratch("spectrum_peak", rows, bits)
        self._params = {
            "PIXELS": Pixels.of(problem, FilterPass.whole(problem), False, device),
            "CHANNELS": problem.channels,
            "WG_SIZE": self.wg_size,
            "LANES": self.recheck.lanes,
            "ROWS": self.recheck.rows,
            "NUMBERS": NUMBERS,
            "CONDITIONAL": conditional,
        }

    def launch(self, kernel: str, groups: int, **own: str | int | float) -> None:
        """Add a launch of so many work-groups.

        `own` holds arguments of this launch: names of scratch buffers, and numbers.
        """
        buffers, numbers = (names.split() for names in ARGUMENTS[kernel])
        values = {**self._numbers, **own}
        types: dict[str, Any] = {
            "int": np.int32,
            "uint": np.uint32,
            "sum_t": self.problem.sum_type.type,
        }
        arguments: dict[str, Argument] = {name: str(own.get(name, name)) for name in buffers}
        arguments |= {name: types[_type(name)](values[name]) for name in numbers}
        launch = Launch(
            template=TEMPLATE,
            kernel=kernel,
            params=self._params,
            global_size=(groups * self.wg_size,),
            local_size=(self.wg_size,),
            arguments=arguments,
            local_bytes=SHARED.get(kernel, 0) * self.wg_size * self.problem.sum_type.itemsize,
        )
        self.builder.launches.append(launch)

    @cached_property
    def _numbers(self) -> dict[str, Any]:
        """All numbers of the kernels that are those of the problem, by name."""
        problem, blocks = self.problem, self.blocks
        numbers = {
            "height": problem.height,
            "width": problem.width,
            "filter_height": problem.filter_height,
            "filter_width": problem.filter_width,
            "out_height": problem.out_height,
            "out_width": problem.out_width,
            "last_row": problem.out_height + problem.filter_height - 2,
            "last_column": problem.out_width + problem.filter_width - 2,
            "rows": blocks.length[0],
            "columns": blocks.length[1],
            "blocks": blocks.total(problem),
            "scale": 1 / blocks.points,
            "size": blocks.points,
            "share": self.recheck.share,
            "hidden": self.recheck.hidden,
            "cval": value_outside(problem),
        }
        for name, along in (
            ("offset", problem.offset), ("blocks", blocks.count), ("valid", blocks.valid),
        ):  # fmt: skip
            numbers |= {f"{name}_y": along[0], f"{name}_x": along[1]}
        return numbers

    def add_filter(self) -> None:
        """Add the transform of the filter."""
        self.launch("load_filter", self.blocks.length[0], block=self.spectrum[0])
        self._forward(1, *self.spectrum)

    def add_peaks(self) -> None:
        """Add the search for the largest magnitudes of its spectrum."""
        peaks = {"spectrum": self.spectrum[0], "spectrum_peak": self.spectrum_peak}
        self.launch("find_peaks", self.blocks.length[0], **peaks)

    def add_blocks(self) -> None:
        """Add the filtering of the blocks, some pairs at a time, and of doubtful results."""
        products: dict[int, list[Launch]] = {}  # by the number of pairs: rounds share launches
        launches, own = self.builder.launches, {"marks": self.marks}
        for first in range(0, self.count, self.at_once):
            count = min(self.at_once, self.count - first)
            pairs: dict[str, str | int] = {
                "pairs": self.pairs[0],
                "pixel_peak": self.pixel_peak,
                "first_pair": first,
            }
            self.launch("load_blocks", count * self.blocks.length[0], **pairs)
            start = len(launches)
            if count in products:
                launches += products[count]
            else:
                self._multiply(count)
                products[count] = launches[start:]
            pairs |= {**own, "spectrum_peak": self.spectrum_peak}
            self.launch("store_blocks", count * self.blocks.valid[0], **pairs)
        self.launch("sum_doubtful", self.recheck.tiles, **own)

    def _multiply(self, count: int) -> None:
        """Add forward transforms, products with the filter's spectrum, and inverse transforms.

        These are the same programs, as real and imaginary components are swapped before.
        """
        near, far = self.pairs
        rows, columns = self.blocks.length
        self._forward(count, near, far)
        self.launch("multiply_spectra", count * rows, pairs=near, spectrum=self.spectrum[0])
        self._transform(BatchedLayout.columns(rows, count, columns, near, far))
        self._transform(BatchedLayout.rows(columns, count * rows, far, near))

    def _forward(self, pairs: int, near: str, far: str) -> None:
        """Add transforms along the rows and then the columns of `near`, by way of `far`."""
        rows, columns = self.blocks.length
        self._transform(BatchedLayout.rows(columns, pairs * rows, near, far))
        self._transform(BatchedLayout.columns(rows, pairs, columns, far, near))

    def _transform(self, layout: BatchedLayout) -> None:
        """Add transforms in the device's built-in configuration, whatever is tuned for `dft`."""
        config = default_config(layout.n, self.builder.real, self.device)
        planner_of(config, self.device).transform(self.builder, layout)
