"""Arrays of the device, which algorithm is taken, and pointwise products."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from command_line import oclab
from fft_checks import write_tone

from opencl_lab.lab.cli import main
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.lab.tuning.tuner import make_task
from opencl_lab.ops.fft.problem import DftProblem


@pytest.mark.few(1)
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
    from opencl_lab.lab.engine.implementations import ReferenceRun, Workload
    from opencl_lab.lab.engine.request import Point, Request, check_point

    short, long = DftProblem(4096), DftProblem(441_000)
    for problem, names, expected in (
        (short, "auto", "fft"),
        (long, "auto", "fft"),
        (long, "direct-tiled", "direct-tiled"),
    ):
        planned = check_point(Point(DFT, problem, dict, Request(algorithms=names)), device)
        assert [name for name, _, _ in planned.runs] == [expected]
    reference = DFT.references[0]
    skipped = ReferenceRun(Workload(DFT, long, {}, {}), reference, 1, by_name=False)
    skipped.attempt(skipped.start)
    assert skipped.status == "unavailable" and "--against c:seq runs it" in skipped.reason
    assert re.match(r"a run would take about \d+ (minute|hour)s?;", skipped.reason)


def test_auto_is_the_fastest(device):
    for problem, name in (
        (DftProblem(65_536), "fft"),
        (DftProblem(64), "fft"),
        (DftProblem(509), "direct-tiled"),  # a prime: the fast way is a convolution
        (DftProblem(10_007), "fft"),
        # On CPUs rows are convolved one by one.
        (DftProblem(509, batch=2), "fft" if device.kind == "cpu" else "direct-tiled"),
        (DftProblem(61, batch=300), "fft"),  # it has a butterfly
        (DftProblem(509, inner=2), "fft"),  # the direct sums need rows
    ):
        assert DFT.choose(problem, device).name == name
    assert make_task("dft", device=device, n=65_536).algorithm_name == "fft"


@pytest.mark.full
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


@pytest.mark.full
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
