"""Tables and plots of a comparison."""

import io
import pickle
from dataclasses import dataclass, replace
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from comparison_rows import FLOAT32, row
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from rich.console import Console

from opencl_lab.core.plan import Work
from opencl_lab.lab.cli.tables import fit
from opencl_lab.lab.engine.crossings import crossovers
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.presentation.drawing import drawn_for_page
from opencl_lab.lab.presentation.plots import (
    plot_comparison,
    plot_speedup,
    plot_throughput,
    plot_times,
)
from opencl_lab.lab.presentation.table import (
    OPTIONAL_COLUMNS,
    Measurements,
    comparison_table,
    number,
)
from opencl_lab.lab.registry import get_operation
from opencl_lab.ops.solver import Problem


def test_plots_of_throughput_say_who_overtakes_whom(tmp_path, figures):
    series = []
    for n, times in ((10, (4.0, 1.0)), (100, (4.0, 3.0)), (1000, (4.0, 16.0))):
        work = Work(0, n, n, "keys")
        pairs = zip(("opencl:x", "numpy"), times, strict=True)
        series.append((n, [row(name, took, work=work) for name, took in pairs]))
    plot_throughput(tmp_path / "x.svg", series, "n", "title", crossovers(series))
    (axes,) = figures[0].axes
    assert axes.get_xscale() == axes.get_yscale() == "log" and "keys/s" in axes.get_ylabel()
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(1000 / 4e-3)
    (mark,) = axes.texts
    size = crossovers(series)[0].size
    assert mark.get_text() == "1" and mark.xy[0] == pytest.approx(size) and 100 < size < 1000
    rings = [line for line in axes.lines if line.get_fillstyle() == "none"]
    (x, y) = rings[0].get_data()
    assert x[0] == pytest.approx(size) and y[0] == pytest.approx(size / 4e-3, rel=1e-3)
    labels = [text.get_text() for legend in axes.findobj(Legend) for text in legend.get_texts()]
    assert f"1: opencl:x from about {crossovers(series)[0].size_text}, over numpy" in labels
    plot_throughput(tmp_path / "y.svg", [(0, [row(status="runtime")])], "n", "nothing")


def test_lines_of_a_plot_can_be_told_apart(tmp_path, figures):
    names = [f"opencl:{letter}" for letter in "abc"] + [f"peer {number}" for number in range(9)]
    names += [f"{name}@device" for name in names[:5]] + ["other@device"]
    plot_times(tmp_path / "x.svg", [(n, [row(name, n) for name in names]) for n in (1, 9)], "n", "")
    lines = {line.get_label(): line for line in figures[0].axes[0].lines}
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


def test_plots_have_plain_ticks_spread_and_nothing_over_data(tmp_path, figures):
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
    for figure in figures:
        figure.canvas.draw()
        (axes,) = figure.axes
        ticks = [label.get_text() for label in axes.get_xticklabels()]
        # There is no room for 1,000.
        assert list(filter(None, ticks)) == ["512", "1,024", "65,536", "1,000,000"]
        boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
        assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
        assert not any("10^" in label.get_text() for label in axes.get_yticklabels())
        assert len(axes.collections) == len(names)  # a band from min to max each
        diagram = axes.get_window_extent()
        legends = axes.findobj(Legend)
        assert legends and all(item.get_window_extent().y1 <= diagram.y0 for item in legends)
        above = axes._left_title.get_window_extent()
        assert above.x1 <= figure.bbox.x1 and above.y1 <= figure.bbox.y1
        numbers = [text.get_window_extent() for text in axes.texts]
        assert all(box.y0 >= diagram.y1 for box in numbers)
        assert not any(a.overlaps(b) for a, b in combinations([*numbers, above], 2))
    inside = [c for c in crossovers(series) if c.size is not None and c.size > sizes[0]]
    assert len(figures[0].axes[0].texts) == len(inside) == 3
    lines, bands = figures[0].axes[0].lines[0], figures[0].axes[0].collections[0]
    heights = bands.get_paths()[0].vertices[:, 1]
    assert heights.max() == pytest.approx(3 * max(lines.get_ydata()))
    assert heights.min() == pytest.approx(min(lines.get_ydata()) / 2)


