"""2D convolution of images that are cut along their height: the inside, while the halo travels.

```text
 rows of the image         results of rank 1
 | rank 0 |
 +--------+   halo --->    edge
 |        |                inside: their windows lie within the rows of rank 1
 | rank 1 |
 |        |
 +--------+   halo --->    edge
 | rank 2 |
```

Which row goes where is index arithmetic that all ranks do alike. Beyond the edges of the image,
the boundary rule names rows of the image: a halo like any other, possibly from far away.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.distributed.array import DistArray
from opencl_lab.distributed.copying import Array, new_array
from opencl_lab.distributed.device_exchange import Move, moved
from opencl_lab.distributed.devices import device_of
from opencl_lab.distributed.layout import Run, Shape, Slab, slab
from opencl_lab.distributed.mpi import agreed, collective, mpi, phases, private, same, world
from opencl_lab.ops.conv2d.arguments import bind, result_shape
from opencl_lab.ops.conv2d.functions import conv2d as filtered
from opencl_lab.ops.conv2d.problem import Boundary, Conv2dProblem, Mode
from opencl_lab.runtime.arrays import AnyArray, assign, empty, is_device_array
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.exchange import to_device, to_host
from opencl_lab.runtime.pieces import Place, assign_part
from opencl_lab.runtime.results import borrowed

TAG = 2
"""Of the messages with halo rows."""


@collective
def conv2d(
    image: DistArray,
    weights: Any,
    *,
    mode: Mode = "same",
    boundary: Boundary = "constant",
    cval: float = 0.0,
    flip: bool = False,
    channels_last: bool | None = None,
    saturate: bool = True,
    comm: Any = None,
    device: Device | str | int | None = None,
) -> DistArray:
    """Correlate images with a filter, as `opencl_lab.conv2d` does; all ranks call it.

    Parameters
    ----------
    image : DistArray, shape (..., height, width)
        Of a dtype of `opencl_lab.conv2d`; (..., height, width, channels) with `channels_last`. Cut
        by `slab` along the height, or along a dimension before it: then each rank filters its own
        images. Other distributions are changed to a slab along the height.
    weights : array_like, shape (rows, columns)
        On the host, the same on all ranks. Or a tuple of a column and a row.
    mode, boundary, cval, flip, channels_last, saturate
        As for `opencl_lab.conv2d`. At the edges of the global image, it continues by `boundary`.
    comm : mpi4py.MPI.Comm, optional
        By default that of `image`; another one is refused.
    device : Device, str or int, optional
        As `device_of` takes it. Parts that are on a device are filtered there.

    Returns
    -------
    DistArray
        Of the dtype of `image`, in even slabs along the height, or cut along the same dimension
        before it. Its parts are on a device if those of `image` are.

    Raises
    ------
    InvalidProblem
        On all ranks, where `opencl_lab.conv2d` raises it, and if `image` is no DistArray or the
        weights are on a device.
    InvalidConfig
        On all ranks, if weights or options differ between them.
    DeviceNotFound
        On all ranks, if one has no such device.

    Notes
    -----
    A part thinner than the filter waits for its halo. A filter that is larger than the image, in
    mode ``"valid"``, is applied by each rank to the whole image.
    """
    comm = world(getattr(image, "comm", None) if comm is None else comm)
    options: dict[str, Any] = {"mode": mode, "boundary": boundary, "cval": cval, "flip": flip}
    options.update(channels_last=channels_last, saturate=saturate)
    where, problem = agreed(
        comm, lambda: (device_of(comm, device), _problem(image, weights, comm, options))
    )
    same(comm, (options | {"cval": str(cval)}, _digest(weights)), "weights and options")

    options["channels_last"] = bool(channels_last)  # parts may look as if they had channels

    def apply(array: AnyArray, out: AnyArray | None = None) -> AnyArray:
        there = None if is_device_array(array) else where
        return filtered(array, weights, out=out, device=there, **options)

    axis = image.ndim - (3 if channels_last else 2)
    shape = result_shape(problem, image.shape, channels_last)
    even = slab(axis)
    cut = image.distribution.axis % image.ndim if isinstance(image.distribution, Slab) else None
    if cut is not None and cut < axis:
        return image.like(apply(image.local), global_shape=shape)
    if comm.size == 1:
        return image.like(apply(image.local), distribution=even, global_shape=shape)
    bounds = even.layout(shape, comm.size).splits[axis].bounds
    if problem.exchanged:
        mine = _at(axis, bounds[comm.rank], bounds[comm.rank + 1])
        part = np.ascontiguousarray(apply(image.gather())[mine])
        return image.like(part, distribution=even, global_shape=shape)
    if cut != axis:
        image = image.redistribute(even)
    parts = _parts(problem, tuple(image.layout.splits[axis].bounds), tuple(bounds))
    result = _filter_part(image, axis, parts, apply)
    return image.like(result, distribution=even, global_shape=shape)


def _problem(image: Any, weights: Any, comm: Any, options: Mapping[str, Any]) -> Conv2dProblem:
    """Return the problem of the global image, as one of no images: nothing so large is made."""
    if not isinstance(image, DistArray):
        raise InvalidProblem(f"image must be a DistArray, not {type(image).__name__}")
    if mpi().Comm.Compare(image.comm, comm) > mpi().CONGRUENT:
        raise InvalidProblem("the image is on another communicator")
    if is_device_array(weights):
        raise InvalidProblem("weights must be on the host: use weights.get()")
    least = 3 if options["channels_last"] else 2
    shape = (0, *image.shape) if image.ndim >= least else (0,) * image.ndim
    return bind(np.empty(shape, image.dtype), weights, **options)[0]


def _digest(weights: Any) -> list[Any]:
    lines = map(np.asarray, weights if isinstance(weights, tuple) else (weights,))
    return [(x.shape, x.dtype.str, hashlib.sha256(x.tobytes()).hexdigest()) for x in lines]


@dataclass(frozen=True)
class _Part:
    """The rows of the image that a rank has, and the rows of the result that it computes."""

    problem: Conv2dProblem
    has: Run
    makes: Run

    @property
    def inside(self) -> Run:
        """The results that the rows of the rank are enough for."""
        above, taps = self.problem.offset[0], self.problem.filter_height
        least, most = self.makes
        begin, end = max(least, self.has[0] - above), min(most, self.has[1] - above - taps + 1)
        if self.problem.boundary != "wrap":  # the part ends where the image ends
            first = least if self.has[0] == 0 else begin
            last = most if self.has[1] == self.problem.height else end
            if last - first >= taps:
                begin, end = first, last
        return (begin, end) if begin < end else (least, least)

    @property
    def enough(self) -> Run:
        """The rows for the inside."""
        (begin, end), above = self.inside, self.problem.offset[0]
        last = end + above + self.problem.filter_height - 1
        return max(begin + above, self.has[0]), min(last, self.has[1])

    @property
    def edges(self) -> list[Run]:
        """The other results."""
        runs = [(self.makes[0], self.inside[0]), (self.inside[1], self.makes[1])]
        return [(begin, end) for begin, end in runs if begin < end]

    @cached_property
    def halo(self) -> Array:
        """The rows that the edges need, ascending; some of them the rank has itself."""
        rows = [self.under(*run) for run in self.edges]
        return np.unique(np.concatenate([np.arange(0), *rows]))

    def under(self, begin: int, end: int) -> Array:
        """Return the rows under the windows of some results, in order, by the boundary rule."""
        n, above = self.problem.height, self.problem.offset[0]
        rows = np.arange(begin + above, end + above + self.problem.filter_height - 1)
        boundary = self.problem.boundary
        if boundary == "constant":  # pixels need not be able to have the value: none for it
            return rows[(rows >= 0) & (rows < n)]
        if boundary == "nearest":
            return rows.clip(0, n - 1)
        if boundary == "wrap":
            return rows % n
        last = 2 * n - (1 if boundary == "reflect" else 2)  # row `last - y` is the image of row y
        rows %= max(1, 2 * n - (0 if boundary == "reflect" else 2))
        return np.minimum(rows, last - rows)

    def first(self, begin: int) -> int:
        """Return the first result of ``conv2d(image[under(begin, ...)])``."""
        above = begin + self.problem.offset[0]
        return max(0, above) if self.problem.boundary == "constant" else above


@lru_cache(maxsize=16)
def _parts(problem: Conv2dProblem, has: Shape, makes: Shape) -> tuple[_Part, ...]:
    """Return the parts of all ranks, by their bounds; kept, as calls repeat."""
    cuts = zip(pairwise(has), pairwise(makes), strict=True)
    return tuple(_Part(problem, *cut) for cut in cuts)


def _filter_part(image: DistArray, axis: int, parts: tuple[_Part, ...], apply: Any) -> AnyArray:
    """Return this rank's results: the inside while the halo travels, then the edges."""
    local, mine = image.local, parts[image.comm.rank]
    call = Call(local.queue if image.on_device else None)
    problem, (least, most) = mine.problem, mine.makes
    shape = list(local.shape)
    shape[axis : axis + 2] = most - least, problem.out_width
    result: AnyArray
    target: AnyArray
    if image.on_device:
        result = empty(local, tuple(shape), problem.dtype, call)
        local, target = borrowed(local), borrowed(result)
    else:
        result = target = new_array(tuple(shape), problem.dtype)

    def fill(begin: int, end: int, rows: AnyArray, first: int, only: bool) -> None:
        last = first + rows.shape[axis] + problem.out_height - problem.height
        if least <= first and last <= most and not only:
            apply(rows, out=target[_at(axis, first - least, last - least)])
        else:
            found = apply(rows)
            put, taken = (
                _place(shape, axis, begin - before, end - before) for before in (least, first)
            )
            assign_part(result, put, found, taken, call)

    @cache
    def inside() -> None:
        begin, end = mine.inside
        if begin < end:  # what it writes beside the inside is overwritten: less work than a copy
            low, high = mine.enough
            rows = local[_at(axis, low - mine.has[0], high - mine.has[0])]
            fill(begin, end, rows, low, only=False)

    halo = _device_halo(image, axis, parts, inside)
    if halo is None:
        halo, requests = _exchange(image, axis, parts, call)
        inside()
        with phases.communication(image.comm):
            mpi().Request.Waitall(requests)
        halo = np.moveaxis(halo, 0, axis)
        if image.on_device:
            halo = to_device(np.ascontiguousarray(halo), queue=local.queue)
    rows = mine.halo
    for begin, end in mine.edges:
        places = np.searchsorted(rows, mine.under(begin, end))
        fill(begin, end, _rows_of(halo, axis, places, call), mine.first(begin), only=True)
    return result


