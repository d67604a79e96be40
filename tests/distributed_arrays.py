"""Checks of arrays on ranks; see `ranks`."""

import itertools
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import opencl_lab as ol
from opencl_lab.core.errors import InvalidConfig, InvalidProblem, OclabError
from opencl_lab.distributed import DistArray, block_cyclic, blocks, device_of, gemm, node, slab
from opencl_lab.distributed.mpi import everywhere, extremes, same

GRIDS = {1: [(1, 1)], 2: [(2, 1), (1, 2)], 3: [(3, 1)], 4: [(2, 2), (1, 4)], 7: [(1, 7)]}
SHAPES = [(5, 9), (0, 4), (13, 1), (40, 31)]


def distributions(size):
    grids = GRIDS[size]
    cyclic = [block_cyclic(grid, (2, 3)) for grid in grids]
    return [slab(0), slab(-1), *map(blocks, grids), *cyclic]


def shared_folder(comm):
    """Return a temporary folder for all ranks."""
    return Path(comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None, root=0))


def check_redistribution(comm, rng):
    for shape, dtype in zip(SHAPES, itertools.cycle((np.float64, np.uint8))):
        x = (rng.random(shape) * 250).astype(dtype)
        for before, after in itertools.product(distributions(comm.size), repeat=2):
            made = DistArray.from_global(x, before)
            moved = made.redistribute(after)
            assert np.array_equal(moved.local, DistArray.from_global(x, after).local)
            assert np.array_equal(moved.gather(), x)


def check_elements_without_bytes_and_wrong_words(comm, rng):
    nothing = DistArray.from_global(np.zeros((6, 7), "V0"), slab(0)).redistribute(1)
    assert nothing.gather().shape == (6, 7)
    part, word = comm.Dup(), os.environ.get(node.SWITCH)
    os.environ[node.SWITCH] = "maybe"
    try:
        if comm.size > 1:
            with pytest.raises(InvalidConfig, match="OCLAB_NODE_MEMORY must be on or off"):
                DistArray.from_global(np.arange(9), comm=part).gather()
    finally:
        os.environ[node.SWITCH] = word or "on"
        part.Free()


def check_many_small_blocks(comm, rng):
    x = rng.random((150, 70))
    for grid in GRIDS[comm.size]:
        made = DistArray.from_global(x, block_cyclic(grid, (1, 1)))
        assert np.array_equal(made.redistribute(slab(1)).redistribute(slab(0)).gather(), x)


def check_without_room_in_memory_there_are_messages(comm, rng):
    x = rng.random((300, 700))
    made = DistArray.from_global(x)
    expected = made.redistribute(slab(1)).local
    part = comm.Dup()
    plain, node._has_room = node._has_room, lambda nbytes: False
    try:
        moved = DistArray(x.shape, x.dtype, made.local, slab(0), part).redistribute(slab(1))
        assert np.array_equal(moved.local, expected)
        product = gemm(DistArray.from_global(x.T.copy(), comm=part), moved)
        assert np.allclose(product.gather(), x.T @ x)
    finally:
        node._has_room = plain
        part.Free()


def check_what_is_not_kept_holds_until_the_next_exchange_but_one(comm, rng):
    x = rng.integers(0, 99, (comm.size * 30, 77))
    given = DistArray.from_global(x)
    columns = DistArray.from_global(x, slab(1)).local
    kept = given.redistribute(slab(1))
    for _ in range(4):
        one = given.moved(slab(1))
        other = one.moved(slab(0))
        assert np.array_equal(one.local, columns) and np.array_equal(other.local, given.local)
    one = given.moved(slab(1))
    given.moved(slab(1))
    if comm.rank == 0:
        time.sleep(0.2)  # the others come to the next exchange long before
        assert np.array_equal(one.local, columns)
    given.moved(slab(1))
    one = given.moved(slab(1))
    given.moved(slab(1))
    shared = node.node_of(comm) is not None or comm.size == 1
    again = given.moved(slab(1))
    assert np.shares_memory(one.local, again.local) == shared
    assert np.array_equal(kept.local, columns)


def check_one_rank_has_all(comm, rng):
    last = comm.size - 1
    for distribution in distributions(comm.size):
        x = rng.random((17, 6)).astype(np.float32)
        sent = DistArray.from_global(x if comm.rank == last else None, distribution, root=last)
        assert np.array_equal(sent.local, DistArray.from_global(x, distribution).local)
        assert not np.shares_memory(sent.local, x)
        back = sent.gather(last)
        assert back is None if comm.rank != last else np.array_equal(back, x)


