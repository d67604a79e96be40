"""Studies: answers from known rows."""

import math
from dataclasses import replace

import pytest
from study_rows import result, row

from opencl_lab.core.device import Device
from opencl_lab.core.plan import Work
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.measuring.roofline import Peaks
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.studies import answers, scaling
from opencl_lab.lab.studies.catalogue import STUDIES
from opencl_lab.lab.studies.descriptor import Machine, Point
from opencl_lab.lab.studies.outcome import Outcome

MADE_UP = Machine()


def test_answers_about_workers():
    two = Machine(processors=2)
    rows = [
        row(f"c:omp x{count}", time, algorithm="c:omp", workers=count)
        for count, time in ((1, 1740.0), (2, 1050.0), (4, 870.0))
    ]
    later = [row("c:omp x4", 99.0, algorithm="c:omp", workers=4)]  # one worker took too long
    said = scaling.by_workers([result({8: rows, 16: later})], two, references=("c:omp", "mpi:c"))
    assert said == [
        "c:omp at size=8 takes 1,740 ms with 1 worker, 1,050 ms with 2, 870 ms with 4.",
        "Its speed-up is 1.66 with 2, 2.00 with 4.",
        "Its efficiency is 83 % with 2, 50 % with 4; 4 share 2 processors.",
        "It is fastest with 4 workers.",
        "mpi:c did not run, so there is no answer.",
    ]
    many = Machine(processors=8)
    quick = [
        row(f"c:omp x{count}", time, algorithm="c:omp", workers=count)
        for count, time in ((1, 10.0), (2, 4.0))
    ]
    said = scaling.by_workers([result({8: quick})], many, references=("c:omp",))
    assert said[2:] == ["Its efficiency is 125 % with 2.", "It is fastest with 2 workers."]
    even = [
        row(f"c:omp x{count}", time, 0.1, algorithm="c:omp", workers=count)
        for count, time in ((1, 10.0), (2, 4.8), (4, 4.5), (8, 9.0))
    ]
    said = scaling.by_workers([result({8: even[:2]})], many, references=("c:omp",))
    assert said[2].endswith("104 % with 2; within noise that is 100 % with 2.")
    said = scaling.by_workers([result({8: even})], many, references=("c:omp",))
    assert said[-1] == "It is fastest with 2 or 4 workers, level within noise."
    said = scaling.by_workers([result({8: quick[:1]})], many, references=("c:omp",))
    assert said == ["c:omp at size=8 takes 10.0 ms with 1 worker."]


@pytest.mark.parametrize(
    ("tiled", "verdict"),
    [((4, 5), "Local memory wins"), ((30, 50), "Local memory loses"), ((4, 50), "It depends"),
     ((10, 20), "They are level")],
)  # fmt: skip
def test_answers_about_local_memory(tiled, verdict):
    work = Work(flops=1.0, bytes=3 << 20)
    rows = {
        size: [
            row("opencl:naive", 99.0, kernel_ms=plain, work=work),
            row("opencl:tiled[TILE=8]", 1.0, kernel_ms=time + 60.0),
            row("opencl:tiled[TILE=16]", 1.0, kernel_ms=float(time)),
        ]
        for size, plain, time in zip((8, 16), (10.0, 20.0), tiled, strict=True)
    }

    gpu = Machine(local_memory=48 << 10, own_local_memory=True, cache_bytes=2 << 20)
    names = {"basic": "opencl:naive", "local": "opencl:tiled", "element_bytes": 8}
    said = scaling.local_memory([result(rows)], gpu, **names)
    assert said[0].startswith(verdict) and "memory of its own here, 48 KiB per group" in said[0]
    assert "3 MiB exceeds the cache of 2 MiB" in said[1] and len(said) == 4
    ratio = 20 / tiled[1]
    shown = "level with plain reads" if ratio == 1 else f"{ratio:#.3g} times as fast"
    assert shown in said[3]
    assert "ordinary memory" in scaling.local_memory([result(rows)], MADE_UP, **names)[0]
    assert scaling.local_memory([result({})], gpu, **names) == ["Nothing was measured."]


def test_what_plain_reads_ask_for_is_set_against_memory():
    rows = [
        row("opencl:naive", 9.0, kernel_ms=2.0, work=Work(flops=1e9, bytes=1e6)),
        row("opencl:tiled", 9.0, kernel_ms=1.0),
    ]
    names = {"basic": "opencl:naive", "local": "opencl:tiled", "element_bytes": 8}
    for copies, shown, verdict in (
        (1e12, "1,000", "so caches serve the rest"),
        (9e12, "9,000", "enough for all of them"),
    ):
        machine = Machine(copy_bytes=copies)
        said = scaling.local_memory([result({8: rows})], machine, **names)
        asked = f"Plain reads ask for 4,000 GB/s there; memory copies {shown} GB/s"
        assert said[1] == f"{asked}, {verdict}."


