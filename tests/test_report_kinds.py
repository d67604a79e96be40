"""What a page says of documents beside sweeps: machines, searches, two runs, several devices."""

import html
import json
import time

import pytest
from documents import DEVICE, row, slower, sweep
from report_documents import ENVIRONMENT, timed
from test_report import EVIL, reported

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import Work
from opencl_lab.core.records import as_json
from opencl_lab.lab.cli import main
from opencl_lab.lab.engine.stored import read_results
from opencl_lab.lab.measuring.roofline import Peaks
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.report.chapters import chapter_of, sections_of
from opencl_lab.lab.report.devices import across_devices
from opencl_lab.lab.report.environment import device_names, machines_of
from opencl_lab.lab.report.figures import MOST_LINES, MOST_SIZES, thinned
from opencl_lab.lab.report.page import page_of
from opencl_lab.lab.report.ratios import medians_of, ratios_of
from opencl_lab.lab.report.summary import summary_of, times_text, troubles_of
from opencl_lab.lab.report.sweeps import find_results, sweeps_of


def many(path, sizes, *names, device=DEVICE, **more):
    """Write a sweep in which the first name is the fastest, each other one twice as slow."""
    rows = [
        {"n": n, **timed(n * 2**place, name, **more).as_row()}
        for n in sizes
        for place, name in enumerate(names)
    ]
    problem = {"operation": "sort", "sizes": list(sizes)}
    return sweep(path, problem=problem, results=rows, device=device)


def test_what_was_not_measured_to_the_end_is_said_once_and_claims_no_more(tmp_path):
    rows = []
    for n, seconds in ((10, 0), (100, 0), (1000, 7.5), (10000, 80)):
        reason = f"a run would take about {seconds:g} s; --against c:seq runs it"
        absent = row("c:seq", samples=(), status="unavailable", reason=reason)
        last = absent if seconds else slower(9, "c:seq")
        rows += [{"n": n, **item.as_row()} for item in (row("opencl:a"), last)]
    problem = {"operation": "sort", "sizes": [10, 100, 1000, 10000]}
    (one,) = sweeps_of(read_results(sweep(tmp_path / "a.json", problem=problem, results=rows)))
    assert [str(item) for item in troubles_of(one)] == [
        "c:seq was not measured at n = 1,000 and 10,000: "
        "a run would take about 7.5 to 80 s; --against c:seq runs it"
    ]
    ratios = ratios_of(one.series, one.axis).rows[1]  # of the largest size c:seq has none
    assert [cell.text for cell in ratios] == ["c:seq", "", "9.00x", "9.00x", "", ""]


def test_ratios_say_how_exactly_they_are_known():
    said = ["1.000", "1.004", "1.50", "9.99", "41.9"]
    assert [times_text(ratio) for ratio in (1, 1.004, 1.5, 9.99, 41.9)] == said


def test_runs_are_told_as_a_span_and_calls_by_their_names(tmp_path):
    rows = [row("opencl:a", samples=(2.0,) * runs) for runs in (9, 44, 12)]
    (section,) = sections_of(read_results(sweep(tmp_path / "a.json", *rows)))
    assert section.table.caption == "Each time is the median of 9 to 44 runs."
    call = {"call_us": 3.0, "calls": 9, "host_us": 2.0, "side": "host", "what": "opencl_lab"}
    path = sweep(tmp_path / "b.json", results=[{"n": 7, "calls": [call]}])
    (section,) = sections_of(read_results(path))
    heads = [
        "n",
        "call",
        "arrays",
        "\u00b5s per call",
        "\u00b5s until it returns",
        "back-to-back calls",
    ]
    assert section.table.heads == heads and section.table.kinds[:2] == ["number", "name"]
    text = page_of(*find_results(tmp_path), tmp_path)
    overview = text.partition('<ul class="overview">')[2].partition("</ul>")[0]
    assert overview.count("<li>") == 1 and "cost of calls" not in overview  # nothing to say there


