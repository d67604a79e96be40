"""Rows of our public calls beside those of others."""

from dataclasses import replace

import pytest
from resident_rows import INT32, compared

from opencl_lab.lab.engine import ours
from opencl_lab.lab.engine.implementations import Workload
from opencl_lab.lab.engine.ours import OpenCL
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.lab.presentation.table import OTHER_RUNS, comparison_table
from opencl_lab.lab.reference.peers import OurCall
from opencl_lab.lab.registry import operations
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.runtime.arrays import is_device_array

# --- our public calls ---------------------------------------------------------------------------


def contestant(device, algorithm="radix", **options):
    problem = SortProblem(2000, INT32)
    inputs = SORT.generate(problem, 0)
    task = Workload(SORT, problem, inputs, SORT.expected(problem, inputs))
    options = {"calls": SORT.calls, **options}
    return OpenCL(task, device, algorithm, **options)


def test_total_times_are_those_of_public_calls_that_repeat(device, monkeypatch):
    """They are replayed, on a queue without events; runs with events are others."""
    ran = []
    run = type(SORT.solver).run

    def watched(self, problem, inputs, **options):
        ran.append(options["queue"] if "queue" in options else options["call"].queue)
        return run(self, problem, inputs, **options)

    monkeypatch.setattr(type(SORT.solver), "run", watched)
    (row,) = compared(device, n=2000, repeats=3, against="none").measurements
    side = SORT.side(SortProblem(2000, INT32), device)
    plain, timed = side.queue(), side.queue(profiling=True)
    assert row.ok and row.calls > 1 and row.total_ms.runs == 3
    assert ran.count(plain) <= 1  # recorded once, and replayed since
    kernels = device.capabilities.event_timing
    assert ran.count(timed) == 1 + 3 * ours.KERNEL_RUNS * kernels
    assert (row.kernel_ms is not None) == kernels and row.build_ms is not None
    if kernels:  # a time for each round, as the totals have
        times = row.kernel_times
        assert times.runs == 3 and times.min <= times.median == row.kernel_ms <= times.max


@pytest.mark.parametrize("data", ["host", "device"])
def test_wrong_results_of_back_to_back_calls_are_seen(device, data, monkeypatch):
    """The first run takes the whole road and is right."""

    def unsorted(a, *, queue=None, config=None):
        return a.copy()

    chosen = replace(
        SORT.calls, ours=lambda _, arrays, name: OurCall(unsorted, (arrays["keys"],), {})
    )
    item = contestant(device, calls=chosen, data=data)
    item.attempt(item.start)
    item.check()
    assert item.status == "correct"
    item.measure()
    item.verify()
    assert item.status == "correctness"
    item.close()


def measured(device, monkeypatch, kernel_ms, total_ms, data="host", host_ms=50.0):
    """Return our row where events and rows of calls take these times."""

    class Run:
        kernel_events, transfer_ms = (None, None), 0.0

        def __init__(self):
            self.kernel_ms = next(kernels)

    kernels, totals = iter(kernel_ms), iter(total_ms)
    item = contestant(device, data=data)
    item.attempt(item.start)
    monkeypatch.setattr(item, "_profiled", lambda: (host_ms, Run()))
    monkeypatch.setattr(item, "sample", lambda calls: next(totals))
    monkeypatch.setattr(ours, "KERNEL_RUNS", 1)
    item.call_ms = 60.0  # no call that warms up
    for _ in kernel_ms:
        item.measure()
    row = item.measurement()
    item.close()
    return row


@pytest.mark.parametrize(
    ("kernel_ms", "total_ms", "note"),
    [
        ([1.3, 1.5, 1.4], [1.2, 1.4, 1.3], ""),  # within the spread of both
        ([1.05, 1.06, 1.07], [1.0, 1.01, 1.02], ""),  # what events usually cost
        ([1.3, 1.5, 1.4], [1.0, 1.2, 1.1], ours.SLOW_EVENTS),
    ],
)
def test_kernels_beyond_the_calls_are_never_without_a_word(
    device, kernel_ms, total_ms, note, monkeypatch
):
    row = measured(replace(device, serial_side=None), monkeypatch, kernel_ms, total_ms)
    assert row.ok and row.note == note
    assert row.kernel_times == Times.of(kernel_ms) and row.total_ms == Times.of(total_ms)
    assert OTHER_RUNS in str(comparison_table([row], "").caption)


@pytest.mark.parametrize(
    ("kernel_ms", "total_ms", "data", "said"),
    [
        (5.0, 55.0, "device", ""),
        (5.0, 57.0, "device", "5.00 ms in kernels where the host's clock saw 57.0 ms"),
        (5.0, 57.0, "host", ""),  # copies
        (60.0, 52.0, "host", "60.0 ms in kernels where the host's clock saw 50.0 ms"),
    ],
)
def test_kernel_times_are_doubted(device, kernel_ms, total_ms, data, said, monkeypatch):
    if not device.capabilities.event_timing:
        pytest.skip("no kernel times")
    totals = [2 * total_ms, total_ms, 2 * total_ms]
    row = measured(device, monkeypatch, [kernel_ms] * 3, totals, data)
    assert (row.status == "runtime") == bool(said) and said in row.reason


SIZES = {"dft": {"n": 60, "batch": 2}}


@pytest.mark.few(2)
@pytest.mark.parametrize("operation", operations().values(), ids=lambda item: item.name)
def test_public_calls_give_what_each_algorithm_gives(operation, device):
    complete = operation.with_defaults(SIZES.get(operation.name, {operation.size_option: 24}))
    problem = operation.problem(**complete)
    inputs = operation.generate(problem, 0, **complete)
    task = Workload(operation, problem, inputs, operation.expected(problem, inputs))
    tried = 0
    for algorithm in operation.algorithms:
        if algorithm.supports(problem, device) is not None:
            continue
        for data in ("host", "device"):
            item = OpenCL(task, device, algorithm.name, calls=operation.calls, data=data)
            item.attempt(item.start)
            assert item._call != item._whole_run, "there is a public call"
            item.attempt(item.warm_up)
            results = item._result if isinstance(item._result, tuple) else (item._result,)
            assert all(is_device_array(result) == (data == "device") for result in results)
            item.verify()
            assert item.status == "correct", (item.name, item.reason)
            item.close()
            tried += 1
    assert tried >= 2
