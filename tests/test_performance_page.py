"""The page of figures: it is what the tools make of the stored documents."""

import importlib
import json
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import matplotlib
import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SMALL = 150_000  # bytes of a plot
PAGES = ("#ffffff", "#0d1117")  # of GitHub, light and dark

sys.path.insert(0, str(ROOT / "tools"))


@pytest.fixture(scope="module")
def tool():
    """Return all that the modules of the tool have."""
    found = {}
    for name in ("performance_runs", "performance_plots", "performance_page"):
        found |= vars(importlib.import_module(name))
    return SimpleNamespace(**found)


@pytest.fixture(scope="module")
def runs(tool):
    return tool.read_runs(DOCS / "data")


def texts(svg):
    return [item.text for item in ElementTree.fromstring(svg).iter() if item.tag.endswith("}text")]


def description(svg):
    return re.search(r"<dc:description>(\w+)</dc:description>", svg)[1]


def test_the_page_is_made_of_the_documents(tool, runs):
    text = (DOCS / "performance.md").read_text(encoding="utf-8")
    assert tool.page(text, runs) == text


@pytest.mark.few(1)
@pytest.mark.parametrize("operation", ["sort", "gemm", "conv2d", "fft"])
def test_plots_are_made_of_the_documents(operation, tool, runs):
    there = (DOCS / f"plots/{operation}.svg").read_text(encoding="utf-8")
    made = tool.plot(operation, runs)
    assert len(there) < SMALL and "`" not in made  # a mark of Markdown
    assert description(there) == description(made)
    assert texts(there) == texts(made) and "opencl_lab" in texts(made)
    if f"Matplotlib {matplotlib.__version__}<" in there:  # others place things elsewhere
        assert there == made


@pytest.fixture
def copied(tool, tmp_path):
    """Return what copies the documents with their rows changed by a function, and reads them."""
    shutil.copy(DOCS / "data" / tool.TITLES, tmp_path)

    def changed(change):
        for path in (DOCS / "data").glob("*.json"):
            if path.name != tool.TITLES:
                content = json.loads(path.read_text(encoding="utf-8"))
                content["results"] = [found for row in content["results"] if (found := change(row))]
                (tmp_path / path.name).write_text(json.dumps(content), encoding="utf-8")
        return tool.read_runs(tmp_path)

    return changed


def test_other_documents_make_another_page(tool, copied):
    same = {"min": 7.0, "median": 7.0, "max": 7.0, "runs": 5}
    changed = copied(lambda row: {**row, "total_ms": row["total_ms"] and same})
    text = (DOCS / "performance.md").read_text(encoding="utf-8")
    page = tool.page(text, changed)
    assert page != text
    assert {"7", "(1.00x)"} <= set(re.findall(r"(?<=\| )[^|]+(?= \|)", page))


@pytest.mark.full
def test_missing_parts_leave_the_others(tool, copied, runs):
    changed = copied(lambda row: row if row["part"] in ("sort", "fft_single") else None)
    assert changed.keys() == {"sort", "fft_single"}
    assert tool.section("sort", changed) == tool.section("sort", runs)
    assert tool.section("gemm", changed) == "Not measured yet."
    assert tool.table(tool.OPERATIONS["fft"][1], runs["fft_single"][0]) in tool.section(
        "fft", changed
    )
    assert "one row, complex64" in texts(tool.plot("fft", changed))


def test_libraries_that_nobody_named_get_names_and_styles(tool, copied, runs):
    others = {"numpy": "brand-new", "torch@device": "another@device", "c:omp": "brand-old x7"}

    def renamed(row):
        bare = row["implementation"].split(" x")[0]
        return {**row, "implementation": others.get(bare, row["implementation"])}

    changed = copied(renamed)
    shown = {name for run in changed["sort"] for name in run.names}
    before = {name for run in runs["sort"] for name in run.names}
    assert shown - before == {"another", "brand-new", "brand-old"}
    assert before - shown == {"NumPy", "C, OpenMP"}  # PyTorch is on CPUs, too
    there = (DOCS / "plots/sort.svg").read_text(encoding="utf-8")
    made = tool.plot("sort", changed)
    assert shown <= set(texts(made)) and description(made) != description(there)
    styles = tool.styles_of(shown)
    assert next(iter(styles)) == "opencl_lab" and len(set(styles.values())) == len(shown)
    many = tool.styles_of(map(str, range(40)))  # more than there are styles
    assert len(many) == 40


