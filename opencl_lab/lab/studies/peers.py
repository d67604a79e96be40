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


def _random_lengths(count: int) -> list[int]:
    """Return different lengths from 16 to 2^20, evenly spread by their logarithms."""
    rng, found = Random(32), set[int]()
    while len(found) < count:
        found.add(round(2 ** rng.uniform(4, 20)))
    return list(found)


def _batches(lengths: Sequence[tuple[int, int]]) -> list[dict[str, int]]:
    """Return transforms of some lengths and numbers of rows, the fewest points first."""
    return [{"n": n, "batch": rows} for n, rows in sorted(lengths, key=prod)]


def _parts(
    name: str,
    operation: str,
    small: Sequence[int] = (),
    cpu: Sequence[int] = (),
    gpu: Sequence[int] = (),
    against: Sequence[str] = (),
    *,
    size: str = "n",
    algorithm: str = "auto",
    options: Mapping[str, Any],
    points: Points | None = None,
) -> list[Part]:
    """Return the part for CPUs, and the part for other devices with all libraries on them.

    A kind of device without sizes has no part. `points` are those of all devices.
    """
    runs: list[AlgorithmRun] = [(algorithm, "", {})]
    of_cpus, of_others = (points or sizes(size, small, full) for full in (cpu, gpu))
    on_cpus = Part(name, operation, of_cpus, runs, against, options, kinds=("cpu",))
    on_others = replace(
        on_cpus,
        points=of_others,
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
        *_parts(
            "fft_awkward",
            "dft",
            against=("scipy", "fftw", "torch"),
            algorithm="fft",
            options={"dtype": "complex64"},
            points={"small": _batches([(211, 20), (300, 19)]), "full": _batches(AWKWARD)},
        ),
        *_parts(
            "fft_random",
            "dft",
            against=("scipy", "fftw", "torch"),
            algorithm="fft",
            options={"dtype": "complex64"},
            points={
                "small": _batches([(n, 1) for n in (34, 131, 211, 635)]),
                "full": _batches([(n, max(1, POINTS_OF_BATCH // n)) for n in _random_lengths(200)]),
            },
        ),
    ],
    [
        Question("How does the best other library compare?", answers.beside_best),
        Question("How far does that range?", partial(answers.range_beside_best, least=0.8)),
        Question("Which is the fastest at the largest size?", answers.fastest),
        Question("Are all results right?", answers.all_right),
    ],
)
