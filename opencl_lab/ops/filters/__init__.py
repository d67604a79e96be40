"""Filters of arrays of any number of dimensions, as `scipy.ndimage` has them."""
