"""Files of other tuners: read, written, read by the other side, and tried here."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from tuning_runs import Replay

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.core.space import Config
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.lab.tuning.adopt import adopt, read_recording, task_of
from opencl_lab.lab.tuning.clblast import from_clblast
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.interchange import (
    Recording,
    from_kernel_tuner,
    from_t4,
    to_kernel_tuner,
    to_t4,
    values_of,
)
from opencl_lab.lab.tuning.journal import journal_of
from opencl_lab.tuned import database, storage

STATUSES = ("correct", "timeout", "compile", "correct", "runtime", "correctness", "constraints")
ABOUT = {"operation": "gemm", "algorithm": "tiled", "problem": {"m": 96, "n": 64, "k": 80}}
PAPER = Device(
    "Paper GPU",
    "gpu",
    max_work_group=1024,
    max_work_items=(1024, 1024, 64),
    capabilities=Capabilities(fp64=True, max_work_group=1024, local_memory=48 << 10),
)


def evaluation(status, config, number=0):
    times = (0.1 + number, 1 / 3 + number, 2.5 + number) if status == "correct" else ()
    reason = "" if status == "correct" else f'line "{number}":\n\tbad {{}}, é'
    stamp = f"2026-11-21T11:00:{number:02d}+00:00"
    return Evaluation(config, status, reason, times, 10.1 + number, 3.25, stamp)


@pytest.fixture
def recording():
    """Every status, and parameters that are numbers, flags and texts."""
    points = itertools.product((8, 16, 32), (False, True), ("row", "col,umn"))
    evaluations = [
        evaluation(status, Config(TILE=tile, STAGE=stage, ORDER=order), number)
        for number, (status, (tile, stage, order)) in enumerate(zip(STATUSES, points, strict=False))
    ]
    parameters = {"TILE": (8, 16, 32), "STAGE": (False, True), "ORDER": ("row", "col,umn")}
    return Recording("Some device", "gemm_tiled", (96, 64, 80), parameters, evaluations, ABOUT)


# ----------------------------------------------------------------- round trips


@pytest.mark.parametrize(
    ("write", "read"), [(to_kernel_tuner, from_kernel_tuner), (to_t4, from_t4)]
)
def test_a_run_comes_back_whole(recording, write, read):
    text = write(recording)
    again = read(text)
    assert again == recording and read_recording(text) == recording
    assert [type(v) for v in again.evaluations[0].config.values()] == [int, bool, str]
    assert write(again) == text
    empty = replace(recording, evaluations=[])
    assert read(write(empty)) == empty


def test_kernel_tuner_fields(recording):
    content = json.loads(to_kernel_tuner(recording))
    assert content["device_name"] == "Some device" and content["kernel_name"] == "gemm_tiled"
    assert content["problem_size"] == [96, 64, 80] and content["objective"] == "time"
    assert content["tune_params_keys"] == ["TILE", "STAGE", "ORDER"]
    assert content["tune_params"]["STAGE"] == [False, True]
    entries = list(content["cache"].values())
    assert next(iter(content["cache"])) == "8,False,row"
    assert entries[0]["time"] == 1 / 3 and entries[0]["times"] == [0.1, 1 / 3, 2.5]
    assert entries[0]["compile_time"] == 10.1 and entries[0]["verification_time"] == 3.25
    assert entries[0]["benchmark_time"] == pytest.approx(0.1 + 1 / 3 + 2.5)
    assert [entry.get("__error__") for entry in entries] == [
        None, "RuntimeFailedConfig", "CompilationFailedConfig", None, "RuntimeFailedConfig",
        "RuntimeFailedConfig", "InvalidConfig",
    ]  # fmt: skip


def test_a_cache_file_of_kernel_tuner_may_end_anywhere_in_its_entries(recording):
    text = to_kernel_tuner(recording)
    assert text.endswith("}\n}")
    open_ended = text[:-3]  # as Kernel Tuner leaves it while it runs
    for cut in (open_ended, open_ended + ",", open_ended + ",\n"):
        assert from_kernel_tuner(cut) == recording
    start = text.index('"cache": {')
    lost = replace(recording, evaluations=recording.evaluations[:-1])
    for end in range(text.rindex("\n", 0, len(open_ended)) + 1, len(open_ended)):
        found = from_kernel_tuner(text[:end])
        assert found == lost
    assert from_kernel_tuner(text[: start + len('"cache": {')]).evaluations == []
    for end in (start, 40, 0):
        with pytest.raises(InvalidProblem, match="Kernel Tuner"):
            from_kernel_tuner(text[:end])


def test_kernel_tuner_files_of_others():
    text = """{"device_name": "X", "kernel_name": "k", "problem_size": 4096,
    "tune_params_keys": ["a", "b"], "tune_params": {"a": [1, 2], "b": [0.0, 1.0]}, "cache": {
    "1,0.0": {"a": 1, "b": 0.0, "time": "CompilationFailedConfig"},
    "1,1.0": {"a": 1, "b": 1.0, "time": 2.5, "GFLOP/s": 3.0},
    "2,0.0": {"a": 2, "b": 0.0, "time": 3.5, "times": [3, 4.0], "compile_time": 7},
    "2,1.0": {"a": 2, "b": 1.0, "__error__": "InvalidConfig"}}}"""
    found = from_kernel_tuner(text)
    assert found.problem_size == (4096,) and found.about == {}
    assert [e.status for e in found.evaluations] == ["compile", "correct", "correct", "constraints"]
    assert [e.time_ms for e in found.evaluations] == [math.inf, 2.5, 3.5, math.inf]
    assert found.evaluations[2].build_ms == 7 and found.evaluations[1].config == Config(a=1, b=1)


def t4(times, unit="milliseconds", invalidity="correct", **more):
    result = {"configuration": {"a": 4}, "times": times, "invalidity": invalidity, **more}
    result["correctness"] = 1
    metadata = {"metadata": {"timeunit": unit}} if unit else {}
    return json.dumps({"schema_version": "1.0.0", "results": [result], **metadata})


@pytest.mark.parametrize("spelling", ["compilation", "compilation_time"])
@pytest.mark.parametrize(
    ("unit", "scale"), [(None, 1), ("milliseconds", 1), ("seconds", 1000), ("microseconds", 1e-3)]
)
def test_both_spellings_and_any_unit(spelling, unit, scale):
    text = t4({spelling: 7.5, "runtimes": [2.0, 4.0], "validation": 1.5}, unit)
    (found,) = from_t4(text).evaluations
    assert found.build_ms == 7.5 * scale and found.check_ms == 1.5 * scale
    assert found.times_ms == (2.0 * scale, 4.0 * scale)


def test_t4_of_others():
    measured = [{"name": "GFLOP/s", "value": 3.0, "unit": ""}]
    measured.append({"name": "time", "value": 0.25, "unit": "s"})
    (found,) = from_t4(t4({"runtimes": []}, measurements=measured)).evaluations
    assert found.times_ms == (250.0,) and found.status == "correct"
    (found,) = from_t4(t4({})).evaluations
    assert found.status == "runtime" and "no time" in found.reason
    (found,) = from_t4(t4({"runtimes": [1.0]}, invalidity="timeout")).evaluations
    assert found.status == "timeout" and found.times_ms == ()


def test_t4_fields(recording):
    content = json.loads(to_t4(recording))
    assert content["schema_version"] == "1.0.0"
    assert [item["invalidity"] for item in content["results"]] == list(STATUSES)
    assert [item["correctness"] for item in content["results"]] == [1, 0, 0, 1, 0, 0, 0]
    first = content["results"][0]
    assert first["configuration"] == {"TILE": 8, "STAGE": False, "ORDER": "row"}
    assert first["objectives"] == ["time"]
    assert first["measurements"] == [{"name": "time", "value": 1 / 3, "unit": "ms"}]
    assert first["times"] == {
        "compilation_time": 10.1, "runtimes": [0.1, 1 / 3, 2.5], "framework": 0.0,
        "search_algorithm": 0.0, "validation": 3.25,
    }  # fmt: skip


CACHE = '{"device_name": "X", "kernel_name": "k", "tune_params_keys": ["a"], "tune_params": {}, '


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, "none of") for text in ("", "{}", "[]", "null", "\x00" * 10, "[" * 100_000)),
        ('{"tune_params_keys": 3}', "tune_params_keys: expected `array`, got `int`"),
        ('{"tune_params_keys": ["a"], "cache": {"1": {}}}', "missing required field"),
        ('{"tune_params_keys": ' + "[" * 100_000, "nested too deeply"),
        (CACHE + '"cache": {"1": {}}}', "KeyError('a')"),
        (CACHE + '"cache": {"1": 5}}', "expected `object`, got `int`"),
        (CACHE + '"cache": {"1": {"a": 1.5}}}', "expected `bool | int | str`, got `float`"),
        (CACHE + '"cache": {"1": {"a": 1, "oclab_status": "odd"}}}', "invalid enum value 'odd'"),
        (CACHE + '"problem_size": null, "cache": {}}', "problem_size: expected"),
        ('{"kernel_family": "xgemm_1"}', "missing required field `precision`"),
        (
            '{"kernel_family": "xgemm_1", "precision": "32", "results": [{"time": 1, '
            '"parameters": {"WGD": 8, "MDIMCD": 0, "NDIMCD": 8}}]}',
            "ZeroDivisionError",
        ),
        ('{"schema_version": "2.0.0", "results": []}', "version 2.0.0, not 1.0.0"),
        ('{"schema_version": 1, "results": 5}', "results: expected `array`, got `int`"),
        (
            '{"schema_version": "1.0.0", "results": [{"configuration": {"a": [1]}, "times": {}, '
            '"invalidity": "correct"}]}',
            "expected `bool | int | str`, got `array`",
        ),
        (
            '{"schema_version": "1.0.0", "results": [{"configuration": {}, "times": {}, '
            '"invalidity": "bad", "correctness": 1}]}',
            "results[0].invalidity: invalid enum value 'bad'",
        ),
        (
            '{"schema_version": "1.0.0", "results": [], "metadata": {"timeunit": "days"}}',
            "unknown unit of time 'days'",
        ),
    ],
)
def test_other_files_are_refused_in_one_sentence(text, said):
    with pytest.raises(InvalidProblem) as caught:
        read_recording(text)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("time", ["NaN", "Infinity", "-1", "0", "1" + "0" * 400, '"soon"', "null"])
def test_a_success_without_a_time_that_can_be_is_a_failure(time):
    cache = CACHE + f'"cache": {{"1": {{"a": 1, "time": {time}, "compile_time": {time}}}}}}}'
    (found,) = read_recording(cache).evaluations
    assert found.status == "runtime" and "no time" in found.reason and found.times_ms == ()


def test_values_of_keeps_the_order_of_the_space_and_tells_flags_from_numbers():
    space = GEMM.algorithm("tiled").space
    tried = [evaluation("correct", Config(TILE=24, LOCAL_PAD=1, UNROLL=1))]
    listed = {parameter.name: parameter.values for parameter in space.parameters}
    assert values_of(tried, listed)["TILE"] == (8, 16, 32, 24)
    mixed = [evaluation("correct", Config(a=value)) for value in (1, True, 1, 0)]
    assert [repr(value) for value in values_of(mixed)["a"]] == ["1", "True", "0"]


# ---------------------------------------------------------------- Kernel Tuner


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_kernel_tuner_itself_reads_our_file(recording, tmp_path):
    kernel_tuner = pytest.importorskip("kernel_tuner")
    from kernel_tuner.file_utils import get_t4_results
    from kernel_tuner.util import get_best_config, read_cache

    parameters = {"TILE": (8, 16, 32), "STAGE": (False, True)}
    points = itertools.product(*parameters.values())
    statuses = ("runtime", "correct", "compile", "correct", "timeout", "constraints")
    evaluations = [
        evaluation(status, Config(TILE=tile, STAGE=stage), 9 - number)
        for number, (status, (tile, stage)) in enumerate(zip(statuses, points, strict=True))
    ]
    run = replace(recording, parameters=parameters, evaluations=evaluations)
    path = tmp_path / "cache.json"
    path.write_text(to_kernel_tuner(run))
    assert len(read_cache(path, open_cache=False)["cache"]) == 6

    space = {name: list(values) for name, values in parameters.items()}
    results, about = kernel_tuner.tune_kernel(
        "gemm_tiled", "", (96, 64, 80), [], space, lang="C", block_size_names=["TILE"],
        simulation_mode=True, cache=str(path), quiet=True,
    )  # fmt: skip
    assert about["device_name"] == "Some device" and len(results) == 6
    best = get_best_config(results, "time")
    assert (best["TILE"], best["STAGE"]) == (16, True)
    assert best["time"] == pytest.approx(1 / 3 + 6)
    assert ["__error__" in result for result in results] == [s != "correct" for s in statuses]
    # And back by the way of the T4 results that Kernel Tuner itself makes of it.
    again = from_t4(json.dumps(get_t4_results(results, space), default=str))
    ours = [(e.config, e.times_ms, e.build_ms, e.check_ms) for e in evaluations]
    assert [(e.config, e.times_ms, e.build_ms, e.check_ms) for e in again.evaluations] == ours

    # Kernel Tuner opens a closed file to go on; such a file comes back too.
    read_cache(path, open_cache=True)
    assert path.read_text().endswith(",") and from_kernel_tuner(path.read_text()) == run


# --------------------------------------------------------------------- CLBlast


def clblast(results, family="xgemm_2", precision="32"):
    return json.dumps(
        {
            "kernel_family": family, "precision": precision, "best_kernel": "Xgemm",
            "best_time": "0.10", "best_parameters": "GEMMK=0 KREG=1", "arg_m": "512",
            "arg_n": "256", "arg_k": "128", "arg_alpha": "2.00", "arg_beta": "2.00",
            "clblast_device_type": "GPU", "clblast_device_vendor": "NVIDIA",
            "clblast_device_architecture": "SM9.0", "clblast_device_name": "H200",
            "device": "NVIDIA H200", "platform_vendor": "NVIDIA Corporation",
            "device_core_clock": "1980", "device_compute_units": "132", "device_extra_info": "",
            "results": [{"kernel": "Xgemm", "time": t, "parameters": p} for t, p in results],
        }
    )  # fmt: skip


XGEMM = {
    "GEMMK": 0, "KREG": 1, "KWG": 16, "KWI": 2, "MDIMA": 16, "MDIMC": 8, "MWG": 64, "NDIMB": 8,
    "NDIMC": 16, "NWG": 128, "SA": 1, "SB": 0, "STRM": 0, "STRN": 1, "VWM": 4, "VWN": 2,
}  # fmt: skip
DIRECT = {
    "WGD": 32, "MDIMCD": 8, "NDIMCD": 16, "MDIMAD": 8, "NDIMBD": 8, "KWID": 2, "VWMD": 4,
    "VWND": 2, "PADA": 1, "PADB": 0,
}  # fmt: skip


def test_clblast_xgemm_maps_to_blocked():
    second = {**XGEMM, "STRM": 1}
    other = {**XGEMM, "KWG": 32}
    kernel1 = {**XGEMM, "GEMMK": 1, "KWG": 1}
    third = {**XGEMM, "STRN": 0}
    results = [(0.5, XGEMM), (0.25, second), (0.3, third), (0.75, other), (0.1, kernel1)]
    results.append((0.0, XGEMM))
    found = read_recording(clblast(results))
    # Our rows are their N, our columns their M, which lie side by side.
    assert found.evaluations[0].config == Config(
        WORK_M=8, WORK_N=8, WG_M=16, WG_N=8, TILE_K=16, BUFFERS=1, LOCAL_PAD=0, SWIZZLE=1, SPLITS=1,
    )  # fmt: skip
    assert [item.times_ms for item in found.evaluations] == [(0.25,), (0.75,)]
    assert found.evaluations[1].config["TILE_K"] == 32
    assert found.about["problem"] == {"m": 256, "n": 512, "k": 128, "dtype": "float32"}
    assert found.device == "NVIDIA H200"
    assert "STRM" in found.notes[0] and "2 results" in found.notes[1]


def test_clblast_direct_and_precisions():
    found = from_clblast(clblast([(0.5, DIRECT)], "xgemm_direct_1", "64"))
    assert found.evaluations[0].config == Config(
        WORK_M=2, WORK_N=4, WG_M=16, WG_N=8, TILE_K=32, BUFFERS=1, LOCAL_PAD=1, SWIZZLE=1, SPLITS=1,
    )  # fmt: skip
    assert found.about["problem"]["dtype"] == "float64"
    for family, precision in (("xgemv", "32"), ("xgemm_1", "16"), ("xgemm_1", "3232")):
        with pytest.raises(InvalidProblem, match=r"kernel|precision"):
            from_clblast(clblast([(0.5, XGEMM)], family, precision))


def test_clblast_configurations_are_allowed_by_blocked():
    text = clblast([(0.5, XGEMM), (0.6, DIRECT)])
    found = from_clblast(text)
    task = task_of(found, PAPER)
    assert task.algorithm_name == "blocked" and task.problem.m == 256 and task.problem.n == 512
    default = task.algorithm.default_config(task.problem, PAPER)
    for item in found.evaluations:
        config = task.algorithm.space.check(item.config, default)
        assert {**config, **item.config} == dict(config)


# ------------------------------------------------------------------------ adopt


@pytest.fixture
def overlay(tmp_path, monkeypatch):
    monkeypatch.setenv("OCLAB_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(storage, "SHIPPED", tmp_path / "none")
    database.forget()
    yield
    database.forget()


def tiled(tile, unroll, time):
    return Evaluation(Config(TILE=tile, LOCAL_PAD=1, UNROLL=unroll), "correct", times_ms=(time,))


@pytest.fixture
def answer(monkeypatch):
    """Let a recorded run answer instead of the sandbox."""

    def use(evaluations):
        runner = Replay(evaluations)
        monkeypatch.setattr("opencl_lab.lab.tuning.tuner.Sandbox", lambda task, *rest: runner)
        return runner

    return use


def test_only_what_is_right_and_faster_here_is_adopted(overlay, answer):
    proposals = [tiled(16, 4, 1.0), tiled(16, 2, 2.0), tiled(8, 2, 3.0), tiled(64, 2, 0.5)]
    found = Recording("elsewhere", "x", (), values_of(proposals), proposals, ABOUT)
    task = task_of(found, PAPER)
    present = task.algorithm.configure(task.problem, PAPER)
    wrong = replace(proposals[0], status="correctness", times_ms=())
    answers = [
        Evaluation(present, "correct", times_ms=(5.0,)), wrong, tiled(16, 2, 4.5), tiled(8, 2, 4.0)
    ]  # fmt: skip
    runner = answer(answers)
    result = adopt(found, task)
    assert runner.asked[0] == present and runner.asked[1] == proposals[0].config
    assert result.refused == 1  # TILE 64 is 4096 items
    assert result.stored and result.best.config == answers[3].config
    (entry,) = database.entries()
    assert entry.config == answers[3].config and entry.time_ms == 4.0
    assert task.algorithm.configure(task.problem, PAPER) == answers[3].config

    again = adopt(found, task)
    assert not again.stored and again.best.config == answers[3].config
    journal_of(task).path.unlink()
    few = answer(answers)
    adopt(found, task, limit=1)
    assert len(few.asked) == 3  # the built-in one, the one in use, and one of the file


def test_nothing_is_adopted_when_nothing_is_right(overlay, answer):
    found = Recording("elsewhere", "x", (), {}, [tiled(16, 4, 1.0)], ABOUT)
    answer([])
    result = adopt(found, task_of(found, PAPER))
    assert result.best is None and not result.stored and database.entries() == []
    impossible = replace(found, evaluations=[tiled(64, 4, 1.0)])
    with pytest.raises(InvalidProblem, match=r"correct configurations \(1\)"):
        adopt(impossible, task_of(impossible, PAPER))


def test_tasks_of_files_that_say_little():
    foreign = Recording("X", "k", (64, 32, 16), {}, [])
    with pytest.raises(InvalidProblem, match="give both"):
        task_of(foreign, PAPER)
    changes = {"dtype": "float64", "trans_a": "true", "k": "8"}
    task = task_of(foreign, PAPER, operation="gemm", algorithm="tiled", changes=changes)
    problem = task.problem
    assert (problem.m, problem.n, problem.k) == (64, 32, 8)
    assert problem.dtype == np.float64 and problem.trans_a is True and problem.trans_b is False
    for bad in ({"dtype": "float3"}, {"m": "many"}, {"x": 1}, {"trans_a": "perhaps"}):
        with pytest.raises(InvalidProblem):
            task_of(foreign, PAPER, operation="gemm", algorithm="tiled", changes=bad)
    with pytest.raises(InvalidConfig, match="bogo"):
        task_of(foreign, PAPER, operation="gemm", algorithm="bogo")
