"""Programs of one context, built from sources, and their kernels."""

from __future__ import annotations

import ctypes
import json
import linecache
import re
import threading
import time
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.errors import BuildError, InvalidConfig, LaunchError
from opencl_lab.core.plan import Launch
from opencl_lab.core.queues import MAKING, new_kernel, new_program, within_gate
from opencl_lab.core.template import Source, render
from opencl_lab.core.wording import counted
from opencl_lab.drivers.declarations import with_declarations
from opencl_lab.drivers.intel import adapted, is_intel_cpu
from opencl_lab.drivers.pocl import (
    forget_last_built,
    linker_missing,
    no_room,
    record_soon,
    restore_cache,
)
from opencl_lab.drivers.pretend import without_lacking
from opencl_lab.runtime.binaries import binary_of

FLAGS = ("-cl-kernel-arg-info", "-w")
"""Build options of all programs. Without -w, PoCL prints the number of warnings; errors still come
with the log."""
SPECIFIC = "//sm_"
"""The beginning of the marks that `opencl_lab.runtime.ptx` removes."""


@contextmanager
def _forgotten_lines() -> Iterator[None]:
    """Remove code that pyopencl generates in this context from Python's `linecache`.

    It serves tracebacks alone. Each new kernel object would search all of it for a free name, which
    takes milliseconds after some hundreds.
    """
    before = set(linecache.cache)
    try:
        yield
    finally:
        for name in linecache.cache.keys() - before:
            if name.startswith("<generated: "):
                linecache.cache.pop(name, None)


class Programs:
    """Builds programs for one device, once while they are in use, and creates their kernels."""

    def __init__(self, context: cl.Context, device: Device):
        self.context = context
        self.device = device
        self._lock = threading.RLock()
        self.built = 0
        """Number of programs that were built, or read from the driver's cache, until now."""
        self._programs: weakref.WeakValueDictionary[tuple[str, tuple[str, ...]], cl.Program] = (
            weakref.WeakValueDictionary()
        )

    def programs(self, launches: Sequence[Launch]) -> list[cl.Program]:
        """Return the program of each launch; launches that differ only in sizes share one."""
        known: list[tuple[Launch, cl.Program]] = []
        for launch in launches:
            found = (program for earlier, program in known if _same_program(earlier, launch))
            program = next(found, None)
            if program is None:
                program = self.program(render(launch.template, launch.params), launch.options)
            known.append((launch, program))
        return [program for _, program in known]

    def program(self, source: Source, options: tuple[str, ...]) -> cl.Program:
        """Build a program, or return one built from the same source that is still in use."""
        key = (source.digest, options)
        with self._lock:
            known = self._programs.get(key)
            if known is None:
                known = self._programs[key] = self._build(source, options)
                self.built += 1
            return known

    def _build(self, source: Source, options: tuple[str, ...], again: bool = False) -> cl.Program:
        version = self.device.platform_version
        missing = linker_missing(version) or no_room(version)
        if missing is not None:  # PoCL would end the process
            raise BuildError(missing, source=source.text)
        flags = [*options, *FLAGS]
        of_intel = is_intel_cpu(self.device.kind, self.device.platform)
        text = adapted(source.text) if of_intel else source.text
        if self.device.pretended:
            text = without_lacking(text)
        name = _own_name(source.template)
        named = f"#line 1 {json.dumps(name, ensure_ascii=False)}\n{text}" if name else text
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cl.CompilerWarning)  # a build log is not a failure
                quick = with_declarations(version, named)
                if quick is not None:
                    with suppress(cl.Error):
                        return self._built(quick[0], [*flags, *quick[1]])
                return self._built(named, flags)
        except cl.Error as error:
            if restore_cache():  # another process cleared it
                return self._build(source, options)
            # PoCL may fail, without an error in the source, where processes build it at once.
            if not again and "PoCL" in version and "error:" not in str(error):
                return self._build(source, options, again=True)
            raise BuildError(
                f"{source.template} did not build on {self.device.name}",
                log=_log_of(error, name),
                source=text,
                options=tuple(flags),
            ) from error

    def _built(self, text: str, flags: list[str], again: bool = False) -> cl.Program:
        specific = SPECIFIC in text
        kept = None if specific else binary_of(self.context, self.device, text, flags)
        loaded = None if kept is None else kept.load()
        if loaded is not None:
            return loaded
        program = new_program(self.context, text)
        start = time.perf_counter()
        with within_gate(self.device.handle):
            program.build(flags)
        seconds = time.perf_counter() - start
        if not again and self._is_unreadable(program):
            return self._built(text, flags, again=True)
        if "PoCL" in self.device.platform_version:
            record_soon()
        if kept is not None:
            kept.keep(program, seconds)
        if specific:
            from opencl_lab.runtime.ptx import reloaded  # few kernels need it

            program = reloaded(self.context, self.device.handle, program)
        return program

    def _is_unreadable(self, program: cl.Program) -> bool:
        """Return whether PoCL failed to read a program from its cache; remove it from there.

        PoCL then reports a program without kernels.
        """
        of_pocl = "PoCL" in self.device.platform_version
        if not of_pocl or program.get_info(cl.program_info.NUM_KERNELS):
            return False
        # Releasing the context would make PoCL abort the process, so it is never released.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.context))
        return forget_last_built()

    def kernel(self, program: cl.Program, launch: Launch) -> cl.Kernel:
        """Return a new kernel object for a launch that respects the kernel's limits."""
        try:
            with MAKING, within_gate(self.device.handle), _forgotten_lines():
                kernel = new_kernel(program, launch.kernel)
        except cl.Error as error:
            known: Any = program.get_info(cl.program_info.KERNEL_NAMES)
            names = known.split(";") if known else ["none"]
            raise LaunchError(
                f"{launch.template} has no kernel {launch.kernel!r}; it has: {', '.join(names)}"
                if launch.kernel not in names
                else f"kernel {launch.kernel!r} of {launch.template} could not be created: {error}"
            ) from error
        _check_signature(kernel, launch, program)
        with within_gate(self.device.handle):
            self._check_group(kernel, launch)
        return kernel

    def _check_group(self, kernel: cl.Kernel, launch: Launch) -> None:
        def info(name: int) -> Any:
            return kernel.get_work_group_info(name, self.device.handle)

        # NVIDIA's driver reports 256 for every kernel, and runs as many items as its registers
        # allow: a launch tells. Any kernel built for exactly this size runs with it.
        if self.device.compute_capability is not None:
            return
        required = info(cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE)
        if tuple(required[: len(launch.local_size)]) == launch.local_size:
            return
        limit = info(cl.kernel_work_group_info.WORK_GROUP_SIZE)
        if launch.work_group > limit:
            raise InvalidConfig(
                f"kernel {launch.kernel} runs with at most {counted(limit, 'item')} in a "
                f"work-group on {self.device.name}, not {launch.work_group}"
            )


