"""Arrays whose parts are on the ranks of a communicator."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.npy import Header, opened
from opencl_lab.core.paths import check_target, replace_file
from opencl_lab.distributed.copying import Array
from opencl_lab.distributed.device_exchange import on_devices
from opencl_lab.distributed.exchange import redistribute, selection
from opencl_lab.distributed.layout import (
    Distribution,
    Gathered,
    Layout,
    Shape,
    as_distribution,
    slab,
)
from opencl_lab.distributed.mpi import agreed, collective, mpi, same, world
from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.exchange import to_device, to_host


class DistArray:
    """A global array, of which each rank of a communicator has a part.

    Parameters
    ----------
    global_shape : tuple of int
    dtype : dtype
    local : numpy.ndarray or pyopencl.array.Array, optional
        This rank's part; by default an uninitialised array on the host.
    distribution : Slab or Blocks
        From `slab`, `blocks` or `block_cyclic`.
    comm : mpi4py.MPI.Comm, optional
        By default all ranks.

    Attributes
    ----------
    global_shape, shape : tuple of int
    dtype : numpy.dtype
    local : numpy.ndarray or pyopencl.array.Array
        It may be written to.
    distribution : Slab or Blocks
    layout : Layout
        Which indices each rank has.
    comm : mpi4py.MPI.Comm

    Raises
    ------
    InvalidProblem
        On all ranks, if `local` has another shape or dtype than its part on one of them, or if
        the distribution is not one of that shape.

    Examples
    --------
    >>> import numpy as np
    >>> from opencl_lab.distributed import DistArray, slab
    >>> x = DistArray.from_global(np.arange(12.0).reshape(3, 4), slab(0))
    >>> x.local.shape  # with one rank
    (3, 4)
    >>> x.redistribute(slab(1)).gather().sum()
    66.0
    """

    @collective
    def __init__(
        self,
        global_shape: Shape | int,
        dtype: Any = float,
        local: Any = None,
        distribution: Distribution | int | None = None,
        comm: Any = None,
    ):
        self.comm = world(comm)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.distribution = as_distribution(distribution)
        self.global_shape = _shape(global_shape)
        what = (self.global_shape, self.dtype.str, self.distribution)
        same(self.comm, what, "shape, dtype and distribution")
        self.layout: Layout = agreed(self.comm, self._layout)
        mine = self.layout.local_shape(self.comm.rank)
        if local is None:
            local = np.empty(mine, self.dtype)
        self.local = local
        agreed(self.comm, lambda: self._check(mine))

    def _layout(self) -> Layout:
        if self.dtype.hasobject:
            raise InvalidProblem("arrays of Python objects cannot be sent")
        return self.distribution.layout(self.global_shape, self.comm.size)

    def _check(self, mine: Shape) -> None:
        if tuple(self.local.shape) != mine or self.local.dtype != self.dtype:
            raise InvalidProblem(
                f"the local part must be {self.dtype} of shape {mine}, not {self.local.dtype} of "
                f"shape {tuple(self.local.shape)}"
            )

    # ------------------------------------------------------------------- made from

    @classmethod
    def from_local(cls, local: Any, axis: int = 0, comm: Any = None) -> DistArray:
        """Return the array that the ranks' arrays make, one after the other along an axis.

        Their lengths along it may differ.
        """
        return _from_local(local, axis, world(comm))

    @classmethod
    def from_global(
        cls,
        array: Any,
        distribution: Distribution | int | None = None,
        comm: Any = None,
        root: int | None = None,
    ) -> DistArray:
        """Return the distributed form of an array.

        Parameters
        ----------
        array : array_like
            On all ranks, each of which takes its part; or on `root` alone, which sends the parts.
        distribution : Slab, Blocks or int, optional
            An integer stands for ``slab(axis)``; by default ``slab(0)``.
        comm : mpi4py.MPI.Comm, optional
        root : int, optional
        """
        return _from_global(array, as_distribution(distribution), comm, root)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        distribution: Distribution | int | None = None,
        comm: Any = None,
    ) -> DistArray:
        """Read a ``.npy`` file through MPI-IO; each rank reads its own part."""
        return _load(Path(path), as_distribution(distribution), world(comm))

    # ------------------------------------------------------------------------ as

    @property
    def shape(self) -> Shape:
        """The shape of the global array."""
        return self.global_shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.global_shape)

    @property
    def size(self) -> int:
        """The number of elements of the global array."""
        return int(np.prod(self.global_shape, dtype=object))

    def __repr__(self) -> str:
        return (
            f"DistArray({self.global_shape}, {self.dtype}, {self.distribution}, "
            f"rank {self.comm.rank} of {self.comm.size} has {tuple(self.local.shape)})"
        )

    @property
    def on_device(self) -> bool:
        """Whether the local part is on a device."""
        return bool(is_device_array(self.local))

    def host(self) -> Array:
        """Return the local part as a NumPy array; one on the host is not copied."""
        return to_host(self.local)

    def local_slice(self) -> tuple[slice, ...]:
        """Return which part of the global array is here, for `slab` and `blocks`."""
        runs = self.layout.runs(self.comm.rank)
        if any(len(one) > 1 for one in runs):
            raise InvalidProblem("a part of cyclic blocks is not one slice")
        return tuple(slice(*one[0]) if one else slice(0, 0) for one in runs)

    def like(
        self,
        local: Any,
        distribution: Distribution | int | None = None,
        global_shape: Shape | int | None = None,
    ) -> DistArray:
        """Return an array with another local part, on a device if the one of this array is.

        Ranks do not communicate, so all must give the same distribution and global shape.
        """
        if self.on_device and not is_device_array(local):
            local = to_device(local, queue=self.local.queue)
        made = DistArray.__new__(DistArray)
        made.comm, made.dtype, made.local = self.comm, np.dtype(local.dtype), local
        made.distribution = (
            self.distribution if distribution is None else as_distribution(distribution)
        )
        made.global_shape = _shape(self.global_shape if global_shape is None else global_shape)
        made.layout = made._layout()
        made._check(made.layout.local_shape(self.comm.rank))
        return made

    # ----------------------------------------------------------------------- moved

    @collective
    def redistribute(self, distribution: Distribution | int) -> DistArray:
        """Return the same array in another distribution; an integer stands for ``slab(axis)``."""
        return self.moved(distribution, keep=True)

    def moved(self, distribution: Distribution | int, *, keep: bool = False) -> DistArray:
        """Return what `redistribute` does, for other functions of this package.

        Without `keep`, the local part is only read, and not after the next exchange but one: it may
        be that of this array, or memory that ranks use again.
        """
        wanted = agreed(self.comm, lambda: as_distribution(distribution))
        same(self.comm, wanted, "the distribution")
        layout = agreed(self.comm, lambda: wanted.layout(self.global_shape, self.comm.size))
        if layout == self.layout:
            return self.like(self.local, distribution=wanted)
        moved = on_devices(self.comm, self.local, self.layout, layout)
        if moved is None:
            moved = redistribute(self.comm, self.host(), self.layout, layout, keep)
        return self.like(moved, distribution=wanted)

    @collective
    def gather(self, root: int | None = None) -> Array | None:
        """Return the global array on the host: on all ranks, or on `root` (None on the others)."""
        same(self.comm, root, "root")
        agreed(self.comm, lambda: _check_root(root, self.comm.size))
        after = Gathered(self.global_shape, root)
        local = self.host()
        whole = redistribute(self.comm, local, self.layout, after)
        if whole is local:
            whole = whole.copy()
        return whole if root is None or root == self.comm.rank else None

    @collective
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.npy`` file through MPI-IO, each rank its own part.

        An existing file is replaced when all is written.
        """
        comm, target = self.comm, Path(path)
        same(comm, str(target), "the path")
        agreed(comm, lambda: None if comm.rank else check_target(target))
        if comm.rank:
            self._write(comm.bcast(None, root=0))
            comm.Barrier()  # no rank goes on before the file is there
            return
        with replace_file(target) as temporary:
            with temporary.open("wb") as file:
                header = {"descr": np.lib.format.dtype_to_descr(self.dtype)}
                whole = {**header, "fortran_order": False, "shape": self.global_shape}
                np.lib.format.write_array_header_1_0(file, whole)
            self._write(comm.bcast((str(temporary), temporary.stat().st_size), root=0))
        comm.Barrier()

    def _write(self, place: tuple[str, int]) -> None:
        name, begin = place
        local = np.ascontiguousarray(self.host())
        mode = mpi().MODE_WRONLY
        _transfer(self.comm, name, mode, begin, local, self.layout, lambda f, x: f.Write_all(x))


