"""Kernels: the same operations for the GPU (`cuda`) and the CPU (`cpu`), over shared arithmetic (`geometry`)."""
