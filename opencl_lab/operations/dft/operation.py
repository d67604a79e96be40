"""The discrete Fourier transform as an operation: references, data, tolerance."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.errors import InvalidProblem
from opencl_lab.files import FORMATS, SOUNDS
from opencl_lab.operation import Algorithm, Curves, Difference, Operation, Option, register
from opencl_lab.operations.dft.direct import DirectNaive, DirectTiled
from opencl_lab.operations.dft.fft import Fft
from opencl_lab.operations.dft.problem import (
    COMPLEX_TYPES,
    NORMS,
    DftProblem,
    scale_of,
)
from opencl_lab.operations.dft.product import DirectGemm
from opencl_lab.reference.descriptor import Arrays, CReference, HostReference
from opencl_lab.reference.host_dft import (
    fftw_dft,
    no_fftw,
    no_scipy,
    no_torch,
    numpy_dft,
    scipy_dft,
    torch_dft,
)

__all__ = ["DFT", "TOLERANCE", "Dft", "complex_dtype"]

TOLERANCE = {"complex64": 1e-6, "complex128": 1e-14}
"""Greatest relative error of a row in the Euclidean norm."""
MOST_CURVES = 8
"""Rows that a plot shows."""


def complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the complex type that holds numbers of `dtype`.

    float32, float16 and complex64 become complex64; all others, integers among
    them, complex128, as in SciPy.

    Raises
    ------
    InvalidProblem
        For what is no number.
    """
    if dtype.kind not in "biufc" or dtype.itemsize > 16 or dtype.char == "g":
        raise InvalidProblem(f"cannot transform values of dtype {dtype}")
    single = dtype.kind in "fc" and np.finfo(dtype).bits <= 32
    return np.dtype(np.complex64 if single else np.complex128)


def _c_reference(name: str, function: str, threaded: bool = False) -> CReference:
    return CReference(
        name,
        "dft.c",
        function,
        defines=lambda problem: {"REAL_T": COMPLEX_TYPES[problem.dtype.name]},
        arguments=lambda problem, inputs, outputs, threads: (
            inputs["signal"],
            outputs["spectrum"],
            problem.n,
            problem.batch,
            int(problem.inverse),
            float(problem.scale),
            *((threads,) if threaded else ()),
        ),
        threaded=threaded,
    )


