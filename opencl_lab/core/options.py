"""Options of public functions, checked by their annotations and turned into plain Python values."""

from __future__ import annotations

import inspect
import math
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from reprlib import repr as shown
from typing import Any, ParamSpec, TypeVar

import numpy as np

from opencl_lab.core.errors import InvalidProblem

P = ParamSpec("P")
R = TypeVar("R")


def python_value(value: Any) -> Any:
    """Return NumPy's scalars and arrays without dimensions as Python's numbers, if they are some.

    A number of a type that Python lacks, such as `numpy.longdouble`, stays what it is.
    """
    scalar = isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0
    return value.item() if scalar and value.dtype.kind in "biufc" else value


def whole_number(value: Any, name: str) -> int:
    """Return an argument as a plain `int`; NumPy's integers and booleans are accepted."""
    try:
        return int(operator.index(python_value(value)))
    except TypeError:
        raise InvalidProblem(f"{name} must be a whole number, not {shown(value)}") from None


def exact_number(value: Any, name: str) -> Any:
    """Return a real argument exactly: as an `int` if it is whole, else as it is given.

    It may be of any type of numbers, such as `decimal.Decimal` and `numpy.longdouble`, or an array
    of one number.

    Raises
    ------
    InvalidProblem
        If it is no real number, named by `name`.
    """
    try:
        number = value.item() if isinstance(value, np.ndarray) else value
        # `float` would drop the imaginary part of NumPy's complex numbers, and parse strings.
        if np.iscomplexobj(number) or isinstance(number, (str, bytes)):
            raise TypeError
        if not isinstance(number, int):
            with suppress(OverflowError):  # of fractions
                if not math.isfinite(float(number)):  # or a decimal with a large exponent
                    return number
        whole = int(number)
        return whole if whole and whole == number else number  # zero may have a sign
    except (TypeError, ValueError) as error:
        raise InvalidProblem(f"{name} must be a real number, not {shown(value)}") from error


def real_number(value: Any, name: str) -> float:
    """Return an argument as a float; a number too large for a float becomes an infinity.

    Raises
    ------
    InvalidProblem
        If it is no real number, named by `name`.
    """
    number = exact_number(value, name)
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def flag(value: Any, name: str) -> bool:
    """Return an argument as a `bool`; anything else, such as ``"no"`` or 1, is refused."""
    value = python_value(value)
    if isinstance(value, bool):
        return value
    raise InvalidProblem(f"{name} must be True or False, not {shown(value)}")


def text(value: Any, name: str) -> str:
    """Return an argument that must be a text."""
    if isinstance(value, str):
        return value
    raise InvalidProblem(f"{name} must be a text, not {shown(value)}")


def texts(value: Any, name: str) -> tuple[str, ...]:
    """Return an argument that must be a sequence of texts; a single text is one of length 1."""
    several = (value,) if isinstance(value, str) else value
    if isinstance(several, Sequence) and all(isinstance(item, str) for item in several):
        return tuple(several)
    raise InvalidProblem(f"{name} must be a sequence of texts, not {shown(value)}")


def _names(value: Any, name: str) -> str | tuple[str, ...]:
    return value if isinstance(value, str) else texts(value, name)


def _callable(value: Any, name: str) -> Any:
    if callable(value):
        return value
    raise InvalidProblem(f"{name} must be a function, not {shown(value)}")


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return value
    raise InvalidProblem(f"{name} must map names to values, not be {shown(value)}")


def _values(value: Any, name: str) -> dict[str, list[Any]]:
    """Return an argument that must map names to sequences of values."""
    found = {}
    for key, several in _mapping(value, name).items():
        if isinstance(several, (str, bytes)) or not np.iterable(several):
            raise InvalidProblem(f"{name} must map {key} to several values, not {shown(several)}")
        found[key] = list(map(python_value, several))
    return found


def _path(value: Any, name: str) -> str:
    try:
        return os.fsdecode(value)
    except TypeError:
        raise InvalidProblem(f"{name} must be a path, not {shown(value)}") from None


CHECKS: Mapping[str, Callable[[Any, str], Any]] = {
    "bool": flag,
    "int": whole_number,
    "float": real_number,
    "str": text,
    "Sequence[str]": texts,
    "str | Sequence[str]": _names,
    "Callable[[TuningProgress], None]": _callable,
    "Mapping[str, object]": _mapping,
    "Mapping[str, Value]": _mapping,
    "Mapping[str, Sequence[Value]]": _values,
    "str | Path": _path,
}
"""How an argument is checked, by its annotation; with ``| None`` that may be given, too."""


def _check_of(annotation: Any) -> Callable[[Any, str], Any] | None:
    """Return how arguments with an annotation are checked, or None if they are not."""
    kind = str(annotation)
    check = CHECKS.get(kind.removesuffix(" | None"))
    if check is None or not kind.endswith(" | None"):
        return check
    return lambda value, name: None if value is None else check(value, name)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that gets plain values of the types in its annotations, which are texts.

    Wrong ones are an `InvalidProblem`. Arguments with annotations that are not in `CHECKS` are
    left to the function. It must not be given further positional arguments.
    """
    signature = inspect.signature(function)
    names = tuple(signature.parameters)
    checks = {name: _check_of(item.annotation) for name, item in signature.parameters.items()}

    def one(name: str, value: Any) -> Any:
        check = checks.get(name)
        return value if check is None else check(value, name)

    @wraps(function)
    def with_plain_values(*args: P.args, **kwargs: P.kwargs) -> R:
        given = [*map(one, names, args), *args[len(names) :]]
        return function(*given, **{name: one(name, item) for name, item in kwargs.items()})

    return with_plain_values
