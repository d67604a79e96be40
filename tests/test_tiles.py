"""Tiles that go through a device: what comes when, and that copies and kernels keep to it."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pyopencl as cl
import pytest

from opencl_lab.runtime import streams
from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.session import session_of
from opencl_lab.runtime.tile_schedule import Iteration, Tile, schedule
from opencl_lab.runtime.tiles import Part, TileWork, run_parts, run_tiles


@pytest.fixture
def queue(either_memory):
    """Of a device with each kind of memory."""
    return either_memory


def tile(name, *bounds):
    return Tile(name, bounds)


def grid(rows, columns, size=1):
    """Return iterations that each take a panel of a and one of b, row by row."""

    def at(index):
        return index * size, (index + 1) * size

    return [
        Iteration((i, j), {"a": tile("a", at(i)), "b": tile("b", at(j))}, None, (size, size))
        for i in range(rows)
        for j in range(columns)
    ]


def replayed(plan):
    """Check that each iteration finds its tiles when uploads come as early as they may."""
    there, begun = {}, 0
    for index, iteration in enumerate(plan.iterations):
        while begun < len(plan.uploads) and plan.uploads[begun].after <= index:
            upload = plan.uploads[begun]
            there[upload.tile.array, upload.slot] = upload.tile
            begun += 1
        assert begun >= plan.needs[index]
        for name, wanted in iteration.inputs.items():
            assert there[wanted.array, plan.taken[index][name]] == wanted


@pytest.mark.parametrize("slots", [(1, 1), (2, 1), (2, 3), (3, 5), (4, 5)])
def test_each_iteration_finds_its_tiles(slots):
    plan = schedule(grid(4, 5), dict(zip("ab", slots, strict=True)))
    replayed(plan)
    rows = [upload for upload in plan.uploads if upload.tile.array == "a"]
    assert len(rows) == 4  # each once, as rows come one after the other
    if slots[1] == 5:
        assert len(plan.uploads) == 9


def test_tiles_come_while_iterations_run_that_do_not_need_their_slot():
    plan = schedule(grid(6, 1), {"a": 2, "b": 1})
    assert [upload.after for upload in plan.uploads if upload.tile.array == "a"] == [
        0, 0, 1, 2, 3, 4,
    ]  # fmt: skip


def test_the_tile_that_is_needed_last_makes_room():
    order = ["0", "1", "2", "0", "1", "3", "0", "1", "2"]
    iterations = [
        Iteration(at, {"a": tile("a", (int(at), int(at) + 1))}, None, (1,)) for at in order
    ]
    plan = schedule(iterations, {"a": 3})
    replayed(plan)
    assert [upload.tile.bounds[0][0] for upload in plan.uploads] == [0, 1, 2, 3, 2]


def added(queue, after=lambda: None):
    """Return what adds the tiles that an iteration is given, and what it goes on from."""

    def solve(problem, given, out):
        arrays = [array.get(queue) if is_device_array(array) else array for array in given.values()]
        total = sum(arrays)
        after()
        if is_device_array(out):
            out.set(total, queue)
        else:
            out[...] = total
        return []

    return solve


def refuse(*args, **more):
    raise cl.MemoryError("OUT_OF_HOST_MEMORY")


@pytest.mark.parametrize("pinned", [True, False])
def test_tiles_of_rows_and_columns_come_back_to_their_places(queue, pinned, rng, monkeypatch):
    monkeypatch.setattr(streams, "CHUNK", 4096)
    if not pinned:
        monkeypatch.setattr(cl, "enqueue_map_buffer", refuse)
    a, b = (rng.integers(0, 1000, (110, 390), np.int32) for _ in range(2))
    result = np.zeros_like(a)
    iterations = []
    for rows in ((0, 40), (40, 80), (70, 110)):
        for columns in ((0, 130), (130, 260), (260, 390)):
            inputs = {"x": tile("a", rows, columns), "y": tile("b", rows, columns)}
            iterations.append(Iteration(0, inputs, tile("result", rows, columns), (40, 130)))
    plan = schedule(iterations, {"a": 2, "b": 2})
    seconds = run_tiles(TileWork(plan, {"a": a, "b": b}, result, added(queue), queue))
    np.testing.assert_array_equal(result, a + b)
    assert seconds["read"] > 0 and seconds["write"] > 0


@pytest.mark.parametrize("count", [1, 2, 5])  # fewer than slots for results, and more
def test_an_iteration_goes_on_from_the_one_before(count, queue, rng):
    a = rng.integers(0, 1000, (64, count), np.int32)
    result = np.zeros((64, 1), np.int32)
    iterations = [
        Iteration(
            0,
            {"x": tile("a", (0, 64), (k, k + 1))},
            tile("result", (0, 64), (0, 1)) if k == count - 1 else None,
            (64, 1),
            "sum" if k else "",
        )
        for k in range(count)
    ]
    plan = schedule(iterations, {"a": 2})
    run_tiles(TileWork(plan, {"a": a}, result, added(queue), queue))
    np.testing.assert_array_equal(result, a.sum(1, keepdims=True, dtype=np.int32))


def pieces_of(count):
    array = np.ones((count, 5000), np.uint8)
    iterations = [
        Iteration(at, {"x": tile("a", (at, at + 1))}, tile("result", (at, at + 1)), (1, 5000))
        for at in range(count)
    ]
    return array, schedule(iterations, {"a": 2})


@pytest.mark.parametrize("kind", ["error", "interrupt"])
def test_nothing_goes_on_after_an_error(queue, kind):
    array, plan = pieces_of(60)
    result, calls = np.zeros_like(array), []

    def after():
        calls.append(0)
        if len(calls) == 5:
            if kind == "error":
                raise OSError("now")
            os.kill(os.getpid(), signal.SIGINT)

    before = set(threading.enumerate())
    with pytest.raises(OSError if kind == "error" else KeyboardInterrupt):
        run_tiles(TileWork(plan, {"a": array}, result, added(queue, after), queue))
    left = result.copy()
    names = {thread.name for thread in set(threading.enumerate()) - before}
    assert not any(name.startswith(("oclab-read", "oclab-write")) for name in names)
    np.testing.assert_array_equal(result, left)
    assert len(calls) < 8 and not result[8:].any()
    run_tiles(TileWork(plan, {"a": array}, result, added(queue), queue))
    assert result.all()


def test_memory_of_the_pool_is_not_taken_from_earlier_commands(queue, monkeypatch):
    if session_of(queue).device.unified_memory:
        pytest.skip("tiles are arrays of the host")
    # Memory that was given back may still be in use until the queue is finished.
    pool, held = session_of(queue).pool(queue), np.zeros(1 << 20, np.uint8)
    buffer = pool.take(held.nbytes)
    event = cl.enqueue_copy(queue, buffer, held, is_blocking=False)
    pool.give(held.nbytes, buffer)
    send = streams.Lane.send

    def done(*given):
        assert event.command_execution_status == cl.command_execution_status.COMPLETE
        return send(*given)

    monkeypatch.setattr(streams.Lane, "send", done)
    array, plan = pieces_of(3)
    result = np.zeros_like(array)
    run_tiles(TileWork(plan, {"a": array}, result, added(queue), queue))
    assert result.all()


# ---------------------------------------------------------------------- parts

BYTE = np.dtype(np.uint8)


def parts_of(source, target, length):
    def part(at):
        def read(data, begin):
            np.copyto(data, source[at + begin :][: data.size])

        def write(data, begin):
            target[at + begin :][: data.size] = data

        return Part(read, write)

    return [part(at) for at in range(0, source.size, length)]


def negated(queue):
    def work(given, out):
        if is_device_array(given):
            out.set(~given.get(queue), queue)
        else:
            np.invert(given, out=out)

    return work


@pytest.mark.parametrize("pinned", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_every_part_comes_back_to_its_place(queue, count, pinned, rng, monkeypatch):
    monkeypatch.setattr(streams, "CHUNK", 4096)
    if not pinned:
        monkeypatch.setattr(cl, "enqueue_map_buffer", refuse)
    length = 10_000  # no multiple of a chunk
    source = rng.integers(0, 256, count * length, np.uint8)
    target, done = np.zeros_like(source), []
    parts = parts_of(source, target, length)
    seconds = run_parts(parts, (length,), BYTE, negated(queue), queue, lambda: done.append(0))
    np.testing.assert_array_equal(target, ~source)
    assert len(done) == count
    if count:
        assert all(seconds[stage] > 0 for stage in ("read", "work", "write"))
