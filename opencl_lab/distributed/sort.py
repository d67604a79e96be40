"""Sorting of one-dimensional distributed arrays into parts that differ by at most one element.

```text
 rank 0   sort its part   | 1 3 | 5 8 |              | 1 3 | 2 4 |     merge      | 1 2 3 4 |
                             cut       exchange
 rank 1   sort its part   | 2 4 | 6 7 |              | 5 8 | 6 7 |     merge      | 5 6 7 8 |
```

The cuts are exact (multisequence selection, Varman, Scheufler, Iyer and Ricard 1991; in a
distributed sort, Cheng, Shah, Edelman and Gilbert 2006). So the parts are even whatever the keys
are. Equal keys are taken rank by rank, and the pieces arrive in the order of the ranks. So the
merge, which is stable, keeps their order. Many pieces are sorted instead. Parts on GPUs of one node
stay there: only what other ranks get goes through memory that all have pinned.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import whole_number
from opencl_lab.distributed.array import DistArray
from opencl_lab.distributed.copying import Array
from opencl_lab.distributed.cuts import cuts_by_counting, cuts_by_samples
from opencl_lab.distributed.device_exchange import between_devices, on_devices, placed
from opencl_lab.distributed.devices import device_of
from opencl_lab.distributed.exchange import exchange_rows
from opencl_lab.distributed.layout import Pieces, Slab, Split, slab
from opencl_lab.distributed.mpi import agreed, collective, mpi, same, world
from opencl_lab.distributed.sort_together import sorted_together
from opencl_lab.ops.select import functions as select
from opencl_lab.ops.select.problem import TopkProblem
from opencl_lab.ops.select.unique import unique as unique_keys
from opencl_lab.ops.sort import functions as plain
from opencl_lab.ops.sort.codes import codes
from opencl_lab.ops.sort.merge_runs import merge_runs, merges
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.runtime.arrays import as_array, check_sides, is_device_array, native, positions
from opencl_lab.runtime.exchange import to_device, to_host
from opencl_lab.runtime.session import session_of


@collective
def sort(
    a: Any, *, descending: bool = False, comm: Any = None, device: Device | str | int | None = None
) -> DistArray:
    """Sort a one-dimensional array stably, in the order of `opencl_lab.sort`.

    Each rank sorts its part on its device. Between this and the merge, the elements are sent once.

    Parameters
    ----------
    a : DistArray, numpy.ndarray or pyopencl.array.Array
        Of shape (n,) and a dtype of `opencl_lab.sort`: a distributed array in any distribution, or
        this rank's part of it, as for `DistArray.from_local`. It is not changed.
    descending : bool
        Reverse the order, but NaN stays last. Equal keys still keep their order.
    comm : mpi4py.MPI.Comm, optional
        By default that of a distributed array, or else all ranks.
    device : Device, str or int, optional
        As `device_of` takes it. Parts on a device are sorted there.

    Returns
    -------
    DistArray
        Of the shape and dtype of `a`, in native byte order and in the distribution ``slab(0)``:
        the parts differ by at most one element. On devices if the parts of `a` are.

    Raises
    ------
    InvalidProblem
        On all ranks, if `a` is not one-dimensional, has an unsupported dtype, or is on another
        communicator than `comm`.
    InvalidConfig
        On all ranks, if they do not have the same arguments.
    DeviceNotFound
        On all ranks, if one of them does not find the device.
    """
    keys, used = _start(a, comm, device, descending=bool(descending))
    return keys.like(_sorted(keys.comm, [keys.local], descending, used)[0], distribution=slab(0))


@collective
def argsort(
    a: Any, *, descending: bool = False, comm: Any = None, device: Device | str | int | None = None
) -> DistArray:
    """Return the indices that sort a one-dimensional array stably.

    Parameters and errors are those of `sort`.

    Returns
    -------
    DistArray of int64
        Of shape (n,), in the distribution ``slab(0)``: positions in the global array. Those of
        equal keys are in ascending order, also with `descending`.
    """
    keys, used = _start(a, comm, device, descending=bool(descending))
    if keys.comm.size == 1:
        order = plain.argsort(keys.local, descending=descending, **_place(keys.local, used))
    else:
        queue = keys.local.queue if keys.on_device else None
        places = np.arange(*_range(keys)) if queue is None else positions(*_range(keys), queue)
        order = _sorted(keys.comm, [keys.local, places], descending, used)[1]
    return keys.like(order, distribution=slab(0))


@collective
def sort_by_key(
    keys: Any,
    values: Any,
    *,
    descending: bool = False,
    comm: Any = None,
    device: Device | str | int | None = None,
) -> tuple[DistArray, DistArray]:
    """Sort keys stably and move values along with them.

    The other parameters and errors are those of `sort`.

    Parameters
    ----------
    keys : DistArray, numpy.ndarray or pyopencl.array.Array
        As in `sort`.
    values : DistArray, numpy.ndarray or pyopencl.array.Array
        As long as `keys` and on the same side, host or device; any dtype but objects.

    Returns
    -------
    keys, values : DistArray
        Both sorted by the keys, in the distribution ``slab(0)``.
    """
    first, used = _start(keys, comm, device, descending=bool(descending))
    second = _given(values, first.comm, keys=False)
    agreed(first.comm, lambda: _check_pair(first, second))
    second = second.redistribute(first.distribution)
    one, other = _sorted(first.comm, [first.local, second.local], descending, used)
    return first.like(one, distribution=slab(0)), first.like(other, distribution=slab(0))


@collective
def topk(
    a: Any,
    k: int,
    *,
    largest: bool = True,
    comm: Any = None,
    device: Device | str | int | None = None,
) -> tuple[Array, Array]:
    """Return the `k` largest elements of a one-dimensional array, and where they are.

    Each rank selects among its part, and then among what all have found. So each needs room for
    `k` elements of every rank.

    Parameters
    ----------
    a, comm, device
        As in `sort`.
    k : int
        0 to the length of `a`.
    largest : bool
        If False, return the smallest elements, the smallest first.

    Returns
    -------
    values : numpy.ndarray
        Of shape (k,) and the dtype of `a`, on all ranks; NaN counts as larger than any number.
    indices : numpy.ndarray, int64
        Positions in the global array. Among equal elements, those at the first positions are
        selected, in the order of their positions.

    Raises
    ------
    InvalidProblem
        On all ranks, if `k` is negative or greater than the length of `a`, and as for `sort`.
    InvalidConfig, DeviceNotFound
        As for `sort`.
    """
    keys, used = _start(a, comm, device, k=k, largest=bool(largest))
    k = agreed(keys.comm, lambda: whole_number(k, "k"))
    agreed(keys.comm, lambda: TopkProblem(keys.size, k, keys.dtype, largest=largest))
    begin, end = _range(keys)
    how = {"largest": largest, **_place(keys.local, used)}
    found = [to_host(x) for x in select.topk(keys.local, min(k, end - begin), **how)]
    if keys.comm.size == 1:
        return found[0], found[1]
    # Those of earlier ranks come first, so among equal ones the first positions are selected.
    pairs = keys.comm.allgather((found[0], found[1] + begin))
    values, indices = map(np.concatenate, zip(*pairs, strict=True))
    values, order = select.topk(values, k, largest=largest, device=used)
    return values, indices[order]


@collective
def unique(
    a: Any,
    return_counts: bool = False,
    *,
    comm: Any = None,
    device: Device | str | int | None = None,
) -> DistArray | tuple[DistArray, DistArray]:
    """Return the elements of a one-dimensional array in order, each once.

    Each rank first drops what is repeated within its part; the rest is sorted as by `sort`.

    Parameters
    ----------
    a, comm, device
        As in `sort`.
    return_counts : bool
        Whether to return the number of occurrences of each value.

    Returns
    -------
    values : DistArray, one-dimensional
        Of the dtype of `a`, in the distribution ``slab(0)``. All NaN count as equal, and so do -0.0
        and 0.0: the first one in `a` is returned.
    counts : DistArray of int64
        Of the same shape; only with `return_counts`.

    Raises
    ------
    InvalidProblem, InvalidConfig, DeviceNotFound
        As for `sort`.
    """
    keys, used = _start(a, comm, device, return_counts=bool(return_counts))
    found = unique_keys(keys.local, return_counts=True, **_place(keys.local, used))
    arrays = list(found[: 1 + bool(return_counts)])
    if keys.comm.size > 1:
        arrays = [to_host(x) for x in _sorted(keys.comm, arrays, False, used)]
        arrays = _without_repeated(keys.comm, *arrays)
    lengths = keys.comm.allgather(arrays[0].size)
    bounds = np.array(Split(sum(lengths), keys.comm.size).bounds) - sum(lengths[: keys.comm.rank])
    if keys.comm.size > 1:
        counts = np.diff(np.clip(bounds, 0, arrays[0].size)).tolist()
        arrays = [exchange_rows(keys.comm, x, counts)[0] for x in arrays]
    how = {"global_shape": sum(lengths), "distribution": slab(0)}
    results = [keys.like(x, **how) for x in arrays]
    return (results[0], results[1]) if return_counts else results[0]


def _without_repeated(comm: Any, values: Array, counts: Array | None = None) -> list[Array]:
    """Return the first of equal values, which may lie on several ranks, and the sums of counts."""
    order = codes(values)
    before = np.concatenate([order[:0], *comm.allgather(order[-1:])[: comm.rank]])
    first = np.ones(order.size, bool)
    first[1:] = order[1:] != order[:-1]
    first[:1] &= not np.array_equal(order[:1], before[-1:])
    if counts is None:
        return [values[first]]
    # The elements before each value tell how many there are of it.
    sums = comm.allgather(int(counts.sum()))
    starts = (np.cumsum(counts) - counts)[first] + sum(sums[: comm.rank])
    after = np.concatenate([*comm.allgather(starts[:1])[comm.rank + 1 :], [sum(sums)]])
    return [values[first], np.diff(starts, append=after[:1].astype(starts.dtype))]


# ---------------------------------------------------------------------------------- the arguments


def _start(
    a: Any, comm: Any, device: Device | str | int | None, **options: Any
) -> tuple[DistArray, Device]:
    """Return the keys, and the device of this rank, after all ranks have agreed."""
    comm = a.comm if comm is None and isinstance(a, DistArray) else world(comm)
    same(comm, options, "the options")
    return _given(a, comm), agreed(comm, lambda: device_of(comm, device))


def _given(a: Any, comm: Any, keys: bool = True) -> DistArray:
    """Return an array in slabs and in native byte order."""
    whole = isinstance(a, DistArray)
    same(comm, whole, "whether an array is a DistArray")

    def checked() -> Any:
        local = native(as_array(a.local if whole else a))
        if local.ndim != 1:
            raise InvalidProblem(f"an array to sort must have one dimension, not {local.ndim}")
        if whole and mpi().Comm.Compare(a.comm, comm) > mpi().CONGRUENT:
            raise InvalidProblem("an array is on another communicator")
        if keys:
            SortProblem(a.size if whole else local.size, local.dtype)
        elif local.dtype.hasobject or not local.dtype.itemsize:
            raise InvalidProblem(f"values of dtype {local.dtype} cannot travel with keys")
        return local

    local = agreed(comm, checked)
    if not whole:
        return DistArray.from_local(local, comm=comm)
    found: DistArray = a if local.dtype == a.dtype else a.like(local)
    return found if isinstance(found.distribution, Slab) else found.redistribute(slab(0))


def _check_pair(keys: DistArray, values: DistArray) -> None:
    check_sides(keys=keys.local, values=values.local)
    if keys.shape != values.shape:
        raise InvalidProblem(
            f"keys and values must have one shape, not {keys.shape} and {values.shape}"
        )


def _range(a: DistArray) -> tuple[int, int]:
    """Return which global indices are here."""
    begin, end = a.layout.splits[0].bounds[a.comm.rank :][:2]
    return begin, end


def _place(array: Any, device: Device) -> dict[str, Any]:
    """Return on which device to run; a device array is there already."""
    return {} if is_device_array(array) else {"device": device}


# --------------------------------------------------------------------------------------- the sort


def _sorted(comm: Any, mine: list[Any], descending: bool, device: Device) -> list[Any]:
    """Sort local parts, of any lengths: keys, and values if there are any."""
    there = placed(comm, mine, device)
    if there is not None:
        return [to_host(array) for array in _sorted(comm, there, descending, device)]
    together = sorted_together(comm, mine, descending, device)
    if together is not None:
        return together
    queue = mine[0].queue if is_device_array(mine[0]) else None
    mine = _on_device(mine, descending, device)
    if comm.size == 1:
        return mine
    if between_devices(comm, mine[0]) is None:
        mine = [to_host(array) for array in mine]
        cuts = cuts_by_counting(comm, mine[0], descending)
    else:
        cuts = cuts_by_samples(comm, mine[0], descending)
    found = [_exchanged(comm, array, np.diff(cuts).tolist()) for array in mine]
    mine = [array if queue is None else to_device(array, queue=queue) for array, _ in found]
    lengths, queue = found[0][1], queue or device.queue()
    if merges(session_of(queue).device, lengths, *mine):
        return merge_runs(mine, lengths, descending=descending, queue=queue)
    return _on_device(mine, descending, device)


def _exchanged(comm: Any, array: Any, counts: list[int]) -> tuple[Any, list[int]]:
    """Send consecutive elements to each rank; return those from all, and how many from each.

    What is on a device stays on devices, unless there is no pinned window for what they exchange.
    """
    if is_device_array(array):
        table = comm.allgather(counts)
        moved = on_devices(comm, array, Pieces(table, False), Pieces(table, True))
        if moved is not None:
            return moved, [row[comm.rank] for row in table]
    return exchange_rows(comm, to_host(array), counts, keep=False)


def _on_device(arrays: list[Any], descending: bool, device: Device) -> list[Any]:
    how = {"descending": descending, **_place(arrays[0], device)}
    if len(arrays) == 1:
        return [plain.sort(arrays[0], **how)]
    return list(plain.sort_by_key(*arrays, **how))
