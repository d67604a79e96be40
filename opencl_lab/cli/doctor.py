"""`oclab doctor`: print what a device and the tools around it can really do."""

from __future__ import annotations

import click
from rich.console import Group
from rich.table import Table
from rich.text import Text

from opencl_lab.cli.common import global_options, print_json, progress_bar, settings
from opencl_lab.doctor.diagnose import PROBES, Finding, Report, report

__all__ = ["doctor_command", "render_table"]

STYLES = {"ok": "green", "no": "dim", "limited": "yellow", "broken": "bold red"}


def render_table(report: Report) -> Group:
    """Return a report as tables to print: the device's probes, then the tools."""
    probes = Table(title=str(report.device), title_justify="left", title_style="bold")
    tools = Table(title="Tools", title_justify="left", title_style="bold")
    for table, first in ((probes, "probe"), (tools, "tool")):
        table.add_column(first, no_wrap=True)
        table.add_column("verdict", no_wrap=True)
        table.add_column("what was seen", ratio=1)
    for finding in report.findings:
        _add(probes, finding.title, finding.verdict, finding.detail, finding.advice)
    for tool in report.tools:
        _add(tools, tool.name, tool.verdict, tool.detail, tool.advice)
    stored = (
        "the findings could not be stored: kernels go by what the driver claims"
        if report.stored is None
        else f"stored in {report.stored}; kernels on this device and driver go by it"
    )
    return Group(probes, Text(), tools, Text(), Text(stored))


def _add(table: Table, name: str, verdict: str, detail: str, advice: str) -> None:
    # Text, not markup: what a driver says may hold square brackets.
    seen = Text(detail)
    if advice:
        seen.append(f"\n-> {advice}", style="italic")
    table.add_row(name, Text(verdict, style=STYLES.get(verdict, "magenta")), seen)


@click.command("doctor")
@global_options
def doctor_command() -> None:
    """Probe what the chosen device and the tools around it can do, and say what to install.

    Each probe runs in a process of its own, so that a driver that crashes or
    hangs is a finding. Kernels go by the findings from then on.
    """
    device = settings().select().device
    with progress_bar("probing") as advance:
        done = 0

        def progress(finding: Finding) -> None:
            nonlocal done
            done += 1
            advance(done, len(PROBES), finding.title)

        found = report(device, progress)
    if settings().json:
        print_json(found.as_dict())
    else:
        settings().console.print(render_table(found))
