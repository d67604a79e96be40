"""Trials of filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from opencl_lab.ops.conv2d.trials import BOUNDARIES
from opencl_lab.ops.filters.numbers import mean_type, sum_type
from opencl_lab.ops.filters.problem import LinesProblem, Window, WindowProblem
from opencl_lab.ops.filters.solver import LINES, WINDOW
from opencl_lab.ops.solver import Solver
from opencl_lab.ops.trial import Array, Drawer, Task, Trial, Trials
from opencl_lab.runtime.arrays import contiguous, is_device_array, to_device
from opencl_lab.runtime.call import Call

ODD_SHAPE = 37, 61, 3
DTYPES = ("uint8", "int16", "uint32", "int64", "float32", "float64")
LARGEST = 200
REDUCED: dict[str, Callable[[Array], Array]] = {
    "mean": lambda values: values.mean(-1),
    "min": lambda values: values.min(-1),
    "max": lambda values: values.max(-1),
    "rank": lambda values: np.sort(values, -1)[..., values.shape[-1] // 2],
}


def _values(image: Array, sizes: Sequence[int], mode: Any) -> Array:
    """Return the values under the window of each place, in a last axis."""
    around = [(size // 2, size - 1 - size // 2) for size in sizes]
    pad: Any = BOUNDARIES[mode]
    padded = np.pad(image, around, mode=pad)
    found = np.lib.stride_tricks.sliding_window_view(padded, tuple(sizes))
    return found.reshape(*image.shape, -1)


def _numbers(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, LARGEST, shape).astype(dtype)


def lines(
    reduce: str,
    dtype: str,
    windows: tuple[Window, ...],
    rng: np.random.Generator,
    shape: tuple[int, ...] = ODD_SHAPE,
) -> tuple[LinesProblem, dict[str, Array], Array]:
    """Return a filter of axes one after the other, with whole weights: its inputs and result."""
    image, kind = _numbers(dtype, shape, rng), np.dtype(dtype)
    total = {"sum": sum_type(kind, kind, whole=True), "mean": mean_type(kind, kind, 0)}.get(
        reduce, kind
    )
    problem = LinesProblem(shape, kind, kind, total, reduce, (0, 0), False, (windows,))
    weights = [rng.integers(-2, 3, window.size) for window in windows]
    right = image
    for window, line in zip(windows, weights, strict=True):
        sizes = [window.size if d == window.axis else 1 for d in range(len(shape))]
        values = _values(right, sizes, window.mode)
        wide = values.astype(np.float64 if kind.kind == "f" else np.int64)
        right = (wide @ line if reduce == "sum" else REDUCED[reduce](wide)).astype(kind)
    inputs = {"weights": np.concatenate(weights).astype(total)} if reduce == "sum" else {}
    return problem, {"image": image, **inputs}, right


def windows(
    name: str,
    dtype: str,
    sizes: tuple[int, ...],
    mode: str,
    rng: np.random.Generator,
    shape: tuple[int, ...] = ODD_SHAPE,
) -> tuple[WindowProblem, dict[str, Array], Array]:
    """Return a filter by a window with a hole, or by weights: its inputs and result."""
    image, kind, places = _numbers(dtype, shape, rng), np.dtype(dtype), np.ones(sizes, bool)
    found = tuple(Window(axis, size, size // 2, mode) for axis, size in enumerate(sizes))
    values = _values(image, sizes, mode)
    total, inputs = kind, {}
    hole: tuple[int, ...] = ()
    if name == "sum":
        weights = rng.integers(-2, 3, sizes)
        total = sum_type(kind, kind, whole=True)
        inputs["weights"] = weights.ravel().astype(total)
        wide = np.float64 if kind.kind == "f" else np.int64
        right = values.astype(wide) @ weights.ravel()
    else:
        hole = (places.size // 3,) if places.size > 2 else ()
        places.flat[list(hole)] = False
        right = REDUCED[name](values[..., places.ravel()])
    count = int(places.sum())
    problem = WindowProblem(
        shape, kind, kind, total, name, (0, 0), False, found, count, count // 2, hole
    )
    inputs["distances_0"] = problem.distances(places)
    return problem, {"image": image, **inputs}, right.astype(kind)


def _solved(solver: Solver[Any], made: Callable[..., Any], *given: Any, **more: Any) -> Task:
    problem, inputs, right = made(*given, **more)
    image = inputs.pop("image")

    def call(x: Any, queue: Any = None, **how: Any) -> Any:
        made = Call()
        made.use(x, queue)
        given: dict[str, Any] = {"image": contiguous(x, made)}
        for name, values in inputs.items():
            given[name] = to_device(values, made.queue) if is_device_array(x) else values
        return solver.run(problem, given, call=made, **how).outputs["result"]

    return Task(call, (image,), (right,))


_lines, _windows = partial(_solved, LINES, lines), partial(_solved, WINDOW, windows)


def _drawn(d: Drawer) -> tuple[str, str, tuple[int, ...]]:
    shape = (d.size(40), d.size(300), d.size(60))[: d.pick((1, 2, 3))]
    return d.dtype(DTYPES), d.pick(tuple(BOUNDARIES)), shape


def _draw_lines(d: Drawer) -> Trial:
    (dtype, mode, shape), reduce = _drawn(d), d.pick(("sum", "mean", "min", "max"))
    windows = []
    for axis, n in enumerate(shape):
        size = d.size(min(n, 30))
        windows.append(Window(axis, size, size // 2, mode))
    title = f"{reduce} of {[window.size for window in windows]} on {shape} of {dtype}, {mode}"
    exact = np.dtype(dtype).kind != "f" or reduce in ("min", "max")
    return Trial(title, partial(_lines, reduce, dtype, tuple(windows), shape=shape), dtype, exact)


def _draw_windows(d: Drawer) -> Trial:
    (dtype, mode, shape), name = _drawn(d), d.pick(("sum", "min", "rank"))
    sizes = tuple(d.size(min(n, 6)) for n in shape)
    title = f"{name} of {sizes} on {shape} of {dtype}, {mode}"
    exact = np.dtype(dtype).kind != "f" or name != "sum"
    return Trial(title, partial(_windows, name, dtype, sizes, mode, shape=shape), dtype, exact)


BOTH = ("float32", "float64")
LINES_QUICK = tuple(
    Trial(
        f"{reduce} of 5 x 8 on {dtype}",
        partial(_lines, reduce, dtype, (Window(0, 5, 2, "reflect"), Window(1, 8, 4, "wrap"))),
        dtype,
    )
    for reduce in ("sum", "max")
    for dtype in BOTH
)
WINDOWS_QUICK = tuple(
    Trial(f"{name} of {sizes} on {dtype}", partial(_windows, name, dtype, sizes, "mirror"), dtype)
    for name, sizes in (("sum", (3, 4, 2)), ("rank", (3, 3, 1)), ("rank", (7, 6, 1)))
    for dtype in BOTH
)
_WINDOW = (Window(0, 3, 1, "reflect"),)
LINES_TYPICAL = tuple(
    LinesProblem((500, 500), kind, kind, kind, "sum", (0, 0), False, (_WINDOW,))
    for kind in map(np.dtype, BOTH)
)
WINDOWS_TYPICAL = tuple(
    WindowProblem((500, 500), kind, kind, kind, "sum", (0, 0), False, _WINDOW, 3)
    for kind in map(np.dtype, BOTH)
)
TRIALS = (
    Trials(LINES, LINES_QUICK, LINES_TYPICAL, draw=_draw_lines),
    Trials(WINDOW, WINDOWS_QUICK, WINDOWS_TYPICAL, draw=_draw_windows),
)