def test_a_device_says_what_answers_need(monkeypatch):
    class Handle:
        local_mem_type = 1
        global_mem_cache_size = 2 << 20

    monkeypatch.setattr(scaling, "stored_peaks", lambda device: Peaks(copy_bytes=1e12))
    monkeypatch.setattr(scaling, "default_threads", lambda: 3)
    gpu = Device("made up", "gpu", local_memory=48 << 10, handle=Handle())
    assert scaling.machine_of(gpu) == Machine(48 << 10, True, 2 << 20, 1e12, 3)
    assert not scaling.machine_of(replace(gpu, kind="cpu", handle=Handle())).own_local_memory


def test_answers_about_differences():
    rows = [
        row("c:seq", 1.0, difference=Difference(2e-4, 0.5, error_over_bound=0.5)),
        row("blas", 1.0, difference=Difference(1e-5, 0.1, error_over_bound=0.1)),
    ]
    (said,) = answers.within([result({8: rows})], MADE_UP, largest=1e-3, relative=False)
    assert said.startswith("Yes") and "0.0002, of c:seq at size=8" in said
    (said,) = answers.within([result({8: rows})], MADE_UP, largest=1e-8, relative=True)
    assert said.startswith("No") and "0.5, of c:seq" in said
    rows.append(
        row("bad", 1.0, difference=Difference(float("nan"), 0.0, error_over_bound=math.inf))
    )
    (said,) = answers.within([result({8: rows})], MADE_UP, largest=1e-3, relative=False)
    assert said.startswith("No") and "of bad" in said


def test_answers_about_times():
    series = {
        8: [row("opencl:x", 4.0), row("c:seq", 2.0)],
        32: [row("opencl:x", 1.0), row("c:seq", 4.0), row("blas", 3.0)],
    }
    one = result(series)
    names = {"ours": "opencl:x", "others": ("c:seq", "numpy")}
    said = answers.crossing([one], MADE_UP, **names)
    assert said[0] == "opencl:x is faster than c:seq from about size=12.7 on, slower at size=8."
    assert "no answer" in said[1]
    (said,) = answers.fastest([one], MADE_UP)
    assert "size=32: opencl:x takes 1.00 ms, blas 3.00 ms, which is 3.00 times as long" in said
    assert "sequential C takes 4.00 times as long as opencl:x" in said
    (said,) = answers.ratios([one], MADE_UP, pairs=(("opencl:x", "c:seq"),))
    assert said.endswith("0.500 (size=8); 4.00 (size=32).")
    (said,) = answers.beside_best([one], MADE_UP)
    assert said.endswith("as long as the device: 0.500 (size=8, c:seq); 3.00 (size=32, blas).")
    other = result({32: [row("opencl:x", 3.0), row("c:seq", 4.1)]}, "reversed")
    said = answers.orders([replace(one, part=replace(one.part, name="random")), other], MADE_UP)
    assert (
        "opencl:x takes 1.00 ms for random keys and 3.00 ms for reversed ones, which is 3.00 times "
        "as long" in said[0]
    )
    assert said[1] == "size=32: c:seq takes about the same time for all orders, 4.00 to 4.10 ms."


def test_many_ratios_are_told_by_their_range():
    series = {n: [row("opencl:x", 1.0), row("c:seq", time)] for n, time in ((8, 0.5), (16, 2.0))}
    assert answers.range_beside_best([result(series)], MADE_UP, least=0.8) == [
        "Fewer than 3 points were compared."
    ]
    series[32] = [row("opencl:x", 1.0), row("c:seq", 27.0), row("blas", 90.0)]
    (said,) = answers.range_beside_best([result(series)], MADE_UP, least=0.8)
    assert said == (
        "gemm: at 3 points the fastest other takes 3.00 times as long as the device (geometric "
        "mean), from 0.500 (size=8, c:seq) to 27.0 (size=32, c:seq); less than 0.800 times as "
        "long at 1: size=8 (0.500)."
    )
    many = {n: [row("opencl:x", 1.0), row("c:seq", 2.0)] for n in range(30)}
    assert answers.beside_best([result(many)], MADE_UP) == ["gemm: see the range of its 30 points."]


def test_the_device_is_the_fastest_of_ours_at_each_size():
    series = {
        8: [row("opencl:x", 1.0), row("opencl:y", 4.0), row("c:seq", 2.0), row("blas", 0.1)],
        32: [row("opencl:x", 9.0), row("opencl:y", 3.0), row("c:seq", 4.0), row("blas", 0.2)],
    }
    names = {"ours": answers.DEVICE, "others": ("c:seq", "blas")}
    assert answers.crossing([result(series)], MADE_UP, **names) == [
        "the device is faster than c:seq at every size measured.",
        "the device is never faster than blas beyond noise, up to size=32.",
    ]


