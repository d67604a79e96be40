"""Fixtures of several files. None is used but by its name, in an argument or in a `pytestmark`."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from intel_setting import NAMES
from radix_checks import SORTS
from runtime_kernels import ADD, ARGUMENTS, INT32
from tuning_runs import GPU

from opencl_lab.core.plan import Buffer, Launch, Plan
from opencl_lab.drivers import intel
from opencl_lab.lab.engine.runner import run_point
from opencl_lab.lab.tuning.tuner import make_task
from opencl_lab.ops.sort.solver import SORT_SOLVER
from opencl_lab.runtime import replay
from opencl_lab.runtime.session import Session, session_of
from opencl_lab.tuned import database, storage

# ------------------------------------------------------------- host and device


@dataclass(frozen=True)
class ArraySide:
    """Where the arrays of a call lie."""

    name: str
    queue: cl.CommandQueue

    @property
    def kind(self):
        return np.ndarray if self.name == "host" else cl.array.Array

    def put(self, array):
        """Return a copy that lies there."""
        return array.copy() if self.name == "host" else cl.array.to_device(self.queue, array)

    def get(self, array):
        """Return an array of NumPy, after a check of where a result lies."""
        assert isinstance(array, self.kind | np.generic)
        return array if self.name == "host" else array.get()


@pytest.fixture(params=["host", "device"])
def side(request, queue):
    """The host, then the device."""
    return ArraySide(request.param, queue)


# -------------------------------------------------------------------- runtime


@pytest.fixture
def fresh(device, own_queue):
    """A queue in a context of its own, whose session has built nothing yet."""
    return own_queue(device.handle, properties=cl.command_queue_properties.PROFILING_ENABLE)


@pytest.fixture
def plan_of(tmp_path):
    """Return a function that plans one launch of a kernel of the test's own."""

    numbers = itertools.count()

    def make(text=ADD, n=64, **changes):
        path = tmp_path / f"kernel{next(numbers)}.cl.mako"
        path.write_text(text)
        launch = Launch(
            **{
                "template": str(path),
                "kernel": "add",
                "params": {},
                "global_size": (n,),
                "local_size": (8,),
                "arguments": ARGUMENTS,
                **changes,
            }
        )
        return Plan((Buffer("x", "in", (n,), INT32), Buffer("y", "out", (n,), INT32)), (launch,))

    return make


@pytest.fixture
def built(monkeypatch):
    """Count what is built: programs and kernels."""
    counts = {"programs": 0, "kernels": 0}
    build, kernel = Session._build, Session.kernel

    def counting_build(self, *args):
        counts["programs"] += 1
        return build(self, *args)

    def counting_kernel(self, *args):
        counts["kernels"] += 1
        return kernel(self, *args)

    monkeypatch.setattr(Session, "_build", counting_build)
    monkeypatch.setattr(Session, "kernel", counting_kernel)
    return counts


# ----------------------------------------------------------------------- sorts


@pytest.fixture
def sorts_by_name(monkeypatch):
    """Public functions take `radix_checks.SORTS`, so that CPUs run the sorts for GPUs, too."""
    for name, algorithm in SORTS.items():
        monkeypatch.setitem(SORT_SOLVER._loaded, name, algorithm)


# --------------------------------------------------------------------- replay


@pytest.fixture
def nothing_recorded(monkeypatch):
    """Calls are recorded, and none is at first."""
    monkeypatch.setattr(replay, "ENABLED", True)
    replay.forget()
    yield
    replay.forget()


@pytest.fixture
def runs(monkeypatch):
    """Count the calls that were replayed."""
    counts = []
    run = replay.RecordedCall.run

    def counting(self, arrays):
        counts.append(self)
        return run(self, arrays)

    monkeypatch.setattr(replay.RecordedCall, "run", counting)
    return counts


# --------------------------------------------------------------------- tuning


@pytest.fixture
def private_data(tmp_path, monkeypatch):
    """A folder of its own for journals and for what is tuned."""
    monkeypatch.setenv("OCLAB_DATA_DIR", str(tmp_path / "data"))
    database.forget()
    yield
    database.forget()


@pytest.fixture
def overlay(private_data, tmp_path, monkeypatch):
    """An empty overlay and no shipped data, for each test its own."""
    monkeypatch.delenv("OCLAB_TUNING", raising=False)
    monkeypatch.setattr(storage, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(storage, "_said", set())
    return tmp_path / "data" / "tuning" / "gemm.json"


@pytest.fixture
def task():
    """A task for a device that is not there, for recorded runs."""
    return make_task("gemm", algorithm="tiled", device=GPU, size=512)


# ---------------------------------------------------------------------- plots


@pytest.fixture
def undrawn(monkeypatch):
    """Plots are prepared as ever and then files without a picture: pixels take the most time."""

    def save(self, path, **options):
        Path(path).write_bytes(b"a plot")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", save)


@pytest.fixture
def figures(monkeypatch):
    """Return the list of figures that are kept instead of saved."""
    saved = []

    def save(self, path, **options):
        saved.append(self)

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", save)
    return saved


# ------------------------------------------------------------ Intel's runtime


@pytest.fixture
def clean(monkeypatch, tmp_path):
    """No choice of a user, nothing that has failed, and a cache of its own."""
    for name in NAMES:
        monkeypatch.setenv(name, "")  # put back what it was at the end
        monkeypatch.delenv(name)
    monkeypatch.setattr(intel, "_failed", None)
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def wheel(monkeypatch, tmp_path):
    """The library that a wheel has installed in a virtual environment made for the test."""
    packages = tmp_path / "venv/lib/python3/site-packages"
    packages.mkdir(parents=True)
    library = tmp_path / "venv/lib" / intel.DRIVER
    library.write_text("not a library")
    python = SimpleNamespace(path=[str(packages)], prefix=str(tmp_path / "empty"), platform="linux")
    monkeypatch.setattr(intel, "sys", python)
    return library


@pytest.fixture(params=["shared", "copied"])
def either_memory(request, device, own_queue):
    """A queue of a device that works on the host's memory, or has its own."""
    queue = own_queue(device.handle)
    session = session_of(queue)
    if request.param == "shared" and not session.device.unified_memory:
        pytest.skip("the device has memory of its own")
    session.device = replace(session.device, unified_memory=request.param == "shared")
    return queue


# --------------------------------------------------------------------- sweeps


class Measured:
    """Runs the points of sweeps and notes them; Ctrl-C strikes instead where that is wanted.

    Attributes
    ----------
    points : list of Point
    stop : set of int
        Values of `n` at which it strikes.
    most : int or None
        So many points, after which it strikes.
    """

    def __init__(self):
        self.points, self.stop, self.most = [], set(), None

    def __call__(self, point, **more):
        if point.problem.n in self.stop or len(self.points) == self.most:
            raise KeyboardInterrupt
        self.points.append(point)
        return run_point(point, **more)

    @property
    def sizes(self):
        return [point.problem.n for point in self.points]


@pytest.fixture
def measured(monkeypatch):
    """The points that sweeps measure."""
    found = Measured()
    monkeypatch.setattr("opencl_lab.lab.engine.sweep.run_point", found)
    return found
