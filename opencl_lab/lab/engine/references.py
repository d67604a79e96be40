"""Selection of the references of a comparison, by the names that a user gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.reference.descriptor import CReference, MpiReference
from opencl_lab.lab.reference.peers import PeerReference, Reference, residents


def names_of(value: str | Sequence[str]) -> list[str]:
    """Return names from a list or comma-separated text, each once."""
    names = value.split(",") if isinstance(value, str) else list(value)
    return list(dict.fromkeys(name.strip() for name in names if name.strip()))


@dataclass(frozen=True)
class References:
    """The references to run on host data and on device data."""

    on_host: Sequence[Reference]
    on_device: Sequence[PeerReference]
    by_name: bool  # whether a user named them

    @property
    def every(self) -> list[Reference]:
        """The references of both sides."""
        return [*self.on_host, *self.on_device]


def references_of(
    chosen: Operation[Any], selection: str | Sequence[str] | None, device: Device, resident: bool
) -> References:
    """Return the references of a selection; see `Request.against`."""
    there = residents(chosen.calls)  # on the device
    here = () if resident else chosen.references  # on the host
    names = [] if selection is None else names_of(selection)
    if not names and isinstance(selection, str):
        raise InvalidConfig("no reference is named; take a name, all or none")
    if selection is None:
        return References(_installed(here), there if resident else (), False)
    if names == ["all"]:
        able = [item for item in there if resident or item.unavailable(device) is None]
        return References(here, able, False)
    if names == ["none"] or not names:
        return References((), (), False)
    names_there = [*(item.peer for item in there), *(item.name for item in there)]
    valid = list(dict.fromkeys([*(item.name for item in here), *names_there]))
    unknown = [name for name in names if name not in valid]
    if unknown:
        where = " with its data on the device" * resident
        raise InvalidConfig(
            f"{chosen.name} has no reference {', '.join(unknown)}{where}; "
            f"it has: all, none, {', '.join(valid)}"
        )
    on_host = [item for name in names for item in here if item.name == name]
    on_device = [
        item
        for item in there
        if item.name in names or (item.peer in names and _can_serve(item, on_host, device))
    ]
    return References(on_host, on_device, True)


def _can_serve(item: PeerReference, on_host: Sequence[Reference], device: Device) -> bool:
    """Return whether a library that is named without a side runs on device data.

    If it runs on host data, it does so only if available; otherwise it must, or raise the reason.
    """
    also_there = any(reference.name == item.peer for reference in on_host)
    return not also_there or item.unavailable(device) is None


def _installed(references: Sequence[Reference]) -> list[Reference]:
    """Return the references that run by default: all that are installed, without MPI.

    Starting the ranks of several worlds takes long. With ``all``, missing references get a row.
    """
    return [
        item
        for item in references
        if isinstance(item, CReference)
        or (not isinstance(item, MpiReference) and item.unavailable() is None)
    ]


def workers_of(item: Reference, threads: Sequence[int], ranks: bool) -> dict[str, int]:
    """Return the names of the rows of a reference, with the number of threads or ranks of each.

    If `ranks`, the numbers of threads are those of ranks, too; otherwise a reference over MPI has
    its own numbers.
    """
    if isinstance(item, MpiReference):
        if item.unavailable() is not None:  # one row is enough to say so
            return {item.name: 1}
        threads = threads if ranks else item.ranks
    elif not item.threaded or len(threads) == 1:
        return {item.name: threads[0] if item.threaded else 1}
    return {f"{item.name} x{count}": count for count in threads}
