"""Times, rates and crossovers of rows."""

import json
import math
from dataclasses import replace

import pytest
from comparison_rows import row

from opencl_lab.lab.engine.crossings import crossovers
from opencl_lab.lab.engine.row import COLUMNS, Measurement
from opencl_lab.lab.engine.speedups import over_baseline, with_base
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.presentation.table import comparison_table, table_text


def test_speedup_and_efficiency():
    measured = row(milliseconds=2.0, workers=4).against(row("c:seq", 8.0))
    assert measured.speedup == 4.0 and measured.efficiency == 1.0
    assert row().against(None).speedup is None
    assert row(status="correctness").against(row("c:seq")).speedup is None
    assert row().against(row("c:seq", status="correctness")).speedup is None


@pytest.mark.parametrize(
    ("times", "baseline", "ratios", "bases"),
    [
        ({"opencl:x": 2, "c:seq": 8, "blas": 1}, None, (4, 1, 8), ["c:seq"]),
        ({"opencl:x": 2, "c:seq": 8, "blas": 1}, "blas", (0.5, 0.125, 1), ["blas"]),
        ({"opencl:x": 2, "blas": 1, "c:omp": 4}, None, (0.5, 1, 0.25), ["blas"]),
        ({"opencl:x": 2, "opencl:y": 1}, None, (1, 2), ["opencl:x"]),
        ({"opencl:x": 2}, None, (None,), []),
        ({"opencl:x": 2, "c:seq": 8, "opencl:x@device": 3, "torch@device": 6}, None,
         (4, 1, 2, 1), ["c:seq", "torch@device"]),
    ],
)  # fmt: skip
def test_speedups_have_a_base_that_is_named(times, baseline, ratios, bases):
    rows = [
        row(name, time, data="device" if "@" in name else "host") for name, time in times.items()
    ]
    measured = over_baseline(rows, baseline)
    contract = [item.as_row()["speedup"] for item in measured]
    assert any(contract) == (baseline is not None or "c:seq" in times)
    [(_, shown)], named = with_base([(7, measured)])
    assert [item.speedup for item in shown] == list(ratios) and named == bases
    assert all(item.baseline in bases for item in shown if item.speedup is not None)
    assert all(name in table_text(comparison_table(measured, "title")) for name in bases)


def test_rows_are_json_even_with_infinite_differences():
    content = row(difference=Difference(math.inf, math.nan, error_over_bound=math.inf)).as_row()
    for name in ("max_abs_diff", "max_rel_diff", "error_over_bound"):
        assert content[name] is None
    json.dumps(content, allow_nan=False)
    assert tuple(row().as_csv()) == COLUMNS
    unmeasured = Measurement("c:seq", "c", "c:seq", "unavailable", "no compiler").as_csv()
    assert unmeasured["total_ms"] is None and unmeasured["reason"] == "no compiler"


@pytest.mark.parametrize(
    ("medians", "size", "level", "said"),
    [
        ((1, 1, 1), 10, (), "is faster than numpy from 10 on"),
        ((4, 1, 0.5), math.sqrt(1000), (), "from about 31.6 on, slower at 10"),
        ((4, 1.8, 0.5), 1000, (100,), "from 1000 on, level within noise at 100"),
        ((1.9, 1.8, 0.5), 1000, (10, 100), "at 10, 100"),
        ((1, 4, 1), 10**2.5, (), "from about 316 on, slower at 100"),  # the last one counts
        ((4, 0.5, 1.9), None, (1000,), "only at 100, level within noise at 1000, slower at 10"),
        ((9, 8, 4), None, (), "opencl:x stays slower than numpy"),
        ((4, 2.1, 1.9), None, (100, 1000), "is slower than numpy at 10, level"),
        ((2.2, 2.1, 1.9), None, (10, 100, 1000), "are level within noise at 10, 100"),
        ((1,), 10, (), "opencl:x is faster than numpy at 10"),
        ((4,), None, (), "opencl:x is slower than numpy at 10"),
        ((2,), None, (10,), "opencl:x and numpy are level within noise at 10"),
    ],
)
def test_crossovers_and_what_is_within_noise(medians, size, level, said):
    def measured(name, median):
        return replace(row(name), total_ms=Times(median, median / 1.2, median * 1.2, 5))

    series = [
        (at, [measured("opencl:x", median), measured("numpy", 2)])
        for at, median in zip((10, 100, 1000), medians, strict=False)
    ]
    (found,) = crossovers(series)
    assert found.level == level and said in str(found), str(found)
    assert found.size == (None if size is None else pytest.approx(size))


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


def test_data_on_the_host_and_on_the_device_are_not_set_against_each_other():
    there = replace(row("opencl:x@device", 1.0), data="device")
    assert there.against(row("c:seq", 8.0)).speedup is None
    peer = replace(row("cupy@device", 3.0), data="device")
    series = [(size, [row("opencl:x"), there, row("numpy"), peer]) for size in (10, 100)]
    pairs = {(found.implementation, found.reference) for found in crossovers(series)}
    assert pairs == {("opencl:x", "numpy"), ("opencl:x@device", "cupy@device")}
