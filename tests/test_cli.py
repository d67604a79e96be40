"""The command line through its real entry point, in processes of its own."""

import csv
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import pytest

from opencl_lab.cli import main
from opencl_lab.cli.common import Settings, settings
from opencl_lab.comparison.measure import COLUMNS
from opencl_lab.comparison.runner import run_comparison
from opencl_lab.device import select_device
from opencl_lab.operation import Difference
from opencl_lab.registry import operations

ROW_KEYS = {
    "implementation", "kind", "algorithm", "config", "threads", "workers", "status", "reason",
    "kernel_ms", "transfer_ms", "total_ms", "build_ms", "gflops", "gbps", "peak_fraction",
    "peak_note", "data", "calls", "note",
    "speedup", "efficiency", "max_abs_diff", "max_rel_diff", "rel_l2_diff", "ok",
}  # fmt: skip
QUICK = ("--repeats", "1", "--against", "none")


def command(*arguments):
    script = Path(sys.executable).with_name("oclab")
    start = [str(script)] if script.exists() else [sys.executable, "-m", "opencl_lab"]
    return [*start, *map(str, arguments)]


def oclab(*arguments, **environment):
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )


def one_sentence(result):
    """A failure prints one line for people and no traceback."""
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    return "Traceback" not in result.stderr and len(lines) == 1 and result.stdout == ""


def test_version_and_help():
    assert oclab("--version").stdout.startswith("oclab, version ")
    text = oclab("--help").stdout
    assert all(name in text for name in ("devices", "doctor", "sort", "bench", "cache"))
    assert "--order" in oclab("sort", "--help").stdout


def test_sort_prints_a_table_with_every_reference():
    result = oclab("sort", "--n", 5000, "--repeats", 2)
    assert result.returncode == 0, result.stderr
    for name in ("opencl:radix", "c:seq", "c:omp", "c:qsort", "numpy", "device:"):
        assert name in result.stdout
    assert "sort: 5,000 int32 keys" in result.stdout


@pytest.mark.parametrize("position", ["before", "after"])
def test_json_is_one_document_and_nothing_else(position):
    arguments = ["sort", "--n", 3000, "--dtype", "float32", "--descending", "--repeats", 2]
    arguments = ["--json", *arguments] if position == "before" else [*arguments, "--json"]
    result = oclab(*arguments)
    content = json.loads(result.stdout)
    assert content["schema"] == "oclab/1" and content["command"] == "sort"
    assert content["options"]["order"] == "random" and content["options"]["seed"] == 0
    assert content["problem"]["n"] == 3000 and content["problem"]["dtype"] == "float32"
    assert content["device"]["kind"] == "cpu" and content["device"]["reason"]
    rows = {row["implementation"]: row for row in content["results"]}
    assert all(set(row) == ROW_KEYS for row in rows.values())
    ours = rows["opencl:radix"]
    assert ours["ok"] and ours["status"] == "correct" and ours["max_abs_diff"] == 0, ours
    assert ours["total_ms"]["runs"] == 2 and ours["total_ms"]["min"] <= ours["total_ms"]["median"]
    assert ours["kernel_ms"] > 0 and ours["transfer_ms"] == 0 and ours["build_ms"] >= 0
    assert ours["speedup"] == pytest.approx(
        rows["c:seq"]["total_ms"]["median"] / ours["total_ms"]["median"]
    )
    assert ours["efficiency"] == pytest.approx(ours["speedup"] / ours["workers"])
    assert rows["c:omp"]["threads"] >= 1 and rows["c:seq"]["kernel_ms"] is None


def test_csv_and_plot(tmp_path):
    table, plot = tmp_path / "rows.csv", tmp_path / "rows.png"
    result = oclab("sort", "--n", 2000, "--repeats", 1, "--csv", table, "--plot", plot, "--quiet")
    assert result.returncode == 0 and result.stdout == ""
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS and rows[0]["implementation"] == "opencl:radix"
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("shapes", [((3, 5), (5, 4)), ((6, 6), (6, 6))])
def test_files_are_taken_in_the_order_of_the_operation(tmp_path, shapes):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape) for shape in shapes)
    for name, matrix in (("a", a), ("b", b)):
        np.save(tmp_path / f"{name}.npy", matrix)
    files = [tmp_path / f"{name}.npy" for name in "abc"]
    result = oclab("gemm", *files[:2], "-o", files[2], *QUICK)
    assert result.returncode == 0, result.stderr
    np.testing.assert_allclose(np.load(files[2]), a @ b, rtol=1e-12, atol=1e-12)
    assert oclab("gemm", "--help").stdout.splitlines()[0].endswith("[A] [B]")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".txt"])