def test_few_runs_are_called_few(tmp_path):
    rows = [row("opencl:a", samples=(1.0, 1.1, 1.2)), row("numpy", samples=(2.0, 2.1, 2.2))]
    (one,) = sweeps_of(read_results(sweep(tmp_path / "a.json", *rows)))
    assert summary_of(one)[-1].startswith("With 3 runs of the rows the noise is hardly known")


def test_kernel_times_have_a_spread(tmp_path):
    times = Times.of([0.5, 0.7, 0.8, 0.9, 1.5])
    path = sweep(tmp_path / "a.json", row(kernel_ms=0.8, kernel_times=times), row("numpy"))
    (section,) = sections_of(read_results(path))
    column = section.table.heads.index("kernel ms")
    cell, none = (cells[column] for cells in section.table.rows)
    assert cell.text == "0.8" and none.tip == ""
    spread = "0.5\u2009\u2013\u20091.5 ms"
    assert cell.tip == f"{spread}, 5 runs; the true median lies between 0.5 and 1.5 ms"


def test_machines_are_told_once_and_each_run_has_its_state(tmp_path):
    other = {**ENVIRONMENT, "busy": "", "load": None, "gpu": None, "gpu_end": None, "git": None}
    paths = [
        sweep(tmp_path / "a.json", row(), environment=ENVIRONMENT),
        sweep(tmp_path / "b.json", row(), environment={**ENVIRONMENT, "busy": ""}),
        sweep(tmp_path / "c.json", row(), environment=other),
        sweep(tmp_path / "d.json", row()),
    ]
    machines = machines_of([(path.name, read_results(path)) for path in paths])
    first, second, old = machines
    facts = dict(first.facts)
    assert facts["memory"] == "3 GiB" and facts["GPU's highest clock in MHz"] == "1980"
    assert facts["compiler flags"] == "-O3, -fopenmp"
    assert facts["variables"] == "OMP_NUM_THREADS=4" and "busy" not in facts
    assert first.warnings == ["a.json: others keep 2 of 4 processors busy"]
    state = dict(zip(first.runs.heads, (cell.text for cell in first.runs.rows[0]), strict=True))
    assert state["started"] == "2026-05-04 03:02:01+00:00" and state["load"] == "3.50 2.00 1.00"
    assert state["commit"] == "0123456789 with changes"
    assert state["GPU MHz"] == "345 \u2192 1980" and state["GPU slowed by"] == "power"
    assert len(first.runs.rows) == 2 and "GPU MHz" not in second.runs.heads
    assert old.runs.heads == ["document"] and "cpu" not in dict(old.facts)


def test_busy_and_incomplete_runs_are_marked(tmp_path):
    path = sweep(tmp_path / "a.json", row(), environment=ENVIRONMENT, complete=False)
    chapter = chapter_of(read_results(path), tmp_path, "s0")
    assert [text.split(":")[0] for text in chapter.warnings] == [
        "This run is incomplete", "During the measurement",
    ]  # fmt: skip
    words = reported(path).words
    assert "The machine was busy with other work during 1 run. 1 run ended early." in words


def test_a_study_that_ended_early_names_what_it_lacks(tmp_path):
    missing = [{"part": "sort", "n": 10}, {"part": "sort", "n": 20}, {"part": "fft", "n": 8}]
    more = {"study": "sort", "stopped": "it was interrupted", "missing": missing}
    path = sweep(tmp_path / "a.json", row(), complete=False, **more)
    (warning,) = chapter_of(read_results(path), tmp_path, "s0").warnings
    assert warning.endswith(
        "It was interrupted. Not measured: sort at n=10; n=20. Not measured: fft at n=8."
    )
    damaged = sweep(tmp_path / "b.json", row(), complete=False, missing=["x", 3], stopped=1)
    assert "Not measured" not in chapter_of(read_results(damaged), tmp_path, "s0").warnings[0]


