"""Checks of Fourier transforms on ranks; see `ranks`."""

import numpy as np
import pytest
from fft_checks import bound, random_signal, relative

import opencl_lab as ol
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.distributed import DistArray, block_cyclic, blocks, device_of, slab
from opencl_lab.distributed import fft as dfft

PENCILS = {1: (1, 1, 1), 2: (1, 2, 1), 3: (1, 1, 3), 4: (1, 2, 2), 7: (1, 7, 1)}
SHAPE = (3, 9, 10)  # the first axis is too short for a slab on each of four ranks
PRIME = 97
FEW = 3  # ranks that have processors enough to compile kernels for more lengths


def agrees(made, right, n=2**12):
    """Check a result against one of `numpy.fft` in double precision, on all ranks."""
    single = made.dtype in (np.float32, np.complex64)
    assert made.shape == right.shape
    assert made.dtype.kind == right.dtype.kind
    limit = 2 * bound(64 * n, "complex64" if single else "complex128")
    found = made.gather()
    assert relative(found, right) <= limit, (relative(found, right), limit)


def check_one_row(comm, rng):
    more = ((4096, "c16", "fft"), (6000, "c8", "ifft")) if comm.size <= FEW else ()
    for n, dtype, name in (
        *more, (1001, "c8", "fft"), (1001, "c8", "ifft"), (PRIME, "c8", "fft"), (5, "c16", "fft")
    ):  # fmt: skip
        x = random_signal(rng, n, dtype)
        made = getattr(dfft, name)(DistArray.from_global(x))
        agrees(made, getattr(np.fft, name)(x.astype("c16")), n)
        assert made.dtype == dtype and made.distribution == slab(0)


def check_one_row_of_real_numbers(comm, rng):
    more = ((4096, "f8"),) if comm.size <= FEW else ()
    for n, dtype in (*more, (1001, "f4"), (5, "f8")):
        x = rng.standard_normal(n).astype(dtype)
        half = dfft.rfft(DistArray.from_global(x))
        agrees(half, np.fft.rfft(x.astype("f8")), n)
        back = dfft.irfft(half, n=n)
        assert back.dtype == dtype
        agrees(back, x.astype("f8"), n)
    for length, n in ((3, 1001), (700, 1001), (4, None)):  # frequencies that miss or are too many
        spectrum = random_signal(rng, length)  # also those without a mirror image are not real
        made = dfft.irfft(DistArray.from_global(spectrum), norm="forward", n=n)
        agrees(made, np.fft.irfft(spectrum.astype("c16"), n, norm="forward"))
    x = rng.integers(-9, 9, 1001)
    half = dfft.rfft(DistArray.from_global(x.astype("f2")))
    assert half.dtype == np.complex64
    agrees(half, np.fft.rfft(x))


def check_one_row_in_transposed_order(comm, rng):
    more = ((4096, "c16"),) if comm.size <= FEW else ()
    for n, dtype in (*more, (1001, "c8"), (PRIME, "c8")):
        x = random_signal(rng, n, dtype)
        made = dfft.fft(DistArray.from_global(x), natural=False)
        n1, n2 = made.shape
        assert n1 * n2 == n and (n1 > 1 or n == PRIME or comm.size == 1)
        k1, k2 = np.ogrid[:n1, :n2]
        agrees(made, np.fft.fft(x.astype("c16"))[k1 + n1 * k2], n)
        agrees(dfft.ifft(made, natural=False), x.astype("c16"), n)


