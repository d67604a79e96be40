"""Options that several commands share: of an operation's problem, and of what is run on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import click

from opencl_lab.lab.cli.common import add_options
from opencl_lab.lab.cli.completion import algorithms, files, one_of, references
from opencl_lab.lab.cli.values import NUMBER, WHOLE_NUMBER, variants
from opencl_lab.lab.engine.request import Request
from opencl_lab.lab.operation import Operation, Option

REPEATS, SECONDS = 5, 10.0
"""Rows of calls that a look at one problem makes, unless these take so long."""

TYPES: dict[type, Any] = {int: WHOLE_NUMBER, complex: NUMBER}
"""What the command line takes where it is not what Python takes."""

RUN_OPTIONS = (
    click.option(
        "--algorithm",
        default="auto",
        show_default=True,
        metavar="NAME[,NAME]|auto|all",
        shell_complete=algorithms,
        help="OpenCL algorithms to run.",
    ),
    click.option(
        "--vary",
        multiple=True,
        metavar="NAME=A,B,C",
        help="Run each algorithm with all of these values of a kernel parameter; repeatable.",
    ),
    click.option(
        "--resident",
        is_flag=True,
        help="Measure with the data on the device, before and after.",
    ),
    click.option(
        "--against",
        metavar="NAME[,NAME]|all|none",
        shell_complete=references,
        help="References to compare with; all: also those on data of the device, and what is "
        "missing.  [default: those here on data of the host, where they are shown]",
    ),
    click.option(
        "--baseline",
        metavar="NAME",
        help="The row that speed-ups are over, such as numpy.  [default: c:seq, else the first "
        "reference that is measured]",
    ),
    click.option(
        "--repeats",
        type=int,
        metavar="R",
        help="Timed rows of calls of each: exactly so many, unless --time-limit ends them.  "
        f"[default: {REPEATS}; of a sweep until their spread is small]",
    ),
    click.option(
        "--time-limit",
        type=float,
        metavar="S",
        help="Seconds for the timed rows of one problem, of which each has one at least; a first "
        "run that takes longer is the only one. Without "
        f"--repeats they end when their spread is small.  [default: {SECONDS:g} without --repeats]",
    ),
    click.option(
        "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the data."
    ),
    click.option("--threads", type=int, help="Threads of references.  [default: all]"),
)


@dataclass(frozen=True)
class RunOptions:
    """What the options of `run_options` gave."""

    algorithm: str
    vary: tuple[str, ...]
    resident: bool
    against: str | None
    baseline: str | None
    repeats: int | None
    time_limit: float | None
    seed: int
    threads: int | None

    @classmethod
    def taken_from(cls, given: dict[str, Any]) -> RunOptions:
        """Return these options of a command, and remove them from what was `given`."""
        return cls(**{field.name: given.pop(field.name) for field in fields(cls)})

    def request(self, quick: bool = False) -> Request:
        """Return what a comparison is asked to run; a quick one has few rows by default."""
        few = quick and self.repeats is None and self.time_limit is None
        return Request(
            algorithms=self.algorithm,
            variants=variants(self.vary),
            against=self.against,
            baseline=self.baseline,
            repeats=REPEATS if few else self.repeats,
            budget=SECONDS if few else self.time_limit,
            threads=self.threads,
            resident=self.resident,
        )


def run_options(command: Any) -> Any:
    """Add the options of everything that compares implementations; `RunOptions` takes them."""
    return add_options(command, RUN_OPTIONS)


def problem_options(chosen: Operation[Any], without: tuple[str, ...] = ()) -> Callable[[Any], Any]:
    """Return a decorator that adds the options of an operation."""
    options = [_option(option) for option in chosen.options if option.name not in without]
    return lambda command: add_options(command, options)


def _option(option: Option) -> Callable[[Any], Any]:
    flag = "--" + option.name.replace("_", "-")
    choices = f" One of {', '.join(option.choices)}." if option.choices else ""
    text = option.help[0].upper() + option.help[1:] + "." + choices
    if option.type is bool:
        return click.option(flag, option.name, is_flag=True, help=text, default=None)
    complete = one_of(option.choices) if option.choices else files if option.type is str else None
    if option.default is not None:
        text += f"  [default: {option.default}]"
    kind = TYPES.get(option.type, option.type)
    return click.option(
        flag, option.name, type=kind, help=text, default=None, shell_complete=complete
    )


def given_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


def used_options(chosen: Operation[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of generated data as a report names them: with defaults, without None."""
    return given_of(chosen.with_defaults(dict(options)))