def _shape(given: Shape | int) -> Shape:
    return (int(given),) if isinstance(given, int | np.integer) else tuple(map(int, given))


def _transfer(
    comm: Any,
    name: str,
    mode: int,
    begin: int,
    local: Array,
    layout: Layout,
    transfer: Callable[[Any, Any], None],
) -> None:
    """Read or write this rank's part of a file whose elements begin at byte `begin`."""
    MPI, runs = mpi(), layout.runs(comm.rank)
    empty = not all(runs)
    kind = MPI.BYTE if empty else selection(local.itemsize, layout.shape, runs)
    file = MPI.File.Open(comm, name, mode)
    try:
        file.Set_view(begin, MPI.BYTE, kind, "native")
        one = MPI.BYTE.Create_contiguous(local.itemsize).Commit()
        transfer(file, [local.reshape(-1).view(np.uint8), local.size, one])
        one.Free()
    finally:
        file.Close()
        if not empty:
            kind.Free()


@collective
def _from_local(local: Any, axis: int, comm: Any) -> DistArray:
    array = local if is_device_array(local) else np.asarray(local)
    same(comm, (array.ndim, array.dtype.str, axis), "number of axes, dtype and axis")
    if not -array.ndim <= axis < array.ndim:
        agreed(comm, lambda: _refuse(f"axis {axis} is out of bounds for {array.ndim} axes"))
    where = axis % array.ndim
    shapes = comm.allgather(tuple(array.shape))
    if any(
        (*shape[:where], *shape[where + 1 :]) != (*shapes[0][:where], *shapes[0][where + 1 :])
        for shape in shapes
    ):
        agreed(comm, lambda: _refuse(f"the arrays must differ along axis {axis} alone: {shapes}"))
    lengths = tuple(shape[where] for shape in shapes)
    whole = (*shapes[0][:where], sum(lengths), *shapes[0][where + 1 :])
    return DistArray(whole, array.dtype, array, slab(where, lengths), comm)


