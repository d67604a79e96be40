"""Arrays in `.npy` files of which blocks are read and written, by several threads at once.

By `pread` and `pwrite` and not in mapped memory: a full disk or a file that becomes shorter is an
error then and not the end of the process, and pages of the file do not count as the process's.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from opencl_lab.core.errors import InvalidProblem

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class NpyFile:
    """The elements of a dense array in a file, as bytes in the order in which they lie there.

    They begin at `offset`, in the byte order of the `dtype` that is given; they are read and
    written in the machine's order. If `fortran`, they follow each other along the first axis.
    Whoever has opened the file closes it. Messages call it `name`.
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
        """Open a file to be read.

        One that is no `.npy` file with numbers, or is shorter than it says, is an `InvalidProblem`.
        """
        try:
            file = path.open("rb")
        except OSError as error:
            raise _unreadable(str(path), error) from error
        with file:
            yield cls._of(str(path), file)

    @classmethod
    def _of(cls, name: str, file: BinaryIO) -> NpyFile:
        npy = np.lib.format
        try:
            first = npy.read_magic(file) < (2, 0)
            read = npy.read_array_header_1_0 if first else npy.read_array_header_2_0
            shape, fortran, dtype = read(file)
            offset, size = file.tell(), os.fstat(file.fileno()).st_size
        except OSError as error:
            raise _unreadable(name, error) from error
        except ValueError as error:
            reason = str(error).splitlines()[0] if str(error) else "it is damaged"
            raise InvalidProblem(f"cannot read {name}: {reason}") from error
        if dtype.kind not in "biufc":
            raise InvalidProblem(f"{name} holds values of dtype {dtype}, not numbers")
        found = cls(name, file.fileno(), shape, dtype, offset, fortran)
        if size < offset + found.nbytes:
            raise InvalidProblem(f"cannot read {name}: it is shorter than its header says")
        return found

    @classmethod
    @contextmanager
    def created(cls, path: Path, like: NpyFile) -> Iterator[NpyFile]:
        """Open a file to be written, and give it the header of an array like another one."""
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
        """Fill `target` with whole elements, `begin` bytes after the first one.

        A file that cannot be read, or has become shorter, is an `InvalidProblem`.
        """
        left = memoryview(target.data)
        while left:
            try:
                count = os.preadv(self._descriptor, [left], self._offset + begin)
            except OSError as error:
                raise _unreadable(self.name, error) from error
            if not count:
                raise InvalidProblem(f"{self.name} became shorter while it was read")
            left, begin = left[count:], begin + count
        if not self._stored.isnative:
            target.view(self.dtype).byteswap(inplace=True)

    def write(self, source: Bytes, begin: int) -> None:
        """Write bytes of elements, `begin` bytes after the first one; a full disk is an OSError."""
        left = memoryview(source.data)
        while left:
            count = os.pwritev(self._descriptor, [left], self._offset + begin)
            left, begin = left[count:], begin + count

    def _changed(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_mtime_ns, status.st_size

    def check_unchanged(self) -> None:
        """Raise `InvalidProblem` if somebody has written to the file since it was opened."""
        if self._changed() != self._version:
            raise InvalidProblem(f"{self.name} was changed while it was read")


def _unreadable(name: str, error: OSError) -> InvalidProblem:
    return InvalidProblem(f"cannot read {name}: {error.strerror or error}")


@contextmanager
def scratch_file(folder: Path, like: NpyFile) -> Iterator[NpyFile]:
    """Open a file without a name for the elements of another one; it ends with the process."""
    with tempfile.TemporaryFile(prefix=".oclab-", dir=folder) as file:
        yield NpyFile(f"a temporary file in {folder}", file.fileno(), like.shape, like.dtype)
