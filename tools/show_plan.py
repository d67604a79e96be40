"""Print the plan of a problem for a CPU or a GPU, without the device.

    python tools/show_plan.py dft n=1048576 --on gpu
    python tools/show_plan.py sort n=50000 dtype=int64 --on cpu --algorithm radix

A plan is pure data, so no kernel is built and no device is used. It is that of the built-in
configuration, whatever was tuned. The devices are a CPU of two processors with vectors of 64 bytes,
and a GPU with 132 compute units and 48 KiB of local memory.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.core.wording import number_of
from opencl_lab.lab.registry import get_operation, operations


def made_device(kind: str) -> Device:
    """Return a record of a device that no driver has."""
    cpu = kind == "cpu"
    group, local = (4096, 1 << 20) if cpu else (1024, 48 << 10)
    return Device(
        f"a {kind}",
        kind,
        compute_units=2 if cpu else 132,
        global_memory=1 << 37,
        max_allocation=1 << 36,
        local_memory=local,
        max_work_group=group,
        max_work_items=(group,) * 3,
        native_vector_bytes=64 if cpu else 16,
        unified_memory=cpu,
        capabilities=Capabilities(
            fp64=True,
            inline_ptx=not cpu,
            max_work_group=group,
            local_memory=local,
            vector_bytes=64 if cpu else 16,
            visible_writes=True,
            forward_progress=not cpu,
        ),
    )


def lines_of(params: Mapping[str, Any], indent: str) -> Iterator[str]:
    """Yield parameters as lines, what steps are made of further to the right."""
    for name, item in params.items():
        several = type(item) is tuple and item and dataclasses.is_dataclass(item[0])
        for number, part in enumerate(item if several else (item,)):
            label = f"{name}[{number}]" if several else name
            if not dataclasses.is_dataclass(part) or name == "passes":
                yield f"{indent}{label} = {part}"
                continue
            yield f"{indent}{label}"
            fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
            yield from lines_of(fields, indent + "    ")


def main() -> None:
    """Parse the command line and print the buffers and launches."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("operation", choices=sorted(operations()))
    parser.add_argument("options", nargs="*", metavar="NAME=VALUE", help="such as n=1009")
    parser.add_argument("--on", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--algorithm", help="default: the fft of dft, else auto")
    parser.add_argument("--params", action="store_true", help="also what templates are given")
    given = parser.parse_args()
    operation, device = get_operation(given.operation), made_device(given.on)
    readers = {bool: "true".__eq__, complex: number_of}
    types = {item.name: readers.get(item.type, item.type) for item in operation.options}
    options = {}
    for option in given.options:
        name, _, text = option.partition("=")
        if name not in types:
            parser.error(f"{given.operation} has no option {name}; it has: {', '.join(types)}")
        options[name] = types[name](text)
    problem = operation.problem(**options)
    name = given.algorithm or ("fft" if given.operation == "dft" else "auto")
    algorithm = operation.choose(problem, device, name)
    plan = algorithm.plan(problem, algorithm.default_config(problem, device), device)
    print(f"{given.operation} {algorithm.name} on {device.name}: {problem}")
    for buffer in plan.buffers:
        print(f"  {buffer.role:8}{buffer.name:24}{buffer.nbytes:>14,} bytes")
    for launch in plan.launches:
        items = math.prod(launch.local_size)
        groups = math.prod(launch.global_size) // items
        print(f"{launch.kernel}: {groups:,} groups of {items}, {launch.local_bytes:,} local bytes")
        used = [f"{n}: {a}" for n, a in launch.arguments.items() if isinstance(a, str)]
        print(f"    {', '.join(used)}")
        if given.params:
            print("\n".join(lines_of(launch.params, "    ")))


if __name__ == "__main__":
    main()
