"""Operations x algorithms x cases x configurations x devices: right, and nothing else touched.

The default suite runs all sizes with default configurations, a third of the cases that need a
program of their own, and a sixth of the other configurations.
"""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from conftest import devices_under_test
from covering import dealt
from matrix import BORROWED, ROWS, SWEPT_ELSEWHERE, around_parameters, usual_options

from opencl_lab.lab.registry import operations
from opencl_lab.ops.conv2d.problem import BOUNDARIES, IMAGE_TYPES, MODES

GUARD = 4096  # bytes; a multiple of the alignment that any device asks of sub-buffers
POISON = 0xA5


def swept(operation, algorithm, device):
    """Return pairs of a case and a configuration, which is None where the default one is meant."""
    cases = {case.name: case for case in ROWS.get(operation.name, []) if case.sweep}
    problems = {name: case.problem(operation) for name, case in cases.items()}
    able = {
        name: problem
        for name, problem in problems.items()
        if algorithm.supports(problem, device) is None
    }
    elsewhere = operation.name in SWEPT_ELSEWHERE
    if not able or os.environ.get("OCLAB_TEST_CONFIGS") == "default" or elsewhere:
        return [(cases[name], None) for name in able]
    strength = 1 if (operation.name, algorithm.name) in BORROWED else 2
    return [(cases[name], config) for name, config in dealt(algorithm, able, device, strength)]


def algorithms_on(operation, device):
    """Return the algorithms of an operation; CPUs run those for other devices, too."""
    kinds = (device.kind, "gpu")
    found = (named.on(kind) for named in operation.algorithms for kind in kinds)
    return list(dict.fromkeys(found))


def matrix_rows():
    """Yield operation, algorithm, device, case and configuration (None: the default)."""
    for name, operation in operations().items():
        for device in devices_under_test():
            for algorithm in algorithms_on(operation, device):
                edges = around_parameters(operation, algorithm, device)
                edges = [] if name in SWEPT_ELSEWHERE else edges
                plain = [case for case in ROWS.get(name, []) if not case.sweep]
                for case in (*plain, *edges):
                    yield operation, algorithm, device, case, None
                for case, config in swept(operation, algorithm, device):
                    yield operation, algorithm, device, case, config


def marked(rows):
    """Yield rows to parametrize with, of which the default suite leaves out some.

    Algorithms get their cases in the same order, and each begins with another one.
    """
    counts = Counter()
    for row in rows:
        operation, algorithm, _, case, config = row
        share = 24 if config else 8 if case.sweep or case.arrays else 3
        key = operation.name, type(algorithm).__name__, share
        place = counts[key] + [item.name for item in operation.algorithms].index(algorithm.name)
        counts[key] += 1
        yield pytest.param(row, marks=pytest.mark.full if place % share else ())


def meant(operation, algorithm, device):
    """Return what the name of an algorithm means on a device."""
    return operation.algorithm(algorithm.name).on(device.kind)


def pytest_generate_tests(metafunc):
    if "row" in metafunc.fixturenames:
        rows = list(matrix_rows())
        names = [
            f"{operation.name}-{algorithm.name}-{device.spec}-{case.name}"
            + ("" if algorithm is meant(operation, algorithm, device) else "-on-gpus")
            + ("" if config is None else "-".join(["-config", *map(str, config.values())]))
            for operation, algorithm, device, case, config in rows
        ]
        metafunc.parametrize("row", list(marked(rows)), ids=names)


def poisoned_host(spec):
    """Return an array for an output and the bytes of it and its surroundings."""
    raw = np.full(GUARD + spec.nbytes + GUARD, POISON, np.uint8)
    array = raw[GUARD : GUARD + spec.nbytes].view(spec.dtype).reshape(spec.shape)
    return array, raw


def poisoned_device(spec, queue):
    """Return a device array for an output and the buffer that it is a region of."""
    raw = np.full(GUARD + spec.nbytes + GUARD, POISON, np.uint8)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffer = cl.Buffer(queue.context, flags, hostbuf=raw)
    if not spec.nbytes:
        return cl.array.empty(queue, spec.shape, spec.dtype), buffer
    region = buffer.get_sub_region(GUARD, spec.nbytes)
    return cl.array.Array(queue, spec.shape, spec.dtype, data=region), buffer


def assert_guarded(raw, name):
    assert (raw[:GUARD] == POISON).all(), f"memory before {name} was written"
    assert (raw[raw.size - GUARD :] == POISON).all(), f"memory after {name} was written"


def assert_right(operation, problem, inputs, expected, actual, side):
    difference = operation.compare(problem, inputs, expected, actual)
    assert difference.ok, f"{side}: off by {difference.max_abs} ({difference.max_rel} relative)"


def run_on_host(run, inputs, outputs):
    """Run on arrays of the host; return outputs, what surrounds them, and the inputs' bytes."""
    made = {spec.name: poisoned_host(spec) for spec in outputs}
    given = {name: array.copy() for name, array in inputs.items()}
    for array in given.values():
        array.flags.writeable = False
    result = run(given, {name: array for name, (array, _) in made.items()})
    surroundings = {name: raw for name, (_, raw) in made.items()}
    return result.outputs, surroundings, {name: array.tobytes() for name, array in given.items()}


