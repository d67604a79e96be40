"""`oclab soak`: all operations in several threads for a long time, every result checked."""

from __future__ import annotations

import click
from rich.table import Table

from opencl_lab.core.wording import size_text
from opencl_lab.lab.cli.common import document, global_options, print_json, settings
from opencl_lab.lab.soak.memory import Sample
from opencl_lab.lab.soak.run import Soak

LINES = 30
"""Number of samples of the memory, and of lines."""


def _numbers(context: click.Context, parameter: click.Parameter, text: str | None) -> list[int]:
    found = [] if text is None else text.split(":")
    if text is not None and not (len(found) == 2 and all(word.isdecimal() for word in found)):
        raise click.BadParameter(f"{text!r} is not THREAD:CALL, such as 3:4711")
    return list(map(int, found))


@click.command("soak")
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="M",
    help="How long to make calls.",
)
@click.option("--threads", type=click.IntRange(1), default=8, show_default=True, metavar="T")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, metavar="N")
@click.option(
    "--only",
    callback=_numbers,
    metavar="THREAD:CALL",
    help="Make one call only, as an earlier command with this seed named it.",
)
@global_options
def soak_command(minutes: float, threads: int, seed: int, only: list[int]) -> int:
    """Call all functions with random arrays in several threads, and check every result.

    Calls recur, so that most are replayed, among others that are new; on host and device arrays,
    strided ones, with out=, and prepared; some by any algorithm, or with NaN among the data. Exit
    status 1 if a result is wrong, an input was changed, a call failed or hangs, or the memory grew
    after a third of the time by more than 64 MiB, 256 bytes for each call, and 1.5 MiB for each
    program built.
    """
    device = settings().select().device
    settings().say(f"device: {settings().select()}")
    soak = Soak(device, threads, seed)
    if only:
        soak.once(*only)
    else:
        interval = minutes * 60 / LINES
        soak.run(minutes * 60, interval, lambda sample: settings().say(_line(soak, sample)))
    if settings().json:
        print_json(document("soak", device=device.as_dict(), **soak.as_dict()))
    else:
        settings().print(_by_function(soak))
        settings().print(*([_memory(soak)] if soak.growths else []))
        for fault in soak.faults:
            settings().say(f"--seed {seed} {fault}")
    return 0 if soak.ok else 1


def _line(soak: Soak, sample: Sample) -> str:
    return (
        f"{sample.calls:,} calls, {soak.wrong.total()} wrong, {_size(sample.host)} in memory, "
        f"{_size(sample.device)} on the device, {sample.programs} programs"
    )


def _size(nbytes: float | None) -> str:
    return "?" if nbytes is None else size_text(nbytes)


def _by_function(soak: Soak) -> Table:
    table = Table(title="calls", title_justify="left")
    table.add_column("function")
    for head in ("calls", "wrong"):
        table.add_column(head, justify="right")
    for name in sorted({*soak.calls, *soak.wrong}):
        table.add_row(name, f"{soak.calls[name]:,}", str(soak.wrong[name]))
    table.add_row("all", f"{soak.calls.total():,}", str(soak.wrong.total()))
    return table


def _memory(soak: Soak) -> Table:
    table = Table(title="memory", title_justify="left")
    table.add_column("side")
    for head in ("after a third", "at the end", "calls", "programs", "bytes per call", "allowed"):
        table.add_column(head, justify="right")
    table.add_column("verdict")
    for side, one in soak.growths.items():
        table.add_row(
            side,
            size_text(one.early),
            size_text(one.late),
            f"{one.calls:,}",
            str(one.programs),
            f"{one.nbytes / max(one.calls, 1):.0f}",
            f"{one.allowed / max(one.calls, 1):.0f}",
            "flat" if one.ok else "grows",
        )
    return table
