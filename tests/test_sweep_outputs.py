"""Plots by efficiency and below the roofline, and the command that searches crossovers."""

import csv
import json
from dataclasses import replace

import pytest
from comparison_rows import row

from opencl_lab.core.plan import Work
from opencl_lab.lab.cli import main
from opencl_lab.lab.cli.crossover import range_of
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.measuring.roofline import Peaks
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.presentation.plots import (
    plot_efficiency,
    plot_times,
    share_of_worker,
    styles,
)
from opencl_lab.lab.presentation.roofline_plot import no_roofline, plot_roofline
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


@pytest.mark.parametrize(
    "peaks", [Peaks(flops32=2e11), Peaks(copy_bytes=1e10), Peaks(flops64=1e11, cached_bytes=4e10)]
)
def test_some_peaks_are_enough(tmp_path, figures, series, peaks):
    assert no_roofline(series, peaks) == ""
    plot_roofline(tmp_path / "x.svg", series[:1], "size", "title", peaks)
    (axes,) = figures[0].axes
    low, high = axes.get_ylim()
    assert 0 < low < 1 < high < 1e4


def test_one_size_is_in_the_middle_with_its_spread(tmp_path, figures):
    times = Times(2.0, 1.0, 8.0, 5)
    plot_times(tmp_path / "x.svg", [(64, [replace(row("numpy"), total_ms=times)])], "n", "title")
    (axes,) = figures[0].axes
    assert axes.get_xlim() == (32, 128)
    spreads = [item.get_segments() for item in axes.collections if hasattr(item, "get_segments")]
    assert [[[tuple(end) for end in part] for part in lines] for lines in spreads] == [
        [[(64, 1), (64, 8)]]
    ]


def test_what_has_no_roofline_says_why(series):
    assert "`oclab doctor` measures" in no_roofline(series, None)
    assert "`oclab doctor` measures" in no_roofline(series, Peaks())
    assert "needs arithmetic" in no_roofline([(9, [row()])], PEAKS)
    failed = [(9, [replace(gemm_row("numpy", 9), status="runtime")])]
    assert "needs arithmetic" in no_roofline(failed, PEAKS)


def test_efficiency_is_shown_of_ours_and_of_several_workers(tmp_path, figures):
    def measured(name, kind, workers):
        return Measurement(
            name, kind, name, workers=workers, total_ms=row().total_ms, speedup=3.0 * workers
        )

    rows = [
        measured("opencl:x", "opencl", 1), measured("c:seq", "c", 1), measured("c:omp x2", "c", 2),
        measured("mpi:c x4", "mpi", 4), measured("numpy", "library", 1),
    ]  # fmt: skip
    assert [share_of_worker(item) for item in rows] == [3, None, 3, 3, None]
    more = [measured("opencl:x", "opencl", 4), *rows[1:]]  # at 1, in the calling thread
    plot_efficiency(tmp_path / "x.svg", [(1, rows), (9, more)], "n", "c:seq", "title")
    (axes,) = figures[0].axes
    labels = [text.get_text() for text in figures[0].legends[0].get_texts()]
    assert labels == [
        "opencl:x (1 to 4 compute units)",
        "c:omp x2 (2 threads)",
        "mpi:c x4 (4 ranks)",
    ]
    looks = styles([item.implementation for item in rows])  # as in the other plots of the sweep
    assert axes.lines[1].get_color() == looks["c:omp x2"]["color"]


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
