"""The page of `oclab report`: what it says, that it holds together, and a real browser."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from documents import row, slower, sweep
from report_documents import timed, write_all, write_sweep

from opencl_lab.lab.cli import main
from opencl_lab.lab.engine.stored import read_results
from opencl_lab.lab.report.chapters import sections_of
from opencl_lab.lab.report.figures import figures_of
from opencl_lab.lab.report.page import page_of
from opencl_lab.lab.report.ratios import ratios_of, sparkline
from opencl_lab.lab.report.summary import summary_of, troubles_of
from opencl_lab.lab.report.sweeps import find_results, sweeps_of

VOID = {"meta", "link", "br", "wbr", "hr", "img", "input"}
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;${1+1}|$x$"
SAMPLES = (2.0, 2.1, 2.2, 2.3, 2.4)


class Page(HTMLParser):
    """The structure of a page: tags, ids and links; it fails where tags do not match."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.links, self.text, self._open = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "clip-path", "aria-labelledby"):
                self.links.append(value)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def checked(text):
    """Return a parsed page that is whole and asks for nothing from elsewhere."""
    page = Page(text)
    assert len(set(page.ids)) == len(page.ids)
    for link in page.links:
        link = re.sub(r"^url\((.*)\)$", r"\1", link)
        assert link == "data:," or link.removeprefix("#") in page.ids, link
    assert page.tags.count("script") == page.tags.count("style") == 1
    assert not {"img", "iframe", "object", "base", "form"} & set(page.tags)
    return page


