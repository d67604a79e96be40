"""Rows of our public calls beside those of others."""

from dataclasses import replace

import pytest
from resident_rows import INT32

from opencl_lab.lab.engine.implementations import Workload
from opencl_lab.lab.engine.ours import OpenCL
from opencl_lab.lab.ops.sort.operation import SORT
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
