"""`oclab gemm A B -o OUT` on real files, and complex factors of gemm's commands."""

import csv
import json

import numpy as np
import pytest
from command_line import QUICK, oclab, one_sentence

from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.lab.tuning.task import problem_with

FAST = ("--algorithm", "naive", *QUICK)


@pytest.fixture
def matrices(rng):
    return rng.uniform(-1, 1, (20, 30)), rng.uniform(-1, 1, (30, 10))


def saved(folder, name, array):
    np.save(folder / name, array)
    return folder / name


def turned(array):
    return array.astype(array.dtype.newbyteorder(">"))


@pytest.mark.parametrize(
    ("dtype", "turn", "more", "close"),
    [
        ("float64", np.asfortranarray, (), 1e-12),
        ("float32", turned, (), 1e-5),
        ("float16", np.array, (), 1e-2),
        ("complex64", np.array, ("--alpha", "(1+2j)"), 1e-4),
    ],
)
def test_products_of_files(dtype, turn, more, close, matrices, tmp_path):
    a, b = (array + 1j * array[::-1] for array in matrices)
    a, b = ((array if dtype == "complex64" else array.real).astype(dtype) for array in (a, b))
    files = [saved(tmp_path, f"{name}.npy", turn(array)) for name, array in (("a", a), ("b", b))]
    result = oclab("gemm", *files, "-o", tmp_path / "c.npy", *more, *FAST)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == f"written: {tmp_path / 'c.npy'}"
    found = np.load(tmp_path / "c.npy")
    assert found.dtype == dtype
    assert abs(found - (1 + 2j if more else 1) * (a.astype(complex) @ b)).max() < close


def test_what_cannot_be_multiplied_is_said_in_one_sentence(matrices, tmp_path):
    a, b = (array.astype("f4") for array in matrices)
    saved(tmp_path, "a.npy", a)
    saved(tmp_path, "b.npy", b)
    saved(tmp_path, "wide.npy", b.astype("f8"))
    saved(tmp_path, "turning.npy", b.astype("c8"))
    saved(tmp_path, "whole.npy", (9 * b).astype("i4"))
    saved(tmp_path, "number.npy", b[0, 0])
    np.savez(tmp_path / "two.npz", x=a, y=b)
    (tmp_path / "junk.npy").write_bytes(b"hello")
    for first, second, says in (
        (
            "a",
            "wide.npy",
            "b is float64; convert with astype (on the command line: --dtype f",
        ),
        ("a", "turning.npy", "b is complex64; convert with astype (on the command line: --dtype c"),
        ("a", "whole.npy", "b is int32; convert"),
        ("a", "number.npy", "b is a single number; multiply by it"),
        ("a", "a.npy", "a gives sums of length 30 and b of length 20"),
        ("a", "none.npy", "none.npy: No such file or directory"),
        ("a", "two.npz", "two.npz: it holds the arrays x, y; name one, as"),
        ("a", "junk.npy", "junk.npy: it does not begin as .npy and .npz files do"),
    ):
        files = tmp_path / f"{first}.npy", tmp_path / second
        result = oclab("gemm", *files, "-o", tmp_path / "c.npy", *FAST)
        assert result.returncode == 2 and one_sentence(result), second
        assert says in result.stderr, (says, result.stderr)
        assert not (tmp_path / "c.npy").exists()


# ------------------------------------------------------------------ complex factors

FACTORS = ("--alpha", "1+2j", "--beta=-0.5J")
SMALL = ("--m", "30", "--n", "20", "--k", "10", "--algorithm", "naive")


def json_of(text):
    """Return a document; a number that JSON does not have is an error."""
    return json.loads(text, parse_constant=pytest.fail)


def test_complex_factors_reach_the_product_and_its_json_and_csv(tmp_path):
    how = ("--dtype", "complex64", *FACTORS, *SMALL, "--repeats", "1")
    result = oclab("--json", "gemm", *how, "--against", "all", "--csv", tmp_path / "rows.csv")
    assert result.returncode == 0, result.stderr
    content = json_of(result.stdout)
    found = problem_with(GEMM, content["problem"])
    assert (found.alpha, found.beta) == (1 + 2j, -0.5j)
    options = content["options"]
    assert (complex(options["alpha"]), complex(options["beta"])) == (1 + 2j, -0.5j)
    with (tmp_path / "rows.csv").open() as file:
        rows = {row["implementation"]: row for row in csv.DictReader(file)}
    assert rows["opencl:naive"]["status"] == rows["blas"]["status"] == "correct"
    # The sequential C code has real numbers alone, and says so.
    assert rows["c:seq"]["status"] == "unavailable" and "complex64" in rows["c:seq"]["reason"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("1+2j", "alpha must be a real number for float32, not (1+2j); complex ones are for"),
        ("1+2i", "'1+2i' is not a valid number; complex ones are written 1+2j."),
    ],
)
def test_what_is_no_factor_is_said_in_words(value, says):
    result = oclab("gemm", "--alpha", value)
    assert result.returncode == 2 and says in result.stderr, result.stderr
    assert result.stdout == "" and "Traceback" not in result.stderr
