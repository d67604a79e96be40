"""A rank that fails ends the job within seconds, with its message and status."""

import functools

import pytest
from ranks import HERE, on_ranks

from opencl_lab.lab.reference.mpi import no_mpi

pytestmark = pytest.mark.skipif(no_mpi() is not None, reason=f"{no_mpi()}")

SCRIPT = HERE / "faulty_ranks.py"
OPERATIONS = ("gemm", "sort", "fft", "conv2d")
SECONDS = 60  # with starting Python and compiling kernels, on a busy machine


@functools.cache
def calls_of(operation):
    """Return how many collective calls an operation makes."""
    done = on_ranks(3, SCRIPT, operation, "none")
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
@pytest.mark.parametrize("share", [i / 12 for i in range(12)])
def test_a_failure_at_any_collective_call_ends_the_job(operation, share):
    k = 1 + int(share * calls_of(operation))
    done = on_ranks(3, SCRIPT, operation, "device", k, timeout=SECONDS)
    ended(done, 4, "oclab: rank 1: the device is lost, as planted")


def test_wrong_arguments_are_the_same_error_on_all_ranks():
    done = on_ranks(3, SCRIPT, "shape", "none", timeout=SECONDS)
    assert done.returncode != 0
    assert "rank 0: the local part must be float64 of shape (2, 4)" in done.stderr


def test_a_wrong_deadline_is_refused():
    done = on_ranks(2, SCRIPT, "gemm", "none", OCLAB_DEADLINE="soon", timeout=SECONDS)
    assert done.returncode != 0 and "OCLAB_DEADLINE must be a positive number" in done.stderr
