"""Measuring an operation over the ranks of MPI: each runs this, and rank 0 has the result."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from opencl_lab import distributed
from opencl_lab.core.device import Device
from opencl_lab.distributed import DistArray, agreed, collective, phases, same, slab
from opencl_lab.lab.engine.implementations import Workload
from opencl_lab.lab.engine.request import Point, check_host_memory
from opencl_lab.lab.engine.row import OVER_RANKS, Measurement, OverRanks
from opencl_lab.lab.engine.runner import Comparison
from opencl_lab.lab.measuring.back_to_back import back_to_back
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.reference.peers import RanksCall, named

REPEATS = 5
LEAST_SAMPLES = 2
BUDGET = 20.0
"""Seconds of all samples, without a number of repeats."""


def _over_ranks(spent: list[tuple[float, float, float]]) -> OverRanks:
    """Return where the time went, by the seconds of each rank that `_apart` returns."""
    total, communication, waiting = np.array(spent).T
    compute = total - communication - waiting
    whole, longest = float(total.sum()), float(compute.max() / max(compute.mean(), 1e-12))
    return OverRanks(
        float(compute.sum()) / whole,
        float(communication.sum()) / whole,
        float(waiting.sum()) / whole,
        longest - 1,
    )


@collective
def measure(
    point: Point,
    comm: Any,
    device: Device,
    repeats: int | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, label: None,
) -> Comparison:
    """Distribute the inputs of a point, make its calls, and check the result on rank 0.

    A sample is the time from a barrier until the last rank has its part of the result. Ranks other
    than 0 get the row without outputs.

    Raises
    ------
    InvalidProblem
        On all ranks, if the problem is none that is distributed.
    """
    chosen, problem = point.operation, point.problem
    same(comm, (chosen.name, problem.as_dict(), repeats), "the problem")
    steps = (repeats or REPEATS) + 3
    progress(0, steps, "input")
    agreed(comm, lambda: None if comm.rank else check_host_memory(point, device))
    inputs = point.make_inputs() if comm.rank == 0 else {}
    make = chosen.calls.over_ranks
    assert make is not None  # other operations do not have the option
    made = agreed(comm, lambda: make(problem, inputs) if comm.rank == 0 else None)
    call = _shared(comm, made, chosen.calls.resident)
    function = operator.attrgetter(call.name)(distributed)

    def run() -> Any:
        return function(*call.arrays, **call.options, device=device)

    progress(1, steps, "first run")
    run()
    samples: list[float] = []
    begin = time.perf_counter()
    while len(samples) < (repeats or REPEATS):
        progress(2 + len(samples), steps, f"run {len(samples) + 1}")
        samples.append(_timed(comm, run))
        spent = comm.bcast(time.perf_counter() - begin, root=0)
        if repeats is None and len(samples) >= LEAST_SAMPLES and spent > BUDGET:
            break
    result, spent = _apart(comm, run)
    progress(steps - 1, steps, "right result on the host")
    whole = tuple(one.gather(0) for one in (result if isinstance(result, tuple) else (result,)))
    row = Measurement(
        OVER_RANKS,
        "mpi",
        OVER_RANKS,
        threads=comm.size,
        workers=comm.size,
        total_ms=Times.of([1e3 * sample for sample in samples]),
        work=problem.work,
    )
    if comm.rank:
        return Comparison(Workload(chosen, problem, {}, {}), [row], {}, [], {})
    workload = Workload(chosen, problem, inputs, chosen.expected(problem, inputs))
    names = chosen.calls.returned or (chosen.output,)
    found = named(names, whole if len(whole) > 1 else whole[0])
    outputs = {name: array.reshape(workload.expected[name].shape) for name, array in found.items()}
    difference = chosen.compare(problem, inputs, workload.expected, outputs)
    row = replace(row, difference=difference, over_ranks=_over_ranks(spent))
    if not difference.ok:
        row = replace(row, status="correctness", reason=str(difference))
    return Comparison(workload, [row], outputs if row.ok else {}, [], {})


def _shared(comm: Any, call: RanksCall | None, arrays_by_name: tuple[str, ...]) -> RanksCall:
    """Return rank 0's call on every rank, its arrays distributed along their first long axis."""
    said = None
    if call is not None:
        given = {name for name, value in call.options.items() if value is not None}
        spread = given & set(arrays_by_name)
        plain = {name: value for name, value in call.options.items() if name not in spread}
        said = call.name, len(call.arrays), plain, spread
    name, count, plain, spread = comm.bcast(said, root=0)

    def scattered(array: Any) -> DistArray:
        shape = comm.bcast(None if array is None else array.shape, root=0)
        axis = next((i for i, n in enumerate(shape) if n >= comm.size), 0)
        return DistArray.from_global(array, slab(axis), comm, root=0)

    arrays = [scattered(None if call is None else call.arrays[i]) for i in range(count)]
    more = {one: scattered(None if call is None else call.options[one]) for one in sorted(spread)}
    return RanksCall(name, tuple(arrays), {**plain, **more})


def _timed(comm: Any, call: Callable[[], Any]) -> float:
    comm.Barrier()
    _, seconds = back_to_back(call, 1)
    return float(max(comm.allgather(seconds)))


def _apart(comm: Any, call: Callable[[], Any]) -> tuple[Any, list[tuple[float, float, float]]]:
    """Make a call in which waiting is told apart from communication.

    Return its result and, of each rank, the seconds in all, of communication and of waiting.
    """
    phases.seconds.clear()
    phases.apart = True
    comm.Barrier()
    begin = time.perf_counter()
    try:
        result = call()
        now = time.perf_counter()
        comm.Barrier()
        phases.seconds["waiting"] += time.perf_counter() - now
    finally:
        phases.apart = False
    total = time.perf_counter() - begin
    mine = total, phases.seconds["communication"], phases.seconds["waiting"]
    return result, comm.allgather(mine)
