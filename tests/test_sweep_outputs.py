"""Plots by efficiency and below the roofline, and the command that searches crossovers."""

import csv
import json
from dataclasses import replace

import pytest
from comparison_rows import row

from opencl_lab.core.plan import Work
from opencl_lab.lab.cli import main
from opencl_lab.lab.cli.crossover import range_of
from opencl_lab.lab.measuring.roofline import Peaks
from opencl_lab.lab.presentation.plots import no_roofline, plot_roofline
from opencl_lab.lab.registry import get_operation, operations

PEAKS = Peaks(2e11, 1e11, 1e10, 4e10)
NAMES = ("opencl:x", "c:seq", "blas x2", "opencl:x@device", "mpi:c x4")


def gemm_row(name, size, rate=1e9):
    work = Work(2.0 * size**3, 12.0 * size**2)
    side = "device" if name.endswith("@device") else "host"
    return replace(row(name, work.flops / rate * 1e3), work=work, data=side, workers=2)


@pytest.fixture
def series():
    return [(size, [gemm_row(name, size) for name in NAMES]) for size in (16, 64, 256)]


def line(axes, label):
    (found,) = [item for item in axes.lines if item.get_label() == label]
    return list(zip(*found.get_data(), strict=True))


def test_ceilings_are_the_measured_peaks(tmp_path, figures, series):
    plot_roofline(tmp_path / "x.svg", series, "size", "title", PEAKS)
    (axes,) = figures[0].axes
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert line(axes, "FP32 peak: 200 GFLOP/s") == [(5, 200), (pytest.approx(128), 200)]
    assert line(axes, "FP64 peak: 100 GFLOP/s")[0] == (pytest.approx(2.5), 100)
    low = min(16 / 6, 200 / 40) / 3  # flops per byte, and room beside
    for label, rate in (("memory: 10 GB/s", 10), ("within a cache: 40 GB/s", 40)):
        assert line(axes, label) == [
            pytest.approx((low, rate * low)), pytest.approx((200 / rate, 200)),
        ]  # fmt: skip


def test_a_mark_per_size_and_implementation_tells_the_side(tmp_path, figures, series):
    plot_roofline(tmp_path / "x.svg", series, "size", "title", PEAKS)
    (axes,) = figures[0].axes
    for name in NAMES:
        assert line(axes, name) == [pytest.approx((size / 6, 1)) for size in (16, 64, 256)]
    marks = {item.get_label(): item for item in axes.lines}
    host, there = marks["opencl:x"], marks["opencl:x@device"]
    assert host.get_color() == there.get_color() and there.get_markerfacecolor() == "white"
    (legend,) = figures[0].legends
    assert set(NAMES) <= {text.get_text() for text in legend.get_texts()}


def test_what_has_no_roofline_says_why(series):
    assert "`oclab doctor` measures" in no_roofline(series, None)
    assert "`oclab doctor` measures" in no_roofline(series, Peaks())
    assert "needs arithmetic" in no_roofline([(9, [row()])], PEAKS)
    failed = [(9, [replace(gemm_row("numpy", 9), status="runtime")])]
    assert "needs arithmetic" in no_roofline(failed, PEAKS)


@pytest.mark.usefixtures("undrawn")
def test_a_plot_that_does_not_belong_to_the_results_is_removed(tmp_path, capsys):
    def touch():
        for name in ("roofline.png", "efficiency.png"):
            (tmp_path / name).touch()

    touch()  # by somebody else: nothing of ours is there
    sweep = ["bench", "sort", "--sizes", "50,60", "--repeats", "1", "--out", str(tmp_path)]
    assert main([*sweep, "--against", "none"]) == 0 and (tmp_path / "roofline.png").exists()
    touch()
    capsys.readouterr()
    assert main([*sweep, "--against", "none"]) == 0
    told = capsys.readouterr().out
    assert "no roofline.png: a roofline needs arithmetic" in told
    assert not list(tmp_path.glob("roofline.png")) and not list(tmp_path.glob("eff*"))


# ------------------------------------------------------------------ --crossover


@pytest.mark.full
def test_the_command_searches_crossovers(tmp_path, capsys):
    command = ["bench", "gemm", "--crossover", "--sizes", "8,200", "--repeats", "1"]
    assert main([*command, "--against", "c:seq,c:omp", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "from which size on the device is faster" in out and "sizes measured" in out
    content = json.loads((tmp_path / "crossover.json").read_text())
    sizes = content["problem"]["sizes"]
    assert content["complete"] is True and {8, 32, 128, 200} <= {*sizes, 32, 128}
    assert {item["size"] for item in content["results"]} == set(sizes)
    assert [item["reference"] for item in content["crossovers"]] == ["c:seq", "c:omp"]
    with (tmp_path / "crossover.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [item["says"] for item in rows] == [item["says"] for item in content["crossovers"]]
    assert (tmp_path / "crossover.png").read_bytes().startswith(b"\x89PNG")
    assert main([*command, "--against", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["crossovers"] == []


@pytest.mark.full
def test_the_algorithm_may_change_with_the_size(tmp_path, capsys):
    command = ["bench", "dft", "--crossover", "--sizes", "16,3000", "--against", "c:seq", "--json"]
    assert main([*command, "--repeats", "1"]) == 0
    content = json.loads(capsys.readouterr().out)
    rows = [item for item in content["results"] if item["kind"] == "opencl"]
    assert {item["implementation"] for item in rows} == {"opencl:auto"}
    assert "fft" in {item["algorithm"] for item in rows}
    assert main([*command, "--repeats", "1", "--algorithm", "fft"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["crossovers"]
    assert found["implementation"] == "opencl:fft"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--sizes", "8"], "between two --sizes"),
        (["--sizes", "0,8"], "between two --sizes"),
        (["--sizes", "8,90000000"], "oclab: "),
        (["--calls"], "not both"),
        (["--fresh"], "--fresh is for results in a folder"),
    ],
)
def test_a_range_that_cannot_be_is_refused(capsys, more, said):
    assert main(["bench", "gemm", "--crossover", *more]) == 2
    err = capsys.readouterr().err
    assert "Traceback" not in err and said in err


def test_every_operation_has_a_range_by_its_work():
    for name, chosen in operations().items():
        least, greatest = range_of(chosen, {}, None)
        work = [chosen.problem(**chosen.with_defaults({chosen.size_option: n})).work
                for n in (least, greatest)]  # fmt: skip
        assert least < greatest and work[1].bytes > 100 * work[0].bytes, name
    assert range_of(get_operation("gemm"), {}, None) == [16, 2048]
    assert range_of(get_operation("sort"), {}, [3, 5, 9]) == [3, 9]
