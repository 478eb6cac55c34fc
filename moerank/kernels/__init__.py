"""Numba kernels on plain arrays: the loops that take most of the time."""