def test_real_input_and_output(tmp_path, suffix):
    rng = np.random.default_rng(5)
    numbers = rng.integers(-1000, 1000, 777) if suffix != ".txt" else rng.standard_normal(777)
    source, target = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    if suffix == ".npy":
        np.save(source, numbers)
    elif suffix == ".npz":
        np.savez(source, numbers)
    else:
        np.savetxt(source, numbers, fmt="%d" if suffix == ".csv" else "%.17g")
    result = oclab("sort", source, "-o", target, *QUICK)
    assert result.returncode == 0, result.stderr
    if suffix in (".npy", ".npz"):
        sorted_numbers = np.load(target)
        if suffix == ".npz":
            sorted_numbers = sorted_numbers["arr_0"]
        assert sorted_numbers.dtype == numbers.dtype
    else:
        sorted_numbers = np.loadtxt(target)
    np.testing.assert_array_equal(sorted_numbers, np.sort(numbers))


@pytest.mark.parametrize("chosen", operations().values(), ids=lambda chosen: chosen.name)
def test_results_of_generated_data_are_written(tmp_path, chosen):
    target = tmp_path / "out.npy"
    flag = "--" + chosen.size_option
    result = oclab(chosen.name, flag, 8, "--seed", 3, "-o", target, *QUICK)
    assert result.returncode == 0, result.stderr
    options = chosen.with_defaults({chosen.size_option: 8})
    problem = chosen.problem(**options)
    inputs = chosen.generate(problem, 3, **options)
    right, given = chosen.expected(problem, inputs)[chosen.output], np.load(target)
    assert given.ndim == 1 or chosen.name != "sort"
    np.testing.assert_allclose(given.ravel(), right.ravel(), rtol=1e-5, atol=1e-5)


def test_a_two_dimensional_file_is_sorted_by_rows(tmp_path):
    numbers = np.asfortranarray(np.random.default_rng(6).random((7, 300)))
    np.save(tmp_path / "in.npy", numbers)
    result = oclab("sort", tmp_path / "in.npy", "-o", tmp_path / "out.npy", "--descending", *QUICK)
    assert result.returncode == 0, result.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), np.sort(numbers)[:, ::-1])


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--dtype", "float16x"], 2, "dtype"),
        (["--n", "-1"], 2, "negative"),
        (["--n", "1000000000000"], 2, "allocates at most"),
        (["--order", "upside-down"], 2, "order"),
        (["--repeats", "0"], 2, "repeats"),
        (["--threads", "0"], 2, "threads"),
        (["--algorithm", "bogo"], 2, "bogo"),
        (["--against", "c:bogo"], 2, "c:bogo"),
        (["--against", ""], 2, "no reference is named"),
        (["--device", "no-such-device"], 3, "no-such-device"),
        (["missing.npy"], 2, "missing.npy"),
        (["--csv", "no/such/folder/x.csv"], 2, "no/such/folder"),
        (["--plot", "no/such/folder/x.png"], 2, "no/such/folder"),
        (["--plot", "x.bogus"], 2, "x.bogus"),
        (["-o", "no/such/folder/x.npy"], 2, "no/such/folder"),
        (["-o", "x.bogus"], 2, "x.bogus"),
    ],
)
def test_bad_usage_is_one_sentence(arguments, status, words):
    result = oclab("sort", *arguments)
    assert result.returncode == status, result.stderr
    assert one_sentence(result) and words in result.stderr


def test_whole_numbers_may_be_written_short(tmp_path):
    target = tmp_path / "out.npy"
    assert main(["sort", "--n", "1e3", "-o", str(target), "--quiet", *QUICK]) == 0
    assert np.load(target).shape == (1000,)
    for number in ("1.5e0", "1e400", "e"):
        assert main(["sort", "--n", number]) == 2


