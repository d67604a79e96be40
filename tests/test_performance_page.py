"""The page of figures: it is what the tools make of the stored documents."""

import json
import re
import runpy
import time
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import click
import matplotlib
import pytest

from opencl_lab.cli.main import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SMALL = 100_000  # bytes of a plot
PAGES = ("#ffffff", "#0d1117")  # of GitHub, light and dark


@pytest.fixture(scope="module")
def tool():
    return SimpleNamespace(**runpy.run_path(str(ROOT / "tools/performance_page.py")))


@pytest.fixture(scope="module")
def measuring():
    return runpy.run_path(str(ROOT / "tools/measure_performance.py"))


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


@pytest.mark.parametrize("operation", ["sort", "gemm", "conv2d", "fft"])
def test_plots_are_made_of_the_documents(operation, tool, runs):
    there = (DOCS / f"plots/{operation}.svg").read_text(encoding="utf-8")
    made = tool.plot(operation, runs)
    assert len(there) < SMALL
    assert description(there) == description(made)
    assert texts(there) == texts(made) and "opencl_lab" in texts(made)
    if f"Matplotlib {matplotlib.__version__}<" in there:  # others place things elsewhere
        assert there == made


def test_other_documents_make_another_page(tool, tmp_path):
    for path in (DOCS / "data").glob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        for row in content["results"]:
            if row["total_ms"]:
                row["total_ms"] = {"min": 7.0, "median": 7.0, "max": 7.0, "runs": 5}
        (tmp_path / path.name).write_text(json.dumps(content), encoding="utf-8")
    changed = tool.read_runs(tmp_path)
    text = (DOCS / "performance.md").read_text(encoding="utf-8")
    page = tool.page(text, changed)
    assert page != text
    assert {"7", "(1.00x)"} <= set(re.findall(r"(?<=\| )[^|]+(?= \|)", page))
    there = (DOCS / "plots/sort.svg").read_text(encoding="utf-8")
    assert description(tool.plot("sort", changed)) != description(there)


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
    needed = [(tool.INK, 4.0), *((colour, 3.0) for colour, _ in tool.STYLES.values())]
    for colour, least in needed:
        low, high = sorted((luminance(colour), luminance(page)))
        assert (high + 0.05) / (low + 0.05) >= least, colour


@pytest.mark.parametrize("on_gpu", [False, True])
def test_the_commands_of_the_sweeps_are_accepted(on_gpu, tool, measuring, monkeypatch):
    monkeypatch.setattr(click.Command, "invoke", lambda self, ctx: 0)
    shown = {sweep.name for sweeps in tool.OPERATIONS.values() for sweep in sweeps}
    assert {sweep.name for sweep in measuring["SWEEPS"]} == shown
    for sweep in measuring["SWEEPS"]:
        arguments = measuring["command_of"](sweep, on_gpu)
        assert main(arguments) == 0
        assert ("--resident" in arguments) == on_gpu


def test_a_sweep_that_takes_too_long_is_interrupted(measuring, tmp_path, capsys):
    arguments = ["bench", "sort", "--sizes", "1000,2000", "--repeats", "100000", "--quiet"]
    arguments += ["--out", "sweep", "--against", "none"]
    start = time.monotonic()
    content = measuring["run"](arguments, tmp_path, 2.0)
    assert time.monotonic() - start < 2.0 + measuring["REST"]
    assert "interrupted" in capsys.readouterr().out
    assert content is None or content["results"]
