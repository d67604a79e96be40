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
                   by estimates, `vector_step` describes what an item does in a step, and
                   `vector_twiddles` makes its tables.
`local_memory`     The form for GPUs: work-groups with local memory, in one step or more. `splits`
                   chooses by estimates, `steps` describes where long transforms read and write,
                   `fusion` whether two steps share a launch, and `local_schedule` what a group
                   does in a step.
`rows`             Launches before and after: an item for each point of each row.
`bluestein`        Every length: those with large prime factors by convolution.
`real_transforms`  Real signals to half a spectrum, and back.
`forms`            Tuning parameters, what is built in for a device, and which planner it takes.
=================  =================================================================================

The templates are in ``clkernels/fourier``; they emit what is computed here. A *step* does
transforms of one length, each by a sequence of *passes*; a long transform takes several steps.

The entry point is `bluestein.any_length`: it gives a smooth length to the planner of the form, and
turns any other one into a convolution. ``docs/fft.md`` works two examples through, of 2^20 and of
1,009 points, for both forms.
"""
