"""Calls as a type checker reads them: mypy checks this file, and nothing runs it."""

import numpy as np
import pyopencl as cl

import opencl_lab as ol

x = np.zeros((8, 8), np.float32)
device = ol.select_device("cpu")
device.queue(profiling=True).finish()
ol.sort(x, device=device)
ol.fft.fft2(x, wait_for=cl.enqueue_marker(device.queue()))
ol.sort(x, wait_for=[])
ol.sort(x, wait_for=device)  # type: ignore[arg-type]
ol.sort(x, device=1.5)  # type: ignore[arg-type]
ol.gemm(x, x, precision="tf32", activation="relu", device="cpu")
ol.gemm(x, x, devices=["0:0", device])
ol.sort(x, devices=[device.handle, 0])
ol.sort(x, devices=device)  # type: ignore[arg-type]
ol.gemm(x, x, precision="fast")  # type: ignore[arg-type]
ol.gemm(x, x, activation="tanh")  # type: ignore[arg-type]
ol.conv2d(x, x, mode="valid", boundary="wrap", channels_last=False)
ol.conv2d(x, x, mode="most")  # type: ignore[arg-type]
ol.conv2d(x, x, boundary="cliff")  # type: ignore[arg-type]
ol.dft(x, norm=None)
ol.dft(x, norm="sideways")  # type: ignore[arg-type]
ol.fft.fft2(x, norm="ortho")
ol.fft.fft2(x, norm="sideways")  # type: ignore[arg-type]
ol.searchsorted(x[0], x, "middle")  # type: ignore[arg-type]
ol.unique(x).sum()
values, first, counts = ol.unique(x, True, return_index=True)
ol.unique(x, return_inverse=True).sum()  # type: ignore[union-attr]
ol.compare("sort").title.upper()
