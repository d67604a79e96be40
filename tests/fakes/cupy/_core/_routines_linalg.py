"""How precisely CuPy multiplies."""

COMPUTE_TYPE_DEFAULT, COMPUTE_TYPE_TF32 = 1, 7
current = COMPUTE_TYPE_TF32
"""As after ``CUPY_TF32=1``."""


def get_compute_type(dtype):
    return current


def set_compute_type(dtype, compute_type):
    global current
    current = compute_type
