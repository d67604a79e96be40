"""Intel's runtime itself, where it is installed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from intel_setting import discover

from opencl_lab.drivers import intel

pytestmark = [
    pytest.mark.full,
    pytest.mark.usefixtures("clean"),
    pytest.mark.skipif(not intel.supported(), reason="Intel has no runtime for this one"),
]
INSTALLED = intel.library()
INTEL_NAME = "Intel(R) OpenCL"


# --------------------------------------------------------------- the runtime itself

needs_it = pytest.mark.skipif(INSTALLED is None, reason="Intel's runtime is not installed here")
PARENT = """
import json, os, pickle, subprocess, sys
%s
import opencl_lab as ol
import pyopencl as cl
before = dict(os.environ)
here = [[device.platform, device.spec] for device in ol.devices()]
child = "import sys, pickle; given = pickle.loads(bytes.fromhex(sys.argv[1]))\\n"
child += "import json, opencl_lab as ol; own = [one.handle for one in ol.devices()]\\n"
child += "print(json.dumps([[d.platform, d.spec] for d in given if d.handle in own]))"
given = pickle.dumps(ol.devices()).hex()
there = subprocess.run([sys.executable, "-c", child, given], stdout=-1, check=True).stdout
seen = [[one.name, [item.name for item in one.get_devices()]] for one in cl.get_platforms()]
assert before == dict(os.environ)
print(json.dumps([here, ol.drivers.discovery.choose_device().reason, json.loads(there), seen]))
"""
STARTED = "import pyopencl; [one.get_devices() for one in pyopencl.get_platforms()]"


@needs_it
def test_it_is_found_and_preferred_whoever_started_opencl_and_others_do_not_see_it():
    first, late = (discover(PARENT % start, OCLAB_DEVICE="") for start in ("", STARTED))
    assert first == late
    here, reason, there, seen = first
    assert here[0][0] == "Intel(R) OpenCL" and there == here
    assert len(here) == 1 or reason.endswith(f"launches kernels faster than {here[1][0]}")
    assert seen == discover(f"import json; {STARTED}; " + SEEN)
    assert [name for name, _ in seen] == [name for name, _ in here[1:]]
    assert [spec for _, spec in here[1:]] == [f"{index}:0" for index in range(len(seen))]


SEEN = "print(json.dumps([[one.name, [item.name for item in one.get_devices()]] "
SEEN += "for one in pyopencl.get_platforms()]))"


@needs_it
def test_it_is_tested_in_a_child_and_tuned_there(tmp_path):
    """Where OpenCL was started first, too: the child finds the device by its key."""
    program = f"{STARTED}; import json, opencl_lab as ol, numpy as np\n"
    program += "device = ol.select_device('Intel(R) OpenCL')\n"
    program += "ol.sort(np.arange(99)[::-1], device=device)\n"
    program += "from opencl_lab.selftest.verdicts import kept\n"
    program += "tuned = ol.tune('sort', n=1000, budget=1, device='Intel(R) OpenCL')\n"
    program += "print(json.dumps([[one.word for one in kept(device).values()], str(tuned)]))"
    where = {"OCLAB_SELFTEST": "quick", "OCLAB_CACHE_DIR": str(tmp_path)}
    words, tuned = discover(program, OCLAB_DATA_DIR=str(tmp_path), **where)
    assert set(words) == {"ok"} and "1 tried" in tuned


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
