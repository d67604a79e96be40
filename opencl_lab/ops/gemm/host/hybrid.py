"""Choosing the faster side for host arrays: the host's BLAS, or the device including copies.

Both sides are measured at a few sizes, by public calls. The time of a side is modelled as
``fixed + bytes / bandwidth + flops / speed``, fitted to these measurements. Caches and idle threads
make small products slower or faster than that; so the model is scaled to the measurements of the
two nearest sizes of square matrices. Measurements are stored in the cache. They are valid for one
device and driver, one BLAS and its threads, and the user's tuned configurations.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from opencl_lab._version import __version__
from opencl_lab.core.device import Device
from opencl_lab.core.paths import cache_dir, record_name
from opencl_lab.core.records import Natural, Positive, as_json, read_sealed, write_sealed
from opencl_lab.core.wording import plain
from opencl_lab.drivers.caches import make_section
from opencl_lab.ops.gemm.host.blas import blas_name, lacks_blas
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import HYBRID
from opencl_lab.ops.solver import AUTO
from opencl_lab.runtime.streams import LIMIT
from opencl_lab.tuned import database
from opencl_lab.tuned.storage import overlay_file

_log = logging.getLogger(__name__)

SECTION = "hybrid"
SQUARES = (32, 128, 512, 1024, 2048)
FLAT = (16, 2048, 2048)
"""A product with few rows, which is memory-bound."""
LONGEST = 0.15
"""Most seconds per call of a sample; sizes that would take longer are skipped."""
ROW, LONG_ROW = 0.02, 0.1
"""About how many seconds of calls are timed per sample: of short calls, and of the first few."""
LEAST_CALLS, FEW_CALLS, MOST_CALLS = 2, 5, 50
PASSES = 2
"""Passes over all sizes, as other load may disturb one."""
MOST_CHOICES = 4096

Multiply = Callable[..., object]
"""``multiply(problem, inputs, algorithm=)`` is the public call on host arrays."""


@dataclass(frozen=True)
class TimedProduct:
    """A product of m x k by k x n matrices and the seconds that a call takes."""

    m: Natural
    n: Natural
    k: Natural
    seconds: Positive

    def terms(self, dtype: np.dtype[Any]) -> tuple[float, float, float]:
        """Return the factors of the model's three coefficients."""
        work = GemmProblem(self.m, self.n, self.k, dtype).work
        return 1.0, work.bytes, work.flops


@dataclass(frozen=True)
class Model:
    """The model of one side's times, for products of one dtype."""

    dtype: np.dtype[Any]
    samples: tuple[TimedProduct, ...]  # square ones and others; at least one

    @cached_property
    def coefficients(self) -> tuple[float, float, float]:
        """Seconds per call, per byte and per operation: the best fit without negative ones.

        It is a least-squares fit of relative errors, over all seven subsets of the terms.
        """
        rows = np.array([sample.terms(self.dtype) for sample in self.samples])
        rows /= np.array([[sample.seconds] for sample in self.samples])
        scale = rows.max(axis=0)
        best, least = (0.0, 0.0, 0.0), math.inf
        for count in range(1, 4):
            for terms in map(list, itertools.combinations(range(3), count)):
                found, *_ = np.linalg.lstsq(
                    (rows / scale)[:, terms], np.ones(len(rows)), rcond=None
                )
                error = float(np.sum(((rows / scale)[:, terms] @ found - 1) ** 2))
                if (found >= 0).all() and error < least:
                    all_terms = np.zeros(3)
                    all_terms[terms] = found
                    best, least = tuple((all_terms / scale).tolist()), error
        return best

    def _plain(self, terms: Sequence[float]) -> float:
        return sum(one * other for one, other in zip(self.coefficients, terms, strict=True))

    @cached_property
    def _scales(self) -> tuple[Sequence[float], Sequence[float]]:
        """Logarithms of the flops of square samples, and of measured over modelled times."""
        squares = [item for item in self.samples if item.m == item.n == item.k]
        squares.sort(key=lambda item: item.m)
        terms = [item.terms(self.dtype) for item in squares]
        pairs = zip(squares, terms, strict=True)
        return (
            [math.log(item[2]) for item in terms],
            [math.log(square.seconds / self._plain(item)) for square, item in pairs],
        )

    def seconds(self, flops: float, nbytes: float) -> float:
        """Return the expected seconds of a call with these numbers of operations and bytes."""
        expected = self._plain((1.0, nbytes, flops))
        sizes, scales = self._scales
        if not sizes or not flops:
            return expected
        return expected * math.exp(float(np.interp(math.log(flops), sizes, scales)))


@dataclass(frozen=True)
class _Kept:
    """The content of the file."""

    state: list[Any]  # see `_state`
    host: Annotated[tuple[TimedProduct, ...], Meta(min_length=1)]
    there: Annotated[tuple[TimedProduct, ...], Meta(min_length=1)]


@dataclass(frozen=True)
class Choice:
    """The chosen side, and the expected seconds of both, if known."""

    host: bool
    host_seconds: float | None = None
    device_seconds: float | None = None
    why: str = ""

    def __str__(self) -> str:
        taken = "by NumPy's BLAS" if self.host else "by the device"
        if self.host_seconds is None or self.device_seconds is None:
            return f"{taken}: {self.why}"
        host, there = (plain(1e3 * item) for item in (self.host_seconds, self.device_seconds))
        return f"{taken}: expected {host} ms on the host, {there} with the device"


def choose_side(problem: GemmProblem, device: Device, multiply: Multiply | None = None) -> Choice:
    """Return which side multiplies host arrays faster.

    If there are no measurements yet, they are made now by `multiply`; see `Multiply`.
    """
    if getattr(_measuring, "host", False):
        return Choice(True, why="it is measured")
    key = (problem, device, *_conditions())
    known = _choices.get(key)
    if known is None:
        if len(_choices) >= MOST_CHOICES:
            _choices.clear()
        known = _choices[key] = _choose(problem, device, multiply)
    return known


