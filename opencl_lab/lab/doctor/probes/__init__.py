"""The probes: one function each, run in a child process by `opencl_lab.lab.doctor.examine`.

A probe is a generator of steps, plain JSON-able dicts. A step with a ``trying`` says what is
attempted next and what holds so far; when the driver takes the process down there, that is the
finding. The last step has a ``verdict`` and ends the probe:

``ok``
    It works.
``no``
    The device does not claim it and it does not work either.
``limited``
    It works, up to less than the device claims; ``value`` says how far.
``broken``
    The device claims it and it fails.

Everything is checked by running: several drivers compile at the first launch only, and several
build what they then compute wrongly.
"""