@pytest.mark.full
def test_a_roofline_needs_peaks_and_arithmetic(tmp_path):
    work, peaks = Work(2e9, 1e8), Peaks(flops32=1e12, copy_bytes=5e10)
    path = many(tmp_path / "a.json", (100, 1000), "opencl:blocked", "blas", work=work)
    assert "Roofline" not in "".join(f.caption for f in sections_of(read_results(path))[0].figures)
    content = json.loads(path.read_text()) | {"peaks": as_json(peaks)}
    path.write_text(json.dumps(content))
    assert Peaks.of(content["peaks"]) == peaks
    figure = sections_of(read_results(path))[0].figures[-1]
    assert figure.caption.startswith("Roofline") and "flops per byte" in figure.svg
    assert {"FP32 peak: 1 TFLOP/s", "memory: 50 GB/s"} <= {name for _, name in figure.legend}
    assert figure.svg.count("<title>") == 4 and "blas, n = 1,000: " in figure.svg


def write_search(path, count=6, **more):
    config = {"WG_SIZE": 64, "TILE": 8}
    tried = [
        {"config": {**config, "WG_SIZE": 64 + place}, "status": "correct", "reason": "",
         "times_ms": [9.0 / (1 + place), 9.5 / (1 + place)]}
        for place in range(count)
    ]  # fmt: skip
    tried.append({"config": config, "status": "compile", "reason": "no", "times_ms": []})
    best = row("opencl:tiled", samples=(), config={**config, "WG_SIZE": 69}, kernel_ms=1.5)
    default = row("opencl:tiled", samples=(), config=config, kernel_ms=3.0)
    spread = {"kernel_spread_ms": {"median": 1.5, "min": 1.4, "max": 1.6, "runs": 3}}
    finals = [{**best.as_row(), **spread}, default.as_row()]
    return sweep(
        path, command="tune", problem={"operation": "gemm", "m": 8}, algorithm="tiled",
        results=finals[:1], default=finals[1], finalists=finals, evaluations=tried, stable=True,
        speedup_over_default=2.0, seconds=4.2, stopped="budget", stored=True, notes=["a note"],
        removed={"total": 5000, "left": 1200, "exact": True}, **more,
    )  # fmt: skip


def test_a_search_is_told_with_its_progress(tmp_path):
    (section,) = sections_of(read_results(write_search(tmp_path / "a.json")))
    assert section.title == "Tuning gemm by tiled" and section.subtitle == "m 8"
    won, tried, stored, words = section.summary
    assert won == "The winner takes 1.5 ms in kernels, 2 times as fast as the built-in one."
    assert tried == (
        "7 configurations of 1,200 that can run here (the space has 5,000) were tried in 4 s. "
        "The budget was used up."
    )
    assert stored.startswith("It is stored") and words == "Its parameters: WG_SIZE=69, TILE=8."
    assert [str(item) for item in section.troubles] == [
        "a note", "1 configuration failed (compile)",
    ]  # fmt: skip
    assert section.table.heads == ["place", "kernel ms", "min \u2013 max", "WG_SIZE", "which"]
    assert [cells[-1].text for cells in section.table.rows] == ["", "built in"]
    (figure,) = section.figures
    assert "1.542 ms: WG_SIZE=69, TILE=8" in figure.svg and "compile: no WG_SIZE=64" in figure.svg
    assert [name for _, name in figure.legend] == [
        "configuration", "best so far", "failed: 1", "built in",
    ]  # fmt: skip