def test_unknown_options_and_commands():
    for arguments in (["sort", "--bogus"], ["bogus"], ["sort", "--n", "many"]):
        result = oclab(*arguments)
        assert result.returncode == 2 and "Traceback" not in result.stderr
        assert "bogus" not in arguments or "there are: bench, cache" in result.stderr


def _write_bad(folder):
    (folder / "words.csv").write_text("1\n2\nthree\n")
    (folder / "short.npy").write_bytes(b"\x93NUMPY\x01\x00")
    (folder / "empty.npz").write_bytes(b"")
    np.save(folder / "objects.npy", np.array([1, "a", None], dtype=object), allow_pickle=True)
    np.save(folder / "complex.npy", np.ones(3, complex))
    np.save(folder / "text.npy", np.array(["a", "b"]))
    np.save(folder / "scalar.npy", np.float32(3))
    np.savez(folder / "two.npz", a=np.ones(3), b=np.ones(3))
    (folder / "folder.npy").mkdir()
    (folder / "numbers.bin").write_bytes(b"1234")


@pytest.mark.parametrize(
    "name",
    [
        "words.csv", "short.npy", "empty.npz", "objects.npy", "complex.npy", "text.npy",
        "scalar.npy", "two.npz", "folder.npy", "numbers.bin",
    ],
)  # fmt: skip
def test_bad_files_are_one_sentence_and_leave_nothing(tmp_path, name):
    _write_bad(tmp_path)
    result = oclab("sort", tmp_path / name, "-o", tmp_path / "out.npy", *QUICK)
    assert result.returncode == 2 and one_sentence(result), result.stderr
    assert not list(tmp_path.glob("*out*"))


