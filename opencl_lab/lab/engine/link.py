"""A model of calls over ranks: compute that is shared out, and messages of known cost.

A call on p ranks takes ``compute(1) / p + messages * latency + bytes / bandwidth``. Latency and
bandwidth are measured between the ranks of the same job; `Calls.sent` has messages and bytes. There
is no waiting, and nothing overlaps, so a measurement beside it shows imbalance, and communication
that is hidden.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opencl_lab.lab.engine.row import Measurement

SENT_BYTES = 8 << 20
"""Bytes that each rank sends at once to measure the bandwidth."""
ROUNDS = 5


@dataclass(frozen=True)
class MessageCost:
    """What a message costs a rank while all of them send."""

    latency: float = 0.0  # seconds
    bandwidth: float = np.inf  # bytes in a second

    def seconds(self, messages: float, nbytes: float) -> float:
        """Return the time of so many messages with so many bytes together."""
        return messages * self.latency + nbytes / self.bandwidth


def measured_link(comm: Any) -> MessageCost:
    """Measure an ``Alltoall`` of one byte to each rank, and of many; all ranks call it."""
    others = comm.size - 1
    if not others:
        return MessageCost()
    block = max(1, SENT_BYTES // comm.size)
    least, most = (_least(comm, np.zeros((comm.size, n), np.uint8)) for n in (1, block))
    return MessageCost(least / others, others * block / max(most - least, 1e-9))


def _least(comm: Any, blocks: np.ndarray[Any, Any]) -> float:
    """Return the least time of several calls, each until the last rank is ready."""
    received, found = np.empty_like(blocks), []
    for _ in range(ROUNDS + 1):
        comm.Barrier()
        begin = time.perf_counter()
        comm.Alltoall(blocks, received)
        found.append(max(comm.allgather(time.perf_counter() - begin)))
    return float(min(found[1:]))  # the first one touches the memory


def relative(rows: Sequence[Measurement]) -> list[Measurement]:
    """Return rows with speed-ups over the row of the fewest ranks, and the times of the model.

    Of larger problems, as in weak scaling, rates are compared.
    """
    able = [row for row in rows if row.ok and row.over_ranks is not None and row.total_ms]
    if not able:
        return list(rows)
    base = min(able, key=lambda row: row.workers)
    return [_over(base, row) if row.ok and row.total_ms else row for row in rows]


def _over(base: Measurement, row: Measurement) -> Measurement:
    assert base.over_ranks is not None and base.total_ms and row.total_ms
    growth = _amount(row) / _amount(base) if _amount(base) else 1.0
    speedup = growth * base.total_ms.median / row.total_ms.median
    shares = row.over_ranks
    if shares is not None:
        compute = base.total_ms.median * base.over_ranks.compute * growth
        compute *= base.workers / row.workers
        modelled = compute + shares.model_communication_ms
        shares = replace(shares, model_ms=modelled, base_ranks=base.workers)
    return replace(row, speedup=speedup, baseline=base.implementation, over_ranks=shares)


def _amount(row: Measurement) -> float:
    return 0.0 if row.work is None else row.work.flops or row.work.bytes
