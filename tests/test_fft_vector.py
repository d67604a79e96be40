"""The geometry of transforms by vectors: steps are done in NumPy as they say, without a device."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from opencl_lab.ops.fft.passes.schedule import Schedule
from opencl_lab.ops.fft.passes.vector_step import Vectors, VectorStep
from opencl_lab.ops.fft.passes.vector_twiddles import vector_step_twiddles, vector_twiddles

REAL = np.dtype(np.float64)


class Task:
    """One task of a step over the batch, done number by number as the kernel does it.

    `x` has a column for each transform. Memory that was not written holds NaN.
    """

    def __init__(self, step, x, block):
        self.step, self.x, self.block = step, x, block
        vectors, (_, lanes) = step.vectors, x.shape
        self.first = vectors.first_lanes(lanes)[block]
        self.work = np.full((step.room // 2, vectors.width), np.nan, complex)
        self.result = np.full(x.shape, np.nan, complex)
        self.twiddles = vector_twiddles(step.schedule, 1, REAL).view(complex)
        if step.step_twiddles:
            table = vector_step_twiddles(step.schedule, vectors, lanes, REAL)
            self.by_lane = table.reshape(-1, step.step_twiddle_count, vectors.width)

    def lanes(self, v):
        first = self.first + v * self.step.vectors.width
        return np.arange(first, first + self.step.vectors.active_lanes)

    def place(self, array, position, v):
        assert position < self.step.n
        begin = v * self.step.chained if array == 1 else v + 1
        return begin * self.step.array // 2 + position

    def read(self, array, position, v):
        if array is not None:
            return self.work[self.place(array, position, v)]
        value = np.zeros(self.step.vectors.width, complex)
        value[: self.step.vectors.active_lanes] = self.x[position, self.lanes(v)]
        return value

    def write(self, array, position, v, value):
        if array is None:
            self.result[position, self.lanes(v)] = value[: self.step.vectors.active_lanes]
        else:
            self.work[self.place(array, position, v)] = value

    def factor(self, one, k, i, v):
        count = one.radix - 1
        found = self.twiddles[one.twiddle_offset + k * count + i - 1] if one.stride > 1 else 1
        if self.step.step_twiddles:
            at = one.step_twiddle_offset + 2 * (i - 1)
            re, im = self.by_lane[self.block * self.step.vectors.block + v, at : at + 2]
            found = found * (re + 1j * im)
        return found

    def do(self, one, which):
        for k, g, v in product(range(one.run), range(one.runs), which):
            j, at = g * one.run + k, g * one.run * one.radix + k
            points = [self.read(one.reads, j + i * one.spacing, v) for i in range(one.radix)]
            for i in range(1, one.radix):
                points[i] = points[i] * self.factor(one, k, i, v)
            for i, value in enumerate(np.fft.fft(points, axis=0)):
                self.write(one.writes, at + i * one.run, v, value)

    def all(self):
        whole = range(self.step.vectors.block)
        for one in self.step.opening:
            self.do(one, whole)
        for v in whole:
            if self.step.load == "rows":
                for p in range(self.step.n):
                    self.write(0, p, v, self.read(None, p, v))
            for one in self.step.middle:
                self.do(one, [v])
            if self.step.store == "rows":
                for p in range(self.step.n):
                    self.write(None, p, v, self.read(self.step.passes[-1].writes, p, v))
        for one in self.step.closing:
            self.do(one, whole)
        return self.result


def numbers(rng, *shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


@pytest.mark.parametrize("radices", [(5,), (4, 3), (4, 3, 2), (3, 2, 2, 2), (1,)], ids=str)
@pytest.mark.parametrize(("load", "store"), [*product(("columns", "rows"), repeat=2)])
def test_steps_over_the_batch_are_transforms(radices, load, store, rng):
    schedule = Schedule.of(radices)
    for lanes, width, block in ((8, 4, 2), (12, 4, 3), (10, 4, 2), (3, 4, 1), (5, 2, 1)):
        vectors = Vectors.over_batch(lanes, width, block)
        step = VectorStep(schedule, vectors, 8, load, store)
        x = numbers(rng, step.n, lanes)
        result = np.full(x.shape, np.nan, complex)
        for b in range(vectors.blocks(lanes)):
            part = Task(step, x, b).all()
            result = np.where(np.isnan(part), result, part)
        np.testing.assert_allclose(result, np.fft.fft(x, axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("radices", [(5,), (4, 3), (3, 2, 2)], ids=str)
@pytest.mark.parametrize("lanes", [8, 10, 3])
def test_a_second_step_evaluates_fractions_of_a_frequency(radices, lanes, rng):
    vectors = Vectors.over_batch(lanes, 4, 2 if lanes >= 8 else 1)
    step = VectorStep(Schedule.of(radices), vectors, 8, "columns", "columns", step_twiddles=True)
    x = numbers(rng, step.n, lanes)
    j, k, p = np.ogrid[: step.n, : step.n, :lanes]
    kernel = np.exp(-2j * np.pi * j * (k + p / lanes) / step.n)
    expected = np.einsum("jkp,jp->kp", kernel, x)
    for b in range(vectors.blocks(lanes)):
        part = Task(step, x, b).all()
        done = ~np.isnan(part)
        np.testing.assert_allclose(part[done], expected[done], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("radices", "width"), [((4, 5), 2), ((8, 3, 2), 4), ((4, 4, 3), 4)])
def test_steps_over_the_points_are_transforms(radices, width, rng):
    """Vectors of butterflies first, transposed; then runs of neighbours in whole vectors."""
    step = VectorStep(Schedule.of(radices), Vectors.over_points(width), 8, "columns", "columns")
    x = numbers(rng, step.n)
    table = vector_twiddles(step.schedule, width, REAL).reshape(-1, 2, width)
    first, *others = step.passes
    assert first.reads is None and first.writes == 0
    assert step.room == 4 * step.n // width  # two arrays, without padding
    current = np.fft.fft(x.reshape(first.radix, -1), axis=0).T.reshape(-1, width)
    for one in others:
        written = np.full_like(current, np.nan)
        for k, g in product(range(one.run), range(one.runs)):
            j, at = g * one.run + k, g * one.run * one.radix + k
            points = [current[j + i * one.spacing] for i in range(one.radix)]
            for i in range(1, one.radix):
                offset = one.twiddle_offset // width + k * (one.radix - 1) + i - 1
                points[i] = points[i] * (table[offset, 0] + 1j * table[offset, 1])
            for i, value in enumerate(np.fft.fft(points, axis=0)):
                written[at + i * one.run] = value
        current = written
    np.testing.assert_allclose(current.reshape(-1), np.fft.fft(x), rtol=0, atol=1e-12)


def step_of(passes, load="columns", store="columns", **of):
    vectors = of.pop("vectors", Vectors.over_batch(32, 8, 4))
    return VectorStep(Schedule.of((2,) * passes), vectors, 4, load, store, **of)


def test_passes_hand_arrays_on():
    for passes, load, store in product((1, 2, 3, 4), ("columns", "rows"), ("columns", "rows")):
        step = step_of(passes, load, store)
        assert step.passes[0].reads == (0 if load == "rows" else None)
        assert (step.passes[-1].writes is None) == (store == "columns")
        for one, other in pairwise(step.passes):
            assert one.writes == other.reads is not None and one.reads != one.writes
        assert len(step.opening) + len(step.middle) + len(step.closing) == passes
        assert all(one.whole_block for one in (*step.opening, *step.closing))
    assert [step_of(passes).chained for passes in (1, 2, 3, 4)] == [False, False, True, False]


def test_blocks_cover_the_lanes():
    for lanes, width, block in ((32, 8, 4), (40, 8, 4), (33, 8, 1), (8, 8, 1), (5, 8, 1)):
        vectors = Vectors.over_batch(lanes, width, block)
        firsts = vectors.first_lanes(lanes)
        assert len(firsts) == vectors.blocks(lanes)
        covered = {
            f + v * width + lane
            for f in firsts
            for v in range(block)
            for lane in range(vectors.active_lanes)
        }
        assert covered == set(range(lanes))
        overlapping = lanes > width and lanes % (width * block) > 0
        assert (vectors.tail == "overlapping") == overlapping
        assert (vectors.tail == "partial") == (lanes < width)


def test_fragments_are_chosen_by_what_there_is():
    names = {}
    for lanes in (32, 33, 5):
        vectors = Vectors.over_batch(lanes, 8)
        for side, passes in product(("columns", "rows"), (2, 3)):
            step = step_of(passes, side, side, vectors=vectors)
            names[lanes, side, step.n] = step.load_fragment, step.store_fragment
    for n in (4, 8):
        assert names[32, "columns", n] == ("vector", "vector")
        assert names[33, "columns", n] == ("vector", "overlapping_vector")
        assert names[5, "columns", n] == ("partial_vector", "partial_vector")
    assert names[32, "rows", 8] == names[33, "rows", 8] == ("rows", "rows")
    assert names[32, "rows", 4] == names[5, "rows", 8] == ("short_rows", "short_rows")


def test_the_last_passes_fetch_what_comes_next():
    def fetches(passes, fetch):
        return [one.fetches for one in step_of(passes, fetch=fetch).passes]

    assert fetches(2, "none") == [(), ()]
    assert fetches(3, "source") == [(), (), ("source",)]
    assert fetches(3, "both") == [(), ("target",), ("source",)]
    assert fetches(1, "both") == [("source",)]
    assert step_of(1).fetch_lines == 1
    wide = Vectors.over_batch(32, 16)
    assert VectorStep(Schedule.of((4,)), wide, 8, "columns", "columns").fetch_lines == 4


def test_arrays_are_counted_once():
    """An array for each vector of a block and one more, with room for a few lines between."""
    step = step_of(3)
    assert step.array == 2 * (8 + 9) and step.room == 5 * step.array
    assert step.nbytes == step.room * 8 * 4
    # The places of two arrays that are equal lie in different lines of a cache.
    assert step.array * 8 * 4 % 4096 >= 64
