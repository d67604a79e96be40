"""The FFT: every length, form, axis and norm, against NumPy in double precision."""

from __future__ import annotations

import inspect
import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opencl_lab as ol
from opencl_lab.device import Capabilities, Device, select_device
from opencl_lab.errors import InvalidConfig, InvalidProblem
from opencl_lab.fourier import costs, local_memory
from opencl_lab.fourier.factors import (
    RADICES,
    is_smooth,
    largest_prime,
    next_smooth,
    pairs_of,
    radices_of,
)
from opencl_lab.operations.dft import transform
from opencl_lab.operations.dft.operation import DFT
from opencl_lab.operations.dft.problem import DftProblem
from opencl_lab.plan import check_plan
from opencl_lab.reference.execute import prepare
from opencl_lab.runtime.executable import Executable
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import default_queue, session_of
from opencl_lab.template import render

FFT = DFT.algorithm("fft")
EPS = {"complex64": 2.0**-24, "complex128": 2.0**-53}
GROUPS = {"FORM": "groups", "POINTS": 8, "MAX_RADIX": 8, "WG_SIZE": 16, "TRANSFORMS": 4}
SMALL_GROUPS = {**GROUPS, "LOCAL_LIMIT": 16}
FORMS = {"lanes": {"FORM": "lanes"}, "groups": GROUPS}


def bound(n, dtype="complex64"):
    """Twice what a good FFT may lose: a few roundings for each doubling of the length."""
    return EPS[np.dtype(dtype).name] * (1.0 + 0.6 * math.log2(max(n, 2)))


def relative(actual, expected):
    return np.linalg.norm(actual - expected) / max(np.linalg.norm(expected), 1e-300)


def check(problem, config=None, seed=3):
    inputs = DFT.generate(problem, seed)
    expected = DFT.expected(problem, inputs)["spectrum"]
    run = DFT.run(
        problem, inputs, algorithm="fft", config=config, queue=default_queue(select_device())
    )
    actual = run.outputs["spectrum"]
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    # Bluestein's convolution is three transforms of more than twice the length.
    size = problem.n if is_smooth(problem.n) else 64 * problem.n
    assert relative(actual, expected) <= 2 * bound(size, problem.dtype)


def random_signal(rng, shape, dtype="complex64"):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


# ------------------------------------------------------------------- kernels


@pytest.mark.parametrize("form", FORMS)
def test_every_butterfly(form):
    for radix in RADICES:
        check(DftProblem(radix, batch=11), {**FORMS[form], "MAX_RADIX": 32})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", EPS)
def test_lengths_of_many_radices(form, dtype):
    for n, batch in ((360, 9), (1001, 2), (1024, 2)):
        check(DftProblem(n, np.dtype(dtype), batch), FORMS[form])


@pytest.mark.parametrize("dtype", EPS)
def test_what_is_fetched_ahead_changes_no_result(dtype, monkeypatch):
    monkeypatch.setattr(costs, "CACHED", 0)
    for n, batch, inner in ((1024, 5, 1), (64, 3, 1), (45, 21, 1), (7, 9, 1), (48, 2, 21)):
        check(DftProblem(n, np.dtype(dtype), batch, inner), {"FORM": "lanes"})
    for n in (1 << 12, 5**5):
        check(DftProblem(n, np.dtype(dtype), 2), {"FORM": "lanes", "SPLIT": "always"})


@pytest.mark.parametrize("inner", [3, 8, 21])
@pytest.mark.parametrize("form", FORMS)
def test_columns_in_place_of_rows(form, inner):
    for n in (48, 17):
        check(DftProblem(n, batch=2, inner=inner, inverse=True, scale=1 / n), FORMS[form])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [47, 1009])
def test_lengths_without_a_butterfly(form, n):
    check(DftProblem(n, batch=2, inverse=n == 47, scale=0.25), FORMS[form])
    check(DftProblem(n, np.dtype("complex128")), FORMS[form])


@pytest.mark.parametrize("kind", ["r2c", "c2r"])
@pytest.mark.parametrize("form", FORMS)
def test_real_signals(form, kind):
    for n, batch in ((1, 2), (2, 1), (15, 3), (15, 1), (96, 2), (97, 3)):
        check(DftProblem(n, batch=batch, kind=kind, scale=0.5), FORMS[form])
    check(DftProblem(30, np.dtype("complex128"), 3, kind=kind), FORMS[form])


def test_spectra_of_real_signals_up_to_the_largest_float(rng, queue):
    """No sum on the way is larger than the frequencies."""
    tone = np.cos(4 * np.pi * np.arange(15) / 15)
    for signal in (rng.standard_normal((3, 96, 1)), tone.reshape(1, 15, 1)):
        batch, n, _ = signal.shape
        spectrum = np.fft.rfft(signal, axis=1)
        largest = max(np.abs(spectrum.real).max(), np.abs(spectrum.imag).max())
        signal = (signal * (0.999 * np.finfo(np.float32).max / largest)).astype(np.float32)
        right = np.fft.rfft(signal.astype(np.float64), axis=1)
        for config in (*FORMS.values(), SMALL_GROUPS):
            run = DFT.run(
                DftProblem(n, batch=batch, kind="r2c"), {"signal": signal}, algorithm="fft",
                config=config, queue=queue,
            )  # fmt: skip
            assert relative(run.outputs["spectrum"].astype(np.complex128), right) <= 2 * bound(n)


@pytest.mark.parametrize("exchange", ["parts", "pairs", "turns"])
@pytest.mark.parametrize("inverse", [False, True])
def test_real_rows_that_a_group_holds_take_one_launch(inverse, exchange):
    """Frequencies meet their opposites in local memory, or rows have no imaginary part."""
    config = {**GROUPS, "EXCHANGE": exchange}
    for n, launches in ((96, 1), (90, 1), (99, 1), (97, 1), (16, 2), (34, 2), (3**9, 6)):
        problem = DftProblem(n, batch=3, kind="c2r" if inverse else "r2c", scale=0.5)
        plan = FFT.plan(problem, FFT.configure(problem, select_device(), config), select_device())
        assert len(plan.launches) == launches
        if n < 3**9:
            check(problem, config)