def _check_root(root: int | None, size: int) -> None:
    if root is not None and not 0 <= root < size:
        raise InvalidProblem(f"root must be a rank, from 0 to {size - 1}, not {root}")


def _refuse(text: str) -> None:
    raise InvalidProblem(text)


@collective
def _from_global(array: Any, distribution: Distribution, comm: Any, root: int | None) -> DistArray:
    comm = world(comm)
    same(comm, (distribution, root), "distribution and root")
    agreed(comm, lambda: _check_root(root, comm.size))
    if root is None:
        whole = np.asarray(array)
        result = DistArray(whole.shape, whole.dtype, None, distribution, comm)
        index = [
            np.concatenate([np.arange(begin, end) for begin, end in runs] or [np.arange(0)])
            for runs in result.layout.runs(comm.rank)
        ]
        simple = [len(runs) < 2 for runs in result.layout.runs(comm.rank)]
        part = whole[result.local_slice()] if all(simple) else whole[np.ix_(*index)]
        result.local[...] = part
        return result
    here = comm.rank == root
    sent = np.asarray(array) if here else None
    shape, dtype = comm.bcast(None if sent is None else (sent.shape, sent.dtype), root=root)
    result = DistArray(shape, dtype, None, distribution, comm)
    before = Gathered(shape, root)
    local = np.empty((0,) * len(shape), dtype) if sent is None else sent
    result.local = redistribute(comm, local, before, result.layout)
    if comm.size == 1:
        result.local = result.local.copy()
    return result


@collective
def _load(path: Path, distribution: Distribution, comm: Any) -> DistArray:
    same(comm, (str(path), distribution), "path and distribution")
    shape, fortran, dtype, begin = agreed(comm, lambda: _header(path))
    if fortran and sum(n != 1 for n in shape) > 1:  # the file has the transpose
        raise_if = (
            f"{path} is in Fortran order; np.save(path, np.ascontiguousarray(x)) writes C order"
        )
        agreed(comm, lambda: _refuse(raise_if))
    result = DistArray(shape, dtype, None, distribution, comm)
    mode = mpi().MODE_RDONLY
    read = lambda file, given: file.Read_all(given)  # noqa: E731
    _transfer(comm, str(path), mode, begin, result.local, result.layout, read)
    return result


def _header(path: Path) -> Header:
    with opened(path) as (_, header):
        return header
