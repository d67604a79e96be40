"""The DFT on the command line: sound files, text, plots."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fft_checks import write_tone

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.cli import main
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.lab.presentation.plots import plot_curves


def test_two_channels_to_text_and_a_rate_in_place_of_that_of_the_file(tmp_path, capsys):
    write_tone(tmp_path / "tone.wav", 2)
    text = tmp_path / "spectrum.txt"
    start = ["dft", str(tmp_path / "tone.wav"), "--repeats", "1", "--against", "none", "--rate"]
    assert main([*start, "4e3", "-o", str(text), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["options"]["rate"] == 4000
    assert main([*start, "4e3"]) == 0
    assert "tone.wav says rate 8000; --rate 4000 is used instead" in capsys.readouterr().out
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


def test_no_channel_hides_another_nor_what_was_computed(tmp_path, figures):
    signals = np.stack([np.cos(2 * np.pi * f * np.arange(64) / 64) for f in (4, 9)])
    spectrum = np.fft.fft(signals).astype(np.complex64)[:, :, None]
    curves = DFT.curves({"signal": signals}, {"spectrum": spectrum})
    plot_curves(tmp_path / "x.png", curves, "title")
    panels = figures[0].axes
    assert [axes.get_ylabel() for axes in panels] == ["row 0", "row 1"]
    for axes, cycles in zip(panels, (4, 9), strict=True):
        (line,) = axes.lines
        points, values = line.get_data()
        assert abs(points[np.argmax(values)]) == pytest.approx(cycles / 64)
        assert -140 < min(values) < -130  # the rounding of float32, below which nothing is known


@pytest.mark.few(1)
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
