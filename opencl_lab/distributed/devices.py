"""Which device a rank drives."""

from __future__ import annotations

import os
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.distributed.mpi import mpi, near_ranks, world
from opencl_lab.drivers.discovery import devices, select_device
from opencl_lab.drivers.pinning import local_rank

KINDS = ("", "gpu", "cpu", "accelerator")


def rank_of_node(comm: Any) -> int:
    """Return the number of this rank among those of the same node."""
    known, whole = local_rank(os.environ), mpi().COMM_WORLD
    if known is not None and mpi().Comm.Compare(comm, whole) <= mpi().CONGRUENT:
        return known
    return near_ranks(comm)[0]


def device_of(comm: Any = None, device: Device | str | int | None = None) -> Device:
    """Return the device that this rank drives.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
        By default all ranks.
    device : Device, str or int, optional
        As `select_device` takes it; by default ``$OCLAB_DEVICE``. Where that names a kind, or
        nothing, the ranks of a node take its devices of that kind in turn. A list such as
        ``"0:0,0:1"`` is taken in turn as well.

    Returns
    -------
    Device
        On CPUs, where a node has one device, its ranks share the processors out; see
        `opencl_lab.drivers.pinning`.

    Raises
    ------
    DeviceNotFound
        If there is no such device.
    """
    if isinstance(device, Device):
        return device
    spec = str(os.environ.get("OCLAB_DEVICE", "") if device is None else device).strip()
    spec = spec.lower() if spec.lower() in KINDS else spec
    number = rank_of_node(world(comm))
    names = [name.strip() for name in spec.split(",")]
    name = names[number % len(names)]
    first = select_device(name or None)
    if len(names) > 1 or name not in KINDS:
        return first
    alike = [
        one
        for one in devices()
        if (one.kind, one.platform_index) == (first.kind, first.platform_index)
    ]
    return alike[number % len(alike)]
