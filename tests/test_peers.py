"""Other libraries: those that are installed give right results, and the others say what is missing.

The README installs NumPy, SciPy and PyOpenCL. CLBlast, CuPy, PyTorch, pyvkfft and OpenCV take part
where they are installed.
"""

import re
import sys
import time
from contextlib import closing
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from peer_checks import host_reference, judged, resident

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.cli import main
from opencl_lab.lab.ops.conv2d.operation import CONV2D
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.lab.reference.descriptor import needs
from opencl_lab.lab.reference.execute import prepare
from opencl_lab.lab.reference.peers import LIBRARIES, PeerReference, residents

SIZES = {"m": 21, "n": 34, "k": 13}
SCALARS = ({}, {"alpha": -0.5}, {"alpha": 2.0, "beta": 1.5}, {"alpha": 0.0, "beta": 0.5})
TRANSPOSED = tuple({"trans_a": a, "trans_b": b} for a, b in product((False, True), repeat=2))
GEMMS = [{**SIZES, **scalars, **turned} for scalars in SCALARS for turned in TRANSPOSED]
GEMMS += [{**item, "dtype": "float64"} for item in (GEMMS[0], GEMMS[-5])]
GEMMS += [
    {**SIZES, "batch": 3, "beta": 0.5, "bias": "row"},
    {**SIZES, "batch": 3, "trans_a": "C", "dtype": "complex64", "alpha": 2.0},
    {**SIZES, "batch": 2, "trans_b": "C", "dtype": "complex128", "beta": -1.0},
    {**SIZES, "bias": "column", "activation": "gelu", "alpha": -1.5},
    {**SIZES, "batch": 2, "bias": "column", "activation": "relu", "dtype": "float64"},
    *({**SIZES, "precision": precision} for precision in ("3xtf32", "tf32")),
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
CASES = {
    GEMM: GEMMS,
    CONV2D: IMAGES,
    DFT: SIGNALS,
    SORT: [{"n": 99, "descending": down} for down in (False, True)],
}


def references():
    """Yield each way into a library: from the host and back, and on arrays of its own."""
    for operation in CASES:
        ways = [item for item in operation.references if item.kind == "library"]
        ways += residents(operation.calls)
        ways += [
            PeerReference(library.name, library, operation.calls.peers[library.name])
            for library in LIBRARIES
            if library.side == "host" and library.name in operation.calls.peers
        ]
        for reference in ways:
            there = (
                "-there" if isinstance(reference, PeerReference) and not reference.copies else ""
            )
            name = f"{operation.name}-{reference.name}{there}"
            builds = reference.name.startswith("pyopencl")  # a program for each problem
            marks = pytest.mark.full if builds else ()
            yield pytest.param(operation, reference, id=name, marks=marks)


def reason_against(reference, device):
    """Return why a reference cannot run on a device here, or None."""
    if isinstance(reference, PeerReference):
        return reference.unavailable(device)
    return reference.unavailable()


@pytest.mark.parametrize(("operation", "reference"), [*references()])
def test_libraries_give_right_results(operation, reference, device):
    """Of each problem that they do not refuse; some they take."""
    reason = reason_against(reference, device)
    if reason is not None:
        pytest.skip(reason)
    taken = 0
    for options in CASES[operation]:
        try:
            difference = judged(operation, reference, device, **options)
        except ReferenceUnavailable:
            continue
        assert difference.ok, (options, difference)
        taken += 1
    assert taken


@pytest.mark.parametrize(
    ("operation", "peer", "options", "words"),
    [
        (DFT, "vkfft", {"n": 8, "dtype": "float16"}, "no complex64 of float16"),
        (DFT, "vkfft", {"n": 0}, "no empty transforms"),
        (GEMM, "clblast", {"m": 0}, "does not multiply empty matrices"),
        (GEMM, "clblast", {"size": 9, "bias": "row"}, "neither a bias nor an activation"),
        (GEMM, "clblast", {"size": 9, "dtype": "float16"}, "CLBlast does not multiply float16"),
        (CONV2D, "cupy", {"size": 9, "dtype": "uint8"}, "rules of its own"),
        (CONV2D, "cupy", {"size": 9, "mode": "full"}, "no mode 'full'"),
    ],
)
def test_what_they_cannot_do_says_why(operation, peer, options, words):
    """Before they are asked, so that it shows without them."""
    options = operation.with_defaults(options)
    problem = operation.problem(**options)
    with pytest.raises(ReferenceUnavailable, match=words):
        operation.calls.peers[peer](problem, None, operation.generate(problem, 1, **options))


def test_those_for_cuda_take_no_other_device(device):
    other = replace(device, compute_capability=None)
    assert resident(GEMM, "cupy").unavailable(other) == "it works on CUDA devices only"


@pytest.mark.parametrize("side", ["host", "there"])
def test_what_the_first_call_builds_is_not_timed(side, device):
    """Else a plan, or kernels, of seconds would be the time of a row that nobody asked for."""
    slept = []

    def building(problem, *given):
        if not slept:
            slept.append(time.sleep(0.3))
        return {} if side == "host" else given[1]["signal"]

    if side == "host":
        fftw = host_reference(DFT, "fftw")
        reference = replace(fftw, function=building, unavailable=lambda: None)
    else:
        reference = PeerReference("numpy", LIBRARIES[0], building)
    problem = DFT.problem(n=8)
    inputs = {"signal": np.zeros((1, 8, 1), np.complex64)}
    like = {"spectrum": ((1, 8, 1), inputs["signal"].dtype)}
    with closing(prepare(reference, problem, inputs, like, 1, device)) as prepared:
        assert prepared.run() < 0.2 and slept


@pytest.mark.few(2)
@pytest.mark.parametrize("operation", ["sort", "gemm", "conv2d", "dft"])
@pytest.mark.parametrize("peer", ["cupy", "torch"])
def test_a_name_that_is_not_installed_says_so(operation, peer, capsys):
    if needs(peer)() is None:
        pytest.skip(f"{peer} is installed")
    size = "--n" if operation in ("sort", "dft") else "--size"
    assert main([operation, size, "16", "--against", peer, "--repeats", "1"]) == 3
    assert f"{peer}: not installed; pip install {peer}" in capsys.readouterr().err


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "ends", ["raise RuntimeError('no such driver\\nmore')", "raise SystemExit"]
)
def test_a_library_whose_import_fails_says_so(ends, tmp_path, monkeypatch, device):
    for name in ("torch", "cupy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(ends)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    words = "it does not work here: (no such driver|SystemExit)$"
    with pytest.raises(ReferenceUnavailable, match=words):
        judged(SORT, host_reference(SORT, "torch"), device, n=50)
    assert re.match(words, host_reference(SORT, "cupy").unavailable())
