"""The cost of a call, and where its time goes, compared with the launch baseline and with peers.

Calls are made back to back with one wait at the end, for ours and for peers. The time of a single
call contains gaps that back-to-back calls do not have.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Literal, TypeAlias

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.queues import new_kernel, new_program
from opencl_lab.lab.engine.request import Point, Request, check_host_memory
from opencl_lab.lab.engine.row import Side
from opencl_lab.lab.measuring.back_to_back import back_to_back, calls_for
from opencl_lab.lab.measuring.rounds import Rounds, quiesce
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.lab.reference.peers import Calls, OurCall, libraries
from opencl_lab.ops.prepared import FUNCTIONS, prepare
from opencl_lab.ops.solver import Problem
from opencl_lab.runtime.arrays import to_device
from opencl_lab.runtime.executable import Executable
from opencl_lab.runtime.execute import device_call
from opencl_lab.runtime.session import session_of

OURS = "opencl_lab"
PREPARED = "prepared, with out="
LAUNCHES = "enqueue only"
ALLOCATION = "an allocation of its result"
SAMPLE_SECONDS = 0.05
LEAST_CALLS = 5
KERNEL_RUNS = 9
NOTHING = "__kernel void nothing(void) {}"

CallSide: TypeAlias = Side | Literal[""]


@dataclass(frozen=True)
class CallCost:
    """The cost of one kind of call."""

    what: str
    side: CallSide  # where the arrays are; empty without arrays
    call_us: float  # microseconds per call of a sample, including the wait at the end
    host_us: float  # the same until the last call has returned, which may be before it is done
    calls: int  # of a sample


@dataclass(frozen=True)
class CallReport:
    """All costs of one problem."""

    problem: Problem
    costs: tuple[CallCost, ...]
    launches: int
    kernel_us: float  # of its kernels, by their events
    result_bytes: int
    left_out: Mapping[str, str]  # why peers are missing
    in_caller: bool = False  # whether calls on host arrays run in the calling thread

    def cost(self, what: str, side: CallSide = "") -> CallCost:
        """Return one of the costs."""
        return next(item for item in self.costs if (item.what, item.side) == (what, side))

    def shares(self) -> dict[str, float]:
        """Return where the time of a call on device arrays goes, in microseconds.

        ``launches`` is the host's time to enqueue the same launches with pooled memory,
        ``memory`` the driver's time to allocate a result of this size, ``python`` the remaining
        time until the call returns, and ``waiting`` the time from then until the device is done.
        """
        ours, direct = self.cost(OURS, "device"), self.cost(LAUNCHES, "device")
        memory = min(self.cost(ALLOCATION).call_us, max(0.0, ours.host_us - direct.host_us))
        return {
            "launches": direct.host_us,
            "memory": memory,
            "python": max(0.0, ours.host_us - direct.host_us - memory),
            "waiting": max(0.0, ours.call_us - ours.host_us),
        }

    def as_dict(self) -> dict[str, Any]:
        """Return all costs as JSON-able values."""
        return {
            "problem": self.problem.as_dict(),
            "calls": [vars(item).copy() for item in self.costs],
            "launches": self.launches,
            "kernel_us": self.kernel_us,
            "result_bytes": self.result_bytes,
            "shares_us": self.shares(),
            "left_out": dict(self.left_out),
            "in_caller": self.in_caller,
        }


@dataclass(frozen=True)
class _Caller:
    """A kind of call to be timed."""

    what: str
    side: CallSide
    call: Callable[[], Any]
    finish: Callable[[], None] = lambda: None

    def sample(self, calls: int) -> tuple[float, float]:
        """Return the seconds until the last call has returned, and until all are done."""
        return back_to_back(self.call, calls, self.finish)

    def calls_in_a_sample(self) -> int:
        """Warm up, and return the number of calls in a sample."""
        self.sample(2)
        _, seconds = self.sample(3)
        return calls_for(SAMPLE_SECONDS, seconds / 3, LEAST_CALLS)


def measure_calls(point: Point, device: Device, *, seed: int = 0) -> CallReport:
    """Measure public calls, their launches alone, the launch baseline and peers in turns.

    Medians of samples are reported, as many as the request of the point says, see `Rounds`. `seed`
    is that of their order.
    """
    chosen, problem, calls = point.operation, point.problem, point.operation.calls
    check_host_memory(point, device)
    inputs = point.make_inputs()
    queue = device.queue()
    on_device = {name: to_device(np.ascontiguousarray(a), queue) for name, a in inputs.items()}
    timed = device.queue(profiling=True)
    runs = [
        chosen.run(problem, on_device, algorithm=calls.algorithm, queue=timed)
        for _ in range(KERNEL_RUNS)
    ]
    plan = runs[0].executable.plan
    peers, left_out = _peers(calls, problem, inputs, device)
    callers = [*_ours(calls, problem, inputs, on_device, runs[0].executable, device), *peers]
    return CallReport(
        problem,
        _in_turns(callers, point.request, seed),
        len(plan.launches),
        median(run.kernel_ms for run in runs[2:]) * 1e3,
        sum(item.nbytes for item in plan.with_role("out")),
        left_out,
        chosen.side(problem, device).is_serial,
    )


def _ours(
    calls: Calls,
    problem: Problem,
    inputs: Arrays,
    on_device: Mapping[str, Any],
    executable: Executable,
    device: Device,
) -> list[_Caller]:
    """Return the public call on arrays of both sides, and the operations that it consists of."""
    queue = device.queue()
    baseline = LaunchBaseline(queue)
    resident = {**inputs, **{name: on_device[name] for name in on_device if name in calls.resident}}
    result_bytes = sum(item.nbytes for item in executable.plan.with_role("out"))
    here, there = calls.usual(problem, inputs), calls.usual(problem, resident)
    on_host = partial(here.function, *here.arrays, **here.explicit(), device=device)
    public = partial(there.function, *there.arrays, **there.explicit())
    return [
        _Caller(OURS, "device", public, queue.finish),
        *_prepared(there, queue),
        _Caller(OURS, "host", on_host),
        _Caller(LAUNCHES, "device", baseline.launches(executable, on_device), baseline.finish),
        _Caller("a bare launch", "", baseline.launch, baseline.finish),
        _Caller("a bare launch, waited for", "", baseline.launch_and_finish),
        _Caller(ALLOCATION, "", partial(baseline.allocate, result_bytes), baseline.finish),
    ]


def _prepared(call: OurCall, queue: Any) -> list[_Caller]:
    """Return the prepared call; none if the size of the result depends on the data."""
    if call.function.__name__ not in FUNCTIONS:
        return []
    prepared = prepare(call.function, *call.arrays, **call.explicit())
    out = prepared(*call.arrays)
    return [_Caller(PREPARED, "device", partial(prepared, *call.arrays, out=out), queue.finish)]


def _peers(
    calls: Calls, problem: Problem, inputs: Arrays, device: Device
) -> tuple[list[_Caller], dict[str, str]]:
    """Return the calls of other libraries, and why some are left out."""
    callers, left_out = [], {}
    given = calls.shaped(problem, inputs)
    for library, module in libraries(cuda=device.compute_capability is not None):
        if library.name not in calls.peers:
            continue
        try:
            arrays = {name: library.put(module, array) for name, array in given.items()}
            call = partial(calls.peers[library.name], problem, module, arrays)
            caller = _Caller(library.name, library.side, call, partial(library.finish, module))
            caller.sample(1)
            callers.append(caller)
        except Exception as error:  # libraries raise various errors
            left_out[f"{library.name} ({library.side})"] = str(error).split("\n")[0]
    return callers, left_out


def _in_turns(callers: Sequence[_Caller], request: Request, seed: int) -> tuple[CallCost, ...]:
    counts = [caller.calls_in_a_sample() for caller in callers]
    totals, returns = ([list[float]() for _ in callers] for _ in range(2))
    for turn in Rounds(totals, request.repeats, request.budget, seed=seed, quiesce=quiesce):
        caller = callers[turn.participant]
        caller.sample(1)
        returned, total = caller.sample(counts[turn.participant])
        totals[turn.participant].append(total)
        returns[turn.participant].append(returned)
    return tuple(
        CallCost(
            caller.what,
            caller.side,
            median(totals[index]) / counts[index] * 1e6,
            median(returns[index]) / counts[index] * 1e6,
            counts[index],
        )
        for index, caller in enumerate(callers)
    )


class LaunchBaseline:
    """Operations to time on a queue without profiling, in the context of another queue."""

    def __init__(self, queue: cl.CommandQueue):
        self.context = queue.context
        self.queue = cl.CommandQueue(queue.context, queue.device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # a build log is not a failure
            program = new_program(queue.context, NOTHING).build()
        self._nothing = new_kernel(program, "nothing")

    def finish(self) -> None:
        """Wait for all enqueued work."""
        self.queue.finish()

    def launch(self) -> None:
        """Enqueue an empty kernel of one work-item."""
        cl.enqueue_nd_range_kernel(self.queue, self._nothing, (1,), (1,))

    def launch_and_finish(self) -> None:
        """Enqueue that kernel and wait for it."""
        self.launch()
        self.queue.finish()

    def allocate(self, nbytes: int) -> Any:
        """Return a new buffer of the driver."""
        return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(nbytes, 1))

    def launches(self, executable: Executable, inputs: Mapping[str, Any]) -> Callable[[], None]:
        """Return a function that enqueues an executable on device arrays, with pooled results.

        It is the least that a call can cost from Python: no array is made, checked or looked up.
        """
        pool = session_of(self.queue).pool(self.queue)
        fixed = [array.base_data for array in inputs.values()]
        outputs = executable.plan.with_role("out")
        fresh = [max(spec.nbytes, 1) for spec in outputs]
        call = device_call(executable, self.queue, (*inputs, *(spec.name for spec in outputs)))

        def enqueue() -> None:
            blocks = list(map(pool.take, fresh))
            call.enqueue(fixed + blocks)
            for nbytes, block in zip(fresh, blocks, strict=True):
                pool.give(nbytes, block)

        return enqueue
