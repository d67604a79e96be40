"""The study `scaling`: operations over ranks of MPI, of one size and growing with the ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from opencl_lab.core.wording import plain
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.studies import answers
from opencl_lab.lab.studies.descriptor import Machine, Part, PartResult, Point, Question, Study

RANKS = (1, 2)
"""At small scale; at full scale the powers of two up to all devices, or processors of a CPU."""
STRONG, WEAK = "_strong", "_weak"
"""Ends of the names of parts: one problem, and one that grows with the ranks."""
Growth: TypeAlias = Callable[[Mapping[str, Any], int], Mapping[str, Any]]


def efficiency(results: Sequence[PartResult], machine: Machine) -> list[str]:
    """Return how time, speed-up and efficiency change with ranks."""
    return _each(results, _gain) or [answers.NOTHING]


def shares(results: Sequence[PartResult], machine: Machine) -> list[str]:
    """Return where the time of the most ranks goes."""
    return _each(results, _shares) or [answers.NOTHING]


def modelled(results: Sequence[PartResult], machine: Machine) -> list[str]:
    """Return the times of the most ranks as multiples of the model's."""
    return _each(results, _model) or [answers.NOTHING]


def over_ranks(rows: Sequence[Measurement]) -> list[Measurement]:
    """Return the correct rows over ranks, the fewest ranks first."""
    found = [row for row in rows if row.ok and row.over_ranks is not None and row.total_ms]
    return sorted(found, key=lambda row: row.workers)


def _each(results: Sequence[PartResult], said: Callable[[Sequence[Measurement]], str]) -> list[str]:
    sentences = []
    for result in results:
        for point, rows in result.rows:
            found = over_ranks(rows)
            if len(found) > 1:
                sentences.append(f"{result.part.name}, {_where(result, point)}: {said(found)}.")
    return sentences


def _where(result: PartResult, point: Point) -> str:
    return str(point) + " with one rank" * result.part.name.endswith(WEAK)


def _gain(rows: Sequence[Measurement]) -> str:
    parts = [
        f"{plain(row.total_ms.median)} ms with {row.workers}"
        + f" ({plain(row.speedup)} times the speed, efficiency {row.efficiency:.0%})"
        * (row is not rows[0])
        for row in rows
        if row.total_ms and row.speedup and row.efficiency
    ]
    return ", ".join(parts).replace(" with 1,", " with 1 rank,", 1)


def _shares(rows: Sequence[Measurement]) -> str:
    found = rows[-1].over_ranks
    assert found is not None
    return (
        f"with {rows[-1].workers} ranks compute {found.compute:.0%}, communication "
        f"{found.communication:.0%}, waiting {found.waiting:.0%}; the longest compute is "
        f"{found.imbalance:.0%} above the mean"
    )


def _model(rows: Sequence[Measurement]) -> str:
    row = rows[-1]
    found, times = row.over_ranks, row.total_ms
    assert found is not None and times is not None and found.model_ms
    ratio = times.median / found.model_ms
    return (
        f"with {row.workers} ranks {plain(times.median)} ms are {plain(ratio)} times the model's "
        f"{plain(found.model_ms)} ms, of which {plain(found.model_communication_ms)} ms are "
        f"communication: {plain(found.sent_bytes / 1e6)} MB at {plain(found.link_gbps)} GB/s"
    )


def _parts(
    operation: str,
    small: Mapping[str, int],
    full: Mapping[str, int],
    grown: Growth,
    options: Mapping[str, Any],
) -> list[Part]:
    """Return the part of one problem, and that of problems with the same work for each rank."""
    points = {"small": [small], "full": [full]}
    strong = Part(operation + STRONG, operation, points, (), (), options, ranks=RANKS)
    return [strong, replace(strong, name=operation + WEAK, grown=grown)]


def _grown(name: str, power: float = 1.0) -> Growth:
    """Return the growth of one option."""
    return lambda options, ranks: {**options, name: round(options[name] * ranks**power)}


SCALING = Study(
    "scaling",
    "gemm, sort, FFT and conv2d over ranks of MPI: of one size, and growing with the ranks",
    [
        *_parts("gemm", {"size": 1024}, {"size": 8192}, _grown("size", 1 / 3), {}),
        *_parts("sort", {"n": 2_000_000}, {"n": 100_000_000}, _grown("n"), {}),
        *_parts("dft", {"n": 1 << 20}, {"n": 1 << 24}, _grown("n"), {"dtype": "complex64"}),
        *_parts(
            "conv2d",
            {"height": 2048, "width": 2048},
            {"height": 16384, "width": 16384},
            _grown("height"),
            {"ksize": 5},
        ),
    ],
    [
        Question("How do speed and efficiency change with the ranks?", efficiency),
        Question("Where does the time go?", shares),
        Question("What does the model say?", modelled),
        Question("Are all results right?", answers.all_right),
    ],
)
