"""Numba kernels on plain arrays: the loops that everything else waits for."""
