"""A model on paper of distributed calls on many ranks, and what docs/scaling.md shows of it.

A `CallTime` adds up what the ranks spend their time for, on average; where they wait for each
other, also how late the last one is. A `Machine` is one of docs/data/scaling, measured by all ranks
of a node at once, or one that is stated there. All times are seconds, all sizes bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import NormalDist, median
from typing import Any

import numpy as np

from opencl_lab.distributed.grid import Grid, grids
from opencl_lab.distributed.summa import _panels
from opencl_lab.distributed.transform_task import factors_of
from opencl_lab.ops.gemm.problem import GemmProblem

DATA = Path(__file__).parents[1] / "docs/data/scaling"
COMPUTE, EXCHANGE, COUNT, AGREE, PLAN = "computing", "exchange", "counting", "agreeing", "planning"
WAIT, LINK = "waiting", "to and from devices"
LABELS = (COMPUTE, LINK, EXCHANGE, COUNT, AGREE, PLAN, WAIT)
CLOSE = 0.2
"""How far predictions may be from what is measured."""
MOST_RUNS, TAPS = 8, 5
"""Most runs that are merged, more are sorted; rows of the filter."""
SHARE = 0.25
"""Part of a rank's memory that its copy of C may take where there are several layers."""
SMALL = {"gemm": 64, "sort": 4096, "fft": 64, "conv2d": 64}
"""Sizes of the small calls that were timed; for `fft`, of p ranks, times p^2."""
RANKS = (64, 1024, 10_000)
CURVE = (1, 4, 16, 64, 256, 1024, 4096, 10_000)
Table = Callable[[float], float]


def table(rows: Any, grows: bool = False) -> Table:
    """Return seconds by work: straight lines through points, on logarithmic axes.

    Below the first point the time is that of a call. Above the last one the rate stays as it is, or
    if it `grows`, the time goes on as between the last two points.
    """
    x, y = np.log(np.array(rows, float)).T
    power = (y[-1] - y[-2]) / (x[-1] - x[-2]) if grows else 1.0

    def seconds(work: float) -> float:
        if work <= 0:
            return 0.0
        at = math.log(work)
        return math.exp(np.interp(at, x, y) + power * max(0.0, at - x[-1]))

    return seconds


def rate(call: float, per_second: float) -> Table:
    """Return seconds of a call that takes some time, and then has a constant rate."""
    return lambda work: call + work / per_second if work > 0 else 0.0


NOTHING = rate(0.0, math.inf)


@dataclass(frozen=True)
class Network:
    """Messages between nodes; `bandwidth` is that of a node, which its ranks share."""

    latency: float = 2e-6
    message: float = 0.5e-6  # of a rank, for each of many
    bandwidth: float = 12.5e9
    progress: float = 0.0  # share of a message that goes on while the ranks compute
    pack: float = 5e9
    reduce: float = 4e9


@dataclass(frozen=True, eq=False)
class Machine:
    """Nodes, and what a rank computes with its share of one.

    `copy` has seconds of copies to shared memory by the bytes that lie together, `fixed` those of
    small collective calls, `calls` how many of them an operation makes, `small` those of very small
    distributed calls, and `plan` those of index arithmetic by the number of ranks.
    """

    name: str
    node: int  # its ranks
    rates: Mapping[str, Table]
    spread: Mapping[str, float] = field(default_factory=dict)
    copy: Mapping[int, Table] = field(default_factory=dict)
    fresh: Table = NOTHING
    allreduce: Table = NOTHING
    fixed: Mapping[str, float] = field(default_factory=dict)
    calls: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    small: Mapping[str, float] = field(default_factory=dict)
    network: Network | None = None
    link: float = math.inf
    plan: Mapping[str, Table] = field(default_factory=dict)
    unpickle: float = 0.0
    memory: float = math.inf

    def copied(self, nbytes: float, run: float) -> float:
        """Return seconds of a copy in runs of so many bytes, each at least one that was timed."""
        runs = sorted(self.copy)
        if not runs:
            return 0.0
        nbytes *= max(1.0, runs[0] / max(run, 1.0))
        logs = [math.log(max(self.copy[one](nbytes), 1e-30)) for one in runs]
        return math.exp(np.interp(math.log(max(run, 1.0)), np.log(runs), logs))


