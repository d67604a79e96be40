"""PoCL's workers: bound to processors where that can be done, and nowhere else."""

import os
import subprocess
import sys

import pytest

from opencl_lab.drivers.pinning import (
    LOCAL_RANKS,
    UNITS,
    WORKERS,
    local_rank,
    may_pin,
    pin,
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
keys = np.arange(5000, dtype=np.int32)[::-1]
assert (ol.sort(keys) == keys[::-1]).all()
places = set().union(*(os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")))
print(os.environ.get("POCL_AFFINITY"), *sorted(places))
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


@pytest.mark.parametrize(
    ("allowed", "processors", "given", "pinned"),
    [
        ({0, 1}, 2, {}, True),
        ({0}, 2, {}, False),  # taskset -c 0: PoCL counts both
        ({1}, 1, {}, False),  # the only one of a container is not the first of the machine
        ({0, 1}, 2, {"POCL_MAX_PTHREAD_COUNT": "2"}, True),
        ({0, 1}, 2, {"POCL_MAX_PTHREAD_COUNT": "3"}, False),
        ({0, 1}, 4, {"POCL_MAX_PTHREAD_COUNT": "2"}, True),
        ({0, 1}, 2, {"POCL_CPU_MAX_CU_COUNT": "3"}, False),
        ({0}, 2, {"POCL_CPU_MAX_CU_COUNT": "1"}, False),  # PoCL 3 does not know it
        ({0, 1}, 2, {"POCL_MAX_PTHREAD_COUNT": " +3.5"}, False),
        ({0, 1}, 2, {"POCL_MAX_PTHREAD_COUNT": " 2nd"}, True),
        ({0, 1}, 2, {"POCL_MAX_PTHREAD_COUNT": "-1"}, False),
        ({0}, 2, {"OMP_PROC_BIND": "true"}, True),  # OpenMP has bound this thread alone
        ({0}, 2, {"OMP_PROC_BIND": "false"}, False),
        ({0, 1}, 2, {"POCL_MAX_PTHREAD_COUNT": "1", "POCL_CPU_MAX_CU_COUNT": "4"}, False),
        ({0, 1}, 2, {"POCL_MAX_PTHREAD_COUNT": ""}, True),
        ({0}, 2, {"POCL_MAX_PTHREAD_COUNT": "0"}, True),  # PoCL starts one
    ],
)
def test_each_worker_needs_a_processor(monkeypatch, allowed, processors, given, pinned):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: allowed)
    monkeypatch.setattr(os, "sysconf", lambda name: processors)
    assert may_pin(given) == pinned


def test_children_decide_again(monkeypatch):
    monkeypatch.setattr(os, "sysconf", lambda name: 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    ours, theirs = {}, {"POCL_AFFINITY": "1"}
    for environment in (ours, theirs):
        pin(environment)
        assert environment["POCL_AFFINITY"] == "1"
    more = {"POCL_MAX_PTHREAD_COUNT": "4"}
    for inherited, kept in ((ours | more, {}), (theirs | more, theirs)):
        pin(inherited)
        assert inherited == kept | more
    off = ours | {"POCL_AFFINITY": "0"}
    pin(off)
    assert off == {"POCL_AFFINITY": "0"}


@pytest.mark.full
@pytest.mark.parametrize("given", [None, "0", "1"])
def test_workers_are_pinned_unless_the_user_says_otherwise(given):
    if not may_pin({}):
        pytest.skip("this process may not use all processors")
    program = "import os, opencl_lab as ol; ol.devices(); print(os.environ['POCL_AFFINITY'])"
    done = child(program, {} if given is None else {"POCL_AFFINITY": given})
    assert (done.returncode, done.stdout.strip()) == (0, given or "1"), done.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("ranks", "shares"),
    [(1, [None]), (2, [{4, 5, 6}, {7, 8}]), (7, [{4}, {5}, {6}, {7}, {8}, {4}, {5}])],
)
@pytest.mark.parametrize("names", LOCAL_RANKS)
def test_ranks_of_a_node_share_its_processors(monkeypatch, ranks, shares, names):
    for rank, share_of_rank in enumerate(shares):
        bound = []
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {4, 5, 6, 7, 8})
        monkeypatch.setattr(os, "sched_setaffinity", lambda pid, to, all=bound: all.append(set(to)))
        monkeypatch.setattr(os, "sysconf", lambda name: 5)
        environment = dict(zip(names, (str(rank), str(ranks)), strict=True))
        share(environment)
        assert bound == ([] if share_of_rank is None else [share_of_rank])
        assert environment.get(WORKERS) == (share_of_rank and str(len(share_of_rank)))


@pytest.mark.parametrize("given", [{WORKERS: "3"}, {UNITS: "3"}, {}])
def test_ranks_that_are_bound_or_have_their_threads_stay(monkeypatch, given):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 3})
    monkeypatch.setattr(os, "sched_setaffinity", lambda *given: pytest.fail("it was bound"))
    monkeypatch.setattr(os, "sysconf", lambda name: 5)
    environment = {**dict(zip(LOCAL_RANKS[0], "13", strict=True)), **given}
    share(environment)
    assert environment.get(WORKERS) == given.get(WORKERS, None if given else "2")
    assert rank_of_job({"PMI_RANK": "3"}) == 3 and rank_of_job({}) == 0 == (local_rank({}) or 0)


def test_more_workers_than_processors_sort(device):
    if "PoCL" not in device.platform_version:
        pytest.skip("not PoCL")
    done = child(SORTED, {"POCL_MAX_PTHREAD_COUNT": str(os.cpu_count() + 2)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == "None"


def test_workers_stay_where_the_process_may_run(device):
    if "PoCL" not in device.platform_version:
        pytest.skip("not PoCL")
    if os.cpu_count() < 2:
        pytest.skip("needs two processors")
    one = max(os.sched_getaffinity(0))
    done = child(SORTED, {}, f"import os; os.sched_setaffinity(0, {{{one}}})")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["None", str(one)]
