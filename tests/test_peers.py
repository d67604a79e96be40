"""Other libraries on a device: each operation as their users would call it."""

import re
import sys
import time
from contextlib import closing
from dataclasses import replace
from itertools import product

import numpy as np
import pyopencl as cl
import pytest
from peer_fakes import fakes, host_reference, judged, resident

import opencl_lab as ol
from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.cli import main
from opencl_lab.lab.ops.conv2d.operation import CONV2D
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.lab.reference import clblast
from opencl_lab.lab.reference.descriptor import needs
from opencl_lab.lab.reference.execute import prepare

__all__ = ["fakes"]

SIZES = {"m": 21, "n": 34, "k": 13}
SCALARS = ({}, {"alpha": -0.5}, {"alpha": 2.0, "beta": 1.5}, {"alpha": 0.0, "beta": 0.5})
TRANSPOSED = tuple({"trans_a": a, "trans_b": b} for a, b in product((False, True), repeat=2))
GEMMS = [{**SIZES, **scalars, **turned} for scalars in SCALARS for turned in TRANSPOSED]
GEMMS += [{**item, "dtype": "float64"} for item in (GEMMS[0], GEMMS[-5])]
STACKS = [
    {**SIZES, "batch": 3, "beta": 0.5, "bias": "row"},
    {**SIZES, "batch": 3, "trans_a": "C", "dtype": "complex64", "alpha": 2.0},
    {**SIZES, "bias": "column", "activation": "gelu", "alpha": -1.5},
    {**SIZES, "batch": 2, "bias": "column", "activation": "relu", "dtype": "float64"},
]
IMAGES = [
    {"height": 19, "width": 23, "ksize": 4, "boundary": boundary, "flip": flip, "mode": mode}
    for mode, boundary in [
        *(("same", name) for name in ("constant", "nearest", "reflect", "mirror", "wrap")),
        *product(("valid", "full"), ("constant", "reflect", "wrap")),
    ]
    for flip in (False, True)
]
SIGNALS = [
    {"n": n, "batch": 3, "dtype": dtype, "inverse": inverse, "norm": norm}
    for n, dtype, inverse, norm in product(
        (12, 15), ("complex64", "float32", "float64"), (False, True), ("backward", "ortho")
    )
] + [{"n": 16, "norm": "forward"}, {"n": 16, "norm": "forward", "inverse": True}]
CASES = [
    *(("cupy", GEMM, item) for item in GEMMS),
    *(("torch", GEMM, item) for item in GEMMS),
    *((peer, GEMM, item) for peer in ("torch", "cupy") for item in STACKS),
    *(("cupy", CONV2D, item) for item in IMAGES),
    *(("cupy", DFT, item) for item in SIGNALS),
    *(("vkfft", DFT, item) for item in SIGNALS),
    *(("cupy", SORT, {"n": 99, "descending": down}) for down in (False, True)),
]


@pytest.fixture
def cuda(device):
    """A device that says it is CUDA's, too."""
    return replace(device, compute_capability=(9, 0))


@pytest.mark.parametrize(
    ("peer", "operation", "options"),
    CASES,
    ids=[f"{peer}-{operation.name}-{number}" for number, (peer, operation, _) in enumerate(CASES)],
)
def test_calls_of_libraries_on_a_device(peer, operation, options, fakes, cuda):
    difference = judged(operation, resident(operation, peer), cuda, **options)
    assert difference.ok, difference


@pytest.mark.parametrize(
    ("peer", "operation"),
    [("vkfft", DFT), *(("cupy", operation) for operation in (GEMM, CONV2D, DFT, SORT))],
)
def test_from_host_to_host_they_need_no_cuda_beside(peer, operation, fakes, device):
    options = {operation.size_option: 24}
    reference = host_reference(operation, peer)
    assert reference.unavailable() is None
    assert judged(operation, reference, device, **options).ok
    if peer == "cupy":
        with pytest.raises(ReferenceUnavailable, match="CUDA devices only"):
            judged(operation, resident(operation, peer), device, **options)


@pytest.mark.skipif(needs("pyvkfft")() is not None, reason="pyvkfft is not installed")
@pytest.mark.parametrize("options", SIGNALS)
def test_real_vkfft(options, device):
    for reference in (resident(DFT, "vkfft"), host_reference(DFT, "vkfft")):
        assert judged(DFT, reference, device, **options).ok


