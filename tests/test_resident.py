"""Comparisons with the data on the device: our public calls beside other libraries there."""

import json

import numpy as np
import pytest
from resident_rows import INT32, compared

import opencl_lab as ol
from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.cli import main
from opencl_lab.lab.engine import implementations
from opencl_lab.lab.engine.request import Point, Request, check_point
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.lab.reference import peers
from opencl_lab.lab.reference.peers import Library
from opencl_lab.ops.sort.problem import SortProblem

# In this environment: those in C, and NumPy in its plain form.
HERE = [item for item in SORT.references if getattr(item, "unavailable", lambda: None)() is None]


class There:
    """A device of numbers, as a library has it: arrays are put there, and calls waited for."""

    def __init__(self):
        self.sorts, self.waits, self.shapes = 0, [], []

    def put(self, array):
        self.shapes.append(array.shape)
        return ("there", array.copy())

    def finish(self):
        self.waits.append(self.sorts)

    def get(self, result):
        where, array = result
        assert where == "there"
        return array


@pytest.fixture
def there(monkeypatch):
    """A library that sorts on a device, instead of CuPy and PyTorch; none else is there."""
    found = There()

    def fake_sort(problem, module, arrays):
        module.sorts += 1
        where, keys = arrays["keys"]
        return where, np.sort(keys, axis=-1)

    def missing(device):
        raise ReferenceUnavailable("it is on another planet")

    put, get = (lambda module, item: module.put(item)), (lambda module, item: module.get(item))
    fakes = (
        Library("cupy", "numpy", "device", put, There.finish, get=get, opens=lambda _: found),
        Library("torch", "numpy", "device", put, There.finish, get=get, opens=missing),
    )
    monkeypatch.setattr(peers, "LIBRARIES", fakes)
    monkeypatch.setitem(SORT.calls.peers, "cupy", fake_sort)
    monkeypatch.setattr(implementations, "SAMPLE_MS", 0.5)
    return found


def rows_of(comparison):
    return {row.implementation: row for row in comparison.measurements}


def test_data_of_the_device_are_compared_with_such_data(device, there):
    comparison = compared(device, resident=True, repeats=2)
    rows = rows_of(comparison)
    assert list(rows) == ["opencl:radix@device", "cupy@device", "torch@device"]
    for name in ("opencl:radix@device", "cupy@device"):
        row = rows[name]
        assert row.ok and row.data == "device" and row.total_ms.runs == 2, row
        assert row.as_row()["data"] == row.as_csv()["data"] == "device"
    assert rows["cupy@device"].kind == "library" and rows["cupy@device"].calls > 1
    assert rows["torch@device"].status == "unavailable"
    assert rows["torch@device"].reason == "it is on another planet"
    assert comparison.exit_status == 0
    np.testing.assert_array_equal(
        comparison.outputs["sorted"], comparison.workload.expected["sorted"]
    )


def test_all_shows_both_sides_in_one_table(device, there):
    rows = rows_of(compared(device, 1000, against="all", algorithms="all", repeats=1))
    able = (
        x for x in SORT.algorithms if not x.on(device.kind).supports(SORT.problem(n=1000), device)
    )
    ours = [f"opencl:{algorithm.name}" for algorithm in able]
    assert list(rows)[: len(ours)] == ours
    assert {"numpy", "c:seq", "opencl:odd-even-merge@device", "cupy@device"} <= set(rows)
    assert "torch@device" not in rows  # it cannot run here
    assert rows["opencl:radix"].data == rows["numpy"].data == "host"
    assert rows["opencl:radix"].speedup and rows["cupy@device"].speedup is None
    assert rows["opencl:radix@device"].speedup is None


@pytest.mark.parametrize(
    ("against", "resident", "on_host", "on_device"),
    [
        (None, True, 0, ["cupy@device", "torch@device"]),
        (None, False, HERE, []),
        ("all", False, len(SORT.references), ["cupy@device"]),
        ("none", True, 0, []),
        ("cupy", True, 0, ["cupy@device"]),
        ("cupy,numpy", False, 2, ["cupy@device"]),
        ("torch", False, 1, []),  # on the host only, where it can
        ("torch@device", False, 0, ["torch@device"]),  # and says why it cannot
    ],
)
def test_names_say_where_the_data_are(device, there, against, resident, on_host, on_device):
    request = Request(against=against, resident=resident)
    planned = check_point(Point(SORT, SortProblem(9, INT32), dict, request), device)
    found = list(planned.references.on_host)
    assert found == on_host if isinstance(on_host, list) else len(found) == on_host
    assert [item.name for item in planned.references.on_device] == on_device
    host = [] if resident else ["host"]
    assert planned.sides == host + ["device"] * bool(on_device or resident)


def test_references_that_need_the_host_are_refused(device, there):
    with pytest.raises(ol.InvalidConfig, match="no reference c:seq with its data on the device"):
        compared(device, resident=True, against="c:seq")
    with pytest.raises(ReferenceUnavailable, match="torch@device: it is on another planet"):
        compared(device, against="torch@device")


def test_what_a_library_cannot_do_makes_it_unavailable(device, there, monkeypatch):
    def refuses(problem, module, arrays):
        raise TypeError("no such keys\nat all")

    monkeypatch.setitem(SORT.calls.peers, "cupy", refuses)
    comparison = compared(device, resident=True, repeats=1)
    row = rows_of(comparison)["cupy@device"]
    assert row.status == "unavailable" and row.reason == "TypeError: no such keys"
    assert comparison.exit_status == 0


def test_the_command(there, tmp_path, capsys):
    assert main(["sort", "--n", "400", "--resident", "--repeats", "1"]) == 0
    text = capsys.readouterr().out
    assert "cupy@device" in text and "the data were on the device" in text
    out = tmp_path / "swept"
    sweep = ["bench", "sort", "--sizes", "50,400", "--repeats", "1"]
    assert main([*sweep, "--resident", "--json", "--out", str(out)]) == 0
    content = json.loads(capsys.readouterr().out)
    assert {row["data"] for row in content["results"]} == {"device"}
    assert len(content["results"]) == 6
    assert {c["reference"] for c in content["crossovers"]} == {"cupy@device"}
    assert main([*sweep, "--resident", "--calls"]) == 2
