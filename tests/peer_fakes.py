"""Stand-ins for other libraries, and references as comparisons run them."""

import sys
from contextlib import closing
from pathlib import Path

import pytest

from opencl_lab.lab.reference.execute import prepare
from opencl_lab.lab.reference.peers import residents

NAMES = ("cupy", "cupyx", "torch", "pyvkfft")


def _ours(name):
    return name.partition(".")[0] in NAMES


@pytest.fixture
def fakes(monkeypatch):
    """CuPy, PyTorch and pyvkfft by NumPy, whatever is installed."""
    kept = {name: module for name, module in sys.modules.items() if _ours(name)}
    for name in kept:
        del sys.modules[name]
    monkeypatch.syspath_prepend(Path(__file__).with_name("fakes"))
    yield
    for name in [name for name in sys.modules if _ours(name)]:
        del sys.modules[name]
    sys.modules.update(kept)


def host_reference(operation, name):
    return next(item for item in operation.references if item.name == name)


def resident(operation, peer):
    return next(item for item in residents(operation.calls) if item.peer == peer)


def judged(operation, reference, device, threads=1, calls=2, **options):
    """Return how far a reference is from the right result after some calls in a row."""
    options = operation.with_defaults(options)
    problem = operation.problem(**options)
    inputs = operation.generate(problem, 1, **options)
    kept = {name: array.copy() for name, array in inputs.items()}
    expected = operation.expected(problem, inputs)
    like = {name: (array.shape, array.dtype) for name, array in expected.items()}
    with closing(prepare(reference, problem, inputs, like, threads, device)) as prepared:
        prepared.run(calls)
        outputs = prepared.outputs()
    for name, array in inputs.items():
        assert array.tobytes() == kept[name].tobytes(), "inputs are never changed"
    return operation.compare(problem, inputs, expected, outputs)
