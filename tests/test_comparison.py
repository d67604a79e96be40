"""Measuring: rows, speed-ups, crossovers, failures that end one contestant and not the run."""

import io
import json
import math
import time
from dataclasses import dataclass, replace
from itertools import combinations

import click
import numpy as np
import pytest
from rich.console import Console

import opencl_lab as ol
from opencl_lab.cli.common import fit, global_options, progress_bar
from opencl_lab.comparison.contestants import ReferenceRun, Task
from opencl_lab.comparison.measure import COLUMNS, Measurement, Times
from opencl_lab.comparison.plots import (
    large_number,
    plot_speedup,
    plot_throughput,
    plot_times,
    set_title,
)
from opencl_lab.comparison.runner import run_comparison
from opencl_lab.comparison.sweep import crossovers
from opencl_lab.comparison.table import OPTIONAL_COLUMNS, comparison_table, number
from opencl_lab.operation import Difference
from opencl_lab.operations.sort.odd_even_merge import OddEvenMerge
from opencl_lab.operations.sort.operation import SORT
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.operations.sort.references import numpy_sort
from opencl_lab.operations.sort.solver import SortSolver
from opencl_lab.plan import Work
from opencl_lab.reference.descriptor import HostReference
from opencl_lab.registry import get_operation
from opencl_lab.solver import Problem
from opencl_lab.wording import duration

FLOAT32 = np.dtype("float32")


def row(name="numpy", milliseconds=2.0, status="correct", **more):
    times = Times(milliseconds, milliseconds, milliseconds, 3)
    kind, _, algorithm = name.partition("[")[0].rpartition(":")
    return Measurement(name, kind or "library", algorithm, status, total_ms=times, **more)


def test_times_summarise_samples():
    assert Times.of([3.0, 1.0, 2.0]) == Times(2.0, 1.0, 3.0, 3)
    assert Times(2.0, 1.0, 3.0, 3).interval == (1.0, 3.0)
    for count, left_out in ((1, 0), (5, 0), (8, 0), (9, 1), (15, 3), (20, 5)):
        times = Times.of(range(count, 0, -1))
        assert times.interval == (1 + left_out, count - left_out)
        assert (times.min, times.max) == (1, count)


def test_speedup_and_efficiency():
    measured = row(milliseconds=2.0, workers=4).against(row("c:seq", 8.0))
    assert measured.speedup == 4.0 and measured.efficiency == 1.0
    assert row().against(None).speedup is None
    assert row(status="correctness").against(row("c:seq")).speedup is None
    assert row().against(row("c:seq", status="correctness")).speedup is None


def test_rates_are_by_the_total_time_of_all_alike():
    work = Work(flops=2e9, bytes=4e9)
    for measured in (
        row(milliseconds=1000.0, work=work, kernel_ms=500.0),
        row("c:seq", 1e3, work=work),
    ):
        assert measured.gflops == pytest.approx(2.0) and measured.gbps == pytest.approx(4.0)
    assert row(work=Work(flops=0, bytes=1)).gflops is None


def test_rows_are_json_even_with_infinite_differences():
    content = row(difference=Difference(math.inf, math.nan, False)).as_row()
    assert content["max_abs_diff"] is None and content["max_rel_diff"] is None
    json.dumps(content, allow_nan=False)
    assert tuple(row().as_csv()) == COLUMNS
    unmeasured = Measurement("c:seq", "c", "c:seq", "unavailable", "no compiler").as_csv()
    assert unmeasured["total_ms"] is None and unmeasured["reason"] == "no compiler"


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([1, 1, 1], [2, 2, 2], 10),  # faster throughout: the smallest size
        ([3, 3, 3], [2, 2, 2], None),
        ([4, 2, 1], [1, 2, 4], 1000),  # equal at the middle size, faster after it
        ([2, 1, 1], [1, 2, 2], math.sqrt(10 * 100)),
        ([1, 4, 1], [2, 2, 2], 100 * 10**0.5),  # the last crossing counts
    ],
)
def test_crossover(ours, theirs, expected):
    series = [
        (size, [row("opencl:x", a), row("numpy", b)])
        for size, a, b in zip((10, 100, 1000), ours, theirs, strict=True)
    ]
    (found,) = crossovers(series)
    assert found.size == (None if expected is None else pytest.approx(expected))
    assert ("slower" in str(found)) == (expected is None)