@pytest.mark.parametrize(
    ("arguments", "shape", "name", "words"),
    [
        (["sort"], (2, 3, 5), "out.csv", "two dimensions, not 3"),
        (["dft"], (2, 3, 5), "out.txt", "two dimensions, not 3"),
        (["conv2d", "--filter", "box"], (2, 9, 9), "out.png", "shape (2, 9, 9)"),
    ],
)
def test_what_a_file_cannot_hold_is_refused_before_the_run(
    tmp_path, monkeypatch, capsys, arguments, shape, name, words
):
    monkeypatch.setattr("opencl_lab.cli.operation.run_comparison", pytest.fail)
    np.save(tmp_path / "in.npy", np.ones(shape, np.float32))
    files = [str(tmp_path / "in.npy"), "-o", str(tmp_path / name)]
    assert main([*arguments, *files]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sort", "-o", "folder.npy"], "folder.npy: it is a folder"),
        (["sort", "--csv", "folder.npy"], "folder.npy: it is a folder"),
        (["sort", "--plot", "folder.png"], "folder.png: it is a folder"),
        (["tune", "sort", "--plot", "folder.png"], "folder.png: it is a folder"),
        (["bench", "sort", "--sizes", "9", "--out", "out"], "results.csv: it is a folder"),
        (["bench", "sort", "--sizes", "9", "--out", "new"], "/time.png: it needs"),
        (["sort", "-o", "x.npy", "--n", "1e6"], "it needs 3.815 MiB, and the disk has 1 MiB left"),
        (["sort", "-o", "x.csv", "--n", "1e6"], "it needs 1.907 MiB, and the disk has 1 MiB left"),
    ],
)
def test_targets_that_cannot_be_are_refused_before_the_run(
    tmp_path, monkeypatch, capsys, arguments, words
):
    for module in ("operation.run_comparison", "bench.run_comparison", "tune.run_tuning"):
        monkeypatch.setattr(f"opencl_lab.cli.{module}", pytest.fail)
    left = 1 << 16 if "new" in arguments else 1 << 20
    monkeypatch.setattr("opencl_lab.paths.free_bytes", lambda folder: left)
    for name in ("folder.npy", "folder.png", "out/results.csv"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert words in captured.err and len(captured.err.splitlines()) == 1 and captured.out == ""
    assert not (tmp_path / "new").exists()


def test_a_file_that_cannot_be_written_costs_nothing_else(
    tmp_path, monkeypatch, capsys, character_device
):
    """The rows are printed first, and the other files are written."""
    monkeypatch.chdir(tmp_path)
    character_device(tmp_path / "full", "full")
    arguments = ["sort", "--n", "1000", "--csv", "full", "--plot", "x.png", "-o", "x.npy", *QUICK]
    for extra in ([], ["--json"]):
        assert main([*arguments, *extra]) == 2
        captured = capsys.readouterr()
        assert captured.err == "oclab: cannot write full: No space left on device\n"
        assert "opencl:radix" in captured.out
        for name in ("x.npy", "x.png"):
            (tmp_path / name).unlink()
    out = tmp_path / "out"
    out.mkdir()
    (out / "results.json").symlink_to(tmp_path / "full")
    assert main(["bench", "sort", "--sizes", "9", "--out", "out", *QUICK]) == 2
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 1 and "results.json" in captured.err
    assert "n=9" in captured.out and "written to" not in captured.out
    assert {path.name for path in out.iterdir()} == {
        "results.csv", "results.json", "table.txt", "time.png", "speedup.png", "throughput.png",
    }  # fmt: skip


def test_rows_on_standard_output_follow_the_table(tmp_path):
    stdout = tmp_path / "stdout"
    stdout.symlink_to("/proc/self/fd/1")  # as /dev/stdout, which root could replace
    with (tmp_path / "out").open("w") as file:
        process = subprocess.run(
            command("sort", "--n", 9, "--csv", stdout, *QUICK), stdout=file, check=True
        )
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines[0].startswith("device: ") and lines[-2] == ",".join(COLUMNS)
    reading, writing = os.pipe()
    os.close(reading)  # nobody reads what is printed, but the file is wanted
    process = subprocess.run(
        command("sort", "--n", 9, "-o", tmp_path / "x.npy", *QUICK), stdout=writing, check=False
    )
    os.close(writing)
    assert process.returncode == 0 and np.load(tmp_path / "x.npy").shape == (9,)


def test_tables_are_sorted_along_an_axis_and_keep_their_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table, out = tmp_path / "table.csv", tmp_path / "out.csv"
    table.write_text('"a, b",c,d\n3,0.914,7\n1,12,5\n')
    read = "table.csv: 2 rows x 3 columns below a line of names; sorting each "
    lost = "oclab: the names above the columns (a, b, c, d) are not written to out.csv"
    files = ["sort", "table.csv", "-o", "out.csv"]
    assert main([*files, "--axis", "0", *QUICK]) == 0
    captured = capsys.readouterr()
    assert f"{read}column\n" in captured.out and captured.err == ""
    assert out.read_text() == '"a, b",c,d\n1,0.914,5\n3,12,7\n'
    for axis in ([], ["--axis", "-1"], ["--axis", "1", "--quiet"], ["--json"]):
        assert main([*files, *axis, *QUICK]) == 0
        captured = capsys.readouterr()
        assert f"{read}row (--axis 0 sorts the columns)\n" in captured.out or axis[-1][:2] == "--"
        assert captured.err.startswith(lost) and len(captured.err.splitlines()) == 1
        assert out.read_text() == "0.914,3,7\n1,5,12\n"
    table.write_text("a\n3\n1\n")
    assert main([*files, *QUICK]) == 0
    captured = capsys.readouterr()
    assert "table.csv: 2 numbers below a name\n" in captured.out and captured.err == ""
    assert out.read_text() == "a\n1\n3\n"
    assert main([*files, "--axis", "1", *QUICK]) == 2
    assert main(["sort", "--n", "9", "--axis", "1"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
    np.save("cube.npy", np.random.default_rng(0).random((3, 4, 5)))
    assert main(["sort", "cube.npy", "--axis", "1", "--quiet", "-o", "out.npy", *QUICK]) == 0
    np.testing.assert_array_equal(np.load("out.npy"), np.sort(np.load("cube.npy"), axis=1))


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["dft", "a.csv"], "x, y"),
        (["conv2d", "a.csv", "--filter", "box"], "x, y"),
        (["gemm", "b.csv", "a.csv", "--dtype", "float32"], "x, y"),
    ],
)
def test_other_operations_say_what_they_read(tmp_path, monkeypatch, capsys, arguments, names):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("x,y\n1,2\n3,4\n")
    Path("b.csv").write_text("1;2\n3;4\n")
    assert main([*arguments, "-o", "out.csv", *QUICK]) == 0
    captured = capsys.readouterr()
    assert "a.csv: 2 rows x 2 columns below a line of names" in captured.out
    assert ("b.csv: 2 rows x 2 columns\n" in captured.out) == ("b.csv" in arguments)
    assert f"({names}) are not written to out.csv" in captured.err