def test_kernels_are_compared_beside_calls():
    rows = [row("opencl:x", 4.0, 0.5, kernel_ms=1.0), row("opencl:y", 4.0, 0.5, kernel_ms=3.0)]
    pairs = (("opencl:x", "opencl:y"),)
    assert answers.ratios([result({8: rows})], MADE_UP, pairs=pairs) == [
        "opencl:y and opencl:x are level within noise at size=8.",
        "In kernels: opencl:y takes this many times as long as opencl:x: 3.00 (size=8).",
    ]


def test_what_was_faster_at_some_sizes_only_is_said():
    series = {
        8: [row("opencl:x", 1.0), row("c:seq", 2.0)],
        16: [row("opencl:x", 9.0), row("c:seq", 2.0)],
    }
    names = {"ours": "opencl:x", "others": ("c:seq",)}
    (said,) = answers.crossing([result(series)], MADE_UP, **names)
    assert said == "opencl:x is faster than c:seq only at size=8, slower at size=16."


def test_little_longer_is_said_in_percent():
    rows = [row("opencl:x", 1.0, 0.001), row("c:seq", 1.004, 0.001), row("blas", 9.0)]
    (said,) = answers.fastest([result({8: rows})], MADE_UP)
    assert said == ("size=8: opencl:x takes 1.00 ms, c:seq 1.00 ms, which is 0.40 % longer.")


def test_answers_call_level_what_overlaps():
    level = [row("opencl:x", 4.0, 0.2), row("c:seq", 4.5, 0.2)]
    both = [result({8: level, 9: level})]
    names = {"ours": "opencl:x", "others": ("c:seq",)}
    assert answers.crossing(both, MADE_UP, **names) == [
        "opencl:x and c:seq are level within noise at size=8, 9."
    ]
    (said,) = answers.fastest(both, MADE_UP)
    assert said == "size=9: opencl:x and c:seq are level within noise, 4.00 ms and 4.50 ms."
    (said,) = answers.ratios(both, MADE_UP, pairs=(("opencl:x", "c:seq"),))
    assert said == "c:seq and opencl:x are level within noise at size=8; size=9."
    (said,) = answers.beside_best(both, MADE_UP)
    assert said == "gemm: level within noise at size=8 (c:seq); size=9 (c:seq)."
    noisy = [replace(both[0], part=replace(both[0].part, name=name)) for name in ("a", "b")]
    noisy[1].rows = [(Point({"size": 9}), [row("opencl:x", 5.0, 0.2), row("c:seq", 9.0)])]
    said = answers.orders(noisy, MADE_UP)
    assert said[0] == "size=9: opencl:x takes about the same time for all orders, 4.00 to 5.00 ms."
    assert "c:seq takes 4.50 ms for a keys and 9.00 ms for b ones" in said[1]


def test_a_time_that_was_taken_once_says_so():
    once = replace(row("blas", 3.0), total_ms=Times(3.0, 3.0, 3.0, 1))
    (said,) = answers.fastest([result({8: [row("opencl:x", 1.0), once]})], MADE_UP)
    assert "blas 3.00 ms (one run), which is 3.00 times as long" in said


def test_what_was_not_run_is_said_once_and_where():
    def absent(name, reason):
        return Measurement(name, "c", name, "unavailable", reason)

    rows = {
        8: [row("c:seq", 1.0), absent("opencv", "not installed")],
        16: [
            absent("c:seq", "a run would take about 9 s; --against c:seq runs it"),
            absent("opencv", "not installed"),
        ],
    }
    assert answers.all_right([result(rows)], MADE_UP) == [
        "1 of 1 measured row passed.",
        "Not run: opencv, not installed.",
        "Not run at size=16, as one run would take long: c:seq about 9 s.",
    ]


def test_one_reason_is_said_once():
    def failing(name, status, reason):
        return Measurement(name, "c", name, status, reason)

    rows = {
        size: [
            *(failing(name, "unavailable", "no compiler") for name in ("c:seq", "c:omp")),
            failing("opencl:x", "compile", "no linker"),
        ]
        for size in (8, 16)
    }
    assert answers.all_right([result(rows)], MADE_UP) == [
        "0 of 2 measured rows passed.",
        "opencl:x at size=8; opencl:x at size=16: compile, no linker.",
        "Not run: c:omp, c:seq, no compiler.",
    ]


@pytest.mark.parametrize("name", STUDIES)
def test_answers_say_something_of_nothing(name):
    outcome = Outcome(
        STUDIES[name], "small", 0, Device("made up", "cpu"), [], 1.0, "it was interrupted"
    )
    assert all(isinstance(answer, list) for _, answer in outcome.answers)
    assert not outcome.as_dict()["complete"] and "not complete" in outcome.summary()
