"""Reading and writing blocks of arrays in `.npy` files, by several threads at once.

This uses `pread` and `pwrite` instead of mapped memory: a full disk or a truncated file is then an
error and does not end the process, and pages of the file do not count as the process's memory.
"""

from __future__ import annotations

import math
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.npy import opened
from opencl_lab.core.wording import listed

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class NpyFile:
    """The elements of a dense array in a file, as bytes in the order of the file.

    They begin at `offset`, in the byte order of the given `dtype`; they are read and written in
    the machine's byte order. If `fortran`, they are in column-major order. The caller closes the
    file. `name` is its name in messages.
    """

    def __init__(
        self,
        name: str,
        descriptor: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        offset: int = 0,
        fortran: bool = False,
    ):
        self.name, self.shape, self.fortran = name, shape, fortran
        self.dtype = dtype.newbyteorder("=")
        self._descriptor, self._offset, self._stored = descriptor, offset, dtype
        self._version = self._changed()

    @property
    def nbytes(self) -> int:
        """Size of the elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator[NpyFile]:
        """Open a file for reading.

        InvalidProblem is raised if it is not a `.npy` file with numbers, or is truncated.
        """
        with opened(path) as (file, (shape, fortran, dtype, offset)):
            check_numbers(dtype, str(path))
            yield cls(str(path), file.fileno(), shape, dtype, offset, fortran)

    @classmethod
    @contextmanager
    def created(cls, path: Path, like: NpyFile) -> Iterator[NpyFile]:
        """Open a file for writing, with the header of an array like `like`."""
        header = {
            "descr": np.lib.format.dtype_to_descr(like.dtype),
            "fortran_order": like.fortran,
            "shape": like.shape,
        }
        with path.open("r+b") as file:
            np.lib.format.write_array_header_1_0(file, header)
            file.flush()
            yield cls(str(path), file.fileno(), like.shape, like.dtype, file.tell(), like.fortran)

    def read(self, target: Bytes, begin: int) -> None:
        """Fill `target` with whole elements, from `begin` bytes after the first one.

        InvalidProblem is raised if the file cannot be read, or was truncated.
        """
        left = memoryview(target.data)
        while left:
            try:
                count = _read_at(self._descriptor, left, self._offset + begin)
            except OSError as error:
                raise _unreadable(self.name, error) from error
            if not count:
                raise InvalidProblem(f"{self.name} became shorter while it was read")
            left, begin = left[count:], begin + count
        if not self._stored.isnative:
            target.view(self.dtype).byteswap(inplace=True)

    def write(self, source: Bytes, begin: int) -> None:
        """Write elements from `begin` bytes after the first one; a full disk raises OSError."""
        left = memoryview(source.data)
        while left:
            count = _write_at(self._descriptor, left, self._offset + begin)
            left, begin = left[count:], begin + count

    def _changed(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_mtime_ns, status.st_size

    def check_unchanged(self) -> None:
        """Raise `InvalidProblem` if the file was written to since it was opened."""
        if self._changed() != self._version:
            raise InvalidProblem(f"{self.name} was changed while it was read")


_moving = threading.Lock()  # of the position of a file, which others set, too


def _read_at(descriptor: int, target: memoryview, place: int) -> int:
    """Read into `target` from a place in a file; return the number of bytes."""
    if hasattr(os, "preadv"):
        return int(os.preadv(descriptor, [target], place))
    with _moving:
        os.lseek(descriptor, place, os.SEEK_SET)
        data = os.read(descriptor, len(target))
    target[: len(data)] = data
    return len(data)


def _write_at(descriptor: int, source: memoryview, place: int) -> int:
    """Write `source` to a place in a file; return the number of bytes."""
    if hasattr(os, "pwritev"):
        return int(os.pwritev(descriptor, [source], place))
    with _moving:
        os.lseek(descriptor, place, os.SEEK_SET)
        return os.write(descriptor, source)


def check_numbers(dtype: np.dtype[Any], name: str) -> None:
    """Raise InvalidProblem if the array `name` does not hold numbers."""
    if dtype.kind not in "biufc":
        raise InvalidProblem(f"{name} holds values of dtype {listed([str(dtype)])}, not numbers")


def _unreadable(name: str, error: OSError) -> InvalidProblem:
    return InvalidProblem(f"cannot read {name}: {error.strerror or error}")


@contextmanager
def scratch_file(folder: Path, like: NpyFile) -> Iterator[NpyFile]:
    """Open an unnamed temporary file for the elements of an array like `like`."""
    with tempfile.TemporaryFile(prefix=".oclab-", dir=folder) as file:
        yield NpyFile(f"a temporary file in {folder}", file.fileno(), like.shape, like.dtype)
