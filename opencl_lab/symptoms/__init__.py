"""Checks of a device by symptom: kernels that some driver is known to get wrong.

Each check runs a few small kernels in this process and compares them with NumPy. What a driver is
called plays no part. Drivers under suspicion crash and hang, so callers run checks in a worker.
"""
