"""A tuned configuration with the device and problem it is for, and its JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr

from opencl_lab.core.device import Device
from opencl_lab.core.errors import OclabError
from opencl_lab.core.records import Positive, as_json, parsed, timestamp, typed
from opencl_lab.core.space import Config

SCHEMA = "oclab-tuning/2"


class Sized(Protocol):
    """What this module needs of a problem, such as `opencl_lab.ops.solver.Problem`."""

    @property
    def sizes(self) -> tuple[str, ...]:
        """The fields that say how large the problem is."""

    @property
    def layout(self) -> tuple[str, ...]:
        """The other fields on which the fastest configuration depends."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-able values."""


class Origin(Struct, frozen=True, forbid_unknown_fields=True):
    """The device on which a configuration was measured."""

    key: str
    name: str
    kind: str
    vendor: str
    platform: str
    architecture: str
    driver: str

    @classmethod
    def of(cls, device: Device) -> Origin:
        """Return the origin of configurations measured on `device`."""
        return cls(*(getattr(device, name) for name in cls.__struct_fields__))

    @property
    def unit(self) -> str:
        """The key without the driver: the same device before and after an update."""
        return self.key.rpartition("/")[0]


class Entry(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One tuned configuration."""

    operation: str
    algorithm: str
    version: int
    """The `Algorithm.version` for which it was found."""
    device: Origin
    layout: dict[str, Any]
    """Fields of the problem on which the fastest configuration depends; they must match."""
    sizes: dict[str, int]
    """Sizes of the problem; the entry may be used for sizes near these."""
    config: Config
    time_ms: Positive
    """Kernel time in milliseconds."""
    timestamp: str
    """Time at which it was stored, in ISO 8601."""
    shipped: bool = False
    """Whether it is one of the package's and not the user's; not stored."""

    @property
    def bucket(self) -> tuple[int, ...]:
        """The nearest powers of two of its sizes, as exponents, in the order of their names."""
        return to_bucket(self.sizes)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Values that a newer entry must share to replace this one."""
        layout = tuple(sorted((name, repr(value)) for name, value in self.layout.items()))
        sizes = tuple(size for _, size in sorted(self.sizes.items()))
        return (self.operation, self.algorithm, self.device.key, layout, sizes)

    def doublings(self, sizes: Mapping[str, int]) -> list[float]:
        """Return, for each of some sizes, the doublings between it and that of this entry."""
        pairs = ((self.sizes[name], size) for name, size in sizes.items())
        return [abs(math.log2(max(a, 1) / max(b, 1))) for a, b in pairs]

    def as_dict(self) -> dict[str, Any]:
        """Return the stored fields as JSON-able values."""
        return {name: value for name, value in as_json(self).items() if name != "shipped"}


class _EntryHead(Struct):
    schema: str


class _Document(_EntryHead):
    entries: list[Entry]


def to_bucket(sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the rounded binary logarithm of each size, in the order of their names."""
    return tuple(round(math.log2(max(size, 1))) for _, size in sorted(sizes.items()))


def parts_of(problem: Sized) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the fields of a problem that must match, and its sizes."""
    values = problem.as_dict()
    layout, sizes = ({name: values[name] for name in p} for p in (problem.layout, problem.sizes))
    return layout, sizes


def entry_of(
    device: Device,
    operation: str,
    algorithm: str,
    version: int,
    problem: Sized,
    config: Config,
    time_ms: float,
) -> Entry:
    """Return an entry for a configuration that was just measured."""
    about = (operation, algorithm, version, Origin.of(device), *parts_of(problem))
    return Entry(*about, config, float(time_ms), timestamp())


def document(entries: Iterable[Entry]) -> dict[str, Any]:
    """Return the JSON document of entries, for the user's files, shipped data and exports."""
    ordered = sorted(entries, key=lambda entry: entry.identity)
    return {"schema": SCHEMA, "entries": [entry.as_dict() for entry in ordered]}


def parse(text: str, shipped: bool = False) -> list[Entry]:
    """Return the entries of a document.

    Raise ValueError if it is not such a document, OclabError if its version is unknown.
    """
    content = parsed(text)
    try:
        schema = typed(_EntryHead, content).schema
        if re.fullmatch(r"oclab-tuning/([3-9]|\d\d+)", schema):
            raise OclabError(
                f"it is of the version {schema}, this opencl_lab knows {SCHEMA}; update opencl_lab"
            )
        if schema != SCHEMA:
            raise ValueError(f"its schema is {schema}")
        entries = typed(_Document, content).entries
    except ValueError as error:
        raise ValueError(f"it is no {SCHEMA}: {error}") from error
    for entry in entries:
        force_setattr(entry, "shipped", shipped)
    return entries
