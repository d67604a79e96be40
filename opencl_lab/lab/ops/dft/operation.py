"""The discrete Fourier transform as an operation: references, data, tolerance."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.kernels import host_c_type
from opencl_lab.core.wording import counted
from opencl_lab.lab.files import FORMATS, SOUNDS, convert
from opencl_lab.lab.measuring.difference import UNLIKE, Difference, largest_share
from opencl_lab.lab.operation import Curves, Operation, Option, axis_of, refuse_axis
from opencl_lab.lab.ops.dft.references import CALLS, fftw_dft, numpy_dft, scipy_dft, torch_on_host
from opencl_lab.lab.ops.shared import in_c, in_torch, reading_along, refuse_given
from opencl_lab.lab.reference.descriptor import Arrays, HostReference, needs
from opencl_lab.lab.reference.peers import from_host
from opencl_lab.ops.fft.problem import NORMS, SAMPLE_TYPES, DftProblem, complex_dtype, scale_of
from opencl_lab.ops.fft.solver import DFT_SOLVER
from opencl_lab.ops.fft.trials import PRIME, SMOOTH

Array = np.ndarray[Any, Any]

BLOCK = 1 << 16
"""Number of values that are compared at a time, so that they stay in the cache."""
TOLERANCE = {"complex64": 1e-6, "complex128": 1e-14}
"""Largest relative error of a row in the Euclidean norm."""
MOST_CURVES = 8
"""Largest number of rows in a plot."""
OWN_AXES = ("frequency_hz", "time_s")
OWN_COLUMN = r"(real|imaginary|magnitude)(_\d+)?"
"""Names of the columns of result tables: the first column, and a pattern for the others."""


def _c_defines(problem: DftProblem) -> dict[str, str]:
    return {
        "REAL_T": host_c_type(problem.real),
        "SIGNAL_PARTS": "1" if problem.kind == "r2c" else "2",
        "RESULT_PARTS": "1" if problem.kind == "c2r" else "2",
    }


def _c_arguments(problem: DftProblem, inputs: Arrays, outputs: Arrays) -> tuple[Any, ...]:
    signal = inputs["signal"].astype(problem.real) if problem.half else inputs["signal"]
    how = int(problem.inverse), float(problem.scale)
    return (signal, outputs["spectrum"], problem.n, problem.batch, *how)


def _signals(arrays: Arrays, options: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Return a user's array with the axis of the transform last."""
    signal = np.atleast_1d(arrays["signal"])
    return np.moveaxis(signal, axis_of(options, signal.ndim), -1)


