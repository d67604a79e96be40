"""`oclab` over ranks: jobs of the study `scaling`, files as inputs, and examples."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from command_line import oclab
from documents import sweep
from ranks import on_ranks
from study_rows import row
from test_study import small

from opencl_lab.core.plan import Work
from opencl_lab.lab.engine import rank_jobs
from opencl_lab.lab.engine.rank_jobs import RankJobs
from opencl_lab.lab.engine.row import RANK_COLUMNS, OverRanks
from opencl_lab.lab.engine.speedups import over_fewest_ranks
from opencl_lab.lab.engine.stored import measurement_of, read_results
from opencl_lab.lab.presentation.table import comparison_table, table_text
from opencl_lab.lab.reference import mpi
from opencl_lab.lab.reference.mpi import no_mpi
from opencl_lab.lab.registry import get_operation
from opencl_lab.lab.report.page import sections_of
from opencl_lab.lab.studies.catalogue import STUDIES
from opencl_lab.lab.studies.descriptor import PartResult, StudyPoint

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
needs_mpi = pytest.mark.skipif(no_mpi() is not None, reason=f"{no_mpi()}")


def on(ranks, milliseconds, work=1e9, **more):
    """Return a made-up row: 80 % compute."""
    shares = OverRanks(0.8, 0.15, 0.05, 0.1)
    found = row(f"mpi:opencl x{ranks}", milliseconds, work=Work(work, 0.0), workers=ranks)
    return replace(found, over_ranks=shares, algorithm="mpi:opencl", threads=ranks, **more)


def test_speed_is_relative_to_the_fewest_ranks():
    alone = row("opencl:radix", 50, work=Work(1e9, 0.0))
    lost = replace(on(8, 1), status="runtime", reason="lost")
    found = over_fewest_ranks([alone, on(4, 40), lost, on(2, 60)])
    plain, four, failed, two = found
    assert (plain.speedup, plain.baseline, plain.over_ranks) == (60 / 50, "mpi:opencl x2", None)
    assert (four.speedup, four.efficiency) == (1.5, 0.75) and two.efficiency == 1
    assert failed is lost and failed.speedup is None
    assert over_fewest_ranks([alone, lost]) == [alone, lost]
    one, two = over_fewest_ranks([on(1, 50), on(2, 62.5, work=2e9)])  # compared by their rates
    assert (one.speedup, two.speedup, two.efficiency) == (1, 1.6, 0.8)


def test_a_row_keeps_its_shares_in_documents_and_tables():
    rows = over_fewest_ranks([on(1, 50), on(2, 30)])
    again = [measurement_of(json.loads(json.dumps(one.as_row()))) for one in rows]
    assert [one.over_ranks for one in again] == [one.over_ranks for one in rows]
    flat = rows[1].as_csv()
    assert [flat[name] for name in RANK_COLUMNS] == [0.8, 0.15, 0.05, 0.1]
    assert all(row("numpy", 1).as_csv()[name] is None for name in RANK_COLUMNS)
    shown = table_text(comparison_table([*rows, row("opencl:radix", 9)], "a title"))
    for text in ("efficiency", "waiting", "80%", "0.83", "1.67x"):
        assert text in shown
    assert "kernel ms" not in shown


def test_a_report_shows_where_the_time_of_ranks_goes(tmp_path):
    results = [{"n": 9, **one.as_row()} for one in over_fewest_ranks([on(1, 50), on(2, 30)])]
    path = sweep(tmp_path / "a.json", problem={"operation": "gemm", "sizes": [9]}, results=results)
    (section,) = sections_of(read_results(path))
    assert any(figure.caption.startswith("Where the time goes") for figure in section.figures)


# -------------------------------------------------------------------------------------- the jobs


def jobs(monkeypatch, *ended, **more):
    """Return the rows of jobs that would have ended so, and their commands."""
    monkeypatch.setattr(rank_jobs, "no_mpi", lambda: None)
    monkeypatch.setattr(rank_jobs, "find_mpiexec", lambda: "mpiexec")
    answers, lines = iter(ended), []
    monkeypatch.setattr(
        rank_jobs, "_ended", lambda line, around: (lines.append((line, around)), next(answers))[1]
    )
    chosen = get_operation("gemm")
    asked = {"size": 9, "dtype": "complex64", "beta": 1 + 2j, "trans_a": True}
    options = chosen.with_defaults(asked)
    given = {"ranks": (1, 2), "options_on": lambda ranks: options, **more}
    return RankJobs(chosen, **given).rows(lambda done, total, label: None), lines


def printed(one):
    return 0, json.dumps({"results": [one.as_row()]}), ""


def test_jobs_are_commands_whose_rows_stand_beside_each_other(monkeypatch):
    for name in (rank_jobs.WORKERS, rank_jobs.UNITS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(rank_jobs, "default_threads", lambda: 6)
    ended = [printed(one) for one in (on(1, 8), on(2, 5))]
    rows, lines = jobs(monkeypatch, *ended, repeats=3, device="0:0,0:1", seed=5)
    assert [one.implementation for one in rows] == ["mpi:opencl x1", "mpi:opencl x2"]
    assert [one.speedup for one in rows] == [1, 1.6] and rows[1].efficiency == 0.8
    _, (last, shared) = lines
    assert last[last.index("--device") + 1] == "0:0,0:1"
    assert last[:3] == ("mpiexec", "-n", "2") and last[-1] == "--distributed"
    assert {"--size=9", "--beta=(1+2j)", "--trans-a", "--seed=5"} <= set(last)
    assert " ".join(last).count("--") == 9  # and no options with their defaults
    assert shared[rank_jobs.WORKERS] == shared[rank_jobs.UNITS] == "3"
    last = [word for word in last if word not in ("--device", "0:0,0:1")]
    assert oclab(*last[last.index("gemm") : -1], "--quiet", "--against", "none").returncode == 0


@pytest.mark.parametrize(
    ("ended", "status", "reason"),
    [
        ((4, "", "oclab: rank 1: lost\nAbort(4) on node 1"), "runtime", "rank 1: lost"),
        ((2, "", "oclab: no such grid\n"), "constraints", "no such grid"),
        ((124, "", "oclab: rank 0: late"), "timeout", "rank 0: late"),
        ((9, "", "= EXIT CODE: 9\n"), "runtime", "= EXIT CODE: 9"),
        ((-11, "", ""), "runtime", "exit status -11, and nothing said"),
        ((0, "{", "odd"), "runtime", "odd"),
        (printed(on(1, 8)), "unavailable", "mpi4py belongs to another MPI"),
    ],
)
def test_a_job_that_fails_has_a_row(ended, status, reason, monkeypatch):
    (good, bad), _ = jobs(monkeypatch, printed(on(1, 8)), ended)
    assert good.ok and good.speedup == 1
    assert (bad.implementation, bad.workers, bad.status) == ("mpi:opencl x2", 2, status)
    assert reason in bad.reason


# ------------------------------------------------------------------------------------- the study


def test_the_study_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(mpi, "find_mpiexec", lambda: None)
    done = oclab("study", "scaling", "--out", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    (study,) = json.loads(done.stdout)["studies"]
    assert {one["status"] for one in study["results"]} == {"unavailable"} and not study["plots"]
    assert ["Nothing was measured."] in [one["answer"] for one in study["answers"]]
    assert "pip install mpi4py mpich" in study["results"][0]["reason"]


def test_the_study_answers_from_rows():
    study = STUDIES["scaling"]
    strong, weak = study.parts[:2]
    grown = [weak.shared_by(ranks, {"size": 1000}) for ranks in (1, 8)]
    assert grown == [{"size": 1000}, {"size": 2000}]
    results = [
        PartResult(strong, [(StudyPoint({"size": 9}), over_fewest_ranks([on(1, 50), on(2, 30)]))]),
        PartResult(
            weak, [(StudyPoint({"size": 9}), over_fewest_ranks([on(1, 50), on(2, 62.5, work=2e9)]))]
        ),
    ]
    said = [" ".join(one.answer(results)) for one in study.questions]
    assert (
        "gemm_strong, size=9: 50.0 ms with 1 rank, 30.0 ms with 2 (1.67 times the speed" in said[0]
    )
    assert "gemm_weak, size=9 with one rank: 50.0 ms" in said[0] and "efficiency 80%" in said[0]
    assert "compute 80%, communication 15%, waiting 5%; the longest compute is 10%" in said[1]


@needs_mpi
@pytest.mark.full
def test_the_study_measures_ranks(monkeypatch, tmp_path):
    small(monkeypatch, "scaling", {"n": 3000})
    study = STUDIES["scaling"]
    parts = [part for part in study.parts if part.operation == "sort"]
    monkeypatch.setitem(STUDIES, "scaling", replace(study, parts=parts))
    done = oclab("study", "scaling", "--out", tmp_path, "--repeats", 1)
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "scaling" / "results.json").read_text())
    assert content["complete"] and content["plots"] == [
        "sort_strong-ranks.png",
        "sort_weak-ranks.png",
    ]
    assert [(one["part"], one["workers"], one["status"]) for one in content["results"]] == [
        (name, ranks, "correct") for name in ("sort_strong", "sort_weak") for ranks in (1, 2)
    ]
    two = content["results"][3]["over_ranks"]
    assert 0 < two["compute"] < 1
    assert (tmp_path / "scaling" / "sort_weak-ranks.png").read_bytes().startswith(b"\x89PNG")


def alive(word):
    """Return the processes whose command has a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path.parent.name] * (word.encode() in path.read_bytes().split(b"\0"))
        except OSError:
            continue
    return found


