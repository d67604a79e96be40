"""PyOpenCL's own sorts as rows of a comparison."""

from dataclasses import replace

import numpy as np
import pytest
from resident_rows import INT32

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.lab.ops.sort.pyopencl_sorts import bitonic_sort, radix_sort
from opencl_lab.lab.reference import peers
from opencl_lab.lab.reference.execute import prepare
from opencl_lab.lab.reference.peers import Library, Resident, residents
from opencl_lab.ops.sort.problem import SortProblem

# --- PyOpenCL's own sorts -----------------------------------------------------------------------


def sorted_by(function, keys, device, descending=False):
    problem = SortProblem(keys.shape[1], keys.dtype, keys.shape[0], descending)
    library = next(item for item in peers.LIBRARIES if item.name == "pyopencl")
    like = {"sorted": (keys.shape, keys.dtype)}
    resident = Resident("pyopencl:x", library, function)
    prepared = prepare(resident, problem, {"keys": keys}, like, 1, device)
    prepared.run(2)
    return prepared.outputs()["sorted"]


@pytest.mark.full
def test_radix_sort_of_pyopencl(device, rng):
    keys = rng.standard_normal((1, 1000), np.float32)
    keys[0, :4] = np.nan, -np.inf, np.inf, -0.0
    np.testing.assert_array_equal(sorted_by(radix_sort, keys, device), np.sort(keys))
    down = sorted_by(radix_sort, keys, device, descending=True)
    np.testing.assert_array_equal(down, -np.sort(-keys))
    with pytest.raises(ReferenceUnavailable, match="a single row"):
        sorted_by(radix_sort, keys.reshape(2, 500), device)
    with pytest.raises(ReferenceUnavailable, match="empty"):
        sorted_by(radix_sort, keys[:, :0], device)
    with pytest.raises(ReferenceUnavailable, match="bool"):
        sorted_by(radix_sort, keys > 0, device)


@pytest.mark.few(1)
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
    with pytest.raises(ReferenceUnavailable, match="finds no CUDA device"):
        replace(broken, ready=lambda module: False).open(device)
    if device.compute_capability is None:
        with pytest.raises(ReferenceUnavailable, match="CUDA devices only"):
            replace(broken, opens=None).open(device)
