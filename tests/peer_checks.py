"""References as comparisons run them, against the right results."""

from contextlib import closing

from opencl_lab.lab.reference.execute import prepare
from opencl_lab.lab.reference.peers import residents


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
