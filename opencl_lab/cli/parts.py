"""What the command of an operation does with a file that is too large to be read as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from opencl_lab.cli.common import document, print_json, progress_bar, settings, write_files
from opencl_lab.comparison.measure import Measurement, Times
from opencl_lab.comparison.plots import plot_comparison
from opencl_lab.comparison.table import write_csv
from opencl_lab.comparison.wanted import references_of
from opencl_lab.device import Device
from opencl_lab.discovery import Selection
from opencl_lab.errors import InvalidConfig, InvalidProblem, ReferenceUnavailable
from opencl_lab.file_jobs import FileJob, FileResult
from opencl_lab.interrupt import interrupt_at_termination
from opencl_lab.operation import Operation
from opencl_lab.wording import bytes_of

__all__ = ["ByteCount", "find_job", "run_job"]

NOT_RUN = "references are not run on files that are sorted in parts: they need the whole array"


class ByteCount(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The type of options that take bytes: ``2e9``, ``256M``, ``1.5 GiB``; units of 1024."""

    name = "bytes"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return the number of bytes, or end with Click's usual message."""
        if isinstance(value, (int, float)):
            return value
        try:
            return bytes_of(value)
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


def find_job(
    chosen: Operation[Any],
    files: Sequence[str | None],
    options: Mapping[str, Any],
    selection: Selection,
    algorithm: str,
    limit: float | None,
) -> FileJob | None:
    """Return how the input files are gone through in parts, or None if they are read whole."""
    if limit is not None and not str(files[0]).lower().endswith(".npy"):
        raise click.UsageError("--memory-limit is for a .npy file; leave it out")
    make = chosen.find_file_job
    if make is None or files[0] is None:
        return None
    one = "auto" if algorithm == "all" or "," in algorithm else algorithm
    return make(Path(files[0]), options, selection.device, algorithm=one, limit=limit)


def run_job(
    chosen: Operation[Any],
    job: FileJob,
    selection: Selection,
    options: Mapping[str, Any],
    *,
    output: Path | None,
    algorithm: str,
    vary: Sequence[str],
    against: str | None,
    resident: bool,
    repeats: int | None,
    csv_path: Path | None,
    plot_path: Path | None,
) -> int:
    """Go through a file in parts, say what became of it, and return the exit status.

    Raises
    ------
    InvalidProblem, InvalidConfig
        If something is asked for that takes the whole array.
    ReferenceUnavailable
        If a reference is asked for by name.
    """
    if resident:
        raise InvalidConfig(f"{job.reason}: leave --resident out")
    wanted = references_of(chosen, against, selection.device, False)
    references = [*wanted.on_host, *wanted.on_device]
    if references and wanted.by_name:
        raise ReferenceUnavailable(f"{references[0].name} cannot run here: {NOT_RUN}")
    if algorithm == "all" or "," in algorithm or vary:
        raise InvalidConfig(f"{job.reason}: name one algorithm, and no --vary")
    if repeats is not None and repeats != 1:
        raise InvalidConfig(f"{job.reason}, once: leave --repeats out")
    if output is None:
        raise InvalidProblem(f"{job.reason}: name a .npy file for the result with -o")
    job.check(output)
    with progress_bar(chosen.name) as progress, interrupt_at_termination():
        result = job.run(output, progress)
    ours = _measurement(job, result, selection.device)
    rows = [ours] + [
        Measurement(item.name, item.kind, item.name, "unavailable", NOT_RUN) for item in references
    ]
    writers: list[Callable[[], None]] = []
    if csv_path is not None:
        writers.append(partial(write_csv, csv_path, [({}, row) for row in rows]))
    if plot_path is not None:
        title = f"{chosen.name}: {job.problem.title}\n{selection.device}"
        writers.append(partial(plot_comparison, plot_path, rows, title))
    try:
        _print(chosen, job, result, rows, selection, options, output)
    finally:
        failed = write_files(*writers)
    return failed or (0 if ours.ok else 1)


def _measurement(job: FileJob, result: FileResult, device: Device) -> Measurement:
    return Measurement(
        f"opencl:{job.algorithm}",
        "opencl",
        job.algorithm,
        "correct" if result.fault is None else "correctness",
        result.fault or "",
        config=job.config,
        workers=device.compute_units,
        kernel_ms=result.stages["kernels"] * 1e3,
        build_ms=result.stages["build"] * 1e3,
        total_ms=Times.of([result.seconds * 1e3]),
        work=job.problem.work,
    )


def _print(
    chosen: Operation[Any],
    job: FileJob,
    result: FileResult,
    rows: Sequence[Measurement],
    selection: Selection,
    options: Mapping[str, Any],
    output: Path,
) -> None:
    if settings().json:
        stages = {f"{name}_ms": value * 1e3 for name, value in result.stages.items()}
        print_json(
            document(
                chosen.name,
                device={**selection.device.as_dict(), "reason": selection.reason},
                problem=job.problem.as_dict(),
                options=dict(options),
                results=[row.as_row() for row in rows],
                parts={**job.parts, **stages, "check_ms": result.check_seconds * 1e3},
            )
        )
    settings().say(f"device: {selection.device}: {selection.reason}")
    rate = job.nbytes / result.seconds * 1e-9
    verdict = "correct" if result.fault is None else f"wrong: {result.fault}"
    settings().say(
        f"{chosen.name}: {job.problem.title}, {rows[0].implementation} in {job.parts_text}: "
        f"{result.seconds:.4g} s, {rate:.3g} GB/s; {verdict} "
        f"(checked in {result.check_seconds:.3g} s)"
    )
    if settings().verbose:
        told = ", ".join(f"{name} {value:.3g} s" for name, value in result.stages.items())
        settings().say(f"stages, which overlap: {told}")
    if len(rows) > 1:
        settings().say(NOT_RUN)
    if result.fault is not None:
        click.echo(f"oclab: {output} is not written: the result is not right", err=True)