@needs_mpi
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc")
def test_ctrl_c_ends_the_ranks():
    mark = f"seen{time.monotonic_ns()}"
    sleeping = [mpi.find_mpiexec(), "-n", "2", sys.executable, "-c", "import time; time.sleep(99)"]
    code = f"from opencl_lab.lab.engine.rank_jobs import _ended as e; e({[*sleeping, mark]}, None)"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) as process:
        until = time.monotonic() + 30
        while len(alive(mark)) < 3 and time.monotonic() < until:  # mpiexec and the ranks
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in process.communicate(timeout=30)[1]
    until = time.monotonic() + 10
    while alive(mark) and time.monotonic() < until:
        time.sleep(0.1)
    assert not alive(mark)


# -------------------------------------------------------------------------------------- files


def on_files(*arguments):
    done = on_ranks(2, "-m", "opencl_lab", *arguments, "--distributed", "--repeats", 1, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_mpi
@pytest.mark.full
@pytest.mark.parametrize(
    "asked", ["gemm a.npy b.npy", "conv2d a.npy --filter gaussian", "dft a.npy"]
)
def test_files_of_each_operation(asked, tmp_path):
    rng = np.random.default_rng(1)
    np.save(tmp_path / "a.npy", rng.random((40, 30), np.float32))
    np.save(tmp_path / "b.npy", np.asfortranarray(rng.random((30, 20), np.float32)))
    words = [str(tmp_path / word) if word.endswith("npy") else word for word in asked.split()]
    assert on_files(*words, "-o", tmp_path / "out.npy").count("mpi:opencl x2") == 1
    assert np.load(tmp_path / "out.npy").shape == ((40, 20) if asked[0] == "g" else (40, 30))


@needs_mpi
@pytest.mark.full
def test_a_file_that_is_missing_is_said_once(tmp_path):
    done = on_ranks(
        2, "-m", "opencl_lab", "sort", tmp_path / "none.npy", "--distributed", timeout=60
    )
    assert done.returncode == 2 and done.stderr.count("No such file") == 1, done.stderr


# ------------------------------------------------------------------------------------ examples


@pytest.mark.skipif(find_spec("dask") is None, reason="no Python package dask")
def test_dask_calls_us_on_blocks():
    done = subprocess.run(
        [sys.executable, EXAMPLES / "dask_blocks.py", "1024"],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 blocks of 512 x 4096: the same frequencies" in done.stdout


@needs_mpi
@pytest.mark.skipif(find_spec("mpi4py_fft") is None, reason="no Python package mpi4py_fft")
def test_mpi4py_fft_has_the_same_transform():
    done = on_ranks(2, EXAMPLES / "beside_mpi4py_fft.py", 120, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "120 x 120 on 2 ranks: the largest difference is" in done.stdout
    assert "mpi4py-fft" in done.stdout and "opencl_lab" in done.stdout
