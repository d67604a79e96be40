"""What a first call builds: nothing for another extent, few programs, few declarations."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from scipy import ndimage

import opencl_lab as ol
from opencl_lab.core.errors import BuildError
from opencl_lab.core.plan import Launch
from opencl_lab.core.template import Source
from opencl_lab.drivers.declarations import with_declarations
from opencl_lab.lab.ops.conv2d.operation import CONV2D
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.runtime.session import Session, session_of

CALLS = """
#define CONVERT(type) convert_##type
__kernel void calls(__global float *x, volatile __global int *y)
{
    /* the length of nothing */
    const int i = get_global_id(0);
    x[i] = clamp(mad(x[i], 2.0f, 1.0f), 0.0f, 9.0f) + CALL(x[i]);
    atomic_add(&y[0], as_int(1.0f) == 0x3f800000);
    barrier(CLK_GLOBAL_MEM_FENCE);
}
"""


@pytest.fixture
def lean(fresh):
    """Skip where all declarations are read, or where there are none."""
    if with_declarations(session_of(fresh).device.platform_version, "") is None:
        pytest.skip("not the PoCL that reads a header")


def programs(operation, algorithm, device, **options):
    """Return the template and parameters of each program of a plan."""
    problem = operation.problem(**operation.with_defaults(options))
    chosen = operation.choose(problem, device, algorithm)
    plan = chosen.plan(problem, chosen.default_config(problem, device), device)
    found = []
    for launch in plan.launches:
        one = launch.template, dict(launch.params), launch.options
        found += [one] if one not in found else []
    return found


@pytest.mark.parametrize("algorithm", ["register", "separable"])
def test_images_of_all_sizes_share_the_programs_of_a_filter(algorithm, device):
    kind = {"ksize": 5, "filter": "gaussian"}
    sizes = [(40, 60), (500, 500), (520, 640), (3000, 1000)]
    each = [programs(CONV2D, algorithm, device, height=h, width=w, **kind) for h, w in sizes]
    assert len(each[0]) == 1 + (algorithm == "separable")
    assert all(one == each[0] for one in each)


@pytest.mark.parametrize("algorithm", ["fft", "adaptive"])
def test_transforms_forth_and_back_share_programs(algorithm, device):
    if device.kind != "cpu":
        pytest.skip("other devices have forms for each length")
    for n in (1009, 10007):
        found = programs(DFT, "fft", device, n=n)
        transforms = [one for one in found if one[0].startswith("fourier/fft_")]
        assert len(transforms) == 1
    found = programs(CONV2D, algorithm, device, size=400, ksize=41)
    forms = [(one[0], one[1].get("STEPS")) for one in found if one[0].startswith("fourier/")]
    assert len(forms) == 2  # along rows and along columns


def test_another_extent_builds_nothing(fresh, rng, monkeypatch):
    built, build = [], Session._build
    monkeypatch.setattr(Session, "_build", lambda *args: built.append(args[1]) or build(*args))
    weights, counts = rng.random((2, 2), np.float32), []
    for shape in ((36, 40), (300, 512)):
        image = rng.random(shape, np.float32)
        result = ol.conv2d(cl.array.to_device(fresh, image), weights, algorithm="register").get()
        right = ndimage.correlate(image, weights, mode="constant")
        np.testing.assert_allclose(result, right, rtol=1e-5)
        counts.append(len(built))
    assert counts == [1, 1]


# --------------------------------------------------------------- declarations


@pytest.mark.parametrize("call", ["cos", "fabs", "CONVERT(float)"])
def test_programs_are_built_with_what_they_call(call, fresh, lean, monkeypatch):
    """What is not found by its name, as the preprocessor makes it, is built with all."""
    texts, built = [], Session._built
    monkeypatch.setattr(
        Session, "_built", lambda self, text, flags: texts.append(text) or built(self, text, flags)
    )
    source = Source("calls", CALLS.replace("CALL(", f"{call}("))
    session = session_of(fresh)
    launch = Launch("calls", "calls", {}, (4,), (1,), {"x": "x", "y": "y"})
    kernel = session.kernel(session.program(source, ()), launch)
    assert len(texts) == (2 if "CONVERT" in call else 1)
    x, y = cl.array.to_device(fresh, np.ones(4, np.float32)), cl.array.zeros(fresh, 1, np.int32)
    kernel.set_args(x.data, y.data)
    cl.enqueue_nd_range_kernel(fresh, kernel, (4,), (1,))
    right = {"cos": np.cos(1), "fabs": 1, "CONVERT(float)": 1}[call]
    np.testing.assert_allclose(x.get(), 3 + right, rtol=1e-6)
    assert y.get()[0] == 4


def test_a_variable_may_have_the_name_of_a_function_of_which_PoCL_declares_more(fresh, lean):
    version = session_of(fresh).device.platform_version
    assert with_declarations(version, "const int length = 0, dot = length;") is not None
    assert with_declarations(version, "const float size = fast_length (x);") is None


def test_errors_are_those_of_the_program_alone(fresh, lean):
    with pytest.raises(BuildError) as caught:
        session_of(fresh).program(Source("wrong", "\n\n__kernel void f(void) { nonsense; }"), ())
    assert ":3:" in caught.value.log and "nonsense" in caught.value.log
    assert caught.value.source.count("\n") == 2
