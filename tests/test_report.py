"""The page of `oclab report`: what it says of each kind of document, and that it is safe."""

import base64
import hashlib
import html
import json
import time
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from documents import row, slower, sweep
from report_documents import (
    ENVIRONMENT,
    many,
    timed,
    write_all,
    write_search,
    write_study,
    write_sweep,
)

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import Work
from opencl_lab.core.records import as_json
from opencl_lab.lab.cli import main
from opencl_lab.lab.engine.stored import read_results
from opencl_lab.lab.measuring.roofline import Peaks
from opencl_lab.lab.report.documents import find_results
from opencl_lab.lab.report.page import machines_of, sections_of

VOID = {"meta", "link", "br", "hr", "img", "input"}
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;${1+1}|$x$"
SVG = "data:image/svg+xml;base64,"


class ParsedPage(HTMLParser):
    """A page that is whole, links into itself, and asks for nothing from elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.links, self.text, self._open = [], [], [], [], []
        self.pictures = []
        self.feed(text)
        self.close()
        assert not self._open and len(set(self.ids)) == len(self.ids)
        assert all(link == "data:," or link.removeprefix("#") in self.ids for link in self.links)
        assert self.tags.count("script") == self.tags.count("style") == 1
        assert not {"svg", "iframe", "object", "base", "form"} & set(self.tags)
        script = text.partition("<script>")[2].partition("</script>")[0]
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
        assert policy in text

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        given = dict(attrs)
        assert not any(name.startswith("on") for name in given), (tag, given)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given[name] for name in ("href", "aria-labelledby") if name in given]
        if tag == "img":
            assert given["src"].startswith(SVG) and given["alt"]
            picture = base64.b64decode(given["src"].removeprefix(SVG)).decode()
            ElementTree.fromstring(picture)
            self.pictures.append(picture)
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def reported(source):
    """Return the page that the command makes of documents."""
    assert main(["report", str(source), "--quiet"]) == 0
    folder = source if source.is_dir() else source.parent
    return ParsedPage((folder / "report.html").read_text(encoding="utf-8"))


def texts(cells):
    return [[cell.text for cell in line] for line in cells]


def letters(figure):
    """Return the texts of a figure."""
    root = ElementTree.fromstring(base64.b64decode(figure.address.removeprefix(SVG)))
    return ["".join(item.itertext()) for item in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_page_of_all_kinds_of_documents(tmp_path, capsys):
    write_all(tmp_path)
    assert main(["report", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "4 documents" in out and err.count("left out") == 4
    page = ParsedPage((tmp_path / "report.html").read_text(encoding="utf-8"))
    words = page.words
    assert page.tags.count("table") == 11 and len(page.pictures) == 9
    assert "6 experiments with" in words and "1 row failed" in words
    for name in ("e.json is damaged", "f.json has the schema oclab/2", "g.json has no measured"):
        assert name in words
    assert "h.json is not a document" in words
    # What writes each document, and the page.
    assert "oclab sort --n 5 --json 'a b'" in words
    assert f"oclab report {tmp_path}" in words
    # Shapes whose sizes are the same are no points of one plot.
    assert "dtype float64, m 16, n 8, k 4" in words and "matmul tall: m" not in words
    assert "Which is the fastest? opencl:tiled. By far." in words
    assert "matmul square: m x n x k from 512 to 4,096" in words and words.count("TILE=32") == 1
    assert "public call host 12 8" in words
    assert "numpy (data on the device)" in words
    assert "cpu A CPU" in words and "packages numpy 2.0, mako 1.3" in words
    assert "Some device" in words


def test_a_sweep_has_ratios_reasons_plots_and_all_its_rows(tmp_path):
    results = read_results(write_sweep(tmp_path / "a.json"))
    (section,) = sections_of(results)
    assert section.ratios.heads == ["by n", "100", "1,000", "10,000"]
    assert texts(section.ratios.rows) == [
        ["OpenCL, ms", "17.6", "35.2", "220"],
        ["numpy", "0.50x", "2.00x", "\u22481.10x"],
        ["c:seq", "0.12x", "4.00x", "10.00x"],
    ]
    numpy = section.ratios.rows[1][1:]
    assert [cell.style for cell in numpy] == ["slower", "faster", "level"]
    assert numpy[0].tip == "opencl:radix takes 17.6 ms, numpy takes 8.8 ms"
    assert [" ".join(said.split()[:5]) for said in section.summary] == [
        f"opencl:radix is faster than {name}" for name in ("c:seq", "numpy")
    ]
    assert [trouble.text for trouble in section.troubles] == [
        "blas was not measured: no BLAS is installed",
        "opencl:merge-path failed (compile) at n = 10,000: error: no such type",
    ]
    heads = section.table.heads
    assert heads[:3] == ["n", "implementation", "kernel ms"] and heads[-1] == "result"
    assert "GB/s" in heads and "speed-up\nover c:seq" in heads
    assert not {"GFLOP/s", "kernel % peak", "compute"} & set(heads)  # empty in all rows
    assert section.table.caption == "Each time is the median of 5 runs."
    orders = [cells[heads.index("total ms")].order for cells in section.table.rows]
    assert len(orders) == 13 and orders[0] == pytest.approx(17.6) and orders[3] is None
    assert [figure.caption.split()[0] for figure in section.figures] == [
        "Total", "Speed-up", "Throughput,",
    ]  # fmt: skip
    for figure in section.figures:
        assert {"opencl:radix", "c:seq", "numpy", "n", "1,000"} <= set(letters(figure))
    assert sections_of(results)[0].figures == section.figures  # the same page for the same data


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("opencl:a", "opencl:b"), ["OpenCL, ms", "opencl:a", "opencl:b"]),
        (("c:seq", "numpy"), ["the fastest, ms", "c:seq", "numpy"]),
        (("opencl:a",), ["OpenCL, ms"]),
        (("opencl:a", *map(str, range(8))), ["OpenCL, ms", *map(str, range(6))]),
    ],
)
def test_ratios_without_others_or_with_many(tmp_path, names, said):
    rows = [slower(1 + place, name) for place, name in enumerate(names)]
    (section,) = sections_of(read_results(sweep(tmp_path / "a.json", *rows)))
    assert [cells[0].text for cells in section.ratios.rows] == said
    shown = "Slower and not shown here: 6, 7." if len(names) > 3 else ""
    assert section.ratios.caption == shown


def test_what_files_say_is_never_markup(tmp_path):
    name = f"opencl:\u6f22\u0001\ud800\x7f{EVIL}"  # and letters that a page cannot have
    content = json.loads(write_sweep(tmp_path / "a.json", name=name).read_text())
    content["device"] = {"name": EVIL, "driver": EVIL, "reason": EVIL}
    content["options"][EVIL] = EVIL
    content["arguments"] = [EVIL]
    content["environment"] = {EVIL: {EVIL: [EVIL]}}
    content["study"], content["scale"], content["version"] = EVIL, EVIL, EVIL
    content["answers"] = [{"question": EVIL, "answer": [EVIL]}]
    content["notes"] = [EVIL]
    for item in content["results"]:
        item["reason"] = item["note"] = EVIL
    folder = tmp_path / "<b>&"
    folder.mkdir()
    (folder / "<i>.json").write_text(json.dumps(content))
    (folder / "<u>.json").write_text("{")
    page = reported(folder)
    assert not {"b", "i", "u"} & set(page.tags)
    assert page.words.count("opencl:\u6f22\\x01\\ud800\\x7f") > 3
    assert page.words.count(EVIL) > 20 and "<u>.json is damaged" in page.words
    # The names in a picture are its texts.
    assert all(f"opencl:\u6f22\\x01\\ud800\\x7f{html.escape(EVIL, quote=False)}" in picture
               for picture in page.pictures)  # fmt: skip


def test_missing_fields_leave_gaps_and_wrong_results_are_no_winners(tmp_path):
    bare = {"schema": "oclab/1", "results": [{"implementation": "a"}, {"implementation": "b"}]}
    (tmp_path / "a.json").write_text(json.dumps(bare))
    times = {"median": 0, "min": 0, "max": 0}
    bare["results"] = [{"implementation": "a", "ok": True, "total_ms": times, "n": 0}]
    bare |= {"problem": {"sizes": [0]}, "device": 3, "options": [], "answers": 3, "study": "x"}
    (tmp_path / "b.json").write_text(json.dumps(bare))
    wrong = [timed(1, name, status="correctness", reason="9 of 9") for name in ("opencl:a", "b")]
    rows = [{"n": n, **item.as_row()} for n in (1, 2) for item in wrong]
    problem = {"operation": "sort", "sizes": [1, 2]}
    sweep(tmp_path / "c.json", problem=problem, results=rows)
    words = reported(tmp_path).words
    assert words.count("Nothing was measured with a correct result.") > 2
    assert "opencl:a failed (correctness): 9 of 9" in words


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone"], "there is no folder gone"),
        (["empty"], "no results found in empty: it has no JSON file; `oclab bench"),
        (["bad"], "no results found in bad: bad/a.json is damaged"),
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


def test_the_command_says_what_it_read_and_pages_what_is_missing(tmp_path, capsys):
    missing = [{"part": "sort", "n": 10}, {"part": "sort", "n": 20}, {"part": "fft", "n": 8}]
    more = {"study": "sort", "stopped": "it was interrupted", "missing": missing}
    path, page = sweep(tmp_path / "a.json", row(), complete=False, **more), tmp_path / "page.htm"
    assert main(["report", str(path), "-o", str(page), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["read"] == [str(path)] and content["output"] == str(page)
    lacks = "It was interrupted. Not measured: sort at n=10; n=20. Not measured: fft at n=8."
    assert lacks in ParsedPage(page.read_text(encoding="utf-8")).words


def test_reasons_are_said_once_and_few_runs_are_called_few(tmp_path):
    rows = []
    for n, seconds in ((10, 0), (100, 0), (1000, 7.5), (10000, 80)):
        reason = f"a run would take about {seconds:g} s"
        absent = row("c:seq", samples=(), status="unavailable", reason=reason)
        few = row("opencl:a", samples=(1.0, 1.1, 1.2))
        rows += [{"n": n, **item.as_row()}
                 for item in (few, absent if seconds else slower(9, "c:seq"))]  # fmt: skip
    problem = {"operation": "sort", "sizes": [10, 100, 1000, 10000]}
    path = sweep(tmp_path / "a.json", problem=problem, results=rows)
    (section,) = sections_of(read_results(path))
    assert [item.text for item in section.troubles] == [
        "c:seq was not measured at n = 1,000 to 10,000: a run would take about 7.5 s"
    ]
    assert section.summary[0].startswith("Some rows have only 3 runs")
    assert section.table.caption == "Each time is the median of 3 to 5 runs."


def test_machines_are_told_once_with_what_differs_between_their_runs(tmp_path):
    later = {**ENVIRONMENT, "busy": "", "load": [0, 0, 0]}
    paths = [
        sweep(tmp_path / "a.json", row(), environment=ENVIRONMENT, complete=False),
        sweep(tmp_path / "b.json", row(), environment=later),
        sweep(tmp_path / "c.json", row()),
    ]
    found = machines_of([read_results(path) for path in paths])
    assert list(found) == ["Some device, A CPU", "Some device"]
    seen, old = found.values()
    assert seen["memory"] == "3 GiB" and seen["gpu max clock mhz"] == "1980"
    assert seen["compiler flags"] == "-O3, -fopenmp"
    assert seen["variables OMP_NUM_THREADS"] == "4" and seen["gpu end clock mhz"] == "1980"
    assert seen["load"] == "3.5, 2.0, 1.0; 0, 0, 0"
    assert "cpu" not in old and old["device driver"] == "1.0"
    words = reported(tmp_path).words
    assert "The machine was busy with other work during 1 run. 1 run ended early." in words
    assert "This run is incomplete" in words and "During the measurement: others keep" in words


@pytest.mark.full
def test_rooflines_and_workers_have_plots(tmp_path):
    work, peaks = Work(2e9, 1e8), Peaks(flops32=1e12, copy_bytes=5e10)
    rows = [
        {"n": n, **timed(n / workers, f"c:omp x{workers}", threads=workers, workers=workers,
                         algorithm="c:omp", work=work).as_row()}
        for n in (8, 16)
        for workers in (1, 2, 4)
    ]  # fmt: skip
    problem = {"operation": "sort", "sizes": [8, 16]}
    path = sweep(tmp_path / "a.json", problem=problem, results=rows, peaks=as_json(peaks))
    (section,) = sections_of(read_results(path))
    *_, roofline, figure, shares = section.figures
    assert roofline.caption.startswith("Roofline")
    assert {"FP32 peak: 1 TFLOP/s", "memory: 50 GB/s"} <= set(letters(roofline))
    assert figure.caption == "Speed-up by threads or ranks, n = 16" and "c:omp" in letters(figure)
    assert shares.caption == "Efficiency by threads or ranks, n = 16"
    assert section.table.rows[1][1].text == "c:omp x2"  # not twice


def test_a_search_is_told_with_its_finals(tmp_path):
    (section,) = sections_of(read_results(write_search(tmp_path / "a.json")))
    assert section.title == "Tuning gemm by tiled" and section.subtitle == "m 8"
    won, tried, stored, words = section.summary
    assert won == "The winner takes 1.5 ms in kernels, 2 times as fast as the built-in one."
    assert tried == (
        "7 configurations of 1,200 that can run here were tried in 4 s. The budget was used up."
    )
    assert stored.startswith("It is stored") and words == "Its parameters: WG_SIZE 69, TILE 8."
    assert [item.text for item in section.troubles] == [
        "a note", "1 configuration failed (compile)",
    ]  # fmt: skip
    assert section.table.heads == ["place", "kernel ms", "min..max", "WG_SIZE", "which"]
    assert [cells[-1].text for cells in section.table.rows] == ["", "built in"]


def test_two_runs_are_set_beside_each_other(tmp_path, capsys):
    old = sweep(tmp_path / "old.json", row(), row("numpy"), row("blas"))
    new = sweep(tmp_path / "new.json", slower(3), slower(0.2, "numpy"), row("c:seq"))
    assert main(["bench", "--compare", str(old), str(new), "--json"]) == 1
    folder = tmp_path / "pages"
    folder.mkdir()
    path = folder / "compare.json"
    path.write_text(capsys.readouterr().out)
    (section,) = sections_of(read_results(path))
    assert section.title == f"Two runs compared: {old}, then {new}"
    counted, worse = section.summary
    assert counted == "2 rows are in both runs: 1 slower, 1 faster."
    assert worse.startswith("1 regression: OpenCL rows that fail now or take more than 1.1 times")
    assert [cells[-1].text for cells in section.table.rows] == ["slower, a regression", "faster"]
    assert [item.text[:20] for item in section.troubles] == [
        "only in the old run:", "only in the new run:",
    ]  # fmt: skip
    assert "1 experiment with 0 rows" in reported(folder).words


def test_all_studies_in_one_document_are_read(tmp_path):
    content = json.loads(write_study(tmp_path / "a.json").read_text())
    named = ("study", "scale", "answers", "notes", "results")
    study = {name: content.pop(name) for name in named}
    studies = [study, {**study, "study": "sort"}]
    (tmp_path / "a.json").write_text(json.dumps({**content, "studies": studies}))
    words = reported(tmp_path).words
    assert words.count("Study matmul (small)") == words.count("Study sort (small)") == 2
    assert words.count("By far.") == 2
    (tmp_path / "a.json").write_text(json.dumps({**content, "studies": [{"name": "gemm"}]}))
    with pytest.raises(InvalidProblem, match="has no measured rows"):
        find_results(tmp_path)


@pytest.mark.full
def test_a_page_of_thousands_of_rows_is_made_in_seconds(tmp_path):
    path = many(tmp_path / "a.json", range(1, 401), "opencl:radix", "numpy", "c:seq", "c:omp", "d")
    begin = time.monotonic()
    page = reported(path)
    assert time.monotonic() - begin < 60  # about 2 s on an idle machine
    assert page.tags.count("tr") > 2000


VALUES = [EVIL, None, True, -1, 0, 10**400, 1e308, float("nan"), float("inf"), [EVIL], {EVIL: EVIL}]


@pytest.mark.few(4)
@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_searches_and_comparisons_may_say_anything(tmp_path, value):
    search = json.loads(write_search(tmp_path / "a.json").read_text())
    for content in (*search["evaluations"], *search["finalists"]):
        content["config"] = {EVIL: value}
        content["reason"], content["times_ms"] = EVIL, [value]
    names = ("seconds", "speedup_over_default", "stopped", "notes", "removed", "algorithm", "peaks")
    for name in (*names, "environment", "device", "complete"):
        search[name] = value
    compared = {"implementation": EVIL, "verdict": value, "ratio": value, "remarks": value}
    times = {"median": 2, "min": 1, "max": 3, "runs": 5}
    compared |= {"old_ms": times, "new_ms": times, "kernel_ratio": value, EVIL: value}
    rows = [compared, {**compared, EVIL: 3, "ratio": 2.0}]
    comparison = {"schema": "oclab/1", "compared": {"old": value}, "results": rows}
    comparison |= {"threshold": value, "warnings": [EVIL], "only_old": value, "only_new": [EVIL]}
    (tmp_path / "a.json").write_text(json.dumps(search))
    (tmp_path / "b.json").write_text(json.dumps(comparison))
    page = reported(tmp_path)
    assert page.words.count(EVIL) > 5 and "Tuning gemm" in page.words
    assert "Two runs compared" in page.words
