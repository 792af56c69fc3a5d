"""Kernels that the library doesn't need: those of opponents, and probes of the machine."""
