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
GITHUB = ("#ffffff", "#0d1117")  # light and dark
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


def test_figures_are_found():
    assert all(map(FIGURE.search, ("1.04x as", "12 ms.", "0.8 times as", "50 % of")))
    assert not FIGURE.search("2 cores, 80 shapes, 4,096 rows")


def test_listings_say_device_date_method_and_command(data):
    assert data.listings
    for name, listing in data.listings.items():
        dates = {row.get("date", listing.head["date"]) for row in listing.rows}
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for date in dates), name
        assert all(listing.ratios(row) for row in listing.rows), name


def test_a_listing_without_its_head_is_an_error(tool, tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("# device: one\n# date: 2026-01-01\n# method: none\nn,ours ms\n1,2\n")
    with pytest.raises(ValueError, match=r"some\.csv lacks command, compared"):
        tool.read_listing(path)


def test_tables_show_what_is_evenly_between_the_first_and_the_last(tool):
    assert tool.few(range(6)) == [*range(6)]
    assert tool.few(range(80)) == [0, 16, 32, 47, 63, 79]
    with pytest.raises(ValueError, match="7 rows"):
        tool.table(["a", "b"], [["1", "2"]] * 7)


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


def test_what_was_timed_once_is_left_out(copied):
    once = {"min": 9.0, "median": 9.0, "max": 9.0, "runs": 1}
    changed = copied(
        lambda row: {**row, "total_ms": once} if row["implementation"] == "numpy" else row
    )
    assert not any("NumPy" in times for run in changed.runs["sort"] for _, times in run.series)


def test_studies_leave_out_what_was_timed_once_and_name_gaps(tool, copied, tmp_path):
    copied(lambda row: row)
    path = tmp_path / "studies/h200/dft.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    rows = [row for row in content["results"] if row["n"] != 2048]
    content.update(results=rows, stopped="it was interrupted", notes=["n=512: left out"])
    path.write_text(json.dumps(content), encoding="utf-8")
    text = page_of(tool, tool.read_data(tmp_path), "study dft")
    assert (
        "**This study is not complete.**\nIt was interrupted.\nNot measured: dft at n=2048" in text
    )
    assert "n=512: left out" in text
    assert re.search(r"\| c:seq \| 0\.607 \| 160 \| - \|", text)  # 32,768 was timed once


def test_libraries_that_nobody_named_get_styles(tool, copied):
    others = {"numpy": "brand-new", "torch@device": "another@device", "c:omp": "brand-old x7"}

    def renamed(row):
        bare = row["implementation"].split(" x")[0]
        return {**row, "implementation": others.get(bare, row["implementation"])}

    changed = copied(renamed)
    made = texts(tool.throughput(changed, "sort"))
    assert {"another", "brand-new", "brand-old"} <= set(made)
    styles = tool.styles_of(["new", "NumPy", "old", tool.OURS])
    assert [*styles] == [tool.OURS, "NumPy", "new", "old"] and len(set(styles.values())) == 4
    assert len(tool.styles_of(map(str, range(40)))) == 40  # more than there are styles


def test_of_several_numbers_of_threads_the_fastest_counts(tool, copied):
    times = {"min": 1e-6, "median": 1e-6, "max": 1e-6, "runs": 5}
    one = {"implementation": "c:omp x1", "total_ms": times}
    changed = copied(lambda row: {**row, **one} if row["implementation"] == "numpy" else row)
    first = changed.runs["sort"][0].series[0][1]
    assert "NumPy" not in first and tool.best_other(first)[0] == "C, OpenMP"


def test_two_of_ours_and_documents_without_a_title_are_errors(tool, copied, tmp_path):
    with pytest.raises(ValueError, match="which is auto"):
        copied(lambda row: {**row, "kind": "opencl"})
    (tmp_path / tool.TITLES).write_text("{}")
    with pytest.raises(ValueError, match="no title for cpu16"):
        tool.read_data(tmp_path)


@pytest.mark.parametrize(("started", "newest"), [("2000-01-01", "cpu2_gemm"), ("2999", "again")])
def test_of_two_documents_of_a_device_the_newer_counts(started, newest, tool, copied, tmp_path):
    copied(lambda row: row)
    content = json.loads((tmp_path / "cpu2.json").read_text(encoding="utf-8"))
    content["results"] = [row for row in content["results"] if row["part"] == "gemm"]
    content["environment"]["started"] = started
    (tmp_path / "again.json").write_text(json.dumps(content), encoding="utf-8")
    titles = json.loads((tmp_path / tool.TITLES).read_text(encoding="utf-8"))
    titles["again"] = titles["cpu2"]
    (tmp_path / tool.TITLES).write_text(json.dumps(titles), encoding="utf-8")
    runs = tool.read_data(tmp_path).runs
    assert [run.results.path.stem for run in runs["gemm"]] == [newest, "cpu16_gemm", "h200_gemm"]
    assert runs["sort"][0].results.path.stem == "cpu2"


def test_figures_of_a_gpu_are_those_of_data_on_it(copied, data):
    def beside(row):
        return {**row, "data": "host"} if row["implementation"] == "cupy@device" else row

    def names(data):
        return {name for _, times in data.runs["sort"][-1].series for name in times}

    assert names(copied(beside)) == names(data) - {"CuPy"} != names(data)


def test_short_rows_of_panels_are_one_row(tool):
    assert tool.rows_of_panels(["abc", "ab", "c", "", "c"]) == [
        ["a", "b", "c"],
        ["a", "b", "c"],
        ["c"],
    ]


def luminance(colour):
    """Return the relative luminance of a colour, by the formula of WCAG 2."""
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    return sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("page", GITHUB)
def test_colours_are_seen_on_light_and_dark_pages(page, tool):
    shown = {colour: 3.0 for colour, _ in (*tool.STYLES.values(), *tool.OTHERS)}
    for colour, least in {**shown, tool.INK: 4.0}.items():
        low, high = sorted((luminance(colour), luminance(page)))
        assert (high + 0.05) / (low + 0.05) >= least, colour


def test_only_what_is_another_is_written(tool, tmp_path, monkeypatch, capsys):
    texts = {tmp_path / name: name for name in ("same.md", "other.svg", "new/missing.svg")}
    for path in list(texts)[:2]:
        path.write_text("same.md", encoding="utf-8")
    monkeypatch.setitem(tool.main.__globals__, "made", lambda docs: texts.items())
    assert tool.main(tmp_path) == 0
    assert capsys.readouterr().out == "written: other.svg\nwritten: new/missing.svg\n"
    assert {path: path.read_text(encoding="utf-8") for path in texts} == texts
