"""The steps of each distributed operation, for `scaling_model`: what opencl_lab.distributed does.

On one node data move by copies to shared memory; over several, `gemm` is SUMMA in a grid, and
exchanges are messages. `Changes` are what one may do where an operation does not scale further.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scaling_machine import NUMBER, Machine, Table
from scaling_model import (
    COUNT,
    Agree,
    Compute,
    Exchange,
    Fence,
    Fixed,
    Fresh,
    Halo,
    Link,
    Panels,
    Plan,
    Reduce,
    Result,
    Step,
    Sum,
    run,
)

MOST_RUNS = 8
"""That are merged; more are sorted."""
TAPS = 5
"""Rows and columns of the filter."""
SHARE = 0.25
"""Part of a rank's memory that its copy of C may take where there are several layers."""
SMALL = {"gemm": 64, "sort": 4096, "fft": 64, "conv2d": 64}
"""Sizes of the small calls that were timed; for `fft`, of p ranks, times p^2."""
Grid = tuple[int, int, int]


@dataclass(frozen=True)
class Changes:
    """How an operation is run, by default as it is now.

    Parameters
    ----------
    digit : int
        Bits of a key that a round of counting finds.
    two_level : bool
        Exchanges by node.
    panel : int
        Most columns of A that are broadcast at once.
    natural : bool
        Whether a transform of one row ends with an exchange to the natural order.
    planned : bool
        Whether each rank does index arithmetic over all ranks.
    digest : bool
        Whether ranks compare arguments by a sum of digests, in place of telling all to all.
    blocks : bool
        Whether images are cut along both axes.
    resident : bool
        Whether data stay on the devices, from where the network takes them.
    progress : bool
        Whether a thread moves messages while the ranks compute.
    """

    digit: int = 8
    two_level: bool = False
    panel: int = 1024
    natural: bool = True
    planned: bool = True
    digest: bool = False
    blocks: bool = False
    resident: bool = False
    progress: bool = False


NOW = Changes()


def predicted(
    operation: str, n: int, ranks: int, machine: Machine, changes: Changes = NOW, seed: int = 0
) -> Result:
    """Return what a distributed call takes; with one rank, it is the plain call.

    Parameters
    ----------
    operation : {"gemm", "sort", "fft", "fft2", "conv2d"}
    n : int
        Rows of the square matrices or images; keys; points of the row.
    """
    if changes.resident:
        machine = replace(machine, link=math.inf)
    if changes.progress and machine.network is not None:
        machine = replace(machine, network=replace(machine.network, progress=1.0))
    if not changes.planned:
        machine = replace(machine, plan={})
    return run(steps_of(operation, n, ranks, machine, changes), machine, ranks, seed)


def steps_of(
    operation: str, n: int, ranks: int, machine: Machine, changes: Changes = NOW
) -> list[Step]:
    """Return the steps of a call."""
    if ranks == 1:
        return _alone(operation, n)
    steps: list[Step] = [Agree(operation.replace("fft2", "fft"), changes.digest)]
    steps.append(Fixed(_fixed(operation, machine)))
    return steps + STEPS[operation](n, ranks, machine, changes)


def _fixed(operation: str, machine: Machine) -> float:
    """Return what a very small call on one node takes beyond its steps."""
    ranks, name = machine.node.ranks, operation.replace("fft2", "fft")
    if name not in machine.small or ranks == 1:
        return 0.0
    zero = Table(((1e-9, 0.0),))  # the tables begin with larger calls
    rates = {one: table if one == "count" else zero for one, table in machine.rates.items()}
    calm = replace(machine, small={}, spread={}, link=math.inf, rates=rates)
    n = SMALL[name] * ranks**2 if name == "fft" else SMALL[name]
    return max(0.0, machine.small[name] - run(steps_of(name, n, ranks, calm), calm, ranks).seconds)


def _alone(operation: str, n: int) -> list[Step]:
    work = {"gemm": 2.0 * n**3, "sort": n, "fft": n, "fft2": n * n, "conv2d": n * n}[operation]
    size = {"gemm": 12.0 * n * n, "sort": 8 * n, "fft": 16 * n, "fft2": 16 * n * n}
    rate = {"fft": "fft row", "fft2": "fft square"}.get(operation, operation)
    return [Link(size.get(operation, 8 * n * n)), Compute(rate, work)]


def _gemm(n: int, ranks: int, machine: Machine, changes: Changes) -> list[Step]:
    if machine.nodes(ranks) == 1:  # all of B is in the memory of the node
        rows = math.ceil(n / ranks)
        return [
            Plan("exchange"),
            Exchange(4 * rows * n, 4 * n),
            Link(4 * (2 * rows * n + n * n)),
            Compute("gemm", 2.0 * rows * n * n),
        ]
    grid = best_grid(n, ranks, machine)
    rows, columns, layers = grid
    shape = math.ceil(n / rows), math.ceil(n / columns)
    exchange = Exchange(4 * n * n / ranks, 4 * shape[1], changes.two_level)
    steps: list[Step] = [Plan("grid"), Plan("exchange", 2), exchange, exchange]
    steps.append(Panels(grid, shape, tuple(panels(n / layers, rows, columns, changes.panel))))
    if layers > 1:
        steps.append(Reduce(4.0 * shape[0] * shape[1], layers))
    return [*steps, Link(4 * shape[0] * shape[1]), Plan("exchange"), exchange]