def test_a_page_has_room_for_all_texts_of_a_plot(tmp_path, figures):
    names = ("opencl:naive[constant]", "mpi:blocked-overlapped", "c:seq")
    rows = [row(f"{name}{end}", 1130.0, speedup=2 / 3, baseline=base, data=data)
            for end, base, data in (("", "c:seq", "host"), ("@device", "cuda:cub@device", "device"))
            for name in names]  # fmt: skip
    with drawn_for_page(5.8, 11.0):
        plot_comparison(tmp_path / "x.svg", rows, "")
    figures[0].canvas.draw()
    (axes,) = figures[0].axes
    texts = [axes.xaxis.label, *axes.texts, *axes.get_yticklabels()]
    assert axes.texts[0].get_text() == "1,130 ms, 0.667x"
    assert "over c:seq, cuda:cub@device" in axes.get_xlabel().splitlines()[-1]
    for box in (text.get_window_extent() for text in texts):
        assert box.x0 >= 0 and box.x1 <= figures[0].bbox.x1 and box.y0 >= 0


def test_a_plot_is_drawn_once_and_has_few_ticks(tmp_path, monkeypatch):
    drawn = []
    draw = Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda self, to: drawn.append(self) or draw(self, to))
    series = [(size, [row("opencl:x", size**3)]) for size in range(1000, 41_000, 1000)]
    plot_times(tmp_path / "x.svg", series, "n", "title")
    (figure,) = drawn
    ticks = [len(axis.get_ticklocs(minor=minor)) for axis in
             (figure.axes[0].xaxis, figure.axes[0].yaxis) for minor in (True, False)]  # fmt: skip
    assert sum(ticks) < 40, ticks  # each takes Matplotlib a millisecond


def test_the_table_shows_the_error_that_was_judged():
    judged = Difference(1.0, 5e7, error_over_bound=0.25, rel_l2=3e-7)
    rows = [row(difference=judged), row(difference=Difference.exact(1.0, 1.0, False)), row()]
    table = comparison_table(rows, "title")
    (column,) = [c for c in table.columns if str(c.header) == "error/bound"]
    assert list(column.cells) == ["0.25", "inf", "-"]
    content = rows[0].as_row()
    assert content["rel_l2_diff"] == 3e-7 and content["max_rel_diff"] == 5e7
    assert content["error_over_bound"] == 0.25 and rows[1].as_row()["error_over_bound"] is None
    assert str(replace(judged, error_over_bound=7)) == "rel_l2_diff 3e-07, 7 times the bound"


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


def test_measurements_are_a_list_that_prints_as_a_table():
    items = [row("opencl:radix"), row("c:<seq>", data="device")]
    rows = pickle.loads(pickle.dumps(Measurements(items, "sort: 3 keys")))
    assert rows == items and isinstance(rows, list)
    text, page = str(rows), ElementTree.fromstring(f"<div>{rows._repr_html_()}</div>")
    assert text == repr(rows) and "sort: 3 keys" in text and "│ c:<seq> " in text
    first, *others = ([cell.text for cell in line] for line in page.iter("tr"))
    assert first[0] == "implementation" and [line[0] for line in others] == [
        "opencl:radix",
        "c:<seq>",
    ]
    assert page.find("table/caption").text == "sort: 3 keys"
    assert page.find("p").text in text  # what @device means
    assert str(Measurements())  # of nothing


@pytest.mark.parametrize("reason", ["", "an explanation of some length, in many words"])
@pytest.mark.parametrize("width", [60, 80, 90, 110, 140])
def test_narrow_terminals_keep_what_matters(width, reason):
    rows = [
        row("opencl:radix", kernel_ms=123.456, peak=0.5),
        row("numpy", status="runtime" if reason else "correct", reason=reason),
    ]
    console = Console(width=width, file=io.StringIO())
    table = comparison_table(rows, "title")
    left_out = fit(table, console, OPTIONAL_COLUMNS)
    console.print(table)
    lines = console.file.getvalue().splitlines()
    ours = next(line for line in lines if line.startswith("│"))
    assert all(len(line) <= width for line in lines) and "opencl:radix" in ours
    heads = (line.strip("┃").split("┃") for line in lines if line.startswith("┃"))
    header = [" ".join("".join(cells).split()) for cells in zip(*heads, strict=True)]
    over = "speed-up" if reason else "speed-up over numpy"
    header = ["speed-up" if name == over else name for name in header]
    assert header[0] == "implementation" and header[-1] == "result"
    # In place of bytes in a second, and of rows over ranks.
    optional = [name for name in OPTIONAL_COLUMNS if name not in ("GFLOP/s", "imbalance")]
    kept = [name for name in optional if name in header]
    assert kept == optional[len(optional) - len(kept) :]
    assert left_out == optional[: len(optional) - len(kept)]
    assert " ok " in ours and all(word in console.file.getvalue() for word in reason.split())
    assert (len(kept) == len(optional)) == (width == 140)
