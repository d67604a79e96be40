"""Comparing two runs: documents read back, verdicts by the recorded spread, exit status."""

import json
import math
import re

import pytest
from documents import DEVICE, OPTIONS, row, slower, sweep

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import Work
from opencl_lab.lab.cli import main
from opencl_lab.lab.engine.stored import read_results
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.presentation.changes import Change, compare_results

TIMES = '"total_ms": {"min": 1, "median": 2, "max": 4, "runs": 5'


def test_a_row_is_read_back_as_it_was(tmp_path):
    before = row(
        samples=range(1, 16), config={"WG_SIZE": 64}, transfer_ms=0.5, build_ms=3.0, speedup=2.0,
        work=Work(1e6, 2e6), difference=Difference(1e-3, 1e-2, error_over_bound=0.5),
        data="device", calls=3, peak=0.5, workers=2, note="warm",
        kernel_times=Times.of([0.9, 1.0, 1.2]),
    )  # fmt: skip
    assert before.total_ms.interval == (4, 12)  # not min to max: of 15 runs outliers do not count
    results = read_results(sweep(tmp_path / "a.json", before))
    assert results.size_name == "n" and results.operation == "sort"
    ((size, (after,)),) = results.series()
    assert size == 1000 and after.as_row() == before.as_row()
    assert after.total_ms.interval == before.total_ms.interval
    assert after.kernel_times == before.kernel_times


@pytest.mark.parametrize(
    ("difference", "status", "share"),
    [
        (Difference(1e-3, 1e-2, error_over_bound=0.5), "correct", None),
        (Difference(0.0, 0.0, error_over_bound=0.0), "correct", 0.0),  # whatever the bound was
        (Difference(1e-3, 1e-2, error_over_bound=7.0), "correctness", math.inf),
    ],
)
def test_documents_without_the_error_over_its_bound_are_read(difference, status, share, tmp_path):
    path = sweep(tmp_path / "a.json", row(difference=difference, status=status))
    content = json.loads(path.read_text())
    del content["results"][0]["error_over_bound"]
    path.write_text(json.dumps(content))
    (item,) = read_results(path).rows
    assert item.measurement.difference.error_over_bound == share
    assert item.measurement.difference.max_rel == difference.max_rel
    assert item.measurement.ok is (status == "correct")


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        (slower(1), slower(1.5), "slower"),
        (slower(1.5), slower(1), "faster"),
        (slower(1), slower(1.15), "within noise"),  # 2.3..2.76 after 2.0..2.4
        (row(samples=(2, 2.1, 2.2)), row(samples=(3, 3.1, 3.2)), "too few runs"),
        (row(samples=(2, 2.1, 2.2, 2.3)), row(samples=(3, 3.1, 3.2, 3.3)), "slower"),
        (row(samples=[2.0] * 14 + [50]), row(samples=[3.0] * 14 + [1]), "slower"),  # outliers
        (row(), row(status="correctness", reason="wrong"), "fails now"),
        (row(status="compile", samples=()), row(), "works now"),
        (row(), row(status="unavailable", samples=()), "not measured"),
        (row(status="runtime"), row(status="runtime"), "not measured"),
    ],
)
def test_verdicts(old, new, verdict):
    assert Change({}, old, new).verdict == verdict


def test_only_rows_of_ours_past_the_threshold_are_regressions():
    assert Change({}, slower(1), slower(1.5)).regressed(1.1)
    assert not Change({}, slower(1), slower(1.5)).regressed(1.6)
    assert not Change({}, slower(1, "c:seq"), slower(1.5, "c:seq")).regressed(1.1)
    assert Change({}, row(), row(status="runtime")).regressed(1.1)
    assert Change({}, row(), row(status="unavailable")).regressed(1.1)
    assert not Change({}, row(status="runtime"), row(status="runtime")).regressed(1.1)