@pytest.mark.parametrize(
    ("medians", "spread", "size", "level", "said"),
    [
        ((4, 1, 0.5), 1.2, math.sqrt(1000), (), "from 31.6 on"),
        ((4, 1.8, 0.5), 1.2, 1000, (100,), "from 1000 on, level within noise at 100"),
        ((1.9, 1.8, 0.5), 1.2, 1000, (10, 100), "at 10, 100"),
        ((0.5, 1.8, 0.5), 1.2, 1000, (100,), "from 1000 on, level"),
        ((4, 0.5, 1.9), 1.2, None, (1000,), "are level within noise at 1000"),
        ((4, 2.1, 1.9), 1.2, None, (100, 1000), "are level within noise at 100, 1000"),
        ((0.5, 1.9, 4), 1.2, None, (), "stays slower"),
    ],
)
def test_a_crossover_within_noise_is_none(medians, spread, size, level, said, tmp_path):
    def measured(name, median):
        times = Times(median, median / spread, median * spread, 5)
        return replace(row(name), total_ms=times)

    series = [
        (at, [measured("opencl:x", median), measured("opencl:y", 2)])
        for at, median in zip((10, 100, 1000), medians, strict=True)
    ]
    found = crossovers([(at, [rows[0], replace(rows[1], kind="c")]) for at, rows in series])
    assert len(found) == 1 and found[0].level == level and said in str(found[0]), str(found[0])
    assert found[0].size == (None if size is None else pytest.approx(size))
    plot_times(tmp_path / "x.svg", series, "n", "title", crossovers(series))
    ringed = (tmp_path / "x.svg").read_text().count("opencl:x from")
    assert ringed == (size is not None and not level)


def test_nothing_to_do_is_no_crossover():
    series = [(size, [row("opencl:x", 4 - size), row("numpy", 2.5)]) for size in (0, 1, 2)]
    (found,) = crossovers(series)
    assert 1 < found.size < 2
    series = [(size, [row("opencl:x", 3 - 2 * size), row("numpy", 2)]) for size in (0, 1)]
    (found,) = crossovers(series)
    assert found.size == 1
    assert crossovers(series[:1]) == []


def test_algorithms_are_set_against_each_other_once_and_variants_are_not(tmp_path):
    times = {"opencl:slow": (1, 9, 81), "opencl:slow[A=1]": (2, 9, 81), "opencl:fast": (3, 3, 3)}
    series = [
        (size, [row(name, took[index]) for name, took in times.items()])
        for index, size in enumerate((10, 100, 1000))
    ]
    found = {(c.implementation, c.reference): c.size for c in crossovers(series)}
    assert found == {
        ("opencl:fast", "opencl:slow"): pytest.approx(10 * 10**0.5),
        ("opencl:fast", "opencl:slow[A=1]"): pytest.approx(10 ** (1 + math.log(1.5, 4.5))),
    }
    plot_times(tmp_path / "x.svg", series, "n", "title", crossovers(series))
    assert (tmp_path / "x.svg").read_text().count("opencl:fast from") == 2


def test_data_on_the_host_and_on_the_device_are_not_set_against_each_other():
    there = replace(row("opencl:x@device", 1.0), data="device")
    assert there.against(row("c:seq", 8.0)).speedup is None
    peer = replace(row("cupy@device", 3.0), data="device")
    series = [(size, [row("opencl:x"), there, row("numpy"), peer]) for size in (10, 100)]
    pairs = {(found.implementation, found.reference) for found in crossovers(series)}
    assert pairs == {("opencl:x", "numpy"), ("opencl:x@device", "cupy@device")}