def _same_program(one: Launch, other: Launch) -> bool:
    return (one.template, one.options) == (other.template, other.options) and (
        one.params == other.params
    )


def _own_name(template: str) -> str:
    """Return the name of a user's file in error messages; empty for the package's templates."""
    path = Path(template)
    if not path.is_absolute():
        return ""
    return f"rendered {path.name}" if path.suffix == ".mako" else path.name


def _log_of(error: cl.Error, name: str) -> str:
    """Return the compiler's log, with positions in `name` if given.

    NVIDIA's compiler ignores the ``#line`` directive, and counts it as a line.
    """
    if not name:
        return str(error)
    return re.sub(r"<kernel>:(\d+):", lambda at: f"{name}:{int(at[1]) - 1}:", str(error))


def _check_signature(kernel: cl.Kernel, launch: Launch, program: cl.Program) -> None:
    """Compare the plan's argument names with the kernel's, if the driver reports them.

    A name in the source for which the driver reports one that is not was renamed by a macro: PoCL
    has macros for all built-in functions, so that `step` becomes `_cl_step`.
    """
    if kernel.num_args != len(launch.arguments):
        raise LaunchError(
            f"kernel {launch.kernel} takes {counted(kernel.num_args, 'argument')}, "
            f"the plan gives {len(launch.arguments)}"
        )
    for index, name in enumerate(launch.arguments):
        try:
            declared = kernel.get_arg_info(index, cl.kernel_arg_info.NAME)
        except cl.Error:
            return
        if not declared or declared == name:
            continue
        source = str(program.get_info(cl.program_info.SOURCE))
        words = set(re.findall(r"\w+", source))
        if declared in words or name not in words:
            raise LaunchError(
                f"argument {index} of kernel {launch.kernel} is {declared!r} in the source "
                f"and {name!r} in the plan"
            )
