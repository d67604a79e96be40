"""The pages of figures: they are what the tool makes of docs/data, and say where that is."""

import importlib
import itertools
import json
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SMALL = 150_000  # bytes of a plot
OTHERS = [DOCS / "runtimes.md", DOCS / "scaling.md"]  # whose figures are no times of ours
PAGES = [DOCS / "performance.md", *sorted(DOCS.glob("performance/*.md")), DOCS / "studies_h200.md"]
FIGURE = re.compile(r"\d[\d.,]*(x\b| ?(ms|us|s|%|GB|[GT]FLOP/s|times)(?=\W))")
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)

sys.path.insert(0, str(ROOT / "tools"))


@pytest.fixture(scope="module")
def tool():
    """Return all that the modules of the tool have."""
    found = {}
    for name in ("page_data", "page_plots", "pages"):
        found |= vars(importlib.import_module(name))
    return SimpleNamespace(**found)


@pytest.fixture(scope="module")
def data(tool):
    return tool.read_data(DOCS / "data")


def texts(svg):
    return [item.text for item in ElementTree.fromstring(svg).iter() if item.tag.endswith("}text")]


def named_alike(svg):
    """Number the clip paths, whose names are digests of all the bits of their places."""
    for number, name in enumerate(re.findall(r'clipPath id="(\w+)"', svg)):
        svg = svg.replace(name, f"clip{number}")
    return svg


def blocks(tool, text):
    return [match[0] for match in tool.BLOCK.finditer(text)]


def test_pages_are_made_of_the_data(tool):
    # They come before the plots, which take long to draw.
    pages = dict(itertools.takewhile(lambda made: made[0].suffix == ".md", tool.made(DOCS)))
    assert sorted(pages) == sorted(PAGES + OTHERS)
    for path, text in pages.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run tools/pages.py"


@pytest.mark.full
def test_plots_are_made_of_the_data(tool):
    plots = {path: text for path, text in tool.made(DOCS) if path.suffix == ".svg"}
    assert plots.keys() == {*DOCS.glob("plots/**/*.svg")}
    for path, text in plots.items():
        there = path.read_text(encoding="utf-8")
        assert len(there) < SMALL and texts(there) == texts(text), path.name
        made_of = re.findall(r"<dc:description>(\w+)</dc:description>", text)
        assert all(f"<dc:description>{digest}<" in there for digest in made_of), path.name
        if (version := re.search(r"Matplotlib v?[\d.]+", text)[0]) in there:
            # Others place things elsewhere, and the last bits of places depend on the processor.
            assert named_alike(there) == named_alike(text), version


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_begins_with_a_plot_and_has_short_tables_of_files(page, tool):
    text = page.read_text(encoding="utf-8")
    shown = [line for line in text.split("\n") if line and not line.startswith("<!--")]
    assert shown[0].startswith("# ") and re.match(r"!\[[^]]{20,}\]\(", shown[1])
    found = [table for block in blocks(tool, text) for table in TABLE.findall(block)]
    assert found
    for table in TABLE.findall(text):
        assert len(table.splitlines()) <= 2 + tool.MOST_ROWS
    for row in (row for table in found for row in table.splitlines()[2:]):
        files = re.findall(r"\]\(([^)]+)\)", row.split("|")[-2])
        assert files and all(DOCS / "data" in (page.parent / f).resolve().parents for f in files)
        assert all((page.parent / name).is_file() for name in files)


def test_all_data_and_plots_are_on_a_page():
    pages = (*PAGES, *OTHERS)
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    data = {path for path in DOCS.glob("data/**/*.*") if path.name != "titles.json"}
    shown = [*data, *DOCS.glob("plots/**/*.svg")]
    assert len(shown) > 30
    for path in shown:
        assert f"{path.relative_to(DOCS).as_posix()})" in text, path.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_figure_is_written_by_hand(page, tool):
    by_hand = tool.BLOCK.sub("", page.read_text(encoding="utf-8"))
    prose = re.sub(r"^    .*$|`[^`]*`", "", by_hand, flags=re.MULTILINE)
    assert not FIGURE.search(prose)


def test_listings_say_device_date_method_and_command(data):
    assert data.listings
    for name, listing in data.listings.items():
        dates = {row.get("date", listing.head["date"]) for row in listing.rows}
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for date in dates), name
        assert all(listing.ratios(row) for row in listing.rows), name


@pytest.fixture
def copied(tool, tmp_path):
    """Return what copies the data with rows of documents changed by a function, and reads them."""

    def changed(change):
        shutil.copytree(DOCS / "data", tmp_path, dirs_exist_ok=True)
        for path in set(tmp_path.glob("*.json")) - {tmp_path / tool.TITLES}:
            content = json.loads(path.read_text(encoding="utf-8"))
            content["results"] = [found for row in content["results"] if (found := change(row))]
            path.write_text(json.dumps(content), encoding="utf-8")
        return tool.read_data(tmp_path)

    return changed


def page_of(tool, data, block):
    text = f"<!-- made from docs/data: {block} -->\n<!-- end -->\n"
    return tool.Page(DOCS / "performance.md", data).made(text)


def test_other_data_make_other_tables(tool, copied):
    same = {"min": 7.0, "median": 7.0, "max": 7.0, "runs": 5}
    changed = copied(lambda row: {**row, "total_ms": row["total_ms"] and same})
    assert "| 7.00 | (1.00x) |" in page_of(tool, changed, "sweep sort")
    assert "| 0 / 5 / 0 |" in page_of(tool, changed, "summary")


def test_what_is_missing_leaves_the_rest(tool, copied, data):
    changed = copied(lambda row: row if row["part"] in ("sort", "fft_single") else None)
    assert changed.runs.keys() == {"sort", "fft_single"}
    assert page_of(tool, changed, "sweep gemm").splitlines()[1] == "Not measured yet."
    summary = page_of(tool, changed, "summary")
    assert "| sort, " in summary and "| conv2d, " not in summary
    assert "one row, complex64" in " ".join(texts(tool.throughput(changed, "fft")))
    with pytest.raises(ValueError, match="nothing makes poems"):
        page_of(tool, data, "poems")


def test_two_of_ours_and_documents_without_a_title_are_errors(tool, copied, tmp_path):
    with pytest.raises(ValueError, match="which is auto"):
        copied(lambda row: {**row, "kind": "opencl"})
    (tmp_path / tool.TITLES).write_text("{}")
    with pytest.raises(ValueError, match="no title for cpu16"):
        tool.read_data(tmp_path)
