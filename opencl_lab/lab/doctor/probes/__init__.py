"""The probes: functions that `opencl_lab.lab.doctor.probing` runs in workers.

A probe is a generator. It yields each step as a `Trying`, with the results so far; if the driver
crashes then, that is the finding. Last comes the `Verdict`. All is checked by running kernels:
several drivers compile only at the first launch, and several build kernels that compute wrong
results.
"""
