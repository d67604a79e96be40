"""The self-test: each trial is right here, and each fault that is planted is kept from users."""

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import opencl_lab as ol
from opencl_lab.core.errors import InvalidConfig, LaunchError
from opencl_lab.lab.cli.main import cli
from opencl_lab.lab.registry import operations
from opencl_lab.ops.selftest import SelfTest, all_trials
from opencl_lab.ops.trial import Trial
from opencl_lab.selftest import examination, gate, verdicts
from opencl_lab.selftest.gate import SelfTestWarning
from opencl_lab.selftest.verdicts import BASICS, Family, Verdict

KEYS = np.random.default_rng(1).integers(-(2**31), 2**31, 3_000, np.int32)
RADIX_TEMPLATES = ("sort/radix_cpu.cl.mako",)
RADIX, MERGE = Family("sort", "radix"), Family("sort", "merge-path")


@pytest.fixture
def plant(monkeypatch, tmp_path, device):
    """Return a function that makes the device unknown, and plants a fault in its children."""
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TESTED", str(tmp_path / "tested"))
    monkeypatch.setattr(verdicts, "shipped", dict)
    monkeypatch.setattr(gate, "shipped", dict)

    def plant(fault="none", *wrong, mode="quick"):
        monkeypatch.setenv("FAULT", fault)
        monkeypatch.setenv("WRONG", ",".join(wrong))
        monkeypatch.setenv("OCLAB_SELFTEST", mode)
        monkeypatch.setattr(gate, "servant", "faulty_servants:Faulty")
        gate.forget()

    yield plant
    gate.forget()


@pytest.fixture
def tested(plant, tmp_path):
    """Return the families that children have tested so far."""

    def tested():
        path = Path(tmp_path / "tested")
        return path.read_text().split() if path.exists() else []

    return tested


def fresh_sort(device, keys=KEYS, **how):
    """Sort in a call that is not replayed: the length is new."""
    fresh_sort.count += 1
    keys = keys[: -fresh_sort.count]
    result = ol.sort(keys, queue=device.queue(), **how)
    assert (result == np.sort(keys)).all()


fresh_sort.count = 0


def test_every_operation_has_trials_of_each_algorithm():
    found = {trials.solver.name: set(trials.solver.registry) for trials in all_trials()}
    for name, operation in operations().items():
        assert {item.name for item in operation.algorithms} == found[name]
    for trials in all_trials():
        assert any(not trial.full for trial in trials.trials), trials.solver.name


@pytest.mark.parametrize("family", [Family("gather", "words"), Family("sort", "odd-even-merge")])
def test_trials_are_right_here(device, family):
    fault, count = SelfTest(device.spec, device.key, False, lambda title: None).test(family)
    assert not fault and count


@pytest.mark.full
@pytest.mark.parametrize("trials", list(all_trials()), ids=lambda trials: trials.solver.name)
def test_a_share_of_all_trials_is_right_here(device, trials):
    # `.ci/extended` runs all of them, with each algorithm.
    servant = SelfTest(device.spec, device.key, True, lambda title: None)
    how = {} if trials.only else {"algorithm": "auto"}
    faults = {trial.title: servant.fault(trial, how) for trial in trials.trials[::4]}
    assert faults and not any(faults.values())


def test_the_families_of_a_first_use_are_few(device):
    few, all_of_them = (
        dict(SelfTest(device.spec, device.key, full, lambda title: None).families())
        for full in (False, True)
    )
    assert RADIX in few and few.items() <= all_of_them.items() and 8 <= len(few) <= 16
    assert all_of_them[RADIX] == RADIX_TEMPLATES


def test_a_trial_sees_wrong_numbers():
    right = np.array([1.0, np.nan, 3e4], np.float32)
    trial = Trial("x", lambda rng: None, "float32")
    assert trial.error((right + np.float32(1e-6),), (right,)) == ""
    assert trial.error((right * np.float32(1.001),), (right,)) == "1 of 3 numbers are wrong"
    assert trial.error((np.nan_to_num(right),), (right,)) == "1 of 3 numbers are wrong"
    assert "float64" in trial.error((right.astype(float),), (right,))
    exact = Trial("x", lambda rng: None, "float32", exact=True)
    assert exact.error((np.nextafter(right, np.float32(9)),), (right,))


def test_a_wrong_family_is_left_out_with_one_warning(plant, tested, device, recwarn):
    plant("wrong", "radix")
    with pytest.warns(SelfTestWarning, match="sort by radix is wrong on .*takes its place"):
        fresh_sort(device)
    fresh_sort(device)  # without another warning, which would be an error
    assert tested()[0] == BASICS.key and tested().count(RADIX.key) == 1
    kept = verdicts.kept(device)
    assert "numbers are wrong" in kept[RADIX.key].fault and not kept[BASICS.key].fault
    gate.forget()  # as in another process, which tests nothing
    count = len(tested())
    with pytest.warns(SelfTestWarning, match="radix"):
        fresh_sort(device)
    assert len(tested()) == count
    with pytest.warns(SelfTestWarning, match="as it was asked for by name"):
        gate.forget()
        fresh_sort(device, algorithm="radix")


