"""The self-test: each trial is right here, and each fault that is planted is kept from users."""

import json
import logging
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import opencl_lab as ol
from opencl_lab.core.errors import InvalidConfig, LaunchError
from opencl_lab.core.template import kernel_digest
from opencl_lab.drivers.verdicts import Verdict, verdict_file
from opencl_lab.lab.cli.main import cli, main
from opencl_lab.lab.registry import operations
from opencl_lab.ops.fft.fast import FFT
from opencl_lab.ops.selftest import SelfTest, all_trials
from opencl_lab.ops.trial import Trial
from opencl_lab.selftest import examination, trust, verdicts
from opencl_lab.selftest.trust import SelfTestWarning
from opencl_lab.selftest.verdicts import DEVICE, Family

KEYS = np.random.default_rng(1).integers(-(2**31), 2**31, 3_000, np.int32)
FFT_TEMPLATES = FFT.templates
RADIX_TEMPLATES = ("sort/radix_cpu.cl.mako",)
RADIX, MERGE = Family("sort", "radix"), Family("sort", "merge-path")


@pytest.fixture
def plant(monkeypatch, tmp_path, device):
    """Return a function that makes the device unknown, and plants a fault in its children."""
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TESTED", str(tmp_path / "tested"))
    monkeypatch.setattr(verdicts, "shipped", dict)
    monkeypatch.setattr(trust, "shipped", dict)

    def plant(fault="none", *wrong, mode="quick"):
        monkeypatch.setenv("FAULT", fault)
        monkeypatch.setenv("WRONG", ",".join(wrong))
        monkeypatch.setenv("OCLAB_SELFTEST", mode)
        monkeypatch.setattr(trust, "handler", "faulty_handlers:Faulty")
        trust.forget()

    yield plant
    trust.forget()


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
    for name, operation in operations().items():  # which may have solvers such as filter-lines
        tested = [items for solver, items in found.items() if solver.partition("-")[0] == name]
        assert {item.name for item in operation.algorithms} == set().union(*tested)
    assert all(trials.trials for trials in all_trials())


@pytest.mark.parametrize("family", [Family("gather", "words"), Family("sort", "odd-even-merge")])
def test_trials_are_right_here(device, family):
    found = SelfTest(device, False, lambda step: None).test(family)
    assert found.word == "ok" and found.value


@pytest.mark.full
@pytest.mark.parametrize("trials", list(all_trials()), ids=lambda trials: trials.solver.name)
def test_a_share_of_all_trials_is_right_here(device, trials):
    # `.ci/extended` runs more, with each algorithm.
    handler = SelfTest(device, True, lambda step: None)
    how = {} if trials.only else {"algorithm": "auto"}
    drawn = (*trials.trials[::2], *trials.drawn(device, 12))
    faults = {trial.title: handler.fault(trial, how) for trial in drawn}
    assert faults and not any(faults.values())


def for_cpus(device):
    """Skip on devices where other algorithms are chosen, of other templates."""
    if device.kind != "cpu":
        pytest.skip("it plants faults in the sort for CPUs")


