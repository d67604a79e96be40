"""An OpenCL algorithm in a comparison: back-to-back calls, and kernel times from other calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import LaunchError
from opencl_lab.core.queues import finish
from opencl_lab.core.wording import plain
from opencl_lab.lab.engine.implementations import Implementation, Workload
from opencl_lab.lab.engine.row import Measurement, Side
from opencl_lab.lab.measuring.back_to_back import back_to_back
from opencl_lab.lab.measuring.roofline import above_peak, fraction_of_peak, stored_peaks
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.measuring.timing_sanity import implausible, unaccounted
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.lab.reference.peers import Calls, named
from opencl_lab.runtime.arrays import is_device_array, to_device
from opencl_lab.runtime.execute import Execution

KERNEL_RUNS = 3  # profiled runs in each round, of which the median counts
KERNEL_MS = 50.0  # after so long a round has no further profiled run
KERNELS_MS = 1000.0  # after so long in all, and two rounds, there are no further profiled runs
SLOW_EVENTS = "runs with events, which tell the kernel time, are slower than these calls"
IN_CALLER = "runs in the calling thread"
EVENTS_COST = 1.1  # ratio of times with and without events above which a note says so
SLOW_MS = 1000.0  # kernels that take longer are neither warmed up nor profiled again
LEAST_TOTALS = 3  # samples that `_check_unaccounted` needs


def row_name(algorithm: str, variant: str = "", data: Side = "host") -> str:
    """Return the name of an algorithm in the rows of results."""
    name = f"opencl:{algorithm}" + (f"[{variant}]" if variant else "")
    return name + "@device" * (data == "device")


class OpenCL(Implementation):
    """An algorithm of the operation on an OpenCL device, timed by calls of the public function.

    The first run builds: `Operation.run` into poisoned outputs. A sample is back-to-back calls of
    the public function that return new results, as NumPy's do; without a public function, calls of
    `Operation.run`. Kernel times come from further runs on a queue with profiling.

    `config` has kernel parameters to use instead of the default ones, and `variant` is their name.
    `data` says whether inputs and results are on the host or on the device.
    """

    def __init__(
        self,
        workload: Workload,
        device: Device,
        algorithm: str,
        config: Mapping[str, Any] | None = None,
        variant: str = "",
        calls: Calls | None = None,
        data: Side = "host",
    ):
        super().__init__(
            workload, row_name(algorithm, variant, data), "opencl", algorithm, data=data
        )
        self.device = device
        self.config: Mapping[str, Any] = dict(config or {})
        self._public = calls
        self._peaks = stored_peaks(device)
        self._work = workload.problem.work
        self._dtype = getattr(workload.problem, "dtype", None)
        self._kernel_ms: list[float] = []
        self._transfer_ms: list[float] = []
        self._spent_ms = 0.0
        self._inputs: Mapping[str, Any] = workload.inputs
        self._outputs: dict[str, Any] = {}
        self._result: Any = None
        self._called = False
        self._first_total_ms = 0.0
        self._parts = ""
        self._queue: Any = None
        self._call: Callable[[], Any] = self._whole_run
        self._execution: Execution | None = None

    def start(self) -> None:
        """Choose the configuration; the first run builds."""
        operation, problem = self.workload.operation, self.workload.problem
        given = self.config
        if self.data == "host" and not given:
            self.device = operation.side(problem, self.device, self.algorithm)
        if self.algorithm not in operation.choices:
            algorithm = operation.choose(problem, self.device, self.algorithm)
            self.config = algorithm.configure(problem, self.device, given)
            self._work = algorithm.work(problem)
        self._outputs = self.workload.poisoned_outputs()
        self._queue = self.device.queue()
        if self.data == "device":
            self._inputs = self._there(self.workload.inputs)
            self._outputs = self._there(self._outputs)
        public = self._public_call(given)
        if public is not None and self.data == "host":
            self._parts = operation.in_parts(problem, self.device, self.algorithm, self.config)
        self._call = public or self._whole_run

    def _there(self, arrays: Arrays) -> dict[str, Any]:
        return {
            name: to_device(np.ascontiguousarray(array), self._queue)
            for name, array in arrays.items()
        }

    def _public_call(self, config: Mapping[str, Any]) -> Callable[[], Any] | None:
        """Return the public function with its arguments, None where none gives these outputs."""
        if self._public is None:
            return None
        resident = self._public.resident
        arrays = {
            name: self._inputs[name] if name in resident else array
            for name, array in self.workload.inputs.items()
        }
        ours = self._public.ours(self.workload.problem, arrays, self.algorithm)
        if ours is None:
            return None
        options = ours.explicit()
        if config:
            options["config"] = dict(config)
        if self.data == "host":
            options["queue"] = self._queue
        return partial(ours.function, *ours.arrays, **options)

    def _whole_run(self) -> Any:
        outputs = self._run(self._queue).outputs
        return outputs[self.workload.operation.output]

    def _run(self, queue: Any, out: Mapping[str, Any] | None = None) -> Execution:
        return self.workload.operation.run(
            self.workload.problem,
            self._inputs,
            algorithm=self.algorithm,
            config=self.config,
            queue=queue,
            out=out,
        )

    def first(self) -> None:
        """Build and run into poisoned outputs; for arrays in parts make the public call."""
        if self._parts:
            self._first_total_ms = self.sample(1)
            return
        self._first_total_ms, execution = self._profiled()
        if self.device.capabilities.event_timing:
            self.first_ms = execution.kernel_ms + execution.transfer_ms
        if self._is_slow():
            self._keep([execution], [self._first_total_ms])

    def warm_up(self) -> None:
        """Warm up, unless that takes long."""
        if not self._is_slow():
            super().warm_up()

    def _is_slow(self) -> bool:
        """Return whether another run would take too long, so that the first one is kept."""
        return self.first_ms > min(SLOW_MS, self.limit_ms)

    def _profiled(self) -> tuple[float, Execution]:
        """Run on a queue with profiling; return the milliseconds until the outputs are complete."""
        queue = self.device.queue(profiling=True)
        if self.data == "device":
            finish(self._queue)  # uploads of the inputs
        begin = time.perf_counter()
        execution = self._run(queue, self._outputs)
        finish(queue)
        return (time.perf_counter() - begin) * 1e3, execution

    def sample(self, calls: int) -> float:
        """Make public calls back to back, wait at the end, and return the total milliseconds."""

        def call() -> None:
            self._result = self._call()

        self._called = True
        _, seconds = back_to_back(call, calls, partial(finish, self._queue))
        return seconds * 1e3

    def measure(self) -> None:
        """Take a sample, then profile a few runs."""
        super().measure()
        if self.timed and not self._parts and self.device.capabilities.event_timing:
            self.attempt(self._time_kernels)

    def _time_kernels(self) -> None:
        """Profile a few runs, whose median is the kernel time of this round."""
        if self._is_slow() or (self._spent_ms > KERNELS_MS and len(self._kernel_ms) > 1):
            return
        totals, executions = list[float](), list[Execution]()
        while len(totals) < KERNEL_RUNS and sum(totals) <= KERNEL_MS:
            total, execution = self._profiled()
            totals.append(total)
            executions.append(execution)
        self._keep(executions, totals)

    def _keep(self, executions: Sequence[Execution], totals: Sequence[float]) -> None:
        """Store the medians of profiled runs; `totals` are their times by the host's clock."""
        pairs = zip(executions, totals, strict=True)
        self._kernel_ms.append(median(self._plausible(*pair) for pair in pairs))
        self._transfer_ms.append(median(execution.transfer_ms for execution in executions))
        self._spent_ms += sum(totals)
        self._execution = executions[-1]

    def _plausible(self, execution: Execution, host_ms: float) -> float:
        """Return the kernel time of a run; raise LaunchError if it is implausible."""
        reason = implausible(
            execution.kernel_ms,
            host_ms=host_ms,
            launches=len(execution.kernel_events),
            work=self._work,
            dtype=self._dtype,
            peaks=self._peaks,
        )
        if reason is not None:
            raise LaunchError(reason)
        return execution.kernel_ms

    def _check_unaccounted(self) -> None:
        """Compare kernel times with those of calls on device arrays, which do nothing else.

        With one or two samples each may have waited for a busy host, so that more are needed.
        """
        if self.data != "device" or self._execution is None or len(self.totals) < LEAST_TOTALS:
            return
        launches = len(self._execution.kernel_events)
        reason = unaccounted(min(self._kernel_ms), min(self.totals), launches)
        if reason is not None:
            raise LaunchError(reason)

    def outputs(self) -> Arrays:
        """Return the outputs of the last public call, or of the first run without one."""
        if not self._called:
            return {name: _on_host(array) for name, array in self._outputs.items()}
        operation, right = self.workload.operation, self.workload.expected
        results = named(operation.calls.returned or (operation.output,), self._result)
        return {name: _like(right[name], _on_host(result)) for name, result in results.items()}

    def profile(self) -> list[str]:
        """Return a line for each launch of the last profiled run: its time and its kernel."""
        if self._execution is None:
            return []
        return [
            f"{plain(time, 4)} ms  {launch.kernel} {launch.global_size} by {launch.local_size}"
            for launch, time in self._execution.profile()
        ]

    def measurement(self) -> Measurement:
        """Return what was measured, with kernel times and the fraction of the device's peak."""
        self.attempt(self._check_unaccounted)
        kernel = Times.of(self._kernel_ms) if self._kernel_ms else None
        total = Times.of(self.totals) if self.totals else None
        doing = self._work, self._dtype, kernel.median if kernel else 0.0, self._peaks
        return self._measurement(
            config=dict(self.config),
            workers=self.device.compute_units,
            kernel_ms=kernel.median if kernel else None,
            kernel_times=kernel,
            transfer_ms=median(self._transfer_ms) if self._transfer_ms else None,
            build_ms=None if total is None else max(0.0, self._first_total_ms - total.median),
            peak=fraction_of_peak(*doing),
            peak_note=above_peak(*doing),
            note=self._parts
            or IN_CALLER * self.device.is_serial
            or SLOW_EVENTS * _far_above(kernel, total),
        )

    def close(self) -> None:
        """Release the device arrays."""
        self._inputs, self._outputs, self._result, self._called = {}, {}, None, False
        self._call = self._whole_run


def _like(right: np.ndarray[Any, Any], result: Any) -> np.ndarray[Any, Any]:
    """Return a call's result in the expected shape; raise LaunchError if size or dtype differ."""
    if not isinstance(result, np.ndarray):
        raise LaunchError(f"the call returned {type(result).__name__}, not an array")
    if (result.size, result.dtype) != (right.size, right.dtype):
        raise LaunchError(
            f"the call returned {result.dtype} of shape {result.shape}, "
            f"not {right.dtype} of shape {right.shape}"
        )
    return result.reshape(right.shape)


def _on_host(array: Any) -> Any:
    return array.get() if is_device_array(array) else array


def _far_above(kernel: Times | None, total: Times | None) -> bool:
    if kernel is None or total is None:
        return False
    return kernel.is_above(total) and kernel.median > EVENTS_COST * total.median
