"""The problem of a discrete Fourier transform."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import Work
from opencl_lab.ops.fft.passes.builder import PlanBuilder, real_dtype
from opencl_lab.ops.fft.passes.factors import is_smooth, prime_factors
from opencl_lab.ops.problem import Problem

COMPLEX64 = np.dtype("complex64")
COMPLEX_TYPES = ("complex64", "complex128")
SAMPLE_TYPES = {
    **{name: name for name in COMPLEX_TYPES},
    "float16": "complex64",
    "float32": "complex64",
    "float64": "complex128",
}
"""Types of a signal's samples, and the types of their spectra."""
NormName: TypeAlias = Literal["backward", "ortho", "forward"]
Norm: TypeAlias = NormName | None
NORMS = get_args(NormName)
KINDS = ("c2c", "r2c", "c2r")


def complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the complex type that holds numbers of `dtype`.

    float32, float16 and complex64 become complex64; all others, integers among them, complex128, as
    in SciPy. Raise `InvalidProblem` if `dtype` is not numeric.
    """
    if dtype.kind not in "biufc" or dtype.itemsize > 16 or dtype.char == "g":
        raise InvalidProblem(f"cannot transform values of dtype {dtype}")
    single = dtype.kind in "fc" and np.finfo(dtype).bits <= 32
    return np.dtype(np.complex64 if single else np.complex128)


def scale_of(n: int, norm: str | None, inverse: bool) -> float:
    """Return the factor of a transform of length `n` for one of NumPy's norms, or None."""
    norm = "backward" if norm is None else norm
    if norm not in NORMS:
        raise InvalidProblem(f"norm must be one of {', '.join(NORMS)}, not {norm!r}")
    if norm == "ortho":
        return 1 / math.sqrt(max(n, 1))
    return 1 / max(n, 1) if (norm == "backward") == inverse else 1.0


@dataclass(frozen=True)
class DftProblem(Problem):
    """Transforms of length `n` along the middle axis of an array of batch x n x inner."""

    sizes = ("n", "batch", "inner")
    layout = ("dtype", "kind", "largest_prime")

    n: int  # samples of a transform
    # complex64 or complex128, in the machine's byte order: the type of the spectrum. Real signals
    # have the type of its components.
    dtype: np.dtype[Any] = COMPLEX64
    # Sizes of the array before and after the transformed axis.
    batch: int = 1
    inner: int = 1
    # Whether the sign of the exponent is positive. Always true for ``c2r`` and false for ``r2c``,
    # whatever is given.
    inverse: bool = False
    scale: float = 1.0  # factor of the result
    # ``c2c``; ``r2c``, real signal to the first n // 2 + 1 frequencies; or ``c2r``, these to a real
    # signal. The last two need ``inner`` 1.
    kind: str = "c2c"
    half: bool = False  # whether a real signal is stored in float16; its spectrum is complex64

    def __post_init__(self) -> None:
        self._check_sizes()
        if self.dtype.name not in COMPLEX_TYPES or not self.dtype.isnative:
            raise InvalidProblem(
                f"cannot transform to dtype {self.dtype}; supported: {', '.join(COMPLEX_TYPES)}"
            )
        if self.kind not in KINDS:
            raise InvalidProblem(
                f"there is no kind {self.kind!r} of transform; there are: {', '.join(KINDS)}"
            )
        if self.kind != "c2c":
            object.__setattr__(self, "inverse", self.kind == "c2r")
        if self.kind != "c2c" and self.inner != 1:
            raise InvalidProblem("real transforms run along the last axis: inner must be 1")
        if self.half and (self.kind != "r2c" or self.dtype != COMPLEX64):
            raise InvalidProblem("half storage is for real signals with a spectrum of complex64")
        if self.n * self.batch * self.inner >= 2**60:
            raise InvalidProblem("that many samples are more than a 64-bit index counts")

    @classmethod
    def of(
        cls, n: int, samples: np.dtype[Any], batch: int, inverse: bool, scale: float
    ) -> DftProblem:
        """Return the problem of rows of `n` samples: of their type, and back to it if `inverse`.

        Raise `InvalidProblem` for types that are not in `SAMPLE_TYPES`, and for an inverse to
        float16.
        """
        if samples.name not in SAMPLE_TYPES:
            raise InvalidProblem(
                f"cannot transform samples of {samples}; supported: {', '.join(SAMPLE_TYPES)}"
            )
        half = samples == np.float16
        if half and inverse:
            raise InvalidProblem(
                "float16 is read and never written: take float32 to transform back to real signals"
            )
        real = "c2r" if inverse else "r2c"
        return cls(
            n,
            np.dtype(SAMPLE_TYPES[samples.name]),
            batch,
            inverse=inverse,
            scale=scale,
            kind="c2c" if samples.kind == "c" else real,
            half=half,
        )

    @property
    def largest_prime(self) -> int:
        """Largest prime factor of `n`, or 0 if GPUs have no butterfly of it and convolve."""
        return max(prime_factors(self.n) or (1,)) if is_smooth(self.n) else 0

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and the largest prime as JSON-able values."""
        return {**super().as_dict(), "largest_prime": self.largest_prime}

    @property
    def count(self) -> int:
        """Number of transforms."""
        return self.batch * self.inner

    @property
    def terms(self) -> int:
        """Number of products in the direct sums."""
        return self.n * self.bins * self.count

    @property
    def bins(self) -> int:
        """Frequencies of a transform in memory."""
        return self.n if self.kind == "c2c" or not self.n else self.n // 2 + 1

    @property
    def real(self) -> np.dtype[Any]:
        """Type of the real and imaginary components."""
        return real_dtype(self.dtype)

    @property
    def signal(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and type of the input."""
        if self.kind == "c2r":
            return (self.batch, self.bins, self.inner), self.dtype
        real = np.dtype(np.float16) if self.half else self.real
        return (self.batch, self.n, self.inner), real if self.kind == "r2c" else self.dtype

    @property
    def spectrum(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and type of the result."""
        if self.kind == "c2r":
            return (self.batch, self.n, self.inner), self.real
        return (self.batch, self.bins, self.inner), self.dtype

    @property
    def title(self) -> str:
        """Number and type of the samples, and number of transforms."""
        real = "float16" if self.half else self.real
        samples = f"{self.n:,} {self.dtype if self.kind == 'c2c' else real} samples"
        transforms = f"{self.count:,} transforms of {samples}" if self.count != 1 else samples
        return f"{transforms}, inverse" if self.inverse else transforms

    @property
    def work(self) -> Work:
        """The usual count of 5 n log2 n (half of it if real), one read and one write."""
        flops = 5.0 * self.n * math.log2(max(self.n, 1)) * self.count
        moved = sum(
            math.prod(shape) * dtype.itemsize for shape, dtype in (self.signal, self.spectrum)
        )
        return Work(flops=flops if self.kind == "c2c" else flops / 2, bytes=float(moved))


def builder_of(problem: DftProblem) -> PlanBuilder:
    """Return a plan builder with the input and the output of a problem."""
    builder = PlanBuilder(problem.dtype)
    builder.add("signal", "in", *problem.signal)
    builder.add("spectrum", "out", *problem.spectrum)
    return builder