def test_columns_of_a_text_file_hold_the_rows_of_any_shape(tmp_path):
    np.save(tmp_path / "in.npy", np.ones((2, 3, 5), np.float32))
    files = [str(tmp_path / "in.npy"), "-o", str(tmp_path / "out.csv")]
    assert main(["dft", "--rate", "10", "--quiet", *files, *QUICK]) == 0
    assert np.loadtxt(tmp_path / "out.csv", delimiter=",", skiprows=1).shape == (3, 1 + 6 * 3)


def test_options_that_a_file_already_answers(tmp_path):
    np.save(tmp_path / "in.npy", np.arange(5))
    for option in (["--n", "7"], ["--order", "equal"]):
        result = oclab("sort", tmp_path / "in.npy", *option, *QUICK)
        assert result.returncode == 2 and option[0].strip("-") in result.stderr


def test_empty_input(tmp_path):
    (tmp_path / "in.csv").write_text("")
    result = oclab("sort", tmp_path / "in.csv", "-o", tmp_path / "out.csv", *QUICK)
    assert result.returncode == 0 and (tmp_path / "out.csv").read_text() == ""
    assert oclab("sort", "--n", 0, "--repeats", 1).returncode == 0


def test_without_a_compiler_the_c_rows_say_why(tmp_path):
    (tmp_path / "ld").symlink_to(shutil.which("ld"))  # PoCL needs it
    nowhere = {"CC": "/nonexistent/cc", "PATH": str(tmp_path), "OCLAB_CACHE_DIR": str(tmp_path)}
    result = oclab("sort", "--n", 1000, "--repeats", 1, "--json", **nowhere)
    assert result.returncode == 0, result.stderr
    rows = {row["implementation"]: row for row in json.loads(result.stdout)["results"]}
    assert rows["c:seq"]["status"] == "unavailable" and "compiler" in rows["c:seq"]["reason"]
    assert rows["opencl:radix"]["ok"] and rows["numpy"]["ok"]
    assert rows["numpy"]["speedup"] is None
    result = oclab("sort", "--n", 1000, "--against", "c:seq", **nowhere)
    assert result.returncode == 3 and one_sentence(result)


def test_pocl_without_a_linker_is_one_sentence(tmp_path):
    if "PoCL" not in select_device().platform_version:
        pytest.skip("only PoCL needs one")
    result = oclab("sort", "--n", 1000, *QUICK, PATH=str(tmp_path), OCLAB_CACHE_DIR=str(tmp_path))
    assert result.returncode == 4 and "binutils" in result.stdout


