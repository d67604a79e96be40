"""The machines that predictions are for, and the problems.

What is measured comes from docs/data/scaling and docs/performance; what is assumed is marked so,
and stands in docs/scaling.md, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scaling_machine import Machine, Network, Node, Table, measured, rate
from scaling_model import Result
from scaling_operations import NOW, Changes, predicted

RANKS = (64, 1024, 10_000)
CURVE = (1, 4, 16, 64, 256, 1024, 4096, 10_000)
CPU_NETWORK = Network(
    latency=2e-6,  # assumed, as all of these
    message=0.5e-6,
    bandwidth=12.5e9,  # 100 Gbit/s for a node
    progress=0.0,  # large messages move within calls of MPI
    pack=5e9,
)
GPU_NETWORK = Network(2e-6, 0.5e-6, 8 * 50e9, progress=0.0, pack=5e9)  # 400 Gbit/s for each GPU
CPU_MEMORY, GPU_MEMORY = 128e9, 1024e9  # assumed
GPU_LINK = 22e9  # measured: between pageable memory of the host and an H100, staged


def cpu_cluster(document: Mapping[str, Any], ranks: int = 4) -> Machine:
    """Return nodes like a measured machine, with so many ranks each."""
    node = measured(document, ranks)
    return replace(
        node,
        name="CPU nodes",
        node=replace(node.node, memory=CPU_MEMORY),
        network=CPU_NETWORK,
        **_arithmetic(document),
    )


def stated_cpu(document: Mapping[str, Any]) -> Machine:
    """Return nodes of 16 cores with 4 ranks each, from pages of figures.

    Rates of a rank are a fourth of those of one process on 16 cores of an Intel Xeon. What these
    pages do not have is what two ranks on two cores of an AMD EPYC measured, so half of it.
    """
    other = measured(document, 2)
    points = {name: 2 * table.points[-1][0] / table.points[-1][1] for name, table in
              other.rates.items()}  # fmt: skip
    rates = {
        "gemm": rate(1.62e12 / 4, 2e-4),  # 4096^3 in 84.6 ms
        "sort": rate(552e6 / 4, 5e-4),  # 10^8 keys in 181 ms
        "merge": rate(552e6 / 4, 5e-4),  # assumed to be like a sort
        "conv2d": rate(5.26e9 / 4, 2e-4),  # 16384^2 in 51.0 ms
        "fft row": rate(1.3e9 / 4, 2e-4),  # 2^24 in 12.9 ms
        "fft rows": rate(3.7e9 / 4, 2e-4),  # 1,024 rows of 16,384 in 4.50 ms
        "fft columns": rate(3.7e9 / 4, 2e-4),  # assumed to be like rows
        "twiddle": rate(points["twiddle"]),
        "transpose": rate(points["transpose"]),
        "count": other.rates["count"],
    }
    return Machine(
        "CPU nodes", _node(4, 10e9, other.node, CPU_MEMORY), CPU_NETWORK, rates,
        spread=dict.fromkeys(rates, 0.03), calls=other.calls, **_arithmetic(document),
    )  # fmt: skip


def gpu_cluster(document: Mapping[str, Any]) -> Machine:
    """Return nodes of 8 GPUs with a rank for each: arrays are on the host, as they are now."""
    other = measured(document, 2)
    rates = {
        "gemm": rate(48e12, 5e-5),  # 4096^3 in 2.85 ms, H200
        "sort": rate(40e9, 5e-5),  # 2^25 keys in 0.828 ms, H200
        "merge": rate(40e9, 5e-5),  # is a sort on GPUs
        "conv2d": rate(329e9, 2e-5),  # 8192^2 by 7 x 7 in 0.204 ms, H200
        "fft row": rate(73e9, 2e-5),  # 2^24 in 0.229 ms, H200
        "fft rows": rate(129e9, 2e-5),  # 1,024 rows of 16,384 in 0.130 ms, H200
        "fft columns": rate(129e9, 2e-5),  # assumed to be like rows
        "twiddle": rate(1e9),  # assumed: NumPy by 16 threads of the host
        "transpose": rate(1e9),  # likewise
        "count": other.rates["count"],
    }
    return Machine(
        "GPU nodes", _node(8, 10e9, other.node, GPU_MEMORY), GPU_NETWORK, rates,
        spread=dict.fromkeys(rates, 0.01), calls=other.calls, link=GPU_LINK,
        **_arithmetic(document),
    )  # fmt: skip


def _node(ranks: int, copies: float, like: Node, memory: float) -> Node:
    """Return a node each of whose ranks copies so many bytes a second, which is assumed."""
    copy = {64: rate(copies / 3), 1024: rate(copies / 1.5), 16384: rate(copies)}
    return replace(like, ranks=ranks, copy=copy, fresh=rate(copies / 2), memory=memory)


def _arithmetic(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what index arithmetic and unpickling for many ranks take."""
    found = document["plan"]
    tables = {
        name: Table(tuple((float(x), float(y)) for x, y in rows), grows=True)
        for name, rows in found.items()
        if name != "unpickle"
    }
    return {"plan": tables, "unpickle": found["unpickle"]}