@pytest.mark.parametrize(
    ("operation", "peer", "options", "words"),
    [
        (DFT, "vkfft", {"n": 8, "dtype": "float16"}, "no complex64 of float16"),
        (DFT, "vkfft", {"n": 0}, "no empty transforms"),
        (GEMM, "clblast", {"m": 0}, "no empty matrices"),
        (GEMM, "clblast", {"size": 9, "bias": "row"}, "neither a bias nor an activation"),
        (GEMM, "clblast", {"size": 9, "dtype": "float16"}, "CLBlast multiplies no float16"),
        (CONV2D, "cupy", {"size": 9, "dtype": "uint8"}, "rules of its own"),
        (CONV2D, "cupy", {"size": 9, "mode": "full", "boundary": "nearest"}, "constant, wrap"),
    ],
)
def test_what_they_cannot_do_says_why(operation, peer, options, words, fakes, cuda, monkeypatch):
    monkeypatch.setattr(clblast, "_library", lambda: "there")
    with pytest.raises(ReferenceUnavailable, match=words):
        judged(operation, resident(operation, peer), cuda, **options)


def test_products_of_torch_are_not_rounded_to_tf32(fakes, cuda):
    reference = resident(GEMM, "torch")
    assert judged(GEMM, reference, cuda, size=8).ok
    torch = reference.library.load()
    assert torch.backends.cuda.matmul.allow_tf32 is torch.backends.cudnn.allow_tf32 is False
    assert torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction is False
    assert torch.backends.cudnn.benchmark


@pytest.mark.parametrize("precision", ["native", "3xtf32", "tf32"])
def test_products_use_tf32_where_it_is_asked_for(precision, fakes, cuda):
    options = {"size": 8, "precision": precision}
    for peer in ("torch", "cupy"):
        assert judged(GEMM, resident(GEMM, peer), cuda, **options).ok
    torch, cupy = (resident(GEMM, peer).library.load() for peer in ("torch", "cupy"))
    types = cupy._core._routines_linalg
    assert torch.tf32[-1] is (precision == "tf32")
    wanted = types.COMPUTE_TYPE_TF32 if precision == "tf32" else types.COMPUTE_TYPE_DEFAULT
    assert cupy.seen[-1] == wanted
    assert torch.backends.cuda.matmul.allow_tf32 is False
    assert types.current == types.COMPUTE_TYPE_TF32  # as it was


def test_a_cupy_that_cannot_be_told_has_no_tf32(fakes, cuda, monkeypatch):
    cupy = resident(GEMM, "cupy")
    linalg = cupy.library.load()._core._routines_linalg
    monkeypatch.delattr(linalg, "set_compute_type")
    assert judged(GEMM, cupy, cuda, size=8).ok
    with pytest.raises(ReferenceUnavailable, match="cannot be told to use TF32"):
        judged(GEMM, cupy, cuda, size=8, precision="tf32")


def test_threads_of_torch_on_the_host_are_held(fakes, device):
    reference = host_reference(GEMM, "torch")
    for threads in (1, 3):
        assert judged(GEMM, reference, device, threads=threads, size=8).ok
        torch = resident(GEMM, "torch").library.load()
        assert torch.seen[-1] == threads and torch.get_num_threads() == 7


@pytest.mark.parametrize("name", ["cupy", "fftw"])
def test_what_the_first_call_builds_is_not_timed(name, fakes, cuda):
    """Else a plan, or kernels, of seconds would be the time of a row that nobody asked for."""
    slept = []

    def building(problem, *given):
        if not slept:
            slept.append(time.sleep(0.3))
        return {} if name == "fftw" else given[1]["signal"]

    if name == "fftw":
        fftw = host_reference(DFT, "fftw")
        reference = replace(fftw, function=building, unavailable=lambda: None)
    else:
        reference = replace(resident(DFT, "cupy"), call=building)
    problem = DFT.problem(n=8)
    inputs = {"signal": np.zeros((1, 8, 1), np.complex64)}
    like = {"spectrum": ((1, 8, 1), inputs["signal"].dtype)}
    with closing(prepare(reference, problem, inputs, like, 1, cuda)) as prepared:
        assert prepared.run() < 0.2 and slept


# --- CLBlast ------------------------------------------------------------------------------------