def check_parts_of_a_slab_or_block_are_slices(comm, rng):
    x = rng.random((11, 12))
    for distribution in (slab(0), slab(1), blocks(GRIDS[comm.size][0])):
        made = DistArray.from_global(x, distribution)
        assert np.array_equal(made.local, x[made.local_slice()])


def check_cyclic_parts_are_those_of_scalapack(comm, rng):
    grid = GRIDS[comm.size][-1]
    x = np.arange(23 * 29).reshape(23, 29)
    made = DistArray.from_global(x, block_cyclic(grid, (4, 5)))
    row, column = divmod(comm.rank, grid[1])
    i, j = np.arange(23), np.arange(29)
    expected = x[i // 4 % grid[0] == row][:, j // 5 % grid[1] == column]
    assert np.array_equal(made.local, expected)


def check_files(comm, rng):
    folder = shared_folder(comm)
    x = rng.random((19, 8))
    for distribution in distributions(comm.size):
        DistArray.from_global(x, distribution).save(folder / "x.npy")
        assert np.array_equal(np.load(folder / "x.npy"), x)
        assert np.array_equal(DistArray.load(folder / "x.npy", distribution).gather(), x)
        comm.Barrier()
    if comm.rank == 0:
        (folder / "short.npy").write_bytes((folder / "x.npy").read_bytes()[:-5])
        np.save(folder / "f.npy", np.asfortranarray(x))
        np.save(folder / "o.npy", np.array([None]), allow_pickle=True)
    comm.Barrier()
    for name, told in (("short", "5 bytes are missing"), ("f", "Fortran"), ("o", "Python objects"),
                       ("none", "cannot read")):  # fmt: skip
        with pytest.raises(InvalidProblem, match=told):
            DistArray.load(folder / f"{name}.npy")


def check_local_parts_of_different_lengths(comm, rng):
    mine = np.full((comm.rank, 3), comm.rank, np.int16)
    made = DistArray.from_local(mine)
    assert made.shape == (comm.size * (comm.size - 1) // 2, 3)
    assert np.array_equal(
        made.gather()[:, 0], np.repeat(np.arange(comm.size), np.arange(comm.size))
    )
    even = made.redistribute(slab(0))
    assert np.ptp(comm.allgather(len(even.local))) <= 1


def check_parts_on_devices(comm, rng):
    x = rng.random((8, 9)).astype(np.float32)
    made = DistArray.from_global(x)
    there = made.like(ol.to_device(made.local, device_of(comm)))
    moved = there.redistribute(slab(1))
    assert moved.on_device and np.array_equal(moved.gather(), x)


def check_ranks_agree_by_numbers(comm, rng):
    """Also on what NumPy cannot negate, and on equal values that are pickled differently."""
    last = comm.rank == comm.size - 1
    assert everywhere(comm, np.True_)
    assert not everywhere(comm, np.bool_(not last))
    assert extremes(comm, (1 << 61) + comm.rank) == (1 << 61, (1 << 61) + comm.size - 1)
    same(comm, {"x": 1, "y": 2} if last else {"y": 2.0, "x": True}, "a value")


def check_what_does_not_fit_is_refused_on_all_ranks(comm, rng):
    for shape, dtype, distribution, told in (
        ((3, 4), object, slab(0), "Python objects"),
        ((3, 4), float, slab(2), "axis 2"),
        ((3, 4), float, blocks((comm.size + 1, 1)), "product is"),
        ((3, 4), float, block_cyclic((comm.size, 1), (0, 1)), "positive sizes"),
        ((3, 4), float, slab(0, [1] * comm.size + [9]), "add up"),
    ):
        with pytest.raises(InvalidProblem, match=told):
            DistArray(shape, dtype, None, distribution)
    made = DistArray((3, 4), float)
    with pytest.raises(OclabError, match="distribution must be"):
        made.redistribute("x")
    with pytest.raises(TypeError, match="unexpected keyword"):
        made.redistribute(0, other=1)
    wrong = np.zeros((9, 9)) if comm.rank == comm.size - 1 else None
    with pytest.raises(InvalidProblem, match="local part must be float64 of shape"):
        DistArray((4, 4), float, wrong)
    made = DistArray((4, 4))
    for call, told in (
        (lambda: made.gather(comm.size), "root must be a rank"),
        (lambda: made.save("/nowhere/x.npy"), "does not exist"),
        (lambda: DistArray.from_local(np.zeros((2, 2)), axis=5), "axis 5 is out of bounds"),
    ):
        with pytest.raises(InvalidProblem, match=told):
            call()
    if comm.size > 1:
        with pytest.raises(InvalidConfig, match="must be the same on all ranks"):
            DistArray((4, 4 + comm.rank))
