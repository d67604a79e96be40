"""Intel's runtime itself, where it is installed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyopencl as cl
import pytest
from intel_setting import DISCOVER, discover, libraries

from opencl_lab.core.template import Source
from opencl_lab.drivers import wheel as pip
from opencl_lab.runtime.session import session_of

pytestmark = [
    pytest.mark.full,
    pytest.mark.usefixtures("clean"),
    pytest.mark.skipif(not pip.supported(), reason="Intel has no runtime for this one"),
]
INSTALLED = pip.library()
INTEL_NAME = "Intel(R) OpenCL"


KERNELS = """
#define GROUP __attribute__((reqd_work_group_size(1, 1, 1)))
__kernel GROUP void one(void) {}
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void many(void) {}
"""


@pytest.mark.parametrize("platform", ["Intel(R) OpenCL", "Portable Computing Language"])
def test_intel_s_compiler_is_spared_work_on_groups_of_one_item(
    device, own_queue, monkeypatch, platform
):
    session = session_of(own_queue(device.handle))
    session.device = replace(session.device, platform=platform)
    texts = []

    class Program:
        def __init__(self, context, text):
            texts.append(text)

        def build(self, options):
            return self

        def get_info(self, what):
            return 2  # kernels

    monkeypatch.setattr(cl, "Program", Program)
    session.program(Source("a", KERNELS), ())
    hint = ", intel_vec_len_hint(1)" if platform.startswith("Intel") else ""
    one = f"((reqd_work_group_size(1, 1, 1){hint}))"
    (text,) = texts  # PoCL gets declarations before it
    assert text.endswith(KERNELS.replace("((reqd_work_group_size(1, 1, 1)))", one))


# --------------------------------------------------------------- the runtime itself

needs_it = pytest.mark.skipif(INSTALLED is None, reason="Intel's runtime is not installed here")
PARENT = """
import json, os, subprocess, sys
import opencl_lab as ol
here = [[device.platform, device.spec] for device in ol.devices()]
child = "import json, os, opencl_lab as ol; print(json.dumps(["
child += "[[d.platform, d.spec] for d in ol.devices()], os.environ.get('OPENCL_VENDOR_PATH')]))"
there = subprocess.run([sys.executable, "-c", child], stdout=-1, check=True, text=True).stdout
print(json.dumps([here, ol.drivers.discovery.choose_device().reason, *json.loads(there)]))
"""


@needs_it
def test_it_is_found_and_preferred_and_children_see_the_same(tmp_path):
    here, reason, there, folder = discover(PARENT, OCLAB_DEVICE="")
    assert here[0][0] == "Intel(R) OpenCL" and there == here
    assert libraries(Path(folder)) >= {str(INSTALLED)}
    assert len(here) == 1 or reason.endswith(f"launches kernels faster than {here[1][0]}")


@needs_it
def test_pyopencl_alone_sees_it_once_the_package_is_imported():
    program = "import json, opencl_lab, pyopencl as cl\n"
    program += "print(json.dumps([item.name for item in cl.get_platforms()]))"
    assert "Intel(R) OpenCL" in discover(program)


@needs_it
def test_a_process_that_has_started_opencl_goes_on_without(tmp_path):
    started = "import pyopencl as cl; cl.get_platforms()\n"
    here, _, there, folder = discover(started + PARENT, OCLAB_DEVICE="")
    assert here == there and here[0][0] != "Intel(R) OpenCL" and folder is None
    _, rows, _ = discover(started + DISCOVER)
    verdict, detail, advice = rows["Intel's CPU runtime"]
    assert verdict == "limited" and "had started before" in detail and "devices()" in advice


BUILDS = """
import json, sys
import pyopencl as cl  # first, so that pyopencl's own cache is on
import numpy as np, opencl_lab as ol

made, real = [], cl.Program
cl.Program = lambda context, *rest: made.append(len(rest)) or real(context, *rest)
keys = np.random.default_rng(0).integers(0, 1000, 30_000).astype(np.int32)
assert (ol.sort(keys) == np.sort(keys)).all()
print(json.dumps([made.count(1), made.count(2)]))
"""


@needs_it
def test_a_second_process_loads_what_the_first_has_built(tmp_path):
    """And so do those that run beside each other."""
    caches = {"OCLAB_CACHE_DIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "of pyopencl")}
    device = {"OCLAB_DEVICE": INTEL_NAME, "PYOPENCL_NO_CACHE": "0", **caches}
    with ThreadPoolExecutor() as threads:
        together = list(threads.map(lambda _: discover(BUILDS, **device), range(3)))
    assert all(sources >= 1 or loaded >= 1 for sources, loaded in together)
    sources, loaded = discover(BUILDS, **device)
    assert sources == 0 and loaded >= 1
    kept = [path.suffix for path in (tmp_path / "binaries").iterdir()]
    assert kept == [".bin"] * loaded
    assert not list((tmp_path / "of pyopencl").rglob("binary"))