def test_throughput_counts_what_people_count():
    keys = row(milliseconds=2.0, work=Work(0, 8e6, 1e6, "keys"))
    assert keys.throughput == pytest.approx(0.5e9) and keys.throughput_unit == "keys/s"
    product = row(milliseconds=2.0, work=Work(8e9, 1e6))
    assert product.throughput == pytest.approx(4e3) and product.throughput_unit == "GFLOP/s"
    copy = row(milliseconds=2.0, work=Work(0, 8e6))
    assert copy.throughput == pytest.approx(4) and copy.throughput_unit == "GB/s"
    assert row().throughput is None and row(work=Work(0, 0)).throughput is None
    assert SortProblem(1000, FLOAT32, 7).work.items == 7000
    assert [large_number(v) for v in (0.5, 2e3, 1.5e6, 4e9)] == ["0.5", "2 k", "1.5 M", "4 G"]


def test_plots_of_throughput_say_who_overtakes_whom(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda self, path: saved.append(self))
    series = []
    for n, times in ((10, (4.0, 1.0)), (100, (4.0, 3.0)), (1000, (4.0, 16.0))):
        work = Work(0, n, n, "keys")
        pairs = zip(("opencl:x", "numpy"), times, strict=True)
        series.append((n, [row(name, took, work=work) for name, took in pairs]))
    plot_throughput(tmp_path / "x.svg", series, "n", "title", crossovers(series))
    (axes,) = saved[0].axes
    assert axes.get_xscale() == axes.get_yscale() == "log" and "keys/s" in axes.get_ylabel()
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(1000 / 4e-3)
    (mark,) = axes.texts
    size = crossovers(series)[0].size
    assert mark.get_text() == "1" and mark.xy[0] == pytest.approx(size) and 100 < size < 1000
    rings = [line for line in axes.lines if line.get_fillstyle() == "none"]
    (x, y) = rings[0].get_data()
    assert x[0] == pytest.approx(size) and y[0] == pytest.approx(size / 4e-3, rel=1e-3)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert f"1: opencl:x from {crossovers(series)[0].size_text}, over numpy" in labels
    plot_throughput(tmp_path / "y.svg", [(0, [row(status="runtime")])], "n", "nothing")


def test_lines_of_a_plot_can_be_told_apart(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda self, path: saved.append(self))
    names = [f"opencl:{letter}" for letter in "abc"] + [f"peer {number}" for number in range(9)]
    names += [f"{name}@device" for name in names[:5]] + ["other@device"]
    plot_times(tmp_path / "x.svg", [(n, [row(name, n) for name in names]) for n in (1, 9)], "n", "")
    lines = {line.get_label(): line for line in saved[0].axes[0].lines}
    assert list(lines) == names
    looks = {(line.get_color(), line.get_linestyle()) for line in lines.values()}
    assert len(looks) == len(names)
    assert lines["opencl:b"].get_color() == lines["opencl:b@device"].get_color()
    assert lines["opencl:b"].get_linestyle() == "-"
    assert lines["opencl:b@device"].get_linestyle() == "--"


def test_the_table_says_where_the_data_were_and_what_is_special():
    rows = [row(), replace(row("x@device"), data="device", note="padded to 8 keys")]
    table = comparison_table(rows, "title")
    assert "the data were on the device" in table.caption
    assert [str(cell) for cell in table.columns[-1].cells] == ["ok", "ok, padded to 8 keys"]
    assert comparison_table(rows[:1], "title").caption is None