@pytest.mark.parametrize("dtype", EPS)
def test_rows_of_odd_length_do_not_disturb_each_other(dtype, queue):
    """Two of them share a transform, whatever their sizes, and if one is not finite."""
    rng = np.random.default_rng(0)
    real = np.zeros(1, dtype).real.dtype
    most = 1e30 if real == np.float32 else 1e150
    sizes = np.array([1e9, 1e-9, np.nan, 1, 1 / most, most, 0, np.inf, 1])
    for name, shape in (("rfft", (9, 45)), ("irfft", (9, 23))):
        x = rng.standard_normal(shape)
        x = x + 1j * rng.standard_normal(shape) if name == "irfft" else x
        x[np.isfinite(sizes)] *= sizes[np.isfinite(sizes), None]
        x[:, 5][~np.isfinite(sizes)] = sizes[~np.isfinite(sizes)]
        x = x.astype(dtype if name == "irfft" else real)
        arguments = {"n": 45} if name == "irfft" else {}
        with np.errstate(invalid="ignore"):
            right = getattr(np.fft, name)(x.astype("c16" if name == "irfft" else "f8"), **arguments)
        for row, expected in zip(getattr(ol.fft, name)(x, **arguments), right, strict=True):
            if np.all(np.isfinite(expected)):
                assert relative(row, expected) <= 2 * bound(45, dtype)
            else:
                assert not np.isfinite(row).any()