def _of_real(problem: DftProblem, halves: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return half spectra of real signals, in which frequencies 0 and n / 2 are real.

    NumPy ignores their imaginary components, but not every library does.
    """
    halves.imag[:, :1] = 0
    if problem.n % 2 == 0:
        halves.imag[:, problem.n // 2 :] = 0
    return halves


@dataclass(frozen=True)
class _Axis:
    """The axis of a result: its values, in ascending order, and label."""

    order: np.ndarray[Any, Any]
    points: np.ndarray[Any, Any]
    label: str
    column: str


class Dft(Operation[DftProblem]):
    """The discrete Fourier transform, by its definition and fast."""

    solver = DFT_SOLVER
    calls = CALLS
    summary = "Transform signals to their spectra, by the definition or by FFT."
    options = (
        Option("n", int, 4096, "number of samples of a transform"),
        Option("batch", int, 1, "number of transforms"),
        Option(
            "dtype",
            str,
            "complex64",
            "type of the samples; real ones have n // 2 + 1 frequencies",
            tuple(SAMPLE_TYPES),
        ),
        Option("inverse", bool, False, "transform spectra back to samples"),
        Option("norm", str, "backward", "which direction is scaled, as in NumPy", NORMS),
        Option(
            "axis",
            int,
            None,
            "axis of an input file to transform along",
            default_text="the last, -1",
        ),
        Option(
            "rate",
            float,
            None,
            "samples per second of each row, for frequencies in Hz in plots and tables",
            about_data=True,
            with_files=True,
            default_text="that of a .wav file",
        ),
    )
    size_option = "n"
    check_cases = (
        MappingProxyType({"n": SMOOTH, "batch": 5, "inner": 1}),
        MappingProxyType({"n": PRIME, "batch": 3, "inner": 1, "inverse": True, "scale": 0.5}),
    )
    inputs = ("signal",)
    formats = (*FORMATS, *SOUNDS)
    output = "spectrum"
    references = (
        *in_c("dft.c", "dft", _c_defines, _c_arguments, cost=lambda problem: problem.terms),
        HostReference("numpy", numpy_dft),
        HostReference("scipy", scipy_dft, needs("scipy"), threaded=True),
        HostReference("fftw", fftw_dft, needs("pyfftw"), threaded=True, builds=True),
        from_host(CALLS, "vkfft"),
        in_torch(torch_on_host, "spectrum"),
        from_host(CALLS, "cupy"),
    )

    def _options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        chosen = self.with_defaults(options)
        rate = chosen["rate"]
        if rate is not None and not (rate > 0 and math.isfinite(rate)):
            raise InvalidProblem(
                f"rate must be a positive number of samples per second, not {rate}"
            )
        return chosen

    def problem(self, **options: Any) -> DftProblem:
        """Return the problem that the options describe."""
        chosen = self._options(options)
        refuse_axis(options)
        return self._described(chosen, chosen["n"], np.dtype(chosen["dtype"]), chosen["batch"])

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[DftProblem, Arrays]:
        """Transform along an axis; real numbers become complex unless `dtype` is real.

        Half spectra are transformed back to `n` samples, by default an even number.
        """
        problem = self._problem_of(arrays, options)
        (batch, length, _), dtype = problem.signal
        given = _signals(arrays, options)
        if given.shape[-1] != length:
            raise InvalidProblem(
                f"the transform of {counted(problem.n, 'real sample')} has "
                f"{counted(length, 'frequency', 'frequencies')}, not {given.shape[-1]}"
            )
        signal = convert(given, dtype).reshape(batch, length, 1)
        return problem, {
            "signal": _of_real(problem, signal.copy()) if problem.kind == "c2r" else signal
        }

    def _problem_of(self, arrays: Arrays, options: Mapping[str, Any]) -> DftProblem:
        """Return the problem of a user's array, or of the options if there is none."""
        if not arrays:
            return self.problem(**options)
        chosen = self._options(options)
        signal = _signals(arrays, options)
        samples = np.dtype(chosen["dtype"]) if "dtype" in options else complex_dtype(signal.dtype)
        *_, n = signal.shape
        halves = chosen["inverse"] and samples.kind != "c"
        if halves:
            n = chosen["n"] if "n" in options else 2 * (n - 1)
            if n < 1 and "n" not in options:
                raise InvalidProblem(
                    "fewer than two frequencies do not tell how many samples they make; give n"
                )
        refuse_given(options, ("batch",) if halves else ("n", "batch"))
        return self._described(chosen, n, samples, math.prod(signal.shape[:-1]) if n else 0)

    @staticmethod
    def _described(
        chosen: Mapping[str, Any], n: int, samples: np.dtype[Any], batch: int
    ) -> DftProblem:
        scale = scale_of(n, chosen["norm"], chosen["inverse"])
        return DftProblem.of(n, samples, batch, chosen["inverse"], scale)

    def present(self, arrays: Arrays, outputs: Arrays, **options: Any) -> np.ndarray[Any, Any]:
        """Return the result with its axis at the position of that of the user's array."""
        result = outputs[self.output]
        if not arrays:
            return result[..., 0]
        signals = _signals(arrays, options)
        shaped = result.reshape(*signals.shape[:-1], result.shape[1])
        return np.moveaxis(shaped, -1, axis_of(options, signals.ndim))

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse the tables of frequencies or times that `columns` makes."""
        first, *others = names or ("",)
        if first in OWN_AXES and all(re.fullmatch(OWN_COLUMN, name) for name in others):
            raise InvalidProblem(
                f"the columns {', '.join(names[:4])} are a result of dft in a table, not signals; "
                "write results that are read again without --rate, or as .npy"
            )

    def reading(self, arrays: Arrays, **options: Any) -> str:
        """Return in words along which axis a table is transformed."""
        columns = " transforms the columns"
        return reading_along(arrays.get("signal"), options, "transforming", columns)

    def curves(self, arrays: Arrays, outputs: Arrays, **options: Any) -> Curves:
        """Return magnitudes in decibels by frequency, or the result of an inverse by time."""
        axis = self._axis(arrays, options)
        rows = outputs["spectrum"][:MOST_CURVES, axis.order, 0]
        shown, y_label = rows.real, "real part"
        if not options.get("inverse"):
            magnitude = np.abs(rows)
            limits = np.finfo(magnitude.dtype)
            largest = max(float(np.max(magnitude, initial=0)), float(limits.tiny))
            # Values below the rounding error of the largest one are not significant.
            shown = 20 * np.log10(np.maximum(magnitude / largest, limits.eps))
            y_label = "magnitude in dB, the largest at 0"
        curves = {f"row {index}": row for index, row in enumerate(shown)}
        return Curves(axis.points, curves, axis.label, y_label)

    def columns(
        self, arrays: Arrays, outputs: Arrays, names: Sequence[str] = (), **options: Any
    ) -> dict[str, np.ndarray[Any, Any]] | None:
        """Return frequencies (or times) and the numbers of each row, if the rate is known."""
        if not options.get("rate"):
            return None
        axis = self._axis(arrays, options)
        columns = {axis.column: axis.points}
        rows = outputs["spectrum"][:, axis.order, 0]
        for index, row in enumerate(rows):
            place = f"_{index}" if len(rows) > 1 else ""
            columns[f"real{place}"] = row.real
            if row.dtype.kind == "c":
                columns[f"imaginary{place}"] = row.imag
            if not options.get("inverse"):
                columns[f"magnitude{place}"] = np.abs(row)
        return columns

    def _axis(self, arrays: Arrays, options: Mapping[str, Any]) -> _Axis:
        """Return the axis of the result.

        The spectrum of a real signal is shown up to half the rate, since the others mirror it.
        """
        rate = options.get("rate")
        problem = self._problem_of(arrays, options)
        n = problem.n
        order = np.arange(n)
        if problem.inverse:
            if rate:
                return _Axis(order, order / rate, "time in seconds", "time_s")
            return _Axis(order, order, "sample", "sample")
        cycles = np.where(order > (n - 1) // 2, order - n, order)
        order = np.argsort(cycles, kind="stable")
        if problem.kind == "r2c" or (arrays and arrays["signal"].dtype.kind != "c"):
            order = np.arange(n)[: n // 2 + 1]
            cycles = np.arange(n)
        label = "frequency in Hz" if rate else "frequency in cycles per sample"
        return _Axis(order, cycles[order] * (rate or 1) / max(n, 1), label, "frequency_hz")

    def generate(self, problem: DftProblem, seed: int, **options: Any) -> Arrays:
        """Return normal random numbers."""
        rng = np.random.default_rng(seed)
        shape, dtype = problem.signal
        signal = np.empty(shape, dtype)
        for part in (signal.real, signal.imag) if dtype.kind == "c" else (signal,):
            part[...] = rng.standard_normal(shape, problem.real.type)
        return {"signal": _of_real(problem, signal) if problem.kind == "c2r" else signal}

    def expected(self, problem: DftProblem, inputs: Arrays) -> Arrays:
        """Return the transform by NumPy in double precision."""
        wide = inputs["signal"].astype(np.complex128 if problem.kind != "r2c" else np.float64)
        return numpy_dft(problem, {"signal": wide}, 1)

    def compare(
        self, problem: DftProblem, inputs: Arrays, expected: Arrays, actual: Arrays
    ) -> Difference:
        """Compare each transform in the Euclidean norm."""
        tolerance = TOLERANCE[problem.dtype.name]
        return compare(expected["spectrum"], actual["spectrum"], tolerance)


# --- errors


def compare(right: Array, given: Array, tolerance: float) -> Difference:
    """Compare each transform along the middle axis in the Euclidean norm.

    An error of a transform spreads over all its frequencies, so errors are relative to the norm
    of all. If the expected result is not finite throughout, the given one must not be either.
    """
    if given.shape != right.shape or given.dtype != right.dtype:
        return replace(UNLIKE, rel_l2=np.inf)
    wide = np.complex128 if right.dtype.kind == "c" else np.float64
    top, size, far = np.zeros((3, right.shape[0], 1, right.shape[2]))
    infinite_too = np.zeros(top.shape, bool)
    max_abs, max_rel, strange = np.float64(0), np.float64(0), False
    with np.errstate(invalid="ignore", over="ignore"):
        for rows, block in _blocks(right.shape):
            largest = np.max(np.abs(right[block].astype(wide)), axis=1, keepdims=True)
            np.maximum(top[rows], largest, out=top[rows])
            infinite_too[rows] |= ~np.all(np.isfinite(given[block]), axis=1, keepdims=True)
        infinite = ~np.isfinite(top)
        unit = np.where(infinite | (top == 0), 1, top)  # squares would overflow
        for rows, block in _blocks(right.shape):
            expected = right[block].astype(wide)
            error, magnitude = np.abs(expected - given[block]), np.abs(expected)
            size[rows] += np.sum((magnitude / unit[rows]) ** 2, axis=1, keepdims=True)
            far[rows] += np.sum((error / unit[rows]) ** 2, axis=1, keepdims=True)
            error = np.where(infinite[rows], 0, error)
            relative = error / (magnitude + 1e-12)
            finite = np.isfinite(relative)
            strange |= not finite.all()
            max_abs = np.maximum(max_abs, np.max(error))
            max_rel = np.maximum(max_rel, np.max(relative, where=finite, initial=0))
        size, far = np.sqrt(size), np.sqrt(far)
    far[infinite], size[infinite] = np.where(infinite_too, 0, np.inf)[infinite], 1
    worst = largest_share(far, tolerance * size)
    if strange and not worst <= 1:
        max_rel = np.float64(np.inf)
    rel_l2 = largest_share(far, size)
    return Difference(float(max_abs), float(max_rel), error_over_bound=worst, rel_l2=rel_l2)


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, tuple[slice, slice]]]:
    """Yield the blocks of an array: transforms, and their values."""
    batch, n, inner = shape
    if not batch * n * inner:
        return
    values = max(1, min(n, BLOCK // inner))
    transforms = max(1, BLOCK // (values * inner))
    for row in range(0, batch, transforms):
        rows = slice(row, row + transforms)
        for first in range(0, n, values):
            yield rows, (rows, slice(first, first + values))


DFT = Dft()
