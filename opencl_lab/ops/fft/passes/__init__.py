"""Plans of fast Fourier transforms: which kernels are launched, in which order, on which buffers.

Nothing here runs anything, and nothing knows of an operation: `opencl_lab.ops.fft` and the
convolution by transforms both plan with this package. It reads from the bottom up:

=================  =================================================================================
`factors`          Lengths: radices of the passes, smooth lengths, the length of a convolution.
`twiddles`         Tables of roots of unity: twiddle factors, chirps.
`schedule`         The passes of one transform: radices, strides, twiddle offsets.
`layout`           Where a batch of transforms reads and writes, as counts and strides.
`builder`          A plan that grows: buffers, tables, launches.
`planner`          The interface of both forms: transform, real, convolution.
`vector`           The form for CPUs: single items with vectors, in one step or two. `costs` chooses
                   by estimates, and `vector_step` describes what an item does in a step.
`serial`           The same where items do several steps by themselves: all of them on a single
                   compute unit, and those of convolutions row by row on several.
`local_memory`     The form for GPUs: work-groups with local memory, in one step or more. `splits`
                   chooses by estimates, `steps` describes where long transforms read and write,
                   `fusion` whether two steps share a launch, and `local_schedule` what a group
                   does in a step.
`rows`             Launches before and after: an item for each point of each row.
`bluestein`        Every length: those with large prime factors by convolution.
`real_transforms`  Real signals to half a spectrum, and back.
`forms`            Tuning parameters, what is built in for a device, and which planner it takes.
=================  =================================================================================

The templates are in ``clkernels/fourier``; they emit what is computed here.

**Words.** A *pass* is one radix of a transform: all butterflies of R points. A *step* is one length
that a launch transforms: all passes whose radices multiply to it. A short transform is one step; a
long one is several, whose lengths multiply to its own.

===================================  ===============================================================
`schedule.Pass`, `Schedule`          a pass; all passes of one length, in order
`vector_step.VectorPass`             the same pass, counted in vectors: which arrays it goes between
`local_schedule.GroupPasses`         the passes of one length as a work-group does them
`steps.Step`                         a step on a GPU: where it reads and writes
`VectorStep`, `LocalStep`            a step as its template takes it
`builder.PlannedStep`                that, with the arguments of the kernel
===================================  ===============================================================

**An example: one row of 1,024 points.** `bluestein.any_length` sees small primes only
and leaves it to the planner of the form, which takes one step.

On a CPU with vectors of 8 floats, `vector.VectorPlanner.transform` finds one step cheaper than two,
and radices 8, 8, 4, 4 whose first one fills a vector, so that vectors lie over the points. With
`VectorStep.passes`, in vectors of 8 points, that is what ``vector_passes.mako`` writes as loops::

    pass  R  stride   reads    writes   SPACING  RUN  RUNS   twiddles
    0     8  1        source   array 0  16       -    -      none: transposed in registers
    1     8  8        array 0  array 1  16       1    16     7 * 8 from 0
    2     4  64       array 1  array 0  32       8    4      3 * 64 from 56
    3     4  256      array 0  target   32       32   1      3 * 256 from 248

On a GPU, `local_memory.LocalMemoryPlanner.transform` finds that a group can hold the points. The
radices are 16, 8, 8, and a group has 64 items of 16 points each, one butterfly of 16 or two of 8
(`GroupPasses.rounds`), which ``local_step.mako`` writes as::

    load 16 points -> pass 0: radix 16 -> exchange -> pass 1: radix 8, twice -> exchange
                   -> pass 2: radix 8, twice -> store

Between passes the points lie in local memory with a gap after every 32 elements, 1,056 real and
1,056 imaginary components: 8,448 bytes.

How 2^20 points become two steps is worked out in `vector` for CPUs and in `steps` for GPUs; how
44,100 points share one launch of a GPU, in ``docs/fft.md``.
``oclab source dft --n 1024`` shows the plan of any problem, and ``docs/fft.md`` says why it is so.
"""
