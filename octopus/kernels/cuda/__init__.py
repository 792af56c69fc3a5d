"""CUDA kernels, written in Numba's kernel language over raw pointers."""
