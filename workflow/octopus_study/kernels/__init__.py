"""Kernels that the library doesn't need: those of baselines, and probes of the machine."""
