"""Tables and plots of a comparison."""

import io
import pickle
from dataclasses import replace
from functools import partial
from io import BytesIO
from xml.etree import ElementTree

import pytest
from comparison_rows import row
from rich.console import Console

from opencl_lab.core.plan import Work
from opencl_lab.lab.cli.tables import fit
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.measuring.samples import Times
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
)
from opencl_lab.lab.registry import get_operation


def test_a_plot_of_throughput(tmp_path, figures):
    series = []
    for n, times in ((10, (4.0, 1.0)), (100, (4.0, 3.0)), (1000, (4.0, 16.0))):
        work = Work(0, n, n, "keys")
        pairs = zip(("opencl:x", "numpy"), times, strict=True)
        series.append((n, [row(name, took, work=work) for name, took in pairs]))
    plot_throughput(tmp_path / "x.svg", series, "n", "title")
    (axes,), (legend,) = figures[0].axes, figures[0].legends
    assert axes.get_xscale() == axes.get_yscale() == "log" and "keys/s" in axes.get_ylabel()
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(1000 / 4e-3)
    assert [text.get_text() for text in legend.get_texts()] == ["opencl:x", "numpy"]
    assert axes.yaxis.get_major_formatter()(1e5) == "100 k"
    plot_throughput(tmp_path / "y.svg", [(0, [row(status="runtime")])], "n", "nothing")


def test_a_plot_has_labels_a_band_and_names_that_are_no_formulas(tmp_path):
    times = Times(4.0, 2.0, 12.0, 5)
    rows = [replace(row(name), total_ms=times, speedup=2.0) for name in ("opencl:$x$", "a<b")]
    for draw in (plot_times, plot_throughput, partial(plot_speedup, baseline="a<b")):
        draw(tmp_path / "x.svg", series=[(n, rows) for n in (100, 10_000)], size_name="n", title="")
        assert (tmp_path / "x.svg").stat().st_size > 1000
    for name in ("x.png", "x.pdf", "x.jpg"):
        plot_comparison(tmp_path / name, rows, "a $title")
        assert (tmp_path / name).stat().st_size > 1000
    kept = BytesIO()
    plot_times(kept, [(n, rows) for n in (100, 10_000)], "n", "title")
    root = ElementTree.fromstring(kept.getvalue())
    texts = {"".join(item.itertext()) for item in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"opencl:$x$", "a<b", "100", "1,000", "10,000", "n", "title"} <= texts


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


def test_the_table_shows_the_error_that_was_judged():
    judged = Difference(1.0, 5e7, error_over_bound=0.25, rel_l2=3e-7)
    rows = [row(difference=judged), row(difference=Difference.exact(1.0, 1.0, False)), row()]
    table = comparison_table(rows, "title")
    (column,) = [c for c in table.columns if str(c.header) == "error/bound"]
    assert [str(cell) for cell in column.cells] == ["0.25", "inf", "-"]
    content = rows[0].as_row()
    assert content["rel_l2_diff"] == 3e-7 and content["max_rel_diff"] == 5e7
    assert content["error_over_bound"] == 0.25 and rows[1].as_row()["error_over_bound"] is None
    assert str(replace(judged, error_over_bound=7)) == "rel_l2_diff 3e-07, 7 times the bound"


def test_measurements_are_a_list_that_prints_as_a_table():
    items = [row("opencl:radix"), row("c:<seq>", data="device")]
    rows = pickle.loads(pickle.dumps(Measurements(items, "sort: 3 keys")))
    assert rows == items and isinstance(rows, list)
    text = str(rows)
    assert text == repr(rows) and "sort: 3 keys" in text and "│ c:<seq> " in text
    assert "the data were on the device" in text
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
    whole = [str(column.header).split("\n")[0] for column in table.columns]
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
    optional = [name for name in OPTIONAL_COLUMNS if name in whole]
    kept = [name for name in optional if name in header]
    assert kept == optional[len(optional) - len(kept) :]
    assert left_out == optional[: len(optional) - len(kept)]
    assert " ok " in ours and all(word in console.file.getvalue() for word in reason.split())
    assert (len(kept) == len(optional)) == (width >= 90)
