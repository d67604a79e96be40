"""The probe of vectors: every type and width, in all that kernels do with them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.lab.doctor.probes.limits import short_of
from opencl_lab.lab.doctor.probing import Answers, ProbeSession
from opencl_lab.selftest.child import Trying
from opencl_lab.selftest.kernels import Array, Wrong, check

TYPES = {
    **{f"{sign}{name}": np.dtype(f"{'u' if sign else ''}int{bits}")
       for name, bits in (("char", 8), ("short", 16), ("int", 32), ("long", 64))
       for sign in ("", "u")},
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "half": np.dtype(np.float16),
}  # fmt: skip
WIDTHS = (2, 3, 4, 8, 16)
ITEMS = 16
SIZES = (16, 32, 64)
STORED = "half in memory"
"""What kernels without half precision do with it: `vload_half` and `vstore_half`."""


def _span(name: str, width: int) -> int:
    """Return the bytes of the widest vector that a kernel of `vector_forms.cl.mako` has."""
    return (4 if width == 3 else width) * max(4, TYPES.get(name, TYPES["float"]).itemsize)


def _widths(name: str, size: int) -> list[int]:
    """Return the widths of a type that belong to programs with vectors of `size` bytes."""
    least = 0 if size == SIZES[0] else size // 2
    return [width for width in WIDTHS if least < _span(name, width) <= size]


def vector_bytes(device: Device) -> Answers:
    """Probe built-in functions on increasingly wide vectors, and vectors of every type."""
    session = ProbeSession(device)
    lacking = {"double": not device.capabilities.fp64, "half": not device.capabilities.fp16}
    names = [name for name in (*TYPES, STORED) if not lacking.get(name)]
    widest = 1  # byte: no vectors at all
    for size in SIZES:
        attempt = f"a program with vectors of {size} bytes"
        try:
            for attempt in chain(_builtins(session, names, size), _every(session, names, size)):
                yield Trying(attempt, widest)
        except (cl.Error, Wrong) as error:
            yield short_of(widest, f"up to {widest} bytes; {attempt}", error)
            return
        widest = size
    yield Verdict("ok", "up to 64 bytes, the widest tried", widest)


def _every(session: ProbeSession, names: Sequence[str], size: int) -> Iterator[str]:
    """Try vectors of all types, none of more than `size` bytes; yield what is tried next."""
    for name in names:
        widths, stored = _widths(name, size), name == STORED
        yield f"{name}, vectors of {', '.join(map(str, widths))}"
        kind, partner = TYPES.get(name, TYPES["half"]), "int" if name == "float" else "float"
        parameters = {
            "TYPE": "half" if stored else name,
            "PARTNER": partner,
            "WIDTHS": widths,
            "ITEMS": ITEMS,
            "STORED": stored,
        }
        program = session.built("doctor/vector_forms.cl.mako", parameters)
        count = ITEMS * sum(widths)
        a, b = (
            session.reals(count, kind) if stored else _numbers(session, kind, count)
            for _ in range(2)
        )
        p = session.random.uniform(0, 100, count).astype(TYPES[partner])
        sums, chosen, back = (np.zeros_like(a) for _ in range(3))
        converted = np.zeros_like(p)
        given = (a, b, sums) if stored else (a, b, p, sums, chosen, converted, back)
        session.run(program, "forms", ITEMS, session.size(4), *given)
        wide = np.float32 if stored else kind
        x, y = a.astype(wide), b.astype(wide)
        pairs = [("a * b + a", sums, (x * y + x).astype(kind))]
        if not stored:
            pairs += [
                ("select", chosen, np.maximum(a, b)),
                (f"convert_{partner}", converted, a.astype(p.dtype)),
                (f"convert_{name}", back, p.astype(kind)),
            ]
        bounds = ITEMS * np.cumsum(widths)[:-1]
        for what, found, expected in pairs:
            parts = zip(widths, np.split(found, bounds), np.split(expected, bounds), strict=True)
            for width, one, other in parts:
                yield f"{what}, {name}, vectors of {width}"
                check(one, other)


def _numbers(session: ProbeSession, kind: np.dtype[Any], count: int) -> Array:
    """Return numbers of which ``a * b + a`` is exact, or wraps as in C."""
    if kind.kind == "u":
        return session.random.integers(0, np.iinfo(kind).max, count, kind, endpoint=True)
    bound = 40 if kind.kind == "f" else math.isqrt(np.iinfo(kind).max) - 2
    return session.random.integers(-bound, bound, count, endpoint=True).astype(kind)


def _builtins(session: ProbeSession, names: Sequence[str], size: int) -> Iterator[str]:
    """Try built-in functions on vectors of `size` bytes; yield what is tried next."""
    types = {name: TYPES[name] for name in ("float", "uint", "double") if name in names}
    yield f"a program with built-ins on vectors of {size} bytes"
    parameters = {"elements": [(name, kind.itemsize) for name, kind in types.items()], "size": size}
    program = session.built("doctor/vectors.cl.mako", parameters)
    # Loads come last: if they fail, the compiler hangs; others fail at once.
    for way in ("combine", "load"):
        for name, kind in types.items():
            width = size // kind.itemsize
            yield f"{f'vload{width}' if way == 'load' else 'min, max, clamp, fma'} on {name}{width}"
            whole, count = kind.kind == "u", ITEMS * width
            a, b, c, out = (
                session.words(count) if whole else session.reals(count, kind) for _ in range(4)
            )
            session.run(program, f"{way}_{name}", ITEMS, session.size(4), a, b, c, out)
            expected = a + b * c
            if way == "combine":
                low, high = np.minimum(a, b), np.maximum(a, b)
                expected = high * np.clip(c, low, high) + (low if whole else np.abs(low))
            check(out, expected, 0.0 if whole else 1e-5)