def run_on_device(run, inputs, outputs, queue):
    """Run on arrays of the device, and return the same."""
    made = {spec.name: poisoned_device(spec, queue) for spec in outputs}
    given = {name: cl.array.to_device(queue, array) for name, array in inputs.items()}
    result = run(given, {name: array for name, (array, _) in made.items()})
    surroundings = {}
    for name, (_, buffer) in made.items():
        surroundings[name] = np.empty(buffer.size, np.uint8)
        cl.enqueue_copy(queue, surroundings[name], buffer, wait_for=result.kernel_events)
    actual = {name: array.get() for name, array in result.outputs.items()}
    return actual, surroundings, {name: array.get().tobytes() for name, array in given.items()}


def assert_within(device, executable):
    """Check what PoCL tells of kernels against the limits of the device that it pretends to be."""
    found = device.capabilities
    for kernel, launch, _ in executable.launches:
        info = kernel.get_work_group_info(cl.kernel_work_group_info.LOCAL_MEM_SIZE, device.handle)
        assert info <= max(found.local_memory, found.declared_memory), launch.kernel
        constant = cl.kernel_arg_address_qualifier.CONSTANT
        for index, argument in enumerate(launch.arguments.values()):
            space = kernel.get_arg_info(index, cl.kernel_arg_info.ADDRESS_QUALIFIER)
            if space == constant:
                assert executable.plan.by_name[argument].nbytes <= device.constant_memory


KEPT = {}
"""What cases are: the right outputs of some take longer than all algorithms."""


def made(operation, case):
    """Return the problem of a case, its inputs, which nobody may change, and right outputs."""
    key = operation.name, case.name, str(case.options)  # edges of algorithms differ in these
    if key not in KEPT:
        KEPT[key] = case.make(operation)
    return KEPT[key]


def test_matrix(row, monkeypatch):
    """On arrays of the host and of the device, with the same programs."""
    operation, algorithm, device, case, config = row
    monkeypatch.setitem(operation.solver._loaded, algorithm.name, algorithm)
    reason = algorithm.supports(case.problem(operation), device)
    if reason is not None:  # before its data, which may be large
        pytest.skip(f"{algorithm.name} on {device.name}: {reason}")
    problem, inputs, expected = made(operation, case)
    queue = device.queue(profiling=True)
    chosen = algorithm.configure(problem, device, config)
    outputs = algorithm.plan(problem, chosen, device).with_role("out")
    before = {name: array.tobytes() for name, array in inputs.items()}

    def run(given, out):
        result = operation.run(
            problem, given, algorithm=algorithm.name, config=config, queue=queue, out=out
        )
        if device.pretended:  # others keep their limits by themselves
            assert_within(device, result.executable)
        return result

    for side, results in (
        ("host", run_on_host(run, inputs, outputs)),
        ("device", run_on_device(run, inputs, outputs, queue)),
    ):
        actual, surroundings, after = results
        assert_right(operation, problem, inputs, expected, actual, side)
        for name, raw in surroundings.items():
            assert_guarded(raw, f"{name} on the {side}")
        assert after == before, f"an input on the {side} was changed"


@pytest.mark.parametrize(
    ("option", "values"), [("dtype", IMAGE_TYPES), ("mode", MODES), ("boundary", BOUNDARIES)]
)
def test_pictures_have_every_type_mode_and_boundary(option, values):
    cases = ROWS["conv2d"]
    seen = {case.options[option] for case in cases if option in case.options}
    reached = {case.options.get(option) for case in cases if case.options.get("mode") != "valid"}
    assert seen == set(values) and (option != "boundary" or reached >= set(values))


def test_every_operation_has_a_row():
    assert set(ROWS) == set(operations())


def test_borrowed_kernels_are_those_of_an_algorithm_that_is_swept():
    swept = {  # two operations may have an algorithm of one name
        (algorithm.name, algorithm.on("cpu").templates[0])
        for operation in operations().values()
        for algorithm in operation.algorithms
        if (operation.name, algorithm.name) not in BORROWED
    }
    for (name, algorithm), owner in BORROWED.items():
        assert (owner, operations()[name].algorithm(algorithm).on("cpu").templates[0]) in swept


def test_names_of_cases_are_unique():
    for row in ROWS.values():
        names = [case.name for case in row]
        assert len(names) == len(set(names))


def test_every_row_sweeps_configurations_and_sizes():
    assert set(SWEPT_ELSEWHERE) <= set(operations())
    for name in set(operations()) - SWEPT_ELSEWHERE:
        operation = operations()[name]
        assert any(case.sweep for case in ROWS[name]), f"{name} sweeps no configuration"
        for device in devices_under_test():
            for algorithm in algorithms_on(operation, device):
                options = usual_options(operation, algorithm, device)
                config = algorithm.default_config(operation.problem(**options), device)
                edges = around_parameters(operation, algorithm, device)
                assert edges or set(config.values()) <= {1}


@pytest.mark.parametrize("before", [True, False])
def test_canaries_see_one_byte_outside(before):
    raw = np.full(3 * GUARD, POISON, np.uint8)
    assert_guarded(raw, "out")
    raw[GUARD - 1 if before else 2 * GUARD] = 0
    with pytest.raises(AssertionError, match="before out" if before else "after out"):
        assert_guarded(raw, "out")
