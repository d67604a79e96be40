"""Studies: answers from known rows."""

import math
from dataclasses import replace

import pytest
from study_rows import result, row

from opencl_lab.core.device import Device
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.studies import answers
from opencl_lab.lab.studies.catalogue import STUDIES
from opencl_lab.lab.studies.outcome import StudyOutcome


def test_answers_about_workers():
    rows = [
        row(f"c:omp x{count}", time, algorithm="c:omp", workers=count)
        for count, time in ((1, 1740.0), (2, 1050.0), (4, 870.0))
    ]
    later = [row("c:omp x4", 99.0, algorithm="c:omp", workers=4)]  # one worker took too long
    said = answers.by_workers([result({8: rows, 16: later})], references=("c:omp", "mpi:c"))
    assert said == [
        "c:omp at size=8: 1,740 ms with 1 worker, 1,050 ms with 2 (1.66 times the speed, "
        "efficiency 83%), 870 ms with 4 (2.00 times the speed, efficiency 50%).",
        "mpi:c did not run, so there is no answer.",
    ]


@pytest.mark.parametrize(
    ("tiled", "verdict", "ratio"),
    [((4, 5), "Local memory wins", "4.00"), ((30, 50), "Local memory loses", "0.400"),
     ((4, 50), "It depends", "0.400"), ((10, 20), "It is level", "1.00")],
)  # fmt: skip
def test_answers_about_local_memory(tiled, verdict, ratio):
    rows = {
        size: [
            row("opencl:naive", 99.0, kernel_ms=plain),
            row("opencl:tiled[TILE=8]", 1.0, kernel_ms=time + 60.0),
            row("opencl:tiled[TILE=16]", 1.0, kernel_ms=float(time)),
        ]
        for size, plain, time in zip((8, 16), (10.0, 20.0), tiled, strict=True)
    }
    names = {"reads": "opencl:naive", "tiles": "opencl:tiled"}
    said = answers.local_memory([result(rows)], **names)
    assert said[0].startswith(verdict) and "On CPUs it is ordinary memory" in said[0]
    assert "opencl:tiled[TILE=16]" in said[2] and f"which is {ratio} times as fast" in said[2]
    assert said[2].endswith("level within noise.") == (ratio == "1.00")
    assert answers.local_memory([result({})], **names) == ["Nothing was measured."]


def test_answers_about_differences():
    rows = [
        row("c:seq", 1.0, difference=Difference(2e-4, 0.5, error_over_bound=0.5)),
        row("blas", 1.0, difference=Difference(1e-5, 0.1, error_over_bound=0.1)),
    ]
    (said,) = answers.within([result({8: rows})], largest=1e-3, relative=False)
    assert said.startswith("Yes") and "0.0002, of c:seq at size=8" in said
    (said,) = answers.within([result({8: rows})], largest=1e-8, relative=True)
    assert said.startswith("No") and "0.5, of c:seq" in said
    unknown = Difference(float("nan"), 0.0, error_over_bound=math.inf)
    rows.append(row("bad", 1.0, difference=unknown))
    (said,) = answers.within([result({8: rows})], largest=1e-3, relative=False)
    assert said.startswith("No") and "of bad" in said


def test_answers_about_times():
    series = {
        8: [row("opencl:x", 4.0), row("c:seq", 2.0)],
        32: [row("opencl:x", 1.0), row("c:seq", 4.0), row("blas", 3.0)],
    }
    one = result(series)
    said = answers.crossing([one], ours="opencl:x", others=("c:seq", "numpy"))
    assert said[0] == "opencl:x is faster than c:seq from about size=12.7 on, slower at size=8."
    assert said[1] == "opencl:x and numpy were not both measured."
    assert answers.fastest([one]) == [
        "size=32: opencl:x takes 1.00 ms, blas 3.00 ms, 3.00 times as long; sequential C takes "
        "4.00 ms, 4.00 times as long."
    ]
    assert answers.ratios([one], pairs=(("opencl:x", "c:seq"),)) == [
        "c:seq takes this many times as long as opencl:x: 0.500 (size=8); 4.00 (size=32)."
    ]
    (said,) = answers.beside_best([one], least=0.8)
    assert said.endswith("as long as the device: 0.500 (size=8, c:seq); 3.00 (size=32, blas).")
    other = result({32: [row("opencl:x", 3.0), row("c:seq", 4.04)]}, "reversed")
    assert answers.orders([replace(one, part=replace(one.part, name="random")), other]) == [
        "size=32: opencl:x takes 1.00 ms random, 3.00 ms reversed: 3.00 times as long.",
        "size=32: c:seq takes 4.00 ms random, 4.04 ms reversed: level within noise.",
    ]