def _device_halo(
    image: DistArray, axis: int, parts: tuple[_Part, ...], meanwhile: Callable[[], None]
) -> AnyArray | None:
    """Return the rows that the edges need, from device to device; None if they cannot go so."""
    local = image.local
    shape = list(local.shape)
    shape[axis] = len(parts[image.comm.rank].halo)
    moves = partial(_moves, parts, axis, (*shape[:axis], 0, *shape[axis + 1 :]))
    return moved(image.comm, local, tuple(shape), moves, meanwhile)


@lru_cache(maxsize=16)
def _moves(parts: tuple[_Part, ...], axis: int, shape: Shape) -> list[Move]:
    """Return which rows of each part go to which others; kept, as calls repeat."""
    found = []
    for target, wanted in enumerate([part.halo for part in parts]):
        for source, (low, high) in enumerate(part.has for part in parts):
            for rows in _runs(wanted[(low <= wanted) & (wanted < high)]):
                first, count = int(rows[0]), len(rows)
                begin = int(np.searchsorted(wanted, first))
                taken, put = (
                    _place(shape, axis, begin, begin + count) for begin in (first - low, begin)
                )
                found.append(Move(source, target, taken, put))
    return found


def _runs(rows: Array) -> list[Array]:
    """Cut indices into runs of consecutive ones."""
    cuts = np.flatnonzero(np.diff(rows) != 1) + 1
    return [run for run in np.split(rows, cuts) if len(run)]