def test_ctrl_c_is_one_line_and_130(tmp_path):
    target = tmp_path / "out.npy"
    process = subprocess.Popen(
        command("sort", "--n", 5_000_000, "--repeats", 100, "--against", "none", "-o", target),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(3)  # well inside the run, which takes minutes
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr == "oclab: interrupted\n" and stdout == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", ["click", "pyopencl", "rich"])
def test_ctrl_c_during_an_import_that_swallows_it(tmp_path, module):
    (tmp_path / f"{module}.py").write_text(
        "import os, signal\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\nexcept BaseException:\n    pass\n"
        "raise ImportError('the interrupt was lost')\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    result = subprocess.run(
        [sys.executable, "-m", "opencl_lab", "devices"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert (result.returncode, result.stderr) == (130, "oclab: interrupted\n")


def test_an_interrupted_sweep_keeps_what_was_measured(tmp_path, monkeypatch, capsys):
    measured = []

    def run_once(*args, **options):
        if measured:
            raise KeyboardInterrupt
        measured.append(run_comparison(*args, **options))
        return measured[0]

    monkeypatch.setattr("opencl_lab.cli.bench.run_comparison", run_once)
    arguments = ["bench", "sort", "--sizes", "100,200", "--out", str(tmp_path), *QUICK]
    assert main(arguments) == 130
    assert capsys.readouterr().err == "oclab: interrupted\n"
    content = json.loads((tmp_path / "results.json").read_text())
    assert [row["n"] for row in content["results"]] == [100]
    assert "n=100" in (tmp_path / "table.txt").read_text() and (tmp_path / "results.csv").exists()


def test_devices():
    result = oclab("devices")
    assert result.returncode == 0 and "chosen:" in result.stdout
    content = json.loads(oclab("devices", "--json").stdout)
    assert content["devices"] and content["device"]["key"] in {d["key"] for d in content["devices"]}
    assert content["reason"]


def test_signals_in_a_table_are_transformed_along_an_axis(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = np.random.default_rng(1).standard_normal((8, 2))
    np.savetxt("a.csv", table, delimiter=",", header="time,v", comments="")
    for options, read, axis in (
        ([], "transforming each row (--axis 0 transforms the columns)", 1),
        (["--axis", "0"], "transforming each column", 0),
    ):
        assert main(["dft", "a.csv", "-o", "out.npy", *options, *QUICK]) == 0
        assert f"8 rows x 2 columns below a line of names; {read}\n" in capsys.readouterr().out
        np.testing.assert_allclose(np.load("out.npy"), np.fft.fft(table, axis=axis), atol=1e-12)
    files = ["--rate", "8", "--axis", "0", "-o", "spectrum.csv", "--plot", "p.png", "--quiet"]
    assert main(["dft", "a.csv", *files, *QUICK]) == 0
    assert np.loadtxt("spectrum.csv", delimiter=",", skiprows=1).shape == (5, 7)
    assert main(["dft", "--n", "9", "--axis", "1", *QUICK]) == 2
    capsys.readouterr()
    Path("signal.csv").write_text("time_s,real\n0,1\n1,2\n")
    for name in ("spectrum.csv", "signal.csv"):  # what it wrote itself
        assert main(["dft", name, *QUICK]) == 2
        said = capsys.readouterr().err
        assert "a result of dft in a table, not signals" in said and said.count("\n") == 1


def test_whole_numbers_for_a_product_are_refused_with_the_option(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("i.csv").write_text("1,2\n3,4\n")
    assert main(["gemm", "i.csv", "i.csv", *QUICK]) == 2
    assert "--dtype float64" in capsys.readouterr().err
    assert main(["gemm", "i.csv", "i.csv", "--dtype", "float64", "-o", "out.csv", *QUICK]) == 0
    assert Path("out.csv").read_text() == "7,10\n15,22\n"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_narrow_terminals_cut_no_word(width, monkeypatch, capsys):
    monkeypatch.setattr("opencl_lab.cli.common.FALLBACK_WIDTH", width)

    def printed(*arguments):
        assert main([*arguments]) == 0
        lines = capsys.readouterr().out.splitlines()
        table = [line for line in lines if line.startswith(tuple("│┃┏┡└"))]
        assert table and all(line.endswith(tuple("│┃┓┩┘")) for line in table)  # none is cropped
        assert {len(line) for line in table} <= {len(table[0])} and len(table[0]) <= width
        return {word.rstrip(",") for line in table for word in re.split(r"[\s│┃]+", line)}

    chosen = select_device()
    words = printed("devices")
    assert {"spec", "kind", "device", "memory"} <= words
    if width != 80:  # where it depends on the names of the devices
        assert ("group" in words) == (width > 80)
    names = {*chosen.name.split(), *chosen.platform.replace(",", "").split()[:2]}
    assert {name for name in names if len(name) <= 12} <= words  # longer ones may be folded
    words = printed("tuning", "list", "--operation", "sort")
    assert {"operation", "sort", "odd-even-merge", "1,000,000", "keys", "device"} <= words
    words = printed("sort", "--n", "300", *QUICK)
    assert {"implementation", "opencl:radix", "speed-up", "result", "ok"} <= words


def test_sentences_are_broken_between_words_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("opencl_lab.cli.common.FALLBACK_WIDTH", 40)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    path = "/a/path/that/is/longer-than-the/terminal/is-wide.json"
    with click.Context(click.Command("x"), obj=Settings()):
        settings().say(f"  two spaces before this sentence, and it goes on\nto {path}: all")
    assert capsys.readouterr().out.splitlines() == [
        "  two spaces before this sentence, and",
        "  it goes on",
        "to",
        path + ":",
        "all",
    ]


@pytest.mark.parametrize("arguments", [["devices"], ["cache", "info", "--json"], ["--help"]])
def test_output_that_nobody_takes(arguments):
    full = 'exec "$@" > /dev/full'
    closed = 'exec "$@" >&-'
    for script, words in ((full, "No space left"), (closed, "standard output is closed")):
        result = subprocess.run(
            ["sh", "-c", script, "sh", *command(*arguments)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 2 and one_sentence(result) and words in result.stderr
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        command(*arguments), stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, "")


def test_bench_writes_everything(tmp_path):
    out = tmp_path / "new" / "folder"
    result = oclab(
        "bench", "sort", "--sizes", "2000,200,1000,200", "--out", out, "--repeats", 1,
        "--against", "c:seq,numpy", "--seed", 7, "--order", "equal",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    with (out / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == ("n", "dtype", "order", "descending", "seed", *COLUMNS)
    assert len(rows) == 9 and rows[0]["order"] == "equal" and rows[0]["seed"] == "7"
    assert [row["n"] for row in rows[::3]] == ["200", "1000", "2000"]
    content = json.loads((out / "results.json").read_text())
    assert len(content["results"]) == 9 and len(content["crossovers"]) == 2
    assert content["options"] == {
        "dtype": "int32", "order": "equal", "descending": False, "seed": 7,
    }  # fmt: skip
    assert "n=2000" in (out / "table.txt").read_text()
    for name in ("time.png", "speedup.png", "throughput.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--sizes", ""],
        ["--sizes", "ten"],
        ["--sizes", "10,-5"],
        ["--sizes", "10;20"],
        ["--sizes", "10,1e13"],  # more than the device has
        ["--sizes", "10", "--against", "bogus"],
        ["--sizes", "10", "--repeats", "0"],
        ["--sizes", "10", "--algorithm", ","],
    ],
)
def test_bench_that_cannot_be_leaves_nothing(tmp_path, capsys, arguments):
    assert main(["bench", "sort", "--out", str(tmp_path / "new"), *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_sweep_may_begin_with_nothing(tmp_path):
    """0 has no place on a logarithmic axis."""
    arguments = ["bench", "sort", "--sizes", "0,100", "--out", str(tmp_path), "--quiet", *QUICK]
    assert main(arguments) == 0
    assert (tmp_path / "time.png").exists()


def test_no_right_result_is_nothing_to_write(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "opencl_lab.operations.sort.operation.Sort.compare",
        lambda *args: Difference(1.0, 1.0, False),
    )
    target = tmp_path / "out.npy"
    assert main(["sort", "--n", "9", "-o", str(target), *QUICK]) == 1
    assert "out.npy is not written" in capsys.readouterr().err and not target.exists()


def test_cache_info_and_clear(tmp_path):
    cache, environment = tmp_path / "cache", {"OCLAB_CACHE_DIR": str(tmp_path / "cache")}
    assert "empty" in oclab("cache", "info", **environment).stdout
    (cache / "c").mkdir(parents=True)
    (cache / "c" / f"x-{20 * '0'}-{20 * '1'}.so").write_bytes(b"12345")
    (cache / "c" / "mine.so").write_bytes(b"a user's own")
    (cache / "notes").mkdir()
    assert "c: 1 file, 5 bytes" in oclab("cache", "info", **environment).stdout
    content = json.loads(oclab("cache", "info", "--json", **environment).stdout)
    assert content["sections"] == [{"name": "c", "files": 1, "bytes": 5}]
    assert oclab("cache", "clear", **environment).returncode == 0
    assert [path.name for path in (cache / "c").iterdir()] == ["mine.so"]
    assert (cache / "notes").is_dir()


def test_warnings_of_the_library_are_lines_of_the_command(monkeypatch, capsys):
    def warn():
        logging.getLogger("opencl_lab.caches").warning("not kept in %s", "here")
        return []

    monkeypatch.setattr("opencl_lab.cli.cache.sections", warn)
    for _ in range(2):
        assert main(["cache", "info"]) == 0
        assert capsys.readouterr().err == "oclab: not kept in here\n"
    assert not logging.getLogger("opencl_lab").handlers
