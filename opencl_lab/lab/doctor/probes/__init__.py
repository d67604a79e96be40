"""The probes: functions that `opencl_lab.lab.doctor.probing` runs in workers.

A probe is a generator of reports, JSON-able dicts. A report with ``trying`` names the next attempt
and the results so far; if the driver then crashes, that is the finding. The last report has a
``verdict``:

``ok``
    It works.
``no``
    The device does not claim it, and it does not work.
``limited``
    It works up to ``value``, which is less than the device claims.
``broken``
    The device claims it and it fails.

All is checked by running kernels: several drivers compile only at the first launch, and several
build kernels that compute wrong results.
"""