def _exchange(
    image: DistArray, axis: int, parts: Sequence[_Part], call: Call
) -> tuple[Array, list[Any]]:
    """Return the rows that the edges need, as the leading axis, and the requests for them."""
    comm, local, me = private(image.comm), image.local, image.comm.rank
    wanted = [part.halo for part in parts]
    halo = np.empty((len(wanted[me]), *local.shape[:axis], *local.shape[axis + 1 :]), local.dtype)
    row = mpi().BYTE.Create_contiguous(halo.itemsize * math.prod(halo.shape[1:])).Commit()
    requests, (low, high) = [], parts[me].has

    def leading(rows: Array) -> Array:
        found = to_host(_rows_of(local, axis, rows - low, call))
        return np.ascontiguousarray(np.moveaxis(found, axis, 0))

    for other, part in enumerate(parts):
        begin, end = np.searchsorted(wanted[me], part.has)
        if begin == end:
            continue
        if other == me:
            halo[begin:end] = leading(wanted[me][begin:end])
        else:
            requests.append(comm.Irecv([halo[begin:end], end - begin, row], other, TAG))
    for other, theirs in enumerate(wanted):
        sent = theirs[(theirs >= low) & (theirs < high)]
        if len(sent) and other != me:
            requests.append(comm.Isend([leading(sent), len(sent), row], other, TAG))
    row.Free()  # when the messages have arrived
    return halo, requests


def _rows_of(array: AnyArray, axis: int, rows: Array, call: Call) -> AnyArray:
    """Return some rows along an axis; consecutive ones are not copied."""
    runs = [_at(axis, int(run[0]), int(run[-1]) + 1) for run in _runs(rows)]
    if len(runs) == 1:
        return array[runs[0]]
    if not is_device_array(array):
        return array.take(rows, axis)
    made = empty(
        array, (*array.shape[:axis], len(rows), *array.shape[axis + 1 :]), array.dtype, call
    )
    begin = 0
    for run in runs:
        end = begin + run[axis].stop - run[axis].start
        assign(made[_at(axis, begin, end)], array[run], call)
        begin = end
    return made


def _place(shape: Sequence[int], axis: int, begin: int, end: int) -> Place:
    """Return the place of some indices of an axis, in an array of this shape along the others."""
    whole = [slice(0, n) for n in shape]
    whole[axis] = slice(begin, end)
    return tuple(whole)


def _at(axis: int, begin: int, end: int) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, slice(begin, end))
