"""`oclab tune KERNEL.cl.mako`: tune a user's kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from opencl_lab.core.device import Device
from opencl_lab.lab.cli.common import add_options, global_options, settings
from opencl_lab.lab.cli.kernel_arrays import argument_values
from opencl_lab.lab.cli.tune_search import AskedSearch, run_search, search_options
from opencl_lab.lab.cli.values import pairs, parameter_values
from opencl_lab.lab.files import read_array
from opencl_lab.lab.tuning.kernel_file import kernel_file
from opencl_lab.lab.tuning.kernel_text import KernelText
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.lab.tuning.tuner import make_task

HELP = """Tune the kernel in {file}.

A template *.mako gets its parameters as its arguments, OpenCL C as macros. The kernel's
arguments are read from its signature. For example:

\b
  oclab tune blur.cl.mako --param WG_SIZE=16,64,256 --param WORK_PER_ITEM=1,4,16
      --fixed RADIUS=8 --arg n=1000003 --arg source=n --arg blurred=n
      --global "ceil_div(n, WORK_PER_ITEM)"

Sizes are expressions of parameters and numeric arguments, with + - * // %, min, max,
ceil_div(a, b), round_up(a, multiple); commas separate dimensions.
"""


KERNEL_OPTIONS = (
    click.option(
        "--param",
        "params",
        metavar="NAME=A,B,...",
        multiple=True,
        required=True,
        help="Values of a parameter to try; the first ones are the baseline. Repeatable.",
    ),
    click.option(
        "--fixed",
        metavar="NAME=VALUE",
        multiple=True,
        help="Parameter with a fixed value; repeatable.",
    ),
    click.option(
        "--arg",
        "arguments",
        metavar="NAME=VALUE",
        multiple=True,
        help="Argument of the kernel; repeatable. For a scalar, its value. For an array, a file "
        "such as x.npy, or its size; const arrays are filled with random numbers. One of a size "
        "that names a --param is working memory: no result, and no prefix. Prefixes of another "
        "size: zeros:, random: or out:, then a type such as float32:; of a file: out:. The prefix "
        "inout: comes first, for an array that the kernel reads and writes.",
    ),
    click.option(
        "--global",
        "global_size",
        metavar="SIZES",
        required=True,
        help="Global size in work-items, rounded up to a multiple of the local size.",
    ),
    click.option(
        "--local",
        "local_size",
        metavar="SIZES",
        help="Work-group size.  [default: reqd_work_group_size of the kernel]",
    ),
    click.option("--kernel", metavar="NAME", help="Name of the kernel, if the file has several."),
    click.option(
        "--where",
        "restrictions",
        metavar="CONDITION",
        multiple=True,
        help='Condition on parameters, such as "WG_SIZE * WORK <= 4096"; repeatable.',
    ),
    click.option(
        "--check",
        "expected",
        metavar="[NAME=]FILE",
        multiple=True,
        help="Expected content of an output; repeatable.  [default: that of the first "
        "configuration]",
    ),
    click.option(
        "--tolerance",
        type=click.FloatRange(0),
        metavar="X",
        help="Allowed error relative to the largest magnitude.  [default: by type; integers: 0]",
    ),
    click.option(
        "--build-option",
        "options",
        metavar="OPTION",
        multiple=True,
        help="Option of the OpenCL compiler, such as -DNAME=1; repeatable.",
    ),
)


def tune_kernel_command(file: str) -> click.Command:
    """Return the command that tunes the kernel in a file."""

    @click.command(file, help=HELP.format(file=file))
    @partial(add_options, options=KERNEL_OPTIONS)
    @search_options
    @global_options
    def command(
        params: Sequence[str],
        fixed: Sequence[str],
        kernel: str | None,
        options: tuple[str, ...],
        **given: Any,
    ) -> int:
        search = AskedSearch.taken_from(given)
        text = KernelText(
            Path(file).resolve(),
            kernel,
            {name: parameter_values(v) for name, v in pairs("--param", params).items()},
            {name: _fixed_value(v) for name, v in pairs("--fixed", fixed).items()},
            options,
        )
        return run_search(lambda device: _task(text, device, search.seed, **given), search)

    return command


def _task(
    text: KernelText,
    device: Device,
    seed: int,
    arguments: Sequence[str],
    expected: Sequence[str],
    **given: Any,
) -> TuningTask:
    """Return the task, with its data generated or read; `given` is for `kernel_file`."""
    texts = pairs("--arg", arguments)
    signature = text.launched(text.first)[0]
    values, outputs, inout = argument_values(
        signature.arguments, texts, text.fixed, seed, text.params
    )
    operation = kernel_file(
        text,
        values,
        outputs=outputs,
        inout=inout,
        expected=_expected(expected),
        device=device.spec,
        **given,
    )
    task = make_task(operation, device=device, seed=seed)
    if operation.reference_is_first:
        first = task.algorithm.default_config(task.problem, task.device)
        settings().say(
            "without --check every configuration is compared with the result of the "
            f"first one, {first}"
        )
    return task


def _fixed_value(text: str) -> Any:
    """Return the value of a fixed parameter, which may be any number."""
    (value,) = parameter_values(text)
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _expected(texts: Sequence[str]) -> Any:
    """Return the expected outputs by name, or one array, or None."""
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return read_array(texts[0])
    return {name: read_array(file) for name, file in pairs("--check", texts).items()}