def reported(source):
    """Return the page that the command makes of documents, parsed."""
    assert main(["report", str(source), "--quiet"]) == 0
    folder = source if source.is_dir() else source.parent
    return checked((folder / "report.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A sweep that several tests look at, and the section that tells of it."""
    results = read_results(write_sweep(tmp_path_factory.mktemp("sweep") / "a.json"))
    (one,), (section,) = sweeps_of(results), sections_of(results)
    return one, section


def test_the_page_of_all_kinds_of_documents(tmp_path, capsys):
    write_all(tmp_path)
    assert main(["report", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "4 documents" in out and err.count("left out") == 4
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page, words = checked(text), Page(text).words
    assert page.tags.count("svg") > 9 and page.tags.count("table") == 14
    assert "6 experiments with" in words and "1 row failed" in words
    for name in ("e.json is damaged", "f.json has the schema oclab/2", "g.json has no measured"):
        assert name in words
    assert "h.json is not a document" in words
    # What writes each document, and the page.
    assert "oclab sort --n 5 --json 'a b'" in words
    assert "oclab bench sort --sizes 100,1000,10000 --dtype int32 --order random" in words
    assert "oclab study matmul --scale small --out DIR" in words
    assert f"oclab report {tmp_path}" in words
    # Shapes whose sizes are the same are no points of one plot.
    assert "dtype float64, m 16, n 8, k 4" in words and "matmul tall: m" not in words
    # The study: questions, printed figures beside rows, parts with their sizes.
    assert "Which is the fastest? opencl:tiled. By far." in words and "Some GPU 12.5" in words
    assert "matmul square: m x n x k from 512 to 4,096" in words and words.count("TILE=32") == 1
    assert "public call host 12 8" in words
    assert "numpy (data on the device)" in words
    assert "<title>opencl:radix: 2.2 ms (2 to 2.4, 5 runs), 4 times c:seq" in text  # of a bar
    assert "cpu A CPU" in words and "packages numpy 2.0, mako 1.3" in words
    assert "Some device" in words


def test_ratios_say_who_is_fastest_by_size(written):
    one, _ = written
    table = ratios_of(one.series, one.axis)
    assert table.heads == ["by n", "", "100", "1,000", "10,000"]
    texts = [[cell.text for cell in cells if not cell.picture] for cells in table.rows]
    assert texts == [
        ["OpenCL, ms", "", "17.6", "35.2", "220"],
        ["numpy", "0.50x", "2.00x", "\u22481.10x"],
        ["c:seq", "0.12x", "4.00x", "10x"],
    ]
    numpy = table.rows[1][2:]
    assert [cell.style for cell in numpy] == ["slower", "faster", "level"]
    assert numpy[0].tip == "opencl:radix takes 17.6 ms, numpy takes 8.8 ms"
    assert summary_of(one) == []  # no sentence repeats it
    assert [trouble.text for trouble in troubles_of(one)] == [
        "blas was not measured: no BLAS is installed",
        "opencl:merge-path failed (compile) at n = 10,000: error: no such type",
    ]


def test_ratios_name_the_slower_ones_that_have_no_row(tmp_path):
    others = [slower(2 + place, f"peer{place}") for place in range(8)]
    (one,) = sweeps_of(read_results(sweep(tmp_path / "a.json", row("opencl:a"), *others)))
    table = ratios_of(one.series, one.axis)
    names = [cells[0].text for cells in table.rows]
    assert names == ["OpenCL, ms", *(f"peer{place}" for place in range(6))]
    assert table.caption == "Slower and not shown here: peer6, peer7."
    (one,) = sweeps_of(read_results(sweep(tmp_path / "b.json", row("opencl:a"), *others[:6])))
    assert ratios_of(one.series, one.axis).caption == ""


def test_a_small_picture_has_every_size_below_and_above_the_line(tmp_path):
    points = [(1, 0.1), (10, 1), (100, 10)]
    picture = ElementTree.fromstring(sparkline(points))
    one, line = (path.get("d")[1:].split("L") for path in picture.findall("path"))
    places = [tuple(map(float, text.split())) for text in line]
    assert places[0][0] < places[1][0] < places[2][0] and len({y for _, y in places}) == 3
    level = float(one[0].split()[1])
    assert places[0][1] > places[1][1] == level > places[2][1]  # down is more
    assert sparkline([(5, 1.0), (5, 1.0)])  # of no width, and no height


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("opencl:a", "opencl:b"), ["OpenCL, ms", "opencl:a", "opencl:b"]),
        (("c:seq", "numpy"), ["the fastest, ms", "c:seq", "numpy"]),
        (("opencl:a",), ["OpenCL, ms"]),
    ],
)
def test_ratios_without_others_or_without_ours(tmp_path, names, said):
    rows = [slower(1 + 9 * place, name) for place, name in enumerate(names)]
    (one,) = sweeps_of(read_results(sweep(tmp_path / "a.json", *rows)))
    table = ratios_of(one.series, one.axis)
    assert [cells[0].text for cells in table.rows] == said
    ratios = [cells[-1].text for cells in table.rows[1:]]
    assert ratios == ["\u22481.000x", "10x"][: len(ratios)]


@pytest.mark.full
def test_plots_have_real_text_and_a_tooltip_for_each_mark(written):
    one, section = written
    figures = section.figures
    assert [figure.caption.split()[0] for figure in figures] == ["Total", "Speed-up", "Throughput,"]
    for figure in figures:
        titles = re.findall(r"<title>([^<]*)</title>", figure.svg)
        assert len(titles) == 9 and len(set(titles)) == 9  # three implementations, three sizes
        assert {name for _, name in figure.legend} >= {"opencl:radix", "c:seq", "numpy"}
        assert ">10,000</text>" in figure.svg and "total time" in figure.svg
        assert "#000000" not in figure.svg and "currentColor" in figure.svg
        assert "font-family" not in figure.svg and "opencl:radix</text>" not in figure.svg
    assert "opencl:radix, n = 1,000: 35.2 ms (32 to 38.4, 5 runs), 0.25 times c:seq" in titles[1]
    assert figures_of(one, section.anchor) == figures  # the same page for the same data


def test_what_files_say_is_never_markup(tmp_path):
    name = f"opencl:\u6f22\u0001\ud800\x7f{EVIL}"  # and letters that a page cannot have
    content = json.loads(write_sweep(tmp_path / "a.json", name=name).read_text())
    content["device"] = {"name": EVIL, "driver": EVIL, "reason": EVIL}
    content["options"][EVIL] = EVIL
    content["arguments"] = [EVIL]
    content["environment"] = {EVIL: {EVIL: [EVIL]}}
    content["study"], content["scale"], content["version"] = EVIL, EVIL, EVIL
    content["answers"] = [{"question": EVIL, "answer": [EVIL]}]
    content["printed"] = [{"what": EVIL, "hardware": EVIL, "ours": EVIL, "milliseconds": EVIL}]
    content["notes"] = [EVIL]
    for item in content["results"]:
        item["reason"] = item["note"] = EVIL
    folder = tmp_path / "<b>&"
    folder.mkdir()
    (folder / "<i>.json").write_text(json.dumps(content))
    (folder / "<u>.json").write_text("{")
    found, skipped = find_results(folder)
    text = page_of(found, skipped, folder, ["oclab", EVIL])
    page = checked(text.encode().decode())
    assert not {"b", "i", "u"} & set(page.tags)
    assert text.count("opencl:\u6f22\\x01\\ud800\\x7f") >= 20
    assert page.words.count(EVIL) > 20 and "<u>.json is damaged" in page.words


def test_missing_fields_leave_gaps_and_no_more(tmp_path):
    bare = {"schema": "oclab/1", "results": [{"implementation": "a"}, {"implementation": "b"}]}
    (tmp_path / "a.json").write_text(json.dumps(bare))
    times = {"median": 0, "min": 0, "max": 0}
    bare["results"] = [{"implementation": "a", "ok": True, "total_ms": times, "n": 0}]
    bare |= {"problem": {"sizes": [0]}, "device": 3, "options": [], "answers": 3, "printed": [3]}
    bare |= {"study": "x", "notes": 3}
    (tmp_path / "b.json").write_text(json.dumps(bare))
    found, skipped = find_results(tmp_path)
    assert len(found) == 2 and not skipped
    assert [results.operation for results in found] == ["", "x"]
    words = checked(page_of(found, skipped, tmp_path)).words
    assert "Nothing was measured with a correct result." in words


def test_wrong_results_are_no_winners(tmp_path):
    wrong = [timed(1, name, status="correctness", reason="9 of 9") for name in ("opencl:a", "b")]
    rows = [{"n": n, **item.as_row()} for n in (1, 2) for item in wrong]
    problem = {"operation": "sort", "sizes": [1, 2]}
    path = sweep(tmp_path / "a.json", problem=problem, results=rows)
    page = checked(page_of([read_results(path)], [], tmp_path))
    assert "Nothing was measured with a correct result." in page.words
    assert "opencl:a failed (correctness): 9 of 9" in page.words and "4 rows failed" in page.words


@pytest.mark.full
def test_workers_have_a_plot_of_their_own(tmp_path):
    rows = [
        {"n": n, **timed(n / workers, f"c:omp x{workers}", threads=workers, workers=workers,
                         algorithm="c:omp").as_row()}
        for n in (8, 16)
        for workers in (1, 2, 4)
    ]  # fmt: skip
    problem = {"operation": "sort", "sizes": [8, 16]}
    path = sweep(tmp_path / "a.json", problem=problem, results=rows)
    (section,) = sections_of(read_results(path))
    figure, shares = section.figures[-2:]
    assert figure.caption == "Speed-up by threads or ranks, n = 16"
    assert shares.caption == "Efficiency by threads or ranks, n = 16"
    assert "c:omp, workers = 4: efficiency 100 %" in shares.svg
    assert [name for _, name in figure.legend] == ["c:omp"]
    assert "c:omp, workers = 4: 8.8 ms" in figure.svg
    assert section.table.rows[1][1].text == "c:omp x2"  # not twice


def test_columns_that_are_empty_are_left_out(written):
    _, section = written
    heads = section.table.heads
    assert heads[:3] == ["n", "implementation", "total ms"] and heads[-1] == "result"
    assert "GB/s" in heads and "GFLOP/s" not in heads and "% of peak" not in heads
    assert section.table.caption == "Each time is the median of 5 runs. Speed-ups are over c:seq."
    orders = [cells[2].order for cells in section.table.rows]
    assert len(orders) == 13 and orders[0] == pytest.approx(17.6) and orders[3] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone"], "there is no folder gone"),
        (["empty"], "no results found in empty: it has no JSON file; `oclab bench"),
        (["bad"], "no results found in bad: bad/a.json is damaged"),
        (["bad/a.json"], "is damaged"),
        (["good", "-o", "page.png"], "its name must end in .html"),
        (["good", "-o", "gone/page.html"], "cannot write gone/page.html"),
    ],
)
def test_errors_are_one_sentence(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "bad", "good"):
        (tmp_path / name).mkdir()
    (tmp_path / "bad/a.json").write_text("{")
    sweep(tmp_path / "good/a.json", row())
    assert main(["report", *arguments]) == 2
    out, err = capsys.readouterr()
    assert said in err and err.count("\n") == 1 and not out
    assert not list(tmp_path.rglob("*.html"))


