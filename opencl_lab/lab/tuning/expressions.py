"""Arithmetic on sizes and parameters, written as text and evaluated without `eval`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.plan import ceil_divide, round_up

OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "ceil_div": ceil_divide,
    "round_up": round_up,
}
GRAMMAR = (
    "numbers, names of parameters and arguments, + - * // %, comparisons, and, or, not, "
    f"{', '.join(FUNCTIONS)}"
)


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression; several, separated by commas, are a tuple.

    It may contain what `GRAMMAR` lists. InvalidConfig is raised for anything else, and for values
    that cannot be computed.
    """
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, names)
    except SyntaxError as error:
        raise InvalidConfig(f"{text!r} is no expression; it may have {GRAMMAR}") from error
    except KeyError as error:
        available = ", ".join(sorted(names)) or "none"
        raise InvalidConfig(
            f"{text!r} has the unknown name {error}; there are: {available}"
        ) from error
    except (TypeError, ArithmeticError, RecursionError) as error:
        raise InvalidConfig(f"{text!r} cannot be computed: {error}") from error


def whole_numbers_of(text: str, names: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the value of an expression as whole numbers, such as the sizes of a launch."""
    value = evaluate(text, names)
    values = value if isinstance(value, tuple) else (value,)
    whole = (isinstance(v, int) or (isinstance(v, float) and v.is_integer()) for v in values)
    if not all(whole):  # 1e6 is a whole number, too
        raise InvalidConfig(f"{text!r} gives {value!r}, which is no whole number")
    return tuple(int(item) for item in values)


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() | str()):
            return node.value
        case ast.Name():
            return names[node.id]
        case ast.Tuple():
            return tuple(_value(item, names) for item in node.elts)
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand, names)
        case ast.UnaryOp(op=ast.Not()):
            return not _value(node.operand, names)
        case ast.BinOp() if type(node.op) in OPERATORS:
            left, right = _value(node.left, names), _value(node.right, names)
            if isinstance(left, str) or isinstance(right, str):
                raise TypeError("there is a text in it")  # "a" * n would fill the memory
            return OPERATORS[type(node.op)](left, right)
        case ast.BoolOp():
            together = all if isinstance(node.op, ast.And) else any
            return together(_value(item, names) for item in node.values)
        case ast.Compare() if all(type(op) in OPERATORS for op in node.ops):
            values = [_value(item, names) for item in (node.left, *node.comparators)]
            pairs = zip(node.ops, values, values[1:], strict=False)
            return all(OPERATORS[type(op)](left, right) for op, left, right in pairs)
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(item, names) for item in node.args))
    raise SyntaxError(ast.unparse(node))
