"""Rows of our public calls beside those of others."""

from dataclasses import replace

import pytest
from resident_rows import INT32
from rich.console import Console

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
        ([1.0, 1.2, 1.1], [1.3, 1.5, 1.4], ""),
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
    console = Console(width=200)
    with console.capture() as capture:
        console.print(comparison_table([row], ""))
    assert (OTHER_RUNS in capture.get()) == (row.kernel_ms > row.total_ms.median)


@pytest.mark.parametrize(
    ("kernel_ms", "total_ms", "data", "said"),
    [
        (5.0, 55.0, "device", None),
        (5.0, 57.0, "device", "5.00 ms in kernels where the host's clock saw 57.0 ms"),
        (5.0, 57.0, "host", None),  # copies
        (60.0, 52.0, "host", "60.0 ms in kernels where the host's clock saw 50.0 ms"),
        (0.0, 1.0, "device", "0 ms in kernels"),
    ],
)
def test_kernel_times_are_doubted(device, kernel_ms, total_ms, data, said, monkeypatch):
    if not device.capabilities.event_timing:
        pytest.skip("no kernel times")
    row = measured(
        device, monkeypatch, [kernel_ms] * 3, [2 * total_ms, total_ms, 2 * total_ms], data
    )
    if said is None:
        assert row.ok
    else:
        assert row.status == "runtime" and said in row.reason


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