def test_the_command_ends_with_1_at_a_regression_and_says_the_rest(tmp_path, capsys):
    old = sweep(tmp_path / "old.json", row(), slower(1, "c:seq"), row("mpi:gone"))
    (tmp_path / "new").mkdir()
    new = sweep(
        tmp_path / "new/results.json",
        slower(1.5, config={"WG_SIZE": 64}), slower(1.6, "c:seq"), row("opencl:added"),
        device={**DEVICE, "driver": "2.0"}, version="0.2.0", options={**OPTIONS, "seed": 1},
    )  # fmt: skip
    assert main(["bench", "--compare", str(old), str(old)]) == 0
    assert "3 within noise" in capsys.readouterr().out
    arguments = ["bench", "--compare", str(old), str(new.parent)]
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert "1.50x" in out and "1.60x" in out and "1 regression: OpenCL rows" in out
    assert f"only in {old}: mpi:gone" in out and f"only in {new}: opencl:added" in out
    assert "device driver 1.0, then 2.0" in err and "library version 0.1.0, then 0.2.0" in err
    assert "seed 0, then 1" in err
    assert main([*arguments, "--threshold", "1.6"]) == 0
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 1
    content = json.loads(capsys.readouterr().out)
    first, second = content["results"]
    assert content["regressions"] == 1 and content["threshold"] == 1.1
    assert first["verdict"] == second["verdict"] == "slower" and first["n"] == 1000
    assert first["regression"] and not second["regression"] and len(content["warnings"]) == 3
    assert first["remarks"] == ["WG_SIZE none, then 64"] and second["remarks"] == []
    assert first["ratio"] == pytest.approx(1.5) and first["kernel_ratio"] == 1
    assert [len(content[name]) for name in ("only_old", "only_new")] == [1, 1]


def test_a_slower_machine_is_told_by_the_references(tmp_path):
    names = ("opencl:radix", "c:seq", "numpy")
    old = read_results(sweep(tmp_path / "a.json", *(slower(1, name) for name in names)))
    new = read_results(sweep(tmp_path / "b.json", *(slower(1.5, name) for name in names)))
    (warning,) = compare_results(old, new).warnings
    assert "the references took 1.50 times as long, too" in warning
    assert "the machine was slower" in warning
    assert not compare_results(old, old).warnings


ENVIRONMENT = {
    "system": "Linux", "python": "3.12.1", "cpu": "Some CPU", "processors": 2, "busy": "",
    "packages": {"numpy": "2.0", "scipy": "1.1"}, "git": {"commit": "a", "changed": False},
    "compiler": {"path": "/usr/bin/cc", "version": "12", "flags": "-O3"}, "load": [0, 0, 0],
    "variables": {"OMP_NUM_THREADS": "2"},
    "gpu": {"clock_mhz": 1500, "max_clock_mhz": 1980, "performance_state": "P0"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, []),
        ({"load": [9, 9, 9], "git": None, "started": "later", "gpu": None}, []),
        (
            {"packages": {"numpy": "2.1", "torch": "2.9"}},
            ["packages differ: numpy 2.0, then 2.1; scipy 1.1, then none; torch none, then 2.9"],
        ),
        ({"compiler": None}, ["compiler flags -O3, then none", "compiler version 12"]),
        (
            {"gpu": {"clock_mhz": 700, "max_clock_mhz": 1200, "performance_state": "P0"}},
            ["gpu max clock mhz 1980, then 1200"],
        ),
        ({"busy": "other processes took 3.1 of 2 processors"}, ["warning: other processes"]),
        ({"packages": 3, "gpu": "x", "variables": []}, ["OMP_NUM_THREADS 2, then none"]),
    ],
)
def test_other_environments_are_named(tmp_path, change, said):
    old = read_results(sweep(tmp_path / "old.json", row(), environment=ENVIRONMENT))
    after = {**ENVIRONMENT, **change}
    new = read_results(sweep(tmp_path / "new.json", row(), environment=after))
    warnings = compare_results(old, new).warnings
    assert len(warnings) == len(said)
    assert all(words in warning for words, warning in zip(said, warnings, strict=True)), warnings
    none = read_results(sweep(tmp_path / "none.json", row()))
    assert not compare_results(none, old).warnings


def test_a_single_run_meets_that_size_of_a_sweep(tmp_path):
    single = sweep(
        tmp_path / "a.json", row(), command="sort", options={**OPTIONS, "n": 1000},
        problem={"n": 1000}, results=[row().as_row()],
    )  # fmt: skip
    both = sweep(
        tmp_path / "b.json", row(), problem={"operation": "sort", "sizes": [1000, 9]},
        results=[{"n": n, **row().as_row()} for n in (9, 1000)],
    )  # fmt: skip
    found = compare_results(read_results(single), read_results(both))
    assert [item.what["n"] for item in found.rows] == [1000]
    assert len(found.only_new) == 1 and not found.warnings