def test_titles_say_what_a_user_asked_for():
    titles = {
        ("sort", ()): "50,000 int32 keys",
        ("sort", (("n", 7), ("descending", True))): "7 int32 keys, descending",
        ("gemm", (("size", 2000), ("beta", 2.0))): (
            "2,000 x 2,000 by 2,000 x 2,000 matrices of float32, beta 2"
        ),
        ("conv2d", (("filter", "sobel"), ("boundary", "wrap"))): (
            "1,024 x 1,024 float32 pixels by 3 x 3 weights, boundary wrap"
        ),
        ("dft", (("n", 5000), ("dtype", "float32"), ("inverse", True))): (
            "5,000 float32 samples, inverse"
        ),
        ("dft", (("batch", 3),)): "3 transforms of 4,096 complex64 samples",
    }
    for (name, options), title in titles.items():
        assert get_operation(name).problem(**dict(options)).title == title

    @dataclass(frozen=True)
    class Plain(Problem):
        sizes, layout = ("n",), ("dtype",)
        n: int = 3000
        dtype: np.dtype = FLOAT32
        rounds: int = 2
        work = None

    assert Plain().title == "n=3,000"
    assert Plain(rounds=4, dtype=np.dtype("int8")).title == "n=3,000, dtype=int8, rounds=4"


def test_plots_have_plain_ticks_spread_and_nothing_over_data(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda self, path: saved.append(self))
    sizes = (512, 1000, 1024, 65536, 1000000)
    names = ("opencl:one", "opencl:two", "opencl:three", "c:seq")

    def rows(size):
        took = [2**30 / (size + k) if k < 3 else 2e5 for k in range(4)]
        took[1], took[2] = 0.9 * size**1.1, 1.3 * size**1.05
        return [
            replace(row(name, time), total_ms=Times(time, time / 2, time * 3, 5), speedup=2.0)
            for name, time in zip(names, took, strict=True)
        ]

    series = [(size, rows(size)) for size in sizes]
    title = "sort on a device whose name is long" + 12 * " and goes on, NVIDIA H200 NVL"
    plot_times(tmp_path / "x.svg", series, "n", title, crossovers(series))
    plot_speedup(tmp_path / "y.svg", series, "n", "c:seq", title)
    for figure in saved:
        figure.canvas.draw()
        (axes,) = figure.axes
        ticks = [label.get_text() for label in axes.get_xticklabels()]
        assert sorted(ticks, key=int) == ["512", "1024", "65536", "1000000"]  # 1000 has no room
        boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
        assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
        assert not any("10^" in label.get_text() for label in axes.get_yticklabels())
        assert len(axes.collections) == len(names)  # a band from min to max each
        diagram = axes.get_window_extent()
        assert axes.get_legend().get_window_extent().x0 >= diagram.x1
        above = axes._left_title.get_window_extent()
        assert above.x1 <= figure.bbox.x1 and above.y1 <= figure.bbox.y1
        numbers = [text.get_window_extent() for text in axes.texts]
        assert all(box.y0 >= diagram.y1 for box in numbers)
        assert not any(a.overlaps(b) for a, b in combinations([*numbers, above], 2))
    apart = [c for c in crossovers(series) if not c.level and "c:seq" not in str(c)]
    assert len(saved[0].axes[0].texts) == len(apart) == 2
    lines, bands = saved[0].axes[0].lines[0], saved[0].axes[0].collections[0]
    heights = bands.get_paths()[0].vertices[:, 1]
    assert heights.max() == pytest.approx(3 * max(lines.get_ydata()))
    assert heights.min() == pytest.approx(min(lines.get_ydata()) / 2)


def test_the_table_shows_the_error_that_was_judged():
    rows = [row(difference=Difference(1.0, 5e7, True, 3e-7)), row("numpy")]
    table = comparison_table(rows, "title")
    (column,) = [c for c in table.columns if c.header == "rel L2"]
    assert list(column.cells) == ["3.00e-07", "-"]
    assert "max rel" not in [c.header for c in table.columns]
    content = rows[0].as_row()
    assert content["rel_l2_diff"] == 3e-7 and content["max_rel_diff"] == 5e7
    assert "rel_l2_diff" in str(Difference(1.0, 5e7, False, 1.0))


def test_numbers_are_written_plainly():
    assert number(None) == "-" and number(0.0) == "0"
    assert number(123456.0) == "123456" and number(0.00001234) == "1.23e-05"


