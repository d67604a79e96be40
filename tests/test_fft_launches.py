"""Two steps of an FFT in one launch: shares, tickets, counters."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from fft_checks import FFT, GROUPS, bound, check, relative

from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.ops.fft.axes import AxesProblem
from opencl_lab.ops.fft.passes import fusion
from opencl_lab.ops.fft.problem import DftProblem
from opencl_lab.runtime.executable import Executable
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of


def joined(problem, units, patience=None, **config):
    """Return the executable of both steps in one launch, as planned for so many units."""
    device = select_device()
    if not device.capabilities.visible_writes or device.capabilities.inline_ptx:
        pytest.skip("units do not see what others write, or not by this form's fence")
    config = FFT.configure(problem, device, {"FORM": "vector", "SPLIT": "always", **config})
    plan = FFT.plan(problem, config, replace(device, compute_units=units))
    (launch,) = plan.launches
    assert len(launch.params["STEPS"]) == 2
    if patience is not None:
        launch = replace(launch, params={**launch.params, "MAX_POLLS": patience})
    return Executable(replace(plan, launches=(launch,)), session_of(device.queue()))


def check_joined(executable, problem, seeds=(3,), queue=None):
    queue = queue or select_device().queue()
    for seed in seeds:
        inputs = DFT.generate(problem, seed)
        expected = DFT.expected(problem, inputs)["spectrum"]
        actual = execute(executable, inputs, queue).outputs["spectrum"]
        assert relative(actual, expected) <= 2 * bound(problem.n, problem.dtype)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("units", "dtype"),
    [(1, "complex64"), (2, "complex128"), (3, "complex64"), (16, "complex128")],
)
def test_both_steps_in_one_launch(units, dtype):
    """Powers of two in place, others with scratch and blocks that overlap, one after the other."""
    dtype = np.dtype(dtype)
    for problem in (
        DftProblem(4096, dtype),
        DftProblem(10_000, dtype, batch=3, inverse=True, scale=1e-4),
        DftProblem(3**8, dtype, inverse=True),
        DftProblem(7 * 33, dtype, batch=2, scale=0.5),
    ):
        check_joined(joined(problem, units), problem, seeds=(3, 4))


@pytest.mark.parametrize("units", [2, 16])
def test_items_that_leave_are_not_missed(units):
    """Without patience, an item leaves as soon as others have not finished yet."""
    problem = DftProblem(4096)
    check_joined(joined(problem, units, patience=0, BLOCK=1), problem, seeds=range(20))


def test_no_item_waits_for_one_that_never_finishes():
    problem = DftProblem(4096)
    executable, queue = joined(problem, 2), select_device().queue()
    check_joined(executable, problem)
    (spec,) = executable.plan.with_role("zeros")
    counters = executable._zeros[queue.int_ptr][spec.name]
    planted = np.zeros(spec.shape, spec.dtype)
    planted[1] = 1000  # all tasks of the second share are claimed, and nobody finishes them
    cl.enqueue_copy(queue, counters, planted)
    execute(executable, DFT.generate(problem, 3), queue)  # ends, with half of a result
    left = np.ones_like(planted)
    cl.enqueue_copy(queue, left, counters)
    assert not left.any()
    check_joined(executable, problem)


def test_queues_do_not_share_the_counters_of_a_launch():
    problem, queue = DftProblem(2**14), select_device().queue()
    executable = joined(problem, 2)
    queues = [cl.CommandQueue(queue.context, queue.device) for _ in range(3)]
    with ThreadPoolExecutor(len(queues)) as threads:
        work = [threads.submit(check_joined, executable, problem, range(6), q) for q in queues]
        for done in work:
            done.result()


def joined_groups(problem, units, monkeypatch, ahead=None, patience=None, **config):
    """Return the executable of both steps by groups in one launch, as planned for a GPU."""
    device = select_device()
    if not device.capabilities.visible_writes:
        pytest.skip("groups do not see what others write")
    if ahead is not None:
        monkeypatch.setattr(fusion, "LOOK_AHEAD_POINTS", ahead * problem.n // units)
    config = {**GROUPS, "LOCAL_LIMIT": 128, "TRANSFORMS": 0, "FUSED": "always", **config}
    progressing = replace(device.capabilities, forward_progress=True)
    made = replace(device, kind="gpu", compute_units=units, capabilities=progressing)
    plan = FFT.plan(problem, FFT.configure(problem, device, config), made)
    (launch,) = plan.launches
    assert len(launch.params["STEPS"]) == 2
    assert ahead is None or launch.params["LOOK_AHEAD"] == 1 + ahead
    if patience is not None:
        launch.params["MAX_POLLS"] = patience
    return Executable(plan, session_of(device.queue()))


@pytest.mark.full
@pytest.mark.parametrize(
    ("ahead", "dtype"), [(0, "complex64"), (1, "complex128"), (3, "complex64")]
)
def test_both_steps_by_groups_in_one_launch(ahead, dtype, monkeypatch):
    """Tickets go to both steps in turns, and the counters are zero for the next launch.

    With as many groups in both steps or more in either, lanes past the end, and the inverse.
    """
    dtype, columns = np.dtype(dtype), ("TRANSFORMS", "LAST_TRANSFORMS")
    problems = (
        (DftProblem(64 * 64, dtype, batch=20), {"EXCHANGE": "two-phase"}),
        (DftProblem(25 * 125, dtype, batch=17, inverse=True, scale=0.1), {"EXCHANGE": "split"}),
        (DftProblem(27 * 27, dtype, batch=40), {"LOCAL_LIMIT": 32, **dict.fromkeys(columns, 8)}),
    )
    for problem, config in problems if ahead == 1 else problems[ahead // 3 : ahead // 3 + 2]:
        executable = joined_groups(problem, 2, monkeypatch, ahead, **config)
        check_groups(executable, problem)


def check_groups(executable, problem):
    """Check results, and that the counters are zero for the next launch."""
    check_joined(executable, problem, seeds=(3, 4))
    (spec,) = executable.plan.with_role("zeros")
    left = np.ones(spec.shape, spec.dtype)
    queue = select_device().queue()
    cl.enqueue_copy(queue, left, executable._zeros[queue.int_ptr][spec.name])
    assert not left.any()


@pytest.mark.parametrize(
    "problem",
    [DftProblem(64 * 64), DftProblem(32 * 32, inner=48), DftProblem(25 * 125, batch=3)],
    ids=["row", "columns", "rows"],
)
@pytest.mark.parametrize("patience", [None, 0])
def test_few_rows_and_strips_of_columns_in_one_launch(problem, patience, monkeypatch):
    """Without patience, each group of the second step does all of the first step of its part."""
    limit = {"LOCAL_LIMIT": 32} if problem.inner > 1 else {}
    check_groups(joined_groups(problem, 2, monkeypatch, patience=patience, **limit), problem)


@pytest.mark.parametrize("patience", [None, 0])
def test_rows_and_columns_of_planes_in_one_launch(patience, rng):
    """Groups of three or four columns, and twice: the counters are zero for the next launch."""
    device = select_device()
    if not device.capabilities.visible_writes:
        pytest.skip("groups do not see what others write")
    able = replace(device.capabilities, forward_progress=True)
    made = replace(device, kind="gpu", compute_units=8, capabilities=able)
    for shape in ((64, 48), (3, 48, 64)):
        axes, dtype = (len(shape) - 1, len(shape) - 2), np.dtype(np.complex64)
        problem = AxesProblem.of("c2c", shape, dtype, axes, (None, None), None, False)
        plan = problem.in_one_launch(made)
        if patience is not None:
            plan.launches[0].params["MAX_POLLS"] = patience
        executable = Executable(plan, session_of(device.queue()))
        for _ in range(2):
            signal = rng.random(plan.by_name["signal"].shape).astype(dtype)
            found = execute(executable, {"signal": signal}, device.queue()).outputs["spectrum"]
            right = np.fft.fft2(signal.reshape(shape))
            assert relative(found.reshape(shape), right) <= 2 * bound(64 * 48)


def test_columns_longer_than_the_cache():
    check(DftProblem(2**14, inner=3))