def test_long_searches_are_thinned(tmp_path):
    (section,) = sections_of(read_results(write_search(tmp_path / "a.json", count=3000)))
    (figure,) = section.figures
    assert "the fastest of every 8 configurations; 3,001 were tried" in figure.caption
    assert figure.svg.count("<title>") == 376 and "WG_SIZE=3063" in figure.svg


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
    counted, worse, loss, gain = section.summary
    assert counted == "2 rows are in both runs: 1 slower, 1 faster."
    assert worse.startswith("1 regression: OpenCL rows that fail now or take more than 1.1 times")
    assert loss == "The greatest loss: opencl:radix takes 3 times the old time."
    assert "numpy takes 0.2 times" in gain
    assert [cells[-1].text for cells in section.table.rows] == ["slower, a regression", "faster"]
    assert [str(item)[:20] for item in section.troubles] == [
        "only in the old run:", "only in the new run:",
    ]  # fmt: skip
    assert "3 times the old time, 2.5 to 3.6 by the spread: slower" in section.figures[0].svg
    words = reported(folder).words
    assert "1 experiment with 0 rows" in words and "not recorded" not in words


def test_devices_are_set_side_by_side(tmp_path):
    sizes = (10, 100)
    many(tmp_path / "a.json", sizes, "opencl:radix", "numpy")
    gpu = {**DEVICE, "name": "A GPU"}
    many(tmp_path / "b.json", (10, 100, 1000), "opencl:merge", "opencl:radix", device=gpu)
    results = [read_results(tmp_path / name) for name in ("a.json", "b.json")]
    (across,) = across_devices(results)
    times = medians_of(across.series, across.sweep.axis)
    assert times.heads == ["by n, ms", "10", "100"]  # 1,000 is of one device alone
    assert [[cell.text for cell in cells] for cells in times.rows] == [
        ["opencl:Some device", "22", "220"], ["opencl:A GPU", "22", "220"],
    ]  # fmt: skip
    assert across.table.heads == ["n", "implementation", "Some device, ms", "A GPU, ms"]
    shown = {tuple(cell.text for cell in cells) for cells in across.table.rows}
    assert ("100", "opencl:radix", "220", "440") in shown
    assert ("100", "opencl (the fastest)", "220", "220") in shown
    assert not any(size == "1,000" for size, *_ in shown)  # of one device alone
    (figure,) = across.figures("x")
    assert {name for _, name in figure.legend} >= {"opencl:Some device", "opencl:A GPU"}
    assert not across_devices(results[:1])  # nothing to compare with


@pytest.mark.full
def test_devices_with_data_on_either_side_and_machines_of_one_name(tmp_path):
    there = [
        {"n": n, **row("opencl:radix@device", data="device", algorithm="radix").as_row()}
        for n in (10, 100)
    ]
    problem = {"operation": "sort", "sizes": [10, 100]}
    sweep(tmp_path / "a.json", problem=problem, results=there, device={**DEVICE, "name": "A GPU"})
    many(tmp_path / "b.json", (10, 100), "opencl:radix", "c:omp")
    large = {**DEVICE, "compute_units": 16}
    many(tmp_path / "c.json", (10, 100), "c:omp", "opencl:radix", device=large)
    results = [read_results(tmp_path / f"{name}.json") for name in "abc"]
    names = device_names(results)
    assert names == ["A GPU", "Some device, 2 compute units", "Some device, 16 compute units"]
    (across,) = across_devices(results, names)
    shown = [[cell.text for cell in cells] for cells in medians_of(across.series, "n").rows]
    assert shown == [
        ["opencl:A GPU@device", "2.2", "2.2"], [f"opencl:{names[1]}", "22", "220"],
        [f"opencl:{names[2]}", "44", "440"],
    ]  # fmt: skip
    (figure,) = across.figures("x")
    assert len(figure.legend) == 3 and "opencl:A GPU@device" in {name for _, name in figure.legend}
    assert across.table.heads[2:] == [f"{name}, ms" for name in names[1:]]
    words = reported(tmp_path).words
    assert "OpenCL is fastest in 1 of 2 comparisons with others." in words
    assert "Across devices" in words and "4 experiments" in words


