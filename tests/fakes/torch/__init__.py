"""PyTorch's functions by NumPy, on a processor and on a device that it says is CUDA's."""

from types import SimpleNamespace

import numpy as np
import scipy.special

cuda = SimpleNamespace(is_available=lambda: True, synchronize=lambda: None)
backends = SimpleNamespace(
    cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True)),
    cudnn=SimpleNamespace(allow_tf32=True, benchmark=False),
)
threads = 7
seen = []
"""How many threads there were at each product."""
tf32 = []
"""Whether each product was allowed TF32."""


def _note():
    seen.append(threads)
    tf32.append(backends.cuda.matmul.allow_tf32)


class Tensor(np.ndarray):
    """An array here or there."""

    where = "cpu"

    def __array_finalize__(self, other):
        self.where = getattr(other, "where", "cpu")

    def cuda(self):
        moved = self.copy()
        moved.where = "cuda"
        return moved

    def cpu(self):
        moved = self.copy()
        moved.where = "cpu"
        return moved

    def numpy(self):
        if self.where != "cpu":
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        return np.asarray(self)

    def mul_(self, factor):
        self *= self.dtype.type(factor)
        return self

    def add_(self, other, *, alpha=1):
        self += self.dtype.type(alpha) * other
        return self

    def relu_(self):
        return np.maximum(self, 0, out=self)

    def expand(self, *shape):
        return np.broadcast_to(self, shape, subok=True)


def from_numpy(array):
    return array.view(Tensor)


def get_num_threads():
    return threads


def set_num_threads(count):
    global threads
    threads = count


def matmul(a, b):
    _note()
    return a @ b


def _gelu(x):
    return (x * (1 + scipy.special.erf(x / 2**0.5)) / 2).astype(x.dtype)


nn = SimpleNamespace(functional=SimpleNamespace(gelu=_gelu))


def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    assert input.ndim == batch1.ndim == batch2.ndim == 3
    return addmm(input, batch1, batch2, beta=beta, alpha=alpha)


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    _note()
    kind = input.dtype.type
    return kind(beta) * input + kind(alpha) * (mat1 @ mat2)
