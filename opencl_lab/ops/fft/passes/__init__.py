"""Plans of fast Fourier transforms: which kernels are launched, in which order, on which buffers.

Nothing here runs anything, and nothing knows of an operation: `opencl_lab.ops.fft` and the
convolution by transforms both plan with this package. It reads from the bottom up:

=================  =================================================================================
`factors`          Lengths: radices of the passes, smooth lengths, the length of a convolution.
`twiddles`         Tables of roots of unity: twiddle factors, chirps.
`schedule`         The passes of one transform: radices, strides, twiddle offsets.
`layout`           Where a batch of transforms reads and writes, as counts and strides.
`builder`          A plan that grows: buffers, tables, launches.
`planner`          What both forms can do: transform, real, convolution.
`vector`           The form for CPUs: single items with vectors, in one step or two. `costs` chooses
                   by estimates, `vector_step` says what an item does in a step, and
                   `vector_twiddles` makes its tables.
`local_memory`     The form for GPUs: work-groups with local memory, in one step or more. `splits`
                   chooses by estimates, `steps` says where long transforms read and write, `fusion`
                   whether two steps share a launch, and `local_schedule` what a group does in one.
`rows`             Launches before and after: an item for each point of each row.
`bluestein`        Every length: those with large prime factors by convolution.
`real_transforms`  Real signals to half a spectrum, and back.
`forms`            Tuning parameters, what is built in for a device, and which planner it takes.
=================  =================================================================================

The templates are in ``clkernels/fourier``; they emit what is computed here. A *step* does
transforms of one length, each by a sequence of *passes*; a long transform takes several steps.

**How 2^20 points are planned.** `bluestein.any_length` finds 2^20 smooth, a product of radices with
a butterfly, and leaves it to the planner of the form. All of this is for complex64 and the built-in
configuration; ``docs/fft.md`` has the costs and the sizes, too.

*On a GPU* (`LocalMemoryPlanner.transform`), `splits.lengths_of` finds no group that holds 2^20
points and compares products of two and three lengths by their costs: 1,024 * 1,024 is the cheapest,
in two launches. The signal is a matrix with rows of 1,024.

1. A group of 256 items transforms 8 neighbouring columns, 32 items each: passes of radices 32 and
   32, so that an item has one butterfly of 32 points in each pass. Between the passes all points go
   through local memory in two phases, real parts and then imaginary ones, which is what long
   transforms do. At the end, position p of column c is multiplied by the step twiddle w^(p c), with
   w = exp(-2 pi i / 2^20), a product of two numbers from tables of 1,024 each. The results stay
   columns, in scratch memory.
2. A group of 128 items transforms 4 of its rows and writes them as columns: the spectrum. As the
   first pass leaves results 128 elements apart, one element is left out of local memory after every
   128, so that they are not all in one bank (`local_schedule.gap_of`).

*On a CPU* (`VectorPlanner.transform`), `costs.best_split` finds two steps of 2,048 and 512 points
cheaper than one, which would be a single task. The signal is a matrix with rows of 512.

1. A task transforms 32 columns of 2,048 points, as 4 vectors of 8 columns side by side, with
   radices 8, 8, 8 and 4, and writes them as rows of the result.
2. A task transforms 32 columns of that, of 512 points, in place, with radices 8, 8 and 8. The step
   twiddles are part of the twiddle factors of its passes.

Both steps are fused in one launch where units see what others have written: items claim tasks of
the first step and go on to the second when all are finished.

**How 1,009 points are planned.** That is a prime: they become a convolution, of length 2,048
(`factors.convolution_length`: at least 2 n - 1, of factors 2, 3 and 5, a multiple of 64).

*On a GPU* one launch does it all (`LocalMemoryPlanner.convolution`): a group of 128 items
multiplies by the chirp as it loads, goes through passes of radices 16, 16 and 8, multiplies by the
transform of the chirp, goes through the passes again, and multiplies by the chirp as it stores.

*On a CPU* it takes five launches (`bluestein`): ``chirp_in``, a transform of 2,048 points,
``chirp_multiply``, the same transform again, ``chirp_out``. Their vectors are over
the points, as of all rows with suitable radices: 8 neighbours of one signal in each.
"""
