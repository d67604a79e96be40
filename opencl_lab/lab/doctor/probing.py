"""The worker's side of probes: running one, and building, running and checking kernels."""

# This module and the probes call pyopencl directly: they run in a worker that may die.
from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.template import render
from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.measuring.timing_sanity import agree
from opencl_lab.workers.serving import find

Answer: TypeAlias = dict[str, Any]
Answers: TypeAlias = Iterator[Answer]
Array: TypeAlias = np.ndarray[Any, Any]


class ProbeRun:
    """A probe, ``module:function``, on a device.

    Every report that the function yields is sent at once, so that the parent knows its progress.
    """

    def __init__(self, target: str, spec: str, say: Callable[[Any], None]):
        self._probe, self._device, self._say = find(target), select_device(spec), say

    def run(self) -> None:
        """Run the probe."""
        for step in self._probe(self._device):
            self._say(step)


class Wrong(Exception):
    """The kernel ran, but its result is wrong."""


class ProbeSession:
    """A queue on the device under test, and random data."""

    def __init__(self, device: Device):
        self.device = device
        self.context = cl.Context([device.handle])
        self.queue = cl.CommandQueue(
            self.context, properties=cl.command_queue_properties.PROFILING_ENABLE
        )
        self.random = np.random.default_rng()

    def build(self, source: str, options: Sequence[str] = ()) -> cl.Program:
        """Build a program."""
        program = cl.Program(self.context, source)
        program.build(list(options))
        return program

    def built(self, template: str, parameters: Mapping[str, Any]) -> cl.Program:
        """Render and build a template."""
        return self.build(render(template, parameters).text)

    def run(
        self,
        program: cl.Program | str,
        name: str,
        global_size: int,
        local_size: int,
        *arguments: Any,
    ) -> float:
        """Run a kernel, copy all array arguments back, and return the seconds by its event."""
        if isinstance(program, str):
            program = self.build(program)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffers = {
            index: cl.Buffer(self.context, flags, hostbuf=argument)
            for index, argument in enumerate(arguments)
            if isinstance(argument, np.ndarray)
        }
        passed = [buffers.get(index, argument) for index, argument in enumerate(arguments)]
        launched = cl.Kernel(program, name)
        event = launched(self.queue, (global_size,), (local_size,), *passed)
        event.wait()
        for index, buffer in buffers.items():
            cl.enqueue_copy(self.queue, arguments[index], buffer)
        self.queue.finish()
        return _seconds(event)

    def times(self, launch: Callable[[], cl.Event]) -> tuple[float, float]:
        """Return the seconds of a launch by its event, and by the host that waits for it."""
        self.queue.finish()
        begin = time.perf_counter()
        event = launch()
        event.wait()
        host = time.perf_counter() - begin
        return _seconds(event), host

    def clock(self, launch: Callable[[], cl.Event]) -> float:
        """Return the seconds of a launch by its event, or by the host if the two disagree."""
        event, host = self.times(launch)
        return event if agree(event, host) else host

    def words(self, count: int) -> Array:
        """Return random 32-bit words."""
        return self.random.integers(0, 1 << 32, count, dtype=np.uint32)

    def reals(self, count: int, dtype: Any = np.float32) -> Array:
        """Return random numbers between -2 and 2."""
        return self.random.uniform(-2, 2, count).astype(dtype)

    def size(self, wanted: int) -> int:
        """Return a power of two that is a legal work-group size, `wanted` if it is one."""
        limit = min(wanted, self.device.max_work_group, self.device.max_work_items[0])
        return 1 << (limit.bit_length() - 1)


def _seconds(event: cl.Event) -> float:
    return float(event.profile.end - event.profile.start) * 1e-9


def check(result: Array, expected: Array, tolerance: float = 0.0) -> None:
    """Raise Wrong if a result differs by more than `tolerance`, relative to values above 1."""
    error = np.abs(result - expected) if tolerance else result != expected
    wrong = ~(error <= tolerance * np.maximum(np.abs(expected), 1)) if tolerance else error
    if np.any(wrong):
        raise Wrong(f"{np.count_nonzero(wrong)} of {result.size} results are wrong")


def why(error: Exception) -> str:
    """Return the first line of an error message that names the error."""
    if isinstance(error, Wrong):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Compilers name a temporary file before or after the word "error".
    errors = [
        re.sub(r"^.*?error:(\s\S+:\d+:\d+:)?", "error:", line)
        for line in lines
        if re.search("error|fatal", line, re.IGNORECASE)
    ]
    return (errors or lines or [repr(error)])[0][:160]
