"""The costs of small calls on both sides of a CPU: in the calling thread and on all threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from opencl_lab.core.device import Device, SmallCalls
from opencl_lab.drivers.pocl_builds import unknown_build
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.lab.doctor.probing import Answers
from opencl_lab.lab.measuring.back_to_back import back_to_back
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.registry import operations
from opencl_lab.selftest.child import Trying

WARM_UP = 6
ROUNDS = 15
CALLS = 50  # in a round


def small_calls(device: Device) -> Answers:
    """Measure a problem of each operation that takes about as long on either side."""
    if device.serial_side is None:
        build = unknown_build(device)
        why = f": the places for that, and its target, are not known in {build}" if build else ""
        yield Verdict("no", f"it has no serial side{why}")
        return
    found = {}
    for name, operation in operations().items():
        yield Trying(f"small calls of {name}")
        costs = _measured(operation, device, device.serial_side)
        if costs is not None:
            found[name] = costs
    words = (
        f"{name} {costs.slowness:.2f} of its estimate, wait {costs.wait_us:.0f} us"
        for name, costs in found.items()
    )
    value = {name: asdict(costs) for name, costs in found.items()}
    yield Verdict("ok", "; ".join(words), value)


def _measured(operation: Operation[Any], device: Device, serial: Device) -> SmallCalls | None:
    if not operation.small:
        return None
    problem = operation.problem(**operation.small)
    alone_us = operation.solver.serial_us(problem)
    inputs = operation.generate(problem, 0, **operation.small)
    queue = serial.queue(profiling=True)
    kernel_us = min(
        operation.run(problem, inputs, queue=queue).kernel_ms * 1e3 for _ in range(WARM_UP + ROUNDS)
    )
    call = operation.calls.usual(problem, inputs)
    public = partial(call.function, *call.arrays, **call.explicit())
    alone, together = partial(public, device=serial), partial(public, queue=device.queue())
    for side in (alone, together):
        _call_us(side, WARM_UP)
    rounds = [(_call_us(alone, CALLS), _call_us(together, CALLS)) for _ in range(ROUNDS)]
    beyond_us = min(threads for _, threads in rounds) - min(caller for caller, _ in rounds)
    slowness = kernel_us / alone_us
    parallel_us = operation.solver.parallel_us(problem, device.compute_units)
    # The kernels are a part of both times, and not the same one.
    return SmallCalls(slowness, max(0.0, beyond_us + slowness * (alone_us - parallel_us)))


def _call_us(call: Callable[[], Any], count: int) -> float:
    _, seconds = back_to_back(call, count)
    return seconds * 1e6 / count
