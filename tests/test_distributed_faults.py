"""A rank that fails ends the job within seconds, with its message and status."""

import functools
import json

import numpy as np
import pytest
from ranks import HERE, on_ranks

from opencl_lab.lab.reference.mpi import no_mpi

pytestmark = pytest.mark.skipif(no_mpi() is not None, reason=f"{no_mpi()}")

SCRIPT = HERE / "faulty_ranks.py"
OPERATIONS = ("gemm", "sort", "fft", "conv2d")
SECONDS = 60  # with starting Python and compiling kernels, on a busy machine


@functools.cache
def calls_of(operation, memory="on"):
    """Return how many collective calls an operation makes."""
    done = on_ranks(3, SCRIPT, operation, "none", OCLAB_NODE_MEMORY=memory)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


def ended(done, status, told):
    assert done.returncode == status, done.stderr
    assert told in done.stderr + done.stdout, done.stderr


@pytest.mark.parametrize(
    ("fault", "status", "told"),
    [
        ("device", 4, "oclab: rank 1: the device is lost, as planted"),
        ("memory", 1, "oclab: rank 1: MemoryError: no memory, as planted"),
        ("kill", 9, "EXIT CODE: 9"),  # as MPICH's mpiexec says
        ("hang", 124, "took longer than 6 s (OCLAB_DEADLINE)"),
    ],
)
def test_a_failure_in_the_middle_ends_the_job(fault, status, told):
    deadline = {"OCLAB_DEADLINE": 6} if fault == "hang" else {}
    done = on_ranks(3, SCRIPT, "gemm", fault, calls_of("gemm") // 2, **deadline, timeout=SECONDS)
    ended(done, status, told)


@pytest.mark.full
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("memory", ["on", "off"])
@pytest.mark.parametrize("share", [i / 8 for i in range(8)])
def test_a_failure_at_any_collective_call_ends_the_job(operation, share, memory):
    k = 1 + int(share * calls_of(operation, memory))
    how = {"OCLAB_NODE_MEMORY": memory, "timeout": SECONDS}
    done = on_ranks(3, SCRIPT, operation, "device", k, **how)
    ended(done, 4, "oclab: rank 1: the device is lost, as planted")


def test_wrong_arguments_are_the_same_error_on_all_ranks():
    done = on_ranks(3, SCRIPT, "shape", "none", timeout=SECONDS)
    told = "rank 0: the local part must be float64 of shape (2, 4), not float64 of shape (9, 0)"
    assert done.returncode == 0, done.stderr
    assert all(done.stdout.count(f"on {rank}: {told}") == 1 for rank in range(3)), done.stdout


def test_a_wrong_deadline_is_refused():
    done = on_ranks(2, SCRIPT, "gemm", "none", OCLAB_DEADLINE="soon", timeout=SECONDS)
    assert done.returncode != 0 and "OCLAB_DEADLINE must be a positive number" in done.stderr


# -------------------------------------------------------------------------------- the command line


def oclab_on(ranks, *arguments, **environment):
    return on_ranks(ranks, "-m", "opencl_lab", *arguments, timeout=SECONDS, **environment)


def test_the_command_prints_one_row_and_writes_files(tmp_path):
    files = ["--csv", tmp_path / "times.csv", "-o", tmp_path / "sorted.npy"]
    done = oclab_on(2, "sort", "--distributed", "--n", 5000, "--repeats", 2, "--json", *files)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["results"]
    assert (row["implementation"], row["kind"], row["workers"]) == ("mpi:opencl", "mpi", 2)
    assert row["status"] == "correct" and row["over_ranks"]["communication"] > 0
    assert np.all(np.diff(np.load(tmp_path / "sorted.npy").astype(np.int64)) >= 0)
    assert "mpi:opencl" in (tmp_path / "times.csv").read_text()


@pytest.mark.full
@pytest.mark.parametrize("asked", ["gemm --size 70 --beta 2", "dft --n 999 --batch 5",
                                   "dft --n 1001 --inverse", "conv2d --size 90"])  # fmt: skip
def test_the_command_checks_each_operation(asked):
    done = oclab_on(3, *asked.split(), "--distributed", "--repeats", 1)
    assert done.returncode == 0 and done.stdout.count("mpi:opencl x3") == 1, done.stderr


@pytest.mark.parametrize(
    ("arguments", "spec", "status", "told"),
    [
        (("sort", "--n", 99), "0:0,9:9", 3, "rank 1: no OpenCL device matches '9:9'"),
        (("sort", "--n", 99, "--algorithm", "radix"), "", 2, "--algorithm is not used"),
        (("gemm", "--size", 9, "--batch", 3), "", 2, "one product, without bias"),
    ],
)
def test_what_is_wrong_is_said_once_and_ends_all_ranks(arguments, spec, status, told):
    done = oclab_on(2, *arguments, "--distributed", OCLAB_DEVICE=spec)
    assert done.returncode == status, done.stderr
    assert done.stderr.count(told) == 1, done.stderr
