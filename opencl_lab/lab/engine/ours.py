"""An algorithm of ours in a comparison: public calls in a row, and its kernels in other runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import LaunchError
from opencl_lab.lab.engine.implementations import Implementation, Workload
from opencl_lab.lab.engine.row import Measurement, Side
from opencl_lab.lab.measuring.doubt import doubt, unseen
from opencl_lab.lab.measuring.roofline import above_peak, fraction_of_peak, stored_peaks
from opencl_lab.lab.measuring.rows import in_a_row
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.lab.reference.peers import Calls, named
from opencl_lab.runtime.arrays import is_device_array, to_device
from opencl_lab.runtime.execute import Execution

KERNEL_RUNS = 3  # in each round; the first follows a row of calls, and the median counts
KERNEL_MS = 50.0  # after which a round has no further one
KERNELS_MS = 1000.0  # after which no further round has any, if there were two
SLOW_EVENTS = "runs with events, which tell the kernel time, are slower than these calls"
EVENTS_COST = 1.1  # times what calls take without them: no more is worth a note
SLOW_MS = 1000.0  # kernels that take longer are neither warmed up nor run for events alone
LEAST_TOTALS = 3  # before the time of calls says that events claim too little


def row_name(algorithm: str, variant: str = "", data: Side = "host") -> str:
    """Return what the row of an algorithm is called."""
    name = f"opencl:{algorithm}" + (f"[{variant}]" if variant else "")
    return name + "@device" * (data == "device")


class OpenCL(Implementation):
    """An algorithm of the operation on an OpenCL device, by public calls as users repeat them.

    The first run takes the whole road, into poisoned outputs, and builds. Timed are calls of the
    public function that return new results, as those of NumPy do, in a row. Without a public call
    these are whole runs. Events come from further runs on a queue that has them.

    `config` has kernel parameters instead of the default ones, which are called `variant`. Inputs
    and results stay where `data` says.
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
        """Take the whole road into poisoned outputs, which builds; in parts, the public call."""
        if self._parts:
            self._first_total_ms = self.row(1)
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
        """Return whether the first run tells the kernel time, since another one takes too long."""
        return self.first_ms > min(SLOW_MS, self.limit_ms)

    def _profiled(self) -> tuple[float, Execution]:
        """Run on the queue that has events; return milliseconds until the outputs are there."""
        queue = self.device.queue(profiling=True)
        if self.data == "device":
            self._queue.finish()  # what was put there
        begin = time.perf_counter()
        execution = self._run(queue, self._outputs)
        queue.finish()
        return (time.perf_counter() - begin) * 1e3, execution

    def row(self, calls: int) -> float:
        """Make public calls in a row, and wait at the end."""

        def call() -> None:
            self._result = self._call()

        self._called = True
        _, seconds = in_a_row(call, calls, self._queue.finish)
        return seconds * 1e3

    def measure(self) -> None:
        """Make a row of calls, then run for the sake of events."""
        super().measure()
        if self.timed and not self._parts and self.device.capabilities.event_timing:
            self.attempt(self._time_kernels)

    def _time_kernels(self) -> None:
        """Keep the median of a few runs as the kernel time of this round, as a row is one total."""
        if self._is_slow() or (self._spent_ms > KERNELS_MS and len(self._kernel_ms) > 1):
            return
        totals, executions = list[float](), list[Execution]()
        while len(totals) < KERNEL_RUNS and sum(totals) <= KERNEL_MS:
            total, execution = self._profiled()
            totals.append(total)
            executions.append(execution)
        self._keep(executions, totals)

    def _keep(self, executions: Sequence[Execution], totals: Sequence[float]) -> None:
        """Keep the medians of runs with events, which took so many milliseconds each."""
        pairs = zip(executions, totals, strict=True)
        self._kernel_ms.append(median(self._believed(*pair) for pair in pairs))
        self._transfer_ms.append(median(execution.transfer_ms for execution in executions))
        self._spent_ms += sum(totals)
        self._execution = executions[-1]

    def _believed(self, execution: Execution, host_ms: float) -> float:
        """Return the kernel time of a run; raise where it cannot be true."""
        doubted = doubt(
            execution.kernel_ms,
            host_ms=host_ms,
            launches=len(execution.kernel_events),
            work=self._work,
            dtype=self._dtype,
            peaks=self._peaks,
        )
        if doubted is not None:
            raise LaunchError(doubted)
        return execution.kernel_ms

    def _check_unseen(self) -> None:
        """Hold the kernel times against those of calls, which hold nothing else on the device.

        Of one call or two, each may have waited for a busy host.
        """
        if self.data != "device" or self._execution is None or len(self.totals) < LEAST_TOTALS:
            return
        launches = len(self._execution.kernel_events)
        doubted = unseen(min(self._kernel_ms), min(self.totals), launches)
        if doubted is not None:
            raise LaunchError(doubted)

    def outputs(self) -> Arrays:
        """Return the outputs of the last public call; of the first run, if there was none."""
        if not self._called:
            return {name: _on_host(array) for name, array in self._outputs.items()}
        operation, right = self.workload.operation, self.workload.expected
        results = named(operation.calls.returned or (operation.output,), self._result)
        return {name: _like(right[name], _on_host(result)) for name, result in results.items()}

    def profile(self) -> list[str]:
        """Return a line per launch of the last run: its time and what the driver says of it."""
        if self._execution is None:
            return []
        return [f"{time:.4g} ms  {kernel}" for kernel, time in self._execution.profile()]

    def measurement(self) -> Measurement:
        """Return the row, with event times and the share of the device's peak."""
        self.attempt(self._check_unseen)
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
            note=self._parts or SLOW_EVENTS * _far_above(kernel, total),
        )

    def close(self) -> None:
        """Let go of what is on the device."""
        self._inputs, self._outputs, self._result, self._called = {}, {}, None, False
        self._call = self._whole_run


def _like(right: np.ndarray[Any, Any], result: Any) -> np.ndarray[Any, Any]:
    """Return what a call returned in the right shape; LaunchError if it is of another size."""
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
