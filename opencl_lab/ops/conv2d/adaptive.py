"""The algorithm of a convolution that chooses by a sample of the image: adaptive."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.plan import Buffer, Launch, ceil_divide
from opencl_lab.core.space import Config
from opencl_lab.ops.conv2d.fft import Cost, FftConvolution, arithmetic
from opencl_lab.ops.conv2d.fft_launches import TEMPLATE, Filtering
from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.ops.conv2d.register import Register

WORD = np.dtype(np.uint32)
SAMPLED_PAIRS = 32
"""Most pairs of blocks of which pixels and results are sampled."""
ROW_STEP = 4
"""The step between the rows of a block that are searched for its largest pixel."""
ACROSS = 4
"""Results beside each other that the items of a group compute for the sample."""
PLACES = 24, 256
"""Fewest and most places of results in the sample, before each pair gets the same number."""
SHARE = 0.02
"""Time of the sample as a share of that of the transforms, if that is enough for the fewest
places."""
PRODUCT = 4
"""A product of the sample, in products of a direct convolution: measured on two cores."""


class Adaptive(FftConvolution):
    """Transforms as in `fft` where a sample of the image suits them, else sums as in `register`.

    Both are enqueued, and the device calls off one of them, so that the host need not wait.
    """

    name = "adaptive"
    templates: ClassVar[tuple[str, ...]] = (*FftConvolution.templates, *Register.templates)

    def _solve(
        self, problem: Conv2dProblem, config: Config, device: Device, buffers: list[Buffer]
    ) -> list[Launch]:
        """Return the transform of the filter, the sample, and all launches that may follow."""
        filtering = Filtering(problem, config, device, buffers, conditional=True)
        builder = filtering.builder
        filtering.add_filter()
        always = builder.table("always", 1, WORD, np.ones, 1, WORD)  # so that programs are shared
        builder.launches[:] = [
            launch if launch.template == TEMPLATE else launch.only_if(always)
            for launch in builder.launches
        ]
        transforms = arithmetic(problem, config, device) / 2  # launches are enqueued anyway
        by_transforms, by_sums = _sample(filtering, transforms, Cost.of(device))
        first = len(builder.launches)
        filtering.add_blocks()
        conditional: dict[int, Launch] = {}  # rounds share launches
        for launch in builder.launches[first:]:
            if id(launch) not in conditional:
                conditional[id(launch)] = launch.only_if(by_transforms)
        builder.launches[first:] = [conditional[id(launch)] for launch in builder.launches[first:]]
        sums = _REGISTER.plan(problem, _REGISTER.default_config(problem, device), device)
        builder.launches += [launch.only_if(by_sums) for launch in sums.launches]
        return builder.launches


_REGISTER = Register()


def _sample(filtering: Filtering, transforms: float, cost: Cost) -> tuple[str, str]:
    """Add the sample of the image; return the buffers that tell whether transforms or sums follow.

    `transforms` are the products of direct sums that would take as long.
    """
    builder, problem, blocks = filtering.builder, filtering.problem, filtering.blocks
    taps = math.prod(problem.filter_shape)
    results = max(filtering.recheck.lanes, min(filtering.wg_size, ACROSS))
    fitting = int(SHARE * transforms / (PRODUCT * taps * results))
    places = min(max(PLACES[0], fitting), PLACES[1])
    by_transforms, by_sums = (builder.scratch(n, 1, WORD) for n in ("by_transforms", "by_sums"))
    step = ceil_divide(filtering.count, SAMPLED_PAIRS)
    sampled = ceil_divide(filtering.count, step)
    rows, samples = ceil_divide(blocks.length[0], ROW_STEP), ceil_divide(places, sampled)
    bits = builder.buffer(filtering.pixel_peak).dtype
    shared: dict[str, str | int] = {
        "sampled_peak": builder.scratch("sampled_peak", sampled * rows, bits),
        "spectrum_peak": filtering.spectrum_peak,
        "pair_step": step,
        "sampled_rows": rows,
    }
    filtering.launch(
        "sample_peaks", blocks.length[0] + sampled * rows,
        **shared, spectrum=filtering.spectrum[0], row_step=ROW_STEP,
    )  # fmt: skip
    filtering.launch(
        "sample_results", sampled * samples,
        **shared,
        arrived=builder.zeros("arrived", 1), by_transforms=by_transforms, by_sums=by_sums,
        samples=samples, check=cost.check, again=cost.again,
        limit=taps - transforms / math.prod(problem.result_shape),
    )  # fmt: skip
    return by_transforms, by_sums