def test_the_table_names_what_failed():
    console = Console(record=True, width=160, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    rows = [row(), Measurement("c:seq", "c", "c:seq", "unavailable", "no C compiler works")]
    console.print(comparison_table(rows, "title"))
    console.file.close()
    text = console.export_text()
    assert "no C compiler works" in text and "ok" in text


@pytest.mark.parametrize("reason", ["", "an explanation of some length, in many words"])
@pytest.mark.parametrize("width", [60, 80, 90, 110, 140])
def test_narrow_terminals_keep_what_matters(width, reason):
    rows = [
        row("opencl:radix", kernel_ms=123.456, peak=0.5),
        row("numpy", status="runtime" if reason else "correct", reason=reason),
    ]
    console = Console(width=width, file=io.StringIO())
    table = comparison_table(rows, "title")
    fit(table, console, OPTIONAL_COLUMNS)
    console.print(table)
    lines = console.file.getvalue().splitlines()
    assert all(len(line) <= width for line in lines) and "opencl:radix" in lines[4]
    header = [name.strip() for name in lines[2].strip("┃").split("┃")]
    assert header[0] == "implementation" and header[-1] == "result"
    # In place of the relative error of an element, and of bytes in a second.
    optional = [name for name in OPTIONAL_COLUMNS if name not in ("rel L2", "GFLOP/s")]
    kept = [name for name in optional if name in header]
    assert kept == optional[len(optional) - len(kept) :]
    assert " ok " in lines[4] and all(word in console.file.getvalue() for word in reason.split())
    assert (len(kept) == len(optional)) == (width == 140)


@pytest.mark.parametrize(("patient", "runs"), [(False, 2), (True, 9)])
def test_slow_references_run_fewer_times(patient, runs, monkeypatch):
    class Slow:
        def run(self, calls=1):
            assert calls == 1
            return 1.6  # seconds

        def outputs(self):
            return {}

    sort = get_operation("sort")
    monkeypatch.setattr(type(sort), "compare", lambda *arguments: Difference(0.0, 0.0, True))
    monkeypatch.setattr("opencl_lab.comparison.contestants.prepare", lambda *arguments: Slow())
    problem = sort.problem(n=9)
    for seconds, status in ((2.4, "correct"), (2.6, "correct" if patient else "unavailable")):
        slow = ReferenceRun(Task(sort, problem, {}, {}), sort.references[0], 1, patient=patient)
        monkeypatch.setattr(slow, "_estimate", lambda seconds=seconds: seconds)
        slow.attempt(slow.start)
        slow.check()
        for _ in range(9):
            slow.measure()
        assert slow.status == status and len(slow.totals) == (runs if status == "correct" else 0)


@pytest.mark.parametrize(("patient", "made"), [(False, 1), (True, 3)])
def test_a_first_run_that_ends_patience_is_the_timed_one(patient, made, monkeypatch):
    class Slow:
        runs = 0

        def run(self, calls=1):
            self.runs += 1
            return 6.0  # seconds

        def outputs(self):
            return {}

    slow, sort = Slow(), get_operation("sort")
    monkeypatch.setattr(type(sort), "compare", lambda *arguments: Difference(0.0, 0.0, True))
    monkeypatch.setattr("opencl_lab.comparison.contestants.prepare", lambda *arguments: slow)
    task = Task(sort, sort.problem(n=9), {}, {})
    run = ReferenceRun(task, sort.references[0], 1, patient=patient)
    run.attempt(run.start)
    run.check()
    for _ in range(2):
        run.measure()
    assert slow.runs == made and run.measurement().total_ms.median == 6000


def test_compare_returns_measurements():
    rows = ol.compare(
        "sort", n=2000, dtype="float32", order="few-unique", repeats=2, against="c:seq,numpy"
    )
    assert [r.implementation for r in rows] == ["opencl:radix", "c:seq", "numpy"]
    assert all(r.ok and r.total_ms.runs == 2 for r in rows)
    assert rows[1].speedup == 1.0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"bogus": 1}, ol.InvalidProblem),
        ({"dtype": "bogus"}, ol.InvalidProblem),
        ({"n": 1.5}, ol.InvalidProblem),
        ({"n": "10"}, ol.InvalidProblem),
        ({"n": None}, ol.InvalidProblem),
        ({"repeats": 0}, ol.InvalidProblem),
        ({"against": "bogus"}, ol.InvalidConfig),
        ({"algorithms": "bogus"}, ol.InvalidConfig),
        ({"algorithms": ","}, ol.InvalidConfig),
        ({"threads": 999_999_999}, ol.InvalidProblem),
        ({"config": {"TILE": 3}}, ol.InvalidConfig),
        ({"device": "bogus"}, ol.DeviceNotFound),
    ],
)
def test_compare_refuses_what_it_cannot_do(options, error):
    with pytest.raises(error):
        ol.compare("sort", **{"n": 10, "against": "none", **options})


