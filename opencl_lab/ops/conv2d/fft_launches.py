"""Launches of a convolution by Fourier transforms, before, between and after the transforms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.plan import Argument, Launch, named
from opencl_lab.ops.conv2d.blocks import OverlapBlocks, Recheck
from opencl_lab.ops.conv2d.pixels import FilterPass, Pixels, value_outside
from opencl_lab.ops.conv2d.problem import Conv2dProblem

TEMPLATE = "conv2d/fft.cl.mako"
IMAGE = "height width"
FILTER = "filter_height filter_width"
BLOCK = "rows columns"
GRID = "blocks_y blocks_x valid_y valid_x"
ARGUMENTS = {
    "load_filter": f"weights block {FILTER} {BLOCK} scale",
    "find_peaks": "spectrum spectrum_peak columns size",
    "load_blocks": f"image pairs pixel_peak {IMAGE} {BLOCK} {GRID} last_row last_column "
    "offset_y offset_x blocks first_pair cval",
    "multiply_spectra": f"pairs spectrum {BLOCK}",
    "store_blocks": "pairs image weights result marks pixel_peak spectrum_peak "
    f"{IMAGE} {FILTER} {BLOCK} {GRID} out_height out_width offset_y offset_x blocks first_pair "
    "cval share hidden",
    "sample_peaks": f"image spectrum sampled_peak spectrum_peak {IMAGE} {BLOCK} {GRID} last_row "
    "last_column offset_y offset_x blocks pair_step row_step sampled_rows "
    "size cval",
    "sample_results": "image weights sampled_peak spectrum_peak arrived by_transforms by_sums "
    f"{IMAGE} {FILTER} {BLOCK} {GRID} out_height out_width offset_y offset_x blocks pair_step "
    "sampled_rows samples share hidden check again limit",
    "sum_doubtful": f"image weights result marks {IMAGE} {FILTER} {GRID} out_height out_width "
    "offset_y offset_x blocks cval",
}
"""The arguments of each kernel, in order."""
USERS = ("image", "weights", "result")
"""Buffers that have the names of the arguments."""
SHARED = {
    "load_blocks": 1,
    "find_peaks": 1,
    "sample_peaks": 1,
    "sample_results": 4,
    "store_blocks": 2,
}
"""How many numbers each item of a work-group has in local memory, by kernel."""


@dataclass(frozen=True)
class BlockKernels:
    """Launches over blocks, with a work-group for each row; all from one program."""

    problem: Conv2dProblem
    blocks: OverlapBlocks
    recheck: Recheck
    wg_size: int
    device: Device
    conditional: bool  # whether a sample of the image may call off those of blocks

    def launch(self, kernel: str, groups: int, **own: str | int | float) -> Launch:
        """Return a launch of so many work-groups.

        `own` holds arguments of this launch: names of scratch buffers, counts, and real numbers.
        """
        values = named(*USERS) | self.numbers
        real = self.problem.sum_type.type
        for name, value in own.items():
            number = real if isinstance(value, float) else np.uint32
            values[name] = value if isinstance(value, str) else number(value)
        word = self.problem.sum_type.itemsize
        return Launch(
            template=TEMPLATE,
            kernel=kernel,
            params=self.params,
            global_size=(groups * self.wg_size,),
            local_size=(self.wg_size,),
            arguments={name: values[name] for name in ARGUMENTS[kernel].split()},
            local_bytes=SHARED.get(kernel, 0) * self.wg_size * word,
        )

    @cached_property
    def params(self) -> dict[str, Any]:
        """The template's arguments."""
        return {
            "PIXELS": Pixels.of(self.problem, FilterPass.whole(self.problem), False, self.device),
            "CHANNELS": self.problem.channels,
            "WG_SIZE": self.wg_size,
            "LANES": self.recheck.lanes,
            "ROWS": self.recheck.rows,
            "CONDITIONAL": self.conditional,
        }

    @cached_property
    def numbers(self) -> dict[str, Argument]:
        """All numeric arguments of the kernels, by name."""
        problem, blocks, real = self.problem, self.blocks, self.problem.sum_type.type
        integers = {
            "height": problem.height,
            "width": problem.width,
            "filter_height": problem.filter_height,
            "filter_width": problem.filter_width,
            "out_height": problem.out_height,
            "out_width": problem.out_width,
            "last_row": problem.out_height + problem.filter_height - 2,
            "last_column": problem.out_width + problem.filter_width - 2,
            **_along("offset", problem.offset),
            **_along("blocks", blocks.count),
            **_along("valid", blocks.valid),
            "rows": blocks.length[0],
            "columns": blocks.length[1],
        }
        return {name: np.int32(value) for name, value in integers.items()} | {
            "blocks": np.uint32(blocks.total(problem)),
            "scale": real(1 / blocks.points),
            "size": real(blocks.points),
            "share": real(self.recheck.share),
            "hidden": real(self.recheck.hidden),
            "cval": value_outside(problem),
        }


def _along(name: str, values: tuple[int, int]) -> dict[str, int]:
    """Return the values along both axes as arguments ``{name}_y`` and ``{name}_x``."""
    return {f"{name}_y": values[0], f"{name}_x": values[1]}
