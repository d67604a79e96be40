"""The study `peers`: every operation compared with the libraries that users take for it.

On CPUs all work on NumPy arrays, on GPUs all work on device data. Sizes are not only powers of two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from random import Random
from typing import Any

from opencl_lab.lab.engine.request import AlgorithmRun
from opencl_lab.lab.studies import answers
from opencl_lab.lab.studies.descriptor import Part, Points, Question, Study, sizes

ROWS = 1024
"""Transforms of a batch."""
AWKWARD = ((100_003, 1), (12_345, 64), (44_100, 20), (997, 1000), (15_625, 64), (1_594_323, 1))
"""Lengths with large prime factors, or of one odd prime, and numbers of rows."""
POINTS_OF_BATCH = 1 << 18
RANDOM = Random(32)
LENGTHS = [round(2 ** RANDOM.uniform(4, 20)) for _ in range(200)]


def _batches(lengths: Sequence[tuple[int, int]]) -> list[dict[str, int]]:
    """Return transforms of some lengths and numbers of rows, the fewest points first."""
    return [{"n": n, "batch": rows} for n, rows in sorted(lengths, key=prod)]


def _ffts(name: str, points: Points) -> list[Part]:
    """Return the parts of complex transforms, whose points have numbers of rows."""
    against, options = ("scipy", "fftw", "torch"), {"dtype": "complex64"}
    parts = _parts(name, "dft", (1,), (1,), (1,), against, algorithm="fft", options=options)
    return [replace(part, points=points) for part in parts]


def _parts(
    name: str,
    operation: str,
    small: Sequence[int],
    cpu: Sequence[int],
    gpu: Sequence[int],
    against: Sequence[str],
    *,
    size: str = "n",
    algorithm: str = "auto",
    options: Mapping[str, Any],
) -> list[Part]:
    """Return the part for CPUs, and the part for other devices with all libraries on them.

    A kind of device without sizes has no part.
    """
    runs: list[AlgorithmRun] = [(algorithm, "", {})]
    on_cpus = Part(name, operation, sizes(size, small, cpu), runs, against, options, kinds=("cpu",))
    on_others = replace(
        on_cpus,
        points=sizes(size, small, gpu),
        against="all",
        kinds=("gpu", "accelerator"),
        resident=True,
    )
    return [part for part in (on_cpus, on_others) if part.points["full"]]


def _gemm(name: str, cpu: Sequence[int] = (), **options: str) -> list[Part]:
    """Return the parts of matrix products of another type or precision."""
    gpu = (1024, 2048, 3000, 4096, 8192)
    against = ("blas", "torch")
    return _parts(name, "gemm", (64, 300), cpu, gpu, against, size="size", options=options)


PEERS = Study(
    "peers",
    "every operation beside the libraries that users take; on GPUs with the data there",
    [
        *_parts(
            "sort",
            "sort",
            (1_000, 50_000),
            (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
            (10_000, 100_000, 1_000_000, 10_000_000, 33_554_432),
            ("numpy", "numpy:avx2", "torch", "c:omp"),
            options={"dtype": "int32", "order": "random"},
        ),
        *_parts(
            "gemm",
            "gemm",
            (64, 300),
            (64, 128, 256, 512, 1000, 1024, 2048, 3000),
            (256, 512, 1000, 1024, 2048, 3000, 4096, 8192),
            ("blas", "torch", "c:omp"),
            size="size",
            options={"dtype": "float32"},
        ),
        *_gemm("gemm_float64", cpu=(256, 1000, 2048, 3000), dtype="float64"),
        *_gemm("gemm_float16", dtype="float16"),
        *_gemm("gemm_tf32", precision="tf32"),
        *_gemm("gemm_3xtf32", precision="3xtf32"),
        *_parts(
            "conv2d",
            "conv2d",
            (256, 500),
            (256, 512, 1000, 1024, 2048, 3000, 4096),
            (512, 1000, 1024, 2048, 3000, 4096, 8192),
            ("opencv", "scipy", "torch", "c:omp"),
            size="size",
            options={"dtype": "float32", "ksize": 7},
        ),
        *_parts(
            "fft",
            "dft",
            (64, 300),
            (64, 256, 1000, 1024, 3000, 4096, 16_384),
            (64, 256, 1000, 1024, 3000, 4096, 16_384),
            ("scipy", "fftw", "torch"),
            algorithm="fft",
            options={"dtype": "complex64", "batch": ROWS},
        ),
        *_parts(
            "fft_single",
            "dft",
            (1_000, 65_536),
            (1024, 10_000, 16_384, 262_144, 1_000_000, 1_048_576, 4_194_304),
            (1024, 10_000, 16_384, 262_144, 1_000_000, 1_048_576, 16_777_216),
            ("scipy", "fftw", "torch"),
            algorithm="fft",
            options={"dtype": "complex64", "batch": 1},
        ),
        *_ffts(
            "fft_awkward",
            {"small": _batches([(211, 20), (300, 19)]), "full": _batches(AWKWARD)},
        ),
        *_ffts(
            "fft_random",
            {
                "small": _batches([(n, 1) for n in LENGTHS[:4]]),
                "full": _batches([(n, max(1, POINTS_OF_BATCH // n)) for n in LENGTHS]),
            },
        ),
    ],
    [
        Question("How does the best other library compare?", answers.beside_best),
        Question("How far does that range?", partial(answers.range_beside_best, least=0.8)),
        Question("Which is the fastest at the largest size?", answers.fastest),
        Question("Are all results right?", answers.all_right),
    ],
    of_a_report=False,
)
