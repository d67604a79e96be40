"""The FFT's kernels: every length, form and configuration, against NumPy in double precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fft_checks import EPS, FFT, GROUPS, bound, check, relative

import opencl_lab as ol
from opencl_lab.core.device import Capabilities, Device
from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.ops.fft.passes.factors import LARGE_PRIMES, RADICES
from opencl_lab.ops.fft.passes.planner import LARGE_PROBLEM
from opencl_lab.ops.fft.problem import DftProblem

SMALL_GROUPS = {**GROUPS, "LOCAL_LIMIT": 16}
FORMS = {"vector": {"FORM": "vector"}, "local-memory": GROUPS}
CPU = Device(
    "made",
    "cpu",
    compute_units=2,
    capabilities=Capabilities(local_memory=512 << 10, visible_writes=True),
)


# ------------------------------------------------------------------- kernels


@pytest.mark.full
@pytest.mark.parametrize("form", FORMS)
def test_every_butterfly(form):
    """One form has all, and the other some: they are the same text."""
    small = [radix for radix in RADICES if radix not in LARGE_PRIMES]
    for radix in small[:: 1 if form == "vector" else 4]:
        check(DftProblem(radix, batch=11), {**FORMS[form], "MAX_RADIX": 32})


@pytest.mark.few(2)
@pytest.mark.parametrize("primes", [LARGE_PRIMES[first : first + 3] for first in range(0, 25, 3)])
@pytest.mark.parametrize("dtype", EPS)
def test_butterflies_of_large_primes(primes, dtype):
    for prime, other in zip(primes, (5, 8, 1), strict=False):
        batch = 1 + LARGE_PROBLEM // (prime * other)
        problem = DftProblem(prime * other, np.dtype(dtype), batch, inverse=prime % 4 == 1)
        (launch,) = FFT.plan(problem, FFT.default_config(problem, CPU), CPU).launches
        assert any(prime in step.radices for step in launch.params["STEPS"])
        check(problem, FORMS["vector"])


@pytest.mark.parametrize(
    ("n", "dtype", "inner", "steps"),
    [(131, "complex64", 19, 1), (997, "complex128", 1, 1), (5003, "complex64", 1, 2)],
)
def test_rows_are_convolved_one_by_one(n, dtype, inner, steps):
    device = select_device()
    if device.kind != "cpu" or device.compute_units == 1:
        pytest.skip("only the threads of CPUs share rows")
    problem = DftProblem(
        n, np.dtype(dtype), 4 * device.compute_units, inner, inverse=n == 997, scale=0.25
    )
    (launch,) = FFT.plan(problem, FFT.configure(problem, device), device).launches
    assert launch.global_size == (2 * device.compute_units,) and any(launch.params["OWN"])
    assert len(launch.params["STEPS"]) == 3 + 2 * steps
    check(problem)


def test_few_rows_are_convolved_by_all_threads():
    many = replace(CPU, compute_units=8)
    for batch, launches in ((1, 5), (5, 5), (6, 1), (8, 1), (9, 5), (12, 1), (100, 1)):
        problem = DftProblem(997, batch=batch)
        plan = FFT.plan(problem, FFT.default_config(problem, many), many)
        assert len(plan.launches) == launches, batch


LENGTHS = [  # n, rows, columns, kind
    (360, 9, 1, "c2c"), (1001, 2, 1, "c2c"), (1024, 2, 1, "c2c"),  # of many radices
    (48, 2, 3, "c2c"), (17, 2, 21, "c2c"), (48, 2, 8, "c2c"),
    (131, 2, 1, "c2c"), (1009, 2, 1, "c2c"),  # without a butterfly
    *((n, rows, 1, kind) for kind in ("r2c", "c2r")
      for n, rows in ((1, 2), (2, 1), (15, 3), (15, 1), (96, 2), (97, 3), (30, 3))),
    (2**14, 1, 1, "c2c"), (2**17, 1, 1, "c2c"), (3**10, 1, 1, "c2c"), (5**6, 1, 1, "c2c"),
]  # fmt: skip


@pytest.mark.few(9)
@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("n", "batch", "inner", "kind"), LENGTHS)
def test_rows_and_columns_of_many_lengths(n, batch, inner, kind, form, dtype):
    """The matrix of all tests has forms that are built in, and other lengths."""
    inverse = kind == "c2c" and n % 4 != 0
    config = None if n > 10_000 else FORMS[form]
    check(DftProblem(n, np.dtype(dtype), batch, inner, inverse, 0.25, kind), config)


@pytest.mark.full
def test_three_steps_of_rows_and_of_columns():
    check(DftProblem(16 * 15 * 16, batch=2), SMALL_GROUPS)
    check(DftProblem(16 * 9 * 10, batch=2, inner=3, inverse=True), SMALL_GROUPS)


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


HELD = {"split": (96, 97), "interleaved": (99,), "two-phase": (90, 34)}


@pytest.mark.few(2)
@pytest.mark.parametrize("exchange", HELD)
@pytest.mark.parametrize("inverse", [False, True])
def test_real_rows_that_a_group_holds_take_one_launch(inverse, exchange):
    """Frequencies meet their opposites in local memory, or rows have no imaginary part."""
    config = {**GROUPS, "EXCHANGE": exchange}
    for n, launches in ((96, 1), (90, 1), (99, 1), (97, 1), (16, 2), (34, 2)):
        problem = DftProblem(n, batch=3, kind="c2r" if inverse else "r2c", scale=0.5)
        plan = FFT.plan(problem, FFT.configure(problem, select_device(), config), select_device())
        assert len(plan.launches) == launches
        if n in HELD[exchange]:
            check(problem, config)


@pytest.mark.few(1)
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


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["r2c", "c2r"])
@pytest.mark.parametrize("form", FORMS)
def test_scales_of_long_rows_are_found_in_sections(form, kind, queue):
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
    *sections, whole = (launch for launch in plan.launches if launch.kernel == "weigh")
    assert len(sections) == 1
    assert sections[0].arguments["sections"] > 1 == whole.arguments["sections"]
    groups = [launch.global_size[0] // launch.work_group for launch in (*sections, whole)]
    assert groups == [len(sizes) * sections[0].arguments["sections"], len(sizes)]
    assert (whole.work_group > 1) == (form == "local-memory") == (whole.local_memory > 0)


@pytest.mark.few(1)
@pytest.mark.parametrize("exchange", ["auto", "split", "two-phase"])
def test_convolutions_in_local_memory(exchange):
    """Odd lengths in one launch, on columns too; several where the group has no room."""
    config = {**GROUPS, "EXCHANGE": exchange, "FUSED": "never"}
    check(DftProblem(34, batch=3, inner=5, inverse=True, scale=0.5), config)
    ways = (128, 1, 1), (64, 4, 1), (64, 7, 2)  # columns have launches for chirps
    for limit, launches, inner in ways if exchange == "auto" else ways[:1]:
        problem = DftProblem(47, batch=3, inner=inner)
        config = {**config, "LOCAL_LIMIT": limit}
        settled = FFT.configure(problem, select_device(), config)
        assert len(FFT.plan(problem, settled, select_device()).launches) == launches
        check(problem, config)
