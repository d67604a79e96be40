"""The studies of the source reports, and the study of other libraries.

Sizes are those of the reports at full scale, and suit two cores at small scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from opencl_lab.lab.engine.request import AlgorithmRun
from opencl_lab.lab.studies import answers, scaling
from opencl_lab.lab.studies.descriptor import Part, Question, Study, sizes
from opencl_lab.lab.studies.over_ranks import SCALING
from opencl_lab.lab.studies.peers import PEERS

WORKERS = (1, 2, 4)
ORDERS = ("random", "sorted", "reversed")
TILES: tuple[AlgorithmRun, ...] = tuple(
    ("tiled", f"TILE={tile}", {"TILE": tile}) for tile in (8, 16, 32)
)
PRODUCTS = ("c:seq", "c:blocked", "c:omp", "blas")
"""References for matrix products on one computer."""
RIGHT = Question("Are all results right?", answers.all_right)
FASTEST = Question("Which is the fastest, and by how much?", answers.fastest)


def _shapes(*shapes: tuple[int, int, int]) -> list[Mapping[str, int]]:
    return [dict(zip("mnk", shape, strict=True)) for shape in shapes]


def _runs(*names: str) -> tuple[AlgorithmRun, ...]:
    return tuple((name, "", {}) for name in names)


def _crossover(ours: str, *others: str) -> Question:
    names = f"{', '.join(others[:-1])} and {others[-1]}" if len(others) > 1 else others[0]
    asked = f"From which size on is {ours} faster than {names}?"
    return Question(asked, partial(answers.crossing, ours=ours, others=others))


def _ratios(asked: str, *pairs: tuple[str, str]) -> Question:
    """Return the question how much faster the first of each pair is than the second."""
    return Question(asked, partial(answers.ratios, pairs=pairs))


def _within(asked: str, largest: float, relative: bool) -> Question:
    return Question(asked, partial(answers.within, largest=largest, relative=relative))


CONV2D = Study(
    "conv2d",
    "a 3 x 3 filter: sequential C, OpenMP, and the device with weights in constant memory",
    [
        Part(
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
        Part(
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
        Part(
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
        Part(
            "dgemm",
            "gemm",
            sizes("size", (256, 512), (1024, 2048, 4096)),
            (*_runs("naive"), *TILES),
            ("c:seq", "c:blocked", "c:omp", "mpi:c"),
            {"dtype": "float64"},
            WORKERS,
        )
    ],
    [
        Question(
            "How do time, speed-up and efficiency change with workers?",
            partial(scaling.by_workers, references=("c:omp", "mpi:c")),
        ),
        Question(
            "Does local memory beat plain reads on this device, and why?",
            partial(
                scaling.local_memory, basic="opencl:naive", local="opencl:tiled", element_bytes=8
            ),
        ),
        _within("Is the largest relative difference below 1e-8?", 1e-8, relative=True),
        RIGHT,
    ],
)

BLOCKED = Study(
    "blocked",
    "blocked against simple matrix products, squares and rectangles, all methods compared",
    [
        Part(
            "squares",
            "gemm",
            sizes("size", (256, 512, 1024), (256, 512, 1024)),
            _runs("naive", "tiled", "blocked"),
            PRODUCTS,
        ),
        Part(
            "rectangles",
            "gemm",
            {
                "small": _shapes((64, 256, 128), (300, 200, 100), (257, 129, 513)),
                "full": _shapes(
                    (64, 1024, 512), (300, 200, 100), (1000, 500, 2000), (2048, 64, 4096)
                ),
            },
            _runs("naive", "tiled", "blocked"),
            PRODUCTS,
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
        Part(
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
        for order in ORDERS
    ],
    [
        _crossover("opencl:odd-even-merge", "c:seq", "c:omp", "numpy"),
        _crossover(answers.DEVICE, "c:seq", "c:omp", "numpy"),
        Question("Does the order of the keys matter?", answers.orders),
        FASTEST,
        RIGHT,
    ],
)

STUDIES = {study.name: study for study in (CONV2D, DFT, GEMM, DGEMM, BLOCKED, SORT, PEERS, SCALING)}
