"""Plans of fast Fourier transforms: which kernels are launched, in which order, on which buffers.

Nothing here runs anything, and nothing knows of an operation: `opencl_lab.operations.dft` and the
convolution by transforms both plan with this package. It reads from the bottom up:

=================  =================================================================================
`factors`          Lengths: radices of the passes, smooth lengths, the length of a convolution.
`twiddles`         Tables of roots of unity: twiddle factors, chirps.
`schedule`         The passes of one transform: radices, strides, twiddle offsets.
`layout`           Where a batch of transforms reads and writes, as counts and strides.
`builder`          A plan that grows: buffers, tables, launches.
`planner`          What both forms can do: transform, real, convolution.
`vector`           The form for CPUs: single items with vectors. `costs` estimates its times.
`local_memory`     The form for GPUs: work-groups with local memory. `splits` estimates costs,
                   `steps` arranges long transforms, `fusion` shares launches, and `local_schedule`
                   says what a group does.
`rows`             Launches before and after: an item for each point of each row.
`bluestein`        Every length: those with large prime factors by convolution.
`real_transforms`  Real signals to half a spectrum, and back.
`forms`            Tuning parameters, what is built in for a device, and which planner it takes.
=================  =================================================================================

The templates are in ``clkernels/fourier``; they emit what is computed here.

**How 2^20 points are planned.** `bluestein.any_length` finds 2^20 smooth, a product of radices with
a butterfly, and leaves it to the planner of the form.

*On a GPU* (`LocalMemoryPlanner.transform`), `splits.lengths_of` finds no group that holds 2^20
points and compares products of two and three lengths by their costs: 1,024 * 1,024 is the cheapest,
in two launches.

1. The signal is a matrix with rows of 1,024. A group of 256 items transforms 8 neighbouring
   columns, 32 items each: passes of radices 32 and 32, so that an item has one butterfly of 32
   points in each pass. Between the passes all points go through local memory, in two phases: real
   parts and then imaginary ones, as both would take twice the 32 KiB. At the end, position p of
   column c is multiplied by the twiddle factor w^(p c) of 2^20, a product of two from tables of
   1,024 each (`steps`).
2. A group of 128 items transforms 4 rows and writes them as columns: the spectrum. As its first
   pass leaves results 128 elements apart, one element is left out of local memory after every 128,
   so that they are not all in one bank (`local_schedule.gap_of`).

*On a CPU* (`VectorPlanner.transform`), `costs.best_split` finds two steps of 2,048 and 512 points
cheaper than one: either fits a cache.

1. An item transforms 8 columns of 2,048 at a time as vectors of 8 lanes, with radices 8, 8, 8 and
   4, and writes them as rows.
2. It transforms columns of 512, in blocks of 4 vectors, in place, with radices 8, 8 and 8. The
   twiddle factors between the steps are part of those of its passes.

Both are in one launch where units see what others have written: items claim tasks of the first
step and go on to the second when all are finished.

**How 1,009 points are planned.** That is a prime: they become a convolution, of length 2,048
(`factors.convolution_length`: at least 2 n - 1, of factors 2, 3 and 5, a multiple of 64).

*On a GPU* one launch does it all (`LocalMemoryPlanner.convolution`): a group of 128 items
multiplies by the chirp as it loads, goes through passes of radices 16, 16 and 8, multiplies by the
transform of the chirp, goes through the passes again, and multiplies by the chirp as it stores.

*On a CPU* it takes five launches (`bluestein`): ``chirp_in``, a transform of 2,048 points,
``chirp_multiply``, the same transform again, ``chirp_out``. With one signal, the transform has
vectors of 8 neighbouring points instead of 8 transforms.
"""
