"""`oclab tune KERNEL.cl.mako`: tune a user's kernel."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.cli.common import add_options, global_options, option, settings
from opencl_lab.lab.cli.tune_search import AskedSearch, run_search, search_options
from opencl_lab.lab.cli.values import pairs, parameter_values
from opencl_lab.lab.files import FORMATS, read_array, split_part
from opencl_lab.lab.tuning.expressions import evaluate, whole_numbers_of
from opencl_lab.lab.tuning.kernel_file import kernel_file
from opencl_lab.lab.tuning.kernel_text import Argument, KernelText
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


INOUT = "inout:"
RANDOM_INTEGERS = 100

KERNEL_OPTIONS = (
    option(
        "--param NAME=A,B,...",
        "Values of a parameter to try; the first ones are the baseline. Repeatable.",
        to="params",
        multiple=True,
        required=True,
    ),
    option("--fixed NAME=VALUE", "Parameter with a fixed value; repeatable.", multiple=True),
    option(
        "--arg NAME=VALUE",
        "Argument of the kernel; repeatable. For a scalar, its value. For an array, a file "
        "such as x.npy, or its size; const arrays are filled with random numbers, others are "
        "outputs. One of a size that names a --param is working memory: no result, and no prefix. "
        "Prefixes of another size: zeros: or random:, for an array that is read, then a type "
        "such as float32:. The prefix inout: comes first, for an array that the kernel reads and "
        "writes.",
        to="arguments",
        multiple=True,
    ),
    option(
        "--global SIZES",
        "Global size in work-items, rounded up to a multiple of the local size.",
        to="global_size",
        required=True,
    ),
    option(
        "--local SIZES",
        "Work-group size.  [default: reqd_work_group_size of the kernel]",
        to="local_size",
    ),
    option("--kernel NAME", "Name of the kernel, if the file has several."),
    option(
        "--where CONDITION",
        'Condition on parameters, such as "WG_SIZE * WORK <= 4096"; repeatable.',
        to="restrictions",
        multiple=True,
    ),
    option(
        "--check [NAME=]FILE",
        "Expected content of an output; repeatable.  [default: that of the first configuration]",
        to="expected",
        multiple=True,
    ),
    option(
        "--tolerance X",
        "Allowed error relative to the largest magnitude.  [default: by type; integers: 0]",
        type=click.FloatRange(0),
    ),
    option(
        "--build-option OPTION",
        "Option of the OpenCL compiler, such as -DNAME=1; repeatable.",
        to="options",
        multiple=True,
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
    values, outputs, inout = _argument_values(
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


# ---------------------------------------------------------- values of --arg


def _argument_values(
    arguments: Sequence[Argument],
    texts: Mapping[str, str],
    fixed: Mapping[str, Any],
    seed: int,
    params: Collection[str] = (),
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the values of arguments, which arrays are outputs, and which are read and written.

    `texts` are the values of ``--arg``; sizes in them may name the `fixed` parameters. A size that
    names one of `params` stays an expression.
    """
    values: dict[str, Any] = dict(texts)  # unknown arguments are refused later
    numbers = {argument.name for argument in arguments if not argument.space} & set(texts)
    values.update({name: evaluate(texts[name], fixed) for name in numbers})
    names = {**fixed, **{name: values[name] for name in numbers}}
    rng = np.random.default_rng(seed)
    outputs, inout = [], []
    for argument in arguments:
        name = argument.name
        if name in texts and argument.space in ("global", "constant"):
            text = texts[name].removeprefix(INOUT)
            values[name], given = _array(argument, text, names, rng, params)
            if text != texts[name]:
                inout.append(name)
            elif not given and not argument.const:
                outputs.append(name)
    return values, outputs, inout


def _array(
    argument: Argument,
    text: str,
    names: Mapping[str, Any],
    rng: np.random.Generator,
    params: Collection[str],
) -> tuple[np.ndarray[Any, Any] | str, bool]:
    """Return an array, and whether it is no output; for working memory its size as text."""
    if Path(split_part(text, FORMATS)[0]).suffix.lower() in FORMATS:
        return read_array(text), True
    *before, size = text.split(":")
    if not set(re.findall(r"\w+", size)).isdisjoint(params):
        return text, True
    how = before.pop(0) if before and before[0] in ("random", "zeros") else ""
    dtype, width = argument.dtype, argument.stored
    if before:
        try:
            dtype = np.dtype(before.pop(0))
        except TypeError as error:
            raise InvalidProblem(f"--arg {argument.name}={text}: {error}") from error
    if before or dtype is None:
        form = f"a file, or [zeros:|random:][TYPE:]SIZE for {argument.text!r}"
        raise InvalidProblem(f"--arg {argument.name} takes {form}, not {text!r}")
    shape = whole_numbers_of(size, names) + ((width,) if width > 1 else ())
    if min(shape) < 1:
        raise InvalidProblem(f"--arg {argument.name}={text}: the size must be positive")
    if math.prod(shape) * dtype.itemsize > sys.maxsize:
        raise InvalidProblem(f"--arg {argument.name}={text}: the array does not fit into memory")
    if how == "random" or (not how and argument.const):
        return _random(shape, dtype, rng), bool(how)
    return np.zeros(shape, dtype), bool(how)


def _random(
    shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Return random numbers: normally distributed, or small integers, which may be indices."""
    if dtype.kind in "iu":
        return rng.integers(0, RANDOM_INTEGERS, shape).astype(dtype)
    numbers: Any = rng.standard_normal(shape)
    if dtype.kind == "c":
        numbers = numbers + 1j * rng.standard_normal(shape)
    return np.asarray(numbers, dtype)