@dataclass(frozen=True)
class Scale:
    """What all ranks work on together: `weak` for each rank alike, or one `strong` problem."""

    weak: float
    strong: int
    what: str

    def size(self, operation: str, ranks: int, weak: bool) -> int:
        """Return the n of an operation on so many ranks."""
        if operation in ("sort",):
            return round(self.weak * ranks) if weak else self.strong
        if operation == "fft":  # both factors are multiples of the ranks
            points = self.weak * ranks if weak else self.strong
            return ranks**2 * max(1, round(points / ranks**2))
        return round(self.weak * math.sqrt(ranks)) if weak else self.strong


PROBLEMS: dict[str, dict[str, Scale]] = {
    "CPU nodes": {
        "gemm": Scale(4096, 65_536, "rows of square matrices"),
        "sort": Scale(25e6, 10**10, "keys"),
        "fft": Scale(2.0**24, 2**32, "points of one row"),
        "conv2d": Scale(8192, 131_072, "rows of a square image"),
    },
    "GPU nodes": {
        "gemm": Scale(16_384, 262_144, "rows of square matrices"),
        "sort": Scale(2e8, 10**11, "keys"),
        "fft": Scale(2.0**27, 2**36, "points of one row"),
        "conv2d": Scale(16_384, 524_288, "rows of a square image"),
    },
}
FIXED = {
    "gemm": Changes(planned=False, digest=True, progress=True),
    "sort": Changes(planned=False, digest=True, digit=2, two_level=True),
    "fft": Changes(planned=False, digest=True, two_level=True),
    "conv2d": Changes(planned=False, digest=True, blocks=True),
}
"""All changes that help at 10,000 ranks."""


_known: dict[Any, tuple[int, Result, float]] = {}


def outcome(
    machine: Machine, operation: str, ranks: int, weak: bool, changes: Changes = NOW
) -> tuple[int, Result, float]:
    """Return n, what the call takes, and its efficiency.

    Efficiency is the time of one rank for the whole problem, over the ranks and their time.
    """
    key = id(machine), operation, ranks, weak, changes
    if key not in _known:
        n = PROBLEMS[machine.name][operation].size(operation, ranks, weak)
        found = predicted(operation, n, ranks, machine, changes)
        alone = predicted(operation, n, 1, machine, changes).seconds
        _known[key] = n, found, alone / ranks / found.seconds
    return _known[key]


def stops(machine: Machine, operation: str, changes: Changes = NOW) -> int | None:
    """Return from how many ranks on efficiency is half of that of one node, where all have as much.

    In powers of two; None if never, up to the ranks of the largest prediction.
    """
    first = outcome(machine, operation, machine.node.ranks, True, changes)[2]
    for power in range(1, 14):
        ranks = 1 << power
        if ranks > machine.node.ranks and (
            outcome(machine, operation, ranks, True, changes)[2] < first / 2
        ):
            return ranks
    return None


def fastest(machine: Machine, operation: str, changes: Changes = NOW) -> tuple[int, float]:
    """Return on how many ranks, in powers of two, one problem takes least, and its seconds."""
    found = [
        (outcome(machine, operation, 1 << power, False, changes)[1].seconds, 1 << power)
        for power in range(1, 15)
    ]
    seconds, ranks = min(found)
    return ranks, seconds