def check_one_row_in_other_parts(comm, rng):
    x = random_signal(rng, 1001)
    right = np.fft.fft(x.astype("c16"))
    falling = np.diff(np.linspace(0, 1, comm.size + 1) ** 0.5 * 1001 // 1).astype(int).tolist()
    last = [0] * (comm.size - 1) + [1001]
    for distribution in (slab(0, falling), slab(0, last), block_cyclic((comm.size,), (10,))):
        given = DistArray.from_global(x, distribution)
        made = dfft.fft(given, norm="ortho")
        assert made.distribution == distribution
        agrees(made, right / 1001**0.5)
        there = dfft.fft(DistArray.from_global(x), distribution=distribution)
        assert there.distribution == distribution
        agrees(there, right)
    assert np.array_equal(given.gather(), x)


def check_two_axes(comm, rng):
    x = random_signal(rng, (15, 21))
    double = x.astype("c16")
    grid = (comm.size, 1)
    for before in (slab(0), slab(-1), blocks(grid), block_cyclic(grid, (2, 3))):
        given = DistArray.from_global(x, before)
        for after in (None, slab(1)):
            made = dfft.fft2(given, distribution=after)
            assert made.distribution == (after or before)
            agrees(made, np.fft.fft2(double))
    agrees(dfft.fft(given, 0), np.fft.fft(double, axis=0))
    agrees(dfft.fft(given, 1), np.fft.fft(double, axis=1))
    for norm in ("ortho", "forward"):
        agrees(dfft.ifft2(given, norm=norm), np.fft.ifft2(double, norm=norm))


def check_three_axes(comm, rng):
    x = random_signal(rng, SHAPE)
    for before in (slab(0), slab(1), blocks(PENCILS[comm.size])):
        given = DistArray.from_global(x, before)
        agrees(dfft.ifftn(given), np.fft.ifftn(x.astype("c16")))
    agrees(dfft.ifftn(given, (0, 2)), np.fft.ifftn(x.astype("c16"), axes=(0, 2)))
    agrees(dfft.ifftn(given, distribution=2), np.fft.ifftn(x.astype("c16")))


def check_real_numbers_there_and_back(comm, rng):
    x = rng.integers(-9, 9, (*SHAPE[:2], 11))
    more = ((slab(0), "f8"),) if comm.size <= FEW else ()
    for before, dtype in (*more, (slab(2), ">i4"), (blocks(PENCILS[comm.size]), "f8")):
        half = dfft.rfftn(DistArray.from_global(x.astype(dtype), before))
        agrees(half, np.fft.rfftn(x))
        back = dfft.irfftn(half, n=11)
        agrees(back, x.astype(float))
        assert (half.distribution, back.distribution) == (before, before)
    two = DistArray.from_global(x[0].astype("f8"))
    half = dfft.rfft2(two, (1, 0))
    agrees(half, np.fft.rfft2(x[0], axes=(1, 0)))
    agrees(dfft.irfft2(half, (1, 0), n=9), x[0].astype(float))
    lengths = [0] * (comm.size - 1) + [11]
    halved = dfft.rfft(two.redistribute(slab(1, lengths)))
    agrees(halved, np.fft.rfft(x[0]))
    assert halved.distribution == slab(1)


def check_parts_on_devices(comm, rng):
    for x in (random_signal(rng, (15, 21)), random_signal(rng, 1001)):
        made = DistArray.from_global(x)
        there = made.like(ol.to_device(made.local, device_of(comm)))
        spectrum = dfft.fftn(there)
        assert spectrum.on_device
        agrees(spectrum, np.fft.fftn(x.astype("c16")))
        assert np.array_equal(there.gather(), x)
    assert dfft.fft(there, natural=False).on_device


def check_what_is_refused_on_all_ranks(comm, rng):
    x = DistArray.from_global(np.ones((6, 8)))
    row = DistArray.from_global(np.ones(8))
    for call, told in (
        (lambda: dfft.fft(x, 2), "axis 2 is out of bounds"),
        (lambda: dfft.fftn(x, 1), "axes must be a sequence"),
        (lambda: dfft.fftn(x, (0, -2)), "each axis once"),
        (lambda: dfft.fft(x, norm="both"), "norm must be one of"),
        (lambda: dfft.rfftn(x, ()), "at least one axis"),
        (lambda: dfft.rfft(dfft.fft(x)), "takes real numbers"),
        (lambda: dfft.irfft(row, n=0), "at least one sample"),
        (lambda: dfft.irfft(row, n=2.5), "n must be a whole number"),
        (lambda: dfft.fft(DistArray.from_global(np.ones((4, 0)))), "at least one sample"),
        (lambda: dfft.fft(DistArray.from_global(np.array(["a"]))), "cannot transform"),
        (lambda: dfft.fft(x, natural=False), "takes 1-D"),
        (lambda: dfft.ifft(row, natural=False), "takes 2-D"),
        (lambda: dfft.fft(x, distribution=2), "slab along axis 2"),
        (lambda: dfft.fft(np.ones(4)), "takes a DistArray"),
    ):
        with pytest.raises(InvalidProblem, match=told):
            call()
    if comm.size > 1:
        alone = comm.rank == comm.size - 1
        with pytest.raises(InvalidProblem, match=f"rank {comm.size - 1}: axis 7"):
            dfft.fft(x, 7 if alone else 0)
        with pytest.raises(InvalidConfig, match="must be the same on all ranks"):
            dfft.fft(x, 1 if alone else 0)