def test_rows_of_ours_that_are_missing_are_no_success(tmp_path, capsys):
    rows = [{"n": n, **item.as_row()} for n in (9, 90) for item in (row(), row("c:seq"))]

    def written(name, kept, **more):
        problem = {"operation": "sort", "sizes": sorted({item["n"] for item in kept})}
        return str(sweep(tmp_path / name, problem=problem, results=kept, **more))

    old = written("old.json", rows)
    # At a size that was measured: a row of ours counts, one of a reference does not.
    assert main(["bench", "--compare", old, written("a.json", rows[1:])]) == 1
    out = capsys.readouterr().out
    assert "1 row of OpenCL missing in the new run" in out and "0 regressions" in out
    assert main(["bench", "--compare", old, written("b.json", [rows[0], *rows[2:]])]) == 0
    assert f"only in {old}: c:seq (n=9)\n" in capsys.readouterr().out
    # Sizes that the new run does not have: another sweep, or one that was interrupted.
    assert main(["bench", "--compare", old, written("c.json", rows[2:])]) == 0
    assert f"only in {old}: opencl:radix, c:seq (n=9)\n" in capsys.readouterr().out
    part = written("d.json", rows[:2], complete=False)
    assert main(["bench", "--compare", old, part]) == 0
    assert "is incomplete: its sweep was interrupted" in capsys.readouterr().err
    assert main(["bench", "--compare", part, old]) == 0
    # Without any row at a size that it says to have.
    none = str(sweep(
        tmp_path / "e.json", problem={"operation": "sort", "sizes": [9, 90]}, results=rows[2:]
    ))  # fmt: skip
    capsys.readouterr()
    assert main(["bench", "--compare", old, none, "--json"]) == 1
    content = json.loads(capsys.readouterr().out)
    assert len(content["missing"]) == 1 and "n=9" in content["missing"][0]
    assert content["regressions"] == 0


@pytest.mark.parametrize("change", [{"dtype": "float32"}, {"order": "sorted"}])
def test_other_problems_are_not_compared(tmp_path, change):
    old = sweep(tmp_path / "a.json", row())
    new = sweep(tmp_path / "b.json", row(), options={**OPTIONS, **change})
    with pytest.raises(InvalidProblem, match="no row is in both"):
        compare_results(read_results(old), read_results(new))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is damaged: it is not JSON"),
        ("[]", "names no schema"),
        ('{"schema": "oclab/2"}', "take a newer one"),
        ('{"schema": "oclab/1", "results": []}', "no rows"),
        ('{"schema": "oclab/1", "results": [3]}', r"results\[0\]: expected `object`, got `int`"),
        *(
            (f'{{"schema": "oclab/1", "results": [{{"implementation": "x", {field}}}]}}', said)
            for field, said in (
                (
                    '"kernel_ms": "y"',
                    r"results\[0\]: kernel_ms: expected `float \| null`",
                ),
                ('"total_ms": {"min": 3}', "total_ms: object missing required field `median`"),
                (f'{TIMES}, "interval": [1, null]}}', r"interval\[1\]: expected `float`"),
                (f'{TIMES}, "interval": [3, 1]}}', "does not lie between min and max, around"),
            )
        ),
    ],
)
def test_what_is_no_document_is_one_sentence(tmp_path, capsys, content, said):
    path = tmp_path / "a.json"
    path.write_text(content, encoding="latin-1")
    good = sweep(tmp_path / "good.json", row())
    assert main(["bench", "--compare", str(path), str(good)]) == 2
    out, err = capsys.readouterr()
    assert re.search(said, err) and str(path) in err and err.count("\n") == 1 and not out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--threshold", "2", "sort"], "--threshold is for --compare"),
        (["--compare", "a", "b", "sort"], "no operation"),
        (["--compare", "a", "b"], "cannot read a"),
        (["--compare", "a", "b", "--threshold", "0.5"], "0.5"),
        (["--compare", "a", "b", "--threshold", "nan"], "nan is not a number"),
    ],
)
def test_bad_usage(tmp_path, capsys, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *arguments]) == 2
    assert said in capsys.readouterr().err
