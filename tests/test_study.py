"""Studies: the catalogue, running through the command line, and answers from known rows."""

import csv
import json
import math
from dataclasses import replace

import pytest

from opencl_lab.cli.main import main
from opencl_lab.comparison.measure import COLUMNS, Measurement
from opencl_lab.comparison.request import Request, check_comparison
from opencl_lab.comparison.runner import run_comparison
from opencl_lab.device import Device
from opencl_lab.measuring.roofline import Peaks
from opencl_lab.measuring.samples import Times
from opencl_lab.operation import Difference
from opencl_lab.plan import Work
from opencl_lab.reference import mpi
from opencl_lab.registry import get_operation
from opencl_lab.studies import answers, scaling
from opencl_lab.studies import run as study_run
from opencl_lab.studies.catalogue import STUDIES
from opencl_lab.studies.descriptor import SCALES, PartResult, Point
from opencl_lab.studies.outcome import Outcome
from opencl_lab.studies.printed import printed_figures
from opencl_lab.studies.run import run_study, workers_of_scale

FILES = ("results.csv", "results.json", "table.txt", "summary.txt")
MADE_UP = Device("made up", "cpu")


def row(name, milliseconds, spread=0.01, **more):
    kind, _, rest = name.partition(":")
    more.setdefault("algorithm", rest.partition("[")[0] if kind == "opencl" else name)
    times = Times(milliseconds, (1 - spread) * milliseconds, (1 + spread) * milliseconds, 5)
    if "kernel_ms" in more:
        kernel = more["kernel_ms"]
        more["kernel_times"] = Times(kernel, 0.99 * kernel, 1.01 * kernel, 5)
    return Measurement(
        name, kind if kind in ("opencl", "mpi", "c") else "library", total_ms=times, **more
    )


def result(rows_by_size, name="gemm", option="size"):
    part = replace(STUDIES["gemm"].parts[0], name=name)
    return PartResult(part, [(Point({option: size}), rows) for size, rows in rows_by_size.items()])


def small(monkeypatch, name, *points, **more):
    """Make a study have only these points."""
    study = STUDIES[name]
    parts = [replace(part, points={"small": list(points)}, **more) for part in study.parts]
    monkeypatch.setitem(STUDIES, name, replace(study, parts=parts))


@pytest.mark.parametrize("name", STUDIES)
def test_the_catalogue_names_what_there_is(name, device):
    for part in STUDIES[name].parts:
        chosen = get_operation(part.operation)
        known = {reference.name for reference in chosen.references}
        assert part.against == "all" or set(part.against) <= known
        for scale in SCALES:
            assert part.points[scale]
            for options in part.points[scale]:
                problem = chosen.problem(**chosen.with_defaults({**part.options, **options}))
                assert Point(options).size > 0 and problem.title
        options = {**part.options, **part.points["small"][-1]}
        problem = chosen.problem(**chosen.with_defaults(options))
        request = Request(runs=part.runs, against=part.against, resident=part.resident)
        check_comparison(chosen, problem, request, device)


def test_list_shows_sizes_of_both_scales(capsys):
    assert main(["study", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in STUDIES) and "16384" in shown and "50000" in shown
    assert main(["study", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["studies"]
    assert [study["name"] for study in listed] == list(STUDIES)
    assert listed[1]["points"]["full"]["dft"][-1] == {"n": 32768}


def test_a_folder_is_needed_and_names_are_checked(capsys):
    assert main(["study", "sort"]) == 2 and "--out is needed" in capsys.readouterr().err
    assert main(["study", "bogus", "--out", "x"]) == 2 and "bogus" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["study", "sort"], ["bench", "sort", "--sizes", "10"]])
@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_is_no_folder(command, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*command, "--out", name]) == 2
    assert "--out is empty" in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon"])
def test_a_time_limit_is_a_positive_number(seconds, tmp_path, capsys):
    out = str(tmp_path / "studies")
    assert main(["study", "sort", "--out", out, "--time-limit", seconds]) == 2
    assert "--time-limit" in capsys.readouterr().err


