"""`oclab doctor`: print what a device and its tools really support."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from opencl_lab.core.errors import DeviceNotFound
from opencl_lab.lab.cli.common import answer, global_options, print_json, settings
from opencl_lab.lab.cli.progress import progress_bar
from opencl_lab.lab.doctor.installation import installation
from opencl_lab.lab.doctor.toolchain import Tool, toolchain

if TYPE_CHECKING:  # importing it needs pyopencl, whose absence is a finding
    from opencl_lab.lab.doctor.diagnose import Finding, Report

STYLES = {"ok": "green", "no": "dim", "missing": "yellow", "limited": "yellow"}
STYLES["broken"] = "bold red"
INSTALLATION = "OpenCL on this machine"


def tables_of(report: Report, *, everything: bool = False) -> list[Table | Text]:
    """Return a report as tables to print: the device's probes, the tools, the installation.

    Of the installation only what fails or could be faster, unless `everything` is wanted.
    """
    parts: list[Table | Text] = [_table(str(report.device), "probe", report.findings)]
    shown = ("broken", "limited")
    installed = [item for item in report.installed if everything or item.verdict in shown]
    if installed:
        parts += [Text(), _table(INSTALLATION, "part", installed)]
    stored = (
        "the findings are not stored: kernels rely on what the driver claims"
        if report.stored is None
        else f"stored in {report.stored}; kernels on this device and driver use it"
    )
    return [*parts, Text(), _table("Tools", "tool", report.tools), Text(), Text(stored)]


def _table(title: str, first: str, rows: Sequence[Tool | Finding]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column(first, overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("what was seen", ratio=1, overflow="fold")
    for row in rows:
        # Text, not markup, since texts of drivers may contain square brackets.
        seen = Text(row.detail)
        if row.advice:
            seen.append(f"\n-> {row.advice}", style="italic")
        name = row.name if isinstance(row, Tool) else row.title
        table.add_row(Text(name), Text(row.verdict, style=STYLES.get(row.verdict, "magenta")), seen)
    return table


def _without_device() -> None:
    """Print the OpenCL installation of this machine, and the tools."""
    found, tools = installation(), toolchain()
    rows, tool_rows = [asdict(item) for item in found], [asdict(tool) for tool in tools]
    answer("doctor", device=None, probes=[], installation=rows, toolchain=tool_rows)
    settings().print(_table(INSTALLATION, "part", found), Text(), _table("Tools", "tool", tools))


@click.command("doctor")
@global_options
def doctor_command() -> None:
    """Probe what the chosen device and its tools support, and say what to install.

    Each probe runs in a worker process, so that a driver that crashes or hangs
    is a finding. The findings are stored, and kernels use them from then on.
    Without a device, and with -v, the OpenCL installation of this machine is
    shown: the ICD loader, drivers, and device files that the user may open.
    """
    try:
        device = settings().select().device
    except DeviceNotFound as error:
        _without_device()
        spec = settings().device or os.environ.get("OCLAB_DEVICE")
        wanted = f"matches {spec!r}" if spec else "is there"
        raise DeviceNotFound(f"no OpenCL device {wanted}; the list says what to install") from error
    from opencl_lab.lab.doctor.diagnose import PROBES, report

    settings().begin()
    with progress_bar("probing") as advance:
        done = 0

        def progress(finding: Finding) -> None:
            nonlocal done
            done += 1
            advance(done, len(PROBES), finding.title)

        found = report(device, progress)
    print_json(found.as_dict)
    settings().print(*tables_of(found, everything=settings().verbose > 0))
    settings().say_busy()
