"""The direct transform: accurate at every length, and the command line around it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import wave
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import opencl_lab as ol
from opencl_lab.cli import main
from opencl_lab.comparison.runner import run_comparison
from opencl_lab.errors import InvalidConfig, InvalidProblem
from opencl_lab.fourier.twiddles import root_table, roots_of_unity
from opencl_lab.operation import Difference
from opencl_lab.operations.dft.functions import dft
from opencl_lab.operations.dft.operation import DFT
from opencl_lab.operations.dft.problem import DftProblem
from opencl_lab.operations.dft.transform import converted
from opencl_lab.runtime.session import session_of
from opencl_lab.tuning.tuner import make_task

ALGORITHMS = ("direct-naive", "direct-tiled")
BOUND = {"complex64": 1e-6, "complex128": 1e-14}


def random_signal(rng, shape, dtype="complex64"):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def relative(actual, expected):
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("n", [1, 2, 3, 1000, 1009, 8192])
def test_error_stays_small_at_every_length(n, algorithm, dtype, rng, queue):
    x = random_signal(rng, n, dtype)
    right = np.fft.fft(x.astype(np.complex128))
    assert relative(dft(x, algorithm=algorithm, queue=queue), right) <= BOUND[dtype]


@pytest.mark.parametrize("dtype", BOUND)
def test_a_long_transform_of_few_waves(dtype, queue):
    """At n = 65536 every power j * k is used, and each wave must end in its own bin."""
    n, waves = 65_536, {1: 2.0, 4097: -1j, 65_535: 0.5}
    powers = np.arange(n)
    x = sum(a * roots_of_unity(-k * powers, n) for k, a in waves.items()).astype(dtype)
    right = np.zeros(n, np.complex128)
    for k, amplitude in waves.items():
        right[k] = n * amplitude
    assert relative(dft(x, algorithm="direct-tiled", queue=queue), right) <= BOUND[dtype]


def test_roots_are_right_to_the_last_digit():
    for n in (1, 2, 3, 7, 8, 1000, 65_537):
        powers = np.arange(-n, 2 * n)
        angle = -2 * np.arccos(np.longdouble(-1)) * (powers % n) / np.longdouble(n)
        roots = roots_of_unity(powers, n)
        assert np.max(np.abs(roots.real - np.cos(angle))) <= 2.3e-16
        assert np.max(np.abs(roots.imag - np.sin(angle))) <= 2.3e-16
    assert list(roots_of_unity(np.arange(4), 4)) == [1, -1j, -1, 1j]
    table = root_table(5, True, np.dtype("complex64"))
    np.testing.assert_array_equal(table, root_table(5, False, np.dtype("complex64")).conj())


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("inverse", [False, True])
def test_axes_norms_and_kinds_of_input(norm, inverse, rng, queue):
    right_of = np.fft.ifft if inverse else np.fft.fft
    for x in (
        rng.standard_normal((4, 5, 6)),
        rng.integers(-9, 9, (4, 5, 6)),
        rng.standard_normal((4, 5, 6)).astype(np.float32)[::-1, ::2],
        random_signal(rng, (4, 5, 6)).T,
        random_signal(rng, (4, 5), ">c16"),
    ):
        before = x.copy()
        for axis in range(-x.ndim, x.ndim):
            result = dft(x, inverse=inverse, norm=norm, axis=axis, queue=queue)
            right = right_of(x, axis=axis, norm=norm)
            single = x.dtype in (np.float32, np.complex64)
            assert result.dtype == (np.complex64 if single else np.complex128)
            assert result.shape == x.shape
            assert relative(result, right) < (1e-6 if single else 1e-14)
        np.testing.assert_array_equal(x, before)


def test_device_arrays_stay_on_the_device(rng, queue):
    x = random_signal(rng, (6, 30))
    given = cl.array.to_device(queue, x)
    for axis in (0, 1):
        result = dft(given, axis=axis)
        assert isinstance(result, cl.array.Array) and result.queue == queue
        assert relative(result.get(), np.fft.fft(x, axis=axis)) < 1e-6
    np.testing.assert_array_equal(given.get(), x)


@pytest.mark.parametrize("side", ["host", "device"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u4", "i8", "?"])
def test_real_signals_of_every_type_have_whole_spectra(dtype, side, rng, queue, monkeypatch):
    def no_copy(*_, **__):
        raise AssertionError("it went through the host")

    single = dtype in ("f2", "f4")
    for shape, axis in (((3, 8), 1), ((3, 7), 1), ((1, 1), 0), ((5, 2, 2), 0), ((2, 0), 1)):
        x = (9 * rng.random(shape)).astype(dtype)
        given = cl.array.to_device(queue, x) if side == "device" else x
        for inverse, algorithm in ((False, "auto"), (True, "auto"), (True, "fft")):
            with monkeypatch.context() as patch:
                patch.setattr(cl.array.Array, "get", no_copy)
                result = dft(given, inverse=inverse, axis=axis, algorithm=algorithm, queue=queue)
            assert isinstance(result, cl.array.Array if side == "device" else np.ndarray)
            result = result.get() if side == "device" else result
            assert result.shape == shape and result.dtype == (np.complex64 if single else complex)
            if x.size:
                right = (np.fft.ifft if inverse else np.fft.fft)(x.astype(complex), axis=axis)
                assert relative(result, right) <= (1e-6 if single else 1e-14)
                mirrored = np.take(result, -np.arange(shape[axis]), axis)
                np.testing.assert_array_equal(mirrored, result.conj())
    if side == "device":
        strided = cl.array.to_device(queue, x := (9 * rng.random((6, 8))).astype(dtype))[::-2, 1:]
        out = cl.array.empty(queue, (3, 7), np.complex64 if single else complex)
        assert dft(strided, out=out) is out
        assert relative(out.get(), np.fft.fft(x[::-2, 1:])) <= 1e-6


def test_a_device_without_double_precision_says_what_to_do(queue, monkeypatch):
    session = session_of(queue)
    poor = replace(session.device, capabilities=replace(session.device.capabilities, fp64=False))
    monkeypatch.setattr(session, "device", poor)
    with pytest.raises(InvalidConfig, match="convert it to float32"):
        dft(cl.array.to_device(queue, np.arange(4)))


def test_out_receives_the_result(rng, queue):
    x = random_signal(rng, (3, 20))
    right = np.fft.fft(x)
    out = np.empty_like(x)
    assert dft(x, out=out, queue=queue) is out
    assert relative(out, right) < 1e-6
    strided = np.empty((3, 40), np.complex64)[:, ::2]
    dft(x, out=strided, queue=queue)
    assert relative(strided, right) < 1e-6
    assert dft(x, out=x, queue=queue) is x
    assert relative(x, right) < 1e-6
    with pytest.raises(InvalidProblem, match="out must have shape"):
        dft(x, out=np.empty((3, 21), np.complex64), queue=queue)


def test_problems_that_are_refused(queue):
    with pytest.raises(InvalidProblem, match="axis 1 is out of bounds"):
        dft(np.zeros(3), axis=1, queue=queue)
    with pytest.raises(InvalidProblem, match="norm must be one of"):
        dft(np.zeros(3), norm="none", queue=queue)
    with pytest.raises(InvalidProblem, match="cannot transform values of dtype <U1"):
        dft(np.array(["a"]), queue=queue)
    for bad in ({"n": -1}, {"dtype": np.dtype("float32")}, {"kind": "r2r"}):
        with pytest.raises(InvalidProblem):
            DftProblem(**{"n": 4, **bad})
    with pytest.raises(InvalidProblem, match="cannot transform samples of int32"):
        DftProblem.of(4, np.dtype("int32"), 1, False, 1.0)
    with pytest.raises(InvalidProblem, match="inner must be 1"):
        DftProblem(4, inner=2, kind="r2c")
    with pytest.raises(InvalidConfig, match="contiguous rows only"):
        DFT.choose(DftProblem(4, inner=2), ol.select_device(), "direct-naive")


def test_results_are_judged_at_every_magnitude(rng):
    for dtype, sizes in (("complex64", (1e-20, 1e30)), ("complex128", (1e-200, 1e200))):
        for size in sizes:
            problem = DftProblem(8, np.dtype(dtype), 2)
            right = (size * random_signal(rng, (2, 8, 1), "complex128")).astype(dtype)
            inputs, wrong = {"signal": right}, right.copy()
            wrong[1, 3] *= 1.001
            same = DFT.compare(problem, inputs, {"spectrum": right}, {"spectrum": right})
            assert same.ok and same.rel_l2 == 0
            other = DFT.compare(problem, inputs, {"spectrum": right}, {"spectrum": wrong})
            assert not other.ok and 1e-5 < other.rel_l2 < 1e-3
            for strange in (np.nan, np.inf):
                infinite = right.copy()
                infinite[1, 3] = strange
                given = {"spectrum": infinite}
                assert DFT.compare(problem, inputs, given, given).ok
                assert not DFT.compare(problem, inputs, given, {"spectrum": right}).ok


BROKEN = [
    *({name: 0} for name in ("WG_SIZE", "WORK_PER_ITEM", "TILE", "BLOCKS")),
    {"VECTOR_WIDTH": 3},
    {"VECTOR_WIDTH": 2, "WORK_PER_ITEM": 1},
    {"WG_SIZE": 48},
    {"RESEED": -1},
    {"RESEED": 24},
    {"RESEED": 0, "TILE": 6, "WG_SIZE": 1},
    {"RESEED": 0, "TILE": 512, "WORK_PER_ITEM": 32, "WG_SIZE": 1},
    {"RESEED": 0},
    {"WORK_PER_ITEM": 8, "BLOCKS": 8, "RESEED": 1},
    {"WORK_PER_ITEM": 4, "BLOCKS": 8, "RESEED": 16},
]


def test_every_constraint_can_be_broken_and_says_why():
    algorithm = DFT.algorithm("direct-tiled")
    whole = algorithm.default_config(DftProblem(100), ol.select_device()).replace(
        WG_SIZE=32, WORK_PER_ITEM=2, VECTOR_WIDTH=1, TILE=64, BLOCKS=2, RESEED=16
    )
    assert algorithm.space.violation(whole) is None
    seen = [algorithm.space.violation(whole.replace(**changes)) for changes in BROKEN]
    assert set(seen) == {constraint.reason for constraint in algorithm.space.constraints}


# ------------------------------------------------------------ command line


def oclab(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "opencl_lab", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def write_tone(path, channels=1, width=2, n=2000, cycles=(50, 300)):
    top = {1: 127, 2: 2**15 - 1, 3: 2**23 - 1, 4: 2**31 - 1}[width]
    time = np.arange(n) / n
    tones = [0.8 * np.sin(2 * np.pi * f * time) for f in cycles[:channels]]
    samples = np.round(np.stack(tones, -1) * top).astype("<i4")
    if width == 1:
        raw = (samples + 128).astype(np.uint8).tobytes()
    else:
        raw = samples.reshape(-1, 1).view(np.uint8)[:, :width].tobytes()
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(8000)
        file.writeframes(raw)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("channels", [1, 2])
def test_wav_files_become_samples_between_one_and_minus_one(tmp_path, channels, width):
    from opencl_lab.files import SOUNDS, read_array

    write_tone(tmp_path / "tone.wav", channels, width)
    samples = read_array(tmp_path / "tone.wav", SOUNDS)
    assert samples.dtype == np.float32
    assert samples.shape == ((2000,) if channels == 1 else (2, 2000))
    spectrum = np.abs(np.fft.rfft(samples)) / 1000
    for row, cycles in zip(np.atleast_2d(spectrum), (50, 300), strict=False):
        assert np.argmax(row) == cycles
        assert row[cycles] == pytest.approx(0.8, abs=0.01)


def test_two_channels_to_text_and_a_rate_in_place_of_that_of_the_file(tmp_path, capsys):
    write_tone(tmp_path / "tone.wav", 2)
    text = tmp_path / "spectrum.txt"
    start = ["dft", str(tmp_path / "tone.wav"), "--repeats", "1", "--against", "none", "--rate"]
    assert main([*start, "4e3", "-o", str(text), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["options"]["rate"] == 4000
    numbers = np.genfromtxt(text, names=True)
    for row, frequency in (("0", 100), ("1", 600)):
        assert numbers["frequency_hz"][np.argmax(numbers[f"magnitude_{row}"])] == frequency
    for rate in ("0", "-1", "nan", "inf"):
        assert main([*start, rate]) == 2
        assert "rate must be" in capsys.readouterr().err


def test_plain_numbers_go_there_and_back_as_text(tmp_path):
    """Without a rate a text file holds the numbers alone, as the input does."""
    numbers = np.random.default_rng(0).standard_normal((2, 12))
    names = [str(tmp_path / f"{name}.csv") for name in ("signal", "spectrum", "back", "timed")]
    np.savetxt(names[0], numbers, delimiter=",")
    quick = ["--repeats", "1", "--against", "none", "--quiet"]
    assert main(["dft", names[0], "-o", names[1], *quick]) == 0
    plot = str(tmp_path / "x.png")
    assert main(["dft", names[1], "--inverse", "-o", names[2], "--plot", plot, *quick]) == 0
    back = np.loadtxt(names[2], dtype=complex, delimiter=",")
    np.testing.assert_allclose(back, numbers, atol=1e-12)
    assert main(["dft", names[1], "--inverse", "--rate", "4", "-o", names[3], *quick]) == 0
    timed = np.genfromtxt(names[3], delimiter=",", names=True)
    np.testing.assert_array_equal(timed["time_s"], np.arange(12) / 4)
    np.testing.assert_allclose(timed["real_1"], numbers[1], atol=1e-12)


def test_curves_and_columns_of_complex_signals_have_both_signs():
    arrays = {"signal": np.exp(-2j * np.pi * np.arange(9) / 9)}
    outputs = {"spectrum": np.fft.fft(arrays["signal"])[None, :, None]}
    curves = DFT.curves(arrays, outputs)
    assert curves.points[np.argmax(curves.values["row 0"])] == pytest.approx(-1 / 9)
    columns = DFT.columns(arrays, outputs, rate=18.0)
    np.testing.assert_allclose(columns["frequency_hz"], np.arange(-4, 5) * 2.0)
    assert columns["frequency_hz"][np.argmax(columns["magnitude"])] == pytest.approx(-2)
    empty = {"spectrum": np.empty((0, 0, 1), complex)}
    assert DFT.curves({"signal": np.empty(0)}, empty).points.size == 0


def test_real_types_are_problems_of_half_a_spectrum():
    single, double = np.dtype("complex64"), np.dtype("complex128")
    for dtype, inverse, kind, spectrum in (
        ("complex64", True, "c2c", single),
        ("float16", False, "r2c", single),
        ("float32", False, "r2c", single),
        ("float64", False, "r2c", double),
        ("float32", True, "c2r", single),
        ("float64", True, "c2r", double),
    ):
        problem = DFT.problem(n=9, batch=2, dtype=dtype, inverse=inverse)
        assert (problem.kind, problem.dtype, problem.inverse) == (kind, spectrum, inverse)
        assert problem.signal[1] == (spectrum if kind != "r2c" else dtype)
        assert problem.signal[0][1] == (5 if kind == "c2r" else 9)
        assert problem.spectrum[0][1] == (5 if kind == "r2c" else 9)
        for change in DFT.check_cases:  # the tuner's gate keeps direction and type
            changed = replace(problem, **change)
            assert (changed.kind, changed.half) == (kind, problem.half)
            assert changed.inverse == inverse
    assert DFT.problem(n=0, dtype="float32").spectrum[0] == (1, 0, 1)
    with pytest.raises(InvalidProblem, match="float16 is read and never written"):
        DFT.problem(dtype="float16", inverse=True)


def test_generated_halves_are_those_of_real_signals():
    for n in (0, 1, 2, 7, 8):
        problem = DFT.problem(n=n, batch=3, dtype="float64", inverse=True)
        halves = DFT.generate(problem, 1)["signal"][..., 0]
        if n:
            back = np.fft.rfft(np.fft.irfft(halves, n))
            np.testing.assert_allclose(halves, back, atol=1e-14)


@pytest.mark.parametrize("n", [6, 7])
def test_files_of_real_signals_and_back(n, rng, queue):
    signal = rng.standard_normal((2, 3, n))
    problem, inputs = DFT.problem_of({"signal": signal}, dtype="float16")
    assert problem.half and inputs["signal"].dtype == np.float16
    outputs = {"spectrum": np.fft.rfft(signal).reshape(6, -1, 1)}
    assert DFT.present({"signal": signal}, outputs).shape == (2, 3, n // 2 + 1)
    dirty = np.fft.rfft(signal)
    dirty.imag[..., 0] = np.nan
    if n % 2 == 0:
        dirty.imag[..., -1] = 5
    back = {"dtype": "float64", "inverse": True}
    given = {"signal": dirty}
    problem, inputs = DFT.problem_of(given, **back, **({"n": n} if n % 2 else {}))
    assert problem.n == n and np.isnan(dirty.imag[0, 0, 0])
    for algorithm in DFT.algorithms:
        run = DFT.run(problem, inputs, algorithm=algorithm.name, queue=queue)
        np.testing.assert_allclose(DFT.present(given, run.outputs), signal, atol=1e-14)
    for arrays, options, message in (
        ({"signal": signal}, {"dtype": "float32", "n": n}, "n is given by the input file"),
        (given, {**back, "batch": 2}, "batch is given by the input file"),
        (given, {**back, "n": n + 2}, "frequencies, not "),
        ({"signal": dirty[..., :1]}, back, "fewer than two frequencies"),
        ({"signal": dirty[..., :1]}, {**back, "n": 0}, "0 real samples has 0 frequencies"),
        ({"signal": dirty[..., :1]}, {**back, "n": -1}, "must not be negative"),
        (given, {"dtype": "float32"}, "cannot convert complex numbers to float32"),
        ({"signal": [1e5] * signal}, {"dtype": "float16"}, "cannot be converted to float16"),
    ):
        with pytest.raises(InvalidProblem, match=message):
            DFT.problem_of(arrays, **options)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64"]
)
def test_device_arrays_of_every_type_are_converted(dtype, device, queue, rng):
    if not device.capabilities.fp64:
        pytest.skip("no double precision")
    whole = np.dtype(dtype).kind in "biu"
    host = rng.integers(-(2**63), 2**63, (4, 77)) if whole else rng.standard_normal((4, 77))
    host = host.astype(dtype)
    given = cl.array.to_device(queue, host)
    for target in {"float64", "complex128"} - {dtype}:
        for part in (np.s_[:], np.s_[1::2, 3:], np.s_[:0]):
            result = converted(given[part], np.dtype(target))
            assert result.dtype == target
            np.testing.assert_array_equal(result.get(), host[part].astype(target))


@pytest.mark.parametrize("kind", ["c2c", "r2c", "c2r"])
def test_tiles_of_many_items(kind, queue):
    """What GPUs take by default: samples go through local memory, with barriers.

    Intel's CPU runtime loses some of what items keep over a barrier.
    """
    config = {"WG_SIZE": 64, "WORK_PER_ITEM": 1, "VECTOR_WIDTH": 1, "TILE": 64, "RESEED": 32}
    for n, half in ((600, False), (77, kind == "r2c")):
        problem = DftProblem(n, batch=2, kind=kind, scale=0.5, half=half)
        inputs = DFT.generate(problem, 2)
        run = DFT.run(
            problem, inputs, algorithm="direct-tiled", config={**config, "BLOCKS": 8}, queue=queue
        )
        assert DFT.compare(problem, inputs, DFT.expected(problem, inputs), run.outputs).ok
        _, *tiled = run.executable.plan.launches if half else (None, *run.executable.plan.launches)
        sample = 4 if kind == "r2c" else 8  # bytes
        assert [launch.local_bytes for launch in tiled] == [64 * 8 * sample]


def test_axes_of_real_results():
    for n in (8, 9):
        wave = np.cos(2 * np.pi * 3 * np.arange(n) / n)[None, :, None]
        options = {"rate": 2.0, "n": n, "dtype": "float32"}
        columns = DFT.columns({}, {"spectrum": np.fft.rfft(wave, axis=1)}, **options)
        np.testing.assert_allclose(columns["frequency_hz"], np.fft.rfftfreq(n, 1 / 2))
        assert np.argmax(columns["magnitude"]) == 3
        back = DFT.columns({}, {"spectrum": wave}, **options, inverse=True)
        assert list(back) == ["time_s", "real"]
        np.testing.assert_array_equal(back["real"], wave[0, :, 0])
    curves = DFT.curves(
        {"signal": np.ones(4)}, {"spectrum": np.ones((1, 3, 1), complex)}, dtype="float64"
    )
    np.testing.assert_array_equal(curves.points, [0, 0.25, 0.5])


def test_sums_that_nobody_would_wait_for_run_by_name_only(device):
    from opencl_lab.comparison.implementations import ReferenceRun, Workload
    from opencl_lab.comparison.runner import check_comparison

    short, long = DftProblem(4096), DftProblem(441_000)
    for problem, names, expected in (
        (short, "auto", "fft"),
        (long, "auto", "fft"),
        (long, "direct-tiled", "direct-tiled"),
    ):
        request = check_comparison(DFT, problem, device=device, algorithms=names)
        assert [name for name, _, _ in request.runs] == [expected]
    reference = DFT.references[0]
    skipped = ReferenceRun(Workload(DFT, long, {}, {}), reference, 1, patient=False)
    skipped.attempt(skipped.start)
    assert skipped.status == "unavailable" and "--against c:seq runs it" in skipped.reason
    assert re.match(r"a run would take about \d+ (minute|hour)s?;", skipped.reason)


def test_auto_is_the_fastest_and_the_public_function_stays_direct(device, monkeypatch):
    for problem, name in (
        (DftProblem(65_536), "fft"),
        (DftProblem(64), "fft"),
        (DftProblem(509), "direct-tiled"),  # a prime: the fast way is a convolution
        (DftProblem(10_007), "fft"),
        (DftProblem(61, batch=64), "direct-gemm"),
        (DftProblem(61, batch=4096), "fft"),
        (DftProblem(61, inner=2), "fft"),  # the direct sums need rows
    ):
        assert DFT.choose(problem, device).name == name
    assert make_task("dft", device=device, n=65_536).algorithm_name == "fft"
    taken = []
    choose = type(DFT.solver).choose

    def watched(self, *args):
        taken.append(choose(self, *args))
        return taken[-1]

    monkeypatch.setattr(type(DFT.solver), "choose", watched)
    ol.dft(np.zeros(64, np.complex64))
    assert taken[-1].name == "direct-tiled"


@pytest.mark.parametrize("dtype", ["complex64", "float32"])
def test_a_tone_to_csv_and_plot(dtype, tmp_path):
    write_tone(tmp_path / "tone.wav")
    csv, plot = tmp_path / "spectrum.csv", tmp_path / "spectrum.png"
    start = ["dft", tmp_path / "tone.wav", "-o", csv, "--plot", plot, "--repeats", 1, "--dtype"]
    result = oclab(*start, dtype)
    assert result.returncode == 0, result.stderr
    frequency, real, imaginary, magnitude = np.loadtxt(csv, delimiter=",", skiprows=1).T
    np.testing.assert_array_equal(frequency, np.fft.rfftfreq(2000, 1 / 8000))
    np.testing.assert_allclose(np.hypot(real, imaginary), magnitude, rtol=1e-5)
    assert frequency[np.argmax(magnitude)] == 200  # 50 waves in a quarter of a second
    assert plot.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("options", [["--inverse"], ["--dtype", "float16"]])
def test_all_algorithms_and_references_agree(options):
    result = oclab(
        "dft", "--n", 96, "--batch", 3, *options, "--algorithm", "all", "--repeats", 1, "--json"
    )
    assert result.returncode == 0, result.stderr
    rows = {row["implementation"]: row for row in json.loads(result.stdout)["results"]}
    algorithms = {f"opencl:{algorithm.name}" for algorithm in DFT.algorithms}
    assert algorithms | {"c:seq", "c:omp", "numpy"} <= set(rows)
    assert all(row["status"] in ("correct", "unavailable") for row in rows.values())
    assert all(rows[name]["ok"] for name in algorithms)


def test_what_nobody_sees_does_not_run(tmp_path, monkeypatch):
    ran = []

    def watched(*args, **options):
        ran.append(run_comparison(*args, **options))
        return ran[-1]

    monkeypatch.setattr("opencl_lab.cli.operation.run_comparison", watched)
    tone, csv = str(tmp_path / "tone.wav"), str(tmp_path / "s.csv")
    write_tone(tone, n=200)
    start = ["dft", tone, "-o", csv, "--quiet"]
    for more, names, runs in (
        ([], set(), 1),
        (["--plot", str(tmp_path / "spectrum.png")], set(), 1),
        (["--against", "numpy"], {"numpy"}, 1),
        (["--csv", str(tmp_path / "rows.csv"), "--repeats", "2"], {"c:seq", "numpy"}, 2),
    ):
        assert main([*start, *more]) == 0
        rows = {row.implementation: row for row in ran[-1].measurements}
        assert rows["opencl:fft"].ok and rows["opencl:fft"].total_ms.runs == runs
        assert names <= set(rows) and (names or len(rows) == 1)
    assert main(["dft", "--n", "64", "--quiet", "--plot", str(tmp_path / "times.png")]) == 0
    assert "numpy" in {row.implementation for row in ran[-1].measurements}

    monkeypatch.setattr(type(DFT), "compare", lambda *args: Difference(1.0, 1.0, False))
    assert main(start) == 1  # a result is checked all the same


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_silence_has_a_spectrum(tmp_path):
    np.save(tmp_path / "silence.npy", np.zeros(100, np.float32))
    arguments = [str(tmp_path / "silence.npy"), "--plot", str(tmp_path / "s.png"), "--quiet"]
    assert main(["dft", *arguments]) == 0


def test_a_damaged_wav_is_bad_input(tmp_path):
    (tmp_path / "tone.wav").write_bytes(b"RIFF")
    result = oclab("dft", tmp_path / "tone.wav", "--repeats", 1)
    assert result.returncode == 2
    assert "cannot read" in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("n", [1, 2, 3, 127, 512])
def test_error_of_products_stays_small(n, dtype, rng, queue):
    x = random_signal(rng, (5, n), dtype)
    right = np.fft.fft(x.astype(np.complex128))
    assert relative(dft(x, algorithm="direct-gemm", queue=queue), right) <= BOUND[dtype]


def test_many_short_rows_are_one_product(rng):
    device = ol.select_device()
    assert DFT.choose(DftProblem(100, batch=64), device, "direct").name == "direct-gemm"
    for other in (DftProblem(100, batch=63), DftProblem(257, batch=64), DftProblem(1)):
        assert DFT.choose(other, device, "direct").name == "direct-tiled"
    with pytest.raises(InvalidConfig, match="accurate enough"):
        DFT.choose(DftProblem(513), device, "direct-gemm")
    x = rng.standard_normal((70, 100)) + 1j * rng.standard_normal((70, 100))
    right = np.fft.fft(x, norm="ortho")
    assert relative(ol.dft(x, norm="ortho"), right) <= 1e-14
    assert relative(ol.dft(right, norm="ortho", inverse=True), x) <= 1e-14