@pytest.mark.parametrize("kind", ["r2c", "c2r"])
@pytest.mark.parametrize("form", FORMS)
def test_scales_of_long_rows_are_found_in_parts(form, kind, queue):
    n = 3**9
    sizes = np.array([1e9, 1e-9, 0, 1, 1])
    problem = DftProblem(n, batch=len(sizes), kind=kind)
    inputs = DFT.generate(problem, 5)
    signal = inputs["signal"]
    signal[:, -1] = 10  # the largest comes last
    signal *= sizes[:, None, None].astype(signal.real.dtype)
    signal[4, -2] = np.inf
    expected = DFT.expected(problem, inputs)["spectrum"]
    run = DFT.run(problem, inputs, algorithm="fft", config=FORMS[form], queue=queue)
    actual = run.outputs["spectrum"]
    for row in (0, 1, 3):
        assert relative(actual[row], expected[row]) <= 2 * bound(n), row
    assert not np.any(actual[2])
    assert np.all(np.isnan(actual[4]))
    device = select_device()
    plan = FFT.plan(problem, FFT.configure(problem, device, FORMS[form]), device)
    *parts, whole = (launch for launch in plan.launches if launch.kernel == "weigh")
    assert len(parts) == 1 and parts[0].arguments["parts"] > 1 == whole.arguments["parts"]
    groups = [launch.global_size[0] // launch.work_group for launch in (*parts, whole)]
    assert groups == [len(sizes) * parts[0].arguments["parts"], len(sizes)]
    assert (whole.work_group > 1) == (form == "groups") == (whole.local_memory > 0)


@pytest.mark.parametrize(
    "config",
    [
        {"MAX_RADIX": 4},
        {"MAX_RADIX": 16},
        {"VECTOR_WIDTH": 4},
        {"VECTOR_WIDTH": 2, "MAX_RADIX": 16},
        {"SPLIT": "always", "BLOCK": 1, "VECTOR_WIDTH": 2},
        {"SPLIT": "always", "ITEMS_PER_UNIT": 1},
        {**GROUPS, "EXCHANGE": "pairs"},
        {**GROUPS, "EXCHANGE": "turns", "LOCAL_PAD": 16},
        {**GROUPS, "MAX_RADIX": 16, "POINTS": 16},
        {**GROUPS, "TRANSFORMS": 1, "WG_SIZE": 1},
        SMALL_GROUPS,
        {**SMALL_GROUPS, "TRANSFORMS": 0, "LAST_TRANSFORMS": 2},
        {**SMALL_GROUPS, "FEW_ROOTS": False, "POINTS": 4},
    ],
)
def test_configurations(config):
    for n, batch, inner in ((720, 2, 1), (240, 1, 5)):
        check(DftProblem(n, batch=batch, inner=inner), config)


@pytest.mark.parametrize("exchange", ["auto", "parts", "turns"])
def test_convolutions_in_local_memory(exchange):
    """Odd lengths in one launch, on columns too; several where the group has no room."""
    config = {**GROUPS, "EXCHANGE": exchange}
    check(DftProblem(34, batch=3, inner=5, inverse=True, scale=0.5), config)
    for limit, launches in ((128, 1), (64, 7)):
        problem = DftProblem(47, batch=3)
        config = {**config, "LOCAL_LIMIT": limit}
        settled = FFT.configure(problem, select_device(), config)
        assert len(FFT.plan(problem, settled, select_device()).launches) == launches
        check(problem, config)


def test_three_and_four_steps_with_lanes():
    check(DftProblem(16 * 15 * 16, batch=2), SMALL_GROUPS)
    check(DftProblem(16 * 9 * 10, batch=2, inner=3, inverse=True), SMALL_GROUPS)
    check(DftProblem(2**13, batch=2), SMALL_GROUPS)


@pytest.mark.parametrize("n", [2**14, 2**17, 3**10, 5**6])
def test_long_single_transforms(n):
    check(DftProblem(n))


def joined(problem, units, patience=None, **config):
    """Return the executable of both steps in one launch, as planned for so many units."""
    device = select_device()
    if not device.capabilities.visible_writes or device.capabilities.inline_ptx:
        pytest.skip("units do not see what others write, or not by this form's fence")
    config = FFT.configure(problem, device, {"FORM": "lanes", "SPLIT": "always", **config})
    plan = FFT.plan(problem, config, replace(device, compute_units=units))
    (launch,) = plan.launches
    assert len(launch.params["STEPS"]) == 2
    if patience is not None:
        launch = replace(launch, params={**launch.params, "PATIENCE": patience})
    return Executable(replace(plan, launches=(launch,)), session_of(default_queue(device)))


def check_joined(executable, problem, seeds=(3,), queue=None):
    queue = queue or default_queue(select_device())
    for seed in seeds:
        inputs = DFT.generate(problem, seed)
        expected = DFT.expected(problem, inputs)["spectrum"]
        actual = execute(executable, inputs, queue).outputs["spectrum"]
        assert relative(actual, expected) <= 2 * bound(problem.n, problem.dtype)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("units", [1, 2, 3, 16])
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
    executable, queue = joined(problem, 2), default_queue(select_device())
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
    problem, queue = DftProblem(2**14), default_queue(select_device())
    executable = joined(problem, 2)
    queues = [cl.CommandQueue(queue.context, queue.device) for _ in range(3)]
    with ThreadPoolExecutor(len(queues)) as threads:
        work = [threads.submit(check_joined, executable, problem, range(6), q) for q in queues]
        for done in work:
            done.result()


def joined_groups(problem, units, monkeypatch, ahead=None, **config):
    """Return the executable of both steps by groups in one launch, as planned for a GPU."""
    device = select_device()
    if not device.capabilities.visible_writes:
        pytest.skip("groups do not see what others write")
    if ahead is not None:
        monkeypatch.setattr(local_memory, "AHEAD_POINTS", ahead * problem.n // units)
    config = {**GROUPS, "LOCAL_LIMIT": 128, "TRANSFORMS": 0, "JOIN": "always", **config}
    progressing = replace(device.capabilities, forward_progress=True)
    made = replace(device, kind="gpu", compute_units=units, capabilities=progressing)
    plan = FFT.plan(problem, FFT.configure(problem, device, config), made)
    (launch,) = plan.launches
    assert len(launch.params["STEPS"]) == 2
    assert ahead is None or launch.params["AHEAD"] == 1 + ahead
    return Executable(plan, session_of(default_queue(device)))


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_both_steps_by_groups_in_one_launch(ahead, dtype, monkeypatch):
    """Tickets go to both steps in turns, and the counters are zero for the next launch.

    With as many groups in both steps or more in either, lanes past the end, and the inverse.
    """
    dtype, columns = np.dtype(dtype), ("TRANSFORMS", "LAST_TRANSFORMS")
    for problem, config in (
        (DftProblem(64 * 64, dtype, batch=20), {"EXCHANGE": "turns"}),
        (DftProblem(25 * 125, dtype, batch=17, inverse=True, scale=0.1), {"EXCHANGE": "parts"}),
        (DftProblem(27 * 27, dtype, batch=40), {"LOCAL_LIMIT": 32, **dict.fromkeys(columns, 8)}),
    ):
        executable = joined_groups(problem, 2, monkeypatch, ahead, **config)
        check_joined(executable, problem, seeds=(3, 4))
        (spec,) = executable.plan.with_role("zeros")
        left = np.ones(spec.shape, spec.dtype)
        queue = default_queue(select_device())
        cl.enqueue_copy(queue, left, executable._zeros[queue.int_ptr][spec.name])
        assert not left.any()


def test_columns_longer_than_the_cache():
    check(DftProblem(2**14, inner=3))


# -------------------------------------------------------- planning, no device


DEVICES = [
    Device(
        "made",
        kind,
        compute_units=units,
        max_allocation=1 << 40,
        global_memory=1 << 42,
        max_work_items=(group,) * 3,
        capabilities=Capabilities(
            fp64=True,
            max_work_group=group,
            local_memory=local,
            vector_bytes=vector,
            visible_writes=group >= 1024,
            forward_progress=group == 1024,
        ),
    )
    for kind, units, group, local, vector in (
        ("gpu", 132, 1024, 48 << 10, 16),
        ("gpu", 8, 64, 8 << 10, 16),
        ("cpu", 2, 4096, 1 << 20, 16),
        ("cpu", 64, 1, 32 << 10, 64),
    )
]
PROBLEMS = [
    DftProblem(n, np.dtype(dtype), batch, inner)
    for dtype in EPS
    for n, batch, inner in (
        (256, 65_536, 1),
        (4096, 4096, 1),
        (32_768, 512, 1),
        (2**24, 1, 1),
        (2**27, 1, 1),
        (3**10, 300, 1),
        (1009, 7, 1),
        (1000, 1, 700),
        (10_000, 2, 100),
    )
]


def steps_of(launch):
    """Yield a launch with the parameters and arguments of each step in it."""
    if "STEPS" not in launch.params:
        yield launch, launch.params, launch.arguments
        return
    for step, params in enumerate(launch.params["STEPS"]):
        names = ("source", "target")
        yield launch, params, {name: launch.arguments[f"{name}_{step}"] for name in names}


@pytest.mark.parametrize("made", DEVICES, ids=lambda d: f"{d.kind}-{d.max_work_items[0]}")
def test_plans_fit_their_devices(made):
    for problem in PROBLEMS:
        plan = FFT.plan(problem, FFT.configure(problem, made), made)
        check_plan(plan, made)
        written = {buffer.name for buffer in plan.buffers if buffer.role in ("in", "table")}
        parts = [part for launch in plan.launches for part in steps_of(launch)]
        for launch, params, arguments in parts:
            source = arguments.get("source", arguments.get("rows"))
            target = arguments.get("target", arguments.get("rows"))
            assert source in written or launch.kernel == "chirp_in"
            assert plan.by_name[target].role not in ("in", "table")
            if "RADICES" in params:
                assert math.prod(params["RADICES"]) == params["N"]
                in_place = params.get("TAIL") == "none" and params["LOAD"] == params["STORE"]
                assert source != target or in_place
            written.add(target)
            if launch.kernel == "chirp_in":
                written.add(launch.arguments["rows"])
        assert "spectrum" in written


@pytest.mark.parametrize("made", DEVICES[:3], ids=["large", "weak", "cpu"])
def test_local_memory_is_what_the_kernel_declares(made):
    import re

    for problem in PROBLEMS[:6]:
        plan = FFT.plan(problem, FFT.configure(problem, made), made)
        for launch in plan.launches:
            text = render(launch.template, launch.params).text
            word = {"float": 4, "double": 8}[launch.params["REAL_T"]]
            declared = sum(map(int, re.findall(r"__local real_t \w+\[(\d+)\]", text)))
            vectors = sum(map(int, re.findall(r"__local vec_t \w+\[(\d+)\]", text)))
            declared += vectors * launch.params.get("VECTOR_WIDTH", 0)
            tickets = 4 * text.count("__local uint taken;")
            assert launch.local_memory == declared * word + tickets


def test_sharing_a_launch_is_tuned_where_two_steps_can():
    def values(n, device=DEVICES[0]):
        space = FFT.search_space(DftProblem(n, batch=512), device)
        return next(p.values for p in space.parameters if p.name == "JOIN")

    assert set(values(2**15)) == {"auto", "never", "always"}
    assert len(values(1024)) == len(values(2**24)) == len(values(2**15, DEVICES[1])) == 1


def test_many_transforms_do_not_meet_the_limits_of_a_grid():
    """CUDA devices take 65,535 groups beyond the first dimension."""
    cuda = replace(DEVICES[0], compute_capability=(9, 0))
    for n, batch, inner in ((1000, 100_000, 1), (8192, 100_000, 1), (64, 100_000, 3)):
        problem = DftProblem(n, batch=batch, inner=inner)
        check_plan(FFT.plan(problem, FFT.configure(problem, cuda), cuda), cuda)
    for kind, n in (("r2c", 100), ("c2r", 101), ("c2c", 9001)):
        problem = DftProblem(n, batch=300_000, kind=kind)
        check_plan(FFT.plan(problem, FFT.configure(problem, cuda), cuda), cuda)
    for algorithm in map(DFT.algorithm, ("direct-tiled", "direct-naive")):
        problem = DftProblem(8, batch=100_000)
        check_plan(algorithm.plan(problem, algorithm.configure(problem, cuda), cuda), cuda)


def test_indices_count_64_bits_only_where_they_must():
    for n, index in ((2**20, "uint"), (2**31, "ulong")):
        problem = DftProblem(n)
        plan = FFT.plan(problem, FFT.configure(problem, DEVICES[0]), DEVICES[0])
        assert {launch.params["INDEX_T"] for launch in plan.launches} == {index}


@given(st.integers(1, 5000), st.sampled_from([4, 8, 16, 32]))
def test_radices_multiply_to_the_length(n, largest):
    if is_smooth(n):
        radices = radices_of(n, largest)
        assert math.prod(radices) == n
        assert n == 1 or set(radices) <= set(RADICES)
        assert all(radix <= largest or radix == largest_prime(radix) for radix in radices)
        assert list(radices) == sorted(radices, reverse=True)
        assert all(small * large == n and small <= large for small, large in pairs_of(n))
    else:
        with pytest.raises(ValueError, match="prime factor"):
            radices_of(n, largest)


@given(st.integers(1, 10**7), st.sampled_from([1, 64]))
def test_next_smooth_is_large_enough_and_no_waste(n, multiple):
    found = next_smooth(n, multiple)
    assert found >= n and is_smooth(found) and found % multiple == 0
    assert found <= max(multiple, 2 * n)


# ------------------------------------------------------------- ol.fft as NumPy


NAMES = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("name", NAMES)
def test_one_axis_as_numpy(name, norm, rng, queue):
    x = random_signal(rng, (4, 5, 6), "complex128")
    x = x.real if name in ("rfft", "ihfft") else x
    some = ((1, 3), (-1, None))  # a norm is but a factor: the others need no more
    for axis, n in itertools.product((0, 1, -1), (None, 3, 8)) if norm is None else some:
        right = getattr(np.fft, name)(x, n, axis, norm)
        result = getattr(ol.fft, name)(x, n, axis, norm, queue=queue)
        assert result.dtype == right.dtype and result.shape == right.shape
        np.testing.assert_allclose(result, right, atol=1e-13)


@pytest.mark.parametrize("side", ["host", "device"])
@pytest.mark.parametrize("name", [f"{name}{d}" for name in NAMES[:4] for d in "2n"])
def test_several_axes_as_numpy(name, side, rng, queue):
    x = random_signal(rng, (3, 4, 6))
    x = np.ascontiguousarray(x.real) if name.startswith("rfft") else x
    given_x = cl.array.to_device(queue, x) if side == "device" else x
    for s, axes in ((None, None), ((5, 4), (0, 2)), ((4, -1), (1, 2))):
        if axes is None and name.endswith("2"):
            axes = (-2, -1)
        right = getattr(np.fft, name)(x, s, axes)
        result = getattr(ol.fft, name)(given_x, s, axes, queue=queue)
        if side == "device":
            assert isinstance(result, cl.array.Array)
            result = result.get()
        assert result.dtype == right.dtype and result.shape == right.shape
        assert relative(result, right) < 1e-6
    np.testing.assert_array_equal(given_x.get() if side == "device" else given_x, x)


@pytest.mark.filterwarnings("ignore:.*deprecated in NumPy 2.0:DeprecationWarning")
def test_axes_that_come_twice_are_transformed_twice(rng, monkeypatch):
    """As NumPy does it: one after the other, each of its own length, that of None found then."""

    # For sizes and order alone; kernels would have to be built.
    def by_host(problem, data, queue, target):
        shape, _ = problem.signal
        return DFT.expected(problem, {"signal": data.reshape(shape)})["spectrum"]

    monkeypatch.setattr(transform, "_run", by_host)
    x = rng.standard_normal((2, 3))
    assert ol.fft.rfftn(x, s=(10, 20, 40), axes=(0, 0, 1)).shape == (10, 21)
    names = [f"{name}{d}" for name in NAMES[:4] for d in "2n"]
    for name in names * 25:
        shape = rng.integers(2, 5, 2 + rng.integers(2))
        x = random_signal(rng, shape, "complex128")
        x = x.real if name.startswith("r") else x
        axes = rng.integers(-len(shape), len(shape), 1 + rng.integers(3))
        s = rng.permuted([None, -1, 2, 5, 7])[: len(axes)] if rng.integers(3) else None
        right = getattr(np.fft, name)(x, s, axes)
        np.testing.assert_allclose(
            getattr(ol.fft, name)(x, s, axes), right, atol=1e-12, err_msg=f"{name} {s} {axes}"
        )


@pytest.mark.parametrize("name", NAMES)
def test_names_and_parameters_are_those_of_numpy(name):
    assert set(np.fft.__all__) <= set(ol.fft.__all__)
    for function in (name, *(f"{name}{d}" for d in "2n" if not name.strip("i").startswith("h"))):
        ours, theirs = (
            [
                (p.name, p.default)
                for p in inspect.signature(getattr(m, function)).parameters.values()
            ]
            for m in (ol.fft, np.fft)
        )
        assert ours == [*theirs, ("queue", None)]


@pytest.mark.parametrize("side", ["host", "device"])
def test_mirrored_signals_of_several_axes_as_scipy(side, rng, queue):
    scipy_fft = pytest.importorskip("scipy.fft")
    x = random_signal(rng, (3, 4, 6))
    for name, signal in (("hfft", x), ("ihfft", np.ascontiguousarray(x.real))):
        given_x = cl.array.to_device(queue, signal) if side == "device" else signal
        for dimensions, s, axes, norm in (
            ("2", None, (-2, -1), None),
            ("2", (5, -1), (2, 0), "ortho"),
            ("n", None, None, "forward"),
            ("n", (4, 5), (0, 2), "backward"),
        ):
            function = name + dimensions
            right = getattr(scipy_fft, function)(signal, s, axes, norm)
            result = getattr(ol.fft, function)(given_x, s, axes, norm, queue=queue)
            result = result.get() if side == "device" else result
            assert result.dtype == right.dtype and result.shape == right.shape
            assert relative(result, right) < 1e-6
    out = np.empty(right.shape, right.dtype)
    assert ol.fft.ihfftn(signal, s, axes, norm, out=out) is out
    assert relative(out, right) < 1e-6


@pytest.mark.parametrize("side", ["host", "device"])
def test_shifts_and_mirrored_signals(side, rng, queue):
    x = random_signal(rng, (4, 5, 3))
    given_x = cl.array.to_device(queue, x) if side == "device" else x

    def on_host(result):
        assert isinstance(result, cl.array.Array if side == "device" else np.ndarray)
        return result.get() if side == "device" else result

    for axes in (None, 1, (0, 2), ()):
        for name in ("fftshift", "ifftshift"):
            result = on_host(getattr(ol.fft, name)(given_x, axes))
            np.testing.assert_array_equal(result, getattr(np.fft, name)(x, axes))
    same = ol.fft.fftshift(given_x, ())
    assert same is not given_x
    assert ol.fft.fftshift([1, 2, 3], queue=queue).tolist() == [3, 1, 2]
    for part in (np.s_[:], np.s_[:, 1:], np.s_[::2]):
        spectrum = on_host(ol.fft.hfft(given_x[part], axis=1))
        assert relative(spectrum, np.fft.hfft(x[part], axis=1)) < 1e-6
    real = np.ascontiguousarray(x.real)
    given_real = cl.array.to_device(queue, real) if side == "device" else real
    assert relative(on_host(ol.fft.ihfft(given_real)), np.fft.ihfft(real)) < 1e-6
    np.testing.assert_array_equal(given_x.get() if side == "device" else given_x, x)


@pytest.mark.parametrize("side", ["host", "device"])
def test_halfs_are_read_as_they_are_stored(side, rng, queue):
    for shape, arguments in (
        ((3, 96), {}), ((2, 45), {}), ((1, 17), {}), ((4, 6), {"axis": 0}), ((2, 8), {"n": 11}),
        ((0, 4), {}),
    ):  # fmt: skip
        x = rng.standard_normal(shape).astype(np.float16)
        given_x = cl.array.to_device(queue, x) if side == "device" else x
        for name in ("rfft", "fft"):
            result = getattr(ol.fft, name)(given_x, queue=queue, **arguments)
            result = result.get() if side == "device" else result
            right = getattr(np.fft, name)(x.astype(np.float64), **arguments)
            assert result.dtype == np.complex64 and result.shape == right.shape
            assert relative(result, right) <= 2 * bound(64)
    problem = DftProblem(96, batch=3, kind="r2c", half=True)
    check(problem)
    plan = FFT.plan(problem, FFT.configure(problem, select_device()), select_device())
    assert plan.by_name["signal"].dtype == np.float16
    for wrong in ({"kind": "c2r"}, {"dtype": np.dtype("complex128")}, {"kind": "c2c"}):
        with pytest.raises(InvalidProblem, match="half storage"):
            replace(problem, **wrong)


def test_types_strides_and_out(rng, queue):
    for dtype, kind in (("f2", "c8"), ("f4", "c8"), ("i4", "c16"), (">f8", "c16"), ("c8", "c8")):
        x = (9 * rng.standard_normal((6, 8))).astype(dtype)[::-1, ::2]
        result = ol.fft.fft(x, queue=queue)
        assert result.dtype == kind
        assert relative(result, np.fft.fft(x.astype("c16"))) < 1e-6
    out = np.empty((6, 4), np.complex64)
    assert ol.fft.fft(x, out=out, queue=queue) is out
    np.testing.assert_array_equal(out, result)
    assert ol.fft.fft(out, out=out, queue=queue) is out
    with pytest.raises(InvalidProblem, match="out must have shape"):
        ol.fft.fft(x, out=out[:2], queue=queue)


def test_what_is_refused(queue):
    for call in (
        lambda: ol.fft.fft(np.zeros(0)),
        lambda: ol.fft.fft(np.zeros(4), 0),
        lambda: ol.fft.fft(np.zeros(4), axis=1),
        lambda: ol.fft.fft(np.zeros(4), norm="both"),
        lambda: ol.fft.rfft(np.zeros(4, complex)),
        lambda: ol.fft.irfft(np.zeros(1)),
        lambda: ol.fft.fftn(np.zeros((2, 2)), s=(2,), axes=(0, 1)),
        lambda: ol.fft.rfftn(np.zeros((2, 2)), axes=()),
        lambda: ol.fft.fft(np.array(["a"])),
        lambda: ol.fft.convolve(np.zeros(3), np.zeros((3, 3))),
        lambda: ol.fft.convolve(np.zeros((2, 3)), np.zeros((3, 2)), "valid"),
        lambda: ol.fft.convolve(np.zeros(0), np.zeros(2)),
        lambda: ol.fft.convolve(np.zeros(3), np.zeros(4), "circular"),
        lambda: ol.fft.power_spectrum(np.zeros(3), scaling="none"),
        lambda: ol.fft.power_spectrum(np.zeros(3, complex)),
        lambda: ol.fft.power_spectrum(np.zeros(3), window="hann"),
        lambda: ol.fft.power_spectrum(np.zeros(3), window=np.zeros(3)),
        *(lambda fs=fs: ol.fft.power_spectrum(np.zeros(3), fs) for fs in (0, np.nan, "a", None)),
        lambda: ol.fft.hfft(np.zeros(4), norm="both"),
        lambda: ol.fft.hfft(np.zeros(4), norm=["ortho"]),
        *(lambda norm=norm: ol.fft.fft(np.zeros(4), norm=norm) for norm in ("", 0, [])),
        lambda: ol.fft.ihfft(np.zeros(4, complex)),
        lambda: ol.fft.fftshift(np.zeros(4), axes=1),
        lambda: ol.dft(np.zeros((2, 2)), axis=None),
        lambda: ol.fft.fftn(np.zeros((2, 2)), s=8),
        lambda: ol.fft.fftn(np.zeros((2, 2)), axes=1),
        lambda: ol.fft.fft(np.zeros(2), 2**70),
        lambda: ol.fft.irfft(np.zeros(2), 2**70),
    ):
        with pytest.raises(InvalidProblem):
            call()
    with pytest.raises(InvalidConfig, match="FORM must be"):
        DFT.run(
            DftProblem(8), DFT.generate(DftProblem(8), 0), algorithm="fft",
            config={"FORM": "none"}, queue=queue,
        )  # fmt: skip


def test_no_axes_and_no_rows(queue):
    x = np.ones((2, 3), np.complex64)
    same = ol.fft.fftn(x, axes=(), queue=queue)
    assert same is not x
    np.testing.assert_array_equal(same, x)
    assert ol.fft.fft(np.ones((0, 4)), queue=queue).shape == (0, 4)
    assert ol.fft.rfft(np.ones((0, 4)), queue=queue).shape == (0, 3)
    assert ol.fft.irfft(np.ones((0, 4)), queue=queue).shape == (0, 6)


# ---------------------------------------------------------------- properties

LENGTHS = st.sampled_from([1, 2, 30, 64, 77, 101])
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("kind", ["c2c", "r2c", "c2r"])
def test_every_reference_at_hand_agrees(kind):
    inverse = kind == "c2c"
    problem = DftProblem(30, batch=4, inverse=inverse, scale=0.25, kind=kind, half=kind == "r2c")
    inputs = DFT.generate(problem, 1)
    expected = DFT.expected(problem, inputs)
    like = {"spectrum": problem.spectrum}
    for reference in DFT.references:
        if reference.kind == "c" or reference.unavailable() is None:
            prepared = prepare(reference, problem, inputs, like, 1, select_device())
            for _ in range(2):  # the first call may plan
                prepared.run()
                difference = DFT.compare(problem, inputs, expected, prepared.outputs())
                assert difference.ok, reference.name


@given(LENGTHS, SEEDS)
def test_round_trip(n, seed):
    x = random_signal(np.random.default_rng(seed), (2, n))
    assert relative(ol.fft.ifft(ol.fft.fft(x)), x) < 1e-6
    assert relative(ol.fft.irfft(ol.fft.rfft(x.real), n), x.real) < 1e-6


@given(LENGTHS, SEEDS)
def test_parseval(n, seed):
    x = random_signal(np.random.default_rng(seed), n)
    energy = np.linalg.norm(ol.fft.fft(x, norm="ortho"))
    assert energy == pytest.approx(np.linalg.norm(x), rel=1e-6)


@given(LENGTHS, SEEDS)
def test_linearity(n, seed):
    x, y = random_signal(np.random.default_rng(seed), (2, n))
    both = ol.fft.fft(np.complex64(2) * x - np.complex64(1j) * y)
    assert relative(both, 2 * ol.fft.fft(x) - 1j * ol.fft.fft(y)) < 2e-6


@given(LENGTHS, SEEDS, st.integers(0, 200))
def test_a_shift_turns_the_spectrum(n, seed, shift):
    x = random_signal(np.random.default_rng(seed), n)
    turn = np.exp(-2j * np.pi * (np.arange(n) * shift % n) / n)
    assert relative(ol.fft.fft(np.roll(x, shift)), turn * ol.fft.fft(x)) < 1e-6


@given(st.sampled_from([16, 1000, 1024, 1009, 729]), SEEDS)
def test_error_is_at_most_twice_that_of_pocketfft(n, seed):
    x = random_signal(np.random.default_rng(seed), (4, n))
    right = np.fft.fft(x.astype(np.complex128))
    scipy_fft = pytest.importorskip("scipy.fft")
    assert relative(ol.fft.fft(x), right) <= 2 * relative(scipy_fft.fft(x), right)


# -------------------------------------------------------- convolution, power


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolve(mode, rng, queue):
    a, b = rng.standard_normal(50), rng.integers(-3, 4, 7)
    np.testing.assert_allclose(
        ol.fft.convolve(a, b, mode, queue=queue), np.convolve(a, b, mode), atol=1e-12
    )
    z = random_signal(rng, 7)
    given_a = cl.array.to_device(queue, random_signal(rng, 50))
    result = ol.fft.convolve(given_a, cl.array.to_device(queue, z), mode)
    assert relative(result.get(), np.convolve(given_a.get(), z, mode)) < 1e-6
    image, weights = rng.standard_normal((9, 12)), rng.standard_normal((3, 4))
    right = sum(
        np.pad(image, ((i, 2 - i), (j, 3 - j))) * weights[i, j] for i in range(3) for j in range(4)
    )
    cuts = {"full": np.s_[:, :], "same": np.s_[1:-1, 1:-2], "valid": np.s_[2:-2, 3:-3]}
    np.testing.assert_allclose(
        ol.fft.convolve(image, weights, mode, queue=queue), right[cuts[mode]], atol=1e-12
    )


def test_convolve_as_scipy(rng):
    signal = pytest.importorskip("scipy.signal")
    for first, second in (((5,), (3,)), ((3,), (5,)), ((6, 7), (3, 2)), ((3, 4, 2), (2, 4, 3))):
        a, b = rng.standard_normal(first), rng.standard_normal(second)
        for mode in ("full", "same") if len(first) == 3 else ("full", "same", "valid"):
            right = signal.fftconvolve(a, b, mode)
            np.testing.assert_allclose(ol.fft.convolve(a, b, mode), right, atol=1e-12)


def test_power_spectrum_as_scipy(rng):
    signal = pytest.importorskip("scipy.signal")
    for x in (rng.standard_normal((2, 9)), rng.integers(-9, 9, (3, 8)), np.ones((1, 1))):
        for scaling in ("density", "spectrum"):
            for window in ("boxcar", "hann"):
                given_window = signal.get_window(window, x.shape[-1])
                found = ol.fft.power_spectrum(x, 30, window=given_window, scaling=scaling)
                right = signal.periodogram(x, 30, window, detrend=False, scaling=scaling)
                for ours, theirs in zip(found, right, strict=True):
                    np.testing.assert_allclose(ours, theirs, atol=1e-14)


@pytest.mark.parametrize("n", [99, 100])
def test_power_spectrum(n, rng, queue):
    x = rng.standard_normal((3, n))
    frequencies, power = ol.fft.power_spectrum(x, 50.0, queue=queue)
    np.testing.assert_array_equal(frequencies, np.fft.rfftfreq(n, 1 / 50))
    step = 50.0 / n  # the density's integral is the mean power
    np.testing.assert_allclose(power.sum(-1) * step, (x**2).mean(-1))
    time = np.arange(n) / 50.0
    tone = 3 * np.sin(2 * np.pi * 10 * step * time)
    window = np.hanning(n)
    for weights in (None, window):
        _, power = ol.fft.power_spectrum(tone, 50.0, window=weights, scaling="spectrum")
        assert np.argmax(power) == 10
        assert power[10] == pytest.approx(9 / 2, rel=1e-3)
    faint = np.float32(1e-10) * x.astype(np.float32)
    _, found = ol.fft.power_spectrum(faint, 1e-40, queue=queue)  # its factor is no float32
    _, right = ol.fft.power_spectrum(faint.astype(np.float64), 1e-40, queue=queue)
    np.testing.assert_allclose(found, right, rtol=1e-3)
    given_tone = cl.array.to_device(queue, tone)
    np.testing.assert_allclose(
        ol.fft.power_spectrum(given_tone, 50.0, window=window, scaling="spectrum")[1], power
    )


# -------------------------------------------------------------- SciPy backend


def test_scipy_s_axes_and_lengths_may_be_iterators(rng):
    scipy_fft = pytest.importorskip("scipy.fft")
    x = rng.standard_normal((4, 6))
    calls = {
        "fftn": [{"axes": (0, 1)}, {"s": (5, 7)}, {"s": (5, None)}, {"axes": (0, 0)}],
        "dctn": [{"axes": (1, 0)}],
        "rfftn": [{"s": (3, 3), "axes": (0, 1)}],
    }
    for name, cases in calls.items():
        for options in cases:
            outcomes = []
            for backend in ("scipy", ol.scipy_backend):
                iterators = {key: iter(value) for key, value in options.items()}
                with scipy_fft.set_backend(backend):
                    try:
                        outcomes.append(getattr(scipy_fft, name)(x, **iterators))
                    except (ValueError, TypeError) as error:
                        outcomes.append(str(error))
            right, found = outcomes
            assert isinstance(found, str) == isinstance(right, str), (name, options, outcomes)
            if isinstance(right, str):
                assert found == right
            else:
                np.testing.assert_allclose(found, right, atol=1e-12)


def test_scipy_s_way_with_orthogonalize(rng):
    scipy_fft = pytest.importorskip("scipy.fft")
    x = random_signal(rng, (4, 6))
    for options in ({"orthogonalize": True}, {"norm": "ortho", "orthogonalize": False}):
        right = scipy_fft.dct(x, **options)
        with scipy_fft.set_backend(ol.scipy_backend):
            np.testing.assert_allclose(scipy_fft.dct(x, **options), right, atol=1e-12)


def test_scipy_calls_run_here_or_fall_back(rng):
    scipy_fft = pytest.importorskip("scipy.fft")
    x = random_signal(rng, (4, 6))
    calls = ol.scipy_backend.calls

    def counted(function, *args, **kwargs):
        before = dict(calls)
        result = function(*args, **kwargs)
        return result, {name: calls[name] - before[name] for name in calls}

    with scipy_fft.set_backend(ol.scipy_backend):
        for name in ("fft", "ifft", "irfft", "hfft", "fft2", "ifftn", "irfftn"):
            result, ran = counted(getattr(scipy_fft, name), x, norm="ortho", workers=2)
            assert ran == {"here": 1, "elsewhere": 0}
            assert relative(result, getattr(np.fft, name)(x, norm="ortho")) < 1e-6
        result, ran = counted(scipy_fft.rfftn, x.real, (4,), 1, overwrite_x=True)
        assert ran["here"] == 1
        assert relative(result, np.fft.rfft(x.real, 4, 1)) < 1e-6
        for function, value in (
            (scipy_fft.fft, x.astype(np.clongdouble)),
            (scipy_fft.dct, x.real.astype(np.longdouble)),
            (scipy_fft.fftn, np.float64(3)),
        ):
            result, ran = counted(function, value)
            assert ran == {"here": 0, "elsewhere": 1}
        names = ["hfft2", "hfftn", "ihfft2", "ihfftn"]
        names += [f"{i}{kind}{n}" for i in ("", "i") for kind in ("dct", "dst") for n in ("", "n")]
        for name in names:
            given_x = x if name.startswith("h") else x.real
            result, ran = counted(getattr(scipy_fft, name), given_x, norm="ortho", workers=-1)
            assert ran == {"here": 1, "elsewhere": 0}
            with scipy_fft.set_backend("scipy"):
                right = getattr(scipy_fft, name)(given_x, norm="ortho")
            assert result.dtype == right.dtype
            assert relative(result, right) < 1e-6
    result, ran = counted(scipy_fft.fft, x)
    assert not any(ran.values())


@pytest.mark.parametrize("name", ["fft", "rfftn", "irfft2", "hfftn", "dct", "idstn", "fht"])
def test_the_backend_refuses_what_scipy_refuses(name):
    """With the words of SciPy, and if the backend is the only one, as a global one is."""
    scipy_fft = pytest.importorskip("scipy.fft")
    function, x = getattr(scipy_fft, name), np.ones((3, 4), np.float32)
    if name == "fht":
        right = function(x, 0.1, 0.5)
        with scipy_fft.set_backend(ol.scipy_backend, only=True):
            np.testing.assert_array_equal(function(x, 0.1, 0.5), right)
        return
    wrong = [{"workers": 0}, {"workers": -99999}, {"workers": 1.5}, {"norm": "both"}, {"norm": []}]
    if "n" in inspect.signature(function).parameters:
        wrong += [{"n": 0}, {"n": -1}, {"n": 2.0}, {"n": "2"}, {"axis": 2}, {"axis": 0.0}]
    else:
        wrong += [
            {"axes": (0, 0)}, {"axes": (1, -1)}, {"axes": (0, 2)}, {"axes": (0.0, 1)},
            {"s": (None, 2)}, {"s": (2, 2, 2)}, {"s": (2,), "axes": (0, 1)}, {"s": (2, 0)},
            {"s": 2.5}, {"s": (2.0, 2)}, {"s": (2, -2)},
        ]  # fmt: skip
    if "plan" in inspect.signature(function).parameters:
        wrong += [{"plan": "any"}]
    if "type" in inspect.signature(function).parameters:
        wrong += [{"type": 0}, {"type": 5}, {"type": 1.5}, {"type": "2"}]
    if name.startswith("r"):
        wrong += [{"x": x + 1j}, {"axes": ()}]
    if name != "idstn":  # which has nothing to do then
        wrong += [{"x": np.ones(())}]
    for arguments in ({"x": x, **each} for each in (*wrong, {"x": ["a"]})):
        before = dict(ol.scipy_backend.calls)
        try:
            right = function(**arguments)
        except Exception as error:
            with (
                scipy_fft.set_backend(ol.scipy_backend, only=True),
                pytest.raises(type(error)) as found,
            ):
                function(**arguments)
            assert str(found.value) == str(error), arguments
        else:
            pytest.fail(f"SciPy takes {arguments}: {right}")
        assert ol.scipy_backend.calls["elsewhere"] == before["elsewhere"] + 1


def test_device_arrays_that_the_backend_refuses(queue):
    scipy_fft = pytest.importorskip("scipy.fft")
    given_x = cl.array.to_device(queue, np.ones((3, 4), np.float32))
    with scipy_fft.set_backend(ol.scipy_backend):
        assert isinstance(scipy_fft.dct(given_x), cl.array.Array)
        with pytest.raises(InvalidProblem, match="axis 5 is out of bounds"):
            scipy_fft.fft(given_x, axis=5)
        for wrong in (
            lambda: scipy_fft.fht(given_x, 0.1, 0.5),
            lambda: scipy_fft.fftn(given_x, axes=(0, 0)),
        ):
            with pytest.raises(InvalidProblem, match=r"cannot do this with device arrays.*get"):
                wrong()


def test_arrays_of_other_libraries_are_left_to_other_backends():
    scipy_fft = pytest.importorskip("scipy.fft")

    class Other:
        def __array_namespace__(self):
            raise AssertionError

    assert ol.scipy_backend.__ua_function__(scipy_fft.fft, (Other(),), {}) is NotImplemented


@pytest.mark.parametrize("part", [np.s_[1:3, 2:], np.s_[:, ::-1], np.s_[::2]])
def test_strided_device_arrays_of_real_numbers(part, rng):
    host = rng.standard_normal((4, 6), np.float32)
    view = cl.array.to_device(default_queue(select_device("cpu")), host)[part]
    np.testing.assert_allclose(ol.fft.fft(view).get(), np.fft.fft(host[part]), atol=1e-5)
    np.testing.assert_allclose(ol.dft(view).get(), np.fft.fft(host[part]), atol=1e-5)


def test_transposed_device_arrays_along_the_axis_that_is_contiguous(rng):
    host = random_signal(rng, (4, 3, 6))
    given = cl.array.to_device(default_queue(select_device("cpu")), host)
    real = cl.array.to_device(given.queue, host.real.copy())
    order = (2, 0, 1)  # the last axis goes first, the others keep their order
    for found, expected in (
        (ol.fft.irfft(given.transpose(order), axis=0), np.fft.irfft(host, axis=2)),
        (ol.fft.rfft(real.transpose(order), axis=0), np.fft.rfft(host.real, axis=2)),
        (ol.dft(given.transpose(order), axis=0), np.fft.fft(host, axis=2)),
        (ol.sort(real.transpose(order), axis=0), np.sort(host.real, axis=2)),
    ):
        assert relative(found.get(), np.moveaxis(expected, 2, 0)) < 1e-6


@pytest.mark.parametrize("n", [np.int8(100), np.uint8(200), np.array(9), True])
def test_lengths_of_other_integer_types(n, rng):
    signal = rng.standard_normal(12)
    for name in ("fft", "rfft", "irfft"):
        expected = getattr(np.fft, name)(signal, int(n))
        assert relative(getattr(ol.fft, name)(signal, n), expected) < 1e-13


def test_device_arrays_without_a_queue_and_of_truth_values(rng, queue):
    host = rng.integers(0, 2, 12) > 0
    for dtype in (np.float32, bool):
        given = cl.array.to_device(queue, host.astype(dtype)).with_queue(None)
        for function in (ol.fft.fft, ol.dft):
            np.testing.assert_allclose(
                function(given, queue=queue).get(), np.fft.fft(host), atol=1e-5
            )


@pytest.mark.parametrize("arguments", [{"n": 8.5}, {"axis": 0.0}, {"axis": "a"}, {"out": [0] * 8}])
def test_arguments_of_the_wrong_type_are_said(arguments):
    with pytest.raises(InvalidProblem):
        ol.fft.fft(np.ones(8), **arguments)


def test_a_length_of_none_is_that_of_the_axis(rng):
    signal = rng.standard_normal((4, 6))
    found = ol.fft.fft2(signal, s=(None, 3), axes=(0, 1))
    np.testing.assert_allclose(found, np.fft.fft2(signal, s=(4, 3), axes=(0, 1)), atol=1e-12)
