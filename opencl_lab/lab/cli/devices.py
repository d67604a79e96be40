"""`oclab devices`: all devices with their limits, and which one is chosen and why."""

from __future__ import annotations

from dataclasses import asdict, fields

import click
from rich.table import Table

from opencl_lab.core.device import Device
from opencl_lab.core.errors import DeviceNotFound
from opencl_lab.core.wording import size_text
from opencl_lab.drivers.discovery import choose_device, devices
from opencl_lab.lab.cli.common import answer, global_options, settings
from opencl_lab.lab.measuring.roofline import Peaks, rate_text, stored_peaks

OPTIONAL_COLUMNS = ("capabilities", "largest buffer", "local", "MHz", "units", "group")
"""Columns that are omitted on narrow terminals, in this order."""


def _capabilities(device: Device) -> str:
    names = ("fp64", "fp16", "int64_atomics", "inline_ptx", "matrix_units")
    return " ".join(name for name in names if getattr(device.capabilities, name))


def _peaks_text(peaks: Peaks) -> str:
    """Return the measured peaks in one line."""
    found = {item.name: getattr(peaks, item.name) for item in fields(Peaks)}
    units = {name: "FLOP/s" if name.startswith("flops") else "B/s" for name in found}
    rates = (f"{name} {rate_text(rate, units[name])}" for name, rate in found.items() if rate)
    return ", ".join(rates)


@click.command("devices")
@global_options
def devices_command() -> None:
    """List all OpenCL devices with their limits, and which one is chosen and why."""
    found = devices()
    if not found:
        choose_device(None)  # raises an error that says what to install
    try:
        selection = choose_device(settings().device)
    except DeviceNotFound:
        if settings().device is not None:
            raise
        selection = None  # $OCLAB_DEVICE matches nothing; the list shows what would
    peaks = None if selection is None else stored_peaks(selection.device)
    answer(
        "devices",
        device=None if selection is None else selection.device.as_dict(),
        reason=None if selection is None else selection.reason,
        devices=[device.as_dict() for device in found],
        peaks=None if peaks is None else asdict(peaks),
    )
    table = Table(title="OpenCL devices, the preferred one first", title_justify="left")
    for name in ("#", "spec", "kind", "device", "platform, driver", "units", "MHz", "memory"):
        words = name in ("kind", "device", "platform, driver")
        table.add_column(name, no_wrap=not words, overflow="fold")
    for name in ("largest buffer", "local", "group", "capabilities"):
        table.add_column(name)
    for index, device in enumerate(found):
        chosen_one = selection is not None and device == selection.device
        table.add_row(
            f"{index}{' *' if chosen_one else ''}",
            device.spec,
            device.kind + (" (simulated)" if device.simulated else ""),
            device.name,
            f"{device.platform}, {device.driver}",
            f"{device.compute_units}{' + serial side' * (device.serial_side is not None)}",
            str(device.clock),
            size_text(device.global_memory),
            size_text(device.largest_buffer),
            size_text(device.capabilities.local_memory),
            str(device.capabilities.max_work_group),
            _capabilities(device),
            style="bold" if chosen_one else "",
        )
    settings().show(table, OPTIONAL_COLUMNS)
    if selection is not None:
        settings().say(f"chosen: {selection}")
        if peaks is not None:
            settings().say(f"peaks that oclab doctor measured: {_peaks_text(peaks)}")
    else:
        settings().say("chosen: none, because $OCLAB_DEVICE matches none of these")
