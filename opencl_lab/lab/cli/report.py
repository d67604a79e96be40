"""`oclab report DIR`: a page with the results of earlier runs."""

from __future__ import annotations

from pathlib import Path

import click

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.paths import check_target
from opencl_lab.core.wording import counted
from opencl_lab.lab.cli.common import (
    answer,
    complain,
    global_options,
    option,
    settings,
)
from opencl_lab.lab.cli.progress import progress_bar
from opencl_lab.lab.cli.results import write_text
from opencl_lab.lab.report.documents import find_results
from opencl_lab.lab.report.page import page_of

PAGE_BYTES = 1 << 20  # approximate size of a page
NAME = "report.html"


@click.command("report")
@click.argument("place", metavar="DIR", type=click.Path())
@option("-o --output FILE", f"The page.  [default: {NAME} in the folder]", type=click.Path())
@global_options
def report_command(place: str, output: str | None) -> None:
    """Make a page of the results in a folder and its subfolders.

    It reads the JSON documents written by `oclab bench`, `oclab study` and other commands with
    --json. The page needs no network.
    """
    folder = Path(place)
    target = (folder if folder.is_dir() else folder.parent) / NAME
    target = target if output is None else Path(output)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InvalidProblem(f"cannot write a page to {target}: its name must end in .html")
    documents, skipped = find_results(folder)
    check_target(target, PAGE_BYTES)
    for sentence in skipped:
        if not settings().json:
            complain(f"left out: {sentence}")
    command = ["oclab", *settings().arguments]
    with progress_bar("report") as progress:
        page = page_of(documents, skipped, folder, command, progress)
    write_text(target, page)
    read = [str(results.path) for results in documents]
    answer("report", output=str(target), read=read, skipped=skipped)
    settings().say(f"written to {target}: {counted(len(documents), 'document')}")
