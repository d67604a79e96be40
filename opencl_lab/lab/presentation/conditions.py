"""Where documents were measured, as names and texts, and what of it differs between two runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opencl_lab.core.wording import counted, size_text
from opencl_lab.lab.engine.stored import Results

DEVICE = (
    *("name", "kind", "platform", "driver", "version", "c_version", "compute_units", "clock"),
    "global_memory",
)
OF_A_MACHINE = (
    *("device", "library version", "system", "python", "cpu", "processors", "memory", "variables"),
    *("compiler version", "compiler flags", "gpu max clock mhz", "gpu memory clock mhz"),
    *("gpu power limit w", "gpu performance state"),
)
"""The facts that two runs should have in common, or the first words of their names."""
NAMED = 6  # largest number of packages in a sentence


def facts_of(results: Results) -> dict[str, str]:
    """Return device, version and environment of a document: texts by names such as ``gpu clock``.

    Values that the document does not record are left out.
    """
    # Drivers report 0 for a clock that they do not know.
    device = {name: results.device.get(name) or None for name in DEVICE}
    return _flat(
        {"device": device, "library version": results.version, **results.mapping("environment")}
    )


def _flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    found = {}
    for name, value in content.items():
        words = name.removesuffix("_bytes").replace("_", " ")
        label = prefix + (name if name.isupper() else words)  # a variable of the environment
        if isinstance(value, dict) and name == "packages":
            found[label] = ", ".join(f"{key} {item}" for key, item in value.items())
        elif isinstance(value, dict):
            found |= _flat(value, f"{label} ")
        elif isinstance(value, int) and name.endswith(("memory", "_bytes")):
            found[label] = size_text(value)
        elif value not in (None, "", []):
            found[label] = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return found


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return a text for each value that differs, such as ``WG 64, then 128``."""
    names = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    shown = [["none" if run.get(n) is None else run[n] for run in (old, new)] for n in names]
    return [f"{name} {old}, then {new}" for name, (old, new) in zip(names, shown, strict=True)]


def other_conditions(old: Results, new: Results) -> list[str]:
    """Return a sentence about each condition that differs, as far as both documents record it."""
    environments = [results.mapping("environment") for results in (old, new)]
    facts = [facts_of(results) for results in (old, new)]
    alike = [name for name in OF_A_MACHINE if all(environments) or name in OF_A_MACHINE[:2]]
    if not all(isinstance(item.get("gpu"), dict) for item in environments):
        alike = [name for name in alike if not name.startswith("gpu")]
    both = [{k: v for k, v in run.items() if k.startswith(tuple(alike))} for run in facts]
    found = [f"the runs differ: {text}" for text in [*differences(*both), *_data(old, new)]]
    before, after = (item.get("packages") for item in environments)
    if isinstance(before, dict) and isinstance(after, dict):
        changed = differences(before, after)
        more = len(changed) - NAMED
        rest = f"; and {counted(more, 'more package')}" if more > 0 else ""
        found += [f"packages differ: {'; '.join(changed[:NAMED])}{rest}"] * bool(changed)
    for results, environment in zip((old, new), environments, strict=True):
        if results.content.get("complete") is False:
            found.append(f"{results.path} is incomplete: its sweep was interrupted")
        if environment.get("busy"):
            found.append(f"{results.path} was measured with this warning: {environment['busy']}")
    return found


def _data(old: Results, new: Results) -> list[str]:
    """Return what differs in the data, besides the options that distinguish rows."""
    if "seed" not in old.options or "seed" not in new.options:  # of files
        return differences(old.options, new.options)
    sizes = (old.size_name, new.size_name)
    one = {name for name in old.options.keys() ^ new.options.keys() if name not in sizes}
    kept = [{k: v for k, v in x.options.items() if k == "seed" or k in one} for x in (old, new)]
    return differences(*kept)
