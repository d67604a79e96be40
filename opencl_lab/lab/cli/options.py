"""Options that several commands share: of problems, and of comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import click
from click.core import ParameterSource

from opencl_lab.lab.cli.common import add_options, option
from opencl_lab.lab.cli.values import NUMBER, WHOLE_NUMBER, WHOLE_NUMBERS, variants
from opencl_lab.lab.engine.request import Request
from opencl_lab.lab.offline import TARGETS
from opencl_lab.lab.operation import Operation, Option
from opencl_lab.ops.solver import AUTO

REPEATS, SECONDS = 5, 10.0
"""Default number of samples for one problem, and their time limit."""

UNUSED_OVER_RANKS = (
    *("--against", "--baseline", "--threads", "--resident", "--vary", "--time-limit"),
    "--memory-limit",
)
TYPES: dict[type, Any] = {int: WHOLE_NUMBER, complex: NUMBER, tuple: WHOLE_NUMBERS}
"""Types of options that differ between command line and Python."""

RUN_OPTIONS = (
    option(
        "--algorithm NAME[,NAME]|auto|all",
        "OpenCL algorithms to run.",
        to="algorithms",
        default="auto",
    ),
    option(
        "--vary NAME=A,B,C",
        "Run each algorithm with all of these values of a kernel parameter; repeatable.",
        to="variants",
        multiple=True,
        callback=lambda context, option, texts: variants(texts),
    ),
    option("--resident", "Measure only with data on the device.", is_flag=True),
    option(
        "--against NAME[,NAME]|all|none",
        "References to compare with; all: also those with data on the device, and those that "
        "are not installed.  [default: the installed ones with data on the host, if times are "
        "shown]",
    ),
    option(
        "--baseline NAME",
        "Implementation that speed-ups are over, such as numpy.  [default: c:seq, else the "
        "first reference that is measured]",
    ),
    option(
        "--repeats R",
        "Number of samples of each implementation, unless --time-limit ends sampling.  "
        f"[default: {REPEATS}; in a sweep until medians are precise]",
        type=int,
    ),
    option(
        "--time-limit S",
        "Time limit in seconds for the samples of one problem; each implementation gets at "
        "least one. Without --repeats, sampling ends earlier if medians are precise.  "
        f"[default: {SECONDS:g} without --repeats]",
        to="budget",
        type=float,
    ),
    option("--seed N", "Seed of the data.", type=click.IntRange(0), default=0),
    option("--threads N", "Number of threads of references.  [default: all]", type=int),
)


def request_of(given: dict[str, Any]) -> Request:
    """Return the request of the options of `run_options`, and remove them from `given`."""
    return Request(
        **{item.name: given.pop(item.name) for item in fields(Request) if item.name in given}
    )


def quick(request: Request) -> Request:
    """Return a request with few samples, unless it says how many."""
    few = request.repeats is None and request.budget is None
    return replace(request, repeats=REPEATS, budget=SECONDS) if few else request


def run_options(command: Any) -> Any:
    """Add the options of commands that compare implementations; `request_of` takes them."""
    return add_options(command, RUN_OPTIONS)


def compile_option(text: str) -> Callable[[Any], Any]:
    """Return the option that names a GPU to compile for, which need not be here."""
    return option(
        "--compile",
        f"{text}; the GPU need not be here.",
        to="compile_for",
        type=click.Choice(list(TARGETS)),
        callback=lambda context, parameter, value: value or "",
    )


def refuse_unused(algorithm: str) -> None:
    """Refuse options that have no meaning over ranks, where only `auto` runs."""
    context = click.get_current_context()
    for item in context.command.params:
        given = context.get_parameter_source(item.name or "") is ParameterSource.COMMANDLINE
        flag = item.opts[0]
        if (given and flag in UNUSED_OVER_RANKS) or (flag == "--algorithm" and algorithm != AUTO):
            raise click.UsageError(f"{flag} is not used with --distributed; leave it out")


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
