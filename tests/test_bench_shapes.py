"""`oclab bench gemm --shapes`: rows, summary, files, and what is refused."""

import csv
import json

import pytest
from command_line import oclab
from comparison_rows import row

from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.lab.presentation.shapes import judged, summary, summary_lines, table
from opencl_lab.ops.gemm.host import dispatch


@pytest.fixture
def shapes(tmp_path):
    path = tmp_path / "shapes.txt"
    path.write_text("# m,n,k\n4,40,30\n\n40,1,30\n4,40,30\n40,50,3\n")
    return path


def bench(shapes, out, *more):
    return oclab("bench", "gemm", "--shapes", shapes, "--out", out, "--repeats", "1", *more)


@pytest.mark.full
def test_what_auto_takes_is_that_of_the_side_of_the_call(tmp_path):
    path, out = tmp_path / "small.txt", tmp_path / "out"
    path.write_text("2,3,4\n3,5,8192\n")
    assert bench(path, out, "--against", "blas").returncode == 0
    assert json.loads((out / "shapes.json").read_text())["summary"]["wrong"] == []


@pytest.mark.full
def test_every_shape_has_a_row_and_a_place_in_the_summary(shapes, tmp_path):
    out = tmp_path / "out"
    chosen = "--algorithm", "gemv,blocked", "--against", "blas,c:omp", "--baseline", "blas"
    ended = bench(shapes, out, *chosen)
    assert ended.returncode == 0, ended.stderr
    assert "gemm of float32: shapes, the worst last" in ended.stdout
    assert "of 3 shapes at 0.8x the speed of blas or more" in ended.stdout
    document = json.loads((out / "shapes.json").read_text())
    assert document["problem"]["sizes"] == [[4, 40, 30], [40, 1, 30], [40, 50, 3]]
    assert document["summary"]["compared"] == document["summary"]["shapes"] == 3
    assert document["summary"]["wrong"] == []
    assert all(item["status"] == "correct" for item in document["results"])
    named = {(item["m"], item["n"], item["k"], item["algorithm"]) for item in document["results"]}
    assert (40, 1, 30, "gemv") in named and (40, 1, 30, "blocked") in named
    assert (40, 50, 3, "gemv") not in named  # it does not take the shape
    assert document["shapes"][1]["auto"] == "gemv"
    for item in document["shapes"]:
        assert item["peer"] == "blas"
        assert item["ratio"] == pytest.approx(item["peer_ms"] / item["auto_ms"])
        assert item["over_best"] >= 1
    with (out / "shapes.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(document["results"])
    assert (rows[0]["m"], rows[0]["n"], rows[0]["k"]) == ("4", "40", "30")
    assert "0.8x the speed" in (out / "shapes.txt").read_text()


def test_it_goes_on_where_it_was_stopped(shapes, tmp_path, measured):
    measured.stop.add(50)
    out = tmp_path / "out"
    stopped = bench(shapes, out, "--against", "none")
    assert stopped.returncode == 130
    assert "resumes with 40 x 50 x 3" in stopped.stderr
    measured.stop.clear()
    assert bench(shapes, out, "--against", "none").returncode == 0
    assert measured.sizes == [40, 1, 50]


@pytest.mark.full
def test_all_means_those_that_may_be_the_fastest(shapes, tmp_path):
    ended = bench(shapes, tmp_path / "out", "--algorithm", "all", "--against", "none", "--json")
    document = json.loads(ended.stdout)
    taken = {item["algorithm"] for item in document["results"]}
    assert {"gemv", "blocked", "naive"} <= taken
    assert document["summary"]["geometric_mean"] is None
    assert document["summary"]["over_best"] >= 1


def test_an_algorithm_that_chooses_the_side_takes_part(shapes, tmp_path, monkeypatch):
    side = dispatch.Side(True, "of a test")
    monkeypatch.setattr(dispatch, "faster_side", lambda *given: side)
    asked = ("--algorithm", "hybrid", "--against", "none", "--json")
    document = json.loads(bench(shapes, tmp_path / "out", *asked).stdout)
    hybrids = [item for item in document["results"] if item["algorithm"] == "hybrid"]
    assert len(hybrids) == len(document["shapes"]) and all(item["ok"] for item in hybrids)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--sizes", "3"), "take --shapes or --sizes, not both"),
        (("--m", "3"), "take --shapes or --m, not both"),
        (("--calls",), "take --shapes or --calls, not both"),
    ],
)
def test_options_that_do_not_go_together(shapes, tmp_path, more, said):
    ended = bench(shapes, tmp_path / "out", *more)
    assert ended.returncode == 2 and said in ended.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,2\n", "a line of a file of shapes is m,n,k, not '1,2'"),
        ("m,n,k\n", "a line of a file of shapes is m,n,k, not 'm,n,k'"),
        ("# none\n", "no shapes in"),
    ],
)
def test_files_that_hold_no_shapes(tmp_path, text, said):
    path = tmp_path / "shapes.txt"
    path.write_text(text)
    ended = bench(path, tmp_path / "out")
    assert ended.returncode == 2 and said in ended.stderr
    missing = bench(tmp_path / "missing.txt", tmp_path / "out")
    assert missing.returncode == 2 and "cannot read shapes from" in missing.stderr


def test_other_operations_have_no_shapes(tmp_path):
    assert "No such option" in oclab("bench", "sort", "--shapes", "x", "--out", tmp_path).stderr
    assert len(set(GEMM.shapes)) == 80
    assert all(1 <= size <= 8192 for shape in GEMM.shapes for size in shape)


def test_the_summary_names_what_is_slow():
    def rows(ours, theirs, better):
        return [
            row("opencl:auto", ours),
            row("opencl:other", better),
            row("blas", theirs),
        ]

    results = [
        judged((1, 2, 3), rows(2.0, 1.0, 1.0), "auto", "host"),
        judged((4, 5, 6), rows(1.0, 2.0, 3.0), "auto", "host"),
        judged((7, 8, 9), rows(1.0, 0.5, 1.0), "missing", "host"),
    ]
    figures = summary(results)
    assert figures["good"] == 1 and figures["compared"] == 2
    assert figures["geometric_mean"] == pytest.approx(1.0)
    assert figures["over_best"] == 2.0 and figures["wrong"] == [[7, 8, 9]]
    text = "\n".join(summary_lines(results))
    assert "the worst: 1 x 2 x 3 (0.50x), 4 x 5 x 6 (2.00x)" in text
    assert "more than 1.1x for 1: 1 x 2 x 3 (2.00x of other)" in text
    assert "no correct result of auto: 7 x 8 x 9" in text
    assert table(results, ("m", "n", "k"), "t").row_count == 3