def test_of_several_numbers_of_threads_the_fastest_counts(tool, copied, runs):
    times = {"min": 1e-6, "median": 1e-6, "max": 1e-6, "runs": 5}
    one = {"implementation": "c:omp x1", "total_ms": times}
    changed = copied(lambda row: {**row, **one} if row["implementation"] == "numpy" else row)
    (_, row), *_ = changed["sort"][0].series
    (_, before), *_ = runs["sort"][0].series
    assert row.keys() == before.keys() - {"NumPy"}
    assert row["C, OpenMP"].implementation == "c:omp x1"


def test_two_of_ours_and_documents_without_a_title_are_errors(tool, copied, tmp_path):
    with pytest.raises(ValueError, match="which is ours"):
        copied(lambda row: {**row, "kind": "opencl"})
    (tmp_path / tool.TITLES).write_text("{}")
    with pytest.raises(ValueError, match="no title for cpu16"):
        tool.read_runs(tmp_path)


def test_of_two_documents_of_a_device_the_newer_counts(tool, copied, tmp_path):
    before = copied(lambda row: row)
    content = json.loads((tmp_path / "cpu2.json").read_text(encoding="utf-8"))
    content["results"] = [row for row in content["results"] if row["part"] == "gemm"]
    titles = json.loads((tmp_path / tool.TITLES).read_text(encoding="utf-8"))
    titles["again"] = titles["cpu2"]
    (tmp_path / tool.TITLES).write_text(json.dumps(titles), encoding="utf-8")
    (there,) = (run for run in before["gemm"] if run.title == titles["cpu2"])
    for started, name in (("2000-01-01", there.results.path.name), ("2999-01-01", "again.json")):
        content["environment"]["started"] = started
        (tmp_path / "again.json").write_text(json.dumps(content), encoding="utf-8")
        runs = tool.read_runs(tmp_path)
        assert {name: len(there) for name, there in runs.items()} == {
            name: len(there) for name, there in before.items()
        }
        (of_gemm,) = (run for run in runs["gemm"] if run.title == titles["cpu2"])
        assert of_gemm.results.path.name == name


def test_short_rows_of_panels_are_one_row(tool):
    runs = {"gemm": "abc", "gemm_float64": "ab", "gemm_float16": "c", "gemm_3xtf32": "c"}
    rows = tool.rows_of_panels("gemm", runs)
    assert [[(sweep.name, run) for sweep, run in row] for row in rows] == [
        [("gemm", "a"), ("gemm", "b"), ("gemm", "c")],
        [("gemm_float64", "a"), ("gemm_float64", "b"), ("gemm_float16", "c")],
        [("gemm_3xtf32", "c")],
    ]


def test_figures_of_a_gpu_are_those_of_data_on_it(tool, copied, runs):
    def beside(row):
        return {**row, "data": "host"} if row["implementation"] == "cupy@device" else row

    sort = [run for run in copied(beside)["sort"] if run.on_gpu]
    before = [run for run in runs["sort"] if run.on_gpu]
    assert [[name for name in run.names if name != "CuPy"] for run in before] == [
        run.names for run in sort
    ]
    assert any("CuPy" in run.names for run in before)


def test_missing_markers_are_an_error(tool, runs):
    with pytest.raises(ValueError, match="sort"):
        tool.page("# Performance\n", runs)


def luminance(colour):
    """Return the relative luminance of a colour, by the formula of WCAG 2."""
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    return sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("page", PAGES)
def test_colours_are_seen_on_light_and_dark_pages(page, tool):
    needed = [
        (tool.INK, 4.0),
        *((colour, 3.0) for colour, _ in (*tool.STYLES.values(), *tool.OTHERS)),
    ]
    for colour, least in needed:
        low, high = sorted((luminance(colour), luminance(page)))
        assert (high + 0.05) / (low + 0.05) >= least, colour
