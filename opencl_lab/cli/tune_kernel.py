"""`oclab tune KERNEL.cl.mako`: the parameters of a kernel of one's own."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from opencl_lab.cli.common import global_options, parameter_values, settings
from opencl_lab.cli.tune import SEARCH, run_search, search_options
from opencl_lab.discovery import Selection
from opencl_lab.errors import InvalidProblem
from opencl_lab.files import read_array
from opencl_lab.tuning.expressions import evaluate, whole_numbers_of
from opencl_lab.tuning.kernel_file import kernel_file
from opencl_lab.tuning.kernel_text import KernelText
from opencl_lab.tuning.signature import Argument
from opencl_lab.tuning.task import TuningTask
from opencl_lab.tuning.tuner import make_task

__all__ = ["tune_kernel_command"]

FILES = (".npy", ".npz", ".csv", ".txt")
RANDOM_INTEGERS = 100

HELP = """Tune the kernel in {file}.

A template *.mako gets its parameters as its arguments, OpenCL C as macros. The kernel's
arguments are read from its signature. For example:

\b
  oclab tune blur.cl.mako --param WG_SIZE=16,64,256 --param WORK_PER_ITEM=1,4,16
      --fixed RADIUS=8 --arg n=1000003 --arg source=n --arg blurred=n
      --global "ceil_div(n, WORK_PER_ITEM)"

Sizes are expressions of parameters and of arguments that are numbers: + - * // %, min, max,
ceil_div(a, b), round_up(a, multiple); commas separate dimensions.
"""


def tune_kernel_command(file: str) -> click.Command:
    """Return the command that tunes the kernel in a file."""

    @click.command(file, help=HELP.format(file=file))
    @click.option(
        "--param",
        "params",
        metavar="NAME=A,B,...",
        multiple=True,
        required=True,
        help="The values of a parameter to try; the first ones are what a gain is told against.",
    )
    @click.option(
        "--fixed", metavar="NAME=VALUE", multiple=True, help="A parameter that does not vary."
    )
    @click.option(
        "--arg",
        "arguments",
        metavar="NAME=VALUE",
        multiple=True,
        help="An argument of the kernel: a number; for an array a file such as x.npy, which is "
        "read, or its size, with random numbers in it if it is const. Before a size may stand "
        "zeros:, random: or out:, and a type such as float32:; out: also before a file.",
    )
    @click.option(
        "--global",
        "global_size",
        metavar="SIZES",
        required=True,
        help="Work-items in all; rounded up to a multiple of the local size.",
    )
    @click.option(
        "--local",
        "local_size",
        metavar="SIZES",
        help="Work-items in a group.  [default: reqd_work_group_size of the kernel]",
    )
    @click.option("--kernel", metavar="NAME", help="Which kernel, where the file has several.")
    @click.option(
        "--where",
        "restrictions",
        metavar="CONDITION",
        multiple=True,
        help='What combinations must fulfil, such as "WG_SIZE * WORK <= 4096".',
    )
    @click.option(
        "--check",
        "expected",
        metavar="[NAME=]FILE",
        multiple=True,
        help="The right content of an output.  [default: what the first configuration gives]",
    )
    @click.option(
        "--tolerance",
        type=click.FloatRange(0),
        metavar="X",
        help="Allowed error relative to the largest magnitude.  [default: by type; integers: 0]",
    )
    @click.option("--build-option", "options", metavar="OPTION", multiple=True, help="As -Dx.")
    @search_options
    @global_options
    def command(
        params: tuple[str, ...],
        fixed: tuple[str, ...],
        arguments: tuple[str, ...],
        global_size: str,
        local_size: str | None,
        kernel: str | None,
        restrictions: tuple[str, ...],
        expected: tuple[str, ...],
        tolerance: float | None,
        options: tuple[str, ...],
        **given: Any,
    ) -> int:
        text = KernelText(
            Path(file).resolve(),
            kernel,
            {name: parameter_values(value) for name, value in _pairs("--param", params).items()},
            {name: _one(value) for name, value in _pairs("--fixed", fixed).items()},
            options,
        )

        def make(selection: Selection, seed: int) -> TuningTask:
            known = text.signature(text.first).arguments
            values, outputs = _values(known, _pairs("--arg", arguments), text, seed)
            operation = kernel_file(
                text,
                values,
                global_size,
                local_size=local_size,
                restrictions=restrictions,
                outputs=outputs,
                expected=_expected(expected),
                tolerance=tolerance,
                device=selection.device.spec,
            )
            task = make_task(operation, device=selection.device, seed=seed)
            if operation.reference_is_first:
                first = task.algorithm.default_config(task.problem, task.device)
                settings().say(
                    "without --check every configuration is compared with the result of the "
                    f"first one, {first}"
                )
            return task

        return run_search(make, {name: given[name] for name in SEARCH})

    return command


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Return what each ``NAME=VALUE`` says.

    Raises
    ------
    InvalidProblem
        If one is no pair, or names what another has named.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise InvalidProblem(f"{option} takes NAME=VALUE, not {text!r}")
        if name in pairs:
            raise InvalidProblem(f"{option} {name} is given twice")
        pairs[name] = value
    return pairs


def _one(text: str) -> Any:
    """Return the value of a fixed parameter, which may be any number."""
    (value,) = parameter_values(text)
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _values(
    known: Sequence[Argument], texts: dict[str, str], text: KernelText, seed: int
) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments' values, and the names of those arrays that are outputs."""
    values: dict[str, Any] = dict(texts)  # what the kernel does not have is refused later
    numbers = {argument.name for argument in known if not argument.space} & set(texts)
    values.update({name: evaluate(texts[name], text.fixed) for name in numbers})
    names = {**text.fixed, **{name: values[name] for name in numbers}}
    rng = np.random.default_rng(seed)
    outputs = []
    for argument in known:
        name = argument.name
        if name in texts and argument.space in ("global", "constant"):
            how, values[name] = _array(argument, texts[name], names, rng)
            if how == "out" or (not how and not argument.const):
                outputs.append(name)
    return values, outputs