def test_commands_stand_in_the_order_in_which_they_ran(tmp_path):
    for name, started in (("a", "2026-01-02"), ("b", "2026-01-01")):
        arguments = ["bench", "sort", "--n", "10", "--json", "--seed", str(ord(name))]
        environment = {"started": f"{started}T00:00:00+00:00"}
        sweep(tmp_path / f"{name}.json", row(), arguments=arguments, environment=environment)
    given = json.loads((tmp_path / "a.json").read_text())
    compared = {"compared": {"old": {"path": "b.json"}, "new": {"path": "a.json"}}, "results": []}
    given |= compared | {"arguments": ["bench", "--compare", "b.json", "a.json", "--json"]}
    given["results"] = [{"implementation": "opencl:radix", "verdict": "faster", "ratio": 0.5}]
    (tmp_path / "0.json").write_text(json.dumps(given))
    assert main(["report", str(tmp_path), "--quiet"]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    last = html.unescape(page[page.index('id="commands"') :])
    places = [last.index(f"> {name}.json") for name in ("b", "a", "0")]
    assert places == sorted(places)


def test_all_studies_in_one_document_are_read(tmp_path):
    (one,) = [json.loads(sweep(tmp_path / "a.json", row(), slower(2, "c:seq")).read_text())]
    answer = {"question": "Which one?", "answer": ["This one."]}
    studies = [
        {"study": name, "scale": "small", "answers": [answer], "results": one["results"]}
        for name in ("gemm", "sort")
    ]
    del one["results"], one["problem"]
    (tmp_path / "a.json").write_text(json.dumps({**one, "studies": studies}))
    found, skipped = find_results(tmp_path)
    assert [item.operation for item in found] == ["gemm", "sort"] and not skipped
    words = reported(tmp_path).words
    assert words.count("Study gemm (small)") == 2 and words.count("This one.") == 2
    listed = {**one, "studies": [{"name": "gemm"}]}
    (tmp_path / "a.json").write_text(json.dumps(listed))
    with pytest.raises(InvalidProblem, match="has no measured rows"):
        find_results(tmp_path)


@pytest.mark.full
def test_plots_of_many_sizes_and_implementations_are_thinned(tmp_path):
    names = [f"opencl:{place}" for place in range(MOST_LINES + 4)]
    path = many(tmp_path / "a.json", range(1, 201), *names)
    (one,) = sweeps_of(read_results(path))
    kept, remark = thinned(one.series)
    sizes = [size for size, _ in kept]
    assert sizes[0] == 1 and sizes[-1] == 200 and MOST_SIZES / 2 < len(sizes) <= MOST_SIZES
    assert {row.implementation for _, rows in kept for row in rows} == set(names[:MOST_LINES])
    assert remark == f"{len(sizes)} of 200 sizes and the 16 fastest of 20 implementations"
    assert thinned(kept) == (kept, "")


@pytest.mark.full
def test_a_page_of_thousands_of_rows_is_made_in_seconds(tmp_path):
    path = many(tmp_path / "a.json", range(1, 401), "opencl:radix", "numpy", "c:seq", "c:omp", "d")
    begin = time.monotonic()
    assert main(["report", str(path), "--quiet"]) == 0
    assert time.monotonic() - begin < 60  # about 2 s on an idle machine
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.count("<tr>") == 2007 and len(text) < 2.4e6


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


@pytest.mark.full
def test_documents_of_sweeps_have_the_peaks_of_the_device(tmp_path, monkeypatch):
    peaks = Peaks(flops32=1e15, copy_bytes=1e15)
    monkeypatch.setattr("opencl_lab.lab.cli.sweep_outputs.stored_peaks", lambda device: peaks)
    sizes = ["bench", "gemm", "--sizes", "16,32", "--algorithm", "naive", "--repeats", "1"]
    sizes += ["--against", "c:seq"]
    assert main([*sizes, "--out", str(tmp_path), "--quiet"]) == 0
    results = read_results(tmp_path / "results.json")
    assert Peaks.of(results.content["peaks"]) == peaks
    assert sections_of(results)[0].figures[-1].caption.startswith("Roofline")
