"""The entry point: the group of commands, and the handling of errors."""

from __future__ import annotations

import logging
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any, TextIO, cast

import click

from opencl_lab._version import __version__
from opencl_lab.core.early import INTERRUPTED, command
from opencl_lab.core.errors import BuildError, OclabError
from opencl_lab.core.wording import visible
from opencl_lab.drivers.pinning import rank_of_job
from opencl_lab.lab.cli.common import Settings, Visible, complain, global_options
from opencl_lab.lab.cli.lazy import LazyGroup

INTERNAL = 70  # EX_SOFTWARE of sysexits.h
COMPLETES = "_OCLAB_COMPLETE"
"""Set where a shell asks for completions."""


PLACES = {
    "bench": "opencl_lab.lab.cli.bench:bench_command",
    "cache": "opencl_lab.lab.cli.cache:cache_command",
    "devices": "opencl_lab.lab.cli.devices:devices_command",
    "doctor": "opencl_lab.lab.cli.doctor:doctor_command",
    "selftest": "opencl_lab.lab.cli.selftest:selftest_command",
    "report": "opencl_lab.lab.cli.report:report_command",
    "source": "opencl_lab.lab.cli.source:source_command",
    "study": "opencl_lab.lab.cli.study:study_command",
    "tune": "opencl_lab.lab.cli.tune:tune_command",
    "tuning": "opencl_lab.lab.cli.tuning:tuning_command",
}


@click.group(
    cls=LazyGroup,
    places=PLACES,
    operation_place="opencl_lab.lab.cli.operation:operation_command",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="oclab")
@global_options
def cli() -> None:
    """OpenCL kernels on any device, measured against C, OpenMP and the usual libraries."""


def _speaks(arguments: Sequence[str]) -> bool:
    """Return whether errors are printed here: all ranks of a job have the same ones."""
    return "--distributed" not in arguments or rank_of_job(os.environ) == 0


class _LogLines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        complain(record.getMessage())


@contextmanager
def _warnings_as_lines(settings: Settings) -> Iterator[None]:
    """Print warnings of the library as lines of the command; those of its log unless quiet."""
    handler = _LogLines()
    handler.addFilter(lambda record: record.levelno >= logging.ERROR or not settings.quiet)
    log = logging.getLogger("opencl_lab")
    log.addHandler(handler)
    usual = warnings.formatwarning

    def formatted(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        line: str | None = None,
    ) -> str:
        if category.__module__.startswith("opencl_lab."):
            return f"oclab: {visible(str(message))}\n"
        return usual(message, category, filename, lineno, line)

    warnings.formatwarning = formatted
    try:
        yield
    finally:
        warnings.formatwarning = usual
        log.removeHandler(handler)


def _drop_output() -> None:
    """Redirect further output to nowhere, or Python would fail again at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    0 fine; 1 a result of ours did not match; 2 bad usage or input; 3 no device or a
    missing component; 4 a kernel did not build or launch; 130 interrupted.
    """
    command.kept = ""
    settings = Settings()
    settings.arguments = tuple(sys.argv[1:] if arguments is None else arguments)
    if sys.stderr is None:
        return _run(settings)
    with redirect_stderr(cast(TextIO, Visible(sys.stderr))):
        return _run(settings)


def _status(settings: Settings) -> Any:
    """Run the command; `cli.main` would print a blank line at Ctrl-C."""
    if COMPLETES in os.environ:
        return cli.main(prog_name="oclab", standalone_mode=False)
    try:
        with cli.make_context("oclab", list(settings.arguments), obj=settings) as context:
            return cli.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code


def _run(settings: Settings) -> int:
    if sys.stdout is None:
        complain("standard output is closed; redirect it to /dev/null to discard it")
        return 2
    try:
        with _warnings_as_lines(settings):
            status = _status(settings)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        complain(command.sentence)
        return INTERRUPTED
    except click.ClickException as error:
        if _speaks(settings.arguments):
            error.show()
        return error.exit_code
    except OclabError as error:
        if _speaks(settings.arguments):
            complain(error.sentence)
        if isinstance(error, BuildError) and settings.verbose:
            print(error.details(), file=sys.stderr)
        if settings.verbose > 1:
            traceback.print_exc()
        return error.exit_status
    except MemoryError:
        complain("the host ran out of memory; try a smaller problem")
        return 2
    except BrokenPipeError:
        _drop_output()  # the reader of the output has ended
        return 0
    except SystemExit:  # Click and rich turn a BrokenPipeError into this
        return 0
    except OSError as error:
        complain(f"cannot use {error.filename or 'the output'}: {error.strerror or error}")
        if settings.verbose > 1:
            traceback.print_exc()
        _drop_output()
        return 2
    except Exception as error:
        complain(f"internal error: {error!r}; -v -v shows where, please report it")
        if settings.verbose > 1:
            traceback.print_exc()
        return INTERNAL
