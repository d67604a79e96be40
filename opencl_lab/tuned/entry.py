"""One tuned configuration with all that says where it holds, and the JSON that stores it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any, Protocol

from opencl_lab.core.device import Device
from opencl_lab.core.errors import OclabError
from opencl_lab.core.space import Config
from opencl_lab.tuned.renamed import renamed_config, renamed_digest, with_all_sizes

__all__ = [
    "Entry",
    "Origin",
    "Sized",
    "document",
    "entry_of",
    "parse",
    "to_bucket",
]

SCHEMA = "oclab-tuning/1"


class Sized(Protocol):
    """What this module needs of a problem; `opencl_lab.ops.solver.Problem` is one."""

    @property
    def sizes(self) -> tuple[str, ...]:
        """The fields that say how large the problem is."""

    @property
    def layout(self) -> tuple[str, ...]:
        """The other fields that change which configuration is the fastest."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-able values."""


@dataclass(frozen=True)
class Origin:
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
        """Return the origin that stands for `device`."""
        return cls(**{item.name: getattr(device, item.name) for item in fields(cls)})

    @property
    def unit(self) -> str:
        """The key without the driver: the same device before and after an update."""
        return self.key.rpartition("/")[0]


@dataclass(frozen=True)
class Entry:
    """One tuned configuration.

    Parameters
    ----------
    operation, algorithm : str
    digest : str
        `kernel_digest` of the algorithm's templates.
    device : Origin
    layout : mapping
        Those fields of the problem that change the tuning; they must match.
    sizes : mapping
        Those that say how large it was; near ones may serve too.
    config : Config
    time_ms : float
        Kernel time.
    timestamp : str
        When it was stored, in ISO 8601.
    shipped : bool
        Whether it came with the package and not from this user; not stored.
    """

    operation: str
    algorithm: str
    digest: str
    device: Origin
    layout: Mapping[str, Any]
    sizes: Mapping[str, int]
    config: Config
    time_ms: float
    timestamp: str
    shipped: bool = False

    def __post_init__(self) -> None:
        texts = (self.operation, self.algorithm, self.digest, self.timestamp)
        texts += tuple(vars(self.device).values())
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("a name of the entry is not a text")
        if not all(type(size) is int for size in self.sizes.values()):
            raise ValueError("a size of the entry is no whole number")
        if not all(isinstance(value, (int, str)) for value in self.config.values()):
            raise ValueError("a parameter of the entry is neither number nor text nor flag")
        if not (isinstance(self.time_ms, (int, float)) and 0 < self.time_ms < math.inf):
            raise ValueError("the time of the entry is no positive number")

    @property
    def bucket(self) -> tuple[int, ...]:
        """The powers of two that its sizes are nearest to, in the order of their names."""
        return to_bucket(self.sizes)

    @property
    def identity(self) -> tuple[Any, ...]:
        """What a newer entry must share to take the place of this one."""
        layout = tuple(sorted((name, repr(value)) for name, value in self.layout.items()))
        sizes = tuple(size for _, size in sorted(self.sizes.items()))
        return (self.operation, self.algorithm, self.device.key, layout, sizes)

    def doublings(self, sizes: Mapping[str, int]) -> list[float]:
        """Return how many doublings each of other sizes is away."""
        pairs = ((self.sizes[name], size) for name, size in sizes.items())
        return [abs(math.log2(max(a, 1) / max(b, 1))) for a, b in pairs]

    def as_dict(self) -> dict[str, Any]:
        """Return what is stored, as JSON-able values."""
        record = {**vars(self), "device": dict(vars(self.device)), "config": dict(self.config)}
        record.update(layout=dict(self.layout), sizes=dict(self.sizes))
        del record["shipped"]
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], shipped: bool = False) -> Entry:
        """Return the entry that `as_dict` described; KeyError, TypeError or ValueError if none."""
        config = renamed_config(record["operation"], record["algorithm"], record["config"])
        digest = renamed_digest(record["digest"])
        sizes = with_all_sizes(record["operation"], record["sizes"])
        values = dict(
            record, device=Origin(**record["device"]), config=Config(config), digest=digest
        )
        return cls(**{**values, "layout": dict(values["layout"]), "sizes": sizes}, shipped=shipped)


def to_bucket(sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the rounded binary logarithm of each size, in the order of their names."""
    return tuple(round(math.log2(max(size, 1))) for _, size in sorted(sizes.items()))


def entry_of(
    device: Device,
    operation: str,
    algorithm: str,
    digest: str,
    problem: Sized,
    config: Config,
    time_ms: float,
) -> Entry:
    """Return the entry of a configuration measured now."""
    values = problem.as_dict()
    return Entry(
        operation,
        algorithm,
        digest,
        Origin.of(device),
        layout={name: values[name] for name in problem.layout},
        sizes={name: values[name] for name in problem.sizes},
        config=config,
        time_ms=time_ms,
        timestamp=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


def document(entries: Iterable[Entry]) -> dict[str, Any]:
    """Return the JSON document of entries: overlay, shipped data and exports alike."""
    ordered = sorted(entries, key=lambda entry: entry.identity)
    return {"schema": SCHEMA, "entries": [entry.as_dict() for entry in ordered]}


def parse(text: str, shipped: bool = False) -> list[Entry]:
    """Return the entries of a document.

    Raises
    ------
    ValueError
        If the text is no such document.
    OclabError
        If it is one of another version.
    """
    try:
        content = json.loads(text)
        schema = content["schema"]
        if schema != SCHEMA and re.fullmatch(r"oclab-tuning/\d+", schema):
            raise OclabError(
                f"it is of the version {schema}, this opencl_lab knows {SCHEMA}; update opencl_lab"
            )
        if schema != SCHEMA:
            raise ValueError(f"it is no {SCHEMA}")
        return [Entry.from_dict(record, shipped) for record in content["entries"]]
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is no {SCHEMA}: {error!r}") from error
