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
from opencl_lab.measuring.samples import Times
from opencl_lab.operation import Difference
from opencl_lab.plan import Work
from opencl_lab.reference import mpi
from opencl_lab.registry import get_operation
from opencl_lab.studies import answers
from opencl_lab.studies import run as study_run
from opencl_lab.studies.catalogue import STUDIES
from opencl_lab.studies.descriptor import SCALES, PartResult, Point, printed_figures
from opencl_lab.studies.run import run_study, workers_of_scale

FILES = ("results.csv", "results.json", "table.txt", "summary.txt")
MADE_UP = Device("made up", "cpu")


def row(name, milliseconds, **more):
    kind, _, rest = name.partition(":")
    more.setdefault("algorithm", rest.partition("[")[0] if kind == "opencl" else name)
    times = Times(milliseconds, 0.99 * milliseconds, 1.01 * milliseconds, 5)
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
        assert set(part.against) <= known
        for scale in SCALES:
            assert part.points[scale]
            for options in part.points[scale]:
                problem = chosen.problem(**chosen.with_defaults({**part.options, **options}))
                assert Point(options).size > 0 and problem.title
        options = {**part.options, **part.points["small"][-1]}
        problem = chosen.problem(**chosen.with_defaults(options))
        request = Request(runs=part.runs, against=list(part.against))
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
    summary = (folder / "summary.txt").read_text()
    for question in STUDIES["sort"].questions:
        assert question.text in summary and question.text in shown
    assert f"{len(rows)} of {len(rows)} measured rows passed." in summary
    assert "No figure that the report printed is known" in summary
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


def test_an_interrupted_study_keeps_what_was_measured(tmp_path, monkeypatch, capsys):
    small(monkeypatch, "dft", {"n": 16}, {"n": 32})
    measured = []

    def run_once(*args, **options):
        if measured:
            raise KeyboardInterrupt
        measured.append(run_comparison(*args, **options))
        return measured[0]

    monkeypatch.setattr(study_run, "run_comparison", run_once)
    arguments = ["study", "all", "--out", str(tmp_path), "--repeats", "1"]
    monkeypatch.setattr("opencl_lab.cli.study.STUDIES", {"dft": STUDIES["dft"]})
    assert main(arguments) == 130
    assert capsys.readouterr().err.endswith("oclab: interrupted\n")
    content = json.loads((tmp_path / "dft" / "results.json").read_text())
    assert {row["n"] for row in content["results"]} == {16}


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
    here = replace(figure, point={"n": 16})
    monkeypatch.setattr("opencl_lab.cli.study.printed_figures", lambda: (figure, here))
    small(monkeypatch, "dft", {"n": 16})
    assert main(["study", "dft", "--out", str(tmp_path), "--repeats", "1"]) == 0
    summary = (tmp_path / "dft" / "summary.txt").read_text()
    assert "n=32768: 29.33 ms on the report's GPU" in summary
    assert "not measured here at this scale" in summary
    assert (
        "29.33 ms on the report's GPU, whose name is not known here; opencl:direct-tiled takes"
        in summary
    )


def test_workers_grow_with_the_machine_at_full_scale(monkeypatch):
    monkeypatch.setattr(study_run, "default_threads", lambda: 16)
    assert workers_of_scale((1, 2, 4), "full") == (1, 2, 4, 8, 16)
    assert workers_of_scale((1, 2, 4), "small") == (1, 2, 4)
    assert workers_of_scale((), "full") is None


def test_answers_about_workers(monkeypatch):
    monkeypatch.setattr(answers, "default_threads", lambda: 2)
    rows = [
        row(f"c:omp x{count}", time, algorithm="c:omp", workers=count)
        for count, time in ((1, 80.0), (2, 50.0), (4, 40.0))
    ]
    later = [row("c:omp x4", 99.0, algorithm="c:omp", workers=4)]  # one worker took too long
    said = answers.by_workers(
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
    said = answers.by_workers([result({8: quick})], MADE_UP, references=("c:omp",))
    assert said[-1] == "c:omp is fastest with 2 workers; efficiency is 125 % with 2."
    said = answers.by_workers([result({8: quick[:1]})], MADE_UP, references=("c:omp",))
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
    names = {"basic": "opencl:naive", "local": "opencl:tiled"}
    said = answers.local_memory([result(rows)], gpu, **names)
    assert said[0].startswith(verdict) and "memory of its own here, 48 KiB per group" in said[0]
    assert "3 MiB exceeds the cache of 2 MiB" in said[0] and len(said) == 3
    assert f"{20 / tiled[1]:.2f} times as fast" in said[2]
    assert "ordinary memory" in answers.local_memory([result(rows)], MADE_UP, **names)[0]
    assert answers.local_memory([result({})], gpu, **names) == ["Nothing was measured."]


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
    assert said[0] == "opencl:x is faster than c:seq from 12.7 on." and "no answer" in said[1]
    (said,) = answers.fastest([one], MADE_UP)
    assert "size=32: opencl:x takes 1 ms, blas 3 ms, which is 3 times as long" in said
    assert "sequential C takes 4 times" in said
    (said,) = answers.ratios([one], MADE_UP, pairs=(("opencl:x", "c:seq"),))
    assert said.endswith("0.5 (size=8); 4 (size=32).")
    other = result({32: [row("opencl:x", 3.0), row("c:seq", 4.1)]}, "reversed")
    said = answers.orders([replace(one, part=replace(one.part, name="random")), other], MADE_UP)
    assert (
        "opencl:x takes 1 ms for random keys and 3 ms for reversed ones, 3 times as long" in said[0]
    )
    assert "c:seq takes the same time for all orders" in said[1]
