"""Options of public functions: NumPy's scalars count as Python's, wrong ones are said."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import opencl_lab as ol
from opencl_lab.core.options import exact_number, real_number

X = np.arange(6, dtype="f4")
KERNEL = "__kernel void f(__global float *y, const int n) { y[get_global_id(0)] = n * W; }"


@pytest.fixture
def tune_kernel(tmp_path):
    path = tmp_path / "f.cl"
    path.write_text(KERNEL, encoding="utf-8")

    def tune(params=None, arguments=None, **options):
        given = {"W": (1, 2)} if params is None else params
        data = {"y": np.empty(4, "f4"), "n": 3} if arguments is None else arguments
        return ol.tune_kernel(path, given, data, 4, local_size=1, **options)

    return tune


def test_scalars_of_numpy_are_options(queue, tune_kernel):
    for yes in (np.bool_(True), np.array(True)):
        assert ol.sort(X, axis=np.int64(0), descending=yes, queue=queue)[0] == 5
    eight = {"WG_SIZE": np.int64(64)}
    assert ol.sort(X, algorithm="odd-even-merge", config=eight, queue=queue)[0] == 0
    rows = ol.compare(
        "sort", n=np.int64(9), descending=np.bool_(True), repeats=np.int32(1), seed=np.int64(1),
        time_limit=np.float32(9), against="none",
    )  # fmt: skip
    assert [row.ok for row in rows] == [True]
    found = tune_kernel(
        {"W": np.arange(1, 3)}, budget=np.int64(2), seed=np.int8(1), tolerance=np.float32(1e3)
    )
    assert found.best.config["W"] in (1, 2)


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("descending must be True or False, not 'no'", lambda: ol.sort(X, descending="no")),
        ("descending must be True or False, not 1", lambda: ol.sort(X, descending=1)),
        ("return_index must be True", lambda: ol.unique(X, return_index="no")),
        ("descending must be True", lambda: ol.compare("sort", n=9, descending="no")),
        ("descending must be True", lambda: ol.compare("sort", n=9, descending=0)),
        ("rows must be a whole number, not 1.0", lambda: ol.compare("sort", n=9, rows=1.0)),
        ("batch must be a whole number, not 1.0", lambda: ol.compare("gemm", size=8, batch=1.0)),
        ("trans_a must be True", lambda: ol.compare("gemm", size=8, trans_a=1.0)),
        ("alpha must be a number", lambda: ol.compare("gemm", size=8, alpha=np.array([1, 2]))),
        ("order must be one", lambda: ol.compare("sort", n=9, order=np.array(["a", "b"]))),
        ("algorithm must be a text", lambda: ol.sort(X, algorithm=["radix"])),
        ("repeats must be a whole number", lambda: ol.compare("sort", n=9, repeats=1.5)),
        ("algorithms must be a sequence", lambda: ol.compare("sort", n=9, algorithms=3)),
        ("seed must not be negative", lambda: ol.compare("sort", n=9, seed=-1)),
        ("progress must be a function", lambda: ol.tune("sort", n=9, progress=3)),
        ("budget must be a whole number", lambda: ol.tune("sort", n=9, budget=1.5)),
        ("numbers is needed, not None", lambda: ol.gemm(None, np.ones((2, 2)))),
        ("numbers is needed, not {1}", lambda: ol.sort({1})),
        ("numbers is needed, not 'abc'", lambda: ol.fft.fft("abc")),
        ("numbers is needed, not <generator", lambda: ol.conv2d((1 for _ in X), np.ones((1, 1)))),
        (r"\[\[1\], \[1, 2\]\] is no array", lambda: ol.sort([[1], [1, 2]])),
    ],
)
def test_wrong_options_are_said(message, call):
    with pytest.raises(ol.InvalidProblem, match=message):
        call()


def test_wrong_arguments_of_a_kernel_are_said(tune_kernel):
    for message, wrong in (
        ("params must map W to several values, not 64", {"params": {"W": 64}}),
        ("arguments must map names to values", {"arguments": [np.empty(4, "f4"), 3]}),
        ("restrictions must be a sequence of texts", {"restrictions": [lambda W: W > 1]}),
        ("fixed must map names to values", {"fixed": [1]}),
    ):
        with pytest.raises(ol.InvalidProblem, match=message):
            tune_kernel(**wrong)
    # A single text is a sequence of one, and not of its letters.
    assert tune_kernel(options="-DX=1", restrictions="W > 1", budget=1).best.config["W"] == 2


@pytest.mark.parametrize(
    ("value", "right"),
    [
        (Fraction(6, 2), 3),
        (np.longdouble(2) ** 70, 2**70),
        (Decimal("1e400000"), Decimal("1e400000")),  # as an integer it would take seconds
        (-0.0, -0.0),
    ],
)
def test_numbers_are_exact(value, right):
    found = exact_number(value, "x")
    assert found == right and np.signbit(float(found)) == np.signbit(float(right))


def test_numbers_too_large_for_a_float_are_infinite():
    for value in (10**400, Decimal("1e400"), Fraction(10**400, 3)):
        assert real_number(value, "x") == np.inf and real_number(-value, "x") == -np.inf
    with pytest.raises(ol.InvalidProblem, match="x must be a real number"):
        real_number(Decimal("sNaN"), "x")