@pytest.mark.full
@pytest.mark.parametrize(
    ("fault", "told"), [("crash", "SIGABRT"), ("hang", "no answer within 12 s")]
)
def test_crashes_and_hangs_stay_in_the_child(plant, tested, device, monkeypatch, fault, told):
    monkeypatch.setattr(examination, "TRIAL_SECONDS", 12.0)
    plant(fault, "radix")
    with pytest.warns(SelfTestWarning, match=told):
        fresh_sort(device)
    assert tested().count(RADIX.key) == 1 and MERGE.key in tested()


def test_a_device_without_basics_is_refused(plant, tested, device):
    plant("basics")
    with pytest.raises(LaunchError, match=r"a loop ends early.*(use another|install another)"):
        fresh_sort(device)
    with pytest.raises(LaunchError, match="a loop ends early"):
        ol.gemm(np.ones((3, 4)), np.ones((4, 5)), queue=device.queue())
    assert tested() == [BASICS.key]


def test_a_device_that_a_second_process_does_not_find_is_refused(plant, tested, device):
    plant("lost")
    with pytest.raises(LaunchError, match=r"starting a second process.*exit status 3"):
        fresh_sort(device)
    assert not tested()


@pytest.mark.full
def test_if_no_algorithm_is_right_the_call_says_so(plant, device):
    plant("crash", *ol.ops.sort.solver.SORT_SOLVER.registry)
    with pytest.raises(LaunchError, match=r"no algorithm of sort is right on .*radix: .*SIGABRT"):
        fresh_sort(device)


def test_calls_wait_for_their_own_family_alone(plant, tested, device):
    plant()
    threads = [threading.Thread(target=fresh_sort, args=(device,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tested().count(RADIX.key) == 1
    assert verdicts.kept(device)[RADIX.key].trials


@pytest.mark.parametrize("mode", ["off", "quick"])
def test_trusted_devices_are_not_tested(plant, tested, device, monkeypatch, mode):
    plant("basics", mode=mode)
    if mode == "quick":
        monkeypatch.setattr(gate, "shipped", lambda: {verdicts.identity(device): None})
    fresh_sort(device)
    assert not tested()
    if mode == "quick":  # but what was found later counts
        verdicts.keep(device, {RADIX: Verdict(digest="", fault="wrong since")})
        gate.forget()
        with pytest.raises(LaunchError, match="a loop ends early"):
            fresh_sort(device)


def test_the_mode_is_checked(plant, device):
    plant(mode="sometimes")
    with pytest.raises(InvalidConfig, match="OCLAB_SELFTEST must be one of off, quick, full"):
        fresh_sort(device)


def test_verdicts_are_about_the_driver_and_todays_kernels(plant, device, monkeypatch):
    plant()
    templates = RADIX_TEMPLATES
    digest = verdicts.kernel_digest(templates)
    verdicts.keep(device, {RADIX: Verdict(digest=digest, trials=2)})
    verdicts.keep(device, {MERGE: Verdict(digest="old", trials=2, full=True)})
    kept = verdicts.kept(device)
    assert verdicts.is_current(kept[RADIX.key], templates, full=False)
    assert not verdicts.is_current(kept[RADIX.key], templates, full=True)
    assert not verdicts.is_current(kept[MERGE.key], templates, full=False)
    verdicts.verdict_file(device).write_text("{")
    assert not verdicts.kept(device)
    verdicts.keep(device, {RADIX: Verdict(digest=digest, trials=2)})
    monkeypatch.setattr(verdicts, "identity", lambda device: "another driver")
    assert not verdicts.kept(device)


def test_the_command_prints_a_table_and_fails_for_a_fault(plant, device, monkeypatch):
    plant("basics")
    result = CliRunner().invoke(cli, ["selftest", "--device", device.spec], standalone_mode=False)
    assert result.return_value == 1 and "a loop ends early" in result.output
    plant()
    arguments = ["selftest", "--json", "--device", device.spec]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert result.return_value == 0
    rows = {row["operation"]: row for row in json.loads(result.output)["results"]}
    assert set(rows) == {"device", "gather"} and rows["gather"]["status"] == "correct"


def test_shipped_devices_are_told_apart_by_what_compiles(device):
    known = verdicts.shipped()
    assert all(one.tested for one in known.values())
    assert all(len(name.split(" | ")) == 6 for name in known)