def _blas(queue):
    """Return a product with the arguments of ``CLBlastSgemm``, on the buffers of its handles."""

    def memory(handle, offset, ld, rows, columns, dtype):
        assert ld == columns
        host = np.empty((rows, columns), dtype)
        buffer = cl.Buffer.from_int_ptr(handle, retain=True)
        cl.enqueue_copy(queue, host, buffer, src_offset=offset * dtype.itemsize)
        return host, buffer

    def routine(dtype, stacked=False):
        dtype = np.dtype(dtype)

        def call(layout, ta, tb, m, n, k, alpha, *rest):
            a, a_at, a_ld, b, b_at, b_ld, beta, c, c_at, c_ld, on, event = rest
            assert layout == 101 and event is None and on._obj.value == queue.int_ptr
            shapes = [(k, m) if ta == 112 else (m, k), (n, k) if tb == 112 else (k, n)]
            a, _ = memory(a, a_at, a_ld, *shapes[0], dtype)
            b, _ = memory(b, b_at, b_ld, *shapes[1], dtype)
            c, there = memory(c, c_at, c_ld, m, n, dtype)
            product = (a.T if ta == 112 else a) @ (b.T if tb == 112 else b)
            result = dtype.type(alpha) * product
            if beta:
                result += dtype.type(beta) * c
            cl.enqueue_copy(queue, there, result, dst_offset=c_at * dtype.itemsize)
            return 0

        return call

    return routine


@pytest.mark.parametrize("options", GEMMS)
def test_arguments_of_clblast(options, device, monkeypatch):
    queue = device.queue()
    monkeypatch.setattr(clblast, "_library", lambda: "there")
    monkeypatch.setattr(clblast, "_routine", _blas(queue))
    assert judged(GEMM, resident(GEMM, "clblast"), device, **options).ok


@pytest.mark.skipif(clblast.no_clblast() is not None, reason="no libclblast")
@pytest.mark.parametrize(
    "options",
    [
        *GEMMS[:16:5],  # each way at least once
        {**SIZES, "dtype": "complex64", "trans_a": "C", "alpha": 2.0},
        {**SIZES, "dtype": "complex128", "batch": 2, "trans_b": "C", "beta": -1.0},
    ],
)
def test_real_clblast(options, device):
    """Three of its routines, each of which takes long to build: real and complex, single and many.

    Whether all of them get their arguments is seen above.
    """
    assert judged(GEMM, resident(GEMM, "clblast"), device, **options).ok


def test_a_refusal_of_clblast_is_a_reason(device, monkeypatch):
    monkeypatch.setattr(clblast, "_library", lambda: "there")
    monkeypatch.setattr(clblast, "_routine", lambda dtype, stacked: lambda *arguments: -2042)
    with pytest.raises(ReferenceUnavailable, match=r"status -2042: the device has no float64"):
        judged(GEMM, resident(GEMM, "clblast"), device, size=8)


def test_without_clblast_its_row_says_what_to_install(device, monkeypatch, capsys):
    monkeypatch.setattr(clblast, "_library", lambda: None)
    assert main(["gemm", "--size", "8", "--against", "clblast", "--repeats", "1"]) == 3
    assert "clblast@device: not installed; install CLBlast" in capsys.readouterr().err
    rows = ol.compare("gemm", size=8, resident=True, repeats=1, device=device)
    reasons = {row.implementation: row.reason for row in rows}
    assert "libclblast-dev" in reasons["clblast@device"]


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["sort", "gemm", "conv2d", "dft"])
@pytest.mark.parametrize("peer", ["cupy", "torch"])
def test_a_name_runs_or_says_why_it_cannot(operation, peer, capsys):
    size = "--n" if operation in ("sort", "dft") else "--size"
    if needs(peer)() is not None:
        assert main([operation, size, "16", "--against", peer, "--repeats", "1"]) == 3
        assert f"{peer}: not installed; pip install {peer}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "ends", ["raise RuntimeError('no such driver\\nmore')", "raise SystemExit"]
)
def test_a_library_whose_import_fails_says_so(ends, fakes, tmp_path, monkeypatch, device):
    for name in ("torch", "cupy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(ends)
        sys.modules.pop(name, None)
    monkeypatch.syspath_prepend(tmp_path)
    words = "it does not work here: (no such driver|SystemExit)$"
    with pytest.raises(ReferenceUnavailable, match=words):
        judged(SORT, host_reference(SORT, "torch"), device, n=50)
    assert re.match(words, host_reference(SORT, "cupy").unavailable())


def test_a_library_that_is_not_clblast_is_a_reason(monkeypatch):
    monkeypatch.setattr(clblast, "_library", lambda: object())
    with pytest.raises(ReferenceUnavailable, match="has no CLBlastSgemm"):
        clblast._routine.__wrapped__("float32")