def test_unknown_operation():
    with pytest.raises(ol.InvalidProblem, match="bogus"):
        ol.compare("bogus")


def _wrong_sort(problem, inputs, threads):
    return {"sorted": inputs["keys"]}


def _failing_sort(problem, inputs, threads):
    raise ol.LaunchError("it failed on purpose")


def test_a_wrong_and_a_failing_contestant_cost_only_their_rows(device, monkeypatch):
    references = (
        HostReference("wrong", _wrong_sort),
        HostReference("failing", _failing_sort),
        HostReference("gone", numpy_sort, lambda: "not today"),
        HostReference("numpy", numpy_sort),
    )
    monkeypatch.setattr(type(SORT), "references", references)
    monkeypatch.setattr("opencl_lab.reference.peers.LIBRARIES", ())
    problem = SortProblem(2000, np.dtype("int32"))

    def compared(against):
        return run_comparison(
            SORT,
            problem,
            lambda: SORT.generate(problem, 0),
            device=device,
            repeats=1,
            against=against,
        )

    by_default = [r.implementation for r in compared(None).measurements]
    assert by_default == ["opencl:radix", "wrong", "failing", "numpy"]
    comparison = compared("all")
    rows = {r.implementation: r for r in comparison.measurements}
    assert rows["wrong"].status == "correctness" and rows["wrong"].difference.max_abs > 0
    assert rows["failing"].status == "runtime" and "on purpose" in rows["failing"].reason
    assert rows["gone"].status == "unavailable" and "not today" in rows["gone"].reason
    assert rows["numpy"].ok and rows["opencl:radix"].ok
    assert comparison.exit_status == 1


def test_every_run_counts_and_not_the_first_alone(device, monkeypatch):
    runs = []

    def later_wrong(problem, inputs, threads):
        runs.append(None)
        right = numpy_sort(problem, inputs, threads)["sorted"]
        return {"sorted": right if len(runs) < 3 else right[:, ::-1]}

    monkeypatch.setattr(type(SORT), "references", (HostReference("later-wrong", later_wrong),))
    problem = SortProblem(100, np.dtype("int32"))
    comparison = run_comparison(
        SORT, problem, lambda: SORT.generate(problem, 0), device=device, repeats=2
    )
    assert [r.status for r in comparison.measurements] == ["correct", "correctness"]


def test_the_first_right_result_is_handed_on(device, monkeypatch):
    class Wrong(OddEvenMerge):
        name = "wrong"

        def plan(self, problem, config, device):
            return OddEvenMerge.plan(self, replace(problem, descending=True), config, device)

    class Two(SortSolver):
        homes = {"wrong": Wrong(), "odd-even-merge": OddEvenMerge()}  # noqa: RUF012

    monkeypatch.setattr(type(SORT), "solver", Two())
    problem = SortProblem(100, np.dtype("int32"))
    keys = SORT.generate(problem, 0)
    for names, expected in (("all", {"sorted": np.sort(keys["keys"])}), ("wrong", {})):
        comparison = run_comparison(
            SORT, problem, lambda: keys, device=device, algorithms=names, against="none", repeats=1
        )
        assert comparison.exit_status == 1
        np.testing.assert_equal(comparison.outputs, expected)


