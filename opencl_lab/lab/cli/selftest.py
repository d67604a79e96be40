"""`oclab selftest`: test all kernels on a device, in child processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from opencl_lab.core.errors import LaunchError
from opencl_lab.lab.cli.common import answer, global_options, option, settings
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


def _table(device: Device, tested: Mapping[Family, Verdict]) -> Table:
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
    from opencl_lab.ops.selftest import examine

    device = settings().select().device
    with progress_bar("testing") as advance:
        done = 0

        def progress(family: Family, verdict: Verdict) -> None:
            nonlocal done
            done += 1
            advance(done, 0, str(family))

        tested = examine(device, progress, full=full)
    rows = [
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
    answer("selftest", device=device.as_dict(), results=rows)
    words = [verdict.word for verdict in tested.values()]
    wrong, untested = words.count("broken"), words.count("unknown")
    settings().print(_table(device, tested))
    unknown = f", {untested} untested" if untested else ""
    settings().say(f"{len(tested)} families of kernels, {wrong or 'none'} wrong{unknown}")
    return 1 if wrong else LaunchError.exit_status if untested else 0
