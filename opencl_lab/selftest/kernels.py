"""Building, running and checking small kernels on a device that is not trusted yet."""

# This module calls pyopencl directly: it is meant for a worker that may die.
from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.queues import new_kernel, new_program
from opencl_lab.core.template import render
from opencl_lab.drivers.declarations import with_declarations

Array: TypeAlias = np.ndarray[Any, Any]


class Wrong(Exception):
    """The kernel ran, but its result is wrong."""


class KernelRunner:
    """A queue on the device under test, and random data."""

    def __init__(self, device: Device):
        self.device = device
        self.context = cl.Context([device.handle])
        self.queue = cl.CommandQueue(
            self.context, device.handle, cl.command_queue_properties.PROFILING_ENABLE
        )
        self.random = np.random.default_rng(0)

    def build(self, source: str, options: Sequence[str] = ()) -> cl.Program:
        """Build a program, with the declarations that the library would give it."""
        quick = with_declarations(self.device.platform_version, source)
        if quick is not None:
            with suppress(cl.Error):
                return self._built(quick[0], [*options, *quick[1]])
        return self._built(source, list(options))

    def _built(self, source: str, options: list[str]) -> cl.Program:
        program = new_program(self.context, source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # a build log is not a failure
            program.build([*options, "-w"])  # else PoCL prints the number of warnings
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
        launched = new_kernel(program, name)
        event = launched(self.queue, (global_size,), (local_size,), *passed)
        event.wait()
        for index, buffer in buffers.items():
            cl.enqueue_copy(self.queue, arguments[index], buffer)
        self.queue.finish()
        return seconds_of(event)

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


def seconds_of(event: cl.Event) -> float:
    """Return the seconds that a launch took by its event."""
    return float(event.profile.end - event.profile.start) * 1e-9


def check(result: Array, expected: Array, tolerance: float = 0.0, *, what: str = "") -> None:
    """Raise Wrong if a result differs by more than `tolerance`, relative to values above 1.

    Its sentence begins with `what` is wrong.
    """
    error = np.abs(result - expected) if tolerance else result != expected
    wrong = ~(error <= tolerance * np.maximum(np.abs(expected), 1)) if tolerance else error
    if np.any(wrong):
        counts = f"{np.count_nonzero(wrong)} of {result.size} results are wrong"
        raise Wrong(f"{what}: {counts}" if what else counts)


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