def best_grid(n: int, ranks: int, machine: Machine) -> Grid:
    """Return the grid of `opencl_lab.distributed.grid`, for square matrices in ``slab(0)``."""
    room = SHARE * machine.node.memory / min(machine.node.ranks, ranks) / 4

    def sent(grid: Grid) -> float:
        rows, columns, deep = grid
        m, w, k = n / rows, n / columns, n / deep
        panels_ = m * k * (1 - 1 / columns) + k * w * (1 - 1 / rows) + m * w * (1 - 1 / deep)
        stays = 0 if columns * deep > 1 else n * n / ranks  # then A and C are there already
        return panels_ + 3 * n * n / ranks - 2 * stays

    fitting = [grid for grid in _grids(ranks) if grid[2] == 1 or n / grid[0] * n / grid[1] <= room]
    return min(fitting, key=sent)


def _grids(ranks: int) -> Iterator[Grid]:
    divisors = [one for one in range(1, ranks + 1) if ranks % one == 0]
    for layers in divisors:
        for rows in divisors:
            if ranks // layers % rows == 0:
                yield rows, ranks // layers // rows, layers


def panels(k: float, rows: int, columns: int, most: int) -> list[float]:
    """Return the widths of panels: each is on one column of the grid, and on one row."""
    cuts = {0.0, float(k)}
    for parts in (rows, columns):
        cuts |= {k * part / parts for part in range(parts)}
    found: list[float] = []
    for begin, end in pairwise(sorted(cuts)):
        count = math.ceil((end - begin) / most)
        found += [(end - begin) / count] * count
    return found


def _sort(n: int, ranks: int, machine: Machine, changes: Changes) -> list[Step]:
    keys = math.ceil(n / ranks)
    tried = ((1 << changes.digit) - 1) * (ranks - 1)
    steps: list[Step] = [Link(8 * keys), Compute("sort", keys), Sum(NUMBER)]
    for _ in range(32 // changes.digit):
        steps += [_counted(tried, keys), Sum(NUMBER * tried)]
    steps += [_counted(ranks - 1, keys)] * 2 + [Sum(NUMBER * (ranks - 1))] * 2
    run_ = 4 * keys / ranks
    steps += [Plan("rows"), Exchange(4 * keys, run_, changes.two_level), Link(8 * keys)]
    return [*steps, Compute("merge" if ranks <= MOST_RUNS else "sort", keys)]


def _counted(tried: float, keys: float) -> Compute:
    """Return the binary searches of so many codes."""
    return Compute("count", tried * (math.floor(math.log2(max(2, keys))) + 2), COUNT)


def _fft(n: int, ranks: int, machine: Machine, changes: Changes) -> list[Step]:
    """From rows of a matrix, by columns and rows again, to columns."""
    _, n2 = factors(n, ranks)
    points = math.ceil(n / ranks)
    move = _moved(points, n2 / ranks, changes)
    columns: list[Step] = [Link(16 * points), Compute("fft columns", points)]
    rows: list[Step] = [Compute("twiddle", points), Link(16 * points), Compute("fft rows", points)]
    if machine.nodes(ranks) == 1:  # by the factors on the way, and read where the others wrote
        rows.insert(1, Fence())
        last: list[Step] = [Fence()]
    else:
        rows[1:1] = last = move
    return [
        *move, *columns, *rows, *((*last, Compute("transpose", points)) if changes.natural else ()),
    ]  # fmt: skip


def factors(n: int, ranks: int) -> tuple[int, int]:
    """Return the rows and columns of the matrix that a row of numbers is."""
    numbers = np.arange(1, math.isqrt(n) + 1)
    divisors = numbers[n % numbers == 0].tolist()
    n1 = max(divisors, key=lambda one: (one % ranks == 0 and n // one % ranks == 0, one))
    return n1, n // n1


def _fft2(n: int, ranks: int, machine: Machine, changes: Changes) -> list[Step]:
    """From slab 0 to slab 1."""
    points = math.ceil(n * n / ranks)
    return [
        Link(16 * points), Compute("fft rows", points), *_moved(points, n / ranks, changes),
        Link(16 * points), Compute("fft columns", points),
    ]  # fmt: skip


def _moved(points: float, columns: float, changes: Changes) -> list[Step]:
    return [Plan("exchange"), Exchange(8 * points, 8 * columns, changes.two_level)]


def _conv2d(n: int, ranks: int, machine: Machine, changes: Changes) -> list[Step]:
    along = best_cut(ranks) if changes.blocks else (ranks, 1)
    around = TAPS // 2
    rows, columns = (math.ceil(n / parts) for parts in along)
    border = columns if along[1] == 1 else rows + columns
    inside = max(0, rows - 2 * around) * (columns - 2 * around * (along[1] > 1))
    edge = Compute("conv2d", 3 * around * border, calls=2)
    return [
        Plan("halo"),
        Link(8 * rows * columns),
        Halo(4 * around * border, Compute("conv2d", inside)),
        Fresh(4 * 3 * TAPS * border),
        edge,
    ]


def best_cut(ranks: int) -> tuple[int, int]:
    """Return the grid of blocks that are most alike in height and width."""
    return max((r, c) for r, c, layers in _grids(ranks) if layers == 1 and r <= c)


STEPS: dict[str, Callable[[int, int, Machine, Changes], list[Step]]] = {
    "gemm": _gemm,
    "sort": _sort,
    "fft": _fft,
    "fft2": _fft2,
    "conv2d": _conv2d,
}