def test_a_page_is_written_whole_or_not_at_all(tmp_path, monkeypatch, capsys):
    path = sweep(tmp_path / "a.json", row())
    page = tmp_path / "page.htm"
    page.write_text("before")

    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr("opencl_lab.lab.cli.report.page_of", fail)
        assert main(["report", str(path), "-o", str(page)]) == 2
    assert page.read_text() == "before"
    capsys.readouterr()
    assert main(["report", str(path), "-o", str(page), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["read"] == [str(path)] and content["output"] == str(page)
    assert content["arguments"] == ["report", str(path), "-o", str(page), "--json"]
    checked(page.read_text(encoding="utf-8"))


@pytest.mark.full
def test_plots_of_a_page_have_one_size_and_names_take_no_room(tmp_path):
    long = "opencl:" + "a-long-name-" * 4
    path = write_sweep(tmp_path / "a.json", name=long)
    (one,) = sweeps_of(read_results(path))
    figures = figures_of(one, "x")
    boxes = {re.search(r'viewBox="([^"]*)"', figure.svg).group(1) for figure in figures}
    assert len(figures) > 1 and len(boxes) == 1
    width = float(boxes.pop().split()[2])
    for figure in figures:
        ends = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', figure.svg)]
        assert width * 0.85 < max(ends) < width  # the plot is as wide as its box
        assert all("<path" in sample or "<use" in sample for sample, _ in figure.legend)
        sizes = [float(size) for size in re.findall(r"font-size:([\d.]+)px", figure.svg)]
        assert sizes and min(sizes) >= 11
        lines = [sample for sample, name in figure.legend if name == "numpy"]
        assert "stroke-width" in lines[0] and re.search(r' d="M[^"]*L', lines[0])
