"""Transforms on one compute unit: one launch, right results, and the choice of the side."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fft_checks import FFT, bound, random_signal, relative

import opencl_lab as ol
from opencl_lab.core.device import Capabilities, Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import check_plan
from opencl_lab.core.template import render
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.ops.fft.passes import serial as serial_plans
from opencl_lab.ops.fft.passes.serial import SerialPlanner
from opencl_lab.ops.fft.problem import DftProblem
from opencl_lab.ops.fft.solver import DFT_SOLVER
from opencl_lab.runtime.executable import Executable
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of

C64, C128 = np.dtype("complex64"), np.dtype("complex128")
ONE = Device(
    "made", "cpu", compute_units=1, native_vector_bytes=64, max_allocation=1 << 40,
    global_memory=1 << 42, max_work_items=(4096,) * 3, local_memory=1 << 20,
    capabilities=Capabilities(
        fp64=True, max_work_group=4096, local_memory=1 << 20, visible_writes=True
    ),
)  # fmt: skip

# ------------------------------------------------------------------ plans


@pytest.mark.parametrize("kind", ["c2c", "r2c", "c2r"])
@pytest.mark.parametrize("n", [2, 30, 64, 1000, 1024, 1018, 16384, 65536])
def test_a_transform_is_one_launch_without_counters(kind, n):
    for dtype in (C64, C128):
        problem = DftProblem(n, dtype, 3, kind=kind, scale=0.5)
        plan = FFT.plan(problem, FFT.default_config(problem, ONE), ONE)
        check_plan(plan, ONE)
        convolved = kind != "c2c" and not SerialPlanner.has_passes(n // 2)  # in its own launch
        assert len(plan.launches) == 1 + convolved
        assert all(launch.global_size == (1,) for launch in plan.launches)
        assert not plan.with_role("zeros")


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("c2c", ((256, 1), (1024, 3), (2000, 1), (6000, 2))),
        ("c2c", ((36, 1), (100, 3), (2500, 1))),
        ("c2c", ((18, 1), (50, 3), (250, 1))),
        ("c2c", ((28, 1), (84, 3), (700, 2))),
        ("c2c", ((44, 1), (364, 3), (572, 2))),
        ("c2c", ((127, 1), (1009, 1))),
        ("r2c", ((512, 1), (1024, 3), (4000, 2))),
        ("c2r", ((512, 1), (1024, 3), (4000, 2))),
    ],
)
def test_rows_of_many_lengths_share_a_program(kind, sizes):
    launches = []
    for n, batch in sizes:
        problem = DftProblem(n, C64, batch, kind=kind)
        launches += FFT.plan(problem, FFT.default_config(problem, ONE), ONE).launches
    assert len(launches) == len(sizes)
    assert len({render(launch.template, launch.params).text for launch in launches}) == 1


@pytest.mark.parametrize("kind", ["r2c", "c2r"])
def test_real_rows_with_the_same_convolution_share_all_programs(kind):
    texts = []
    for n in (34, 62):
        problem = DftProblem(n, C64, 3, kind=kind)
        plan = FFT.plan(problem, FFT.default_config(problem, ONE), ONE)
        texts.append({render(launch.template, launch.params).text for launch in plan.launches})
    assert texts[0] == texts[1]


# ---------------------------------------------------------------- results


@pytest.mark.few(3)
@pytest.mark.parametrize("dtype", [C64, C128])
@pytest.mark.parametrize(
    ("n", "batch", "kind", "inverse"),
    [(64, 3, "c2c", False), (1000, 3, "c2c", True), (4096, 3, "c2c", True),
     (1009, 1, "c2c", False), (128, 1, "r2c", False), (1024, 3, "r2c", False),
     (144, 3, "c2r", True), (4096, 1, "c2r", True), (28, 3, "c2c", False), (572, 1, "c2r", True)],
)  # fmt: skip
def test_the_shared_program_gives_the_same_bits(
    serial, monkeypatch, n, batch, kind, inverse, dtype
):
    scale = 0.3 if inverse else 1.0
    problem = DftProblem(n, dtype, batch, inverse=inverse, scale=scale, kind=kind)
    inputs = DFT.generate(problem, 5)
    config = FFT.default_config(problem, serial)
    plans = [FFT.plan(problem, config, serial)]
    monkeypatch.setattr(serial_plans, "rows_launch", lambda *_: None)
    plans.append(FFT.plan(problem, config, serial))
    assert [plan.launches[0].kernel for plan in plans] == ["fft_rows", "fft_vector"]
    session = session_of(serial.queue())
    shared, own = (
        execute(Executable(plan, session), inputs, serial.queue()).outputs["spectrum"]
        for plan in plans
    )
    np.testing.assert_array_equal(shared, own)


@pytest.mark.few(3)
@pytest.mark.parametrize("dtype", [C64, C128])
@pytest.mark.parametrize("kind", ["c2c", "r2c", "c2r"])
@pytest.mark.parametrize(
    ("n", "batch", "inner"),
    [(1, 3, 5), (3, 19, 1), (34, 3, 33), (62, 1, 5), (127, 3, 1), (1000, 3, 1), (1018, 19, 1),
     (16384, 1, 1)],
)  # fmt: skip
def test_results_are_right(serial, n, batch, inner, kind, dtype):
    inner = inner if kind == "c2c" else 1
    problem = DftProblem(n, dtype, batch, inner, n % 4 == 2, 0.5, kind)
    inputs = DFT.generate(problem, 7)
    expected = DFT.expected(problem, inputs)["spectrum"]
    run = DFT.run(problem, inputs, algorithm="fft", queue=serial.queue())
    size = n if SerialPlanner.has_passes(n, batch * inner) else 64 * n
    assert relative(run.outputs["spectrum"], expected) <= 2 * bound(size, dtype)


@pytest.mark.few(2)
@pytest.mark.parametrize("shape", [(16, 16), (9, 34), (3, 20, 7)])
@pytest.mark.parametrize("name", ["fftn", "ifft2", "rfftn", "irfftn", "hfft2"])
def test_several_axes(serial, rng, name, shape):
    x = random_signal(rng, shape, "complex128")
    x = x.real.copy() if name == "rfftn" else x
    right = {"hfft2": lambda: np.fft.irfft2(x.conj(), norm="forward")}.get(
        name, lambda: getattr(np.fft, name)(x)
    )()
    transform = getattr(ol.fft, name)
    result, kept = transform(x, device=serial), x.copy()
    assert result.shape == right.shape and result.dtype == right.dtype
    np.testing.assert_allclose(result, right, atol=1e-12 * math.prod(shape))
    out = np.empty_like(result)
    assert transform(x, device=serial, out=out) is out
    np.testing.assert_array_equal(out, result)
    np.testing.assert_array_equal(transform(x, device=serial), result)
    np.testing.assert_array_equal(x, kept)


def test_axes_in_another_order_and_of_columns_alone(serial, rng):
    x = random_signal(rng, (12, 34, 5), "complex128")
    for axes in ((1, 0), (0, 1), (2, 0)):
        result = ol.fft.fftn(x, axes=axes, device=serial)
        np.testing.assert_allclose(result, np.fft.fftn(x, axes=axes), atol=1e-11)


def test_real_direct_sums_are_replayed(serial, rng):
    x = rng.standard_normal((3, 20))
    for _ in range(3):
        result = ol.dft(x, device=serial)
        np.testing.assert_allclose(result, np.fft.fft(x), atol=1e-12)


# -------------------------------------------------------- the choice of the side


def test_small_transforms_take_the_calling_thread(serial):
    threads = ol.select_device()
    for problem, side in (
        (DftProblem(1024, C64), serial),
        (DftProblem(256, C64, 64), serial),
        (DftProblem(154, C64, 3), serial),
        (DftProblem(1001, C64), threads),  # odd lengths with such factors share no program
        (DftProblem(616, C64, 4, kind="r2c"), threads),
        (DftProblem(1 << 20, C64), threads),
        (DftProblem(1024, C64, 8192), threads),
    ):
        assert DFT_SOLVER.side(problem, threads) is side


def test_spectra_without_samples_are_refused_on_either_side(device):
    for function in (ol.fft.irfft2, ol.fft.irfftn, ol.fft.hfftn):
        with pytest.raises(InvalidProblem, match="needs at least one sample, not -2"):
            function(np.zeros((3, 0), np.complex64), device=device)
