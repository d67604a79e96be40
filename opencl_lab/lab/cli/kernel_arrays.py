"""The arguments of a user's kernel: numbers, and arrays from files, of random numbers or zeros."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.files import FORMATS, read_array, split_part
from opencl_lab.lab.tuning.expressions import evaluate, names_in, whole_numbers_of
from opencl_lab.lab.tuning.signature import Argument

INOUT = "inout:"
RANDOM_INTEGERS = 100


def argument_values(
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
        if name not in texts:
            continue
        text = texts[name].removeprefix(INOUT)
        if not _is_file(text) and names_in(text.rpartition(":")[2]) & set(params):
            if ":" in texts[name]:
                raise InvalidProblem(
                    f"--arg {name}={texts[name]}: an array whose size names a --param is working "
                    "memory, which takes neither a prefix nor a type"
                )
            continue
        if argument.space in ("global", "constant"):
            how, values[name] = _array(argument, text, names, rng)
            if text != texts[name]:
                inout.append(name)
            elif how == "out" or (not how and not argument.const):
                outputs.append(name)
    return values, outputs, inout


def _array(
    argument: Argument, text: str, names: Mapping[str, Any], rng: np.random.Generator
) -> tuple[str, np.ndarray[Any, Any]]:
    """Return an array and its origin: ``out``, ``file``, ``random``, ``zeros`` or ''."""
    if _is_file(text):
        return _array_of_file(argument, text)
    *before, size = text.split(":")
    how = before.pop(0) if before and before[0] in ("out", "random", "zeros") else ""
    dtype, width = argument.dtype, argument.stored
    if before:
        try:
            dtype = np.dtype(before.pop(0))
        except TypeError as error:
            raise InvalidProblem(f"--arg {argument.name}={text}: {error}") from error
    if before or dtype is None:
        form = f"[zeros:|random:|out:]TYPE:SIZE for {argument.text!r}"
        raise InvalidProblem(f"--arg {argument.name} takes {form}, not {text!r}")
    shape = whole_numbers_of(size, names) + ((width,) if width > 1 else ())
    if min(shape) < 1:
        raise InvalidProblem(f"--arg {argument.name}={text}: the size must be positive")
    if math.prod(shape) * dtype.itemsize > sys.maxsize:
        raise InvalidProblem(f"--arg {argument.name}={text}: the array does not fit into memory")
    if how == "zeros" or (how != "random" and not argument.const):
        return how, np.zeros(shape, dtype)
    return how, _random(shape, dtype, rng)


def _is_file(text: str) -> bool:
    return Path(split_part(text, FORMATS)[0]).suffix.lower() in FORMATS


def _array_of_file(argument: Argument, text: str) -> tuple[str, np.ndarray[Any, Any]]:
    """Return the array in a file, and ``file`` or ``out``."""
    name = text if Path(text).exists() else text.removeprefix("out:")
    file, _ = split_part(name, FORMATS)
    if ":" in file and not Path(file).exists():
        raise InvalidProblem(
            f"--arg {argument.name} takes a file, or out: and a file, not {text!r}"
        )
    return "file" if name == text else "out", read_array(name)


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