def test_a_study_writes_everything(tmp_path, monkeypatch, capsys):
    small(monkeypatch, "sort", {"n": 10}, {"n": 300})
    assert main(["study", "sort", "--out", str(tmp_path), "--repeats", "1"]) == 0
    shown = capsys.readouterr().out
    folder = tmp_path / "sort"
    with (folder / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == ("part", "order", "n", *COLUMNS)
    assert {row["order"] for row in rows} == {"random", "sorted", "reversed"}
    assert {row["n"] for row in rows} == {"10", "300"} and all(row["ok"] == "True" for row in rows)
    content = json.loads((folder / "results.json").read_text())
    assert content["environment"]["started"] and "busy" in content["environment"]
    assert content["command"] == "study" and len(content["results"]) == len(rows)
    assert (content["complete"], content["missing"], content["stopped"]) == (True, [], "")
    assert set(content["plots"]) == {path.name for path in folder.glob("*.png")}
    assert {"part", "implementation", "reference", "size"} <= set(content["crossovers"][0])
    summary = (folder / "summary.txt").read_text()
    for question in STUDIES["sort"].questions:
        assert question.text in summary and question.text in shown
    assert f"{len(rows)} of {len(rows)} measured rows passed." in summary
    assert "No figure that the report printed is known" in summary and "not complete" not in summary
    assert "sort reversed: n=300" in (folder / "table.txt").read_text()
    for part in ("random", "sorted", "reversed"):
        for plot in ("time", "speedup"):
            assert (folder / f"{part}-{plot}.png").read_bytes().startswith(b"\x89PNG")


def test_workers_and_what_cannot_run_are_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(mpi, "find_mpiexec", lambda: None)
    bad = ("tiled", "TILE=7", {"TILE": 7})
    runs = (("tiled", "TILE=8", {"TILE": 8}), bad)
    small(monkeypatch, "dgemm", {"size": 24}, runs=runs, workers=(1, 2))
    arguments = ["study", "dgemm", "--out", str(tmp_path), "--repeats", "1", "--json"]
    assert main(arguments) == 0
    (content,) = json.loads(capsys.readouterr().out)["studies"]
    rows = {row["implementation"]: row for row in content["results"]}
    assert list(rows) == [
        *("opencl:tiled[TILE=8]", "c:seq", "c:blocked", "c:omp x1", "c:omp x2", "mpi:c"),
    ]  # fmt: skip
    assert rows["c:omp x2"]["threads"] == 2 and rows["mpi:c"]["status"] == "unavailable"
    (note,) = content["notes"]
    assert "size=24: tiled is left out" in note and "TILE" in note
    said = (tmp_path / "dgemm" / "summary.txt").read_text()
    assert note in said and "mpi:c did not run" in said and "c:omp x2 takes" in said
    assert "Not run: mpi:c, no mpiexec" in said
    assert (tmp_path / "dgemm" / "dgemm-workers.png").exists()


def after(monkeypatch, points, act):
    """Let `act` have its way once so many points have been compared."""
    measured = []

    def run(*args, **options):
        if len(measured) == points:
            act()
        measured.append(run_comparison(*args, **options))
        return measured[-1]

    monkeypatch.setattr(study_run, "run_comparison", run)


def interrupt():
    raise KeyboardInterrupt


def test_an_interrupted_study_keeps_what_was_measured_and_says_so(tmp_path, monkeypatch, capsys):
    small(monkeypatch, "dft", {"n": 16}, {"n": 32}, {"n": 48})
    two = {"dft": STUDIES["dft"], "gemm": STUDIES["gemm"]}
    monkeypatch.setattr("opencl_lab.cli.study.STUDIES", two)
    after(monkeypatch, 1, interrupt)
    folder = tmp_path / "dft"
    folder.mkdir()
    for name in ("dft-workers.png", "dft-throughput.png", "mine.png"):
        (folder / name).write_text("of an earlier run")
    assert main(["study", "all", "--out", str(tmp_path), "--repeats", "1"]) == 130
    said = capsys.readouterr()
    assert said.err.endswith("oclab: interrupted\n") and "not begun: gemm" in said.out
    content = json.loads((folder / "results.json").read_text())
    assert {row["n"] for row in content["results"]} == {16}
    assert (content["complete"], content["stopped"]) == (False, "it was interrupted")
    assert content["missing"] == [{"part": "dft", "n": 32}, {"part": "dft", "n": 48}]
    summary = (folder / "summary.txt").read_text()
    assert "This study is not complete.\n  It was interrupted.\n" in summary
    assert "Not measured: dft at n=32; n=48." in summary
    assert {path.name for path in folder.glob("*.png")} == {*content["plots"], "mine.png"}
    assert not (tmp_path / "gemm").exists()


def test_an_interrupt_before_the_first_point_leaves_an_earlier_run_alone(tmp_path, monkeypatch):
    small(monkeypatch, "dft", {"n": 16})
    after(monkeypatch, 0, interrupt)
    folder = tmp_path / "dft"
    folder.mkdir()
    (folder / "summary.txt").write_text("of an earlier run")
    assert main(["study", "dft", "--out", str(tmp_path)]) == 130
    assert [path.name for path in folder.iterdir()] == ["summary.txt"]
    assert (folder / "summary.txt").read_text() == "of an earlier run"


def test_parts_share_the_time_and_what_they_do_not_reach_is_named(tmp_path, monkeypatch, capsys):
    small(monkeypatch, "sort", {"n": 10}, {"n": 20}, {"n": 30})
    now = [0.0]
    monkeypatch.setattr(study_run, "monotonic", lambda: now[0])

    def slowly(*args, progress, **options):
        progress(0, 2, "begin")
        now[0] += 5.0
        progress(1, 2, "after five seconds")
        return run_comparison(*args, progress=progress, **options)

    monkeypatch.setattr(study_run, "run_comparison", slowly)
    arguments = ["study", "sort", "--out", str(tmp_path), "--repeats", "1", "--time-limit", "24"]
    assert main(arguments) == 0
    content = json.loads((tmp_path / "sort" / "results.json").read_text())
    # 8 s: one point, and one that is given up; then 7 s of 14, the same; then 4 s.
    found = [(row["order"], row["n"]) for row in content["results"]]
    assert set(found) == {("random", 10), ("sorted", 10)}
    assert len(content["missing"]) == 7 and not content["complete"]
    assert content["stopped"].startswith("its share of the time limit, 24 s")
    said = capsys.readouterr().out
    assert "Not measured: sorted at n=20; n=30.\n  Not measured: reversed at n=10; n=20" in said


def test_a_study_that_ends_in_time_is_complete(tmp_path, monkeypatch):
    small(monkeypatch, "dft", {"n": 16})
    arguments = ["study", "dft", "--out", str(tmp_path), "--repeats", "1", "--time-limit", "600"]
    assert main(arguments) == 0
    content = json.loads((tmp_path / "dft" / "results.json").read_text())
    assert (content["complete"], content["stopped"]) == (True, "")


def test_a_study_that_is_not_reached_is_named(tmp_path, monkeypatch, capsys):
    small(monkeypatch, "dft", {"n": 16})
    arguments = ["study", "dft", "--out", str(tmp_path), "--time-limit", "1e-9"]
    assert main(arguments) == 0
    assert "dft: nothing was measured" in capsys.readouterr().out
    assert not (tmp_path / "dft").exists()


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_peers_have_parts_for_each_kind_of_device(kind, device):
    study = STUDIES["peers"]
    parts = study.parts_on(replace(device, kind=kind))
    assert [part.name for part in parts] == ["sort", "gemm", "conv2d", "fft", "fft_single"]
    assert {part.resident for part in parts} == {kind == "gpu"}
    for part in parts:
        for scale in SCALES:
            sizes = [point.size for point in part.points_at(scale)]
            assert sizes == sorted(sizes) and any(size & (size - 1) for size in sizes)


@pytest.mark.parametrize("resident", [False, True])
def test_peers_are_measured_where_the_data_are(resident, tmp_path, monkeypatch, device):
    small(monkeypatch, "peers", {"n": 300})
    study = STUDIES["peers"]
    part = next(p for p in study.parts if p.name == "sort" and p.resident == resident)
    only = replace(part, kinds=(), against="none" if resident else ("numpy",))
    monkeypatch.setitem(STUDIES, "peers", replace(study, parts=[only]))
    assert main(["study", "peers", "--out", str(tmp_path), "--repeats", "1"]) == 0
    content = json.loads((tmp_path / "peers" / "results.json").read_text())
    first = content["results"][0]
    assert (first["part"], first["n"], first["dtype"]) == ("sort", 300, "int32")
    assert {row["data"] for row in content["results"]} == {"device" if resident else "host"}
    assert content["plots"] == ["sort-time.png", "sort-throughput.png"]  # nothing is the baseline
    (said,) = content["answers"][0]["answer"]
    assert ("nothing to compare with" in said) == resident
    assert "What did the report print?" not in (tmp_path / "peers/summary.txt").read_text()


def test_a_wrong_result_is_the_exit_status(tmp_path, monkeypatch, device):
    small(monkeypatch, "gemm", {"size": 8}, runs=())
    wrong = Difference(1.0, 1.0, error_over_bound=9.0)
    monkeypatch.setattr("opencl_lab.operations.gemm.operation.Gemm.compare", lambda *args: wrong)
    *_, last = run_study(STUDIES["gemm"], "small", device, repeats=1)
    assert last.status == 1
    said = answers.all_right([last], device)
    assert said[0] == "0 of 2 measured rows passed." and "c:seq at size=8: correctness" in said[1]


def test_printed_figures_stand_beside_ours(tmp_path, monkeypatch, capsys):
    (figure,) = printed_figures()
    assert (figure.study, figure.point, figure.milliseconds) == ("dft", {"n": 32768}, 29.33)
    here = replace(figure, point={"n": 16}, milliseconds=12.5)
    monkeypatch.setattr("opencl_lab.studies.printed.printed_figures", lambda: (figure, here))
    small(monkeypatch, "dft", {"n": 16})
    assert main(["study", "dft", "--out", str(tmp_path), "--repeats", "1"]) == 0
    content = json.loads((tmp_path / "dft" / "results.json").read_text())
    absent, measured = content["printed"]
    assert absent["measured"] is None and measured["milliseconds"] == 12.5
    ours = next(r for r in content["results"] if r["implementation"] == figure.ours)
    assert measured["measured"]["total_ms"] == ours["total_ms"]
    for text in (capsys.readouterr().out, (tmp_path / "dft" / "summary.txt").read_text()):
        lines = text[text.index("The report's figures beside ours") :].splitlines()
        far = next(line for line in lines if "29.33" in line)
        near = next(line for line in lines if "12.5" in line)
        assert "n=32768" in far and "the report's GPU" in far and "not measured" in far
        assert "n=16" in near and f"{ours['total_ms']['median']:.4g}" in near
        assert any(line.strip().startswith("here: ") for line in lines)


@pytest.mark.parametrize(
    ("options", "repeats", "budget"),
    [({}, 5, 20.0), ({"time_limit": 3.0}, 5, 3.0), ({"repeats": 7}, 7, None),
     ({"repeats": 7, "time_limit": 3.0}, 7, 3.0)],
)  # fmt: skip
def test_points_have_a_budget(options, repeats, budget, monkeypatch, device):
    small(monkeypatch, "dft", {"n": 16})
    monkeypatch.setattr(study_run, "monotonic", lambda: 0.0)
    asked = []

    def run(chosen, problem, make_inputs, request, **more):
        asked.append(request)
        return run_comparison(chosen, problem, make_inputs, replace(request, repeats=1), **more)

    monkeypatch.setattr(study_run, "run_comparison", run)
    (_,) = run_study(STUDIES["dft"], "small", device, **options)
    assert [(request.repeats, request.budget) for request in asked] == [(repeats, budget)]


def test_workers_grow_with_the_machine_at_full_scale(monkeypatch):
    monkeypatch.setattr(study_run, "default_threads", lambda: 16)
    assert workers_of_scale((1, 2, 4), "full") == (1, 2, 4, 8, 16)
    assert workers_of_scale((1, 2, 4), "small") == (1, 2, 4)
    assert workers_of_scale((), "full") is None


def test_answers_about_workers(monkeypatch):
    monkeypatch.setattr(scaling, "default_threads", lambda: 2)
    rows = [
        row(f"c:omp x{count}", time, algorithm="c:omp", workers=count)
        for count, time in ((1, 80.0), (2, 50.0), (4, 40.0))
    ]
    later = [row("c:omp x4", 99.0, algorithm="c:omp", workers=4)]  # one worker took too long
    said = scaling.by_workers(
        [result({8: rows, 16: later})], MADE_UP, references=("c:omp", "mpi:c")
    )
    assert "size=8: c:omp x2 takes 50 ms, speed-up 1.60, efficiency 80 %." in said
    assert (
        "fastest with 4 workers; efficiency falls to 50 % with 4, as 4 share 2 processors"
        in said[3]
    )
    assert said[4] == "mpi:c did not run, so there is no answer."
    quick = [
        row(f"c:omp x{count}", time, algorithm="c:omp", workers=count)
        for count, time in ((1, 10.0), (2, 4.0))
    ]
    said = scaling.by_workers([result({8: quick})], MADE_UP, references=("c:omp",))
    assert said[-1] == "c:omp is fastest with 2 workers; efficiency is 125 % with 2."
    even = [
        row(f"c:omp x{count}", time, 0.1, algorithm="c:omp", workers=count)
        for count, time in ((1, 10.0), (2, 4.8), (4, 4.5), (8, 9.0))
    ]
    said = scaling.by_workers([result({8: even[:2]})], MADE_UP, references=("c:omp",))
    assert said[-1].endswith("efficiency stays at 100 % within noise with 2.")
    said = scaling.by_workers([result({8: even})], MADE_UP, references=("c:omp",))
    assert said[-1].startswith("c:omp is fastest with 2 or 4 workers, level within noise; eff")
    said = scaling.by_workers([result({8: quick[:1]})], MADE_UP, references=("c:omp",))
    assert len(said) == 1 and "efficiency 100 %" in said[0]


@pytest.mark.parametrize(
    ("tiled", "verdict"),
    [((4, 5), "Local memory wins"), ((30, 50), "Local memory loses"), ((4, 50), "It depends"),
     ((10, 20), "They are level")],
)  # fmt: skip
def test_answers_about_local_memory(tiled, verdict):
    work = Work(flops=1.0, bytes=3 << 20)
    rows = {
        size: [
            row("opencl:naive", 99.0, kernel_ms=plain, work=work),
            row("opencl:tiled[TILE=8]", 1.0, kernel_ms=time + 60.0),
            row("opencl:tiled[TILE=16]", 1.0, kernel_ms=float(time)),
        ]
        for size, plain, time in zip((8, 16), (10.0, 20.0), tiled, strict=True)
    }

    class Handle:
        local_mem_type = 1
        global_mem_cache_size = 2 << 20

    gpu = replace(MADE_UP, kind="gpu", local_memory=48 << 10, handle=Handle())
    names = {"basic": "opencl:naive", "local": "opencl:tiled", "element_bytes": 8}
    said = scaling.local_memory([result(rows)], gpu, **names)
    assert said[0].startswith(verdict) and "memory of its own here, 48 KiB per group" in said[0]
    assert "3 MiB exceeds the cache of 2 MiB" in said[1] and len(said) == 4
    ratio = 20 / tiled[1]
    shown = "level with plain reads" if ratio == 1 else f"{ratio:.2f} times as fast"
    assert shown in said[3]
    assert "ordinary memory" in scaling.local_memory([result(rows)], MADE_UP, **names)[0]
    assert scaling.local_memory([result({})], gpu, **names) == ["Nothing was measured."]


def test_what_plain_reads_ask_for_is_set_against_memory(monkeypatch):
    rows = [
        row("opencl:naive", 9.0, kernel_ms=2.0, work=Work(flops=1e9, bytes=1e6)),
        row("opencl:tiled", 9.0, kernel_ms=1.0),
    ]
    names = {"basic": "opencl:naive", "local": "opencl:tiled", "element_bytes": 8}
    for copies, verdict in ((1e12, "so caches serve them"), (9e12, "which memory could serve")):
        monkeypatch.setattr(scaling, "stored_peaks", lambda device, c=copies: Peaks(copy_bytes=c))
        said = scaling.local_memory([result({8: rows})], MADE_UP, **names)
        asked = f"Plain reads ask for 4e+03 GB/s there, and memory copies {copies / 1e9:.3g}"
        assert said[1] == f"{asked}, {verdict}."


def test_answers_about_differences():
    rows = [
        row("c:seq", 1.0, difference=Difference(2e-4, 0.5, error_over_bound=0.5)),
        row("blas", 1.0, difference=Difference(1e-5, 0.1, error_over_bound=0.1)),
    ]
    (said,) = answers.within([result({8: rows})], MADE_UP, largest=1e-3, relative=False)
    assert said.startswith("Yes") and "0.0002, of c:seq at size=8" in said
    (said,) = answers.within([result({8: rows})], MADE_UP, largest=1e-8, relative=True)
    assert said.startswith("No") and "0.5, of c:seq" in said
    rows.append(
        row("bad", 1.0, difference=Difference(float("nan"), 0.0, error_over_bound=math.inf))
    )
    (said,) = answers.within([result({8: rows})], MADE_UP, largest=1e-3, relative=False)
    assert said.startswith("No") and "of bad" in said


def test_answers_about_times():
    series = {
        8: [row("opencl:x", 4.0), row("c:seq", 2.0)],
        32: [row("opencl:x", 1.0), row("c:seq", 4.0), row("blas", 3.0)],
    }
    one = result(series)
    names = {"ours": "opencl:x", "others": ("c:seq", "numpy")}
    said = answers.crossing([one], MADE_UP, **names)
    assert said[0] == "opencl:x is faster than c:seq from size=12.7 on." and "no answer" in said[1]
    (said,) = answers.fastest([one], MADE_UP)
    assert "size=32: opencl:x takes 1 ms, blas 3 ms, which is 3 times as long" in said
    assert "sequential C takes 4 times as long as opencl:x" in said
    (said,) = answers.ratios([one], MADE_UP, pairs=(("opencl:x", "c:seq"),))
    assert said.endswith("0.5 (size=8); 4 (size=32).")
    (said,) = answers.beside_best([one], MADE_UP)
    assert said.endswith("as long as the device: 0.5 (size=8, c:seq); 3 (size=32, blas).")
    other = result({32: [row("opencl:x", 3.0), row("c:seq", 4.1)]}, "reversed")
    said = answers.orders([replace(one, part=replace(one.part, name="random")), other], MADE_UP)
    assert (
        "opencl:x takes 1 ms for random keys and 3 ms for reversed ones, 3 times as long" in said[0]
    )
    assert said[1] == "size=32: c:seq takes about the same time for all orders, 4 to 4.1 ms."


def test_the_device_is_the_fastest_of_ours_at_each_size():
    series = {
        8: [row("opencl:x", 1.0), row("opencl:y", 4.0), row("c:seq", 2.0), row("blas", 0.1)],
        32: [row("opencl:x", 9.0), row("opencl:y", 3.0), row("c:seq", 4.0), row("blas", 0.2)],
    }
    names = {"ours": answers.DEVICE, "others": ("c:seq", "blas")}
    assert answers.crossing([result(series)], MADE_UP, **names) == [
        "the device is faster than c:seq at every size.",
        "the device stays slower than blas up to size=32.",
    ]


def test_answers_call_level_what_overlaps():
    level = [row("opencl:x", 4.0, 0.2), row("c:seq", 4.5, 0.2)]
    both = [result({8: level, 9: level})]
    names = {"ours": "opencl:x", "others": ("c:seq",)}
    assert answers.crossing(both, MADE_UP, **names) == [
        "opencl:x and c:seq are level within noise at size=8, 9."
    ]
    (said,) = answers.fastest(both, MADE_UP)
    assert said == "size=9: opencl:x and c:seq are level within noise, 4 ms and 4.5 ms."
    (said,) = answers.ratios(both, MADE_UP, pairs=(("opencl:x", "c:seq"),))
    assert said == "c:seq and opencl:x are level within noise at size=8; size=9."
    (said,) = answers.beside_best(both, MADE_UP)
    assert said == "gemm: level within noise at size=8 (c:seq); size=9 (c:seq)."
    noisy = [replace(both[0], part=replace(both[0].part, name=name)) for name in ("a", "b")]
    noisy[1].rows = [(Point({"size": 9}), [row("opencl:x", 5.0, 0.2), row("c:seq", 9.0)])]
    said = answers.orders(noisy, MADE_UP)
    assert said[0] == "size=9: opencl:x takes about the same time for all orders, 4 to 5 ms."
    assert "c:seq takes 4.5 ms for a keys and 9 ms for b ones" in said[1]


def test_a_time_that_was_taken_once_says_so():
    once = replace(row("blas", 3.0), total_ms=Times(3.0, 3.0, 3.0, 1))
    (said,) = answers.fastest([result({8: [row("opencl:x", 1.0), once]})], MADE_UP)
    assert "blas 3 ms (one run), which is 3 times as long" in said


def test_what_was_not_run_is_said_once_and_where():
    def absent(name, reason):
        return Measurement(name, "c", name, "unavailable", reason)

    rows = {
        8: [row("c:seq", 1.0), absent("opencv", "not installed")],
        16: [absent("c:seq", "a run would take 9 s"), absent("opencv", "not installed")],
    }
    assert answers.all_right([result(rows)], MADE_UP) == [
        "1 of 1 measured row passed.",
        "Not run: c:seq at size=16, a run would take 9 s.",
        "Not run: opencv, not installed.",
    ]


@pytest.mark.parametrize("name", STUDIES)
def test_answers_say_something_of_nothing(name):
    outcome = Outcome(STUDIES[name], "small", 0, MADE_UP, [], 1.0, "it was interrupted")
    assert all(isinstance(answer, list) for _, answer in outcome.answers)
    assert not outcome.as_dict()["complete"] and "not complete" in outcome.summary()