def _array(
    argument: Argument, text: str, names: dict[str, Any], rng: np.random.Generator
) -> tuple[str, np.ndarray[Any, Any]]:
    """Return an array and how it begins: ``out``, ``file``, ``random``, ``zeros`` or ''."""
    if Path(text).suffix.lower() in FILES:
        file = Path(text if Path(text).exists() else text.removeprefix("out:"))
        if ":" in str(file) and not file.exists():
            raise InvalidProblem(
                f"--arg {argument.name} takes a file, or out: and a file, not {text!r}"
            )
        return "file" if str(file) == text else "out", read_array(file)
    *words, size = text.split(":")
    how = words.pop(0) if words and words[0] in ("out", "random", "zeros") else ""
    dtype, width = argument.dtype, argument.stored
    if words:
        try:
            dtype = np.dtype(words.pop(0))
        except TypeError as error:
            raise InvalidProblem(f"--arg {argument.name}={text}: {error}") from error
    if words or dtype is None:
        form = f"[zeros:|random:|out:]TYPE:SIZE for {argument.text!r}"
        raise InvalidProblem(f"--arg {argument.name} takes {form}, not {text!r}")
    shape = whole_numbers_of(size, names) + ((width,) if width > 1 else ())
    if min(shape) < 1:
        raise InvalidProblem(f"--arg {argument.name}={text}: the size must be positive")
    if math.prod(shape) * dtype.itemsize > sys.maxsize:
        raise InvalidProblem(f"--arg {argument.name}={text}: no memory holds so many")
    if how == "zeros" or (how != "random" and not argument.const):
        return how, np.zeros(shape, dtype)
    return how, _random(shape, dtype, rng)


def _random(
    shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Return random numbers: normal ones; as integers small ones, which may be indices."""
    if dtype.kind in "iu":
        return rng.integers(0, RANDOM_INTEGERS, shape).astype(dtype)
    numbers: Any = rng.standard_normal(shape)
    if dtype.kind == "c":
        numbers = numbers + 1j * rng.standard_normal(shape)
    return np.asarray(numbers, dtype)


def _expected(texts: Sequence[str]) -> Any:
    """Return the expected outputs by name, or one array, or None."""
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return read_array(Path(texts[0]))
    return {name: read_array(Path(file)) for name, file in _pairs("--check", texts).items()}
