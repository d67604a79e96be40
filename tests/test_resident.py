"""Comparisons with the data on the device: our public calls beside other libraries there."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import opencl_lab as ol
from opencl_lab.cli import main
from opencl_lab.comparison import contestants, ours
from opencl_lab.comparison.contestants import Task
from opencl_lab.comparison.ours import OpenCL
from opencl_lab.comparison.runner import check_comparison, run_comparison
from opencl_lab.errors import ReferenceUnavailable
from opencl_lab.operations.dft.operation import DFT
from opencl_lab.operations.dft.problem import DftProblem
from opencl_lab.operations.sort.operation import SORT
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.operations.sort.pyopencl_sorts import bitonic_sort, radix_sort
from opencl_lab.reference import peers
from opencl_lab.reference.execute import prepare
from opencl_lab.reference.peers import Library, OurCall, Resident, residents
from opencl_lab.registry import operations
from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.session import default_queue

INT32 = np.dtype(np.int32)


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
    """A library that sorts on a device, in place of CuPy and PyTorch; none else is there."""
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
    monkeypatch.setattr(contestants, "ROW_MS", 0.5)
    return found


def compared(device, n=2000, **options):
    problem = SortProblem(n, INT32)
    return run_comparison(
        SORT, problem, lambda: SORT.generate(problem, 0), device=device, **options
    )


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
    np.testing.assert_array_equal(comparison.outputs["sorted"], comparison.expected["sorted"])


def test_libraries_get_arrays_as_their_users_have_them(device, there):
    """CuPy sorts rows by another algorithm, and copies signals whose axis is not the last."""
    compared(device, resident=True, repeats=1, against="cupy")
    assert there.shapes == [(2000,)]
    shaped = SORT.calls.shaped(SortProblem(5, INT32, 4), {"keys": np.zeros((4, 5), np.int32)})
    assert shaped["keys"].shape == (4, 5)
    for inner, shape in ((1, (3, 8)), (2, (3, 8, 2))):
        signal = np.zeros((3, 8, inner), np.complex64)
        problem = DftProblem(8, signal.dtype, 3, inner=inner)
        assert DFT.calls.shaped(problem, {"signal": signal})["signal"].shape == shape


def test_a_row_of_calls_is_waited_for_once(device, there):
    row = rows_of(compared(device, resident=True, repeats=2))["cupy@device"]
    made = np.diff(there.waits)
    assert max(made) == row.calls > 1 and list(made).count(row.calls) == 2


def test_all_shows_both_sides_in_one_table(device, there):
    rows = rows_of(compared(device, against="all", algorithms="all", repeats=1))
    ours = [f"opencl:{algorithm.name}" for algorithm in SORT.algorithms]
    assert list(rows)[: len(ours)] == ours
    assert {"numpy", "c:seq", "opencl:odd-even-merge@device", "cupy@device"} <= set(rows)
    assert "torch@device" not in rows  # it cannot run here
    assert rows["opencl:radix"].data == rows["numpy"].data == "host"
    assert rows["opencl:radix"].speedup and rows["cupy@device"].speedup is None
    assert rows["opencl:radix@device"].speedup is None


@pytest.mark.parametrize(
    ("wanted", "resident", "on_host", "on_device"),
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
def test_names_say_where_the_data_are(device, there, wanted, resident, on_host, on_device):
    request = check_comparison(
        SORT, SortProblem(9, INT32), device=device, against=wanted, resident=resident
    )
    found = list(request.references.on_host)
    assert found == on_host if isinstance(on_host, list) else len(found) == on_host
    assert [item.name for item in request.references.on_device] == on_device
    host = [] if resident else ["host"]
    assert request.sides == host + ["device"] * bool(on_device or resident)


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


def test_a_wrong_result_of_the_device_is_seen(device, there, monkeypatch):
    monkeypatch.setitem(SORT.calls.peers, "cupy", lambda problem, module, arrays: arrays["keys"])
    comparison = compared(device, resident=True, repeats=1)
    assert rows_of(comparison)["cupy@device"].status == "correctness"


def test_slow_libraries_are_left_out_with_an_estimate(device, there, monkeypatch):
    monkeypatch.setattr(contestants, "FEW_STEPS", 0)
    monkeypatch.setattr(contestants, "PATIENCE", 0.0)
    monkeypatch.setitem(SORT.calls.steps, "cupy", lambda problem: problem.n)
    row = rows_of(compared(device, resident=True, repeats=1))["cupy@device"]
    assert row.status == "unavailable" and row.reason.endswith("--against cupy@device runs it")


def test_samples_of_sorts_are_no_larger_than_the_problem():
    for n, rows in ((10, 1), (1 << 30, 1), (1000, 16_384), (1 << 30, 8), (0, 3)):
        sample = SORT.sample(SortProblem(n, INT32, rows))
        assert sample.n <= n and 1 <= sample.rows <= rows
        assert sample.n * sample.rows <= 1 << 18
        assert n * rows < 1 << 18 or sample.n * sample.rows > 1 << 17


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


# --- our public calls ---------------------------------------------------------------------------


def contestant(device, algorithm="radix", **options):
    problem = SortProblem(2000, INT32)
    inputs = SORT.generate(problem, 0)
    task = Task(SORT, problem, inputs, SORT.expected(problem, inputs))
    options = {"calls": SORT.calls, **options}
    return OpenCL(task, device, algorithm, **options)


def test_total_times_are_those_of_public_calls_that_repeat(device, monkeypatch):
    """They are replayed, on a queue without events; runs with events are others."""
    ran = []
    run = type(SORT.solver).run

    def watched(self, problem, inputs, **options):
        ran.append(options["queue"])
        return run(self, problem, inputs, **options)

    monkeypatch.setattr(type(SORT.solver), "run", watched)
    (row,) = compared(device, n=2000, repeats=3, against="none").measurements
    plain, timed = default_queue(device), default_queue(device, profiling=True)
    assert row.ok and row.calls > 1 and row.total_ms.runs == 3
    assert ran.count(plain) <= 1  # recorded once, and replayed since
    kernels = device.capabilities.event_timing
    assert ran.count(timed) == 1 + 3 * ours.KERNEL_RUNS * kernels
    assert (row.kernel_ms is not None) == kernels and row.build_ms is not None


@pytest.mark.parametrize(
    ("milliseconds", "rows"),
    [
        (1.0, [1, 1, 1, 10, 1, 10]),  # two that settle it, then each row after one that warms up
        (8.0, [1, 1, 1, 1, 1, 1]),
        (60.0, [1, 1, 1, 1]),
        (300.0, [1, 1, 1]),
    ],
)
def test_rows_follow_a_call_that_warms_up_unless_that_takes_long(
    device, milliseconds, rows, monkeypatch
):
    made, more = [], [0.0, 2 * milliseconds]  # the second of those that settle it is disturbed

    def row(self, calls):
        made.append(calls)
        return calls * milliseconds + (more.pop(0) if more and milliseconds < 200 else 0.0)

    monkeypatch.setattr(OpenCL, "row", row)
    monkeypatch.setattr(OpenCL, "_time_kernels", lambda self: None)
    (found,) = compared(device, repeats=2, against="none").measurements
    assert made == rows
    assert found.total_ms.median == pytest.approx(milliseconds) and found.calls == max(rows)


def test_who_sees_no_times_waits_for_none(device, monkeypatch):
    made = []
    monkeypatch.setattr(OpenCL, "row", lambda self, calls: made.append(calls) or 1.0)
    compared(device, timed=False, repeats=1, against="none")
    assert made == [1]


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda keys: None, "returned NoneType, not an array"),
        (lambda keys: np.sort(keys)[..., 1:], r"int32 of shape \(1, 1999\), not int32 of shape"),
        (lambda keys: np.sort(keys).astype(float), "float64 of shape"),
    ],
)
def test_calls_that_return_something_else_are_seen(device, returned, words):
    def other(a, *, queue=None):
        return returned(a)

    chosen = replace(SORT.calls, ours=lambda _, arrays, name: OurCall(other, (arrays["keys"],), {}))
    item = contestant(device, calls=chosen)
    item.attempt(item.start)
    item.check()
    item.measure()
    item.verify()
    assert item.status == "runtime" and re.search(words, item.reason), item.reason
    item.close()


@pytest.mark.parametrize("data", ["host", "device"])
def test_wrong_results_of_calls_in_a_row_are_seen(device, data, monkeypatch):
    """The first run takes the whole road and is right."""

    def unsorted(a, *, queue=None, config=None):
        return a.copy()

    chosen = replace(
        SORT.calls, ours=lambda _, arrays, name: OurCall(unsorted, (arrays["keys"],), {})
    )
    item = contestant(device, calls=chosen, data=data)
    item.attempt(item.start)
    item.check()
    assert item.status == "correct"
    item.measure()
    item.verify()
    assert item.status == "correctness"
    item.close()


def test_configurations_reach_the_public_call(device):
    item = contestant(device, "odd-even-merge", config={"TILE": 512}, variant="TILE=512")
    item.attempt(item.start)
    item.check()
    assert item.status == "correct" and item.config["TILE"] == 512
    assert item._call.keywords["config"] == {"TILE": 512}
    assert item._call.keywords["algorithm"] == "odd-even-merge"
    assert item.name == "opencl:odd-even-merge[TILE=512]"
    item.close()


SIZES = {"dft": {"n": 60, "batch": 2}}


@pytest.mark.parametrize("operation", operations().values(), ids=lambda item: item.name)
def test_public_calls_give_what_each_algorithm_gives(operation, device):
    complete = operation.with_defaults(SIZES.get(operation.name, {operation.size_option: 24}))
    problem = operation.problem(**complete)
    inputs = operation.generate(problem, 0, **complete)
    task = Task(operation, problem, inputs, operation.expected(problem, inputs))
    tried = 0
    for algorithm in operation.algorithms:
        if algorithm.supports(problem, device) is not None:
            continue
        for data in ("host", "device"):
            item = OpenCL(task, device, algorithm.name, calls=operation.calls, data=data)
            item.attempt(item.start)
            assert item._call != item._whole_run, "there is a public call"
            item.attempt(item.settle)
            assert is_device_array(item._result) == (data == "device")
            item.verify()
            assert item.status == "correct", (item.name, item.reason)
            item.close()
            tried += 1
    assert tried >= 4


def test_what_no_public_function_gives_is_run_whole(device):
    """Direct sums of real signals give whole spectra by `ol.dft`, and halves in comparisons."""
    rows = ol.compare(
        "dft", n=30, dtype="float32", norm="ortho", device=device, repeats=1,
        algorithms="direct-naive,fft", against="none",
    )  # fmt: skip
    assert [row.ok for row in rows] == [True, True]


# --- PyOpenCL's own sorts -----------------------------------------------------------------------


def sorted_by(function, keys, device, descending=False):
    problem = SortProblem(keys.shape[1], keys.dtype, keys.shape[0], descending)
    library = next(item for item in peers.LIBRARIES if item.name == "pyopencl")
    like = {"sorted": (keys.shape, keys.dtype)}
    resident = Resident("pyopencl:x", library, function)
    prepared = prepare(resident, problem, {"keys": keys}, like, 1, device)
    prepared.run(2)
    return prepared.outputs()["sorted"]


def test_radix_sort_of_pyopencl(device, rng):
    keys = rng.standard_normal((1, 1000), np.float32)
    keys[0, :4] = np.nan, -np.inf, np.inf, -0.0
    np.testing.assert_array_equal(sorted_by(radix_sort, keys, device), np.sort(keys))
    down = sorted_by(radix_sort, keys, device, descending=True)
    np.testing.assert_array_equal(down, np.sort(keys)[:, ::-1])
    with pytest.raises(ReferenceUnavailable, match="one row"):
        sorted_by(radix_sort, keys.reshape(2, 500), device)
    with pytest.raises(ReferenceUnavailable, match="empty"):
        sorted_by(radix_sort, keys[:, :0], device)
    with pytest.raises(ReferenceUnavailable, match="bool"):
        sorted_by(radix_sort, keys > 0, device)


@pytest.mark.parametrize("shape", [(1, 1), (3, 21), (2, 32)])
def test_bitonic_sort_of_pyopencl_is_padded(device, rng, shape):
    keys = rng.integers(-(2**31), 2**31 - 1, shape, np.int32, endpoint=True)
    kept = keys.copy()
    np.testing.assert_array_equal(sorted_by(bitonic_sort, keys, device), np.sort(keys))
    np.testing.assert_array_equal(keys, kept)


def test_bitonic_sort_of_pyopencl_is_given_no_nan(device):
    keys = np.array([[2, np.nan, np.inf, 1, -np.inf]], np.float32)
    with pytest.raises(ReferenceUnavailable, match="no order for NaN"):
        sorted_by(bitonic_sort, keys, device)
    keys = np.nan_to_num(keys, posinf=np.inf, neginf=-np.inf)
    np.testing.assert_array_equal(sorted_by(bitonic_sort, keys, device), np.sort(keys))


def test_padding_is_said():
    note = next(item.note for item in residents(SORT.calls) if item.peer == "pyopencl:bitonic")
    assert note(SortProblem(50_000, INT32)) == "padded to 65,536 keys"
    assert note(SortProblem(1 << 16, INT32)) == ""


def test_libraries_say_why_they_are_not_there(device):
    nothing = Library("a", "no_such_module", "device", package="b", opens=lambda _: None)
    with pytest.raises(ReferenceUnavailable, match=r"^not installed; pip install b$"):
        nothing.open(device)
    broken = replace(nothing, module="numpy", ready=lambda module: module.no_such_name)
    with pytest.raises(ReferenceUnavailable, match=r"does not work here: .*no_such_name"):
        broken.open(device)
    with pytest.raises(ReferenceUnavailable, match="finds no device"):
        replace(broken, ready=lambda module: False).open(device)
    if device.compute_capability is None:
        with pytest.raises(ReferenceUnavailable, match="CUDA devices only"):
            replace(broken, opens=None).open(device)