class Dft(Operation[DftProblem]):
    """The discrete Fourier transform, by its definition and fast."""

    name = "dft"
    summary = "Transform signals to their spectra, by the definition or fast (FFT)."
    options = (
        Option("n", int, 4096, "samples of a transform"),
        Option("batch", int, 1, "how many transforms"),
        Option("dtype", str, "complex64", "type of the spectrum", tuple(COMPLEX_TYPES)),
        Option("inverse", bool, False, "transform back"),
        Option("norm", str, "backward", "which direction is scaled, as in NumPy", NORMS),
    )
    size_option = "n"
    awkward = (
        MappingProxyType({"n": 6_006, "batch": 5, "inner": 1}),
        MappingProxyType({"n": 5_003, "batch": 3, "inner": 1, "inverse": True, "scale": 0.5}),
        MappingProxyType({"n": 391, "batch": 205, "inner": 1}),  # where rows must be short
    )
    inputs = ("signal",)
    formats = (*FORMATS, *SOUNDS)
    output = "spectrum"
    algorithms = (DirectTiled(), DirectNaive(), DirectGemm(), Fft())
    references = (
        _c_reference("c:seq", "dft_seq"),
        _c_reference("c:omp", "dft_omp", threaded=True),
        HostReference("numpy", numpy_dft),
        HostReference("scipy", scipy_dft, no_scipy, threaded=True),
        HostReference("fftw", fftw_dft, no_fftw, threaded=True),
        HostReference("torch", torch_dft, no_torch, threaded=True),
    )

    def choose(
        self, problem: DftProblem, device: Device, name: str = "auto"
    ) -> Algorithm[DftProblem]:
        """Return an algorithm; ``auto`` is direct, and one product for many short rows."""
        product = self.algorithm(DirectGemm.name)
        if name == "auto" and DirectGemm.pays(problem) and not product.supports(problem, device):
            name = product.name
        return super().choose(problem, device, name)

    def problem(self, **options: Any) -> DftProblem:
        """Return the problem that the options describe."""
        chosen = self.with_defaults(options)
        return DftProblem(
            chosen["n"],
            np.dtype(chosen["dtype"]),
            chosen["batch"],
            inverse=chosen["inverse"],
            scale=scale_of(chosen["n"], chosen["norm"], chosen["inverse"]),
        )

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[DftProblem, Arrays]:
        """Transform along the last axis, in `dtype` if that is given."""
        chosen = self.with_defaults(options)
        given = [name for name in ("n", "batch") if name in options]
        if given:
            raise InvalidProblem(f"{given[0]} is given by the input file; leave it out")
        signal = arrays["signal"]
        dtype = complex_dtype(signal.dtype)
        if "dtype" in options:
            dtype = np.dtype(chosen["dtype"])
        data = np.atleast_1d(signal).astype(dtype)
        n = data.shape[-1]
        data = data.reshape(data.size // n if n else 0, n, 1)
        scale = scale_of(n, chosen["norm"], chosen["inverse"])
        problem = DftProblem(n, dtype, data.shape[0], inverse=chosen["inverse"], scale=scale)
        return problem, {"signal": data}

    def present(self, arrays: Arrays, outputs: Arrays) -> np.ndarray[Any, Any]:
        """Return the spectrum in the shape of the user's array."""
        spectrum = outputs[self.output]
        return spectrum.reshape(arrays["signal"].shape if arrays else spectrum.shape[:2])

    def curves(self, arrays: Arrays, outputs: Arrays) -> Curves:
        """Return the magnitudes in decibels, for real signals of the frequencies up to a half."""
        spectrum = self.present(arrays, outputs)
        n = spectrum.shape[-1]
        frequencies = np.fft.fftfreq(n)
        order = np.argsort(frequencies, kind="stable")
        if arrays["signal"].dtype.kind != "c":
            order = np.arange(n // 2 + 1)
            frequencies = np.arange(n) / max(n, 1)
        rows = np.abs(spectrum.reshape(-1, n))[:MOST_CURVES, order]
        largest = max(float(np.max(rows, initial=0)), float(np.finfo(np.float64).tiny))
        decibels = 20 * np.log10(np.maximum(rows / largest, 1e-12))
        return Curves(
            frequencies[order],
            {f"row {index}": row for index, row in enumerate(decibels)},
            "frequency in cycles a sample",
            "magnitude in dB below the largest",
        )

    def generate(self, problem: DftProblem, seed: int, **options: Any) -> Arrays:
        """Return normal random numbers."""
        rng = np.random.default_rng(seed)
        shape, dtype = problem.signal
        signal = np.empty(shape, dtype)
        for part in (signal.real, signal.imag) if dtype.kind == "c" else (signal,):
            part[...] = rng.standard_normal(shape, problem.real.type)
        return {"signal": signal}

    def expected(self, problem: DftProblem, inputs: Arrays) -> Arrays:
        """Return what NumPy computes in double precision."""
        wide = inputs["signal"].astype(np.complex128 if problem.kind != "r2c" else np.float64)
        return numpy_dft(problem, {"signal": wide}, 1)

    def compare(
        self, problem: DftProblem, inputs: Arrays, expected: Arrays, actual: Arrays
    ) -> Difference:
        """Compare each transform in the Euclidean norm.

        An error of a transform spreads over all its frequencies, so each of these
        is measured by the norm of all. Where the right result is not finite
        throughout, the given one must not be either.
        """
        right, given = expected["spectrum"], actual["spectrum"]
        if given.shape != right.shape or given.dtype != right.dtype:
            return Difference(np.inf, np.inf, False)
        wide = np.complex128 if right.dtype.kind == "c" else np.float64
        with np.errstate(invalid="ignore", over="ignore"):
            size = np.linalg.norm(right.astype(wide), axis=1)
            error = np.abs(right.astype(wide) - given.astype(wide))
            far = np.linalg.norm(error, axis=1)
            infinite = ~np.isfinite(size)
            bound = TOLERANCE[problem.dtype.name] * size
            ok = np.where(infinite, ~np.isfinite(far), far <= bound)
            error = np.where(infinite[:, None], 0, error)
            relative = error / (np.abs(right.astype(wide)) + 1e-12)
            relative[~np.isfinite(relative)] = np.inf if not np.all(ok) else 0
        max_abs, max_rel = np.max(error, initial=0), np.max(relative, initial=0)
        return Difference(float(max_abs), float(max_rel), bool(np.all(ok)))


DFT = Dft()
register(DFT)
