"""Limits on the threads of other libraries, and binding of OpenMP threads to processors."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.drivers.processes import PROCESSORS
from opencl_lab.lab.reference.build import CFunction, load
from opencl_lab.lab.reference.descriptor import CReference, imported, needs

BIND = CReference("OpenMP", "threads.c", "bind_threads", lambda _: {}, lambda *_: (), threaded=True)
MOST_PROCESSORS = 1024  # of a cpu_set_t
SETTINGS = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")
"""Variables with which users bind threads themselves."""
no_blas_control = needs("threadpoolctl")
SYSTEM = Path("/sys/devices/system/cpu")


def cores_first(processors: Collection[int], system: Path = SYSTEM) -> list[int]:
    """Return processors in order, with those that share a core with an earlier one at the end."""
    seen: set[str] = set()
    first: list[int] = []
    rest: list[int] = []
    for number in sorted(processors):
        try:
            core = (system / f"cpu{number}/topology/thread_siblings_list").read_text().strip()
        except OSError:
            core = str(number)
        (rest if core in seen else first).append(number)
        seen.add(core)
    return first + rest


@cache
def _order() -> tuple[int, ...]:
    return tuple(cores_first(PROCESSORS))


@cache
def _bind() -> CFunction:
    return load(BIND, None)


def bind_openmp(threads: int) -> None:
    """Bind the OpenMP threads of the next parallel regions to one processor each.

    An OpenMP runtime reads ``OMP_PROC_BIND`` when it is loaded, and then binds the calling thread
    permanently. So the threads bind themselves here: each to one processor, different cores first,
    or to all processors if there are more threads than processors. The calling thread is one of
    them: call this within `on_all_processors` of `drivers.processes`, which restores it. Nothing
    is bound if the user's environment variables do so. `ReferenceUnavailable` is raised if fewer
    threads start.
    """
    order = _order()
    bound = bool(order) and max(order) < MOST_PROCESSORS and not os.environ.keys() & set(SETTINGS)
    processors = np.array(order, np.int64)
    ran = np.zeros(1, np.int64)
    apart = threads <= len(order)
    _bind()(processors, len(order) if bound else 0, threads, int(apart), ran)
    if ran[0] != threads:
        raise ReferenceUnavailable(
            f"OpenMP starts {ran[0]} of {threads} threads; OMP_THREAD_LIMIT may say so"
        )


@cache
def _blas() -> Any:
    """Return a controller of the loaded BLAS libraries: NumPy's and others."""
    control = imported("threadpoolctl")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about several OpenMP runtimes
        return control.ThreadpoolController().select(user_api="blas")


@contextmanager
def blas_threads(threads: int) -> Iterator[None]:
    """Limit NumPy's BLAS to a number of threads; `ReferenceUnavailable` if it uses another."""
    found = _blas()
    with found.limit(limits=threads):
        limited = {item["num_threads"] for item in found.info()}
        if limited != {threads}:
            said = ", ".join(map(str, sorted(limited))) or "none that is known"
            raise ReferenceUnavailable(
                f"NumPy's BLAS cannot be held to {threads} threads; it has {said}"
            )
        yield


@contextmanager
def _while_set(
    get: Callable[[], int], put: Callable[[int], object], threads: int
) -> Iterator[None]:
    before = get()
    put(threads)
    try:
        yield
    finally:
        put(before)


def torch_threads(threads: int) -> AbstractContextManager[None]:
    """Limit PyTorch on the CPU to a number of threads."""
    torch = imported("torch")
    return _while_set(torch.get_num_threads, torch.set_num_threads, threads)


def opencv_threads(threads: int) -> AbstractContextManager[None]:
    """Limit OpenCV to a number of threads."""
    opencv = imported("cv2")
    return _while_set(opencv.getNumThreads, opencv.setNumThreads, threads)
