"""PoCL's workers: bound to processors where that can be done, and a rank's own in a job of MPI."""

import os
import subprocess
import sys

import pytest

from opencl_lab.drivers.pinning import (
    LOCAL_RANKS,
    UNITS,
    WORKERS,
    local_rank,
    rank_of_job,
    share,
)

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity"), reason="the system binds no threads"
)

SORTED = """
import os
import numpy as np
import opencl_lab as ol
from opencl_lab.drivers.processes import MARK, TASKS
keys = np.arange(5000, dtype=np.int32)[::-1]
assert (ol.sort(keys, device="pocl") == keys[::-1]).all()
bound = [task for task in TASKS.iterdir() if (task / "comm").read_text().strip() == MARK]
places = [sorted(os.sched_getaffinity(int(task.name))) for task in bound]
print(*sorted(",".join(map(str, place)) for place in places), end="")
"""


def child(program, given, first=""):
    """Run a program in a process whose environment says nothing of PoCL but what is given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("POCL_")}
    folder = {"POCL_CACHE_DIR": os.environ["POCL_CACHE_DIR"]}
    return subprocess.run(
        [sys.executable, "-c", f"{first}{program}"],
        env={**kept, **folder, **given},
        capture_output=True,
        text=True,
        timeout=120,
    )


def workers(given, first=""):
    """Return the processors of each of PoCL's threads in a process, as one text."""
    done = child(SORTED, given, first)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def pocl(device):
    if "PoCL" not in device.platform_version or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs PoCL and two processors")
    return ",".join(map(str, sorted(os.sched_getaffinity(0))))


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("threads", "given", "bound"),
    [
        (0, {}, True),
        (1, {}, False),  # more than the process may use
        (-1, {}, False),  # two such processes would have the same
        (0, {"POCL_AFFINITY": "0"}, None),
        (0, {"OMP_PROC_BIND": "true"}, True),
    ],
)
def test_workers_are_bound_if_each_has_a_processor(pocl, threads, given, bound):
    count = len(pocl.split(",")) + threads
    found = workers({WORKERS: str(count), **given})
    assert found == {True: pocl.replace(",", " "), False: " ".join([pocl] * count), None: ""}[bound]


def test_workers_stay_where_the_process_may_run(pocl):
    """PoCL starts one for each processor of the machine, and would bind them there."""
    one = pocl.rpartition(",")[2]
    found = workers({}, f"import os; os.sched_setaffinity(0, {{{one}}})")
    assert set(found.split()) == {one}


@pytest.mark.full
@pytest.mark.parametrize(
    ("ranks", "shares"),
    [(1, [None]), (2, [{4, 5, 6}, {7, 8}]), (7, [{4}, {5}, {6}, {7}, {8}, {4}, {5}])],
)
@pytest.mark.parametrize("names", LOCAL_RANKS)
def test_ranks_of_a_node_share_its_processors(monkeypatch, ranks, shares, names):
    for rank, share_of_rank in enumerate(shares):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {4, 5, 6, 7, 8})
        monkeypatch.setattr(os, "sysconf", lambda name: 5)
        assert share(dict(zip(names, (str(rank), str(ranks)), strict=True))) == share_of_rank


@pytest.mark.parametrize("given", [{WORKERS: "3"}, {UNITS: "3"}, {}])
def test_ranks_that_are_bound_or_have_their_threads_stay(monkeypatch, given):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 3})
    monkeypatch.setattr(os, "sysconf", lambda name: 5)
    environment = {**dict(zip(LOCAL_RANKS[0], "13", strict=True)), **given}
    assert share(environment) == (None if given else {2, 3})
    assert rank_of_job({"PMI_RANK": "3"}) == 3 and rank_of_job({}) == 0 == (local_rank({}) or 0)


def test_a_rank_uses_its_share_and_leaves_the_process_as_it_is(pocl):
    ranks = dict(zip(LOCAL_RANKS[0], ("1", "2"), strict=True))
    own = pocl.split(",")
    own = own[(len(own) + 1) // 2 :]
    program = "import opencl_lab, os; import opencl_lab.drivers.processes as p; ol.devices()\n"
    program += (
        "print('', *sorted(p.PROCESSORS), len(os.sched_getaffinity(0)), len(os.environ) == n)"
    )
    done = child(SORTED + program, ranks, "import os, pyopencl; n = len(os.environ);")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [*own, *own, str(len(pocl.split(","))), "True"]
