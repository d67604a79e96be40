"""What the model of distributed calls knows of a machine: rates, memory, network.

A machine is either measured (`measured`, from a file of `scaling_measure.py`), or stated
(`CPU_CLUSTER`, `GPU_CLUSTER`): then rates are those of docs/performance, and the network is one of
data sheets. All times are seconds, all sizes bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

Points = tuple[tuple[float, float], ...]
FIXED = ("barrier", "agreed", "same", "exchange")
NUMBER = 8
"""Bytes of a count."""


@dataclass(frozen=True)
class Table:
    """Seconds by work, through measured points; straight lines in a plot with logarithmic axes.

    Below the first point the time stays as it is, as that is the time of a call. Above the last
    one, the rate stays as it is; or if it `grows`, the time goes on as between the last two points.
    """

    points: Points
    grows: bool = False

    def __call__(self, work: float) -> float:
        """Return the seconds that some work takes."""
        if work <= 0:
            return 0.0
        last, seconds = self.points[-1]
        if work >= last:
            return float(seconds * (work / last) ** self._power)
        return math.exp(np.interp(math.log(work), *self._logarithms))

    @cached_property
    def _power(self) -> float:
        if not self.grows:
            return 1.0
        (x, y), (last, seconds) = self.points[-2:]
        return math.log(seconds / y) / math.log(last / x)

    @cached_property
    def _logarithms(self) -> Any:
        return np.log(np.array(self.points).T)


def rate(per_second: float, call: float = 0.0) -> Table:
    """Return the table of a call that takes some time, and then has a constant rate."""
    work = np.array([2.0**power for power in range(0, 61, 2)])
    return Table(tuple(zip(work.tolist(), (call + work / per_second).tolist(), strict=True)))


@dataclass(frozen=True)
class Node:
    """Ranks that share memory.

    Parameters
    ----------
    ranks : int
    copy : mapping of int to Table
        By the bytes that lie together: seconds in which a rank copies so many bytes to shared
        memory while all ranks do.
    fresh : Table
        The same for memory that is new.
    barrier, agreed, same, exchange : float
        Seconds of a barrier, of a small sum, of telling all ranks a small object, and of an
        exchange of very little: index arithmetic, and a barrier.
    allreduce : Table
        Seconds of the sum of arrays of so many bytes.
    memory : float
        Bytes of the node.
    """

    ranks: int
    copy: Mapping[int, Table]
    fresh: Table
    barrier: float
    agreed: float
    same: float
    exchange: float
    allreduce: Table
    memory: float = math.inf

    def copied(self, nbytes: float, run: float) -> float:
        """Return seconds of a copy in runs of so many bytes."""
        runs = sorted(self.copy)
        above = next((one for one in runs if one >= run), runs[-1])
        below = max((one for one in runs if one <= run), default=runs[0])
        if above == below:
            # Shorter runs than any measured: each costs what the shortest one costs.
            return self.copy[above](nbytes * max(1.0, above / max(run, 1.0)))
        part = math.log(run / below) / math.log(above / below)
        return math.exp(
            (1 - part) * math.log(self.copy[below](nbytes) or 1e-30)
            + part * math.log(self.copy[above](nbytes) or 1e-30)
        )


@dataclass(frozen=True)
class Network:
    """Messages between nodes.

    Parameters
    ----------
    latency : float
        Seconds until a small message has arrived: alpha.
    message : float
        Seconds of a rank for each of many messages, which overlap otherwise.
    bandwidth : float
        Bytes a second of a node in each direction, which its ranks share: 1 / beta.
    progress : float
        The share of a message that goes on while the ranks compute.
    pack : float
        Bytes a second at which a rank packs what does not lie together, and unpacks it.
    reduce : float
        Bytes a second that a rank adds up.
    """

    latency: float
    message: float
    bandwidth: float
    progress: float = 1.0
    pack: float = math.inf
    reduce: float = 4e9


@dataclass(frozen=True)
class Machine:
    """Nodes, and what a rank computes with its share of one.

    Parameters
    ----------
    name : str
    node : Node
    network : Network, optional
        None, if there is one node only.
    rates : mapping of str to Table
        Seconds of the plain calls by work: operations of gemm, keys, pixels, points.
    spread : mapping of str to float
        By what share of the mean the times of ranks differ.
    calls : mapping of str to mapping
        How often each operation uses each small collective call.
    link : float
        Bytes a second between the host and the device of a rank, in each direction.
    unpickle : float
        Seconds in which a rank takes what one other rank tells in `same`.
    plan : mapping of str to Table
        Seconds of index arithmetic for so many ranks, before data are sent.
    small : mapping of str to float
        Seconds of very small distributed calls on one node.
    """

    name: str
    node: Node
    network: Network | None
    rates: Mapping[str, Table]
    spread: Mapping[str, float] = field(default_factory=dict)
    calls: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    link: float = math.inf
    unpickle: float = 0.0
    plan: Mapping[str, Table] = field(default_factory=dict)
    small: Mapping[str, float] = field(default_factory=dict)

    def nodes(self, ranks: int) -> int:
        """Return over how many nodes so many ranks are spread."""
        return math.ceil(ranks / self.node.ranks)

    def share(self) -> float:
        """Return the bytes a second that each rank of a node can send to others."""
        assert self.network is not None
        return self.network.bandwidth / self.node.ranks

    def barrier(self, ranks: int) -> float:
        """Return the seconds of a barrier."""
        return (self.node.barrier if ranks > 1 else 0.0) + self._hops(ranks)

    def agreed(self, ranks: int) -> float:
        """Return the seconds of a small sum over all ranks."""
        return (self.node.agreed if ranks > 1 else 0.0) + 2 * self._hops(ranks)

    def same(self, ranks: int) -> float:
        """Return the seconds in which each rank tells all others a small object."""
        beyond = max(0, ranks - self.node.ranks) * self.unpickle
        return (self.node.same if ranks > 1 else 0.0) + 2 * self._hops(ranks) + beyond

    def allreduce(self, nbytes: float, ranks: int) -> float:
        """Return the seconds of a sum of arrays: in the nodes, then between one rank of each.

        Between nodes by halves (Rabenseifner), or whole arrays by doubling, what is faster.
        """
        if ranks == 1:
            return 0.0
        inside = self.node.allreduce(nbytes) if self.node.ranks > 1 else 0.0
        nodes = self.nodes(ranks)
        if nodes == 1:
            return inside
        assert self.network is not None
        hops, part = math.ceil(math.log2(nodes)), (nodes - 1) / nodes
        each = 1 / self.network.bandwidth
        doubling = hops * (self.network.latency + nbytes * (each + 1 / self.network.reduce))
        halves = 2 * hops * self.network.latency
        halves += part * nbytes * (2 * each + 1 / self.network.reduce)
        return inside + min(doubling, halves)

    def broadcast(self, nbytes: float, ranks: int, inside: int) -> float:
        """Return the seconds of a broadcast to some ranks, of which so many share a node.

        Small messages go by a binomial tree; large ones are scattered and gathered again.
        """
        if ranks == 1:
            return 0.0
        near = self.node.copied(nbytes, nbytes) if inside > 1 else 0.0
        groups = math.ceil(ranks / inside)
        if groups == 1:
            return self.node.barrier + near
        assert self.network is not None
        hops, per_byte = math.ceil(math.log2(groups)), 1 / self.share()
        tree = hops * (self.network.latency + nbytes * per_byte)
        ring = (hops + groups - 1) * self.network.message + hops * self.network.latency
        ring += 2 * nbytes * (groups - 1) / groups * per_byte
        return near + min(tree, ring)

    def _hops(self, ranks: int) -> float:
        nodes = self.nodes(ranks)
        if nodes == 1:
            return 0.0
        assert self.network is not None
        return math.ceil(math.log2(nodes)) * self.network.latency


def measured(document: Mapping[str, Any], ranks: int) -> Machine:
    """Return the machine of a file of `scaling_measure.py`, with so many ranks.

    Parameters
    ----------
    document : mapping
    ranks : int
        One of those that were measured. Where the file says so, they are on several nodes, maybe
        pretended ones: parts of one machine that exchange messages.
    """
    found, nodes = document["ranks"][str(ranks)], min(ranks, document.get("nodes", 1))
    zero = Table(((1e-9, 0.0),))
    alone = ranks == 1
    copy = {int(run): _table(rows) for run, rows in found.get("copy", {}).items()} or {8: zero}
    fixed: Any = {name: 0.0 if alone else found[name] for name in FIXED}
    sums = zero if alone else _table(found["allreduce"])
    node = Node(ranks // nodes, copy, _table(found["fresh"]), **fixed, allreduce=sums)
    rates = {name: _table(rows) for name, rows in found["rates"].items()}
    network = Network(**found["network"]) if nodes > 1 else None
    return Machine(
        f"{document['machine']['name']}, {ranks} ranks",
        node, network, rates, found["spread"], found.get("calls", {}),
        small=found.get("small", {}),
    )  # fmt: skip


def _table(rows: Any) -> Table:
    return Table(tuple((float(work), float(seconds)) for work, seconds in rows))


def ideal(machine: Machine) -> Machine:
    """Return a machine whose ranks exchange data in no time and are all alike."""
    zero = Table(((1e-9, 0.0),))
    none: Any = dict.fromkeys(FIXED, 0.0)
    node = replace(machine.node, copy={8: zero}, fresh=zero, allreduce=zero, **none)
    network = Network(0.0, 0.0, math.inf, reduce=math.inf)
    return replace(
        machine,
        node=node,
        network=network,
        spread={},
        link=math.inf,
        unpickle=0.0,
        plan={},
        small={},
    )
