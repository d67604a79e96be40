"""Differences between two runs other than the measured code: machine, data, packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from opencl_lab.core.wording import counted
from opencl_lab.lab.engine.stored import Results

DEVICE = ("platform", "driver", "compute_units")
HOST = ("system", "python", "cpu", "processors", "memory_bytes")
GPU = ("max_clock_mhz", "memory_clock_mhz", "power_limit_w", "performance_state")
CLOCK = "clock_mhz"  # varies during a run
CLOCKS_APART = 1.05  # largest ratio of clocks that are not reported as different
NAMED = 6  # largest number of packages in a sentence


def _shown(value: Any) -> str:
    return "none" if value in (None, "") else str(value)


def _then(before: Any, after: Any) -> str:
    return f"{_shown(before)}, then {_shown(after)}"


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return a text for each value that differs, such as ``WG 64, then 128``."""
    names = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    return [f"{name} {_then(old.get(name), new.get(name))}" for name in names]


def other_conditions(old: Results, new: Results) -> list[str]:
    """Return a sentence about each condition that differs, as far as both documents record it."""
    found = [
        *_differs("device", old.device.get("name"), new.device.get("name")),
        *_each("device's {}", DEVICE, old.device, new.device),
        *_differs("version of opencl_lab", old.version, new.version),
        *_data(old, new),
        *_environment(old.mapping("environment"), new.mapping("environment")),
    ]
    for results in (old, new):
        if results.content.get("complete") is False:
            found.append(f"{results.path} is incomplete: its sweep was interrupted")
        busy = results.mapping("environment").get("busy")
        if busy and isinstance(busy, str):
            found.append(f"{results.path} was measured with this warning: {busy}")
    return found


def _differs(name: str, before: Any, after: Any) -> Iterator[str]:
    if before != after:
        yield f"the {name} differs: {_then(before, after)}"


def _each(
    form: str, names: Iterable[str], old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[str]:
    """Yield a sentence for each of these values that differs; `form` is the form of its name."""
    for name in names:
        what = form.format(name.replace("_", " "))
        yield from _differs(what, old.get(name), new.get(name))


def _data(old: Results, new: Results) -> Iterator[str]:
    """Yield a sentence for each difference of the data.

    Options of generated data other than the seed distinguish rows, and are not compared here.
    """
    by_files = "seed" not in old.options or "seed" not in new.options
    names = old.options.keys() | new.options.keys() if by_files else {"seed"}
    for name in sorted(names):
        yield from _differs(f"data ({name})", old.options.get(name), new.options.get(name))
    for name in () if by_files else sorted(old.options.keys() ^ new.options.keys()):
        if name not in (old.size_name, new.size_name):
            only = new if name in new.options else old
            yield f"only {only.path} records {name}: {_shown(only.options[name])}"


def _environment(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each difference of the environments, if both documents have one."""
    if not old or not new:
        return
    yield from _each("host's {}", HOST, old, new)
    packages = differences(_section(old, "packages"), _section(new, "packages"))
    if packages:
        more = len(packages) - NAMED
        rest = f"; and {counted(more, 'more package')}" if more > 0 else ""
        yield f"packages differ: {'; '.join(packages[:NAMED])}{rest}"
    compilers = _section(old, "compiler"), _section(new, "compiler")
    yield from _each("compiler's {}", ("version", "flags"), *compilers)
    before, after = _section(old, "variables"), _section(new, "variables")
    for name in sorted(before.keys() | after.keys()):
        yield from _differs(f"variable {name}", before.get(name), after.get(name))
    yield from _gpu(_section(old, "gpu"), _section(new, "gpu"))


def _section(environment: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = environment.get(name)
    return found if isinstance(found, dict) else {}


def _gpu(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each difference of clocks and power, if both runs recorded them."""
    if not old or not new:
        return
    yield from _each("GPU's {}", GPU, old, new)
    clocks = [item.get(CLOCK) for item in (old, new)]
    rates = [float(value) for value in clocks if isinstance(value, (int, float)) and value > 0]
    if len(rates) == 2 and max(rates) > CLOCKS_APART * min(rates):
        yield from _differs("GPU's clock at the start", *(f"{rate:g} MHz" for rate in rates))
