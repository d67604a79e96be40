"""Calls as a type checker reads them: mypy checks this file, and nothing runs it."""

import numpy as np

import opencl_lab as ol

x = np.zeros((8, 8), np.float32)
ol.unique(x).sum()
values, first, counts = ol.unique(x, True, return_index=True)
ol.unique(x, return_inverse=True).sum()  # type: ignore[union-attr]
ol.compare("sort").title.upper()
