"""Filters of an array that is continued beyond its edges first: by windows of any shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import group_limit, item_launch, largest_power
from opencl_lab.core.plan import Argument, Buffer, Launch, Plan, Table, ceil_divide
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.filters.numbers import Numbers, Type, lacks, lanes
from opencl_lab.ops.filters.problem import FilterProblem, LinesProblem, WindowProblem
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.elements import SortElement

PAD, WINDOW = "filters/pad.cl.mako", "filters/window.cl.mako"
BLOCK = 4
SPAN = 512
"""Values of an item of a CPU."""
COPIED = 4096
"""The same of the copy that is continued."""


@dataclass(frozen=True)
class Pass:
    """A filter by one window: types, buffers, and whether weights begin at a place of theirs."""

    problem: WindowProblem
    source: str
    target: str
    combine: tuple[str, ...] = ()
    earlier: str = ""
    first_weight: int = 0


def _rows(count: int, length: int, span: int) -> tuple[int, dict[str, Argument]]:
    """Return the items for rows of a length, and what kernels need to know of them."""
    chunks = ceil_divide(length, span)
    return count * chunks, {"rows": np.uint64(count), "chunks": np.int32(chunks)}


def launches(
    one: Pass, wg_size: int, device: Device, buffers: list[Buffer], number: int
) -> list[Launch]:
    """Return the launches of a pass, and add the buffer of the array that is continued."""
    problem, ranked, cpu = one.problem, one.problem.reduce == "rank", device.kind == "cpu"
    element: Type = problem.dtype
    total = problem.sum_type if problem.reduce in ("sum", "mean") else element
    outside = problem.outside(total)
    codes = None
    if ranked:
        codes = SortElement.of(element)
        element = np.dtype(f"u{element.itemsize}")
        total = np.dtype(f"u{max(4, element.itemsize)}")
        bits = {name: np.asarray(value).view(element) for name, value in outside.items()}
        outside = {name: value.astype(total)[()] for name, value in bits.items()}
    width = lanes(device, total, wg_size)
    block = BLOCK if cpu and not ranked else 1
    more: dict[str, Any] = {"combine": one.combine, "complex": problem.complex}
    numbers = Numbers.of(element, total, problem.result_type, width, problem.reduce, **more)
    name = f"padded_{number}"
    room = math.prod(problem.padded_shape) + block * width
    buffers.append(Buffer(name, "scratch", (room,), total))
    shared = {"NUMBERS": numbers, "CODES": codes, "NDIM": len(problem.axes) - 1, "WG_SIZE": wg_size}
    *lead, (last, n) = problem.axes

    span = COPIED if cpu else 1
    rows, length = math.prod(problem.padded_shape[:-1]), problem.padded_shape[-1]
    items, grid = _rows(rows, length, span)
    arguments: dict[str, Argument] = {"image": one.source, "padded": name}
    for d, (window, extent) in enumerate(lead):
        arguments[f"n_{d}"] = np.int32(extent)
        arguments |= {f"size_{d}": np.int32(window.size), f"before_{d}": np.int32(window.before)}
        arguments[f"mode_{d}"] = window.boundary
    arguments |= {**grid, "n": np.int32(n), "inner": np.int64(problem.inner)}
    arguments |= {"size": np.int32(last.size), "before": np.int32(last.before)}
    arguments |= {"mode": last.boundary, **outside}
    pad = item_launch(PAD, "filter_pad", items, {**shared, "SPAN": span}, arguments)

    span = SPAN if cpu else 1
    rows, length = math.prod(extent for _, extent in lead), n * problem.inner
    items, grid = _rows(rows, length, span)
    arguments = {"padded": name, "distances": f"distances_{number}"}
    if problem.reduce == "sum":
        arguments |= {"weights": "weights", "first_weight": np.int32(one.first_weight)}
    elif ranked:
        arguments["rank"] = np.int32(problem.rank)
    arguments |= {"result": one.target, "earlier": one.earlier or one.target}
    arguments["taps"] = np.int32(problem.places)
    for d, (_, extent) in enumerate(lead):
        arguments[f"n_{d}"] = np.int32(extent)
        arguments[f"stride_{d}"] = np.int64(problem.strides[d])
    arguments |= {**grid, "length": np.int64(length)}
    params = {**shared, "BLOCK": block, "SPAN": span}
    return [pad, item_launch(WINDOW, "filter_window", items, params, arguments)]


class _Padded(Algorithm[Any]):
    """What both algorithms share: groups of one item on CPUs."""

    name = "padded"
    templates: ClassVar[tuple[str, ...]] = (PAD, WINDOW)
    space = SearchSpace((Parameter("WG_SIZE", (1, 64, 128, 256), "items in a group; CPUs: 1"),))

    def supports(self, problem: FilterProblem, device: Device) -> str | None:
        """Need the types of the numbers."""
        return lacks(device, problem.dtype, problem.result_type, problem.sum_type)

    def default_config(self, problem: FilterProblem, device: Device) -> Config:
        """Return groups of one item for CPUs."""
        wide = largest_power(256, group_limit(device))
        return Config(WG_SIZE=1 if device.kind == "cpu" else wide)


class PaddedWindow(_Padded):
    """A window of any shape."""

    name = "window"

    def plan(self, problem: WindowProblem, config: Config, device: Device) -> Plan:
        """Plan a copy that is continued beyond the edges, and the filter of it."""
        buffers = window_buffers(problem)
        if not problem.count:
            return Plan(tuple(buffers), ())
        one = Pass(problem, "image", "result")
        planned = launches(one, config.integer("WG_SIZE"), device, buffers, 0)
        return Plan(tuple(buffers), tuple(planned))


def passes(problem: LinesProblem, buffers: list[Buffer]) -> list[Pass]:
    """Return the passes of a filter along lines, and add the buffers between them.

    The terms take turns with two buffers for what they have found so far, and the passes of a term
    with two others.
    """
    found: list[Pass] = []
    first_weight = 0
    names: dict[str, None] = {}
    for number, term in enumerate(problem.terms):
        source, dtype = "image", problem.dtype
        for step, window in enumerate(term):
            final, done = step == len(term) - 1, number == len(problem.terms) - 1
            combine: tuple[str, ...] = ()
            earlier = f"total_{(number - 1) % 2}" if final and number else ""
            if final:
                combine = ("square",) * problem.root + ("add",) * (number > 0)
                combine += ("root",) * (problem.root and done)
            target = f"total_{number % 2}" if final else f"line_{step % 2}"
            if final and done:
                target = "result"
            else:
                names[target] = None
            one = WindowProblem(
                problem.shape,
                dtype,
                problem.result_type,
                problem.sum_type,
                problem.reduce,
                problem.cval,
                problem.complex,
                (window,),
                window.size,
            )
            found.append(Pass(one, source, target, combine, earlier, first_weight))
            first_weight += window.size
            source, dtype = target, problem.result_type
    buffers += [Buffer(name, "scratch", problem.shape, problem.result_type) for name in names]
    return found


def line_buffers(problem: LinesProblem) -> list[Buffer]:
    """Return the caller's buffers of a filter along lines."""
    buffers = [problem.image]
    if problem.reduce == "sum":
        buffers.append(Buffer("weights", "in", (problem.taps,), problem.sum_type))
    return [*buffers, problem.result]


