"""`oclab selftest`: test all kernels on a device, in child processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from opencl_lab.core.errors import LaunchError
from opencl_lab.lab.cli.common import document, global_options, option, print_json, settings
from opencl_lab.lab.cli.progress import progress_bar

if TYPE_CHECKING:
    from opencl_lab.core.device import Device
    from opencl_lab.drivers.verdicts import Verdict
    from opencl_lab.selftest.verdicts import Family

STATUS = {"ok": "correct", "broken": "correctness", "unknown": "runtime", "no": "unavailable"}
WORDS = {
    "ok": ("right", "green"),
    "broken": ("wrong", "bold red"),
    "unknown": ("untested", "yellow"),
    "no": ("untested", "dim"),
}


def tested_device(device: Device, *, full: bool) -> Mapping[Family, Verdict]:
    """Test a device, show the progress, and return the verdicts."""
    from opencl_lab.ops.selftest import examine

    with progress_bar("testing") as advance:
        done = 0

        def progress(family: Family, verdict: Verdict) -> None:
            nonlocal done
            done += 1
            advance(done, 0, str(family))

        return examine(device, progress, full=full)


def rows_of(tested: Mapping[Family, Verdict]) -> list[dict[str, Any]]:
    """Return the verdicts as JSON-able rows."""
    return [
        {
            "operation": family.operation,
            "algorithm": family.algorithm,
            "wide": family.wide,
            "status": STATUS[verdict.word],
            "reason": verdict.detail if verdict.word != "no" else "",
            "trials": verdict.value or 0,
            "seconds": verdict.seconds,
        }
        for family, verdict in sorted(tested.items())
    ]


def table_of(device: Device, tested: Mapping[Family, Verdict]) -> Table:
    """Return the verdicts as a table."""
    title = Text(f"Kernels on {device}")
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in ("operation", "algorithm", "numbers"):
        table.add_column(name, no_wrap=True)
    table.add_column("trials", justify="right")
    table.add_column("verdict", ratio=1, overflow="fold")
    for family, verdict in sorted(tested.items()):
        word, style = WORDS[verdict.word]
        what = Text(f"{word}: {verdict.detail}" if verdict.detail else word, style=style)
        numbers = "of 8 bytes" if family.wide else ""
        table.add_row(family.operation, family.algorithm, numbers, str(verdict.value or 0), what)
    return table


@click.command("selftest")
@option("--full", "All trials of all algorithms; takes some minutes.", is_flag=True)
@global_options
def selftest_command(full: bool) -> int:
    """Test whether kernels are right on the chosen device.

    Each family of kernels solves small problems whose results are known, in
    child processes, so that a driver that crashes or hangs is a finding. Calls
    then do not choose an algorithm that is wrong. The exit status is 1 if one is,
    and 4 if none is but some could not be tested.
    """
    device = settings().select().device
    tested = tested_device(device, full=full)
    if settings().json:
        print_json(document("selftest", device=device.as_dict(), results=rows_of(tested)))
    else:
        settings().print(table_of(device, tested))
        words = [verdict.word for verdict in tested.values()]
        wrong, untested = words.count("broken"), words.count("unknown")
        unknown = f", {untested} untested" if untested else ""
        settings().say(f"{len(tested)} families of kernels, {wrong or 'none'} wrong{unknown}")
    return status_of(tested)


def status_of(tested: Mapping[Family, Verdict]) -> int:
    """Return the exit status for verdicts."""
    words = {verdict.word for verdict in tested.values()}
    return 1 if "broken" in words else LaunchError.exit_status if "unknown" in words else 0
