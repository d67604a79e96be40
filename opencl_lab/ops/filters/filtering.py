"""One call of a filter: from its arrays and windows to a problem, and its result."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import exact_number
from opencl_lab.drivers.discovery import DeviceSpec, depth_of_caller
from opencl_lab.ops.filters.arguments import (
    Host,
    are_whole,
    axes_of,
    each,
    one_window,
    real_type_of,
    rounded,
    symmetry,
)
from opencl_lab.ops.filters.numbers import TYPES, Type, is_whole, mean_type, sum_type
from opencl_lab.ops.filters.problem import Cval, FilterProblem, LinesProblem, Window, WindowProblem
from opencl_lab.ops.filters.solver import LINES, WINDOW
from opencl_lab.ops.solver import Solver
from opencl_lab.runtime.arrays import (
    AnyArray,
    as_array,
    assign,
    axis_of,
    check_out,
    contiguous,
    direct_target,
    empty,
    is_device_array,
    native,
    reshaped,
    to_device,
)
from opencl_lab.runtime.call import Call

Term: TypeAlias = Sequence[tuple[int, Host, int, str]]
"""Filters along axes, one after the other: axis, weights, values before the centre, mode."""


class Asked(NamedTuple):
    """What a call solves: its solver, its problem, and the inputs besides the array."""

    solver: Solver[Any]
    problem: FilterProblem
    inputs: Mapping[str, Host]


class Inquiry(Call):
    """Stands for a call of which is asked what it would solve; nothing runs."""

    asked: Asked | None = None

    def use(self, array: Any, queue: Any = None, device: DeviceSpec = None) -> None:
        """Take any array, and no queue."""


@dataclass
class Filtering:
    """One call of a filter: its array, and where the result goes."""

    call: Call
    name: str
    array: AnyArray
    out: AnyArray | None
    dtype: Type
    """Of the result."""

    @classmethod
    def of(
        cls,
        call: Call,
        input: Any,
        output: Any,
        queue: Any,
        device: DeviceSpec,
        name: str,
        *,
        is_complex: bool = False,
        ordered: bool = False,
    ) -> Filtering:
        """Take the arguments that all filters have.

        `is_complex` says that weights are; `ordered` that numbers are compared.
        """
        array = as_array(input)
        call.use(array, queue, device)
        array = native(array)
        made = cls(call, name, array, None, array.dtype)
        made._check_type(array.dtype, "arrays")
        is_complex = is_complex or array.dtype.kind == "c"
        if ordered and is_complex:
            raise InvalidProblem(
                f"scipy.ndimage.{name} takes no complex numbers, as they have no order"
            )
        if is_complex:
            made.dtype = np.promote_types(array.dtype, np.complex64)
        if output is not None:
            made._take(output, is_complex)
        return made

    def _check_type(self, dtype: Type, what: str) -> None:
        if real_type_of(dtype).name not in TYPES or dtype.kind not in "biufc":
            raise InvalidProblem(
                f"{what} of {dtype} are not offered here: convert them, such as to float32"
            )

    def _take(self, output: Any, is_complex: bool) -> None:
        """Take the array of the result, or its type."""
        if isinstance(output, (type, np.dtype, str)):
            try:
                self.dtype = np.dtype(output).newbyteorder("=")
            except TypeError as error:
                raise InvalidProblem(f"output must be an array or a dtype: {error}") from None
            if is_complex and self.dtype.kind != "c" and not isinstance(output, str):
                warnings.warn(
                    "promoting specified output dtype to complex", stacklevel=depth_of_caller()
                )
                self.dtype = np.promote_types(self.dtype, np.complex64)
        else:
            given = as_array(output) if not isinstance(output, np.ndarray) else output
            check_out(given, self.array, tuple(self.array.shape), given.dtype, "output")
            self.out, self.dtype = given, given.dtype.newbyteorder("=")
        self._check_type(self.dtype, "results")
        if is_complex != (self.dtype.kind == "c"):
            kind = "complex" if is_complex else "real"
            raise InvalidProblem(f"the output of a {kind} filter is {kind}, not {self.dtype}")

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return int(self.array.ndim)

    def axis(self, axis: Any) -> int:
        """Return an axis as a number from 0 on."""
        return axis_of(axis, self.ndim)

    def axes(self, axes: Any) -> tuple[int, ...]:
        """Return the axes to filter: all of them for None."""
        return axes_of(axes, self.ndim)

    def turned(self, array: Host, axes: Any) -> Host:
        """Return weights with their dimensions in the order of `axes`, from that of the array."""
        found = self.axes(axes)
        return array.transpose([sorted(found).index(axis) for axis in found])

    def windows(
        self, size: Any, mode: Any, origin: Any, axes: Any, turned: bool = False
    ) -> list[Window]:
        """Return the windows along axes; each argument is one value, or one for each axis."""
        found = self.axes(axes)
        options = [(size, "size"), (mode, "mode"), (origin, "origin")]
        rows = zip(found, *(each(value, len(found), name) for value, name in options), strict=True)
        return [one_window(extent, axis, edge, at, turned) for axis, extent, edge, at in rows]

    def _cval(self, cval: Any) -> Cval:
        """Return the real and the imaginary part of what lies beyond the edges."""
        if np.iscomplexobj(cval) and self.array.dtype.kind == "c":
            number = complex(cval)
            parts = number.real, number.imag
        else:
            parts = exact_number(cval, "cval"), 0
        return tuple(math.nan if part != part else part for part in parts)  # type: ignore[return-value]

    @property
    def _parts(self) -> tuple[tuple[int, ...], dict[str, Any]]:
        """The shape and the types of the real numbers that kernels see."""
        is_complex = self.array.dtype.kind == "c"
        shape = tuple(self.array.shape) or (1,)
        types = {"dtype": real_type_of(self.array.dtype), "result_type": real_type_of(self.dtype)}
        return (*shape, 2) if is_complex else shape, {**types, "complex": is_complex}

    def copy(self) -> AnyArray:
        """Return the array itself as the result: no axis is filtered."""
        return self.extremes((), "min", 0.0)

    def weighted(self, terms: Sequence[Term], cval: Any, *, root: bool = False) -> AnyArray:
        """Return the sums of products with weights along axes; see `LinesProblem` for terms."""
        if not any(terms):
            return self.copy()
        weights = [line for term in terms for _, line, _, _ in term]
        if any(line.dtype.kind == "c" for line in weights):

            def weighted(part: Filtering, of: Any) -> AnyArray:
                those = [[(axis, of(line), *rest) for axis, line, *rest in term] for term in terms]
                return part.weighted(those, cval)

            return self._by_parts(weighted)
        found = self._cval(cval)
        shape, types = self._parts
        whole = are_whole(*weights, np.array(found, object))
        total = sum_type(types["dtype"], types["result_type"], whole)
        windows = tuple(
            tuple(
                Window(axis, line.size, first, mode, symmetry(line))
                for axis, line, first, mode in term
            )
            for term in terms
        )
        problem = LinesProblem(
            shape, sum_type=total, reduce="sum", cval=found, terms=windows, root=root, **types
        )
        return self.run(
            LINES, problem, {"weights": np.concatenate([rounded(line, total) for line in weights])}
        )

    def means(self, windows: Sequence[Window], cval: Any) -> AnyArray:
        """Return means along axes; windows of one value need no work."""
        windows = [window for window in windows if window.size > 1]
        if not windows:
            return self.copy()
        shape, types = self._parts
        total = mean_type(
            types["dtype"], types["result_type"], max(window.size for window in windows)
        )
        found = self._cval(cval)
        if is_whole(total) and not are_whole(np.array(found, object)):
            total = np.dtype(np.float64)
        elif is_whole(total) and max(map(abs, found)) >= 1 << 16:
            total = np.dtype(np.int64)
        problem = LinesProblem(
            shape, sum_type=total, reduce="mean", cval=found, terms=(tuple(windows),), **types
        )
        return self.run(LINES, problem, {})

    def extremes(self, windows: Sequence[Window], reduce: str, cval: Any) -> AnyArray:
        """Return minima or maxima along axes; windows of one value need no work."""
        windows = [window for window in windows if window.size > 1]
        windows = windows or [Window(0, 1, 0, "constant")]
        shape, types = self._parts
        found = {"cval": self._cval(cval), "terms": (tuple(windows),), **types}
        problem = LinesProblem(shape, sum_type=types["dtype"], reduce=reduce, **found)
        return self.run(LINES, problem, {})

    def window(
        self,
        windows: Sequence[Window],
        footprint: Host,
        reduce: str,
        cval: Any,
        *,
        weights: Host | None = None,
        rank: int = 0,
    ) -> AnyArray:
        """Return sums of products, minima, maxima or ranks of what a footprint covers."""
        if weights is not None and weights.dtype.kind == "c":
            return self._by_parts(
                lambda part, of: part.window(windows, footprint, reduce, cval, weights=of(weights))
            )
        # Axes with a window of one value need no room beyond their edges.
        windows = [window for window in windows if window.size > 1] or windows[:1]
        footprint = footprint.reshape([window.size for window in windows])
        if weights is not None:
            weights = weights.reshape(footprint.shape)
        found = self._cval(cval)
        shape, types = self._parts
        total = types["dtype"]
        if weights is not None:
            whole = are_whole(weights, np.array(found, object))
            total = sum_type(types["dtype"], types["result_type"], whole)
        given = dict(types)
        if weights is None:
            given["holes"] = tuple(np.flatnonzero(~footprint).tolist())
        if reduce == "rank":
            given["result_type"] = types["dtype"]
        problem = WindowProblem(
            shape,
            sum_type=total,
            reduce=reduce,
            cval=found,
            windows=tuple(windows),
            places=int(np.count_nonzero(footprint)),
            rank=rank,
            **given,
        )
        inputs = {"distances_0": problem.distances(footprint)}
        if weights is not None:
            inputs["weights"] = rounded(weights[footprint], total)
        if problem.result_type == types["result_type"]:
            return self.run(WINDOW, problem, inputs)
        ranked = Filtering(self.call, self.name, self.array, None, self.array.dtype)
        found_ranks = ranked.run(WINDOW, problem, inputs)
        return Filtering(self.call, self.name, found_ranks, self.out, self.dtype).copy()

    def _by_parts(self, run: Any) -> AnyArray:
        """Return the results of complex weights, from those of their real and imaginary parts."""
        kind = self.dtype if self.array.dtype.kind == "c" else real_type_of(self.dtype)
        part = Filtering(self.call, self.name, self.array, None, kind)
        real, imaginary = run(part, np.real), run(part, np.imag)
        result = (real + 1j * imaginary).astype(self.dtype)
        if self.out is None:
            return result
        assign(self.out, result, self.call)
        return self.out

    def run(
        self, solver: Solver[Any], problem: FilterProblem, inputs: Mapping[str, Host], **how: Any
    ) -> AnyArray:
        """Return the result of a problem, in the array for it if there is one.

        `how` chooses the algorithm and its configuration, see `Solver.run`.
        """
        call, shape = self.call, tuple(self.array.shape)
        if isinstance(call, Inquiry):
            call.asked = Asked(solver, problem, inputs)
            return self.array
        given: dict[str, Any] = dict(inputs)
        if is_device_array(self.array):
            given = {name: to_device(array, call.queue) for name, array in inputs.items()}
        call.constants(given.values())
        image = contiguous(self.array, call)
        if not self.array.size:
            return self._placed(empty(self.array, shape, self.dtype, call))
        target = direct_target(self.out, shape, self.dtype, (self.array,))
        held = problem.image.shape
        run = solver.run(
            problem,
            {**given, "image": reshaped(image, held, call)},
            out={"result": None if target is None else reshaped(target, held, call)},
            call=call,
            **how,
        )
        if target is not None:
            return self.out
        return self._placed(reshaped(run.outputs["result"], shape, call))

    def _placed(self, result: AnyArray) -> AnyArray:
        if self.out is None:
            return result
        assign(self.out, result, self.call)
        return self.out
