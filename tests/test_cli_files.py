"""Files on the command line: what is read, written and refused."""

import io
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command_line import QUICK, command, oclab, one_sentence
from sort_checks import taken

from opencl_lab.lab.cli import main
from opencl_lab.lab.registry import operations


@pytest.mark.parametrize("chosen", operations().values(), ids=lambda chosen: chosen.name)
def test_results_of_generated_data_are_written(tmp_path, chosen):
    target = tmp_path / ("out.npz" if chosen.name == "topk" else "out.npy")
    flag = "--" + chosen.size_option
    result = oclab(chosen.name, flag, 8, "--seed", 3, "-o", target, *QUICK)
    assert result.returncode == 0, result.stderr
    options = chosen.with_defaults({chosen.size_option: 8})
    problem = chosen.problem(**options)
    inputs = chosen.generate(problem, 3, **options)
    right, given = chosen.expected(problem, inputs)[chosen.output], np.load(target)
    given = given[chosen.output] if chosen.name == "topk" else given
    assert given.ndim == 1 or chosen.name != "sort"
    np.testing.assert_allclose(given.ravel(), right.ravel(), rtol=1e-5, atol=1e-5)


@pytest.mark.few(2)
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


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        (["topk", "--k", "2"], {"values": [7, 5], "places": [2, 0]}),
        (["topk", "--k", "1", "--axis", "0"], {"values": [7], "places": [2]}),
        (["unique", "--counts"], {"values": [1, 5, 7], "counts": [1, 2, 1]}),
    ],
)
def test_files_hold_all_parts_of_a_result_or_are_refused(tmp_path, monkeypatch, command, parts):
    monkeypatch.chdir(tmp_path)
    np.save("in.npy", [5, 1, 7, 5])
    assert oclab(*command, "in.npy", "-o", "out.npz", *QUICK).returncode == 0
    found = np.load("out.npz")
    assert {name: found[name].tolist() for name in found.files} == parts
    assert oclab(*command, "in.npy", "-o", "out.csv", *QUICK).returncode == 0
    names = [name[:-1] for name in parts]
    lines = [",".join(map(str, line)) for line in zip(*parts.values(), strict=True)]
    assert Path("out.csv").read_text().splitlines() == [",".join(names), *lines]
    monkeypatch.setattr("opencl_lab.lab.cli.operation.run_point", pytest.fail)
    np.save("cube.npy", np.ones((2, 3, 4)))
    refused = [["in.npy", "-o", "no.npy"]] + [["cube.npy", "-o", "no.csv"]] * ("topk" in command)
    for files in refused:
        result = oclab(*command, *files)
        assert result.returncode == 2 and one_sentence(result)
        assert f"the result is {' and '.join(parts)}; take .npz" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--dtype", "float16x"], 2, "dtype"),
        (["--n", "-1"], 2, "negative"),
        (["--n", "1000000000000"], 2, "too few to sort"),
        (["--order", "upside-down"], 2, "order"),
        (["--threads", "0"], 2, "threads"),
        (["--algorithm", "bogo"], 2, "bogo"),
        (["--against", "c:bogo"], 2, "c:bogo"),
        (["--device", "no-such-device"], 3, "no-such-device"),
        (["missing.npy"], 2, "missing.npy"),
        (["--csv", "no/such/folder/x.csv"], 2, "no/such/folder"),
        (["--plot", "x.bogus"], 2, "x.bogus"),
    ],
)
def test_bad_usage_is_one_sentence(arguments, status, words):
    result = oclab("sort", *arguments, OCLAB_DEVICE_BYTES="256M")
    assert result.returncode == status, result.stderr
    assert one_sentence(result) and words in result.stderr