def test_slow_references_are_left_out_with_an_estimate(device, monkeypatch):
    monkeypatch.setattr("opencl_lab.comparison.contestants.FEW_STEPS", 0)
    monkeypatch.setattr("opencl_lab.comparison.contestants.PATIENCE", 0.0)
    steps = []
    problem = {"size": 40, "ksize": 5, "repeats": 1, "device": device}
    for row in ol.compare("conv2d", **problem):
        if row.implementation in ("c:seq", "c:omp"):
            assert row.status == "unavailable" and row.total_ms is None
            assert "a run would take about" in row.reason and "--against c:" in row.reason
            steps.append(row.implementation)
    assert steps == ["c:seq", "c:omp"]
    asked = ol.compare("conv2d", **problem, against="c:seq")
    assert asked[-1].implementation == "c:seq" and asked[-1].ok
    assert duration(0.25) == "0.25 s" and duration(90) == "2 minutes" and duration(3e5) == "3 days"


def test_every_step_is_named_before_it_begins(device):
    told = []
    problem = SortProblem(2000, np.dtype("int32"))
    run_comparison(
        SORT,
        problem,
        lambda: told.append("inputs made") or SORT.generate(problem, 0),
        device=device,
        against="numpy",
        repeats=2,
        progress=lambda *step: told.append(step),
    )
    assert told[0][2] == "input" and told[1] == "inputs made"
    steps = [step for step in told if step != "inputs made"]
    assert [step[0] for step in steps] == list(range(steps[-1][0] + 1))
    assert steps[-1][0] == steps[-1][1] and steps[-1][2] == "done"
    labels = [step[2] for step in steps]
    assert "right result on the host" in labels
    for label in ("start", "first run", "run 1 of 2", "run 2 of 2"):
        assert f"opencl:radix, {label}" in labels and f"numpy, {label}" in labels


def test_without_a_terminal_lines_tell_what_is_going_on(monkeypatch, capsys):
    monkeypatch.setattr("opencl_lab.cli.common.LINE_INTERVAL", 0.01)

    @click.command()
    @global_options
    def command():
        with progress_bar("conv2d") as progress:
            progress(3, 9, "c:seq, first run")
            deadline = time.monotonic() + 20
            while "c:seq" not in said[-1] and time.monotonic() < deadline:
                time.sleep(0.01)
                said.append(capsys.readouterr().err)

    said = [""]
    command.main([], standalone_mode=False)
    assert "oclab: conv2d: c:seq, first run (3/9, " in said[-1]
    said = ["c:seq"]
    capsys.readouterr()
    command.main(["--quiet"], standalone_mode=False)
    assert capsys.readouterr().err == ""


def test_too_large_a_problem_is_refused_before_its_data_are_made(device):
    def never():
        raise AssertionError("the inputs must not be made")

    with pytest.raises(ol.InvalidProblem, match="allocates at most"):
        run_comparison(SORT, SortProblem(10**13, np.dtype("int8")), never, device=device)


def test_profile_names_every_launch(device):
    problem = SortProblem(20_000, np.dtype("int32"))
    comparison = run_comparison(
        SORT,
        problem,
        lambda: SORT.generate(problem, 0),
        device=device,
        algorithms="odd-even-merge",
        repeats=1,
        against="none",
    )
    (lines,) = comparison.profiles.values()
    assert len(lines) > 1 and all("ms" in line and "merge_pass" in line for line in lines[1:])


def test_titles_are_broken_only_where_they_would_leave_the_picture():
    from matplotlib.figure import Figure

    axes = Figure(figsize=(9, 5)).add_subplot()
    for words, lines in ((14, 1), (28, 2)):  # of about half an inch
        set_title(axes, " ".join(["sorting"] * words), 8)
        assert axes.get_title(loc="left").count("\n") == lines - 1