@dataclass(frozen=True)
class Assumptions:
    """How an operation is run, by default as it is now."""

    digit: int = 8  # bits of a key that a round of counting finds
    planned: bool = True  # index arithmetic over all ranks
    digest: bool = False  # arguments are compared by a sum, not told to all
    blocks: bool = False  # images are cut along both axes
    resident: bool = False  # the network takes data from the devices
    progress: bool = False  # a thread moves messages while the ranks compute


NOW, PLANNED = Assumptions(), Assumptions(planned=False)


class CallTime:
    """What the ranks of a machine spend their time for in one distributed call."""

    def __init__(self, machine: Machine, ranks: int, how: Assumptions = NOW):
        network = machine.network
        if how.progress and network is not None:
            network = replace(network, progress=1.0)
        self.machine, self.ranks, self.how = machine, ranks, how
        self.nodes, self.network = math.ceil(ranks / machine.node), network or Network()
        self.share = self.network.bandwidth / machine.node
        self.spent = dict.fromkeys(LABELS, 0.0)
        self._variance = 0.0

    @property
    def seconds(self) -> float:
        """What the call takes, until the last rank is ready."""
        self.together()
        return sum(self.spent.values())

    def late(self, ranks: int) -> float:
        """Return by how many standard deviations the last rank is late (Blom 1958)."""
        return NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25)) if ranks > 1 else 0.0

    def together(self) -> None:
        """Let all ranks wait for the last one."""
        self.spent[WAIT] += math.sqrt(self._variance) * self.late(self.ranks)
        self._variance = 0.0

    def compute(self, name: str, work: float, label: str = COMPUTE, calls: int = 1) -> None:
        """Let each rank make plain calls."""
        seconds = calls * self.machine.rates[name](work)
        self.spent[label] += seconds
        self._variance += (seconds * self.machine.spread.get(name, 0.0)) ** 2

    def link(self, nbytes: float) -> None:
        """Copy so many bytes between the host and the device of each rank."""
        self.spent[LINK] += 0.0 if self.how.resident else nbytes / self.machine.link

    def plan(self, name: str, times: int = 1) -> None:
        """Let each rank compute indices of all others; on one node the exchange has it."""
        if self.how.planned and self.nodes > 1 and name in self.machine.plan:
            self.spent[PLAN] += times * self.machine.plan[name](self.ranks)

    def hops(self) -> float:
        """Return the seconds of a tree of small messages between nodes."""
        return math.ceil(math.log2(self.nodes)) * self.network.latency

    def agree(self, operation: str) -> None:
        """Let ranks tell each other that arguments are the same, and nobody has an error."""
        calls, fixed = self.machine.calls.get(operation, {}), self.machine.fixed
        agreed = fixed.get("agreed", 0.0) + 2 * self.hops()
        told = max(0, self.ranks - self.machine.node) * self.machine.unpickle
        same = agreed if self.how.digest else fixed.get("same", 0.0) + 2 * self.hops() + told
        self.spent[AGREE] += same * (calls.get("allgather", 0) + calls.get("alltoall", 0))
        self.spent[AGREE] += agreed * (calls.get("allreduce", 0) + calls.get("bcast", 0))

    def sum(self, nbytes: float) -> None:
        """Add up counts: in the nodes, then between them by halves, or whole ones by doubling."""
        self.together()
        self.spent[COUNT] += self.machine.allreduce(nbytes)
        each, add = 1 / self.network.bandwidth, 1 / self.network.reduce
        doubling = self.hops() + math.ceil(math.log2(self.nodes)) * nbytes * (each + add)
        halves = 2 * self.hops() + (1 - 1 / self.nodes) * nbytes * (2 * each + add)
        self.spent[COUNT] += min(doubling, halves)

    def messages(self) -> float:
        """Return how many messages each rank sends to other nodes in an exchange."""
        return self.ranks - self.ranks / self.nodes

    def sent(self, nbytes: float) -> float:
        """Return how many of so many bytes each rank sends to other nodes in an exchange."""
        return nbytes * (1 - 1 / self.nodes)

    def exchange(self, nbytes: float, run: float) -> None:
        """Let each rank send a part of so many bytes to every other one; `run` lie together."""
        machine, copies = self.machine, 1 / self.nodes
        seconds = machine.copied(copies * nbytes, run) if machine.node > 1 else 0.0
        self.together()
        if self.nodes == 1:
            seconds += machine.fixed.get("exchange", 0.0)
        else:  # what goes to other nodes is packed, and unpacked to new memory
            sent = self.sent(nbytes)
            seconds += self.network.latency + self.messages() * self.network.message
            seconds += sent / self.share + sent / self.network.pack + machine.fresh(nbytes)
        self.spent[EXCHANGE] += seconds

    def broadcast(self, nbytes: float, ranks: int, inside: int) -> float:
        """Return seconds of a broadcast, by a tree, or scattered and gathered again."""
        if ranks == 1:
            return 0.0
        near = self.machine.copied(nbytes, nbytes) if inside > 1 else 0.0
        groups = math.ceil(ranks / inside)
        if groups == 1:
            return near + self.machine.fixed.get("barrier", 0.0)
        hops, latency = math.ceil(math.log2(groups)), self.network.latency
        ring = (hops + groups - 1) * self.network.message + hops * latency
        ring += 2 * nbytes * (groups - 1) / groups / self.share
        return near + min(hops * (latency + nbytes / self.share), ring)

    def summa(self, n: int, grid: Grid) -> None:
        """Broadcast panels of A and B and multiply them, each while the next one travels."""
        rows, columns, layers = grid.rows, grid.columns, grid.layers
        m, w, near = math.ceil(n / rows), math.ceil(n / columns), self.machine.node
        across = max(1, min(rows, near // columns))
        for begin, end in _panels(GemmProblem(n, n, n), grid, 0):
            width = end - begin
            takes = self.broadcast(4 * m * width, columns, min(near, columns))
            takes += self.broadcast(4 * w * width, rows, across)
            self.link(4 * (m + w) * width)
            seconds = self.machine.rates["gemm"](2 * m * w * width)
            self.spent[EXCHANGE] += takes - self.network.progress * min(takes, seconds)
            self.spent[COMPUTE] += seconds
            # With progress a rank may be a panel later than others without keeping them.
            late = (1 - self.network.progress / 2) * self.late(rows + columns - 1)
            self.spent[WAIT] += seconds * self.machine.spread.get("gemm", 0.0) * late
        if layers > 1:
            each = 1 / self.share + 1 / self.network.reduce
            self.spent[EXCHANGE] += math.ceil(math.log2(layers)) * self.network.latency
            self.spent[EXCHANGE] += 4 * m * w * (1 - 1 / layers) * each

    # --------------------------------------------------------------------------- operations

    def gemm(self, n: int) -> None:
        """Multiply square matrices of n rows."""
        if self.nodes == 1:  # all of B is in the memory of the node
            rows = math.ceil(n / self.ranks)
            self.exchange(4 * rows * n, 4 * n)
            self.link(4 * (2 * rows * n + n * n))
            return self.compute("gemm", 2.0 * rows * n * n)
        room = SHARE * self.machine.memory / min(self.machine.node, self.ranks) / 4
        grid = best_grid(n, self.ranks, room)
        self.plan("grid")
        self.plan("exchange", 3)
        self.summa(n, grid)
        for _ in range(3):
            self.exchange(4 * n * n / self.ranks, 4 * math.ceil(n / grid.columns))
        return self.link(4 * math.ceil(n / grid.rows) * math.ceil(n / grid.columns))

    def sort(self, n: int) -> None:
        """Sort n keys: sorts of each rank, rounds of counting, one exchange."""
        keys, tried = math.ceil(n / self.ranks), ((1 << self.how.digit) - 1) * (self.ranks - 1)
        self.link(16 * keys)
        self.compute("sort", keys)
        self.sum(8)
        rounds = 32 // self.how.digit
        for codes in [tried] * rounds + [self.ranks - 1] * 2:
            self.compute("count", codes * (math.floor(math.log2(max(2, keys))) + 2), COUNT)
            self.sum(8 * codes)
        self.plan("rows")
        self.exchange(4 * keys, 4 * keys / self.ranks)
        self.compute("merge" if self.ranks <= MOST_RUNS else "sort", keys)

    def fft(self, n: int) -> None:
        """Transform a row of n numbers, as a matrix: columns, then rows, in natural order."""
        points, run = math.ceil(n / self.ranks), 8 * factors_of(n, self.ranks)[1] / self.ranks
        for place, name in enumerate(("fft columns", "fft rows", "transpose")):
            if self.nodes == 1 and place:  # what others have written to shared memory is read
                self.together()
                self.spent[EXCHANGE] += self.machine.fixed.get("exchange", 0.0)
            else:
                self.plan("exchange")
                self.exchange(8 * points, run)
            self.link(16 * points if place < 2 else 0)
            self.compute(name, points)
            if place == 0:
                self.compute("twiddle", points)

    def conv2d(self, n: int) -> None:
        """Filter an image of n rows; halos travel beside what does not need them."""
        along, around = best_cut(self.ranks) if self.how.blocks else (self.ranks, 1), TAPS // 2
        rows, columns = (math.ceil(n / parts) for parts in along)
        border = columns if along[1] == 1 else rows + columns
        inside = max(0, rows - 2 * around) * (columns - 2 * around * (along[1] > 1))
        self.plan("halo")
        self.link(8 * rows * columns)
        nbytes, progress = 4.0 * around * border, self.network.progress
        seconds = self.network.latency + 2 * nbytes / self.share
        if self.nodes == 1:
            seconds = 2 * self.machine.fixed.get("barrier", 0.0)
            seconds, progress = seconds + self.machine.copied(2 * nbytes, nbytes), 1.0
        self.spent[EXCHANGE] += max(0.0, seconds - self.machine.rates["conv2d"](inside))
        self.spent[EXCHANGE] += (1 - progress) * seconds + self.machine.fresh(12 * TAPS * border)
        self.compute("conv2d", inside)
        self.compute("conv2d", 3 * around * border, calls=2)


def predicted(
    operation: str, n: int, ranks: int, machine: Machine, how: Assumptions = NOW
) -> CallTime:
    """Return what a distributed call takes; with one rank, it is the plain call."""
    call = CallTime(machine, ranks, how)
    if ranks == 1:
        work = {"gemm": 2.0 * n**3, "conv2d": n * n}.get(operation, n)
        moved = {"gemm": 12.0 * n * n, "sort": 8 * n, "fft": 16 * n, "conv2d": 8 * n * n}
        call.link(moved[operation])
        call.compute("fft row" if operation == "fft" else operation, work)
        return call
    call.agree(operation)
    if operation in machine.small:  # what a very small call takes beyond its steps
        zero: dict[str, Table] = dict.fromkeys(machine.rates, NOTHING)
        rates = zero | {name: machine.rates[name] for name in ("count",) if name in zero}
        calm = replace(machine, small={}, spread={}, link=math.inf, rates=rates)
        size = SMALL[operation] * (machine.node**2 if operation == "fft" else 1)
        beyond = machine.small[operation] - predicted(operation, size, machine.node, calm).seconds
        call.spent[AGREE] += max(0.0, beyond)
    getattr(call, operation)(n)
    return call


@cache
def best_grid(n: int, ranks: int, room: float = math.inf) -> Grid:
    """Return the grid of `opencl_lab.distributed.grid.best_grid`, for matrices in ``slab(0)``."""

    def sent(grid: Grid) -> float:
        m, w, k = n / grid.rows, n / grid.columns, n / grid.layers
        moved = m * k * (1 - 1 / grid.columns) + k * w * (1 - 1 / grid.rows)
        stays = 0 if grid.columns * grid.layers > 1 else n * n / ranks  # A and C are there already
        return moved + m * w * (1 - 1 / grid.layers) + 3 * n * n / ranks - 2 * stays

    fitting = (
        one for one in grids(ranks) if one.layers == 1 or n / one.rows * n / one.columns <= room
    )
    return min(fitting, key=sent)


@cache
def best_cut(ranks: int) -> tuple[int, int]:
    """Return the grid of blocks that are most alike in height and width."""
    return max((g.rows, g.columns) for g in grids(ranks) if g.layers == 1 and g.rows <= g.columns)


# ------------------------------------------------------------------------------- the machines


@cache
def documents() -> dict[str, Any]:
    """Return the files of docs/data/scaling by name."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(DATA.glob("*.json"))}


def measured(stem: str, ranks: int, **changes: Any) -> Machine:
    """Return the machine of a file, as so many ranks have measured it on one node."""
    found = documents()[stem]["ranks"][str(ranks)]
    machine = Machine(
        stem, ranks, {name: table(rows) for name, rows in found["rates"].items()}, found["spread"],
        {int(run): table(rows) for run, rows in found.get("copy", {}).items()},
        table(found["fresh"]), table(found["allreduce"]) if ranks > 1 else NOTHING,
        {name: found[name] for name in ("barrier", "agreed", "same", "exchange") if name in found},
        found.get("calls", {}), found.get("small", {}),
    )  # fmt: skip
    return replace(machine, **changes)


@cache
def machines() -> dict[str, Machine]:
    """Return the machines that are stated, like measured ones where nothing else is said."""
    plan = dict(documents()["plan"]["plan"])
    unpickle = plan.pop("unpickle")
    tables = {name: table(rows, grows=True) for name, rows in plan.items()}
    found = {}
    for one in documents()["stated"]["nodes"]:
        like = measured(*one["like"], name=one["name"], plan=tables, unpickle=unpickle)
        changes = {name: one[name] for name in ("node", "memory", "link", "small") if name in one}
        if "rates" in one:
            changes["rates"] = {**like.rates, **{k: rate(*v) for k, v in one["rates"].items()}}
            changes["copy"] = {int(run): rate(*v) for run, v in one["copy"].items()}
            changes["spread"] = dict.fromkeys(like.rates, one["spread"])
            changes["fresh"] = rate(*one["fresh"])
        found[like.name] = replace(like, network=Network(**one["network"]), **changes)
    return found


@cache
def problems(machine: str) -> dict[str, tuple[float, int, str]]:
    """Return by operation what each rank has alike, what all have together, and of what."""
    nodes = {one["name"]: one for one in documents()["stated"]["nodes"]}
    return {name: tuple(one) for name, one in nodes[machine]["problems"].items()}


@cache
def changed(operation: str) -> Assumptions:
    """Return all changes that help an operation."""
    named = documents()["stated"]["all changes that help at 10,000 ranks"]
    return replace(PLANNED, **named[operation])


@cache
def outcome(
    machine: str, operation: str, ranks: int, weak: bool, how: Assumptions = NOW
) -> tuple[float, float, dict[str, float]]:
    """Return the seconds of a call, its efficiency, and what they are spent for.

    Efficiency is the time of one rank for the whole problem, over the ranks and their time.
    """
    each, whole, _ = problems(machine)[operation]
    grown = ranks if operation in ("sort", "fft") else math.sqrt(ranks)
    n = round(each * grown) if weak else whole
    if operation == "fft":  # both factors are multiples of the ranks
        n = ranks**2 * max(1, round(n / ranks**2))
    call = predicted(operation, n, ranks, machines()[machine], how)
    alone = predicted(operation, n, 1, machines()[machine], how).seconds
    return call.seconds, alone / ranks / call.seconds, call.spent


def stops(machine: str, operation: str, how: Assumptions = NOW) -> int | None:
    """Return from how many ranks on, in powers of two, weak efficiency is half that of a node."""
    node = machines()[machine].node
    first = outcome(machine, operation, node, True, how)[1]
    counts = [1 << power for power in range(1, 14) if 1 << power > node]
    return next(
        (p for p in counts if outcome(machine, operation, p, True, how)[1] < first / 2), None
    )


def comparison(stem: str) -> list[dict[str, Any]]:
    """Return the runs of a file, with measured and predicted seconds."""
    found = []
    for one in documents()[stem]["runs"]:
        machine = measured(stem, one["ranks"])
        seconds = predicted(one["operation"], one["n"], one["ranks"], machine).seconds
        found.append({**one, "measured": median(one["seconds"]), "predicted": seconds})
    return found
