"""Options that several commands share: of problems, and of comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import click

from opencl_lab.lab.cli.common import add_options
from opencl_lab.lab.cli.values import NUMBER, WHOLE_NUMBER, variants
from opencl_lab.lab.engine.request import Request
from opencl_lab.lab.offline import TARGETS
from opencl_lab.lab.operation import Operation, Option

REPEATS, SECONDS = 5, 10.0
"""Default number of samples for one problem, and their time limit."""

UNUSED_OVER_RANKS = (
    *("against", "baseline", "threads", "resident", "vary", "time_limit", "memory_limit"),
)
TYPES: dict[type, Any] = {int: WHOLE_NUMBER, complex: NUMBER}
"""Types of options that differ between command line and Python."""

RUN_OPTIONS = (
    click.option(
        "--algorithm",
        default="auto",
        show_default=True,
        metavar="NAME[,NAME]|auto|all",
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
        help="Measure only with data on the device.",
    ),
    click.option(
        "--against",
        metavar="NAME[,NAME]|all|none",
        help="References to compare with; all: also those with data on the device, and those that "
        "are not installed.  [default: the installed ones with data on the host, if times are "
        "shown]",
    ),
    click.option(
        "--baseline",
        metavar="NAME",
        help="Implementation that speed-ups are over, such as numpy.  [default: c:seq, else the "
        "first reference that is measured]",
    ),
    click.option(
        "--repeats",
        type=int,
        metavar="R",
        help="Number of samples of each implementation, unless --time-limit ends sampling.  "
        f"[default: {REPEATS}; in a sweep until medians are precise]",
    ),
    click.option(
        "--time-limit",
        type=float,
        metavar="S",
        help="Time limit in seconds for the samples of one problem; each implementation gets at "
        "least one. Without --repeats, sampling ends earlier if medians are precise.  "
        f"[default: {SECONDS:g} without --repeats]",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0),
        metavar="N",
        default=0,
        show_default=True,
        help="Seed of the data.",
    ),
    click.option(
        "--threads",
        type=int,
        metavar="N",
        help="Number of threads of references.  [default: all]",
    ),
)


@dataclass(frozen=True)
class RunOptions:
    """The values of the options of `run_options`."""

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
        """Return these options of a command, and remove them from `given`."""
        return cls(**{field.name: given.pop(field.name) for field in fields(cls)})

    def request(self, quick: bool = False) -> Request:
        """Return the request of a comparison; a quick one takes few samples by default."""
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
    """Add the options of commands that compare implementations; `RunOptions` takes them."""
    return add_options(command, RUN_OPTIONS)


def compile_option(text: str) -> Callable[[Any], Any]:
    """Return the option that names a GPU to compile for, which need not be here."""
    return click.option(
        "--compile",
        "compile_for",
        type=click.Choice(list(TARGETS)),
        callback=lambda context, parameter, value: value or "",
        help=f"{text}; the GPU need not be here.",
    )


def refuse_unused(given: Mapping[str, Any], more: Sequence[str] = ()) -> None:
    """Refuse options that have no meaning over ranks, where only `auto` runs."""
    used = [name for name in (*UNUSED_OVER_RANKS, *more) if given.get(name)]
    if used or given.get("algorithm", "auto") != "auto":
        name = (used or ["algorithm"])[0].replace("_", "-")
        raise click.UsageError(f"--{name} is not used with --distributed; leave it out")


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
    default = option.default_text or option.default
    if default is not None:
        text += f"  [default: {default}]"
    shown: dict[str, Any] = {"help": text, "type": TYPES.get(option.type, option.type)}
    if option.choices:
        shown |= {"metavar": "NAME", "shell_complete": _completed(option.choices)}
    elif option.type is str:
        shown |= {"metavar": "FILE", "type": click.Path()}
    return click.option(flag, option.name, default=None, **shown)


def _completed(words: Sequence[str]) -> Callable[..., list[str]]:
    """Return what shells complete, of the words."""
    return lambda context, parameter, begun: [word for word in words if word.startswith(begun)]


def given_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


def used_options(chosen: Operation[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of generated data for a report: with defaults, without None."""
    return given_of(chosen.with_defaults(dict(options)))