def test_the_families_of_a_first_use_are_few(device):
    for_cpus(device)
    few, all_of_them = (
        dict(SelfTest(device, full, lambda step: None).families().value) for full in (False, True)
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
    for_cpus(device)
    plant("wrong", "radix")
    with pytest.warns(SelfTestWarning, match="sort by radix is wrong on .*takes its place"):
        fresh_sort(device)
    fresh_sort(device)  # without another warning, which would be an error
    assert tested()[0] == DEVICE.key and tested().count(RADIX.key) == 1
    kept = verdicts.kept(device)
    assert "numbers are wrong" in kept[RADIX.key].detail and kept[DEVICE.key].word == "ok"
    trust.forget()  # as in another process, which tests nothing
    count = len(tested())
    with pytest.warns(SelfTestWarning, match="radix"):
        fresh_sort(device)
    assert len(tested()) == count
    with pytest.warns(SelfTestWarning, match="as it was asked for by name"):
        trust.forget()
        fresh_sort(device, algorithm="radix")


@pytest.mark.full
@pytest.mark.parametrize(
    ("fault", "told"),
    [("crash", "SIGABRT"), ("hang", "no answer within 13 s"), ("error", "CL_OUT_OF_RESOURCES")],
)
def test_crashes_and_hangs_stay_in_the_child(plant, tested, device, monkeypatch, fault, told):
    monkeypatch.setattr(examination, "TRIAL_SECONDS", (12.0, 13.0))
    plant(fault, "radix")
    with pytest.warns(SelfTestWarning, match=told):
        fresh_sort(device)
    assert tested().count(RADIX.key) == len(examination.TRIAL_SECONDS)
    assert any(key.startswith("sort/") for key in set(tested()) - {RADIX.key})
    assert told in verdicts.kept(device)[RADIX.key].detail


DOUBTS = {
    "lost": "exit status 3",
    "killed": "SIGKILL",
    "raises": "ValueError: planted",
    "garbage": "no verdict",
    "vanished": "a second process finds another one",
}


@pytest.mark.few(2)
@pytest.mark.parametrize("fault", DOUBTS)
def test_troubles_of_the_machine_are_no_verdict(plant, device, caplog, fault):
    plant(fault, "radix")
    fresh_sort(device)
    fresh_sort(device)
    said = [one.message for one in caplog.records if "untested" in one.message]
    assert len(said) == 1 and DOUBTS[fault] in said[0]
    assert RADIX.key not in verdicts.kept(device)


@pytest.mark.parametrize("error", [TypeError, RuntimeError, PermissionError])
def test_where_no_process_can_be_started_calls_go_on(plant, device, monkeypatch, caplog, error):
    def refuse(*arguments, **options):
        raise error("not allowed")

    plant()
    monkeypatch.setattr("subprocess.Popen", refuse)
    fresh_sort(device)
    assert "used untested: no child process" in caplog.text and not verdicts.kept(device)
    result = CliRunner().invoke(cli, ["selftest", "--device", device.spec], standalone_mode=False)
    assert isinstance(result.exception, LaunchError)


@pytest.mark.full
@pytest.mark.parametrize("fault", ["once", "refused"])
def test_one_crash_or_error_is_tried_again(plant, device, fault):
    plant(fault, "radix")
    fresh_sort(device)
    assert verdicts.kept(device)[RADIX.key].word == "ok"


def test_the_first_use_is_told_once(plant, device, caplog):
    plant()
    fresh_sort(device)
    assert caplog.text.count("first use of") == 1
    caplog.clear()
    trust.forget()  # as in another process
    fresh_sort(device)
    assert "first use of" not in caplog.text


@pytest.mark.parametrize("quiet", [False, True])
def test_commands_say_it_in_one_line(monkeypatch, capsys, quiet):
    def command(context):
        context.obj.quiet = quiet
        logging.getLogger("opencl_lab").warning("first use")
        text = "sort by radix is wrong"  # pytest records what is really warned of
        sys.stderr.write(warnings.formatwarning(text, SelfTestWarning, "core.py", 1, "a line"))
        sys.stderr.write(warnings.formatwarning(text, UserWarning, "core.py", 1, "a line"))

    monkeypatch.setattr(cli, "invoke", command)
    assert main(["devices"]) == 0
    told = [] if quiet else ["oclab: first use"]
    *ours, others, _ = capsys.readouterr().err.splitlines()
    assert ours == [*told, "oclab: sort by radix is wrong"]
    assert others == "core.py:1: UserWarning: sort by radix is wrong"


def test_a_device_without_basics_is_refused(plant, tested, device):
    plant("basics")
    with pytest.raises(LaunchError, match=r"a loop ends early.*(use another|install another)"):
        fresh_sort(device)
    with pytest.raises(LaunchError, match="a loop ends early"):
        ol.gemm(np.ones((3, 4)), np.ones((4, 5)), queue=device.queue())
    assert tested() == [DEVICE.key]


def test_transforms_without_another_algorithm_refuse_a_wrong_one(plant, device):
    plant()
    wrong = Verdict("broken", "wrong, as planted", digest=kernel_digest(FFT_TEMPLATES))
    verdicts.keep(device, {Family("dft", "fft"): wrong})
    x, queue = np.random.default_rng(3).random((6, 50), np.float32), device.queue()
    with pytest.raises(LaunchError, match="fft: wrong, as planted"):
        ol.fft.dct(x, queue=queue)
    with pytest.warns(SelfTestWarning, match="direct-tiled takes its place"):
        spectrum = ol.fft.rfft(x, queue=queue)
    np.testing.assert_allclose(spectrum, np.fft.rfft(x), rtol=1e-4, atol=1e-4)
    with pytest.raises(LaunchError, match="contiguous rows only"):
        ol.fft.fft(x, axis=0, queue=queue)


@pytest.mark.full
def test_small_calls_stay_on_the_device_if_its_serial_side_is_wrong(plant, device):
    if device.serial_side is None:
        pytest.skip("it has none")
    plant()
    wrong = Verdict("broken", "planted", digest=kernel_digest(()))
    verdicts.keep(device.serial_side, {DEVICE: wrong})
    assert (ol.sort(KEYS[:501], device=device) == np.sort(KEYS[:501])).all()
    with pytest.raises(LaunchError, match="planted"):
        ol.sort(KEYS[:501], device=device.serial_side)


@pytest.mark.full
def test_if_no_algorithm_is_right_the_call_says_so(plant, device):
    plant("crash", *ol.ops.sort.solver.SORT_SOLVER.registry)
    with pytest.raises(LaunchError, match=r"no algorithm of sort is right on .*radix: .*SIGABRT"):
        fresh_sort(device)


def test_calls_at_once_test_a_family_once(plant, tested, device):
    plant()
    threads = [threading.Thread(target=fresh_sort, args=(device,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tested().count(RADIX.key) == 1
    assert verdicts.kept(device)[RADIX.key].value


@pytest.mark.parametrize("mode", ["off", "quick"])
def test_trusted_devices_are_not_tested(plant, tested, device, monkeypatch, mode):
    plant("basics", mode=mode)
    if mode == "quick":
        monkeypatch.setattr(trust, "shipped", lambda: {verdicts.identity(device): None})
    fresh_sort(device)
    assert not tested()
    if mode == "quick":  # but what was found later counts
        verdicts.keep(device, {RADIX: Verdict("broken", "wrong since")})
        trust.forget()
        with pytest.raises(LaunchError, match="a loop ends early"):
            fresh_sort(device)


def test_the_mode_is_checked(plant, device):
    plant(mode="sometimes")
    with pytest.raises(InvalidConfig, match="OCLAB_SELFTEST must be one of off, quick, full"):
        fresh_sort(device)


def test_verdicts_are_about_the_driver_and_todays_kernels(plant, device, monkeypatch):
    plant()
    templates = RADIX_TEMPLATES
    right = Verdict("ok", value=2, digest=kernel_digest(templates))
    verdicts.keep(device, {RADIX: right})
    verdicts.keep(device, {MERGE: Verdict("ok", value=2, digest="old", full=True)})
    kept = verdicts.kept(device)
    assert verdicts.is_current(kept[RADIX.key], templates, full=False)
    assert not verdicts.is_current(kept[RADIX.key], templates, full=True)
    assert not verdicts.is_current(kept[MERGE.key], templates, full=False)
    verdict_file(device.key).write_text("{")
    assert not verdicts.kept(device)
    verdicts.keep(device, {RADIX: right})
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
    plant("killed", "words")
    doubtful = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert doubtful.return_value == 4
    rows = {row["operation"]: row for row in json.loads(doubtful.output)["results"]}
    assert rows["gather"]["status"] == "runtime" and "SIGKILL" in rows["gather"]["reason"]
    shown = CliRunner().invoke(cli, arguments[:1] + arguments[2:], standalone_mode=False)
    assert "untested: a child process" in shown.output and ", 1 untested" in shown.output
    rows = {row["operation"]: row for row in json.loads(result.output)["results"]}
    assert set(rows) == {"device", "gather"} and rows["gather"]["status"] == "correct"


def test_shipped_devices_are_told_apart_by_what_compiles(device):
    known = verdicts.shipped()
    assert all(one.tested for one in known.values())
    assert all(len(name.split(" | ")) == 6 for name in known)