def test_unknown_options_commands_and_numbers(tmp_path):
    for arguments in (["sort", "--bogus"], ["bogus"], ["sort", "--n", "1.5e0"]):
        result = oclab(*arguments)
        assert result.returncode == 2 and "Traceback" not in result.stderr
        assert arguments[0] != "bogus" or "there are: bench, cache" in result.stderr
    assert main(["sort", "--n", "1e3", "-o", str(tmp_path / "x.npy"), "--quiet", *QUICK]) == 0
    assert np.load(tmp_path / "x.npy").shape == (1000,)


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
    monkeypatch.setattr("opencl_lab.lab.cli.operation.run_point", pytest.fail)
    np.save(tmp_path / "in.npy", np.ones(shape, np.float32))
    files = [str(tmp_path / "in.npy"), "-o", str(tmp_path / name)]
    assert main([*arguments, *files]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("chosen", operations().values(), ids=lambda chosen: chosen.name)
def test_data_beyond_the_hosts_memory_are_not_made(tmp_path, monkeypatch, chosen):
    monkeypatch.setattr("opencl_lab.lab.engine.request.host_memory", lambda: 20_000)
    monkeypatch.setattr(type(chosen), "generate", pytest.fail)
    size = 60 if chosen.size_option == "size" else 5000
    sweep = ["bench", chosen.name, "--sizes", f"16,{size}"]
    for arguments in (
        [chosen.name, f"--{chosen.size_option}", size],
        [*sweep, "--out", tmp_path / "new"],
        ["bench", chosen.name, "--sizes", size, "--calls"],
    ):
        result = oclab(*arguments)
        assert result.returncode == 2 and one_sentence(result)
        assert "the result and the right result take" in result.stderr


@pytest.mark.full
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
        assert taken(1000) in captured.out
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
        "results.csv", "results.json", "table.txt", "time.png", "throughput.png",
        "unfinished.jsonl",  # the same command again has only the files to write
    }  # fmt: skip


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
    assert len(capsys.readouterr().err.splitlines()) == 1
    for operation in ("sort", "topk", "dft"):
        assert main([operation, "--n", "20", "--axis", "0"]) == 2
        assert "axis is for input files" in capsys.readouterr().err
    np.save("cube.npy", np.random.default_rng(0).random((3, 4, 5)))
    assert main(["sort", "cube.npy", "--axis", "1", "--quiet", "-o", "out.npy", *QUICK]) == 0
    np.testing.assert_array_equal(np.load("out.npy"), np.sort(np.load("cube.npy"), axis=1))


def test_parts_of_files_and_standard_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", keys=[3, 1, 2], values=[2])
    files = ["data.npz:keys", "data.npz:values"]
    assert oclab("sort", files[0], "-o", "out.csv", *QUICK).returncode == 0
    assert Path("out.csv").read_text() == "1\n2\n3\n"
    keys = np.arange(2**62, 2**62 + 3, dtype=np.uint64)
    np.savez("data.npz", keys=keys, values=[2**62 + 1, -1])  # NumPy compares them as float64
    assert oclab("searchsorted", *files, "-o", "out.csv", *QUICK).returncode == 0
    assert Path("out.csv").read_text() == "1\n0\n"
    for name, head in (("-", "b"), ("/dev/stdin:b", "b"), ("-", "PK")):  # archives begin with PK
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{head}\n8\n7\n".encode())))
        result = oclab("sort", name, "-o", "out.csv", *QUICK)
        assert f"{name}: 2 numbers below a name" in result.stdout
        assert Path("out.csv").read_text() == f"{head}\n7\n8\n"
    np.savez("empty.npz")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path("empty.npz").read_bytes())))
    assert "it holds no array" in oclab("sort", "-").stderr


def test_whole_numbers_are_rounded_if_the_user_says_so(tmp_path):
    (tmp_path / "x.csv").write_text("9007199254740993\n0.5\n")
    for dtype, status in (("float64", 0), ("float32", 0), ("int64", 2)):
        result = oclab("sort", tmp_path / "x.csv", "--dtype", dtype, *QUICK)
        assert result.returncode == status and (status == 0 or one_sentence(result))
    assert "--dtype float64" in oclab("sort", tmp_path / "x.csv").stderr


def test_the_result_on_standard_output_stands_alone(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n3,2\n1,0.5\n")
    sort = [*command("sort", tmp_path / "x.csv", "--axis", 0, "-o", "-", *QUICK)]
    result = subprocess.run(sort, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "a,b\n1,0.5\n3,2\n", "")
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run(sort, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (result.returncode, result.stderr) == (0, b"")
    result = oclab("sort", "--n", 5, "-o", "-", "--json")
    assert result.returncode == 2 and "cannot both be printed" in result.stderr


def test_empty_input(tmp_path):
    (tmp_path / "in.csv").write_text("")
    result = oclab("sort", tmp_path / "in.csv", "-o", tmp_path / "out.csv", *QUICK)
    assert result.returncode == 0 and (tmp_path / "out.csv").read_text() == ""
    assert oclab("sort", "--n", 0, "--repeats", 1).returncode == 0