def window_buffers(problem: WindowProblem) -> list[Buffer]:
    """Return the caller's buffers of a filter by a window."""
    buffers = [problem.image]
    buffers += [Buffer("distances_0", "in", (problem.places,), np.dtype(np.int64))]
    if problem.reduce == "sum":
        buffers += [Buffer("weights", "in", (problem.places,), problem.sum_type)]
    return [*buffers, problem.result]


def _steps(size: int, stride: int) -> np.ndarray[Any, Any]:
    return np.arange(size, dtype=np.int64) * stride


class PaddedLines(_Padded):
    """Lines of any length by windows of any size, which need no room in local memory."""

    def supports(self, problem: FilterProblem, device: Device) -> str | None:
        """Leave the sums to others that must be those of SciPy to the last bit."""
        if problem.exact:
            return "it does not sum in the order of SciPy"
        return super().supports(problem, device)

    def plan(self, problem: LinesProblem, config: Config, device: Device) -> Plan:
        """Plan a copy and a filter of it for each pass."""
        buffers = line_buffers(problem)
        if not problem.count:
            return Plan(tuple(buffers), ())
        planned: list[Launch] = []
        for number, one in enumerate(passes(problem, buffers)):
            (window,) = one.problem.windows
            table = Table(_steps, (window.size, one.problem.strides[-1]))
            shape, kind = (window.size,), np.dtype(np.int64)
            buffers.append(Buffer(f"distances_{number}", "table", shape, kind, table))
            planned += launches(one, config.integer("WG_SIZE"), device, buffers, number)
        return Plan(tuple(buffers), tuple(planned))
