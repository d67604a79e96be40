"""Probes of floating-point arithmetic: accuracy of functions, and denormal numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.lab.doctor.probing import Answers, ProbeSession
from opencl_lab.symptoms.kernels import Array, Wrong, why

ITEMS = 1024
DOUBLES = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"


@dataclass(frozen=True)
class _Function:
    """A function of OpenCL C of x, and of y, which is positive."""

    name: str
    call: str
    exact: Callable[[Array, Array], Array]
    ulps: tuple[float, float]
    """Errors that OpenCL allows in float and in double, in units in the last place."""
    bound: float  # largest magnitude of x


def _pi(x: Array) -> Any:
    return 4 * np.arctan(np.ones((), x.dtype))


FUNCTIONS = (
    _Function("sin", "sin(x)", lambda x, y: np.sin(x), (4, 4), 100.0),
    _Function("cos", "cos(x)", lambda x, y: np.cos(x), (4, 4), 100.0),
    _Function("sinpi", "sinpi(x)", lambda x, y: np.sin(x * _pi(x)), (4, 4), 0.5),
    _Function("cospi", "cospi(x)", lambda x, y: np.sin((0.5 - abs(x)) * _pi(x)), (4, 4), 0.5),
    _Function("exp", "exp(x)", lambda x, y: np.exp(x), (3, 3), 40.0),
    _Function("erf", "erf(x)", lambda x, y: np.vectorize(math.erf)(x), (16, 17), 3.5),
    _Function("sqrt", "sqrt(y)", lambda x, y: np.sqrt(y), (3, 0.51), 1.0),
    _Function("division", "x / y", lambda x, y: x / y, (2.5, 0.51), 100.0),
    _Function(
        "ldexp", "ldexp(x, -ilogb(y))", lambda x, y: np.ldexp(x, 1 - np.frexp(y)[1]), (0, 0), 1.0
    ),
)
"""The library's kernels call `erf`, division and `ldexp`; the others are of users' own. In double
the references add their own errors to those that are allowed: `math.erf` up to 1."""


def accuracy(device: Device) -> Answers:
    """Probe the errors of functions against NumPy in more digits."""
    session, worst = ProbeSession(device), []
    for number, real in enumerate(("float", "double")):
        if real == "double" and not device.capabilities.fp64:
            continue
        yield {"trying": f"functions of {real}"}
        try:
            errors = _errors(session, real)
        except cl.Error as error:
            yield {"verdict": "broken", "detail": f"functions of {real}: {why(error)}"}
            return
        allowed = {item.name: item.ulps[number] for item in FUNCTIONS}
        for name, found in errors.items():
            if not found <= allowed[name]:
                told = f"{name} of {real} is wrong by {found:.3g} units in the last place"
                yield {"verdict": "broken", "detail": f"{told}, {allowed[name]:g} are allowed"}
                return
        most = max(errors, key=errors.__getitem__)
        worst.append(f"{errors[most]:.2g} in {real} ({most})")
    detail = f"largest errors in units in the last place: {', '.join(worst)}"
    yield {"verdict": "ok", "detail": detail}


def _errors(session: ProbeSession, real: str) -> dict[str, float]:
    """Return the largest errors of all functions, in units in the last place."""
    kind = np.dtype(np.float32 if real == "float" else np.float64)
    lines = "\n".join(
        f"  x = xs[i + {n * ITEMS}]; out[i + {n * ITEMS}] = {function.call};"
        for n, function in enumerate(FUNCTIONS)
    )
    source = f"""{DOUBLES if real == "double" else ""}
__kernel void evaluate(__global const {real} *xs, __global const {real} *ys,
                       __global {real} *out) {{
  const size_t i = get_global_id(0);
  const {real} y = ys[i];
  {real} x;
{lines}
}}"""
    bounds = np.array([[function.bound] for function in FUNCTIONS])
    xs = (session.random.uniform(-1, 1, (len(FUNCTIONS), ITEMS)) * bounds).astype(kind)
    ys = session.random.uniform(0.01, 100, ITEMS).astype(kind)
    out = np.full_like(xs, np.nan)
    session.run(source, "evaluate", ITEMS, session.size(64), xs, ys, out)
    errors = {}
    for function, x, found in zip(FUNCTIONS, xs, out, strict=True):
        exact = function.exact(x.astype(np.longdouble), ys.astype(np.longdouble))
        unit = np.spacing(np.abs(exact).astype(kind))
        errors[function.name] = float(np.max(np.abs(found - exact) / unit))
    return errors


def denormals(device: Device) -> Answers:
    """Probe whether products that are below the normal numbers are kept."""
    yield {"trying": "products of small numbers"}
    session, kept, wrong = ProbeSession(device), [], False
    for real in ("float", "double") if device.capabilities.fp64 else ("float",):
        kind = np.dtype(np.float32 if real == "float" else np.float64)
        tiny = 2.0**-126 if real == "float" else 2.0**-1022
        x = (session.random.uniform(1, 2, ITEMS) * tiny).astype(kind)
        out = np.full_like(x, np.nan)
        source = f"""{DOUBLES if real == "double" else ""}
__kernel void halve(__global const {real} *x, __global {real} *out) {{
  out[get_global_id(0)] = x[get_global_id(0)] * ({real})0.5;
}}"""
        try:
            session.run(source, "halve", ITEMS, session.size(64), x, out)
            whole, none = np.array_equal(out, x * kind.type(0.5)), not out.any()
            if not whole and not none:
                raise Wrong(f"products of {real} below the normal numbers are wrong")
        except (cl.Error, Wrong) as error:
            yield {"verdict": "broken", "detail": why(error)}
            return
        kept.append(f"{'kept' if whole else 'zero'} in {real}")
        wrong |= not whole
    yield {"verdict": "limited" if wrong else "ok", "detail": ", ".join(kept)}
