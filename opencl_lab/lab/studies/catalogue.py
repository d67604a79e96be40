"""The studies: those of the source reports, other libraries, and ranks of MPI.

Sizes are those of the reports at full scale, and suit two cores at small scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from random import Random
from types import MappingProxyType
from typing import Any

from opencl_lab.lab.engine.request import AlgorithmRun
from opencl_lab.lab.studies import answers
from opencl_lab.lab.studies.descriptor import Points, Question, Study, StudyPart, sizes

RIGHT = Question("Are all results right?", answers.all_right)
FASTEST = Question("Which is the fastest, and by how much?", answers.fastest)


def _runs(*names: str) -> tuple[AlgorithmRun, ...]:
    return tuple((name, "", {}) for name in names)


def _shapes(*shapes: tuple[int, int, int]) -> list[Mapping[str, int]]:
    return [dict(zip("mnk", shape, strict=True)) for shape in shapes]


def _crossover(ours: str, *others: str) -> Question:
    names = f"{', '.join(others[:-1])} and {others[-1]}" if len(others) > 1 else others[0]
    asked = f"From which size on is {ours} faster than {names}?"
    return Question(asked, partial(answers.crossing, ours=ours, others=others))


def _ratios(asked: str, *pairs: tuple[str, str]) -> Question:
    """Return the question how much faster the first of each pair is than the second."""
    return Question(asked, partial(answers.ratios, pairs=pairs))


def _within(asked: str, largest: float, relative: bool) -> Question:
    return Question(asked, partial(answers.within, largest=largest, relative=relative))


# ------------------------------------------------------------------------- the source reports

CONV2D = Study(
    "conv2d",
    "a 3 x 3 filter: sequential C, OpenMP, and the device with weights in constant memory",
    [
        StudyPart(
            "conv2d",
            "conv2d",
            sizes("size", (256, 512, 1024), (256, 1024, 4096, 16384)),
            (
                ("naive", "constant", {"CONSTANT_WEIGHTS": True}),
                ("tiled", "constant", {"CONSTANT_WEIGHTS": True}),
                ("auto", "", {}),
            ),
            ("c:seq", "c:omp", "opencv"),
            {"ksize": 3},
        )
    ],
    [
        FASTEST,
        _crossover("opencl:naive[constant]", "c:seq", "c:omp"),
        _crossover(answers.DEVICE, "c:seq", "c:omp", "opencv"),
        RIGHT,
    ],
)

DFT = Study(
    "dft",
    "the direct sum: sequential C, OpenMP, the device plain and by shared tiles; and the FFT",
    [
        StudyPart(
            "dft",
            "dft",
            sizes("n", (512, 1024, 2048), (512, 2048, 8192, 32768)),
            _runs("direct-naive", "direct-tiled", "fft"),
            ("c:seq", "c:omp", "numpy"),
            {"dtype": "complex64"},
        )
    ],
    [
        FASTEST,
        _crossover("opencl:direct-tiled", "c:seq", "c:omp"),
        _ratios(
            "How much faster is the tiled direct sum, sharing twiddle factors, than the plain one?",
            ("opencl:direct-tiled", "opencl:direct-naive"),
        ),
        RIGHT,
    ],
)

GEMM = Study(
    "gemm",
    "float32 products: the naive loop, BLAS, the device, and where the device overtakes them",
    [
        StudyPart(
            "gemm",
            "gemm",
            sizes("size", (32, 64, 128, 256, 512), (64, 128, 256, 512, 2048, 4096, 16384)),
            _runs("naive", "auto"),
            ("c:seq", "blas"),
        )
    ],
    [_crossover(answers.DEVICE, "c:seq", "blas"), FASTEST, RIGHT],
)

DGEMM = Study(
    "dgemm",
    "float64 products by workers: blocked C, OpenMP, MPI; the device plain and with tiles",
    [
        StudyPart(
            "dgemm",
            "gemm",
            sizes("size", (256, 512), (1024, 2048, 4096)),
            (*_runs("naive"), *(("tiled", f"TILE={n}", {"TILE": n}) for n in (8, 16, 32))),
            ("c:seq", "c:blocked", "c:omp", "mpi:c"),
            {"dtype": "float64"},
            workers=(1, 2, 4),
        )
    ],
    [
        Question(
            "How do time, speed-up and efficiency change with workers?",
            partial(answers.by_workers, references=("c:omp", "mpi:c")),
        ),
        Question(
            "Does local memory beat plain reads on this device, and why?",
            partial(answers.local_memory, reads="opencl:naive", tiles="opencl:tiled"),
        ),
        _within("Is the largest relative difference below 1e-8?", 1e-8, relative=True),
        RIGHT,
    ],
)

PRODUCTS: dict[str, Any] = {
    "operation": "gemm",
    "runs": _runs("naive", "tiled", "blocked"),
    "against": ("c:seq", "c:blocked", "c:omp", "blas"),
}
BLOCKED = Study(
    "blocked",
    "blocked against simple matrix products, squares and rectangles, all methods compared",
    [
        StudyPart("squares", points=sizes("size", *2 * [(256, 512, 1024)]), **PRODUCTS),
        StudyPart(
            "rectangles",
            points={
                "small": _shapes((64, 256, 128), (300, 200, 100), (257, 129, 513)),
                "full": _shapes(
                    (64, 1024, 512), (300, 200, 100), (1000, 500, 2000), (2048, 64, 4096)
                ),
            },
            **PRODUCTS,
        ),
    ],
    [
        _ratios(
            "How much faster is the blocked product than the simple one?",
            ("c:blocked", "c:seq"),
            ("opencl:blocked", "opencl:naive"),
        ),
        _within("Do all methods agree within 1e-3?", 1e-3, relative=False),
        RIGHT,
    ],
)

SORT = Study(
    "sort",
    "merge sort of 32-bit keys, random, sorted and reversed: device, C, OpenMP, library",
    [
        StudyPart(
            order,
            "sort",
            sizes(
                "n",
                (10, 100, 1_000, 10_000, 50_000),
                (10, 100, 1_000, 10_000, 50_000, 1_000_000, 16_000_000),
            ),
            _runs("odd-even-merge", "auto"),
            ("c:seq", "c:omp", "numpy"),
            {"order": order},
        )
        for order in ("random", "sorted", "reversed")
    ],
    [
        _crossover("opencl:odd-even-merge", "c:seq", "c:omp", "numpy"),
        _crossover(answers.DEVICE, "c:seq", "c:omp", "numpy"),
        Question("Does the order of the keys matter?", answers.orders),
        FASTEST,
        RIGHT,
    ],
)

# ------------------------------------------------------------------------- other libraries

AWKWARD = ((100_003, 1), (12_345, 64), (44_100, 20), (997, 1000), (15_625, 64), (1_594_323, 1))
"""Lengths with large prime factors, or of one odd prime, and numbers of rows."""
POINTS_OF_BATCH = 1 << 18
ROWS = sizes("n", (64, 300), (64, 256, 1000, 1024, 3000, 4096, 16_384))
"""Lengths of 1,024 transforms at once."""
SINGLE = (1024, 10_000, 16_384, 262_144, 1_000_000, 1_048_576)


def _random_lengths(count: int) -> list[int]:
    """Return different lengths from 16 to 2^20, evenly spread by their logarithms."""
    rng, found = Random(32), set[int]()
    while len(found) < count:
        found.add(round(2 ** rng.uniform(4, 20)))
    return list(found)


def _batches(small: Iterable[tuple[int, int]], full: Iterable[tuple[int, int]]) -> Points:
    """Return transforms of some lengths and numbers of rows, the fewest points first."""
    scales = {"small": small, "full": full}
    return {
        scale: [{"n": n, "batch": rows} for n, rows in sorted(lengths, key=prod)]
        for scale, lengths in scales.items()
    }


def _beside(
    name: str,
    operation: str,
    against: Sequence[str],
    on_cpus: Points,
    on_others: Points,
    algorithm: str = "auto",
    **options: Any,
) -> list[StudyPart]:
    """Return the part for CPUs, if it has points, and that for other devices, with the data there.

    On other devices it is beside all libraries.
    """
    on_cpu = StudyPart(name, operation, on_cpus, _runs(algorithm), against, options, kinds=("cpu",))
    others = ("gpu", "accelerator")
    there = replace(on_cpu, points=on_others, against="all", kinds=others, resident=True)
    return [part for part in (on_cpu, there) if part.points]


def _products(name: str, on_cpus: Points = MappingProxyType({}), **options: str) -> list[StudyPart]:
    """Return the parts of matrix products of another type or precision."""
    on_others = sizes("size", (64, 300), (1024, 2048, 3000, 4096, 8192))
    return _beside(name, "gemm", ("blas", "torch"), on_cpus, on_others, **options)


def _transforms(name: str, on_cpus: Points, on_others: Points, **options: Any) -> list[StudyPart]:
    """Return the parts of FFTs."""
    options["dtype"] = "complex64"
    return _beside(name, "dft", ("scipy", "fftw", "torch"), on_cpus, on_others, "fft", **options)


AWKWARD_POINTS = _batches([(211, 20), (300, 19)], AWKWARD)
RANDOM_POINTS = _batches(
    [(n, 1) for n in (34, 131, 211, 635)],
    [(n, max(1, POINTS_OF_BATCH // n)) for n in _random_lengths(200)],
)

PEERS = Study(
    "peers",
    "every operation beside the libraries that users take; on GPUs with the data there",
    [
        *_beside(
            "sort",
            "sort",
            ("numpy", "torch", "c:omp"),
            sizes("n", (1_000, 50_000), (1_000, 10_000, 100_000, 1_000_000, 10_000_000)),
            sizes("n", (1_000, 50_000), (10_000, 100_000, 1_000_000, 10_000_000, 33_554_432)),
            dtype="int32",
            order="random",
        ),
        *_beside(
            "gemm",
            "gemm",
            ("blas", "torch", "c:omp"),
            sizes("size", (64, 300), (64, 128, 256, 512, 1000, 1024, 2048, 3000)),
            sizes("size", (64, 300), (256, 512, 1000, 1024, 2048, 3000, 4096, 8192)),
            dtype="float32",
        ),
        *_products(
            "gemm_float64", sizes("size", (64, 300), (256, 1000, 2048, 3000)), dtype="float64"
        ),
        *_products("gemm_float16", dtype="float16"),
        *_products("gemm_tf32", precision="tf32"),
        *_products("gemm_3xtf32", precision="3xtf32"),
        *_beside(
            "conv2d",
            "conv2d",
            ("opencv", "scipy", "torch", "c:omp"),
            sizes("size", (256, 500), (256, 512, 1000, 1024, 2048, 3000, 4096)),
            sizes("size", (256, 500), (512, 1000, 1024, 2048, 3000, 4096, 8192)),
            dtype="float32",
            ksize=7,
        ),
        *_transforms("fft", ROWS, ROWS, batch=1024),
        *_transforms(
            "fft_single",
            sizes("n", (1_000, 65_536), (*SINGLE, 4_194_304)),
            sizes("n", (1_000, 65_536), (*SINGLE, 16_777_216)),
            batch=1,
        ),
        *_transforms("fft_awkward", AWKWARD_POINTS, AWKWARD_POINTS),
        *_transforms("fft_random", RANDOM_POINTS, RANDOM_POINTS),
    ],
    [
        Question(
            "How does the best other library compare?", partial(answers.beside_best, least=0.8)
        ),
        Question("Which is the fastest at the largest size?", answers.fastest),
        RIGHT,
    ],
)

# ------------------------------------------------------------------------- ranks of MPI


def _over_ranks(
    operation: str,
    small: Mapping[str, int],
    full: Mapping[str, int],
    grows: tuple[str, float],
    **options: Any,
) -> list[StudyPart]:
    """Return the part of one problem, and that of problems with the same work for each rank."""
    points = {"small": [small], "full": [full]}
    strong = StudyPart(f"{operation}_strong", operation, points, options=options, ranks=(1, 2))
    return [strong, replace(strong, name=f"{operation}_weak", grows=grows)]


SCALING = Study(
    "scaling",
    "gemm, sort, FFT and conv2d over ranks of MPI: of one size, and growing with the ranks",
    [
        *_over_ranks("gemm", {"size": 1024}, {"size": 8192}, ("size", 1 / 3)),
        *_over_ranks("sort", {"n": 2_000_000}, {"n": 100_000_000}, ("n", 1)),
        *_over_ranks("dft", {"n": 1 << 20}, {"n": 1 << 24}, ("n", 1), dtype="complex64"),
        *_over_ranks(
            "conv2d",
            {"height": 2048, "width": 2048},
            {"height": 16384, "width": 16384},
            ("height", 1),
            ksize=5,
        ),
    ],
    [
        Question("How do speed and efficiency change with the ranks?", answers.by_ranks),
        Question("Where does the time go?", answers.shares),
        RIGHT,
    ],
)

STUDIES = {study.name: study for study in (CONV2D, DFT, GEMM, DGEMM, BLOCKED, SORT, PEERS, SCALING)}