def _choose(problem: GemmProblem, device: Device, multiply: Multiply | None) -> Choice:
    reason = lacks_blas(problem)
    if reason is not None:
        return Choice(False, why=reason)
    if not problem.work.flops:
        return Choice(True, why="nothing is multiplied")
    host, there = measured(device, problem.dtype, multiply)
    work, count = problem.work, problem.batch
    # BLAS is called for each product, the device once for all.
    fixed = host.coefficients[0]
    each = host.seconds(work.flops / count, work.bytes / count)
    on_host = fixed + count * max(each - fixed, 0.0) if count > 1 else each
    on_device = there.seconds(work.flops, work.bytes)
    return Choice(on_host < on_device, on_host, on_device)


def model_file(device: Device, dtype: np.dtype[Any]) -> Path:
    """Return the path of the stored measurements."""
    key = " | ".join((device.key, blas_name(), dtype.name))
    return cache_dir(SECTION, record_name(key))


_known: dict[tuple[Any, ...], tuple[Model, Model]] = {}
_measuring = threading.local()
_choices: dict[tuple[Any, ...], Choice] = {}
_lock = threading.RLock()


def _conditions() -> tuple[Any, ...]:
    """Return what measurements depend on besides device and dtype."""
    variables = (os.environ.get(name) for name in (LIMIT, "OCLAB_DATA_DIR"))
    return (blas_name(), database.generation(), *variables)


def _state() -> list[Any]:
    """Return a value that changes with the user's configurations and the memory limit."""
    limit = os.environ.get(LIMIT, "")
    try:
        state = overlay_file("gemm").stat()
    except OSError:
        return [__version__, limit, 0, 0]
    return [__version__, limit, state.st_mtime_ns, state.st_size]


def still_chosen() -> Callable[[], bool]:
    """Return a function that returns whether the choice made now is still valid."""
    now = _conditions()
    return lambda: _conditions() == now


def measured(
    device: Device, dtype: np.dtype[Any], multiply: Multiply | None = None, *, anew: bool = False
) -> tuple[Model, Model]:
    """Return the models of host and device; measure if there are none, or with `anew`."""
    key = (device.key, dtype.name, *_conditions())
    with _lock:
        found = None if anew else _known.get(key) or _read(device, dtype)
        if found is None:
            assert multiply is not None
            begin = time.perf_counter()
            found = (
                _measure(dtype, partial(_by_blas, multiply)),
                _measure(dtype, partial(multiply, algorithm=AUTO)),
            )
            _log.info(
                "measured %s products by NumPy's BLAS and by %s in %s s, for algorithm='hybrid'",
                dtype, device.name, plain(time.perf_counter() - begin, 2),
            )  # fmt: skip
            _store(device, dtype, found)
            _choices.clear()
        _known[key] = found
        return found


def _by_blas(multiply: Multiply, problem: GemmProblem, inputs: dict[str, Any]) -> None:
    """Multiply on the host by the public call."""
    _measuring.host = True
    try:
        multiply(problem, inputs, algorithm=HYBRID)
    finally:
        _measuring.host = False


def _measure(dtype: np.dtype[Any], multiply: Callable[..., object]) -> Model:
    """Measure one side and return its model."""
    shapes = [*((size,) * 3 for size in SQUARES), FLAT]
    seconds: dict[tuple[int, int, int], float] = {}
    speed = 0.0  # the highest operations per second so far
    for _ in range(PASSES):
        for shape in shapes:
            problem = GemmProblem(*shape, dtype)
            if shape != shapes[0] and problem.work.flops / speed > LONGEST:
                continue
            seconds[shape] = min(_seconds(problem, multiply), seconds.get(shape, math.inf))
            speed = max(speed, problem.work.flops / seconds[shape])
    return Model(dtype, tuple(TimedProduct(*shape, taken) for shape, taken in seconds.items()))


def _seconds(problem: GemmProblem, multiply: Callable[..., object]) -> float:
    """Return the seconds of a call: the minimum of several, as other load only adds time."""
    rng = np.random.default_rng(0)
    inputs = {
        name: rng.random(shape, np.float32).astype(problem.dtype, copy=False)
        for name, shape in (("a", problem.shape_a), ("b", problem.shape_b))
    }
    multiply(problem, inputs)
    times: list[float] = []
    while _goes_on(len(times), sum(times)):
        begin = time.perf_counter()
        multiply(problem, inputs)
        times.append(time.perf_counter() - begin)
    return min(times)


def _goes_on(calls: int, seconds: float) -> bool:
    """Return whether to time another call of a sample; long calls need fewer."""
    if calls < FEW_CALLS:
        return calls < LEAST_CALLS or seconds < LONG_ROW
    return calls < MOST_CALLS and seconds < ROW


def _read(device: Device, dtype: np.dtype[Any]) -> tuple[Model, Model] | None:
    """Return the stored models, or None if there are none that are still valid."""
    kept = read_sealed(_Kept, model_file(device, dtype))
    if kept is None or kept.state != _state():
        return None
    return Model(dtype, kept.host), Model(dtype, kept.there)


def _store(device: Device, dtype: np.dtype[Any], models: tuple[Model, Model]) -> None:
    """Store the models in place of those of the same device, BLAS and dtype."""
    host, there = (model.samples for model in models)
    try:
        make_section(SECTION)
        write_sealed(model_file(device, dtype), as_json(_Kept(_state(), host, there)))
    except OSError as error:
        _log.warning("measurements for algorithm='hybrid' were not stored: %s", error)