def test_many_ratios_are_told_by_their_range():
    series = {n: [row("opencl:x", 1.0), row("c:seq", 2.0)] for n in range(2, 30)}
    series[30] = [row("opencl:x", 1.0), row("c:seq", 0.5)]
    series[31] = [row("opencl:x", 1.0), row("c:seq", 9.0), row("blas", 8.0)]
    (said,) = answers.beside_best([result(series)], least=0.8)
    assert said == (
        "gemm: the fastest other takes 2.00 times as long as the device, by the geometric mean of "
        "30 points, from 0.500 (size=30, c:seq) to 8.00 (size=31, blas); less than 0.800 times as "
        "long at 1: 0.500 (size=30, c:seq)."
    )


def test_the_device_is_the_fastest_of_ours_at_each_size():
    series = {
        8: [row("opencl:x", 1.0), row("opencl:y", 4.0), row("c:seq", 2.0), row("blas", 0.1)],
        32: [row("opencl:x", 9.0), row("opencl:y", 3.0), row("c:seq", 4.0), row("blas", 0.2)],
    }
    names = {"ours": answers.DEVICE, "others": ("c:seq", "blas")}
    assert answers.crossing([result(series)], **names) == [
        "the device is faster than c:seq from size=8 on.",
        "the device stays slower than blas.",
    ]


def test_kernels_are_compared_beside_calls():
    rows = [row("opencl:x", 4.0, 0.5, kernel_ms=1.0), row("opencl:y", 4.0, 0.5, kernel_ms=3.0)]
    takes = "opencl:y takes this many times as long as opencl:x:"
    assert answers.ratios([result({8: rows})], pairs=(("opencl:x", "opencl:y"),)) == [
        f"{takes} 1.00 (size=8, level).",
        f"In kernels: {takes} 3.00 (size=8).",
    ]


def test_answers_call_level_what_overlaps():
    level = [row("opencl:x", 4.0, 0.2), row("c:seq", 4.4, 0.2)]
    both = [result({8: level, 9: level})]
    assert answers.crossing(both, ours="opencl:x", others=("c:seq",)) == [
        "opencl:x and c:seq are level within noise at size=8, 9."
    ]
    (said,) = answers.fastest(both)
    assert said == "size=9: opencl:x takes 4.00 ms, c:seq 4.40 ms, level within noise."
    (said,) = answers.beside_best(both, least=0.8)
    assert said.endswith("1.10 (size=8, c:seq, level); 1.10 (size=9, c:seq, level).")


def test_one_reason_is_said_once_with_all_rows_and_points():
    def failing(name, status, reason):
        return Measurement(name, "c", name, status, reason)

    rows = {
        size: [
            row("blas", 1.0),
            *(failing(name, "unavailable", "no compiler") for name in ("c:seq", "c:omp")),
            failing("opencl:x", "compile", "no linker"),
        ]
        for size in (8, 16)
    }
    slow = "a run would take about 9 s; --against mpi:c runs it"
    rows[16].append(failing("mpi:c", "unavailable", slow))
    assert answers.all_right([result(rows)]) == [
        "2 of 4 measured rows passed.",
        "Not run: c:seq at size=8; size=16; c:omp at size=8; size=16, no compiler.",
        "compile: opencl:x at size=8; size=16, no linker.",
        "Not run: mpi:c at size=16 (9 s), as a run would take long.",
    ]


@pytest.mark.parametrize("name", STUDIES)
def test_answers_say_something_of_nothing(name):
    device = Device("made up", "cpu")
    outcome = StudyOutcome(STUDIES[name], "small", 0, device, [], 1.0, "it was interrupted")
    assert all(isinstance(answer, list) for _, answer in outcome.answers)
    assert not outcome.as_dict()["complete"] and "not complete" in outcome.summary()
