"""Studies: the catalogue, and running through the command line."""

import csv
import json
import shlex
from dataclasses import replace

import pytest

from opencl_lab.lab.cli.main import main
from opencl_lab.lab.engine.request import Request, check_point, point_of
from opencl_lab.lab.engine.row import COLUMNS, Measurement, first_failure
from opencl_lab.lab.engine.runner import run_point
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.reference import mpi
from opencl_lab.lab.registry import get_operation
from opencl_lab.lab.studies import run as study_run
from opencl_lab.lab.studies.catalogue import STUDIES
from opencl_lab.lab.studies.descriptor import SCALES, StudyPoint


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
                assert StudyPoint(options).size > 0 and problem.title
        options = {**part.options, **part.points["small"][-1]}
        request = Request(runs=part.runs, against=part.against, resident=part.resident)
        check_point(point_of(chosen, options, 0, request), device)


def test_list_shows_sizes_of_both_scales(capsys):
    assert main(["study", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in STUDIES) and "16384" in shown and "50000" in shown
    assert main(["study", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["studies"]
    assert [study["name"] for study in listed] == list(STUDIES)
    assert listed[1]["points"]["full"]["dft"][-1] == {"n": 32768}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("study sort", "--out is needed"),
        ("study bogus --out x", "bogus"),
        ("study sort --out ''", "--out is empty"),
        ("bench sort --sizes 10 --out ' '", "--out is empty"),
        ("study sort --out x --time-limit nan", "--time-limit"),
        ("study sort --out x --time-limit 0", "--time-limit"),
        ("study sort --out x --part bogus", "has no part 'bogus'; it has: random, sorted, rev"),
        ("study all --out x --part random", "--part is for one study"),
    ],
)
def test_what_is_refused_leaves_no_folder(command, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)) == 2
    assert said in " ".join(capsys.readouterr().err.split()) and not list(tmp_path.iterdir())


def test_a_study_writes_everything(tmp_path, monkeypatch, capsys):
    small(monkeypatch, "sort", {"n": 10}, {"n": 300})
    command = ["study", "sort", "--out", str(tmp_path), "--repeats", "1", "--baseline", "c:omp"]
    assert main(command) == 0
    shown = capsys.readouterr().out
    folder = tmp_path / "sort"
    with (folder / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == ("part", "order", "n", *COLUMNS)
    assert {row["order"] for row in rows} == {"random", "sorted", "reversed"}
    assert {row["n"] for row in rows} == {"10", "300"} and all(row["ok"] == "True" for row in rows)
    content = json.loads((folder / "results.json").read_text())
    assert {row["baseline"] for row in content["results"]} == {"c:omp"}
    assert content["environment"]["started"] and "busy" in content["environment"]
    assert content["command"] == "study" and len(content["results"]) == len(rows)
    assert (content["complete"], content["missing"], content["stopped"]) == (True, [], "")
    assert set(content["plots"]) == {path.name for path in folder.glob("*.png")}
    assert {"part", "implementation", "reference", "size"} <= set(content["crossovers"][0])
    summary = (folder / "summary.txt").read_text()
    for question in STUDIES["sort"].questions:
        assert question.text in summary and question.text in shown
    assert f"{len(rows)} of {len(rows)} measured rows passed." in summary
    assert "not complete" not in summary
    assert "sort reversed: n=300" in (folder / "table.txt").read_text()
    for part in ("random", "sorted", "reversed"):
        for plot in ("time", "speedup"):
            assert (folder / f"{part}-{plot}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.full
@pytest.mark.usefixtures("undrawn")
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
    assert note in said and "mpi:c did not run" in said and "c:omp at size=24: " in said
    assert "Not run: mpi:c at size=24, no mpiexec" in said
    assert (tmp_path / "dgemm" / "dgemm-workers.png").exists()


def after(monkeypatch, points, act):
    """Let `act` have its way once so many points have been compared."""
    measured = []

    def run(*args, **options):
        if len(measured) == points:
            act()
        measured.append(run_point(*args, **options))
        return measured[-1]

    monkeypatch.setattr(study_run, "run_point", run)


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.usefixtures("undrawn")
def test_an_interrupted_study_keeps_what_was_measured_and_says_so(tmp_path, monkeypatch, capsys):
    small(monkeypatch, "dft", {"n": 16}, {"n": 32}, {"n": 48})
    two = {"dft": STUDIES["dft"], "gemm": STUDIES["gemm"]}
    monkeypatch.setattr("opencl_lab.lab.cli.study.STUDIES", two)
    after(monkeypatch, 1, interrupt)
    folder = tmp_path / "dft"
    folder.mkdir()
    for name in ("results.json", "dft-workers.png", "dft-throughput.png", "mine.png"):
        (folder / name).write_text("of an earlier run")
    assert main(["study", "all", "--out", str(tmp_path), "--repeats", "1"]) == 130
    said = capsys.readouterr()
    assert said.err.endswith(f"oclab: interrupted; the results so far are in {tmp_path}\n")
    assert "not begun: gemm" in said.out
    content = json.loads((folder / "results.json").read_text())
    assert {row["n"] for row in content["results"]} == {16}
    assert (content["complete"], content["stopped"]) == (False, "it was interrupted")
    assert content["missing"] == [{"part": "dft", "n": 32}, {"part": "dft", "n": 48}]
    summary = (folder / "summary.txt").read_text()
    assert "This study is not complete.\n  It was interrupted.\n" in summary
    assert "Not measured: dft at n=32; n=48." in summary
    table = (folder / "table.txt").read_text()
    assert table.startswith("It was interrupted.\nNot measured: dft at n=32; n=48.\n")
    assert {path.name for path in folder.glob("*.png")} == {"mine.png"}
    assert not (tmp_path / "gemm").exists()


@pytest.mark.usefixtures("undrawn")
def test_chosen_parts_are_measured_alone(tmp_path, monkeypatch):
    small(monkeypatch, "sort", {"n": 10})
    arguments = ["study", "sort", "--out", str(tmp_path), "--repeats", "1"]
    assert main([*arguments, "--part", "reversed, random"]) == 0
    content = json.loads((tmp_path / "sort" / "results.json").read_text())
    assert {row["part"] for row in content["results"]} == {"random", "reversed"}
    assert content["complete"] and "--part" in content["arguments"]


@pytest.mark.few(2)
@pytest.mark.usefixtures("undrawn")
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


@pytest.mark.usefixtures("undrawn")
def test_a_wrong_result_is_the_exit_status(tmp_path, monkeypatch):
    small(monkeypatch, "gemm", {"size": 8}, runs=(("auto", "", {}),))
    wrong = Difference(1.0, 1.0, error_over_bound=9.0)
    monkeypatch.setattr("opencl_lab.lab.ops.gemm.operation.Gemm.compare", lambda *args: wrong)
    assert main(["study", "gemm", "--out", str(tmp_path), "--repeats", "1"]) == 1
    summary = (tmp_path / "gemm" / "summary.txt").read_text()
    assert "0 of 3 measured rows passed." in summary and "correctness: " in summary
    rows = [Measurement("", kind, "", "correctness") for kind in ("library", "opencl")]
    assert [first_failure([[], [row]]) for row in rows] == [0, 1]
    arguments = ["bench", "gemm", "--sizes", "8", "--against", "none", "--repeats", "1"]
    assert main([*arguments, "--out", str(tmp_path / "bench")]) == 1
