"""The table of references in the docs, held against the operations."""

import re
from pathlib import Path

import pytest

from opencl_lab.lab.reference.peers import PeerReference, residents
from opencl_lab.lab.registry import operations

PAGE = Path(__file__).parents[1] / "docs" / "references.md"


def table():
    """Return operations and sides by the name of a reference."""
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|", PAGE.read_text("utf-8"), re.M)
    return {name: (set(names.split(", ")), sides) for name, names, sides in rows}


@pytest.mark.parametrize("operation", operations().values(), ids=lambda item: item.name)
def test_every_reference_is_in_the_table(operation):
    found = table()
    on_host = {item.name: item for item in operation.references}
    there = {item.peer for item in residents(operation.calls)}
    said = {name for name, (names, _) in found.items() if operation.name in names}
    assert said == {*on_host, *there}, "docs/references.md has a row for each reference"
    for name in said:
        sides = found[name][1]
        assert ("device" in sides) == (name in there), name
        assert sides.startswith("host") == (name in on_host), name
        host_to_host = isinstance(on_host.get(name), PeerReference)
        assert ("host to host" in sides) == host_to_host, name
