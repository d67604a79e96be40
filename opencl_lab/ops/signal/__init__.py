"""Convolutions and correlations of two arrays, as `scipy.signal` has them."""
