"""A model of distributed calls: steps as data, and a clock for each rank that goes through them.

```text
 rank 0   sort |wait| count | Allreduce |  exchange  | merge   |
 rank 1   sort      | count | Allreduce |  exchange  | merge |
                    all wait for the last one; then all are at the same time
```

A step is a frozen dataclass whose `advance` moves the clocks. Computing takes each rank a little
longer or shorter, as was measured; in a step that synchronises, the last rank counts. So waiting
grows with the ranks by itself. `scaling_operations` has the steps of each operation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scaling_machine import Machine

COMPUTE, EXCHANGE, COUNT, AGREE, PLAN = "computing", "exchange", "counting", "agreeing", "planning"
WAIT, LINK = "waiting", "to and from devices"
MOST_PANELS = 64
"""That are simulated of one product."""
LABELS = (COMPUTE, LINK, EXCHANGE, COUNT, AGREE, PLAN, WAIT)


class Clocks:
    """The time of each rank, and what it was spent for."""

    def __init__(self, machine: Machine, ranks: int, seed: int = 0):
        self.machine, self.ranks = machine, ranks
        self.now = np.zeros(ranks)
        self.spent = dict.fromkeys(LABELS, 0.0)
        self._rng = np.random.default_rng(seed)

    def pass_(self, seconds: Any, label: str) -> None:
        """Let each rank spend some time, or all the same."""
        self.now = self.now + seconds
        self.spent[label] += float(np.mean(seconds))

    def until(self, when: Any, label: str) -> None:
        """Let each rank go on at a time that is not before its own."""
        self.pass_(np.maximum(0.0, when - self.now), label)

    def together(self) -> None:
        """Let all ranks wait for the last one."""
        self.until(self.now.max(), WAIT)

    def varied(self, seconds: float, rate: str) -> Any:
        """Return what computing takes each rank."""
        spread = self.machine.spread.get(rate, 0.0)
        if not spread:
            return np.full(self.ranks, seconds)
        drawn = self._rng.standard_normal(self.ranks).clip(-2.0, 4.0)
        return seconds * np.maximum(0.1, 1 + spread * drawn)


class Step(Protocol):
    """A part of a call."""

    def advance(self, clocks: Clocks) -> None:
        """Move the clocks on."""


@dataclass(frozen=True)
class Result:
    """What a call takes: until the last rank is ready, and the means of ranks by label."""

    seconds: float
    spent: dict[str, float]


def run(steps: Sequence[Step], machine: Machine, ranks: int, seed: int = 0) -> Result:
    """Return what the steps take on so many ranks of a machine."""
    clocks = Clocks(machine, ranks, seed)
    for step in steps:
        step.advance(clocks)
    clocks.together()
    return Result(float(clocks.now[0]), clocks.spent)


@dataclass(frozen=True)
class Compute:
    """A plain call of each rank.

    Parameters
    ----------
    rate : str
        Of the machine.
    work : float
        Of the rank with most; the layouts of opencl_lab differ by one row, or one key.
    label : str
    calls : int
        How many calls of this work.
    """

    rate: str
    work: float
    label: str = COMPUTE
    calls: int = 1

    def advance(self, clocks: Clocks) -> None:
        """Move the clocks on."""
        seconds = self.calls * clocks.machine.rates[self.rate](self.work)
        clocks.pass_(clocks.varied(seconds, self.rate), self.label)


@dataclass(frozen=True)
class Fresh:
    """A copy of so many bytes to memory of the rank that is new."""

    nbytes: float

    def advance(self, clocks: Clocks) -> None:
        """Move the clocks on."""
        clocks.pass_(clocks.machine.node.fresh(self.nbytes), EXCHANGE)


@dataclass(frozen=True)
class Link:
    """So many bytes between the host and the device of each rank."""

    nbytes: float

    def advance(self, clocks: Clocks) -> None:
        """Move the clocks on."""
        clocks.pass_(self.nbytes / clocks.machine.link, LINK)


@dataclass(frozen=True)
class Plan:
    """Index arithmetic of each rank over all others, where there are several nodes.

    On one node an exchange of very little was measured with it.
    """

    name: str
    times: int = 1

    def advance(self, clocks: Clocks) -> None:
        """Move the clocks on."""
        table = clocks.machine.plan.get(self.name)
        if table is not None and clocks.machine.nodes(clocks.ranks) > 1:
            clocks.pass_(self.times * table(clocks.ranks), PLAN)


@dataclass(frozen=True)
class Agree:
    """The small collective calls of an operation: arguments are the same, nobody has an error.

    With `digest`, all are small sums.
    """

    operation: str
    digest: bool = False

    def advance(self, clocks: Clocks) -> None:
        """Move the clocks on."""
        machine, ranks = clocks.machine, clocks.ranks
        calls = machine.calls.get(self.operation, {})
        same = machine.agreed(ranks) if self.digest else machine.same(ranks)
        seconds = same * (calls.get("allgather", 0) + calls.get("alltoall", 0))
        seconds += machine.agreed(ranks) * (calls.get("allreduce", 0) + calls.get("bcast", 0))
        clocks.together()
        clocks.pass_(seconds, AGREE)


@dataclass(frozen=True)
class Fixed:
    """What a call takes besides, whatever its size: Python, threads that begin."""

    seconds: float

    def advance(self, clocks: Clocks) -> None:
        """Move the clocks on."""
        clocks.pass_(self.seconds, AGREE)


@dataclass(frozen=True)
class Sum:
    """An `Allreduce` of so many bytes."""

    nbytes: float
    label: str = COUNT

    def advance(self, clocks: Clocks) -> None:
        """Move the clocks on."""
        clocks.together()
        clocks.pass_(clocks.machine.allreduce(self.nbytes, clocks.ranks), self.label)


@dataclass(frozen=True)
class Fence:
    """Ranks of one node wait until all have written to the memory that they share."""

    def advance(self, clocks: Clocks) -> None:
        """Move the clocks on."""
        clocks.together()
        clocks.pass_(clocks.machine.node.exchange, EXCHANGE)


@dataclass(frozen=True)
class Reduce:
    """Groups of ranks on different nodes add up so many bytes; each keeps a part of the sum."""

    nbytes: float
    group: int

    def advance(self, clocks: Clocks) -> None:
        """Move the clocks on."""
        network = clocks.machine.network
        assert network is not None
        per_byte = 1 / clocks.machine.share() + 1 / network.reduce
        seconds = math.ceil(math.log2(self.group)) * network.latency
        clocks.together()
        clocks.pass_(seconds + self.nbytes * (1 - 1 / self.group) * per_byte, EXCHANGE)


@dataclass(frozen=True)
class Exchange:
    """Each rank sends a part of what it has to every other one.

    On one node each copies straight to where it is used. Over nodes there is a message for each
    pair of ranks, or with `two_level` for each pair of nodes: then the ranks of a node first gather
    in their memory what goes to the same node, share these messages out, and scatter what came.

    Parameters
    ----------
    nbytes : float
        That each rank has, those for itself included.
    run : float
        Bytes that lie together on both sides.
    two_level : bool
    """

    nbytes: float
    run: float
    two_level: bool = False

    def messages(self, machine: Machine, ranks: int) -> float:
        """Return how many messages each rank sends to other nodes."""
        nodes = machine.nodes(ranks)
        if self.two_level:
            return (nodes - 1) / machine.node.ranks
        return ranks - ranks / nodes

    def sent(self, machine: Machine, ranks: int) -> float:
        """Return how many bytes each rank sends to other nodes."""
        return self.nbytes * (1 - 1 / machine.nodes(ranks))

    def advance(self, clocks: Clocks) -> None:
        """Move the clocks on."""
        machine, ranks = clocks.machine, clocks.ranks
        if ranks == 1:
            return
        nodes, node, network = machine.nodes(ranks), machine.node, machine.network
        sent = self.sent(machine, ranks)
        copies = 1.0 if nodes == 1 else 2.0 if self.two_level else 1 / nodes
        copied = node.copied(copies * self.nbytes, self.run) if node.ranks > 1 else 0.0
        clocks.pass_(copied, EXCHANGE)
        clocks.together()
        if nodes > 1:
            assert network is not None
            seconds = network.latency + self.messages(machine, ranks) * network.message
            seconds += sent / machine.share()
            if not self.two_level:  # then it is packed, and unpacked to new memory
                seconds += sent / network.pack + node.fresh(self.nbytes)
            clocks.pass_(seconds, EXCHANGE)
        else:
            clocks.pass_(node.exchange, EXCHANGE)


@dataclass(frozen=True)
class Halo:
    """Messages of neighbours, beside a computation that does not need them."""

    nbytes: float
    beside: Compute

    def advance(self, clocks: Clocks) -> None:
        """Move the clocks on."""
        machine, node = clocks.machine, clocks.machine.node
        posted, progress = clocks.now, 1.0
        if machine.nodes(clocks.ranks) == 1:
            seconds = 2 * node.barrier + node.copied(2 * self.nbytes, self.nbytes)
        else:
            assert machine.network is not None
            progress = machine.network.progress
            seconds = machine.network.latency + 2 * self.nbytes / machine.share()
        near = posted.copy()
        near[1:] = np.maximum(near[1:], posted[:-1])
        near[:-1] = np.maximum(near[:-1], posted[1:])
        self.beside.advance(clocks)
        if clocks.ranks > 1:
            clocks.until(near + seconds, EXCHANGE)
            clocks.pass_((1 - progress) * seconds, EXCHANGE)


@dataclass(frozen=True)
class Panels:
    """SUMMA: panels of A along the rows of a grid and of B along its columns, then products.

    A panel travels while the one before is multiplied, as far as the network goes on by itself.

    Parameters
    ----------
    grid : tuple of int
        Rows, columns, layers.
    shape : tuple of float
        Of each rank's part of the product.
    widths : sequence of float
        Columns of A that are broadcast at once.
    itemsize : int
    """

    grid: tuple[int, int, int]
    shape: tuple[float, float]
    widths: tuple[float, ...] = field(repr=False)
    itemsize: int = 4

    def seconds(self, machine: Machine, width: float) -> float:
        """Return what both broadcasts of a panel take."""
        rows, columns, _ = self.grid
        near = machine.node.ranks
        along = machine.broadcast(
            self.shape[0] * width * self.itemsize, columns, min(near, columns)
        )
        across = max(1, min(rows, near // columns))
        return along + machine.broadcast(self.shape[1] * width * self.itemsize, rows, across)

    def advance(self, clocks: Clocks) -> None:
        """Move the clocks on."""
        machine, (rows, columns, layers) = clocks.machine, self.grid
        progress = 1.0 if machine.network is None else machine.network.progress

        def last(times: Any) -> Any:
            """Return when the last rank of the row and of the column of each one is there."""
            cube = times.reshape(layers, rows, columns)
            found = np.maximum(cube.max(2, keepdims=True), cube.max(1, keepdims=True))
            return np.broadcast_to(found, cube.shape).reshape(-1)

        posted, before = clocks.now, clocks.now
        stride = math.ceil(len(self.widths) / MOST_PANELS)
        start, spent = clocks.now, dict(clocks.spent)
        for width in self.widths[::stride]:
            takes = self.seconds(machine, width)
            ready = progress * last(posted) + (1 - progress) * last(before) + takes
            clocks.until(ready, EXCHANGE)
            posted = clocks.now
            if math.isfinite(machine.link):
                Link((sum(self.shape)) * width * self.itemsize).advance(clocks)
            Compute("gemm", 2 * self.shape[0] * self.shape[1] * width).advance(clocks)
            before = clocks.now
        # A panel stands for those that are left out.
        more = len(self.widths) / max(1, len(self.widths[::stride]))
        clocks.now = start + more * (clocks.now - start)
        for label, seconds in spent.items():
            clocks.spent[label] = seconds + more * (clocks.spent[label] - seconds)
